/* lib/base/arena: the lent block first, alignment, no overlap, all given back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "lib/base/arena.h"
#include "lib/base/mem.h"

static void lent_block_first(void **state)
{
	(void)state;
	struct budget_root r;
	struct budget b;
	struct arena a;
	char lent[201];
	budget_root_init(&r, 0);
	budget_init(&b, &r);
	arena_init(&a, lent + 1, 200, &b);
	mem_fail_from(0);
	for (int i = 0; i < 12; i++) {
		char *p = arena_alloc(&a, 13);
		assert_int_equal((uintptr_t)p % 8, 0);
		assert_true(p > lent && p + 16 <= lent + 201);
		memset(p, 1, 13);
	}
	assert_int_equal(mem_fail_count(), 0);
	assert_int_equal(b.used, 0);
	char *p = arena_alloc(&a, 16);
	assert_true(p + 16 <= lent || p >= lent + 201);
	assert_true(b.used >= 1000 && b.used <= 1024);
	arena_fini(&a);
	assert_int_equal(b.used, 0);
	budget_fini(&b);
}

static void pieces_do_not_overlap(void **state)
{
	(void)state;
	enum { N = 3000 };
	static unsigned char *piece[N];
	static size_t size[N];
	for (uint32_t seed = 1; seed < 20; seed++) {
		struct budget_root r;
		struct budget b;
		struct arena a;
		char lent[300];
		uint32_t rnd = seed;
		budget_root_init(&r, 0);
		budget_init(&b, &r);
		arena_init(&a, seed % 2 ? lent : NULL, seed % 2 ? sizeof(lent) : 0, &b);
		for (int i = 0; i < N; i++) {
			rnd = rnd * 1664525 + 1013904223;
			size[i] = (rnd >> 8) % (rnd >> 30 ? 60 : 5000);
			piece[i] = arena_alloc(&a, size[i]);
			assert_non_null(piece[i]);
			assert_int_equal((uintptr_t)piece[i] % 8, 0);
			memset(piece[i], i & 255, size[i]);
		}
		for (int i = 0; i < N; i++) {
			for (size_t k = 0; k < size[i]; k++)
				assert_true(piece[i][k] == (i & 255));
		}
		arena_fini(&a);
		assert_int_equal(b.used, 0);
		budget_fini(&b);
	}
}

static void no_memory_no_budget(void **state)
{
	(void)state;
	struct budget_root r;
	struct budget b;
	struct arena a;
	budget_root_init(&r, 3000);
	budget_init(&b, &r);
	arena_init(&a, NULL, 0, &b);
	mem_fail_from(1);
	assert_null(arena_alloc(&a, 10));
	assert_null(arena_dup(&a, STR("text")).p);
	assert_non_null(arena_dup(&a, STR("")).p);
	mem_fail_from(0);
	assert_int_equal(b.used, 0);
	int n = 0;
	while (arena_alloc(&a, 100))
		n++;
	assert_true(n >= 8 && n < 30);
	assert_true(b.used <= 3000);
	assert_null(arena_alloc(&a, SIZE_MAX));
	assert_null(arena_alloc(&a, SIZE_MAX - 7));
	assert_null(arena_alloc(&a, SIZE_MAX / 2));
	arena_fini(&a);
	budget_fini(&b);
}

static void dup_copies(void **state)
{
	(void)state;
	struct arena a;
	char text[] = "host\0name";
	arena_init(&a, NULL, 0, NULL);
	struct str s = arena_dup(&a, (struct str){text, sizeof(text)});
	memset(text, 'x', sizeof(text));
	assert_int_equal(s.n, 10);
	assert_memory_equal(s.p, "host\0name", 10);
	arena_fini(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lent_block_first),
		cmocka_unit_test(pieces_do_not_overlap),
		cmocka_unit_test(no_memory_no_budget),
		cmocka_unit_test(dup_copies),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
