/* lib/base/ttl: order, the wrap of the clock, a random walk against a table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "lib/base/ttl.h"

struct thing {
	struct ttl_link link;
	uint32_t stamp;
	uint64_t due;	/* the model's, in 64 bits that do not wrap */
};

static void thing_init(struct ttl *t)
{
	ttl_init(t, offsetof(struct thing, stamp) - offsetof(struct thing, link));
}

static void lists_by_duration(void **state)
{
	(void)state;
	struct ttl t;
	thing_init(&t);
	uint8_t a = ttl_list_for(&t, 1000), b = ttl_list_for(&t, 5000);
	assert_int_not_equal(a, b);
	assert_int_equal(ttl_list_for(&t, 1000), a);
	uint8_t longest = ttl_list_for(&t, UINT64_MAX);
	assert_int_equal(t.list[longest].ms, TTL_MAX_MS);
	assert_int_equal(ttl_list_for(&t, TTL_MAX_MS), longest);
	for (uint64_t ms = 10000; t.n < TTL_LISTS; ms += 1000)
		ttl_list_for(&t, ms);
	/* none left: the nearest longer one */
	assert_int_equal(t.list[ttl_list_for(&t, 10500)].ms, 11000);
	assert_int_equal(t.list[ttl_list_for(&t, 1)].ms, 1000);
	assert_int_equal(t.list[ttl_list_for(&t, 1001)].ms, 5000);
	assert_int_equal(t.list[ttl_list_for(&t, TTL_MAX_MS - 1)].ms, TTL_MAX_MS);
	assert_int_equal(t.n, TTL_LISTS);
}

static void the_longest_serves_when_none_is_longer(void **state)
{
	(void)state;
	struct ttl t;
	thing_init(&t);
	for (uint64_t i = 0; i < TTL_LISTS; i++)
		ttl_list_for(&t, 64000 - i * 1000);
	assert_int_equal(t.list[ttl_list_for(&t, 100000)].ms, 64000);
}

static void expires_on_the_millisecond(void **state)
{
	(void)state;
	/* the last start makes stamp + ms wrap, the one before it makes now wrap */
	const uint32_t starts[] = {0, 1, 0x7fffffff, 0x80000000, 0xfffffc18, 0xffffffff, 0xfffffe00};
	for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++) {
		uint32_t now = starts[i];
		struct ttl t;
		struct thing x = {0}, y = {0};
		thing_init(&t);
		uint8_t one = ttl_list_for(&t, 1000), week = ttl_list_for(&t, TTL_MAX_MS);
		assert_int_equal(ttl_next(&t, now), -1);
		ttl_link(&t, week, &y.link, now);
		assert_int_equal(ttl_next(&t, now), TTL_MAX_MS);
		ttl_link(&t, one, &x.link, now);
		assert_true(ttl_linked(&x.link));
		assert_int_equal(ttl_next(&t, now), 1000);
		assert_int_equal(ttl_next(&t, now + 999), 1);
		assert_null(ttl_expired(&t, now + 999));
		assert_int_equal(ttl_next(&t, now + 1000), 0);
		assert_ptr_equal(ttl_expired(&t, now + 1000), &x.link);
		assert_false(ttl_linked(&x.link));
		assert_null(ttl_expired(&t, now + 1000));
		assert_null(ttl_expired(&t, now + TTL_MAX_MS - 1));
		assert_int_equal(ttl_next(&t, now + TTL_MAX_MS + 5), 0);
		assert_ptr_equal(ttl_expired(&t, now + TTL_MAX_MS + 5), &y.link);
		assert_int_equal(ttl_next(&t, now), -1);
		ttl_unlink(&y.link);
	}
}

static void linking_anew_moves_to_the_tail(void **state)
{
	(void)state;
	struct ttl t;
	struct thing x[3] = {0};
	thing_init(&t);
	uint8_t l = ttl_list_for(&t, 10);
	for (int i = 0; i < 3; i++)
		ttl_link(&t, l, &x[i].link, 0);
	ttl_link(&t, l, &x[0].link, 5);
	assert_ptr_equal(ttl_expired(&t, 12), &x[1].link);
	assert_ptr_equal(ttl_expired(&t, 12), &x[2].link);
	assert_null(ttl_expired(&t, 12));
	assert_ptr_equal(ttl_expired(&t, 15), &x[0].link);
}

static void random_walk(void **state)
{
	(void)state;
	enum { THINGS = 300, LISTS = 15 };
	static struct thing x[THINGS];
	uint8_t list[LISTS];
	uint64_t ms[LISTS];
	struct ttl t;
	uint64_t now = 0xffff0000u;	/* wraps early on, and once more later */
	uint32_t seed = 9;
	thing_init(&t);
	for (uint64_t i = 0; i < LISTS; i++) {
		ms[i] = i * i * i * 500000 + i;
		ms[i] = ms[i] > TTL_MAX_MS ? TTL_MAX_MS : ms[i];
		list[i] = ttl_list_for(&t, ms[i]);
	}
	for (int step = 0; step < 100000; step++) {
		seed = seed * 1664525 + 1013904223;
		uint32_t r = seed >> 8;
		struct thing *th = &x[r % THINGS];
		if (seed >> 30 == 0) {
			ttl_unlink(&th->link);
			th->due = 0;
		} else {
			uint32_t l = (r >> 9) % LISTS;
			ttl_link(&t, list[l], &th->link, (uint32_t)now);
			th->due = now + ms[l];
		}
		now += (seed >> 16) % 50 == 0 ? r : r % 50;
		struct ttl_link *e;
		while ((e = ttl_expired(&t, (uint32_t)now))) {
			struct thing *gone = (struct thing *)e;
			assert_true(gone->due && gone->due <= now);
			gone->due = 0;
		}
		if (step % 10)
			continue;
		int64_t least = -1;
		for (int i = 0; i < THINGS; i++) {
			assert_int_equal(ttl_linked(&x[i].link), x[i].due != 0);
			if (x[i].due && (least < 0 || (int64_t)(x[i].due - now) < least))
				least = (int64_t)(x[i].due - now);
		}
		assert_int_equal(ttl_next(&t, (uint32_t)now), least);
	}
	assert_true(now >> 32 > 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_by_duration),
		cmocka_unit_test(the_longest_serves_when_none_is_longer),
		cmocka_unit_test(expires_on_the_millisecond),
		cmocka_unit_test(linking_anew_moves_to_the_tail),
		cmocka_unit_test(random_walk),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
