/* HTTP/1.0 and 1.1 behind the codec contract.  rawhead.h and llhttp read heads; framing.h
 * says what they mean; chunked.h reads chunked bodies. */
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
	/* How far the unconsumed input was looked over.  A caller that gives the codec up while
	 * a head is incomplete (CODEC_MORE) may keep this one number with the bytes, and set it
	 * again behind h1_init when it passes them with more behind: a head that drips then
	 * costs O(n log n).  0 is always right. */
	uint32_t mark;
	uint8_t role;			/* enum codec_role */
	uint8_t in, out;		/* states of the two directions, private to h1.c and h1_put.c */
	uint8_t fault;			/* enum codec_fault, once the incoming side is bad */
	uint8_t blanks;			/* empty lines passed over before a request */
	uint8_t request_method;		/* enum method, of the request that passed */
	uint8_t request_minor;		/* HTTP/1.minor of the client (server role) */
	uint16_t interims;
	bool upgrade_asked;		/* the request that passed asked to upgrade */
	bool te_trailers;		/* the client takes trailers (server role) */
	bool close;			/* this connection ends with this message pair */
	bool until_close;		/* a body was put whose end is the end of the connection */
};

/* Ready for one message pair.  Nothing is owned: there is no fini. */
void h1_init(struct h1 *c, enum codec_role role, struct h1_shared *shared);

/* The connection will be closed after this pair: the next head put says so
 * (Connection: close) when there still is one to put. */
void h1_close_after(struct h1 *c);

/* Upstream: the request was sent again, on another connection: an answer is read from its beginning.  What was put stays. */
void h1_reread(struct h1 *c);

/* Both directions are whole and the connection may carry another message pair.  The
 * caller looks for bytes that are left over: behind an answer they forbid it. */
bool h1_reusable(const struct h1 *c);

/* The incoming message has been read to its end. */
bool h1_in_done(const struct h1 *c);

/* After END: a body that is framed by the end of the connection was put (HTTP/1.0
 * receiver): a cut must then be a reset, since a close would look complete. */
bool h1_out_until_close(const struct h1 *c);

/* Bytes that are known to be missing from the incoming body; UINT64_MAX when its length is open. */
uint64_t h1_in_missing(const struct h1 *c);

/* What the contract leaves to HTTP/1:
 *
 * - A 101 makes both directions of its codec a tunnel: on the upstream side when
 *   codec_next gives it, on the client's side when it is put (ERR_SYNTAX when the client
 *   had not asked).  codec_next then gives BODY until eof, and END; put_body passes bytes
 *   as they are, put_end ends that direction.
 * - Behind END, codec_next says CODEC_MORE to the server role (a pipelined request is not
 *   touched); to the upstream role any byte is FAULT_EXTRA, as is any before the request was put.
 * - An answer that has no body (HEAD, 204, 304) swallows put_body of the length that
 *   its head announced: our own answers need not know the method.
 * - An interim answer to an HTTP/1.0 client is OK and puts nothing.
 * - Trailers are put only behind a chunked answer to a client that said TE: trailers;
 *   those of requests are dropped, since nobody can know whether the origin merges them. */

#endif
