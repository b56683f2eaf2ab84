/* verdict: see verdict.h.  Owns nothing; every change is one atomic step on the word, so that
 * signs from several workers on one endpoint are never lost. */
#include "health/verdict.h"

bool verdict_connect_failed(struct endpoint *e)
{
	uint32_t old = atomic_load_explicit(&e->verdict, memory_order_relaxed), new;

	do {
		uint32_t failures = old & VERDICT_FAILURES;

		new = VERDICT_DOWN | (failures < VERDICT_FAILURES ? failures + 1 : failures);
	} while (!atomic_compare_exchange_weak_explicit(&e->verdict, &old, new,
							memory_order_relaxed, memory_order_relaxed));
	return !(old & VERDICT_DOWN);
}

bool verdict_connected(struct endpoint *e)
{
	if (atomic_load_explicit(&e->verdict, memory_order_relaxed) == 0)
		return false;
	return atomic_exchange_explicit(&e->verdict, 0, memory_order_relaxed) & VERDICT_DOWN;
}

void verdict_retry(struct endpoint *e)
{
	atomic_fetch_and_explicit(&e->verdict, ~VERDICT_DOWN, memory_order_relaxed);
}
