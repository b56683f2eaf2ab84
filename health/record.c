/* record: see record.h.  Made when there is something to know, gone when there is nothing any more; who lets go of an
 * endpoint tells nobody: a record that has the only reference to it finds that out when it is looked at. */
#include "health/record.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "health/verdict.h"
#include "lib/base/mem.h"

#define LINE_MAX_BYTES 512

static bool room(struct health *h, uint32_t index)
{
	uint32_t n = h->n_records ? h->n_records : 16;
	struct record **grown;

	if (index < h->n_records)
		return true;
	while (n <= index)
		n *= 2;
	grown = mem_realloc(h->records, n * sizeof *grown);
	if (!grown)
		return false;
	memset(grown + h->n_records, 0, (n - h->n_records) * sizeof *grown);
	h->records = grown;
	h->n_records = n;
	return true;
}

struct record *record_get(struct health *h, struct endpoint *e)
{
	struct record *r;

	if (!room(h, e->index))
		return NULL;
	if (h->records[e->index])
		return h->records[e->index];
	r = mem_zalloc(sizeof *r);
	if (!r)
		return NULL;
	r->endpoint = endpoint_ref(e);
	r->policy = h->policies.at[e->health < h->policies.n ? e->health : 0];
	h->records[e->index] = r;
	return r;
}

void record_tidy(struct health *h, struct record *r, uint32_t now)
{
	if (r->check_waits || r->look_waits || r->checking)
		return;
	if (!endpoint_alone(r->endpoint) && (r->policy->check.kind || !eject_calm(&r->eject, &r->policy->eject, now)))
		return;
	verdict_set(r->endpoint, VERDICT_EJECTED | VERDICT_UNWELL | VERDICT_WATCHED, false);	/* somebody may just have found it again */
	h->records[r->endpoint->index] = NULL;
	endpoint_unref(r->endpoint);
	mem_free(r);
}

void record_look_later(struct health *h, struct record *r, uint32_t now)
{
	const struct eject_rules *e = &r->policy->eject;

	if (r->look_waits)
		return;
	r->look_waits = true;
	wheel_add(&h->looks, &r->look, r->eject.out ? r->eject.until : now + (e->time < e->interval ? e->time : e->interval));
}

void record_judge(struct health *h, struct record *r, uint32_t bit, bool down)
{
	verdict_set(r->endpoint, bit, down);
	h->changed = true;
	record_changed(h, r->endpoint);
}

void record_changed(struct health *h, struct endpoint *e)
{
	if (h->ops->changed)
		h->ops->changed(h->ctx, e);
}

void health_say(struct health *h, enum health_news news, const struct record *r, const char *fmt, ...)
{
	char line[LINE_MAX_BYTES], text[ENDPOINT_TEXT_MAX];
	size_t n = 0;
	va_list args;

	if (r)
		n = (size_t)snprintf(line, sizeof line, "endpoint %s: ", endpoint_text(r->endpoint, text).p);
	va_start(args, fmt);
	vsnprintf(line + n, sizeof line - n, fmt, args);
	va_end(args);
	h->ops->say(h->ctx, news, line);
}

void record_back(struct health *h, struct record *r, uint32_t now, const char *why)
{
	eject_back(&r->eject, &r->policy->eject, now);
	r->good = 0;
	record_judge(h, r, VERDICT_EJECTED, false);
	verdict_set(r->endpoint, VERDICT_WATCHED, eject_watches(&r->eject, &r->policy->eject));
	health_say(h, HEALTH_BACK, r, "used again, %s", why);
}
