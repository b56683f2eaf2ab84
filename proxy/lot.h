/* The lot: which workers have requests that wait for a slot of which endpoint.  Whoever gives a slot
 * back while somebody waits has the next of those workers told, in turn; it costs nothing, neither
 * time nor memory, for endpoints that nobody waits for. */
#ifndef THIMBLE_PROXY_LOT_H
#define THIMBLE_PROXY_LOT_H

#include <stdbool.h>
#include <stdint.h>
#include "dispatch/endpoint.h"
#include "lib/base/err.h"

#define LOT_NOBODY UINT32_MAX	/* in place of a worker's number: not a worker */

struct lot;

/* `tell` has worker number n look at those that wait in it, soon; called from any thread, under a lock.  `n` workers.
 * NULL: no memory. */
struct lot *lot_new(unsigned n, void (*tell)(void *ctx, unsigned worker), void *ctx) MUST_USE;
/* CHECKs that nobody waits; NULL is accepted. */
void lot_free(struct lot *lot);

/* In all below, `worker` is the caller; true: it is itself the one that is to look.  Any thread. */

/* It has requests that wait for `e`, of a service that has at most `max_conns` connections to it (0: any number); one that
 * joins twice leaves twice.  If there is room, it says lot_freed then: nobody else may.  ERR_MEM. */
MUST_USE enum err lot_join(struct lot *lot, struct endpoint *e, unsigned worker, uint32_t max_conns);
/* It has not any more. */
void lot_leave(struct lot *lot, struct endpoint *e, unsigned worker);

/* A slot of `e`, or a connection to it, was given back. */
bool lot_freed(struct lot *lot, struct endpoint *e, unsigned worker);
/* It has looked, and left room at `e`: one that has not looked since it was freed may have a use for it. */
bool lot_pass(struct lot *lot, struct endpoint *e, unsigned worker);
/* What is known of `e` has changed: all that wait for it look. */
void lot_stir(struct lot *lot, struct endpoint *e);

/* Whether a connection to `e` that `worker` has no use for just now is wanted by another one, whose turn it is, and which may not
 * open one. */
bool lot_wants(struct lot *lot, struct endpoint *e, unsigned worker);

#endif
