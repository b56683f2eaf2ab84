/* Answers of our own. */
#ifndef THIMBLE_PROXY_LOCAL_H
#define THIMBLE_PROXY_LOCAL_H

#include "proxy/exchange.h"

/* Answers with the status, type and text of a cause, and Proxy-Status where an upstream is to blame.
 * The exchange is in PHASE_NEW..SENT. */
void local_cause(struct exchange *x, enum cause cause);
/* Answers with what another service said: status, fields and body are lent for the call.  `cause` says why it was
 * asked to.  The exchange is in PHASE_NEW or PHASE_HELD. */
void local_relay(struct exchange *x, enum cause cause, const struct head *said, struct str body);
/* Passes on an endpoint's answer that was kept: head and body are lent for the call.  The exchange is in PHASE_NEW..SENT.
 * The head has room for local_room(x) fields more. */
void local_pass(struct exchange *x, const struct head *said, struct str body);
unsigned local_room(const struct exchange *x);
/* Answers with a status and no body. */
void local_empty(struct exchange *x, unsigned status);
/* Answers as a redirect or answer route says. */
void local_route(struct exchange *x, const struct head *request);

#endif
