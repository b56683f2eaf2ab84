/* gate_basic: see gate_basic.h.
 *
 * Reads the credentials (dispatch/basic.c) and asks whether they are right: hasher.c remembers that, or has a thread look, and
 * the request is held meanwhile.  Who is let in is told to the endpoint, when the route wants it, in a field that nobody else
 * can set.  The password goes no further, unless the route wants that; it is wiped here and logged nowhere. */
#include "proxy/gate_basic.h"

#include "dispatch/basic.h"
#include "proxy/admit.h"
#include "proxy/forward.h"
#include "proxy/hasher.h"
#include "proxy/log.h"
#include "proxy/server.h"

/* A request whose password is being looked at, in the exchange's arena. */
struct waiting {
	const struct basic_auth *auth;	/* the route's */
	struct hasher_ask *ask;		/* lent by the hasher */
	struct str user;
};

/* Notes what goes with `cause` on the answer; the cause to answer with. */
static enum cause refusal(struct exchange *x, const struct basic_auth *b, enum cause cause)
{
	if (causes[cause].status != 401 || forward_note(x, HEADER_SET, STR("WWW-Authenticate"), b->challenge) == OK)
		return cause;
	return CAUSE_NO_MEMORY;
}

static enum gate_said refuse(struct exchange *x, const struct basic_auth *b, enum cause cause)
{
	exchange_fail(x, refusal(x, b, cause));
	return GATE_STOP;
}

/* Only an unreadable password is nobody's: a second field, or odd bytes, are no other user's credentials. */
static enum cause credentials(const struct head *h, char *room, struct str *user, struct str *password)
{
	const struct field *f = NULL;

	for (unsigned i = 0; i < h->n_fields; i++) {
		if (h->field[i].id != FIELD_AUTHORIZATION)
			continue;
		if (f)
			return CAUSE_BASIC_FAILED;
		f = &h->field[i];
	}
	if (!f)
		return CAUSE_BASIC_REQUIRED;
	switch (basic_read(field_value(f), room, user, password)) {
	case BASIC_OK:
		return CAUSE_NONE;
	case BASIC_NONE:
		return CAUSE_BASIC_REQUIRED;
	default:
		return CAUSE_BASIC_FAILED;
	}
}

static enum cause verdict_cause(enum hasher_verdict v)
{
	switch (v) {
	case HASHER_RIGHT:
		return CAUSE_NONE;
	case HASHER_WRONG:
		return CAUSE_BASIC_FAILED;
	case HASHER_BUSY:
		return CAUSE_BASIC_BUSY;
	default:
		LOG_RATE(LEVEL_ERROR, "a password could not be looked at: there is no memory or no thread for it, or the system "
			 "does not have the hash of its form");
		return CAUSE_BASIC_ERROR;
	}
}

/* It is `user`, which lies in the arena: what the endpoint gets to see of that. */
static enum cause let_in(struct exchange *x, const struct basic_auth *b, struct head *h, struct str user)
{
	x->log_user = user;
	if (!b->forward)
		head_remove(h, STR("Authorization"));
	if (!b->user_header.n)
		return CAUSE_NONE;
	head_remove_alike(h, b->user_header);
	return head_add(h, b->user_header, user) == OK ? CAUSE_NONE : CAUSE_BAD_REQUEST;
}

/* Clients that take turns.  One of IPv6 has a whole network to choose its addresses from. */
static uint64_t client_key(const struct exchange *x, const struct head *h)
{
	struct who who = admit_who(x, h);
	uint64_t key = 0;

	memcpy(&key, who.ip, who.family == NETWORK_IP6 ? 8 : 4);
	return key ^ (uint64_t)who.family << 56;
}

static void forget(struct exchange *x, void *what)
{
	struct waiting *wait = what;

	hasher_forget(x->w->server->hasher, wait->ask);
}

/* Asks; `wait` is filled for HASHER_WAIT. */
static enum hasher_verdict ask(struct exchange *x, const struct head *h, struct waiting *wait, struct str password)
{
	struct worker *w = x->w;

	return hasher_ask(w->server->hasher, &w->hasher, wait->auth->users, wait->user, password, client_key(x, h),
			  w->now_us / 1000, x, &wait->ask);
}

static enum gate_said ask_or_wait(struct exchange *x, const struct basic_auth *b, struct head *h, struct str user,
				  struct str password)
{
	struct waiting *wait = arena_alloc(&x->arena, sizeof *wait);
	enum hasher_verdict v;
	enum cause cause;

	if (!wait)
		return refuse(x, b, CAUSE_NO_MEMORY);
	*wait = (struct waiting){ .auth = b, .user = arena_dup(&x->arena, user) };
	if (!wait->user.p)
		return refuse(x, b, CAUSE_NO_MEMORY);
	v = ask(x, h, wait, password);
	if (v == HASHER_WAIT) {
		if (gate_wait(x, h, forget, wait) == OK)
			return GATE_WAIT;
		hasher_forget(x->w->server->hasher, wait->ask);
		return refuse(x, b, CAUSE_NO_MEMORY);
	}
	cause = verdict_cause(v);
	if (cause == CAUSE_NONE)
		cause = let_in(x, b, h, wait->user);
	return cause == CAUSE_NONE ? GATE_PASS : refuse(x, b, cause);
}

enum gate_said gate_basic(struct exchange *x, struct policy_part *part, struct head *h)
{
	const struct basic_auth *b = (const struct basic_auth *)part;
	struct str user, password;
	char room[BASIC_ROOM];
	enum cause cause = credentials(h, room, &user, &password);
	enum gate_said said;

	if (cause == CAUSE_NONE)
		said = ask_or_wait(x, b, h, user, password);
	else
		said = refuse(x, b, cause);
	explicit_bzero(room, sizeof room);
	return said;
}

void gate_basic_verdicts(struct worker *w)
{
	enum hasher_verdict v;
	void *owner;

	while (hasher_take(&w->hasher, &owner, &v)) {
		struct exchange *x = owner;
		struct waiting *wait = x->held->what;
		enum cause cause = verdict_cause(v);

		if (cause == CAUSE_NONE)
			cause = let_in(x, wait->auth, &x->held->head, wait->user);
		gate_resume(x, refusal(x, wait->auth, cause));
	}
}
