/* Door: limits, the part of a policy that says how often requests may come.  One heap
 * block with every string in it; the buckets are in the table of the process, but for those
 * of routes as a whole, which are here and so are never forgotten.
 * A part keeps its buckets for as long as it lives: a new configuration that says the same of a
 * route keeps the part. */
#include "dispatch/limits.h"

#include <stdio.h>
#include <string.h>
#include "dispatch/networks.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/base/num.h"

#define ITEM_REST 48u	/* of an item, what stands around its name: `"";q=1000000;w=3600000000, ` */

static _Atomic uint64_t last_id;

static bool spec_same(const struct limit_spec *a, const struct limit_spec *b)
{
	return a->by == b->by && a->bits4 == b->bits4 && a->bits6 == b->bits6 && a->count == b->count &&
	       a->period_s == b->period_s && a->burst == b->burst && str_ieq(a->header, b->header) && str_eq(a->name, b->name);
}

static bool limits_same(const struct policy_part *a, const struct policy_part *b)
{
	const struct limits *x = (const struct limits *)a, *y = (const struct limits *)b;
	unsigned i;

	if (x->n != y->n)
		return false;
	for (i = 0; i < x->n; i++)
		if (!spec_same(&x->limit[i].spec, &y->limit[i].spec))
			return false;
	return true;
}

static void limits_free(struct policy_part *p)
{
	mem_free(p);
}

static const struct policy_kind limits_kind = {.same = limits_same, .free = limits_free};

static struct str put(char **at, struct str s)
{
	struct str copy = {*at, s.n};

	if (s.n)
		memcpy(*at, s.p, s.n);
	*at += s.n;
	return copy;
}

static void put_number(char **at, struct str before, uint64_t v)
{
	put(at, before);
	*at += num_dec(*at, v);
}

/* Puts the item's name, behind ", " unless it is the first of a value that begins at `start`. */
static void put_name(char **at, const char *start, struct str name)
{
	if (*at != start)
		put(at, STR(", "));
	put(at, STR("\""));
	put(at, name);
	put(at, STR("\""));
}

static void limit_make(struct limits *s, struct limit *l, const struct limit_spec *spec, char **at)
{
	s->tabled |= spec->by != LIMIT_BY_ROUTE;
	l->rate = rate_of(spec->count, spec->period_s, spec->burst);
	l->id = atomic_fetch_add_explicit(&last_id, 1, memory_order_relaxed) + 1;
	atomic_init(&l->full, 0);
	l->spec = *spec;
	l->spec.header = put(at, spec->header);
	l->spec.name = put(at, spec->name);
	l->policy = STR("");
}

/* As many at once as the bucket holds, and as many again while it fills. */
static void policies_make(struct limits *s, char **at)
{
	char *start = *at;
	unsigned i;

	for (i = 0; i < s->n; i++) {
		struct limit *l = &s->limit[i];
		char *from;

		if (!l->spec.name.n)
			continue;
		from = *at == start ? *at : *at + 2;
		put_name(at, start, l->spec.name);
		put_number(at, STR(";q="), l->rate.burst);
		put_number(at, STR(";w="), rate_seconds(l->rate.window));
		l->policy = (struct str){from, (size_t)(*at - from)};
	}
	s->policies = (struct str){start, (size_t)(*at - start)};
}

struct policy_part *limits_new(const struct limit_spec *spec, unsigned n)
{
	size_t size = sizeof(struct limits) + n * sizeof(struct limit);
	struct limits *s;
	char *at;
	unsigned i;

	CHECK(n && n <= LIMITS_MAX);
	for (i = 0; i < n; i++)
		size += spec[i].header.n + 2 * spec[i].name.n + ITEM_REST;
	s = mem_alloc(size);
	if (!s)
		return NULL;
	policy_part_init(&s->part, &limits_kind);
	s->n = n;
	s->tabled = false;
	at = (char *)(s->limit + n);
	for (i = 0; i < n; i++)
		limit_make(s, &s->limit[i], &spec[i], &at);
	policies_make(s, &at);
	CHECK(at <= (char *)s + size);
	return &s->part;
}

uint64_t limit_key_address(const struct limit *l, uint8_t family, const uint8_t *ip)
{
	uint8_t key[17] = {family};

	if (family != NETWORK_UNIX)
		network_mask(key + 1, ip, family == NETWORK_IP4 ? l->spec.bits4 : l->spec.bits6);
	return rate_key(l->id, (struct str){(const char *)key, sizeof(key)});
}

uint64_t limit_key_header(const struct limit *l, uint64_t key, struct str value)
{
	return rate_key(key ? key : l->id, value);
}

static enum err take(struct limit *l, struct rate_table *t, uint64_t key, uint64_t now_us, struct rate_answer *a)
{
	if (l->spec.by != LIMIT_BY_ROUTE)
		return rate_table_take(t, &l->rate, key, now_us, a);
	*a = rate_take(&l->rate, &l->full, now_us);
	return OK;
}

static void give(struct limit *l, struct rate_table *t, uint64_t key)
{
	if (l->spec.by != LIMIT_BY_ROUTE)
		rate_table_give(t, &l->rate, key);
	else
		rate_give(&l->rate, &l->full);
}

enum err limits_take(struct limits *s, struct rate_table *t, const uint64_t *key, uint64_t now_us,
		     struct limits_answer *out)
{
	enum err err = OK;
	unsigned i;

	out->refused = -1;
	for (i = 0; i < s->n; i++) {
		err = take(&s->limit[i], t, key[i], now_us, &out->by[i]);
		if (err != OK)
			break;
		if (!out->by[i].allowed) {
			out->refused = (int)i;
			break;
		}
	}
	while (i < s->n && i > 0) {
		i--;
		give(&s->limit[i], t, key[i]);
	}
	return err;
}

static void put_state(char **at, const char *start, const struct limit *l, const struct rate_answer *a)
{
	if (!l->spec.name.n)
		return;
	put_name(at, start, l->spec.name);
	put_number(at, STR(";r="), a->left);
	put_number(at, STR(";t="), rate_seconds(a->more_ns));
}

enum err limits_tell(const struct limits *s, const struct limits_answer *answer, struct arena *a,
		     struct limits_fields *out)
{
	size_t size = s->policies.n + s->n * ITEM_REST + NUM_DEC_MAX;
	char *start = arena_alloc(a, size), *at = start;
	int no = answer->refused;
	unsigned i;

	if (!start)
		return ERR_MEM;
	*out = (struct limits_fields){.policy = no < 0 ? s->policies : s->limit[no].policy};
	if (no >= 0)
		put_state(&at, start, &s->limit[no], &answer->by[no]);
	for (i = 0; no < 0 && i < s->n; i++)
		put_state(&at, start, &s->limit[i], &answer->by[i]);
	out->limit = (struct str){start, (size_t)(at - start)};
	if (no >= 0) {
		out->retry_after.p = at;
		out->retry_after.n = num_dec(at, rate_seconds(answer->by[no].more_ns));
	}
	CHECK((size_t)(at - start) + out->retry_after.n <= size);
	return OK;
}
