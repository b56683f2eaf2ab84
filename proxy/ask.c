/* ask: see ask.h.
 *
 * The question is a call (call.h) with a head of its own: the client's fields as its listener lets them through, and what
 * it asked for in fields that no client can set.  It has no body, and the request's stays unread until the
 * answer is there.  Only a whole 2xx lets it pass; whatever goes wrong refuses it. */
#include "proxy/ask.h"

#include <arpa/inet.h>

#include "dispatch/auth.h"
#include "proxy/admit.h"
#include "proxy/call.h"
#include "proxy/forward.h"
#include "proxy/local.h"
#include "proxy/log.h"

#define FIELDS_LISTENER 8	/* fields that forward_question adds, at most */
#define FIELDS_OURS 6		/* fields that say what was asked for */

static const struct auth *part_of(const struct exchange *x)
{
	return (const struct auth *)x->route->spec->policy->part[POLICY_AUTH];
}

/* --- the question --- */

/* Whether it is the listener that speaks in it. */
static bool of_listener(const struct exchange *x, const struct field *f)
{
	struct str id = x->w->settings->listeners[x->client->listener].request_id;

	switch (f->id) {
	case FIELD_X_FORWARDED_FOR:
	case FIELD_X_FORWARDED_PROTO:
	case FIELD_X_FORWARDED_HOST:
	case FIELD_X_FORWARDED_CLIENT_CERT:
	case FIELD_FORWARDED:
	case FIELD_VIA:
		return true;
	default:
		return id.n && str_ieq(field_name(f), id);
	}
}

static void filter(const struct exchange *x, const struct auth *a, struct head *q)
{
	unsigned n = 0;

	for (unsigned i = 0; i < q->n_fields; i++)
		if (of_listener(x, &q->field[i]) || auth_shows(a, field_name(&q->field[i])))
			q->field[n++] = q->field[i];
	q->n_fields = (uint16_t)n;
}

/* The client's address as text, in the arena; empty when it has none, or there is no memory. */
static struct str address_text(struct exchange *x, const struct head *h)
{
	struct who who = admit_who(x, h);
	char text[INET6_ADDRSTRLEN];

	if (who.family == NETWORK_UNIX || !inet_ntop(who.family == NETWORK_IP6 ? AF_INET6 : AF_INET, who.ip, text, sizeof text))
		return (struct str){0};
	return arena_dup(&x->arena, str_of(text));
}

/* What the client asked for, in fields that it cannot set itself. */
static enum err describe(struct exchange *x, const struct head *h, struct head *q)
{
	struct str url, address = address_text(x, h);
	const struct { struct str name, value; } ours[FIELDS_OURS] = {
		{ STR("X-Original-URL"), {0} }, { STR("X-Original-Method"), h->method },
		{ STR("X-Auth-Request-Redirect"), h->target }, { STR("X-Forwarded-Method"), h->method },
		{ STR("X-Forwarded-Uri"), h->target }, { STR("X-Real-IP"), address },
	};
	enum err err = auth_url(forward_scheme(x, h), h->authority, h->target, &x->arena, &url);

	for (unsigned i = 0; i < FIELDS_OURS && err == OK; i++) {
		struct str value = i ? ours[i].value : url;

		head_remove_alike(q, ours[i].name);
		if (value.n)
			err = head_add(q, ours[i].name, value);
	}
	return err;
}

static enum cause question(struct exchange *x, const struct auth *a, const struct head *h, struct head *q)
{
	size_t max = (size_t)h->n_fields + FIELDS_LISTENER + FIELDS_OURS;
	enum cause cause;

	*q = *h;
	q->field = arena_alloc(&x->arena, max * sizeof *q->field);
	if (!q->field)
		return CAUSE_NO_MEMORY;
	memcpy(q->field, h->field, h->n_fields * sizeof *q->field);
	q->max_fields = (uint16_t)(max < UINT16_MAX ? max : UINT16_MAX);
	cause = forward_question(x, q);
	if (cause != CAUSE_NONE)
		return cause;
	filter(x, a, q);
	switch (describe(x, h, q)) {
	case OK:
		break;
	case ERR_MEM:
		return CAUSE_NO_MEMORY;
	default:
		return CAUSE_BAD_REQUEST;
	}
	q->method = a->spec.method;
	q->method_id = (uint8_t)method_of(a->spec.method);
	q->target = a->spec.path;
	q->minor = 1;
	return CAUSE_NONE;
}

/* --- the answer --- */

/* What the client is told when there is no answer. */
static enum cause blame(enum cause cause)
{
	switch (cause) {
	case CAUSE_CONNECT_REFUSED:
	case CAUSE_CONNECT_FAILED:
	case CAUSE_NO_ENDPOINT:
	case CAUSE_UNRESOLVED:
		return CAUSE_AUTH_UNREACHABLE;
	case CAUSE_CONNECT_TIMEOUT:
	case CAUSE_QUEUE_TIMEOUT:
	case CAUSE_SEND_TIMEOUT:
	case CAUSE_FIRST_BYTE_TIMEOUT:
		return CAUSE_AUTH_TIMEOUT;
	case CAUSE_ANSWER_SIZE:
	case CAUSE_ANSWER_HEAD_SIZE:
		return CAUSE_AUTH_ANSWER_SIZE;
	case CAUSE_QUEUE_FULL:
		return CAUSE_CALLS_FULL;
	case CAUSE_NO_MEMORY:
	case CAUSE_NO_DESCRIPTORS:
		return cause;
	default:
		return CAUSE_AUTH_FAILED;
	}
}

static void failed(struct exchange *x, const struct auth *a, enum cause cause, const char *why)
{
	LOG_RATE(LEVEL_WARN, "auth by the service %.*s: %s", (int)service_name(a->service.service).n,
		 service_name(a->service.service).p, why);
	gate_resume(x, cause);
}

/* The fields of the answer that the request carries on take the place of the client's. */
static enum err carry_on(struct exchange *x, const struct auth *a, const struct head *answer)
{
	struct head *h = &x->held->head;
	enum err err = gate_make_room(x, answer->n_fields);

	for (unsigned i = 0; i < a->spec.response.n && err == OK; i++) {
		struct str name = a->spec.response.items[i];
		const struct field *f;
		unsigned at = 0;

		head_remove_alike(h, name);
		while (err == OK && (f = head_find(answer, name, &at))) {
			struct str value = arena_dup(&x->arena, field_value(f));

			err = value.p ? head_add(h, name, value) : ERR_MEM;
		}
	}
	return err;
}

static enum err pass_cookies(struct exchange *x, const struct head *answer)
{
	enum err err = OK;

	for (unsigned i = 0; i < answer->n_fields && err == OK; i++) {
		struct str value;

		if (answer->field[i].id != FIELD_SET_COOKIE)
			continue;
		value = arena_dup(&x->arena, field_value(&answer->field[i]));
		err = value.p ? forward_note(x, HEADER_ADD, STR("Set-Cookie"), value) : ERR_MEM;
	}
	return err;
}

static void let_pass(struct exchange *x, const struct auth *a, const struct call *c)
{
	enum err err = carry_on(x, a, &c->answer);

	if (err == OK && a->spec.set_cookie)
		err = pass_cookies(x, &c->answer);
	gate_resume(x, err == OK ? CAUSE_NONE : CAUSE_NO_MEMORY);
}

/* `said` becomes the answer's fields that clients see, and one more when `location` is not empty; they lie where they lay. */
static enum err refusal(struct exchange *x, const struct call *c, unsigned status, struct str location, struct head *said)
{
	unsigned n = 0;

	*said = (struct head){ .status = (uint16_t)status };
	said->field = arena_alloc(&x->arena, (c->answer.n_fields + 1u) * sizeof *said->field);
	if (!said->field)
		return ERR_MEM;
	for (unsigned i = 0; i < c->answer.n_fields; i++) {
		const struct field *f = &c->answer.field[i];

		/* where one signs in has no body, and no challenge */
		if (auth_passes_on(field_name(f)) && (!location.n || f->id == FIELD_SET_COOKIE))
			said->field[n++] = *f;
	}
	said->n_fields = (uint16_t)n;
	said->max_fields = (uint16_t)(n + 1);
	return location.n ? head_add(said, STR("Location"), location) : OK;
}

static void refuse(struct exchange *x, const struct auth *a, const struct call *c, bool sign_in)
{
	const struct head *h = &x->held->head;
	struct str url, scheme = forward_scheme(x, h), location = {0};
	struct head said;
	enum err err = OK;

	if (!sign_in && !c->kept_all) {
		failed(x, a, CAUSE_AUTH_ANSWER_SIZE, causes[CAUSE_ANSWER_SIZE].text.p);
		return;
	}
	if (sign_in)
		err = auth_url(scheme, h->authority, h->target, &x->arena, &url);
	if (sign_in && err == OK)
		err = auth_sign_in(a, scheme, h->authority, url, &x->arena, &location);
	if (err == OK)
		err = refusal(x, c, sign_in ? 302 : c->answer.status, location, &said);
	if (err != OK) {
		gate_resume(x, err == ERR_MEM ? CAUSE_NO_MEMORY : CAUSE_BAD_REQUEST);
		return;
	}
	gate_answers(x);
	local_relay(x, CAUSE_AUTH_REFUSED, &said, sign_in ? STR("") : buf_str(c->got));
}

static void answered(struct call *c, void *owner)
{
	struct exchange *x = owner;
	const struct auth *a = part_of(x);
	bool browses = (x->method == METHOD_GET || x->method == METHOD_HEAD) && !x->held->head.upgrade.n;

	if (c->cause != CAUSE_NONE) {
		failed(x, a, blame(c->cause), causes[c->cause].text.p);
		return;
	}
	switch (auth_judge(a, c->answer.status, browses)) {
	case AUTH_PASS:
		let_pass(x, a, c);
		break;
	case AUTH_REFUSE:
		refuse(x, a, c, false);
		break;
	case AUTH_SIGN_IN:
		refuse(x, a, c, true);
		break;
	case AUTH_ERROR:
		failed(x, a, CAUSE_AUTH_ERROR, "it answers with an error");
		break;
	case AUTH_ODD:
		failed(x, a, CAUSE_AUTH_FAILED, "it answers with a status that says nothing");
	}
}

/* --- the gate --- */

static void forget(struct exchange *x, void *what)
{
	(void)x;
	call_cancel(what);
}

enum gate_said ask_auth(struct exchange *x, struct policy_part *part, struct head *h)
{
	const struct auth *a = (const struct auth *)part;
	struct call_spec spec = {
		.service = a->service.service, .timeout_ms = a->spec.timeout_ms, .keep = ASK_BODY_MAX, .done = answered, .owner = x,
	};
	struct call *c = NULL;
	struct head q;
	enum cause cause = question(x, a, h, &q);

	spec.head = &q;
	if (cause == CAUSE_NONE)
		c = call_new(x->w, &spec, &cause);
	if (!c) {
		exchange_fail(x, cause);
		return GATE_STOP;
	}
	if (gate_wait(x, h, forget, c) != OK) {
		call_cancel(c);
		exchange_fail(x, CAUSE_NO_MEMORY);
		return GATE_STOP;
	}
	call_start(c);
	return GATE_WAIT;
}
