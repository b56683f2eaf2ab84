/* The answer's way: upstream socket -> codec (upstream) -> codec (server) -> client socket. */
#ifndef THIMBLE_PROXY_ANSWER_H
#define THIMBLE_PROXY_ANSWER_H

#include "proxy/exchange.h"

/* Whether `u` may have received much that was not read: for a client that keeps up. */
void answer_receive(struct upstream *u, bool large);
/* Reads on, while the client takes it. */
void answer_read(struct exchange *x);
/* Writes the worker's vec behind what waits in x->to_client.  False when the client is gone, and
 * with it the exchange. */
bool answer_flush(struct exchange *x);
/* The client takes bytes again: writes what waits and goes on with what that had stopped. */
void answer_resume(struct exchange *x);

#endif
