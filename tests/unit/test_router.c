/* dispatch/router: precedence, hosts, segments, conditions; then random rules and
 * requests against a matcher that tries every rule. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <stdio.h>

#include "dispatch/router.h"
#include "lib/base/mem.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* A request: headers as "name=value;name=value". */
struct ask {
	const char *host, *path, *method, *query, *headers;
	unsigned asked;		/* how often a header was asked for */
};

static bool ask_header(void *ctx, struct str name, struct str *value)
{
	struct ask *a = ctx;
	const char *p = a->headers;

	a->asked++;
	while (p && *p) {
		size_t n = strcspn(p, "="), end = strcspn(p, ";");

		if (str_ieq((struct str){p, n}, name)) {
			*value = (struct str){p + n + 1, end - n - 1};
			return true;
		}
		p += end + (p[end] == ';');
	}
	return false;
}

static struct route_query ask_query(struct ask *a)
{
	return (struct route_query){
		.host = str_of(a->host), .path = str_of(a->path), .method = str_of(a->method ? a->method : "GET"),
		.query = str_of(a->query), .header = ask_header, .ctx = a,
	};
}

/* The place of the rule that a router of these gives; -1: none, -2: undecided. */
static int found(const struct route_match *rules, size_t n, struct ask *a)
{
	struct route_match copy[8];
	struct snapshot_error err = {0};
	struct route_query q = ask_query(a);
	const void *target = NULL;
	enum route_found f;
	struct router *r;

	assert_true(n <= COUNT(copy));
	for (size_t i = 0; i < n; i++) {
		copy[i] = rules[i];
		copy[i].target = &rules[i];
	}
	r = router_new(copy, n, &err);
	if (!r)
		fail_msg("refused: %s", err.text);
	f = router_find(r, &q, &target);
	router_free(r);
	if (f == ROUTE_FOUND)
		return (int)((const struct route_match *)target - rules);
	return f == ROUTE_NONE ? -1 : -2;
}

#define HOST(h) .host = {h, sizeof(h) - 1}
#define PREFIX(p) .path_kind = MATCH_PREFIX, .path = {p, sizeof(p) - 1}
#define EXACT(p) .path_kind = MATCH_EXACT, .path = {p, sizeof(p) - 1}
#define REGEX(p) .path_kind = MATCH_REGEX, .path = {p, sizeof(p) - 1}
#define METHOD(m) .method = {m, sizeof(m) - 1}
#define HEADERS(h) .headers = h, .n_headers = COUNT(h)
#define QUERIES(q) .queries = q, .n_queries = COUNT(q)
#define PAIR(k, n, v) {.kind = k, .name = {n, sizeof(n) - 1}, .value = {v, sizeof(v) - 1}}

static const struct match_pair h1[] = {PAIR(MATCH_EXACT, "X", "1")};
static const struct match_pair h2[] = {PAIR(MATCH_EXACT, "x", "1"), PAIR(MATCH_REGEX, "y", "[0-9]+")};
static const struct match_pair h1_twice[] = {PAIR(MATCH_EXACT, "x", "1"), PAIR(MATCH_EXACT, "X", "9")};
static const struct match_pair q1[] = {PAIR(MATCH_EXACT, "p", "1")};
static const struct match_pair q2[] = {PAIR(MATCH_EXACT, "p", "1"), PAIR(MATCH_REGEX, "q", "a*")};

/* Both rules of a row match the request; the first is to win in either order. */
static void precedence(void **state)
{
	static const struct {
		const char *why;
		struct route_match better, worse;
	} rows[] = {
		{"exact host before wildcard", {HOST("a.b.c"), PREFIX("/")}, {HOST("*.b.c"), EXACT("/x/y"), METHOD("GET")}},
		{"longer wildcard", {HOST("*.b.c"), PREFIX("/")}, {HOST("*.c"), EXACT("/x/y")}},
		{"wildcard before any", {HOST("*.c"), PREFIX("/")}, {HOST(""), EXACT("/x/y")}},
		{"exact host before any", {HOST("a.b.c"), PREFIX("/")}, {HOST("*"), EXACT("/x/y")}},
		{"exact path before expression", {EXACT("/x/y")}, {REGEX("/x/y.*"), METHOD("GET"), HEADERS(h2)}},
		{"exact path before prefix", {EXACT("/x/y")}, {PREFIX("/x/y"), METHOD("GET"), HEADERS(h2)}},
		{"expression before prefix", {REGEX("/.*")}, {PREFIX("/x/y"), METHOD("GET"), HEADERS(h2)}},
		{"longer expression", {REGEX("/x/[y]")}, {REGEX("/.*"), METHOD("GET"), HEADERS(h2)}},
		{"longer prefix", {PREFIX("/x/y")}, {PREFIX("/x"), METHOD("GET"), HEADERS(h2), QUERIES(q2)}},
		{"prefix before none", {PREFIX("/x")}, {METHOD("GET"), HEADERS(h2)}},
		{"method before headers", {METHOD("GET")}, {HEADERS(h2), QUERIES(q2)}},
		{"method with one expression", {REGEX("/x/."), METHOD("GET")}, {REGEX("/./y"), HEADERS(h2)}},
		{"more headers", {HEADERS(h2)}, {HEADERS(h1), QUERIES(q2)}},
		{"headers before none", {HEADERS(h1)}, {QUERIES(q2)}},
		{"more parameters", {QUERIES(q2)}, {QUERIES(q1)}},
		{"parameter before none", {QUERIES(q1)}, {PREFIX("/")}},
		{"a header named twice counts once", {HEADERS(h2)}, {HEADERS(h1_twice)}},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct ask a = {"a.b.c", "/x/y", "GET", "p=1&q=aa", "x=1;y=22", 0};
		struct route_match forth[2] = {rows[i].better, rows[i].worse}, back[2] = {rows[i].worse, rows[i].better};

		if (found(forth, 2, &a) != 0 || found(back, 2, &a) != 1)
			fail_msg("%s", rows[i].why);
		if (found(&forth[0], 1, &a) != 0 || found(&back[0], 1, &a) != 0)
			fail_msg("%s: a rule alone does not match", rows[i].why);
	}
}

static void earlier_rule_wins_a_tie(void **state)
{
	const struct route_match rules[] = {
		{PREFIX("/x"), METHOD("POST")}, {PREFIX("/x/"), HEADERS(h1)}, {PREFIX("/x"), HEADERS(h1_twice)},
		{HOST("*"), PREFIX("/x"), HEADERS(h1)},
	};
	struct ask a = {"h", "/x", "GET", "", "x=1", 0};

	(void)state;
	assert_int_equal(found(rules, 4, &a), 1);
	assert_int_equal(found(rules + 2, 2, &a), 0);
	assert_int_equal(found(rules, 1, &a), -1);
}

/* A better host whose rules do not match does not hide the next one. */
static void falls_back_over_hosts(void **state)
{
	const struct route_match rules[] = {
		{HOST("a.b.c"), PREFIX("/only")}, {HOST("*.b.c"), PREFIX("/wild")}, {HOST("*.c"), METHOD("PUT")}, {PREFIX("/")},
	};
	const struct { const char *path, *method; int at; } rows[] = {
		{"/only/x", "GET", 0}, {"/wild", "GET", 1}, {"/else", "PUT", 2}, {"/else", "GET", 3},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct ask a = {"a.b.c", rows[i].path, rows[i].method, "", "", 0};

		assert_int_equal(found(rules, 4, &a), rows[i].at);
	}
}

static void hosts(void **state)
{
	static const struct { const char *rule, *host; bool matches; } rows[] = {
		{"a.example", "a.example", true}, {"a.example", "A.EXAMPLE", true}, {"A.Example", "a.example", true},
		{"a.example", "a.example:8080", true}, {"a.example", "a.example.", true}, {"a.example", "a.example.:80", true},
		{"a.example.", "a.example", true}, {"a.example", "b.a.example", false}, {"a.example", "example", false},
		{"a.example", "a.example..", false}, {"a.example", "", false}, {"a.example", "xa.example", false},
		{"*.example", "a.example", true}, {"*.example", "b.a.example", true}, {"*.EXAMPLE", "A.Example.:1", true},
		{"*.example", "example", false}, {"*.example", ".example", false}, {"*.example", "aexample", false},
		{"*.example", "a.example.org", false}, {"*.a.example", "b.a.example", true}, {"*.a.example", "b.example", false},
		{"*.a.example", "a.example", false}, {"*", "", true}, {"", "anything:1", true}, {"*", ".", true}, {"", "..", true},
		{"[::1]", "[::1]:80", true}, {"[::1]", "[::1]", true}, {"[::1]", "[::2]", false}, {"[::1]", "[::1", false},
		{"127.0.0.1", "127.0.0.1:1", true}, {"*.0.1", "127.0.0.1", true},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct route_match rule = {.host = str_of(rows[i].rule)};
		struct ask a = {rows[i].host, "/", "GET", "", "", 0};

		if ((found(&rule, 1, &a) == 0) != rows[i].matches)
			fail_msg("host '%s' for '%s'", rows[i].host, rows[i].rule);
	}
}

static void paths(void **state)
{
	static const struct { uint8_t kind; const char *rule, *path; bool matches; } rows[] = {
		{MATCH_PREFIX, "/a", "/a", true}, {MATCH_PREFIX, "/a", "/a/", true}, {MATCH_PREFIX, "/a", "/a/b", true},
		{MATCH_PREFIX, "/a", "/a//b", true}, {MATCH_PREFIX, "/a", "/ab", false}, {MATCH_PREFIX, "/a", "/", false},
		{MATCH_PREFIX, "/a", "/A", false}, {MATCH_PREFIX, "/a", "//a", false}, {MATCH_PREFIX, "/a", "/b/a", false},
		{MATCH_PREFIX, "/a/", "/a", true}, {MATCH_PREFIX, "/a/", "/a/b", true}, {MATCH_PREFIX, "/a/", "/ab", false},
		{MATCH_PREFIX, "/a/b", "/a", false}, {MATCH_PREFIX, "/a/b", "/a/b/c/d", true}, {MATCH_PREFIX, "/a/b", "/a/bc", false},
		{MATCH_PREFIX, "/", "/", true}, {MATCH_PREFIX, "/", "/x", true}, {MATCH_PREFIX, "/", "*", true},
		{MATCH_PREFIX, "", "/x", true}, {MATCH_PREFIX, "/", "", true}, {MATCH_PREFIX, "//", "//x", true},
		{MATCH_PREFIX, "//", "/x", false},
		{MATCH_EXACT, "/a", "/a", true}, {MATCH_EXACT, "/a", "/a/", false}, {MATCH_EXACT, "/a/", "/a/", true},
		{MATCH_EXACT, "/a/", "/a", false}, {MATCH_EXACT, "/", "/", true}, {MATCH_EXACT, "/", "//", false},
		{MATCH_EXACT, "/", "", false}, {MATCH_EXACT, "/", "*", false}, {MATCH_EXACT, "/a", "/a/b", false},
		{MATCH_EXACT, "/a//b", "/a//b", true}, {MATCH_EXACT, "/a//b", "/a/b", false},
		{MATCH_REGEX, "/a+", "/aa", true}, {MATCH_REGEX, "/a+", "/aab", false}, {MATCH_REGEX, "a+", "/aa", false},
		{MATCH_REGEX, "/a|/ab", "/ab", true}, {MATCH_REGEX, "/a$", "/a\n", false}, {MATCH_REGEX, "/[^/]+/x", "/q/x", true},
		{MATCH_REGEX, "/(a|ab)(c|bcd)", "/abcd", true}, {MATCH_REGEX, "/.", "/\xff", true}, {MATCH_REGEX, "", "/", false},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct route_match rule = {.path_kind = rows[i].kind, .path = str_of(rows[i].rule)};
		struct ask a = {"h", rows[i].path, "GET", "", "", 0};

		if ((found(&rule, 1, &a) == 0) != rows[i].matches)
			fail_msg("path '%s' for '%s'", rows[i].path, rows[i].rule);
	}
}

static void conditions(void **state)
{
	static const struct match_pair empty[] = {PAIR(MATCH_EXACT, "p", "")};
	static const struct {
		struct route_match rule;
		const char *method, *query, *headers;
		bool matches;
	} rows[] = {
		{{METHOD("GET")}, "GET", "", "", true}, {{METHOD("GET")}, "get", "", "", false}, {{METHOD("GET")}, "POST", "", "", false},
		{{HEADERS(h1)}, "GET", "", "x=1", true}, {{HEADERS(h1)}, "GET", "", "x=2", false}, {{HEADERS(h1)}, "GET", "", "", false},
		{{HEADERS(h2)}, "GET", "", "X=1;Y=42", true}, {{HEADERS(h2)}, "GET", "", "x=1", false},
		{{HEADERS(h2)}, "GET", "", "x=1;y=4a", false}, {{HEADERS(h1_twice)}, "GET", "", "x=1", true},
		{{HEADERS(h1_twice)}, "GET", "", "x=9", false},
		{{QUERIES(q1)}, "GET", "p=1", "", true}, {{QUERIES(q1)}, "GET", "P=1", "", false},
		{{QUERIES(q1)}, "GET", "a=b&p=1&c", "", true}, {{QUERIES(q1)}, "GET", "p=2&p=1", "", false},
		{{QUERIES(q1)}, "GET", "p=1&p=2", "", true}, {{QUERIES(q1)}, "GET", "pp=1", "", false},
		{{QUERIES(q1)}, "GET", "pp=1&p=1", "", true}, {{QUERIES(q1)}, "GET", "px1", "", false},
		{{QUERIES(q1)}, "GET", "&&p=1", "", true}, {{QUERIES(q1)}, "GET", "", "", false}, {{QUERIES(q1)}, "GET", "p=11", "", false},
		{{QUERIES(q2)}, "GET", "q=aaa&p=1", "", true}, {{QUERIES(q2)}, "GET", "q=b&p=1", "", false},
		{{QUERIES(q2)}, "GET", "q&p=1", "", true}, {{QUERIES(empty)}, "GET", "x&p", "", true},
		{{QUERIES(empty)}, "GET", "p=", "", true}, {{QUERIES(empty)}, "GET", "p=1", "", false},
		{{METHOD("GET"), HEADERS(h1), QUERIES(q1)}, "GET", "p=1", "x=1", true},
		{{METHOD("GET"), HEADERS(h1), QUERIES(q1)}, "GET", "p=1", "x=2", false},
		{{METHOD("GET"), HEADERS(h1), QUERIES(q1)}, "GET", "p=2", "x=1", false},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct ask a = {"h", "/", rows[i].method, rows[i].query, rows[i].headers, 0};

		if ((found(&rows[i].rule, 1, &a) == 0) != rows[i].matches)
			fail_msg("row %zu: %s ?%s %s", i, rows[i].method, rows[i].query, rows[i].headers);
	}
}

static void headers_are_asked_for_only_by_a_candidate(void **state)
{
	const struct route_match rules[] = {{PREFIX("/a"), HEADERS(h1)}, {PREFIX("/b"), METHOD("PUT"), HEADERS(h1)}, {PREFIX("/")}};
	struct ask a = {"h", "/b", "GET", "", "x=1", 0};

	(void)state;
	assert_int_equal(found(rules, 3, &a), 2);
	assert_int_equal(a.asked, 0);
	a.path = "/a";
	assert_int_equal(found(rules, 3, &a), 0);
	assert_int_equal(a.asked, 1);
}

/* An expression that backtracks without end is stopped, and no other rule takes over. */
static void costly_expression_is_undecided(void **state)
{
	static char path[200] = "/";
	const struct route_match rules[] = {{REGEX("/(a+)+")}, {PREFIX("/")}};
	struct ask a = {"h", path, "GET", "", "", 0};

	(void)state;
	memset(path + 1, 'a', 60);
	assert_int_equal(found(rules, 2, &a), 0);
	path[60] = '!';
	assert_int_equal(found(rules, 2, &a), -2);
	a.path = "/!";
	assert_int_equal(found(rules, 2, &a), 1);
}

/* What a client sends beyond what is configured. */
static void long_input(void **state)
{
	static char path[8193], host[8193];
	const struct route_match rules[] = {{HOST("*.b"), PREFIX("/a")}, {PREFIX("/")}, {HOST("c.b"), EXACT("/")}};
	struct ask a = {host, path, "GET", "", "", 0};

	(void)state;
	memset(path, '/', 8192);
	memset(host, '.', 8192);
	assert_int_equal(found(rules, 3, &a), 1);
	memset(path + 1, 'x', 8191);
	memset(host, 'x', 8192);
	assert_int_equal(found(rules, 3, &a), 1);
	memcpy(path, "/a/", 3);
	memcpy(host + 8190, ".b", 2);
	assert_int_equal(found(rules, 3, &a), 0);
}

/* A label of 253 bytes is the longest; one more is nobody's. */
static void longest_label(void **state)
{
	static char name[254], host[255];
	struct route_match rule = {.host = {name, 253}};
	struct ask a = {host, "/", "GET", "", "", 0};

	(void)state;
	memset(name, 'a', 253);
	memset(host, 'A', 253);
	assert_int_equal(found(&rule, 1, &a), 0);
	host[253] = 'a';
	assert_int_equal(found(&rule, 1, &a), -1);
	rule.host.n++;
	assert_null(router_new(&rule, 1, NULL));
}

static void refuses(void **state)
{
	static const struct match_pair bad_name[] = {PAIR(MATCH_EXACT, "a b", "")}, no_name[] = {PAIR(MATCH_EXACT, "", "")},
		bad_regex[] = {PAIR(MATCH_REGEX, "a", "(")}, prefix[] = {PAIR(MATCH_PREFIX, "a", "x")};
	static const struct { struct route_match rule; const char *text; } rows[] = {
		{{PREFIX("a")}, "begins with '/'"}, {{EXACT("")}, "begins with '/'"}, {{EXACT("/a b")}, "space"},
		{{EXACT("/a?b")}, "'?'"}, {{.path_kind = 9}, "kind 9"}, {{REGEX("/(a")}, "path: missing closing parenthesis at byte"},
		{{REGEX("(*UTF)/a")}, "path: "}, {{REGEX("/\\C")}, "path: "},
		{{HOST("a:80")}, "no port"}, {{HOST("*.")}, "a host is"}, {{HOST("a.*.b")}, "a host is"}, {{HOST("a..b")}, "empty label"},
		{{HOST(".b")}, "empty label"}, {{HOST("*a.b")}, "a host is"}, {{HOST("a b")}, "a host is"}, {{METHOD("G T")}, "token"},
		{{HEADERS(bad_name)}, "proper name"}, {{HEADERS(no_name)}, "proper name"}, {{QUERIES(no_name)}, "proper name"},
		{{HEADERS(bad_regex)}, "header: "}, {{QUERIES(bad_regex)}, "query parameter: "}, {{HEADERS(prefix)}, "exactly"},
		{{.headers = h1, .n_headers = 65}, "more than 64"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct route_match rules[3] = {{PREFIX("/")}, rows[i].rule, {REGEX("/x")}};
		struct snapshot_error err = {0};
		struct router *r = router_new(rules, 3, &err);

		if (r || err.err != ERR_SYNTAX || err.index != 1 || !strstr(err.text, rows[i].text))
			fail_msg("row %zu: %d %zu '%s'", i, err.err, err.index, err.text);
		assert_null(router_new(rules, 3, NULL));
	}
}

/* Random rules against a matcher that knows nothing of trees. */

static uint64_t seed;

static unsigned rnd(unsigned n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (unsigned)(seed >> 33) % n;
}

static bool only_ab(const char *p)
{
	return p[0] == '/' && p[1] && strspn(p + 1, "ab") == strlen(p + 1);
}

static bool under_a(const char *p)
{
	return strncmp(p, "/a/", 3) == 0;
}

static bool ends_b(const char *p)
{
	return *p && p[strlen(p) - 1] == 'b';
}

static bool two_segments(const char *p)
{
	const char *s = p[0] == '/' ? strchr(p + 1, '/') : NULL;

	return s && s > p + 1 && s[1] && !strchr(s + 1, '/');
}

static const struct { const char *text; bool (*is)(const char *path); } patterns[] = {
	{"/[ab]+", only_ab}, {"/a/.*", under_a}, {".*b", ends_b}, {"/[^/]+/[^/]+", two_segments},
};

struct random_rule {
	char host[40], path[40];
	struct match_pair headers[2], queries[2];
	struct route_match m;
	int pattern;
};

static const char *const names[] = {"x", "y"}, *const params[] = {"p", "q"}, *const values[] = {"1", "2"};

static void random_host(char *to, bool ask)
{
	static const char *const labels[] = {"a", "b", "c", "ab", "A"};
	unsigned n = 1 + rnd(4);

	*to = 0;
	while (n--) {
		strcat(to, labels[rnd(5)]);
		if (n)
			strcat(to, ".");
	}
	if (ask && rnd(8) == 0)
		strcat(to, ".");
	if (ask && rnd(8) == 0)
		strcat(to, ":80");
	if (ask && rnd(30) == 0)
		memmove(to + 1, to, strlen(to) + 1), *to = '.';
}

static void random_path(char *to)
{
	static const char *const segments[] = {"", "a", "b", "ab", "a"};
	unsigned n = 1 + rnd(4);

	*to = 0;
	while (n--)
		strcat(strcat(to, "/"), segments[rnd(5)]);
}

static uint16_t random_pairs(struct match_pair *p, const char *const *from)
{
	uint16_t n = (uint16_t)(rnd(3) == 0 ? 1 + rnd(2) : 0);

	for (uint16_t i = 0; i < n; i++)
		p[i] = (struct match_pair){MATCH_EXACT, str_of(from[rnd(2)]), str_of(values[rnd(2)])};
	return n;
}

static void random_rule(struct random_rule *r)
{
	*r = (struct random_rule){.pattern = -1};
	if (rnd(4)) {
		if (rnd(2))
			strcpy(r->host, "*.");
		random_host(r->host + strlen(r->host), false);
	}
	r->m.path_kind = (uint8_t)rnd(3);
	if (r->m.path_kind == MATCH_REGEX) {
		r->pattern = (int)rnd(COUNT(patterns));
		r->m.path = str_of(patterns[r->pattern].text);
	} else {
		random_path(r->path);
		r->m.path = str_of(r->path);
	}
	r->m.host = str_of(r->host);
	if (rnd(4) == 0)
		r->m.method = rnd(2) ? STR("GET") : STR("PUT");
	r->m.headers = r->headers;
	r->m.queries = r->queries;
	r->m.n_headers = random_pairs(r->headers, names);
	r->m.n_queries = random_pairs(r->queries, params);
	r->m.target = r;
}

static bool ends_with(struct str s, struct str tail)
{
	return s.n >= tail.n && str_ieq((struct str){s.p + s.n - tail.n, tail.n}, tail);
}

/* 0: no match; else the better, the more. */
static unsigned naive_host(const char *rule, const char *asked)
{
	struct str r = str_of(rule), h = {asked, strcspn(asked, ":")};

	if (h.n && h.p[h.n - 1] == '.')
		h.n--;
	if (r.n == 0)
		return 1;
	if (r.p[0] != '*')
		return str_ieq(r, h) ? 1000 : 0;
	r.p++, r.n--;
	return h.n > r.n && ends_with(h, r) ? 1 + (unsigned)r.n : 0;
}

static unsigned naive_path(const struct random_rule *r, const char *path)
{
	size_t n = r->m.path.n;

	if (r->pattern >= 0)
		return patterns[r->pattern].is(path) ? 1000 + (unsigned)n : 0;
	if (r->m.path_kind == MATCH_EXACT)
		return strcmp(r->path, path) == 0 ? 2000 : 0;
	n -= r->path[n - 1] == '/';
	return strncmp(path, r->path, n) == 0 && (path[n] == 0 || path[n] == '/' || n == 0) ? 1 + (unsigned)n : 0;
}

/* How many pairs count, -1 when one does not match; `got` is "name=value" joined by `sep`. */
static int naive_pairs(const struct match_pair *p, int n, const char *got, char sep)
{
	char want[8], all[64], sought[12];
	int i, k, count = 0;

	snprintf(all, sizeof(all), "%c%s%c", sep, got, sep);
	for (i = 0; i < n; i++) {
		for (k = 0; k < i && !str_eq(p[k].name, p[i].name); k++)
			;
		if (k < i)
			continue;
		count++;
		snprintf(want, sizeof(want), "%c%s=", sep, p[i].name.p);
		snprintf(sought, sizeof(sought), "%s%s%c", want, p[i].value.p, sep);
		if (!strstr(all, want) || strncmp(strstr(all, want), sought, strlen(sought)) != 0)
			return -1;
	}
	return count;
}

static const struct random_rule *naive_find(const struct random_rule *rules, size_t n, const struct ask *a)
{
	const struct random_rule *best = NULL;
	uint64_t best_key = 0;

	for (size_t i = 0; i < n; i++) {
		const struct random_rule *r = &rules[i];
		uint64_t host = naive_host(r->host, a->host), path = naive_path(r, a->path), key;
		int headers, queries;

		if (!host || !path || (r->m.method.n && !str_eq(r->m.method, str_of(a->method))))
			continue;
		headers = naive_pairs(r->headers, r->m.n_headers, a->headers, ';');
		queries = naive_pairs(r->queries, r->m.n_queries, a->query, '&');
		if (headers < 0 || queries < 0)
			continue;
		key = host << 48 | path << 32 | (uint64_t)(r->m.method.n != 0) << 31 | (uint64_t)headers << 16 | (uint64_t)queries;
		if (!best || key > best_key) {
			best = r;
			best_key = key;
		}
	}
	return best;
}

static void random_fields(char *to, const char *const *from, char sep)
{
	unsigned n = rnd(4);

	*to = 0;
	while (n--)
		sprintf(to + strlen(to), "%s=%s%.*s", from[rnd(2)], values[rnd(2)], n != 0, (char[]){sep, 0});
}

static void compare_round(struct random_rule *rules, struct route_match *m, size_t n, unsigned queries, unsigned *hits)
{
	struct snapshot_error err = {0};
	struct router *r;

	for (size_t i = 0; i < n; i++) {
		random_rule(&rules[i]);
		m[i] = rules[i].m;
	}
	r = router_new(m, n, &err);
	if (!r)
		fail_msg("refused: %s", err.text);
	while (queries--) {
		char host[40], path[40], headers[40], query[40];
		struct ask a = {host, path, rnd(2) ? "GET" : "PUT", query, headers, 0};
		struct route_query q;
		const void *got = NULL;
		const struct random_rule *want;

		random_host(host, true);
		random_path(path);
		random_fields(headers, names, ';');
		random_fields(query, params, '&');
		q = ask_query(&a);
		want = naive_find(rules, n, &a);
		assert_int_equal(router_find(r, &q, &got), want ? ROUTE_FOUND : ROUTE_NONE);
		if (got != want)
			fail_msg("%s %s%s?%s [%s]", a.method, host, path, query, headers);
		*hits += want != NULL;
	}
	router_free(r);
}

static void same_as_trying_every_rule(void **state)
{
	static struct random_rule rules[1000];
	static struct route_match m[1000];
	unsigned hits = 0, i;

	(void)state;
	seed = 0x7415b1e5;
	for (i = 0; i < 600; i++)
		compare_round(rules, m, 1 + rnd(60), 200, &hits);
	compare_round(rules, m, 1000, 5000, &hits);
	assert_true(hits > 40000 && hits < 120000);
}

static void no_memory_leaks_nothing(void **state)
{
	const struct route_match rules[] = {
		{HOST("*.b.c"), REGEX("/a+"), HEADERS(h2), QUERIES(q2)}, {HOST("a.b"), EXACT("/x/y/z")}, {PREFIX("/1/2/3/4/5/6/7/8/9")},
	};
	struct snapshot_error err;
	struct router *r = NULL;
	size_t n, calls;

	(void)state;
	for (n = 1; !r; n++) {
		err = (struct snapshot_error){0};
		mem_fail_from(n);
		r = router_new(rules, COUNT(rules), &err);
		calls = mem_fail_count();
		mem_fail_from(0);
		assert_true(r || err.err == ERR_MEM);
	}
	/* Giving back what is too much may fail, and costs only that. */
	assert_true(n > 15 && calls >= n - 1);
	router_free(r);
}

/* No memory for an expression at a look-up: no other rule is taken. */
static void no_memory_for_a_match(void **state)
{
	struct route_match rules[] = {{REGEX("/a+")}, {PREFIX("/")}};
	struct ask a = {"h", "/aaa", "GET", "", "", 0};
	struct route_query q = ask_query(&a);
	const void *target;
	struct router *r;

	(void)state;
	rules[0].target = &rules[0];
	rules[1].target = &rules[1];
	r = router_new(rules, 2, NULL);
	assert_non_null(r);
	mem_fail_from(1);
	assert_int_equal(router_find(r, &q, &target), ROUTE_UNDECIDED);
	mem_fail_from(0);
	assert_int_equal(router_find(r, &q, &target), ROUTE_FOUND);
	assert_ptr_equal(target, &rules[0]);
	router_free(r);
}

static void an_empty_router_finds_nothing(void **state)
{
	struct router *r = router_new(NULL, 0, NULL);
	struct ask a = {"h", "/", "GET", "", "", 0};
	struct route_query q = ask_query(&a);
	const void *target;

	(void)state;
	assert_non_null(r);
	assert_int_equal(router_find(r, &q, &target), ROUTE_NONE);
	router_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(precedence),
		cmocka_unit_test(earlier_rule_wins_a_tie),
		cmocka_unit_test(falls_back_over_hosts),
		cmocka_unit_test(hosts),
		cmocka_unit_test(paths),
		cmocka_unit_test(conditions),
		cmocka_unit_test(headers_are_asked_for_only_by_a_candidate),
		cmocka_unit_test(costly_expression_is_undecided),
		cmocka_unit_test(long_input),
		cmocka_unit_test(longest_label),
		cmocka_unit_test(refuses),
		cmocka_unit_test(same_as_trying_every_rule),
		cmocka_unit_test(no_memory_leaks_nothing),
		cmocka_unit_test(no_memory_for_a_match),
		cmocka_unit_test(an_empty_router_finds_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
