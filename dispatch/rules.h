/* The rules of a service: all that its configuration says but its name and endpoints.
 * Services with equal rules share one object, so that thousands of them cost no more than one. */
#ifndef THIMBLE_DISPATCH_RULES_H
#define THIMBLE_DISPATCH_RULES_H

#include <stdbool.h>
#include <stdint.h>
#include "dispatch/error.h"
#include "lib/base/err.h"
#include "lib/base/str.h"

/* What Host the upstream sees. */
enum service_host {
	SERVICE_HOST_KEEP,	/* what the client sent */
	SERVICE_HOST_ENDPOINT,	/* the endpoint's text */
	SERVICE_HOST_LITERAL,	/* rules.host_literal */
};

/* The PROXY protocol header that a connection to it begins with. */
enum service_proxy { SERVICE_PROXY_OFF, SERVICE_PROXY_V1, SERVICE_PROXY_V2 };

/* All zero is a service that asks for nothing.  Whoever adds a member adds it to rules_same in rules.c;
 * a `struct str` also to the texts there. */
struct rules {
	uint32_t max_connections;	/* per endpoint and worker; 0: no limit */
	uint8_t host;			/* enum service_host */
	uint8_t proxy;			/* enum service_proxy */
	struct str host_literal;	/* "" unless SERVICE_HOST_LITERAL */
};

struct rules_table;

/* A table for the process; outlives all rules.  NULL: no memory.  Any thread may use it. */
struct rules_table *rules_table_new(void) MUST_USE;
/* CHECKs that no rules are alive; NULL is accepted. */
void rules_table_free(struct rules_table *t);

/* Whether they make sense; else why not, in `err` (may be NULL). */
MUST_USE enum err rules_check(const struct rules *r, struct snapshot_error *err);
/* The shared copy of `r` with one more reference, owned by the caller; NULL: no memory. */
const struct rules *rules_get(struct rules_table *t, const struct rules *r) MUST_USE;
/* NULL is accepted.  Any thread. */
void rules_unref(struct rules_table *t, const struct rules *r);
bool rules_same(const struct rules *a, const struct rules *b);

#endif
