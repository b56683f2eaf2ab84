/* Limits: how often requests of a route may come, and what answers say of that. */
#ifndef THIMBLE_DISPATCH_LIMITS_H
#define THIMBLE_DISPATCH_LIMITS_H

#include "dispatch/policy.h"
#include "dispatch/rate.h"
#include "lib/base/arena.h"
#include "lib/base/str.h"

#define LIMITS_MAX 8		/* of a route */

enum limit_by { LIMIT_BY_ADDRESS, LIMIT_BY_ROUTE, LIMIT_BY_HEADER };

struct limit_spec {		/* strings are borrowed */
	uint8_t by;		/* enum limit_by */
	uint8_t bits4, bits6;	/* of LIMIT_BY_ADDRESS: those that tell IPv4 and IPv6 clients apart */
	uint32_t count, period_s, burst;	/* as rate_of */
	struct str header;	/* of LIMIT_BY_HEADER */
	struct str name;	/* a token, in fields of answers; empty: it is not told */
};

struct limit {
	struct rate rate;
	uint64_t id;			/* no other limit of the process has it */
	_Atomic uint64_t full;		/* of LIMIT_BY_ROUTE: the bucket */
	struct limit_spec spec;		/* its strings are owned */
	struct str policy;		/* owned: its item of RateLimit-Policy; empty when it is not told */
};

struct limits {
	struct policy_part part;
	unsigned n;
	bool tabled;			/* one of them needs a table */
	struct str policies;		/* owned: RateLimit-Policy; empty when none is told */
	struct limit limit[];
};

/* The part for `n` limits, 1 to LIMITS_MAX, with one reference; NULL when there is no memory. */
struct policy_part *limits_new(const struct limit_spec *spec, unsigned n) MUST_USE;

/* The bucket of a client (family and ip as networks_has has them) in a limit by address. */
uint64_t limit_key_address(const struct limit *l, uint8_t family, const uint8_t *ip);
/* The bucket of the values of a header in a limit by header: begin with 0, then give each. */
uint64_t limit_key_header(const struct limit *l, uint64_t key, struct str value);

struct limits_answer {
	int refused;			/* the limit that refused the request; -1: all let it pass */
	struct rate_answer by[LIMITS_MAX];	/* up to that one */
};

/* One request: from the bucket key[i] of limit i, in `t` or of the route.  When a limit refuses it nothing is taken from
 * those before it, nor when there is no memory (ERR_MEM). */
/* `t` is not looked at when none is `tabled`. */
MUST_USE enum err limits_take(struct limits *s, struct rate_table *t, const uint64_t *key, uint64_t now_us,
			      struct limits_answer *out);

/* The values of RateLimit-Policy and RateLimit (draft-ietf-httpapi-ratelimit-headers-11) and, when it was refused, of
 * Retry-After; made in `a` or lent from `s`.  Empty ones have no field.  ERR_MEM. */
struct limits_fields {
	struct str policy, limit, retry_after;
};
MUST_USE enum err limits_tell(const struct limits *s, const struct limits_answer *answer, struct arena *a,
			      struct limits_fields *out);

#endif
