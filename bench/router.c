/* Door: what a look-up of the router costs with few routes and with many, what a
 * route takes, and how long a snapshot takes to build.
 *
 * Bytes are the difference of what the C library has handed out, before and after
 * the build, less the bytes of the strings (hosts, paths, labels) that a route was
 * given.  Times are the processor time of this thread, best of several runs; the
 * requests go to the routes in a random order, so that a large table is not in the
 * nearest cache by itself. */
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dispatch/snapshot.h"
#include "lib/base/check.h"

#define MANY 10000
#define ASKED 4096	/* different requests */
#define RUNS 7

struct shape {
	const char *name, *host, *path;		/* formats that take the number of the route */
	unsigned hosts;				/* how many different ones; 0: one for each route */
	uint8_t kind;
	bool asks;				/* for all kinds of things beyond the path, by turns */
};

static const struct shape shapes[] = {
	{"a host each, prefix", "app-%u.shop.example.com", "/api/v1", 0, MATCH_PREFIX, false},
	{"one host, prefixes", "shop.example.com", "/api/v1/team-%u", 1, MATCH_PREFIX, false},
	{"one host, exact", "shop.example.com", "/api/v1/team-%u/items", 1, MATCH_EXACT, false},
	{"wildcards, 10 prefixes each", "*.t%u.example.com", "/svc/%u", MANY / 10, MATCH_PREFIX, false},
	{"a host each, all kinds", "app-%u.shop.example.com", "/v1/team-%u", 0, MATCH_PREFIX, true},
};

static const struct match_pair exact = {.kind = MATCH_EXACT, .name = {"X-Canary", 8}, .value = {"always", 6}};
static const struct match_pair pattern = {.kind = MATCH_REGEX, .name = {"X-Version", 9}, .value = {"v[0-9]+", 7}};
static const struct match_pair debug = {.kind = MATCH_EXACT, .name = {"debug", 5}, .value = {"1", 1}};

static bool header_of(void *ctx, struct str name, struct str *value)
{
	(void)ctx;
	*value = str_eq(name, exact.name) ? exact.value : STR("v12");
	return true;
}

static struct {
	char host[64], path[64], regex[64], label[32];
	struct route_match match;
} route[MANY];
static struct snapshot_route routes[MANY];
static struct service_spec service = {.name = {"s", 1}};

static double now(void)
{
	struct timespec t;

	CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) == 0);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static size_t heap(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

static unsigned rnd(void)
{
	static uint64_t x = 88172645463325252u;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return (unsigned)(x >> 33);
}

static void format(char to[64], const char *with, unsigned i)
{
	const char *at = strstr(with, "%u");
	int n = at ? snprintf(to, 64, "%.*s%u%s", (int)(at - with), with, i, at + 2) : snprintf(to, 64, "%s", with);

	CHECK(n > 0 && n < 64);
}

/* A method, a header, a header by expression, a parameter, a path by expression. */
static void ask(unsigned i)
{
	struct route_match *m = &route[i].match;

	switch (i % 5) {
	case 0:
		m->method = STR("GET");
		break;
	case 1:
	case 2:
		m->headers = i % 5 == 1 ? &exact : &pattern;
		m->n_headers = 1;
		break;
	case 3:
		m->queries = &debug;
		m->n_queries = 1;
		break;
	case 4:
		format(route[i].regex, "/v[0-9]+/team-%u/.*", i);
		m->path = str_of(route[i].regex);
		m->path_kind = MATCH_REGEX;
	}
}

static size_t fill(const struct shape *s, unsigned n)
{
	size_t strings = 0;

	for (unsigned i = 0; i < n; i++) {
		format(route[i].host, s->host, s->hosts ? i % s->hosts : i);
		format(route[i].path, s->path, i);
		snprintf(route[i].label, sizeof(route[i].label), "ns/route-%u", i);
		route[i].match = (struct route_match){.host = str_of(route[i].host), .path = str_of(route[i].path), .path_kind = s->kind};
		if (s->asks)
			ask(i);
		routes[i] = (struct snapshot_route){
			.route = {.action = ROUTE_SERVICE, .label = str_of(route[i].label), .body_limit = UINT64_MAX},
			.matches = &route[i].match, .n_matches = 1,
		};
		strings += route[i].match.host.n + route[i].match.path.n + routes[i].route.label.n;
	}
	return strings;
}

static double look_up(struct snapshot *s, const struct route_query *q, unsigned n, enum route_found want)
{
	double best = 1e18;

	for (unsigned run = 0; run < RUNS; run++) {
		double start = now();

		for (unsigned i = 0; i < n; i++) {
			const struct route *r;

			CHECK(snapshot_find(s, &q[i], &r) == want);
		}
		if (now() - start < best)
			best = now() - start;
	}
	return best / n;
}

static void measure(const struct shape *shape, unsigned n)
{
	static struct route_query q[ASKED];
	static char hosts[ASKED][64], paths[ASKED][80];
	size_t strings = fill(shape, n), before = heap(), bytes;
	struct endpoint_table *t = endpoint_table_new();
	struct snapshot_spec spec = {.endpoints = t, .services = &service, .n_services = 1, .routes = routes, .n_routes = n};
	struct snapshot_error err;
	double start = now(), build, rebuild;
	struct snapshot *s = snapshot_build(&spec, NULL, &err), *again;

	CHECK(s);
	build = (now() - start) / 1e6;
	bytes = heap() - before - strings;
	for (unsigned i = 0; i < ASKED; i++) {
		unsigned at = rnd() % n;

		snprintf(hosts[i], sizeof(hosts[i]), "%s%s", route[at].host[0] == '*' ? "www" : "", route[at].host + (route[at].host[0] == '*'));
		snprintf(paths[i], sizeof(paths[i]), "%s%s", route[at].path, shape->kind == MATCH_PREFIX ? "/items/17" : "");
		q[i] = (struct route_query){
			.host = str_of(hosts[i]), .path = str_of(paths[i]), .method = STR("GET"), .query = STR("debug=1"),
			.header = header_of,
		};
	}
	start = now();
	again = snapshot_build(&spec, s, &err);
	rebuild = (now() - start) / 1e6;
	CHECK(again);
	printf("%-28s %6u routes: %6.1f ns a look-up, %4zu bytes a route (%zu of them in the router), build %.1f ms, again %.1f ms\n",
	       shape->name, n, look_up(s, q, ASKED, ROUTE_FOUND), bytes / n, (snapshot_heap(s) - strings) / n, build, rebuild);
	snapshot_unref(again);
	snapshot_unref(s);
	endpoint_table_free(t);
}

static double repeated(struct snapshot *s, struct str host, struct str path)
{
	static struct route_query q[ASKED];

	for (unsigned i = 0; i < ASKED; i++)
		q[i] = (struct route_query){.host = host, .path = path, .method = STR("GET")};
	return look_up(s, q, ASKED, ROUTE_NONE);
}

/* What a client can do to the look-up: 8 KiB of slashes, of dots, of one segment. */
static void attacks(void)
{
	static char slashes[8192], dots[8192], letters[8192];
	struct endpoint_table *t = endpoint_table_new();
	struct snapshot_spec spec = {.endpoints = t, .services = &service, .n_services = 1, .routes = routes, .n_routes = MANY};
	struct snapshot_error err;
	struct snapshot *s;

	memset(slashes, '/', sizeof(slashes));
	memset(dots, '.', sizeof(dots));
	memset(letters, 'a', sizeof(letters));
	letters[0] = '/';
	fill(&shapes[1], MANY);
	s = snapshot_build(&spec, NULL, &err);
	CHECK(s);
	printf("8 KiB of slashes %.1f ns", repeated(s, STR("shop.example.com"), (struct str){slashes, sizeof(slashes)}));
	printf(", of dots in the host %.1f ns", repeated(s, (struct str){dots, sizeof(dots)}, STR("/api/v1/team-1")));
	printf(", one segment %.1f ns\n", repeated(s, STR("shop.example.com"), (struct str){letters, sizeof(letters)}));
	snapshot_unref(s);
	endpoint_table_free(t);
}

int main(void)
{
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		measure(&shapes[i], 10);
		measure(&shapes[i], MANY);
	}
	attacks();
	return 0;
}
