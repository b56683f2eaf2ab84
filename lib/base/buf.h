/* A byte buffer that is one heap block, or nothing: an empty one is a NULL
 * pointer.  As small as what it holds at first (rounded up to 16), doubled on
 * demand up to the limit that every append names. */
#ifndef THIMBLE_BASE_BUF_H
#define THIMBLE_BASE_BUF_H

#include <stddef.h>
#include <stdint.h>
#include "lib/base/budget.h"
#include "lib/base/err.h"
#include "lib/base/str.h"

struct buf {
	uint32_t cap;	/* bytes that b can hold */
	uint32_t off;	/* where what is unread begins */
	uint32_t len;	/* unread bytes */
	uint32_t mark;	/* free for the owner: how far it was scanned, say */
	char b[];
};

/* Appends `n` bytes.  ERR_LIMIT when it would then hold more than `limit`,
 * ERR_MEM when there is no memory or budget; nothing changes then.  n == 0 is OK. */
MUST_USE enum err buf_append(struct buf **b, struct budget *budget, const void *p, size_t n, size_t limit);

/* Drops `n` bytes from the front; frees it, and makes *b NULL, when none is left. */
void buf_consume(struct buf **b, struct budget *budget, size_t n);

/* Frees it; *b becomes NULL. */
void buf_free(struct buf **b, struct budget *budget);

/* What it holds; lent until the next call that changes it. */
static inline struct str buf_str(const struct buf *b)
{
	return b ? (struct str){b->b + b->off, b->len} : (struct str){NULL, 0};
}

static inline size_t buf_len(const struct buf *b)
{
	return b ? b->len : 0;
}

/* Bytes of the block that it is. */
static inline size_t buf_heap(const struct buf *b)
{
	return b ? sizeof *b + b->cap : 0;
}

#endif
