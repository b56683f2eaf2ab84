/* dispatch/rate: buckets over simulated time, and the table of them: its bound, who makes room, threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include <pthread.h>

#include "dispatch/rate.h"
#include "lib/base/mem.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define SECOND 1000000u		/* in the time that comes in */
#define HOUR (3600ull * SECOND)

static uint32_t seed = 11;

static uint32_t next(void)
{
	seed = seed * 1664525 + 1013904223;
	return seed >> 8;
}

static uint64_t key_of(uint64_t limit, uint64_t n)
{
	return rate_key(limit, (struct str){(const char *)&n, sizeof(n)});
}

/* One request from `key`: it must not lack memory. */
static struct rate_answer take(struct rate_table *t, const struct rate *r, uint64_t key, uint64_t now)
{
	struct rate_answer a = {0};

	assert_int_equal(rate_table_take(t, r, key, now, &a), OK);
	return a;
}

/* --- one bucket --- */

static void a_burst_and_then_the_rate(void **state)
{
	struct rate r = rate_of(10, 1, 4);
	_Atomic uint64_t full = 0;
	uint64_t now = 5 * SECOND;
	struct rate_answer a;

	(void)state;
	for (uint32_t i = 0; i < 4; i++) {
		a = rate_take(&r, &full, now);
		assert_true(a.allowed);
		assert_int_equal(a.left, 3 - i);
		assert_int_equal(a.more_ns, 100000000);
	}
	a = rate_take(&r, &full, now + 1);
	assert_false(a.allowed);
	assert_int_equal(a.left, 0);
	assert_int_equal(a.more_ns, 99999000);
	assert_int_equal(rate_seconds(a.more_ns), 1);
	assert_false(rate_take(&r, &full, now + 99999).allowed);
	assert_true(rate_take(&r, &full, now + 100000).allowed);
	assert_false(rate_take(&r, &full, now + 100000).allowed);
	a = rate_take(&r, &full, now + 60 * SECOND);	/* full again, and no fuller */
	assert_int_equal(a.left, 3);
	assert_int_equal(rate_seconds(0), 0);
	assert_int_equal(rate_seconds(1), 1);
	assert_int_equal(rate_seconds(2000000000), 2);
	assert_int_equal(rate_seconds(2000000001), 3);
}

/* Asked all the time, it lets through the burst and what the time brings: not one more, and not two less. */
static void exact_over_simulated_time(void **state)
{
	static const struct { uint32_t count, period, burst, step; } rows[] = {
		{10, 1, 10, 997}, {3, 1, 2, 1009}, {7, 1, 20, 5003}, {100, 60, 5, 20011}, {1000, 60, 1000, 7919},
		{1, 3600, 2, 10000019}, {1000000, 1, 1000, 1}, {333333, 1, 7, 1}, {1000000, 3600, 1000000, 101},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct rate r = rate_of(rows[i].count, rows[i].period, rows[i].burst);
		_Atomic uint64_t full = 0;
		uint64_t begin = 123456789, now = begin, allowed = 0, earned = 0;

		for (int k = 0; k < 100000; k++, now += rows[i].step) {
			while (rate_take(&r, &full, now).allowed)
				allowed++;
			earned = (now - begin) * rows[i].count / (rows[i].period * (uint64_t)SECOND);
			assert_true(allowed <= rows[i].burst + earned);
		}
		/* an interval is rounded up to whole ns, which is a millionth part at 1000/s */
		earned -= earned * rows[i].count / rows[i].period / 1000000000;
		assert_true(allowed + 1 >= rows[i].burst + earned);
	}
}

static void who_keeps_to_the_rate_is_never_refused(void **state)
{
	struct rate r = rate_of(7, 60, 1);
	_Atomic uint64_t full = 0;
	uint64_t now = 1;

	(void)state;
	for (int i = 0; i < 100000; i++, now += 60 * SECOND / 7 + 1)
		assert_true(rate_take(&r, &full, now).allowed);
}

/* What is said about the next one is so, to the microsecond. */
static void the_wait_that_is_told_is_true(void **state)
{
	struct rate r = rate_of(13, 60, 3);
	_Atomic uint64_t full = 0;
	uint64_t now = 1000, refused = 0;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		struct rate_answer a = rate_take(&r, &full, now);
		uint64_t wait = (a.more_ns + 999) / 1000;
		_Atomic uint64_t before = full, at = full;
		uint32_t got = 0;

		refused += !a.allowed;
		for (uint32_t k = 0; k <= a.left; k++)
			assert_int_equal(rate_take(&r, &before, now + wait - 1).allowed, k < a.left);
		while (rate_take(&r, &at, now + wait).allowed)
			got++;
		assert_int_equal(got, a.left + 1);
		now += next() % (6 * SECOND);
	}
	assert_true(refused > 1000);
}

static void what_is_given_back_is_there(void **state)
{
	struct rate r = rate_of(1, 3600, 2);
	struct rate_table *t = rate_table_new(RATE_MEMORY_MIN);
	_Atomic uint64_t full = 0;

	(void)state;
	rate_give(&r, &full);
	rate_table_give(t, &r, 1);	/* nothing there: nothing happens */
	for (int i = 0; i < 100; i++) {
		assert_true(rate_take(&r, &full, 5).allowed && take(t, &r, 1, 5).allowed);
		if (i)
			assert_true(!rate_take(&r, &full, 5).allowed && !take(t, &r, 1, 5).allowed);
		else
			continue;
		rate_give(&r, &full);
		rate_table_give(t, &r, 1);
	}
	rate_table_give(t, &r, 2);
	assert_int_equal(rate_table_stats(t).buckets, 1);
	rate_table_free(t);
}

/* The clock of another thread is a turn behind: that never allows more. */
static void a_clock_that_is_behind(void **state)
{
	struct rate r = rate_of(100, 1, 5);
	_Atomic uint64_t full = 0;
	uint64_t allowed = 0, now = SECOND;
	struct rate_answer a;

	(void)state;
	for (int i = 0; i < 100000; i++) {
		now += 50;
		a = rate_take(&r, &full, now - next() % 2000);
		allowed += a.allowed;
		assert_true(a.left < 5 && a.more_ns <= 12000000);
	}
	assert_true(allowed <= 5 + 500 && allowed >= 495);
	while (rate_take(&r, &full, now).allowed)
		;
	a = rate_take(&r, &full, now - SECOND);
	assert_true(!a.allowed && a.left == 0 && a.more_ns > 1000000000 && a.more_ns <= 1010000000);
}

/* --- the table --- */

static void nothing_before_the_first_and_after_the_last(void **state)
{
	struct rate r = rate_of(10, 1, 10);
	struct rate_table *t;
	size_t heads;

	(void)state;
	mem_fail_from(0);
	t = rate_table_new(4 << 20);
	assert_int_equal(mem_fail_count(), 1);
	assert_false(rate_table_trim(t, 1));
	assert_int_equal(rate_table_stats(t).bytes, 0);
	take(t, &r, key_of(1, 1), 1);
	heads = rate_table_stats(t).bytes - 8 * 16;
	assert_true(heads <= (4 << 20) / 100);
	for (uint64_t i = 0; i < 50000; i++)
		take(t, &r, key_of(1, i), 1);
	assert_true(rate_table_stats(t).bytes - heads >= 50000 * 16);
	assert_true(rate_table_stats(t).bytes - heads <= 50000 * 16 * 3);	/* between 44 and 88 % used */
	assert_int_equal(rate_table_stats(t).buckets, 50000);
	assert_true(rate_table_trim(t, 1 + SECOND / 20));
	assert_int_equal(rate_table_stats(t).buckets, 50000);
	assert_false(rate_table_trim(t, 1 + SECOND));
	assert_int_equal(rate_table_stats(t).buckets, 0);
	assert_int_equal(rate_table_stats(t).bytes, heads);
	assert_int_equal(take(t, &r, key_of(1, 1), 2 + SECOND).left, 9);
	rate_table_free(t);
	rate_table_free(NULL);
}

/* What is left of a crowd takes its share only. */
static void memory_follows_the_active(void **state)
{
	struct rate r = rate_of(1, 60, 1), slow = rate_of(1, 3600, 1);
	struct rate_table *t = rate_table_new(8 << 20);
	size_t high, low;

	(void)state;
	for (uint64_t i = 0; i < 50000; i++)
		take(t, i % 100 ? &r : &slow, key_of(1, i), 1);
	high = rate_table_stats(t).bytes;
	assert_true(rate_table_trim(t, 61 * SECOND));
	low = rate_table_stats(t).bytes;
	assert_int_equal(rate_table_stats(t).buckets, 500);
	assert_true(low < high / 10);
	for (uint64_t i = 0; i < 50000; i++)
		assert_int_equal(take(t, i % 100 ? &r : &slow, key_of(1, i), 61 * SECOND).allowed, i % 100 != 0);
	rate_table_free(t);
}

/* Against one word for each key, with keys that come and go, and a trim now and then. */
static void as_buckets_of_their_own(void **state)
{
	enum { N = 3000 };
	static _Atomic uint64_t full[N];
	static const uint32_t counts[] = {1, 10, 600};
	struct rate_table *t = rate_table_new(1 << 20);
	uint64_t now = 77, refused = 0;

	(void)state;
	for (int i = 0; i < 200000; i++) {
		uint32_t n = next() % 10 ? next() % 300 : next() % N;
		struct rate r = rate_of(counts[n % 3], 60, 1 + n % 7);
		struct rate_answer a = take(t, &r, key_of(9, n), now), b = rate_take(&r, &full[n], now);

		assert_true(a.allowed == b.allowed && a.left == b.left && a.more_ns == b.more_ns);
		refused += !a.allowed;
		if (a.allowed && next() % 50 == 0) {
			rate_table_give(t, &r, key_of(9, n));
			rate_give(&r, &full[n]);
		}
		now += next() % 2000;
		if (next() % 5000 == 0)
			rate_table_trim(t, now);
	}
	assert_true(refused > 3000);
	assert_int_equal(rate_table_stats(t).evicted, 0);
	rate_table_free(t);
}

static void the_bound_in_bytes(void **state)
{
	static const size_t bounds[] = {RATE_MEMORY_MIN, 5000, 20000, 49215, 49216, 100000, 1 << 20};
	struct rate r = rate_of(1, 3600, 1);

	(void)state;
	for (size_t i = 0; i < COUNT(bounds); i++) {
		struct rate_table *t = rate_table_new(bounds[i]);
		struct rate_stats s;

		for (uint64_t k = 0; k < bounds[i] / 14; k++)
			assert_true(take(t, &r, key_of(1, k), 1 + k).allowed);
		s = rate_table_stats(t);
		assert_true(s.bytes <= bounds[i]);
		assert_true(s.buckets >= bounds[i] / 50);	/* and it is used */
		assert_int_equal(s.buckets + s.evicted, bounds[i] / 14);
		rate_table_free(t);
	}
}

/* A crowd that would fill it many times over: those who are full again go, and nobody is forgotten. */
static void full_ones_make_room_first(void **state)
{
	struct rate quick = rate_of(10, 1, 1), slow = rate_of(1, 3600, 3);
	struct rate_table *t = rate_table_new(64 << 10);
	uint64_t now = 1;

	(void)state;
	for (uint64_t k = 0; k < 500; k++)
		for (int i = 0; i < 3; i++)
			take(t, &slow, key_of(1, k), now);
	for (uint64_t k = 0; k < 50000; k++, now += 200)	/* 500 of them are not full again at a time */
		assert_true(take(t, &quick, key_of(2, k), now).allowed);
	assert_int_equal(rate_table_stats(t).evicted, 0);
	for (uint64_t k = 0; k < 500; k++)
		assert_false(take(t, &slow, key_of(1, k), now).allowed);
	rate_table_free(t);
}

/* With nobody full again the lightest go: who has taken more than its share stays limited. */
static void the_heavy_are_remembered_longest(void **state)
{
	struct rate r = rate_of(10, 3600, 10);
	struct rate_table *t = rate_table_new(64 << 10);
	uint64_t now = 1, let_in = 0;

	(void)state;
	for (uint64_t k = 0; k < 100; k++)
		for (int i = 0; i < 10; i++)
			assert_true(take(t, &r, key_of(1, k), now).allowed);
	for (uint64_t k = 0; k < 10000; k++) {
		assert_true(take(t, &r, key_of(2, k), ++now).allowed);
		let_in += take(t, &r, key_of(1, k % 100), now).allowed;
	}
	assert_int_equal(let_in, 0);
	assert_true(rate_table_stats(t).evicted > 5000);
	rate_table_free(t);
}

static void without_memory(void **state)
{
	struct rate r = rate_of(1, 3600, 1);
	struct rate_answer a;
	struct rate_table *t;

	(void)state;
	mem_fail_from(1);
	assert_null(rate_table_new(1 << 20));
	mem_fail_from(0);
	t = rate_table_new(RATE_MEMORY_MIN);
	for (size_t n = 1; n <= 2; n++) {	/* the shards, the slots of one */
		mem_fail_from(n);
		assert_int_equal(rate_table_take(t, &r, key_of(1, 0), 1, &a), ERR_MEM);
	}
	mem_fail_from(0);
	for (uint64_t k = 0; k < 7; k++)
		take(t, &r, key_of(1, k), 1 + k);
	assert_int_equal(rate_table_stats(t).evicted, 0);
	mem_fail_from(1);	/* it cannot grow: it does with what it has */
	for (uint64_t k = 7; k < 20; k++)
		take(t, &r, key_of(1, k), 1 + k);
	assert_int_equal(rate_table_stats(t).evicted, 13);
	assert_int_equal(rate_table_stats(t).buckets, 7);
	mem_fail_from(0);
	for (uint64_t k = 20; k < 100; k++)
		take(t, &r, key_of(1, k), 1 + k);
	assert_int_equal(rate_table_stats(t).evicted, 13);
	mem_fail_from(1);	/* it cannot shrink, either */
	assert_true(rate_table_trim(t, HOUR + 98));
	mem_fail_from(0);
	assert_int_equal(rate_table_stats(t).buckets, 2);
	assert_false(take(t, &r, key_of(1, 99), HOUR + 98).allowed);
	assert_true(rate_table_trim(t, HOUR + 98));
	assert_false(take(t, &r, key_of(1, 99), HOUR + 98).allowed);
	rate_table_free(t);
}

static void keys_differ(void **state)
{
	(void)state;
	assert_true(rate_key(1, STR("a")) == rate_key(1, STR("a")));
	assert_false(rate_key(1, STR("a")) == rate_key(2, STR("a")));
	assert_false(rate_key(1, STR("a")) == rate_key(1, STR("b")));
	assert_false(rate_key(1, STR("")) == rate_key(1, STR("a")));
	for (uint64_t i = 0; i < 1000; i++)
		assert_true(key_of(i, i) != 0);
}

/* --- threads --- */

enum { THREADS = 4, KEYS = 500, ROUNDS = 10000 };

static struct {
	struct rate_table *t;
	struct rate r;
	_Atomic uint64_t clock, one, allowed_one;
	_Atomic uint64_t allowed[KEYS];
	_Atomic bool stop;
} shared;

static void *ask(void *arg)
{
	uint32_t rnd = (uint32_t)(uintptr_t)arg;

	for (int i = 0; i < ROUNDS; i++) {
		uint64_t now = atomic_fetch_add(&shared.clock, 10);
		struct rate_answer a;
		uint32_t k;

		rnd = rnd * 1664525 + 1013904223;
		k = (rnd >> 8) % KEYS;
		if (rate_table_take(shared.t, &shared.r, key_of(1, k), now, &a) == OK && a.allowed)
			atomic_fetch_add(&shared.allowed[k], 1);
		if (rate_take(&shared.r, &shared.one, now).allowed)
			atomic_fetch_add(&shared.allowed_one, 1);
		if (rnd >> 28 == 0 && rate_table_take(shared.t, &shared.r, key_of(2, k), now, &a) == OK && a.allowed)
			rate_table_give(shared.t, &shared.r, key_of(2, k));
	}
	return NULL;
}

static void *tidy(void *arg)
{
	(void)arg;
	while (!atomic_load(&shared.stop)) {
		rate_table_trim(shared.t, atomic_load(&shared.clock));
		assert_int_equal(rate_table_stats(shared.t).evicted, 0);
	}
	return NULL;
}

/* The clock moves while they ask: no bucket gives more than its burst and what the whole time brings. */
static void threads_never_let_in_more(void **state)
{
	pthread_t thread[THREADS], tidier;
	uint64_t earned, sum = 0;

	(void)state;
	shared.t = rate_table_new(4 << 20);
	shared.r = rate_of(20, 1, 5);
	atomic_store(&shared.clock, SECOND);
	assert_int_equal(pthread_create(&tidier, NULL, tidy, NULL), 0);
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, ask, (void *)(i + 1)), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	atomic_store(&shared.stop, true);
	pthread_join(tidier, NULL);
	earned = 5 + (atomic_load(&shared.clock) - SECOND) * 20 / SECOND;
	assert_true(shared.allowed_one <= earned && shared.allowed_one + 1 >= earned);
	for (int k = 0; k < KEYS; k++) {
		assert_true(shared.allowed[k] <= earned);
		sum += shared.allowed[k];
	}
	assert_true(sum > KEYS * 10);
	rate_table_free(shared.t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_burst_and_then_the_rate),
		cmocka_unit_test(exact_over_simulated_time),
		cmocka_unit_test(who_keeps_to_the_rate_is_never_refused),
		cmocka_unit_test(the_wait_that_is_told_is_true),
		cmocka_unit_test(what_is_given_back_is_there),
		cmocka_unit_test(a_clock_that_is_behind),
		cmocka_unit_test(nothing_before_the_first_and_after_the_last),
		cmocka_unit_test(memory_follows_the_active),
		cmocka_unit_test(as_buckets_of_their_own),
		cmocka_unit_test(the_bound_in_bytes),
		cmocka_unit_test(full_ones_make_room_first),
		cmocka_unit_test(the_heavy_are_remembered_longest),
		cmocka_unit_test(without_memory),
		cmocka_unit_test(keys_differ),
		cmocka_unit_test(threads_never_let_in_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
