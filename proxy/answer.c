/* answer: see answer.h.
 *
 * Head, framing and body pieces of one read go out in one writev, straight from the scratch
 * buffer that they were read to.  What the client does not take is copied to
 * x->to_client; nothing more is read from the upstream until that is gone, so what one
 * slow client holds is one read.  The read is small until the client has shown that it
 * keeps up, in this answer or an earlier one, and small again after it stalled.
 *
 * The upstream connection is given back as soon as the answer has ended, while the client may
 * still be reading its tail. */
#include "proxy/answer.h"

#include "dispatch/idle.h"
#include "lib/base/check.h"
#include "lib/net/socket.h"
#include "proxy/attempt.h"
#include "proxy/compress.h"
#include "proxy/forward.h"
#include "proxy/mirroring.h"
#include "proxy/pool.h"
#include "proxy/request.h"
#include "proxy/retrying.h"
#include "proxy/tunnel.h"

#define KEEPS_UP (256u * 1024)	/* bytes taken without a stall */
#define STALL_MS 50u			/* a client that takes nothing for so long stalls */

bool answer_flush(struct exchange *x)
{
	struct worker *w = x->w;
	bool was_blocked = x->to_client;
	ssize_t n = conn_output(w, x->client, (struct str){0}, &x->to_client, &w->vec);

	if (n < 0) {
		exchange_cut(x, errno == ENOMEM ? CAUSE_NO_MEMORY : CAUSE_CLIENT_LEFT);
		return false;
	}
	x->flowed += (size_t)n;
	if (x->to_client) {
		if (n || !was_blocked)
			worker_wait(w, x->client, w->list.write);
		if (x->lease.up)
			worker_wait_end(&x->lease.up->c);	/* it is not the upstream that we wait for */
	} else if (was_blocked) {
		worker_wait_end(x->client);
	}
	return true;
}

/* --- from the upstream --- */

static void wait_for_bytes(struct exchange *x)
{
	uint32_t ms = x->route->spec->between_bytes_ms;

	if (x->phase == PHASE_SENT)
		request_wait(x, true);
	else if (ms)
		worker_wait(x->w, &x->lease.up->c, ttl_list_for(&x->w->ttl, ms));
	else
		worker_wait_end(&x->lease.up->c);
}

/* To the client.  `rest`: what came behind it.  False when the exchange goes another way than reading on. */
static inline __attribute__((always_inline)) bool pass_head(struct exchange *x, struct head *h, struct str rest)
{
	struct vec *v = &x->w->vec;
	bool interim = h->status < 200 && h->status != 101;
	enum cause cause = CAUSE_NONE;

	worker_count_status(x->w, h->status);
	if (h->status == 101 && request_pending(x))
		cause = CAUSE_BAD_UPGRADE;	/* it has not even read the request */
	else if (!interim)
		cause = forward_answer(x, h);
	if (x->compress && !interim && cause == CAUSE_NONE)
		cause = compress_head(x, h, rest);
	if (!interim && (x->request != DIR_DONE || x->w->draining) && h->status != 101)
		h1_close_after(&x->server);
	if (cause == CAUSE_NONE && codec_put_head(&x->server.codec, 0, h, v) != OK)
		cause = CAUSE_ANSWER_HEAD_SIZE;
	if (cause != CAUSE_NONE) {
		vec_reset(v);
		exchange_fail(x, cause);
		return false;
	}
	if (interim) {
		x->passed |= h->status != 100;	/* which says nothing of the answer */
		exchange_move(x, MOVE_INTERIM);
		request_wait(x, true);
		return true;
	}
	x->status = h->status;
	buf_free(&x->replay, &x->w->budget);
	x->replayable = false;
	exchange_move(x, h->status == 101 ? MOVE_SWITCH : MOVE_REPLY);
	if (x->copy)
		mirroring_go(x);
	return h->status != 101;
}

static bool answer_head(struct exchange *x, struct head *h, struct str rest)
{
	if (!x->first_us)
		x->first_us = x->w->now_us;
	if (h->keep_alive)
		idle_told(&x->lease.endpoint->idle, h->keep_alive - 1u, x->w->now_ms);
	if (h->status >= 200)
		attempt_ended(&x->lease, CAUSE_NONE, h->status);
	if (h->status >= 400 && retrying_hold(x, h))
		return true;
	return pass_head(x, h, rest);
}

/* What came before a fault is good. */
static bool answer_flush_good(struct exchange *x)
{
	return compress_on(x) ? compress_flush(x) : answer_flush(x);
}

/* It ended too early. */
static void answer_lost(struct exchange *x, enum cause cause)
{
	bool passed = x->phase == PHASE_REPLYING;

	if (x->holding) {
		if (!x->w->vec.n || answer_flush(x))
			retrying_spoiled(x, cause);
		return;
	}
	if (passed && !answer_flush_good(x))
		return;
	vec_reset(&x->w->vec);
	if (!passed)
		retrying_lost(x, cause);
	else
		exchange_fail(x, cause == CAUSE_UPSTREAM_CLOSED ? CAUSE_ANSWER_CUT : cause);
}

static void answer_bad(struct exchange *x, enum codec_fault fault)
{
	bool passed = x->phase == PHASE_REPLYING;

	if (fault == FAULT_CUT || x->holding) {
		answer_lost(x, CAUSE_UPSTREAM_CLOSED);
		return;
	}
	x->fault = (uint8_t)fault;
	COUNT(x->w, fault[fault]);
	if (!passed)
		attempt_ended(&x->lease, cause_of_answer_fault(fault, false), 0);
	if (!passed || answer_flush_good(x)) {
		vec_reset(&x->w->vec);
		exchange_fail(x, cause_of_answer_fault(fault, passed));
	}
}

/* The answer is whole.  `extra`: bytes came behind it, which nobody asked for; `ended`: put_end
 * was called, with trailers. */
static void answer_end(struct exchange *x, bool extra, bool ended)
{
	struct conn *up = &x->lease.up->c;

	if (!ended && codec_put_end(&x->server.codec, 0, NULL, &x->w->vec) != OK) {
		vec_reset(&x->w->vec);
		exchange_fail(x, CAUSE_ANSWER_CUT);
		return;
	}
	if (!answer_flush(x))
		return;
	if (extra || x->request != DIR_DONE || request_pending(x) || !h1_reusable(&x->upstream))
		up->t.flags |= CONN_BROKEN;	/* not to be used again */
	if (x->request == DIR_OPEN) {
		x->request = DIR_CUT;
		x->client_closing = true;
		worker_wait_end(x->client);
		if (x->to_client)
			worker_wait(x->w, x->client, x->w->list.write);
	}
	exchange_move(x, MOVE_UPSTREAM_END);
	if (!x->to_client)
		exchange_move(x, MOVE_FLUSHED);
}

/* A piece of the body.  False when the exchange goes another way. */
static bool answer_body(struct exchange *x, struct str piece)
{
	struct vec *v = &x->w->vec;

	if (compress_on(x))
		return compress_body(x, piece);
	x->bytes_out += piece.n;
	COUNT_ADD(x->w, bytes_out, piece.n);
	if (codec_put_body(&x->server.codec, 0, piece, v) == OK)
		return true;
	vec_reset(v);
	exchange_fail(x, CAUSE_ANSWER_BROKEN);
	return false;
}

/* What was kept of an answer goes to the client after all, and the rest will follow. */
static __attribute__((noinline)) bool pass_kept(struct exchange *x)
{
	struct str body = buf_str(x->spare->body);
	bool on = pass_head(x, &x->spare->head, body) && (!body.n || answer_body(x, body)) &&
		  (compress_on(x) ? compress_flush(x) : answer_flush(x));

	retrying_spare_free(x);
	return on;
}

/* The same for one that may be replaced by another. */
static bool held_body(struct exchange *x, struct str piece)
{
	return retrying_body(x, piece) || (pass_kept(x) && answer_body(x, piece));
}

/* `more`: there is more to read, and it will be read at once. */
static void answer_feed(struct exchange *x, struct str *in, bool eof, bool more)
{
	struct vec *v = &x->w->vec;
	struct codec_event ev;
	bool ended = false;

	for (;;) {
		if (vec_room(v) < 4 && !answer_flush(x))
			return;
		switch (codec_next(&x->upstream.codec, in, eof, &ev)) {
		case CODEC_HEAD:
			if (answer_head(x, ev.head, *in))
				continue;
			if (x->phase == PHASE_TUNNEL)
				tunnel_begin(x, in);
			return;
		case CODEC_BODY:
			if (x->holding ? held_body(x, ev.body) : answer_body(x, ev.body))
				continue;
			return;
		case CODEC_TRAILERS:
			if (x->holding)
				continue;
			if (compress_on(x) && !compress_trailers(x, ev.head))
				return;
			ended = codec_put_end(&x->server.codec, 0, ev.head, v) == OK;
			if (ended)
				continue;
			vec_reset(v);
			exchange_fail(x, CAUSE_ANSWER_BROKEN);
			return;
		case CODEC_END:
			if (x->holding) {
				if (!v->n || answer_flush(x))
					retrying_whole(x, in->n > 0);
				return;
			}
			if (compress_on(x) && !compress_end(x))
				return;
			answer_end(x, in->n > 0, ended);
			return;
		case CODEC_BAD:
			answer_bad(x, ev.fault);
			return;
		case CODEC_MORE:
			if (eof)	/* before the first byte of an answer: no fault to a codec, but to us */
				answer_bad(x, FAULT_CUT);
			else if (compress_on(x))
				compress_pause(x, more);
			else if (v->n)
				answer_flush(x);
			return;
		}
	}
}

void answer_receive(struct upstream *u, bool large)
{
	(large ? socket_receive_large : socket_receive_small)(u->c.t.fd, &u->c.peer.pool->w->settings->socket);
	u->c.t.more ^= CONN_LARGE;
}

static size_t read_size(struct exchange *x)
{
	if (x->phase < PHASE_REPLYING)
		return WORKER_READ_FIRST;
	if (x->flowed >= KEEPS_UP)
		x->client->t.more |= CONN_KEEPS_UP;
	if (!(x->client->t.more & CONN_KEEPS_UP))
		return WORKER_READ_SMALL;
	if (!(x->lease.up->c.t.more & CONN_LARGE))
		answer_receive(x->lease.up, true);
	return compress_on(x) ? WORKER_READ_FIRST : WORKER_READ_LARGE;
}

void answer_read(struct exchange *x)
{
	struct worker *w = x->w;
	struct upstream *u = x->lease.up;
	size_t visit = 0;
	struct str in;
	ssize_t n;

	if (x->phase == PHASE_LEASED)
		exchange_move(x, MOVE_SEND);	/* it speaks before it was asked: let the codec judge */
	while ((x->phase == PHASE_SENT || x->phase == PHASE_REPLYING) && x->lease.up == u && !x->to_client &&
	       (u->c.t.flags & CONN_READABLE)) {
		if (visit >= (compress_on(x) ? COMPRESS_VISIT : WORKER_VISIT)) {
			worker_ready(w, &u->c);
			return;
		}
		n = conn_input(w, &u->c, &x->up_in, read_size(x), w->settings->answer.head + WORKER_READ_FIRST, &in);
		if (n < 0 && errno == EAGAIN) {
			if (compress_on(x))
				compress_flush(x);
			return;
		}
		if (n < 0 || (n == 0 && x->write_failed)) {	/* the write was told of a reset: this is no clean end */
			answer_lost(x, n ? conn_cause(&u->c, errno) : CAUSE_UPSTREAM_CLOSED);
			return;
		}
		visit += (size_t)n;
		if (n > 0)
			x->answered = true;
		answer_feed(x, &in, n == 0, visit < COMPRESS_VISIT && (u->c.t.flags & CONN_READABLE));
		if (x->phase >= PHASE_TUNNEL || x->lease.up != u)
			return;
		if (!x->to_client && x->phase == PHASE_REPLYING)	/* a head must come whole in its time */
			wait_for_bytes(x);
		if (conn_keep(w, &x->up_in, in) != OK) {
			vec_reset(&w->vec);
			exchange_fail(x, CAUSE_NO_MEMORY);
			return;
		}
	}
}

void answer_resume(struct exchange *x)
{
	if (!x->to_client)
		return;
	if (x->w->now_ms - x->client->stamp > STALL_MS) {
		x->client->t.more &= (uint8_t)~CONN_KEEPS_UP;
		x->flowed = 0;
	}
	if (!answer_flush(x) || x->to_client)
		return;
	if (x->phase == PHASE_FLUSHING || x->phase == PHASE_LOCAL) {
		exchange_move(x, MOVE_FLUSHED);
		return;
	}
	if (x->phase == PHASE_REPLYING || x->phase == PHASE_SENT) {
		wait_for_bytes(x);
		answer_read(x);
	}
}
