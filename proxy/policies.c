/* policies: see policies.h.  One function a feature makes its part; POLICY_MAKERS lists them. */
#include "proxy/policies.h"

#include <string.h>

#include "conf/conf.h"
#include "dispatch/addresses.h"
#include "dispatch/limits.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"

/* A maker gives the part of `c` with one reference, or NULL for none; false when it cannot, and p->err says why
 * (all zero: no memory). */
typedef bool maker(struct policies *p, const struct conf_route *c, struct policy_part **out);

bool policies_networks(struct networks **to, const struct conf_cidr_list *list)
{
	struct network *n = list->count ? mem_alloc(list->count * sizeof *n) : NULL;

	for (size_t i = 0; n && i < list->count; i++) {
		const struct conf_cidr *c = &list->items[i];

		n[i] = (struct network){
			.family = c->kind == CONF_UNIX ? NETWORK_UNIX : c->kind == CONF_INET6 ? NETWORK_IP6 : NETWORK_IP4,
			.bits = c->bits,
		};
		memcpy(n[i].ip, c->ip, 16);
	}
	*to = n ? networks_new(n, list->count) : NULL;
	mem_free(n);
	return *to || !list->count;
}

static bool addresses_make(struct policies *p, const struct conf_route *c, struct policy_part **out)
{
	struct networks *allow = NULL, *deny = NULL;

	(void)p;
	if (!c->allow.count && !c->deny.count)
		return true;
	if (policies_networks(&allow, &c->allow) && policies_networks(&deny, &c->deny))
		*out = addresses_new(allow, deny);
	if (*out)
		return true;
	networks_free(allow);
	networks_free(deny);
	return false;
}

static bool limits_make(struct policies *p, const struct conf_route *c, struct policy_part **out)
{
	struct limit_spec spec[LIMITS_MAX];
	size_t n = c->rate_limits.count;

	(void)p;
	if (!n)
		return true;
	CHECK(n <= LIMITS_MAX);	/* conf has seen to it */
	for (size_t i = 0; i < n; i++) {
		const struct conf_rate_limit *r = &c->rate_limits.items[i];

		spec[i] = (struct limit_spec){
			.by = r->by == CONF_BY_ROUTE ? LIMIT_BY_ROUTE : r->by == CONF_BY_HEADER ? LIMIT_BY_HEADER : LIMIT_BY_ADDRESS,
			.bits4 = (uint8_t)r->ipv4_prefix, .bits6 = (uint8_t)r->ipv6_prefix,
			.count = r->count, .period_s = r->period, .burst = r->burst, .header = r->header, .name = r->name,
		};
	}
	*out = limits_new(spec, (unsigned)n);
	return *out;
}

static const struct {
	maker *make;
	bool shared;	/* its part has no state of its own */
} makers[POLICY_N] = {
	[POLICY_ADDRESSES] = { addresses_make, true },
	[POLICY_RATE] = { limits_make, false },
};

static void share(struct policies *p, unsigned id, struct policy_part **part)
{
	if (makers[id].shared && policy_part_same(*part, p->last[id])) {
		policy_part_unref(*part);
		*part = policy_part_ref(p->last[id]);
	} else {
		policy_part_unref(p->last[id]);
		p->last[id] = policy_part_ref(*part);
	}
}

bool policies_make(struct policies *p, const struct conf_route *c, struct policy **out)
{
	struct policy_part *part[POLICY_N] = {0};
	bool good = true, any = false;
	unsigned i;

	*out = NULL;
	for (i = 0; i < POLICY_N && good; i++) {
		good = !makers[i].make || makers[i].make(p, c, &part[i]);
		if (part[i]) {
			share(p, i, &part[i]);
			any = true;
		}
	}
	if (good && any)
		*out = policy_new(part);
	if (!good || (any && !*out)) {
		for (i = 0; i < POLICY_N; i++)
			policy_part_unref(part[i]);
		return false;
	}
	return true;
}

void policies_why(const struct policies *p, size_t route, struct snapshot_error *err)
{
	if (p->err.err == OK) {
		snapshot_error_set(err, ERR_MEM, "out of memory");
		return;
	}
	*err = p->err;
	err->part = PART_ROUTE;
	err->index = route;
}

void policies_fini(struct policies *p)
{
	for (unsigned i = 0; i < POLICY_N; i++)
		policy_part_unref(p->last[i]);
}
