/* dispatch/sticky: values of cookies and what they stand for, hashes, cookies and parameters in text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "dispatch/sticky.h"

static const struct hash_key key = {1, 2}, other = {1, 3};

static struct str value_of(struct hash_key k, const char *service, uint32_t id)
{
	static char out[4][STICKY_VALUE];
	static unsigned at;

	at = (at + 1) % 4;
	sticky_value(k, str_of(service), id, out[at]);
	return (struct str){out[at], STICKY_VALUE};
}

static void a_value_opens_to_what_it_was_made_of(void **state)
{
	(void)state;
	for (uint32_t i = 1; i < 2000; i++) {
		uint32_t id = i * 2654435761u;
		struct str v = value_of(key, "shop", id);

		assert_int_equal(sticky_id(key, STR("shop"), v), id);
		assert_int_equal(sticky_id(other, STR("shop"), v), 0);
		assert_int_equal(sticky_id(key, STR("shoq"), v), 0);
		assert_true(str_eq(v, value_of(key, "shop", id)));
	}
	/* of all releases: with a key of the configuration sessions outlive them */
	assert_memory_equal(value_of(key, "shop", 7).p, "fbd57ae57669245e", 16);
}

/* Neighbours have nothing in common that shows. */
static void nothing_shows(void **state)
{
	unsigned alike = 0;

	(void)state;
	for (uint32_t i = 1; i < 1000; i++) {
		struct str a = value_of(key, "shop", i), b = value_of(key, "shop", i + 1);

		for (size_t k = 0; k < STICKY_VALUE; k++)
			alike += a.p[k] == b.p[k];
	}
	assert_in_range(alike, 850, 1150);	/* of 16000 digits, one of sixteen by chance */
}

static void what_is_not_ours_is_nothing(void **state)
{
	static const char *const rows[] = {"", "0", "0123456789abcdef", "0123456789abcdeg", "0123456789ABCDEF0", "-123456789abcdef"};
	struct str v = value_of(key, "shop", 7);
	char copy[STICKY_VALUE];

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		assert_int_equal(sticky_id(other, STR("shop"), str_of(rows[i])), 0);
	for (size_t i = 0; i < STICKY_VALUE; i++) {
		memcpy(copy, v.p, STICKY_VALUE);
		copy[i] = copy[i] == '0' ? '1' : '0';
		assert_int_equal(sticky_id(key, STR("shop"), (struct str){copy, STICKY_VALUE}), 0);
	}
}

static void hashes_go_by_all_of_it(void **state)
{
	(void)state;
	assert_int_equal(sticky_hash(0, STR("a")), sticky_hash(0, STR("a")));
	assert_int_not_equal(sticky_hash(0, STR("a")), sticky_hash(0, STR("b")));
	assert_int_not_equal(sticky_hash(0, STR("")), 0);
	assert_int_not_equal(sticky_hash(sticky_hash(0, STR("a")), STR("b")), sticky_hash(sticky_hash(0, STR("b")), STR("a")));
	assert_int_not_equal(sticky_hash(sticky_hash(0, STR("a")), STR("b")), sticky_hash(0, STR("ab")));
}

static void cookies(void **state)
{
	static const struct { const char *field, *want[3]; } rows[] = {
		{"", {0}}, {"a=1", {"1"}}, {"b=1; a=2", {"2"}}, {"a=1; a=2;a=3", {"1", "2", "3"}}, {"a", {""}}, {"a=", {""}},
		{"aa=1; ba=2; A=3", {0}}, {" a=x y ;", {"x y"}}, {";;; ;a==", {"="}}, {"a=\"1\"", {"\"1\""}}, {"b=a=1", {0}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct str field = str_of(rows[i].field), value;
		size_t n = 0;

		for (; sticky_cookie(&field, STR("a"), &value); n++)
			if (n == 3 || !rows[i].want[n] || !str_eq(value, str_of(rows[i].want[n])))
				fail_msg("'%s': '%.*s'", rows[i].field, (int)value.n, value.p);
		assert_true(n == 3 || !rows[i].want[n]);
	}
}

static void parameters(void **state)
{
	static const struct { const char *query, *want; } rows[] = {
		{"", NULL}, {"a=1", "1"}, {"b=2&a=1", "1"}, {"a=1&a=2", "1"}, {"a", ""}, {"a&b", ""}, {"&&a=%31", "%31"}, {"aa=1&A=2", NULL},
	};
	struct str value;

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		assert_int_equal(sticky_query(str_of(rows[i].query), STR("a"), &value), rows[i].want != NULL);
		assert_true(!rows[i].want || str_eq(value, str_of(rows[i].want)));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_value_opens_to_what_it_was_made_of),
		cmocka_unit_test(nothing_shows),
		cmocka_unit_test(what_is_not_ours_is_nothing),
		cmocka_unit_test(hashes_go_by_all_of_it),
		cmocka_unit_test(cookies),
		cmocka_unit_test(parameters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
