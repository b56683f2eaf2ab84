/* verdict: see verdict.h.  Owns nothing; every change is one atomic step on the word, so that
 * signs from several workers on one endpoint are never lost. */
#include "health/verdict.h"

bool verdict_connect_failed(struct endpoint *e)
{
	uint32_t old = atomic_load_explicit(&e->verdict, memory_order_relaxed), new;

	do {
		uint32_t failures = old & VERDICT_FAILURES;

		new = (old & ~VERDICT_FAILURES) | VERDICT_AVOID | (failures < VERDICT_FAILURES ? failures + 1 : failures);
	} while (!atomic_compare_exchange_weak_explicit(&e->verdict, &old, new,
							memory_order_relaxed, memory_order_relaxed));
	return !(old & VERDICT_AVOID);
}

bool verdict_connected(struct endpoint *e)
{
	const uint32_t mine = VERDICT_AVOID | VERDICT_FAILURES;

	if (!(atomic_load_explicit(&e->verdict, memory_order_relaxed) & mine))
		return false;
	return atomic_fetch_and_explicit(&e->verdict, ~mine, memory_order_relaxed) & VERDICT_AVOID;
}

void verdict_retry(struct endpoint *e)
{
	atomic_fetch_and_explicit(&e->verdict, ~VERDICT_AVOID, memory_order_relaxed);
}

void verdict_set(struct endpoint *e, uint32_t bit, bool down)
{
	if (down)
		atomic_fetch_or_explicit(&e->verdict, bit, memory_order_relaxed);
	else
		atomic_fetch_and_explicit(&e->verdict, ~bit, memory_order_relaxed);
}
