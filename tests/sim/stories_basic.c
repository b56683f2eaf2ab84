/* stories_basic: passwords that are looked at while everybody goes on, and CORS on whatever answer there is.
 *
 * world.no_looks holds what a hasher's thread would do: what a story does meanwhile happens while a request is held. */
#include "lib/base/check.h"
#include "tests/sim/world.h"

#define CORS "cors: {origins: 'https://*.b.example', credentials: on}"
#define CONF CONF_PLAIN CONF_TIMES \
	"routes:\n" \
	"  - {path: /open, service: origin}\n" \
	"  - {path: /local, answer: {body: here}, basic_auth: {file: '" THIMBLE_SOURCE "/tests/users.htpasswd'}}\n" \
	"  - {path: /none, service: none, " CORS "}\n" \
	"  - {service: origin, basic_auth: {file: '" THIMBLE_SOURCE "/tests/users.htpasswd', user_header: X-User}, " CORS "}\n" \
	CONF_SERVICES
#define OK2 "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
#define HEAD(line) line " HTTP/1.1\r\nHost: a.example\r\n"
#define CAROL "Authorization: Basic Y2Fyb2w6b3BlbiBzZXNhbWU=\r\n"	/* carol:open sesame */
#define BOB "Authorization: Basic Ym9iOmNvcnJlY3QgaG9yc2U=\r\n"	/* bob:correct horse */
#define WRONG "Authorization: Basic Y2Fyb2w6d3Jvbmc=\r\n"		/* carol:wrong */
#define ORIGIN "Origin: https://x.b.example\r\n"

static void look(void)
{
	world.no_looks = false;
	world_settle();
}

static void a_password_is_looked_at_and_remembered(void)
{
	struct peer *c = world_client(), *o;

	world_say(c, HEAD("GET /1") "\r\n");
	EXPECT(world_status(c, 0) == 401 && net.connects_n == 0);
	world_say(c, HEAD("GET /2") WRONG "\r\n");
	EXPECT(world_status(c, 1) == 401);
	world.no_looks = true;
	world_say(c, HEAD("GET /3") CAROL "X-User: root\r\n\r\n");
	EXPECT(world_status(c, 2) == 0 && net.connects_n == 0);
	look();
	o = world_up(0);
	EXPECT(world_requests(o) == 1 && world_got(o, "X-User: carol\r\n"));
	EXPECT(!world_got(o, "Authorization") && !world_got(o, "root"));
	world_say(o, OK2);
	EXPECT(world_status(c, 2) == 200);
	world.no_looks = true;
	world_say(c, HEAD("GET /4") CAROL "\r\n");
	EXPECT(world_requests(o) == 2);
	world_say(o, OK2);
	EXPECT(world_status(c, 3) == 200);
	EXPECT(world.lean || (world_count_cause(CAUSE_BASIC_REQUIRED) == 1 && world_count_cause(CAUSE_BASIC_FAILED) == 1));
}

static void a_reset_while_it_is_looked_at(void)
{
	struct peer *c = world_client(), *d = world_client();

	world.no_looks = true;
	world_say(c, HEAD("GET /") BOB "\r\n");
	world_say(d, HEAD("GET /") BOB "\r\n");
	peer_rst(c);
	world_settle();
	EXPECT(world_count_cause(CAUSE_CLIENT_LEFT) == 1);
	look();		/* the other still waits */
	EXPECT(net.connects_n == 1 && world_requests(world_up(0)) == 1);
	peer_rst(d);
	world_settle();
	EXPECT(world_count_cause(CAUSE_CLIENT_LEFT) == 2);
}

/* A FIN behind a whole request is a half-close: it waits for its answer. */
static void a_half_close_while_it_is_looked_at(void)
{
	struct peer *c = world_client();

	world.no_looks = true;
	world_say(c, HEAD("GET /") CAROL "\r\n");
	peer_fin(c);
	world_settle();
	look();
	world_say(world_up(0), OK2);
	EXPECT(world_status(c, 0) == 200);
}

static void a_body_and_more_requests_meanwhile(void)
{
	struct peer *c = world_client(), *o;

	world.no_looks = true;
	world_say(c, HEAD("POST /1") CAROL "Content-Length: 6\r\n\r\nabc");
	world_say(c, "def" HEAD("GET /open") "\r\n" HEAD("GET /3") WRONG "\r\n" HEAD("GET /4") CAROL "\r\n");
	EXPECT(net.connects_n == 0 && world_status(c, 0) == 0);
	look();
	o = world_up(0);
	EXPECT(world_requests(o) == 1 && world_got(o, "abcdef"));
	world_say(o, OK2);
	EXPECT(world_requests(o) == 2 && world_got(o, "GET /open "));
	world_say(o, OK2);
	EXPECT(world_requests(o) == 3 && world_got(o, "GET /4 ") && !world_got(o, "GET /3 "));
	world_say(o, OK2);
	EXPECT(world_status(c, 0) == 200 && world_status(c, 1) == 200 && world_status(c, 2) == 401 && world_status(c, 3) == 200);
}

static void a_body_that_is_not_wanted(void)
{
	struct peer *c = world_client();

	world.no_looks = true;
	world_say(c, HEAD("POST /") WRONG "Content-Length: 100\r\n\r\nsome of it");
	look();
	EXPECT(world_status(c, 0) == 401 && world_got(c, "Connection: close") && net.connects_n == 0);
}

static void a_drain_while_it_is_looked_at(void)
{
	struct peer *c = world_client(), *d = world_client();

	world.no_looks = true;
	world_say(c, HEAD("GET /local") CAROL "\r\n");
	world_say(d, HEAD("GET /local") WRONG "\r\n");
	worker_tell(world.w, WORKER_DRAIN);
	world_settle();
	EXPECT(world_status(c, 0) == 0 && peer_open(c));
	look();
	EXPECT(world_status(c, 0) == 200 && world_status(d, 0) == 401 && !peer_open(c));
}

static void a_cut_while_it_is_looked_at(void)
{
	struct peer *c = world_client();

	world.no_looks = true;
	world_say(c, HEAD("GET /") CAROL "\r\n");
	worker_tell(world.w, WORKER_DRAIN | WORKER_CUT);
	world_settle();
	EXPECT(!peer_open(c) && world_count_cause(CAUSE_DRAINED) == 1);
	look();
	EXPECT(net.connects_n == 0);
}

static void a_wait_that_is_too_long(void)
{
	struct peer *c = world_client();

	world.no_looks = true;
	world_say(c, HEAD("GET /") CAROL "\r\n");
	world_sleep(10001);
	look();
	EXPECT(world_status(c, 0) == 503 && world_count_cause(CAUSE_BASIC_BUSY) == 1 && peer_open(c));
}

static void cors_on_any_answer(void)
{
	struct peer *c = world_client(), *o;

	world_say(c, HEAD("OPTIONS /x") ORIGIN "Access-Control-Request-Method: PUT\r\n\r\n");
	EXPECT(world_status(c, 0) == 200 && net.connects_n == 0);
	world_say(c, HEAD("OPTIONS /x") "Origin: https://evil\r\nAccess-Control-Request-Method: PUT\r\n\r\n");
	EXPECT(world_status(c, 1) == 403);
	world_say(c, HEAD("GET /none") ORIGIN "\r\n");
	EXPECT(world_status(c, 2) == 503);
	world_say(c, HEAD("GET /x") ORIGIN "\r\n");
	EXPECT(world_status(c, 3) == 401);
	world_say(c, HEAD("GET /x") ORIGIN CAROL "\r\n");
	o = world_up(0);
	world_say(o, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nVary: A\r\nAccess-Control-Allow-Origin: *\r\n\r\nok");
	EXPECT(world_status(c, 4) == 200 && world_got(c, "Vary: A, Origin\r\n") && !world_got(c, "Allow-Origin: *"));
}

const struct story stories_basic[] = {
	{ "a_password_is_looked_at_and_remembered", CONF, a_password_is_looked_at_and_remembered },
	{ "a_reset_while_it_is_looked_at", CONF, a_reset_while_it_is_looked_at },
	{ "a_half_close_while_it_is_looked_at", CONF, a_half_close_while_it_is_looked_at },
	{ "a_body_and_more_requests_meanwhile", CONF, a_body_and_more_requests_meanwhile },
	{ "a_body_that_is_not_wanted", CONF, a_body_that_is_not_wanted },
	{ "a_drain_while_it_is_looked_at", CONF, a_drain_while_it_is_looked_at },
	{ "a_cut_while_it_is_looked_at", CONF, a_cut_while_it_is_looked_at },
	{ "a_wait_that_is_too_long", CONF, a_wait_that_is_too_long },
	{ "cors_on_any_answer", CONF, cors_on_any_answer },
	{ NULL, NULL, NULL },
};
