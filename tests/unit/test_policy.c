/* Policies: how their parts are counted, compared and shared. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "dispatch/policy.h"
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

static const struct policy_kind number_kind = { number_same, number_free }, other_kind = { number_same, number_free };

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

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_counts), cmocka_unit_test(test_same) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
