/* stories_again: a route says what is tried again, and an answer that is not good enough is kept until there is a better one. */
#include <stdio.h>

#include "lib/base/check.h"
#include "tests/sim/world.h"

#define OK2 "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
#define BUSY "HTTP/1.1 503 Busy\r\nX-Who: me\r\nContent-Length: 4\r\n\r\nbusy"
#define GET "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n"

#define CONF_AGAIN(retry) CONF_PLAIN CONF_TIMES "routes: [{service: two, retry: " retry "}]\n" \
	"services: {two: ['127.0.0.1:9001', '127.0.0.1:9002']}\n"
#define CONF_ONE(retry) CONF_PLAIN CONF_TIMES "routes: [{service: one, retry: " retry "}]\n" \
	"services: {one: ['127.0.0.1:9001']}\n"
#define STATUS "{attempts: 2, on: [connect, reset, 503], backoff: {base: 100ms, max: 100ms}}"

/* Longer than any pause. */
static void pause_over(void)
{
	world_sleep(130);
}

static void replaced(void)
{
	struct peer *c = world_client();

	world_say(c, GET);
	world_say(world_up(0), BUSY);
	EXPECT(net.connects_n == 1 && world_status(c, 0) == 0);
	EXPECT(peer_open(world_up(0)));
	pause_over();
	EXPECT(net.connects_n == 2 && world_up(1)->port != world_up(0)->port);
	world_say(world_up(1), OK2);
	EXPECT(world_status(c, 0) == 200 && !world_got(c, "busy"));
	EXPECT(peer_open(world_up(0)));
}

static void handed_through(void)
{
	struct peer *c = world_client();

	world_say(c, GET);
	peer_send(world_up(0), STR(BUSY));
	peer_fin(world_up(0));
	world_settle();
	net.connects = CONNECT_REFUSED;
	pause_over();
	pause_over();
	EXPECT(world_status(c, 0) == 503 && world_got(c, "X-Who: me") && world_got(c, "busy"));
	net.connects = CONNECT_UP;
	world_say(c, GET);	/* on the same connection */
	EXPECT(peer_open(c));
}

static void client_goes_in_the_pause(void)
{
	struct peer *c = world_client();

	world_say(c, GET);
	world_say(world_up(0), BUSY);
	peer_rst(c);
	world_settle();
	pause_over();
	EXPECT(net.connects_n == 1 && !peer_open(c));
	EXPECT(world_count_cause(CAUSE_CLIENT_LEFT) == 1);
}

/* Its side ends, but it reads. */
static void client_ends_its_side_in_the_pause(void)
{
	struct peer *c = world_client();

	world_say(c, GET);
	world_say(world_up(0), BUSY);
	peer_fin(c);
	world_settle();
	pause_over();
	world_say(world_up(1), OK2);
	EXPECT(world_status(c, 0) == 200);
}

static void next_request_waits_in_the_pause(void)
{
	struct peer *c = world_client();

	world_say(c, GET GET);
	world_say(world_up(0), BUSY);
	pause_over();
	world_say(world_up(1), OK2);
	EXPECT(world_status(c, 0) == 200);
	for (unsigned i = 0; i < 2; i++)
		if (world_requests(world_up(i)) == 2)
			world_say(world_up(i), OK2);
	EXPECT(world_status(c, 1) == 200);
}

/* The kept answer breaks off: it is none, and the next one counts. */
static void breaks_off(void)
{
	struct peer *c = world_client();

	world_say(c, GET);
	world_say(world_up(0), "HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbu");
	peer_rst(world_up(0));
	world_settle();
	pause_over();
	world_say(world_up(1), OK2);
	EXPECT(world_status(c, 0) == 200 && world_count_cause(CAUSE_UPSTREAM_CLOSED) == 0);
}

/* It stops in the middle: the try has its time, and no more. */
static void stalls(void)
{
	struct peer *c = world_client();

	world_say(c, GET);
	world_say(world_up(0), "HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbu");
	world_sleep(1500);
	EXPECT(net.connects_n == 1);
	world_sleep(1000);
	EXPECT(net.connects_n == 2 && !peer_open(world_up(0)));
	world_say(world_up(1), OK2);
	EXPECT(world_status(c, 0) == 200);
}

static void stalls_to_the_end(void)
{
	struct peer *c = world_client();

	world_say(c, GET);
	world_say(world_up(0), "HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbu");
	world_sleep(5900);
	EXPECT(world_status(c, 0) == 0);
	world_sleep(200);
	EXPECT(world_status(c, 0) == 504 && net.connects_n == 1);
}

/* Too long to be kept: all of it, in order, to a client that takes little. */
static void too_long(void)
{
	static char body[100000];
	struct peer *c = world_client(), *o;
	struct message m;

	memset(body, 'b', sizeof body);
	for (unsigned i = 0; i < sizeof body; i += 100)
		snprintf(body + i, 8, "%07u", i);
	peer_room(c, 1000);
	world_say(c, GET);
	o = world_up(0);
	world_say(o, "HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\n\r\n186a0\r\n");
	for (unsigned i = 0; i < sizeof body; i += 10000) {
		peer_send(o, (struct str){ body + i, 10000 });
		world_settle();
	}
	world_say(o, "\r\n0\r\n\r\n");
	peer_room(c, SIZE_MAX);
	peer_nudge(c);
	world_settle();
	EXPECT(net.connects_n == 1 && world_status(c, 0) == 503);
	world_answer(c, 0, STR("GET"), &m);
	EXPECT(m.state == MESSAGE_WHOLE && m.body.n == sizeof body && memcmp(m.body.p, body, sizeof body) == 0);
	message_free(&m);
}

/* A 100 in the same read goes to the client and not to the next endpoint; the body goes there, whole. */
static void continued(void)
{
	struct peer *c = world_client(), *o;

	world_say(c, "PUT / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
	world_say(world_up(0), "HTTP/1.1 100 Continue\r\n\r\n" BUSY);
	EXPECT(world_got(c, "100 Continue"));
	world_say(c, "body");
	pause_over();
	o = world_up(1);
	EXPECT(world_requests(o) == 1 && world_got(o, "\r\n\r\nbody") && !world_got(o, "Continue"));
	world_say(o, OK2);
	EXPECT(world_status(c, 0) == 200);
}

/* The answer comes before the body has: that connection is not used again, and the next endpoint gets all of it. */
static void early(void)
{
	struct peer *c = world_client();

	world_say(c, "PUT / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 8\r\n\r\nfour");
	world_say(world_up(0), BUSY);
	EXPECT(!peer_open(world_up(0)));
	world_say(c, "more");
	pause_over();
	EXPECT(world_requests(world_up(1)) == 1 && world_got(world_up(1), "\r\n\r\nfourmore"));
	world_say(world_up(1), OK2);
	EXPECT(world_status(c, 0) == 200);
}

/* A part of a head is forgotten with its connection. */
static void half_a_head(void)
{
	struct peer *c = world_client();

	world_say(c, GET);
	world_say(world_up(0), "HTTP/1.1 200 OK\r\nX-Old: 1\r\nContent-Le");
	peer_rst(world_up(0));
	world_settle();
	world_say(world_up(1), OK2);
	EXPECT(world_status(c, 0) == 200 && !world_got(c, "X-Old"));
}

/* What the client has got of an answer ends it. */
static void hinted(void)
{
	struct peer *c = world_client();

	world_say(c, GET);
	world_say(world_up(0), "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n");
	world_say(world_up(0), BUSY);
	EXPECT(world_status(c, 0) == 503 && net.connects_n == 1);
}

static void same_again(void)
{
	struct peer *c = world_client();

	world_say(c, GET);
	world_say(world_up(0), BUSY);
	pause_over();
	EXPECT(net.connects_n == 1 && world_requests(world_up(0)) == 2);
	world_say(world_up(0), "HTTP/1.1 503 Busy\r\nX-Who: last\r\nContent-Length: 0\r\n\r\n");
	pause_over();
	world_say(world_up(0), "HTTP/1.1 503 Busy\r\nX-Who: very last\r\nRetry-After: 9\r\nContent-Length: 2\r\n\r\nno");
	EXPECT(world_status(c, 0) == 503 && world_got(c, "very last") && !world_got(c, "X-Who: last"));
}

/* Its only endpoint refuses, waits, and is there at last. */
static void connects_at_last(void)
{
	struct peer *c = world_client();

	net.connects = CONNECT_FAIL;
	world_say(c, "POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 3\r\n\r\nabc");
	EXPECT(net.connects_n == 0 && world_status(c, 0) == 0);
	net.connects = CONNECT_REFUSED;
	pause_over();
	EXPECT(net.connects_n == 1 && world_status(c, 0) == 0);
	net.connects = CONNECT_UP;
	pause_over();
	EXPECT(world_got(world_up(1), "\r\n\r\nabc"));
	world_say(world_up(1), OK2);
	EXPECT(world_status(c, 0) == 200);
}

static void in_time(void)
{
	struct peer *c = world_client();

	world_say(c, GET);
	world_sleep(900);
	EXPECT(net.connects_n == 1);
	world_sleep(200);
	EXPECT(net.connects_n == 2 && !peer_open(world_up(0)));
	world_say(world_up(1), OK2);
	EXPECT(world_status(c, 0) == 200);
}

/* All the time for all tries is six seconds, less than seven tries of a second would take. */
static void never_in_time(void)
{
	struct peer *c = world_client();

	world_say(c, GET);
	world_sleep(5500);
	EXPECT(world_status(c, 0) == 0);
	world_sleep(1500);
	EXPECT(world_status(c, 0) == 504 && net.connects_n >= 5 && net.connects_n <= 7);
}

/* Nothing goes to a drained worker's next turn: who pauses is served before it ends. */
static void drained_in_the_pause(void)
{
	struct peer *c = world_client();

	world_say(c, GET);
	world_say(world_up(0), BUSY);
	worker_tell(world.w, WORKER_DRAIN);
	world_settle();
	pause_over();
	world_say(world_up(1), OK2);
	EXPECT(world_status(c, 0) == 200 && !peer_open(c));
}

static void cut_in_the_pause(void)
{
	struct peer *c = world_client();

	world_say(c, GET);
	world_say(world_up(0), BUSY);
	worker_tell(world.w, WORKER_DRAIN);
	worker_tell(world.w, WORKER_CUT);
	world_settle();
	EXPECT(!peer_open(c) && world_count_cause(CAUSE_DRAINED) == 1);
}

#define TIMED "{attempts: 9, on: [timeout], per_try_timeout: 1s, backoff: {base: 1ms, max: 1ms}}"

const struct story stories_again[] = {
	{ "again-replaced", CONF_AGAIN(STATUS), replaced },
	{ "again-handed-through", CONF_AGAIN(STATUS), handed_through },
	{ "again-client-goes", CONF_AGAIN(STATUS), client_goes_in_the_pause },
	{ "again-client-ends-its-side", CONF_AGAIN(STATUS), client_ends_its_side_in_the_pause },
	{ "again-next-request", CONF_AGAIN(STATUS), next_request_waits_in_the_pause },
	{ "again-breaks-off", CONF_AGAIN(STATUS), breaks_off },
	{ "again-stalls", CONF_AGAIN("{on: [503], per_try_timeout: 2s, backoff: {base: 1ms, max: 1ms}}"), stalls },
	{ "again-stalls-to-the-end", CONF_AGAIN("{on: [503], backoff: {base: 1ms, max: 1ms}}"), stalls_to_the_end },
	{ "again-too-long", CONF_AGAIN(STATUS), too_long },
	{ "again-continued", CONF_AGAIN(STATUS), continued },
	{ "again-early", CONF_AGAIN(STATUS), early },
	{ "again-half-a-head", CONF_AGAIN(STATUS), half_a_head },
	{ "again-hinted", CONF_AGAIN(STATUS), hinted },
	{ "again-same", CONF_ONE(STATUS), same_again },
	{ "again-connects-at-last", CONF_ONE(STATUS), connects_at_last },
	{ "again-in-time", CONF_AGAIN(TIMED), in_time },
	{ "again-never-in-time", CONF_AGAIN(TIMED), never_in_time },
	{ "again-drained", CONF_AGAIN(STATUS), drained_in_the_pause },
	{ "again-cut", CONF_AGAIN(STATUS), cut_in_the_pause },
	{ NULL, NULL, NULL },
};
