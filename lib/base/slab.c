/* Door: objects of one size for one thread.  Owns chunks of SLAB_CHUNK bytes,
 * aligned to their size; used for whatever exists once per connection or
 * request.  Never clears an object, moves one only when told to, takes no lock.
 *
 * Invariants: every chunk that is not full is in partial[list], fuller ones in
 * higher lists; `current` is the head of the highest; at most one chunk is
 * empty, it is `spare`, and it is not `current` unless nothing else has room. */
#include "lib/base/slab.h"

#include <string.h>
#include "lib/base/mem.h"

/* Objects of a chunk that share a list, at least. */
#define LIST_SPAN 8u

_Static_assert(sizeof(struct slab_chunk) <= SLAB_HEAD, "a chunk's head fits its place");

/* Objects of `size` bytes, charged to `budget` by the chunk; allocates nothing yet. */
void slab_init(struct slab *s, size_t size, struct budget *budget)
{
	CHECK(size > 0 && size <= 4096);
	size = (size + 7) & ~(size_t)7;
	*s = (struct slab){
		.budget = budget,
		.size = (uint32_t)size,
		.per_chunk = (SLAB_CHUNK - SLAB_HEAD) / (uint32_t)size,
	};
	s->lists = s->per_chunk / LIST_SPAN;
	if (s->lists < 2)
		s->lists = 2;
	if (s->lists > SLAB_LISTS)
		s->lists = SLAB_LISTS;
}

void slab_share(struct slab *s, struct pages *pages)
{
	CHECK(s->chunks == 0 && !s->hidden && pages->size == SLAB_CHUNK);
	s->pages = pages;
}

void slab_hide(struct slab *s)
{
	CHECK(s->chunks == 0 && !s->pages);
	s->hidden = true;
}

static void chunk_link(struct slab *s, struct slab_chunk *c)
{
	struct slab_chunk **head = &s->partial[c->list];
	c->prev = NULL;
	c->next = *head;
	if (c->next)
		c->next->prev = c;
	*head = c;
}

static void chunk_unlink(struct slab *s, struct slab_chunk *c)
{
	if (c->next)
		c->next->prev = c->prev;
	if (c->prev)
		c->prev->next = c->next;
	else
		s->partial[c->list] = c->next;
}

/* Where the list begins, in objects: list i of n holds chunks from i/n of per_chunk. */
static uint32_t list_floor(const struct slab *s, uint32_t list)
{
	return (list * s->per_chunk + s->lists - 1) / s->lists;
}

/* Puts `c`, which is in no list, where its fullness belongs.  It leaves a list
 * downwards only some objects below its floor, so that one object coming and
 * going does not move it each time. */
static void chunk_place(struct slab *s, struct slab_chunk *c)
{
	if (c->live == s->per_chunk) {
		c->list = SLAB_FULL;
		c->lo = s->per_chunk;
		c->hi = UINT32_MAX;
		return;
	}
	c->list = c->live * s->lists / s->per_chunk;
	uint32_t low = list_floor(s, c->list), slack = s->per_chunk / (2 * s->lists);
	c->lo = low > slack + 1 ? low - slack : 1;
	c->hi = list_floor(s, c->list + 1);
	chunk_link(s, c);
}

static void choose_current(struct slab *s)
{
	s->current = NULL;
	for (uint32_t i = s->lists; i-- > 0 && !s->current;)
		s->current = s->partial[i];
}

static void chunk_free(struct slab *s, struct slab_chunk *c)
{
	SLAB_UNPOISON(c, SLAB_CHUNK);
	s->chunks--;
	if (s->pages) {
		pages_put(s->pages, c);
		return;
	}
	mem_pages_free(c, SLAB_CHUNK);
	budget_credit(s->budget, SLAB_CHUNK);
}

static struct slab_chunk *chunk_new(struct slab *s)
{
	struct slab_chunk *c;

	if (s->pages)
		return pages_get(s->pages);
	if (budget_charge(s->budget, SLAB_CHUNK) != OK)
		return NULL;
	c = mem_pages(SLAB_CHUNK);
	if (!c)
		budget_credit(s->budget, SLAB_CHUNK);
	else if (s->hidden)
		mem_pages_hide(c, SLAB_CHUNK);
	return c;
}

/* Of `c`, just emptied: the second empty chunk goes back to the system, the
 * first is kept behind the others of its list. */
static void chunk_emptied(struct slab *s, struct slab_chunk *c)
{
	if (s->spare && s->spare != c && s->spare->live == 0) {
		chunk_unlink(s, c);
		chunk_free(s, c);
		return;
	}
	s->spare = c;
	struct slab_chunk *next = c->next;
	if (c->prev || !next)
		return;
	chunk_unlink(s, c);
	c->prev = next;
	c->next = next->next;
	if (c->next)
		c->next->prev = c;
	next->next = c;
}

/* Called when `c` has reached c->hi or fallen below c->lo: into its new list. */
void slab_shift(struct slab *s, struct slab_chunk *c)
{
	if (c->live == 0 && c == s->spare && c == s->current && c->list == 0 && !c->next)
		return;		/* a lone object came and went */
	if (c->list != SLAB_FULL)
		chunk_unlink(s, c);
	chunk_place(s, c);
	if (c->live == 0)
		chunk_emptied(s, c);
	choose_current(s);
}

/* A fresh chunk that becomes the current one; NULL when there is no memory or budget. */
struct slab_chunk *slab_grow(struct slab *s)
{
	struct slab_chunk *c = chunk_new(s);

	if (!c)
		return NULL;
	c->free = NULL;
	c->live = 0;
	c->slab = s;
	c->fresh = (char *)c + SLAB_HEAD;
	SLAB_POISON(c->fresh, SLAB_CHUNK - SLAB_HEAD);
	s->chunks++;
	chunk_place(s, c);
	choose_current(s);
	return c;
}

#define MARKS (SLAB_CHUNK / 8 / 64)

/* Marks the objects of `c` that are not handed out, by their number. */
static void mark_free(const struct slab *s, struct slab_chunk *c, uint64_t marks[MARKS])
{
	char *first = (char *)c + SLAB_HEAD, *next;
	size_t i = (size_t)(c->fresh - first) / s->size;

	memset(marks, 0, MARKS * sizeof *marks);
	for (; i < s->per_chunk; i++)
		marks[i / 64] |= 1ull << i % 64;
	for (char *p = c->free; p; p = next) {
		i = (size_t)(p - first) / s->size;
		marks[i / 64] |= 1ull << i % 64;
		SLAB_UNPOISON(p, sizeof(void *));
		next = *(void **)p;
		SLAB_POISON(p, sizeof(void *));
	}
}

/* Moves what it can out of `c`, which may be gone afterwards; how much. */
static size_t chunk_evacuate(struct slab *s, struct slab_chunk *c, slab_move *move, void *ctx)
{
	uint64_t marks[MARKS];
	uint32_t left = c->live;
	size_t moved = 0;

	mark_free(s, c, marks);
	for (size_t i = 0; left; i++) {
		char *from = (char *)c + SLAB_HEAD + i * s->size, *to;

		if (marks[i / 64] >> i % 64 & 1)
			continue;
		left--;
		to = slab_get(s);
		if (!to)
			break;
		if (((uintptr_t)to & ~(uintptr_t)(SLAB_CHUNK - 1)) == (uintptr_t)c) {	/* the others are full */
			slab_put(s, to);
			break;
		}
		if (move(ctx, from, to)) {
			slab_put(s, from);
			moved++;
		} else {
			slab_put(s, to);
		}
	}
	return moved;
}

size_t slab_compact(struct slab *s, size_t max, slab_move *move, void *ctx)
{
	size_t moved = 0, looks = s->chunks;

	for (uint32_t list = 0; list < s->lists; list++) {
		struct slab_chunk *c = s->partial[list], *next;

		for (; c && looks && moved < max && slab_sparse(s); c = next, looks--) {
			next = c->next;
			if (c != s->current && c->live)
				moved += chunk_evacuate(s, c, move, ctx);
		}
	}
	return moved;
}

/* Gives the kept chunk back; every object must have come home. */
void slab_fini(struct slab *s)
{
	CHECK(s->live == 0);
	for (uint32_t i = 0; i < SLAB_LISTS; i++) {
		while (s->partial[i]) {
			struct slab_chunk *c = s->partial[i];
			chunk_unlink(s, c);
			chunk_free(s, c);
		}
	}
	CHECK(s->chunks == 0);
	s->current = s->spare = NULL;
}
