/* A lease: the right to use an upstream connection, from asking for it to giving it back.
 *
 * All that the pool knows of those who use its connections.  An exchange is one; so is whatever
 * else asks an origin something.  Embedded by its owner, who is told of what happens by `ops`.
 * It is in one of three conditions: without a connection, waiting for one (lease_waits), or
 * with one (`up` is set). */
#ifndef THIMBLE_PROXY_LEASE_H
#define THIMBLE_PROXY_LEASE_H

#include <stdbool.h>
#include "dispatch/endpoint.h"
#include "dispatch/service.h"
#include "proxy/cause.h"
#include "proxy/conn.h"

struct lease;
struct pending;
struct pool;

struct lease_ops {
	/* By the pool: it has `u` now, and is in no queue any more.  `kept`: it has served before. */
	void (*leased)(struct lease *l, struct upstream *u, bool kept);
	/* By the pool: what it waited for will not come.  It is in no queue any more. */
	void (*failed)(struct lease *l, enum cause cause);
	/* Something happened on the connection, or it is its turn again. */
	void (*event)(struct lease *l);
	/* The connection's time-out ran out. */
	void (*timeout)(struct lease *l);
	/* Bytes that it holds while it waits. */
	size_t (*holds)(const struct lease *l);
	/* Endpoints that it was tried with. */
	const struct endpoint_tried *(*tried)(const struct lease *l);
	/* While it waited it was aimed at another endpoint than `before` (lent).  False: no memory.  May be NULL. */
	bool (*aimed)(struct lease *l, const struct endpoint *before);
};

struct lease {
	const struct lease_ops *ops;
	struct worker *w;		/* borrowed */
	struct endpoint *endpoint;	/* owned reference (lease_aim): whose connection is asked for */
	const struct service *service;	/* borrowed */
	struct conn *clock;		/* borrowed: whose time-out runs while it waits for a connection to
					 * become free; NULL: it has a time-out of its own */
	struct upstream *up;		/* borrowed: the connection */
	struct pool *pool;		/* borrowed: waits there, and */
	union {
		struct upstream *waits_on;	/* borrowed: behind which connect; NULL: in pool->waiting */
		struct pending *pending;	/* borrowed, when it waits in no pool: waits for the service, see slots.c */
	};
	uint32_t key;			/* what the choice of the endpoint goes by, where it is the request's (routing.c); 0: nothing */
	bool fresh : 1;			/* no kept connection, please */
	bool hasty : 1;			/* it does not wait for a connection to become free */
	bool own : 1;			/* one that nobody had before, nor will have after: it is for one client alone */
	bool careful : 1;		/* what is sent must not be lost: a kept connection is looked at first */
	bool slot : 1;			/* it is one of endpoint->inflight: while it waits in a pool, or has a connection */
	bool room : 1;			/* it is one of endpoint->conns: between its slot and its connection */
	bool again : 1;			/* it is sent again: it waits in front of the others */
};

/* Waits: in a pool, or for its service. */
static inline bool lease_waits(const struct lease *l)
{
	return l->pool || l->pending;
}

/* Whose connection is asked for from now on; NULL at the end. */
static inline void lease_aim(struct lease *l, struct endpoint *e)
{
	struct endpoint *before = l->endpoint;

	l->endpoint = e ? endpoint_ref(e) : NULL;
	endpoint_unref(before);
}

#endif
