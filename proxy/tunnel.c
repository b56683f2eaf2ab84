/* tunnel: see tunnel.h.
 *
 * Two directions, each: read while nothing waits to be written, write, keep what was not
 * taken.  A FIN is passed on when all before it was written; a reset ends both sides by
 * reset.  One time-out, renewed by any byte either way, kept on the client's connection. */
#include "proxy/tunnel.h"

#include "proxy/answer.h"

#define TUNNEL_READ (16u * 1024)

static void touch(struct exchange *x)
{
	uint32_t ms = x->route->spec.tunnel_ms;

	if (ms)
		worker_wait(x->w, x->client, ttl_list_for(&x->w->ttl, ms));
}

/* One direction.  False when the tunnel has ended. */
static bool pump(struct exchange *x, struct conn *from, struct conn *to, struct buf **waiting, bool *fin, uint64_t *bytes)
{
	struct worker *w = x->w;
	size_t visit = 0;
	ssize_t n;

	for (;;) {
		if (*waiting) {
			n = conn_output(w, to, (struct str){0}, waiting, &w->vec);
			if (n < 0)
				return false;
			if (n > 0)
				touch(x);
			if (*waiting)
				return true;
		}
		if (*fin || !(from->t.flags & CONN_READABLE))
			return true;
		if (visit >= WORKER_VISIT) {
			worker_ready(w, from);
			return true;
		}
		n = conn_read(from, w->scratch, TUNNEL_READ);
		if (n < 0)
			return errno == EAGAIN;
		touch(x);
		if (n == 0) {
			*fin = true;
			from->t.flags &= (uint8_t)~CONN_READABLE;
			transport_finish(&to->t);
			return true;
		}
		visit += (size_t)n;
		*bytes += (uint64_t)n;
		if (vec_borrow(&w->vec, (struct str){ w->scratch, (size_t)n }) != OK ||
		    conn_output(w, to, (struct str){0}, waiting, &w->vec) < 0)
			return false;
	}
}

void tunnel_pump(struct exchange *x)
{
	struct conn *client = x->client, *up = &x->lease.up->c;

	if (!pump(x, client, up, &x->to_up, &x->client_fin, &x->bytes_in) ||
	    !pump(x, up, client, &x->to_client, &x->up_fin, &x->bytes_out)) {
		exchange_cut(x, CAUSE_NONE);
		return;
	}
	if (x->client_fin && x->up_fin && !x->to_up && !x->to_client) {
		x->client_closing = true;
		exchange_move(x, MOVE_FLUSHED);
	}
}

void tunnel_begin(struct exchange *x, struct str *from_up)
{
	struct worker *w = x->w;

	COUNT(w, tunnels);
	x->client_closing = true;
	worker_wait_end(&x->lease.up->c);
	x->bytes_out += from_up->n;
	if (from_up->n && vec_borrow(&w->vec, *from_up) != OK) {
		exchange_cut(x, CAUSE_NO_MEMORY);
		return;
	}
	from_up->n = 0;
	if (!answer_flush(x))
		return;
	/* what the client sent behind its request goes first */
	x->bytes_in += buf_len(x->in);
	x->to_up = x->in;
	x->in = NULL;
	touch(x);
	tunnel_pump(x);
}
