/* What a rule asks for beyond its host and path; most rules ask for nothing more. */
#ifndef THIMBLE_DISPATCH_RULE_H
#define THIMBLE_DISPATCH_RULE_H

#include <stddef.h>
#include <stdint.h>
#include "dispatch/error.h"
#include "dispatch/regex.h"
#include "dispatch/router.h"
#include "lib/base/err.h"
#include "lib/base/str.h"

struct rule_pair {
	struct str name, value;
	struct regex *regex;		/* owned; NULL: the value must be equal */
};

struct rule_cond {
	struct regex *path;		/* owned; NULL: the path was matched already */
	struct str method;		/* empty: any */
	uint16_t n_headers, n_queries;
	struct rule_pair pair[];	/* headers, then queries; strings are behind it */
};

/* How many of the pairs count: of one name the first does (Gateway API). */
uint16_t rule_pairs(const struct match_pair *p, uint16_t n, bool fold);

/* The conditions of `m`, owned by the caller; *out is NULL when it has none. */
MUST_USE enum err rule_cond_new(struct regex_pool **pool, const struct route_match *m, struct rule_cond **out,
				struct snapshot_error *err);
void rule_cond_free(struct rule_cond *c);

/* Whether `q` meets `c`, which may be NULL. */
enum regex_match rule_match(struct regex_pool *pool, const struct rule_cond *c, const struct route_query *q);

#endif
