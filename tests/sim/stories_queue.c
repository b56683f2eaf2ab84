/* stories_queue: what happens while exchanges wait for an upstream connection.
 *
 * A pool connects at most POOL_CONNECTING_MAX times at once; who comes then waits in the slotq of a
 * connect that is under way, and stays revocable.  With max_connections, or after a connect that came
 * up, they wait in the pool's own queue. */
#include <errno.h>
#include <stdio.h>

#include "lib/base/check.h"
#include "proxy/pool.h"
#include "tests/sim/world.h"

#define CROWD (POOL_CONNECTING_MAX + 40)
#define OK2 "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

static struct peer *crowd[CROWD];

/* They all ask for /N while no connect comes up. */
static void gather(unsigned n)
{
	char text[128];

	net.connects = CONNECT_WAIT;
	for (unsigned i = 0; i < n; i++) {
		crowd[i] = world_client();
		snprintf(text, sizeof text, "GET /%u HTTP/1.1\r\nHost: a.example\r\n\r\n", i);
		world_say(crowd[i], text);
	}
}

static unsigned answered(unsigned n)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < n; i++)
		sum += world_status(crowd[i], 0) != 0;
	return sum;
}

/* One connection comes up and serves them all, those behind other connects too. */
static void revoked_by_another(void)
{
	struct peer *o;
	char text[64];

	gather(CROWD);
	EXPECT(net.connects_n == POOL_CONNECTING_MAX);
	o = world_up(3);
	peer_up(o);
	world_settle();
	EXPECT(world_requests(o) == 1 && world_got(o, "GET /3 "));
	for (unsigned i = 1; i <= CROWD; i++) {
		world_say(o, OK2);
		EXPECT(world_requests(o) == i + (i < CROWD));
	}
	EXPECT(answered(CROWD) == CROWD && net.connects_n == POOL_CONNECTING_MAX);
	/* the longest waiting first: behind the first connect all those who came late stood too */
	snprintf(text, sizeof text, "GET /%u ", CROWD - 1);
	EXPECT(world_got(o, "GET /0 ") && world_got(o, text));
	/* connects that come up now are kept for others */
	peer_up(world_up(0));
	world_settle();
	EXPECT(peer_got(world_up(0)).n == 0 && peer_open(world_up(0)));
}

/* The connect that a full queue stands behind comes up: its first goes, the others wait for any. */
static void full_queue_comes_up(void)
{
	unsigned up = 0;

	gather(CROWD);
	peer_up(world_up(0));
	world_settle();
	EXPECT(world_requests(world_up(0)) == 1 && world_got(world_up(0), "GET /0 "));
	/* those 40 may now open connections of their own, one for each that is no longer connecting */
	EXPECT(net.connects_n == POOL_CONNECTING_MAX + 1);
	net.connects = CONNECT_UP;
	for (unsigned i = 0; i < net.connects_n; i++)
		peer_up(world_up(i));
	world_settle();
	for (unsigned round = 0; round < CROWD && up < CROWD; round++) {
		up = 0;
		for (unsigned i = 0; i < net.connects_n; i++) {
			struct peer *o = world_up(i);

			if (peer_open(o) && world_requests(o) > o->in.n / strlen(OK2))
				world_say(o, OK2);
		}
		up = answered(CROWD);
	}
	EXPECT(up == CROWD);
}

/* The connect fails with all of them behind it: each hears of it, or tries another endpoint. */
static void connect_fails_full(void)
{
	gather(CROWD);
	peer_refuse(world_up(0), ECONNREFUSED);
	world_settle();
	EXPECT(answered(CROWD) == CROWD - POOL_CONNECTING_MAX + 1);
	EXPECT(world_status(crowd[0], 0) == 502 && world_status(crowd[1], 0) == 0);
	EXPECT(world_status(crowd[CROWD - 1], 0) == 502);
	for (unsigned i = 1; i < POOL_CONNECTING_MAX; i++)
		peer_refuse(world_up(i), ECONNREFUSED);
	world_settle();
	EXPECT(answered(CROWD) == CROWD && net.connects_n == POOL_CONNECTING_MAX);
}

static void connects_time_out_full(void)
{
	gather(CROWD);
	world_sleep(1100);
	EXPECT(answered(CROWD) == CROWD && world_status(crowd[CROWD - 1], 0) == 504);
	EXPECT(world_count_cause(CAUSE_CONNECT_TIMEOUT) == CROWD);
}

/* Clients leave while they stand in the queue: from its start, its middle and its end. */
static void clients_leave_queue(void)
{
	struct peer *o;
	unsigned left = 0;

	gather(CROWD);
	for (unsigned i = POOL_CONNECTING_MAX; i < CROWD; i += 2, left++)
		peer_rst(crowd[i]);
	peer_rst(crowd[0]);
	left++;
	world_settle();
	EXPECT(world_count_cause(CAUSE_CLIENT_LEFT) == left);
	for (unsigned i = 0; i < POOL_CONNECTING_MAX; i++)
		EXPECT(peer_open(world_up(i)));	/* connects go on */
	o = world_up(0);
	peer_up(o);
	world_settle();
	EXPECT(!world_got(o, "GET /0 ") && !world_got(o, "GET /64 ") && world_got(o, "GET /65 "));
	for (unsigned i = 0; i < CROWD; i++)
		world_say(o, OK2);
	EXPECT(answered(CROWD) == CROWD - left);
}

static void all_leave_queue(void)
{
	gather(CROWD);
	for (unsigned i = 0; i < CROWD; i++)
		peer_rst(crowd[i]);
	world_settle();
	EXPECT(world.w->exchanges.live == 0);
	for (unsigned i = 0; i < POOL_CONNECTING_MAX; i++) {
		peer_up(world_up(i));
		EXPECT(peer_got(world_up(i)).n == 0);
	}
	world_settle();
	EXPECT(world.w->upstreams.live == POOL_CONNECTING_MAX);	/* kept */
}

/* queue: 1KiB is 128 pointers a queue. */
static void queue_is_full(void)
{
	static struct peer *more[200];
	unsigned refused = 0;

	gather(POOL_CONNECTING_MAX);
	for (unsigned i = 0; i < 200; i++) {
		more[i] = world_client();
		world_say(more[i], "GET /more HTTP/1.1\r\nHost: a.example\r\n\r\n");
		if (world_status(more[i], 0)) {
			EXPECT(world_status(more[i], 0) == 503 && world_got(more[i], "connection_limit_reached"));
			refused++;
		}
	}
	EXPECT(refused == 200 - 127 && world_count_cause(CAUSE_QUEUE_FULL) == refused);
	EXPECT(world_status(more[126], 0) == 0 && world_status(more[127], 0) == 503);
	/* there is room again when one has left */
	peer_rst(more[5]);
	world_settle();
	world_say(more[150], "GET /again HTTP/1.1\r\nHost: a.example\r\n\r\n");
	EXPECT(world_status(more[150], 1) == 0);
}

static void one_connection(void)
{
	struct peer *o;

	gather(20);
	EXPECT(net.connects_n == 1);
	o = world_up(0);
	peer_up(o);
	world_settle();
	for (unsigned i = 0; i < 20; i++) {
		EXPECT(world_requests(o) == i + 1);
		world_say(o, OK2);
		EXPECT(world_status(crowd[i], 0) == 200);	/* in the order in which they came */
	}
	EXPECT(net.connects_n == 1);
}

static void queue_timeout(void)
{
	gather(3);
	peer_up(world_up(0));
	world_sleep(900);
	EXPECT(answered(3) == 0);
	world_sleep(200);
	EXPECT(answered(3) == 2 && world_status(crowd[1], 0) == 503 && world_got(crowd[2], "connection_limit_reached"));
	world_say(world_up(0), OK2);
	EXPECT(world_status(crowd[0], 0) == 200);
}

/* The one connection dies while others wait for it: they get a new one. */
static void only_connection_dies(void)
{
	gather(3);
	peer_up(world_up(0));
	world_settle();
	peer_rst(world_up(0));
	world_settle();
	EXPECT(world_status(crowd[0], 0) == 502 && net.connects_n == 2);
	peer_up(world_up(1));
	world_settle();
	EXPECT(world_got(world_up(1), "GET /1 "));
	world_say(world_up(1), OK2);
	world_say(world_up(1), OK2);
	EXPECT(world_status(crowd[1], 0) == 200 && world_status(crowd[2], 0) == 200);
}

/* A request that died with a kept connection waits for a fresh one and must not get a kept one again. */
static void retry_waits_for_fresh(void)
{
	struct peer *c = world_client(), *d = world_client();

	world_say(c, "GET /a HTTP/1.1\r\nHost: a.example\r\n\r\n");
	world_say(d, "GET /b HTTP/1.1\r\nHost: a.example\r\n\r\n");
	world_say(world_up(0), OK2);
	world_say(world_up(1), OK2);
	net.connects = CONNECT_WAIT;
	world_say(c, "GET /c HTTP/1.1\r\nHost: a.example\r\n\r\n");
	EXPECT(world_got(world_up(1), "GET /c "));
	peer_rst(world_up(1));
	world_settle();
	EXPECT(net.connects_n == 3 && !world_got(world_up(0), "GET /c "));
	peer_up(world_up(2));
	world_settle();
	EXPECT(world_got(world_up(2), "GET /c "));
	world_say(world_up(2), OK2);
	EXPECT(world_status(c, 1) == 200);
}

/* A body comes in while its request is queued: it waits in the socket. */
static void body_while_queued(void)
{
	static char body[300000];
	struct peer *c = world_client();

	net.connects = CONNECT_WAIT;
	memset(body, 'q', sizeof body);
	world_say(c, "POST /a HTTP/1.1\r\nHost: a.example\r\nContent-Length: 300000\r\n\r\n");
	peer_send(c, (struct str){ body, sizeof body });
	world_settle();
	EXPECT(world.w->budget.used < 200 * 1024);
	peer_up(world_up(0));
	world_settle();
	EXPECT(world_requests(world_up(0)) == 1);
	world_say(world_up(0), OK2);
	EXPECT(world_status(c, 0) == 200);
}

#define CONF_ONE CONF_PLAIN CONF_TIMES "routes: [{service: one}]\nservices: {one: {endpoints: [127.0.0.1:9001], max_connections: 1}}\n"
#define CONF_QUEUE CONF_DEFAULT "limits: {queue: 1KiB}\n"

const struct story stories_queue[] = {
	{ "revoked-by-another", NULL, revoked_by_another },
	{ "full-queue-comes-up", NULL, full_queue_comes_up },
	{ "connect-fails-full", NULL, connect_fails_full },
	{ "connects-time-out-full", NULL, connects_time_out_full },
	{ "clients-leave-queue", NULL, clients_leave_queue },
	{ "all-leave-queue", NULL, all_leave_queue },
	{ "queue-is-full", CONF_QUEUE, queue_is_full },
	{ "one-connection", CONF_ONE, one_connection },
	{ "queue-timeout", CONF_ONE, queue_timeout },
	{ "only-connection-dies", CONF_ONE, only_connection_dies },
	{ "retry-waits-for-fresh", NULL, retry_waits_for_fresh },
	{ "body-while-queued", NULL, body_while_queued },
	{ NULL, NULL, NULL },
};
