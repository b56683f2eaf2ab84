/* Collects what goes out of a connection in one writev.
 *
 * Used by the codecs, which fill it, and by their callers, who write it.  It never
 * allocates: the scratch area is lent.  Copies that follow each other are one
 * piece, so that the end of one chunk and the size line of the next cost one. */
#include "lib/http/vec.h"

/* Adds bytes that stay where they are. */
enum err vec_borrow(struct vec *v, struct str s)
{
	if (s.n == 0)
		return OK;
	if (v->n == VEC_PIECES)
		return ERR_LIMIT;
	v->iov[v->n].iov_base = (void *)(uintptr_t)s.p;
	v->iov[v->n].iov_len = s.n;
	v->n++;
	v->bytes += s.n;
	return OK;
}

/* Adds what was written into the free part of the scratch area. */
enum err vec_commit(struct vec *v, char *to)
{
	struct str s = {v->next, (size_t)(to - v->next)};
	struct iovec *last = v->n ? &v->iov[v->n - 1] : NULL;

	if (last && (char *)last->iov_base + last->iov_len == v->next) {
		last->iov_len += s.n;
		v->bytes += s.n;
	} else {
		enum err e = vec_borrow(v, s);

		if (e)
			return e;
	}
	v->next = to;
	return OK;
}

/* Adds a copy; nothing changes on failure. */
enum err vec_copy(struct vec *v, struct str s)
{
	if (s.n > (size_t)(v->end - v->next))
		return ERR_LIMIT;
	if (s.n)
		memcpy(v->next, s.p, s.n);
	return vec_commit(v, v->next + s.n);
}
