/* dispatch/route, dispatch/target: what is kept, what is refused, targets and Locations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "dispatch/route.h"
#include "lib/base/mem.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define S(x) {x, sizeof(x) - 1}

static struct route *made(const struct route_spec *spec)
{
	struct snapshot_error err = {0};
	struct route *r = route_new(spec, route_spec_hash(spec), NULL, &err);

	if (!r)
		fail_msg("refused: %s", err.text);
	return r;
}

static void targets(void **state)
{
	static const struct { uint8_t rewrite; const char *from, *to, *target, *want; } rows[] = {
		{REWRITE_NONE, "/api", "", "/api/x", "/api/x"},
		{REWRITE_STRIP, "/api", "", "/api/x?q=/api", "/x?q=/api"}, {REWRITE_STRIP, "/api", "", "/api", "/"},
		{REWRITE_STRIP, "/api", "", "/api?q", "/?q"}, {REWRITE_STRIP, "/api", "", "/api/", "/"},
		{REWRITE_STRIP, "/api/", "", "/api/x", "/x"}, {REWRITE_STRIP, "/api", "", "/apix", "/apix"},
		{REWRITE_STRIP, "/api", "", "/other/api", "/other/api"}, {REWRITE_STRIP, "/", "", "/x", "/x"},
		{REWRITE_STRIP, "/api", "", "/api/%2F..//b%00?%0a?", "/%2F..//b%00?%0a?"}, {REWRITE_STRIP, "/api", "", "*", "*"},
		{REWRITE_STRIP, "/a?", "", "/a", NULL}, {REWRITE_STRIP, "/api", "", "/?/api", "/?/api"},
		{REWRITE_REPLACE, "/foo", "/xyz", "/foo/bar", "/xyz/bar"}, {REWRITE_REPLACE, "/foo", "/xyz/", "/foo/bar", "/xyz/bar"},
		{REWRITE_REPLACE, "/foo/", "/xyz", "/foo/bar", "/xyz/bar"}, {REWRITE_REPLACE, "/foo", "/xyz", "/foo", "/xyz"},
		{REWRITE_REPLACE, "/foo", "/xyz", "/foo/", "/xyz/"}, {REWRITE_REPLACE, "/foo", "/", "/foo/bar", "/bar"},
		{REWRITE_REPLACE, "/foo", "/", "/foo", "/"}, {REWRITE_REPLACE, "/foo", "", "/foo?a", "/?a"},
		{REWRITE_REPLACE, "/", "/v2", "/x?y", "/v2/x?y"}, {REWRITE_REPLACE, "/", "/v2", "/", "/v2/"},
		{REWRITE_REPLACE, "/foo", "/xyz", "/foo?a=/foo", "/xyz?a=/foo"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct route_spec spec = {.rewrite = rows[i].rewrite, .rewrite_from = str_of(rows[i].from),
					  .rewrite_to = str_of(rows[i].to)};
		struct str out;
		struct route *r;
		struct arena a;

		if (!rows[i].want) {
			assert_null(route_new(&spec, 0, NULL, NULL));
			continue;
		}
		r = made(&spec);
		arena_init(&a, NULL, 0, NULL);
		assert_int_equal(route_rewrite_target(r, str_of(rows[i].target), &a, &out), OK);
		if (!str_eq(out, str_of(rows[i].want)))
			fail_msg("row %zu: '%.*s'", i, (int)out.n, out.p);
		arena_fini(&a);
		route_unref(r);
	}
}

static void locations(void **state)
{
	static const struct { const char *template, *host, *target, *want; } rows[] = {
		{"https://{host}{path}", "shop.example:8080", "/a?b=c", "https://shop.example/a?b=c"},
		{"https://{host}:8443{path}", "[::1]:80", "/", "https://[::1]:8443/"},
		{"https://{host}{path}", "shop.example", "*", "https://shop.example/"},
		{"https://other.example{path}", "", "/a//b", "https://other.example/a//b"},
		{"https://other.example/", "x", "/a", "https://other.example/"}, {"/new{path}", "h", "/a?b", "/new/a?b"},
		{"{path}", "h", "/a", "/a"}, {"/at/{host}", "h:1", "/a", "/at/h"},
		/* a path that would name a host */
		{"{path}", "h", "//evil.example/x", "/.//evil.example/x"}, {"{path}", "h", "/\\evil.example", "/./\\evil.example"},
		{"/{path}", "h", "/evil.example", "/.//evil.example"}, {"/x{path}", "h", "//evil", "/x//evil"},
		{"https://{host}{path}", "h", "//evil", "https://h//evil"},
		/* bytes that must not get out */
		{"{path}", "h", "/a\r\nSet-Cookie: x", NULL}, {"{path}", "h", "/a\nb", NULL}, {"{path}", "h", "/\t/evil", NULL},
		{"{path}", "h", "/a b", NULL}, {"{path}", "h", "/a\x7f", NULL}, {"https://{host}/", "", "/", NULL},
		{"https://{host}/", ":80", "/", NULL}, {"https://{host}/", "evil/x", "/", NULL}, {"https://{host}/", "a@b", "/", NULL},
		{"https://{host}/", "a\r\nb", "/", NULL}, {"https://{host}/", "a\\b", "/", NULL}, {"https://{host}/", "a b", "/", NULL},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct route_spec spec = {.action = ROUTE_REDIRECT, .status = 308, .text = str_of(rows[i].template)};
		struct route *r = made(&spec);
		struct str out = STR("untouched");
		struct arena a;
		enum err e;

		arena_init(&a, NULL, 0, NULL);
		e = route_redirect_location(r, STR("http"), str_of(rows[i].host), str_of(rows[i].target), &a, &out);
		if (e != (rows[i].want ? OK : ERR_SYNTAX) || !str_eq(out, str_of(rows[i].want ? rows[i].want : "untouched")))
			fail_msg("row %zu: %d '%.*s'", i, e, (int)out.n, out.p);
		arena_fini(&a);
		route_unref(r);
	}
}

/* What stands for scheme and port, and a rewrite before it: the tables of the Gateway API. */
static void locations_of_changes(void **state)
{
	static const struct { const char *template, *scheme, *host, *want; } ports[] = {
		{"{scheme}://{host}{port}{path}", "http", "a.de", "http://a.de/p?q"},
		{"{scheme}://{host}{port}{path}", "http", "a.de:80", "http://a.de/p?q"},
		{"{scheme}://{host}{port}{path}", "http", "a.de:443", "http://a.de:443/p?q"},
		{"{scheme}://{host}{port}{path}", "https", "a.de:443", "https://a.de/p?q"},
		{"{scheme}://{host}{port}{path}", "https", "a.de:80", "https://a.de:80/p?q"},
		{"{scheme}://{host}{port}{path}", "http", "a.de.:8080", "http://a.de:8080/p?q"},
		{"{scheme}://{host}{port}{path}", "http", "a.de:", "http://a.de/p?q"},
		{"{scheme}://{host}{port}{path}", "http", "[::1]", "http://[::1]/p?q"},
		{"{scheme}://{host}{port}{path}", "http", "[::1]:81", "http://[::1]:81/p?q"},
		{"{scheme}://b.de{port}{path}", "http", "a.de:8080", "http://b.de:8080/p?q"},
		{"{scheme}://b.de{port}{path}", "http", "", "http://b.de/p?q"},
		{"{scheme}://b.de{:80}{path}", "http", "a.de:8080", "http://b.de/p?q"},
		{"{scheme}://b.de{:80}{path}", "https", "a.de:8080", "https://b.de:80/p?q"},
		{"{scheme}://b.de{:443}{path}", "https", "a.de:8080", "https://b.de/p?q"},
		{"{scheme}://b.de{:443}{path}", "http", "a.de:8080", "http://b.de:443/p?q"},
		{"{scheme}://{host}:8083{path}", "http", "a.de:80", "http://a.de:8083/p?q"},
		{"{scheme}://{host}{port}{path}", "http", "", NULL}, {"{scheme}://{host}{port}{path}", "http", "a:8x", NULL},
		{"{scheme}://{host}{port}{path}", "http", "a:123456", NULL}, {"{scheme}://{host}{port}{path}", "http", "a/b", NULL},
		{"{scheme}://{host}{port}{path}", "http", ":80", NULL}, {"{scheme}://{host}{port}{path}", "http", "a\r\n:1", NULL},
		{"{scheme}://b.de{port}{path}", "http", "a:1\r\nb", NULL},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(ports); i++) {
		struct route_spec spec = {.action = ROUTE_REDIRECT, .status = 302, .text = str_of(ports[i].template)};
		struct route *r = made(&spec);
		struct str out = STR("untouched");
		struct arena a;

		arena_init(&a, NULL, 0, NULL);
		assert_int_equal(route_redirect_location(r, str_of(ports[i].scheme), str_of(ports[i].host), STR("/p?q"), &a, &out),
				 ports[i].want ? OK : ERR_SYNTAX);
		if (!str_eq(out, str_of(ports[i].want ? ports[i].want : "untouched")))
			fail_msg("row %zu: '%.*s'", i, (int)out.n, out.p);
		arena_fini(&a);
		route_unref(r);
	}
}

static void locations_of_new_paths(void **state)
{
	static const struct { uint8_t rewrite; const char *from, *to, *target, *want; } rows[] = {
		{REWRITE_REPLACE, "/foo", "/xyz", "/foo/bar", "/xyz/bar"}, {REWRITE_REPLACE, "/foo", "/xyz/", "/foo/bar", "/xyz/bar"},
		{REWRITE_REPLACE, "/foo/", "/xyz", "/foo/bar", "/xyz/bar"}, {REWRITE_REPLACE, "/foo/", "/xyz/", "/foo/bar", "/xyz/bar"},
		{REWRITE_REPLACE, "/foo", "/xyz", "/foo", "/xyz"}, {REWRITE_REPLACE, "/foo", "/xyz", "/foo/", "/xyz/"},
		{REWRITE_REPLACE, "/foo", "/", "/foo/bar", "/bar"}, {REWRITE_REPLACE, "/foo", "/", "/foo/", "/"},
		{REWRITE_REPLACE, "/foo", "/", "/foo", "/"}, {REWRITE_REPLACE, "/foo", "/", "/foo?a=b", "/?a=b"},
		{REWRITE_REPLACE, "/", "/xyz", "/bar?a", "/xyz/bar?a"}, {REWRITE_REPLACE, "/", "/xyz", "/", "/xyz/"},
		{REWRITE_REPLACE, "/foo", "/xyz", "/foo?a=/foo/b", "/xyz?a=/foo/b"}, {REWRITE_REPLACE, "/foo", "/xyz", "*", "/"},
		{REWRITE_PATH, "", "/new", "/foo/bar?a=b", "/new?a=b"}, {REWRITE_PATH, "", "/new/", "/foo", "/new/"},
		{REWRITE_PATH, "", "/", "//evil.de", "/"}, {REWRITE_PATH, "", "/new", "*", "/new"},
		/* never another host */
		{REWRITE_REPLACE, "/foo", "/", "/foo//evil.de", "/.//evil.de"}, {REWRITE_REPLACE, "/foo", "/", "/foo/\\evil.de", "/./\\evil.de"},
		{REWRITE_REPLACE, "/", "/", "//evil.de", "/.//evil.de"}, {REWRITE_REPLACE, "/foo", "/x", "/foo//evil.de", "/x//evil.de"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct route_spec spec = {.action = ROUTE_REDIRECT, .status = 302, .text = S("{path}"), .rewrite = rows[i].rewrite,
					  .rewrite_from = str_of(rows[i].from), .rewrite_to = str_of(rows[i].to)};
		struct route *r = made(&spec);
		struct str out;
		struct arena a;

		arena_init(&a, NULL, 0, NULL);
		assert_int_equal(route_redirect_location(r, STR("http"), STR(""), str_of(rows[i].target), &a, &out), OK);
		if (!str_eq(out, str_of(rows[i].want)))
			fail_msg("row %zu: '%.*s'", i, (int)out.n, out.p);
		arena_fini(&a);
		route_unref(r);
	}
}

static void no_memory_for_a_target(void **state)
{
	struct route_spec spec = {.rewrite = REWRITE_REPLACE, .rewrite_from = S("/a"), .rewrite_to = S("/b"),
				  .action = ROUTE_REDIRECT, .status = 302, .text = S("{path}")};
	struct route *r = made(&spec);
	struct str out;
	struct arena a;

	(void)state;
	arena_init(&a, NULL, 0, NULL);
	mem_fail_from(1);
	assert_int_equal(route_rewrite_target(r, STR("/a/x"), &a, &out), ERR_MEM);
	assert_int_equal(route_redirect_location(r, STR("http"), STR("h"), STR("/a"), &a, &out), ERR_MEM);
	assert_null(route_new(&spec, 0, NULL, NULL));
	mem_fail_from(0);
	arena_fini(&a);
	route_unref(r);
}

static void refuses(void **state)
{
	static const struct header_mod host[] = {{HEADER_SET, S("hOst"), S("x")}}, length[] = {{HEADER_ADD, S("Content-Length"), S("1")}},
		split[] = {{HEADER_SET, S("a"), S("b\r\nc")}}, name[] = {{HEADER_SET, S("a:"), S("b")}}, op[] = {{HEADER_VARY, S("a"), S("b")}};
	static const struct { struct route_spec spec; const char *text; } rows[] = {
		{{.action = 9}, "action 9"}, {{.action = ROUTE_SERVICE}, "no service"},
		{{.action = ROUTE_REDIRECT, .status = 300, .text = S("/")}, "300"},
		{{.action = ROUTE_REDIRECT, .status = 301, .text = S("")}, "a redirect goes"},
		{{.action = ROUTE_REDIRECT, .status = 301, .text = S("//{host}")}, "a redirect goes"},
		{{.action = ROUTE_REDIRECT, .status = 301, .text = S("/\\x")}, "a redirect goes"},
		{{.action = ROUTE_REDIRECT, .status = 301, .text = S("https:{path}")}, "a redirect goes"},
		{{.action = ROUTE_REDIRECT, .status = 301, .text = S("https://{path}")}, "a redirect goes"},
		{{.action = ROUTE_REDIRECT, .status = 301, .text = S("javascript:x")}, "a redirect goes"},
		{{.action = ROUTE_REDIRECT, .status = 301, .text = S("{host}")}, "a redirect goes"},
		{{.action = ROUTE_REDIRECT, .status = 301, .text = S("{scheme}://{path}")}, "a redirect goes"},
		{{.action = ROUTE_REDIRECT, .status = 301, .text = S("{scheme}:///x")}, "a redirect goes"},
		{{.action = ROUTE_REDIRECT, .status = 301, .text = S("https://:80{path}")}, "a redirect goes"},
		{{.action = ROUTE_REDIRECT, .status = 301, .text = S("https://{port}{path}")}, "a redirect goes"},
		{{.action = ROUTE_REDIRECT, .status = 301, .text = S("{scheme}{path}")}, "a redirect goes"},
		{{.action = ROUTE_REDIRECT, .status = 301, .text = S("/{:81}")}, "a redirect knows"},
		{{.action = ROUTE_REDIRECT, .status = 301, .text = S("/a b")}, "a redirect goes"},
		{{.action = ROUTE_REDIRECT, .status = 301, .text = S("/{query}")}, "placeholders"},
		{{.action = ROUTE_ANSWER, .status = 100}, "100"}, {{.action = ROUTE_ANSWER, .status = 204, .text = S("x")}, "no body"},
		{{.action = ROUTE_ANSWER, .status = 200, .content_type = S("a\nb")}, "content type"},
		{{.label = S("a\nb")}, "label"}, {{.rewrite = 4}, "rewrite 4"}, {{.host = S("a/b")}, "host to send"},
		{{.action = ROUTE_SPLIT}, "no service"}, {{.rewrite_from = S("a")}, "begins with '/'"},
		{{.rewrite_to = S("/a?b")}, "begins with '/'"}, {{.rewrite_to = S("/a\rb")}, "begins with '/'"},
		{{.request = host, .n_request = 1}, "'hOst' cannot"}, {{.response = length, .n_response = 1}, "'Content-Length' cannot"},
		{{.request = split, .n_request = 1}, "control bytes"}, {{.response = name, .n_response = 1}, "proper name"},
		{{.request = op, .n_request = 1}, "change 4"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct snapshot_error err = {0};

		assert_null(route_new(&rows[i].spec, 0, NULL, &err));
		if (err.err != ERR_SYNTAX || !strstr(err.text, rows[i].text))
			fail_msg("row %zu: '%s'", i, err.text);
	}
}

/* Every field that changes makes it another route; what does not count does not. */
static void equality(void **state)
{
	static const struct header_mod a[] = {{HEADER_SET, S("n"), S("v")}, {HEADER_REMOVE, S("m"), S("")}},
		b[] = {{HEADER_SET, S("n"), S("w")}, {HEADER_REMOVE, S("m"), S("")}},
		c[] = {{HEADER_ADD, S("n"), S("v")}, {HEADER_REMOVE, S("m"), S("")}};
	const struct route_spec base = {.action = ROUTE_ANSWER, .rewrite = REWRITE_REPLACE, .status = 200, .n_request = 2,
		.n_response = 2, .label = S("l"), .text = S("t"), .content_type = S("c"), .rewrite_from = S("/f"),
		.rewrite_to = S("/t"), .request = a, .response = a, .body_limit = 1, .first_byte_ms = 2,
		.between_bytes_ms = 3, .tunnel_ms = 4};
	struct route_spec v[20];
	struct route *r = made(&base);
	size_t n = 0, i;

	(void)state;
#define VARY(change) (v[n] = base, v[n].change, n++)
	VARY(action = ROUTE_INVALID);
	VARY(rewrite = REWRITE_STRIP);
	VARY(odd_paths = ODD_PATHS_REFUSE);
	VARY(host = (struct str)S("other"));
	VARY(status = 201);
	VARY(n_request = 1);
	VARY(n_response = 1);
	VARY(label = STR("m"));
	VARY(text = STR("u"));
	VARY(content_type = STR("d"));
	VARY(rewrite_from = STR("/g"));
	VARY(rewrite_to = STR("/u"));
	VARY(request = b);
	VARY(response = b);
	VARY(request = c);
	VARY(body_limit = 9);
	VARY(first_byte_ms = 9);
	VARY(between_bytes_ms = 9);
	VARY(tunnel_ms = 9);
	for (i = 0; i < n; i++)
		if (route_is(r, &v[i]) || route_spec_hash(&v[i]) == r->hash)
			fail_msg("change %zu is not seen", i);
	n = 0;
	VARY(rewrite_from = STR("/f/"));
	VARY(rewrite_to = STR("/t/"));
	VARY(label = base.label);
	for (i = 0; i < n; i++)
		assert_true(route_is(r, &v[i]) && route_spec_hash(&v[i]) == r->hash);
	assert_true(str_eq(r->spec->request[0].value, STR("v")) && str_eq(r->spec->response[1].name, STR("m")));
	assert_ptr_not_equal(r->spec->text.p, base.text.p);
	route_unref(route_ref(r));
	route_unref(r);
	route_unref(NULL);
}

/* What routes do alike is one object; what differs in whom they lead to and what they are called is not. */
static void what_is_alike_is_shared(void **state)
{
	struct snapshot_error err;
	struct route_spec one = {.action = ROUTE_ANSWER, .status = 200, .text = STR("yes"), .label = STR("one")}, two = one, three = one;
	struct route *a = route_new(&one, 1, NULL, &err), *b, *c;

	(void)state;
	two.label = STR("two");
	three.text = STR("no");
	b = route_new(&two, 2, a, &err);
	c = route_new(&three, 3, b, &err);
	assert_ptr_equal(a->spec, b->spec);
	assert_ptr_not_equal(a->spec, c->spec);
	assert_int_equal(route_shape_hash(&one), route_shape_hash(&two));
	assert_int_not_equal(route_spec_hash(&one), route_spec_hash(&two));
	assert_int_not_equal(route_shape_hash(&one), route_shape_hash(&three));
	assert_true(route_is(a, &one) && route_is(b, &two) && !route_is(a, &two) && !route_is(b, &three));
	route_unref(a);
	assert_true(str_eq(b->spec->text, STR("yes")) && str_eq(route_label(b), STR("two")));
	route_unref(b);
	route_unref(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(targets),
		cmocka_unit_test(locations),
		cmocka_unit_test(locations_of_changes),
		cmocka_unit_test(locations_of_new_paths),
		cmocka_unit_test(no_memory_for_a_target),
		cmocka_unit_test(refuses),
		cmocka_unit_test(equality),
		cmocka_unit_test(what_is_alike_is_shared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
