/* A wheel of time for many things that come due: a place costs two words, a tick what is due in it.  One thread's own; time
 * is an argument. */
#ifndef THIMBLE_HEALTH_WHEEL_H
#define THIMBLE_HEALTH_WHEEL_H

#include <stdbool.h>
#include <stdint.h>

#define WHEEL_TICK 32	/* ms: what is due in one tick is due at its end */
#define WHEEL_SLOTS 512	/* what is due later goes round more than once */

struct wheel_item {	/* embedded */
	struct wheel_item *next;	/* borrowed */
	uint32_t due;			/* ms */
};

struct wheel {
	struct wheel_item *slot[WHEEL_SLOTS];	/* borrowed */
	uint64_t used[WHEEL_SLOTS / 64];	/* a bit for each that holds something */
	uint32_t tick;				/* the next to be looked at */
	uint32_t n;				/* items in it */
};

void wheel_init(struct wheel *w, uint32_t now);
/* `i` is in no wheel.  At `due`, or at once if that is over. */
void wheel_add(struct wheel *w, struct wheel_item *i, uint32_t due);
/* What is due at `now`, a list by ->next, which is in the wheel no more; NULL: nothing. */
struct wheel_item *wheel_due(struct wheel *w, uint32_t now);
/* In how many ms something may be due; -1: it is empty. */
int64_t wheel_wait(const struct wheel *w, uint32_t now);
/* All that is in it, for the end. */
struct wheel_item *wheel_empty(struct wheel *w);

#endif
