/* lib/base/budget: limits, portions, what is stranded, the token, threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <pthread.h>

#include "lib/base/budget.h"

#define KIB 1024u

static void charges_to_the_last_byte(void **state)
{
	(void)state;
	struct budget_root r;
	struct budget b;
	budget_root_init(&r, 100000);
	budget_init(&b, &r);
	assert_int_equal(budget_charge(&b, 60000), OK);
	assert_int_equal(budget_charge(&b, 40001), ERR_MEM);
	assert_int_equal(b.used, 60000);
	assert_int_equal(b.refused, 1);
	assert_int_equal(budget_charge(&b, 40000), OK);
	assert_int_equal(budget_charge(&b, 1), ERR_MEM);
	assert_int_equal(budget_charge(&b, SIZE_MAX), ERR_MEM);
	assert_int_equal(r.taken, 100000);
	budget_force(&b, 500);
	assert_int_equal(r.taken, 100500);
	assert_int_equal(r.peak, 100500);
	budget_credit(&b, 600);
	assert_int_equal(budget_charge(&b, 600), OK);
	budget_credit(&b, 100500);
	budget_fini(&b);
	assert_int_equal(r.taken, 0);
	assert_int_equal(r.peak, 100500);
}

static void surplus_goes_back(void **state)
{
	(void)state;
	struct budget_root r;
	struct budget a, b;
	budget_root_init(&r, 16 * 1024 * KIB);
	budget_init(&a, &r);
	budget_init(&b, &r);
	assert_int_equal(budget_charge(&a, 15 * 1024 * KIB), OK);
	assert_int_equal(budget_charge(&b, 2 * 1024 * KIB), ERR_MEM);
	budget_credit(&a, 15 * 1024 * KIB);
	budget_settle(&a);
	assert_true(a.held <= BUDGET_PORTION);
	assert_int_equal(budget_charge(&b, 15 * 1024 * KIB), OK);
	budget_credit(&b, 15 * 1024 * KIB);
	budget_fini(&a);
	budget_fini(&b);
	assert_int_equal(r.taken, 0);
}

static void one_sixteenth_is_stranded_at_most(void **state)
{
	(void)state;
	enum { N = 8 };
	for (uint64_t limit = 100; limit < 100 * 1024 * KIB; limit *= 3) {
		struct budget_root r;
		struct budget b[N];
		budget_root_init(&r, limit);
		for (int i = 0; i < N; i++)
			budget_init(&b[i], &r);
		for (int i = 0; i < N; i++)
			assert_int_equal(budget_charge(&b[i], limit / 16), OK);
		for (int i = 0; i < N; i++) {
			budget_credit(&b[i], limit / 16);
			budget_settle(&b[i]);
		}
		assert_true(r.taken <= limit / 16);
		for (int i = 0; i < N; i++)
			budget_fini(&b[i]);
		assert_int_equal(r.taken, 0);
	}
}

static void the_shared_word_is_touched_by_portions(void **state)
{
	(void)state;
	struct budget_root r;
	struct budget b;
	budget_root_init(&r, 0);
	budget_init(&b, &r);
	uint64_t before = r.taken;
	int changes = 0;
	for (int i = 0; i < 6400; i++) {
		assert_int_equal(budget_charge(&b, 100), OK);
		changes += r.taken != before;
		before = r.taken;
	}
	assert_in_range(changes, 9, 10);
	budget_credit(&b, 640000);
	budget_fini(&b);
}

static void one_oversized_item_at_a_time(void **state)
{
	(void)state;
	struct budget_root r;
	struct budget a, b;
	int x, y;
	budget_root_init(&r, 1000);
	budget_init(&a, &r);
	budget_init(&b, &r);
	assert_true(budget_oversized_take(&a, &x));
	assert_true(budget_oversized_take(&a, &x));
	assert_false(budget_oversized_take(&b, &y));
	budget_oversized_give(&b, &y);
	assert_false(budget_oversized_take(&b, &y));
	budget_oversized_give(&a, &x);
	assert_true(budget_oversized_take(&b, &y));
	budget_oversized_give(&b, &y);
	assert_null(r.oversized);
	budget_fini(&a);
	budget_fini(&b);
}

static void null_is_not_accounted(void **state)
{
	(void)state;
	assert_int_equal(budget_charge(NULL, SIZE_MAX), OK);
	budget_credit(NULL, SIZE_MAX);
	budget_force(NULL, 1);
	budget_settle(NULL);
	assert_true(budget_oversized_take(NULL, NULL));
}

static _Atomic int passed_limit;

static void *spend(void *arg)
{
	struct budget_root *r = arg;
	struct budget b;
	uint32_t rnd = (uint32_t)(uintptr_t)&b | 1;
	budget_init(&b, r);
	for (int i = 0; i < 200000; i++) {
		rnd = rnd * 1664525 + 1013904223;
		size_t n = rnd >> 12;
		if (budget_charge(&b, n) == OK && b.used > 8 * n)
			budget_credit(&b, b.used);
		if (r->taken > r->limit)
			passed_limit = 1;
		budget_settle(&b);
	}
	budget_credit(&b, b.used);
	budget_fini(&b);
	return NULL;
}

static void threads_never_pass_the_limit(void **state)
{
	(void)state;
	struct budget_root r;
	pthread_t t[3];
	budget_root_init(&r, 4 * 1024 * KIB);
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&t[i], NULL, spend, &r), 0);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	assert_int_equal(passed_limit, 0);
	assert_int_equal(r.taken, 0);
	assert_int_equal(r.workers, 0);
	assert_true(r.peak > 0 && r.peak <= r.limit);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(charges_to_the_last_byte),
		cmocka_unit_test(surplus_goes_back),
		cmocka_unit_test(one_sixteenth_is_stranded_at_most),
		cmocka_unit_test(the_shared_word_is_touched_by_portions),
		cmocka_unit_test(one_oversized_item_at_a_time),
		cmocka_unit_test(null_is_not_accounted),
		cmocka_unit_test(threads_never_pass_the_limit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
