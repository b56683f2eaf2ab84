/* Gates: what a request must pass between its route and its dispatch.
 *
 * A gate is a function that sees the head and lets it pass, refuses it, or has it wait for an
 * answer from elsewhere.  They are asked in the order of enum policy_id, and only when the route
 * has a policy. */
#ifndef THIMBLE_PROXY_GATE_H
#define THIMBLE_PROXY_GATE_H

#include "proxy/exchange.h"

enum gate_said {
	GATE_PASS,
	GATE_STOP,	/* the gate has answered (exchange_fail, or an answer of local.c) */
	GATE_WAIT,	/* it has called gate_wait, and will call gate_resume */
};

/* A gate.  `part` is the route's, never NULL.  It may edit `h`, which is what the upstream's head is made
 * of, and add fields to whatever answer there will be (forward_note). */
typedef enum gate_said gate_fn(struct exchange *x, struct policy_part *part, struct head *h);

/* A request that waits at a gate, in the exchange's arena. */
struct held {
	struct head head;	/* a copy: that of the codec is gone */
	unsigned gate;		/* enum policy_id */
	/* Nobody waits for the answer any more; gate_resume must not be called. */
	void (*cancel)(struct exchange *x, void *what);
	void *what;		/* the gate's own */
};

/* Asks all gates.  GATE_WAIT: the exchange is in PHASE_HELD. */
enum gate_said gate_ask(struct exchange *x, struct head *h) MUST_USE;

/* By a gate, before it says GATE_WAIT: keeps a copy of `h`, which x->held->head is, and what is to be done when the
 * exchange ends meanwhile.  ERR_MEM: nothing waits. */
MUST_USE enum err gate_wait(struct exchange *x, const struct head *h,
			    void (*cancel)(struct exchange *x, void *what), void *what);

/* Room for `n` more fields in the head that is held, which may move.  ERR_MEM. */
MUST_USE enum err gate_make_room(struct exchange *x, unsigned n);

/* By a gate, from the top of a turn, with the answer: CAUSE_NONE lets the request go on to the next gate, another
 * cause is what it is answered with.  The exchange may be over when this returns. */
void gate_resume(struct exchange *x, enum cause cause);

/* The same when the gate answers by itself: right behind this. */
void gate_answers(struct exchange *x);

/* By exchange_move, when PHASE_HELD ends in another way. */
void gate_leave(struct exchange *x);

#endif
