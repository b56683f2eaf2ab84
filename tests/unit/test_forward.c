/* proxy/forward: heads as the other side gets them, over the simulation of tests/sim. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "proxy/log.h"
#include "tests/sim/world.h"

#define CONF(listen, route) \
	"listen: [{address: 127.0.0.1:8080" listen "}]\n" \
	"log: {access: off}\n" \
	"routes: [{service: o" route "}]\n" \
	"services: {o: 127.0.0.1:9001}\n"
#define OK0 "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"

static struct peer *client, *origin;

static void begin(const char *conf)
{
	world.story = "test_forward";
	assert_true(world_begin(conf, 0));
	client = origin = NULL;
}

/* A request with these fields, by a client of its own. */
static void ask(const char *fields)
{
	client = world_client();
	world_say(client, "GET /p?q HTTP/1.1\r\nHost: a.example:81\r\n");
	world_say(client, fields);
	world_say(client, "\r\n");
	origin = world_up(net.connects_n - 1);
}

static void field(const struct peer *at, const char *name, const char *value, unsigned times)
{
	struct message m;
	struct str s;
	unsigned n;

	if (at == origin)
		message_request(&m, peer_got(at));
	else
		message_answer(&m, peer_got(at), STR("GET"), true);
	s = message_field(&m, str_of(name), &n);
	assert_int_equal(n, times);
	if (n && value) {
		assert_int_equal(s.n, strlen(value));
		assert_memory_equal(s.p, value, s.n);
	}
	message_free(&m);
}

static void who_forwarded_it(void **state)
{
	(void)state;
	begin(CONF(", forwarded: on", ""));
	ask("X-Forwarded-For: 10.9.9.9\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: evil\r\nForwarded: for=evil\r\n");
	field(origin, "X-Forwarded-For", "192.0.2.1", 1);	/* its peer is not trusted */
	field(origin, "X-Forwarded-Proto", "http", 1);
	field(origin, "X-Forwarded-Host", "a.example:81", 1);
	field(origin, "Forwarded", "for=192.0.2.1;host=\"a.example:81\";proto=http", 1);
	field(origin, "Via", "1.1 thimble", 1);
	field(origin, "Host", "a.example:81", 1);
	world_end();
}

static void trusted_peer(void **state)
{
	(void)state;
	begin(CONF(", trusted_proxies: [192.0.0.0/16], forwarded: on", ""));
	ask("X-Forwarded-For: 10.9.9.9\r\nX-Forwarded-For: 10.9.9.8\r\nX-Forwarded-Proto: https\r\nForwarded: for=x\r\n");
	field(origin, "X-Forwarded-For", "10.9.9.9, 10.9.9.8, 192.0.2.1", 1);
	field(origin, "X-Forwarded-Proto", "https", 1);
	field(origin, "X-Forwarded-Host", "a.example:81", 1);
	field(origin, "Forwarded", "for=x, for=192.0.2.1;host=\"a.example:81\";proto=http", 1);
	world_end();
	begin(CONF(", trusted_proxies: [192.0.3.0/24, 192.0.2.2]", ""));	/* near, but not it */
	ask("X-Forwarded-For: 10.9.9.9\r\n");
	field(origin, "X-Forwarded-For", "192.0.2.1", 1);
	world_end();
}

static void replace_and_off(void **state)
{
	(void)state;
	begin(CONF(", trusted_proxies: [192.0.2.1], x_forwarded: replace", ""));
	ask("X-Forwarded-For: 10.9.9.9\r\nX-Forwarded-Proto: https\r\n");
	field(origin, "X-Forwarded-For", "192.0.2.1", 1);
	field(origin, "X-Forwarded-Proto", "http", 1);
	world_end();
	begin(CONF(", x_forwarded: off, via: off, request_id: off", ""));
	ask("X-Forwarded-For: 10.9.9.9\r\nX-Request-Id: mine\r\n");
	field(origin, "X-Forwarded-For", NULL, 0);
	field(origin, "X-Forwarded-Host", NULL, 0);
	field(origin, "Via", NULL, 0);
	field(origin, "X-Request-Id", "mine", 1);	/* a field like any other */
	world_say(origin, OK0);
	field(client, "X-Request-Id", NULL, 0);
	world_end();
	begin(CONF(", x_forwarded: off, trusted_proxies: [192.0.2.1]", ""));
	ask("X-Forwarded-For: 10.9.9.9\r\n");
	field(origin, "X-Forwarded-For", "10.9.9.9", 1);
	world_end();
}

static void request_ids(void **state)
{
	struct message m;
	struct str id;
	unsigned n;
	char text[64];

	(void)state;
	begin(CONF("", ""));
	ask("X-Request-Id: abc-1.2_3\r\n");
	field(origin, "X-Request-Id", "abc-1.2_3", 1);
	world_say(origin, "HTTP/1.1 200 OK\r\nX-Request-Id: other\r\nContent-Length: 0\r\n\r\n");
	field(client, "X-Request-Id", "abc-1.2_3", 1);
	peer_fin(client);
	ask("X-Request-Id: no spaces\r\n");		/* no id: a new one */
	message_request(&m, peer_got(world_up(0)));
	world_say(world_up(0), OK0);
	message_answer(&m, peer_got(client), STR("GET"), true);
	id = message_field(&m, STR("X-Request-Id"), &n);
	assert_int_equal(n, 1);
	assert_int_equal(id.n, 32);
	memcpy(text, id.p, 32);
	text[32] = '\0';
	assert_true(world_got(world_up(0), text));
	message_free(&m);
	world_end();
}

static void underscores(void **state)
{
	(void)state;
	begin(CONF("", ""));
	ask("X_A: 1\r\nX-B: 2\r\n");
	field(origin, "X_A", NULL, 0);
	field(origin, "X-B", "2", 1);
	world_end();
	begin(CONF(", underscores: allow", ""));
	ask("X_A: 1\r\n");
	field(origin, "X_A", "1", 1);
	world_end();
	begin(CONF(", underscores: refuse", ""));
	ask("X_A: 1\r\n");
	assert_null(origin);
	assert_int_equal(world_status(client, 0), 400);
	assert_int_equal(world_count_cause(CAUSE_UNDERSCORE), 1);
	world_end();
}

static void edits_have_the_last_word(void **state)
{
	(void)state;
	begin(CONF("", ", request_headers: {remove: [Cookie, Via], set: {X-Forwarded-For: hidden, X-A: new}, add: {X-B: more}},"
		       " response_headers: {remove: [Server], set: {Date: never}, add: {X-B: answer}}"));
	ask("Cookie: a\r\nX-A: old\r\nX-A: older\r\nX-B: first\r\n");
	field(origin, "Cookie", NULL, 0);
	field(origin, "Via", NULL, 0);
	field(origin, "X-Forwarded-For", "hidden", 1);
	field(origin, "X-A", "new", 1);
	field(origin, "X-B", NULL, 2);
	world_say(origin, "HTTP/1.1 200 OK\r\nServer: s\r\nX-B: theirs\r\nDate: theirs\r\nContent-Length: 0\r\n\r\n");
	field(client, "Server", NULL, 0);
	field(client, "X-B", NULL, 2);
	field(client, "Date", "never", 1);
	world_end();
}

static void date_when_there_is_none(void **state)
{
	(void)state;
	begin(CONF("", ""));
	ask("");
	world_say(origin, OK0);
	field(client, "Date", "Tue, 14 Nov 2023 22:13:21 GMT", 1);
	ask("");
	world_say(origin, "HTTP/1.1 200 OK\r\nDate: theirs\r\nContent-Length: 0\r\n\r\n");
	field(client, "Date", "theirs", 1);
	world_end();
}

static void hop_fields_stay_here(void **state)
{
	(void)state;
	begin(CONF("", ""));
	ask("Connection: X-Hop, keep-alive\r\nX-Hop: 1\r\nKeep-Alive: 5\r\nProxy-Connection: x\r\nX-End: 2\r\n");
	field(origin, "X-Hop", NULL, 0);
	field(origin, "Keep-Alive", NULL, 0);
	field(origin, "Proxy-Connection", NULL, 0);
	field(origin, "X-End", "2", 1);
	world_say(origin, "HTTP/1.1 200 OK\r\nConnection: X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 5\r\nContent-Length: 0\r\n\r\n");
	field(client, "X-Hop", NULL, 0);
	field(client, "Keep-Alive", NULL, 0);
	world_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_forwarded_it),
		cmocka_unit_test(trusted_peer),
		cmocka_unit_test(replace_and_off),
		cmocka_unit_test(request_ids),
		cmocka_unit_test(underscores),
		cmocka_unit_test(edits_have_the_last_word),
		cmocka_unit_test(date_when_there_is_none),
		cmocka_unit_test(hop_fields_stay_here),
	};
	log_set_level(LEVEL_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
