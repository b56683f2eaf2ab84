/* admit: see admit.h.
 *
 * X-Forwarded-For is a chain: each proxy adds who it was asked by, at the end.  So it is read from its end,
 * and only for as long as every link is a proxy that the listener trusts: what a client wrote into
 * it stands before the first link that is not, and is never read. */
#include "proxy/admit.h"

#include "dispatch/addresses.h"
#include "dispatch/limits.h"
#include "proxy/client.h"
#include "proxy/forward.h"
#include "proxy/server.h"

/* --- who it is --- */

static struct who peer_of(const struct conn *c)
{
	struct who who = {0};

	who.family = client_address(c, who.ip);
	return who;
}

/* Takes the last member off a list; false: there is none. */
static bool member_take(struct str *list, struct str *member)
{
	const char *comma;

	if (!list->n)
		return false;
	comma = memrchr(list->p, ',', list->n);
	*member = comma ? (struct str){ comma + 1, list->n - (size_t)(comma + 1 - list->p) } : *list;
	list->n = comma ? (size_t)(comma - list->p) : 0;
	*member = str_trim(*member);
	return true;
}

/* Goes back through one field as long as it is trusted; false: `who` is found. */
static bool follow(const struct networks *trusted, struct str list, struct who *who)
{
	struct str member;

	while (member_take(&list, &member)) {
		if (!member.n)
			continue;	/* RFC 9110 5.6.1 */
		if (network_read_address(member, &who->family, who->ip) != OK ||
		    !networks_has(trusted, who->family, who->ip))
			return false;
	}
	return true;
}

struct who admit_who(const struct exchange *x, const struct head *h)
{
	const struct listener *l = &x->w->settings->listeners[x->client->listener];
	struct who who = peer_of(x->client);

	if (!l->trusted || l->x_forwarded == FORWARDED_REPLACE || !networks_has(l->trusted, who.family, who.ip))
		return who;
	for (unsigned i = h->n_fields; i-- > 0;)
		if (h->field[i].id == FIELD_X_FORWARDED_FOR && !follow(l->trusted, field_value(&h->field[i]), &who))
			break;
	return who;
}

/* --- the gates --- */

enum gate_said admit_addresses(struct exchange *x, struct policy_part *part, struct head *h)
{
	struct who who = admit_who(x, h);

	if (addresses_admit((const struct addresses *)part, who.family, who.ip))
		return GATE_PASS;
	exchange_fail(x, CAUSE_ADDRESS_DENIED);
	return GATE_STOP;
}

/* All fields of that name count, so that nobody has another bucket by sending a second one. */
static uint64_t header_key(const struct limit *l, const struct head *h)
{
	uint64_t key = 0;
	const struct field *f;
	unsigned i = 0;

	while ((f = head_find(h, l->spec.header, &i)))
		key = limit_key_header(l, key, field_value(f));
	return key ? key : limit_key_header(l, 0, STR(""));
}

static void find_keys(const struct exchange *x, const struct limits *s, const struct head *h, uint64_t *key)
{
	struct who who = {0};
	bool known = false;

	for (unsigned i = 0; i < s->n; i++) {
		const struct limit *l = &s->limit[i];

		key[i] = 0;
		if (l->spec.by == LIMIT_BY_ADDRESS && !known) {
			who = admit_who(x, h);
			known = true;
		}
		if (l->spec.by == LIMIT_BY_ADDRESS)
			key[i] = limit_key_address(l, who.family, who.ip);
		else if (l->spec.by == LIMIT_BY_HEADER)
			key[i] = header_key(l, h);
	}
}

static enum err note(struct exchange *x, struct str name, struct str value)
{
	return value.n ? forward_note(x, HEADER_ADD, name, value) : OK;
}

static enum err note_all(struct exchange *x, const struct limits_fields *f)
{
	enum err err = note(x, STR("RateLimit-Policy"), f->policy);

	if (err == OK)
		err = note(x, STR("RateLimit"), f->limit);
	return err == OK ? note(x, STR("Retry-After"), f->retry_after) : err;
}

enum gate_said admit_rate(struct exchange *x, struct policy_part *part, struct head *h)
{
	struct limits *s = (struct limits *)part;
	struct limits_answer answer;
	struct limits_fields fields;
	uint64_t key[LIMITS_MAX];

	find_keys(x, s, h, key);
	if (limits_take(s, x->w->server->rates, key, x->w->now_us, &answer) != OK ||
	    limits_tell(s, &answer, &x->arena, &fields) != OK || note_all(x, &fields) != OK) {
		exchange_fail(x, CAUSE_NO_MEMORY);
		return GATE_STOP;
	}
	if (s->tabled)
		server_rates_used(x->w->server);
	if (answer.refused < 0)
		return GATE_PASS;
	exchange_fail(x, CAUSE_RATE_LIMITED);
	return GATE_STOP;
}
