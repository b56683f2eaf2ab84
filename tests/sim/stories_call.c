/* stories_call: requests of our own, without a client: what their owner hears, and that it hears it once. */
#include <errno.h>
#include <stdio.h>

#include "dispatch/snapshot.h"
#include "lib/base/check.h"
#include "proxy/call.h"
#include "tests/sim/world.h"

#define OK2 "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
#define EMPTY "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"

static struct {
	unsigned times;		/* that an owner was told of an end */
	unsigned cause, status;
	bool kept_all;
	char body[64], type[64];
} heard;

static void copy(char *to, struct str s)
{
	s.n = s.n < 63 ? s.n : 63;
	if (s.n)
		memcpy(to, s.p, s.n);
	to[s.n] = '\0';
}

static void told(struct call *c, void *owner)
{
	const struct field *f = head_find_id(&c->answer, FIELD_CONTENT_TYPE);

	CHECK(owner == &heard && c->state == CALL_ENDED);
	heard.times++;
	heard.cause = c->cause;
	heard.status = c->answer.status;
	heard.kept_all = c->kept_all;
	copy(heard.body, buf_str(c->got));
	copy(heard.type, f ? field_value(f) : (struct str){0});
}

static struct service *service(const char *name)
{
	size_t n;
	struct service *const *all = snapshot_services(world.snapshot, &n);

	for (size_t i = 0; i < n; i++)
		if (str_eq(service_name(all[i]), str_of(name)))
			return all[i];
	CHECK(false);
}

static struct call *made(const char *name, const char *method, bool hasty)
{
	struct field field = { .name = "X-One", .name_len = 5, .value = "1", .value_len = 1 };
	struct head h = {
		.method = str_of(method), .method_id = (uint8_t)method_of(str_of(method)), .target = STR("/ask?x"), .path = STR("/ask"),
		.authority = STR("a.example"), .field = &field, .n_fields = 1, .max_fields = 1, .minor = 1,
	};
	struct call_spec spec = {
		.service = service(name), .head = &h, .timeout_ms = 10000, .keep = 32, .hasty = hasty, .done = told, .owner = &heard,
	};
	enum cause cause;
	struct call *c = call_new(world.w, &spec, &cause);

	EXPECT(c);
	return c;
}

static void start(struct call *c)
{
	call_start(c);
	worker_turn(world.w);	/* which nothing has woken */
	world_settle();
}

static struct call *ask(const char *name, const char *method)
{
	struct call *c = made(name, method, false);

	if (c)
		start(c);
	return c;
}

static void begin(void)
{
	memset(&heard, 0, sizeof heard);
}

static void is_answered(void)
{
	struct peer *o;

	begin();
	ask("origin", "GET");
	o = world_up(0);
	EXPECT(world_requests(o) == 1 && world_got(o, "GET /ask?x HTTP/1.1\r\nHost: a.example\r\nX-One: 1\r\n\r\n"));
	world_say(o, "HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nContent-Length: 2\r\n\r\no");
	EXPECT(heard.times == 0);
	world_say(o, "k");
	EXPECT(heard.times == 1 && heard.cause == CAUSE_NONE && heard.status == 200);
	EXPECT(strcmp(heard.body, "ok") == 0 && strcmp(heard.type, "a/b") == 0);
	ask("origin", "GET");
	EXPECT(net.connects_n == 1 && world_requests(o) == 2);	/* the same connection again */
	world_say(o, "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
	EXPECT(heard.times == 2 && heard.status == 403 && heard.body[0] == '\0' && heard.kept_all);
	EXPECT(world.w->counters.calls == 2 && peer_open(o));
}

/* Its connection serves exchanges, and theirs serves it. */
static void shares_the_pool(void)
{
	struct peer *c = world_client(), *o;

	begin();
	world_say(c, "GET /a HTTP/1.1\r\nHost: a.example\r\n\r\n");
	o = world_up(0);
	world_say(o, OK2);
	ask("origin", "GET");
	world_say(o, OK2);
	world_say(c, "GET /b HTTP/1.1\r\nHost: a.example\r\n\r\n");
	world_say(o, OK2);
	EXPECT(net.connects_n == 1 && world_requests(o) == 3 && heard.times == 1 && world_status(c, 1) == 200);
}

static void drips(void)
{
	const char *text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\nX-T: 1\r\n\r\n";
	struct peer *o;

	begin();
	net.connects = CONNECT_WAIT;
	ask("origin", "GET");
	o = world_up(0);
	peer_room(o, 0);
	peer_up(o);
	world_settle();
	for (int i = 0; i < 100; i++) {
		peer_room(o, 1);
		world_settle();
	}
	EXPECT(world_requests(o) == 1);
	for (; *text; text++) {
		EXPECT(heard.times == 0);
		peer_send(o, (struct str){ text, 1 });
		world_settle();
	}
	EXPECT(heard.times == 1 && heard.cause == CAUSE_NONE && strcmp(heard.body, "abc") == 0 && peer_open(o));
}

static void until_close(void)
{
	struct peer *o;

	begin();
	ask("origin", "GET");
	o = world_up(0);
	world_say(o, "HTTP/1.0 401 No\r\n\r\nno");
	EXPECT(heard.times == 0);
	peer_fin(o);
	world_settle();
	EXPECT(heard.times == 1 && heard.status == 401 && strcmp(heard.body, "no") == 0 && !peer_open(o));
}

static void other_endpoint(void)
{
	begin();
	net.connects = CONNECT_REFUSED;
	ask("pair", "POST");
	EXPECT(heard.times == 1 && heard.cause == CAUSE_CONNECT_REFUSED && net.connects_n == 2);
	net.connects = CONNECT_FAIL;
	ask("pair", "GET");
	EXPECT(heard.times == 2 && heard.cause == CAUSE_CONNECT_FAILED);
	net.connects = CONNECT_WAIT;
	ask("named", "GET");
	peer_refuse(world_up(2), ECONNREFUSED);
	world_settle();
	net.connects = CONNECT_UP;
	peer_up(world_up(3));
	world_settle();
	EXPECT(world_requests(world_up(3)) == 1 && world_got(world_up(3), "\r\nHost: 127.0.0.1:900"));
	world_say(world_up(3), OK2);
	EXPECT(heard.times == 3 && heard.cause == CAUSE_NONE);
}

static void no_endpoint(void)
{
	begin();
	ask("none", "GET");
	EXPECT(heard.times == 1 && heard.cause == CAUSE_NO_ENDPOINT);
}

static void kept_dies(void)
{
	begin();
	ask("origin", "GET");
	world_say(world_up(0), OK2);
	ask("origin", "GET");
	peer_rst(world_up(0));
	world_settle();
	EXPECT(net.connects_n == 2 && world_requests(world_up(1)) == 1 && heard.times == 1);
	peer_fin(world_up(1));	/* once is enough */
	world_settle();
	EXPECT(heard.times == 2 && heard.cause == CAUSE_UPSTREAM_CLOSED && net.connects_n == 2);
	ask("origin", "GET");
	world_say(world_up(2), OK2);
	ask("origin", "POST");
	peer_rst(world_up(2));
	world_settle();
	EXPECT(heard.times == 4 && heard.cause == CAUSE_UPSTREAM_CLOSED && net.connects_n == 3);
}

/* A fresh connection that dies unanswered: another endpoint, if there is one. */
static void fresh_dies(void)
{
	begin();
	ask("pair", "GET");
	peer_rst(world_up(0));
	world_settle();
	EXPECT(heard.times == 0 && net.connects_n == 2 && world_requests(world_up(1)) == 1);
	world_say(world_up(1), "HTTP/1.1 2");	/* from here on nothing is sent again */
	peer_rst(world_up(1));
	world_settle();
	EXPECT(heard.times == 1 && heard.cause == CAUSE_UPSTREAM_CLOSED && net.connects_n == 2);
}

static void nonsense(void)
{
	static const struct { const char *says; unsigned cause; } all[] = {
		{ "SSH-2.0-x\r\n", CAUSE_BAD_ANSWER }, { "HTTP/1.1 101 Up\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", CAUSE_BAD_UPGRADE },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", CAUSE_BAD_ANSWER },
		{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", CAUSE_BAD_ANSWER },
	};

	begin();
	for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
		ask("origin", "GET");
		world_say(world_up(i), all[i].says);
		EXPECT(heard.times == i + 1 && heard.cause == all[i].cause && !peer_open(world_up(i)));
	}
	ask("origin", "GET");
	world_say(world_up(4), "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort");
	peer_fin(world_up(4));
	world_settle();
	EXPECT(heard.times == 5 && heard.cause == CAUSE_UPSTREAM_CLOSED);
	/* whole, but with more behind it: the answer counts, the connection is done with */
	ask("origin", "GET");
	world_say(world_up(5), OK2 OK2);
	EXPECT(heard.times == 6 && heard.cause == CAUSE_NONE && !peer_open(world_up(5)));
}

static void sizes(void)
{
	static char body[65536];
	struct peer *o;
	unsigned n;

	begin();
	memset(body, 'x', sizeof body);
	ask("origin", "GET");
	o = world_up(0);
	world_say(o, "HTTP/1.1 200 OK\r\nContent-Length: 33\r\n\r\n");
	peer_send(o, (struct str){ body, 33 });
	world_settle();
	EXPECT(heard.times == 1 && heard.cause == CAUSE_NONE && !heard.kept_all && !heard.body[0] && peer_open(o));
	ask("origin", "GET");
	world_say(o, "HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n");
	for (n = 0; n < 40 && heard.times == 1; n++) {
		peer_send(o, (struct str){ body, sizeof body });
		world_settle();
		EXPECT(world.w->budget.used < 256 * 1024);
	}
	EXPECT(heard.times == 2 && heard.cause == CAUSE_ANSWER_SIZE && n == 17 && !peer_open(o));
}

static void with_body(void)
{
	static char body[50000];
	struct call *c;
	struct peer *o;

	begin();
	memset(body, 'b', sizeof body);
	net.connects = CONNECT_WAIT;
	c = made("origin", "PUT", false);
	if (!c)
		return;
	if (call_body(c, (struct str){ body, 20000 }, 50000) != OK || call_body(c, (struct str){ body, 30000 }, 50000) != OK) {
		EXPECT(false);
		call_cancel(c);
		return;
	}
	EXPECT(call_body(c, STR("x"), 50000) == ERR_LIMIT);
	start(c);
	o = world_up(0);
	peer_room(o, 10);
	peer_up(o);
	for (int i = 0; i < 20; i++) {
		peer_room(o, 4001);
		world_settle();
	}
	EXPECT(world_requests(o) == 1 && world_got(o, "Content-Length: 50000\r\n"));
	world_say(o, OK2);
	EXPECT(heard.times == 1 && heard.cause == CAUSE_NONE && peer_open(o));
	/* the answer comes before the request was taken */
	c = made("origin", "PUT", false);
	if (!c || call_body(c, (struct str){ body, sizeof body }, 50000) != OK)
		return;
	peer_room(o, 100);
	start(c);
	world_say(o, EMPTY);
	EXPECT(heard.times == 2 && heard.cause == CAUSE_NONE && !peer_open(o));
}

static void time_is_over(void)
{
	struct peer *o;

	begin();
	net.connects = CONNECT_WAIT;
	ask("origin", "GET");
	world_sleep(1100);	/* timeouts.connect */
	EXPECT(heard.times == 1 && heard.cause == CAUSE_CONNECT_TIMEOUT);
	net.connects = CONNECT_UP;
	ask("origin", "GET");
	o = world_up(1);
	world_say(o, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n");
	for (int i = 0; i < 9; i++) {
		world_sleep(1000);
		world_say(o, "x");
	}
	EXPECT(heard.times == 1);
	world_sleep(1100);	/* what drips is no longer alive */
	EXPECT(heard.times == 2 && heard.cause == CAUSE_FIRST_BYTE_TIMEOUT && !peer_open(o));
	ask("one", "GET");
	ask("one", "GET");
	world_sleep(11000);
	EXPECT(heard.times == 4 && world.w->counters.connects == 3);
}

/* Unless it has ended already, for want of memory. */
static void cancel(struct call *c)
{
	for (struct call *live = world.w->calls.all; live; live = live->next)
		if (live == c) {
			call_cancel(c);
			return;
		}
}

/* In each state; who was cancelled is heard of no more. */
static void cancelled(void)
{
	struct call *c, *d;

	begin();
	c = made("origin", "GET", false);
	cancel(c);		/* before it was started */
	c = made("origin", "GET", false);
	if (c) {
		call_start(c);
		call_cancel(c);		/* before its turn came */
	}
	world_settle();
	EXPECT(net.connects_n == 0);
	net.connects = CONNECT_WAIT;
	c = ask("one", "GET");
	d = ask("one", "GET");
	cancel(c);		/* behind a connect, which goes on for the other one */
	peer_up(world_up(0));
	world_settle();
	EXPECT(world_requests(world_up(0)) == 1);
	c = ask("one", "GET");
	cancel(c);		/* in the pool's queue */
	world_say(world_up(0), "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
	cancel(d);		/* in the middle of its answer */
	world_settle();
	EXPECT(heard.times == 0 && !peer_open(world_up(0)) && world.w->calls.slab.live == 0);
}

static void in_haste(void)
{
	struct call *c;
	struct peer *o;

	begin();
	c = made("one", "GET", true);
	if (!c)
		return;
	start(c);		/* a connection of its own may be opened: it waits for that */
	o = world_up(0);
	EXPECT(world_requests(o) == 1 && heard.times == 0);
	c = made("one", "GET", true);
	if (!c)
		return;
	start(c);
	EXPECT(heard.times == 1 && heard.cause == CAUSE_QUEUE_FULL);
	ask("one", "GET");	/* this one has time */
	EXPECT(heard.times == 1);
	world_say(o, OK2);
	world_say(o, OK2);
	EXPECT(heard.times == 3 && heard.cause == CAUSE_NONE && net.connects_n == 1);
}

static void too_many(void)
{
	struct head h = { .method = STR("GET"), .method_id = METHOD_GET, .target = STR("/"), .path = STR("/") };
	struct call_spec spec = { .service = service("origin"), .head = &h, .timeout_ms = 1000 };
	enum cause cause = CAUSE_NONE;

	begin();
	ask("origin", "GET");
	ask("origin", "GET");
	if (world.w->calls.slab.live == 2)
		EXPECT(!call_new(world.w, &spec, &cause) && cause == CAUSE_CALLS_FULL);
	world_say(world_up(0), OK2);
	ask("origin", "GET");
	EXPECT(world.w->calls.slab.live == 2 && heard.times == 1);
}

/* The end of the worker waits for no call: its clients are gone. */
static void drained(void)
{
	struct peer *c = world_client();

	begin();
	world_say(c, "GET /a HTTP/1.1\r\nHost: a.example\r\n\r\n");
	ask("pair", "GET");
	worker_tell(world.w, WORKER_DRAIN);
	world_settle();
	EXPECT(world.w->calls.slab.live == 1);
	world_say(world_up(0), OK2);
	EXPECT(heard.times == 0 && world.w->calls.slab.live == 0 && worker_open(world.w) == 0);
}

static void cut(void)
{
	begin();
	net.connects = CONNECT_WAIT;
	ask("origin", "GET");
	worker_tell(world.w, WORKER_DRAIN | WORKER_CUT);
	world_settle();
	EXPECT(heard.times == 0 && worker_open(world.w) == 0);
}

#define CONF_CALLS CONF_PLAIN CONF_TIMES "routes: [{service: origin}]\n" CONF_SERVICES \
	"  one: {endpoints: [127.0.0.1:9005], max_connections: 1}\n"

const struct story stories_call[] = {
	{ "call-is-answered", CONF_CALLS, is_answered },
	{ "call-shares-the-pool", CONF_CALLS, shares_the_pool },
	{ "call-drips", CONF_CALLS, drips },
	{ "call-until-close", CONF_CALLS, until_close },
	{ "call-other-endpoint", CONF_CALLS, other_endpoint },
	{ "call-no-endpoint", CONF_CALLS, no_endpoint },
	{ "call-kept-dies", CONF_CALLS, kept_dies },
	{ "call-fresh-dies", CONF_CALLS, fresh_dies },
	{ "call-nonsense", CONF_CALLS, nonsense },
	{ "call-sizes", CONF_CALLS, sizes },
	{ "call-with-body", CONF_CALLS, with_body },
	{ "call-time-is-over", CONF_CALLS, time_is_over },
	{ "call-cancelled", CONF_CALLS, cancelled },
	{ "call-in-haste", CONF_CALLS, in_haste },
	{ "call-too-many", CONF_CALLS "limits: {calls: 2}\n", too_many },
	{ "call-drained", CONF_CALLS, drained },
	{ "call-cut", CONF_CALLS, cut },
	{ NULL, NULL, NULL },
};
