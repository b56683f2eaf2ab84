/* Bytes on their way out: pieces that are borrowed from where they were read,
 * and pieces made on the spot (heads, chunk size lines) in one scratch area.
 * Everything in it is lent until vec_reset. */
#ifndef THIMBLE_HTTP_VEC_H
#define THIMBLE_HTTP_VEC_H

#include <sys/uio.h>
#include "lib/base/err.h"
#include "lib/base/str.h"

#define VEC_PIECES 64
/* Room for one head at its limit with what we add; heads beyond it are refused. */
#define VEC_SCRATCH (128u * 1024)

struct vec {
	struct iovec iov[VEC_PIECES];
	unsigned n;		/* pieces */
	size_t bytes;		/* sum of their lengths */
	char *next;		/* free part of the scratch area */
	char *scratch, *end;	/* lent by the owner, VEC_SCRATCH bytes */
};

static inline void vec_reset(struct vec *v)
{
	v->n = 0;
	v->bytes = 0;
	v->next = v->scratch;
}

/* Pieces that can still be added; a codec needs at most 3 for one command. */
static inline unsigned vec_room(const struct vec *v)
{
	return VEC_PIECES - v->n;
}

/* Adds bytes that stay where they are.  ERR_LIMIT when all pieces are taken. */
MUST_USE enum err vec_borrow(struct vec *v, struct str s);
/* Adds what the caller has written from v->next up to `to`; same piece as what was
 * written there before it, when that was the last one.  ERR_LIMIT as vec_borrow. */
MUST_USE enum err vec_commit(struct vec *v, char *to);
/* Adds a copy.  ERR_LIMIT when the scratch area or the pieces are used up. */
MUST_USE enum err vec_copy(struct vec *v, struct str s);

#endif
