/* lib/base/origin: patterns and what they match. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "lib/base/mem.h"
#include "lib/base/origin.h"

static const struct { const char *pattern, *origin; bool match; } rows[] = {
	{ "*", "https://a.example", true }, { "*", "null", true }, { "*", "", true },
	{ "https://a.example", "https://a.example", true },
	{ "https://a.example", "https://A.example", false },
	{ "https://a.example", "http://a.example", false },
	{ "https://a.example", "https://a.example:443", false },
	{ "https://a.example", "https://a.example/", false },
	{ "https://a.example", "https://a.example.evil.example", false },
	{ "https://a.example", "https://a.exampl", false },
	{ "http://localhost:3000", "http://localhost:3000", true },
	{ "http://localhost:3000", "http://localhost:30000", false },
	{ "http://[::1]:8080", "http://[::1]:8080", true },
	{ "chrome-extension://abcdefg", "chrome-extension://abcdefg", true },
	{ "https://*.example.com", "https://a.example.com", true },
	{ "https://*.example.com", "https://a-b_1.example.com", true },
	{ "https://*.example.com", "https://example.com", false },
	{ "https://*.example.com", "https://.example.com", false },
	{ "https://*.example.com", "https://a.b.example.com", false },
	{ "https://*.example.com", "http://a.example.com", false },
	{ "https://*.example.com", "https://aexample.com", false },
	{ "https://*.example.com", "https://a.example.com:8443", false },
	{ "https://*.example.com", "https://a.example.com.evil.net", false },
	{ "https://*.example.com", "https://evil.net/.example.com", false },
	{ "https://*.example.com", "https://evil.net#.example.com", false },
	{ "https://*.example.com", "https://evil.net:80.example.com", false },
	{ "https://*.example.com", "https://user@.example.com", false },
	{ "https://*.example.com", "https://A.example.com", false },
	{ "https://*.example.com", "https://a\r.example.com", false },
	{ "https://*.example.com:8443", "https://a.example.com:8443", true },
	{ "https://*.example.com:8443", "https://a.example.com", false },
	{ "https://**.example.com", "https://a.example.com", true },
	{ "https://**.example.com", "https://a.b.c.example.com", true },
	{ "https://**.example.com", "https://example.com", false },
	{ "https://**.example.com", "https://a..example.com", false },
	{ "https://**.example.com", "https://.a.example.com", false },
	{ "https://**.example.com", "https://evil.net/a.example.com", false },
};

static void matching(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct origin_pattern p;
		const char *why = "";
		size_t n = strlen(rows[i].origin);
		char *origin = mem_alloc(n + !n);	/* exact: the sanitizer sees a byte too many */

		memcpy(origin, rows[i].origin, n);
		if (origin_parse(str_of(rows[i].pattern), &p, &why) != OK)
			fail_msg("%s %s", rows[i].pattern, why);
		if (origin_match(&p, (struct str){ origin, n }) != rows[i].match)
			fail_msg("%s and %s", rows[i].pattern, rows[i].origin);
		mem_free(origin);
	}
}

static const struct { const char *pattern, *why; } bad[] = {
	{ "", "empty" }, { "null", "without an origin" }, { "a.example", "no scheme" }, { "https:a.example", "no scheme" },
	{ "://a.example", "no scheme" }, { "HTTPS://a.example", "capital" }, { "https://A.example", "capital" },
	{ "https://a.example/", "path" }, { "https://a.example/x", "path" }, { "https://a.example?x", "path" },
	{ "https://", "no proper host" }, { "https://a..b", "no proper host" }, { "https://.a", "no proper host" },
	{ "https://a.", "no proper host" }, { "https://a b", "no proper host" }, { "https://user@a", "no proper host" },
	{ "https://[::1", "no proper host" }, { "https://[::g]", "no proper host" }, { "https://[]", "no proper host" },
	{ "https://\xc3\xa4.example", "no proper host" },
	{ "https://a:", "port" }, { "https://a:0", "port" }, { "https://a:080", "port" }, { "https://a:65536", "port" },
	{ "https://a:x", "port" }, { "https://a:443", "own port" }, { "http://a:80", "own port" },
	{ "https://*", "star" }, { "https://a.*.example", "star" }, { "https://*a.example", "star" }, { "https://*.*.a", "star" },
	{ "https://***.a", "star" }, { "*.example.com", "no scheme" }, { "https://*.", "no proper host" },
	{ "https://*.[::1]", "no proper host" }, { "https://a:*", "port" },
};

static void refusing(void **state)
{
	char longer[ORIGIN_MAX + 1];
	struct origin_pattern p = { .kind = ORIGIN_LABELS };
	const char *why;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_int_equal(origin_parse(str_of(bad[i].pattern), &p, &why), ERR_SYNTAX);
		if (!strstr(why, bad[i].why))
			fail_msg("%s %s", bad[i].pattern, why);
	}
	memset(longer, 'a', sizeof longer);
	memcpy(longer, "https://", 8);
	assert_int_equal(origin_parse((struct str){ longer, sizeof longer }, &p, &why), ERR_SYNTAX);
	assert_string_equal(why, "is too long");
	assert_int_equal(p.kind, ORIGIN_LABELS);
	assert_int_equal(origin_parse((struct str){ longer, ORIGIN_MAX }, &p, &why), OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(matching),
		cmocka_unit_test(refusing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
