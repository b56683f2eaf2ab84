/* Addresses: whose requests a route takes. */
#ifndef THIMBLE_DISPATCH_ADDRESSES_H
#define THIMBLE_DISPATCH_ADDRESSES_H

#include "dispatch/networks.h"
#include "dispatch/policy.h"

struct addresses {
	struct policy_part part;
	struct networks *allow;		/* owned; NULL: everybody */
	struct networks *deny;		/* owned; NULL: nobody */
};

/* The part of a route that takes requests of those in `allow` who are not in `deny`, with one
 * reference; both are moved to it, and either may be NULL.  NULL when there is no memory, and then nothing moved. */
struct policy_part *addresses_new(struct networks *allow, struct networks *deny) MUST_USE;

/* Whether it takes those of a client; as networks_has. */
bool addresses_admit(const struct addresses *a, uint8_t family, const uint8_t *ip);

#endif
