/* Which requests belong together, for services that ask for it: the key that their endpoint is chosen by, and
 * the cookie that brings a client back. */
#ifndef THIMBLE_PROXY_AFFINITY_H
#define THIMBLE_PROXY_AFFINITY_H

#include "proxy/exchange.h"

/* x->lease.key: what the service of `x` goes by, of the request `h`; 0: the request has no such thing. */
uint32_t affinity_of(struct exchange *x, const struct head *h);
/* The same of a connection that is passed on: by its address, if by anything. */
uint32_t affinity_of_conn(const struct service *s, const struct conn *c);

/* Adds the sticky cookie to the answer of an endpoint, when the request did not come with it.  ERR_MEM, ERR_LIMIT. */
MUST_USE enum err affinity_answer(struct exchange *x, struct head *h);

#endif
