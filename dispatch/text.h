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
/* `s` without one slash at its end. */
struct str text_no_slash(struct str s);

#endif
