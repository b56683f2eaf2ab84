/* The two ends of an SSL object that knows no socket: it reads bytes that were read before (a ClientHello, say, and
 * what came behind it) and writes into a buf.  Its owner moves both. */
#ifndef THIMBLE_NET_FEED_H
#define THIMBLE_NET_FEED_H

#include <stdbool.h>
#include "lib/base/buf.h"
#include "lib/base/str.h"

struct ssl_st;	/* OpenSSL's SSL */

struct feed {
	struct str in;		/* lent by the owner: what the SSL object may read; it is moved on by what was read */
	bool eof;		/* and behind it is the end: the peer has closed */
	bool failed;		/* `out` could not take what was written: the SSL object is of no use any more */
	struct buf *out;	/* owned: what it wrote; the owner sends it and consumes it */
	struct budget *budget;	/* borrowed: what `out` is charged to; may be NULL */
	size_t limit;		/* bytes of `out`, at most */
};

/* Makes `f` (borrowed as long as `ssl` lives) what `ssl` reads and writes.  ERR_MEM. */
MUST_USE enum err feed_attach(struct feed *f, struct ssl_st *ssl);
/* Frees what is left in `out`.  After SSL_free, or when nothing was attached. */
void feed_fini(struct feed *f);

/* What `ssl` was attached to; NULL: it has another BIO. */
struct feed *feed_of(const struct ssl_st *ssl);

#endif
