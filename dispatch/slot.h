/* Slots: the right to have one request at an endpoint, and the right to have one connection to it.
 * Two words of the endpoint count them over all workers; a limit, where a service has one, is kept in
 * the step that counts, so that no interleaving goes beyond it. */
#ifndef THIMBLE_DISPATCH_SLOT_H
#define THIMBLE_DISPATCH_SLOT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "dispatch/endpoint.h"

/* Marks of endpoint->inflight; what is below them is the count. */
#define SLOT_WAITED 0x80000000u		/* requests wait for it in some worker: who did not wait takes none (proxy/lot.h) */
#define SLOT_COUNTED 0x40000000u	/* requests to it are counted: a service of it has limits, or compares its endpoints */
#define SLOT_COUNT 0x3fffffffu

/* Requests that hold a slot of it; 0 while nobody counts. */
static inline uint32_t slot_load(const struct endpoint *e)
{
	return atomic_load_explicit(&e->inflight, memory_order_relaxed) & SLOT_COUNT;
}

static inline bool slot_counted(const struct endpoint *e)
{
	return atomic_load_explicit(&e->inflight, memory_order_relaxed) & SLOT_COUNTED;
}

static inline bool slot_waited(const struct endpoint *e)
{
	return atomic_load_explicit(&e->inflight, memory_order_seq_cst) & SLOT_WAITED;
}

/* From now on, for as long as it lives. */
static inline void slot_count(struct endpoint *e)
{
	if (!slot_counted(e))
		atomic_fetch_or_explicit(&e->inflight, SLOT_COUNTED, memory_order_relaxed);
}

/* Takes one when fewer than `max` (0: any number) are taken; `waited`: although others wait. */
static inline bool slot_take(struct endpoint *e, uint32_t max, bool waited)
{
	uint32_t old = atomic_load_explicit(&e->inflight, memory_order_seq_cst);

	do {
		if (max && ((old & SLOT_COUNT) >= max || (!waited && (old & SLOT_WAITED))))
			return false;
	} while (!atomic_compare_exchange_weak_explicit(&e->inflight, &old, old + 1, memory_order_seq_cst, memory_order_seq_cst));
	return true;
}

/* Gives one back; true when somebody waits, who must hear of it. */
static inline bool slot_give(struct endpoint *e)
{
	return atomic_fetch_sub_explicit(&e->inflight, 1, memory_order_seq_cst) & SLOT_WAITED;
}

/* The same two of connections. */
static inline bool slot_take_conn(struct endpoint *e, uint32_t max)
{
	uint32_t old = atomic_load_explicit(&e->conns, memory_order_seq_cst);

	do {
		if (max && old >= max)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(&e->conns, &old, old + 1, memory_order_seq_cst, memory_order_seq_cst));
	return true;
}

static inline bool slot_give_conn(struct endpoint *e)
{
	atomic_fetch_sub_explicit(&e->conns, 1, memory_order_seq_cst);
	return slot_waited(e);
}

static inline uint32_t slot_conns(const struct endpoint *e)
{
	return atomic_load_explicit(&e->conns, memory_order_seq_cst);
}

#endif
