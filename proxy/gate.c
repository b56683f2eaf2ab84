/* gate: see gate.h.
 *
 * Most gates answer at once and keep nothing.  One that must ask elsewhere has the request held:
 * its head is copied into the arena, its body stays unread, and the exchange is in PHASE_HELD
 * until gate_resume.  Leaving that phase in any other way (the client went, a time-out)
 * tells the gate so. */
#include "proxy/gate.h"

#include "lib/base/check.h"
#include "proxy/admit.h"
#include "proxy/ask.h"
#include "proxy/gate_basic.h"
#include "proxy/gate_cors.h"
#include "proxy/compress.h"

#define EDIT_ROOM 32	/* fields that gates and the listener may add to a head that was held */

static gate_fn *const gates[POLICY_N] = {
	[POLICY_ADDRESSES] = admit_addresses,
	[POLICY_CORS] = gate_cors,
	[POLICY_RATE] = admit_rate,
	[POLICY_BASIC] = gate_basic,
	[POLICY_AUTH] = ask_auth,
	[POLICY_ENCODE] = compress_gate,
};

static enum gate_said ask_from(struct exchange *x, struct head *h, unsigned first)
{
	const struct policy *p = x->route->spec->policy;
	enum gate_said said;

	for (unsigned i = first; i < POLICY_N; i++) {
		if (!p->part[i] || !gates[i])
			continue;
		said = gates[i](x, p->part[i], h);
		if (said == GATE_PASS)
			continue;
		if (said == GATE_WAIT) {
			CHECK(x->held);
			x->held->gate = i;
			exchange_move(x, MOVE_HOLD);
			if (x->client->t.flags & CONN_BROKEN) {	/* and no event will tell of it again */
				exchange_cut(x, CAUSE_CLIENT_LEFT);
				return GATE_STOP;
			}
		}
		return said;
	}
	return GATE_PASS;
}

enum gate_said gate_ask(struct exchange *x, struct head *h)
{
	return ask_from(x, h, 0);
}

/* Fields that a head must have room for: the route has the last word. */
static unsigned edit_room(const struct exchange *x)
{
	return EDIT_ROOM + x->route->spec->n_request;
}

enum err gate_make_room(struct exchange *x, unsigned n)
{
	struct head *h = &x->held->head;

	n += edit_room(x);
	return h->n_fields + n <= h->max_fields ? OK : head_dup(h, h, &x->arena, n);
}

enum err gate_wait(struct exchange *x, const struct head *h, void (*cancel)(struct exchange *x, void *what), void *what)
{
	struct held *held = x->held;

	if (!held) {
		held = arena_alloc(&x->arena, sizeof *held);
		if (!held || head_dup(&held->head, h, &x->arena, edit_room(x)) != OK)
			return ERR_MEM;
	}
	held->cancel = cancel;
	held->what = what;
	x->held = held;
	return OK;
}

void gate_resume(struct exchange *x, enum cause cause)
{
	struct held *held = x->held;

	CHECK(x->phase == PHASE_HELD);
	held->cancel = NULL;
	exchange_move(x, MOVE_ADMIT);
	if (cause != CAUSE_NONE)
		exchange_fail(x, cause);
	else if (ask_from(x, &held->head, held->gate + 1) == GATE_PASS)
		exchange_admit(x);
}

void gate_answers(struct exchange *x)
{
	CHECK(x->phase == PHASE_HELD);
	x->held->cancel = NULL;
}

void gate_leave(struct exchange *x)
{
	struct held *held = x->held;

	if (held->cancel)
		held->cancel(x, held->what);
	held->cancel = NULL;
}
