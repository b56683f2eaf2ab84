/* health/verdict: who is told of a change, what stays counted, and no sign lost between threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>

#include "health/verdict.h"

static uint32_t word(struct endpoint *e)
{
	return atomic_load(&e->verdict);
}

static void down_and_up(void **state)
{
	struct endpoint e = {0};

	(void)state;
	assert_true(endpoint_up(&e));
	assert_false(verdict_connected(&e));		/* it was up */
	assert_true(verdict_connect_failed(&e));	/* who took it down owes the retry */
	assert_false(endpoint_up(&e));
	assert_false(verdict_connect_failed(&e));
	assert_int_equal(word(&e) & VERDICT_FAILURES, 2);
	verdict_retry(&e);
	assert_true(endpoint_up(&e));
	assert_int_equal(word(&e) & VERDICT_FAILURES, 2);	/* counted until it connects */
	assert_true(verdict_connect_failed(&e));
	assert_int_equal(word(&e) & VERDICT_FAILURES, 3);
	assert_true(verdict_connected(&e));
	assert_int_equal(word(&e), 0);
	verdict_connect_failed(&e);
	verdict_retry(&e);
	assert_false(verdict_connected(&e));		/* it was up again by then */
	assert_int_equal(word(&e), 0);
}

static void failures_stay_in_their_bits(void **state)
{
	struct endpoint e = {0};

	(void)state;
	atomic_store(&e.verdict, VERDICT_FAILURES - 1);
	for (int i = 0; i < 5; i++)
		verdict_connect_failed(&e);
	assert_int_equal(word(&e), VERDICT_AVOID | VERDICT_FAILURES);
	verdict_retry(&e);
	assert_int_equal(word(&e), VERDICT_FAILURES);
}

/* What checks and requests say is not for connects to change, nor the other way round. */
static void bits_of_others(void **state)
{
	struct endpoint e = {0};

	(void)state;
	verdict_set(&e, VERDICT_EJECTED, true);
	assert_false(endpoint_up(&e));
	assert_true(verdict_connect_failed(&e));
	assert_true(verdict_connected(&e));
	assert_int_equal(word(&e), VERDICT_EJECTED);
	verdict_set(&e, VERDICT_WATCHED, true);
	verdict_connect_failed(&e);
	verdict_set(&e, VERDICT_EJECTED, false);
	assert_int_equal(word(&e), VERDICT_WATCHED | VERDICT_AVOID | 1);
	verdict_retry(&e);
	assert_true(endpoint_up(&e));
}

#define THREADS 4
#define ROUNDS 10000

static struct endpoint shared;
static _Atomic unsigned taken, given;

static void *quarrel(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		if (verdict_connect_failed(&shared))
			atomic_fetch_add(&taken, 1);
		if (verdict_connected(&shared))
			atomic_fetch_add(&given, 1);
	}
	return NULL;
}

/* Each change has exactly one who made it. */
static void threads(void **state)
{
	pthread_t t[THREADS];

	(void)state;
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, quarrel, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	assert_true(taken > 0);
	assert_int_equal(taken, given);
	assert_int_equal(word(&shared), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(down_and_up),
		cmocka_unit_test(failures_stay_in_their_bits),
		cmocka_unit_test(bits_of_others),
		cmocka_unit_test(threads),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
