/* origin: an origin of the walk, one a connection.
 *
 * Reads requests with the oracle, answers each in one of several framings, in pieces, sometimes before it is
 * whole, sometimes not to the end.  Checks what no origin may ever see: bytes behind a request that was
 * not answered yet, a body that is not the one of its target, a whole request that its client never
 * sent whole, a POST twice. */
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/check.h"
#include "tests/sim/walk.h"
#include "tests/sim/world.h"

struct origin {
	size_t cursor;		/* in what it got: where the current request begins */
	unsigned id;		/* of that request, once its head was counted */
	bool known, answering, early;
	struct bytes out;	/* the answer */
	size_t proper;		/* bytes of it that are the answer to the request */
	size_t sent, stop;	/* bytes of it that were sent, and after which to end the connection */
	enum { THEN_NOTHING, THEN_FIN, THEN_RST } then;
	bool gone;
};

static bool chance(unsigned percent)
{
	return net_random(100) < percent;
}

static struct origin *origin_of(struct peer *p)
{
	if (!p->story)
		p->story = calloc(1, sizeof(struct origin));
	CHECK(p->story);
	return p->story;
}

void origin_free(struct peer *p)
{
	struct origin *o = p->story;

	if (bystander_is(p)) {
		bystander_free(p);
		return;
	}
	if (!o)
		return;
	free(o->out.p);
	free(o);
	p->story = NULL;
}

static void add(struct origin *o, const char *text)
{
	bytes_add(&o->out, text, strlen(text));
}

static void add_body(struct origin *o, const struct asked *a, bool chunked)
{
	char line[32], byte;
	size_t at = 0;

	while (at < a->answer) {
		size_t n = a->answer - at;

		if (chunked) {
			n = 1 + net_random((uint32_t)n);
			snprintf(line, sizeof line, "%zx%s\r\n", n, chance(10) ? ";x=y" : "");
			add(o, line);
		}
		for (size_t i = 0; i < n; i++) {
			byte = walk_byte(o->id, true, at + i);
			bytes_add(&o->out, &byte, 1);
		}
		if (chunked)
			add(o, "\r\n");
		at += n;
	}
	if (chunked)
		add(o, chance(20) ? "0\r\nX-Trailer: t\r\n\r\n" : "0\r\n\r\n");
}

static void plan(struct origin *o)
{
	const struct asked *a = &walking.asked[o->id];
	bool head = strcmp(a->method, "HEAD") == 0, bad = !walking.calm && !walking.ending && chance(15);
	char line[128];

	o->out.n = o->sent = 0;
	o->then = THEN_NOTHING;
	for (unsigned i = chance(15) ? 1 + net_random(3) : 0; i; i--)
		add(o, chance(50) ? "HTTP/1.1 100 Continue\r\n\r\n" : "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n");
	snprintf(line, sizeof line, "HTTP/1.1 %s\r\nX-Id: %u\r\n", a->reply == REPLY_EMPTY ? "204 No Content" : walking.again && chance(30) ? "503 Busy" : "200 OK", o->id);
	add(o, line);
	if (a->reply == REPLY_SIZED) {
		snprintf(line, sizeof line, "Content-Length: %zu\r\n", a->answer);
		add(o, line);
	} else if (a->reply == REPLY_CHUNKED) {
		add(o, "Transfer-Encoding: chunked\r\n");
	}
	if (chance(50))
		add(o, "Content-Type: text/plain\r\n");
	if (chance(10)) {
		add(o, "Connection: close\r\n");
		o->then = THEN_FIN;
	}
	add(o, "\r\n");
	if (!head && a->reply != REPLY_EMPTY)
		add_body(o, a, a->reply == REPLY_CHUNKED);
	if (a->reply == REPLY_CLOSE && !head)
		o->then = THEN_FIN;
	o->stop = o->proper = o->out.n;
	if (!bad)
		return;
	switch (net_random(3)) {
	case 0:		/* cut */
		o->stop = net_random((uint32_t)o->out.n);
		o->then = a->reply == REPLY_CLOSE || chance(50) ? THEN_RST : THEN_FIN;
		break;
	case 1:		/* what nobody asked for */
		if (a->reply == REPLY_CLOSE && !head)
			break;
		add(o, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nX-Id: 99999\r\n\r\nPOISON");
		o->stop = o->out.n;
		break;
	default:	/* no HTTP */
		o->out.n = 0;
		add(o, chance(50) ? "HTTP/1.1 2000 OK\r\n\r\n" : "HTTP/1.1 200 OK\r\nContent-Length: 3, 4\r\n\r\nPOISON");
		o->stop = o->out.n;
	}
}

static bool body_right(const struct message *m, unsigned id)
{
	for (size_t i = 0; i < m->body.n; i++)
		if (m->body.p[i] != walk_byte(id, false, i))
			return false;
	return m->body.n <= walking.asked[id].body;
}

static unsigned id_of(const struct message *m)
{
	const char *w = memrchr(m->target.p, 'w', m->target.n);
	unsigned id = 0;

	EXPECT(w);
	for (w++; w < m->target.p + m->target.n; w++)
		id = id * 10 + (unsigned)(*w - '0');
	return id;
}

static void see_head(struct origin *o, const struct message *m)
{
	struct asked *a;

	o->id = id_of(m);
	CHECK(o->id < walking.n_asked);
	o->known = true;
	a = &walking.asked[o->id];
	a->heads++;
	if (strlen(a->method) != m->method.n || memcmp(a->method, m->method.p, m->method.n) != 0)
		world_failed("the method of its target", __FILE__, __LINE__);
	if (a->client->in.n < a->head_end)
		world_failed("a head that was sent whole", __FILE__, __LINE__);
	if (walking.guarded && !a->passed)
		world_failed("a request that may pass", __FILE__, __LINE__);
	if (a->heads > 1 && !a->idempotent)
		world_failed("a POST to reach one origin", __FILE__, __LINE__);
}

/* Reads on; `end` is set to where the current request ends, if it does. */
static bool look(struct peer *p, size_t *end)
{
	struct origin *o = origin_of(p);
	struct str in = { p->got.p + o->cursor, p->got.n - o->cursor };
	struct message m;
	bool whole;

	if (!in.n)
		return false;
	world.about = p;
	message_request(&m, in);
	if (m.state == MESSAGE_BAD)
		world_failed(m.why, __FILE__, __LINE__);
	if (m.state >= MESSAGE_PART && !o->known)
		see_head(o, &m);
	whole = m.state == MESSAGE_WHOLE;
	if (o->known && !body_right(&m, o->id))
		world_failed("the body of its target", __FILE__, __LINE__);
	if (whole) {
		const struct asked *a = &walking.asked[o->id];

		*end = o->cursor + m.used;
		if (m.body.n != a->body || a->client->in.n < a->end)
			world_failed("a request that was sent whole", __FILE__, __LINE__);
		if (p->got.n > *end)
			world_failed("no bytes behind a request that is not answered", __FILE__, __LINE__);
	}
	message_free(&m);
	return whole;
}

static void send_some(struct peer *p, struct origin *o, bool whole)
{
	size_t left = o->stop - o->sent, n = walking.ending || chance(40) ? left : 1 + net_random((uint32_t)left);

	if (o->stop > o->proper && o->sent + n >= o->proper)
		n = left;	/* what comes later, nobody can tell from the next answer */
	if (left) {
		peer_send(p, (struct str){ o->out.p + o->sent, n < left ? n : left });
		o->sent += n < left ? n : left;
	}
	if (o->sent < o->stop)
		return;
	if (o->then != THEN_NOTHING) {
		if (o->then == THEN_RST)
			peer_rst(p);
		else
			peer_fin(p);
		o->gone = true;
		return;
	}
	if (whole || o->early) {
		o->answering = false;
		if (!whole) {	/* the proxy may not use it again */
			o->gone = true;
			return;
		}
		walking.asked[o->id].finished = true;
		o->known = false;
		o->cursor = p->got.n;
	}
}

void origin_step(struct peer *p)
{
	struct origin *o;
	size_t end = 0;
	bool whole;

	if (bystander_is(p)) {
		bystander_step(p);
		return;
	}
	o = origin_of(p);
	if (p->link != PEER_UP || o->gone || p->closed || p->rst)
		return;
	whole = look(p, &end);
	if (o->known && !o->answering && !walking.calm && !walking.ending && chance(8)) {
		o->gone = true;		/* without a word */
		if (chance(50))
			peer_rst(p);
		else
			peer_fin(p);
		return;
	}
	if (!o->answering) {
		if (!o->known || (!whole && (walking.calm || !chance(10))))
			return;
		o->answering = true;
		o->early = !whole;
		plan(o);
		if (o->early && o->then == THEN_NOTHING && chance(50))
			o->then = THEN_FIN;
	}
	send_some(p, o, whole);
}

void origin_check(struct peer *p)
{
	struct origin *o = bystander_is(p) ? NULL : p->story;
	size_t end;

	if (o && !o->gone)
		(void)look(p, &end);
}
