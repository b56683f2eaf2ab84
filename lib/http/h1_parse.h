/* One head or trailer section from its bytes: the part of HTTP/1 that llhttp does. */
#ifndef THIMBLE_HTTP_H1_PARSE_H
#define THIMBLE_HTTP_H1_PARSE_H

#include "lib/http/codec.h"
#include "lib/http/h1.h"

enum h1_section { H1_REQUEST, H1_RESPONSE, H1_TRAILERS };

/* For tests: reads from now on as on the plainest processor; false: that changes nothing. */
bool h1_shared_plain(struct h1_shared *s);

const struct codec_limits *h1_limits(const struct h1_shared *s);
/* The head that all codecs of the worker share, as the last h1_parse left it. */
struct head *h1_head(struct h1_shared *s);
/* Room for a request target that framing_request must make. */
char *h1_target_room(struct h1_shared *s);

/* Reads `bytes` into the shared head; strings lie in them.  They are exactly one section
 * with its empty line, that rawhead_scan has passed and found the first line of. */
enum codec_fault h1_parse(struct h1_shared *s, enum h1_section what, struct str bytes, uint32_t line);
/* They are the beginning of a section, and only a fault comes out of it (method_id and
 * minor are set as soon as they are there). */
enum codec_fault h1_parse_partial(struct h1_shared *s, enum h1_section what, struct str bytes);

#endif
