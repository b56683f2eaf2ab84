/* Door: mirror, the part of a policy that has requests copied to another service.  It counts
 * the requests of all workers, so that the share is that of the route and not of one of them.
 * Pure: who copies is proxy's. */
#include "dispatch/mirror.h"

#include "lib/base/mem.h"

static bool mirror_same(const struct policy_part *a, const struct policy_part *b)
{
	const struct mirror *x = (const struct mirror *)a, *y = (const struct mirror *)b;

	return policy_service_same(&x->service, &y->service) && x->spec.share == y->spec.share &&
	       x->spec.body_limit == y->spec.body_limit && x->spec.timeout_ms == y->spec.timeout_ms;
}

static void mirror_free(struct policy_part *p)
{
	policy_service_drop(&((struct mirror *)p)->service);
	mem_free(p);
}

static void mirror_bind(struct policy_part *p, struct service *const *services, size_t n)
{
	policy_service_bind(&((struct mirror *)p)->service, services, n);
}

static const struct policy_kind mirror_kind = {.same = mirror_same, .free = mirror_free, .bind = mirror_bind};

struct policy_part *mirror_new(const struct mirror_spec *spec)
{
	struct mirror *m = mem_alloc(sizeof(*m));

	if (!m)
		return NULL;
	policy_part_init(&m->part, &mirror_kind);
	m->service = (struct policy_service){.index = spec->service};
	m->spec = *spec;
	atomic_init(&m->seen, 0);
	return &m->part;
}

/* Of the first n requests those are taken at whose number n times the share passes a whole one. */
bool mirror_takes(struct mirror *m)
{
	uint64_t n, share = m->spec.share;

	if (share >= MIRROR_ALL)
		return true;
	if (share == 0)
		return false;
	n = atomic_fetch_add_explicit(&m->seen, 1, memory_order_relaxed) % MIRROR_ALL;
	return (n + 1) * share / MIRROR_ALL != n * share / MIRROR_ALL;
}
