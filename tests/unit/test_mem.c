/* lib/base/mem: the failure hook, aligned pages, true sizes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <stdio.h>
#include <sys/mman.h>

#include "lib/base/mem.h"

static void nth_call_and_all_after_fail(void **state)
{
	(void)state;
	mem_fail_from(3);
	void *a = mem_alloc(10), *b = mem_zalloc(10);
	assert_non_null(a);
	assert_non_null(b);
	assert_null(mem_alloc(1));
	assert_null(mem_realloc(a, 100));
	assert_null(mem_strndup("abc", 3));
	assert_null(mem_pages(4096));
	assert_int_equal(mem_fail_count(), 6);
	mem_fail_from(0);
	assert_int_equal(mem_fail_count(), 0);
	a = mem_realloc(a, 100);
	assert_non_null(a);
	assert_int_equal(mem_fail_count(), 1);
	mem_free(a);
	mem_free(b);
	mem_free(NULL);
}

static size_t length(void *list)
{
	size_t n = 0;

	for (; list; list = *(void **)list)
		n++;
	return n;
}

static void spare_blocks_are_a_list(void **state)
{
	(void)state;
	void *list = mem_spare_take();
	assert_true(length(list) == 64 * 7 || !list);	/* none: another allocator than glibc's */
	mem_spare_free(list);
	mem_fail_from(10);
	list = mem_spare_take();
	mem_fail_from(0);
	assert_true(length(list) == 9 || !list);	/* as many as there were */
	mem_spare_free(list);
	mem_fail_from(1);
	assert_null(mem_spare_take());
	mem_fail_from(0);
	mem_spare_free(NULL);
}

static void contents(void **state)
{
	(void)state;
	char zero[64] = {0};
	char *z = mem_zalloc(64);
	assert_memory_equal(z, zero, 64);
	memcpy(z, "kept", 5);
	z = mem_realloc(z, 5000);
	assert_string_equal(z, "kept");
	mem_free(z);
	char *s = mem_strndup("abcdef", 3);
	assert_string_equal(s, "abc");
	mem_free(s);
	void *none = mem_alloc(0);
	assert_non_null(none);
	mem_free(none);
}

static void size_is_of_the_block(void **state)
{
	(void)state;
	for (size_t n = 1; n < 3000; n += 37) {
		void *p = mem_alloc(n);
		assert_true(mem_size(p) >= n + 8 && mem_size(p) <= n + 48);
		mem_free(p);
	}
	assert_int_equal(mem_size(NULL), 0);
}

static int mapped(void *p)
{
	unsigned char in_core[1];
	return mincore(p, 4096, in_core) == 0;
}

static void pages_are_aligned_zero_and_given_back(void **state)
{
	(void)state;
	for (size_t n = 4096; n <= 4u << 20; n *= 4) {
		char *p[8];
		for (int i = 0; i < 8; i++) {
			p[i] = mem_pages(n);
			assert_non_null(p[i]);
			assert_int_equal((uintptr_t)p[i] % n, 0);
			assert_int_equal(p[i][0], 0);
			assert_int_equal(p[i][n - 1], 0);
			memset(p[i], i + 1, n);
			/* an odd mapping between, so that the plain call is not aligned by luck */
			void *odd = mmap(NULL, n + 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			assert_true(odd != MAP_FAILED);
		}
		for (int i = 0; i < 8; i++) {
			assert_int_equal(p[i][n / 2], i + 1);
			assert_true(mapped(p[i]));
			mem_pages_free(p[i], n);
			assert_false(mapped(p[i]));
		}
	}
	mem_pages_free(NULL, 4096);
}

/* Pages of address space that the process has. */
static long address_space(void)
{
	long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%ld", &pages), 1);
	fclose(f);
	return pages;
}

static void nothing_is_mapped_beyond_the_pages(void **state)
{
	(void)state;
	enum { N = 16 };
	const size_t size = 1u << 20;
	void *p[N], *odd[N];
	address_space();	/* stdio has its buffer from here on */
	long before = address_space();
	for (int i = 0; i < N; i++) {
		p[i] = mem_pages(size);
		assert_non_null(p[i]);
		/* so large that no gap takes it: the next plain mapping is not aligned */
		odd[i] = mmap(NULL, size + 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		assert_true(odd[i] != MAP_FAILED);
	}
	assert_int_equal(address_space() - before, N * (2 * size / 4096 + 1));
	for (int i = 0; i < N; i++) {
		mem_pages_free(p[i], size);
		munmap(odd[i], size + 4096);
	}
	assert_int_equal(address_space(), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nth_call_and_all_after_fail),
		cmocka_unit_test(spare_blocks_are_a_list),
		cmocka_unit_test(contents),
		cmocka_unit_test(size_is_of_the_block),
		cmocka_unit_test(pages_are_aligned_zero_and_given_back),
		cmocka_unit_test(nothing_is_mapped_beyond_the_pages),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
