/* stories_compress: answers that are compressed on their way.
 *
 * What arrives is decoded by the libraries' own decoders.  It must be the front of what the origin sent, also
 * when memory fails, and its end must be there if and only if the origin's was. */
#include <stdio.h>

#include "lib/base/check.h"
#include "proxy/compress.h"
#include "tests/decode.h"
#include "tests/sim/world.h"

#define GET(coding) "GET /a HTTP/1.1\r\nHost: a.example\r\nAccept-Encoding: " coding "\r\n\r\n"
#define HEAD(framing) "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nETag: \"v1\"\r\n" framing "\r\n\r\n"
#define SIZE 60000

static char body[SIZE];
static bool ended;	/* of the answer that arrived() looked at last: its coding */

static void make_body(void)
{
	uint32_t x = 5;

	for (size_t i = 0; i < SIZE; i++) {
		x = x * 1664525 + 1013904223;
		body[i] = i % 7 ? "the queue holds nothing"[i % 23] : (char)(x >> 24);
	}
}

static struct str part(size_t from, size_t n)
{
	return (struct str){ body + from, n };
}

/* How much of `body` the i-th answer has said so far; `*whole`: and that this is all.  CHECKs what must hold
 * with and without memory. */
static size_t arrived(struct peer *c, unsigned i, bool *whole)
{
	struct str coding, out;
	struct message m;
	struct decode *d;
	unsigned n;
	size_t said;

	ended = false;
	world_answer(c, i, STR("GET"), &m);
	*whole = m.state == MESSAGE_WHOLE && m.status == 200;
	coding = message_field(&m, STR("Content-Encoding"), &n);
	if (m.state < MESSAGE_PART || m.status != 200 || !n) {
		message_free(&m);
		return 0;
	}
	d = decode_new(coding_of(coding));
	CHECK(decode_put(d, (struct str){ m.body.p, m.body.n }));
	out = decode_out(d);
	CHECK(out.n <= SIZE && (out.n == 0 || memcmp(out.p, body, out.n) == 0));
	ended = decode_ended(d);
	CHECK(!*whole || ended);
	said = out.n;
	decode_free(d);
	message_free(&m);
	return said;
}

static void each(const char *ask)
{
	struct peer *c = world_client(), *o;
	bool whole;

	make_body();
	world_say(c, ask);
	o = world_up(0);
	peer_send(o, STR(HEAD("Content-Length: 60000")));
	peer_send(o, part(0, SIZE));
	world_settle();
	EXPECT(arrived(c, 0, &whole) == SIZE && whole && world_got(c, "ETag: W/\"v1\"\r\n") && !world_got(c, "Content-Length"));
	EXPECT(peer_open(c) && peer_open(o) && world.w->encoders.used == 0);
	world_say(c, ask);	/* and the next one on the same connections */
	EXPECT(world_requests(o) == 2);
	peer_send(o, STR(HEAD("Transfer-Encoding: chunked") "EA60\r\n"));
	peer_send(o, part(0, SIZE));
	world_say(o, "\r\n0\r\n\r\n");
	EXPECT(arrived(c, 1, &whole) == SIZE && whole && peer_open(c));
}

static void by_gzip(void)
{
	each(GET("gzip"));
}

static void by_br(void)
{
	each(GET("br"));
}

static void by_zstd(void)
{
	each(GET("zstd"));
}

/* Whatever came is said before more is waited for. */
static void drips(void)
{
	static const char *const ask[] = { GET("gzip"), GET("br"), GET("zstd") };

	make_body();
	for (unsigned k = 0; k < 3; k++) {
		struct peer *c = world_client(), *o;
		size_t at = 0;
		bool whole;

		world_say(c, ask[k]);
		o = world_up(k);
		world_say(o, HEAD("Content-Length: 60000"));
		for (size_t n = 1; at + n < 30000; n = n * 3 + 1) {
			peer_send(o, part(at, n));
			world_settle();
			at += n;
			EXPECT(arrived(c, 0, &whole) == at && !whole);
		}
		peer_send(o, part(at, SIZE - at));
		world_settle();
		EXPECT(arrived(c, 0, &whole) == SIZE && whole);
		peer_fin(o);	/* the next one has a connection of its own */
		world_settle();
	}
}

/* A read that takes exactly what is there does not know that this is all; the next one finds nothing. */
static void exact_reads(void)
{
	static const char head[] = HEAD("Content-Length: 60000");
	struct peer *c = world_client(), *o;
	size_t n = WORKER_READ_FIRST - (sizeof head - 1);
	bool whole;

	make_body();
	world_say(c, GET("gzip"));
	o = world_up(0);
	peer_send(o, STR(head));
	peer_send(o, part(0, n));
	world_settle();
	EXPECT(arrived(c, 0, &whole) == n && !whole);
	peer_send(o, part(n, COMPRESS_VISIT));
	world_settle();
	EXPECT(arrived(c, 0, &whole) == n + COMPRESS_VISIT && !whole);
	peer_send(o, part(n + COMPRESS_VISIT, SIZE - n - COMPRESS_VISIT));
	world_settle();
	EXPECT(arrived(c, 0, &whole) == SIZE && whole);
}

/* The first read ends inside the trailers, of which a part has to be kept, and more is there. */
static void split_trailers(void)
{
	static const char head[] = HEAD("Transfer-Encoding: chunked") "3F00\r\n";
	struct peer *c = world_client(), *o;
	char field[600];
	size_t fill = WORKER_READ_FIRST - 0x3f00 - (sizeof head - 1) - 12;
	bool whole;

	make_body();
	CHECK(fill > 10 && fill < sizeof field);
	memset(field, 'x', fill);
	memcpy(field, "X-Fill: ", 8);
	memcpy(field + fill - 2, "\r\n", 2);
	world_say(c, GET("zstd"));
	o = world_up(0);
	peer_send(o, STR("HTTP/1.1 200 OK\r\n"));
	peer_send(o, (struct str){ field, fill });
	peer_send(o, (struct str){ head + 17, sizeof head - 18 });
	peer_send(o, part(0, 0x3f00));
	world_say(o, "\r\n0\r\nX-Trailer: t\r\n\r\n");
	EXPECT(arrived(c, 0, &whole) == 0x3f00 && whole && peer_open(o));
}

/* An encoder that keeps more than the worker's area takes, and gives it all out at once, to a client that takes little. */
static void more_than_the_area(void)
{
	struct peer *c = world_client(), *other = world_client(), *o;
	static char noise[200000];
	struct message m;
	struct decode *d;
	uint32_t x = 1;
	bool whole;

	for (size_t i = 0; i < sizeof noise; i++) {
		x = x * 1664525 + 1013904223;
		noise[i] = (char)(x >> 24);
	}
	world_say(c, GET("br"));
	o = world_up(0);
	peer_room(c, 1000);
	peer_send(o, STR(HEAD("Content-Length: 200000")));
	peer_send(o, (struct str){ noise, sizeof noise });
	world_settle();
	make_body();
	world_say(other, GET("gzip"));	/* in the same area */
	o = world_up(1);
	peer_send(o, STR(HEAD("Content-Length: 60000")));
	peer_send(o, part(0, SIZE));
	world_settle();
	EXPECT(arrived(other, 0, &whole) == SIZE && whole);
	peer_room(c, SIZE_MAX);
	world_settle();
	world_answer(c, 0, STR("GET"), &m);
	EXPECT(m.state == MESSAGE_WHOLE && world_got(c, "Content-Encoding: br\r\n"));
	if (m.state == MESSAGE_WHOLE && m.status == 200 && !m.sized) {
		d = decode_new(CODING_BR);
		CHECK(decode_put(d, (struct str){ m.body.p, m.body.n }) && decode_ended(d));
		CHECK(decode_out(d).n == sizeof noise && memcmp(decode_out(d).p, noise, sizeof noise) == 0);
		decode_free(d);
	}
	message_free(&m);
}

/* The client takes a few bytes at a time: nothing is read for it meanwhile, and nothing is lost. */
static void slow_client(void)
{
	struct peer *c = world_client(), *o;
	bool whole;

	make_body();
	world_say(c, GET("gzip"));
	o = world_up(0);
	peer_room(c, 0);
	peer_send(o, STR(HEAD("Content-Length: 60000")));
	peer_send(o, part(0, SIZE));
	world_settle();
	EXPECT(peer_got(c).n == 0 && o && o->in_read <= WORKER_READ_FIRST + COMPRESS_VISIT);
	for (int i = 0; i < 4000 && peer_open(c); i++) {
		size_t before = peer_got(c).n;

		peer_room(c, 97);
		world_settle();
		if (peer_got(c).n == before)
			break;
	}
	EXPECT(arrived(c, 0, &whole) == SIZE && whole && peer_open(o));
}

/* One turn compresses so much of one answer and no more, however much there is. */
static void work_is_bounded(void)
{
	struct peer *c = world_client(), *o;
	size_t before;
	bool whole;

	make_body();
	world_say(c, GET("gzip"));
	o = world_up(0);
	world_say(o, HEAD("Content-Length: 60000"));
	peer_send(o, part(0, SIZE));
	for (unsigned i = 0; o && o->in_read < o->in.n && i < 100; i++) {
		before = o->in_read;
		worker_turn(world.w);
		EXPECT(o->in_read - before <= 2 * COMPRESS_VISIT);	/* an event, and the rest in line */
	}
	world_settle();
	EXPECT(arrived(c, 0, &whole) == SIZE && whole);
}

static void cut(const char *head, const char *after)
{
	struct peer *c = world_client(), *o;
	bool whole;

	make_body();
	world_say(c, GET("br"));
	o = world_up(0);
	peer_send(o, str_of(head));
	peer_send(o, part(0, 20000));
	world_say(o, after);
	peer_fin(o);
	world_settle();
	EXPECT(arrived(c, 0, &whole) == 20000);
	CHECK(!whole && !ended);	/* with or without memory */
	EXPECT(!peer_open(c));
}

static void cut_sized(void)
{
	cut(HEAD("Content-Length: 20001"), "");
}

static void cut_chunked(void)
{
	cut(HEAD("Transfer-Encoding: chunked") "4e20\r\n", "\r\n");
}

static void cut_by_nonsense(void)
{
	cut(HEAD("Transfer-Encoding: chunked") "4e20\r\n", "\r\nnonsense\r\n");
}

/* An end that only the close tells is an end. */
static void ended_by_close(void)
{
	struct peer *c = world_client(), *o;
	bool whole;

	make_body();
	world_say(c, GET("zstd"));
	o = world_up(0);
	peer_send(o, STR("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"));
	peer_send(o, part(0, 20000));
	world_settle();
	peer_fin(o);
	world_settle();
	EXPECT(arrived(c, 0, &whole) == 20000 && whole && peer_open(c));
}

static void client_leaves(void)
{
	struct peer *c = world_client(), *o;

	make_body();
	world_say(c, GET("gzip"));
	o = world_up(0);
	peer_room(c, 100);
	peer_send(o, STR(HEAD("Content-Length: 60000")));
	peer_send(o, part(0, 30000));
	world_settle();
	EXPECT(world.w->encoders.used > 0);
	peer_rst(c);
	world_settle();
	EXPECT(world.w->encoders.used == 0 && !peer_open(o));
}

/* Two answers at once, in one area. */
static void two_at_once(void)
{
	struct peer *c[2], *o[2];
	bool whole;

	make_body();
	for (unsigned i = 0; i < 2; i++) {
		c[i] = world_client();
		world_say(c[i], i ? GET("zstd") : GET("gzip"));
		o[i] = world_up(i);
		peer_send(o[i], STR(HEAD("Content-Length: 60000")));
	}
	for (size_t at = 0; at < SIZE; at += 6000) {
		for (unsigned i = 0; i < 2; i++) {
			peer_room(c[i], at % 12000 ? SIZE_MAX : 50);
			peer_send(o[i], part(at, 6000));
		}
		world_settle();
	}
	for (unsigned i = 0; i < 2; i++) {
		peer_room(c[i], SIZE_MAX);
		world_settle();
		EXPECT(arrived(c[i], 0, &whole) == SIZE && whole);
	}
}

/* Who finds no room for an encoder gets the answer as it is. */
static void no_room(void)
{
	struct peer *a = world_client(), *b = world_client(), *o;
	struct message m;
	bool whole;

	make_body();
	world_say(a, GET("gzip"));
	o = world_up(0);
	peer_send(o, STR(HEAD("Content-Length: 60000")));
	peer_send(o, part(0, 30000));
	world_settle();
	world_say(b, GET("gzip"));
	o = world_up(1);
	peer_send(o, STR(HEAD("Content-Length: 60000")));
	peer_send(o, part(0, SIZE));
	world_settle();
	world_answer(b, 0, STR("GET"), &m);
	EXPECT(m.state == MESSAGE_WHOLE && m.sized && m.body.n == SIZE && memcmp(m.body.p, body, SIZE) == 0);
	EXPECT(world_got(b, "ETag: \"v1\"\r\n") && world_got(b, "Vary: Accept-Encoding\r\n"));
	message_free(&m);
	peer_send(world_up(0), part(30000, 30000));
	world_settle();
	EXPECT(arrived(a, 0, &whole) == SIZE && whole);
	EXPECT(world.w->counters.compressed == 1 && world.w->counters.compress_refused == 1);
}

#define LINE "nothing is held, nothing is lost, and a hundred bytes of that are compressed to a few; all of it is here."
static void of_our_own(void)
{
	struct peer *c = world_client();
	struct message m;
	struct decode *d;

	world_say(c, "GET /local HTTP/1.1\r\nHost: a.example\r\nAccept-Encoding: br\r\n\r\n");
	world_answer(c, 0, STR("GET"), &m);
	if (m.state == MESSAGE_WHOLE && m.status == 200) {
		d = decode_new(CODING_BR);
		CHECK(m.sized && (!world_got(c, "Content-Encoding: br") || decode_put(d, (struct str){ m.body.p, m.body.n })));
		EXPECT(decode_ended(d) && decode_out(d).n == 4 * (sizeof LINE - 1));
		decode_free(d);
	}
	EXPECT(m.state == MESSAGE_WHOLE && m.status == 200);
	message_free(&m);
}

#define CONF CONF_PLAIN CONF_TIMES "defaults: {compress: on}\n" \
	"routes: [{service: origin}, {path: /local, answer: {body: '" LINE LINE LINE LINE "'}, compress: {min_size: 100B}}]\n" \
	"services: {origin: '127.0.0.1:9001'}\n"

#define CONF_SMALL CONF_PLAIN CONF_TIMES \
	"routes: [{service: origin, compress: {level: small}}]\nservices: {origin: '127.0.0.1:9001'}\n"

const struct story stories_compress[] = {
	{ "compress-gzip", CONF, by_gzip },
	{ "compress-br", CONF, by_br },
	{ "compress-zstd", CONF, by_zstd },
	{ "compress-drips", CONF, drips },
	{ "compress-exact-reads", CONF, exact_reads },
	{ "compress-split-trailers", CONF, split_trailers },
	{ "compress-more-than-the-area", CONF_SMALL, more_than_the_area },
	{ "compress-slow-client", CONF, slow_client },
	{ "compress-work-is-bounded", CONF, work_is_bounded },
	{ "compress-cut-sized", CONF, cut_sized },
	{ "compress-cut-chunked", CONF, cut_chunked },
	{ "compress-cut-by-nonsense", CONF, cut_by_nonsense },
	{ "compress-ended-by-close", CONF, ended_by_close },
	{ "compress-client-leaves", CONF, client_leaves },
	{ "compress-two-at-once", CONF, two_at_once },
	{ "compress-no-room", CONF "limits: {compress: 64KiB}\n", no_room },
	{ "compress-of-our-own", CONF, of_our_own },
	{ NULL, NULL, NULL },
};
