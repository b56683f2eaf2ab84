/* slots: see slots.h.
 *
 * A lease of a service with limits has a slot of its endpoint from before it asks the pool for a connection until
 * it has given that back, whatever becomes of it: connecting counts, tunnels count, reading on by a slow client does not,
 * for its upstream was given back.  slot.h counts, over all workers.
 *
 * Who gets none waits for the service, not for an endpoint: first come, first served, but for those that are
 * sent again, which go to the front: they have waited before.  While anybody waits nobody passes, not even in another worker, for
 * the lot marks what is waited for.  slots_look finds an endpoint with room for the first in turn, takes its slot
 * and the right to its connection, and only then takes it out of the queue, so that none comes out in vain.
 *
 * When it is to look it is told: by the lot, when something was given back; by slots_stir, when an endpoint goes down
 * or comes up; by WORKER_PASS, when a service may consist of others.  A request for which there is no endpoint any
 * more is answered then. */
#include "proxy/slots.h"

#include <string.h>

#include "dispatch/slot.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "proxy/lot.h"
#include "proxy/pool.h"
#include "proxy/routing.h"
#include "proxy/server.h"
#include "proxy/worker.h"

struct waiter {
	struct lease *lease;	/* borrowed */
	uint64_t bytes;		/* that it holds */
};

#define ITEM sizeof(struct waiter)

/* --- slots --- */

static void look_if(struct worker *w, bool self)
{
	if (self)
		w->look = true;
}

void slots_give_back(struct lease *l, struct endpoint *e)
{
	l->slot = false;
	if (slot_give(e))
		look_if(l->w, lot_freed(l->w->server->lot, e, l->w->index));
}

void slots_give_conn(struct worker *w, struct endpoint *e)
{
	if (slot_give_conn(e))
		look_if(w, lot_freed(w->server->lot, e, w->index));
}

void slots_stir(struct server *server, struct endpoint *e)
{
	if (slot_waited(e))
		lot_stir(server->lot, e);
}

bool slots_room(struct lease *l, const struct endpoint *e, bool waited)
{
	const struct rules *r = l->service->rules;

	if (slot_waited(e) && !waited)
		return false;
	if (r->max_requests && slot_load(e) >= r->max_requests)
		return false;
	return !r->max_connections || slot_conns(e) < r->max_connections || pool_has(l, e);
}

/* A slot of l->endpoint, and the right to a connection. */
static bool take(struct lease *l, bool waited)
{
	const struct rules *r = l->service->rules;
	struct endpoint *e = l->endpoint;

	if (!slots_room(l, e, waited) || !slot_take(e, r->max_requests, waited))
		return false;
	l->slot = true;
	if (pool_reserve(l))
		return true;
	slots_give(l, e);
	return false;
}

/* --- queues --- */

static struct pending *pending_of(const struct worker *w, const struct service *s)
{
	return s->index < w->n_waited ? w->waited[s->index] : NULL;
}

static bool waited_reach(struct worker *w, uint32_t index)
{
	uint32_t n = w->n_waited ? w->n_waited : 8;
	struct pending **grown;

	while (n <= index)
		n *= 2;
	if (n <= w->n_waited)
		return true;
	grown = mem_realloc(w->waited, n * sizeof(struct pending *));
	if (!grown)
		return false;
	memset(grown + w->n_waited, 0, (n - w->n_waited) * sizeof(struct pending *));
	w->waited = grown;
	w->n_waited = n;
	return true;
}

/* At the end. */
static void pending_link(struct worker *w, struct pending *p)
{
	p->next = NULL;
	p->prev = w->last_pending;
	*(p->prev ? &p->prev->next : &w->pending) = p;
	w->last_pending = p;
}

static void pending_unlink(struct worker *w, struct pending *p)
{
	*(p->prev ? &p->prev->next : &w->pending) = p->next;
	*(p->next ? &p->next->prev : &w->last_pending) = p->prev;
}

static struct pending *pending_new(struct worker *w, const struct service *s)
{
	struct pending *p;

	if (!waited_reach(w, s->index))
		return NULL;
	p = mem_zalloc(sizeof *p);
	if (!p)
		return NULL;
	p->service = service_ref((struct service *)(uintptr_t)s);
	p->index = s->index;
	w->waited[p->index] = p;
	pending_link(w, p);
	return p;
}

/* Has no seat in the lot any more. */
static void part(struct worker *w, struct pending *p)
{
	for (uint32_t i = 0; i < p->n_joined; i++) {
		lot_leave(w->server->lot, p->joined[i], w->index);
		endpoint_unref(p->joined[i]);
	}
	mem_free(p->joined);
	p->joined = NULL;
	p->n_joined = 0;
}

/* Has a seat for each endpoint that the service has now.  ERR_MEM: for none. */
static enum err join(struct worker *w, struct pending *p)
{
	const struct endpoint_set *set = service_set(p->service);

	p->joined = mem_alloc((set->n + 1) * sizeof(struct endpoint *));
	if (!p->joined)
		return ERR_MEM;
	for (uint32_t i = 0; i < set->n; i++) {
		struct endpoint *e = set->at[i].endpoint;

		if (lot_join(w->server->lot, e, w->index, p->service->rules->max_connections) != OK) {
			part(w, p);
			return ERR_MEM;
		}
		p->joined[p->n_joined++] = endpoint_ref(e);
	}
	return OK;
}

/* What is free although `l`, the first of them, waits: `told` says so to whoever's turn it is.  And connections that it waits
 * for may lie idle in other workers. */
static void others(struct worker *w, struct pending *p, struct lease *l, bool (*told)(struct lot *, struct endpoint *, unsigned))
{
	bool idle = false;

	for (uint32_t i = 0; i < p->n_joined; i++) {
		struct endpoint *e = p->joined[i];

		if (slots_room(l, e, true))
			look_if(w, told(w->server->lot, e, w->index));
		else if (p->service->rules->max_connections && slot_conns(e) > slot_load(e))
			idle = true;
	}
	for (unsigned i = 0; idle && i < w->server->n_workers; i++)
		if (i != w->index)
			worker_tell(w->server->workers[i], WORKER_SPARE);
}

static void pending_free(struct worker *w, struct pending *p)
{
	pending_unlink(w, p);
	w->waited[p->index] = NULL;
	part(w, p);
	service_unref((struct service *)(uintptr_t)p->service);
	mem_free(p);
}

static struct lease *first_of(struct pending *p)
{
	return ((struct waiter *)slotq_at(&p->queue, 0, ITEM))->lease;
}

static void take_out(struct pending *p, uint32_t i, struct budget *budget)
{
	struct waiter *at = slotq_at(&p->queue, i, ITEM);
	struct lease *l = at->lease;

	p->bytes -= at->bytes;
	slotq_remove(&p->queue, i, ITEM, budget);
	l->pending = NULL;
	if (l->clock)
		worker_wait_end(l->clock);
}

void slots_leave(struct lease *l)
{
	struct pending *p = l->pending;
	uint32_t i = 0;

	while (((struct waiter *)slotq_at(&p->queue, i, ITEM))->lease != l)
		i++;
	take_out(p, i, &l->w->budget);
	if (!slotq_len(&p->queue))	/* it goes when the turn comes to it: whoever calls may be in the middle of it */
		l->w->look = true;
}

/* Behind all others, or in front of them. */
static enum err wait_in(struct pending *p, struct lease *l, bool front)
{
	struct waiter it = { l, l->ops->holds(l) };
	struct worker *w = l->w;
	enum err err;

	if (!front && slotq_len(&p->queue) && p->bytes + it.bytes > w->settings->waiting)
		return ERR_LIMIT;
	err = front ? slotq_push_front(&p->queue, &it, ITEM, &w->budget) :
		      slotq_push(&p->queue, &it, ITEM, SIZE_MAX, &w->budget);
	if (err != OK)
		return err;
	p->bytes += it.bytes;
	l->pending = p;
	if (l->clock)
		worker_wait(w, l->clock, w->list.queue);
	return OK;
}

static enum cause wait_for(struct lease *l, bool front)
{
	struct worker *w = l->w;
	struct pending *p = pending_of(w, l->service);

	if (l->hasty)
		return CAUSE_QUEUE_FULL;
	if (!p)
		p = pending_new(w, l->service);
	if (!p)
		return CAUSE_NO_MEMORY;
	switch (wait_in(p, l, front)) {
	case OK:
		break;
	case ERR_LIMIT:
		return CAUSE_QUEUE_FULL;
	default:
		w->look = true;		/* which frees it when it is empty */
		return CAUSE_NO_MEMORY;
	}
	if (!p->joined) {
		if (join(w, p) != OK) {
			slots_leave(l);
			return CAUSE_NO_MEMORY;
		}
		others(w, p, l, lot_freed);
	}
	COUNT(w, queued);
	return CAUSE_NONE;
}

enum cause slots_get(struct lease *l)
{
	struct pending *p = pending_of(l->w, l->service);

	if ((!p || !slotq_len(&p->queue)) && take(l, false))
		return pool_ask(l);
	return wait_for(l, l->again);
}

enum cause slots_wait_again(struct lease *l, struct endpoint *e)
{
	slots_give(l, e);
	return wait_for(l, true);
}

/* --- looking --- */

/* Takes a slot for the i-th, and it out of the queue; what became of it then is its own affair.  False: it waits on. */
static bool serve(struct worker *w, struct pending *p, uint32_t i)
{
	struct lease *l = ((struct waiter *)slotq_at(&p->queue, i, ITEM))->lease;
	enum cause cause = CAUSE_NONE;
	struct endpoint *e = routing_free(l, l->ops->tried(l), &cause), *before;

	if (!e && cause == CAUSE_NONE)
		return false;
	if (!e) {
		take_out(p, i, &w->budget);
		l->ops->failed(l, cause);
		return true;
	}
	before = endpoint_ref(l->endpoint);
	lease_aim(l, e);
	if (!take(l, true)) {
		lease_aim(l, before);
		endpoint_unref(before);
		return false;
	}
	take_out(p, i, &w->budget);
	if (l->ops->aimed && e != before && !l->ops->aimed(l, before))
		cause = CAUSE_NO_MEMORY;
	endpoint_unref(before);
	if (cause == CAUSE_NONE)
		cause = pool_ask(l);
	else
		pool_unreserve(l);
	if (cause != CAUSE_NONE)
		l->ops->failed(l, cause);
	return true;
}

/* One that is not served stands for those behind it, unless it is particular: they may take what it cannot. */
static bool particular(const struct lease *l)
{
	return l->fresh || l->own || l->again;
}

/* True: somebody was served. */
static bool look_at(struct worker *w, struct pending *p)
{
	struct waiter *it;
	bool served = false;
	uint32_t i = 0;

	while ((it = slotq_at(&p->queue, i, ITEM))) {
		bool stop = !particular(it->lease);

		if (serve(w, p, i))
			served = true;
		else if (stop)
			break;
		else
			i++;
	}
	return served;
}

void slots_look(struct worker *w)
{
	struct pending *p = w->pending, *last = w->last_pending, *next;
	bool served, end;

	w->look = false;
	for (end = !p; !end; p = next) {
		end = p == last;	/* those that come meanwhile look the next time */
		served = look_at(w, p);
		next = p->next;
		if (!slotq_len(&p->queue)) {
			pending_free(w, p);
			continue;
		}
		others(w, p, first_of(p), lot_pass);
		if (served) {		/* services that have an endpoint in common take turns */
			pending_unlink(w, p);
			pending_link(w, p);
		}
	}
}

void slots_look_anew(struct worker *w)
{
	for (struct pending *p = w->pending; p; p = p->next) {
		part(w, p);
		if (join(w, p) == OK)
			continue;
		while (slotq_len(&p->queue)) {	/* nobody would tell them */
			struct lease *l = first_of(p);

			take_out(p, 0, &w->budget);
			l->ops->failed(l, CAUSE_NO_MEMORY);
		}
	}
	w->look = w->pending != NULL;
}

/* One of each pool: what is closed is told, and whoever needs more asks again. */
void slots_spare(struct worker *w)
{
	for (uint32_t i = 0; i < w->n_pools; i++)
		if (w->pools[i] && slot_waited(w->pools[i]->endpoint) && lot_wants(w->server->lot, w->pools[i]->endpoint, w->index))
			pool_spare(w->pools[i]);
}

void slots_end(struct worker *w)
{
	while (w->pending) {
		CHECK(!slotq_len(&w->pending->queue));
		pending_free(w, w->pending);
	}
	mem_free(w->waited);
	w->waited = NULL;
	w->n_waited = 0;
}

void slots_tell(void *server, unsigned worker)
{
	worker_tell(((struct server *)server)->workers[worker], WORKER_SLOT);
}
