/* After 101: bytes both ways until both sides have ended. */
#ifndef THIMBLE_PROXY_TUNNEL_H
#define THIMBLE_PROXY_TUNNEL_H

#include "proxy/exchange.h"

/* The 101 is in the worker's vec; *from_up (consumed) are bytes that came behind it. */
void tunnel_begin(struct exchange *x, struct str *from_up);
/* Something happened on one of the two connections. */
void tunnel_pump(struct exchange *x);

#endif
