/* lib/base/hash: known answers, folding, reading within bounds, spread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <stdio.h>

#include "lib/base/hash.h"
#include "lib/base/mem.h"

/* With a key of zeros: what CPython 3.11 (siphash13) gives for bytes objects
 * under PYTHONHASHSEED=0. */
static void known_answers(void **state)
{
	(void)state;
	const struct { struct str in; uint64_t out; } known[] = {
		{STR("a"), 0x407448d2b89b1813},
		{STR("12345678"), 0x3489982430560a87},
		{STR("example.com"), 0x7e0432aaedb1758c},
		{STR("www.example.org"), 0x9eda91a29258e643},
		{STR("\x80\xff\x00"), 0x71b41f0a67ecae66},
		{STR("\0\1\2\3\4\5\6\7\10\11\12\13\14\15\16\17\20\21\22\23\24\25\26\27\30\31\32\33\34\35\36\37"),
		 0x31ef8061c910629b},
	};
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		assert_true(hash_keyed((struct hash_key){0, 0}, known[i].in) == known[i].out);
}

static void folding_is_as_ascii_lower(void **state)
{
	(void)state;
	struct hash_key key = {1, 2};
	char a[40], lower[40];
	uint32_t seed = 3;
	for (int c = 0; c < 256; c++) {
		for (size_t at = 0; at < 17; at++) {
			memset(a, '-', 17);
			a[at] = (char)c;
			memcpy(lower, a, 17);
			if (c >= 'A' && c <= 'Z')
				lower[at] = (char)(c + 32);
			assert_true(hash_keyed_fold(key, (struct str){a, 17}) == hash_keyed(key, (struct str){lower, 17}));
		}
	}
	for (int i = 0; i < 100000; i++) {
		size_t n = (seed >> 8) % sizeof(a);
		for (size_t k = 0; k < n; k++) {
			seed = seed * 1664525 + 1013904223;
			a[k] = (char)(seed >> 24);
			lower[k] = a[k] >= 'A' && a[k] <= 'Z' ? (char)(a[k] + 32) : a[k];
		}
		assert_true(hash_keyed_fold(key, (struct str){a, n}) == hash_keyed(key, (struct str){lower, n}));
	}
	assert_true(hash_host(STR("WWW.Example.COM")) == hash_host(STR("www.example.com")));
	assert_false(hash_str(STR("WWW.Example.COM")) == hash_str(STR("www.example.com")));
}

static void length_and_key_matter(void **state)
{
	(void)state;
	struct hash_key a = {1, 2}, b = {1, 3};
	assert_false(hash_keyed(a, STR("x")) == hash_keyed(b, STR("x")));
	assert_false(hash_keyed(a, STR("x")) == hash_keyed(a, STR("x\0")));
	assert_false(hash_keyed(a, STR("")) == hash_keyed(a, STR("\0")));
	hash_set_key(a);
	assert_true(hash_str(STR("x")) == hash_keyed(a, STR("x")));
	assert_true(hash_str((struct str){NULL, 0}) == hash_keyed(a, STR("")));
}

/* Exact heap blocks: the sanitizer sees a read beyond the end. */
static void reads_within_bounds(void **state)
{
	(void)state;
	for (size_t n = 1; n < 40; n++) {
		char *p = mem_alloc(n);
		memset(p, 'h', n);
		assert_true(hash_host((struct str){p, n}) == hash_str((struct str){p, n}));
		mem_free(p);
	}
}

static void low_bits_are_spread(void **state)
{
	(void)state;
	enum { BUCKETS = 1024, NAMES = 64 * BUCKETS };
	static int load[BUCKETS];
	char name[64];
	hash_set_key((struct hash_key){7, 8});
	for (int i = 0; i < NAMES; i++) {
		int n = snprintf(name, sizeof(name), "host-%d.example.com", i);
		load[hash_host((struct str){name, (size_t)n}) % BUCKETS]++;
	}
	for (int i = 0; i < BUCKETS; i++)
		assert_in_range(load[i], 24, 120);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_answers),
		cmocka_unit_test(folding_is_as_ascii_lower),
		cmocka_unit_test(length_and_key_matter),
		cmocka_unit_test(reads_within_bounds),
		cmocka_unit_test(low_bits_are_spread),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
