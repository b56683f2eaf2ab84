/* path: the normal form, one row a rule. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "lib/base/path.h"

static const struct {
	const char *path, *normal;
} rows[] = {
	{ "/", "/" },
	{ "/a/b", "/a/b" },
	{ "/a/b/", "/a/b/" },
	{ "/a.b/.c", "/a.b/.c" },
	{ "/%61dmin", "/admin" },
	{ "/a%2fb", "/a%2Fb" },
	{ "/a%7Eb%2e", "/a~b." },
	{ "/%c3%a9", "/%C3%A9" },
	{ "/\xc3\xa9", "/%C3%A9" },
	{ "/%zz%2", "/%25zz%252" },
	{ "/100%", "/100%25" },
	{ "/%%341", "/%2541" },
	{ "/x/../admin", "/admin" },
	{ "/x/%2e%2E/admin", "/admin" },
	{ "/./admin", "/admin" },
	{ "/../../admin", "/admin" },
	{ "/a/..", "/" },
	{ "/a/.", "/a/" },
	{ "/a/b/..", "/a/" },
	{ "//admin", "/admin" },
	{ "/a//b///c//", "/a/b/c/" },
	{ "/...", "/..." },
	{ "/a/..b/..", "/a/" },
	{ "/a;x/..;/b", "/a;x/..;/b" },
};

static void every_row(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct str path = str_of(rows[i].path);
		char out[256];
		size_t n = path_normal(path, out);

		assert_int_equal(n, strlen(rows[i].normal));
		assert_memory_equal(out, rows[i].normal, n);
		if (path_is_normal(path))
			assert_true(str_eq(path, (struct str){ out, n }));
	}
}

/* The normal form of random paths is its own normal form, begins with '/', and fits. */
static void random_paths(void **state)
{
	static const char set[] = "/.%2eEfFaA\xff x";
	char in[64], out[192], again[576];

	(void)state;
	srand(7);
	for (int round = 0; round < 200000; round++) {
		size_t n = 1 + (size_t)rand() % (sizeof in - 1), m, k;

		in[0] = '/';
		for (size_t i = 1; i < n; i++)
			in[i] = set[(size_t)rand() % (sizeof set - 1)];
		m = path_normal((struct str){ in, n }, out);
		assert_true(m >= 1 && m <= 3 * n && out[0] == '/');
		if (path_is_normal((struct str){ in, n }))
			assert_true(m == n && !memcmp(in, out, n));
		k = path_normal((struct str){ out, m }, again);
		assert_true(k == m && !memcmp(out, again, m));
	}
}

static void oddities(void **state)
{
	static const struct { const char *path; enum path_oddity is; } odd[] = {
		{"/", PATH_PLAIN}, {"/a/b", PATH_PLAIN}, {"/a/", PATH_PLAIN}, {"/%7Ea/%41", PATH_PLAIN}, {"/a%2", PATH_PLAIN}, {"/%", PATH_PLAIN},
		{"/...", PATH_PLAIN}, {"/.a", PATH_PLAIN}, {"/a.", PATH_PLAIN}, {"/..a/b", PATH_PLAIN}, {"/a;b/c", PATH_PLAIN}, {"/a..;/", PATH_PLAIN},
		{"//", PATH_SEGMENTS}, {"//a", PATH_SEGMENTS}, {"/a//b", PATH_SEGMENTS}, {"/.", PATH_SEGMENTS}, {"/..", PATH_SEGMENTS},
		{"/./a", PATH_SEGMENTS}, {"/a/../b", PATH_SEGMENTS}, {"/a/..", PATH_SEGMENTS}, {"/%2e/a", PATH_SEGMENTS}, {"/a/.%2E", PATH_SEGMENTS},
		{"/a%2fb", PATH_UNSURE}, {"/a%2Fb", PATH_UNSURE}, {"/a\\b", PATH_UNSURE}, {"/a%5cb", PATH_UNSURE}, {"/a%00", PATH_UNSURE},
		{"/..;/a", PATH_UNSURE}, {"/.;x/a", PATH_UNSURE}, {"/%2e%2e;/a", PATH_UNSURE}, {"/..%3b/a", PATH_UNSURE}, {"//a%2f", PATH_UNSURE},
	};

	(void)state;
	for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++)
		if (path_oddity(str_of(odd[i].path)) != odd[i].is)
			fail_msg("%s", odd[i].path);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(every_row), cmocka_unit_test(random_paths),
		cmocka_unit_test(oddities) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
