/* CORS: which answers a browser may show to scripts of other origins (the Fetch standard, "HTTP extensions").  A policy never
 * changes after it was made. */
#ifndef THIMBLE_DISPATCH_CORS_H
#define THIMBLE_DISPATCH_CORS_H

#include <stdbool.h>
#include <stdint.h>
#include "dispatch/error.h"
#include "dispatch/policy.h"
#include "lib/base/err.h"
#include "lib/base/str.h"

#define CORS_ORIGINS_MAX 256
#define CORS_NAMES_MAX 256		/* of methods, headers and exposed headers, each */
#define CORS_NO_AGE UINT32_MAX
#define CORS_VARY 3
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
	uint8_t n_vary;
	struct str vary[CORS_VARY];	/* what Vary has to name */
};

/* The part POLICY_CORS for `spec`, with one reference, moved to the caller; NULL when refused, and `err` (may be NULL) says
 * why.  Nothing of `spec` is kept. */
struct policy_part *cors_new(const struct cors_spec *spec, struct snapshot_error *err) MUST_USE;

/* What the answer to `q` carries, whoever gives it. */
void cors_decide(const struct policy_part *cors, const struct cors_request *q, struct cors_answer *out);

#endif
