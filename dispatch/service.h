/* Services: what a route points to.  One object never changes after it was made;
 * generations share it as long as its specification is the same. */
#ifndef THIMBLE_DISPATCH_SERVICE_H
#define THIMBLE_DISPATCH_SERVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "dispatch/endpoint.h"
#include "dispatch/error.h"
#include "lib/base/err.h"
#include "lib/base/str.h"

/* What Host the upstream sees. */
enum service_host {
	SERVICE_HOST_KEEP,	/* what the client sent */
	SERVICE_HOST_ENDPOINT,	/* the endpoint's text */
	SERVICE_HOST_LITERAL,	/* spec.host_literal */
};

/* The PROXY protocol header that a connection to it begins with. */
enum service_proxy { SERVICE_PROXY_OFF, SERVICE_PROXY_V1, SERVICE_PROXY_V2 };

struct service_endpoint_spec {
	struct endpoint_address address;
	uint16_t weight;	/* at least 1 */
};

struct service_spec {		/* everything in it is borrowed */
	struct str name;
	uint8_t host;		/* enum service_host */
	struct str host_literal;
	uint32_t max_connections;	/* per endpoint and worker; 0: no limit */
	const struct service_endpoint_spec *endpoints;
	uint32_t n_endpoints;
	uint8_t proxy;		/* enum service_proxy */
};

struct service_endpoint {
	struct endpoint *endpoint;	/* owned reference */
	uint16_t weight;		/* all are treated as equal today */
};

struct service {
	_Atomic uint32_t refs;
	uint32_t index;			/* small and unique among those alive, for a worker's cursors */
	uint32_t max_connections;	/* per endpoint and worker; 0: no limit */
	uint16_t host_len;
	uint8_t host;			/* enum service_host */
	uint8_t proxy;			/* enum service_proxy */
	uint32_t name_len;
	uint32_t n_endpoints;
	struct endpoint_table *table;	/* borrowed */
	const char *text;		/* the name, then the host literal, in this block */
	struct service_endpoint endpoint[];
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

static inline struct str service_name(const struct service *s)
{
	return (struct str){s->text, s->name_len};
}

/* The Host to send, when `host` is SERVICE_HOST_LITERAL. */
static inline struct str service_host_literal(const struct service *s)
{
	return (struct str){s->text + s->name_len, s->host_len};
}

#endif
