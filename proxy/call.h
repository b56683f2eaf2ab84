/* A call: a request that we make ourselves to a service, and whose answer we read ourselves.
 *
 * Of a lease's owners the other one.  Made, filled and started by whoever wants to know
 * something, who is told of the end by one function, from the top of a turn.  call.c tells its life. */
#ifndef THIMBLE_PROXY_CALL_H
#define THIMBLE_PROXY_CALL_H

#include "dispatch/endpoint.h"
#include "lib/base/arena.h"
#include "lib/http/h1.h"
#include "proxy/lease.h"
#include "proxy/worker.h"

enum call_state {
	CALL_NEW,	/* is being made, or waits for its turn to ask for a connection */
	CALL_QUEUED,	/* waits for a connection */
	CALL_ASKED,	/* has one: the request goes out, the answer comes in */
	CALL_ENDED,	/* deaf; its owner is told, and its memory given back, in this turn */
	CALL_STATES
};

enum call_move { CALL_WAIT, CALL_LEASE, CALL_RETRY, CALL_END, CALL_MOVES };

/* What a state owns; leaving it gives back what the next one does not own. */
#define CALL_PLACE 1u		/* a place in a dispatch queue */
#define CALL_UPSTREAM 2u	/* a leased connection */

/* The tables, for call.c and for the test that walks them: the state after a move, CALL_STATES where there is
 * none; and what a state holds. */
extern const uint8_t call_next[CALL_STATES][CALL_MOVES];
extern const uint8_t call_holds[CALL_STATES];

#define CALL_SIZE 2048		/* of the slab object: what is behind the struct is the arena's first block */
#define CALL_READ_MAX (1024u * 1024)	/* bytes of an answer's body that are read at most */

struct call {
	struct lease lease;		/* first: CALL_PLACE and CALL_UPSTREAM are about it */
	struct call *next, *prev;	/* in worker->calls.all */
	struct call *next_due;		/* in worker->calls.due */
	struct ttl_link link;		/* its one time-out, from its start to the whole answer */
	uint32_t stamp;
	uint32_t keep;			/* bytes of the answer's body to be kept at most */
	struct service *service;	/* owned reference */
	struct endpoint_tried tried;
	/* Tells the owner of the end; NULL: nobody wants to know.  `c` and all in it is lent for that long. */
	void (*done)(struct call *c, void *owner);
	void *owner;			/* borrowed */

	uint8_t state;		/* enum call_state */
	uint8_t list;		/* of its time-out */
	uint8_t cause;		/* enum cause: why there is no answer; CAUSE_NONE: there is a whole one */
	bool due;		/* is in worker->calls.due */
	bool any_sent;		/* a byte was written to the connection that it has now */
	bool answered;		/* a byte of an answer came on it */
	bool reused;		/* it had served before */
	bool write_failed;	/* it takes no more; it may have answered */
	bool kept_all;		/* `got` is the whole body */

	struct buf *body;	/* owned: of the request */
	struct buf *up_in;	/* owned: read, not consumed yet */
	struct buf *got;	/* owned: the answer's body, as far as it is kept */
	struct str head;	/* of the request, as bytes, in the arena */
	size_t sent;		/* bytes of head and body that were written */
	uint64_t read;		/* bytes of the answer's body */
	struct head request;	/* in the arena; its authority is that of who asks, the service's rule makes Host of it */
	struct head answer;	/* in the arena; its status alone when nothing of it is kept */
	/* from here on not cleared */
	struct h1 upstream;
	struct arena arena;
};

_Static_assert(sizeof(struct call) <= CALL_SIZE - 1024, "a call leaves room for its head");

struct call_spec {
	struct service *service;	/* the call has a reference of its own */
	const struct head *head;	/* copied: method, target, authority, fields */
	unsigned room;			/* fields that may be added to those */
	uint32_t timeout_ms;		/* from its start to the end of the answer */
	uint32_t keep;			/* bytes of the answer's body to be kept; a longer one is not; 0: nor is its head */
	bool hasty;			/* fails when no connection is free and none may be opened, or half of limits.calls
					 * are under way */
	void (*done)(struct call *c, void *owner);	/* NULL: nobody wants to know */
	void *owner;
};

/* A new one; until it is started c->request may be changed, with strings of c->arena.  NULL: as many as
 * limits.calls are under way (CAUSE_CALLS_FULL in *cause), or there is no memory. */
struct call *call_new(struct worker *w, const struct call_spec *spec, enum cause *cause) MUST_USE;

/* Appends to the request's body; ERR_LIMIT when it would be longer than `limit`, ERR_MEM. */
MUST_USE enum err call_body(struct call *c, struct str piece, size_t limit);

/* From any place in a turn: it asks for a connection when its worker comes to calls, and its owner hears of its
 * end in that place of this turn or of a later one. */
void call_start(struct call *c);

/* In any state: it ends, and its owner hears no more of it. */
void call_cancel(struct call *c);

/* Whether calls_run has something to do without an event. */
bool calls_wait(const struct worker *w);
/* Once a turn: begins those that were started, tells the owners of those that have ended, frees them. */
void calls_run(struct worker *w);
/* Those whose time-out ran out end. */
void calls_expire(struct worker *w);
/* Ends all of them, without a word to their owners. */
void calls_cancel_all(struct worker *w);

#endif
