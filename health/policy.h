/* By which rules the health of endpoints is judged: how they are checked, and what puts them out.  Equal rules are one
 * object with one number, for as long as the process lives; the number is part of an endpoint's identity, so a verdict
 * belongs to an endpoint and to the rules that it was made by. */
#ifndef THIMBLE_HEALTH_POLICY_H
#define THIMBLE_HEALTH_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "health/eject.h"
#include "lib/base/err.h"
#include "lib/base/str.h"

enum check_kind {
	CHECK_NONE,
	CHECK_TCP,	/* it can be connected to; and a handshake, where the service has TLS */
	CHECK_HTTP,	/* it answers a request as it should; through TLS, where the service has it */
};

struct check_status {
	uint16_t from, to;
};

#define CHECK_STATUSES 8	/* ranges of them, at most */

struct check_rules {
	uint8_t kind;		/* enum check_kind */
	uint8_t rise, fall;	/* checks in a row that change the verdict; at least 1 */
	uint16_t port;		/* 0: the endpoint's own */
	uint32_t interval, timeout;	/* ms */
	struct check_status status[CHECK_STATUSES];	/* that are good; the rest is zero */
	struct str host;	/* of the request; "": the endpoint's address */
	struct str request;	/* CHECK_HTTP: method, a space, the target */
	struct str fields;	/* more lines of the head, each ended by CR LF */
};

struct health_policy {
	struct eject_rules eject;
	struct check_rules check;
};

struct health_policies {
	struct health_policy **at;	/* owned, with its texts; [0] is the usual one */
	uint32_t n;
};

/* With `usual` as number 0.  ERR_MEM. */
MUST_USE enum err health_policies_init(struct health_policies *t, const struct health_policy *usual);
void health_policies_fini(struct health_policies *t);
/* The number of `p`, whose texts are copied.  ERR_MEM; ERR_LIMIT: 65535 others are there. */
MUST_USE enum err health_policies_number(struct health_policies *t, const struct health_policy *p, uint16_t *number);

bool check_status_good(const struct check_rules *r, unsigned status);

/* ms: when the next check comes behind one of `due`: an interval later, a twentieth earlier or later by `random` (of all 32
 * bits), so that processes do not fall into step, at the nearest tick. */
uint32_t check_after(const struct check_rules *r, uint32_t due, uint32_t random);

/* What checks have told of an endpoint so far; all zero: nothing, it is well until told otherwise. */
struct rise {
	uint8_t streak;		/* checks in a row that speak against the verdict */
	bool unwell;
};

/* A check went well, or not; true: that has changed the verdict. */
bool rise_note(struct rise *s, const struct check_rules *r, bool good);

#endif
