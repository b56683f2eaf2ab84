/* retrying: see retrying.h.
 *
 * A try ends in retrying_lost (no connection, no answer, none in time), or with an answer that the route wants replaced,
 * which is held until it is whole and then kept.  The exchange then goes to another endpoint at once, or pauses first
 * (PHASE_PAUSED), holding nothing but its client.  Whatever ends it later, an answer that was kept goes to the client in
 * place of one of ours.
 *
 * Retries of a service are bounded by its budget: a share of the requests that each worker counts for itself, and a few a
 * second that all workers take from one word.  So nobody writes to what others read while nothing fails. */
#include "proxy/retrying.h"

#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "proxy/attempt.h"
#include "proxy/local.h"
#include "proxy/request.h"
#include "proxy/routing.h"

#define METHOD(m) (1u << METHOD_##m)

const struct retry_policy retrying_default = {
	.attempts = ROUTING_TRIES - 1,
	.on = 1u << RETRY_CONNECT | 1u << RETRY_RESET,
	.methods = METHOD(GET) | METHOD(HEAD) | METHOD(OPTIONS) | METHOD(TRACE) | METHOD(PUT) | METHOD(DELETE),
};

static const struct retry_policy *policy_of(const struct exchange *x)
{
	const struct policy *p = x->route->spec->policy;
	const struct retry *r = p ? (const struct retry *)p->part[POLICY_RETRY] : NULL;

	return r ? &r->policy : &retrying_default;
}

/* --- the budget --- */

static void *grown(void *array, uint32_t old, uint32_t n, size_t size)
{
	char *p = mem_realloc(array, n * size);

	if (p)
		memset(p + old * size, 0, (n - old) * size);
	return p;
}

/* Without memory the request is not counted: one retry less. */
void retrying_count_slowly(struct worker *w, uint32_t service)
{
	uint32_t n = w->n_asked ? w->n_asked : 8, *asked;

	while (n <= service)
		n *= 2;
	asked = grown(w->asked, w->n_asked, n, sizeof *asked);
	if (!asked)
		return;
	w->asked = asked;
	w->n_asked = n;
	w->asked[service]++;
}

static struct retry_share *share_of(struct worker *w, uint32_t service)
{
	struct retry_share *shares;

	if (service >= w->n_asked)
		return NULL;
	if (service >= w->n_shares) {
		shares = grown(w->shares, w->n_shares, w->n_asked, sizeof *shares);
		if (!shares)
			return NULL;
		for (uint32_t i = w->n_shares; i < w->n_asked; i++)
			shares[i].at_ms = w->started_ms;
		w->shares = shares;
		w->n_shares = w->n_asked;
	}
	return &w->shares[service];
}

static bool budget_take(struct exchange *x)
{
	struct service *s = (struct service *)(uintptr_t)x->lease.service;
	struct retry_share *share = share_of(x->w, s->index);

	return (share && retry_share_take(share, x->w->asked[s->index], s->rules->retry_ratio, x->w->now_ms)) ||
	       retry_floor_take(&s->retry_floor, s->rules->retry_floor, x->w->now_us);
}

/* --- deciding --- */

/* xorshift: no secret, only not the same for all. */
static uint32_t toss(struct worker *w)
{
	w->dice ^= w->dice << 13;
	w->dice ^= w->dice >> 17;
	w->dice ^= w->dice << 5;
	return w->dice;
}

static uint32_t left_ms(const struct exchange *x)
{
	uint32_t all = x->route->spec->first_byte_ms, passed = 0;

	if (x->asked_ms && x->asked_ms != (x->w->now_ms | 1))
		passed = x->w->now_ms - x->asked_ms;
	if (!all)
		return UINT32_MAX;
	return passed < all ? all - passed : 0;
}

uint32_t retrying_try_ms(const struct exchange *x)
{
	uint32_t ms = x->route->spec->try_ms, left = left_ms(x);

	return left < ms ? ttl_coarse(left ? left : 1) : ms;
}

static void not_again(struct exchange *x, enum retry_why why)
{
	x->no_retry = (uint8_t)why;
	COUNT(x->w, no_retry[why]);
}

static bool judge(struct exchange *x, struct retry_case *c, struct retry_plan *plan)
{
	enum retry_why why;

	c->method = x->method;
	c->tries = x->sent_again;
	c->sent = x->any_sent;
	c->kept = x->replayable || !x->body_sent;
	c->passed = x->passed;
	c->untried = routing_untried(x);
	c->left_ms = left_ms(x);
	c->random = toss(x->w);
	why = retry_judge(policy_of(x), c, plan);
	if (why == RETRY_WHY_NONE && plan->charged && !budget_take(x))
		why = RETRY_WHY_BUDGET;
	if (why != RETRY_WHY_NONE)
		not_again(x, why);
	return why == RETRY_WHY_NONE;
}

/* --- going on --- */

/* To an endpoint that was not tried, if there is one. */
static void next(struct exchange *x)
{
	enum cause cause = routing_next_endpoint(x);

	if (cause == CAUSE_NONE)
		exchange_dispatch(x);
	else
		exchange_fail(x, cause);
}

static void again(struct exchange *x, uint32_t wait_ms)
{
	struct worker *w = x->w;

	COUNT(w, retries);
	x->sent_again++;
	x->lease.again = true;
	x->no_retry = RETRY_WHY_NONE;
	x->first_us = 0;
	if (wait_ms)
		exchange_move(x, MOVE_PAUSE);
	else if (x->phase != PHASE_NEW)
		exchange_move(x, MOVE_RETRY);
	buf_free(&x->up_in, &w->budget);
	h1_reread(&x->upstream);
	request_rewind(x);
	if (!wait_ms) {
		next(x);
		return;
	}
	if (!x->to_client)
		worker_wait_end(x->client);
	ttl_link(&w->pauses, ttl_list_for(&w->pauses, ttl_coarse(wait_ms)), &x->pause, w->now_ms);
}

void retrying_resume(struct exchange *x)
{
	exchange_move(x, MOVE_RETRY);
	next(x);
}

static enum retry_event event_of(enum cause cause)
{
	switch (cause) {
	case CAUSE_UPSTREAM_CLOSED:
	case CAUSE_UPSTREAM_TLS:
	case CAUSE_UPSTREAM_ALERT:
		return RETRY_RESET;
	case CAUSE_FIRST_BYTE_TIMEOUT:
	case CAUSE_SEND_TIMEOUT:
		return RETRY_TIMEOUT;
	default:
		return RETRY_CONNECT;
	}
}

void retrying_lost(struct exchange *x, enum cause cause)
{
	struct retry_case c = { .event = (uint8_t)event_of(cause) };
	struct retry_plan plan;

	if (cause_is_ours(cause)) {	/* it would be the same elsewhere */
		exchange_fail(x, cause);
		return;
	}
	c.stale = c.event == RETRY_RESET && x->reused && !x->answered && !x->lease.fresh;
	x->last_cause = (uint8_t)cause;
	x->last_status = 0;
	if (c.event != RETRY_CONNECT)
		attempt_ended(&x->lease, cause, 0);
	if (!judge(x, &c, &plan)) {
		exchange_fail(x, cause);
		return;
	}
	if (c.stale)
		COUNT(x->w, stale);
	if (c.event == RETRY_RESET)
		x->lease.fresh = true;	/* others that were kept may be as dead */
	again(x, plan.wait_ms);
}

/* --- answers that are to be replaced --- */

void retrying_spare_free(struct exchange *x)
{
	struct spare *s = x->spare;

	if (!s)
		return;
	buf_free(&s->body, &x->w->budget);
	arena_fini(&s->arena);
	arena_init(&s->arena, NULL, 0, &x->w->budget);
	s->whole = false;
}

static bool spare_keep(struct exchange *x, const struct head *h)
{
	if (!x->spare) {
		x->spare = arena_alloc(&x->arena, sizeof *x->spare);
		if (!x->spare)
			return false;
		*x->spare = (struct spare){0};
		arena_init(&x->spare->arena, NULL, 0, &x->w->budget);
	}
	retrying_spare_free(x);
	return head_dup(&x->spare->head, h, &x->spare->arena, local_room(x)) == OK;
}

static uint32_t after_ms(const struct head *h)
{
	unsigned i = 0;
	const struct field *f = head_find(h, STR("Retry-After"), &i);

	return f ? retry_after_ms(field_value(f)) : 0;
}

bool retrying_hold(struct exchange *x, const struct head *h)
{
	const struct retry_policy *p = policy_of(x);
	struct retry_case c = { .event = RETRY_STATUS, .status = h->status };
	struct retry_plan plan;

	if (!retry_on_status(p, h->status))
		return false;
	c.after_ms = after_ms(h);
	if (h->has_length && h->body != BODY_NONE && h->length > RETRYING_ANSWER_MAX) {
		not_again(x, RETRY_WHY_SIZE);
		return false;
	}
	if (!judge(x, &c, &plan))
		return false;
	if (!spare_keep(x, h)) {
		not_again(x, RETRY_WHY_MEMORY);
		return false;
	}
	x->last_cause = CAUSE_NONE;
	x->last_status = h->status;
	x->pause_ms = plan.wait_ms;
	x->holding = true;
	return true;
}

bool retrying_body(struct exchange *x, struct str piece)
{
	enum err err = buf_append(&x->spare->body, &x->w->budget, piece.p, piece.n, RETRYING_ANSWER_MAX);

	if (err == OK)
		return true;
	x->holding = false;
	not_again(x, err == ERR_LIMIT ? RETRY_WHY_SIZE : RETRY_WHY_MEMORY);
	return false;
}

void retrying_whole(struct exchange *x, bool extra)
{
	if (extra || x->request != DIR_DONE || request_pending(x) || !h1_reusable(&x->upstream))
		x->lease.up->c.t.flags |= CONN_BROKEN;	/* not to be used again */
	x->holding = false;
	x->spare->whole = true;
	x->up_whole = true;
	again(x, x->pause_ms);
}

void retrying_spoiled(struct exchange *x, enum cause cause)
{
	x->holding = false;
	retrying_spare_free(x);
	if (x->pause_ms < left_ms(x)) {
		again(x, x->pause_ms);
		return;
	}
	not_again(x, RETRY_WHY_TIME);
	exchange_fail(x, cause);
}

bool retrying_spare(struct exchange *x, enum cause cause)
{
	struct spare *s = x->spare;

	if (!s || !s->whole || !causes[cause].error.n)
		return false;
	x->last_cause = (uint8_t)cause;
	x->last_status = 0;
	s->whole = false;
	local_pass(x, &s->head, buf_str(s->body));
	return true;
}
