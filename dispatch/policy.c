/* Door: policies and the counts of their parts.  Called where routes are made and
 * compared.  What a part means is in the file of its feature, never here. */
#include "dispatch/policy.h"

#include <string.h>
#include "dispatch/service.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"

struct policy_part *policy_part_ref(struct policy_part *p)
{
	atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
	return p;
}

void policy_part_unref(struct policy_part *p)
{
	if (p && atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) == 1)
		p->kind->free(p);
}

bool policy_part_same(const struct policy_part *a, const struct policy_part *b)
{
	if (a == b)
		return true;
	return a && b && a->kind == b->kind && a->kind->same(a, b);
}

struct policy *policy_new(struct policy_part *const part[POLICY_N])
{
	struct policy *p = mem_alloc(sizeof *p);

	if (!p)
		return NULL;
	atomic_init(&p->refs, 1);
	memcpy(p->part, part, sizeof p->part);
	return p;
}

struct policy *policy_ref(struct policy *p)
{
	atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
	return p;
}

void policy_unref(struct policy *p)
{
	if (!p || atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) != 1)
		return;
	for (unsigned i = 0; i < POLICY_N; i++)
		policy_part_unref(p->part[i]);
	mem_free(p);
}

bool policy_same(const struct policy *a, const struct policy *b)
{
	if (!a || !b)
		return a == b;
	for (unsigned i = 0; i < POLICY_N; i++)
		if (!policy_part_same(a->part[i], b->part[i]))
			return false;
	return true;
}

void policy_bind(struct policy *p, struct service *const *services, size_t n)
{
	for (unsigned i = 0; p && i < POLICY_N; i++)
		if (p->part[i] && p->part[i]->kind->bind)
			p->part[i]->kind->bind(p->part[i], services, n);
}

void policy_service_bind(struct policy_service *s, struct service *const *services, size_t n)
{
	CHECK(s->index < n);
	if (!s->service)	/* a part that routes share is bound with the first of them */
		s->service = service_ref(services[s->index]);
}

bool policy_service_same(const struct policy_service *a, const struct policy_service *b)
{
	return a->service == b->service && (a->service || a->index == b->index);
}

void policy_service_drop(struct policy_service *s)
{
	service_unref(s->service);
	s->service = NULL;
}
