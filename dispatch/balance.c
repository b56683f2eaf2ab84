/* Door: the choice of an endpoint.  Owns a worker's random numbers and turns; reads sets, verdicts
 * and counts of requests in flight, which are others'.  Called once for each request, and again for another try.
 * The first look takes two endpoints (least), or one pass over the set that reads no endpoint (hash, weighted turns); only
 * when that finds what is down or was tried, all are looked at, and the choice is among the best of them. */
#include "dispatch/balance.h"

#include <math.h>
#include <string.h>
#include "dispatch/slot.h"
#include "lib/base/mem.h"

#define DRAWS 8		/* before all are looked at */
#define READY 0u	/* a class: ready, with a weight, whatever its verdict */

struct balance_turns {
	const struct endpoint_set *set;	/* borrowed, for telling it from others alone: it may be gone */
	uint64_t sum;			/* of its weights */
	uint32_t n;			/* in `now` */
	uint32_t at;			/* of equal weights: whose turn it is */
	int64_t now[];			/* else, of each: how much it is owed */
};

void balance_init(struct balance *b, uint64_t seed)
{
	*b = (struct balance){.random = seed};
}

void balance_forget(struct balance *b)
{
	for (uint32_t i = 0; i < b->n_turns; i++)
		mem_free(b->turns[i]);
	mem_free(b->turns);
	b->turns = NULL;
	b->n_turns = 0;
}

void balance_fini(struct balance *b)
{
	balance_forget(b);
}

/* Steps by the golden ratio, mixed: every seed gives another part of one sequence of 2^64. */
static uint64_t draw(struct balance *b)
{
	uint64_t x = b->random += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
	x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
	return x ^ x >> 32;
}

/* --- who is as good as whom --- */

static bool up(const struct endpoint_set *set, const struct endpoint *e)
{
	uint32_t down = atomic_load_explicit(&set->panic, memory_order_relaxed) ? VERDICT_AVOID : VERDICT_DOWN;

	return !(atomic_load_explicit(&e->verdict, memory_order_relaxed) & down);
}

static bool usable(const struct endpoint_set *set, const struct endpoint *e, const struct endpoint_tried *tried)
{
	return up(set, e) && !(tried && tried->n && endpoint_tried_has(tried, e));
}

/* 0: not for new requests; else the more the better. */
static unsigned score(const struct endpoint_set *set, const struct service_endpoint *e, const struct endpoint_tried *tried)
{
	unsigned well = up(set, e->endpoint), new = !(tried && tried->n && endpoint_tried_has(tried, e->endpoint));

	if (e->weight == 0 || e->state >= ENDPOINT_DRAIN)
		return 0;
	return 1 + (2 * well + new) * ENDPOINT_DRAIN + (ENDPOINT_DRAIN - 1 - e->state);
}

static bool member(const struct endpoint_set *set, const struct service_endpoint *e, unsigned class, const struct endpoint_tried *tried)
{
	return class == READY ? e->state == ENDPOINT_READY && e->weight : score(set, e, tried) == class;
}

static unsigned best_class(const struct endpoint_set *set, const struct endpoint_tried *tried)
{
	unsigned best = 0;

	for (uint32_t i = 0; i < set->n; i++) {
		unsigned one = score(set, &set->at[i], tried);

		if (one > best)
			best = one;
	}
	return best;
}

/* --- least: the better of two --- */

/* One of a class, by weight, but not `but`; set->n: there is none. */
static uint32_t draw_of_class(struct balance *b, const struct endpoint_set *set, unsigned class,
			      const struct endpoint_tried *tried, uint32_t but)
{
	uint64_t sum = 0, at;
	uint32_t i;

	for (i = 0; i < set->n; i++)
		if (i != but && member(set, &set->at[i], class, tried))
			sum += set->at[i].weight;
	if (sum == 0)
		return set->n;
	at = (draw(b) >> 32) * sum >> 32;
	for (i = 0; i < set->n; i++) {
		if (i == but || !member(set, &set->at[i], class, tried))
			continue;
		if (at < set->at[i].weight)
			break;
		at -= set->at[i].weight;
	}
	return i;
}

/* The same of READY, mostly without a look at all: any one, kept as often as its weight says. */
static uint32_t draw_ready(struct balance *b, const struct endpoint_set *set, uint32_t but)
{
	for (unsigned i = 0; i < DRAWS; i++) {
		uint64_t r = draw(b);
		uint32_t at = (uint32_t)((r & UINT32_MAX) * set->n >> 32);
		const struct service_endpoint *e = &set->at[at];

		if (at != but && e->state == ENDPOINT_READY && (r >> 48) >> (16 - set->bits) < e->weight)
			return at;
	}
	return draw_of_class(b, set, READY, NULL, but);
}

/* Whichever has less in flight for its weight; `a` when there is nothing between them. */
static struct endpoint *lesser(const struct service_endpoint *a, const struct service_endpoint *b)
{
	uint64_t of_a = slot_load(a->endpoint), of_b = slot_load(b->endpoint);

	return of_b * a->weight < of_a * b->weight ? b->endpoint : a->endpoint;
}

static struct endpoint *least_of_class(struct balance *b, const struct endpoint_set *set, unsigned class,
				       const struct endpoint_tried *tried)
{
	uint32_t one = draw_of_class(b, set, class, tried, set->n), two = draw_of_class(b, set, class, tried, one);

	return two < set->n ? lesser(&set->at[one], &set->at[two]) : set->at[one].endpoint;
}

static struct endpoint *least(struct balance *b, const struct endpoint_set *set, const struct endpoint_tried *tried)
{
	uint32_t one = set->n, two;
	unsigned class;

	/* two by chance in which weights count, of those that can be used */
	for (unsigned i = 0; set->bits && i < (set->n == 2 ? 2 : 2 * DRAWS); i++) {
		two = draw_ready(b, set, one);
		if (two == set->n)
			break;
		if (!usable(set, set->at[two].endpoint, tried))
			continue;
		if (one < set->n)
			return lesser(&set->at[one], &set->at[two]);
		one = two;
	}
	class = best_class(set, tried);
	return class ? least_of_class(b, set, class, tried) : NULL;
}

/* What most services are: some that are ready, and equal. */
static struct endpoint *least_of_equals(struct balance *b, const struct endpoint_set *set, const struct endpoint_tried *tried)
{
	uint32_t one, two;
	uint64_t r;

	if (set->n == 1)
		return set->at[0].endpoint;
	r = draw(b);
	one = (uint32_t)((r & UINT32_MAX) * set->n >> 32);
	two = (uint32_t)((r >> 32) * (set->n - 1) >> 32);
	two += two >= one;
	if (usable(set, set->at[one].endpoint, tried) && usable(set, set->at[two].endpoint, tried))
		return lesser(&set->at[one], &set->at[two]);
	return least(b, set, tried);
}

static struct endpoint *anyone(struct balance *b, const struct endpoint_set *set, const struct endpoint_tried *tried)
{
	return set->equal ? least_of_equals(b, set, tried) : least(b, set, tried);
}

/* --- turns --- */

static struct balance_turns *turns_new(struct balance *b, const struct endpoint_set *set)
{
	uint32_t n = set->equal ? 0 : set->n;
	struct balance_turns *t = mem_zalloc(sizeof(*t) + n * sizeof(t->now[0]));

	if (!t)
		return NULL;
	t->set = set;
	t->n = n;
	t->at = (uint32_t)((draw(b) >> 32) * set->n >> 32);
	for (uint32_t i = 0; i < n; i++)
		t->sum += set->at[i].weight;
	return t;
}

static bool turns_are_of(const struct balance_turns *t, const struct endpoint_set *set)
{
	uint64_t sum = 0;

	if (!t || t->set != set || t->n != (set->equal ? 0 : set->n))
		return false;
	/* another set may lie where the one before lay: what is owed must not be out of all proportion */
	for (uint32_t i = 0; i < t->n; i++)
		sum += set->at[i].weight;
	return sum == t->sum;
}

/* *fresh: they were made now.  NULL: no memory. */
static struct balance_turns *turns_of(struct balance *b, const struct service *s, const struct endpoint_set *set, bool *fresh)
{
	uint32_t n = b->n_turns ? b->n_turns : 8;
	struct balance_turns **grown;

	*fresh = false;
	if (s->index < b->n_turns && turns_are_of(b->turns[s->index], set))
		return b->turns[s->index];
	while (n <= s->index)
		n *= 2;
	if (n > b->n_turns) {
		grown = mem_realloc(b->turns, n * sizeof(*grown));
		if (!grown)
			return NULL;
		memset(grown + b->n_turns, 0, (n - b->n_turns) * sizeof(*grown));
		b->turns = grown;
		b->n_turns = n;
	}
	mem_free(b->turns[s->index]);
	*fresh = true;
	return b->turns[s->index] = turns_new(b, set);
}

static struct endpoint *turn_of_equals(struct balance_turns *t, const struct endpoint_set *set, const struct endpoint_tried *tried)
{
	const unsigned most = 1 + 4 * ENDPOINT_DRAIN - 1;
	uint32_t i, at, best = t->at;
	unsigned best_score = 0;

	for (i = 0; i < set->n && best_score < most; i++) {
		unsigned one;

		at = t->at + i < set->n ? t->at + i : t->at + i - set->n;
		one = score(set, &set->at[at], tried);
		if (one > best_score) {
			best_score = one;
			best = at;
		}
	}
	t->at = best + 1 < set->n ? best + 1 : 0;
	return set->at[best].endpoint;
}

/* Everybody in the class is owed its weight, and whoever is owed most gets all of it (smooth weighted round robin);
 * nobody is owed anything after as many turns as weights make in sum, whoever had the first. */
static void turn_take(struct balance_turns *t, const struct endpoint_set *set, unsigned class,
		      const struct endpoint_tried *tried, uint32_t who)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < set->n; i++) {
		if (!member(set, &set->at[i], class, tried))
			continue;
		t->now[i] += set->at[i].weight;
		sum += set->at[i].weight;
	}
	t->now[who] -= sum;
}

static uint32_t turn_next(const struct balance_turns *t, const struct endpoint_set *set, unsigned class,
			  const struct endpoint_tried *tried)
{
	uint32_t best = set->n;

	for (uint32_t i = 0; i < set->n; i++)
		if (member(set, &set->at[i], class, tried) &&
		    (best == set->n || t->now[i] + set->at[i].weight > t->now[best] + set->at[best].weight))
			best = i;
	return best;
}

static struct endpoint *round_robin(struct balance *b, const struct service *s, const struct endpoint_set *set,
				    const struct endpoint_tried *tried)
{
	bool fresh;
	struct balance_turns *t = turns_of(b, s, set, &fresh);
	unsigned class = READY;
	uint32_t at;

	if (!t)
		return anyone(b, set, tried);
	if (set->equal)
		return turn_of_equals(t, set, tried);
	/* the first by chance, in which weights count: fair also to sets that live for one request */
	at = fresh && set->bits ? draw_ready(b, set, set->n) : turn_next(t, set, READY, NULL);
	if (at == set->n || !usable(set, set->at[at].endpoint, tried)) {
		class = best_class(set, tried);
		if (!class)
			return NULL;
		at = turn_next(t, set, class, tried);
	}
	turn_take(t, set, class, tried, at);
	return set->at[at].endpoint;
}

/* --- hash: rendezvous --- */

/* In [0, 1), by key and endpoint. */
static double chance(uint32_t key, uint32_t id)
{
	uint64_t x = ((uint64_t)key << 32 | id) * UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
	x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
	return (double)((x ^ x >> 32) >> 11) * 0x1p-53;
}

/* Each of the class draws a lot by the key, with an exponential distribution whose rate is its weight; the least wins.  So
 * shares are those of the weights, and when one comes or goes no key moves between others.  The logarithm is
 * taken of the few that could win: it is never less than what it is taken of.
 * Who has `most` in flight for each part of its weight, or more, draws none. */
static uint32_t rendezvous(const struct endpoint_set *set, uint32_t key, unsigned class, const struct endpoint_tried *tried,
			   double most)
{
	double best = INFINITY;
	uint32_t at = set->n;

	for (uint32_t i = 0; i < set->n; i++) {
		const struct service_endpoint *e = &set->at[i];
		double x = chance(key, e->id);

		if (x >= best * e->weight || !member(set, e, class, tried))
			continue;
		if (most < INFINITY && slot_load(e->endpoint) >= most * e->weight)
			continue;
		x = -log1p(-x) / e->weight;
		if (x < best) {
			best = x;
			at = i;
		}
	}
	return at;
}

/* `percent` of what each of the class would have in flight, this request included, if all had alike: for each part of its weight.
 * One of them is below that, or their sum would be more than it is. */
static double load_bound(const struct endpoint_set *set, unsigned class, const struct endpoint_tried *tried, unsigned percent)
{
	double load = 1, weights = 0;

	for (uint32_t i = 0; i < set->n; i++) {
		if (!member(set, &set->at[i], class, tried))
			continue;
		load += slot_load(set->at[i].endpoint);
		weights += set->at[i].weight;
	}
	return load * percent / 100 / weights;
}

static struct endpoint *hashed(const struct endpoint_set *set, uint32_t key, const struct endpoint_tried *tried, unsigned bound)
{
	uint32_t at = bound ? set->n : rendezvous(set, key, READY, NULL, INFINITY);
	unsigned class;

	if (at < set->n && usable(set, set->at[at].endpoint, tried))
		return set->at[at].endpoint;
	class = best_class(set, tried);
	if (!class)
		return NULL;
	if (bound)
		at = rendezvous(set, key, class, tried, load_bound(set, class, tried, bound));
	if (!bound || at == set->n)	/* others may have taken more meanwhile */
		at = rendezvous(set, key, class, tried, INFINITY);
	return set->at[at].endpoint;
}

/* --- sticky --- */

static struct endpoint *sticky(struct balance *b, const struct endpoint_set *set, uint32_t key, const struct endpoint_tried *tried)
{
	struct endpoint *home = NULL, *other;

	for (uint32_t i = 0; i < set->n && !home; i++)
		if (set->at[i].id == key)
			home = set->at[i].endpoint;
	if (home && usable(set, home, tried))
		return home;
	other = anyone(b, set, tried);
	if (home && (!other || (!up(set, other) && !(tried && endpoint_tried_has(tried, home)))))
		return home;
	return other;
}

/* --- */

struct endpoint *balance_pick(struct balance *b, const struct service *s, uint32_t key, const struct endpoint_tried *tried)
{
	const struct endpoint_set *set = service_set(s);
	uint8_t kind = s->rules->balance;

	if (set->n == 0)
		return NULL;
	if (kind == BALANCE_ROUND_ROBIN)
		return round_robin(b, s, set, tried);
	if (kind == BALANCE_HASH && key)
		return hashed(set, key, tried, s->rules->bound);
	if (kind == BALANCE_STICKY && key)
		return sticky(b, set, key, tried);
	return anyone(b, set, tried);
}

static bool at_home(const struct endpoint_set *set, uint32_t key, const struct endpoint_tried *tried)
{
	for (uint32_t i = 0; i < set->n; i++)
		if (set->at[i].id == key)
			return usable(set, set->at[i].endpoint, tried);
	return false;
}

/* Of those with room whoever has least in flight for its weight, or draws the least lot by the key. */
struct endpoint *balance_free(struct balance *b, const struct service *s, uint32_t key, const struct endpoint_tried *tried,
			      bool (*room)(void *ctx, const struct endpoint *e), void *ctx)
{
	const struct endpoint_set *set = service_set(s);
	bool hash = s->rules->balance == BALANCE_HASH && key;
	unsigned class = best_class(set, tried);
	struct endpoint *found = NULL;
	double best = INFINITY, x;

	if (!class || (s->rules->balance == BALANCE_STICKY && key && at_home(set, key, tried)))
		return NULL;
	for (uint32_t i = 0; i < set->n; i++) {
		const struct service_endpoint *e = &set->at[i];

		if (score(set, e, tried) != class || !room(ctx, e->endpoint))
			continue;
		x = hash ? -log1p(-chance(key, e->id)) : slot_load(e->endpoint) + (double)(draw(b) >> 11) * 0x1p-53;
		if (x / e->weight < best) {
			best = x / e->weight;
			found = e->endpoint;
		}
	}
	return found;
}
