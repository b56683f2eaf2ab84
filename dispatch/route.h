/* Routes: what is done with a request that matched.  A route never changes after
 * it was made; an exchange holds a reference for as long as it lives. */
#ifndef THIMBLE_DISPATCH_ROUTE_H
#define THIMBLE_DISPATCH_ROUTE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "dispatch/error.h"
#include "dispatch/policy.h"
#include "dispatch/service.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/str.h"

enum route_action {
	ROUTE_INVALID,	/* names a service that does not exist: answer 500 */
	ROUTE_SERVICE,	/* forward to spec.service */
	ROUTE_SPLIT,	/* forward to one of spec.backends: route_next_backend */
	ROUTE_REDIRECT,	/* status with Location: route_redirect_location */
	ROUTE_ANSWER,	/* status with spec.text as the body */
};

enum route_rewrite {
	REWRITE_NONE,
	REWRITE_STRIP,		/* rewrite_from goes */
	REWRITE_REPLACE,	/* rewrite_to comes instead of it */
	REWRITE_PATH,		/* rewrite_to comes instead of the whole path */
};

/* What becomes of a path that origins may read otherwise than we do (lib/base/path.h). */
enum route_odd_paths { ODD_PATHS_PASS, ODD_PATHS_REFUSE, ODD_PATHS_REDIRECT };

struct route_backend {
	struct service *service;	/* as spec.service; NULL: its share is answered with 500 */
	uint32_t weight;		/* its share is that of the sum of all; 0: none */
};

enum header_op {
	HEADER_SET, HEADER_ADD, HEADER_REMOVE,
	HEADER_SET_SECURE,	/* for clients that speak TLS alone */
	HEADER_VARY,	/* names `value` in Vary; not for a route's own list */
};

struct header_mod {
	uint8_t op;		/* enum header_op */
	struct str name;
	struct str value;	/* empty for HEADER_REMOVE */
};

struct route_spec {
	uint8_t action;		/* enum route_action */
	uint8_t rewrite;	/* enum route_rewrite */
	uint8_t odd_paths;	/* enum route_odd_paths */
	uint16_t status;	/* of a redirect or an answer */
	uint16_t n_request, n_response;
	uint32_t n_backends;
	struct service *service;	/* ROUTE_SERVICE only: borrowed */
	const struct route_backend *backends;	/* ROUTE_SPLIT only; the sum of weights is in 32 bits */
	struct policy *policy;		/* NULL: none; borrowed in a spec, an owned reference in a route */
	struct str label;		/* for logs; at most 64 KiB */
	struct str text;		/* ROUTE_REDIRECT: template of the Location; ROUTE_ANSWER: body */
	struct str content_type;	/* ROUTE_ANSWER; may be empty */
	struct str rewrite_from;	/* path prefix that is taken off, on a segment border */
	struct str rewrite_to;		/* REWRITE_REPLACE, REWRITE_PATH: what comes instead */
	struct str host;		/* the Host that endpoints see; empty: as the service says */
	const struct header_mod *request;	/* to the request's fields, in order */
	const struct header_mod *response;	/* to the answer's fields, in order */
	uint64_t body_limit;		/* bytes of a request body; UINT64_MAX: none */
	uint32_t first_byte_ms;		/* request sent until the answer's head; 0: no limit, as below */
	uint32_t try_ms;		/* the same of one try, never longer */
	uint32_t between_bytes_ms;	/* silence within a body */
	uint32_t tunnel_ms;		/* silence of a tunnel */
};

/* What a route has of its own.  The rest is one object for all that do the same: thousands of routes differ in whom they
 * lead to alone. */
struct route {
	_Atomic uint32_t refs;
	_Atomic uint32_t turn;		/* of ROUTE_SPLIT: requests so far */
	uint64_t hash;			/* of the specification */
	const struct route_spec *spec;	/* shared, owned reference; its service is NULL and its label empty */
	struct service *service;	/* of ROUTE_SERVICE: owned reference */
	uint16_t label_len;
	char label[];
};

static inline struct str route_label(const struct route *r)
{
	return (struct str){r->label, r->label_len};
}

/* A route with one reference, moved to the caller; NULL when refused, and `err`
 * (may be NULL) says why.  When it does the same as `like` (may be NULL), they share that.  Takes references of spec->service and spec->policy; else nothing of
 * `spec` is kept.  `hash` is route_spec_hash of it. */
struct route *route_new(const struct route_spec *spec, uint64_t hash, const struct route *like, struct snapshot_error *err) MUST_USE;
uint64_t route_spec_hash(const struct route_spec *spec);
/* The same for all that could share what they do. */
uint64_t route_shape_hash(const struct route_spec *spec);
/* Whether `r` is what route_new would make of `spec`. */
bool route_is(const struct route *r, const struct route_spec *spec);

/* Of ROUTE_SPLIT: the service for the next request, borrowed; NULL: answer 500.  Any thread.  Over any run of requests
 * the shares differ from the weights by a few requests, not by chance. */
struct service *route_next_backend(const struct route *r);

/* A route is shared as const: only its count changes. */
const struct route *route_ref(const struct route *r);
/* NULL is accepted.  Any thread. */
void route_unref(const struct route *r);

/* The request-target for the upstream: `target` (origin form) with the prefix of
 * the rewrite taken off or replaced, or another path.  The rest, with the query, is byte for byte as
 * it came; the result begins with '/'.  `*out` is `target` itself when nothing
 * changes ("*", another prefix), else made in `a`.  ERR_MEM. */
MUST_USE enum err route_rewrite_target(const struct route *r, struct str target, struct arena *a, struct str *out);

/* The Location of a redirect, made in `a`: the marks of its template (dispatch/text.h) become what they say of
 * a request that came by `scheme`, "http" or "https", for `authority`.  {path} is `target` as it came, unless the
 * route has a rewrite.
 * ERR_SYNTAX when they hold what must not get into a Location (control bytes,
 * spaces, a host that is none): answer 400.  A path that begins with "//" never
 * makes the result scheme-relative: "/." is put before it, which a client resolves
 * to the same path on the same host. */
MUST_USE enum err route_redirect_location(const struct route *r, struct str scheme, struct str authority,
					  struct str target, struct arena *a, struct str *out);

#endif
