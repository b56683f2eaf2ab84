/* Encoding: which answers of a route are compressed, and how.  A part of a policy; never changes after it was made. */
#ifndef THIMBLE_DISPATCH_ENCODING_H
#define THIMBLE_DISPATCH_ENCODING_H

#include <stdint.h>
#include "dispatch/policy.h"
#include "lib/base/str.h"

#define ENCODING_CODINGS 4	/* at most */
#define ENCODING_TYPES UINT16_MAX	/* the same */

struct encoding {
	struct policy_part part;	/* first */
	uint64_t min_size;		/* bytes of a body that is worth it */
	uint8_t codings[ENCODING_CODINGS];	/* in order of preference; what the numbers mean is for whoever makes it */
	uint8_t n_codings;
	uint8_t level;			/* the same */
	uint16_t n_types;
	const struct str *types;	/* patterns of media types; in this block, as their text is */
};

/* A part like `spec`, whose own `part` is ignored and of which nothing is kept, with one reference; NULL: no memory. */
struct policy_part *encoding_new(const struct encoding *spec) MUST_USE;

#endif
