/* What is known of a name, and when it is asked for again: the policy, without a clock, a server or a table. */
#ifndef THIMBLE_HEALTH_NAME_H
#define THIMBLE_HEALTH_NAME_H

#include <stdbool.h>
#include <stdint.h>
#include "lib/base/answer.h"

/* How long after a failure it is asked for again: at first, doubled each time, and at most. */
#define NAME_RETRY_FIRST_MS 1000
#define NAME_RETRY_LAST_MS 10000
/* A name is never asked for more than this much after its time to live. */
#define NAME_LATE_MS 250

struct name_policy {
	uint32_t ttl_min, ttl_max;	/* ms: bounds of what a time to live is taken for */
	uint32_t stale;			/* ms that what is known is used without being confirmed; 0: for ever */
	uint32_t most;			/* records of one type that are used */
	bool drop;			/* what is known is dropped when the name is gone, not kept */
};

enum name_result {
	NAME_GOOD,	/* it has records */
	NAME_MISSING,	/* it has none, for sure */
	NAME_FAILED,	/* nobody knows */
};

struct name_state {		/* all zero: never asked for */
	uint64_t good_ms;	/* when there were records last */
	uint32_t ttl;		/* seconds: of those */
	uint8_t failures;	/* in a row, at most 255 */
	bool told;		/* at least one answer came */
	bool out;		/* the last one was not NAME_GOOD */
};

struct name_news {
	enum name_result result;
	bool changed;			/* what is known is not what it was */
	uint32_t unusable, left_out;	/* records that are not used: no endpoint can have them; beyond policy->most */
	const char *why;		/* static: of NAME_FAILED */
};

/* Takes what was found out, at `now_ms`, into `have`, which has as many parts: records in order, none twice, so that the same
 * records always are the same bytes.  `a` is moved.  A part that failed keeps what it had.  `srv`: of that type. */
struct name_news name_take(struct name_state *s, struct answer_part have[2], struct answer *a, bool srv,
			   const struct name_policy *p, uint64_t now_ms);

/* When it is to be asked for again, `random` being anything. */
uint64_t name_due(const struct name_state *s, const struct name_policy *p, uint64_t now_ms, uint32_t random);

/* Drops what is known when it is too old: true when there was something. */
bool name_expire(struct name_state *s, struct answer_part have[2], bool srv, const struct name_policy *p, uint64_t now_ms);

/* Whether an endpoint may have this address: not 0.0.0.0/8, multicast, reserved, link-local of IPv6 (whose interface nobody names), or
 * IPv4 in the clothes of IPv6. */
bool name_usable(const uint8_t ip[16], bool ip6);

/* The group of SRV records that begins at `i`, which are those of one priority, the lowest first: how many. */
uint32_t name_group(const struct answer_part *srv, uint32_t i);

#endif
