/* A snapshot: one generation of the configuration, as an index over services and
 * routes that generations share.  Built whole or refused.  Never changes, so any
 * number of threads may read it. */
#ifndef THIMBLE_DISPATCH_SNAPSHOT_H
#define THIMBLE_DISPATCH_SNAPSHOT_H

#include <stddef.h>
#include <stdint.h>
#include "dispatch/endpoint.h"
#include "dispatch/error.h"
#include "dispatch/route.h"
#include "dispatch/router.h"
#include "dispatch/service.h"
#include "lib/base/err.h"

#define SNAPSHOT_NO_SERVICE SIZE_MAX

struct snapshot_backend {
	size_t service;		/* index into services, or SNAPSHOT_NO_SERVICE: its share is answered with 500 */
	uint32_t weight;
};

struct snapshot_route {
	struct route_spec route;	/* its `service` and `backends` are ignored, but for n_backends: */
	size_t service;			/* index into services for ROUTE_SERVICE, else SNAPSHOT_NO_SERVICE */
	const struct snapshot_backend *backends;	/* route.n_backends of them, for ROUTE_SPLIT */
	const struct route_match *matches;	/* any of them; their `target` is ignored */
	size_t n_matches;		/* 0: it is never found */
};

/* A server name of TLS, and whose connections with it are. */
struct snapshot_name {
	struct str host;	/* as that of a route_match */
	size_t service;		/* index into services */
};

/* What a listener does that does not speak HTTP; one that does has neither. */
struct snapshot_listener {
	size_t service;		/* index into services: of all its connections; or SNAPSHOT_NO_SERVICE */
	const struct snapshot_name *names;	/* else: of those whose server name is found here */
	size_t n_names;
};

struct snapshot_spec {		/* everything in it is borrowed */
	struct endpoint_table *endpoints;
	const struct service_spec *services;	/* no name twice */
	size_t n_services;
	const struct snapshot_route *routes;	/* in order: the earlier wins a tie */
	size_t n_routes;
	const struct snapshot_listener *listeners;	/* by their number; may be fewer than there are */
	size_t n_listeners;
};

struct snapshot;

/* The snapshot of `spec` with one reference, moved to the caller; NULL when
 * refused, and *err says why; nothing has changed then.  Services and routes that
 * are the same in `old` (may be NULL) are the same objects. */
struct snapshot *snapshot_build(const struct snapshot_spec *spec, struct snapshot *old,
				struct snapshot_error *err) MUST_USE;

struct snapshot *snapshot_ref(struct snapshot *s);
/* NULL is accepted.  Any thread. */
void snapshot_unref(struct snapshot *s);

/* The route for `q` in *route when ROUTE_FOUND, borrowed from the snapshot: take a
 * reference before letting go of the snapshot. */
enum route_found snapshot_find(struct snapshot *s, const struct route_query *q, const struct route **route);

/* The service that connections of `listener` are passed to; `name`: the server name of a TLS one, "" when it sent none.
 * NULL: there is none.  Borrowed from the snapshot. */
struct service *snapshot_stream(struct snapshot *s, size_t listener, struct str name);

/* 1 for the first, one more than `old` after that. */
uint64_t snapshot_generation(const struct snapshot *s);
/* The services in the order of the specification, lent; how many in *n. */
struct service *const *snapshot_services(const struct snapshot *s, size_t *n);
/* Heap bytes of the index alone: what generations do not share. */
size_t snapshot_heap(const struct snapshot *s);

#endif
