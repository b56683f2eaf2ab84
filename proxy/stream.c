/* stream: see stream.h.
 *
 * Begun by opening.c; its bytes are moved by tunnel.c, as those behind a 101 are.  It asks the pool for a connection of
 * its own, tries other endpoints when one cannot be connected to, and then holds two connections and nothing else: a
 * stream through which nothing goes has no buffer.
 *
 * It ends well when both sides have ended theirs: an end is passed on when all before it was.  Whatever else ends it
 * (a reset, a time-out, no endpoint, a drain whose time is over) resets what is left of it, so that both can tell.
 * Nothing is freed in the middle of a turn: one that is DONE waits on the worker's list. */
#include "proxy/stream.h"

#include <netinet/in.h>

#include "lib/base/check.h"
#include "lib/net/socket.h"
#include "proxy/access.h"
#include "proxy/affinity.h"
#include "proxy/answer.h"
#include "proxy/exchange.h"
#include "proxy/log.h"
#include "proxy/peer.h"
#include "proxy/pool.h"
#include "proxy/routing.h"
#include "proxy/tunnel.h"
#include "proxy/worker.h"

#define KEEPS_UP (192u * 1024)	/* bytes taken by the client */

/* --- ends --- */

static void end(struct stream *s, enum cause cause)
{
	struct worker *w = s->lease.w;
	struct upstream *u = s->lease.up;

	if (s->phase == STREAM_DONE)
		return;
	if (cause != CAUSE_NONE)
		COUNT(w, cause[cause]);
	s->cause = (uint8_t)cause;
	s->phase = STREAM_DONE;
	if (lease_waits(&s->lease))
		pool_leave(&s->lease);
	if (u) {
		s->lease.up = NULL;
		if (cause != CAUSE_NONE)
			u->c.t.flags |= CONN_RESET;
		pool_discard(u);
	}
	worker_wait_end(s->client);
	*(s->prev ? &s->prev->next : &w->streams) = s->next;
	if (s->next)
		s->next->prev = s->prev;
	s->next = w->streams_done;
	w->streams_done = s;
}

void stream_cut(struct worker *w, size_t n)
{
	while (w->streams && n--)
		end(w->streams, CAUSE_DRAINED);
}

/* --- bytes --- */

static struct tunnel_way way_of(struct stream *s, bool up)
{
	return (struct tunnel_way){
		.w = s->lease.w, .from = up ? s->client : &s->lease.up->c, .to = up ? &s->lease.up->c : s->client,
		.clock = s->client, .idle_ms = s->lease.w->settings->timeouts.tunnel,
		.waiting = up ? &s->to_up : &s->to_client, .fin = up ? &s->client_fin : &s->up_fin,
		.bytes = up ? &s->u.ran.bytes_in : &s->u.ran.bytes_out,
	};
}

static enum cause cause_of(enum tunnel_end end, bool up)
{
	if (end == TUNNEL_NO_MEMORY)
		return CAUSE_NO_MEMORY;
	return (end == TUNNEL_FROM_BROKEN) == up ? CAUSE_CLIENT_LEFT : CAUSE_UPSTREAM_RESET;
}

static void pump(struct stream *s)
{
	for (int up = 1; up >= 0; up--) {
		struct tunnel_way way = way_of(s, up);
		enum tunnel_end e = tunnel_move(&way);

		if (e != TUNNEL_ON) {
			end(s, cause_of(e, up));
			return;
		}
	}
	if (s->client_fin && s->up_fin && !s->to_up && !s->to_client)
		end(s, CAUSE_NONE);
	else if (s->u.ran.bytes_out >= KEEPS_UP && !s->to_client && !(s->lease.up->c.t.more & CONN_LARGE))
		answer_receive(s->lease.up, true);
}

/* --- an endpoint --- */

static bool next_endpoint(struct stream *s)
{
	if (!routing_pick_other(&s->lease, &s->u.tried))
		return false;
	COUNT(s->lease.w, retries);
	s->retries++;
	return true;
}

/* Asks for connections until one is waited for, or nobody is left to ask. */
static void dispatch(struct stream *s)
{
	enum cause cause;

	do
		cause = pool_get(&s->lease);
	while (cause != CAUSE_NONE && !cause_is_ours(cause) && next_endpoint(s));
	if (cause != CAUSE_NONE)
		end(s, cause);
}

static void failed(struct lease *l, enum cause cause)
{
	struct stream *s = (struct stream *)l;

	if (cause_is_ours(cause) || !next_endpoint(s))
		end(s, cause);
	else
		dispatch(s);
}

/* What the client has said goes behind the header that says who it is. */
static enum err introduce(struct stream *s)
{
	struct budget *budget = &s->lease.w->budget;
	char header[PROXYPROTO_WRITE_MAX];
	size_t n = peer_header(s->lease.service, s->client, header);
	struct str said = buf_str(s->to_up);
	struct buf *all = NULL;

	if (!n)
		return OK;
	if (buf_append(&all, budget, header, n, UINT32_MAX) != OK || buf_append(&all, budget, said.p, said.n, UINT32_MAX) != OK) {
		buf_free(&all, budget);
		return ERR_MEM;
	}
	buf_free(&s->to_up, budget);
	s->to_up = all;
	return OK;
}

static void leased(struct lease *l, struct upstream *u, bool kept)
{
	struct stream *s = (struct stream *)l;
	struct worker *w = l->w;

	CHECK(!kept);
	worker_wait_end(&u->c);
	s->phase = STREAM_RUNS;
	s->connected = true;
	s->u.ran.bytes_in = buf_len(s->to_up);
	s->u.ran.bytes_out = 0;
	s->u.ran.connect_us = w->now_us;
	if (introduce(s) != OK) {
		end(s, CAUSE_NO_MEMORY);
		return;
	}
	if (w->settings->timeouts.tunnel)
		worker_wait(w, s->client, ttl_list_for(&w->ttl, w->settings->timeouts.tunnel));
	pump(s);
}

/* --- events --- */

/* A reset is an end at once, even while what came before it waits to be taken: the other side is to hear of it. */
static bool was_reset(struct conn *c)
{
	return (c->t.flags & CONN_BROKEN) && socket_error(c->t.fd);
}

void stream_event(struct stream *s)
{
	if (s->phase == STREAM_DONE)
		return;
	if (was_reset(s->client))
		end(s, CAUSE_CLIENT_LEFT);
	else if (s->phase == STREAM_RUNS)
		pump(s);
}

static void upstream_event(struct lease *l)
{
	pump((struct stream *)l);
}

void stream_timeout(struct stream *s)
{
	end(s, s->phase == STREAM_RUNS ? CAUSE_TUNNEL_IDLE : CAUSE_QUEUE_TIMEOUT);
}

static void upstream_timeout(struct lease *l)
{
	(void)l;
	CHECK(false);	/* its connection has none */
}

static size_t holds(const struct lease *l)
{
	const struct stream *s = (const struct stream *)l;

	return sizeof *s + buf_heap(s->to_up) + buf_heap(s->name);
}

static const struct endpoint_tried *tried(const struct lease *l)
{
	return &((const struct stream *)l)->u.tried;
}

static const struct lease_ops lease_ops = {
	.leased = leased, .failed = failed, .event = upstream_event, .timeout = upstream_timeout, .holds = holds, .tried = tried,
};

/* --- from begin to end --- */

/* Microseconds: its head deadline began when it was accepted. */
static uint64_t since_accept(const struct worker *w, const struct conn *c)
{
	return (uint64_t)(w->now_ms - c->stamp) * 1000;
}

/* TLS or TCP, as the listener has it; what comes out of TLS is TCP. */
static bool wants_tls(const struct worker *w, const struct conn *c)
{
	return (w->settings->listeners[c->listener].opening & (OPENING_SNI | OPENING_TLS)) && !conn_secure(c);
}

void stream_begin(struct worker *w, struct conn *c, struct service *service, struct buf **first, struct str name)
{
	struct stream *s = slab_get(&w->streams_slab);
	enum cause cause;

	if (!s) {
		stream_refused(w, c, name, CAUSE_NO_MEMORY);
		buf_free(first, &w->budget);
		c->t.state = CONN_IDLE;
		conn_close(w, c, true);
		return;
	}
	worker_wait_end(c);
	*s = (struct stream){
		.lease = { .ops = &lease_ops, .w = w, .service = service_ref(service), .clock = c, .own = true },
		.client = c, .next = w->streams, .to_up = *first, .began_us = w->now_us - since_accept(w, c),
		.tls = wants_tls(w, c),
	};
	*first = NULL;
	if (s->next)
		s->next->prev = s;
	w->streams = s;
	COUNT(w, streams);
	c->t.state = CONN_STREAM;
	c->work.stream = s;
	s->lease.key = affinity_of_conn(service, c);
	cause = routing_pick(&s->lease, &s->u.tried);
	if (cause == CAUSE_NONE && name.n && buf_append(&s->name, &w->budget, name.p, name.n, UINT32_MAX) != OK)
		cause = CAUSE_NO_MEMORY;
	if (cause != CAUSE_NONE)
		end(s, cause);
	else
		dispatch(s);
	if (s->phase == STREAM_WAITS && was_reset(c))	/* and no event will tell of it again */
		end(s, CAUSE_CLIENT_LEFT);
}

static void log_client(struct access_record *r, const struct worker *w, const struct conn *c)
{
	r->time_unix_ms = w->wall_ms;
	r->client_port = c->port;
	r->listener = w->settings->listeners[c->listener].label;
	if (c->t.flags & CONN_V6) {
		r->client_family = AF_INET6;
		memcpy(r->client_addr, c->peer.v6->ip, 16);
	} else if (c->peer.v4) {
		r->client_family = AF_INET;
		memcpy(r->client_addr, &c->peer.v4, 4);
	}
}

static void log_access(const struct stream *s)
{
	const struct worker *w = s->lease.w;
	char endpoint[ENDPOINT_TEXT_MAX];
	struct access_tls tls;
	struct access_record r = {
		.protocol = s->tls ? STR("TLS") : STR("TCP"), .authority = buf_str(s->name),
		.bytes_in = s->connected ? s->u.ran.bytes_in : 0, .bytes_out = s->connected ? s->u.ran.bytes_out : 0,
		.duration_us = (int64_t)(w->now_us - s->began_us), .first_byte_us = ACCESS_NONE,
		.connect_us = s->connected ? (int64_t)(s->u.ran.connect_us - s->began_us) : ACCESS_NONE,
		.service = service_name(s->lease.service), .cause = causes[s->cause].token,
		.retries = s->retries, .client_closed = s->cause == CAUSE_CLIENT_LEFT,
	};

	if (conn_secure(s->client)) {
		tls = identity_logged(identity_of(s->client));
		r.tls = &tls;
	}
	if (s->lease.endpoint)
		r.endpoint = pool_text(w, s->lease.endpoint, endpoint);
	log_client(&r, w, s->client);
	access_write(&r);
}

void stream_refused(struct worker *w, struct conn *c, struct str name, enum cause cause)
{
	struct access_record r = {
		.protocol = wants_tls(w, c) ? STR("TLS") : STR("TCP"), .authority = name, .duration_us = (int64_t)since_accept(w, c),
		.connect_us = ACCESS_NONE, .first_byte_us = ACCESS_NONE, .cause = causes[cause].token, .client_closed = cause == CAUSE_CLIENT_LEFT,
	};

	COUNT(w, streams);
	COUNT(w, cause[cause]);
	if (!log_access_on())
		return;
	log_client(&r, w, c);
	access_write(&r);
}

void stream_finish(struct stream *s)
{
	struct worker *w = s->lease.w;

	CHECK(s->phase == STREAM_DONE && !s->lease.up && !lease_waits(&s->lease));
	if (log_access_on())
		log_access(s);
	if (s->connected) {
		COUNT_ADD(w, bytes_in, s->u.ran.bytes_in);
		COUNT_ADD(w, bytes_out, s->u.ran.bytes_out);
	}
	conn_close(w, s->client, s->cause != CAUSE_NONE);
	buf_free(&s->name, &w->budget);
	buf_free(&s->to_up, &w->budget);
	buf_free(&s->to_client, &w->budget);
	lease_aim(&s->lease, NULL);
	service_unref((struct service *)(uintptr_t)s->lease.service);
	slab_put(&w->streams_slab, s);
}
