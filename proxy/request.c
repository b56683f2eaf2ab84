/* request: see request.h.
 *
 * The head was made once, in x->head.  Body pieces are framed by the upstream codec and written
 * from where they were read, behind what still waits in x->to_up; what the socket does not
 * take is copied there, and nothing more is read until it is gone.  While the request is
 * young, x->replay keeps a copy of the framed body, for another try; it is given up as soon
 * as it would pass its bound.
 *
 * A write that fails does not end the exchange: an origin that refuses a request early
 * answers, closes, and resets what we still send.  Reading the upstream tells. */
#include "proxy/request.h"

#include "lib/base/check.h"
#include "proxy/answer.h"
#include "proxy/mirroring.h"
#include "proxy/retrying.h"

/* Framed bytes that a QUEUED request may hold before we stop reading its body: what came
 * with its head, in one read. */
#define REQUEST_WAIT_MAX (256u * 1024)

static bool sending(const struct exchange *x)
{
	return x->phase >= PHASE_LEASED && x->phase <= PHASE_REPLYING && !x->write_failed;
}

bool request_pending(const struct exchange *x)
{
	return x->head_sent < x->head.n || x->to_up;
}

static void replay_keep(struct exchange *x, const struct vec *v)
{
	for (unsigned i = 0; i < v->n && x->replayable; i++)
		if (buf_append(&x->replay, &x->w->budget, v->iov[i].iov_base, v->iov[i].iov_len,
			       x->w->settings->replay) != OK)
			x->replayable = false;
	if (x->replayable)
		return;
	COUNT(x->w, replay_dropped);
	buf_free(&x->replay, &x->w->budget);
}

/* As request_wait, where most requests pass. */
static inline __attribute__((always_inline)) void wait_on(struct exchange *x, bool moved)
{
	struct worker *w = x->w;
	struct conn *up = &x->lease.up->c;

	if (x->phase != PHASE_LEASED && x->phase != PHASE_SENT)
		return;
	if (request_pending(x)) {
		if (moved || !ttl_linked(&up->link))
			worker_wait(w, up, w->list.write);
	} else if (x->request == DIR_DONE && x->route->spec->try_ms) {
		if (!x->asked_ms)
			x->asked_ms = w->now_ms | 1;
		worker_wait(w, up, ttl_list_for(&w->ttl, x->sent_again ? retrying_try_ms(x) : x->route->spec->try_ms));
	} else {
		worker_wait_end(up);
	}
}

void request_wait(struct exchange *x, bool moved)
{
	wait_on(x, moved);
}

static void sent(struct exchange *x, size_t n)
{
	size_t head = x->head.n - x->head_sent;

	if (n == 0)
		return;
	x->any_sent = true;
	if (x->phase == PHASE_LEASED)
		exchange_move(x, MOVE_SEND);
	x->head_sent += (uint32_t)(n < head ? n : head);
	if (n > head)
		x->body_sent = true;
}

void request_flush(struct exchange *x)
{
	struct worker *w = x->w;
	struct vec *v = &w->vec;
	struct str head = { x->head.p + x->head_sent, x->head.n - x->head_sent };
	ssize_t n;

	if (x->replayable && v->n)
		replay_keep(x, v);
	if (!sending(x)) {
		if (conn_hold(w, &x->to_up, v) != OK)
			exchange_fail(x, CAUSE_NO_MEMORY);
		return;
	}
	n = conn_output(w, &x->lease.up->c, head, &x->to_up, v);
	if (n >= 0) {
		sent(x, (size_t)n);
		wait_on(x, n > 0);
	} else if (errno == ENOMEM) {
		exchange_fail(x, CAUSE_NO_MEMORY);
	} else {
		x->write_failed = true;
		x->lease.up->c.t.flags |= CONN_READABLE;
		worker_ready(w, &x->lease.up->c);
	}
}

void request_rewind(struct exchange *x)
{
	struct budget *budget = &x->w->budget;
	struct str kept = buf_str(x->replay);

	if (x->replayable && x->body_sent) {
		buf_free(&x->to_up, budget);
		if (buf_append(&x->to_up, budget, kept.p, kept.n, UINT32_MAX) != OK) {
			x->to_up = x->replay;	/* once, then, and never again */
			x->replay = NULL;
			x->replayable = false;
		}
	}
	x->head_sent = 0;
	x->any_sent = false;
	x->write_failed = false;
}

/* False when the exchange does not go on. */
static bool body_piece(struct exchange *x, struct str piece)
{
	x->bytes_in += piece.n;
	COUNT_ADD(x->w, bytes_in, piece.n);
	if (x->bytes_in > x->body_limit) {
		exchange_fail(x, CAUSE_BODY_LIMIT);
		return false;
	}
	if (x->copy)
		mirroring_body(x, piece);
	if (codec_put_body(&x->upstream.codec, 0, piece, &x->w->vec) != OK) {
		exchange_fail(x, CAUSE_BAD_REQUEST);
		return false;
	}
	return true;
}

static void body_bad(struct exchange *x, enum codec_fault fault)
{
	x->fault = (uint8_t)fault;
	COUNT(x->w, fault[fault]);
	exchange_fail(x, fault == FAULT_CUT ? CAUSE_BODY_CUT : CAUSE_BAD_REQUEST);
}

void request_feed(struct exchange *x, struct str *in, bool eof)
{
	struct vec *v = &x->w->vec;
	struct codec_event ev;

	while (x->request == DIR_OPEN && x->phase < PHASE_TUNNEL) {
		if (vec_room(v) < 4) {
			request_flush(x);
			if (x->phase >= PHASE_TUNNEL)
				return;
		}
		switch (codec_next(&x->server.codec, in, eof, &ev)) {
		case CODEC_BODY:
			if (!body_piece(x, ev.body)) {
				vec_reset(v);
				return;
			}
			continue;
		case CODEC_TRAILERS:
			continue;	/* dropped: nobody knows what the origin would do with them */
		case CODEC_END:
			x->request = DIR_DONE;
			if (!x->to_client)
				worker_wait_end(x->client);
			if (codec_put_end(&x->upstream.codec, 0, NULL, v) == OK)
				continue;
			vec_reset(v);
			exchange_fail(x, CAUSE_BAD_REQUEST);
			return;
		case CODEC_BAD:
			vec_reset(v);
			body_bad(x, ev.fault);
			return;
		case CODEC_HEAD:	/* a server codec is given one head */
			CHECK(false);
		case CODEC_MORE:
			break;
		}
		break;
	}
	if (x->phase < PHASE_TUNNEL)
		request_flush(x);
}

void request_read(struct exchange *x)
{
	struct worker *w = x->w;
	struct conn *c = x->client;
	size_t left = WORKER_VISIT;
	struct str in;
	ssize_t n;

	while (x->request == DIR_OPEN && sending(x) && !request_pending(x)) {
		if (!ttl_linked(&c->link))
			worker_wait(w, c, w->list.body);
		if (!(c->t.flags & CONN_READABLE))
			return;
		if (left == 0) {
			worker_ready(w, c);
			return;
		}
		n = conn_input(w, c, &x->in, left < WORKER_READ_FIRST ? left : WORKER_READ_FIRST,
			       REQUEST_WAIT_MAX, &in);
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0) {
			exchange_cut(x, conn_cause(c, errno));
			return;
		}
		left -= (size_t)n;
		if (n > 0)
			worker_wait(w, c, w->list.body);
		request_feed(x, &in, n == 0);
		/* what is left may be the next request: kept whatever became of this one */
		if (conn_keep(w, &x->in, in) != OK) {
			x->client_closing = true;
			if (x->phase < PHASE_FLUSHING)
				exchange_fail(x, CAUSE_NO_MEMORY);
		}
		if (x->phase == PHASE_DONE || x->phase == PHASE_LOCAL)
			return;
	}
	/* what stops the body now is the upstream, and that has its own time-out */
	if (x->request == DIR_OPEN && request_pending(x) && !x->to_client)
		worker_wait_end(c);
}
