/* Policies: how their parts are counted, compared and shared. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "dispatch/policy.h"
#include "dispatch/snapshot.h"
#include "lib/base/mem.h"

struct number {
	struct policy_part part;
	int value;
};

static int alive;

static bool number_same(const struct policy_part *a, const struct policy_part *b)
{
	return ((const struct number *)a)->value == ((const struct number *)b)->value;
}

static void number_free(struct policy_part *p)
{
	alive--;
	mem_free(p);
}

static const struct policy_kind number_kind = { number_same, number_free, NULL }, other_kind = { number_same, number_free, NULL };

static struct policy_part *number(int value, const struct policy_kind *kind)
{
	struct number *n = mem_alloc(sizeof *n);

	assert_non_null(n);
	policy_part_init(&n->part, kind);
	n->value = value;
	alive++;
	return &n->part;
}

static struct policy *policy(int cors, int rate)
{
	struct policy_part *part[POLICY_N] = {0};
	struct policy *p;

	if (cors)
		part[POLICY_CORS] = number(cors, &number_kind);
	if (rate)
		part[POLICY_RATE] = number(rate, &number_kind);
	p = policy_new(part);
	assert_non_null(p);
	return p;
}

static void test_counts(void **state)
{
	struct policy *p = policy(1, 2);

	(void)state;
	assert_int_equal(alive, 2);
	policy_ref(p);
	policy_unref(p);
	assert_int_equal(alive, 2);
	policy_part_ref(p->part[POLICY_CORS]);
	policy_part_unref(p->part[POLICY_CORS]);
	policy_unref(p);
	assert_int_equal(alive, 0);
	policy_unref(NULL);
	policy_part_unref(NULL);
}

static void test_same(void **state)
{
	struct policy *a = policy(1, 2), *b = policy(1, 2), *c = policy(1, 3), *d = policy(1, 0);
	struct policy_part *one = number(1, &number_kind), *other = number(1, &other_kind);

	(void)state;
	assert_true(policy_same(a, a) && policy_same(a, b) && policy_same(NULL, NULL));
	assert_false(policy_same(a, c) || policy_same(a, d) || policy_same(d, a) || policy_same(a, NULL) || policy_same(NULL, a));
	assert_true(policy_part_same(one, a->part[POLICY_CORS]));
	assert_false(policy_part_same(one, other));	/* of another kind */
	policy_unref(a);
	policy_unref(b);
	policy_unref(c);
	policy_unref(d);
	policy_part_unref(one);
	policy_part_unref(other);
	assert_int_equal(alive, 0);
}

struct namer {
	struct policy_part part;
	struct policy_service service;
};

static bool namer_same(const struct policy_part *a, const struct policy_part *b)
{
	return policy_service_same(&((const struct namer *)a)->service, &((const struct namer *)b)->service);
}

static void namer_free(struct policy_part *p)
{
	policy_service_drop(&((struct namer *)p)->service);
	mem_free(p);
}

static void namer_bind(struct policy_part *p, struct service *const *services, size_t n)
{
	policy_service_bind(&((struct namer *)p)->service, services, n);
}

static const struct policy_kind namer_kind = { namer_same, namer_free, namer_bind };

static struct policy *naming(uint32_t index)
{
	struct policy_part *part[POLICY_N] = {0};
	struct namer *n = mem_zalloc(sizeof *n);

	policy_part_init(&n->part, &namer_kind);
	n->service.index = index;
	part[POLICY_AUTH] = &n->part;
	return policy_new(part);
}

static struct snapshot *snapshot(struct endpoint_table *t, struct snapshot *old, uint8_t last, uint32_t names)
{
	struct service_endpoint_spec e[2] = {{{ENDPOINT_IP4, 80, {10, 0, 0, 1}, NULL, 0, 0}, 1, 0}, {{ENDPOINT_IP4, 80, {10, 0, 0, last}, NULL, 0, 0}, 1, 0}};
	struct service_spec services[2] = {{.name = STR("one"), .endpoints = e, .n_endpoints = 1},
					   {.name = STR("two"), .endpoints = e + 1, .n_endpoints = 1}};
	struct route_match any = {.path = STR("/")};
	struct snapshot_route route = {.route = {.action = ROUTE_SERVICE, .label = STR("r"), .policy = naming(names)},
				       .matches = &any, .n_matches = 1};
	struct snapshot_spec spec = {.endpoints = t, .services = services, .n_services = 2, .routes = &route, .n_routes = 1};
	struct snapshot_error err = {0};
	struct snapshot *s = snapshot_build(&spec, old, &err);

	assert_non_null(s);
	policy_unref(route.route.policy);
	return s;
}

static const struct route *route_of(struct snapshot *s)
{
	struct route_query q = {.path = STR("/"), .method = STR("GET")};
	const struct route *r = NULL;

	assert_int_equal(snapshot_find(s, &q, &r), ROUTE_FOUND);
	return r;
}

/* A part has the service of its own generation: where that changed, so did the route. */
static void test_services(void **state)
{
	struct endpoint_table *t = endpoint_table_new();
	struct snapshot *a = snapshot(t, NULL, 2, 1), *same = snapshot(t, a, 2, 1), *moved = snapshot(t, a, 3, 1);
	struct snapshot *other = snapshot(t, a, 2, 0);
	size_t n;

	(void)state;
	assert_ptr_equal(((const struct namer *)route_of(a)->spec->policy->part[POLICY_AUTH])->service.service,
			 snapshot_services(a, &n)[1]);
	assert_ptr_equal(route_of(a), route_of(same));
	assert_ptr_not_equal(route_of(a), route_of(moved));
	assert_ptr_not_equal(route_of(a), route_of(other));
	assert_ptr_equal(((const struct namer *)route_of(moved)->spec->policy->part[POLICY_AUTH])->service.service,
			 snapshot_services(moved, &n)[1]);
	snapshot_unref(a);
	snapshot_unref(same);
	snapshot_unref(moved);
	snapshot_unref(other);
	endpoint_table_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_counts), cmocka_unit_test(test_same),
		cmocka_unit_test(test_services) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
