/* Retries: when a request may be sent again, and how many may be.
 *
 * What is decided here is about one request whose last try has ended without an answer that the client got.  Numbers
 * come in as arguments: no clock, no die. */
#ifndef THIMBLE_DISPATCH_RETRY_H
#define THIMBLE_DISPATCH_RETRY_H

#include <stdatomic.h>
#include "dispatch/policy.h"
#include "lib/base/str.h"

#define RETRY_ATTEMPTS_MAX 10
#define RETRY_STATUSES 16
#define RETRY_RATIO_ALL 1000000u

/* How a try ended. */
enum retry_event {
	RETRY_CONNECT,	/* there was no connection: refused, unreachable, not in time, no TLS */
	RETRY_RESET,	/* it ended before the head of an answer was whole */
	RETRY_TIMEOUT,	/* no answer in time */
	RETRY_STATUS,	/* by an answer whose status asks for it */
	RETRY_EVENTS
};

struct retry_policy {
	uint8_t attempts;		/* further tries, at most RETRY_ATTEMPTS_MAX; 0: none at all */
	uint8_t on;			/* bits 1 << enum retry_event */
	bool same;			/* an endpoint may be asked twice, when there is no other */
	uint8_t n_statuses;
	uint16_t methods;		/* bits, by the caller's numbers: may be done twice */
	uint16_t status[RETRY_STATUSES];
	uint32_t base_ms, max_ms;	/* pause before a further try: the first, doubled for each, and the longest */
};

/* Why there is no further try, in logs and counters. */
#define RETRY_WHYS(W) \
	W(NONE, "")			/* there is one */ \
	W(OFF, "off")			/* nobody asked for it: what happened is not in `on`, or `retry` is off */ \
	W(ATTEMPTS, "attempts")		/* all are used */ \
	W(PASSED, "passed")		/* the client has got something of an answer */ \
	W(METHOD, "method")		/* it was sent, and may not be done twice */ \
	W(BODY, "body")			/* what was sent of its body is not here any more */ \
	W(ENDPOINTS, "endpoints")	/* there is no other endpoint */ \
	W(LATER, "retry_after")		/* the endpoint asks to wait longer than we do */ \
	W(TIME, "time")			/* all that the request may take is over */ \
	W(SIZE, "size")			/* the answer is too large to be kept while another is asked for */ \
	W(BUDGET, "budget")		/* the service has had its share of retries */ \
	W(MEMORY, "memory")

enum retry_why {
#define W(name, token) RETRY_WHY_##name,
	RETRY_WHYS(W)
#undef W
	RETRY_WHY_N
};

/* The word for logs, "" for RETRY_WHY_NONE. */
struct str retry_why_token(enum retry_why why);

struct retry_case {
	uint8_t event;		/* enum retry_event */
	uint8_t method;		/* the caller's number */
	uint8_t tries;		/* further ones so far */
	bool sent;		/* something of the request went to the endpoint */
	bool kept;		/* all that went there is still here */
	bool passed;		/* something of the answer went to the client */
	bool stale;		/* it was a kept connection that ended without an answer, for the first time */
	bool untried;		/* there is an endpoint that was not asked yet */
	uint16_t status;	/* of RETRY_STATUS */
	uint32_t after_ms;	/* what the answer asks to wait (Retry-After); 0: nothing */
	uint32_t left_ms;	/* of the time that all tries have; UINT32_MAX: no limit */
	uint32_t random;	/* any number */
};

struct retry_plan {
	uint32_t wait_ms;	/* before the next try; 0: at once */
	bool charged;		/* it is one for the budget */
};

/* RETRY_WHY_NONE, and *plan says how; or why not. */
enum retry_why retry_judge(const struct retry_policy *p, const struct retry_case *c, struct retry_plan *plan);

/* Whether the policy asks for answers of that status to be replaced by others. */
bool retry_on_status(const struct retry_policy *p, unsigned status);

/* Milliseconds of the value of a Retry-After; UINT32_MAX for a date, or for longer than that; 0 when it is neither. */
uint32_t retry_after_ms(struct str value);

/* --- the part of a route's policy --- */

struct retry {
	struct policy_part part;
	struct retry_policy policy;
};

/* With one reference; NULL when there is no memory. */
struct policy_part *retry_new(const struct retry_policy *p) MUST_USE;

/* --- the budget of a service --- */

/* A worker's share of it: so much for each request that it sends there, kept for RETRY_WINDOW_MS.  All zero is a new one,
 * but for at_ms. */
#define RETRY_WINDOW_MS 10000u
struct retry_share {
	uint64_t left;		/* millionths of retries */
	uint32_t seen;		/* requests that were counted in */
	uint32_t at_ms;		/* when */
};

/* Takes one retry out of it, if there is one: `asked` requests were sent in all (modulo 2^32), each good for `ratio` millionths. */
bool retry_share_take(struct retry_share *s, uint32_t asked, uint32_t ratio, uint32_t now_ms) MUST_USE;

/* Takes one of those that a service has whatever its requests are, `per_second` at most; *word is shared by all workers, and
 * begins with any value. */
bool retry_floor_take(_Atomic uint32_t *word, uint32_t per_second, uint64_t now_us) MUST_USE;

#endif
