/* The codec contract: bytes <-> messages.
 *
 * A codec is one end of HTTP on one connection: we are the *server* to a client,
 * and the *client* to an origin (role CODEC_UPSTREAM).  It is a pure machine.  It
 * owns no socket, reads no clock, allocates nothing behind the caller's back, and
 * never calls up: bytes go in and events come out of codec_next(); commands go in
 * and bytes come out of the put functions into a `vec`, which the caller writes.
 *
 *      bytes in --> codec_next --> HEAD BODY* [TRAILERS] END | BAD
 *      put_head put_body* put_end --> bytes out (a vec)
 *
 * Incoming is a message for both ends: any number of interim heads (1xx, answers
 * only), one head, body pieces, at most one trailer section, END.  The pieces are
 * lent: they lie in the bytes that the caller passed in, so that a body is
 * forwarded by writev from where it was read.  What codec_next does not consume the
 * caller keeps and passes again, with more behind it.  A fault is final: after
 * CODEC_BAD nothing more is taken from that connection.
 *
 * Outgoing framing is always made here, never copied: a chunk's size line is
 * written anew, hop-by-hop fields never pass, Content-Length is a number that we
 * print.  What the sender meant and what the receiver reads cannot differ.
 *
 * A head is neutral (head.h).  What the two HTTP/1 ends must know of each other's
 * message (was it HEAD? did the client ask to upgrade? is it HTTP/1.0?) each codec
 * remembers from the head that went the other way through it.
 *
 * HTTP/1 carries one message pair at a time: `stream` is 0, and one `struct h1`
 * (h1.h) lives exactly as long as the exchange: an idle connection has no codec.
 * A multiplexed protocol keeps its codec for the life of the connection and uses
 * the stream numbers. */
#ifndef THIMBLE_HTTP_CODEC_H
#define THIMBLE_HTTP_CODEC_H

#include <stdbool.h>
#include <stdint.h>
#include "lib/base/err.h"
#include "lib/base/str.h"
#include "lib/http/head.h"
#include "lib/http/vec.h"

enum codec_role { CODEC_SERVER, CODEC_UPSTREAM };

struct codec_limits {
	uint32_t head;		/* bytes of a head or trailer section, start line included */
	uint32_t target;	/* bytes of a request target */
	uint16_t fields;	/* field lines of a head or trailer section */
	uint16_t interim;	/* 1xx answers before a final one */
	uint32_t chunk_overhead;	/* bytes of one chunk's size line and extensions */
};

/* Why a message was refused.  Each has one line of text and one status. */
enum codec_fault {
	FAULT_NONE,
	FAULT_SYNTAX,		/* start line or field line that is no HTTP */
	FAULT_VERSION,		/* not HTTP/1.0 or 1.1 */
	FAULT_HEAD_SIZE, FAULT_FIELD_COUNT, FAULT_TARGET_SIZE,
	FAULT_HOST,		/* none, two, or not a host */
	FAULT_TARGET,		/* a target that no method may have */
	FAULT_LENGTH,		/* Content-Length: not one number */
	FAULT_TRANSFER_CODING,	/* chunked not once and last, or in HTTP/1.0 */
	FAULT_CODING_UNKNOWN,	/* a coding that we do not know */
	FAULT_BOTH_LENGTHS,	/* Content-Length beside Transfer-Encoding */
	FAULT_FOLD,		/* obs-fold */
	FAULT_CHUNK, FAULT_CHUNK_OVERHEAD, FAULT_TRAILER,
	FAULT_CONNECT,		/* CONNECT: we are no forward proxy */
	FAULT_CONNECTION,	/* a Connection field that names too much */
	FAULT_STATUS,		/* answer status that is not 100..599 */
	FAULT_SWITCH,		/* 101 to a request that did not ask for it */
	FAULT_INTERIM,		/* too many 1xx */
	FAULT_EXTRA,		/* bytes behind the end of an answer */
	FAULT_CUT,		/* the connection ended inside a message */
	FAULT_N
};

enum codec_kind {
	CODEC_MORE,	/* nothing more to tell until more bytes come */
	CODEC_HEAD,	/* ev->head; for an answer with status < 200 another head follows */
	CODEC_BODY,	/* ev->body: a piece, never empty */
	CODEC_TRAILERS,	/* ev->head: fields only, forbidden names gone */
	CODEC_END,	/* the message is whole; bytes that follow are not touched */
	CODEC_BAD,	/* ev->fault */
};

struct codec_event {
	uint32_t stream;
	union {
		struct head *head;	/* lent until the next codec_next on any codec of this worker */
		struct str body;	/* lent: lies in the caller's input */
		enum codec_fault fault;
	};
};

struct codec;

struct codec_ops {
	enum codec_kind (*next)(struct codec *c, struct str *in, bool eof, struct codec_event *ev);
	enum err (*put_head)(struct codec *c, uint32_t stream, const struct head *h, struct vec *out);
	enum err (*put_body)(struct codec *c, uint32_t stream, struct str piece, struct vec *out);
	enum err (*put_end)(struct codec *c, uint32_t stream, const struct head *trailers, struct vec *out);
};

struct codec {
	const struct codec_ops *ops;
};

/* The next event.  Consumes from the front of *in.  `eof`: the peer has ended its
 * side and nothing will come behind *in; it ends an answer that has no other end
 * and is FAULT_CUT in every other place but before the first byte of a message
 * (CODEC_MORE then: there is no message). */
static inline enum codec_kind codec_next(struct codec *c, struct str *in, bool eof, struct codec_event *ev)
{
	return c->ops->next(c, in, eof, ev);
}

/* Puts a head.  The head says what is meant; the codec frames it as the receiver
 * can read it.  An interim answer (status < 200) may precede the final one.
 * ERR_LIMIT: it does not fit into a head of VEC_SCRATCH bytes. */
MUST_USE static inline enum err codec_put_head(struct codec *c, uint32_t stream, const struct head *h, struct vec *out)
{
	return c->ops->put_head(c, stream, h, out);
}

/* Puts a body piece, borrowed until the vec is reset.  More than the announced
 * length is ERR_SYNTAX, and nothing is put. */
MUST_USE static inline enum err codec_put_body(struct codec *c, uint32_t stream, struct str piece, struct vec *out)
{
	return c->ops->put_body(c, stream, piece, out);
}

/* Ends the message, with trailers (fields only, may be NULL) where the receiver
 * takes them.  Less than the announced length is ERR_SYNTAX: the connection must
 * then be closed, so that the receiver can tell. */
MUST_USE static inline enum err codec_put_end(struct codec *c, uint32_t stream, const struct head *trailers, struct vec *out)
{
	return c->ops->put_end(c, stream, trailers, out);
}

/* The status that a client is answered with for a fault in its request, and one
 * line of plain text that says what is wrong. */
unsigned codec_fault_status(enum codec_fault f);
struct str codec_fault_text(enum codec_fault f);
/* A short name of a fault for logs and counters, "" for FAULT_NONE. */
struct str codec_fault_token(enum codec_fault f);

#endif
