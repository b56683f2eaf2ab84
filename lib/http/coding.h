/* Content codings (RFC 9110 8.4.1) that an answer may get on its way: which of them a client takes,
 * whether an answer may have one, and what its head says then.  encode.h makes the bytes. */
#ifndef THIMBLE_HTTP_CODING_H
#define THIMBLE_HTTP_CODING_H

#include <stdbool.h>
#include <stdint.h>
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/str.h"
#include "lib/http/head.h"

enum coding { CODING_NONE, CODING_GZIP, CODING_BR, CODING_ZSTD, CODING_N };

/* `gzip`, `br`, `zstd`; `identity` for CODING_NONE. */
struct str coding_name(enum coding c);
/* By that name in any case, x-gzip too (RFC 9110 8.4.1.3); CODING_N: not known here. */
enum coding coding_of(struct str name);

/* The coding that the Accept-Encoding fields of a request ask for (RFC 9110 12.5.3): of `offers`, `n` codings in the
 * order in which the server likes them, the one with the highest weight; the order decides between equals.
 * CODING_NONE: the answer goes as it is, since the request takes none of them, has no such field, or says that it
 * prefers `identity`.  What is malformed in the fields is not asked for. */
enum coding coding_choose(const struct head *request, const uint8_t *offers, unsigned n);

/* Whether a head has Cache-Control: no-transform (RFC 9111 5.2.1.6, 5.2.2.6). */
bool coding_forbidden(const struct head *h);

/* Whether a Content-Type is one of `types`: `text/html`, `text/` with a star, or `application/` with a star and `+json`,
 * in any case; its parameters do not count.  text/event-stream is meant only where it stands with its full name. */
bool coding_type_is(struct str type, const struct str *types, unsigned n);

/* Whether a final answer could be given a coding: its status has a body that is the whole of something, its type is
 * one of `types`, and it has no Content-Encoding, no Content-Range, no digest of its bytes and no no-transform. */
bool coding_fits(const struct head *answer, const struct str *types, unsigned n);

/* Adds Accept-Encoding to Vary, unless that or `*` is there.  ERR_MEM, ERR_LIMIT. */
MUST_USE enum err coding_put_vary(struct head *answer, struct arena *a);
/* Makes the head of an answer with this coding, not CODING_NONE: Content-Encoding; a body whose length is not known (none
 * stays none); a weak ETag, since the bytes are not those that it was made for, and none in place of one that is not
 * well-formed; no Accept-Ranges.  ERR_MEM, ERR_LIMIT; the head is of no use then. */
MUST_USE enum err coding_put(struct head *answer, enum coding c, struct arena *a);
/* Makes strong ETags weak.  ERR_MEM. */
MUST_USE enum err coding_weaken(struct head *answer, struct arena *a);
/* Whether an If-None-Match field of a request has a weak tag. */
bool coding_asked_weak(const struct head *request);
/* Removes the digests of the bytes that were, from the trailers of an answer that got a coding. */
void coding_trailers(struct head *trailers);

#endif
