/* How a try at an endpoint ended: the one place that learns it, for exchanges and calls alike.  (Whether it could be
 * connected to is the pool's to know, since many wait for one connect.) */
#ifndef THIMBLE_PROXY_ATTEMPT_H
#define THIMBLE_PROXY_ATTEMPT_H

#include "proxy/lease.h"

/* CAUSE_NONE: l->endpoint has answered with `status`, a final one.  Else it has not, and why: CAUSE_UPSTREAM_CLOSED,
 * CAUSE_FIRST_BYTE_TIMEOUT, CAUSE_SEND_TIMEOUT, or what was wrong with its answer.  Once a try; never for one
 * that ended for another reason, such as a client that left. */
void attempt_ended(struct lease *l, enum cause cause, unsigned status);

#endif
