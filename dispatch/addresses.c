/* Door: addresses, the part of a policy that says who may come.  It has no state, so
 * that routes which say the same share one.  Who the client is, is told by the caller. */
#include "dispatch/addresses.h"

#include "lib/base/mem.h"

static bool addresses_same(const struct policy_part *a, const struct policy_part *b)
{
	const struct addresses *x = (const struct addresses *)a, *y = (const struct addresses *)b;

	return networks_same(x->allow, y->allow) && networks_same(x->deny, y->deny);
}

static void addresses_free(struct policy_part *p)
{
	struct addresses *a = (struct addresses *)p;

	networks_free(a->allow);
	networks_free(a->deny);
	mem_free(a);
}

static const struct policy_kind addresses_kind = {.same = addresses_same, .free = addresses_free};

struct policy_part *addresses_new(struct networks *allow, struct networks *deny)
{
	struct addresses *a = mem_alloc(sizeof(*a));

	if (!a)
		return NULL;
	policy_part_init(&a->part, &addresses_kind);
	a->allow = allow;
	a->deny = deny;
	return &a->part;
}

bool addresses_admit(const struct addresses *a, uint8_t family, const uint8_t *ip)
{
	if (a->deny && networks_has(a->deny, family, ip))
		return false;
	return !a->allow || networks_has(a->allow, family, ip);
}
