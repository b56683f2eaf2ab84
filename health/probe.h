/* Active checks: each on a connection of its own, which is reset when the answer is there, so that neither side keeps a
 * TIME_WAIT of it.
 *
 * There is no event for a check.  It is looked at when a tick of the wheel has passed, most have an answer then, and again
 * after twice the time: a wake-up for every answer would cost as much as the check itself. */
#ifndef THIMBLE_HEALTH_PROBE_H
#define THIMBLE_HEALTH_PROBE_H

#include <stdbool.h>
#include <stdint.h>
#include "dispatch/endpoint.h"
#include "health/policy.h"
#include "lib/base/err.h"

#define PROBES_MAX 2048		/* under way at one time */
#define PROBES_TLS_MAX 64	/* of them with TLS, whose handshakes take some 70 KB each */
#define PROBE_HEAD_MAX 8192	/* bytes of an answer's head; its body is not read */

struct ssl_st;	/* OpenSSL's SSL */

struct probe_ops {
	/* A descriptor for a check; false: there is none to spare. */
	bool (*take)(void *ctx);
	void (*give)(void *ctx);
	/* An SSL object for a connection to `e`, which has TLS. */
	enum err (*tls)(void *ctx, const struct endpoint *e, struct ssl_st **ssl);
	/* A check has ended, by itself or since its time is over; `why` it is not good, lent. */
	void (*done)(void *ctx, void *who, bool good, const char *why);
};

struct prober;

/* All borrowed: `ops`, and `ctx`, which they get.  NULL: no memory. */
struct prober *prober_new(const struct probe_ops *ops, void *ctx, uint32_t now) MUST_USE;
/* Checks that are under way end, without ops->done.  NULL is accepted. */
void prober_free(struct prober *p);

/* Checks `e` (borrowed until it is done) by `r` (the same) for `who`.  ERR_LIMIT: not now.  It may be done before this returns. */
MUST_USE enum err prober_begin(struct prober *p, const struct endpoint *e, const struct check_rules *r, void *who, uint32_t now);

/* Looks at those that it is time for. */
void prober_tend(struct prober *p, uint32_t now);
/* In how many ms that will be; -1: none is under way. */
int64_t prober_wait(const struct prober *p, uint32_t now);

#endif
