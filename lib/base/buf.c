/* Door: bytes that could not be consumed yet.  The owner holds one pointer, NULL
 * while there is nothing, which is nearly always.  Used for partial heads and
 * for what a socket did not take.  Never shrinks in place and never keeps an
 * empty block.
 *
 * Invariants: off + len <= cap; len > 0 in every buf that exists; the block is
 * charged at its true size. */
#include "lib/base/buf.h"

#include <string.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"

/* Largest capacity: leaves room for the header and the rounding in 32 bits. */
#define CAP_MAX (UINT32_MAX - 64)

_Static_assert(sizeof(struct buf) == 16, "a buf's header is 16 bytes");

/* The allocator puts 8 bytes before a block and rounds the sum up to 16: ask for
 * all that the smallest such block holds, so that a 200-byte head takes 224. */
static size_t round_cap(size_t need)
{
	return ((sizeof(struct buf) + need + 8 + 15) & ~(size_t)15) - 8 - sizeof(struct buf);
}

/* A new block for `need` bytes or more, charged; NULL when there is no memory or budget. */
static struct buf *buf_new(struct budget *budget, size_t need)
{
	size_t cap = round_cap(need);
	struct buf *n = mem_alloc(sizeof(*n) + cap);
	if (!n)
		return NULL;
	if (budget_charge(budget, mem_size(n)) != OK) {
		mem_free(n);
		return NULL;
	}
	*n = (struct buf){.cap = (uint32_t)cap};
	return n;
}

/* Moves what *b holds to a block with room for `need` bytes: twice the old one,
 * but not more than `limit`. */
static enum err buf_grow(struct buf **b, struct budget *budget, size_t need, size_t limit)
{
	struct buf *old = *b;
	size_t cap = need;
	if (old && cap < 2 * (size_t)old->cap)
		cap = 2 * (size_t)old->cap < limit ? 2 * (size_t)old->cap : limit;
	struct buf *n = buf_new(budget, cap);
	if (!n)
		return ERR_MEM;
	if (old) {
		n->len = old->len;
		n->mark = old->mark;
		memcpy(n->b, old->b + old->off, old->len);
		buf_free(b, budget);
	}
	*b = n;
	return OK;
}

/* Appends a copy of `p`, which must not point into the buf.  Room that was
 * consumed at the front is used again before it grows. */
enum err buf_append(struct buf **b, struct budget *budget, const void *p, size_t n, size_t limit)
{
	struct buf *old = *b;
	size_t len = buf_len(old);
	if (n == 0)
		return OK;
	if (limit > CAP_MAX)
		limit = CAP_MAX;
	if (len > limit || n > limit - len)
		return ERR_LIMIT;
	if (!old || len + n > old->cap) {
		enum err e = buf_grow(b, budget, len + n, limit);
		if (e != OK)
			return e;
	} else if (old->off + len + n > old->cap) {
		memmove(old->b, old->b + old->off, len);
		old->off = 0;
	}
	struct buf *to = *b;
	memcpy(to->b + to->off + len, p, n);
	to->len += (uint32_t)n;
	return OK;
}

/* `n` is at most what it holds. */
void buf_consume(struct buf **b, struct budget *budget, size_t n)
{
	CHECK(n <= buf_len(*b));
	if (n == buf_len(*b)) {
		buf_free(b, budget);
		return;
	}
	(*b)->off += (uint32_t)n;
	(*b)->len -= (uint32_t)n;
}

/* NULL is accepted. */
void buf_free(struct buf **b, struct budget *budget)
{
	if (!*b)
		return;
	budget_credit(budget, mem_size(*b));
	mem_free(*b);
	*b = NULL;
}
