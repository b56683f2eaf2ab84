/* Which bytes may stand where: the checks that keep a specification, or a client,
 * from writing into somebody else's line. */
#ifndef THIMBLE_DISPATCH_TEXT_H
#define THIMBLE_DISPATCH_TEXT_H

#include <stdbool.h>
#include "lib/base/str.h"

/* No control byte but the tab: fit for a field value (RFC 9110 5.5) or a log line. */
bool text_value(struct str s);
/* A token (RFC 9110 5.6.2): a field name, a method. */
bool text_token(struct str s);
/* Graphic bytes and those above 127, as in a request-target: no space, no control byte. */
bool text_target(struct str s);
/* Letters, digits, "-._~" and what an IP literal and a port need; not empty. */
bool text_host(struct str s);

/* Host of host[:port]: the port and one dot at the end are left out. */
struct str text_host_of(struct str authority);
/* Whether a path is within a prefix on a segment border; "" holds every path. */
bool text_within(struct str path, struct str prefix);
/* What may stand in the template of a Location for something of the request. */
enum text_mark {
	MARK_NONE,
	MARK_HOST,	/* {host}: without its port */
	MARK_PATH,	/* {path}: with the query */
	MARK_SCHEME,	/* {scheme} */
	MARK_PORT,	/* {port}: with the colon before it; nothing when it is that of the scheme */
	MARK_PORT_80,	/* {:80}: `:80`, and nothing when the scheme is http */
	MARK_PORT_443,	/* {:443}: `:443`, and nothing when it is https */
};

/* The mark at the front of `s`, and in `*n` its length. */
enum text_mark text_mark(struct str s, size_t *n);

/* `s` without one slash at its end. */
struct str text_no_slash(struct str s);

#endif
