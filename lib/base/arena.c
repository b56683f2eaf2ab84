/* Door: memory for as long as one request lives.  Owns its heap blocks, not the
 * first one, which is lent.  Used for heads, their fields and what is derived
 * from them.  Never frees a single piece and runs no destructor.
 *
 * Invariants: next <= end, both at multiples of 8; each heap block is charged at
 * its true size. */
#include "lib/base/arena.h"

#include <string.h>

#include "lib/base/mem.h"

#define BLOCK_MIN 1024u		/* bytes in all of the first heap block, then doubled */
#define BLOCK_MAX 8192u

struct arena_block {
	struct arena_block *next;	/* owned */
	size_t size;			/* bytes charged */
	char b[];
};

/* Starts in the lent block; allocates nothing. */
void arena_init(struct arena *a, void *first, size_t n, struct budget *budget)
{
	*a = (struct arena){.budget = budget};
	if (!first)
		return;
	size_t skip = -(uintptr_t)first & 7;
	if (n < skip)
		return;
	a->next = (char *)first + skip;
	a->end = a->next + ((n - skip) & ~(size_t)7);
}

/* Frees the heap blocks; nothing that came from here may be used any more. */
void arena_fini(struct arena *a)
{
	while (a->blocks) {
		struct arena_block *b = a->blocks;
		a->blocks = b->next;
		budget_credit(a->budget, b->size);
		mem_free(b);
	}
	a->next = a->end = NULL;
}

/* As charged. */
size_t arena_heap(const struct arena *a)
{
	size_t n = 0;

	for (const struct arena_block *b = a->blocks; b; b = b->next)
		n += b->size;
	return n;
}

/* A heap block with room for `n` bytes, charged; NULL when there is no memory or budget. */
static struct arena_block *block_new(struct arena *a, size_t n)
{
	struct arena_block *b = mem_alloc(sizeof(*b) + n);
	if (!b)
		return NULL;
	b->size = mem_size(b);
	if (budget_charge(a->budget, b->size) != OK) {
		mem_free(b);
		return NULL;
	}
	b->next = a->blocks;
	a->blocks = b;
	return b;
}

/* A piece that the current block cannot hold.  A large one gets a block of its
 * own, so that the rest of the current one is not wasted; else a new block
 * becomes current. */
void *arena_grow(struct arena *a, size_t n)
{
	size_t whole = BLOCK_MIN;
	if (n > SIZE_MAX / 4)
		return NULL;
	n = n ? (n + 7) & ~(size_t)7 : 8;
	if (a->blocks)
		whole = a->blocks->size >= BLOCK_MAX / 2 ? BLOCK_MAX : 2 * a->blocks->size;
	if (whole < BLOCK_MIN)
		whole = BLOCK_MIN;
	whole &= ~(size_t)15;
	size_t room = (whole - 8 - sizeof(struct arena_block)) & ~(size_t)7;
	if (n > room / 4) {
		struct arena_block *own = block_new(a, n);
		return own ? own->b : NULL;
	}
	struct arena_block *b = block_new(a, room);
	if (!b)
		return NULL;
	a->next = b->b + n;
	a->end = b->b + room;
	return b->b;
}

/* The copy lives as long as the arena. */
struct str arena_dup(struct arena *a, struct str s)
{
	if (s.n == 0)
		return (struct str){"", 0};
	char *p = arena_alloc(a, s.n);
	if (!p)
		return (struct str){NULL, 0};
	memcpy(p, s.p, s.n);
	return (struct str){p, s.n};
}
