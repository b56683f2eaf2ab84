/* worker: one thread's turn.
 *
 *   poll, and visit what is woken -> letters -> time-outs -> hand out slots, connections
 *        -> visit what is ready -> run calls -> finish exchanges -> bury connections
 *
 * Time is read once, when the poll returns.  What an event names stays valid to the end of the
 * turn: a closed connection is only unlinked, and its descriptor is closed and its memory given
 * back by bury().  While something is left to do without an event (ready, dirty), the
 * poll does not sleep.  An idle worker makes no wake-up: its one timer is armed to the earliest
 * deadline, and to none when nothing waits. */
#include "proxy/worker.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/net/socket.h"
#include "proxy/call.h"
#include "proxy/client.h"
#include "proxy/compress.h"
#include "proxy/exchange.h"
#include "proxy/gate_basic.h"
#include "proxy/log.h"
#include "proxy/grace.h"
#include "proxy/handshake.h"
#include "proxy/heap.h"
#include "proxy/lease.h"
#include "proxy/pool.h"
#include "proxy/retrying.h"
#include "proxy/server.h"
#include "proxy/slots.h"
#include "proxy/stream.h"
#include "health/verdict.h"

#define TRIM_MS 1000u
#define COMPACT_MAX 512u		/* connections moved in one turn */
#define TRIM_WAVE 512		/* plain connections that make a wave */
#define TRIM_SSL 8u		/* SSL objects that make one, too */
#define TRIM_SECURE 8		/* times as much is one with TLS: each may hold what OpenSSL made of the heap */
#define CUT_BATCH 256		/* exchanges cut in one turn, at least */
#define CUT_PACE_MS 1

static void clock_read(struct worker *w)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	w->now_us = (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
	w->now_ms = (uint32_t)(w->now_us / 1000);
	clock_gettime(CLOCK_REALTIME_COARSE, &t);
	w->wall_ms = (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
	w->now_stale = false;
}

/* --- visiting --- */

static void visit(struct worker *w, struct conn *c, unsigned events)
{
	switch (c->t.state) {
	case CONN_IDLE:
	case CONN_HEAD:
	case CONN_LINGER:
		client_visit(w, c);
		break;
	case CONN_BUSY:
		exchange_client_event(c->work.exchange);
		break;
	case CONN_STREAM:
		stream_event(c->work.stream);
		break;
	case CONN_SHAKING:
		handshake_event(w, c);
		break;
	case CONN_LEASED:
		c->work.lease->ops->event(c->work.lease);
		break;
	case CONN_CONNECTING:
	case CONN_POOLED:
		pool_event((struct upstream *)c, events);
		break;
	case CONN_DEAD:
		break;
	default:
		CHECK(false);
	}
}

static void on_begin(void *ctx)
{
	clock_read(ctx);
}

static void on_ready(void *ctx, void *ptr, unsigned events)
{
	struct worker *w = ctx;
	const struct transport *t = ptr;	/* first in both: a conn or an acceptor */
	struct conn *c;

	if (t->state == CONN_ACCEPTOR) {
		client_accept(w, ptr);
		return;
	}
	if (t->state == CONN_DEAD)
		return;
	c = ptr;
	conn_note(c, events);
	visit(w, c, events);
}

static void on_woken(void *ctx)
{
	(void)ctx;	/* that the poll returned is all; letters are looked at in every turn */
}

static const struct loop_events events = { .begin = on_begin, .ready = on_ready, .woken = on_woken };

/* Room in `ready` for all connections: one that has work must never find none.  Each has a place while it
 * waits, one that it was visited from this turn, and those that were closed leave theirs for a turn. */
static bool ready_room(struct worker *w)
{
	size_t need = 4 * worker_open(w), max = w->max_ready ? w->max_ready : 64;
	struct conn **grown;

	if (need <= w->max_ready)
		return true;
	while (max < need)
		max *= 2;
	grown = mem_realloc(w->ready, max * sizeof(struct conn *));
	if (!grown)
		return false;
	w->ready = grown;
	w->max_ready = (unsigned)max;
	return true;
}

void worker_ready(struct worker *w, struct conn *c)
{
	if (c->t.flags & CONN_IN_READY)
		return;
	CHECK(w->n_ready < w->max_ready);
	c->t.flags |= CONN_IN_READY;
	w->ready[w->n_ready++] = c;
}

void worker_not_ready(struct worker *w, struct conn *c)
{
	for (unsigned i = 0; i < w->n_ready; i++)
		if (w->ready[i] == c)
			w->ready[i] = NULL;
	c->t.flags &= (uint8_t)~CONN_IN_READY;
}

/* Each once; what becomes ready meanwhile has its turn in the next one. */
static void visit_ready(struct worker *w)
{
	unsigned n = w->n_ready;

	for (unsigned i = 0; i < n; i++) {
		struct conn *c = w->ready[i];

		if (!c)
			continue;
		w->ready[i] = NULL;
		c->t.flags &= (uint8_t)~CONN_IN_READY;
		visit(w, c, 0);
	}
	if (n)
		memmove(w->ready, w->ready + n, (w->n_ready - n) * sizeof(struct conn *));
	w->n_ready -= n;
}

/* --- time-outs --- */

static struct conn *conn_of(struct ttl_link *l)
{
	return (struct conn *)((char *)l - offsetof(struct conn, link));
}

static void timeouts(struct worker *w)
{
	struct ttl_link *l;

	while ((l = ttl_expired(&w->ttl, w->now_ms))) {
		struct conn *c = conn_of(l);

		switch (c->t.state) {
		case CONN_BUSY:
			exchange_client_timeout(c->work.exchange);
			break;
		case CONN_STREAM:
			stream_timeout(c->work.stream);
			break;
		case CONN_SHAKING:
			handshake_timeout(w, c);
			break;
		case CONN_LEASED:
			c->work.lease->ops->timeout(c->work.lease);
			break;
		case CONN_CONNECTING:
		case CONN_POOLED:
			pool_timeout((struct upstream *)c);
			break;
		default:
			client_timeout(w, c);
		}
	}
	calls_expire(w);
	while ((l = ttl_expired(&w->pauses, w->now_ms)))
		retrying_resume((struct exchange *)((char *)l - offsetof(struct exchange, pause)));
	while ((l = ttl_expired(&w->pool_ttl, w->now_ms)))
		pool_due((struct pool *)((char *)l - offsetof(struct pool, link)));
}

/* Most SSL objects are gone, and enough to be worth it. */
static bool ssl_holes(const struct worker *w)
{
	return w->ssl.live <= w->ssl.high / 2 && w->ssl.high >= w->ssl.live + TRIM_SSL;
}

static int64_t earlier(int64_t a, int64_t b)
{
	return a < 0 || (b >= 0 && b < a) ? b : a;
}

static int64_t next_wait(struct worker *w)
{
	int64_t ms = ttl_next(&w->ttl, w->now_ms);

	if (w->n_ready || w->dirty || w->look || calls_wait(w))
		return 0;
	ms = earlier(ms, ttl_next(&w->pool_ttl, w->now_ms));
	ms = earlier(ms, ttl_next(&w->pauses, w->now_ms));
	ms = earlier(ms, ttl_next(&w->calls.ttl, w->now_ms));
	if (slotq_len(&w->shake_queue))
		ms = earlier(ms, handshake_wait(w));
	if (w->cutting)
		ms = earlier(ms, CUT_PACE_MS);
	if (w->pages.n || w->sparse || w->encoders.spare)
		ms = earlier(ms, TRIM_MS);
	if (ssl_holes(w))
		ms = earlier(ms, w->now_ms - w->ssl.since < TRIM_MS ? TRIM_MS - (w->now_ms - w->ssl.since) : 0);
	return w->accept_paused || w->short_of_fds ? earlier(ms, WORKER_ACCEPT_RETRY_MS) : ms;
}

/* --- the end of a turn --- */

static struct slab *slab_of(struct worker *w, bool upstream, bool secure)
{
	if (upstream)
		return secure ? &w->secure_upstreams : &w->upstreams;
	return secure ? &w->secure_conns : &w->conns;
}

/* Closing with bytes unread resets the connection, and what went before may never be read: a fault that is told is worth
 * the reading of what came with it. */
static void read_away(struct worker *w, struct conn *c)
{
	size_t left = WORKER_VISIT;
	ssize_t n = 1;

	transport_finish(&c->t);
	while (left && n > 0) {
		n = transport_read(&c->t, w->scratch, left);
		left -= n > 0 ? (size_t)n : 0;
	}
}

static void last_word(struct worker *w, struct conn *c)
{
	bool failed = tls_io_failed(&c->t, *conn_tls(c));

	if ((c->t.flags & CONN_BROKEN) || ((c->t.flags & CONN_RESET) && !failed))
		return;
	tls_io_finish(&w->tls, &c->t, *conn_tls(c));
	if (failed)
		read_away(w, c);
}

static void bury(struct worker *w)
{
	struct server *s = w->server;
	struct conn *c;

	while ((c = w->dead)) {
		w->dead = c->work.next_dead;
		if (conn_secure(c)) {
			last_word(w, c);
			conn_tls_free(w, c);
		}
		if (c->t.flags & CONN_RESET)
			socket_reset_on_close(c->t.fd);
		close(c->t.fd);
		atomic_fetch_sub_explicit(&s->fds, 1, memory_order_relaxed);
		if (c->t.flags & CONN_UPSTREAM) {
			slab_put(slab_of(w, true, c->t.type != TRANSPORT_PLAIN), c);
			continue;
		}
		atomic_fetch_sub_explicit(&s->clients, 1, memory_order_relaxed);
		if (c->t.flags & CONN_V6)
			slab_put(&w->peers_v6, c->peer.v6);
		w->sparse |= slab_sparse(slab_of(w, false, c->t.type != TRANSPORT_PLAIN));
		slab_put(slab_of(w, false, c->t.type != TRANSPORT_PLAIN), c);
	}
}

/* Empty chunks that a second did not need go back to the system. */
static void trim_pages(struct worker *w)
{
	if ((!w->pages.n && !w->encoders.spare) || w->now_ms - w->trimmed < TRIM_MS)
		return;
	w->trimmed = w->now_ms;
	pages_trim(&w->pages);
	encode_room_trim(&w->encoders);
}

static bool move_client(void *ctx, void *from, void *to)
{
	return client_move(ctx, from, to);
}

/* The few that stay when a wave goes would hold its chunks, one each: they are brought together. */
static void compact(struct worker *w)
{
	if (!w->sparse || w->now_ms - w->compacted < TRIM_MS)
		return;
	w->compacted = w->now_ms;
	w->sparse = false;
	for (int secure = 0; secure < 2; secure++) {
		struct slab *s = slab_of(w, false, secure);

		w->sparse |= slab_compact(s, COMPACT_MAX, move_client, w) && slab_sparse(s);
	}
}

/* SSL objects leave the largest, some 40 KB each.  A handshake is short: when there were few for a second, the wave is over. */
static void trim_after_handshakes(struct worker *w)
{
	if (w->ssl.live > w->ssl.high)
		w->ssl.high = w->ssl.live;
	if (!ssl_holes(w)) {
		w->ssl.since = w->now_ms;
		w->ssl.most = 0;
		return;
	}
	if (w->ssl.live > w->ssl.most)
		w->ssl.most = w->ssl.live;
	if (w->now_ms - w->ssl.since < TRIM_MS)
		return;
	w->ssl.high = w->ssl.most;
	heap_ask(w->server, w->index);
}

/* Slabs have given their chunks back by themselves, but what else was allocated leaves holes in the heap. */
static void trim_after_wave(struct worker *w)
{
	size_t open = w->conns.live + TRIM_SECURE * w->secure_conns.live;

	if (open > w->peak)
		w->peak = open;
	if (w->peak < TRIM_WAVE || open > w->peak / 4)
		return;
	w->peak = open;
	heap_ask(w->server, w->index);
}

static void finish_exchanges(struct worker *w)
{
	struct exchange *x;
	struct stream *s;

	while ((x = w->done)) {
		w->done = x->next_done;
		exchange_finish(x);
	}
	while ((s = w->streams_done)) {
		w->streams_done = s->next;
		stream_finish(s);
	}
}

/* --- letters --- */

/* Closing a listening socket resets what waits in it: that is taken first, but no more than a backlog of it. */
static void close_listener(struct worker *w, struct acceptor *a)
{
	uint64_t before;
	unsigned rounds = 0;

	do {
		before = atomic_load_explicit(&w->counters.accepted, memory_order_relaxed);
		client_accept(w, a);
	} while (atomic_load_explicit(&w->counters.accepted, memory_order_relaxed) != before && ++rounds < 64);
	close(a->t.fd);
	a->t.fd = -1;
}

/* Closes those of a list that have said nothing, and looks at those that have. */
static void drain_list(struct worker *w, struct ttl_list *idle)
{
	struct ttl_link *l, *next;

	for (l = idle->head.next; l != &idle->head; l = next) {
		struct conn *c = conn_of(l);

		next = l->next;
		if (c->t.state != CONN_IDLE)	/* an equal duration may share the list */
			continue;
		if (conn_says(c))
			worker_ready(w, c);
		else
			conn_close(w, c, false);
	}
}

static void drain(struct worker *w)
{
	for (unsigned i = 0; i < w->settings->n_listeners; i++)
		close_listener(w, &w->acceptors[i]);
	w->draining = true;
	drain_list(w, &w->ttl.list[w->list.idle]);
	if (w->list.head != w->list.idle)	/* where those are whose first bytes must come in time */
		drain_list(w, &w->ttl.list[w->list.head]);
	pool_close_kept(w);
}

/* Everything ends: exchanges with a line in the log, and what is left of connections.  Not all exchanges in one
 * turn: the log has room for some hundred lines, and a moment later for the next. */
static void cut(struct worker *w)
{
	exchange_cut_running(w, CUT_BATCH + w->exchanges.live / 64);
	stream_cut(w, CUT_BATCH + w->streams_slab.live / 64);
	finish_exchanges(w);
	w->cutting = w->running || w->streams;
	if (w->cutting)
		return;
	calls_cancel_all(w);
	pool_close_all(w);
	for (unsigned i = 0; i < w->ttl.n; i++) {
		struct ttl_link *head = &w->ttl.list[i].head;

		while (head->next != head)
			client_drop(w, conn_of(head->next));
	}
}

static void letters(struct worker *w)
{
	unsigned letter = atomic_load_explicit(&w->letters, memory_order_relaxed);

	if (w->cutting)
		cut(w);
	if (!letter)
		return;
	letter = atomic_exchange_explicit(&w->letters, 0, memory_order_acquire);
	if ((letter & WORKER_DRAIN) && !w->draining)
		drain(w);
	if (letter & WORKER_PASS) {
		pool_close_unused(w);
		grace_passed(w->server);
		slots_look_anew(w);
	}
	if (letter & WORKER_SLOT)
		w->look = true;
	if (letter & WORKER_SPARE)
		slots_spare(w);
	if (letter & WORKER_VERDICT)
		gate_basic_verdicts(w);
	if (letter & WORKER_CUT)
		cut(w);
}

void worker_tell(struct worker *w, unsigned letter)
{
	atomic_fetch_or_explicit(&w->letters, letter, memory_order_release);
	loop_wake(w->loop);
}

/* --- the turn --- */

void worker_turn(struct worker *w)
{
	w->now_stale = true;
	loop_pass(w->loop, w->now_ms, next_wait(w));
	if (w->now_stale)
		clock_read(w);
	letters(w);
	timeouts(w);
	if (w->look)
		slots_look(w);
	pool_hand_out(w);
	visit_ready(w);
	calls_run(w);
	finish_exchanges(w);
	handshake_admit(w);
	client_accept_check(w);
	bury(w);
	compact(w);
	pool_look_for_room(w);
	trim_pages(w);
	trim_after_wave(w);
	if (w->ssl.live || w->ssl.high)
		trim_after_handshakes(w);
	budget_settle(&w->budget);
	log_turn_end();
}

void worker_run(struct worker *w)
{
	clock_read(w);
	while (!w->draining || worker_open(w))
		worker_turn(w);
	slots_end(w);
}

size_t worker_open(const struct worker *w)
{
	return w->conns.live + w->upstreams.live + w->secure_conns.live + w->secure_upstreams.live;
}

/* --- what others ask of a worker --- */

bool worker_may_open(struct worker *w, bool upstream)
{
	const struct settings *s = w->settings;
	uint64_t fds = atomic_load_explicit(&w->server->fds, memory_order_relaxed);

	if (upstream)
		return fds < s->fds;
	if (s->connections && atomic_load_explicit(&w->server->clients, memory_order_relaxed) >= s->connections)
		return false;
	return fds < s->fds_accept;
}

struct conn *worker_conn(struct worker *w, int fd, bool upstream, bool secure)
{
	struct slab *slab = slab_of(w, upstream, secure);
	struct conn *c = slab_get(slab);

	if (!c) {
		close(fd);
		return NULL;
	}
	memset(c, 0, slab->size);
	c->t.fd = fd;
	c->t.flags = upstream ? CONN_UPSTREAM : 0;
	c->t.type = secure ? TRANSPORT_HELLO : TRANSPORT_PLAIN;
	c->t.state = upstream ? CONN_CONNECTING : CONN_IDLE;
	if (!ready_room(w) || loop_watch(w->loop, fd, c, LOOP_EDGE) != OK) {
		slab_put(slab, c);
		close(fd);
		return NULL;
	}
	atomic_fetch_add_explicit(&w->server->fds, 1, memory_order_relaxed);
	if (!upstream)
		atomic_fetch_add_explicit(&w->server->clients, 1, memory_order_relaxed);
	return c;
}

void worker_count_status(struct worker *w, unsigned status)
{
	switch (status / 100) {
	case 1: COUNT(w, answers_1xx); break;
	case 2: COUNT(w, answers_2xx); break;
	case 3: COUNT(w, answers_3xx); break;
	case 4: COUNT(w, answers_4xx); break;
	default: COUNT(w, answers_5xx); break;
	}
}

struct str worker_date(struct worker *w)
{
	static const char day[7][4] = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat" };
	static const char month[12][4] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };
	time_t now = (time_t)(w->wall_ms / 1000);
	struct tm t;

	if (w->date_second != now) {
		gmtime_r(&now, &t);
		snprintf(w->date, sizeof w->date, "%s, %02d %s %04d %02d:%02d:%02d GMT", day[t.tm_wday], t.tm_mday % 100,
			 month[t.tm_mon], (t.tm_year + 1900) % 10000, t.tm_hour % 100, t.tm_min % 100, t.tm_sec % 100);
		w->date_second = now;
	}
	return str_of(w->date);
}

/* --- making and ending --- */

static void make_lists(struct worker *w)
{
	const struct timeouts *t = &w->settings->timeouts;

	ttl_init(&w->ttl, offsetof(struct conn, stamp) - offsetof(struct conn, link));
	ttl_init(&w->calls.ttl, offsetof(struct call, stamp) - offsetof(struct call, link));
	ttl_init(&w->pauses, offsetof(struct exchange, pause_stamp) - offsetof(struct exchange, pause));
	ttl_init(&w->pool_ttl, offsetof(struct pool, stamp) - offsetof(struct pool, link));
	w->list.idle = ttl_list_for(&w->ttl, t->idle);
	w->list.head = ttl_list_for(&w->ttl, t->head);
	w->list.body = ttl_list_for(&w->ttl, t->body);
	w->list.write = ttl_list_for(&w->ttl, t->write);
	w->list.linger = ttl_list_for(&w->ttl, t->linger);
	w->list.handshake = ttl_list_for(&w->ttl, t->handshake);
	w->list.connect = ttl_list_for(&w->ttl, t->connect);
	w->list.queue = ttl_list_for(&w->ttl, t->queue);
	w->list.upstream_idle = ttl_list_for(&w->ttl, t->upstream_idle);
	w->list.avoid = ttl_list_for(&w->pool_ttl, VERDICT_AVOID_MS);
	w->list.rest = ttl_list_for(&w->pool_ttl, POOL_REST_MS);
}

static void make_slabs(struct worker *w)
{
	const struct { struct slab *slab; size_t size; } slabs[] = {
		{ &w->conns, sizeof(struct conn) }, { &w->upstreams, sizeof(struct upstream) },
		{ &w->exchanges, EXCHANGE_SIZE }, { &w->peers_v6, sizeof(struct peer_v6) },
		{ &w->pools_slab, sizeof(struct pool) }, { &w->calls.slab, CALL_SIZE },
		{ &w->streams_slab, sizeof(struct stream) },
		{ &w->secure_conns, sizeof(struct secure_conn) }, { &w->secure_upstreams, sizeof(struct secure_upstream) },
	};

	pages_init(&w->pages, SLAB_CHUNK, &w->budget);
	for (size_t i = 0; i < sizeof slabs / sizeof *slabs; i++) {
		slab_init(slabs[i].slab, slabs[i].size, &w->budget);
		slab_share(slabs[i].slab, &w->pages);
	}
}

static size_t power_of_two(size_t n)
{
	size_t p = 4096;

	while (p < n)
		p *= 2;
	return p;
}

static void tell_verdict(void *arg)
{
	worker_tell(arg, WORKER_VERDICT);
}

struct worker *worker_new(struct server *server, const struct settings *settings, struct snapshot *snapshot, unsigned index)
{
	struct worker *w = mem_zalloc(sizeof *w);
	uint64_t seed;

	if (!w)
		return NULL;
	w->server = server;
	w->settings = settings;
	w->snapshot = snapshot_ref(snapshot);
	w->index = index;
	budget_init(&w->budget, &server->budget);
	hasher_port_init(&w->hasher, tell_verdict, w);
	make_slabs(w);
	make_lists(w);
	w->encoders = (struct encode_room){ .budget = &w->budget, .limit = settings->compress };
	clock_read(w);
	w->started_ms = w->now_ms;
	if (getrandom(w->id_seed, sizeof w->id_seed, 0) != sizeof w->id_seed || getrandom(&seed, sizeof seed, 0) != sizeof seed)
		goto fail;
	balance_init(&w->balance, seed);
	w->dice = (uint32_t)w->id_seed[1] | 1;
	w->scratch_size = power_of_two(WORKER_READ_LARGE + TLS13_RECORD);
	w->scratch = mem_pages(w->scratch_size);
	w->vec_scratch = mem_pages(VEC_SCRATCH);
	w->h1_server = h1_shared_new(&settings->request);
	w->h1_upstream = h1_shared_new(&settings->answer);
	w->acceptors = mem_zalloc(settings->n_listeners * sizeof *w->acceptors);
	if (!w->scratch || !w->vec_scratch || !w->h1_server || !w->h1_upstream || !w->acceptors)
		goto fail;
	for (unsigned i = 0; i < settings->n_listeners; i++)
		w->acceptors[i] = (struct acceptor){ .t = { .fd = -1, .state = CONN_ACCEPTOR }, .listener = (uint16_t)i };
	w->vec.scratch = w->vec_scratch;
	w->vec.end = w->vec_scratch + VEC_SCRATCH;
	vec_reset(&w->vec);
	w->loop = loop_new(&events, w);
	if (w->loop)
		return w;
fail:
	worker_free(w);
	return NULL;
}

enum err worker_listen(struct worker *w, unsigned listener, int fd)
{
	struct acceptor *a = &w->acceptors[listener];

	a->t.fd = fd;
	return loop_watch(w->loop, fd, a, LOOP_LEVEL_IN);
}

void worker_free(struct worker *w)
{
	if (!w)
		return;
	for (unsigned i = 0; w->acceptors && i < w->settings->n_listeners; i++)
		if (w->acceptors[i].t.fd >= 0)
			close(w->acceptors[i].t.fd);
	slots_end(w);
	pool_free_all(w);
	hasher_port_fini(&w->hasher);
	loop_free(w->loop);
	compress_worker_free(w);
	h1_shared_free(w->h1_server);
	h1_shared_free(w->h1_upstream);
	if (w->scratch)
		mem_pages_free(w->scratch, w->scratch_size);
	if (w->vec_scratch)
		mem_pages_free(w->vec_scratch, VEC_SCRATCH);
	mem_free(w->acceptors);
	mem_free(w->ready);
	mem_free(w->asked);
	mem_free(w->shares);
	pools_free(w);
	balance_fini(&w->balance);
	snapshot_unref(w->snapshot);
	slab_fini(&w->conns);
	slab_fini(&w->upstreams);
	slab_fini(&w->exchanges);
	slab_fini(&w->peers_v6);
	slab_fini(&w->pools_slab);
	slab_fini(&w->calls.slab);
	slab_fini(&w->streams_slab);
	slab_fini(&w->secure_conns);
	slab_fini(&w->secure_upstreams);
	tls_io_fini(&w->tls);
	pages_fini(&w->pages);
	budget_fini(&w->budget);
	mem_free(w);
}
