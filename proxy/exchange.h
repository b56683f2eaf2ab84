/* An exchange: one request with its answer across us.  exchange.c tells its life. */
#ifndef THIMBLE_PROXY_EXCHANGE_H
#define THIMBLE_PROXY_EXCHANGE_H

#include "dispatch/snapshot.h"
#include "lib/base/arena.h"
#include "lib/http/h1.h"
#include "proxy/lease.h"
#include "proxy/worker.h"

enum phase {
	PHASE_NEW,	/* the head is here; route and endpoint are being found */
	PHASE_HELD,	/* a gate waits for an answer from elsewhere */
	PHASE_QUEUED,	/* waits for a connection in a dispatch queue */
	PHASE_PAUSED,	/* waits a moment before it is sent again */
	PHASE_LEASED,	/* has a connection; nothing was written to it yet */
	PHASE_SENT,	/* the request is on its way */
	PHASE_REPLYING,	/* the answer's head was passed on: no retry from here */
	PHASE_TUNNEL,	/* after 101: bytes both ways */
	PHASE_FLUSHING,	/* the upstream side is done; the client still reads */
	PHASE_LOCAL,	/* an answer of our own is on its way */
	PHASE_DONE,
	PHASE_N
};

enum move {
	MOVE_HOLD, MOVE_ADMIT, MOVE_QUEUE, MOVE_LEASE, MOVE_SEND, MOVE_INTERIM, MOVE_REPLY, MOVE_SWITCH, MOVE_UPSTREAM_END,
	MOVE_RETRY, MOVE_PAUSE, MOVE_REFUSE, MOVE_FLUSHED, MOVE_ABORT,
	MOVE_N
};

/* What a phase owns; leaving it gives back what the next one does not own. */
#define HOLD_CLIENT 1u		/* the client connection is ours to answer */
#define HOLD_PLACE 2u		/* a place in a dispatch queue */
#define HOLD_UPSTREAM 4u	/* a leased upstream connection */
#define HOLD_PAUSE 16u		/* a place among those that pause */
#define HOLD_GATE 8u		/* an answer that a gate waits for */

/* The tables, for exchange.c and for the test that walks them: the phase after a move,
 * PHASE_N where there is none; and what a phase holds. */
extern const uint8_t exchange_next[PHASE_N][MOVE_N];
extern const uint8_t exchange_holds[PHASE_N];

enum direction {
	DIR_OPEN,	/* more is to come */
	DIR_DONE,	/* read to its end */
	DIR_CUT,	/* nothing more is read of it */
};

#define EXCHANGE_SIZE 1536	/* of the slab object: what is behind the struct is the arena's first block */

struct exchange {
	struct lease lease;		/* first: HOLD_PLACE and HOLD_UPSTREAM are about it */
	struct worker *w;		/* borrowed */
	struct conn *client;		/* borrowed; HOLD_CLIENT */
	struct exchange *next_done;	/* PHASE_DONE: the worker's list */
	struct exchange *next, *prev;	/* in worker->running */
	const struct route *route;	/* owned reference; NULL before routing */
	struct held *held;		/* in the arena; NULL: it never waited at a gate */
	struct call *copy;		/* owned, until it is sent: for the route's mirror; NULL: none */
	struct compress *compress;	/* in the arena; NULL: the route does not compress */
	struct note *notes;		/* in the arena: changes to whatever answer goes to the client (forward_note) */

	uint8_t phase;		/* enum phase */
	uint8_t request;	/* enum direction: of the request body */
	uint8_t cause;		/* enum cause */
	uint8_t method;		/* enum method */
	uint8_t minor;		/* of the client's HTTP version */
	uint8_t fault;		/* enum codec_fault of a refused request or answer */
	uint8_t preface;	/* bytes of `head` in front of the request line: a PROXY protocol header */
	uint16_t status;	/* sent to the client; 0: none yet */
	uint8_t sent_again;	/* how often it was sent, or was to be sent, to another connection */
	bool replayable;	/* head and whole body so far are kept */
	bool body_sent;		/* a body byte was written to the upstream */
	bool any_sent;		/* a byte was written to the upstream we have now */
	bool answered;		/* a byte of an answer came from the upstream we have now */
	bool reused;		/* the upstream connection had served before */
	bool client_fin;	/* the client ended its side of a tunnel */
	bool up_fin;		/* the upstream ended its side of a tunnel */
	bool https;		/* of a sticky service: what the client speaks, as far as a trusted peer says */
	bool client_closing;	/* the client's connection ends with this exchange */
	bool write_failed;	/* the upstream takes no more of the request; it may have answered */
	bool passed;		/* the client got an interim answer, other than 100 */
	bool holding;		/* the answer that comes goes to x->spare */
	bool up_whole;		/* what the upstream connection carried is whole: it may be kept */
	uint8_t last_cause;	/* enum cause: how the last try ended that the client got nothing of; NONE: */
	uint8_t no_retry;	/* enum retry_why: there was no further one */
	uint16_t last_status;	/* ... by an answer with this status; 0: there was no such try */
	bool cut;		/* the answer ended before it was whole: the client must be able to tell */

	struct buf *in, *up_in;		/* owned: read from client / upstream, not consumed yet */
	struct buf *to_up, *to_client;	/* owned: framed, not taken by the socket yet */
	struct buf *replay;		/* owned: framed body bytes, for a retry */
	struct str head;		/* the upstream request head, in the arena */
	uint32_t head_sent;		/* bytes of it that were written */

	uint64_t body_limit;
	uint64_t bytes_in, bytes_out;	/* body bytes, without framing */
	uint64_t flowed;		/* answer bytes taken by the client since the last short write */
	uint64_t began_us, connect_us, first_us;	/* monotonic; 0: not yet */
	struct endpoint_tried tried;
	struct spare *spare;		/* in the arena; NULL: no answer was kept (retrying.h) */
	struct ttl_link pause;		/* PHASE_PAUSED */
	uint32_t pause_stamp, pause_ms;
	uint32_t asked_ms;		/* when the request had been sent whole for the first time; 0: not yet */

	struct str log_method, log_authority, log_target, log_referer, log_agent;	/* in the arena */
	struct str log_user;		/* who was let in by a password; in the arena */
	struct str request_id;		/* in the arena */
	/* from here on not cleared: each is initialised before it is used */
	struct h1 server, upstream;	/* codecs: towards the client, towards the upstream */
	struct arena arena;
};

_Static_assert(sizeof(struct exchange) <= EXCHANGE_SIZE - 512, "an exchange leaves room for its head");

/* A new one for a client connection; NULL when there is no memory. */
struct exchange *exchange_new(struct worker *w, struct conn *client) MUST_USE;
/* One that never began: only bytes were looked at. */
void exchange_drop(struct exchange *x);

/* A whole request head is here (lent); *rest are the bytes behind it, consumed as far as they
 * belong to the request.  The client connection is CONN_BUSY from here on.  What is left of
 * *rest the caller keeps in x->in.  No exchange is freed before the end of the turn. */
void exchange_begin(struct exchange *x, struct head *h, struct str *rest);
/* Then: asks for a connection.  Apart from exchange_begin, since a connection may be there at once, and with it
 * more of the body is read. */
void exchange_go(struct exchange *x);
/* Goes on with a request that a gate had held, and no gate holds any more. */
void exchange_admit(struct exchange *x);
/* Instead of both: the codec refused the request. */
void exchange_refuse(struct exchange *x, enum codec_fault fault);
/* Instead of both: it is answered without having been read whole (408). */
void exchange_answer_cause(struct exchange *x, enum cause cause);

/* Something happened on its client's connection, or it is its turn again. */
void exchange_client_event(struct exchange *x);
/* The time-out of its client's connection ran out. */
void exchange_client_timeout(struct exchange *x);

/* Moves it along; gives back what the new phase does not hold.  There must be such a move. */
void exchange_move(struct exchange *x, enum move move);

/* It cannot go on as it is: an answer of our own while none was begun, else a cut. */
void exchange_fail(struct exchange *x, enum cause cause);
/* Ends it without a word; the client can tell that the answer, if one was begun, is not whole. */
void exchange_cut(struct exchange *x, enum cause cause);
/* Asks for a connection to the endpoint that was chosen. */
void exchange_dispatch(struct exchange *x);

/* Ends `n` of those that run, or all: the time to finish them is over. */
void exchange_cut_running(struct worker *w, size_t n);

/* At the end of the turn: logs what became of it, gives the client connection back, frees it. */
void exchange_finish(struct exchange *x);

#endif
