/* A worker: one thread, one loop, and everything that it alone touches. */
#ifndef THIMBLE_PROXY_WORKER_H
#define THIMBLE_PROXY_WORKER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "dispatch/balance.h"
#include "dispatch/retry.h"
#include "lib/base/slab.h"
#include "lib/base/ttl.h"
#include "lib/http/encode.h"
#include "lib/http/h1.h"
#include "lib/net/loop.h"
#include "proxy/cause.h"
#include "proxy/conn.h"
#include "proxy/hasher.h"
#include "proxy/settings.h"
#include "proxy/identity.h"

/* Read at most this much of one connection in one go, and in one visit. */
#define WORKER_READ_FIRST (16u * 1024)	/* most answers are smaller */
#define WORKER_READ_SMALL (8u * 1024)	/* once a body goes on: what a stalled reader may leave us with */
#define WORKER_READ_LARGE (128u * 1024)	/* for a receiver that has shown that it takes it: a fifth less processor time than by half of it */
#define WORKER_VISIT (64u * 1024)

#define WORKER_ACCEPT_RETRY_MS 50	/* how often a paused listener is looked at */

#define COUNTERS(C) \
	C(accepted) C(accept_paused) C(requests) C(answers_1xx) C(answers_2xx) C(answers_3xx) C(answers_4xx) \
	C(answers_5xx) C(connects) C(connects_failed) C(reused) C(retries) C(bytes_in) C(bytes_out) \
	C(idle_closed) C(tunnels) C(streams) C(queued) C(handshakes) C(handshakes_queued) C(parked) C(tls_faults) C(tls_alerts) C(calls) \
	C(mirrored) C(mirror_dropped) C(mirror_failed) C(mirror_body_limit) \
	C(stale) C(tries_reset) C(tries_timeout) C(tries_bad) C(replay_dropped) \
	C(compressed) C(compress_refused) C(compress_in) C(compress_out)

struct counters {	/* written by the worker alone, read by anybody at leisure */
#define C(name) _Atomic uint64_t name;
	COUNTERS(C)
#undef C
	_Atomic uint64_t cause[CAUSE_N];
	_Atomic uint64_t fault[FAULT_N];	/* requests and answers refused, by reason */
	_Atomic uint64_t no_retry[RETRY_WHY_N];	/* why a request was not sent again */
};

#define COUNT_ADD(w, what, n) \
	atomic_store_explicit(&(w)->counters.what, \
		atomic_load_explicit(&(w)->counters.what, memory_order_relaxed) + (n), memory_order_relaxed)
#define COUNT(w, what) COUNT_ADD(w, what, 1)

struct server;

/* A listening socket in a worker's loop.  Its transport's state tells it from a conn. */
struct acceptor {
	struct transport t;	/* state is CONN_ACCEPTOR */
	uint16_t listener;	/* index into settings */
};

struct worker {
	struct server *server;			/* borrowed: what workers share */
	const struct settings *settings;	/* borrowed */
	struct snapshot *snapshot;		/* owned reference */
	struct loop *loop;			/* owned */
	unsigned index;
	pthread_t thread;

	uint64_t now_us;	/* monotonic, read once a turn */
	uint32_t now_ms;	/* the same in ms, modulo 2^32 */
	int64_t wall_ms;	/* unix time */
	bool now_stale;

	struct budget budget;
	struct pages pages;		/* between the slabs and the system */
	bool sparse;			/* few connections hold many chunks */
	uint32_t compacted;		/* ms: when that was looked at */
	uint32_t trimmed;		/* ms: when pages were trimmed */
	struct tls_io tls;		/* made at first use */
	struct {			/* SSL objects of connections */
		size_t live;
		size_t high;		/* at most since memory was last given back */
		size_t most;		/* at most since most of those were gone: */
		uint32_t since;		/* ms */
	} ssl;
	struct identities identities;
	struct slotq shake_queue;	/* of struct conn *: clients that wait to shake hands */
	struct slotq shakers;		/* of struct shaker: clients that do, the longest first */
	struct slab secure_conns, secure_upstreams;
	struct slab conns, upstreams, exchanges, peers_v6, pools_slab, streams_slab;
	struct ttl ttl;			/* of connections */
	struct ttl pauses;		/* of exchanges, before they are sent again */
	struct ttl pool_ttl;		/* of pools whose endpoint is avoided for a while */
	struct {			/* requests of our own */
		struct slab slab;
		struct ttl ttl;
		struct call *all;
		struct call *due, *last_due;	/* to be begun, or told of, once in this turn */
	} calls;
	struct {			/* lists of ttl, by what they are for */
		uint8_t idle, head, body, write, linger, connect, queue, upstream_idle, handshake;
		uint8_t avoid, rest;	/* of pool_ttl */
	} list;

	char *scratch;			/* owned: what was just read; good until the next read */
	size_t scratch_size;
	struct vec vec;			/* what is about to be written */
	char *vec_scratch;		/* owned */
	struct encode_room encoders;	/* what all of them hold */
	char *coded;			/* owned: what one of them made; NULL before the first */
	struct h1_shared *h1_server, *h1_upstream;	/* owned */

	struct acceptor *acceptors;	/* owned, one a listener */
	struct conn **ready;		/* owned: to be visited without an event */
	unsigned n_ready, max_ready;
	struct conn *dead;		/* to be buried at the end of the turn */
	struct exchange *running;	/* all that were begun */
	struct exchange *done;		/* to be finished at the end of the turn */
	struct stream *streams, *streams_done;	/* the same of streams */
	struct pool *dirty;		/* pools to hand out connections of, or to free */
	struct pool **pools;		/* owned: by the endpoint's index, made at first use */
	uint32_t n_pools, resting_pools;
	struct pending *pending, *last_pending;	/* owned: those that wait for a service (slots.c) */
	struct pending **waited;	/* owned: the same by the service's index, made at first use */
	uint32_t n_waited;
	bool look;			/* and may not have to any more */
	struct balance balance;		/* who gets the next request */

	uint32_t *asked;		/* owned: requests, by the service's index, modulo 2^32 */
	struct retry_share *shares;	/* owned: likewise, made when a retry is asked for */
	uint32_t n_asked, n_shares;
	uint32_t started_ms;
	uint32_t dice;			/* for what is left to chance; never 0 */

	size_t peak;			/* connections open at most since memory was last given back */
	bool short_of_fds;		/* exchanges wait since no descriptor was left */
	bool accept_paused;
	bool accept_refused;		/* by the kernel, at: */
	uint32_t accept_refused_ms;
	bool draining;			/* no new connections, answers close theirs; ends when none is left */
	bool cutting;			/* and those that are left are ended */
	_Atomic unsigned letters;	/* WORKER_DRAIN and so on: from other threads */
	struct hasher_port hasher;	/* what comes with WORKER_VERDICT */

	uint64_t id_seed[2], id_count;	/* for request ids */
	char id_prefix[16];		/* id_seed[0] in hex, made at first use */
	int64_t date_second;
	char date[40];			/* of this second, RFC 9110 5.6.7 */
	struct counters counters;
};

#define WORKER_DRAIN 1u	/* stop accepting, finish what runs, then end */
#define WORKER_CUT 2u	/* end now, what runs is cut */
#define WORKER_PASS 8u	/* say that a turn has begun: grace.h */
#define WORKER_VERDICT 4u	/* passwords were looked at */
#define WORKER_SLOT 16u		/* a slot is free that requests here wait for: slots.c */
#define WORKER_SPARE 32u	/* a connection that is kept here is wanted elsewhere */

/* NULL: no memory or no descriptor; errno says which. */
struct worker *worker_new(struct server *server, const struct settings *settings, struct snapshot *snapshot, unsigned index) MUST_USE;
/* Listens on `fd` (moved) for listener `listener`.  ERR_SYS. */
MUST_USE enum err worker_listen(struct worker *w, unsigned listener, int fd);
/* Runs until it was told to end.  In the worker's own thread. */
void worker_run(struct worker *w);
/* One turn of that: for simulations. */
void worker_turn(struct worker *w);
/* CHECKs that nothing is left over.  Behind hasher_free, whose threads tell workers. */
void worker_free(struct worker *w);

/* From any thread, and from signal handlers. */
void worker_tell(struct worker *w, unsigned letter);

/* Visits `c` later in this turn, or in the next. */
void worker_ready(struct worker *w, struct conn *c);

/* Takes it off that list. */
void worker_not_ready(struct worker *w, struct conn *c);

/* Starts the time-out `list` of `c` anew, or ends it. */
static inline void worker_wait(struct worker *w, struct conn *c, uint8_t list)
{
	ttl_link(&w->ttl, list, &c->link, w->now_ms);
}

static inline void worker_wait_end(struct conn *c)
{
	ttl_unlink(&c->link);
}

/* A new connection for a connected or connecting `fd` (moved), watched by the loop; `secure`: one that TLS can be
 * spoken on, TRANSPORT_HELLO.  NULL when there is no memory; `fd` is closed then. */
struct conn *worker_conn(struct worker *w, int fd, bool upstream, bool secure) MUST_USE;
/* How many connections are open: clients and upstreams. */
size_t worker_open(const struct worker *w);

/* Whether another descriptor may be opened: for an accept, or for an upstream, which has a reserve. */
bool worker_may_open(struct worker *w, bool upstream);

/* Counts an answer by its class. */
void worker_count_status(struct worker *w, unsigned status);

/* The value of Date now. */
struct str worker_date(struct worker *w);

#endif
