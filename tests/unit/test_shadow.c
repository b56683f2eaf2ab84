/* proxy: a route of which the check says that no request reaches it is reached by none.  Random small files, of which
 * every request of a small world is asked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "conf/conf.h"
#include "proxy/settings.h"

#define FILES 500
#define ROUTES 6
#define LINE(i) ((i) + 2)	/* of the i-th route */

static const char *const route_hosts[] = {"", "host: a.de, ", "host: '*.a.de', ", "host: [a.de, b.a.de], "};
static const char *const route_paths[] = {
	"", "path: /x, ", "path: /x/y, ", "path: {exact: /x}, ", "path: {exact: /}, ", "path: {regex: '.*'}, ",
	"path: {regex: '/.*'}, ", "path: {regex: '/x(/.*)?'}, ", "path: {regex: '/x.*'}, ", "path: {regex: '/x/y'}, ",
	"path: {regex: '/[xz]'}, ", "path: {regex: '/x/.*'}, ",
};
static const char *const route_methods[] = {"", "", "method: GET, ", "method: [GET, OPTIONS], "};
static const char *const route_headers[] = {"", "", "headers: {A: 1}, ", "headers: {a: {regex: '.*'}}, ", "headers: {A: 1, B: 1}, "};
static const char *const route_queries[] = {"", "", "query: {a: 1}, ", "query: {a: {regex: '.*'}}, "};

static const char *const hosts[] = {"a.de", "b.a.de", "c.de", "c.b.a.de"};
static const char *const paths[] = {"/", "/x", "/x/", "/x/y", "/x/y/z", "/xy", "/z", "*"};
static const char *const methods[] = {"GET", "OPTIONS", "PUT"};
static const char *const values[] = {NULL, "", "1", "2"};
static const char *const queries[] = {"", "a=", "a=1", "b=1", "A=1"};

#define N(list) (sizeof list / sizeof list[0])

static uint32_t seed = 1;

static size_t draw(size_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 17;
	seed ^= seed << 5;
	return seed % n;
}

#define DRAW(list) list[draw(N(list))]

/* What a request has of the header `name`, one of A and B. */
struct fields {
	const char *a, *b;
};

static bool header_of(void *ctx, struct str name, struct str *value)
{
	const struct fields *f = ctx;
	const char *is = str_ieq(name, STR("a")) ? f->a : f->b;

	if (is)
		*value = str_of(is);
	return is;
}

/* Marks the route that each request reaches; it says who it is by its status. */
static void ask_all(struct snapshot *snap, bool *reached)
{
	size_t world = N(hosts) * N(paths) * N(methods) * N(values) * N(values) * N(queries);

	for (size_t i = 0; i < world; i++) {
		size_t n = i;
		const struct route *r = NULL;
		struct fields f;
		struct route_query q = {.header = header_of, .ctx = &f};

		q.host = str_of(hosts[n % N(hosts)]);
		q.path = str_of(paths[(n /= N(hosts)) % N(paths)]);
		q.method = str_of(methods[(n /= N(paths)) % N(methods)]);
		f.a = values[(n /= N(methods)) % N(values)];
		f.b = values[(n /= N(values)) % N(values)];
		q.query = str_of(queries[(n / N(values)) % N(queries)]);
		if (snapshot_find(snap, &q, &r) == ROUTE_FOUND)
			reached[r->spec->status - 200] = true;
	}
}

static char *random_file(void)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	fputs("routes:\n", f);
	for (int i = 0; i < ROUTES; i++)
		fprintf(f, "- {%s%s%s%s%sanswer: {status: %d}}\n", DRAW(route_hosts), DRAW(route_paths), DRAW(route_methods),
			DRAW(route_headers), DRAW(route_queries), 200 + i);
	fclose(f);
	return text;
}

/* Which routes the check calls unreachable. */
static void warned(const struct conf *c, bool *shadowed)
{
	char *all = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&all, &n);
	unsigned line;

	conf_warnings_print(c, f);
	fclose(f);
	for (char *p = all; *p; p += strcspn(p, "\n") + 1)
		if (strstr(p, "no request reaches") && sscanf(p, "t:%u:", &line) == 1 && line >= LINE(0))
			shadowed[line - LINE(0)] = true;
	free(all);
}

/* How many routes of a random file are in the shadow, and how many are not reached at all; of a file that is refused
 * (two routes for the same requests) none. */
static void file_check(size_t *told, size_t *unreached)
{
	bool reached[ROUTES] = {false}, shadowed[ROUTES] = {false};
	struct endpoint_table *table = endpoint_table_new();
	struct snapshot_error err = {0};
	char *text = random_file();
	struct conf_errors e;
	struct conf *c;

	conf_errors_init(&e);
	c = conf_parse("t", str_of(text), NULL, &e);
	conf_errors_fini(&e);
	if (c) {
		struct snapshot *snap = settings_snapshot(c, NULL, NULL, table, &err);

		assert_non_null(snap);
		warned(c, shadowed);
		ask_all(snap, reached);
		snapshot_unref(snap);
	}
	for (int i = 0; c && i < ROUTES; i++) {
		*told += shadowed[i];
		*unreached += !reached[i];
		if (shadowed[i] && reached[i])
			fail_msg("the route on line %d is reached\n%s", LINE(i), text);
	}
	conf_free(c);
	endpoint_table_free(table);
	free(text);
}

static void what_is_called_unreachable_is(void **state)
{
	size_t told = 0, unreached = 0;

	(void)state;
	for (int i = 0; i < FILES; i++)
		file_check(&told, &unreached);
	print_message("%zu routes in the shadow of others, of %zu that no request of this world reaches\n", told, unreached);
	assert_true(told > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_called_unreachable_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
