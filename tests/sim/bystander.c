/* bystander: who is asked about requests in the walk (port 9005), and who gets copies of them (9006).
 *
 * Notes which requests may pass, which origins hold the proxy to; checks that a copy is one of a whole request.
 * What it answers is in one of several framings and in pieces, and, unless the walk is calm, now and then nothing
 * that is an answer. */
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/check.h"
#include "tests/sim/walk.h"
#include "tests/sim/world.h"

#define ASKED_PORT 9005
#define COPIES_PORT 9006

struct bystander {
	size_t cursor;		/* in what it got: where the next request begins */
	unsigned id;		/* of the one that is being answered */
	bool answering, pass, gone;
	struct bytes out;
	size_t sent;
	enum { THEN_NOTHING, THEN_FIN, THEN_RST } then;
};

static bool chance(unsigned percent)
{
	return net_random(100) < percent;
}

bool bystander_is(const struct peer *p)
{
	return p->port == ASKED_PORT || p->port == COPIES_PORT;
}

void bystander_free(struct peer *p)
{
	struct bystander *b = p->story;

	if (b)
		free(b->out.p);
	free(b);
	p->story = NULL;
}

static void plan(struct bystander *b)
{
	static const char *const passes[] = {
		"HTTP/1.1 200 OK\r\nX-User: u\r\nContent-Length: 2\r\n\r\nok", "HTTP/1.1 204 No Content\r\n\r\n",
		"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 201 Made\r\nTransfer-Encoding: chunked\r\nSet-Cookie: a=b\r\n\r\n1\r\nx\r\n0\r\n\r\n",
	};
	static const char *const refusals[] = {
		"HTTP/1.1 401 No\r\nWWW-Authenticate: x\r\nContent-Length: 2\r\n\r\nno", "HTTP/1.1 403 No\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 2000 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 1, 2\r\n\r\nPOISON",
		"HTTP/1.1 200 OK\r\nContent-Length: 200\r\n\r\ncut", "HTTP/1.1 304 Not Modified\r\n\r\n", "",
	};
	bool bad = !walking.calm && chance(20);
	const char *text = bad ? refusals[net_random(sizeof refusals / sizeof *refusals)] : passes[net_random(3)];

	b->out.n = b->sent = 0;
	b->pass = !bad;
	bytes_add(&b->out, text, strlen(text));
	b->then = bad ? (chance(50) ? THEN_RST : THEN_FIN) : chance(20) ? THEN_FIN : THEN_NOTHING;
}

/* The number behind the last `w` of a target or URL. */
static unsigned id_of(struct str s)
{
	const char *w = s.n ? memrchr(s.p, 'w', s.n) : NULL;
	unsigned id = 0;

	if (!w)
		world_failed("a target that was asked for", __FILE__, __LINE__);
	for (w++; w < s.p + s.n; w++)
		id = id * 10 + (unsigned)(*w - '0');
	CHECK(id < walking.n_asked);
	return id;
}

static void check_question(const struct bystander *b, const struct message *m)
{
	const struct asked *a = &walking.asked[b->id];

	if (!str_eq(m->method, STR("GET")) || m->body.n || a->client->in.n < a->head_end)
		world_failed("a question about a head that was sent", __FILE__, __LINE__);
}

static void check_copy(const struct bystander *b, const struct message *m)
{
	struct asked *a = &walking.asked[b->id];

	if (m->body.n != a->body || a->client->in.n < a->end || !a->passed)
		world_failed("a copy of a whole request that passed", __FILE__, __LINE__);
	for (size_t i = 0; i < m->body.n; i++)
		if (m->body.p[i] != walk_byte(b->id, false, i))
			world_failed("a copy of the body", __FILE__, __LINE__);
}

/* True when there is a whole request that was not answered yet. */
static bool look(struct peer *p, struct bystander *b)
{
	struct str in = { p->got.p + b->cursor, p->got.n - b->cursor };
	struct message m;
	bool whole;

	if (!in.n)
		return false;
	world.about = p;
	message_request(&m, in);
	if (m.state == MESSAGE_BAD)
		world_failed(m.why, __FILE__, __LINE__);
	whole = m.state == MESSAGE_WHOLE;
	if (whole) {
		b->id = id_of(p->port == ASKED_PORT ? message_field(&m, STR("X-Original-URL"), NULL) : m.target);
		(p->port == ASKED_PORT ? check_question : check_copy)(b, &m);
		b->cursor += m.used;
	}
	message_free(&m);
	return whole;
}

void bystander_step(struct peer *p)
{
	struct bystander *b = p->story;
	size_t left, n;

	if (!b)
		p->story = b = calloc(1, sizeof *b);
	CHECK(b);
	if (p->link != PEER_UP || b->gone || p->closed || p->rst)
		return;
	if (!b->answering) {
		if (!look(p, b))
			return;
		b->answering = true;
		plan(b);
	}
	left = b->out.n - b->sent;
	n = walking.ending || chance(40) ? left : left ? 1 + net_random((uint32_t)left) : 0;
	peer_send(p, (struct str){ b->out.p + b->sent, n });
	b->sent += n;
	if (b->sent < b->out.n)
		return;
	b->answering = false;
	if (b->pass && p->port == ASKED_PORT)
		walking.asked[b->id].passed = true;
	b->gone = b->then != THEN_NOTHING;
	if (b->then == THEN_RST)
		peer_rst(p);
	else if (b->then == THEN_FIN)
		peer_fin(p);
}
