/* A connection, to a client or to an upstream: what is left of it when it idles.
 *
 * One cache line or less.  No buffer, no parser, no timer, no libevent event:
 * those exist only while there is work, and hang on `work`. */
#ifndef THIMBLE_PROXY_CONN_H
#define THIMBLE_PROXY_CONN_H

#include <stdbool.h>
#include <stdint.h>
#include "lib/base/buf.h"
#include "lib/base/slotq.h"
#include "lib/base/ttl.h"
#include "lib/net/tls_io.h"
#include "lib/net/transport.h"

struct exchange;
struct lease;
struct pool;
struct stream;
struct upstream;
struct vec;
struct worker;

/* transport.state of a connection.  Each names what `work` is. */
enum conn_state {
	CONN_ACCEPTOR,		/* no connection: a struct acceptor */
	/* to a client */
	CONN_IDLE,		/* between requests, nothing read: no work */
	CONN_HEAD,		/* a part of a head is here: work.head; NULL: of a record with one, perhaps */
	CONN_BUSY,		/* an exchange runs: work.exchange */
	CONN_STREAM,		/* its bytes are passed on: work.stream */
	CONN_LINGER,		/* answered and finished; what still comes is thrown away: no work */
	CONN_SHAKING,		/* TLS is being agreed on (handshake.c): no work */
	/* to an upstream */
	CONN_CONNECTING,	/* not connected yet: work.next_connecting */
	CONN_LEASED,		/* somebody uses it: work.lease */
	CONN_POOLED,		/* kept for the next exchange: no work */
	CONN_DEAD,		/* unlinked; buried at the end of the turn: work.next_dead */
};

/* transport.flags of a connection. */
#define CONN_READABLE 1u	/* cleared only by EAGAIN or a short read with no FIN seen */
#define CONN_PEER_DONE 2u	/* FIN seen by epoll; read until 0 */
#define CONN_BROKEN 4u		/* reset or error */
#define CONN_IN_READY 8u	/* is on the worker's ready list */
#define CONN_UPSTREAM 16u	/* is a struct upstream */
#define CONN_V6 32u		/* peer.v6 is owned */
#define CONN_SERVED 64u		/* carried an exchange before */
#define CONN_RESET 128u		/* close by reset */

/* transport.more; in that of a client are OPENING_* (settings.h) too */
#define CONN_LARGE 1u		/* upstream: its receive buffer may grow, for the client keeps up */
#define CONN_KEEPS_UP 2u	/* client: it took a large answer without stalling, and nothing since tells otherwise */
#define CONN_OWN 4u		/* upstream: it is for one client, and no other lease gets it */

struct conn {
	struct transport t;
	struct ttl_link link;	/* its place in a time-out list */
	uint32_t stamp;		/* when it was linked, ms */
	uint16_t listener;	/* client: index of the listener it came in by */
	uint16_t port;		/* client: port of the peer */
	union {
		uint32_t v4;		/* client: address, network order; 0 with a unix socket */
		struct peer_v6 *v6;	/* client, CONN_V6: owned */
		struct pool *pool;	/* upstream: borrowed */
	} peer;
	union {
		struct buf *head;		/* owned */
		struct exchange *exchange;	/* borrowed */
		struct stream *stream;		/* borrowed */
		struct lease *lease;		/* borrowed */
		struct upstream *next_connecting;	/* borrowed */
		struct conn *next_dead;		/* borrowed */
	} work;
};

_Static_assert(sizeof(struct conn) == 48, "an idle connection is 48 bytes");

struct peer_v6 {
	uint8_t ip[16];
};

struct upstream {
	struct conn c;		/* first: an upstream is a conn */
	union {
		/* CONN_POOLED: its neighbours in the pool, most recently used first */
		struct { struct upstream *next, *prev; } pooled;
		/* CONN_CONNECTING: its dispatch queue, of struct lease *.  They stay
		 * revocable: when another connection becomes free, they move. */
		struct slotq queue;
	} u;
};

_Static_assert(sizeof(struct upstream) == 64, "an idle upstream connection is 64 bytes");

/* What lies behind a connection whose transport is not TRANSPORT_PLAIN. */
struct secure_conn {
	struct conn c;
	union tls_state tls;	/* of TRANSPORT_TLS and TRANSPORT_TLS13 */
};

struct secure_upstream {
	struct upstream u;
	union tls_state tls;
};

static inline union tls_state *conn_tls(struct conn *c)
{
	return c->t.flags & CONN_UPSTREAM ? &((struct secure_upstream *)c)->tls : &((struct secure_conn *)c)->tls;
}

/* Its bytes pass TLS. */
static inline bool conn_secure(const struct conn *c)
{
	return c->t.type >= TRANSPORT_TLS;
}

/* Keeps the events of a batch; see lib/net/loop.h for the bits. */
void conn_note(struct conn *c, unsigned events);
/* Whether bytes have come, of which no event may have told yet; it is CONN_READABLE then. */
bool conn_says(struct conn *c);

/* Reads some `n` bytes, or a record of TLS: *in, lent until the next read, in the worker's scratch buffer.
 * As transport_read, and keeps CONN_READABLE true. */
ssize_t conn_read(struct worker *w, struct conn *c, size_t n, struct str *in);
/* As transport_writev. */
ssize_t conn_write(struct worker *w, struct conn *c, const struct iovec *iov, int n);
/* What a read that failed with `error` is called. */
enum cause conn_cause(const struct conn *c, int error);
/* The end of TLS on it, with the last word that TLS has: what still comes is no record to anybody. */
void conn_unseal(struct worker *w, struct conn *c);
/* The same without a word. */
void conn_tls_free(struct worker *w, struct conn *c);
/* Ends our side: the other may still send. */
void conn_finish(struct worker *w, struct conn *c);

/* Reads more behind what is kept; *in is then all of it, lent until the next read: in the
 * worker's scratch buffer when nothing was kept, else in *kept, which grows to at most `limit`
 * bytes.  0 and -1 as transport_read; *in is then what is kept. */
ssize_t conn_input(struct worker *w, struct conn *c, struct buf **kept, size_t n, size_t limit, struct str *in);
/* Keeps `rest`, the unconsumed end of what conn_input gave.  ERR_MEM. */
MUST_USE enum err conn_keep(struct worker *w, struct buf **kept, struct str rest);

/* Writes `first`, then what is kept in *waiting, then `v`, in one call.  The bytes that were
 * taken, or -1 (errno) when the connection is gone or there is no memory.  What was not taken is kept in
 * *waiting, even when the connection is gone: another one may get it.  But for the rest of `first`,
 * which is the caller's to keep.  `v` is reset. */
ssize_t conn_output(struct worker *w, struct conn *c, struct str first, struct buf **waiting, struct vec *v);

/* Keeps all of `v` behind what waits already, for a connection that is not there yet.  `v` is reset.  ERR_MEM. */
MUST_USE enum err conn_hold(struct worker *w, struct buf **waiting, struct vec *v);

/* Closes: unlinks it from time-outs and buries it at the end of the turn.  The owner of
 * `work` has let go before.  `reset`: the peer gets a RST. */
void conn_close(struct worker *w, struct conn *c, bool reset);

#endif
