/* Endpoints by name: what the configuration says by a name instead of an address is asked for, and asked for again, and
 * services consist of what comes back.  The main thread's own; there is none of it when no service has a name. */
#ifndef THIMBLE_PROXY_NAMES_H
#define THIMBLE_PROXY_NAMES_H

#include <stdint.h>
#include "lib/base/err.h"

struct conf;
struct endpoint_table;
struct names;
struct server;
struct snapshot;
struct tls;

/* What `c` names, for the services of `s`, which was made of it: *to, moved to the caller, is NULL when that is nothing.
 * Asks for nothing yet.  Keeps nothing of `c`.  ERR_MEM. */
MUST_USE enum err names_new(const struct conf *c, const struct tls *tls, struct snapshot *s, struct endpoint_table *endpoints,
			    struct names **to);
/* Before the snapshot and the table of endpoints go, and the loop.  NULL is accepted. */
void names_free(struct names *n);

/* From now on names are asked for, with the loop of `server`, and what they stand for is published by its grace.  ERR_MEM. */
MUST_USE enum err names_start(struct names *n, struct server *server);
/* The loop had an event for `n`. */
void names_event(struct names *n);
/* What is due.  In how many ms something may be; -1: never (`n` is NULL). */
int64_t names_tend(struct names *n, uint64_t now_ms);

struct names_counts {
	uint64_t asked, failed;		/* questions to name servers; those without a usable answer */
	uint64_t changes;		/* services that were given other endpoints */
};

/* All zero when `n` is NULL. */
struct names_counts names_counts(const struct names *n);

#endif
