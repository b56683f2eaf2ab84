/* Passive health: from what requests met at an endpoint to whether it is left out for a while.  Pure: events and
 * times come in, a decision goes out. */
#ifndef THIMBLE_HEALTH_EJECT_H
#define THIMBLE_HEALTH_EJECT_H

#include <stdbool.h>
#include <stdint.h>

struct eject_rules {
	bool on;
	uint8_t max_share;	/* of a service's endpoints that may be out at one time, per cent */
	uint8_t panic;		/* per cent: when fewer are well, all are used; 0: when none is */
	uint16_t failures;	/* so many in a row; 0: they do not count */
	uint16_t ratio;		/* or so many of a hundred; 0: they do not count */
	uint32_t volume;	/* of at least so many requests */
	uint32_t interval;	/* ms: in that time */
	uint32_t time, max_time;	/* ms: out for `time`, twice that the next time, ... at most `max_time` */
};

struct eject {		/* what is known of an endpoint; all zero: nothing */
	uint32_t ok, failed;	/* in the interval that began at: */
	uint32_t since;		/* ms */
	uint32_t until;		/* ms: when it comes or came back */
	uint16_t run;		/* failures in a row */
	uint8_t times;		/* it was out, less what time has healed */
	bool out;
};

enum eject_said {
	EJECT_NO,
	EJECT_RUN,	/* it is to be left out: so many in a row failed */
	EJECT_RATIO,	/* ... or too large a part */
};

/* Requests went well or failed since the last time, the last `run` of them failed in a row (all, when none went well).
 * What is out already is not judged again: these are requests that it had before. */
enum eject_said eject_note(struct eject *e, const struct eject_rules *r, uint32_t ok, uint32_t failed, uint32_t run, uint32_t now);

/* It is left out from now on; for how many ms, until e->until. */
uint32_t eject_out(struct eject *e, const struct eject_rules *r, uint32_t now);

/* It is back, on probation: the next failure puts it out again, and for longer, unless something went well before. */
void eject_back(struct eject *e, const struct eject_rules *r, uint32_t now);

/* Whether `n` endpoints, of which `out` are not used, can spare another one: as many as max_share says, but at least one, and
 * never the last. */
bool eject_spares(const struct eject_rules *r, uint32_t n, uint32_t out);

/* What goes well there matters. */
bool eject_watches(const struct eject *e, const struct eject_rules *r);

/* Nothing of it matters any more. */
bool eject_calm(const struct eject *e, const struct eject_rules *r, uint32_t now);

#endif
