/* What a client's connection begins with before it speaks HTTP, or instead of that: a PROXY protocol header, TLS that
 * is passed on by its server name, bytes that are passed on. */
#ifndef THIMBLE_PROXY_OPENING_H
#define THIMBLE_PROXY_OPENING_H

#include "proxy/conn.h"

/* A connection that was accepted, with transport.more set.  It may be closed afterwards. */
void opening_begin(struct worker *w, struct conn *c);
/* There is something to read: IDLE, HEAD, with transport.more set. */
void opening_read(struct worker *w, struct conn *c);
/* It did not come in time. */
void opening_timeout(struct worker *w, struct conn *c);

#endif
