/* eject: see eject.h.
 *
 * Damping: each time out is longer than the one before by `time`, and every `time` that passes while it is back
 * takes one off again.  So an endpoint that flaps is out for most of the time, and one that failed once a day is not. */
#include "health/eject.h"

#define TIMES_MAX 255

static uint32_t add(uint32_t a, uint32_t b)
{
	return a + b < a ? UINT32_MAX : a + b;
}

static void forget_counts(struct eject *e, uint32_t now)
{
	e->ok = e->failed = 0;
	e->since = now;
}

enum eject_said eject_note(struct eject *e, const struct eject_rules *r, uint32_t ok, uint32_t failed, uint32_t run, uint32_t now)
{
	if (!r->on || e->out)
		return EJECT_NO;
	if (now - e->since >= r->interval || (!e->ok && !e->failed))
		forget_counts(e, now);
	e->ok = add(e->ok, ok);
	e->failed = add(e->failed, failed);
	run = ok ? run : add(e->run, failed);
	e->run = run > UINT16_MAX ? UINT16_MAX : (uint16_t)run;
	if (!failed)
		return EJECT_NO;
	if (r->failures && e->run >= r->failures)
		return EJECT_RUN;
	if (r->ratio && (uint64_t)e->ok + e->failed >= r->volume &&
	    (uint64_t)e->failed * 100 >= ((uint64_t)e->ok + e->failed) * r->ratio)
		return EJECT_RATIO;
	return EJECT_NO;
}

uint32_t eject_out(struct eject *e, const struct eject_rules *r, uint32_t now)
{
	uint32_t healed = e->times && !e->out ? (now - e->until) / r->time : 0;
	uint64_t time;

	e->times = healed < e->times ? (uint8_t)(e->times - healed) : 0;
	e->times = e->times < TIMES_MAX ? (uint8_t)(e->times + 1) : TIMES_MAX;
	time = (uint64_t)r->time * e->times;
	time = time > r->max_time ? r->max_time : time;
	e->out = true;
	e->until = now + (uint32_t)time;
	return (uint32_t)time;
}

void eject_back(struct eject *e, const struct eject_rules *r, uint32_t now)
{
	e->out = false;
	e->until = now;		/* it may be early */
	e->run = r->failures ? (uint16_t)(r->failures - 1) : 0;
	forget_counts(e, now);
}

bool eject_spares(const struct eject_rules *r, uint32_t n, uint32_t out)
{
	uint64_t most = (uint64_t)n * r->max_share / 100;

	if (most == 0 && r->max_share)
		most = 1;
	return out < most && out + 1 < n;
}

bool eject_watches(const struct eject *e, const struct eject_rules *r)
{
	return r->on && !e->out && ((r->failures && e->run) || (r->ratio && (e->ok || e->failed)));
}

bool eject_calm(const struct eject *e, const struct eject_rules *r, uint32_t now)
{
	return !e->out && now - e->since >= r->interval && (!e->times || (now - e->until) / r->time >= e->times);
}
