/* Objects of one size, for one thread; memory comes in chunks of 16 KiB that go
 * back to the system, or to the thread's pages, as soon as they are empty.  The
 * fullest chunk is used first, so that empty ones appear. */
#ifndef THIMBLE_BASE_SLAB_H
#define THIMBLE_BASE_SLAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/base/budget.h"
#include "lib/base/check.h"
#include "lib/base/err.h"
#include "lib/base/pages.h"

/* Free objects are poisoned under the address sanitizer: use after put is found. */
#ifdef THIMBLE_SANITIZED
#include <sanitizer/asan_interface.h>
#define SLAB_POISON(p, n) ASAN_POISON_MEMORY_REGION(p, n)
#define SLAB_UNPOISON(p, n) ASAN_UNPOISON_MEMORY_REGION(p, n)
#else
#define SLAB_POISON(p, n) ((void)0)
#define SLAB_UNPOISON(p, n) ((void)0)
#endif

#define SLAB_CHUNK (16u * 1024)

/* The head of a chunk, found from an object by masking its address.  Every
 * object of the chunk is live, in the free list, or beyond `fresh`: pages that
 * no object has reached yet are not touched. */
struct slab_chunk {
	struct slab_chunk *next, *prev;	/* neighbours in its partial list */
	struct slab *slab;	/* borrowed: whose chunk this is */
	void *free;		/* objects given back, last first, linked by their first word */
	char *fresh;		/* the first object never handed out */
	uint32_t live;		/* objects handed out */
	uint32_t lo, hi;	/* it changes its list below lo and at hi objects */
	uint32_t list;		/* by fullness, from 0; SLAB_FULL: full, in no list */
};

#define SLAB_LISTS 8u	/* at most; chunks of few objects take fewer, or each object would change the list */
#define SLAB_FULL SLAB_LISTS
#define SLAB_HEAD 64u	/* bytes; objects of 64 bytes then fill whole cache lines */

struct slab {
	struct budget *budget;	/* borrowed; may be NULL */
	struct pages *pages;	/* borrowed; where chunks come from and go to, NULL: the system */
	uint32_t size;		/* bytes an object takes, a multiple of 8 */
	uint32_t per_chunk;
	uint32_t lists;		/* 2..SLAB_LISTS */
	size_t live;		/* objects handed out */
	size_t chunks;
	struct slab_chunk *current;	/* the next object comes from here; NULL when all are full */
	struct slab_chunk *partial[SLAB_LISTS];	/* by fullness, fullest last */
	struct slab_chunk *spare;	/* the chunk that emptied last: one is kept, so that a lone object does not flap */
	bool hidden;		/* chunks are left out of core dumps */
};

/* `size` is rounded up to 8 and is at most 4096. */
void slab_init(struct slab *s, size_t size, struct budget *budget);
/* Before the first object: chunks (of SLAB_CHUNK bytes) go through `pages`, which has the budget charged. */
void slab_share(struct slab *s, struct pages *pages);
/* Before the first object, and not with slab_share: for secrets.  Core dumps leave the chunks out.  Whoever
 * puts an object back wipes it before: the slab clears nothing. */
void slab_hide(struct slab *s);
/* CHECKs that no object is out. */
void slab_fini(struct slab *s);

/* Moves the object at `from` to `to`, which is an object just got; false: it stays where it is, and nothing has changed. */
typedef bool slab_move(void *ctx, void *from, void *to);

/* Whether so few objects are left in so many chunks that it pays to bring them together. */
static inline bool slab_sparse(const struct slab *s)
{
	return s->chunks > 3 && s->live < s->chunks * s->per_chunk / 4;
}

/* While it is sparse: empties chunks by moving what is in them to fuller ones, about `max` objects.  How many were
 * moved; 0: the rest stays, for it is dense enough, or nothing in it can be moved. */
size_t slab_compact(struct slab *s, size_t max, slab_move *move, void *ctx);

/* The slow halves of slab_get and slab_put. */
struct slab_chunk *slab_grow(struct slab *s);
void slab_shift(struct slab *s, struct slab_chunk *c);

/* An object, not cleared; NULL when there is no memory or no budget. */
static inline MUST_USE void *slab_get(struct slab *s)
{
	struct slab_chunk *c = s->current;
	if (__builtin_expect(!c, 0) && !(c = slab_grow(s)))
		return NULL;
	void *object = c->free;
	SLAB_UNPOISON(object ? object : c->fresh, s->size);
	if (object) {
		c->free = *(void **)object;
	} else {
		object = c->fresh;
		c->fresh += s->size;
	}
	s->live++;
	if (__builtin_expect(++c->live == c->hi, 0))
		slab_shift(s, c);
	return object;
}

/* Takes it back; NULL is accepted. */
static inline void slab_put(struct slab *s, void *object)
{
	if (!object)
		return;
	struct slab_chunk *c = (struct slab_chunk *)((uintptr_t)object & ~(uintptr_t)(SLAB_CHUNK - 1));
	CHECK(c->slab == s);
	*(void **)object = c->free;
	c->free = object;
	SLAB_POISON(object, s->size);
	s->live--;
	if (__builtin_expect(c->live-- == c->lo, 0))
		slab_shift(s, c);
}

#endif
