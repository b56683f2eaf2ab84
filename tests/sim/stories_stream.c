/* stories_stream: connections that are passed on, and PROXY protocol headers in and out: what comes in which order, who
 * gets which connection, what is left when one side goes. */
#include <errno.h>
#include <stdio.h>

#include "lib/base/check.h"
#include "lib/net/hello.h"
#include "tests/sim/world.h"

#define GET "GET /a HTTP/1.1\r\nHost: a.example\r\n\r\n"
#define OK2 "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
#define V1 "PROXY TCP4 203.0.113.9 198.51.100.7 5678 80\r\n"
#define WIDE 100000

enum { HTTP, TCP, SNI, PROXY };	/* listeners, in the order of the configuration */

/* A ClientHello for "a.example" or, without its capital, for "b.example". */
#define HELLO(letter) \
	"\x16\3\1\0\x41" "\1\0\0\x3d" "\3\3" "12345678901234567890123456789012" "\0" "\0\2\x13\1" "\1\0" \
	"\0\x12" "\0\0\0\x0e" "\0\x0c" "\0\0\x09" letter ".example"
#define BYTES(literal) ((struct str){ literal, sizeof(literal) - 1 })

static void say(struct peer *p, struct str s)
{
	peer_send(p, s);
	world_settle();
}

/* The port of the i-th endpoint that was connected to, and whether that connection was reset. */
static unsigned port(unsigned i)
{
	return world_up(i) ? world_up(i)->port : 0;
}

static bool was_reset(const struct peer *p)
{
	return p && p->closed && p->reset;
}

static bool got(const struct peer *p, struct str s)
{
	return str_eq(peer_got(p), s);
}

static void both_ways(void)
{
	struct peer *c = world_client_at(TCP), *o = world_up(0);

	EXPECT(net.connects_n == 1 && o && o->port == 9101);
	world_say(o, "220 hello\r\n");		/* the origin speaks first */
	EXPECT(got(c, STR("220 hello\r\n")));
	world_say(c, "QUIT\r\n");
	EXPECT(got(o, STR("QUIT\r\n")));
	EXPECT(world.w->budget.used < 100000 && world.w->streams_slab.live == 1);
	peer_fin(c);
	world_settle();
	EXPECT(o && o->shut && peer_open(c) && peer_open(o));
	world_say(o, "221 bye\r\n");
	peer_fin(o);
	world_settle();
	EXPECT(got(c, STR("220 hello\r\n221 bye\r\n")) && c && c->shut && !c->reset && !peer_open(c) && !peer_open(o));
	EXPECT(world.w->counters.bytes_in == 6 && world.w->counters.bytes_out == 20);
}

/* All that a client says, and its end, waits in its socket until an endpoint is there. */
static void said_before(void)
{
	static char body[WIDE];
	struct peer *c, *o;

	net.connects = CONNECT_WAIT;
	c = world_client_at(TCP);
	memset(body, 'b', sizeof body);
	peer_send(c, (struct str){ body, sizeof body });
	peer_fin(c);
	world_settle();
	EXPECT(c && c->in_read == 0);
	o = world_up(0);
	peer_up(o);
	world_settle();
	EXPECT(o && o->got.n == WIDE && o->shut);
	peer_fin(o);
	world_settle();
	EXPECT(!peer_open(c) && c && !c->reset);
}

static void another_endpoint(void)
{
	struct peer *c;

	net.connects = CONNECT_WAIT;
	c = world_client_at(TCP);
	peer_send(c, STR("hello"));
	peer_refuse(world_up(0), ECONNREFUSED);
	world_settle();
	EXPECT(net.connects_n == 2 && peer_open(c));
	peer_up(world_up(1));
	world_settle();
	EXPECT(got(world_up(1), STR("hello")) && port(1) != port(0));
	peer_rst(c);
	world_settle();
	EXPECT(was_reset(world_up(1)));
}

static void no_endpoint(void)
{
	struct peer *c;

	net.connects = CONNECT_REFUSED;
	c = world_client_at(TCP);
	world_say(c, "hello");
	EXPECT(net.connects_n == 2 && !peer_open(c) && c && c->reset);
	EXPECT(world_count_cause(CAUSE_CONNECT_REFUSED) == 1);
	net.connects = CONNECT_FAIL;
	c = world_client_at(TCP);
	EXPECT(!peer_open(c) && world_count_cause(CAUSE_CONNECT_FAILED) == 1);
}

/* Whoever leaves while it is connected to somebody leaves a connection that nobody else may have. */
static void leaves_while_waiting(void)
{
	struct peer *c, *d;

	net.connects = CONNECT_WAIT;
	c = world_client_at(TCP);
	d = world_client_at(TCP);
	peer_rst(c);
	world_settle();
	EXPECT(!peer_open(c) && world_count_cause(CAUSE_CLIENT_LEFT) == 1);
	peer_up(world_up(0));
	world_settle();
	EXPECT(!peer_open(world_up(0)));
	peer_up(world_up(1));
	world_say(d, "d");
	EXPECT(got(world_up(1), STR("d")) && net.connects_n == 2);
}

static void connect_times_out(void)
{
	struct peer *c;

	net.connects = CONNECT_WAIT;
	c = world_client_at(TCP);
	world_sleep(1100);
	EXPECT(peer_open(c) && net.connects_n == 2);
	world_sleep(1100);
	EXPECT(!peer_open(c) && c && c->reset && world_count_cause(CAUSE_CONNECT_TIMEOUT) == 1);
}

static void upstream_resets(void)
{
	struct peer *c = world_client_at(TCP);

	peer_send(world_up(0), STR("last words"));
	peer_rst(world_up(0));
	world_settle();
	EXPECT(got(c, STR("last words")) && !peer_open(c) && c && c->reset);
	EXPECT(world_count_cause(CAUSE_UPSTREAM_RESET) == 1);
}

/* The origin takes nothing, and the client resets: the origin hears of it at once. */
static void resets_while_blocked(void)
{
	static char body[WIDE];
	struct peer *c, *o;
	size_t before;

	c = world_client_at(TCP);
	o = world_up(0);
	peer_room(o, 0);
	memset(body, 'r', sizeof body);
	peer_send(c, (struct str){ body, sizeof body });
	world_settle();
	EXPECT(c && c->in_read <= 16 * 1024 && world.w->budget.used < 150000);
	before = c ? c->in_read : 0;
	world_sleep(3000);
	EXPECT(c && c->in_read == before);
	peer_rst(c);
	world_settle();
	EXPECT(!peer_open(c) && !peer_open(o) && o && o->reset);
}

static void drips_through(void)
{
	static char body[5000];
	struct peer *c = world_client_at(TCP), *o = world_up(0);

	for (unsigned i = 0; i < sizeof body; i++)
		body[i] = (char)('a' + i % 23);
	peer_room(o, 0);
	peer_room(c, 0);
	peer_send(c, (struct str){ body, sizeof body });
	peer_fin(c);
	peer_send(o, (struct str){ body, sizeof body });
	peer_fin(o);
	world_settle();
	for (unsigned i = 0; i < 2000 && (peer_open(c) || peer_open(o)); i++) {
		peer_room(o, 3);
		peer_room(c, 5);
		world_settle();
	}
	EXPECT(got(o, (struct str){ body, sizeof body }) && got(c, (struct str){ body, sizeof body }));
	EXPECT(!peer_open(c) && c && !c->reset);
}

static void silence(void)
{
	struct peer *c = world_client_at(TCP), *o = world_up(0);

	for (int i = 0; i < 3; i++) {
		world_sleep(8000);
		world_say(i % 2 ? c : o, "x");
	}
	EXPECT(peer_open(c) && peer_open(o));
	world_sleep(9100);
	EXPECT(!peer_open(c) && c && c->reset && !peer_open(o) && o && o->reset);
	EXPECT(world_count_cause(CAUSE_TUNNEL_IDLE) == 1);
}

static void one_at_a_time(void)
{
	struct peer *c = world_client_at(TCP), *d, *e;

	d = world_client_at(TCP);
	e = world_client_at(TCP);
	EXPECT(net.connects_n == 1);
	world_say(d, "d");
	peer_rst(e);			/* it leaves from the queue */
	world_settle();
	peer_fin(c);
	peer_fin(world_up(0));
	world_settle();
	EXPECT(net.connects_n == 2 && got(world_up(1), STR("d")));
	e = world_client_at(TCP);
	world_sleep(1100);
	EXPECT(!peer_open(e) && world_count_cause(CAUSE_QUEUE_TIMEOUT) == 1 && peer_open(d));
}

static void drained(void)
{
	struct peer *c = world_client_at(TCP), *d = world_client_at(TCP), *e;

	net.connects = CONNECT_WAIT;
	e = world_client_at(TCP);
	worker_tell(world.w, WORKER_DRAIN);
	world_say(c, "still");
	EXPECT(got(world_up(0), STR("still")));
	worker_tell(world.w, WORKER_CUT);
	world_settle();
	EXPECT(!peer_open(c) && !peer_open(d) && !peer_open(e) && c && c->reset);
	EXPECT(world_count_cause(CAUSE_DRAINED) == 3);
}

/* A crowd comes and goes: those that stay are brought together, and go on. */
static void wave_leaves(void)
{
	static struct peer *crowd[1500];
	struct peer *c = NULL, *o = NULL;

	for (unsigned i = 0; i < 1500; i++) {
		crowd[i] = world_client_at(TCP);
		if (i == 1234)
			c = crowd[i];
	}
	o = world_up(1234);
	for (unsigned i = 0; i < 1500; i++)
		if (crowd[i] != c)
			peer_rst(crowd[i]);
	world_settle();
	world_sleep(5000);
	world_say(c, "here");
	EXPECT(got(o, STR("here")));
	world_say(o, "there");
	EXPECT(got(c, STR("there")));
}

/* --- TLS by its server name --- */

static void by_name(void)
{
	struct peer *a = world_client_at(SNI), *b = world_client_at(SNI);
	struct str hello = BYTES(HELLO("A"));

	for (size_t i = 0; i < hello.n; i++)
		say(a, (struct str){ hello.p + i, 1 });
	EXPECT(net.connects_n == 1 && got(world_up(0), hello) && port(0) == 9103);
	say(a, BYTES("\x17\3\3\0\1x"));
	EXPECT(peer_got(world_up(0)).n == hello.n + 6);
	say(b, BYTES(HELLO("b")));
	EXPECT(got(b, BYTES("\x15\3\3\0\2\2\x70")) && b && b->shut && net.connects_n == 1);
	EXPECT(world_count_cause(CAUSE_UNKNOWN_NAME) == 1);
	world_sleep(1100);			/* it lingers no longer */
	EXPECT(!peer_open(b));
}

static void no_hello(void)
{
	struct peer *c = world_client_at(SNI);

	say(c, BYTES("\x16\3\1\0\4\2\0\0\0"));
	EXPECT(got(c, BYTES("\x15\3\3\0\2\2\x32")) && world_count_cause(CAUSE_BAD_HELLO) == 1);
	c = world_client_at(SNI);
	world_say(c, GET);
	EXPECT(world_status(c, 0) == 400 && world_got(c, "speaks TLS"));
	c = world_client_at(SNI);
	world_say(c, "SSH-2.0-x\r\n");
	EXPECT(!peer_open(c) && world_count_cause(CAUSE_NOT_TLS) == 1);
	c = world_client_at(SNI);
	say(c, (struct str){ BYTES(HELLO("a")).p, 30 });
	peer_fin(c);
	world_settle();
	EXPECT(!peer_open(c) && world_count_cause(CAUSE_CLIENT_LEFT) == 1 && net.connects_n == 0);
}

static void hello_is_late(void)
{
	struct peer *c = world_client_at(SNI), *d = world_client_at(SNI);

	say(c, (struct str){ BYTES(HELLO("a")).p, 30 });
	world_sleep(1900);
	say(c, (struct str){ BYTES(HELLO("a")).p + 30, 1 });
	EXPECT(peer_open(c) && peer_open(d));
	world_sleep(200);
	EXPECT(!peer_open(c) && !peer_open(d) && world_count_cause(CAUSE_HEAD_TIMEOUT) == 2);
}

static void drain_of_the_silent(void)
{
	struct peer *c = world_client_at(SNI), *d = world_client_at(SNI), *e = world_client_at(PROXY);

	say(d, (struct str){ BYTES(HELLO("a")).p, 30 });
	worker_tell(world.w, WORKER_DRAIN);
	world_settle();
	EXPECT(!peer_open(c) && peer_open(d) && !peer_open(e));
	peer_send(d, (struct str){ BYTES(HELLO("a")).p + 30, BYTES(HELLO("a")).n - 30 });
	world_settle();
	EXPECT(got(world_up(0), BYTES(HELLO("a"))));
}

/* --- PROXY protocol --- */

static void header_in(void)
{
	struct peer *c = world_client_at(PROXY);

	for (const char *p = V1 GET; *p; p++)
		say(c, (struct str){ p, 1 });
	EXPECT(world_got(world_up(0), "X-Forwarded-For: 203.0.113.9\r\n"));
	world_say(world_up(0), OK2);
	EXPECT(world_status(c, 0) == 200);
	world_say(c, GET);
	world_say(world_up(0), OK2);
	EXPECT(world_status(c, 1) == 200);
	/* an address of the other family, and back */
	c = world_client_at(PROXY);
	world_say(c, "PROXY TCP6 2001:db8::9 2001:db8::7 5678 80\r\n");
	world_sleep(3000);			/* no head deadline runs now */
	world_say(c, GET);
	EXPECT(world_got(world_up(0), "X-Forwarded-For: 2001:db8::9\r\n"));
	c = world_client_at(PROXY);
	world_say(c, "PROXY TCP4 0203.0.113.9 198.51.100.7 5678 80\r\n" GET);
	EXPECT(!peer_open(c) && peer_got(c).n == 0 && world_count_cause(CAUSE_PROXY_HEADER) == 1);
}

static void header_of_a_stranger(void)
{
	struct peer *c = peer_connect(world.listeners[PROXY]);

	if (c)
		c->v6 = true;			/* 2001:db8::1, which is not trusted */
	peer_send(c, STR(V1 GET));
	world_settle();
	EXPECT(!peer_open(c) && peer_got(c).n == 0 && c && c->in_read == 0 && net.connects_n == 0);
	EXPECT(world_count_cause(CAUSE_PROXY_UNTRUSTED) == 1);
}

/* Each request of a service that wants headers has a connection of its own; kept ones are for others. */
static void header_out(void)
{
	struct peer *c = world_client(), *d = peer_connect(world.listener);

	if (d)
		d->v6 = true;
	world_settle();
	world_say(c, "GET /want HTTP/1.1\r\nHost: a.example\r\n\r\n");
	EXPECT(world_got(world_up(0), "PROXY TCP4 192.0.2.1 198.51.100.1 ") && world_got(world_up(0), " 443\r\nGET /want HTTP/1.1\r\n"));
	world_say(world_up(0), OK2);
	EXPECT(world_status(c, 0) == 200 && !peer_open(world_up(0)));
	world_say(d, "GET /want HTTP/1.1\r\nHost: a.example\r\n\r\n");
	EXPECT(net.connects_n == 2 && world_got(world_up(1), "PROXY TCP6 2001:db8::1 2001:db8::2 "));
	world_say(world_up(1), OK2);
	world_say(c, "GET /bare HTTP/1.1\r\nHost: a.example\r\n\r\n");
	EXPECT(net.connects_n == 3 && !world_got(world_up(2), "PROXY"));
	world_say(world_up(2), OK2);
	EXPECT(peer_open(world_up(2)));
	/* at the limit of connections the one that is kept goes, and is not used */
	world_say(c, "GET /want HTTP/1.1\r\nHost: a.example\r\n\r\n");
	EXPECT(net.connects_n == 4 && !peer_open(world_up(2)) && world_got(world_up(3), "PROXY TCP4 "));
	world_say(d, "GET /want HTTP/1.1\r\nHost: a.example\r\n\r\n");
	EXPECT(net.connects_n == 4);		/* it waits */
	world_say(world_up(3), OK2);
	EXPECT(net.connects_n == 5 && world_got(world_up(4), "PROXY TCP6 "));
	world_say(world_up(4), OK2);
	EXPECT(world_status(c, 2) == 200 && world_status(d, 1) == 200);
}

/* In the queue stand one that wants its own and one that takes any: a kept connection is not for the first. */
static void own_and_any_in_one_queue(void)
{
	struct peer *c = world_client(), *d = world_client(), *e = world_client();

	world_say(c, "GET /bare HTTP/1.1\r\nHost: a.example\r\n\r\n");
	world_say(d, "GET /want HTTP/1.1\r\nHost: a.example\r\n\r\n");
	world_say(e, "GET /bare HTTP/1.1\r\nHost: a.example\r\n\r\n");
	EXPECT(net.connects_n == 1);
	world_say(world_up(0), OK2);		/* kept, and closed to make room for the first in the queue */
	EXPECT(net.connects_n == 2 && world_got(world_up(1), "PROXY TCP4 ") && world_requests(world_up(0)) == 1);
	world_say(world_up(1), OK2);
	EXPECT(net.connects_n == 3 && !world_got(world_up(2), "PROXY"));
	world_say(world_up(2), OK2);
	EXPECT(world_status(c, 0) == 200 && world_status(d, 0) == 200 && world_status(e, 0) == 200);
}

static void header_again(void)
{
	struct peer *c = world_client();

	net.connects = CONNECT_WAIT;
	world_say(c, "PUT /two HTTP/1.1\r\nHost: a.example\r\nContent-Length: 2\r\n\r\nhi");
	peer_refuse(world_up(0), ECONNREFUSED);
	world_settle();
	peer_room(world_up(1), 20);
	peer_up(world_up(1));
	world_settle();
	EXPECT(world_got(world_up(1), "PROXY TCP4 192.0.2.1") && peer_got(world_up(1)).n == 20);
	peer_rst(world_up(1));
	world_settle();
	EXPECT(world_status(c, 0) == 502);	/* there were two */
}

/* What the origin gets first of a stream is who it is from. */
static void header_then_bytes(void)
{
	struct peer *c = world_client_at(TCP), *o = world_up(0);
	char text[100];

	snprintf(text, sizeof text, "PROXY TCP4 192.0.2.1 198.51.100.1 %u 443\r\n", c ? c->port : 0);
	EXPECT(got(o, str_of(text)));
	world_say(c, "x");
	EXPECT(peer_got(o).n == strlen(text) + 1);
}

#define LISTENERS \
	"workers: 1\n" \
	"listen:\n" \
	"  - {address: 127.0.0.1:8080}\n" \
	"  - {address: 127.0.0.1:8081, service: tcp}\n" \
	"  - {address: 127.0.0.1:8082, sni: {a.example: tls, '*.x.example': tls}}\n" \
	"  - {address: 127.0.0.1:8083, trusted_proxies: 192.0.2.0/24, proxy_protocol: on}\n" \
	"log: {access: off}\n" \
	"routes:\n" \
	"  - service: origin\n" \
	"  - {path: /want, service: want}\n" \
	"  - {path: /two, service: two}\n" \
	"  - {path: /bare, service: bare}\n" \
	CONF_TIMES
#define SERVICES(tcp) \
	"services:\n" \
	"  origin: 127.0.0.1:9001\n" \
	"  tcp: " tcp "\n" \
	"  tls: 127.0.0.1:9103\n" \
	"  want: {endpoints: [127.0.0.1:9104], proxy_protocol: v1, max_connections: 1}\n" \
	"  bare: {endpoints: [127.0.0.1:9104], max_connections: 1}\n" \
	"  two: {endpoints: [127.0.0.1:9105, 127.0.0.1:9106], proxy_protocol: v1, host: endpoint}\n"
#define CONF_STREAM LISTENERS SERVICES("[127.0.0.1:9101, 127.0.0.1:9102]")
#define CONF_ONE LISTENERS SERVICES("{endpoints: [127.0.0.1:9101], max_connections: 1}")
#define CONF_TOLD LISTENERS SERVICES("{endpoints: [127.0.0.1:9101], proxy_protocol: v1}")

const struct story stories_stream[] = {
	{ "stream-both-ways", CONF_STREAM, both_ways },
	{ "stream-said-before", CONF_STREAM, said_before },
	{ "stream-another-endpoint", CONF_STREAM, another_endpoint },
	{ "stream-no-endpoint", CONF_STREAM, no_endpoint },
	{ "stream-leaves-while-waiting", CONF_STREAM, leaves_while_waiting },
	{ "stream-connect-times-out", CONF_STREAM, connect_times_out },
	{ "stream-upstream-resets", CONF_STREAM, upstream_resets },
	{ "stream-resets-while-blocked", CONF_STREAM, resets_while_blocked },
	{ "stream-drips-through", CONF_STREAM, drips_through },
	{ "stream-silence", CONF_STREAM, silence },
	{ "stream-one-at-a-time", CONF_ONE, one_at_a_time },
	{ "stream-drained", CONF_STREAM, drained },
	{ "stream-wave-leaves", CONF_STREAM, wave_leaves },
	{ "sni-by-name", CONF_STREAM, by_name },
	{ "sni-no-hello", CONF_STREAM, no_hello },
	{ "sni-hello-is-late", CONF_STREAM, hello_is_late },
	{ "sni-drain-of-the-silent", CONF_STREAM, drain_of_the_silent },
	{ "header-in", CONF_STREAM, header_in },
	{ "header-of-a-stranger", CONF_STREAM, header_of_a_stranger },
	{ "header-out", CONF_STREAM, header_out },
	{ "header-own-and-any", CONF_STREAM, own_and_any_in_one_queue },
	{ "header-again", CONF_STREAM, header_again },
	{ "header-then-bytes", CONF_TOLD, header_then_bytes },
	{ NULL, NULL, NULL },
};
