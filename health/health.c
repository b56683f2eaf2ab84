/* health: see health.h.
 *
 * Owns all that is known of endpoints (record.h), the rules, and the channels' one reader; the main thread's own, but for
 * health_reader.  Called by proxy/server.c, which has the loop. */
#include "health/health.h"

#include "health/record.h"
#include "health/verdict.h"
#include "lib/base/mem.h"

#define SETTLE_MS 5	/* a sender is about to let go of its channel */
#define NEWS_MS 4	/* what comes so soon after the last news waits */

static void checked(void *ctx, void *who, bool good, const char *why);

static bool probe_take(void *ctx)
{
	struct health *h = ctx;

	return h->ops->probe.take(h->ctx);
}

static void probe_give(void *ctx)
{
	struct health *h = ctx;

	h->ops->probe.give(h->ctx);
}

static enum err probe_tls(void *ctx, const struct endpoint *e, struct ssl_st **ssl)
{
	struct health *h = ctx;

	return h->ops->probe.tls(h->ctx, e, ssl);
}

static const struct probe_ops probe_ops = { .take = probe_take, .give = probe_give, .tls = probe_tls, .done = checked };

static void wake(void *arg)
{
	struct health *h = arg;

	h->ops->wake(h->ctx);
}

struct health *health_new(const struct health_policy *usual, const struct health_ops *ops, void *ctx, uint32_t now)
{
	struct health *h = mem_zalloc(sizeof *h);

	if (!h)
		return NULL;
	h->ops = ops;
	h->ctx = ctx;
	h->random = h->now = now;
	h->heard = now - NEWS_MS;
	if (health_policies_init(&h->policies, usual) != OK) {
		mem_free(h);
		return NULL;
	}
	chan_reader_init(&h->reader, HEALTH_NEWS_MAX, wake, h);
	wheel_init(&h->checks, now);
	wheel_init(&h->looks, now);
	return h;
}

enum err health_number(struct health *h, const struct health_policy *p, uint16_t *number)
{
	return health_policies_number(&h->policies, p, number);
}

struct chan_reader *health_reader(struct health *h)
{
	return &h->reader;
}

struct health_counts health_counts(const struct health *h)
{
	return h->counts;
}

/* --- checks --- */

/* For jitter, which nobody need not foresee. */
static uint32_t draw(struct health *h)
{
	h->random = h->random * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)(h->random >> 32);
}

static void check_at(struct health *h, struct record *r, uint32_t due)
{
	r->check_waits = true;
	wheel_add(&h->checks, &r->check, due);
}

static void check_next(struct health *h, struct record *r)
{
	if (h->now - r->check.due > r->policy->check.interval)
		r->check.due = h->now;		/* what was missed is not made up for */
	check_at(h, r, check_after(&r->policy->check, r->check.due, draw(h)));
}

static void checked(void *ctx, void *who, bool good, const char *why)
{
	struct health *h = ctx;
	struct record *r = who;
	const struct check_rules *c = &r->policy->check;

	r->checking = false;
	h->counts.checks_failed += !good;
	if (rise_note(&r->rise, c, good)) {
		h->counts.unwell += r->rise.unwell;
		record_judge(h, r, VERDICT_UNWELL, r->rise.unwell);
		if (r->rise.unwell)
			health_say(h, HEALTH_UNWELL, r, "%u checks in a row failed, the last one: %s", c->fall, why);
		else
			health_say(h, HEALTH_WELL, r, "%u checks in a row went well", c->rise);
	}
	r->good = good && r->eject.out && !r->rise.unwell ? (uint8_t)(r->good + 1) : 0;
	if (r->good >= c->rise)
		record_back(h, r, h->now, "for its checks go well");
	record_tidy(h, r, h->now);
}

/* False: there is no room for it now. */
static bool check(struct health *h, struct record *r, uint32_t now)
{
	r->check_waits = false;
	if (endpoint_alone(r->endpoint)) {
		record_tidy(h, r, now);
		return true;
	}
	r->check_waits = true;
	if (r->checking) {	/* its time-out is longer than the interval */
		check_next(h, r);
		return true;
	}
	r->checking = true;
	if (prober_begin(h->prober, r->endpoint, &r->policy->check, r, now) == OK) {
		h->counts.checks++;
		check_next(h, r);
		return true;
	}
	r->checking = false;
	return false;
}

static void late_add(struct health *h, struct record *r)
{
	h->counts.checks_late++;
	r->check.next = NULL;
	*(h->late ? h->late_end : &h->late) = r;
	h->late_end = (struct record **)&r->check.next;	/* an item is the first of its record */
}

/* Those that are late come first, since the others would never let them. */
static void check_due(struct health *h, uint32_t now)
{
	struct wheel_item *i, *next;
	struct record *r;

	while ((r = h->late)) {
		next = r->check.next;
		if (!check(h, r, now))
			break;
		h->late = (struct record *)next;
	}
	for (i = wheel_due(&h->checks, now); i; i = next) {
		next = i->next;
		r = (struct record *)i;
		if (h->late || !check(h, r, now))
			late_add(h, r);
	}
}

void health_service(struct health *h, struct service *s)
{
	const struct endpoint_set *set = service_set(s);
	const struct health_policy *p;
	struct record *r;

	for (uint32_t i = 0; i < set->n; i++) {
		struct endpoint *e = set->at[i].endpoint;

		p = h->policies.at[e->health < h->policies.n ? e->health : 0];
		if (p->eject.panic)
			panic_watch(h, s);
		if (!p->check.kind)
			continue;
		if (!h->prober)
			h->prober = prober_new(&probe_ops, h, h->now);
		r = h->prober ? record_get(h, e) : NULL;
		/* where in the interval is the endpoint's own matter: many are spread, and no two processes need to agree */
		if (r && !r->check_waits)
			check_at(h, r, h->now + (uint32_t)((uint64_t)(endpoint_id(e) * 2654435761u) * p->check.interval >> 32));
	}
}

/* --- news --- */

static void eject(struct health *h, struct record *r, const struct service *s, enum eject_said said, uint8_t cause, uint32_t now)
{
	const struct endpoint_set *set = service_set(s);
	const struct eject_rules *rules = &r->policy->eject;
	uint32_t n = 0, out = 0, ms;

	for (uint32_t i = 0; i < set->n; i++) {
		const struct service_endpoint *e = &set->at[i];

		if (!e->weight || e->state >= ENDPOINT_DRAIN)
			continue;
		n++;
		out += e->endpoint != r->endpoint &&
		       (atomic_load_explicit(&e->endpoint->verdict, memory_order_relaxed) & (VERDICT_EJECTED | VERDICT_UNWELL));
	}
	if (!eject_spares(rules, n, out)) {
		h->counts.spared++;
		health_say(h, HEALTH_SPARED, r, "%s, the last one: %s; it is used on, for %u of the %u endpoints of service %.*s are out",
			   said == EJECT_RUN ? "too many requests in a row failed" : "too large a part of the requests failed",
			   h->ops->cause(cause), out, n, (int)s->name_len, s->name);
		return;
	}
	ms = eject_out(&r->eject, rules, now);
	h->counts.ejections++;
	r->good = 0;
	record_judge(h, r, VERDICT_EJECTED, true);
	if (said == EJECT_RUN)
		health_say(h, HEALTH_EJECTED, r, "left out for %u.%u s: %u requests in a row failed, the last one: %s",
			   ms / 1000, ms / 100 % 10, r->eject.run, h->ops->cause(cause));
	else
		health_say(h, HEALTH_EJECTED, r, "left out for %u.%u s: %u of %u requests failed, the last one: %s",
			   ms / 1000, ms / 100 % 10, r->eject.failed, r->eject.failed + r->eject.ok, h->ops->cause(cause));
}

static void note(struct health *h, struct sign *s, const struct service *service, const struct sign_counts *c, uint32_t now)
{
	struct record *r = record_get(h, s->endpoint);
	enum eject_said said;

	if (!r)
		return;
	said = eject_note(&r->eject, &r->policy->eject, c->ok, c->failed, c->run, now);
	if (said != EJECT_NO)
		eject(h, r, service, said, c->cause, now);
	verdict_set(r->endpoint, VERDICT_WATCHED, eject_watches(&r->eject, &r->policy->eject));
	record_look_later(h, r, now);
}

/* True: some are still to be settled. */
static bool news(struct health *h, uint32_t now)
{
	struct chan_node *m, *next, *left = NULL;
	struct chan *from;

	while ((m = chan_next(&h->reader, &from)))
		for (; m; m = next) {
			next = m->next;
			m->next = h->settling;
			h->settling = m;
		}
	for (m = h->settling; m; m = next) {
		struct sign *s = (struct sign *)m;
		struct sign_counts counts;
		struct service *service;

		next = m->next;
		if (!sign_settle(s, &counts, &service)) {
			m->next = left;
			left = m;
			continue;
		}
		h->counts.signs++;
		if (counts.failed || counts.ok)
			note(h, s, service, &counts, now);
		service_unref(service);
		sign_put(s);
	}
	h->settling = left;
	return left;
}

/* Not at every word of a busy worker.  In how many ms again; -1: when there is something new. */
static int64_t listen(struct health *h, uint32_t now)
{
	if (!h->settling && !chan_waits(&h->reader))
		return -1;
	if (now - h->heard < NEWS_MS)
		return NEWS_MS;
	h->heard = now;
	return news(h, now) ? SETTLE_MS : -1;
}

/* --- the turn --- */

static void look(struct health *h, struct record *r, uint32_t now)
{
	r->look_waits = false;
	if (r->eject.out && (int32_t)(now - r->eject.until) >= 0)
		record_back(h, r, now, "for its time is over; the next failure puts it out again");
	if (!endpoint_alone(r->endpoint) && !eject_calm(&r->eject, &r->policy->eject, now))
		record_look_later(h, r, now);
	else
		record_tidy(h, r, now);
}

static int64_t sooner(int64_t a, int64_t b)
{
	return a < 0 || (b >= 0 && b < a) ? b : a;
}

int64_t health_tend(struct health *h, uint32_t now)
{
	struct wheel_item *i, *next;
	int64_t wait;

	h->now = now;
	wait = listen(h, now);
	for (i = wheel_due(&h->looks, now); i; i = next) {
		next = i->next;
		look(h, record_of_look(i), now);
	}
	if (h->prober)
		prober_tend(h->prober, now);
	check_due(h, now);
	panic_look(h);
	if (h->late)
		wait = sooner(wait, WHEEL_TICK);
	wait = sooner(wait, sooner(wheel_wait(&h->looks, now), wheel_wait(&h->checks, now)));
	return h->prober ? sooner(wait, prober_wait(h->prober, now)) : wait;
}

void health_free(struct health *h)
{
	if (!h)
		return;
	while (h->settling || news(h, h->now))
		news(h, h->now);
	prober_free(h->prober);
	panic_end(h);
	for (uint32_t i = 0; i < h->n_records; i++)
		if (h->records[i]) {
			endpoint_unref(h->records[i]->endpoint);
			mem_free(h->records[i]);
		}
	mem_free(h->records);
	chan_reader_fini(&h->reader);
	health_policies_fini(&h->policies);
	mem_free(h);
}
