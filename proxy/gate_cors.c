/* gate_cors: see gate_cors.h.
 *
 * The policy (dispatch/cors.c) decides; here its fields are noted for whatever answer there will be, an endpoint's or ours, so
 * that a script can read why it was refused, too.  What the endpoint says of CORS is dropped: two would not agree.
 * A request of an origin that may not read the answer is forwarded all the same; it is the browser that keeps the answer from the script. */
#include "proxy/gate_cors.h"

#include "dispatch/cors.h"
#include "proxy/forward.h"
#include "proxy/local.h"

static const struct header_mod drop[] = {
	{ HEADER_REMOVE, STR("Access-Control-Allow-Origin"), STR("") },
	{ HEADER_REMOVE, STR("Access-Control-Allow-Credentials"), STR("") },
	{ HEADER_REMOVE, STR("Access-Control-Expose-Headers"), STR("") },
	{ HEADER_REMOVE, STR("Access-Control-Allow-Methods"), STR("") },
	{ HEADER_REMOVE, STR("Access-Control-Allow-Headers"), STR("") },
	{ HEADER_REMOVE, STR("Access-Control-Max-Age"), STR("") },
	{ HEADER_REMOVE, STR("Access-Control-Allow-Private-Network"), STR("") },
};

/* The value of a field that is there once; else nothing. */
static struct str only(const struct head *h, struct str name)
{
	unsigned i = 0;
	const struct field *f = head_find(h, name, &i);

	return f && !head_find(h, name, &i) ? field_value(f) : STR("");
}

/* Values that are the request's own go with it, so that they are copied. */
static bool keep(struct exchange *x, struct cors_answer *a, const struct cors_request *q)
{
	for (unsigned i = 0; i < a->n; i++) {
		const char *p = a->field[i].value.p;

		if (p != q->origin.p && p != q->request_method.p && p != q->request_headers.p)
			continue;
		a->field[i].value = arena_dup(&x->arena, a->field[i].value);
		if (!a->field[i].value.p)
			return false;
	}
	return true;
}

static enum err note(struct exchange *x, const struct cors_answer *a)
{
	enum err err = forward_notes(x, drop, sizeof drop / sizeof *drop);

	for (unsigned i = 0; i < a->n && err == OK; i++)
		err = forward_note(x, HEADER_ADD, a->field[i].name, a->field[i].value);
	for (unsigned i = 0; i < a->n_vary && err == OK; i++)
		err = forward_note(x, HEADER_VARY, STR("Vary"), a->vary[i]);
	return err;
}

enum gate_said gate_cors(struct exchange *x, struct policy_part *part, struct head *h)
{
	struct cors_request q = { .method = h->method, .origin = only(h, STR("Origin")) };
	struct cors_answer a;

	if (q.origin.n && x->method == METHOD_OPTIONS) {
		q.request_method = only(h, STR("Access-Control-Request-Method"));
		q.request_headers = only(h, STR("Access-Control-Request-Headers"));
	}
	cors_decide(part, &q, &a);
	if (!keep(x, &a, &q) || note(x, &a) != OK) {
		exchange_fail(x, CAUSE_NO_MEMORY);
		return GATE_STOP;
	}
	if (!a.preflight)
		return GATE_PASS;
	if (a.allowed)
		local_empty(x, 200);
	else
		exchange_fail(x, CAUSE_CORS_REFUSED);
	return GATE_STOP;
}
