/* The rules of a service: all that its configuration says but its name and endpoints.
 * Services with equal rules share one object, so that thousands of them cost no more than one. */
#ifndef THIMBLE_DISPATCH_RULES_H
#define THIMBLE_DISPATCH_RULES_H

#include <stdbool.h>
#include <stdint.h>
#include "dispatch/error.h"
#include "lib/base/err.h"
#include "lib/base/hash.h"
#include "lib/base/str.h"

/* What Host the upstream sees. */
enum service_host {
	SERVICE_HOST_KEEP,	/* what the client sent */
	SERVICE_HOST_ENDPOINT,	/* the endpoint's text */
	SERVICE_HOST_LITERAL,	/* rules.host_literal */
};

/* The PROXY protocol header that a connection to it begins with. */
enum service_proxy { SERVICE_PROXY_OFF, SERVICE_PROXY_V1, SERVICE_PROXY_V2 };

/* Who gets the next request: balance.h. */
enum balance_kind { BALANCE_LEAST, BALANCE_ROUND_ROBIN, BALANCE_HASH, BALANCE_STICKY };
/* What BALANCE_HASH goes by. */
enum balance_by { BALANCE_BY_ADDRESS, BALANCE_BY_HEADER, BALANCE_BY_COOKIE, BALANCE_BY_QUERY, BALANCE_BY_PATH };
enum same_site { SAME_SITE_LAX, SAME_SITE_STRICT, SAME_SITE_NONE };

/* All zero is a service that asks for nothing.  Whoever adds a member adds it to rules_same in rules.c;
 * a `struct str` also to the texts there. */
struct rules {
	uint32_t max_connections;	/* to an endpoint, of all workers; 0: no limit */
	uint32_t max_requests;		/* at an endpoint, of all workers; 0: no limit */
	uint8_t host;			/* enum service_host */
	uint8_t proxy;			/* enum service_proxy */
	uint8_t balance;		/* enum balance_kind */
	uint8_t by;			/* enum balance_by */
	uint16_t bound;			/* of BALANCE_HASH: percent of the mean that one may have in flight; 0: any */
	uint16_t health;		/* of its endpoints' addresses */
	bool server_errors;		/* answers of 500 and above speak against an endpoint */
	uint8_t same_site;		/* enum same_site, of the sticky cookie */
	uint32_t ttl_s;			/* of the sticky cookie; 0: as long as the browser runs */
	struct hash_key sticky_key;	/* under which its values are made */
	struct str host_literal;	/* "" unless SERVICE_HOST_LITERAL */
	struct str by_name;		/* of the header, cookie or parameter, or of the sticky cookie */
	uint16_t retry_floor;		/* retries a second, whatever the requests are */
	uint32_t retry_ratio;		/* and so many of RETRY_RATIO_ALL requests (dispatch/retry.h) */
};

/* Whether requests may have to wait for a slot. */
static inline bool rules_limit(const struct rules *r)
{
	return r->max_connections | r->max_requests;
}

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
