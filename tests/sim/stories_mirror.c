/* stories_mirror: copies of requests, which never change what becomes of the requests themselves. */
#include <errno.h>
#include <stdio.h>

#include "lib/base/check.h"
#include "tests/sim/world.h"

#define GET(path) "GET " path " HTTP/1.1\r\nHost: a.example\r\n\r\n"
#define POST5(path) "POST " path " HTTP/1.1\r\nHost: a.example\r\nContent-Length: 5\r\n\r\n"
#define OK2 "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

/* The connection, among those that the proxy has made to that port, that it made last. */
static struct peer *to(uint16_t port)
{
	struct peer *found = NULL;

	for (unsigned i = 0; i < net.connects_n; i++)
		if (world_up(i) && world_up(i)->port == port)
			found = world_up(i);
	return found;
}

static unsigned connects(uint16_t port)
{
	unsigned n = 0;

	for (unsigned i = 0; i < net.connects_n; i++)
		n += world_up(i) && world_up(i)->port == port;
	return n;
}

static void copies(void)
{
	struct peer *c = world_client(), *app, *copy;

	world_say(c, "GET /m/x?y HTTP/1.1\r\nHost: a.example\r\nX-Keep: 1\r\nX-Gone: 1\r\nExpect: x\r\n\r\n");
	app = to(9001);
	EXPECT(world_requests(app) == 1 && connects(9002) == 0);	/* not in the way of the answer */
	world_say(app, OK2);
	EXPECT(world_status(c, 0) == 200);
	copy = to(9002);
	/* as the endpoint has it, but for Host */
	EXPECT(world_requests(copy) == 1);
	EXPECT(world_got(app, "GET /x?y HTTP/1.1\r\nHost: a.example\r\nX-Keep: 1\r\n"));
	EXPECT(world_got(copy, "GET /x?y HTTP/1.1\r\nHost: shadow.example\r\nX-Keep: 1\r\n") && world_got(copy, "X-Set: 1\r\n"));
	EXPECT(world_got(copy, "X-Forwarded-Host: a.example\r\n") && !world_got(copy, "X-Gone") && !world_got(copy, "Expect"));
	world_say(copy, "HTTP/1.1 500 Oops\r\nContent-Length: 3\r\n\r\nbad");
	world_say(c, GET("/m"));
	world_say(app, OK2);
	world_say(copy, OK2);
	EXPECT(world_status(c, 1) == 200 && net.connects_n == 2 && world.w->counters.mirrored == 2);
}

static void bodies(void)
{
	struct peer *c = world_client(), *app, *copy;

	world_say(c, "POST /m HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n");
	EXPECT(connects(9002) == 0);
	world_say(c, "3\r\ncde\r\n0\r\n\r\n");
	app = to(9001);
	world_say(app, OK2);
	copy = to(9002);
	EXPECT(world_requests(app) == 1 && world_requests(copy) == 1);
	EXPECT(world_got(copy, "Content-Length: 5\r\n\r\nabcde") && !world_got(copy, "chunked"));
	world_say(copy, OK2);
	world_say(c, POST5("/m") "hello");
	world_say(app, OK2);
	EXPECT(world_requests(copy) == 2 && world_got(copy, "\r\n\r\nhello"));
	world_say(copy, OK2);
	world_say(c, "POST /m HTTP/1.1\r\nHost: a.example\r\nContent-Length: 0\r\n\r\n");
	world_say(app, OK2);
	EXPECT(world_requests(copy) == 3 && world_got(copy, "Content-Length: 0\r\n"));
	/* one of more than body_limit is not copied, whether that is known at once or not */
	world_say(c, "POST /m HTTP/1.1\r\nHost: a.example\r\nContent-Length: 11\r\n\r\nhello world");
	world_say(app, OK2);
	world_say(c, "POST /m HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nhello \r\n5\r\nworld\r\n0\r\n\r\n");
	world_say(app, OK2);
	EXPECT(world_requests(app) == 5 && world_requests(copy) == 3 && world.w->counters.mirror_body_limit == 2);
	EXPECT(world_status(c, 4) == 200 && connects(9002) == 1);
}

/* It goes with the head of the answer, or when there will be none; one that is whole after that, at its end. */
static void when_it_goes(void)
{
	struct peer *c = world_client();

	world_say(c, GET("/m"));
	world_say(to(9001), "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n");
	EXPECT(world_requests(to(9002)) == 1);
	world_say(to(9002), OK2);
	world_say(to(9001), "whole now");
	world_say(c, GET("/m"));
	peer_rst(c);
	world_settle();
	EXPECT(world_requests(to(9002)) == 2);	/* the endpoint has it, too */
	world_say(to(9002), OK2);
	c = world_client();
	world_say(c, GET("/m"));
	world_say(to(9001), "nonsense\r\n\r\n");
	EXPECT(world_status(c, 0) == 502 && world_requests(to(9002)) == 3);
	world_say(to(9002), OK2);
	world_say(c, POST5("/m") "hel");
	world_say(to(9001), "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n");
	EXPECT(world_requests(to(9002)) == 3);
	world_say(c, "lo");
	world_say(to(9001), "ok");
	EXPECT(world_requests(to(9002)) == 4 && world_got(to(9002), "\r\n\r\nhello") && world.w->counters.mirrored == 3);
}

/* What is not whole is never copied. */
static void not_whole(void)
{
	struct peer *c = world_client();

	world_say(c, POST5("/m") "hel");
	peer_rst(c);
	world_settle();
	c = world_client();
	world_say(c, POST5("/m") "hel");
	peer_fin(c);
	world_settle();
	EXPECT(world_status(c, 0) == 400);
	c = world_client();
	world_say(c, "POST /limited HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
	world_say(c, "3\r\ndef\r\n0\r\n\r\n");
	EXPECT(world_status(c, 0) == 413);
	c = world_client();
	world_say(c, POST5("/m") "hel");
	world_say(to(9001), "HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n");
	world_say(c, "lo");
	EXPECT(world_status(c, 0) == 403);
	EXPECT(connects(9002) == 0 && world.w->calls.slab.live == 0 && world.w->counters.mirrored == 0);
}

/* Nothing that the mirror does is seen by the client. */
static void bad_mirrors(void)
{
	static const char *const says[] = {
		"nonsense\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
		"HTTP/1.1 101 Up\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nq",
	};
	struct peer *c = world_client();
	unsigned i;

	for (i = 0; i < sizeof says / sizeof *says; i++) {
		world_say(c, GET("/m"));
		world_say(to(9001), OK2);
		world_say(to(9002), says[i]);
		EXPECT(world_status(c, i) == 200 && world.w->counters.mirror_failed == i + 1);
	}
	world_say(c, GET("/m"));
	world_say(to(9001), OK2);
	peer_rst(to(9002));
	world_settle();
	EXPECT(world_status(c, i++) == 200 && connects(9001) == 1);
	net.connects = CONNECT_REFUSED;
	world_say(c, GET("/m"));
	world_say(to(9001), OK2);
	EXPECT(world_status(c, i) == 200 && world.w->counters.mirror_failed == i + 1 && world.w->counters.mirror_dropped == 0);
}

static void mirror_hangs(void)
{
	struct peer *c = world_client();

	for (unsigned i = 0; i < 5; i++) {
		world_say(c, GET("/m"));
		world_say(to(9001), OK2);
		EXPECT(world_status(c, i) == 200);
	}
	EXPECT(connects(9001) == 1 && connects(9002) == 5 && world.w->calls.slab.live == 5);
	world_sleep(2100);
	EXPECT(world.w->calls.slab.live == 0 && world.w->counters.mirror_failed == 5 && !peer_open(to(9002)));
	/* one that answers without an end */
	world_say(c, GET("/m"));
	world_say(to(9001), OK2);
	world_say(to(9002), "HTTP/1.1 200 OK\r\n\r\n");
	for (unsigned i = 0; i < 30 && peer_open(to(9002)); i++) {
		static char body[65536];

		peer_send(to(9002), (struct str){ body, sizeof body });
		world_settle();
	}
	EXPECT(!peer_open(to(9002)) && peer_open(c));
}

/* A copy that would have to wait is dropped. */
static void no_room(void)
{
	struct peer *c = world_client();

	for (unsigned i = 0; i < 4; i++) {
		world_say(c, GET("/one"));
		world_say(to(9001), OK2);
		EXPECT(world_status(c, i) == 200);
	}
	EXPECT(connects(9003) == 1 && world_requests(to(9003)) == 1 && world.w->counters.mirror_dropped == 3);
	world_say(to(9003), OK2);
	world_say(c, GET("/one"));
	world_say(to(9001), OK2);
	EXPECT(world_requests(to(9003)) == 2 && world.w->counters.mirrored == 1);
}

/* No kept connection is closed to make room for one. */
static void no_descriptors(void)
{
	struct peer *c = world_client(), *who;

	world_say(c, GET("/guarded"));
	who = to(9004);
	world_say(who, OK2);
	world_say(to(9001), OK2);
	world_say(to(9002), "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
	EXPECT(world_status(c, 0) == 200 && world.w->counters.mirrored == 1);
	world.settings->fds = world.server.fds;
	world_say(c, GET("/m"));
	world_say(to(9001), OK2);
	EXPECT(connects(9002) == 1 && world.w->counters.mirror_dropped == 1 && peer_open(who));
	EXPECT(world_status(c, 1) == 200);
}

/* Copies leave half of the calls to those that somebody waits for. */
static void bounded(void)
{
	struct peer *c = world_client();

	for (unsigned i = 0; i < 5; i++) {
		world_say(c, GET("/m"));
		world_say(to(9001), OK2);
	}
	EXPECT(connects(9002) == 2 && world.w->counters.mirror_dropped == 3 && world_status(c, 4) == 200);
	world_say(c, GET("/guarded"));
	EXPECT(world_requests(to(9004)) == 1);
	world_say(to(9004), OK2);
	world_say(to(9001), OK2);
	EXPECT(world_status(c, 5) == 200 && world.w->counters.mirror_dropped == 4);
}

static void share(void)
{
	struct peer *c = world_client();
	unsigned n = 0;

	for (unsigned i = 0; i < 40; i++) {
		world_say(c, GET("/some"));
		world_say(to(9001), OK2);
		if (world_requests(to(9002)) > n) {
			world_say(to(9002), OK2);
			n++;
		}
	}
	EXPECT(world_requests(to(9002)) == 10 && world.w->counters.mirrored == 10);
}

/* Not before the request may pass, not twice when it is sent again, not when it is for a tunnel. */
static void when(void)
{
	struct peer *c = world_client();

	world_say(c, GET("/guarded"));
	EXPECT(connects(9002) == 0);
	world_say(to(9004), "HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n");
	EXPECT(connects(9002) == 0);
	world_say(c, GET("/guarded"));
	world_say(to(9004), OK2);
	world_say(to(9001), OK2);
	EXPECT(world_requests(to(9001)) == 1 && world_requests(to(9002)) == 1);
	world_say(to(9002), OK2);
	world_say(c, GET("/m"));
	peer_rst(to(9001));
	world_settle();
	EXPECT(connects(9001) == 2 && world_requests(to(9001)) == 1);
	world_say(to(9001), OK2);
	EXPECT(world_requests(to(9002)) == 2);
	world_say(to(9002), OK2);
	world_say(c, "GET /m HTTP/1.1\r\nHost: a.example\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n");
	EXPECT(world_requests(to(9001)) == 2);
	world_say(to(9001), OK2);
	EXPECT(world_status(c, 3) == 200 && world_requests(to(9002)) == 2);
}

/* The end waits for the client's answer, and for no copy. */
static void drained(void)
{
	struct peer *c = world_client();

	world_say(c, GET("/m"));
	world_say(to(9001), "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n");
	worker_tell(world.w, WORKER_DRAIN);
	world_settle();
	EXPECT(world.w->calls.slab.live == 1);
	world_say(to(9001), "ok");
	EXPECT(world_status(c, 0) == 200 && worker_open(world.w) == 0);
}

#define MIRROR "mirror: {service: shadow, body_limit: 10B, timeout: 2s}"
#define CONF_MIRROR CONF_PLAIN CONF_TIMES "routes:\n" \
	"  - {path: /m, service: origin, strip_prefix: on, request_headers: {set: {X-Set: 1}, remove: [X-Gone]}, " MIRROR "}\n" \
	"  - {path: /limited, service: origin, body_limit: 5B, " MIRROR "}\n" \
	"  - {path: /one, service: origin, mirror: {service: one}}\n" \
	"  - {path: /some, service: origin, mirror: {service: shadow, share: 25%}}\n" \
	"  - {path: /guarded, service: origin, auth: {service: who}, " MIRROR "}\n" \
	"services:\n" \
	"  origin: 127.0.0.1:9001\n" \
	"  shadow: {endpoints: [127.0.0.1:9002], host: shadow.example}\n" \
	"  one: {endpoints: [127.0.0.1:9003], max_connections: 1}\n" \
	"  who: 127.0.0.1:9004\n"

const struct story stories_mirror[] = {
	{ "mirror-copies", CONF_MIRROR, copies },
	{ "mirror-bodies", CONF_MIRROR, bodies },
	{ "mirror-when-it-goes", CONF_MIRROR, when_it_goes },
	{ "mirror-not-whole", CONF_MIRROR, not_whole },
	{ "mirror-bad-mirrors", CONF_MIRROR, bad_mirrors },
	{ "mirror-hangs", CONF_MIRROR, mirror_hangs },
	{ "mirror-no-room", CONF_MIRROR, no_room },
	{ "mirror-no-descriptors", CONF_MIRROR, no_descriptors },
	{ "mirror-bounded", CONF_MIRROR "limits: {calls: 4}\n", bounded },
	{ "mirror-share", CONF_MIRROR, share },
	{ "mirror-when", CONF_MIRROR, when },
	{ "mirror-drained", CONF_MIRROR, drained },
	{ NULL, NULL, NULL },
};
