/* exchange: the life of a request.
 *
 *   client socket -> codec (server) -> [here: route, dispatch] -> codec (upstream) -> upstream socket
 *
 * and the answer walks the same way back.  client.c gives a whole head to exchange_begin; here the
 * route is found, the head made into what the upstream gets, and a connection asked for.
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
#include "lib/base/mem.h"
#include "lib/base/path.h"
#include "proxy/access.h"
#include "proxy/answer.h"
#include "proxy/client.h"
#include "proxy/forward.h"
#include "proxy/local.h"
#include "proxy/log.h"
#include "proxy/pool.h"
#include "proxy/request.h"
#include "proxy/tunnel.h"

#define NO PHASE_N
#define ROW(queue, lease, send, interim, reply, swtch, up_end, retry, refuse, flushed, abort) { \
	[MOVE_QUEUE] = queue, [MOVE_LEASE] = lease, [MOVE_SEND] = send, [MOVE_INTERIM] = interim, \
	[MOVE_REPLY] = reply, [MOVE_SWITCH] = swtch, [MOVE_UPSTREAM_END] = up_end, [MOVE_RETRY] = retry, \
	[MOVE_REFUSE] = refuse, [MOVE_FLUSHED] = flushed, [MOVE_ABORT] = abort }

const uint8_t exchange_next[PHASE_N][MOVE_N] = {
#define Q PHASE_QUEUED
#define L PHASE_LEASED
#define S PHASE_SENT
#define R PHASE_REPLYING
#define T PHASE_TUNNEL
#define F PHASE_FLUSHING
#define N PHASE_NEW
#define O PHASE_LOCAL
#define D PHASE_DONE
	/*                       queue lease send interim reply switch up-end retry refuse flushed abort */
	[PHASE_NEW]      = ROW(  Q,    L,    NO,  NO,     NO,   NO,    NO,    NO,   O,     NO,     D),
	[PHASE_QUEUED]   = ROW(  NO,   L,    NO,  NO,     NO,   NO,    NO,    N,    O,     NO,     D),
	[PHASE_LEASED]   = ROW(  NO,   NO,   S,   NO,     NO,   NO,    NO,    N,    O,     NO,     D),
	[PHASE_SENT]     = ROW(  NO,   NO,   NO,  S,      R,    T,     NO,    N,    O,     NO,     D),
	[PHASE_REPLYING] = ROW(  NO,   NO,   NO,  NO,     NO,   NO,    F,     NO,   NO,    NO,     D),
	[PHASE_TUNNEL]   = ROW(  NO,   NO,   NO,  NO,     NO,   NO,    NO,    NO,   NO,    D,      D),
	[PHASE_FLUSHING] = ROW(  NO,   NO,   NO,  NO,     NO,   NO,    NO,    NO,   NO,    D,      D),
	[PHASE_LOCAL]    = ROW(  NO,   NO,   NO,  NO,     NO,   NO,    NO,    NO,   NO,    D,      D),
	[PHASE_DONE]     = ROW(  NO,   NO,   NO,  NO,     NO,   NO,    NO,    NO,   NO,    NO,     NO),
#undef Q
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
	[PHASE_QUEUED] = HOLD_CLIENT | HOLD_PLACE,
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
	struct upstream *u = x->up;

	x->up = NULL;
	if (move == MOVE_UPSTREAM_END)
		pool_put(u);	/* who looks whether it can be used again */
	else
		pool_discard(u);
}

void exchange_move(struct exchange *x, enum move move)
{
	uint8_t next = exchange_next[x->phase][move];
	uint8_t give;

	CHECK(next != PHASE_N);
	give = exchange_holds[x->phase] & (uint8_t)~exchange_holds[next];
	x->phase = next;
	if ((give & HOLD_PLACE) && x->pool)
		pool_leave(x);
	if (give & HOLD_UPSTREAM)
		give_upstream(x, move);
	if (give & HOLD_CLIENT) {
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
	else
		local_cause(x, cause);
}

/* --- beginning --- */

struct exchange *exchange_new(struct worker *w, struct conn *client)
{
	struct exchange *x = slab_get(&w->exchanges);

	if (!x)
		return NULL;
	memset(x, 0, sizeof *x);
	x->w = w;
	x->client = client;
	x->body_limit = UINT64_MAX;
	arena_init(&x->arena, x + 1, EXCHANGE_SIZE - sizeof *x, &w->budget);
	return x;
}

void exchange_drop(struct exchange *x)
{
	arena_fini(&x->arena);
	slab_put(&x->w->exchanges, x);
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

static bool header_of(void *ctx, struct str name, struct str *value)
{
	unsigned i = 0;
	const struct field *f = head_find(ctx, name, &i);

	if (f)
		*value = field_value(f);
	return f;
}

/* The path that routes are matched against.  An origin may well read /x/../admin and /%61dmin as /admin,
 * so that is what they are here too; what is forwarded stays as it came. */
static enum cause path_to_match(struct exchange *x, struct head *h, struct str *path)
{
	char *p;

	*path = h->path;
	if (path_is_normal(h->path) || h->path.p[0] != '/')
		return CAUSE_NONE;
	p = arena_alloc(&x->arena, 3 * h->path.n);
	if (!p)
		return CAUSE_NO_MEMORY;
	*path = (struct str){ p, path_normal(h->path, p) };
	return CAUSE_NONE;
}

static enum cause find_route(struct exchange *x, struct head *h)
{
	struct route_query q = {
		.host = h->authority, .method = h->method,
		.header = header_of, .ctx = h,
	};
	const struct route *route;

	if (path_to_match(x, h, &q.path) != CAUSE_NONE)
		return CAUSE_NO_MEMORY;
	if (h->target.n > h->path.n)
		q.query = (struct str){ h->path.p + h->path.n + 1, h->target.n - h->path.n - 1 };
	switch (snapshot_find(x->w->snapshot, &q, &route)) {
	case ROUTE_FOUND:
		break;
	case ROUTE_NONE:
		return CAUSE_NO_ROUTE;
	case ROUTE_UNDECIDED:
		return CAUSE_NO_SERVICE;
	}
	x->route = route_ref(route);
	x->body_limit = route->spec.body_limit;
	if (route->spec.rewrite != REWRITE_NONE && !str_eq(q.path, h->path))
		return CAUSE_AMBIGUOUS_PATH;
	return route->spec.action == ROUTE_INVALID ? CAUSE_NO_SERVICE : CAUSE_NONE;
}

static bool may_upgrade(const struct exchange *x, struct str protocol)
{
	const struct listener *l = &x->w->settings->listeners[x->client->listener];

	for (unsigned i = 0; i < l->n_upgrade; i++)
		if (str_ieq(l->upgrade[i], protocol))
			return true;
	return false;
}

/* --- choosing an endpoint --- */

static uint32_t *cursor_of(struct worker *w, const struct service *s)
{
	uint32_t n = w->n_cursors ? w->n_cursors : 8, *grown;

	if (s->index < w->n_cursors)
		return &w->cursors[s->index];
	while (n <= s->index)
		n *= 2;
	grown = mem_realloc(w->cursors, n * sizeof *grown);
	if (!grown)
		return NULL;
	/* workers start at different endpoints, so that the first requests spread */
	for (uint32_t i = w->n_cursors; i < n; i++)
		grown[i] = w->index;
	w->cursors = grown;
	w->n_cursors = n;
	return &w->cursors[s->index];
}

static enum cause choose_endpoint(struct exchange *x)
{
	uint32_t *cursor = cursor_of(x->w, x->route->spec.service);

	if (!cursor)
		return CAUSE_NO_MEMORY;
	x->endpoint = endpoint_pick(x->route->spec.service, cursor, &x->tried);
	return x->endpoint ? CAUSE_NONE : CAUSE_NO_ENDPOINT;
}

static struct str host_for(const struct exchange *x, struct str authority)
{
	const struct service *s = x->route->spec.service;

	switch (s->host) {
	case SERVICE_HOST_LITERAL:
		return service_host_literal(s);
	case SERVICE_HOST_ENDPOINT:
		return x->endpoint->family == ENDPOINT_UNIX ? STR("localhost") : endpoint_text(x->endpoint);
	default:
		break;
	}
	if (authority.n)
		return authority;
	/* an HTTP/1.0 client that names no host */
	return x->endpoint->family == ENDPOINT_UNIX ? STR("localhost") : endpoint_text(x->endpoint);
}

/* Another endpoint than those that were tried; false when there is none left to try. */
static bool next_endpoint(struct exchange *x)
{
	const struct service *s = x->route->spec.service;
	struct str old = host_for(x, (struct str){0}), new;
	char *p, *head;
	size_t before;

	endpoint_tried_add(&x->tried, x->endpoint);
	if (++x->tries >= EXCHANGE_TRIES || x->tries >= s->n_endpoints || choose_endpoint(x) != CAUSE_NONE)
		return false;
	COUNT(x->w, retries);
	if (s->host != SERVICE_HOST_ENDPOINT)
		return true;
	/* the Host line, which the codec puts first, names the endpoint */
	new = host_for(x, (struct str){0});
	p = memmem(x->head.p, x->head.n, "\r\nHost: ", 8);
	CHECK(p && str_starts((struct str){ p + 8, x->head.n - (size_t)(p + 8 - x->head.p) }, old));
	before = (size_t)(p + 8 - x->head.p);
	head = arena_alloc(&x->arena, x->head.n - old.n + new.n);
	if (!head)
		return false;
	memcpy(head, x->head.p, before);
	memcpy(head + before, new.p, new.n);
	memcpy(head + before + new.n, p + 8 + old.n, x->head.n - before - old.n);
	x->head = (struct str){ head, x->head.n - old.n + new.n };
	return true;
}

/* --- dispatch --- */

/* Asks for a connection until one is leased or waited for, or nobody is left to ask. */
static void dispatch(struct exchange *x, bool fresh)
{
	enum cause cause;

	for (;;) {
		cause = pool_get(x, fresh, x->route->spec.service->max_connections);
		if (cause == CAUSE_NONE) {
			if (x->phase == PHASE_NEW && x->pool)
				exchange_move(x, MOVE_QUEUE);
			return;
		}
		if (cause == CAUSE_NO_MEMORY || cause == CAUSE_NO_DESCRIPTORS || cause == CAUSE_QUEUE_FULL ||
		    !next_endpoint(x))
			break;
	}
	exchange_fail(x, cause);
}

void exchange_leased(struct exchange *x, struct upstream *u, bool kept)
{
	x->up = u;
	x->reused = kept;
	x->answered = false;
	exchange_move(x, MOVE_LEASE);
	if (!kept)
		x->connect_us = x->w->now_us;
	request_flush(x);
	if (x->up == u)
		request_read(x);
	if (x->up == u && (u->c.t.flags & CONN_READABLE))
		worker_ready(x->w, &u->c);
}

void exchange_connect_failed(struct exchange *x, enum cause cause)
{
	CHECK(x->phase == PHASE_QUEUED);
	if (cause == CAUSE_NO_MEMORY || cause == CAUSE_NO_DESCRIPTORS || cause == CAUSE_QUEUE_FULL || !next_endpoint(x)) {
		exchange_fail(x, cause);
		return;
	}
	exchange_move(x, MOVE_RETRY);
	dispatch(x, x->retried_kept);
}

/* RFC 9112 9.3.1: a kept connection may die just as we use it.  Then the request is sent again, once, on
 * a fresh connection, if nothing of it was sent, or if its method is idempotent and all
 * that was sent is still here. */
static bool may_send_again(const struct exchange *x)
{
	if (x->phase != PHASE_LEASED && x->phase != PHASE_SENT)
		return false;
	if (!x->reused || x->retried_kept || x->answered)
		return false;
	if (!x->any_sent)
		return true;
	return method_idempotent(x->method) && (x->replayable || !x->body_sent);
}

void exchange_upstream_lost(struct exchange *x, enum cause cause)
{
	if (!may_send_again(x)) {
		exchange_fail(x, cause);
		return;
	}
	COUNT(x->w, retries);
	x->retried_kept = true;
	exchange_move(x, MOVE_RETRY);
	request_rewind(x);
	dispatch(x, true);
}

/* --- from head to dispatch --- */

/* Makes x->head, the bytes that the upstream gets. */
static enum cause make_head(struct exchange *x, struct head *h)
{
	struct vec *v = &x->w->vec;
	enum cause cause = forward_request(x, h);

	if (cause != CAUSE_NONE)
		return cause;
	switch (route_rewrite_target(x->route, h->target, &x->arena, &h->target)) {
	case OK:
		break;
	case ERR_MEM:
		return CAUSE_NO_MEMORY;
	default:
		return CAUSE_BAD_REWRITE;
	}
	h->authority = host_for(x, h->authority);
	h1_init(&x->upstream, CODEC_UPSTREAM, x->w->h1_upstream);
	if (codec_put_head(&x->upstream.codec, 0, h, v) != OK || v->n != 1) {
		vec_reset(v);
		return CAUSE_BAD_REQUEST;
	}
	x->head = arena_dup(&x->arena, (struct str){ v->iov[0].iov_base, v->iov[0].iov_len });
	vec_reset(v);
	return x->head.p ? CAUSE_NONE : CAUSE_NO_MEMORY;
}

static enum cause prepare(struct exchange *x, struct head *h)
{
	enum cause cause = CAUSE_NONE;

	if (h->has_length && h->length > x->body_limit)
		return CAUSE_BODY_LIMIT;
	if (h->upgrade.n && !may_upgrade(x, h->upgrade))
		h->upgrade.n = 0;
	cause = choose_endpoint(x);
	if (cause == CAUSE_NONE)
		cause = make_head(x, h);
	x->replayable = h->body != BODY_SIZED || h->length <= x->w->settings->replay;
	return cause;
}

/* For requests without a body, which are whole with their head. */
static void note_end(struct exchange *x, struct str *rest)
{
	struct codec_event ev;

	if (h1_in_missing(&x->server) == 0 && codec_next(&x->server.codec, rest, false, &ev) == CODEC_END)
		x->request = DIR_DONE;
}

void exchange_begin(struct exchange *x, struct head *h, struct str *rest)
{
	enum cause cause;

	COUNT(x->w, requests);
	x->began_us = x->w->now_us;
	x->method = h->method_id;
	x->minor = h->minor;
	note_for_log(x, h);
	x->request_id = forward_request_id(x, h);
	cause = find_route(x, h);
	if (cause == CAUSE_NONE && x->route->spec.action != ROUTE_SERVICE) {
		note_end(x, rest);
		local_route(x, h);
		return;
	}
	if (cause == CAUSE_NONE)
		cause = prepare(x, h);
	if (cause != CAUSE_NONE) {
		note_end(x, rest);
		exchange_fail(x, cause);
		return;
	}
	request_feed(x, rest, false);
}

void exchange_go(struct exchange *x)
{
	if (x->phase == PHASE_NEW)
		dispatch(x, false);
}

void exchange_refuse(struct exchange *x, enum codec_fault fault)
{
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

void exchange_upstream_event(struct exchange *x)
{
	if (x->phase == PHASE_TUNNEL) {
		tunnel_pump(x);
		return;
	}
	if (request_pending(x) && !x->write_failed)
		request_flush(x);
	if (x->up)
		request_read(x);
	if (x->up)
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
	case PHASE_QUEUED:
		exchange_fail(x, CAUSE_QUEUE_TIMEOUT);
		return;
	default:
		exchange_fail(x, x->to_client ? CAUSE_WRITE_TIMEOUT : CAUSE_BODY_TIMEOUT);
	}
}

void exchange_upstream_timeout(struct exchange *x)
{
	exchange_fail(x, x->phase == PHASE_REPLYING ? CAUSE_ANSWER_STALLED : CAUSE_FIRST_BYTE_TIMEOUT);
}

/* --- the end --- */

static int64_t since(const struct exchange *x, uint64_t then)
{
	return then ? (int64_t)(then - x->began_us) : ACCESS_NONE;
}

static void log_access(const struct exchange *x)
{
	struct access_record r = {
		.time_unix_ms = x->w->wall_ms,
		.client_port = x->client->port,
		.listener = x->w->settings->listeners[x->client->listener].label,
		.method = x->log_method, .authority = x->log_authority, .target = x->log_target,
		.http_major = 1, .http_minor = x->minor,
		.status = x->status,
		.bytes_in = x->bytes_in, .bytes_out = x->bytes_out,
		.duration_us = since(x, x->w->now_us),
		.connect_us = since(x, x->connect_us), .first_byte_us = since(x, x->first_us),
		.cause = causes[x->cause].token,
		.retries = (unsigned)x->tries + x->retried_kept,
		.request_id = x->request_id, .referer = x->log_referer, .user_agent = x->log_agent,
		.reused = x->reused, .client_closed = x->cause == CAUSE_CLIENT_LEFT,
		.upgrade = x->status == 101,
	};

	if (x->client->t.flags & CONN_V6) {
		r.client_family = AF_INET6;
		memcpy(r.client_addr, x->client->peer.v6->ip, 16);
	} else if (x->client->peer.v4) {
		r.client_family = AF_INET;
		memcpy(r.client_addr, &x->client->peer.v4, 4);
	}
	if (x->route) {
		r.route = x->route->spec.label;
		if (x->route->spec.service)
			r.service = service_name(x->route->spec.service);
	}
	if (x->endpoint)
		r.endpoint = endpoint_text(x->endpoint);
	access_write(&r);
}

void exchange_finish(struct exchange *x)
{
	struct worker *w = x->w;
	struct conn *c = x->client;
	bool keep = !x->client_closing && x->request == DIR_DONE && h1_reusable(&x->server);

	CHECK(x->phase == PHASE_DONE && !x->up && !x->pool);
	if (log_access_on())
		log_access(x);
	if (x->cut)
		conn_close(w, c, h1_out_until_close(&x->server) || x->status == 101);
	else
		client_next(w, c, &x->in, keep);
	buf_free(&x->in, &w->budget);
	buf_free(&x->up_in, &w->budget);
	buf_free(&x->to_up, &w->budget);
	buf_free(&x->to_client, &w->budget);
	buf_free(&x->replay, &w->budget);
	route_unref(x->route);
	exchange_drop(x);
}
