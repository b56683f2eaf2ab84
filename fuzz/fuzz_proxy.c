/*
 * fuzz_proxy: the whole proxy between clients and origins that say anything.
 *
 * Purpose   one worker over the sockets of tests/sim.  The first byte chooses a configuration, the second
 *           how events are ordered and whether sockets change inside a turn; then come commands: bytes of a
 *           client or of an origin, ends and resets, room in sockets, time, connects.
 * Checks    what world_end() checks: nothing is left over, origins get requests that cannot be misread,
 *           clients get the answers that the access log tells, in order.
 * Owns      nothing between two inputs.
 * Called by libFuzzer or replay.c.
 * Never     opens a socket or looks at the time.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "proxy/log.h"
#include "tests/sim/world.h"

#define CLIENTS 6

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define COMPRESS "defaults: {compress: {min_size: 8B}}\n"

static const char *const confs[] = {
	CONF_DEFAULT COMPRESS,
	CONF_PLAIN CONF_TIMES CONF_ROUTES
	"services:\n"
	"  origin: {endpoints: [127.0.0.1:9001], max_connections: 1, host: endpoint}\n"
	"  pair: {endpoints: [127.0.0.1:9001, 127.0.0.1:9002], max_connections: 1, balance: {hash: {cookie: a}, bound: 125}}\n"
	"  named: {endpoints: [127.0.0.1:9003, {address: 127.0.0.1:9004, weight: 3}], host: b.example, balance: {sticky: {cookie: a}}}\n"
	"  none: []\n",
	CONF_DEFAULT "limits: {replay: 16B, head: 1KiB, answer_head: 1KiB, fields: 8, target: 256B, chunk_overhead: 1KiB, body: 4KiB}\n",
	CONF_TIMES CONF_SERVICES COMPRESS
	"listen:\n"
	"  - {address: 127.0.0.1:8080, trusted_proxies: [192.0.2.0/24], x_forwarded: append, forwarded: on, underscores: refuse,\n"
	"     upgrade: [websocket, x]}\n"
	"log: {access: off}\n"
	"routes:\n"
	"  - {service: pair, request_headers: {set: {X-A: b}, remove: [X-B, Cookie]}, response_headers: {add: {X-C: d}, remove: [Server]}}\n"
	"  - {path: /a, service: origin, replace_prefix: /b/c, timeouts: {tunnel: off}}\n"
	"  - {path: /named, service: named, strip_prefix: on, deny: 203.0.113.0/24,\n"
	"     rate_limit: [{rate: 9/m, by: {header: X-A}}, {rate: 3/s}, {rate: 5/s, by: route}]}\n"
	"  - {path: /pair, service: pair, auth: {service: origin, response_headers: [X-A], sign_in: '/in?u={url}', timeout: 1s},\n"
	"     mirror: {service: named, share: 50%, body_limit: 8B, timeout: 1s}}\n",
	CONF_TIMES CONF_SERVICES
	"listen:\n"
	"  - {address: 127.0.0.1:8080, via: off, request_id: off, x_forwarded: off, underscores: allow, upgrade: off}\n"
	"log: {access: off}\n"
	"limits: {connections: 2, queue: 1KiB}\n"
	"routes: [{service: origin}]\n",
	/* connections that are passed on, and PROXY protocol headers: chosen by 0xf0 and more */
	CONF_TIMES
	"listen:\n"
	"  - {address: 127.0.0.1:8080}\n"
	"  - {address: 127.0.0.1:8081, trusted_proxies: 192.0.2.0/24, proxy_protocol: optional, sni: {a.example: two, '*.b': one}}\n"
	"  - {address: 127.0.0.1:8082, trusted_proxies: 192.0.2.0/24, proxy_protocol: on}\n"
	"  - {address: 127.0.0.1:8083, service: two}\n"
	"log: {access: off}\n"
	"routes: [{service: one}, {path: /a, service: bare}, {path: /named, service: two}]\n"
	"services:\n"
	"  one: {endpoints: [127.0.0.1:9101], proxy_protocol: v1, max_connections: 1}\n"
	"  bare: {endpoints: [127.0.0.1:9101], max_connections: 2}\n"
	"  two: {endpoints: [127.0.0.1:9101, 127.0.0.1:9102], proxy_protocol: v2, host: endpoint}\n",
};
#define CONF_STREAM 5

/* What such connections begin with. */
#define WORD(literal) { literal, sizeof(literal) - 1 }
static const struct str first_words[] = {
	WORD("PROXY TCP4 203.0.113.9 198.51.100.7 5678 80\r\n"), WORD("PROXY TCP6 2001:db8::9 ::ffff:1.2.3.4 5678 80\r\n"),
	WORD("PROXY UNKNOWN\r\n"), WORD("\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xcb\0\x71\x09\xc6\x33\x64\7\x16.\0P"),
	WORD("\r\n\r\n\0\r\nQUIT\n\x20\0\0\0"), WORD("\x15\3\3\0\2\2\x28"),
	WORD("\x16\3\1\0\x41\1\0\0\x3d\3\3" "12345678901234567890123456789012" "\0\0\2\x13\1\1\0\0\x12\0\0\0\x0e\0\x0c\0\0\x09" "a.example"),
	WORD("\x16\3\1\0\x2b\1\0\0\x27\3\3" "12345678901234567890123456789012" "\0\0\2\x13\1\1\0"),
};

/* What an exchange is mostly made of, so that a mutation is often a message. */
static const char *const words[] = {
	"GET /a HTTP/1.1\r\nHost: a.example\r\n\r\n", "POST /pair HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n", "hello",
	"PUT /named HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", "5\r\nhello\r\n", "0\r\n\r\n", "\r\n", "0\r\nX-T: t\r\n\r\n",
	"HEAD /a HTTP/1.1\r\nHost: a\r\n\r\n", "GET /a HTTP/1.0\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTE: trailers\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n", "X-A: b\r\nX-Forwarded-For: 203.0.113.9, [::1]:8, 192.0.2.7\r\n",
	"Content-Length: 5\r\n",
	"Transfer-Encoding: chunked\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
	"HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 204 No Content\r\n\r\n", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
	"HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
	"HTTP/1.1 200 OK\r\nConnection: close\r\nX-A: c\r\nSet-Cookie: d=e\r\nContent-Length: 0\r\n\r\n", "HTTP/1.0 200 OK\r\n\r\n",
	"HTTP/1.1 413 X\r\nSet-Cookie: a=b\r\nContent-Length: 2\r\n\r\nno", "HTTP/1.1 200 OK\r\n", "GET /none HTTP/1.1\r\n", "Host: a\r\n", "Connection: close\r\n",
	"HTTP/1.1 103 Early\r\nLink: x\r\n\r\n", "GET /local HTTP/1.1\r\nHost: a\r\n\r\n",
};

enum command {	/* low four bits of a command's first byte; the high ones say whose */
	SAY_CLIENT, SAY_ORIGIN, WORD_CLIENT, WORD_ORIGIN, FIN_CLIENT, FIN_ORIGIN, RST_CLIENT, RST_ORIGIN,
	ROOM_CLIENT, ROOM_ORIGIN, TIME, CONNECTS, TURN, COMES, MANY, REFUSE,
};

static bool streams;

static struct str word(uint8_t i)
{
	return streams && i >= 128 ? first_words[i % (sizeof first_words / sizeof *first_words)] : str_of(words[i % 32]);
}

static struct peer *clients[CLIENTS];
static unsigned n_clients;

static uint8_t take(const uint8_t **data, size_t *size)
{
	if (!*size)
		return 0;
	(*size)--;
	return *(*data)++;
}

/* The latest upstream connections come first: 0 is the last. */
static struct peer *origin(unsigned i)
{
	return net.connects_n ? net_upstream(net.connects_n - 1 - i % net.connects_n) : NULL;
}

static struct peer *client(unsigned i)
{
	if (i % CLIENTS >= n_clients) {
		i = n_clients++;
		clients[i] = peer_connect(world.listeners[streams ? (i / 2) % 4 : 0]);
		clients[i]->v6 = i % 2;
	}
	return clients[i % CLIENTS];
}

static void say(struct peer *p, const uint8_t **data, size_t *size)
{
	size_t n = take(data, size);

	if (n > 240)
		n = (n - 240) << 8 | take(data, size);
	if (n > *size)
		n = *size;
	peer_send(p, (struct str){ (const char *)*data, n });
	*data += n;
	*size -= n;
}

/* Many bytes of one kind, for what only begins beyond a read or a buffer. */
static void say_many(struct peer *p, uint8_t how)
{
	static char run[40000];

	memset(run, how & 1 ? 'x' : '1', sizeof run);
	peer_send(p, (struct str){ run, sizeof run >> (how >> 5) });
}

static void meddle(void)
{
	unsigned i = net_random(64);

	if (i < n_clients)
		peer_room(clients[i], net_random(40));
	else if (i == 10)
		peer_send(origin(0), STR("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
	else if (i == 11 && n_clients)
		peer_send(clients[0], STR("GET /m HTTP/1.1\r\nHost: a\r\n\r\n"));
	else if (i == 12)
		peer_fin(origin(0));
	else if (i == 13 && n_clients)
		peer_rst(clients[n_clients - 1]);
}

static void command(const uint8_t **data, size_t *size)
{
	static const uint16_t rooms[] = { 0, 1, 7, 100, 1000, 10000 };
	uint8_t what = take(data, size), who = what >> 4, arg;
	struct peer *c = client(who), *o = origin(who);

	switch ((enum command)(what & 15)) {
	case SAY_CLIENT: say(c, data, size); break;
	case SAY_ORIGIN: say(o, data, size); break;
	case WORD_CLIENT: peer_send(c, word(take(data, size))); break;
	case WORD_ORIGIN: peer_send(o, word(take(data, size))); break;
	case FIN_CLIENT: peer_fin(c); break;
	case FIN_ORIGIN: peer_fin(o); break;
	case RST_CLIENT: peer_rst(c); break;
	case RST_ORIGIN: peer_rst(o); break;
	case ROOM_CLIENT:
	case ROOM_ORIGIN:
		arg = take(data, size) % 7;
		peer_room((what & 15) == ROOM_CLIENT ? c : o, arg < 6 ? rooms[arg] : SIZE_MAX);
		break;
	case TIME: world_sleep(take(data, size) * 40u); break;
	case CONNECTS: net.connects = who % 4; peer_up(o); break;
	case TURN: worker_turn(world.w); return;
	case COMES: peer_up(o); world_settle(); return;
	case MANY: arg = take(data, size); say_many(arg & 2 ? c : o, arg); break;
	case REFUSE: peer_refuse(o, who & 1 ? ECONNREFUSED : EHOSTUNREACH); break;
	}
	if (!(who & 8))		/* else together with what follows */
		world_settle();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t conf = take(&data, &size), how = take(&data, &size);

	log_set_level(LEVEL_ERROR);
	world.story = "fuzz";
	CHECK(sizeof words / sizeof *words == 32);
	streams = conf >= 0xf0;
	if (!world_begin(confs[streams ? CONF_STREAM : conf % 5], how))
		return 0;
	n_clients = 0;
	net.shuffle = how & 1;
	net.meddle = how & 2 ? meddle : NULL;
	for (int i = 0; size && i < 400; i++)
		command(&data, &size);
	world_end();
	return 0;
}
