/* proxy/exchange: the two tables, walked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "proxy/exchange.h"

static bool leads_to(unsigned from, unsigned to)
{
	for (unsigned m = 0; m < MOVE_N; m++)
		if (exchange_next[from][m] == to)
			return true;
	return false;
}

static void moves_lead_to_phases(void **state)
{
	(void)state;
	for (unsigned p = 0; p < PHASE_N; p++)
		for (unsigned m = 0; m < MOVE_N; m++)
			assert_in_range(exchange_next[p][m], 0, PHASE_N);
}

/* From each phase by any way to every other that can follow: DONE is always among them. */
static void every_phase_reaches_done(void **state)
{
	bool reach[PHASE_N][PHASE_N] = {{0}};

	(void)state;
	for (unsigned a = 0; a < PHASE_N; a++)
		for (unsigned b = 0; b < PHASE_N; b++)
			reach[a][b] = a == b || leads_to(a, b);
	for (unsigned k = 0; k < PHASE_N; k++)
		for (unsigned a = 0; a < PHASE_N; a++)
			for (unsigned b = 0; b < PHASE_N; b++)
				reach[a][b] |= reach[a][k] && reach[k][b];
	for (unsigned p = 0; p < PHASE_N; p++) {
		assert_true(reach[p][PHASE_DONE]);
		assert_true(reach[PHASE_NEW][p]);	/* none is dead */
	}
}

static void every_live_phase_can_be_aborted(void **state)
{
	(void)state;
	for (unsigned p = 0; p < PHASE_DONE; p++)
		assert_int_equal(exchange_next[p][MOVE_ABORT], PHASE_DONE);
}

static void done_is_the_end(void **state)
{
	(void)state;
	assert_int_equal(exchange_holds[PHASE_DONE], 0);
	for (unsigned m = 0; m < MOVE_N; m++)
		assert_int_equal(exchange_next[PHASE_DONE][m], PHASE_N);
}

static void what_phases_hold(void **state)
{
	(void)state;
	for (unsigned p = 0; p < PHASE_N; p++) {
		assert_int_equal(!!(exchange_holds[p] & HOLD_CLIENT), p != PHASE_DONE);
		assert_int_equal(!!(exchange_holds[p] & HOLD_PLACE), p == PHASE_QUEUED);
		assert_int_equal(!!(exchange_holds[p] & HOLD_UPSTREAM), p >= PHASE_LEASED && p <= PHASE_TUNNEL);
	}
}

/* An upstream connection is got by a lease alone, and is the same one until it is given back. */
static void upstream_comes_by_lease(void **state)
{
	(void)state;
	for (unsigned p = 0; p < PHASE_N; p++)
		for (unsigned m = 0; m < MOVE_N; m++) {
			unsigned to = exchange_next[p][m];

			if (to == PHASE_N || (exchange_holds[p] & HOLD_UPSTREAM))
				continue;
			assert_int_equal(!!(exchange_holds[to] & HOLD_UPSTREAM), m == MOVE_LEASE);
		}
}

static void no_retry_once_the_client_has_a_head(void **state)
{
	static const unsigned passed[] = { PHASE_REPLYING, PHASE_TUNNEL, PHASE_FLUSHING, PHASE_LOCAL, PHASE_DONE };

	(void)state;
	for (unsigned i = 0; i < sizeof passed / sizeof *passed; i++) {
		assert_int_equal(exchange_next[passed[i]][MOVE_RETRY], PHASE_N);
		assert_int_equal(exchange_next[passed[i]][MOVE_REFUSE], PHASE_N);
		for (unsigned m = 0; m < MOVE_N; m++) {
			unsigned to = exchange_next[passed[i]][m];

			assert_true(to == PHASE_N || to >= PHASE_REPLYING);
		}
	}
	assert_int_equal(exchange_next[PHASE_QUEUED][MOVE_RETRY], PHASE_NEW);
	assert_int_equal(exchange_next[PHASE_LEASED][MOVE_RETRY], PHASE_NEW);
	assert_int_equal(exchange_next[PHASE_SENT][MOVE_RETRY], PHASE_NEW);
	for (unsigned p = PHASE_NEW; p <= PHASE_SENT; p++)
		assert_int_equal(exchange_next[p][MOVE_REFUSE], PHASE_LOCAL);
}

/* A connection goes back for another use at the end of an answer, and nowhere else. */
static void upstream_end_is_behind_a_reply(void **state)
{
	(void)state;
	for (unsigned p = 0; p < PHASE_N; p++)
		assert_int_equal(exchange_next[p][MOVE_UPSTREAM_END], p == PHASE_REPLYING ? PHASE_FLUSHING : PHASE_N);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(moves_lead_to_phases),
		cmocka_unit_test(every_phase_reaches_done),
		cmocka_unit_test(every_live_phase_can_be_aborted),
		cmocka_unit_test(done_is_the_end),
		cmocka_unit_test(what_phases_hold),
		cmocka_unit_test(upstream_comes_by_lease),
		cmocka_unit_test(no_retry_once_the_client_has_a_head),
		cmocka_unit_test(upstream_end_is_behind_a_reply),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
