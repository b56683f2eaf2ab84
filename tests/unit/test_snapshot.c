/* dispatch/snapshot: what generations share, what is refused, what fails without memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "dispatch/snapshot.h"
#include "lib/base/mem.h"

#define S(x) {x, sizeof(x) - 1}
#define ENDPOINT(last) {{ENDPOINT_IP4, 80, {10, 0, 0, last}, NULL, 0, 0}, 1, 0}

/* A small world that a test may change before it builds. */
struct world {
	struct service_endpoint_spec endpoints[4];
	struct service_spec services[2];
	struct route_match matches[3];
	struct snapshot_route routes[3];
	struct snapshot_spec spec;
};

static struct world world_new(struct endpoint_table *t)
{
	return (struct world){
		.endpoints = {ENDPOINT(1), ENDPOINT(2), ENDPOINT(2), ENDPOINT(3)},
		.services = {{.name = S("one"), .n_endpoints = 2}, {.name = S("two"), .n_endpoints = 2}},
		.matches = {{.path = S("/one")}, {.path = S("/1")}, {.path = S("/two")}},
		.routes = {
			{.route = {.action = ROUTE_SERVICE, .label = S("r1")}, .service = 0, .n_matches = 2},
			{.route = {.action = ROUTE_SERVICE, .label = S("r2")}, .service = 1, .n_matches = 1},
			{.route = {.action = ROUTE_ANSWER, .status = 404, .text = S("no"), .label = S("r3")},
			 .service = SNAPSHOT_NO_SERVICE, .n_matches = 1},
		},
		.spec = {.endpoints = t, .n_services = 2, .n_routes = 3},
	};
}

static struct snapshot *world_build(struct world *w, struct snapshot *old, struct snapshot_error *err)
{
	static const struct route_match any[] = {{.path = S("/")}};

	w->services[0].endpoints = w->endpoints;
	w->services[1].endpoints = w->endpoints + 2;
	w->routes[0].matches = w->matches;
	w->routes[1].matches = w->matches + 2;
	w->routes[2].matches = any;
	w->spec.services = w->services;
	w->spec.routes = w->routes;
	return snapshot_build(&w->spec, old, err);
}

static struct snapshot *built(struct world *w, struct snapshot *old)
{
	struct snapshot_error err = {0};
	struct snapshot *s = world_build(w, old, &err);

	if (!s)
		fail_msg("refused: %s", err.text);
	return s;
}

static const struct route *find(struct snapshot *s, const char *path)
{
	struct route_query q = {.path = str_of(path), .method = STR("GET")};
	const struct route *r = NULL;

	assert_int_equal(snapshot_find(s, &q, &r), ROUTE_FOUND);
	return r;
}

static void finds_routes(void **state)
{
	struct endpoint_table *t = endpoint_table_new();
	struct world w = world_new(t);
	struct snapshot *s = built(&w, NULL);
	struct service *const *services;
	size_t n;

	(void)state;
	services = snapshot_services(s, &n);
	assert_int_equal(n, 2);
	assert_int_equal(snapshot_generation(s), 1);
	assert_ptr_equal(find(s, "/one/x"), find(s, "/1"));
	assert_ptr_equal(find(s, "/1")->service, services[0]);
	assert_ptr_equal(find(s, "/two")->service, services[1]);
	assert_true(str_eq(find(s, "/three")->spec->text, STR("no")));
	assert_null(find(s, "/three")->service);
	/* one address of both services is one endpoint */
	assert_ptr_equal(service_set(services[0])->at[1].endpoint, service_set(services[1])->at[0].endpoint);
	assert_int_equal(endpoint_table_live(t), 3);
	assert_true(snapshot_heap(s) > 100 && snapshot_heap(s) < 4096);
	snapshot_unref(s);
	endpoint_table_free(t);
}

static void generations_share_what_is_the_same(void **state)
{
	struct endpoint_table *t = endpoint_table_new();
	struct world w = world_new(t);
	struct snapshot *first = built(&w, NULL), *second, *third;
	const struct route *one = find(first, "/1"), *two = find(first, "/two"), *three = find(first, "/3");
	struct endpoint *shared = service_set(one->service)->at[1].endpoint;

	(void)state;
	atomic_store(&shared->verdict, VERDICT_DOWN);
	second = built(&w, first);
	assert_int_equal(snapshot_generation(second), 2);
	assert_ptr_equal(find(second, "/1"), one);
	assert_ptr_equal(find(second, "/two"), two);
	assert_ptr_equal(find(second, "/3"), three);
	snapshot_unref(first);
	w.endpoints[0] = (struct service_endpoint_spec)ENDPOINT(9);
	w.routes[2].route.text = STR("gone");
	third = built(&w, second);
	assert_ptr_not_equal(find(third, "/1"), one);
	assert_ptr_not_equal(find(third, "/1")->service, one->service);
	assert_ptr_equal(find(third, "/two"), two);
	assert_ptr_not_equal(find(third, "/3"), three);
	assert_ptr_equal(service_set(find(third, "/1")->service)->at[1].endpoint, shared);
	assert_false(endpoint_up(shared));
	assert_int_equal(endpoint_table_live(t), 4);
	/* an exchange outlives its generation */
	route_ref(one);
	snapshot_unref(second);
	assert_true(str_eq(route_label(one), STR("r1")));
	assert_int_equal(endpoint_table_live(t), 4);
	route_unref(one);
	assert_int_equal(endpoint_table_live(t), 3);
	snapshot_unref(snapshot_ref(third));
	snapshot_unref(third);
	snapshot_unref(NULL);
	endpoint_table_free(t);
}

static void order_does_not_matter_for_sharing(void **state)
{
	struct endpoint_table *t = endpoint_table_new();
	struct world w = world_new(t);
	struct snapshot *first = built(&w, NULL), *second;
	struct service_spec swap = w.services[0];
	struct service *const *a, *const *b;
	size_t n;

	(void)state;
	w.spec.services = w.services;
	w.services[0] = w.services[1];
	w.services[1] = swap;
	w.routes[0].service = 1;
	w.routes[1].service = 0;
	second = snapshot_build(&w.spec, first, &(struct snapshot_error){0});
	assert_non_null(second);
	a = snapshot_services(first, &n);
	b = snapshot_services(second, &n);
	assert_ptr_equal(a[0], b[1]);
	assert_ptr_equal(a[1], b[0]);
	assert_ptr_equal(find(first, "/1"), find(second, "/1"));
	snapshot_unref(first);
	snapshot_unref(second);
	endpoint_table_free(t);
}

static void refused(struct world *w, struct snapshot *old, enum snapshot_part part, size_t index, size_t match,
		    const char *text)
{
	struct snapshot_error err = {0};

	assert_null(world_build(w, old, &err));
	assert_int_equal(err.err, ERR_SYNTAX);
	if (err.part != part || err.index != index || err.match != match || !strstr(err.text, text))
		fail_msg("part %d, %zu, match %zu: %s", err.part, err.index, err.match, err.text);
}

static void refuses_the_whole(void **state)
{
	struct endpoint_table *t = endpoint_table_new();
	const struct world good = world_new(t);
	struct world w = good;
	struct snapshot *old = built(&w, NULL);
	const struct route *one = find(old, "/1");

	(void)state;
	w = good, w.services[1].name = STR("one");
	refused(&w, old, PART_SERVICE, 1, 0, "two services 'one'");
	w = good, w.endpoints[3].address.port = 0;
	refused(&w, old, PART_SERVICE, 1, 0, "endpoint 1");
	w = good, w.routes[1].service = 2;
	refused(&w, old, PART_ROUTE, 1, 0, "no service");
	w = good, w.routes[2].route.status = 99;
	refused(&w, NULL, PART_ROUTE, 2, 0, "99");
	w = good, w.matches[1].path = STR("x");
	refused(&w, old, PART_ROUTE, 0, 1, "begins with '/'");
	w = good, w.matches[2].host = STR("a..b");
	refused(&w, old, PART_ROUTE, 1, 0, "empty label");
	assert_ptr_equal(find(old, "/1"), one);
	assert_int_equal(one->refs, 1);
	assert_int_equal(endpoint_table_live(t), 3);
	snapshot_unref(old);
	endpoint_table_free(t);
}

static void an_invalid_service_is_a_route(void **state)
{
	struct endpoint_table *t = endpoint_table_new();
	struct world w = world_new(t);
	struct snapshot *s;

	(void)state;
	w.routes[0].route.action = ROUTE_INVALID;
	w.routes[0].service = SNAPSHOT_NO_SERVICE;
	s = built(&w, NULL);
	assert_int_equal(find(s, "/1")->spec->action, ROUTE_INVALID);
	assert_null(find(s, "/1")->service);
	snapshot_unref(s);
	endpoint_table_free(t);
}

/* How often each backend of route 0, whose share is an answer when it has no service, serves of `n`. */
static void serve(struct snapshot *s, unsigned n, unsigned *one, unsigned *two, unsigned *none)
{
	const struct route *r;
	size_t services;

	*one = *two = *none = 0;
	assert_int_equal(snapshot_find(s, &(struct route_query){.method = S("GET"), .path = S("/one")}, &r), ROUTE_FOUND);
	while (n--) {
		struct service *got = route_next_backend(r);

		++*(!got ? none : got == snapshot_services(s, &services)[0] ? one : two);
	}
}

static void backends_serve_by_weight(void **state)
{
	static const struct snapshot_backend backends[] = {{0, 70}, {1, 20}, {SNAPSHOT_NO_SERVICE, 10}, {1, 0}};
	struct endpoint_table *t = endpoint_table_new();
	struct world w = world_new(t);
	struct snapshot *s, *again;
	unsigned one, two, none;

	(void)state;
	w.routes[0].route.action = ROUTE_SPLIT;
	w.routes[0].route.n_backends = 4;
	w.routes[0].backends = backends;
	s = built(&w, NULL);
	for (unsigned run = 0; run < 20; run++) {	/* any run of 500, not the first alone */
		serve(s, 500, &one, &two, &none);
		assert_in_range(one, 345, 355);
		assert_in_range(two, 95, 105);
		assert_in_range(none, 45, 55);
	}
	again = built(&w, s);
	assert_ptr_equal(snapshot_services(again, &(size_t){0})[0], snapshot_services(s, &(size_t){0})[0]);
	snapshot_unref(s);
	serve(again, 10, &one, &two, &none);
	assert_int_equal(one + two + none, 10);
	snapshot_unref(again);
	endpoint_table_free(t);
}

static void an_empty_one_finds_nothing(void **state)
{
	struct endpoint_table *t = endpoint_table_new();
	struct snapshot_spec spec = {.endpoints = t};
	struct snapshot_error err = {0};
	struct snapshot *s = snapshot_build(&spec, NULL, &err);
	struct route_query q = {.path = STR("/")};
	const struct route *r;

	(void)state;
	assert_non_null(s);
	assert_int_equal(snapshot_find(s, &q, &r), ROUTE_NONE);
	snapshot_unref(s);
	endpoint_table_free(t);
}

static void no_memory_leaks_nothing(void **state)
{
	struct endpoint_table *t = endpoint_table_new();
	struct world w = world_new(t);
	struct snapshot *old = built(&w, NULL), *s = NULL;
	const struct route *two = find(old, "/two");
	size_t n;

	(void)state;
	w.endpoints[0] = (struct service_endpoint_spec)ENDPOINT(9);
	w.routes[2].route.status = 410;
	for (n = 1; !s; n++) {
		struct snapshot_error err = {0};

		mem_fail_from(n);
		s = world_build(&w, old, &err);
		mem_fail_from(0);
		assert_true(s || (err.err == ERR_MEM && err.text[0]));
		assert_int_equal(two->refs, s ? 2 : 1);
		assert_int_equal(endpoint_table_live(t), s ? 4 : 3);
	}
	assert_true(n > 15);
	snapshot_unref(old);
	snapshot_unref(s);
	endpoint_table_free(t);
}

#ifndef THIMBLE_SANITIZED
/* 5,000 services of two endpoints each: what they take on the heap, all in all. */
static void services_are_small(void **state)
{
	enum { N = 5000 };
	struct service_spec *services = calloc(N, sizeof(*services));
	struct service_endpoint_spec *endpoints = calloc(2 * N, sizeof(*endpoints));
	char (*names)[16] = calloc(N, sizeof(*names));
	struct endpoint_table *t = endpoint_table_new();
	struct snapshot_spec spec = {.endpoints = t, .services = services, .n_services = N};
	struct snapshot_error err = {0};
	struct snapshot *s;
	size_t before, bytes;

	(void)state;
	for (unsigned i = 0; i < 2 * N; i++)
		endpoints[i] = (struct service_endpoint_spec){
			{ENDPOINT_IP4, 8080, {10, 1, (uint8_t)(i >> 8), (uint8_t)i}, NULL, 0, 0}, 1, 0};
	for (unsigned i = 0; i < N; i++) {
		int len = snprintf(names[i], sizeof(names[i]), "service-%u", i);

		services[i] = (struct service_spec){.name = {names[i], (size_t)len}, .endpoints = endpoints + 2 * i, .n_endpoints = 2};
	}
	before = mallinfo2().uordblks + mallinfo2().hblkhd;
	s = snapshot_build(&spec, NULL, &err);
	assert_non_null(s);
	bytes = mallinfo2().uordblks + mallinfo2().hblkhd - before;
	print_message("%zu bytes a service with two endpoints\n", bytes / N);
	assert_true(bytes / N > 100 && bytes / N <= 400);
	snapshot_unref(s);
	endpoint_table_free(t);
	free(names);
	free(endpoints);
	free(services);
}
#endif

static const char *stream_of(struct snapshot *s, size_t listener, const char *name)
{
	struct service *is = snapshot_stream(s, listener, str_of(name));

	return !is ? "" : str_eq(service_name(is), STR("one")) ? "one" : "two";
}

static void listeners_lead_to_services(void **state)
{
	static const struct snapshot_name names[] = {
		{S("a.example"), 0}, {S("*.example"), 1}, {S("*.b.example"), 0},
	}, any[] = {{S("a.example"), 0}, {S(""), 1}};
	static const struct snapshot_listener listeners[] = {
		{.service = SNAPSHOT_NO_SERVICE}, {.service = 1}, {.service = SNAPSHOT_NO_SERVICE, .names = names, .n_names = 3},
		{.service = SNAPSHOT_NO_SERVICE, .names = any, .n_names = 2},
	};
	struct endpoint_table *t = endpoint_table_new();
	struct world w = world_new(t);
	struct snapshot *s;

	(void)state;
	w.spec.listeners = listeners;
	w.spec.n_listeners = 4;
	s = built(&w, NULL);
	assert_string_equal(stream_of(s, 0, "a.example"), "");
	assert_string_equal(stream_of(s, 1, ""), "two");
	assert_string_equal(stream_of(s, 1, "a.example"), "two");
	assert_string_equal(stream_of(s, 2, "a.example"), "one");
	assert_string_equal(stream_of(s, 2, "b.example"), "two");
	assert_string_equal(stream_of(s, 2, "x.y.example"), "two");
	assert_string_equal(stream_of(s, 2, "x.b.example"), "one");
	assert_string_equal(stream_of(s, 2, "example"), "");
	assert_string_equal(stream_of(s, 2, "other"), "");
	assert_string_equal(stream_of(s, 2, ""), "");
	assert_string_equal(stream_of(s, 3, "a.example"), "one");
	assert_string_equal(stream_of(s, 3, "other"), "two");
	assert_string_equal(stream_of(s, 3, ""), "two");
	assert_string_equal(stream_of(s, 4, ""), "");
	snapshot_unref(s);
	endpoint_table_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_routes), cmocka_unit_test(listeners_lead_to_services),
		cmocka_unit_test(generations_share_what_is_the_same),
		cmocka_unit_test(order_does_not_matter_for_sharing),
		cmocka_unit_test(refuses_the_whole),
		cmocka_unit_test(an_invalid_service_is_a_route),
		cmocka_unit_test(backends_serve_by_weight),
		cmocka_unit_test(an_empty_one_finds_nothing),
		cmocka_unit_test(no_memory_leaks_nothing),
#ifndef THIMBLE_SANITIZED
		cmocka_unit_test(services_are_small),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
