/* policy: see policy.h.  The main thread's own. */
#include "health/policy.h"

#include <string.h>
#include "health/wheel.h"
#include "lib/base/mem.h"

static bool eject_same(const struct eject_rules *a, const struct eject_rules *b)
{
	return a->on == b->on && a->max_share == b->max_share && a->panic == b->panic && a->failures == b->failures &&
	       a->ratio == b->ratio && a->volume == b->volume && a->interval == b->interval && a->time == b->time &&
	       a->max_time == b->max_time;
}

static bool check_same(const struct check_rules *a, const struct check_rules *b)
{
	for (unsigned i = 0; i < CHECK_STATUSES; i++)
		if (a->status[i].from != b->status[i].from || a->status[i].to != b->status[i].to)
			return false;
	return a->kind == b->kind && a->rise == b->rise && a->fall == b->fall && a->port == b->port &&
	       a->interval == b->interval && a->timeout == b->timeout && str_eq(a->host, b->host) &&
	       str_eq(a->request, b->request) && str_eq(a->fields, b->fields);
}

static struct str copy(char **at, struct str s)
{
	struct str to = { *at, s.n };

	if (s.n)
		memcpy(*at, s.p, s.n);
	*at += s.n;
	return to;
}

static enum err add(struct health_policies *t, const struct health_policy *p)
{
	const struct check_rules *c = &p->check;
	struct health_policy *new, **grown;
	char *at;

	if (t->n > UINT16_MAX)
		return ERR_LIMIT;
	if ((t->n & (t->n - 1)) == 0) {
		grown = mem_realloc(t->at, (t->n ? 2 * t->n : 1) * sizeof *grown);
		if (!grown)
			return ERR_MEM;
		t->at = grown;
	}
	new = mem_alloc(sizeof *new + c->host.n + c->request.n + c->fields.n);
	if (!new)
		return ERR_MEM;
	*new = *p;
	at = (char *)(new + 1);
	new->check.host = copy(&at, c->host);
	new->check.request = copy(&at, c->request);
	new->check.fields = copy(&at, c->fields);
	t->at[t->n++] = new;
	return OK;
}

enum err health_policies_init(struct health_policies *t, const struct health_policy *usual)
{
	*t = (struct health_policies){0};
	return add(t, usual);
}

void health_policies_fini(struct health_policies *t)
{
	while (t->n)
		mem_free(t->at[--t->n]);
	mem_free(t->at);
	t->at = NULL;
}

enum err health_policies_number(struct health_policies *t, const struct health_policy *p, uint16_t *number)
{
	uint32_t i = t->n;
	enum err err;

	/* most are as the one before */
	while (i-- > 0)
		if (eject_same(&t->at[i]->eject, &p->eject) && check_same(&t->at[i]->check, &p->check))
			break;
	if (i == UINT32_MAX) {
		err = add(t, p);
		if (err != OK)
			return err;
		i = t->n - 1;
	}
	*number = (uint16_t)i;
	return OK;
}

bool check_status_good(const struct check_rules *r, unsigned status)
{
	for (unsigned i = 0; i < CHECK_STATUSES; i++)
		if (r->status[i].to && status >= r->status[i].from && status <= r->status[i].to)
			return true;
	return false;
}

uint32_t check_after(const struct check_rules *r, uint32_t due, uint32_t random)
{
	/* many at a time cost less, also those who are asked */
	uint32_t tick = r->interval >= 5000 ? 4 * WHEEL_TICK : WHEEL_TICK;
	uint32_t jitter = (uint32_t)((uint64_t)random * (r->interval / 10 + 1) >> 32);

	return (due + r->interval - r->interval / 20 + jitter + tick / 2) / tick * tick;
}

bool rise_note(struct rise *s, const struct check_rules *r, bool good)
{
	if (good != s->unwell) {
		s->streak = 0;
		return false;
	}
	if (++s->streak < (s->unwell ? r->rise : r->fall))
		return false;
	s->streak = 0;
	s->unwell = !s->unwell;
	return true;
}
