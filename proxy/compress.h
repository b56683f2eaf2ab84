/* Compression of answers on their way to the client, for routes that ask for it (dispatch/encoding.h). */
#ifndef THIMBLE_PROXY_COMPRESS_H
#define THIMBLE_PROXY_COMPRESS_H

#include "lib/http/encode.h"
#include "proxy/gate.h"

/* Of one answer at most this much is compressed in one visit, which takes the slowest level about two milliseconds. */
#define COMPRESS_VISIT (32u * 1024)

/* What an exchange of such a route has, in its arena. */
struct compress {
	const struct encoding *policy;	/* borrowed from the route */
	struct encode *encode;		/* owned; NULL: nothing is being compressed */
	uint8_t coding;			/* enum coding: what the client takes best */
	bool weak_asked;		/* the request asks about an answer that it knows by a weak tag */
	size_t from, to;		/* in worker->coded: what was made and is not put yet */
};

static inline bool compress_on(const struct exchange *x)
{
	return x->compress && x->compress->encode;
}

/* The gate of POLICY_ENCODE: notes what the client takes, and lets pass. */
gate_fn compress_gate;

/* A final answer's head as the client would get it, and the bytes that are here behind it: makes it that of a compressed answer, when
 * it is to be one, and compress_on() says so from here on.  For x->compress.  CAUSE_NONE, or why not. */
enum cause compress_head(struct exchange *x, struct head *h, struct str rest) MUST_USE;

/* The same for an answer of our own, whose whole body is here: *body becomes what is to be sent, lent until the vec is
 * reset, and `h` has its length. */
enum cause compress_whole(struct exchange *x, struct head *h, struct str *body) MUST_USE;

/* All for compress_on().  What comes out is put into the worker's vec, and written when its room is used up.  False when the
 * exchange went another way meanwhile. */

/* A piece of the body. */
bool compress_body(struct exchange *x, struct str piece);
/* There is no more in this read.  `more`: the next one follows at once, and what is in the vec and was made waits for it.  Else that is
 * written, and when no more waits to be read, what the encoder keeps, too. */
bool compress_pause(struct exchange *x, bool more);
/* There is no more for now: all is written. */
bool compress_flush(struct exchange *x);
/* The body is whole; the encoder is gone. */
bool compress_end(struct exchange *x);

/* The same, and trailers come behind it, which lose the digests of the bytes that were. */
bool compress_trailers(struct exchange *x, struct head *trailers);

/* At the end of a worker.  CHECKs that no encoder is left. */
void compress_worker_free(struct worker *w);

/* At the end of an exchange, whatever became of it. */
void compress_free(struct exchange *x);

#endif
