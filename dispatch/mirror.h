/* Mirrors: a service that gets copies of a share of a route's requests. */
#ifndef THIMBLE_DISPATCH_MIRROR_H
#define THIMBLE_DISPATCH_MIRROR_H

#include "dispatch/policy.h"

#define MIRROR_ALL 1000000u	/* the share that is all */

struct mirror_spec {
	uint32_t service;	/* number of the service that gets the copies */
	uint32_t share;		/* of MIRROR_ALL */
	uint32_t body_limit;	/* bytes; 0: requests without a body alone */
	uint32_t timeout_ms;
};

struct mirror {
	struct policy_part part;
	struct policy_service service;
	struct mirror_spec spec;
	_Atomic uint64_t seen;	/* requests that were asked about */
};

/* The part with one reference; NULL when there is no memory. */
struct policy_part *mirror_new(const struct mirror_spec *spec) MUST_USE;

/* Whether the next request is one of the share.  Of any n in a row they are n times the share, to within one. */
bool mirror_takes(struct mirror *m);

#endif
