/* Who a client is, and the gates that ask nothing else: allow, deny and rate limits. */
#ifndef THIMBLE_PROXY_ADMIT_H
#define THIMBLE_PROXY_ADMIT_H

#include "proxy/gate.h"

struct who {
	uint8_t family;		/* enum network_family */
	uint8_t ip[16];		/* 4 bytes, 16, or none for NETWORK_UNIX */
};

/* The client of a request: the peer, or who a peer that the listener trusts says that it is in X-Forwarded-For: the last
 * address there that is not trusted, or the first of all.  What is no address is not looked past. */
struct who admit_who(const struct exchange *x, const struct head *h);

gate_fn admit_addresses, admit_rate;

#endif
