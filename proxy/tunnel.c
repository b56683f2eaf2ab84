/* tunnel: see tunnel.h.
 *
 * Two directions, each: read while nothing waits to be written, write, keep what was not
 * taken.  A FIN is passed on when all before it was written; a reset ends both sides by
 * reset.  One time-out, renewed by any byte either way, kept on the client's connection.
 * A tunnel through which nothing goes has no buffer. */
#include "proxy/tunnel.h"

#include "proxy/answer.h"

#define TUNNEL_READ (16u * 1024)

static void touch(const struct tunnel_way *way)
{
	if (way->idle_ms)
		worker_wait(way->w, way->clock, ttl_list_for(&way->w->ttl, way->idle_ms));
}

/* Writes what waits and what is in the worker's vec; `late`: it waited before this visit. */
static enum tunnel_end put(const struct tunnel_way *way, bool late)
{
	ssize_t n = conn_output(way->w, way->to, (struct str){0}, way->waiting, &way->w->vec);

	if (n < 0)
		return errno == ENOMEM ? TUNNEL_NO_MEMORY : TUNNEL_TO_BROKEN;
	if (n > 0 && late)
		touch(way);
	return TUNNEL_ON;
}

enum tunnel_end tunnel_move(const struct tunnel_way *way)
{
	struct worker *w = way->w;
	struct conn *from = way->from;
	enum tunnel_end end = TUNNEL_ON;
	size_t visit = 0;
	struct str in;
	ssize_t n;

	if (*way->waiting)
		end = put(way, true);
	while (end == TUNNEL_ON && !*way->waiting && !*way->fin && (from->t.flags & CONN_READABLE)) {
		if (visit >= WORKER_VISIT) {
			worker_ready(w, from);
			break;
		}
		n = conn_read(w, from, TUNNEL_READ, &in);
		if (n < 0)
			return errno == EAGAIN ? TUNNEL_ON : TUNNEL_FROM_BROKEN;
		touch(way);
		if (n == 0) {
			*way->fin = true;
			from->t.flags &= (uint8_t)~CONN_READABLE;
			conn_finish(w, way->to);
			break;
		}
		visit += (size_t)n;
		*way->bytes += (uint64_t)n;
		if (vec_borrow(&w->vec, in) != OK)
			return TUNNEL_NO_MEMORY;
		end = put(way, false);
	}
	return end;
}

static struct tunnel_way way_of(struct exchange *x, bool up)
{
	return (struct tunnel_way){
		.w = x->w, .from = up ? x->client : &x->lease.up->c, .to = up ? &x->lease.up->c : x->client,
		.clock = x->client, .idle_ms = x->route->spec->tunnel_ms,
		.waiting = up ? &x->to_up : &x->to_client, .fin = up ? &x->client_fin : &x->up_fin,
		.bytes = up ? &x->bytes_in : &x->bytes_out,
	};
}

void tunnel_pump(struct exchange *x)
{
	struct tunnel_way there = way_of(x, true), back = way_of(x, false);

	if (tunnel_move(&there) != TUNNEL_ON || tunnel_move(&back) != TUNNEL_ON) {
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
	struct tunnel_way there = way_of(x, true);

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
	touch(&there);
	tunnel_pump(x);
}
