/* The process: what its workers share, and its start and end. */
#ifndef THIMBLE_PROXY_SERVER_H
#define THIMBLE_PROXY_SERVER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "lib/base/budget.h"
#include "lib/base/err.h"

struct conf;
struct grace;
struct hasher;
struct heap;
struct health;
struct loop;
struct lot;
struct rate_table;
struct tls;
struct worker;

struct server {
	struct budget_root budget;
	_Atomic uint64_t fds;		/* descriptors of clients and upstreams, all workers */
	_Atomic uint64_t clients;	/* client connections, all workers */
	struct heap *heap;		/* owned: what gives its holes back to the system */
	struct rate_table *rates;	/* owned: buckets of all rate limits */
	_Atomic bool rates_used;	/* there may be some, so that they are to be looked after */
	struct tls *tls;		/* owned: the TLS of listeners and services; NULL: they have none */
	struct hasher *hasher;		/* owned; NULL: no route asks for passwords */
	struct lot *lot;		/* owned: who waits for a slot of an endpoint */
	struct worker **workers;	/* borrowed */
	unsigned n_workers;
	struct grace *grace;		/* owned: what waits until no worker looks at it */
	struct health *health;		/* owned: the main thread's, but for its reader; NULL in simulations */
	struct loop *loop;		/* owned: the main thread's; woken for what is asked of it here */
};

/* Exit codes of the process. */
enum server_exit {
	SERVER_OK = 0,
	SERVER_FAILED = 1,	/* it could not start; the error log says why */
	SERVER_REFUSED = 2,	/* the configuration cannot be used */
};

/* Serves `c` (moved) until SIGTERM or SIGINT: stops accepting then, finishes what runs for at most
 * timeouts.drain, and returns; a second signal ends the process at once.  SIGUSR1
 * opens the log files again.  `hint` (may be NULL) is said once it is ready. */
enum server_exit server_run(struct conf *c, const char *hint) MUST_USE;

/* By a worker that has taken from a bucket of `rates`: the main thread gives back their memory some time. */
void server_rates_used(struct server *s);

#endif
