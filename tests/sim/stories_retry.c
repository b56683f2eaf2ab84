/* stories_retry: a connection dies with a part of the request in our hands, and the request goes to another.
 *
 * What the next origin gets must be the whole request, or nothing. */
#include <stdio.h>

#include "lib/base/check.h"
#include "tests/sim/world.h"

#define OK2 "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
#define LONG 100000	/* more than limits.replay */

static char body[LONG];

/* The origin has reset the connection, and we are told of it only by the write of these bytes. */
static void dies_under(struct peer *o, struct peer *c, struct str bytes)
{
	peer_rst(o);
	peer_hush(o);
	peer_send(c, bytes);
	world_settle();
	peer_nudge(o);
	world_settle();
}

static void fill(void)
{
	for (unsigned i = 0; i < LONG; i++)
		body[i] = (char)('a' + i % 23);
}

/* Only the head was sent, so it may be sent again: and the first bytes of the body are those that
 * the dead connection did not take. */
static void first_piece_is_kept(void)
{
	struct peer *c = world_client(), *o;
	struct str got;

	fill();
	world_say(c, "PUT /pair HTTP/1.1\r\nHost: a.example\r\nContent-Length: 100000\r\n\r\n");
	EXPECT(world_got(world_up(0), "PUT /pair "));
	dies_under(world_up(0), c, (struct str){ body, 10000 });
	peer_send(c, (struct str){ body + 10000, LONG - 10000 });
	world_settle();
	o = world_up(1);
	got = peer_got(o);
	EXPECT(net.connects_n == 2 && world_requests(o) == 1);
	EXPECT(got.n > LONG && memcmp(got.p + got.n - LONG, body, LONG) == 0);
	world_say(o, OK2);
	EXPECT(world_status(c, 0) == 200);
}

/* More pieces came at once than one write takes; the first write fails. */
static void rest_of_a_read_is_kept(void)
{
	struct peer *c = world_client(), *o;
	char text[2048];
	size_t n = 0;

	for (unsigned i = 0; i < 200; i++)
		n += (size_t)snprintf(text + n, sizeof text - n, "1\r\n%c\r\n", 'a' + i % 23);
	n += (size_t)snprintf(text + n, sizeof text - n, "0\r\n\r\n");
	world_say(c, "PUT /pair HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n");
	dies_under(world_up(0), c, (struct str){ text, n });
	o = world_up(1);
	EXPECT(net.connects_n == 2 && world_requests(o) == 1);
	EXPECT(world_got(o, "\r\n\r\n1\r\na\r\n1\r\nb\r\n") || world_got(o, "\r\n\r\n1\r\na\r\n"));
	world_say(o, OK2);
	EXPECT(world_status(c, 0) == 200);
}

/* A body that is kept goes to each endpoint that is tried, and the rest of it to the last. */
static void replayed_twice(void)
{
	struct peer *c = world_client();

	world_say(c, "PUT / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 6\r\n\r\nab");
	EXPECT(world_got(world_up(0), "\r\n\r\nab"));
	peer_rst(world_up(0));
	world_settle();
	EXPECT(world_got(world_up(1), "\r\n\r\nab"));
	world_say(c, "cd");
	EXPECT(world_got(world_up(1), "\r\n\r\nabcd"));
	peer_rst(world_up(1));
	world_settle();
	EXPECT(world_got(world_up(2), "\r\n\r\nabcd"));
	world_say(c, "ef");
	EXPECT(world_requests(world_up(2)) == 1 && world_got(world_up(2), "\r\n\r\nabcdef"));
	world_say(world_up(2), OK2);
	EXPECT(world_status(c, 0) == 200);
}

/* The Host of each try is its endpoint's, in a head too large for the exchange's own block: with memory that
 * fails, a try that cannot be made must leave the last one as it was. */
static void host_of_each_endpoint(void)
{
	static char head[3000];
	struct peer *c = world_client();

	for (unsigned i = 0; i < 3; i++) {
		world_say(c, "GET /warm HTTP/1.1\r\nHost: a.example\r\n\r\n");
		world_say(world_up(i), OK2);
	}
	snprintf(head, sizeof head, "GET /big HTTP/1.1\r\nHost: a.example\r\nX-Big: %01900d\r\n\r\n", 7);
	world_say(c, head);
	EXPECT(world_requests(world_up(0)) == 2);
	for (unsigned i = 0; i < 3; i++) {
		struct peer *o = world_up(i ? i + 2 : 0);

		if (!o)
			return;
		if (i < 2)
			peer_rst(o);
		else
			world_say(o, OK2);
		world_settle();
	}
	EXPECT(world_status(c, 3) == 200);
	EXPECT(memmem(peer_got(world_up(4)).p, peer_got(world_up(4)).n, "Host: 127.0.0.1:9003\r\n", 22));
}

/* The cookie names whoever answered, also when that is not the first that was asked; and brings the client back to it. */
static void home_is_who_answered(void)
{
	struct peer *c = world_client();
	char ask[200];
	const char *home;

	world_say(c, "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
	peer_rst(world_up(0));
	world_settle();
	world_say(world_up(1), OK2);
	EXPECT(world_status(c, 0) == 200 && world_got(c, "\r\nSet-Cookie: home="));
	if (!world_got(c, "home="))
		return;
	home = memmem(peer_got(c).p, peer_got(c).n, "home=", 5);
	snprintf(ask, sizeof ask, "GET / HTTP/1.1\r\nHost: a.example\r\nCookie: a=b; %.21s; c=d\r\n\r\n", home);
	for (unsigned i = 1; i < 4; i++) {
		world_say(c, ask);
		EXPECT(world_requests(world_up(1)) == i + 1 && !world_up(2));
		world_say(world_up(1), OK2);
		EXPECT(world_status(c, i) == 200);
	}
	home = memmem(peer_got(c).p, peer_got(c).n, "home=", 5);	/* what it got may lie elsewhere now */
	EXPECT(home && !memmem(home + 1, peer_got(c).n - (size_t)(home + 1 - peer_got(c).p), "home=", 5));
}

/* One of the keys' endpoints is lost: the next choice is the same for all of the same key. */
static void keys_of_a_lost_endpoint(void)
{
	struct peer *c = world_client();

	world_say(c, "GET / HTTP/1.1\r\nHost: a.example\r\nX-Key: one\r\n\r\n");
	peer_rst(world_up(0));
	world_settle();
	world_say(world_up(1), OK2);
	EXPECT(world_status(c, 0) == 200);
	world_say(c, "GET / HTTP/1.1\r\nHost: a.example\r\nX-Key: one\r\n\r\n");
	EXPECT(net.connects_n == 3);	/* a reset is no verdict: its own endpoint is asked again */
	if (!world_up(2))
		return;
	EXPECT(world_up(2)->port == world_up(0)->port);
	world_say(world_up(2), OK2);
	EXPECT(world_status(c, 1) == 200);
}

#define THREE "'127.0.0.1:9001', '127.0.0.1:9002', '127.0.0.1:9003'"
#define CONF_HOME CONF_PLAIN CONF_TIMES "routes: [{service: three}]\n" \
	"services: {three: {endpoints: [" THREE "], balance: {sticky: {cookie: home, ttl: 1h}}}}\n"
#define CONF_KEYS CONF_PLAIN CONF_TIMES "routes: [{service: three}]\n" \
	"services: {three: {endpoints: [" THREE "], balance: {hash: {header: X-Key}, bound: 125}}}\n"
#define CONF_HOSTS CONF_PLAIN CONF_TIMES "routes: [{service: three}]\n" \
	"services: {three: {endpoints: ['127.0.0.1:9001', '127.0.0.1:9002', '127.0.0.1:9003'], host: endpoint, balance: round_robin}}\n"
#define CONF_THREE CONF_PLAIN CONF_TIMES "routes: [{service: three}]\n" \
	"services: {three: {endpoints: ['127.0.0.1:9001', '127.0.0.1:9002', '127.0.0.1:9003'], balance: round_robin}}\n"

const struct story stories_retry[] = {
	{ "first-piece-is-kept", NULL, first_piece_is_kept },
	{ "rest-of-a-read-is-kept", NULL, rest_of_a_read_is_kept },
	{ "replayed-twice", CONF_THREE, replayed_twice },
	{ "host-of-each-endpoint", CONF_HOSTS, host_of_each_endpoint },
	{ "home-is-who-answered", CONF_HOME, home_is_who_answered },
	{ "keys-of-a-lost-endpoint", CONF_KEYS, keys_of_a_lost_endpoint },
	{ NULL, NULL, NULL },
};
