/* dispatch/cors: policies, decisions for plain requests and preflights. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "dispatch/cors.h"
#include "lib/base/mem.h"

#define LIST(...) { (const struct str[]){ __VA_ARGS__ }, sizeof (const struct str[]){ __VA_ARGS__ } / sizeof(struct str) }
#define S STR
#define B(literal) { (literal), sizeof(literal) - 1 }

static const struct cors_spec listed = {
	.origins = LIST(B("https://app.example"), B("https://*.example.com")),
	.methods = LIST(B("GET"), B("PUT")), .headers = LIST(B("X-One"), B("Content-Type")),
	.expose = LIST(B("ETag"), B("X-Two")), .credentials = true, .max_age = 600,
};
static const struct cors_spec anybody = {
	.origins = LIST(B("*")), .methods = LIST(B("*")), .headers = LIST(B("*"), B("Authorization")), .expose = LIST(B("*")),
	.max_age = CORS_NO_AGE,
};
static const struct cors_spec echoing = {
	.origins = LIST(B("https://app.example")), .methods = LIST(B("*")), .headers = LIST(B("*")), .credentials = true,
	.max_age = 0,
};

static struct policy_part *made(const struct cors_spec *s)
{
	struct snapshot_error err = {0};
	struct policy_part *c = cors_new(s, &err);

	if (!c)
		fail_msg("%s", err.text);
	return c;
}

/* The answer in one text: "name=value;" for each field, then what Vary names. */
static const char *says(const struct policy_part *c, struct cors_request q)
{
	static char text[512];
	struct cors_answer a;
	int n;

	cors_decide(c, &q, &a);
	n = snprintf(text, sizeof text, "%s%s", a.preflight ? "P " : "", a.allowed ? "" : "no ");
	for (unsigned i = 0; i < a.n; i++) {
		assert_true(str_starts(a.field[i].name, S("Access-Control-")));
		n += snprintf(text + n, sizeof text - (size_t)n, "%.*s=%.*s; ", (int)a.field[i].name.n - 15,
			      a.field[i].name.p + 15, (int)a.field[i].value.n, a.field[i].value.p);
	}
	n += snprintf(text + n, sizeof text - (size_t)n, "vary=");
	for (unsigned i = 0; i < a.n_vary; i++)
		n += snprintf(text + n, sizeof text - (size_t)n, "%s%.*s", i ? ", " : "", (int)a.vary[i].n, a.vary[i].p);
	return text;
}

#define ORIGIN .origin = S("https://app.example")
#define ASKS .method = S("OPTIONS"), ORIGIN, .request_method = S("PUT")

static void plain_requests(void **state)
{
	struct policy_part *c = made(&listed), *any = made(&anybody);

	(void)state;
	assert_string_equal(says(c, (struct cors_request){ .method = S("GET"), ORIGIN }),
		"Allow-Origin=https://app.example; Allow-Credentials=true; Expose-Headers=ETag, X-Two; vary=Origin");
	assert_string_equal(says(c, (struct cors_request){ .method = S("PUT"), .origin = S("https://a.example.com") }),
		"Allow-Origin=https://a.example.com; Allow-Credentials=true; Expose-Headers=ETag, X-Two; vary=Origin");
	assert_string_equal(says(c, (struct cors_request){ .method = S("GET"), .origin = S("https://evil.example") }),
		"no vary=Origin");
	assert_string_equal(says(c, (struct cors_request){ .method = S("GET"), .origin = S("null") }), "no vary=Origin");
	assert_string_equal(says(c, (struct cors_request){ .method = S("GET") }), "vary=Origin");
	assert_string_equal(says(any, (struct cors_request){ .method = S("GET"), ORIGIN }),
		"Allow-Origin=*; Expose-Headers=*; vary=");
	assert_string_equal(says(any, (struct cors_request){ .method = S("GET") }), "Allow-Origin=*; Expose-Headers=*; vary=");
	policy_part_unref(c);
	policy_part_unref(any);
}

static void preflights(void **state)
{
	struct policy_part *c = made(&listed), *any = made(&anybody), *echo = made(&echoing);

	(void)state;
	assert_string_equal(says(c, (struct cors_request){ ASKS }),
		"P Allow-Origin=https://app.example; Allow-Credentials=true; Expose-Headers=ETag, X-Two; "
		"Allow-Methods=GET, PUT; Allow-Headers=X-One, Content-Type; Max-Age=600; vary=Origin");
	assert_string_equal(says(c, (struct cors_request){ .method = S("OPTIONS"), .origin = S("https://evil.example"),
		.request_method = S("PUT") }), "P no vary=Origin");
	assert_string_equal(says(any, (struct cors_request){ ASKS, .request_headers = S("x-a") }),
		"P Allow-Origin=*; Expose-Headers=*; Allow-Methods=*; Allow-Headers=*, Authorization; vary=");
	assert_string_equal(says(echo, (struct cors_request){ ASKS, .request_headers = S("x-a, X-b ,x-c") }),
		"P Allow-Origin=https://app.example; Allow-Credentials=true; Allow-Methods=PUT; Allow-Headers=x-a, X-b ,x-c; "
		"Max-Age=0; vary=Origin, Access-Control-Request-Method, Access-Control-Request-Headers");
	policy_part_unref(c);
	policy_part_unref(any);
	policy_part_unref(echo);
}

/* Without one of the three it is a request like any other. */
static void what_is_no_preflight(void **state)
{
	struct policy_part *c = made(&listed);
	const char *plain = "Allow-Origin=https://app.example; Allow-Credentials=true; Expose-Headers=ETag, X-Two; vary=Origin";

	(void)state;
	assert_string_equal(says(c, (struct cors_request){ .method = S("OPTIONS"), ORIGIN }), plain);
	assert_string_equal(says(c, (struct cors_request){ .method = S("GET"), ORIGIN, .request_method = S("PUT") }), plain);
	assert_string_equal(says(c, (struct cors_request){ .method = S("options"), ORIGIN, .request_method = S("PUT") }), plain);
	assert_string_equal(says(c, (struct cors_request){ .method = S("OPTIONS"), .request_method = S("PUT") }), "vary=Origin");
	policy_part_unref(c);
}

/* What is sent back is a method, or a list of names, and nothing else. */
static void what_is_no_name_is_not_sent_back(void **state)
{
	struct policy_part *echo = made(&echoing);
	const struct str bad[] = { S("a b"), S(",a"), S("a,,b"), S("a;b"), S("a:b"), S("\""), S("<script>"), S("a\x80") };

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct cors_request q = { ASKS, .request_headers = bad[i] };

		assert_null(strstr(says(echo, q), "Allow-Headers"));
		q.request_method = bad[i];
		assert_null(strstr(says(echo, q), "Allow-Methods"));
	}
	assert_null(strstr(says(echo, (struct cors_request){ ASKS }), "Allow-Headers"));
	policy_part_unref(echo);
}

static void refuses(struct cors_spec s, const char *part)
{
	struct snapshot_error err = {0};

	assert_null(cors_new(&s, &err));
	assert_int_equal(err.err, ERR_SYNTAX);
	if (!strstr(err.text, part))
		fail_msg("%s", err.text);
	assert_null(cors_new(&s, NULL));
}

static void what_is_dangerous_or_wrong_is_refused(void **state)
{
	static struct str many[CORS_ORIGINS_MAX + 1];

	(void)state;
	for (size_t i = 0; i <= CORS_ORIGINS_MAX; i++)
		many[i] = S("https://a.example");
	refuses((struct cors_spec){ .max_age = CORS_NO_AGE }, "1 to 256 origins");
	refuses((struct cors_spec){ .origins = { many, CORS_ORIGINS_MAX + 1 } }, "1 to 256 origins");
	refuses((struct cors_spec){ .origins = LIST(B("*")), .credentials = true }, "every site");
	refuses((struct cors_spec){ .origins = LIST(B("https://a.example"), B("*")), .credentials = true }, "every site");
	refuses((struct cors_spec){ .origins = LIST(B("https://a.example")), .expose = LIST(B("*")), .credentials = true }, "exposes");
	refuses((struct cors_spec){ .origins = LIST(B("null")) }, "'null' is what");
	refuses((struct cors_spec){ .origins = LIST(B("https://a.example/")) }, "has a path");
	refuses((struct cors_spec){ .origins = LIST(B("*")), .methods = LIST(B("GET, PUT")) }, "methods");
	refuses((struct cors_spec){ .origins = LIST(B("*")), .headers = LIST(B("X\r\nY")) }, "headers");
	refuses((struct cors_spec){ .origins = LIST(B("*")), .expose = LIST(B("")) }, "expose");
}

static bool same_as_listed(const struct cors_spec *s)
{
	struct policy_part *a = made(&listed), *b = made(s);
	bool same = policy_part_same(a, b);

	policy_part_unref(a);
	policy_part_unref(b);
	return same;
}

static void the_same_and_another(void **state)
{
	struct cors_spec other = listed;

	(void)state;
	assert_true(same_as_listed(&listed));
	assert_false(same_as_listed(&anybody));
	assert_false(same_as_listed(&echoing));
	other.max_age++;
	assert_false(same_as_listed(&other));
	other = listed;
	other.credentials = false;
	assert_false(same_as_listed(&other));
	other = listed;
	other.methods.n--;
	assert_false(same_as_listed(&other));
	other = listed;
	other.origins.n--;
	assert_false(same_as_listed(&other));
	other = listed;
	other.headers = (struct cors_list)LIST(B("X-One"), B("Content-Typo"));
	assert_false(same_as_listed(&other));
	other = listed;
	other.expose = (struct cors_list){ NULL, 0 };
	assert_false(same_as_listed(&other));
}

static void no_memory(void **state)
{
	struct snapshot_error err = {0};

	(void)state;
	mem_fail_from(1);
	assert_null(cors_new(&listed, &err));
	mem_fail_from(0);
	assert_int_equal(err.err, ERR_MEM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_requests),
		cmocka_unit_test(preflights),
		cmocka_unit_test(what_is_no_preflight),
		cmocka_unit_test(what_is_no_name_is_not_sent_back),
		cmocka_unit_test(what_is_dangerous_or_wrong_is_refused),
		cmocka_unit_test(the_same_and_another),
		cmocka_unit_test(no_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
