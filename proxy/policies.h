/* Policies out of the configuration: the one place where the keys of a route become the parts of
 * dispatch/policy.h. */
#ifndef THIMBLE_PROXY_POLICIES_H
#define THIMBLE_PROXY_POLICIES_H

#include <stdbool.h>
#include <stddef.h>
#include "dispatch/error.h"
#include "dispatch/policy.h"
#include "lib/base/str.h"
#include "proxy/users.h"

struct conf_cidr_list;
struct conf_route;
struct networks;

/* While a snapshot is made; all zero but `file` to begin with. */
struct policies {
	struct policy_part *last[POLICY_N];	/* owned references: what the route before had */
	struct str file;			/* borrowed: the configuration's, where relative paths begin */
	struct users_file *users;		/* owned: files that were read */
	struct snapshot_error err;		/* why one could not be made */
};

/* The policy of route `c`, with one reference, in *out; NULL in it for a route without one.  Parts without state
 * that say the same as those of the route before are shared with it.  False: it cannot be made, see policies_why. */
bool policies_make(struct policies *p, const struct conf_route *c, struct policy **out) MUST_USE;

/* Why route number `route` could not be made. */
void policies_why(const struct policies *p, size_t route, struct snapshot_error *err);

void policies_fini(struct policies *p);

/* The set of a list of networks, NULL for an empty list, moved to the caller; false: no memory. */
bool policies_networks(struct networks **to, const struct conf_cidr_list *list) MUST_USE;

#endif
