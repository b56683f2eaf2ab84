/* Balancing: which endpoint of a service gets the next request.
 *
 * In all kinds an endpoint that is up comes before one that is not, one that was not tried before one that was, and one
 * that is ready before one that serves, and that before one that terminates; while one is left, a request is never refused
 * because of a verdict.  Weight 0 and ENDPOINT_DRAIN get nothing that is new: only what a sticky key brings back.
 *
 * A worker's part costs a service nothing but round robin, whose turns are made when the first request comes. */
#ifndef THIMBLE_DISPATCH_BALANCE_H
#define THIMBLE_DISPATCH_BALANCE_H

#include <stdbool.h>
#include <stdint.h>
#include "dispatch/service.h"

struct balance_turns;

struct balance {	/* of one worker */
	uint64_t random;
	struct balance_turns **turns;	/* owned, as what it holds: by the service's index, made at first use */
	uint32_t n_turns;
};

/* Workers with different seeds do not start in step; one seed makes the same choices again. */
void balance_init(struct balance *b, uint64_t seed);
void balance_fini(struct balance *b);
/* Lets go of what services have left behind, which may be gone; those that live begin anew, by chance. */
void balance_forget(struct balance *b);

/* The endpoint for the next request by the rules of `s`, lent until the end of the turn.  NULL: it has none that takes
 * new requests.  `key`: of BALANCE_HASH a hash of what requests go by, of BALANCE_STICKY the endpoint_id of where the session is; 0: there is
 * none, and the choice is that of BALANCE_LEAST.  `tried` may be NULL. */
struct endpoint *balance_pick(struct balance *b, const struct service *s, uint32_t key, const struct endpoint_tried *tried);

/* When that one has no room, as `room` says: the one that has, of those that are as good.  NULL: the request waits, since none
 * has, or since its session is elsewhere, at an endpoint that is up. */
struct endpoint *balance_free(struct balance *b, const struct service *s, uint32_t key, const struct endpoint_tried *tried,
			      bool (*room)(void *ctx, const struct endpoint *e), void *ctx);

#endif
