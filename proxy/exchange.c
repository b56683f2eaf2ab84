/* exchange: the life of a request.
 *
 *   client socket -> codec (server) -> [here: route, dispatch] -> codec (upstream) -> upstream socket
 *
 * and the answer walks the same way back.  client.c gives a whole head to exchange_begin; routing.c
 * finds the route and makes the head that the upstream gets, and a connection is asked for here.
 * request.c and answer.c then move bytes, tunnel.c after a 101, local.c when we answer ourselves.
 *
 * An exchange has one phase.  exchange_next says what may follow what, exchange_holds what each
 * phase owns, and exchange_move is the only one that moves: what the old phase held
 * and the new one does not is given back there, so that it cannot be forgotten.
 * tests/unit/test_exchange.c walks the tables.
 *
 * Nothing here is freed in the middle of a turn.  An exchange that is DONE waits on
 * the worker's list, deaf, and exchange_finish buries it when no event can name it any more. */
#include "proxy/exchange.h"

#include "lib/base/check.h"
#include "lib/base/num.h"
#include "proxy/access.h"
#include "proxy/answer.h"
#include "proxy/client.h"
#include "proxy/compress.h"
#include "proxy/forward.h"
#include "proxy/gate.h"
#include "proxy/local.h"
#include "proxy/log.h"
#include "proxy/mirroring.h"
#include "proxy/pool.h"
#include "proxy/request.h"
#include "proxy/retrying.h"
#include "proxy/routing.h"
#include "proxy/tunnel.h"

#define NO PHASE_N
#define ROW(hold, admit, queue, lease, send, interim, reply, swtch, up_end, retry, pause, refuse, flushed, abort) { \
	[MOVE_HOLD] = hold, [MOVE_ADMIT] = admit, [MOVE_QUEUE] = queue, [MOVE_LEASE] = lease, [MOVE_SEND] = send, [MOVE_INTERIM] = interim, \
	[MOVE_REPLY] = reply, [MOVE_SWITCH] = swtch, [MOVE_UPSTREAM_END] = up_end, [MOVE_RETRY] = retry, [MOVE_PAUSE] = pause, \
	[MOVE_REFUSE] = refuse, [MOVE_FLUSHED] = flushed, [MOVE_ABORT] = abort }

const uint8_t exchange_next[PHASE_N][MOVE_N] = {
#define H PHASE_HELD
#define Q PHASE_QUEUED
#define P PHASE_PAUSED
#define L PHASE_LEASED
#define S PHASE_SENT
#define R PHASE_REPLYING
#define T PHASE_TUNNEL
#define F PHASE_FLUSHING
#define N PHASE_NEW
#define O PHASE_LOCAL
#define D PHASE_DONE
	/*                       hold admit queue lease send interim reply switch up-end retry pause refuse flushed abort */
	[PHASE_NEW]      = ROW(  H,   NO,   Q,    L,    NO,  NO,     NO,   NO,    NO,    NO,   P,    O,     NO,     D),
	[PHASE_HELD]     = ROW(  NO,  N,    NO,   NO,   NO,  NO,     NO,   NO,    NO,    NO,   NO,   O,     NO,     D),
	[PHASE_QUEUED]   = ROW(  NO,  NO,   NO,   L,    NO,  NO,     NO,   NO,    NO,    N,    P,    O,     NO,     D),
	[PHASE_PAUSED]   = ROW(  NO,  NO,   NO,   NO,   NO,  NO,     NO,   NO,    NO,    N,    NO,   O,     NO,     D),
	[PHASE_LEASED]   = ROW(  NO,  NO,   NO,   NO,   S,   NO,     NO,   NO,    NO,    N,    P,    O,     NO,     D),
	[PHASE_SENT]     = ROW(  NO,  NO,   NO,   NO,   NO,  S,      R,    T,     NO,    N,    P,    O,     NO,     D),
	[PHASE_REPLYING] = ROW(  NO,  NO,   NO,   NO,   NO,  NO,     NO,   NO,    F,     NO,   NO,   NO,    NO,     D),
	[PHASE_TUNNEL]   = ROW(  NO,  NO,   NO,   NO,   NO,  NO,     NO,   NO,    NO,    NO,   NO,   NO,    D,      D),
	[PHASE_FLUSHING] = ROW(  NO,  NO,   NO,   NO,   NO,  NO,     NO,   NO,    NO,    NO,   NO,   NO,    D,      D),
	[PHASE_LOCAL]    = ROW(  NO,  NO,   NO,   NO,   NO,  NO,     NO,   NO,    NO,    NO,   NO,   NO,    D,      D),
	[PHASE_DONE]     = ROW(  NO,  NO,   NO,   NO,   NO,  NO,     NO,   NO,    NO,    NO,   NO,   NO,    NO,     NO),
#undef H
#undef Q
#undef P
#undef L
#undef S
#undef R
#undef T
#undef F
#undef N
#undef O
#undef D
};

const uint8_t exchange_holds[PHASE_N] = {
	[PHASE_NEW] = HOLD_CLIENT,
	[PHASE_HELD] = HOLD_CLIENT | HOLD_GATE,
	[PHASE_QUEUED] = HOLD_CLIENT | HOLD_PLACE,
	[PHASE_PAUSED] = HOLD_CLIENT | HOLD_PAUSE,
	[PHASE_LEASED] = HOLD_CLIENT | HOLD_UPSTREAM,
	[PHASE_SENT] = HOLD_CLIENT | HOLD_UPSTREAM,
	[PHASE_REPLYING] = HOLD_CLIENT | HOLD_UPSTREAM,
	[PHASE_TUNNEL] = HOLD_CLIENT | HOLD_UPSTREAM,
	[PHASE_FLUSHING] = HOLD_CLIENT,
	[PHASE_LOCAL] = HOLD_CLIENT,
	[PHASE_DONE] = 0,
};

/* --- moving --- */

static void give_upstream(struct exchange *x, enum move move)
{
	struct upstream *u = x->lease.up;

	x->lease.up = NULL;
	if (move == MOVE_UPSTREAM_END || x->up_whole)
		pool_put(u);	/* who looks whether it can be used again */
	else
		pool_discard(u);
	x->up_whole = false;
}

void exchange_move(struct exchange *x, enum move move)
{
	uint8_t next = exchange_next[x->phase][move];
	uint8_t give;

	CHECK(next != PHASE_N);
	give = exchange_holds[x->phase] & (uint8_t)~exchange_holds[next];
	x->phase = next;
	if (give & (HOLD_PAUSE | HOLD_GATE)) {
		if (give & HOLD_PAUSE)
			ttl_unlink(&x->pause);
		else
			gate_leave(x);
	}
	if ((give & HOLD_PLACE) && lease_waits(&x->lease))
		pool_leave(&x->lease);
	if (give & HOLD_UPSTREAM)
		give_upstream(x, move);
	if (give & HOLD_CLIENT) {
		if (x->copy)
			mirroring_over(x);
		worker_wait_end(x->client);
		x->next_done = x->w->done;
		x->w->done = x;
	}
}

void exchange_cut(struct exchange *x, enum cause cause)
{
	if (x->phase == PHASE_DONE)
		return;
	if (cause != CAUSE_NONE && x->cause == CAUSE_NONE) {
		x->cause = (uint8_t)cause;
		COUNT(x->w, cause[cause]);
	}
	x->cut = true;
	exchange_move(x, MOVE_ABORT);
}

void exchange_fail(struct exchange *x, enum cause cause)
{
	if (x->phase == PHASE_DONE)
		return;
	if (exchange_next[x->phase][MOVE_REFUSE] == PHASE_N || causes[cause].status == 0)
		exchange_cut(x, cause);
	else if (!x->spare || !retrying_spare(x, cause))
		local_cause(x, cause);
}

/* --- beginning --- */

static const struct lease_ops lease_ops;	/* below */

struct exchange *exchange_new(struct worker *w, struct conn *client)
{
	struct exchange *x = slab_get(&w->exchanges);

	if (!x)
		return NULL;
	memset(x, 0, offsetof(struct exchange, server));
	x->lease.ops = &lease_ops;
	x->lease.w = x->w = w;
	x->lease.clock = x->client = client;
	x->body_limit = UINT64_MAX;
	arena_init(&x->arena, x + 1, EXCHANGE_SIZE - sizeof *x, &w->budget);
	return x;
}

void exchange_drop(struct exchange *x)
{
	arena_fini(&x->arena);
	slab_put(&x->w->exchanges, x);
}

/* Every exchange that was begun is in the worker's list, so that they can be ended when the time is over. */
static void exchange_list(struct exchange *x)
{
	x->next = x->w->running;
	if (x->next)
		x->next->prev = x;
	x->w->running = x;
}

static void exchange_unlist(struct exchange *x)
{
	*(x->prev ? &x->prev->next : &x->w->running) = x->next;
	if (x->next)
		x->next->prev = x->prev;
}

void exchange_cut_running(struct worker *w, size_t n)
{
	for (struct exchange *x = w->running; x && n; x = x->next, n--)
		exchange_cut(x, CAUSE_DRAINED);
}

static void note_for_log(struct exchange *x, const struct head *h)
{
	const struct field *f;

	if (!log_access_on())
		return;
	x->log_method = arena_dup(&x->arena, h->method);
	x->log_authority = arena_dup(&x->arena, h->authority);
	x->log_target = arena_dup(&x->arena, h->target);
	f = head_find_id(h, FIELD_USER_AGENT);
	if (f)
		x->log_agent = arena_dup(&x->arena, field_value(f));
	f = head_find_id(h, FIELD_REFERER);
	if (f)
		x->log_referer = arena_dup(&x->arena, field_value(f));
}

/* --- dispatch --- */

static void queued(struct exchange *x)
{
	exchange_move(x, MOVE_QUEUE);
	if (x->client->t.flags & CONN_BROKEN)	/* its reset came with the request, and no event will tell of it again */
		exchange_cut(x, CAUSE_CLIENT_LEFT);
}

void exchange_dispatch(struct exchange *x)
{
	enum cause cause = pool_get(&x->lease);

	if (cause != CAUSE_NONE)
		retrying_lost(x, cause);
	else if (x->phase == PHASE_NEW && lease_waits(&x->lease))
		queued(x);
}

static void leased(struct lease *l, struct upstream *u, bool kept)
{
	struct exchange *x = (struct exchange *)l;

	x->reused = kept;
	x->answered = false;
	exchange_move(x, MOVE_LEASE);
	if ((u->c.t.more & CONN_LARGE) && !(x->client->t.more & CONN_KEEPS_UP))
		answer_receive(u, false);
	if (!kept)
		x->connect_us = x->w->now_us;
	request_flush(x);
	if (x->lease.up == u)
		request_read(x);
	if (x->lease.up == u && (u->c.t.flags & CONN_READABLE))
		worker_ready(x->w, &u->c);
}

static void connect_failed(struct lease *l, enum cause cause)
{
	struct exchange *x = (struct exchange *)l;

	CHECK(x->phase == PHASE_QUEUED);
	retrying_lost(x, cause);
}

/* --- from head to dispatch --- */

/* For requests without a body, which are whole with their head. */
static void note_end(struct exchange *x, struct str *rest)
{
	struct codec_event ev;

	if (x->request == DIR_OPEN && h1_in_missing(&x->server) == 0 && codec_next(&x->server.codec, rest, false, &ev) == CODEC_END)
		x->request = DIR_DONE;
}

/* The request may go to its route's action. */
static void admit(struct exchange *x, struct head *h, struct str *rest)
{
	struct str authority = h->authority;
	const struct route_spec *r = x->route->spec;
	enum cause cause = r->rewrite | r->odd_paths ? routing_path(x, h) : CAUSE_NONE;	/* neither, mostly */

	if (cause == CAUSE_NONE && !x->lease.service) {	/* it is answered here */
		note_end(x, rest);
		local_route(x, h);
		return;
	}
	if (cause == CAUSE_NONE)
		cause = routing_prepare(x, h);
	if (cause != CAUSE_NONE) {
		note_end(x, rest);
		exchange_fail(x, cause);
		return;
	}
	if (x->request == DIR_DONE && codec_put_end(&x->upstream.codec, 0, NULL, &x->w->vec) != OK) {
		vec_reset(&x->w->vec);
		exchange_fail(x, CAUSE_BAD_REQUEST);
		return;
	}
	if (x->route->spec->policy)
		mirroring_begin(x, h, x->route->spec->host.n ? x->route->spec->host : authority);
	request_feed(x, rest, false);
}

void exchange_begin(struct exchange *x, struct head *h, struct str *rest)
{
	enum cause cause;

	exchange_list(x);
	COUNT(x->w, requests);
	x->began_us = x->w->now_us;
	x->method = h->method_id;
	x->lease.careful = !method_idempotent(x->method);
	x->minor = h->minor;
	note_for_log(x, h);
	x->request_id = forward_request_id(x, h);
	cause = routing_find(x, h);
	if (cause != CAUSE_NONE) {
		note_end(x, rest);
		exchange_fail(x, cause);
		return;
	}
	if (x->route->spec->policy) {
		note_end(x, rest);
		if (gate_ask(x, h) != GATE_PASS)
			return;
	}
	admit(x, h, rest);
}

void exchange_admit(struct exchange *x)
{
	struct str rest = buf_str(x->in);

	admit(x, &x->held->head, &rest);
	if (conn_keep(x->w, &x->in, rest) != OK) {
		x->client_closing = true;
		exchange_cut(x, CAUSE_NO_MEMORY);
	}
	exchange_go(x);
}

void exchange_go(struct exchange *x)
{
	if (x->phase == PHASE_NEW)
		exchange_dispatch(x);
}

void exchange_refuse(struct exchange *x, enum codec_fault fault)
{
	exchange_list(x);
	COUNT(x->w, requests);
	COUNT(x->w, fault[fault]);
	x->began_us = x->w->now_us;
	x->fault = (uint8_t)fault;
	x->request = DIR_CUT;
	x->client_closing = true;
	exchange_fail(x, CAUSE_BAD_REQUEST);
}

void exchange_answer_cause(struct exchange *x, enum cause cause)
{
	exchange_list(x);
	COUNT(x->w, requests);
	x->began_us = x->w->now_us;
	x->request = DIR_CUT;
	x->client_closing = true;
	exchange_fail(x, cause);
}

/* --- events --- */

void exchange_client_event(struct exchange *x)
{
	if (x->phase == PHASE_DONE)
		return;
	if (x->phase == PHASE_TUNNEL) {
		tunnel_pump(x);
		return;
	}
	if (x->client->t.flags & CONN_BROKEN) {
		exchange_cut(x, CAUSE_CLIENT_LEFT);
		return;
	}
	if (x->to_client)
		answer_resume(x);
	if (x->phase >= PHASE_LEASED && x->phase <= PHASE_REPLYING)
		request_read(x);
}

static void upstream_event(struct lease *l)
{
	struct exchange *x = (struct exchange *)l;

	if (x->phase == PHASE_TUNNEL) {
		tunnel_pump(x);
		return;
	}
	if (request_pending(x) && !x->write_failed)
		request_flush(x);
	if (x->lease.up)
		request_read(x);
	if (x->lease.up)
		answer_read(x);
}

void exchange_client_timeout(struct exchange *x)
{
	switch (x->phase) {
	case PHASE_DONE:
		return;
	case PHASE_TUNNEL:
		exchange_cut(x, CAUSE_TUNNEL_IDLE);
		return;
	case PHASE_HELD:
		exchange_fail(x, CAUSE_GATE_TIMEOUT);
		return;
	case PHASE_QUEUED:
		exchange_fail(x, CAUSE_QUEUE_TIMEOUT);
		return;
	default:
		exchange_fail(x, x->to_client ? CAUSE_WRITE_TIMEOUT : CAUSE_BODY_TIMEOUT);
	}
}

static void upstream_timeout(struct lease *l)
{
	struct exchange *x = (struct exchange *)l;

	if (x->phase == PHASE_REPLYING)
		exchange_fail(x, CAUSE_ANSWER_STALLED);
	else if (x->holding)
		retrying_spoiled(x, CAUSE_FIRST_BYTE_TIMEOUT);
	else
		retrying_lost(x, request_pending(x) ? CAUSE_SEND_TIMEOUT : CAUSE_FIRST_BYTE_TIMEOUT);
}

/* Nothing more of its body is read while it waits. */
static size_t holds(const struct lease *l)
{
	const struct exchange *x = (const struct exchange *)l;

	return EXCHANGE_SIZE + arena_heap(&x->arena) + buf_heap(x->in) + buf_heap(x->to_up) + buf_heap(x->replay) +
	       (x->spare ? arena_heap(&x->spare->arena) + buf_heap(x->spare->body) : 0);
}

static const struct endpoint_tried *tried(const struct lease *l)
{
	return &((const struct exchange *)l)->tried;
}

static bool aimed(struct lease *l, const struct endpoint *before)
{
	return routing_aimed((struct exchange *)l, before);
}

static const struct lease_ops lease_ops = {
	.leased = leased, .failed = connect_failed, .event = upstream_event, .timeout = upstream_timeout,
	.holds = holds, .tried = tried, .aimed = aimed,
};

/* --- the end --- */

static int64_t since(const struct exchange *x, uint64_t then)
{
	return then ? (int64_t)(then - x->began_us) : ACCESS_NONE;
}

/* It waited for any endpoint of its service. */
static bool never_had_one(const struct exchange *x)
{
	return (x->cause == CAUSE_QUEUE_FULL || x->cause == CAUSE_QUEUE_TIMEOUT) && rules_limit(x->lease.service->rules) && !x->sent_again;
}

static void log_access(const struct exchange *x)
{
	char endpoint[ENDPOINT_TEXT_MAX];
	char status[NUM_DEC_MAX];
	struct access_tls tls;
	struct access_record r = {
		.time_unix_ms = x->w->wall_ms,
		.client_port = x->client->port,
		.listener = x->w->settings->listeners[x->client->listener].label,
		.method = x->log_method, .authority = x->log_authority, .target = x->log_target,
		.http_major = x->log_method.n ? 1 : 0, .http_minor = x->minor,
		.status = x->status,
		.bytes_in = x->bytes_in, .bytes_out = x->bytes_out,
		.duration_us = since(x, x->w->now_us),
		.connect_us = since(x, x->connect_us), .first_byte_us = since(x, x->first_us),
		.cause = causes[x->cause].token, .fault = codec_fault_token(x->fault),
		.retries = x->sent_again,
		.request_id = x->request_id, .user = x->log_user, .referer = x->log_referer, .user_agent = x->log_agent,
		.reused = x->reused, .client_closed = x->cause == CAUSE_CLIENT_LEFT,
		.upgrade = x->status == 101,
	};

	if (x->no_retry)
		r.no_retry = retry_why_token(x->no_retry);
	if (x->sent_again)
		r.retry_cause = x->last_status ? (struct str){ status, num_dec(status, x->last_status) } : causes[x->last_cause].token;
	if (x->client->t.flags & CONN_V6) {
		r.client_family = AF_INET6;
		memcpy(r.client_addr, x->client->peer.v6->ip, 16);
	} else if (x->client->peer.v4) {
		r.client_family = AF_INET;
		memcpy(r.client_addr, &x->client->peer.v4, 4);
	}
	if (conn_secure(x->client)) {
		tls = identity_logged(identity_of(x->client));
		r.tls = &tls;
	}
	if (x->route)
		r.route = route_label(x->route);
	if (x->lease.service)
		r.service = service_name(x->lease.service);
	if (x->lease.endpoint && !never_had_one(x))
		r.endpoint = pool_text(x->w, x->lease.endpoint, endpoint);
	access_write(&r);
}

void exchange_finish(struct exchange *x)
{
	struct worker *w = x->w;
	struct conn *c = x->client;
	enum client_fate fate = CLIENT_LINGER;

	CHECK(x->phase == PHASE_DONE && !x->lease.up && !lease_waits(&x->lease));
	if (log_access_on())
		log_access(x);
	if (x->request == DIR_DONE)
		fate = !x->client_closing && h1_reusable(&x->server) ? CLIENT_KEEP : CLIENT_CLOSE;
	if (x->cut && x->cause == CAUSE_TLS_BROKEN) {
		conn_unseal(w, c);	/* the alert is not lost to a reset */
		client_next(w, c, &x->in, CLIENT_LINGER);
	} else if (x->cut)
		conn_close(w, c, h1_out_until_close(&x->server) || x->status == 101);
	else
		client_next(w, c, &x->in, fate);
	exchange_unlist(x);
	buf_free(&x->in, &w->budget);
	buf_free(&x->up_in, &w->budget);
	buf_free(&x->to_up, &w->budget);
	buf_free(&x->to_client, &w->budget);
	buf_free(&x->replay, &w->budget);
	if (x->compress)
		compress_free(x);
	retrying_spare_free(x);
	lease_aim(&x->lease, NULL);
	route_unref(x->route);
	exchange_drop(x);
}
