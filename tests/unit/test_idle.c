/* dispatch/idle: how long an endpoint keeps idle connections. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "dispatch/idle.h"

#define MINUTE 60000u
#define MAX 75000u

static void nothing_is_known(void **state)
{
	_Atomic uint32_t word = 0;

	(void)state;
	assert_int_equal(idle_keep_ms(&word, MAX, 12345), MAX);
	assert_int_equal(idle_keep_ms(&word, 10, 12345), 10);
}

/* A second less than it says, and never more; what is very short is halved. */
static void what_it_says(void **state)
{
	(void)state;
	for (uint32_t s = 0; s < 200; s++) {
		_Atomic uint32_t word = 0;
		uint32_t ms, told = s > 1 ? s * 1000 - 1000 : s * 500;

		idle_told(&word, s, 5 * MINUTE);
		ms = idle_keep_ms(&word, UINT32_MAX, 5 * MINUTE);
		assert_true(ms <= (told > IDLE_LEAST_MS ? told : IDLE_LEAST_MS));
		assert_true(ms >= (told ? told * 2 / 3 : IDLE_LEAST_MS));
		assert_int_equal(idle_keep_ms(&word, 10, 5 * MINUTE), 10);
	}
	_Atomic uint32_t word = 0;
	idle_told(&word, UINT32_MAX, 0);
	assert_in_range(idle_keep_ms(&word, UINT32_MAX, 0), 2000000, 3600000);
}

static void what_it_says_is_forgotten(void **state)
{
	_Atomic uint32_t word = 0;

	(void)state;
	idle_told(&word, 5, 100 * MINUTE);
	assert_true(idle_keep_ms(&word, MAX, 159 * MINUTE) <= 4000);
	assert_int_equal(idle_keep_ms(&word, MAX, 160 * MINUTE), MAX);
	assert_int_equal(idle_keep_ms(&word, MAX, 228 * MINUTE), MAX);	/* and does not come back */
}

/* Each time a little different, as closes are. */
static void two_closes_teach(void **state)
{
	(void)state;
	for (uint32_t ms = 100; ms < 3000000; ms = ms * 11 / 10) {
		_Atomic uint32_t word = 0;
		uint32_t keep;

		idle_closed(&word, ms, 0);
		assert_int_equal(idle_keep_ms(&word, UINT32_MAX, 0), UINT32_MAX);
		idle_closed(&word, ms + ms / 50, 0);
		keep = idle_keep_ms(&word, UINT32_MAX, 0);
		assert_true(keep < ms - ms / 10 || keep == IDLE_LEAST_MS);
		assert_true(keep > ms / 2 || keep == IDLE_LEAST_MS);
	}
}

/* What an origin's end does: all at once, however long each had been idle. */
static void an_end_teaches_nothing(void **state)
{
	static const uint32_t idle[] = {3000, 1900, 900, 400, 90, 10, 0, 2500};
	_Atomic uint32_t word = 0;

	(void)state;
	for (unsigned i = 0; i < sizeof idle / sizeof *idle; i++)
		idle_closed(&word, idle[i], 0);
	assert_int_equal(idle_keep_ms(&word, MAX, 0), MAX);
}

static void it_is_doubted(void **state)
{
	_Atomic uint32_t word = 0;
	uint32_t first, now = 7 * MINUTE, last = 0;

	(void)state;
	idle_closed(&word, 2000, now);
	idle_closed(&word, 2000, now);
	first = idle_keep_ms(&word, MAX, now);
	assert_int_equal(idle_keep_ms(&word, MAX, now + 4 * MINUTE), first);
	for (unsigned m = 0; m < 70; m++) {
		uint32_t keep = idle_keep_ms(&word, MAX, now + m * MINUTE);

		assert_true(keep >= last);
		last = keep;
	}
	assert_int_equal(last, MAX);
	idle_closed(&word, 2000, now + 200 * MINUTE);	/* but it is known again at once */
	assert_int_equal(idle_keep_ms(&word, MAX, now + 200 * MINUTE), first);
}

static void both(void **state)
{
	_Atomic uint32_t word = 0;

	(void)state;
	idle_told(&word, 60, 0);
	idle_closed(&word, 5000, 0);
	idle_closed(&word, 5000, 0);
	assert_in_range(idle_keep_ms(&word, MAX, 0), 2500, 4500);	/* a lie */
	word = 0;
	idle_closed(&word, 5000, 0);
	idle_closed(&word, 5000, 0);
	idle_told(&word, 2, 0);
	assert_in_range(idle_keep_ms(&word, MAX, 0), 600, 1000);
}

/* Whatever the word, some time comes out, and few of them do. */
static void any_word(void **state)
{
	uint32_t seen[64], n = 0;

	(void)state;
	for (uint32_t i = 0; i < 200000; i++) {
		_Atomic uint32_t word = i * 2654435761u;
		uint32_t ms = idle_keep_ms(&word, MAX, i * 7919u), k = 0;

		assert_in_range(ms, 1, MAX);
		while (k < n && seen[k] != ms)
			k++;
		if (k == n)
			seen[n++] = ms;
		assert_true(n < 24);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_known),
		cmocka_unit_test(what_it_says),
		cmocka_unit_test(what_it_says_is_forgotten),
		cmocka_unit_test(two_closes_teach),
		cmocka_unit_test(an_end_teaches_nothing),
		cmocka_unit_test(it_is_doubted),
		cmocka_unit_test(both),
		cmocka_unit_test(any_word),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
