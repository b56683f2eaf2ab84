/* stories_slots: limits of endpoints, and what happens while exchanges wait for their service.
 * That no slot is left behind is checked after every story, when the endpoints go. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "dispatch/slot.h"
#include "lib/base/check.h"
#include "proxy/slots.h"
#include "tests/sim/world.h"

#define OK2 "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
#define CLOSE2 "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"

static struct peer *ask(const char *method, const char *path)
{
	struct peer *c = world_client();
	char text[256];

	snprintf(text, sizeof text, "%s %s HTTP/1.1\r\nHost: a.example\r\nContent-Length: 0\r\n\r\n", method, path);
	world_say(c, text);
	return c;
}

static const struct service *waited_for(void)
{
	return world.w->pending ? world.w->pending->service : NULL;
}

/* Requests, waiting or not, at the i-th endpoint of the service that is waited for. */
static uint32_t load(uint32_t i)
{
	const struct service *s = waited_for();

	return s ? slot_load(service_set(s)->at[i].endpoint) : 0;
}

static void one_at_a_time(void)
{
	struct peer *c[5];

	for (unsigned i = 0; i < 5; i++)
		c[i] = ask("GET", i % 2 ? "/odd" : "/even");
	EXPECT(net.connects_n == 1 && load(0) == 1 && slotq_len(&world.w->pending->queue) == 4);
	for (unsigned i = 0; i < 5; i++) {
		EXPECT(world_requests(world_up(0)) == i + 1);
		world_say(world_up(0), OK2);
		EXPECT(world_status(c[i], 0) == 200);
	}
	EXPECT(net.connects_n == 1 && !world.w->pending);
}

/* A connect counts; a client that leaves meanwhile gives its slot to the next, and the connection too. */
static void connecting_counts(void)
{
	struct peer *a, *b;

	net.connects = CONNECT_WAIT;
	a = ask("GET", "/a");
	b = ask("GET", "/b");
	EXPECT(net.connects_n == 1 && load(0) == 1);
	peer_rst(a);
	world_settle();
	EXPECT(!world.w->pending && net.connects_n == 2);
	peer_up(world_up(0));
	world_settle();
	EXPECT(world_got(world_up(0), "GET /b "));
	world_say(world_up(0), OK2);
	EXPECT(world_status(b, 0) == 200);
}

/* The answer is here, the client reads on: the next has its slot. */
static void slow_reader(void)
{
	static const char said[] = "HTTP/1.1 200 OK\r\nContent-Length: 6000\r\n\r\n";
	static char text[6100];
	struct peer *a = world_client(), *b;
	size_t head = sizeof said - 1;

	peer_room(a, 100);
	world_say(a, "GET /a HTTP/1.1\r\nHost: a.example\r\n\r\n");
	b = ask("GET", "/b");
	EXPECT(!world_got(world_up(0), "GET /b "));
	memcpy(text, said, head);
	memset(text + head, 'x', 6000);
	peer_send(world_up(0), (struct str){ text, head + 6000 });
	world_settle();
	EXPECT(world_got(world_up(0), "GET /b ") && peer_got(a).n == 100);
	world_say(world_up(0), OK2);
	EXPECT(world_status(b, 0) == 200);
	peer_room(a, SIZE_MAX);
	world_settle();
	EXPECT(world_status(a, 0) == 200 && world.w->exchanges.live == 0);
}

static void a_reset_comes_with_the_request(void)
{
	struct peer *a = ask("GET", "/a"), *b = world_client();

	peer_send(b, STR("GET /b HTTP/1.1\r\nHost: a.example\r\n\r\n"));
	peer_rst(b);
	world_settle();
	EXPECT(world.w->exchanges.live <= 1);
	world_say(world_up(0), OK2);
	EXPECT(world_status(a, 0) == 200 && !world_got(world_up(0), "GET /b "));
}

/* The same behind a connect. */
static void a_reset_comes_while_connecting(void)
{
	struct peer *b = world_client();

	net.connects = CONNECT_WAIT;
	peer_send(b, STR("GET /b HTTP/1.1\r\nHost: a.example\r\n\r\n"));
	peer_rst(b);
	world_settle();
	EXPECT(world.w->exchanges.live == 0);
}

static void any_endpoint_that_is_free(void)
{
	struct peer *c[6], *first, *second;

	for (unsigned i = 0; i < 6; i++)
		c[i] = ask("GET", "/x");
	EXPECT(net.connects_n == 2 && load(0) == 1 && load(1) == 1);
	first = world_up(0);
	second = world_up(1);
	for (unsigned i = 0; i < 4; i++)
		world_say(second, OK2);
	EXPECT(world_requests(second) == 5 && world_requests(first) == 1);
	EXPECT(world_got(second, second && second->port == 9003 ? "Host: 127.0.0.1:9003\r\n" : "Host: 127.0.0.1:9004\r\n"));
	EXPECT(!world_got(second, second && second->port == 9003 ? "Host: 127.0.0.1:9004\r\n" : "Host: 127.0.0.1:9003\r\n"));
	world_say(second, OK2);
	world_say(first, OK2);
	for (unsigned i = 0; i < 6; i++)
		EXPECT(world_status(c[i], 0) == 200);
}

/* Its kept connection dies under it: it waits again, and in front. */
static void sent_again_goes_first(void)
{
	struct peer *a = ask("GET", "/0"), *b, *d;

	world_say(world_up(0), OK2);
	world_say(a, "GET /1 HTTP/1.1\r\nHost: a.example\r\n\r\n");
	b = ask("GET", "/2");
	d = ask("GET", "/3");
	peer_rst(world_up(0));
	world_settle();
	EXPECT(net.connects_n == 2 && world_got(world_up(1), "GET /1 "));
	world_say(world_up(1), OK2);
	world_say(world_up(1), OK2);
	world_say(world_up(1), OK2);
	EXPECT(world_status(a, 1) == 200 && world_status(b, 0) == 200 && world_status(d, 0) == 200);
	EXPECT(world_count_cause(CAUSE_CLIENT_LEFT) == 0);
}

static void replace(const struct service_endpoint_spec *e, uint32_t n)
{
	struct service *s = (struct service *)(uintptr_t)waited_for();
	struct endpoint_set *set;

	if (!s)
		return;		/* memory failed */
	set = endpoint_set_new(world.endpoints, e, n);
	if (!set)
		return;
	endpoint_set_free(service_swap(s, set));
	slots_look_anew(world.w);
	world_settle();
}

/* The service consists of another endpoint: who waits goes there. */
static void another_set_serves(void)
{
	struct service_endpoint_spec e = { .address = { .family = ENDPOINT_IP4, .port = 9002, .ip = { 127, 0, 0, 1 } }, .weight = 1 };
	struct peer *a = ask("GET", "/a"), *b = ask("GET", "/b"), *d = ask("GET", "/d");

	replace(&e, 1);
	EXPECT(net.connects_n == 2 && world_up(1)->port == 9002 && world_got(world_up(1), "GET /b "));
	world_say(world_up(0), OK2);
	EXPECT(world_status(a, 0) == 200 && load(0) == 1);
	world_say(world_up(1), OK2);
	world_say(world_up(1), OK2);
	EXPECT(world_status(b, 0) == 200 && world_status(d, 0) == 200);
}

/* Of none: nobody waits for ever. */
static void an_empty_set_is_told(void)
{
	struct peer *a = ask("GET", "/a"), *b = ask("GET", "/b"), *d = ask("GET", "/d");

	replace(NULL, 0);
	EXPECT(world_status(b, 0) == 503 && world_status(d, 0) == 503 && world_got(b, "destination_unavailable"));
	world_say(world_up(0), OK2);
	EXPECT(world_status(a, 0) == 200 && !world.w->pending);
}

static void bounded_in_bytes(void)
{
	struct peer *c[12], *large;
	static char text[20100];
	unsigned refused = 0;

	c[0] = ask("GET", "/0");
	for (unsigned i = 1; i < 12; i++) {
		c[i] = ask("GET", "/n");
		refused += world_status(c[i], 0) == 503;
	}
	/* 1536 bytes each at least, and 8 KiB in all */
	EXPECT(refused >= 6 && refused < 11 && world_count_cause(CAUSE_QUEUE_FULL) == refused);
	EXPECT(!world.w->pending || world.w->pending->bytes <= 8192);
	for (unsigned i = 0; i <= 11 - refused; i++)
		world_say(world_up(0), OK2);
	EXPECT(!world.w->pending);
	/* who finds nobody waiting may wait, however large */
	c[0] = ask("GET", "/1");
	large = world_client();
	snprintf(text, sizeof text, "GET /large HTTP/1.1\r\nHost: a.example\r\nX: %020000d\r\n\r\n", 7);
	world_say(large, text);
	EXPECT(world_status(large, 0) == 0 && world.w->pending && world.w->pending->bytes > 20000);
	c[1] = ask("GET", "/2");
	EXPECT(world_status(c[1], 0) == 503);
	world_say(world_up(0), OK2);
	world_say(world_up(0), OK2);
	EXPECT(world_status(large, 0) == 200);
}

static void a_wait_ends(void)
{
	struct peer *a = ask("GET", "/a"), *b = ask("GET", "/b");

	world_sleep(900);
	EXPECT(world_status(b, 0) == 0);
	world_sleep(200);
	EXPECT(world_status(b, 0) == 503 && world_count_cause(CAUSE_QUEUE_TIMEOUT) == 1 && !world.w->pending);
	world_say(world_up(0), OK2);
	EXPECT(world_status(a, 0) == 200);
}

/* Those that wait hear of endpoints that fail, and of nothing else in vain. */
static void endpoint_fails(void)
{
	struct peer *c[4];

	net.connects = CONNECT_WAIT;
	for (unsigned i = 0; i < 4; i++)
		c[i] = ask("GET", "/x");
	EXPECT(net.connects_n == 1);
	net.connects = CONNECT_REFUSED;
	peer_refuse(world_up(0), ECONNREFUSED);
	world_settle();
	for (unsigned i = 0; i < 4; i++)
		EXPECT(world_status(c[i], 0) == 502);
	EXPECT(!world.w->pending && net.connects_n == 4);
}

/* One of two is down, the other is full: who waits does so until one has room, or is up again. */
static void one_comes_up(void)
{
	struct peer *a, *b, *d;

	net.connects = CONNECT_WAIT;
	a = ask("GET", "/a");
	peer_refuse(world_up(0), ECONNREFUSED);		/* that one is down, and the other has it */
	world_settle();
	EXPECT(net.connects_n == 2);
	peer_up(world_up(1));
	world_sleep(500);
	b = ask("GET", "/b");
	d = ask("GET", "/d");
	EXPECT(net.connects_n == 2 && world.w->pending);
	net.connects = CONNECT_UP;
	world_sleep(600);		/* the first may be tried again */
	EXPECT(net.connects_n == 3 && world_got(world_up(2), "GET /b "));
	world_say(world_up(1), OK2);
	world_say(world_up(1), OK2);
	world_say(world_up(2), OK2);
	EXPECT(world_status(a, 0) == 200 && world_status(b, 0) == 200 && world_status(d, 0) == 200);
}

/* Not kept, since others wait and it closes: each its own connection, one at a time. */
static void connections_that_close(void)
{
	struct peer *c[4];

	for (unsigned i = 0; i < 4; i++)
		c[i] = ask("POST", "/x");
	for (unsigned i = 0; i < 4; i++) {
		EXPECT(net.connects_n == i + 1);
		world_say(world_up(i), CLOSE2);
		EXPECT(world_status(c[i], 0) == 200);
	}
}

#define SERVICE(text) CONF_PLAIN CONF_TIMES "routes: [{service: s}]\nservices: {s: " text "}\n"
#define ONE SERVICE("{endpoints: [127.0.0.1:9001], max_requests: 1}")
#define TWO SERVICE("{endpoints: [127.0.0.1:9003, 127.0.0.1:9004], max_requests: 1, host: endpoint}")

const struct story stories_slots[] = {
	{ "slots-one-at-a-time", ONE, one_at_a_time },
	{ "slots-connecting-counts", ONE, connecting_counts },
	{ "slots-slow-reader", ONE, slow_reader },
	{ "slots-reset-with-request", ONE, a_reset_comes_with_the_request },
	{ "slots-reset-while-connecting", NULL, a_reset_comes_while_connecting },
	{ "slots-any-endpoint", TWO, any_endpoint_that_is_free },
	{ "slots-sent-again", ONE, sent_again_goes_first },
	{ "slots-another-set", ONE, another_set_serves },
	{ "slots-empty-set", ONE, an_empty_set_is_told },
	{ "slots-bytes", ONE "limits: {waiting: 8KiB}\n", bounded_in_bytes },
	{ "slots-time", ONE, a_wait_ends },
	{ "slots-endpoint-fails", ONE, endpoint_fails },
	{ "slots-one-comes-up", TWO, one_comes_up },
	{ "slots-connections", SERVICE("{endpoints: [127.0.0.1:9001], max_connections: 1}"), connections_that_close },
	{ "slots-both", SERVICE("{endpoints: [127.0.0.1:9001], max_connections: 1, max_requests: 1}"), one_at_a_time },
	{ NULL, NULL, NULL },
};
