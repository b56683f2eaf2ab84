/* walk: see walk.h.
 *
 * The steps also happen inside a turn, before reads and writes of the proxy (net.meddle), so that what it
 * was told of a socket is not always what it finds.  A fourth of the seeds are calm: nobody breaks
 * anything, and every request must then be answered whole. */
#include "tests/sim/walk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "proxy/exchange.h"
#include "tests/decode.h"
#include "tests/sim/world.h"

#define CLIENTS 24

struct walk walking;

static struct client {
	struct peer *p;
	struct bytes out;	/* all that it will send */
	unsigned first, n;	/* its requests */
	bool cuts;		/* stops before the end */
} clients[CLIENTS];
static unsigned n_clients, max_clients;

static bool chance(unsigned percent)
{
	return net_random(100) < percent;
}

char walk_byte(unsigned id, bool answer, size_t i)
{
	return (char)('a' + (id * 7 + answer * 11 + i * (1 + id % 5)) % 26);
}

/* --- clients --- */

static const struct { const char *name; bool body, idempotent; } methods[] = {
	{ "GET", false, true }, { "GET", false, true }, { "HEAD", false, true }, { "POST", true, false },
	{ "PUT", true, true }, { "DELETE", false, true }, { "PATCH", true, false }, { "POST", false, false },
};

static size_t some_size(void)
{
	static const uint32_t most[] = { 1, 20, 300, 5000, 70000 };
	uint32_t m = most[net_random(5)];

	return chance(20) ? 0 : net_random(m == 70000 && !chance(20) ? 5000 : m);
}

static void add(struct client *c, const char *text)
{
	bytes_add(&c->out, text, strlen(text));
}

static void add_body(struct client *c, unsigned id, const struct asked *a)
{
	char line[32], byte;

	for (size_t at = 0; at < a->body;) {
		size_t n = a->chunked ? 1 + net_random((uint32_t)(a->body - at)) : a->body;

		if (a->chunked) {
			snprintf(line, sizeof line, "%zX\r\n", n);
			add(c, line);
		}
		for (size_t i = 0; i < n; i++) {
			byte = walk_byte(id, false, at + i);
			bytes_add(&c->out, &byte, 1);
		}
		if (a->chunked)
			add(c, "\r\n");
		at += n;
	}
	if (a->chunked)
		add(c, "0\r\n\r\n");
}

static void add_request(struct client *c, bool last)
{
	static const char *const prefix[] = { "", "", "/pair", "/named" };
	unsigned id = walking.n_asked++, m = net_random(sizeof methods / sizeof *methods);
	struct asked *a = &walking.asked[id];
	bool old = last && chance(10);
	char text[256];

	*a = (struct asked){ .method = methods[m].name, .idempotent = methods[m].idempotent, .client = c->p };
	if (methods[m].body) {
		a->body = some_size();
		a->chunked = !old && chance(50);
	}
	a->reply = (uint8_t)net_random(REPLY_N);
	if (a->reply != REPLY_EMPTY)
		a->answer = some_size();
	snprintf(text, sizeof text, "%s %s/w%u HTTP/1.%d\r\nHost: a.example\r\n", a->method, prefix[net_random(4)], id, !old);
	add(c, text);
	if (a->chunked) {
		add(c, "Transfer-Encoding: chunked\r\n");
	} else if (methods[m].body) {
		snprintf(text, sizeof text, "Content-Length: %zu\r\n", a->body);
		add(c, text);
	}
	if (chance(20))
		add(c, "TE: trailers\r\n");
	if (chance(50))
		add(c, chance(33) ? "Accept-Encoding: gzip\r\n" : chance(50) ? "Accept-Encoding: br\r\n" : "Accept-Encoding: zstd\r\n");
	if (last && chance(30))
		add(c, "Connection: close\r\n");
	add(c, "\r\n");
	a->head_end = c->out.n;
	add_body(c, id, a);
	a->end = c->out.n;
}

static void client_new(void)
{
	struct client *c = &clients[n_clients++];

	*c = (struct client){ .p = peer_connect(world.listener), .first = walking.n_asked, .n = 1 + net_random(5) };
	c->p->v6 = chance(20);
	c->p->story = c;
	for (unsigned i = 0; i < c->n; i++)
		add_request(c, i + 1 == c->n);
	if (!walking.calm && chance(10)) {
		c->out.n = net_random((uint32_t)c->out.n);
		c->cuts = true;
	}
}

static void client_step(struct client *c)
{
	size_t left = c->out.n - c->p->in.n, n;

	if (left && !c->p->fin && !c->p->rst) {
		n = walking.ending || chance(50) ? left : 1 + net_random((uint32_t)left);
		if (chance(20) && n > 10)
			n = 1 + net_random(10);
		peer_send(c->p, (struct str){ c->out.p + c->p->in.n, n });
		return;
	}
	if (walking.calm || walking.ending || !chance(10))
		return;
	if (chance(50))
		peer_fin(c->p);
	else
		peer_rst(c->p);
}

/* --- steps --- */

static void room_step(struct peer *p)
{
	peer_room(p, chance(30) ? SIZE_MAX : chance(30) ? 0 : 1 + net_random(chance(50) ? 10 : 5000));
}

static void peer_step(struct peer *p)
{
	if (chance(15)) {
		room_step(p);
		return;
	}
	if (chance(5))
		peer_nudge(p);
	if (p->client) {
		client_step(p->story);
		return;
	}
	if (p->link == PEER_WAITS && chance(30)) {
		if (walking.calm || chance(70))
			peer_up(p);
		else
			peer_refuse(p, chance(50) ? ECONNREFUSED : EHOSTUNREACH);
		return;
	}
	origin_step(p);
	if (!walking.calm && chance(2)) {
		if (chance(50))
			peer_rst(p);
		else if (!p->story || p->in.n == 0)	/* else a FIN may end an answer that should be cut */
			peer_fin(p);
	}
}

static void some_peer(void)
{
	if (net.n_peers)
		peer_step(net.peers[net_random(net.n_peers)]);
}

static void meddle(void)
{
	if (chance(10))
		some_peer();
}

static void fault_step(void)
{
	static const enum connects ways[] = { CONNECT_UP, CONNECT_UP, CONNECT_WAIT, CONNECT_REFUSED, CONNECT_FAIL };

	switch (net_random(6)) {
	case 0:
		net.connects = ways[net_random(5)];
		break;
	case 1:
		net.no_accept = chance(30);
		break;
	case 2:
		net.no_watch = chance(20);
		break;
	case 3:
		net.now_us += net_random(4000) * 1000;
		break;
	case 4:
		net.now_us += net_random(400) * 1000;
		break;
	default:
		net.connects = CONNECT_UP;
	}
}

static void step(bool lean)
{
	if (lean && chance(3))
		mem_fail_from(1 + net_random(6));
	if (n_clients < max_clients && walking.n_asked + 6 < ASKED_MAX && chance(n_clients ? 10 : 100))
		client_new();
	for (unsigned i = 1 + net_random(4); i; i--)
		some_peer();
	if (!walking.calm && chance(5))
		fault_step();
	if (walking.calm && chance(5))
		net.connects = chance(50) ? CONNECT_UP : CONNECT_WAIT;
	worker_turn(world.w);
	mem_fail_from(0);
	net.now_us += net_random(3000);
}

/* Everybody finishes what was begun, and nothing stands in the way any more. */
static void finish(void)
{
	walking.ending = true;
	net.meddle = NULL;
	net.connects = CONNECT_UP;
	net.no_accept = net.no_watch = false;
	for (int round = 0; round < 300; round++) {
		for (unsigned i = 0; i < net.n_peers; i++) {
			struct peer *p = net.peers[i];

			peer_room(p, SIZE_MAX);
			peer_up(p);
			if (p->client)
				client_step(p->story);
			else
				origin_step(p);
		}
		world_settle();
		net.now_us += walking.again ? 4000 : 1000;	/* tries have pauses between them, three of 250 ms at most */
	}
}

/* --- what clients got --- */

static void check_bytes(struct str body, bool whole, unsigned id)
{
	const struct asked *a = &walking.asked[id];

	for (size_t i = 0; i < body.n; i++)
		if (body.p[i] != walk_byte(id, true, i))
			world_failed("the body of its own answer", __FILE__, __LINE__);
	if (whole && strcmp(a->method, "HEAD") != 0 && body.n != a->answer)
		world_failed("an answer that was cut to look cut", __FILE__, __LINE__);
}

static void check_body(const struct message *m, unsigned id)
{
	bool whole = m->state == MESSAGE_WHOLE;
	struct str body = { m->body.p, m->body.n }, coding;
	struct decode *d;
	unsigned n;

	coding = message_field(m, STR("Content-Encoding"), &n);
	if (n == 0 || strcmp(walking.asked[id].method, "HEAD") == 0) {
		check_bytes(body, whole, id);
		return;
	}
	d = decode_new(coding_of(coding));
	if (!decode_put(d, body))
		world_failed("what its Content-Encoding says", __FILE__, __LINE__);
	if (whole && !decode_ended(d))
		world_failed("a coding that ends with its answer", __FILE__, __LINE__);
	check_bytes(decode_out(d), decode_ended(d), id);
	decode_free(d);
}

static void check_answer(const struct message *m, const struct client *c, unsigned i)
{
	unsigned id = c->first + i, n;
	struct str said = message_field(m, STR("X-Id"), &n);
	char text[16];

	if (i >= c->n)
		world_failed("no more answers than requests", __FILE__, __LINE__);
	if (n == 0) {
		if (m->status < 400)
			world_failed("only errors of the proxy's own", __FILE__, __LINE__);
		if (walking.calm)
			world_failed("an answer of the origin", __FILE__, __LINE__);
		return;
	}
	snprintf(text, sizeof text, "%u", id);
	if (n != 1 || !str_eq(said, str_of(text)))
		world_failed("the answer to its own request", __FILE__, __LINE__);
	check_body(m, id);
}

static void check_client(const struct client *c)
{
	struct str in = peer_got(c->p);
	unsigned answers = 0;
	struct message m;

	world.about = c->p;
	for (;;) {
		struct str method = str_of(answers < c->n ? walking.asked[c->first + answers].method : "GET");

		message_answer(&m, in, method, (c->p->shut || c->p->closed) && !c->p->reset && !c->p->rst);
		if (m.state == MESSAGE_BAD)
			world_failed(m.why, __FILE__, __LINE__);
		if (m.state >= MESSAGE_PART && m.status >= 200)
			check_answer(&m, c, answers++);
		message_free(&m);
		if (m.state != MESSAGE_WHOLE)
			break;
		in.p += m.used;
		in.n -= m.used;
	}
	if (walking.calm && (answers != c->n || m.state != MESSAGE_NONE))
		world_failed("all answers, whole", __FILE__, __LINE__);
}

/* --- one walk --- */

#define GUARD "auth: {service: who, response_headers: [X-User]}"
#define CONF_GUARDED 5
#define CONF_AGAIN 6
#define COMPRESS "defaults: {compress: {min_size: 20B}}\n"

static const char *const confs[] = {
	CONF_DEFAULT COMPRESS,
	CONF_PLAIN CONF_TIMES CONF_ROUTES
	"services:\n"
	"  origin: {endpoints: [127.0.0.1:9001], max_connections: 1}\n"
	"  pair: {endpoints: [127.0.0.1:9001, 127.0.0.1:9002], max_connections: 2, max_requests: 1}\n"
	"  named: {endpoints: [127.0.0.1:9003, 127.0.0.1:9004], host: endpoint, max_requests: 1}\n"
	"  none: []\n",
	CONF_DEFAULT "limits: {replay: 1B, head: 1KiB, chunk_overhead: 1KiB}\n",
	CONF_PLAIN CONF_ROUTES CONF_SERVICES
	"timeouts: {head: 100ms, body: 100ms, write: 100ms, idle: 100ms, connect: 10ms, queue: 10ms, first_byte: 20ms,\n"
	"           between_bytes: 30ms, upstream_idle: 10ms, linger: off}\n" COMPRESS,
	CONF_PLAIN CONF_TIMES CONF_ROUTES "limits: {connections: 3}\n" CONF_SERVICES,
	CONF_PLAIN CONF_TIMES
	"routes:\n"
	"  - {service: origin, " GUARD ", mirror: {service: shadow, body_limit: 2KiB}}\n"
	"  - {path: /pair, service: pair, " GUARD "}\n"
	"  - {path: /named, service: named, " GUARD ", mirror: {service: shadow, share: 50%}}\n"
	CONF_SERVICES
	"  who: 127.0.0.1:9005\n"
	"  shadow: {endpoints: [127.0.0.1:9006], max_connections: 2}\n" COMPRESS,
	CONF_DEFAULT "limits: {replay: 1KiB}\n"
	"defaults: {compress: {min_size: 20B}, retry: {attempts: 4, on: [connect, reset, timeout, 503], per_try_timeout: 2s}}\n",
};

static void walk_one(uint64_t seed, bool lean)
{
	unsigned steps, n;

	memset(&walking, 0, offsetof(struct walk, asked));
	walking.calm = !lean && seed % 4 == 0;
	n_clients = 0;
	world.story = lean ? "lean walk" : "walk";
	world.lean = lean;
	n = (unsigned)(walking.calm ? seed / 4 % 5 : seed % 7);
	if (walking.calm && n >= 3)
		n += CONF_GUARDED - 3;	/* the two before them are not for the calm */
	walking.guarded = n == CONF_GUARDED;
	walking.again = n == CONF_AGAIN;
	CHECK(world_begin(confs[n], seed));
	max_clients = 1 + net_random(chance(30) ? CLIENTS : 5);
	steps = 20 + net_random(200);
	net.shuffle = true;
	net.meddle = meddle;
	for (unsigned i = 0; i < steps; i++)
		step(lean);
	if (!walking.calm && chance(10))
		worker_tell(world.w, WORKER_DRAIN);
	finish();
	if (!walking.calm)
		world_sleep(200000);
	for (unsigned i = 0; i < net.n_peers; i++)
		if (!net.peers[i]->client)
			origin_check(net.peers[i]);
	for (unsigned i = 0; i < n_clients; i++) {
		check_client(&clients[i]);
		free(clients[i].out.p);
	}
	for (unsigned i = 0; i < net.n_peers; i++)
		if (!net.peers[i]->client)
			origin_free(net.peers[i]);
	world_end();
}

void walk(uint64_t seed, uint64_t n, bool lean)
{
	for (uint64_t i = 0; i < n; i++)
		walk_one(seed + i, lean);
	printf("%llu walks\n", (unsigned long long)n);
}
