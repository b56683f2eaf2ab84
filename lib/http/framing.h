/* What a parsed HTTP/1 head means: the one place that decides where a message
 * ends (RFC 9112 6), who it is for, and what does not pass (RFC 9110 7.6.1).
 *
 * rawhead.h and llhttp have read the grammar by then.  Here is every rule that it does not have
 * or that differs between its versions; tests/unit/test_framing.c has a row each. */
#ifndef THIMBLE_HTTP_FRAMING_H
#define THIMBLE_HTTP_FRAMING_H

#include "lib/http/codec.h"

/* A request head whose fields are all still there, as they came: decides Host and
 * authority, target form, body, Connection, Upgrade, Expect and TE; then takes out
 * what does not pass.  `room` is lent for as long as the head lives: one byte more than
 * the target has, for a target that must be made.  FAULT_NONE or why it is refused. */
enum codec_fault framing_request(struct head *h, char *room);

/* An answer head, to a request with `method`; `upgrade_asked`: 101 is an answer to it. */
enum codec_fault framing_response(struct head *h, uint8_t method, bool upgrade_asked);

/* Trailer fields: takes out framing, routing, authentication and hop-by-hop names (RFC 9110 6.5.1). */
void framing_trailers(struct head *h);

/* Content-Length as one number: digits only, below 2^63.  False: not so. */
bool framing_length(struct str value, uint64_t *length);

/* host [":" port], RFC 3986 3.2 without userinfo: reg-name, IPv4 or [IPv6], not empty; no
 * comma; the port, when there is one, up to 65535. */
bool framing_authority_ok(struct str authority);

#endif
