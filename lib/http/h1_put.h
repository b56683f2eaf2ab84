/* The outgoing side of the HTTP/1 codec, and the states that it shares with the incoming one. */
#ifndef THIMBLE_HTTP_H1_PUT_H
#define THIMBLE_HTTP_H1_PUT_H

#include "lib/http/h1.h"

enum h1_in {
	IN_HEAD,	/* a head is next */
	IN_SIZED,	/* in_left bytes */
	IN_CHUNKED,
	IN_TRAILERS,	/* the trailer section is next in the input */
	IN_UNTIL_EOF,	/* an answer without a length */
	IN_TUNNEL,
	IN_END,		/* the message is whole, END has not been told */
	IN_DONE,
	IN_BAD,
};

enum h1_out {
	OUT_HEAD,	/* a head is next */
	OUT_SIZED,	/* out_left bytes */
	OUT_CHUNKED,
	OUT_RAW,	/* until the connection is closed */
	OUT_SWALLOWED,	/* the receiver reads no body here: up to out_left bytes go nowhere */
	OUT_TUNNEL,
	OUT_DONE,
};

enum err h1_put_head(struct codec *codec, uint32_t stream, const struct head *h, struct vec *out);
enum err h1_put_body(struct codec *codec, uint32_t stream, struct str piece, struct vec *out);
enum err h1_put_end(struct codec *codec, uint32_t stream, const struct head *trailers, struct vec *out);

#endif
