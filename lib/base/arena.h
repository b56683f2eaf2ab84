/* Memory that is given back all at once.  The first block is lent by the owner
 * (often the tail of the object that embeds the arena), more come from the heap. */
#ifndef THIMBLE_BASE_ARENA_H
#define THIMBLE_BASE_ARENA_H

#include <stddef.h>
#include <stdint.h>
#include "lib/base/budget.h"
#include "lib/base/err.h"
#include "lib/base/str.h"

struct arena_block;

struct arena {
	char *next, *end;		/* free part of the current block */
	struct arena_block *blocks;	/* owned heap blocks */
	struct budget *budget;		/* borrowed; may be NULL */
};

/* `first` (lent, `n` bytes, may be NULL with 0) is used before any heap block. */
void arena_init(struct arena *a, void *first, size_t n, struct budget *budget);
void arena_fini(struct arena *a);
/* Bytes of its heap blocks. */
size_t arena_heap(const struct arena *a);

/* The slow half of arena_alloc. */
void *arena_grow(struct arena *a, size_t n) MUST_USE;

/* `n` bytes at a multiple of 8, not cleared; NULL when there is no memory or budget.  n == 0 gives
 * a pointer, too. */
static inline MUST_USE void *arena_alloc(struct arena *a, size_t n)
{
	size_t room = (size_t)(a->end - a->next), whole = n ? (n + 7) & ~(size_t)7 : 8;
	if (__builtin_expect(n > room || whole > room, 0))
		return arena_grow(a, n);
	void *p = a->next;
	a->next += whole;
	return p;
}

/* A copy of `s`; p is NULL when there is no memory (and never otherwise). */
struct str arena_dup(struct arena *a, struct str s) MUST_USE;

#endif
