/* stories_ask: a service is asked whether requests may pass, and everybody may go at any time. */
#include <errno.h>
#include <stdio.h>

#include "lib/base/check.h"
#include "tests/sim/world.h"

#define GET "GET /a HTTP/1.1\r\nHost: a.example\r\nX-User: root\r\n\r\n"
#define OK2 "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
#define YES "HTTP/1.1 200 OK\r\nX-User: alice\r\nSet-Cookie: c=1\r\nContent-Length: 2\r\n\r\nhm"
#define NO "HTTP/1.1 401 No\r\nWWW-Authenticate: x\r\nContent-Length: 4\r\n\r\nno!\n"

static void passes(void)
{
	struct peer *c = world_client(), *auth, *app;

	world_say(c, GET);
	auth = world_up(0);
	EXPECT(net.connects_n == 1 && world_requests(auth) == 1 && world_got(auth, "GET /ask?x HTTP/1.1\r\nHost: a.example\r\n"));
	EXPECT(world_got(auth, "X-Original-URL: http://a.example/a\r\n") && world_got(auth, "X-User: root\r\n"));
	world_say(auth, YES);
	app = world_up(1);
	EXPECT(world_requests(app) == 1 && world_got(app, "X-User: alice\r\n") && !world_got(app, "root"));
	world_say(app, OK2);
	EXPECT(world_status(c, 0) == 200 && world_got(c, "Set-Cookie: c=1\r\n"));
	world_say(c, GET);
	world_say(auth, YES);
	world_say(app, OK2);
	EXPECT(world_status(c, 1) == 200 && net.connects_n == 2);
}

static void refuses(void)
{
	static char body[40000];
	struct peer *c = world_client(), *auth;
	char head[128];
	struct message m;

	world_say(c, GET);
	auth = world_up(0);
	world_say(auth, NO);
	EXPECT(world_status(c, 0) == 401 && world_got(c, "no!\n") && world_got(c, "WWW-Authenticate: x\r\n") && peer_open(c));
	EXPECT(world_count_cause(CAUSE_AUTH_REFUSED) == 1);
	/* a client that takes it slowly outlives the call */
	peer_room(c, 100);
	world_say(c, GET);
	memset(body, 'b', sizeof body);
	snprintf(head, sizeof head, "HTTP/1.1 403 No\r\nContent-Length: %zu\r\n\r\n", sizeof body);
	world_say(auth, head);
	peer_send(auth, (struct str){ body, sizeof body });
	world_settle();
	EXPECT(world.w->calls.slab.live == 0 && peer_open(auth));
	peer_room(c, SIZE_MAX);
	world_settle();
	world_answer(c, 1, STR("GET"), &m);
	EXPECT(m.status == 403 && m.state == MESSAGE_WHOLE && m.body.n == sizeof body);
	message_free(&m);
	EXPECT(net.connects_n == 1);
}

static void signs_in(void)
{
	struct peer *c = world_client();

	world_say(c, "GET /in/x?y=1 HTTP/1.1\r\nHost: a.example\r\n\r\n");
	world_say(world_up(0), NO);
	EXPECT(world_status(c, 0) == 302 && world_got(c, "Location: https://l.example/?rd=http%3A%2F%2Fa.example%2Fin%2Fx%3Fy%3D1\r\n"));
	world_say(c, "POST /in/x HTTP/1.1\r\nHost: a.example\r\nContent-Length: 2\r\n\r\nhi");
	world_say(world_up(0), NO);
	EXPECT(world_status(c, 1) == 401);
}

/* A body that comes in pieces before, while and after it is held, and a request behind it. */
static void body_while_held(void)
{
	static char body[200000];
	struct peer *c = world_client(), *auth, *app;

	memset(body, 'q', sizeof body);
	world_say(c, "POST /a HTTP/1.1\r\nHost: a.example\r\nContent-Length: 200000\r\n\r\n");
	peer_send(c, (struct str){ body, 1000 });
	world_settle();
	auth = world_up(0);
	peer_send(c, (struct str){ body, sizeof body - 2000 });
	world_settle();
	EXPECT(net.connects_n == 1 && world.w->budget.used < 100 * 1024);
	world_say(auth, YES);
	app = world_up(1);
	EXPECT(world_got(app, "POST /a ") && world_requests(app) == 0);
	peer_send(c, (struct str){ body, 1000 });
	peer_send(c, STR(GET));
	world_settle();
	EXPECT(world_requests(app) == 1 && world_requests(auth) == 1);
	world_say(app, OK2);
	EXPECT(world_requests(auth) == 2);
	world_say(auth, YES);
	world_say(app, OK2);
	EXPECT(world_status(c, 0) == 200 && world_status(c, 1) == 200);
}

static void client_leaves(void)
{
	struct peer *c;

	net.connects = CONNECT_WAIT;
	c = world_client();
	world_say(c, GET);
	peer_rst(c);		/* while the service is connected to */
	world_settle();
	EXPECT(world_count_cause(CAUSE_CLIENT_LEFT) == 1 && world.w->calls.slab.live == 0);
	peer_up(world_up(0));
	net.connects = CONNECT_UP;
	world_settle();
	c = world_client();
	world_say(c, GET);
	EXPECT(net.connects_n == 1 && world_requests(world_up(0)) == 1);
	peer_rst(c);		/* while it thinks */
	world_settle();
	EXPECT(world_count_cause(CAUSE_CLIENT_LEFT) == 2 && !peer_open(world_up(0)));
	c = world_client();
	world_say(c, GET);
	peer_send(world_up(1), STR(YES));
	peer_rst(c);		/* in the turn in which it answers */
	world_settle();
	c = world_client();
	world_say(c, GET);
	peer_fin(c);		/* that is no leaving */
	world_settle();
	EXPECT(world.w->calls.slab.live == 1);
}

static void what_goes_wrong(void)
{
	struct peer *c = world_client();

	net.connects = CONNECT_REFUSED;
	world_say(c, GET);
	EXPECT(world_status(c, 0) == 502 && world_count_cause(CAUSE_AUTH_UNREACHABLE) == 1);
	net.connects = CONNECT_WAIT;
	world_say(c, GET);
	world_sleep(1100);
	EXPECT(world_status(c, 1) == 504 && world_count_cause(CAUSE_AUTH_TIMEOUT) == 1);
	net.connects = CONNECT_UP;
	world_say(c, GET);
	world_sleep(3100);
	EXPECT(world_status(c, 2) == 504 && world_count_cause(CAUSE_AUTH_TIMEOUT) == 2);
	world_say(c, GET);
	world_say(world_up(3), "HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n");
	EXPECT(world_status(c, 3) == 502 && world_count_cause(CAUSE_AUTH_ERROR) == 1);
	world_say(c, GET);
	world_say(world_up(3), "what?\r\n\r\n");
	EXPECT(world_status(c, 4) == 502 && world_count_cause(CAUSE_AUTH_FAILED) == 1);
	EXPECT(peer_open(c) && net.connects_n == 4);
}

/* Its connection dies unanswered and it is asked again; the request has waited all the while. */
static void asked_again(void)
{
	struct peer *c = world_client();

	world_say(c, GET);
	world_say(world_up(0), YES);
	world_say(world_up(1), OK2);
	world_say(c, GET);
	peer_rst(world_up(0));
	world_settle();
	EXPECT(world_requests(world_up(2)) == 1 && world_requests(world_up(1)) == 1);
	world_say(world_up(2), YES);
	world_say(world_up(1), OK2);
	EXPECT(world_status(c, 1) == 200);
}

/* The service is one that has a single connection, and the request goes to it too. */
static void asks_whom_it_is_for(void)
{
	struct peer *c = world_client(), *d = world_client(), *o;

	world_say(c, "GET /self HTTP/1.1\r\nHost: a.example\r\n\r\n");
	world_say(d, "GET /self HTTP/1.1\r\nHost: a.example\r\n\r\n");
	o = world_up(0);
	for (int i = 0; i < 4; i++)
		world_say(o, OK2);
	EXPECT(net.connects_n == 1 && world_requests(o) == 4 && world_status(c, 0) == 200 && world_status(d, 0) == 200);
}

#define MANY 100

static void many_at_once(void)
{
	static struct peer *c[MANY];
	unsigned passed = 0;

	net.connects = CONNECT_WAIT;
	for (unsigned i = 0; i < MANY; i++) {
		c[i] = world_client();
		world_say(c[i], GET);
	}
	for (unsigned i = 0; i < MANY; i += 3)
		peer_rst(c[i]);
	net.connects = CONNECT_UP;
	for (unsigned i = 0; i < net.connects_n; i++)
		peer_up(world_up(i));
	world_settle();
	for (int round = 0; round < 40 && passed < MANY; round++) {
		for (unsigned i = 0; i < net.connects_n; i++) {
			struct peer *o = world_up(i);
			bool auth = world_got(o, "GET /ask");

			if (peer_open(o) && world_requests(o) > o->in.n / strlen(auth ? YES : OK2))
				world_say(o, auth ? YES : OK2);
		}
		passed = 0;
		for (unsigned i = 0; i < MANY; i++)
			passed += world_status(c[i], 0) != 0 || i % 3 == 0;
	}
	EXPECT(passed == MANY && world_count_cause(CAUSE_CLIENT_LEFT) == (MANY + 2) / 3);
}

static void drained(void)
{
	struct peer *c = world_client();

	world_say(c, GET);
	worker_tell(world.w, WORKER_DRAIN);
	world_settle();
	world_say(world_up(0), YES);
	world_say(world_up(1), OK2);
	EXPECT(world_status(c, 0) == 200 && !peer_open(c));
}

static void cut(void)
{
	struct peer *c = world_client(), *d;

	world_say(c, GET);
	net.connects = CONNECT_WAIT;
	d = world_client();
	world_say(d, GET);
	worker_tell(world.w, WORKER_DRAIN | WORKER_CUT);
	world_settle();
	EXPECT(!peer_open(c) && !peer_open(d) && world_count_cause(CAUSE_DRAINED) == 2);
}

#define ASK "auth: {service: who, path: '/ask?x', timeout: 3s, response_headers: [X-User]"
#define CONF_ASK CONF_PLAIN CONF_TIMES "routes:\n" \
	"  - {service: origin, " ASK "}}\n" \
	"  - {path: /in, service: origin, " ASK ", sign_in: 'https://l.example/?rd={url}'}}\n" \
	"  - {path: /self, service: one, auth: {service: one}}\n" \
	"services:\n" \
	"  origin: 127.0.0.1:9001\n" \
	"  who: 127.0.0.1:9002\n" \
	"  one: {endpoints: [127.0.0.1:9003], max_connections: 1}\n"

const struct story stories_ask[] = {
	{ "auth-passes", CONF_ASK, passes },
	{ "auth-refuses", CONF_ASK, refuses },
	{ "auth-signs-in", CONF_ASK, signs_in },
	{ "auth-body-while-held", CONF_ASK, body_while_held },
	{ "auth-client-leaves", CONF_ASK, client_leaves },
	{ "auth-what-goes-wrong", CONF_ASK, what_goes_wrong },
	{ "auth-asked-again", CONF_ASK, asked_again },
	{ "auth-asks-whom-it-is-for", CONF_ASK, asks_whom_it_is_for },
	{ "auth-many-at-once", CONF_ASK, many_at_once },
	{ "auth-drained", CONF_ASK, drained },
	{ "auth-cut", CONF_ASK, cut },
	{ NULL, NULL, NULL },
};
