/* CORS: which answers a browser may show to scripts of other origins (the Fetch standard, "HTTP extensions").  A policy never
 * changes after it was made. */
#ifndef THIMBLE_DISPATCH_CORS_H
#define THIMBLE_DISPATCH_CORS_H

#include <stdbool.h>
#include <stdint.h>
#include "dispatch/error.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/str.h"

#define CORS_ORIGINS_MAX 256
#define CORS_NAMES_MAX 256		/* of methods, headers and exposed headers, each */
#define CORS_NO_AGE UINT32_MAX
#define CORS_FIELDS 6			/* on one answer, at most; Vary not among them */

struct cors_list {
	const struct str *items;	/* borrowed */
	uint16_t n;
};

struct cors_spec {			/* everything in it is borrowed */
	struct cors_list origins;	/* patterns, lib/base/origin.h; at least one */
	struct cors_list methods;	/* of preflights; "*" is all */
	struct cors_list headers;	/* the same */
	struct cors_list expose;	/* answer's fields that scripts may read; "*" is all */
	bool credentials;		/* cookies and Authorization go with it; never with the origin "*" */
	uint32_t max_age;		/* seconds for which a preflight's answer holds; CORS_NO_AGE: as browsers have it */
};

struct cors;

/* What it asks of a request; "" for a field that is not there, and for Origin when it is there twice. */
struct cors_request {
	struct str method;
	struct str origin;
	struct str request_method, request_headers;	/* Access-Control-Request-Method and -Headers */
};

struct cors_field {
	struct str name, value;
};

struct cors_answer {
	bool preflight;		/* to be answered here, and never forwarded */
	bool allowed;		/* the origin is; true for a request without one */
	uint8_t n;
	struct cors_field field[CORS_FIELDS];	/* values are lent from the policy and the request */
	struct str vary;	/* what Vary has to name; may be empty */
};

/* The policy of `spec`, owned by the caller; NULL when refused, and `err` (may be NULL) says why. */
struct cors *cors_new(const struct cors_spec *spec, struct snapshot_error *err) MUST_USE;
/* NULL is accepted. */
void cors_free(struct cors *c);
/* Whether `c` is what cors_new would make of `spec`, and a hash that is equal for all of which it is so. */
bool cors_is(const struct cors *c, const struct cors_spec *spec);
uint64_t cors_spec_hash(const struct cors_spec *spec);

/* What the answer to `q` carries, whoever gives it. */
void cors_decide(const struct cors *c, const struct cors_request *q, struct cors_answer *out);

/* Whether a field of an upstream's answer is one that a policy speaks for: it is dropped. */
bool cors_owns(struct str name);

/* The value of Vary that names what `vary` does and what `add` does: `vary` itself when nothing is missing,
 * else made in `a`.  ERR_MEM. */
MUST_USE enum err cors_vary(struct str vary, struct str add, struct arena *a, struct str *out);

#endif
