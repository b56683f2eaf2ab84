/* Door: retries.  Owns nothing but the parts that it makes.  Asked by proxy when a try has ended,
 * which does what is decided here.  Rules of RFC 9110 9.2.2 are here and nowhere else. */
#include "dispatch/retry.h"

#include <string.h>
#include "lib/base/mem.h"

struct str retry_why_token(enum retry_why why)
{
	static const struct str tokens[RETRY_WHY_N] = {
#define W(name, token) [RETRY_WHY_##name] = { token, sizeof token - 1 },
		RETRY_WHYS(W)
#undef W
	};

	return tokens[why];
}

bool retry_on_status(const struct retry_policy *p, unsigned status)
{
	for (unsigned i = 0; i < p->n_statuses; i++)
		if (p->status[i] == status)
			return true;
	return false;
}

/* Half of what is due, and a random part of the other half: requests that failed together do not come back together. */
static uint32_t pause_of(const struct retry_policy *p, const struct retry_case *c)
{
	uint64_t ms = (uint64_t)p->base_ms << c->tries;

	if (ms > p->max_ms)
		ms = p->max_ms;
	return (uint32_t)(ms - (ms / 2 * (c->random & 0xffff) >> 16));
}

static bool asked_for(const struct retry_policy *p, const struct retry_case *c)
{
	if (!p->attempts || !(p->on >> c->event & 1))
		return false;
	return c->event != RETRY_STATUS || retry_on_status(p, c->status);
}

/* Nothing was sent, or it does no harm to send it twice, and it is all here. */
static enum retry_why safe(const struct retry_policy *p, const struct retry_case *c)
{
	if (c->passed)
		return RETRY_WHY_PASSED;
	if (c->sent && !(p->methods >> c->method & 1))
		return RETRY_WHY_METHOD;
	return c->sent && !c->kept ? RETRY_WHY_BODY : RETRY_WHY_NONE;
}

enum retry_why retry_judge(const struct retry_policy *p, const struct retry_case *c, struct retry_plan *plan)
{
	enum retry_why why = asked_for(p, c) ? safe(p, c) : RETRY_WHY_OFF;
	bool again = !c->untried && !c->stale;	/* the same endpoint, which has not just closed an old connection */
	uint32_t wait = 0;

	if (why != RETRY_WHY_NONE)
		return why;
	if (c->tries >= p->attempts)
		return RETRY_WHY_ATTEMPTS;
	if (again && !p->same)
		return RETRY_WHY_ENDPOINTS;
	if (again || c->event == RETRY_STATUS || c->event == RETRY_TIMEOUT)
		wait = pause_of(p, c);
	if (again && c->after_ms > wait) {
		if (c->after_ms > p->max_ms)
			return RETRY_WHY_LATER;
		wait = c->after_ms;
	}
	if (wait >= c->left_ms)
		return RETRY_WHY_TIME;
	plan->wait_ms = wait;
	/* A kept connection can end in vain only once, so that those retries cannot become a storm. */
	plan->charged = c->sent && c->event != RETRY_CONNECT && !c->stale;
	return RETRY_WHY_NONE;
}

uint32_t retry_after_ms(struct str value)
{
	uint64_t s = 0;

	for (size_t i = 0; i < value.n; i++) {
		if (value.p[i] < '0' || value.p[i] > '9')
			return i ? 0 : UINT32_MAX;	/* a date begins with a day's name */
		s = s * 10 + (uint64_t)(value.p[i] - '0');
		if (s > UINT32_MAX / 1000)
			return UINT32_MAX;
	}
	return (uint32_t)(s * 1000);
}

/* --- the part --- */

static bool policies_same(const struct retry_policy *a, const struct retry_policy *b)
{
	return a->attempts == b->attempts && a->on == b->on && a->same == b->same && a->n_statuses == b->n_statuses &&
	       a->methods == b->methods && a->base_ms == b->base_ms && a->max_ms == b->max_ms &&
	       memcmp(a->status, b->status, a->n_statuses * sizeof a->status[0]) == 0;
}

static bool retry_same(const struct policy_part *a, const struct policy_part *b)
{
	return policies_same(&((const struct retry *)a)->policy, &((const struct retry *)b)->policy);
}

static void retry_free(struct policy_part *p)
{
	mem_free(p);
}

static const struct policy_kind retry_kind = {.same = retry_same, .free = retry_free};

struct policy_part *retry_new(const struct retry_policy *p)
{
	struct retry *r = mem_alloc(sizeof *r);

	if (!r)
		return NULL;
	policy_part_init(&r->part, &retry_kind);
	r->policy = *p;
	return &r->part;
}

/* --- the budget --- */

/* Of requests that came evenly since the last look, those within the window count; what was left fades at the same pace. */
bool retry_share_take(struct retry_share *s, uint32_t asked, uint32_t ratio, uint32_t now_ms)
{
	uint64_t more = (uint64_t)(uint32_t)(asked - s->seen) * ratio;
	uint32_t passed = now_ms - s->at_ms;

	if (passed >= RETRY_WINDOW_MS) {
		more = (uint64_t)((double)more * RETRY_WINDOW_MS / passed);
		s->left = 0;
	} else {
		s->left -= (uint64_t)((double)s->left * passed / RETRY_WINDOW_MS);
	}
	s->left += more;
	s->seen = asked;
	s->at_ms = now_ms;
	if (s->left < RETRY_RATIO_ALL)
		return false;
	s->left -= RETRY_RATIO_ALL;
	return true;
}

#define TICK_US 64u		/* 32 bits of them are three days */
#define TICKS (1000000u / TICK_US)	/* in a second */

/* The word is the time, in ticks, when all of a second's retries are there again.  What is further away than
 * that is an old word, of a time long ago. */
bool retry_floor_take(_Atomic uint32_t *word, uint32_t per_second, uint64_t now_us)
{
	uint32_t now = (uint32_t)(now_us / TICK_US), old = atomic_load_explicit(word, memory_order_relaxed), missing, step;

	if (!per_second)
		return false;
	step = TICKS / per_second;
	do {
		missing = old - now;
		if (missing > TICKS)
			missing = 0;
		if (missing + step > TICKS)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(word, &old, now + missing + step, memory_order_relaxed,
							memory_order_relaxed));
	return true;
}
