/* mirroring: see mirroring.h.
 *
 * A copy is a call (call.h) in haste, which nobody waits for: it has a connection at once or is dropped, and its answer is
 * read and thrown away.  Nothing that happens to it is told to the exchange.  It goes when the request has its answer's head, or
 * has failed: before that, its system calls would stand between the two, since a worker does one thing at a time.
 * Copies take at most half of the calls that there may be. */
#include "proxy/mirroring.h"

#include "dispatch/mirror.h"
#include "proxy/call.h"

static struct mirror *part_of(const struct exchange *x)
{
	return (struct mirror *)x->route->spec->policy->part[POLICY_MIRROR];
}

static void over(struct call *c, void *owner)
{
	struct worker *w = c->lease.w;

	(void)owner;
	if (c->cause == CAUSE_NONE)
		COUNT(w, mirrored);
	else if (cause_is_ours(c->cause))
		COUNT(w, mirror_dropped);
	else
		COUNT(w, mirror_failed);
}

void mirroring_begin(struct exchange *x, const struct head *h, struct str authority)
{
	struct mirror *m = part_of(x);
	struct head copy = *h;
	struct call_spec spec = { .head = &copy, .hasty = true, .done = over };
	enum cause cause;

	if (!m || h->upgrade.n || !mirror_takes(m))
		return;
	if (h->body != BODY_NONE && (!m->spec.body_limit || (h->has_length && h->length > m->spec.body_limit))) {
		COUNT(x->w, mirror_body_limit);
		return;
	}
	copy.authority = authority;
	spec.service = m->service.service;
	spec.timeout_ms = m->spec.timeout_ms;
	x->copy = call_new(x->w, &spec, &cause);
	if (!x->copy) {
		COUNT(x->w, mirror_dropped);
		return;
	}
	head_remove(&x->copy->request, STR("Expect"));
}

static void drop(struct exchange *x)
{
	call_cancel(x->copy);
	x->copy = NULL;
}

void mirroring_body(struct exchange *x, struct str piece)
{
	switch (call_body(x->copy, piece, part_of(x)->spec.body_limit)) {
	case OK:
		return;
	case ERR_LIMIT:
		COUNT(x->w, mirror_body_limit);
		break;
	default:
		COUNT(x->w, mirror_dropped);
	}
	drop(x);
}

void mirroring_go(struct exchange *x)
{
	if (x->request != DIR_DONE)
		return;
	call_start(x->copy);
	x->copy = NULL;
}

void mirroring_over(struct exchange *x)
{
	mirroring_go(x);
	if (x->copy)
		drop(x);
}
