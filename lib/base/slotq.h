/* slotq: a lazily grown FIFO queue for one thread, whose bound is in bytes.
 *
 * Empty it owns no heap.  The first item takes exactly one slot (an item of at
 * most 8 bytes sits in the handle itself: no allocation); a second grows it to
 * a ring of 4 that doubles; drained it goes back to nothing.  The handle is 16
 * bytes and meant to be embedded.  All items of a queue have one size, given
 * with each call, since the handle has no room for it. */
#ifndef THIMBLE_BASE_SLOTQ_H
#define THIMBLE_BASE_SLOTQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/base/budget.h"
#include "lib/base/err.h"

struct slotq {
	union {
		void *ring;	/* owned: one slot, or 1 << lg of them; NULL when empty */
		char item[8];	/* the only item, when items are of at most 8 bytes */
	} u;
	uint32_t head : 27;	/* index of the oldest item */
	uint32_t lg : 5;	/* log2 of the slots in the ring; 0: one slot */
	uint32_t len;		/* items */
};

_Static_assert(sizeof(struct slotq) == 16, "a slotq handle is 16 bytes");

/* All zero is an empty queue. */
static inline void slotq_init(struct slotq *q)
{
	*q = (struct slotq){0};
}

/* Frees the ring; the items are the caller's to drop before. */
void slotq_fini(struct slotq *q, size_t size, struct budget *budget);

static inline uint32_t slotq_len(const struct slotq *q)
{
	return q->len;
}

/* Appends a copy of `size` bytes.  ERR_LIMIT when the queue would then hold more
 * than `max_bytes` of items, except that an empty queue takes any one item: what
 * is larger than the whole bound must not wait for ever.  ERR_MEM as usual. */
MUST_USE enum err slotq_push(struct slotq *q, const void *item, size_t size, size_t max_bytes, struct budget *budget);

/* Puts a copy in front of the oldest item, whatever the queue holds: for one that has waited before.  ERR_MEM. */
MUST_USE enum err slotq_push_front(struct slotq *q, const void *item, size_t size, struct budget *budget);

/* Moves the oldest item to `item`; false when empty. */
bool slotq_pop(struct slotq *q, void *item, size_t size, struct budget *budget);

/* The i-th oldest item, 0 being the next to pop; NULL when there is none.
 * Valid until the next push or pop. */
void *slotq_at(struct slotq *q, uint32_t i, size_t size);

/* Takes out the i-th oldest item; the order of the others stays.  Linear. */
void slotq_remove(struct slotq *q, uint32_t i, size_t size, struct budget *budget);

/* Heap bytes it holds now, allocator overhead not counted. */
size_t slotq_heap(const struct slotq *q, size_t size);

#endif
