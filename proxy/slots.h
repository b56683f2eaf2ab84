/* Slots of services that have limits, and the queue of requests that wait for one: per service and
 * worker, made when the first has to wait and gone with the last. */
#ifndef THIMBLE_PROXY_SLOTS_H
#define THIMBLE_PROXY_SLOTS_H

#include "dispatch/service.h"
#include "lib/base/slotq.h"
#include "proxy/cause.h"
#include "proxy/lease.h"

struct server;

/* Those that wait for one service in one worker. */
struct pending {
	const struct service *service;	/* owned reference */
	struct pending *next, *prev;	/* in worker->pending */
	struct slotq queue;		/* of struct waiter, the first in turn first */
	uint64_t bytes;			/* that they hold */
	struct endpoint **joined;	/* owned, references too: those that it has a seat in the lot for */
	uint32_t n_joined;
	uint32_t index;			/* of the service */
};

/* As pool_get, for a service that has limits: takes a slot of l->endpoint, and then a connection; or
 * waits for any endpoint of the service (l->pending is set). */
enum cause slots_get(struct lease *l) MUST_USE;

/* Whether `l` could have a slot of `e`, and a connection, now; `waited`: it has waited. */
bool slots_room(struct lease *l, const struct endpoint *e, bool waited);

/* Takes one that waits out of its queue. */
void slots_leave(struct lease *l);
/* It has a slot, and no connection can be had: waits for the service in front of all others. */
enum cause slots_wait_again(struct lease *l, struct endpoint *e) MUST_USE;

/* The slot of `e` that `l` has is free again. */
void slots_give_back(struct lease *l, struct endpoint *e);
/* The same, if it has one. */
static inline void slots_give(struct lease *l, struct endpoint *e)
{
	if (l->slot)
		slots_give_back(l, e);
}

/* A connection to `e` is no more. */
void slots_give_conn(struct worker *w, struct endpoint *e);
/* What is known of `e` has changed: workers in which requests wait for it look at them.  Any thread. */
void slots_stir(struct server *server, struct endpoint *e);

/* Once a turn, when worker->look is set: gives slots that are free to those that wait. */
void slots_look(struct worker *w);
/* Services may consist of other endpoints. */
void slots_look_anew(struct worker *w);
/* Another worker waits for connections that may be idle here. */
void slots_spare(struct worker *w);

/* When nothing is left that could wait: the worker is in nobody's way any more. */
void slots_end(struct worker *w);

/* A tell of lot_new; `server` is a struct server. */
void slots_tell(void *server, unsigned worker);

#endif
