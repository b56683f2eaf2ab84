/* Services: what a route points to.  What its configuration says never changes after it was
 * made, and generations share it as long as that is the same; whom it consists of may. */
#ifndef THIMBLE_DISPATCH_SERVICE_H
#define THIMBLE_DISPATCH_SERVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "dispatch/endpoint.h"
#include "dispatch/error.h"
#include "dispatch/rules.h"
#include "lib/base/chan.h"
#include "lib/base/err.h"
#include "lib/base/str.h"

/* Whether an endpoint gets requests; in the order in which they are preferred.  The conditions of an EndpointSlice, as one word. */
enum endpoint_state {
	ENDPOINT_READY,
	ENDPOINT_SERVING,	/* it would answer, but does not want to: when none is ready */
	ENDPOINT_TERMINATING,	/* it answers until it is gone: when no other is left */
	ENDPOINT_DRAIN,		/* only what has its session there */
};

struct service_endpoint_spec {
	struct endpoint_address address;
	uint16_t weight;	/* its share is that of the sum; 0: nothing that is new */
	uint8_t state;		/* enum endpoint_state */
};

struct service_spec {		/* everything in it is borrowed */
	struct str name;
	struct rules rules;
	const struct service_endpoint_spec *endpoints;
	uint32_t n_endpoints;
	bool named;			/* more come by name: what is here is where its set begins */
};

struct service_endpoint {
	struct endpoint *endpoint;	/* owned reference */
	uint32_t id;			/* endpoint_id: balancing reads it here */
	uint16_t weight;
	uint8_t state;			/* enum endpoint_state */
};

/* Whom a service consists of at one time; never changes, but for `panic`. */
struct endpoint_set {
	uint32_t n;
	bool inner : 1;			/* it lies in the service's own block */
	bool replaced : 1;		/* its endpoints are not counted as being of a set any more */
	uint8_t : 0;			/* workers read no byte that is written */
	bool equal : 1;			/* there are some, all ready, and of one weight that is not 0 */
	uint8_t bits : 5;		/* of the largest weight of one that is ready; 0: none is, or can be chosen */
	_Atomic bool panic;		/* health's: so many are not well that what it says of them is passed over */
	struct service_endpoint at[];
};

_Static_assert(offsetof(struct endpoint_set, at) == 8, "a service is small: there are many");

struct service {
	_Atomic uint32_t refs;
	uint32_t index;			/* small and unique among those alive, for a worker's cursors */
	_Atomic(struct endpoint_set *) set;	/* owned */
	const struct rules *rules;	/* owned reference */
	struct chan health;		/* its health channel: what workers see goes to the main thread */
	_Atomic uint32_t retry_floor;	/* retry_floor_take */
	bool named;			/* endpoints come by name: without any it has none yet, or no more */
	uint8_t table;			/* which one gave it its index and rules */
	uint16_t name_len;
	char name[];			/* and behind it the first set */
};

/* A service with one reference, moved to the caller; NULL when refused, and `err`
 * (may be NULL) says why.  Nothing of `spec` is kept. */
struct service *service_new(struct endpoint_table *t, const struct service_spec *spec,
			    struct snapshot_error *err) MUST_USE;
/* Whether `s` is what service_new would make of `spec`. */
bool service_is(const struct service *s, const struct service_spec *spec);

struct service *service_ref(struct service *s);
/* NULL is accepted.  Any thread. */
void service_unref(struct service *s);

/* Whom it consists of now.  Lent until the end of the caller's turn: whoever keeps an endpoint
 * longer takes a reference. */
static inline const struct endpoint_set *service_set(const struct service *s)
{
	return atomic_load_explicit(&s->set, memory_order_acquire);
}

/* The set of those endpoints, owned by the caller; NULL: no memory.  Each must be valid. */
struct endpoint_set *endpoint_set_new(struct endpoint_table *t, const struct service_endpoint_spec *e, uint32_t n) MUST_USE;
/* Lets go of the endpoints, and of the set unless it is part of a service.  NULL is accepted. */
void endpoint_set_free(struct endpoint_set *set);
/* Makes `set` (moved) what the service consists of.  The one before is moved to the caller, who
 * may free it when no worker can be looking at it any more (proxy/grace.h).  One thread at a time.
 * An endpoint that is in no other set is unused from here on: endpoint_used. */
struct endpoint_set *service_swap(struct service *s, struct endpoint_set *set) MUST_USE;

static inline struct str service_name(const struct service *s)
{
	return (struct str){s->name, s->name_len};
}

#endif
