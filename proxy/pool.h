/* A worker's connections to one endpoint, made at first use and gone with the last
 * of them.  Kept connections are used most recently used first, so that the rest
 * can grow old and close. */
#ifndef THIMBLE_PROXY_POOL_H
#define THIMBLE_PROXY_POOL_H

#include "dispatch/endpoint.h"
#include "health/sign.h"
#include "lib/net/tls_client.h"
#include "proxy/conn.h"
#include "proxy/lease.h"

/* Connects under way to one endpoint, at most; further exchanges queue behind them. */
#define POOL_CONNECTING_MAX 64
/* What is left of a pool without connections, if they had TLS, is kept for so long: its sessions, some KB. */
#define POOL_REST_MS 600000u
#define POOL_REST_MAX 256u	/* of them, in a worker */

/* A kept connection is recently used when it has not been idle for longer, nor for half of what its endpoint allows. */
#define POOL_RECENT_MS 1000u

struct pool {
	struct worker *w;		/* borrowed */
	struct endpoint *endpoint;	/* owned reference */
	struct sign *sign;		/* owned reference: what is seen of the endpoint; NULL: nothing but good */
	struct tls_resume resume;	/* owned: the session that the next connection tries to resume */
	struct upstream *newest, *oldest;	/* CONN_POOLED */
	struct upstream *connecting;	/* CONN_CONNECTING, the longest first */
	struct slotq waiting;		/* of struct lease *, which have slots: for any connection, or a descriptor */
	unsigned conns, n_connecting;
	struct pool *next_dirty;	/* the worker's list */
	bool dirty;
	uint8_t text_len;		/* 0: it is longer than this */
	char text[22];			/* of the endpoint, for logs: making it costs as much as the rest of a line's numbers */
	bool resting;			/* nothing is left of it but sessions to resume */
	struct ttl_link link;		/* while the endpoint is avoided, and it was this worker that saw it fail; or it rests */
	uint32_t stamp;
	uint32_t closed_ms;		/* when the endpoint closed an idle connection; 0: not yet */
};

/* Gives `l`, whose endpoint, service and wishes are set, a connection: it has one (ops->leased was
 * called), or it waits (lease_waits), here or for its service, or neither, and the cause is returned.  The
 * limits of the service are kept. */
enum cause pool_get(struct lease *l) MUST_USE;

/* endpoint_text of `e`; borrowed until the end of the turn, or made in `text`. */
struct str pool_text(const struct worker *w, const struct endpoint *e, char text[ENDPOINT_TEXT_MAX]);

/* Takes one that waits out of its queue, and its slot from it. */
void pool_leave(struct lease *l);

/* Takes a leased connection back for another lease; its lease has no slot any more. */
void pool_put(struct upstream *u);
/* Closes a leased connection; its lease has no slot any more. */
void pool_discard(struct upstream *u);

/* What was asked of the endpoint of `u` by a request of `s` went wrong, and that is the endpoint's doing. */
void pool_note_bad(struct upstream *u, const struct service *s, enum cause cause);
/* It went well. */
void pool_tell_good(struct upstream *u, const struct service *s);
static inline void pool_note_good(struct upstream *u, const struct service *s)
{
	if (atomic_load_explicit(&u->c.peer.pool->endpoint->verdict, memory_order_relaxed) & VERDICT_WATCHED)
		pool_tell_good(u, s);
}

/* --- for slots.c --- */

/* Whether there is a kept connection to `e` that `l` could have, or have closed. */
bool pool_has(const struct lease *l, const struct endpoint *e);
/* When the connections of its service are limited: makes sure of one to l->endpoint, kept or to be opened (l->room). */
bool pool_reserve(struct lease *l) MUST_USE;
/* Gives that and its slot back. */
void pool_unreserve(struct lease *l);
/* Then: as pool_get, but for what is reserved.  When that gives a cause nothing is reserved, and it has no slot. */
enum cause pool_ask(struct lease *l) MUST_USE;
/* Closes the kept connection that was not used for longest. */
void pool_spare(struct pool *p);

/* --- for the worker --- */

/* `events` (lib/net/loop.h) on a connection that no lease has: its connect ended, or a kept one did. */
void pool_event(struct upstream *u, unsigned events);
/* Its time-out ran out. */
void pool_timeout(struct upstream *u);
/* Its time in the worker's pool_ttl is over. */
void pool_due(struct pool *p);
/* Once a turn: hands out the connections that became free to those who wait, oldest first, and
 * opens new ones where that is allowed; frees pools that are empty. */
void pool_hand_out(struct worker *w);
/* Once a turn: when exchanges wait for a descriptor, and there is one now, pool_hand_out sees them in the next. */
void pool_look_for_room(struct worker *w);

/* Closes all that no exchange has: kept connections, and connects that nobody waits for. */
void pool_close_all(struct worker *w);
/* Closes all kept connections of a worker. */
void pool_close_kept(struct worker *w);

/* Closes the kept connections to endpoints that no service has any more. */
void pool_close_unused(struct worker *w);

/* Frees what they are found in; none is left. */
void pools_free(struct worker *w);
/* Frees every pool; no connection is left, and the endpoints' avoid times are cut short. */
void pool_free_all(struct worker *w);

#endif
