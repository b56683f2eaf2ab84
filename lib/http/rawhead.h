/* An HTTP/1 head as raw bytes, before llhttp: where it ends, that its lines are
 * lines, and what its start line says.
 *
 * Start lines are read here and not by llhttp, whose versions differ in them (HTTP/0.9,
 * HTTP/2.0, unknown methods): a difference is what smuggling is made of. */
#ifndef THIMBLE_HTTP_RAWHEAD_H
#define THIMBLE_HTTP_RAWHEAD_H

#include "lib/http/codec.h"

/* Looks over a head, or a trailer section that is not empty, as far as it has come.
 * Refuses NUL, bare CR, bare LF and obs-fold; finds nothing else.  Begins at *at (0 at
 * first), where a call with fewer of the same bytes ended, and moves it.  *end is the
 * length of the head with its empty line, or 0 when that has not come; *line is then the
 * length of its first line without CRLF, if the call began at 0. */
enum codec_fault rawhead_scan(struct str in, uint32_t *at, uint32_t *line, uint32_t *end);

/* Start lines, without their CRLF.  With `whole` false it is the beginning of a line
 * whose end has not come: only what no more bytes could put right is refused.
 * Sets method, method_id, target (as it came) and minor; or status, reason and minor. */
enum codec_fault rawhead_request_line(struct str line, bool whole, uint32_t max_target, struct head *h);
enum codec_fault rawhead_status_line(struct str line, bool whole, struct head *h);

#endif
