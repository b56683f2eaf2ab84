/* panic: when so few endpoints of a service are well that the rest could not carry its load, what is known of the others is
 * passed over: a guess beats a certain overload.  Workers see it as one byte of the endpoint set.  Looked at when a verdict
 * has changed, for services alone whose rules ask for it. */
#include "health/record.h"

#include "lib/base/mem.h"

void panic_watch(struct health *h, struct service *s)
{
	uint32_t n = h->max_watched ? 2 * h->max_watched : 16;
	struct service **grown;

	h->changed = true;	/* a new set knows nothing yet */
	if (s->health.owner)
		return;
	if (h->n_watched == h->max_watched) {
		grown = mem_realloc(h->watched, n * sizeof *grown);
		if (!grown)
			return;
		h->watched = grown;
		h->max_watched = n;
	}
	h->watched[h->n_watched++] = service_ref(s);
	s->health.owner = h->n_watched;
}

static void unwatch(struct health *h, uint32_t at)
{
	struct service *s = h->watched[at];

	h->watched[at] = h->watched[--h->n_watched];
	h->watched[at]->health.owner = at + 1;
	s->health.owner = 0;
	service_unref(s);
}

static void look_at(struct health *h, const struct service *s)
{
	struct endpoint_set *set = atomic_load_explicit(&s->set, memory_order_acquire);
	uint32_t n = 0, well = 0, least = 0;
	bool panic, was = atomic_load_explicit(&set->panic, memory_order_relaxed);

	for (uint32_t i = 0; i < set->n; i++) {
		const struct service_endpoint *e = &set->at[i];
		uint32_t verdict = atomic_load_explicit(&e->endpoint->verdict, memory_order_relaxed);

		if (!e->weight || e->state >= ENDPOINT_DRAIN)
			continue;
		n++;
		well += !(verdict & (VERDICT_EJECTED | VERDICT_UNWELL));
		least = h->policies.at[e->endpoint->health]->eject.panic;
	}
	panic = (uint64_t)well * 100 < (uint64_t)n * least;
	if (panic == was)
		return;
	atomic_store_explicit(&set->panic, panic, memory_order_relaxed);
	for (uint32_t i = 0; i < set->n; i++)
		record_changed(h, set->at[i].endpoint);
	health_say(h, panic ? HEALTH_PANIC : HEALTH_CALM, NULL, "service %.*s: %u of %u endpoints are well; %s",
		   (int)s->name_len, s->name, well, n, panic ? "all are used" : "the others are left out again");
}

void panic_look(struct health *h)
{
	if (!h->changed)
		return;
	h->changed = false;
	for (uint32_t i = 0; i < h->n_watched;) {
		if (atomic_load_explicit(&h->watched[i]->refs, memory_order_acquire) == 1) {
			unwatch(h, i);
			continue;
		}
		look_at(h, h->watched[i++]);
	}
}

void panic_end(struct health *h)
{
	while (h->n_watched)
		unwatch(h, h->n_watched - 1);
	mem_free(h->watched);
}
