/* dispatch/mirror: the share is exact, over all workers together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <cmocka.h>

#include "dispatch/mirror.h"
#include "lib/base/mem.h"

static struct mirror *made(uint32_t share)
{
	struct policy_part *p = mirror_new(&(struct mirror_spec){.service = 1, .share = share, .body_limit = 2, .timeout_ms = 3});

	assert_non_null(p);
	return (struct mirror *)p;
}

/* Of any n in a row: n times the share, to within one. */
static void shares(void **state)
{
	static const uint32_t all[] = {0, 1, 3, 100, 333333, 500000, 700000, 999999, MIRROR_ALL};

	(void)state;
	for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
		struct mirror *m = made(all[i]);
		uint64_t taken = 0, at_500 = 0, n;

		for (n = 1; n <= 2 * MIRROR_ALL + 10; n++) {
			taken += mirror_takes(m);
			assert_true(taken * MIRROR_ALL <= n * all[i] && (taken + 1) * MIRROR_ALL > n * all[i]);
			if (n == 500)
				at_500 = taken;
		}
		assert_int_equal(at_500, 500ull * all[i] / MIRROR_ALL);
		policy_part_unref(&m->part);
	}
}

static struct mirror *shared;
static _Atomic unsigned sum;

static void *worker(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < 10000; i++)
		sum += mirror_takes(shared);
	return NULL;
}

static void workers_share(void **state)
{
	pthread_t t[4];

	(void)state;
	shared = made(100000);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&t[i], NULL, worker, NULL), 0);
	for (unsigned i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	assert_int_equal(sum, 4000);
	policy_part_unref(&shared->part);
}

static void same_or_not(void **state)
{
	struct mirror *a = made(5), *b = made(5), *c = made(6);

	(void)state;
	assert_true(policy_part_same(&a->part, &b->part));
	assert_false(policy_part_same(&a->part, &c->part));
	c->spec = a->spec;
	c->service.index++;
	assert_false(policy_part_same(&a->part, &c->part));
	policy_part_unref(&a->part);
	policy_part_unref(&b->part);
	policy_part_unref(&c->part);
	mem_fail_from(1);
	assert_null(mirror_new(&(struct mirror_spec){0}));
	mem_fail_from(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shares), cmocka_unit_test(workers_share), cmocka_unit_test(same_or_not),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
