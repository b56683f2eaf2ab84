/* proxy/call: the two tables, walked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "proxy/call.h"

static void every_live_state_can_end(void **state)
{
	(void)state;
	for (unsigned s = 0; s < CALL_ENDED; s++)
		assert_int_equal(call_next[s][CALL_END], CALL_ENDED);
	for (unsigned m = 0; m < CALL_MOVES; m++)
		assert_int_equal(call_next[CALL_ENDED][m], CALL_STATES);
	assert_int_equal(call_holds[CALL_ENDED], 0);
	assert_int_equal(call_holds[CALL_NEW], 0);
}

static void every_state_is_reached(void **state)
{
	bool reach[CALL_STATES] = { [CALL_NEW] = true };

	(void)state;
	for (unsigned round = 0; round < CALL_STATES; round++)
		for (unsigned s = 0; s < CALL_STATES; s++)
			for (unsigned m = 0; m < CALL_MOVES; m++)
				if (reach[s] && call_next[s][m] != CALL_STATES)
					reach[call_next[s][m]] = true;
	for (unsigned s = 0; s < CALL_STATES; s++)
		assert_true(reach[s]);
}

/* A connection is got by a lease alone, and held in one state; so is a place. */
static void what_states_hold(void **state)
{
	(void)state;
	for (unsigned s = 0; s < CALL_STATES; s++) {
		assert_int_equal(!!(call_holds[s] & CALL_UPSTREAM), s == CALL_ASKED);
		assert_int_equal(!!(call_holds[s] & CALL_PLACE), s == CALL_QUEUED);
		for (unsigned m = 0; m < CALL_MOVES; m++) {
			if (call_next[s][m] == CALL_ASKED)
				assert_int_equal(m, CALL_LEASE);
			if (call_next[s][m] == CALL_NEW)
				assert_int_equal(m, CALL_RETRY);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_live_state_can_end),
		cmocka_unit_test(every_state_is_reached),
		cmocka_unit_test(what_states_hold),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
