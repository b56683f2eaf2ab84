/* Random walks: clients and origins that do at each step something that is possible, and what must
 * hold of the bytes that each of them got. */
#ifndef THIMBLE_SIM_WALK_H
#define THIMBLE_SIM_WALK_H

#include <stdbool.h>
#include <stdint.h>
#include "tests/sim/net.h"

/* Walks with the seeds `seed` to `seed` + `n` - 1; aborts at the first that breaks an invariant.
 * `lean`: memory fails now and then. */
void walk(uint64_t seed, uint64_t n, bool lean);

/* --- within the walk --- */

#define ASKED_MAX 600	/* requests of one walk */

enum reply { REPLY_SIZED, REPLY_CHUNKED, REPLY_CLOSE, REPLY_EMPTY, REPLY_N };

/* A request, known by its number: its target and both bodies follow from that. */
struct asked {
	const char *method;
	size_t body;		/* bytes */
	bool chunked, idempotent;
	size_t answer;		/* bytes of its answer's body */
	uint8_t reply;		/* enum reply */
	size_t head_end, end;	/* offsets in what the client sends */
	struct peer *client;
	unsigned heads, wholes;	/* seen at origins */
	bool finished;		/* an origin sent all of an answer */
	bool passed;		/* who is asked about it has let it pass */
};

struct walk {
	bool calm;		/* nobody breaks anything: every request must be answered whole */
	bool ending;		/* everybody finishes what was begun */
	bool guarded;		/* no request may reach an origin, or be copied, before it has passed */
	bool again;		/* origins say 503 now and then, and another is asked */
	unsigned n_asked;
	struct asked asked[ASKED_MAX];
};

extern struct walk walking;

/* The i-th byte of the body of request `id`, and of its answer. */
char walk_byte(unsigned id, bool answer, size_t i);

/* Whether it is not an origin but a bystander, one that is asked about requests or gets copies; the same of those. */
bool bystander_is(const struct peer *p);
void bystander_step(struct peer *p);
void bystander_free(struct peer *p);

/* One step of the origin behind a connection of the proxy; frees what it has at the end. */
void origin_step(struct peer *p);
void origin_free(struct peer *p);
/* All that the origin got must be whole and in order; called at the end. */
void origin_check(struct peer *p);

#endif
