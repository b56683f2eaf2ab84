/* The request's way: client socket -> codec (server) -> codec (upstream) -> upstream socket. */
#ifndef THIMBLE_PROXY_REQUEST_H
#define THIMBLE_PROXY_REQUEST_H

#include "proxy/exchange.h"

/* Passes on what *in holds of the request, as far as the upstream takes it; the rest waits in x->to_up. */
void request_feed(struct exchange *x, struct str *in, bool eof);
/* Reads on, while the upstream takes it. */
void request_read(struct exchange *x);
/* Writes what waits. */
void request_flush(struct exchange *x);
/* Sets the upstream's time-out by what we wait for while there is no answer: that it takes more of the
 * request (`moved`: it just did), that it answers, or nothing, while the client owes us the rest. */
void request_wait(struct exchange *x, bool moved);
/* Something waits to be written. */
bool request_pending(const struct exchange *x);
/* Makes all that was written wait to be written again, to another connection. */
void request_rewind(struct exchange *x);

#endif
