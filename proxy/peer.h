/* Who a client is: its address, from the socket or from a PROXY protocol header, and how others are told of it. */
#ifndef THIMBLE_PROXY_PEER_H
#define THIMBLE_PROXY_PEER_H

#include "dispatch/service.h"
#include "lib/net/proxyproto.h"
#include "lib/net/socket.h"
#include "proxy/conn.h"

/* Notes the address of a client that was accepted.  ERR_MEM. */
MUST_USE enum err peer_note(struct worker *w, struct conn *c, const struct socket_address *peer);
/* It is the one that a header tells of, when it tells of one.  ERR_MEM: nothing has changed. */
MUST_USE enum err peer_told(struct worker *w, struct conn *c, const struct proxyproto *p);

/* Its address for a line of the error log, in `text`, which is returned. */
#define PEER_TEXT 46
const char *peer_text(const struct conn *c, char text[PEER_TEXT]);

/* The header that a connection to `s` begins with, made for the client `c`, or NULL for a connection of our own, to
 * `to` (PROXYPROTO_WRITE_MAX bytes); its length, 0 when the service wants none. */
size_t peer_header(const struct service *s, const struct conn *c, char *to);

#endif
