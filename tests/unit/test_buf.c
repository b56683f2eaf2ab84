/* lib/base/buf: sizes, limits, a random walk against an array. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "lib/base/buf.h"
#include "lib/base/mem.h"

static struct budget_root root;
static struct budget budget;

static int setup(void **state)
{
	(void)state;
	budget_root_init(&root, 0);
	budget_init(&budget, &root);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	budget_fini(&budget);
	return root.taken != 0;
}

static void small_at_first(void **state)
{
	(void)state;
	char head[200];
	memset(head, 'h', sizeof(head));
	struct buf *b = NULL;
	assert_int_equal(buf_append(&b, &budget, head, 0, 10), OK);
	assert_null(b);
	assert_int_equal(buf_append(&b, &budget, head, sizeof(head), 65536), OK);
	assert_int_equal(b->cap, 200);
#ifndef THIMBLE_SANITIZED
	assert_int_equal(mem_size(b), 224);
#endif
	assert_int_equal(budget.used, mem_size(b));
	assert_int_equal(buf_append(&b, &budget, head, 1, 65536), OK);
	assert_in_range(b->cap, 400, 415);
	assert_int_equal(budget.used, mem_size(b));
	buf_consume(&b, &budget, 201);
	assert_null(b);
	assert_int_equal(budget.used, 0);
}

static void limit_is_exact(void **state)
{
	(void)state;
	char x[100] = {0};
	struct buf *b = NULL;
	assert_int_equal(buf_append(&b, &budget, x, 100, 99), ERR_LIMIT);
	assert_null(b);
	assert_int_equal(buf_append(&b, &budget, x, 60, 99), OK);
	assert_int_equal(buf_append(&b, &budget, x, 40, 99), ERR_LIMIT);
	assert_int_equal(buf_len(b), 60);
	assert_int_equal(buf_append(&b, &budget, x, 39, 99), OK);
	assert_true(b->cap < 99 + 16);
	assert_int_equal(buf_append(&b, &budget, x, 1, 50), ERR_LIMIT);
	assert_int_equal(buf_append(&b, &budget, x, SIZE_MAX - 8, SIZE_MAX), ERR_LIMIT);
	buf_free(&b, &budget);
	buf_free(&b, &budget);
	assert_int_equal(buf_len(b), 0);
	assert_int_equal(buf_str(b).n, 0);
}

static void consumed_room_is_used_again(void **state)
{
	(void)state;
	char x[200] = {0};
	struct buf *b = NULL;
	assert_int_equal(buf_append(&b, &budget, x, 200, 4096), OK);
	struct buf *same = b;
	b->mark = 7;
	mem_fail_from(1);
	for (int i = 0; i < 100; i++) {
		buf_consume(&b, &budget, 150);
		assert_int_equal(buf_append(&b, &budget, x, 150, 4096), OK);
	}
	assert_int_equal(mem_fail_count(), 0);
	mem_fail_from(0);
	assert_ptr_equal(b, same);
	assert_int_equal(b->mark, 7);
	assert_int_equal(buf_append(&b, &budget, x, 150, 4096), OK);
	assert_true(b->cap > 200);
	assert_int_equal(b->mark, 7);
	buf_free(&b, &budget);
}

static void nothing_changes_without_memory(void **state)
{
	(void)state;
	struct buf *b = NULL;
	mem_fail_from(1);
	assert_int_equal(buf_append(&b, &budget, "abc", 3, 100), ERR_MEM);
	mem_fail_from(0);
	assert_null(b);
	assert_int_equal(buf_append(&b, &budget, "abc", 3, 100), OK);
	char x[50] = {0};
	mem_fail_from(1);
	assert_int_equal(buf_append(&b, &budget, x, 50, 100), ERR_MEM);
	mem_fail_from(0);
	assert_true(str_eq(buf_str(b), STR("abc")));
	buf_free(&b, &budget);

	struct budget_root small;
	struct budget tight;
	budget_root_init(&small, 100);
	budget_init(&tight, &small);
	assert_int_equal(buf_append(&b, &tight, "abc", 3, 1000), OK);
	assert_int_equal(buf_append(&b, &tight, x, 50, 1000), ERR_MEM);
	assert_true(str_eq(buf_str(b), STR("abc")));
	buf_free(&b, &tight);
	budget_fini(&tight);
}

static void random_walk(void **state)
{
	(void)state;
	static char model[1 << 16], in[700];
	size_t begin = 0, end = 0, limit = 2000;
	uint32_t seed = 5, c = 0;
	struct buf *b = NULL;
	for (int i = 0; i < 200000; i++) {
		seed = seed * 1664525 + 1013904223;
		size_t n = (seed >> 8) % sizeof(in);
		if (seed >> 31) {
			for (size_t k = 0; k < n; k++)
				in[k] = (char)(c + k);
			enum err e = buf_append(&b, &budget, in, n, limit);
			assert_int_equal(e, n && end - begin + n > limit ? ERR_LIMIT : OK);
			if (e == OK) {
				if (end + n > sizeof(model)) {
					memmove(model, model + begin, end - begin);
					end -= begin;
					begin = 0;
				}
				memcpy(model + end, in, n);
				end += n;
				c += (uint32_t)n;
			}
		} else {
			n = n > end - begin ? end - begin : n;
			buf_consume(&b, &budget, n);
			begin += n;
		}
		struct str s = buf_str(b);
		assert_int_equal(s.n, end - begin);
		assert_true(s.n == 0 ? b == NULL : memcmp(s.p, model + begin, s.n) == 0);
		assert_int_equal(budget.used, mem_size(b));
		assert_true(!b || b->cap < limit + 16);
	}
	buf_free(&b, &budget);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(small_at_first, setup, teardown),
		cmocka_unit_test_setup_teardown(limit_is_exact, setup, teardown),
		cmocka_unit_test_setup_teardown(consumed_room_is_used_again, setup, teardown),
		cmocka_unit_test_setup_teardown(nothing_changes_without_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(random_walk, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
