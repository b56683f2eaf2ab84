/* conf: what is odd in a file that is right, each at its place; and what is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "conf/conf.h"
#include "lib/base/mem.h"

static struct conf *parse_ok(const char *text)
{
	struct conf_errors e;
	struct conf *c;

	conf_errors_init(&e);
	c = conf_parse("t", str_of(text), NULL, &e);
	if (!c)
		conf_errors_print(&e, stderr);
	conf_errors_fini(&e);
	assert_non_null(c);
	return c;
}

/* What is told of `text`, a line each. */
static char *told(const char *text)
{
	struct conf *c = parse_ok(text);
	char *all = NULL;
	size_t n = 0, count, lines = 0;
	FILE *f = open_memstream(&all, &n);

	count = conf_warnings_print(c, f);
	fclose(f);
	conf_free(c);
	for (const char *p = all; (p = strchr(p, '\n')); p++)
		lines++;
	assert_int_equal(count, lines);
	return all;
}

struct odd {
	const char *text, *warnings;
};

static void check(const struct odd *odd, size_t count)
{
	int wrong = 0;

	for (size_t i = 0; i < count; i++) {
		char *all = told(odd[i].text);

		if (strcmp(all, odd[i].warnings) != 0) {
			print_error("--- %s\nwant %sgot  %s\n", odd[i].text, odd[i].warnings, all);
			wrong++;
		}
		free(all);
	}
	assert_int_equal(wrong, 0);
}

#define CHECK_ALL(odd) check(odd, sizeof odd / sizeof odd[0])

#define W(place, text) "t:" place ": warning: " text "\n"
#define TWO(one, two) "routes:\n- {" one ", answer: {}}\n- {" two ", answer: {}}\n"
#define SECOND(why) W("3:3", "no request reaches this route: the route on line 2 takes them all before it" why)
#define BY_EXPRESSION SECOND(": expressions are asked before prefixes")
#define BY_LONGER SECOND(": a longer expression is asked first")
#define BY_EXACT SECOND(": exact paths are asked before expressions")

static void routes_that_no_request_reaches(void **state)
{
	static const struct odd odd[] = {
		{TWO("path: {regex: '/.*'}", "path: /api"), BY_EXPRESSION},
		{TWO("path: {regex: '.*'}", "path: /"), BY_EXPRESSION},
		{TWO("path: {regex: '(.*)'}", "path: /"), BY_EXPRESSION},
		{TWO("path: {regex: '/api(/.*)?'}", "path: /api"), BY_EXPRESSION},
		{TWO("path: {regex: '^/api(/.*)?$'}", "path: /api/v1"), BY_EXPRESSION},
		{TWO("path: {regex: '/api.*'}", "path: /api/v1, method: GET"), BY_EXPRESSION},
		{TWO("path: {regex: '/a\\.b/.*'}", "path: /a.b/c"), BY_EXPRESSION},
		{TWO("path: {regex: '/api(?:/.*)?'}", "path: {regex: '/api/v.*'}"), BY_LONGER},
		{TWO("path: {regex: '/api(/.*)?'}", "path: {regex: '/api/v1'}"), BY_LONGER},
		{TWO("path: {regex: '.*', }", "path: {regex: '/'}"), BY_LONGER},
		{TWO("path: {exact: /x}", "path: {regex: '/x'}"), BY_EXACT},
		{TWO("path: {exact: /x.y}", "path: {regex: '/x\\.y'}, method: GET"), BY_EXACT},
		{TWO("path: /x, headers: {A: {regex: '.*'}}", "path: /x, headers: {a: b}"), SECOND("")},
		{TWO("path: {regex: /x+}, headers: {A: {regex: '.*'}}", "path: {regex: /x+}, headers: {a: b}"), SECOND("")},
		{TWO("path: {exact: /x}, query: {A: {regex: '.*'}}", "path: {exact: /x}, query: {A: b}"), SECOND("")},
		{TWO("method: GET, headers: {A: {regex: '.*'}, B: c}", "method: GET, headers: {B: c, A: {regex: x+}}"),
		 SECOND("")},
		{TWO("host: a.de, path: {regex: '/.*'}", "host: A.de., path: /api"), BY_EXPRESSION},
		{TWO("host: [a.de, b.de, '*.c.de'], path: {regex: '/.*'}", "host: ['*.c.de', a.de], path: /api"),
		 BY_EXPRESSION},
		{TWO("method: [GET, PUT], path: {regex: '/.*'}", "method: [PUT, GET], path: /api"), BY_EXPRESSION},
		{"routes:\n- {path: /api, answer: {}}\n- {path: {regex: '/.*'}, answer: {}}\n",	/* whatever the order */
		 W("2:3", "no request reaches this route: the route on line 3 takes them all before it: "
		   "expressions are asked before prefixes")},
		{"routes:\n- matches:\n  - path: {regex: '/a.*'}\n  - path: /a/b\n  - path: /b\n  answer: {}\n",
		 W("4:5", "no request reaches this match: the match on line 3 takes them all before it: "
		   "expressions are asked before prefixes")},
		{"routes:\n- {method: GET, path: {regex: '/.*'}, answer: {}}\n- {method: PUT, path: {regex: '/.*'}, answer: {}}\n"
		 "- {method: [GET, PUT], path: /a, answer: {}}\n",
		 W("4:3", "no request reaches this route: the route on line 2 takes some and others the rest before it: "
		   "expressions are asked before prefixes")},
	};

	(void)state;
	CHECK_ALL(odd);
}

static void routes_that_some_request_reaches(void **state)
{
	static const char *const texts[] = {
		TWO("path: /", "path: /api"), TWO("path: {exact: /api}", "path: /api"),
		TWO("path: {regex: '/.*'}", "path: /"),			/* OPTIONS * */
		TWO("path: {regex: '/.*'}", "path: {exact: /api}"),	/* exact ones are asked first */
		TWO("path: {regex: '/.*'}", "path: {regex: '/api.*'}"),	/* longer ones are */
		TWO("path: {regex: '/api/.*'}", "path: /api"),		/* /api itself */
		TWO("path: {regex: '/api(/.*)?'}", "path: /apis"), TWO("path: {regex: '/api/?'}", "path: /api"),
		TWO("path: {regex: '/a.b/.*'}", "path: /axb"), TWO("path: {regex: '/a|.*'}", "path: {regex: 'a|.*'}"),
		TWO("path: {regex: '/ab*.*'}", "path: /ab"), TWO("path: {regex: '(?i)/API.*'}", "path: /api"),
		TWO("path: {regex: '/\\d.*'}", "path: /d"), TWO("path: {regex: '/[a].*'}", "path: /a"),
		TWO("path: {regex: '/.+'}", "path: /a"),		/* not understood */
		TWO("path: {regex: '/.*'}, method: GET", "path: /api"),
		TWO("path: {regex: '/.*'}, method: GET", "path: /api, method: [GET, HEAD]"),
		TWO("path: {regex: '/.*'}, headers: {A: b}", "path: /api"),
		TWO("path: {regex: '/.*'}, query: {A: b}", "path: /api, query: {a: b}"),
		TWO("path: {regex: '/.*'}, host: a.de", "path: /api"),
		TWO("path: {regex: '/.*'}", "path: /api, host: a.de"),	/* the better host is asked first */
		TWO("path: {regex: '/.*'}, host: '*.de'", "path: /api, host: a.de"),
		TWO("path: {regex: '/.*'}, host: a.de", "path: /api, host: [a.de, b.de]"),
		TWO("path: /x, headers: {A: b}", "path: /x, headers: {A: {regex: '.*'}}"),
		TWO("path: /x, headers: {A: b}", "path: /x, headers: {A: c}"),
		TWO("path: /x", "path: /x, method: GET"), TWO("path: /x, headers: {A: b}", "path: /x, headers: {A: b, C: d}"),
		TWO("path: /x, query: {a: {regex: '.*'}}", "path: /x, query: {A: b}"),	/* names of parameters have a case */
	};

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
		check(&(struct odd){texts[i], ""}, 1);
}

static void matches_that_no_request_fits(void **state)
{
	static const struct odd odd[] = {
		{"routes: [{headers: {Host: a.de}, answer: {}}]",
		 W("1:21", "no request fits: routes do not see `Host`; `host` of a route is for that")},
		{"routes: [{headers: {upgrade: {regex: '.*'}, A: b}, answer: {}}]",
		 W("1:21", "no request fits: routes do not see `upgrade`")},
		{"routes: [{matches: [{}, {headers: {Content-Length: 0}}], answer: {}}]",
		 W("1:36", "no request fits: routes do not see `Content-Length`")},
		{"routes: [{headers: {Expect: 100-continue}, answer: {}}]", ""},
		{"routes: [{path: {regex: 'api/.*'}, answer: {}}]",
		 W("1:10", "no request fits: every path begins with `/`, and `api/.*` does not")},
		{"routes: [{path: {regex: '^api'}, answer: {}}]",
		 W("1:10", "no request fits: every path begins with `/`, and `^api` does not")},
		{"routes: [{path: {regex: 'a?/x'}, answer: {}}]", ""}, {"routes: [{path: {regex: 'a|/x'}, answer: {}}]", ""},
		{"routes: [{path: {regex: '(a|/)x'}, answer: {}}]", ""}, {"routes: [{path: {regex: '\\*'}, answer: {}}]", ""},
		{"routes: [{path: {regex: 'a{0}/x'}, answer: {}}]", ""}, {"routes: [{path: {regex: '[/]x'}, answer: {}}]", ""},
	};

	(void)state;
	CHECK_ALL(odd);
}

#define APP "services: {a: []}\nroutes: [{service: a}]\n"

static void time_outs_that_never_run_out(void **state)
{
	static const struct odd odd[] = {
		{"services: {a: []}\nroutes: [{service: a}, {path: /x, answer: {}, timeouts: {first_byte: 1s}}]",
		 W("2:47", "`timeouts` of a route without a `service` never run out")},
		{APP "listen: [{address: ':1', upgrade: off}, {address: ':2', upgrade: []}]\ntimeouts: {tunnel: 1h}",
		 W("4:12", "`tunnel` never runs out: no listener has a protocol to `upgrade` to")},
		{"defaults: {upgrade: off}\nservices: {a: []}\nroutes: [{service: a, timeouts: {tunnel: 2h}}]",
		 W("3:34", "`tunnel` never runs out: no listener has a protocol to `upgrade` to")},
		{APP "listen: [{address: ':1', upgrade: off}, ':2']\ntimeouts: {tunnel: 1h}", ""},
		{APP "defaults: {upgrade: off}\ntimeouts: {tunnel: off}", ""},
		/* bytes that are passed on have that time-out too, and need no routes */
		{APP "listen: [{address: ':1', upgrade: off}, {address: ':2', service: a}]\ntimeouts: {tunnel: 1h}", ""},
		{"listen: {address: ':2', service: a}\nservices: {a: []}\nlimits: {body: 1MiB}\n"
		 "timeouts: {tunnel: 1h, first_byte: 1s, connect: 1s}", ""},
		{"services: {a: []}\nlisten: [{address: ':1', service: a}, ':2']\nroutes: [{service: a, timeouts: {tunnel: 1h}}]\n"
		 "timeouts: {tunnel: 2h}", ""},
		{"services: {a: []}\nlisten: [{address: ':1', service: a}, {address: ':2', upgrade: off}]\n"
		 "routes: [{service: a, timeouts: {tunnel: 1h}}]\ntimeouts: {tunnel: 2h}",
		 W("3:34", "`tunnel` never runs out: no listener has a protocol to `upgrade` to")},
		{"services: {a: []}\nroutes: [{service: a, timeouts: {first_byte: 1s}}, {path: /x, answer: {}}]\n"
		 "timeouts: {between_bytes: 1s, first_byte: 2s}",
		 W("3:31", "`first_byte` never runs out: every route with a service has its own")},
		{"services: {a: []}\nroutes: [{service: a, timeouts: {first_byte: 1s}}, {path: /x, service: a}]\n"
		 "timeouts: {between_bytes: 1s, first_byte: 2s}", ""},
		{"routes: [{answer: {}}]\ntimeouts: {connect: 1s, head: 1s, upstream_idle: 1s, first_byte: off}",
		 W("2:12", "`connect` never runs out: no route leads to a service")
		 W("2:35", "`upstream_idle` never runs out: no route leads to a service")},
		{APP "timeouts: {head: 1s, body: 1s, write: 1s, idle: 1s, connect: 1s, first_byte: 1s, between_bytes: 1s,\n"
		 "upstream_idle: 1s, tunnel: 1s, linger: 1s, drain: 1s}", ""},
	};

	(void)state;
	CHECK_ALL(odd);
}

static void limits_that_are_never_reached(void **state)
{
	static const struct odd odd[] = {
		{"services: {a: []}\nroutes: [{service: a, body_limit: 1KiB}]\nlimits: {body: 1MiB}",
		 W("3:10", "`body` holds for no route: each has its own `body_limit`")},
		{APP "limits: {body: 1MiB}\ndefaults: {body_limit: off}",
		 W("3:10", "`body` holds for no route: `body_limit` in `defaults` does")},
		{"services: {a: []}\nroutes: [{service: a, body_limit: 1KiB}, {path: /x, answer: {}}]\nlimits: {body: 1MiB}", ""},
		{APP "limits: {body: 1MiB, replay: 2MiB}",
		 W("3:22", "`replay` is more than any body has: the largest that a route allows is 1MiB")},
		{APP "limits: {body: 1MiB, replay: 1MiB}", ""}, {APP "limits: {body: 1KiB}", ""},
		{"services: {a: []}\nroutes: [{service: a, body_limit: 1KiB}, {path: /x, service: a}]\nlimits: {replay: 2MiB}", ""},
		{APP "limits: {fields: 257, head: 1KiB, answer_head: 1KiB}",
		 W("3:10", "`fields` is never reached: so many do not fit into a head of `head`")},
		{APP "limits: {fields: 256, head: 1KiB, answer_head: 1KiB}", ""}, {APP "limits: {fields: 10000, head: 1KiB}", ""},
		{APP "limits: {fields: 500, head: 1KiB, answer_head: 2KiB}", ""},
	};

	(void)state;
	CHECK_ALL(odd);
}

static void rewrites_that_change_nothing(void **state)
{
	static const struct odd odd[] = {
		{"services: {a: []}\nroutes: [{service: a, strip_prefix: on}]",
		 W("2:23", "`strip_prefix` changes nothing: the prefix is `/`")},
		{"services: {a: []}\nroutes: [{service: a, path: /x/, replace_prefix: /x}]",
		 W("2:34", "`replace_prefix` changes nothing: it is the prefix itself")},
		{"services: {a: []}\nroutes: [{service: a, path: /x, strip_prefix: on}, {service: a, strip_prefix: off}]", ""},
		{"services: {a: []}\nroutes: [{service: a, replace_prefix: /x}]", ""},
		{"routes: [{path: /x, redirect: {path: {replace_prefix: /x}}}]",
		 W("1:32", "the redirect leads back to itself, for ever")},
		{"routes: [{path: {exact: /x}, redirect: {path: {replace_full: /x}}}]",
		 W("1:41", "the redirect leads back to itself, for ever")},
		{"routes: [{path: /x, redirect: {path: {replace_prefix: /x}, scheme: https}}]", ""},
		{"routes: [{path: /x, redirect: {path: {replace_prefix: /y}}}]", ""},
		{"routes: [{path: {exact: /x}, method: POST, redirect: {path: {replace_full: /x}, status: 303}}]", ""},
	};

	(void)state;
	CHECK_ALL(odd);
}

#define EVERYBODY "everybody is trusted: any client can say that it is another one"

static void trust_in_everybody(void **state)
{
	static const struct odd odd[] = {
		{APP "listen: [{address: ':1', trusted_proxies: [10.0.0.0/8, '::/0']}]", W("3:56", EVERYBODY)},
		{APP "listen: [':1', '0.0.0.0:2', '127.0.0.1:3', '[::1]:4', 'unix:/x']\ndefaults: {trusted_proxies: 0.0.0.0/0}",
		 W("4:29", EVERYBODY)},
		{APP "listen: [':1']\ndefaults: {trusted_proxies: [10.0.0.0/8, 'fd00::/8', 'unix:']}", ""},
		{"services: {a: []}\nroutes: [{service: a, allow: 0.0.0.0/0}]", ""},
		{"listen: {address: ':1', service: a, trusted_proxies: 0.0.0.0/0}\nservices: {a: []}", ""},
		{"listen: {address: ':1', service: a, trusted_proxies: 0.0.0.0/0, proxy_protocol: on}\nservices: {a: []}",
		 W("1:54", EVERYBODY)},
	};

	(void)state;
	CHECK_ALL(odd);
}

static void services_that_no_route_leads_to(void **state)
{
	static const struct odd odd[] = {
		{"services:\n  old: 1.2.3.4:5\n  a: []\n  older: []\nroutes: [{service: a}, {path: /x, service: a}]\n",
		 W("2:3", "no route leads to the service `old`") W("4:3", "no route leads to the service `older`")},
		{"services: {a: [], b: []}\nroutes: [{service: {a: 1, b: 0}}]\n", ""},
		{"routes:\n- {path: {regex: /.*}, answer: {}}\n- {path: /x, answer: {}}\nservices: {old: []}\n",
		 W("3:3", "no request reaches this route: the route on line 2 takes them all before it: "
		   "expressions are asked before prefixes")
		 W("4:12", "no route leads to the service `old`")},
	};

	(void)state;
	CHECK_ALL(odd);
}

static char *many_text(void)
{
	char *out = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&out, &n);

	fputs("routes:\n- {path: {regex: /x/.*}, answer: {}}\n", f);
	for (int i = 0; i < 250; i++)
		fprintf(f, "- {path: /x/%d, answer: {}}\n", i);
	fclose(f);
	return out;
}

static void many_are_counted(void **state)
{
	char *text = many_text(), *all = NULL;
	struct conf *c = parse_ok(text);
	size_t n = 0;
	FILE *f = open_memstream(&all, &n);

	(void)state;
	assert_int_equal(conf_warnings_print(c, f), 250);
	fclose(f);
	assert_non_null(strstr(all, "\nt: and 150 more warnings\n"));
	free(all);
	free(text);
	conf_free(c);
}

static void no_memory_is_told(void **state)
{
	struct conf *c = parse_ok(TWO("path: {regex: /.*}", "path: /x") "services: {a: []}\n");
	bool done = false;

	(void)state;
	for (size_t i = 1; !done; i++) {
		char *all = NULL;
		size_t n = 0;
		FILE *f = open_memstream(&all, &n);

		mem_fail_from(i);
		conf_warnings_print(c, f);
		mem_fail_from(0);
		fclose(f);
		done = !strstr(all, "no memory");
		assert_true(!done || (strstr(all, "3:3") && strstr(all, "4:12")));
		free(all);
		assert_true(i < 100);
	}
	conf_free(c);
}

/* Ten thousand routes of one host, half of them expressions that nothing is known of but their text. */
static void many_routes_are_looked_through(void **state)
{
	char *text = NULL, *all;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	clock_t begin;

	(void)state;
	fputs("routes:\n", f);
	for (int i = 0; i < 10000; i++)
		fprintf(f, i % 2 ? "- {path: /x/%d, answer: {}}\n" : "- {path: {regex: '/y/%d(a|b).*'}, answer: {}}\n", i);
	fclose(f);
	begin = clock();
	all = told(text);
	print_message("10,000 routes: %.0f ms\n", (double)(clock() - begin) * 1e3 / CLOCKS_PER_SEC);
	assert_string_equal(all, "");
	free(all);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(routes_that_no_request_reaches),
		cmocka_unit_test(routes_that_some_request_reaches),
		cmocka_unit_test(matches_that_no_request_fits),
		cmocka_unit_test(time_outs_that_never_run_out),
		cmocka_unit_test(limits_that_are_never_reached),
		cmocka_unit_test(rewrites_that_change_nothing),
		cmocka_unit_test(trust_in_everybody),
		cmocka_unit_test(services_that_no_route_leads_to),
		cmocka_unit_test(many_are_counted),
		cmocka_unit_test(no_memory_is_told),
		cmocka_unit_test(many_routes_are_looked_through),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
