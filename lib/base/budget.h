/* Byte accounting: process > worker.
 *
 * Bounds are in bytes, never in counts.  What is charged: every buf, arena
 * block, slab chunk and queue ring, at its true size.  A worker takes from the
 * root in portions of at most 64 KiB and gives its surplus back each turn, so that the
 * shared word is touched rarely; portions are so small that no more than 1/16 of
 * the whole is stranded in all workers.  An item larger than the whole budget must not deadlock: one
 * process-wide token lets one such item pass at a time. */
#ifndef THIMBLE_BASE_BUDGET_H
#define THIMBLE_BASE_BUDGET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/base/err.h"

#define BUDGET_PORTION (64u * 1024)

struct budget_root {
	uint64_t limit;			/* bytes; 0: no limit, only counting */
	_Atomic uint64_t taken;		/* bytes handed to workers or charged directly */
	_Atomic uint64_t peak;		/* high-water mark of taken, bytes */
	_Atomic(void *) oversized;	/* owner of the one token, NULL when free */
	_Atomic uint32_t workers;	/* budgets that take from here; portions shrink with it */
};

struct budget {			/* one per worker; one thread */
	struct budget_root *root;	/* borrowed */
	uint64_t held;		/* bytes taken from the root */
	uint64_t used;		/* bytes charged, used <= held */
	uint64_t refused;	/* charges refused so far */
};

/* Where a budget is handed on, NULL means: not accounted; all calls take it. */

void budget_root_init(struct budget_root *r, uint64_t limit);
void budget_init(struct budget *b, struct budget_root *r);
/* CHECKs that nothing is charged any more, gives everything back. */
void budget_fini(struct budget *b);

/* Charges `n` bytes; ERR_MEM when the limit would be passed (nothing is charged then). */
MUST_USE enum err budget_charge(struct budget *b, size_t n);
/* Charges without asking: for what exists already. */
void budget_force(struct budget *b, size_t n);
void budget_credit(struct budget *b, size_t n);

/* Once a turn: gives back what is held beyond one portion. */
void budget_settle(struct budget *b);

/* For one item that is larger than the whole budget: true when `owner` now has
 * (or had) the process's one token, and may force its charge. */
bool budget_oversized_take(struct budget *b, void *owner);
void budget_oversized_give(struct budget *b, void *owner);

#endif
