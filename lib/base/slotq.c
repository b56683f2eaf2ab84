/* Door: a queue that costs nothing while it is empty.  Owns its one slot or its
 * ring, not what the items point to.  For one thread.  Used wherever many queues
 * exist and few hold anything: requests that wait for a connection or a service.
 *
 * Invariants: len == 0 is all zero; lg == 0 and len == 1 is one slot, in the
 * handle when items are of at most INLINE bytes; else 1 << lg slots, lg >= 2, of
 * which those from head on, modulo the ring, hold the items, oldest first. */
#include "lib/base/slotq.h"

#include <string.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"

#define INLINE 8u
#define LG_FIRST 2u
#define SMALL 1024u	/* bytes; a ring of no more is not cut before it drains */
#define LG_MAX 26u	/* head has 27 bits, and so does every index up to the ring's end */

static inline bool is_ring(const struct slotq *q)
{
	return q->lg != 0;
}

static inline uint32_t slots(const struct slotq *q)
{
	return 1u << q->lg;
}

static inline char *slot(struct slotq *q, uint32_t i, size_t size)
{
	if (!is_ring(q))
		return size <= INLINE ? q->u.item : q->u.ring;
	return (char *)q->u.ring + ((q->head + i) & (slots(q) - 1)) * size;
}

/* Pointers and small pairs are what most queues hold: no call for those. */
static inline void copy(void *to, const void *from, size_t size)
{
	if (size == 8)
		memcpy(to, from, 8);
	else
		memcpy(to, from, size);
}

/* A long run, in pieces: from 2 KiB on some C libraries copy with one string
 * instruction, which some processors do at a tenth of the speed when the two
 * places differ in alignment (measured: 32 items of 1 KiB, 570 ns each against 140). */
static void copy_run(char *to, const char *from, size_t n)
{
	for (; n > 1024; n -= 1024, to += 1024, from += 1024)
		memcpy(to, from, 1024);
	memcpy(to, from, n);
}

/* Heap for `n` items, charged; NULL when there is no memory or budget. */
static void *block_new(size_t n, size_t size, struct budget *budget)
{
	size_t bytes;
	if (__builtin_mul_overflow(n, size, &bytes))
		return NULL;
	void *p = mem_alloc(bytes);
	if (!p)
		return NULL;
	if (budget_charge(budget, mem_size(p)) != OK) {
		mem_free(p);
		return NULL;
	}
	return p;
}

static void block_free(void *p, struct budget *budget)
{
	budget_credit(budget, mem_size(p));
	mem_free(p);
}

/* Frees what the handle owns and makes it empty. */
void slotq_fini(struct slotq *q, size_t size, struct budget *budget)
{
	if (q->len && (is_ring(q) || size > INLINE))
		block_free(q->u.ring, budget);
	*q = (struct slotq){0};
}

/* Moves the items to a ring of 1 << lg slots, the oldest to its start; on
 * failure nothing changes. */
static bool resize(struct slotq *q, uint32_t lg, size_t size, struct budget *budget)
{
	char *ring = block_new((size_t)1 << lg, size, budget);
	if (!ring)
		return false;
	uint32_t len = q->len, first = len;
	if (is_ring(q) && first > slots(q) - q->head)
		first = slots(q) - q->head;
	copy_run(ring, slot(q, 0, size), first * size);
	if (first < len)
		copy_run(ring + first * size, q->u.ring, (len - first) * size);
	slotq_fini(q, size, budget);
	*q = (struct slotq){.u.ring = ring, .lg = lg, .len = len};
	return true;
}

/* `size` is more than 0 and the same in every call on one queue. */
enum err slotq_push(struct slotq *q, const void *item, size_t size, size_t max_bytes, struct budget *budget)
{
	if (q->len == 0) {
		if (size > INLINE) {
			void *one = block_new(1, size, budget);
			if (!one)
				return ERR_MEM;
			q->u.ring = one;
		}
	} else {
		size_t after;
		if (__builtin_mul_overflow((size_t)q->len + 1, size, &after) || after > max_bytes)
			return ERR_LIMIT;
		if (q->len == slots(q)) {
			uint32_t lg = q->lg;
			if (lg == LG_MAX)
				return ERR_LIMIT;
			if (!resize(q, lg ? lg + 1 : LG_FIRST, size, budget))
				return ERR_MEM;
		}
	}
	copy(slot(q, q->len, size), item, size);
	q->len++;
	return OK;
}

/* After an item has gone: a large ring that is nearly empty is cut to a quarter,
 * so that one burst is not paid for until the queue drains.  Without memory for
 * the smaller ring the larger one stays. */
static inline void release(struct slotq *q, size_t size, struct budget *budget)
{
	uint32_t lg = q->lg;
	if (lg <= LG_FIRST || q->len > slots(q) / 8 || size << lg <= SMALL)
		return;
	(void)resize(q, lg > LG_FIRST + 2 ? lg - 2 : LG_FIRST, size, budget);
}

static void drop_first(struct slotq *q, size_t size, struct budget *budget)
{
	if (q->len == 1) {
		slotq_fini(q, size, budget);
		return;
	}
	q->head = (q->head + 1) & (slots(q) - 1);
	q->len--;
	release(q, size, budget);
}

/* A push makes the room. */
enum err slotq_push_front(struct slotq *q, const void *item, size_t size, struct budget *budget)
{
	enum err err = slotq_push(q, item, size, SIZE_MAX, budget);

	if (err != OK || q->len == 1)
		return err;
	q->len--;	/* that copy goes again, and its room is before the oldest */
	q->head = (q->head - 1) & (slots(q) - 1);
	copy(slot(q, 0, size), item, size);
	q->len++;
	return OK;
}

/* `item` has room for `size` bytes. */
bool slotq_pop(struct slotq *q, void *item, size_t size, struct budget *budget)
{
	if (q->len == 0)
		return false;
	copy(item, slot(q, 0, size), size);
	drop_first(q, size, budget);
	return true;
}

/* Lent. */
void *slotq_at(struct slotq *q, uint32_t i, size_t size)
{
	return i < q->len ? slot(q, i, size) : NULL;
}

/* There is an i-th item.  Moves those on the shorter side. */
void slotq_remove(struct slotq *q, uint32_t i, size_t size, struct budget *budget)
{
	CHECK(i < q->len);
	if (i < q->len / 2 || i == 0) {
		for (; i > 0; i--)
			copy(slot(q, i, size), slot(q, i - 1, size), size);
		drop_first(q, size, budget);
		return;
	}
	for (; i + 1 < q->len; i++)
		copy(slot(q, i, size), slot(q, i + 1, size), size);
	q->len--;
	release(q, size, budget);
}

/* As asked for from the allocator. */
size_t slotq_heap(const struct slotq *q, size_t size)
{
	if (q->len == 0 || (!is_ring(q) && size <= INLINE))
		return 0;
	return size << q->lg;
}
