/* wheel: see wheel.h.  Owns nothing. */
#include "health/wheel.h"

#include <string.h>

#define TICKS ((UINT32_MAX / WHEEL_TICK) + 1)	/* of the clock, which begins anew then */

static uint32_t tick_of(uint32_t ms)
{
	return ms / WHEEL_TICK;
}

void wheel_init(struct wheel *w, uint32_t now)
{
	memset(w, 0, sizeof *w);
	w->tick = tick_of(now);
}

void wheel_add(struct wheel *w, struct wheel_item *i, uint32_t due)
{
	uint32_t tick = tick_of(due + WHEEL_TICK - 1), at;

	if ((int32_t)(due - w->tick * WHEEL_TICK) < 0)
		tick = w->tick;
	at = tick % WHEEL_SLOTS;
	i->due = due;
	i->next = w->slot[at];
	w->slot[at] = i;
	w->used[at / 64] |= UINT64_C(1) << at % 64;
	w->n++;
}

/* Takes what is due out of one slot. */
static void slot_due(struct wheel *w, uint32_t at, uint32_t now, struct wheel_item **to)
{
	struct wheel_item **p = &w->slot[at], *i;

	while ((i = *p)) {
		if ((int32_t)(now - i->due) < 0) {
			p = &i->next;
			continue;
		}
		*p = i->next;
		i->next = *to;
		*to = i;
		w->n--;
	}
	if (!w->slot[at])
		w->used[at / 64] &= ~(UINT64_C(1) << at % 64);
}

struct wheel_item *wheel_due(struct wheel *w, uint32_t now)
{
	struct wheel_item *due = NULL;
	uint32_t n = (tick_of(now) + 1 - w->tick) % TICKS;	/* to be looked at */

	if (n > TICKS / 2)	/* it was looked at already */
		return NULL;
	for (uint32_t i = 0; w->n && i < n && i < WHEEL_SLOTS; i++)
		if (w->slot[(w->tick + i) % WHEEL_SLOTS])
			slot_due(w, (w->tick + i) % WHEEL_SLOTS, now, &due);
	w->tick = (w->tick + n) % TICKS;
	return due;
}

int64_t wheel_wait(const struct wheel *w, uint32_t now)
{
	if (!w->n)
		return -1;
	for (uint32_t i = 0; i < WHEEL_SLOTS; i++) {
		uint32_t at = (w->tick + i) % WHEEL_SLOTS;

		if (w->used[at / 64] >> at % 64 & 1) {
			int32_t wait = (int32_t)((w->tick + i) * WHEEL_TICK - now);

			return wait > 0 ? wait : 0;
		}
	}
	return WHEEL_TICK;	/* not reached: n counts what is in the slots */
}

struct wheel_item *wheel_empty(struct wheel *w)
{
	struct wheel_item *all = NULL, *i;

	for (uint32_t at = 0; at < WHEEL_SLOTS; at++)
		while ((i = w->slot[at])) {
			w->slot[at] = i->next;
			i->next = all;
			all = i;
		}
	w->n = 0;
	memset(w->used, 0, sizeof w->used);
	return all;
}
