/* lib/base/num: printing against printf, strict parsing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>

#include "lib/base/num.h"

static void check_print(uint64_t v)
{
	char got[32], want[32];
	memset(got, 0, sizeof(got));
	sprintf(want, "%" PRIu64, v);
	assert_int_equal(num_dec(got, v), strlen(want));
	assert_string_equal(got, want);
	memset(got, 0, sizeof(got));
	sprintf(want, "%" PRIx64, v);
	assert_int_equal(num_hex(got, v), strlen(want));
	assert_string_equal(got, want);
	memset(got, 0, sizeof(got));
	sprintf(want, "%06" PRIu64, v);
	assert_int_equal(num_dec_padded(got, v, 6), strlen(want));
	assert_string_equal(got, want);
}

static void print(void **state)
{
	(void)state;
	check_print(0);
	for (int bit = 0; bit < 64; bit++) {
		check_print(UINT64_C(1) << bit);
		check_print((UINT64_C(1) << bit) - 1);
	}
	uint64_t ten = 1;
	for (int i = 0; i < 19; i++, ten *= 10) {
		check_print(ten);
		check_print(ten - 1);
	}
	check_print(UINT64_MAX);
}

struct row {
	const char *in;
	uint64_t max, out;
	enum err e;
};

static void parse_dec(void **state)
{
	(void)state;
	const struct row rows[] = {
		{"0", 9, 0, OK}, {"9", 9, 9, OK}, {"10", 9, 0, ERR_LIMIT}, {"00000000000000000000000007", 9, 7, OK},
		{"18446744073709551615", UINT64_MAX, UINT64_MAX, OK},
		{"18446744073709551616", UINT64_MAX, 0, ERR_LIMIT},
		{"99999999999999999999", UINT64_MAX, 0, ERR_LIMIT},
		{"36893488147419103232", UINT64_MAX, 0, ERR_LIMIT},	/* 2^65: zero, modulo 2^64 */
		{"99999999999999999999x", UINT64_MAX, 0, ERR_SYNTAX},
		{"", 9, 0, ERR_SYNTAX}, {"+1", 9, 0, ERR_SYNTAX}, {"-1", 9, 0, ERR_SYNTAX}, {" 1", 9, 0, ERR_SYNTAX},
		{"1 ", 9, 0, ERR_SYNTAX}, {"1,1", 9, 0, ERR_SYNTAX}, {"0x1", 9, 0, ERR_SYNTAX}, {"a", 99, 0, ERR_SYNTAX},
		{"1\n", 9, 0, ERR_SYNTAX}, {":", 99, 0, ERR_SYNTAX}, {"/", 99, 0, ERR_SYNTAX},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		uint64_t v = 12345;
		assert_int_equal(num_parse_dec(str_of(rows[i].in), rows[i].max, &v), rows[i].e);
		assert_true(v == (rows[i].e == OK ? rows[i].out : 12345));
	}
	uint64_t v = 1;
	assert_int_equal(num_parse_dec((struct str){"1\0", 2}, 99, &v), ERR_SYNTAX);
}

static void parse_hex(void **state)
{
	(void)state;
	const struct row rows[] = {
		{"0", 1, 0, OK}, {"fF", 255, 255, OK}, {"100", 255, 0, ERR_LIMIT},
		{"ffffffffffffffff", UINT64_MAX, UINT64_MAX, OK}, {"10000000000000000", UINT64_MAX, 0, ERR_LIMIT},
		{"0000000000000000000a", UINT64_MAX, 10, OK},
		{"g", 99, 0, ERR_SYNTAX}, {"G", 99, 0, ERR_SYNTAX}, {"@", 99, 0, ERR_SYNTAX}, {"`", 99, 0, ERR_SYNTAX},
		{"0x1", 99, 0, ERR_SYNTAX}, {"", 99, 0, ERR_SYNTAX}, {"1 ", 99, 0, ERR_SYNTAX}, {"\x11", 99, 0, ERR_SYNTAX},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		uint64_t v = 12345;
		assert_int_equal(num_parse_hex(str_of(rows[i].in), rows[i].max, &v), rows[i].e);
		assert_true(v == (rows[i].e == OK ? rows[i].out : 12345));
	}
	int digits = 0;
	for (int c = -128; c < 256; c++)
		digits += num_hex_digit((char)c) >= 0;
	assert_int_equal(digits, 22);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(print),
		cmocka_unit_test(parse_dec),
		cmocka_unit_test(parse_hex),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
