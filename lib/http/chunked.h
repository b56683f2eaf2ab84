/* Reads a chunked body (RFC 9112 7.1), strictly: CRLF and nothing else, hex digits
 * and nothing else, sizes below 2^63, quoted extension values as the grammar has
 * them.  Extensions are checked, counted and dropped. */
#ifndef THIMBLE_HTTP_CHUNKED_H
#define THIMBLE_HTTP_CHUNKED_H

#include <stdint.h>
#include "lib/base/str.h"

enum chunked_kind {
	CHUNKED_MORE,		/* all input is consumed */
	CHUNKED_DATA,		/* *piece: a run of body bytes, not empty */
	CHUNKED_TRAILERS,	/* the last chunk was read; the trailer section, up to its empty line, is next in the input */
	CHUNKED_BAD,		/* no chunk */
	CHUNKED_OVERHEAD,	/* a size line, or what all of them have beyond their bodies, is longer than the limit */
};

struct chunked {
	uint64_t left;		/* bytes of this chunk still to come */
	uint32_t line;		/* bytes of this size line so far */
	uint32_t excess;	/* bytes of size lines that the bodies have not paid for */
	uint8_t state;		/* private to chunked.c; 0 at the start */
	uint8_t digits;
};

/* Consumes from *in what it could use. */
enum chunked_kind chunked_next(struct chunked *c, struct str *in, uint32_t max_line, struct str *piece);

#endif
