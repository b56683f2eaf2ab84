/* policies: see policies.h.  One function a feature makes its part; POLICY_MAKERS lists them. */
#include "proxy/policies.h"

#include "conf/conf.h"

/* A maker gives the part of `c` with one reference, or NULL for none; false when it cannot, and p->err says why
 * (all zero: no memory). */
typedef bool maker(struct policies *p, const struct conf_route *c, struct policy_part **out);

static const struct {
	maker *make;
	bool shared;	/* its part has no state of its own */
} makers[POLICY_N] = {
	[POLICY_ADDRESSES] = { NULL, true },
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
