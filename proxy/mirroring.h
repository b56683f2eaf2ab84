/* Copies of requests for a route's mirror. */
#ifndef THIMBLE_PROXY_MIRRORING_H
#define THIMBLE_PROXY_MIRRORING_H

#include "proxy/exchange.h"

/* The request is about to go to an endpoint with the head `h`; `authority` is whom it is for.  When its route has a
 * mirror, and this is one of its share, a copy is begun: x->copy, to which the body is added as it comes. */
void mirroring_begin(struct exchange *x, const struct head *h, struct str authority);

/* With x->copy: a piece of the body, which may be more than is copied. */
void mirroring_body(struct exchange *x, struct str piece);
/* The endpoint answers: the copy goes its own way, if the request is whole. */
void mirroring_go(struct exchange *x);
/* The exchange is over: the copy goes, or there is none, since the request never was whole. */
void mirroring_over(struct exchange *x);

#endif
