/* call: see call.h.
 *
 * The request is written once, head and body, from memory; the answer is read to its end, and only a whole one
 * counts.  Another endpoint is tried when one cannot be reached; what was sent is sent again when an exchange
 * would be (exchange.c): to another endpoint, or once more when it was a kept connection that died.
 *
 * Nothing here runs its owner from inside an event, a pool or an exchange: who starts a call, and what
 * ends it, only puts it on the worker's list of those that are due, and calls_run, once a turn, begins them and tells of
 * them.  That is also the only place where one is freed. */
#include "proxy/call.h"

#include <errno.h>

#include "dispatch/service.h"
#include "lib/base/check.h"
#include "proxy/attempt.h"
#include "proxy/peer.h"
#include "proxy/pool.h"
#include "proxy/routing.h"

#define NO CALL_STATES

const uint8_t call_next[CALL_STATES][CALL_MOVES] = {
	/*                wait         lease       retry     end */
	[CALL_NEW]    = { CALL_QUEUED, CALL_ASKED, NO,       CALL_ENDED },
	[CALL_QUEUED] = { NO,          CALL_ASKED, CALL_NEW, CALL_ENDED },
	[CALL_ASKED]  = { NO,          NO,         CALL_NEW, CALL_ENDED },
	[CALL_ENDED]  = { NO,          NO,         NO,       NO },
};

const uint8_t call_holds[CALL_STATES] = {
	[CALL_QUEUED] = CALL_PLACE,
	[CALL_ASKED] = CALL_UPSTREAM,
};

/* --- moving --- */

static void due(struct call *c)
{
	struct worker *w = c->lease.w;

	if (c->due)
		return;
	c->due = true;
	c->next_due = NULL;
	*(w->calls.due ? &w->calls.last_due->next_due : &w->calls.due) = c;
	w->calls.last_due = c;
}

/* `reuse`: the connection may carry another message. */
static void move(struct call *c, enum call_move m, bool reuse)
{
	uint8_t next = call_next[c->state][m], give;
	struct upstream *u = c->lease.up;

	CHECK(next != NO);
	give = call_holds[c->state] & (uint8_t)~call_holds[next];
	c->state = next;
	if ((give & CALL_PLACE) && lease_waits(&c->lease))
		pool_leave(&c->lease);
	if (give & CALL_UPSTREAM) {
		c->lease.up = NULL;
		(reuse ? pool_put : pool_discard)(u);
	}
	if (next != CALL_ENDED)
		return;
	ttl_unlink(&c->link);
	due(c);
}

static void end(struct call *c, enum cause cause)
{
	c->cause = (uint8_t)cause;
	move(c, CALL_END, false);
}

/* --- asking --- */

static const struct lease_ops lease_ops;	/* below */

/* Asks for a connection until one is leased or waited for, or nobody is left to ask. */
static void ask(struct call *c)
{
	enum cause cause;

	for (;;) {
		cause = pool_get(&c->lease);
		if (cause == CAUSE_NONE) {
			if (c->state == CALL_NEW && lease_waits(&c->lease))
				move(c, CALL_WAIT, false);
			return;
		}
		if (cause_is_ours(cause) || !routing_pick_other(&c->lease, &c->tried))
			break;
		COUNT(c->lease.w, retries);
	}
	end(c, cause);
}

static void begin(struct call *c)
{
	enum cause cause = routing_pick(&c->lease, &c->tried);

	if (cause == CAUSE_NONE)
		ask(c);
	else
		end(c, cause);
}

/* As retrying_lost. */
static void lost(struct call *c, enum cause cause)
{
	bool kept = c->reused && !c->lease.fresh;
	bool safe = !c->answered && (!c->any_sent || method_idempotent(c->request.method_id));

	attempt_ended(&c->lease, cause, 0);
	if (!safe || (!routing_pick_other(&c->lease, &c->tried) && !kept)) {
		end(c, cause);
		return;
	}
	COUNT(c->lease.w, retries);
	c->lease.fresh = c->lease.again = true;
	buf_free(&c->up_in, &c->lease.w->budget);
	move(c, CALL_RETRY, false);
	ask(c);
}

/* --- the request --- */

static bool pending(const struct call *c)
{
	return c->sent < c->head.n + buf_len(c->body);
}

/* The head as the connection takes it: where connections must begin with a PROXY protocol header, behind one that says
 * that we ask for ourselves. */
static struct str introduced(struct call *c, struct str head)
{
	char header[PROXYPROTO_WRITE_MAX];
	size_t n = peer_header(c->lease.service, NULL, header);
	char *p = arena_alloc(&c->arena, n + head.n);

	if (!p)
		return (struct str){0};
	memcpy(p, header, n);
	memcpy(p + n, head.p, head.n);
	return (struct str){ p, n + head.n };
}

/* Makes c->head for the endpoint that it has, and tells the codec all that will be sent. */
static enum err put_request(struct call *c)
{
	struct vec *v = &c->lease.w->vec;
	struct head h = c->request;
	struct codec *codec = &c->upstream.codec;
	char host[ENDPOINT_TEXT_MAX];
	enum err err;

	h1_init(&c->upstream, CODEC_UPSTREAM, c->lease.w->h1_upstream);
	h.authority = routing_host(&c->lease, h.authority, host);
	err = codec_put_head(codec, 0, &h, v);
	if (err == OK) {
		c->head = introduced(c, (struct str){ v->iov[0].iov_base, v->iov[0].iov_len });
		err = c->head.p ? OK : ERR_MEM;
	}
	if (err == OK && c->body)
		err = codec_put_body(codec, 0, buf_str(c->body), v);
	if (err == OK)
		err = codec_put_end(codec, 0, NULL, v);
	vec_reset(v);
	return err;
}

static void flush(struct call *c)
{
	struct conn *up = &c->lease.up->c;
	struct str body = buf_str(c->body);
	size_t head = c->sent < c->head.n ? c->sent : c->head.n, skip = c->sent - head;
	struct iovec iov[2] = { { (char *)c->head.p + head, c->head.n - head } };
	ssize_t n;

	if (body.n)
		iov[1] = (struct iovec){ (char *)body.p + skip, body.n - skip };
	n = conn_write(c->lease.w, up, iov, body.n ? 2 : 1);

	if (n > 0) {
		c->any_sent = true;
		c->sent += (size_t)n;
	} else if (n < 0 && errno != EAGAIN) {
		c->write_failed = true;		/* reading tells what became of it */
		up->t.flags |= CONN_READABLE;
		worker_ready(c->lease.w, up);
	}
}

/* --- the answer --- */

/* True when reading goes on. */
static bool answer_head(struct call *c, const struct head *h)
{
	if (h->status < 200)
		return true;
	attempt_ended(&c->lease, CAUSE_NONE, h->status);
	c->answer = (struct head){ .status = h->status };
	if (c->keep && head_dup(&c->answer, h, &c->arena, 0) != OK) {
		end(c, CAUSE_NO_MEMORY);
		return false;
	}
	return true;
}

static bool answer_body(struct call *c, struct str piece)
{
	struct budget *budget = &c->lease.w->budget;

	c->read += piece.n;
	if (c->read > CALL_READ_MAX) {
		end(c, CAUSE_ANSWER_SIZE);
		return false;
	}
	if (!c->kept_all)
		return true;
	switch (buf_append(&c->got, budget, piece.p, piece.n, c->keep)) {
	case OK:
		return true;
	case ERR_LIMIT:
		c->kept_all = false;
		buf_free(&c->got, budget);
		return true;
	default:
		end(c, CAUSE_NO_MEMORY);
		return false;
	}
}

static void answer_bad(struct call *c, enum codec_fault fault)
{
	if (fault == FAULT_CUT && !c->answered) {
		lost(c, CAUSE_UPSTREAM_CLOSED);
		return;
	}
	if (!c->answer.status)
		attempt_ended(&c->lease, cause_of_answer_fault(fault, false), 0);
	end(c, cause_of_answer_fault(fault, false));
}

static void answer_feed(struct call *c, struct str *in, bool eof)
{
	struct codec_event ev;

	for (;;) {
		switch (codec_next(&c->upstream.codec, in, eof, &ev)) {
		case CODEC_HEAD:
			if (!answer_head(c, ev.head))
				return;
			continue;
		case CODEC_BODY:
			if (!answer_body(c, ev.body))
				return;
			continue;
		case CODEC_TRAILERS:
			continue;
		case CODEC_END:
			c->cause = CAUSE_NONE;
			move(c, CALL_END, !in->n && !pending(c) && h1_reusable(&c->upstream));
			return;
		case CODEC_BAD:
			answer_bad(c, ev.fault);
			return;
		case CODEC_MORE:
			if (eof)
				answer_bad(c, FAULT_CUT);
			return;
		}
	}
}

static void answer_read(struct call *c)
{
	struct worker *w = c->lease.w;
	struct upstream *u = c->lease.up;
	size_t visit = 0;
	struct str in;
	ssize_t n;

	while (u->c.t.flags & CONN_READABLE) {
		if (visit >= WORKER_VISIT) {
			worker_ready(w, &u->c);
			return;
		}
		n = conn_input(w, &u->c, &c->up_in, WORKER_READ_FIRST, w->settings->answer.head + WORKER_READ_FIRST, &in);
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0 || (n == 0 && c->write_failed)) {
			answer_bad(c, FAULT_CUT);
			return;
		}
		visit += (size_t)n;
		c->answered |= n > 0;
		answer_feed(c, &in, n == 0);
		if (c->lease.up != u)
			return;
		if (conn_keep(w, &c->up_in, in) != OK) {
			end(c, CAUSE_NO_MEMORY);
			return;
		}
	}
}

/* --- what the pool and the connection say --- */

static void leased(struct lease *l, struct upstream *u, bool kept)
{
	struct call *c = (struct call *)l;

	move(c, CALL_LEASE, false);
	c->reused = kept;
	c->sent = 0;
	c->any_sent = c->answered = c->write_failed = false;
	switch (put_request(c)) {
	case OK:
		break;
	case ERR_MEM:
		end(c, CAUSE_NO_MEMORY);
		return;
	default:
		end(c, CAUSE_BAD_REQUEST);
		return;
	}
	flush(c);
	if (u->c.t.flags & CONN_READABLE)
		worker_ready(l->w, &u->c);
}

static void failed(struct lease *l, enum cause cause)
{
	struct call *c = (struct call *)l;

	if (cause_is_ours(cause) || !routing_pick_other(l, &c->tried)) {
		end(c, cause);
		return;
	}
	COUNT(l->w, retries);
	move(c, CALL_RETRY, false);
	ask(c);
}

static void event(struct lease *l)
{
	struct call *c = (struct call *)l;

	if (pending(c) && !c->write_failed)
		flush(c);
	answer_read(c);
}

/* Of the connection: it has none while a call has it. */
static void timeout(struct lease *l)
{
	end((struct call *)l, CAUSE_FIRST_BYTE_TIMEOUT);
}

static size_t holds(const struct lease *l)
{
	const struct call *c = (const struct call *)l;

	return CALL_SIZE + arena_heap(&c->arena) + buf_heap(c->body);
}

static const struct endpoint_tried *tried(const struct lease *l)
{
	return &((const struct call *)l)->tried;
}

static const struct lease_ops lease_ops = {
	.leased = leased, .failed = failed, .event = event, .timeout = timeout, .holds = holds, .tried = tried,
};

static void expired(struct call *c)
{
	enum cause cause = c->state == CALL_QUEUED ? (c->lease.waits_on ? CAUSE_CONNECT_TIMEOUT : CAUSE_QUEUE_TIMEOUT) :
			   pending(c) ? CAUSE_SEND_TIMEOUT : CAUSE_FIRST_BYTE_TIMEOUT;

	if (c->state == CALL_ASKED && !c->answer.status)
		attempt_ended(&c->lease, cause, 0);
	end(c, cause);
}

void calls_expire(struct worker *w)
{
	struct ttl_link *l;

	while ((l = ttl_expired(&w->calls.ttl, w->now_ms)))
		expired((struct call *)((char *)l - offsetof(struct call, link)));
}

/* --- making and ending --- */

static void list(struct call *c)
{
	struct worker *w = c->lease.w;

	c->next = w->calls.all;
	if (c->next)
		c->next->prev = c;
	w->calls.all = c;
}

static void call_free(struct call *c)
{
	struct worker *w = c->lease.w;

	*(c->prev ? &c->prev->next : &w->calls.all) = c->next;
	if (c->next)
		c->next->prev = c->prev;
	buf_free(&c->body, &w->budget);
	buf_free(&c->up_in, &w->budget);
	buf_free(&c->got, &w->budget);
	lease_aim(&c->lease, NULL);
	service_unref(c->service);
	arena_fini(&c->arena);
	slab_put(&w->calls.slab, c);
}

struct call *call_new(struct worker *w, const struct call_spec *spec, enum cause *cause)
{
	struct call *c = NULL;

	*cause = CAUSE_CALLS_FULL;
	if (w->calls.slab.live >= (spec->hasty ? (w->settings->calls + 1) / 2 : w->settings->calls))
		return NULL;
	*cause = CAUSE_NO_MEMORY;
	c = slab_get(&w->calls.slab);
	if (!c)
		return NULL;
	memset(c, 0, offsetof(struct call, upstream));
	c->lease.ops = &lease_ops;
	c->lease.w = w;
	c->lease.hasty = spec->hasty;
	c->lease.own = spec->service->rules->proxy;
	c->lease.service = c->service = service_ref(spec->service);
	c->lease.careful = !method_idempotent(spec->head->method_id);
	c->keep = spec->keep;
	c->kept_all = spec->keep > 0;
	c->done = spec->done;
	c->owner = spec->owner;
	list(c);
	arena_init(&c->arena, c + 1, CALL_SIZE - sizeof *c, &w->budget);
	if (head_dup(&c->request, spec->head, &c->arena, spec->room) != OK) {
		call_free(c);
		return NULL;
	}
	/* what is about that message's body and connection is not about this one's */
	c->request.upgrade = STR("");
	c->request.body = BODY_NONE;
	c->request.has_length = c->request.expect_continue = c->request.te_trailers = c->request.close = false;
	c->list = ttl_list_for(&w->calls.ttl, spec->timeout_ms);
	return c;
}

enum err call_body(struct call *c, struct str piece, size_t limit)
{
	return buf_append(&c->body, &c->lease.w->budget, piece.p, piece.n, limit);
}

/* A method that is expected to have a body says that it has none (RFC 9110 8.6). */
static bool tells_length(const struct call *c)
{
	uint8_t m = c->request.method_id;

	return c->body || m == METHOD_POST || m == METHOD_PUT || m == METHOD_PATCH;
}

void call_start(struct call *c)
{
	struct worker *w = c->lease.w;

	CHECK(c->state == CALL_NEW);
	c->request.length = buf_len(c->body);
	c->request.has_length = tells_length(c);
	if (c->body)
		c->request.body = BODY_SIZED;
	COUNT(w, calls);
	ttl_link(&w->calls.ttl, c->list, &c->link, w->now_ms);
	due(c);
}

void call_cancel(struct call *c)
{
	c->done = NULL;
	if (c->state != CALL_ENDED)
		end(c, CAUSE_NONE);
}

void calls_cancel_all(struct worker *w)
{
	for (struct call *c = w->calls.all; c; c = c->next)
		call_cancel(c);
}

/* Nobody is left who could want to know. */
static bool all_in_vain(const struct worker *w)
{
	return w->draining && !w->conns.live && w->calls.all;
}

bool calls_wait(const struct worker *w)
{
	return w->calls.due || all_in_vain(w);
}

void calls_run(struct worker *w)
{
	struct call *c;

	if (all_in_vain(w))
		calls_cancel_all(w);
	while ((c = w->calls.due)) {
		w->calls.due = c->next_due;
		c->due = false;
		if (c->state != CALL_ENDED) {
			begin(c);
			continue;
		}
		if (c->done)
			c->done(c, c->owner);
		call_free(c);
	}
}
