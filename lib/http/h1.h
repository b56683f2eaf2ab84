/* HTTP/1.0 and 1.1 behind the codec contract.  llhttp reads heads; framing.h says
 * what they mean; chunked.h reads chunked bodies. */
#ifndef THIMBLE_HTTP_H1_H
#define THIMBLE_HTTP_H1_H

#include "lib/http/chunked.h"
#include "lib/http/codec.h"

/* What the codecs of one worker share: a head parser and room for one head.
 * Nothing of it outlives a call but the head that the last event lent. */
struct h1_shared;
struct h1_shared *h1_shared_new(const struct codec_limits *limits);	/* NULL: no memory; limits borrowed */
void h1_shared_free(struct h1_shared *s);

struct h1 {
	struct codec codec;		/* first: a codec is an h1 */
	struct h1_shared *shared;	/* borrowed */
	uint64_t in_left;		/* BODY_SIZED: bytes still to come */
	uint64_t out_left;		/* BODY_SIZED: bytes still to be put */
	struct chunked chunked;		/* BODY_STREAMED by chunks, incoming */
	uint8_t role;			/* enum codec_role */
	uint8_t in, out;		/* states of the two directions, private to h1.c */
	uint8_t in_body, out_body;	/* enum body */
	uint8_t request_method;		/* enum method, of the request that passed */
	uint8_t request_minor;		/* HTTP/1.minor of the client (server role) */
	uint16_t interims;
	bool request_close;		/* the client asked for close, or is 1.0 without keep-alive */
	bool upgrade_asked;		/* the request that passed asked to upgrade */
	bool te_trailers;		/* the request that passed takes trailers */
	bool in_chunked, out_chunked;
	bool close;			/* this connection ends with this message pair */
};

/* Ready for one message pair.  Nothing is owned: there is no fini. */
void h1_init(struct h1 *c, enum codec_role role, struct h1_shared *shared);

/* The connection will be closed after this pair: the next head put says so
 * (Connection: close) when there still is one to put. */
void h1_close_after(struct h1 *c);

/* Both directions are whole and the connection may carry another message pair. */
bool h1_reusable(const struct h1 *c);

/* The incoming message has been read to its end. */
bool h1_in_done(const struct h1 *c);

/* After END: a body that is framed by the end of the connection was put (HTTP/1.0
 * receiver): a cut must then be a reset, since a close would look complete. */
bool h1_out_until_close(const struct h1 *c);

/* Bytes that are known to be missing from the incoming body; UINT64_MAX when its length is open. */
uint64_t h1_in_missing(const struct h1 *c);

#endif
