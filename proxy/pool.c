/* pool: see pool.h.
 *
 * An upstream connection is CONNECTING (in pool->connecting, with a dispatch queue of its own),
 * POOLED (in the newest..oldest list, time-out upstream_idle) or LEASED (a lease has it).
 *
 * A waiting lease is in exactly one queue: that of a connecting connection
 * (l->waits_on) or, when that has come up for another, or no descriptor is left, pool->waiting.  Either
 * way it gets the first connection that becomes free: whoever frees or opens one only marks the pool
 * dirty, and pool_hand_out, once a turn, brings the two together.  So nothing here runs an exchange
 * from inside another, and order is by arrival.  Who waits here has its slot; those that have none
 * wait for the service (slots.c).
 *
 * A pool that has no connection is freed; but while it has sessions of TLS to resume, it rests for some minutes first.
 *
 * Connections are counted in the endpoint, over all workers, from before they connect until they are closed.  One that
 * is idle while another worker waits for it is closed, so that the other can open one. */
#include "proxy/pool.h"

#include <string.h>

#include "dispatch/idle.h"
#include "dispatch/slot.h"
#include "health/health.h"
#include "health/verdict.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/net/socket.h"
#include "proxy/handshake.h"
#include "proxy/log.h"
#include "proxy/lot.h"
#include "proxy/server.h"
#include "proxy/slots.h"
#include "proxy/tls.h"
#include "proxy/worker.h"

#define POOLS_FIRST 512	/* of a page */
#define ITEM sizeof(struct lease *)

/* --- the pool itself --- */

void pools_free(struct worker *w)
{
	if (w->pools)
		mem_pages_free(w->pools, w->n_pools * sizeof(struct pool *));
	w->pools = NULL;
}

/* Whole pages from the system: where no endpoint is in use, none is touched, however far the numbers go. */
static enum err pools_reach(struct worker *w, uint32_t index)
{
	uint32_t n = w->n_pools ? w->n_pools : POOLS_FIRST;
	struct pool **grown;

	if (index < w->n_pools)
		return OK;
	while (n <= index)
		n *= 2;
	grown = mem_pages(n * sizeof *grown);
	if (!grown)
		return ERR_MEM;
	for (uint32_t i = 0; i < w->n_pools; i++)
		if (w->pools[i])
			grown[i] = w->pools[i];
	pools_free(w);
	w->pools = grown;
	w->n_pools = n;
	return OK;
}

static void keep_text(struct pool *p)
{
	char text[ENDPOINT_TEXT_MAX];
	struct str s = endpoint_text(p->endpoint, text);

	if (s.n > sizeof p->text)
		return;
	memcpy(p->text, s.p, s.n);
	p->text_len = (uint8_t)s.n;
}

/* --- rest --- */

static void rest_end(struct pool *p)
{
	if (!p->resting)
		return;
	p->resting = false;
	p->w->resting_pools--;
	ttl_unlink(&p->link);
}

/* Sessions outlive the connections that they are of: else an endpoint that closes each, or is asked seldom, would never
 * see one again. */
static bool rest(struct pool *p)
{
	struct worker *w = p->w;

	if (!p->resume.session[0] || w->draining || w->resting_pools >= POOL_REST_MAX || !endpoint_used(p->endpoint))
		return false;
	p->resting = true;
	w->resting_pools++;
	ttl_link(&w->pool_ttl, w->list.rest, &p->link, w->now_ms);
	return true;
}

static __attribute__((noinline)) struct pool *pool_new(struct worker *w, struct endpoint *e)
{
	struct pool *p;

	if (pools_reach(w, e->index) != OK)
		return NULL;
	p = slab_get(&w->pools_slab);
	if (!p)
		return NULL;
	*p = (struct pool){ .w = w, .endpoint = endpoint_ref(e) };
	w->pools[e->index] = p;
	keep_text(p);
	return p;
}

struct str pool_text(const struct worker *w, const struct endpoint *e, char text[ENDPOINT_TEXT_MAX])
{
	const struct pool *p = e->index < w->n_pools ? w->pools[e->index] : NULL;

	return p && p->text_len ? (struct str){ p->text, p->text_len } : endpoint_text(e, text);
}

static inline struct pool *pool_of(struct worker *w, struct endpoint *e)
{
	struct pool *p = e->index < w->n_pools ? w->pools[e->index] : NULL;

	if (!p)
		return pool_new(w, e);
	if (p->resting)
		rest_end(p);
	return p;
}

static void pool_dirty(struct pool *p)
{
	if (p->dirty)
		return;
	p->dirty = true;
	p->next_dirty = p->w->dirty;
	p->w->dirty = p;
}

static void pool_free(struct pool *p)
{
	struct worker *w = p->w;

	w->pools[p->endpoint->index] = NULL;
	tls_resume_fini(&p->resume);
	sign_put(p->sign);
	endpoint_unref(p->endpoint);
	slab_put(&w->pools_slab, p);
}

static void pool_free_if_empty(struct pool *p)
{
	if (!p->conns && !slotq_len(&p->waiting) && !ttl_linked(&p->link) && !rest(p))
		pool_free(p);
}

static struct sign *sign_of(struct pool *p)
{
	if (!p->sign && p->w->server->health)
		p->sign = sign_new(p->endpoint);
	return p->sign;
}

/* `s`: whose request it was; NULL: nobody's any more. */
static void note_bad(struct pool *p, const struct service *s, enum cause cause)
{
	if (sign_of(p))
		sign_failed(p->sign, health_reader(p->w->server->health), s, (uint8_t)cause);
}

void pool_tell_good(struct upstream *u, const struct service *s)
{
	struct pool *p = u->c.peer.pool;

	if (sign_of(p))
		sign_good(p->sign, health_reader(p->w->server->health), s);
}

void pool_note_bad(struct upstream *u, const struct service *s, enum cause cause)
{
	note_bad(u->c.peer.pool, s, cause);
}

static void note_failed(struct pool *p, const struct service *s, enum cause cause)
{
	char text[ENDPOINT_TEXT_MAX];

	COUNT(p->w, connects_failed);
	note_bad(p, s, cause);
	if (!verdict_connect_failed(p->endpoint))
		return;
	slots_stir(p->w->server, p->endpoint);
	LOG_RATE(LEVEL_WARN, "endpoint %s: %s", endpoint_text(p->endpoint, text).p, causes[cause].text.p);
	ttl_link(&p->w->pool_ttl, p->w->list.avoid, &p->link, p->w->now_ms);
}

void pool_due(struct pool *p)
{
	if (p->resting) {
		rest_end(p);
		tls_resume_fini(&p->resume);
	} else {
		verdict_retry(p->endpoint);
		slots_stir(p->w->server, p->endpoint);
	}
	pool_dirty(p);
}

/* --- kept connections --- */

static void kept_unlink(struct upstream *u)
{
	struct pool *p = u->c.peer.pool;

	*(u->u.pooled.prev ? &u->u.pooled.prev->u.pooled.next : &p->newest) = u->u.pooled.next;
	*(u->u.pooled.next ? &u->u.pooled.next->u.pooled.prev : &p->oldest) = u->u.pooled.prev;
	worker_wait_end(&u->c);
}

/* As long as it may be idle, and less when the endpoint is known to close it sooner. */
static uint8_t idle_list(struct pool *p)
{
	uint32_t most = p->w->settings->timeouts.upstream_idle, ms;

	if (!atomic_load_explicit(&p->endpoint->idle, memory_order_relaxed))
		return p->w->list.upstream_idle;
	ms = idle_keep_ms(&p->endpoint->idle, most, p->w->now_ms);
	return ms == most ? p->w->list.upstream_idle : ttl_list_for(&p->w->ttl, ms);
}

/* The endpoint has closed one that was idle for `idle` ms.  Those that it closes with others are about something else. */
static void learn(struct pool *p, uint32_t idle)
{
	uint32_t now = p->w->now_ms;

	if (!p->closed_ms || (now | 1) - p->closed_ms > idle / 2)
		idle_closed(&p->endpoint->idle, idle, now);
	p->closed_ms = now | 1;
}

static void kept_link(struct upstream *u)
{
	struct pool *p = u->c.peer.pool;

	u->c.t.state = CONN_POOLED;
	u->c.work.lease = NULL;
	u->u.pooled.prev = NULL;
	u->u.pooled.next = p->newest;
	*(p->newest ? &p->newest->u.pooled.prev : &p->oldest) = u;
	p->newest = u;
	worker_wait(p->w, &u->c, idle_list(p));
}

/* Any connection of the pool, in any state but that its lists have let go of it. */
static void upstream_close(struct upstream *u)
{
	struct pool *p = u->c.peer.pool;

	p->conns--;
	pool_dirty(p);
	conn_close(p->w, &u->c, false);
	slots_give_conn(p->w, p->endpoint);
}

static void kept_close(struct upstream *u)
{
	kept_unlink(u);
	upstream_close(u);
}

/* A byte or a FIN on a connection that owes us nothing ends it. */
static bool kept_usable(struct upstream *u, bool look)
{
	struct str in;
	char byte;

	if (u->c.t.flags & (CONN_READABLE | CONN_PEER_DONE | CONN_BROKEN))
		look = true;
	if (!look)
		return true;
	if (u->c.t.flags & (CONN_PEER_DONE | CONN_BROKEN))
		return false;
	if (conn_secure(&u->c)) {	/* a ticket, or new keys, end nothing */
		u->c.t.flags |= CONN_READABLE;
		return conn_read(u->c.peer.pool->w, &u->c, 1, &in) < 0 && errno == EAGAIN;
	}
	if (recv(u->c.t.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || errno != EAGAIN)
		return false;
	u->c.t.flags &= (uint8_t)~CONN_READABLE;
	return true;
}

static void lease(struct lease *l, struct upstream *u, bool kept)
{
	u->c.t.state = CONN_LEASED;
	u->c.work.lease = l;
	u->c.t.more = (uint8_t)((u->c.t.more & ~CONN_OWN) | (l->own ? CONN_OWN : 0));
	l->up = u;
	if (kept)
		COUNT(l->w, reused);
	l->ops->leased(l, u, kept);
}

/* --- slots --- */

/* A connection that nobody here needs now, and another worker does. */
static bool wanted(const struct pool *p)
{
	return slot_waited(p->endpoint) && lot_wants(p->w->server->lot, p->endpoint, p->w->index);
}

bool pool_has(const struct lease *l, const struct endpoint *e)
{
	const struct pool *p = e->index < l->w->n_pools ? l->w->pools[e->index] : NULL;

	return p && p->newest;
}

/* What must not be lost is not sent on a connection that may be near the end of its time: it gets one that was
 * used a moment ago, or one of its own. */
static void avoid_old(struct lease *l, const struct pool *p)
{
	const struct upstream *u = p->newest;
	uint32_t idle = u ? l->w->now_ms - u->c.stamp : 0;

	if (idle > POOL_RECENT_MS || idle > idle_keep_ms(&p->endpoint->idle, UINT32_MAX, l->w->now_ms) / 2)
		l->fresh = true;
}

/* A kept connection for `l`: those that have ended meanwhile are closed. */
static bool has_kept(struct pool *p, struct lease *l)
{
	if (l->careful)
		avoid_old(l, p);
	while (!l->fresh && !l->own && p->newest) {
		if (kept_usable(p->newest, l->careful))
			return true;
		kept_close(p->newest);
	}
	return false;
}

bool pool_reserve(struct lease *l)
{
	uint32_t max = l->service->rules->max_connections;
	struct pool *p;

	if (!max)
		return true;
	p = pool_of(l->w, l->endpoint);
	if (!p)
		return false;
	if (has_kept(p, l))
		return true;
	l->room = slot_take_conn(p->endpoint, max);
	if (!l->room && p->oldest) {	/* it takes the place of one that it cannot use */
		struct upstream *u = p->oldest;

		kept_unlink(u);
		p->conns--;
		conn_close(p->w, &u->c, false);
		l->room = true;
	}
	if (!l->room)
		pool_dirty(p);
	return l->room;
}

void pool_unreserve(struct lease *l)
{
	if (l->room)
		slots_give_conn(l->w, l->endpoint);
	l->room = false;
	slots_give(l, l->endpoint);
}

/* --- connecting --- */

static void connecting_unlink(struct upstream *u)
{
	struct upstream **at = &u->c.peer.pool->connecting;

	while (*at != u)
		at = &(*at)->c.work.next_connecting;
	*at = u->c.work.next_connecting;
	u->c.peer.pool->n_connecting--;
	worker_wait_end(&u->c);
}

static void connecting_link(struct upstream *u)
{
	struct upstream **at = &u->c.peer.pool->connecting;

	while (*at)
		at = &(*at)->c.work.next_connecting;
	*at = u;
	u->c.work.next_connecting = NULL;
	u->c.peer.pool->n_connecting++;
	u->c.t.state = CONN_CONNECTING;
	slotq_init(&u->u.queue);
	worker_wait(u->c.peer.pool->w, &u->c, u->c.peer.pool->w->list.connect);
}

static enum cause connect_fd(struct pool *p, struct lease *l, struct upstream **out)
{
	struct endpoint_address e = endpoint_address_of(p->endpoint);
	struct socket_address a;
	struct upstream *u;
	enum cause cause;
	bool done;
	int fd;

	if (e.family == ENDPOINT_UNIX) {
		if (socket_address_unix(&a, e.path) != OK)
			return CAUSE_CONNECT_FAILED;
	} else {
		socket_address_ip(&a, e.family == ENDPOINT_IP6, e.ip, e.port);
	}
	fd = socket_connect(&a, &done);
	if (fd < 0) {
		cause = cause_of_connect(errno);
		note_failed(p, l->service, cause);
		return cause;
	}
	u = (struct upstream *)worker_conn(p->w, fd, true, tls_of_endpoint(p->endpoint));
	if (!u)
		return CAUSE_NO_MEMORY;
	COUNT(p->w, connects);
	u->c.t.more = l->own ? CONN_OWN : 0;
	u->c.peer.pool = p;
	p->conns++;
	connecting_link(u);
	*out = u;
	return CAUSE_NONE;
}

/* With the room that `l` has for it, or without any limit. */
static enum cause connect_new(struct pool *p, struct lease *l, struct upstream **out)
{
	enum cause cause;

	if (!worker_may_open(p->w, true))
		return CAUSE_NO_DESCRIPTORS;
	if (!l->room)
		slot_take_conn(p->endpoint, 0);
	l->room = false;
	cause = connect_fd(p, l, out);
	if (cause != CAUSE_NONE)
		slots_give_conn(p->w, p->endpoint);
	return cause;
}

/* Whether there will be a descriptor in the next turn that there is not now: for a kept connection, of any pool,
 * is worth less than a request that waits. */
static bool room_soon(struct worker *w)
{
	for (uint32_t i = 0; i < w->n_pools && !w->dead; i++)
		if (w->pools[i] && w->pools[i]->oldest)
			kept_close(w->pools[i]->oldest);
	return w->dead;
}

/* --- waiting --- */

static enum err wait_behind(struct lease *l, struct pool *p, struct upstream *u)
{
	struct worker *w = l->w;
	enum err err = !u && l->hasty ? ERR_LIMIT : slotq_push(u ? &u->u.queue : &p->waiting, &l, ITEM, w->settings->queue, &w->budget);

	if (err != OK)
		return err;
	if (l->room)
		slots_give_conn(w, p->endpoint);
	l->room = false;
	l->pool = p;
	l->waits_on = u;
	if (l->clock && u)
		worker_wait_end(l->clock);	/* the connect has its own time-out */
	else if (l->clock)
		worker_wait(w, l->clock, w->list.queue);
	return OK;
}

void pool_leave(struct lease *l)
{
	struct pool *p = l->pool;
	struct slotq *q;
	struct lease **at;

	if (!p) {
		slots_leave(l);
		return;
	}
	q = l->waits_on ? &l->waits_on->u.queue : &p->waiting;
	for (uint32_t i = 0; i < slotq_len(q); i++) {
		at = slotq_at(q, i, ITEM);
		if (*at == l) {
			slotq_remove(q, i, ITEM, &l->w->budget);
			break;
		}
	}
	pool_dirty(p);
	l->pool = NULL;
	l->waits_on = NULL;
	if (l->clock)
		worker_wait_end(l->clock);
	slots_give(l, p->endpoint);
}

/* Takes the oldest out of a queue; NULL when it is empty. */
static struct lease *pop(struct pool *p, struct slotq *q)
{
	struct lease *l;

	if (!slotq_pop(q, &l, ITEM, &p->w->budget))
		return NULL;
	l->pool = NULL;
	l->waits_on = NULL;
	if (l->clock)
		worker_wait_end(l->clock);
	return l;
}

/* Who waits longest and may have a connection that is free. */
static struct lease *next_waiting(struct pool *p)
{
	struct lease **first = slotq_at(&p->waiting, 0, ITEM), *l = NULL;

	if (first && !(*first)->own)
		l = pop(p, &p->waiting);
	for (struct upstream *u = p->connecting; u && !l; u = u->c.work.next_connecting) {
		first = slotq_at(&u->u.queue, 0, ITEM);
		if (first && !(*first)->fresh && !(*first)->own)	/* they want a fresh connection */
			l = pop(p, &u->u.queue);
	}
	return l;
}

/* A new connection, or a wait for one. */
static __attribute__((noinline)) enum cause ask_new(struct lease *l, struct pool *p)
{
	struct upstream *u = NULL;
	enum cause cause;

	if (p->n_connecting >= POOL_CONNECTING_MAX) {
		u = l->hasty ? NULL : p->connecting;
	} else {
		cause = connect_new(p, l, &u);
		if (cause != CAUSE_NONE)
			pool_dirty(p);
		/* without a descriptor it waits for one, or for one of the connections that there are */
		if (cause != CAUSE_NONE &&
		    (cause != CAUSE_NO_DESCRIPTORS || l->hasty || (!room_soon(l->w) && !p->conns)))
			return cause;
	}
	COUNT(l->w, queued);
	switch (wait_behind(l, p, u)) {
	case OK:
		return CAUSE_NONE;
	case ERR_LIMIT:
		return CAUSE_QUEUE_FULL;
	default:
		return CAUSE_NO_MEMORY;
	}
}

enum cause pool_ask(struct lease *l)
{
	struct pool *p = pool_of(l->w, l->endpoint);
	enum cause cause = CAUSE_NO_MEMORY;
	struct upstream *u;

	if (p && has_kept(p, l)) {
		u = p->newest;
		kept_unlink(u);
		lease(l, u, u->c.t.flags & CONN_SERVED);
		return CAUSE_NONE;
	}
	if (p)
		cause = ask_new(l, p);
	if (cause != CAUSE_NONE)
		pool_unreserve(l);
	return cause;
}

enum cause pool_get(struct lease *l)
{
	if (rules_limit(l->service->rules))
		return slots_get(l);
	if (slot_counted(l->endpoint))
		l->slot = slot_take(l->endpoint, 0, true);
	return pool_ask(l);
}

/* The lease that had it is done with the endpoint, too: what becomes free is told once. */
static void leased_close(struct upstream *u)
{
	struct lease *l = u->c.work.lease;
	struct pool *p = u->c.peer.pool;

	p->conns--;
	pool_dirty(p);
	conn_close(p->w, &u->c, false);
	if (l->slot)
		atomic_fetch_sub_explicit(&p->endpoint->conns, 1, memory_order_seq_cst);
	else
		slots_give_conn(p->w, p->endpoint);
	slots_give(l, p->endpoint);
}

void pool_put(struct upstream *u)
{
	struct lease *l = u->c.work.lease;
	struct pool *p = u->c.peer.pool;

	u->c.t.flags |= CONN_SERVED;
	worker_wait_end(&u->c);
	if (u->c.t.type == TRANSPORT_TLS)
		handshake_park(p->w, &u->c);
	if ((u->c.t.more & CONN_OWN) || !kept_usable(u, false) || p->w->draining || !endpoint_used(p->endpoint) || wanted(p)) {
		leased_close(u);
		return;
	}
	kept_link(u);
	if (slotq_len(&p->waiting) || p->connecting)
		pool_dirty(p);
	slots_give(l, p->endpoint);
}

void pool_discard(struct upstream *u)
{
	leased_close(u);
}

void pool_spare(struct pool *p)
{
	if (p->oldest)
		kept_close(p->oldest);
}

/* Everybody behind this connect hears that it failed. */
static void connect_failed(struct upstream *u, enum cause cause)
{
	struct pool *p = u->c.peer.pool;
	struct slotq queue = u->u.queue;
	struct lease *l, **first = slotq_at(&queue, 0, ITEM);

	connecting_unlink(u);
	note_failed(p, first ? (*first)->service : NULL, cause);
	upstream_close(u);
	while ((l = pop(p, &queue))) {
		slots_give(l, p->endpoint);
		l->ops->failed(l, cause);
	}
}

static void connected(struct upstream *u)
{
	struct pool *p = u->c.peer.pool;
	struct slotq queue = u->u.queue;
	struct lease *l, *first;
	char text[ENDPOINT_TEXT_MAX];

	if (verdict_connected(p->endpoint)) {
		LOG_RATE(LEVEL_INFO, "endpoint %s is up again", endpoint_text(p->endpoint, text).p);
		slots_stir(p->w->server, p->endpoint);
	}
	socket_receive_small(u->c.t.fd, &p->w->settings->socket);
	connecting_unlink(u);
	first = pop(p, &queue);
	while ((l = pop(p, &queue)))	/* they wait for any connection from now on */
		if (wait_behind(l, p, NULL) != OK) {
			slots_give(l, p->endpoint);
			l->ops->failed(l, CAUSE_QUEUE_FULL);
		}
	pool_dirty(p);
	if (first)
		lease(first, u, false);
	else if ((u->c.t.more & CONN_OWN) || wanted(p))
		upstream_close(u);	/* whoever it was for has left, and it would be of no use to others */
	else
		kept_link(u);
	if (!first && p->w->pending)
		p->w->look = true;
}

/* The handshake with the endpoint has taken a step. */
static void shaken(struct upstream *u, enum shaken got)
{
	if (got == SHAKEN_DONE)
		connected(u);
	else if (got == SHAKEN_FAILED)
		connect_failed(u, handshake_cause(u));
}

void pool_event(struct upstream *u, unsigned events)
{
	int error;

	if (u->c.t.state == CONN_POOLED) {
		if (kept_usable(u, false))
			return;
		learn(u->c.peer.pool, u->c.peer.pool->w->now_ms - u->c.stamp);
		kept_close(u);
		return;
	}
	if (u->c.t.type == TRANSPORT_TLS) {
		shaken(u, handshake_step(u->c.peer.pool->w, &u->c));
		return;
	}
	if (!(events & (LOOP_WRITABLE | LOOP_BROKEN)))
		return;
	error = socket_error(u->c.t.fd);
	if (error)
		connect_failed(u, cause_of_connect(error));
	else if (u->c.t.type == TRANSPORT_HELLO)
		shaken(u, handshake_connect(u->c.peer.pool->w, u));
	else
		connected(u);
}

void pool_timeout(struct upstream *u)
{
	if (u->c.t.state == CONN_POOLED)
		kept_close(u);
	else
		connect_failed(u, CAUSE_CONNECT_TIMEOUT);
}

/* A connection is opened for one that waited in pool->waiting, or it waits for the service from now on. */
static void open_for(struct pool *p, struct lease *l)
{
	struct upstream *u;
	enum cause cause;

	if (!pool_reserve(l)) {
		cause = slots_wait_again(l, p->endpoint);
	} else {
		cause = connect_new(p, l, &u);
		if (cause == CAUSE_NONE && wait_behind(l, p, u) != OK)
			cause = CAUSE_NO_MEMORY;
		if (cause != CAUSE_NONE)
			pool_unreserve(l);
	}
	if (cause != CAUSE_NONE)
		l->ops->failed(l, cause);
}

/* Those in pool->waiting for whom a connection may be opened.  True: there will be room for more in the next turn. */
static bool open_for_waiting(struct pool *p)
{
	while (slotq_len(&p->waiting)) {
		if (p->n_connecting >= POOL_CONNECTING_MAX)
			return false;
		if (!worker_may_open(p->w, true)) {
			if (room_soon(p->w))
				return true;
			p->w->short_of_fds = true;
			if (p->conns)
				return false;
		}
		open_for(p, pop(p, &p->waiting));
	}
	return false;
}

void pool_look_for_room(struct worker *w)
{
	if (!w->short_of_fds || !worker_may_open(w, true))
		return;
	w->short_of_fds = false;
	for (uint32_t i = 0; i < w->n_pools; i++)
		if (w->pools[i] && slotq_len(&w->pools[i]->waiting))
			pool_dirty(w->pools[i]);
}

void pool_hand_out(struct worker *w)
{
	struct pool *p, *list = w->dirty;
	struct lease *l;
	struct upstream *u;
	bool more;

	w->dirty = NULL;
	while ((p = list)) {
		list = p->next_dirty;
		/* Still marked, so that nothing below frees it or lists it twice. */
		while ((u = p->newest) && (l = next_waiting(p))) {
			kept_unlink(u);
			lease(l, u, u->c.t.flags & CONN_SERVED);
		}
		more = open_for_waiting(p);
		p->dirty = false;
		if (more)
			pool_dirty(p);
		else
			pool_free_if_empty(p);
	}
}

void pool_close_kept(struct worker *w)
{
	for (uint32_t i = 0; i < w->n_pools; i++)
		while (w->pools[i] && w->pools[i]->oldest)
			kept_close(w->pools[i]->oldest);
}

void pool_close_unused(struct worker *w)
{
	for (uint32_t i = 0; i < w->n_pools; i++) {
		if (!w->pools[i] || endpoint_used(w->pools[i]->endpoint))
			continue;
		while (w->pools[i]->oldest)
			kept_close(w->pools[i]->oldest);
		if (w->pools[i]->resting)
			pool_due(w->pools[i]);
	}
}

void pool_close_all(struct worker *w)
{
	struct upstream *u, *next;

	pool_close_kept(w);
	for (uint32_t i = 0; i < w->n_pools; i++) {
		for (u = w->pools[i] ? w->pools[i]->connecting : NULL; u; u = next) {
			next = u->c.work.next_connecting;
			if (slotq_len(&u->u.queue))
				continue;
			connecting_unlink(u);
			upstream_close(u);
		}
	}
}

void pool_free_all(struct worker *w)
{
	struct pool *p;

	for (uint32_t i = 0; i < w->n_pools; i++) {
		p = w->pools[i];
		if (!p)
			continue;
		CHECK(!p->conns && !slotq_len(&p->waiting));
		rest_end(p);
		if (ttl_linked(&p->link))
			verdict_retry(p->endpoint);
		ttl_unlink(&p->link);
		pool_free(p);
	}
}
