/* The threads that look at passwords, for that takes up to a second, and a worker has no time. */
#ifndef THIMBLE_PROXY_HASHER_H
#define THIMBLE_PROXY_HASHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "dispatch/htpasswd.h"
#include "lib/base/budget.h"
#include "lib/base/chan.h"
#include "lib/base/err.h"
#include "lib/base/str.h"
#include "lib/crypto/digest.h"

#define HASHER_THREADS_MAX 2
#define HASHER_QUEUE (64u * 1024)	/* bytes that wait or are looked at, of all workers */
#define HASHER_WAIT_MS 10000u		/* who waited so long is not looked at any more */

struct hasher;		/* one a process */
struct hasher_ask;	/* one question that waits */

/* Where a worker gets its answers. */
struct hasher_port {
	struct chan_reader reader;
	struct chan chan;
	struct chan_node *taken;	/* the worker's, as all from here: that came, oldest first */
	struct digest_mac *maker;	/* owned; NULL before the first question */
};

enum hasher_verdict {
	HASHER_RIGHT,
	HASHER_WRONG,	/* or there is no such user */
	HASHER_BUSY,	/* too many questions wait, or this one waited too long */
	HASHER_FAILED,	/* no memory, no thread, or a library could not do it */
	HASHER_WAIT,	/* of hasher_ask: the verdict comes through the port */
};

/* `threads`: 0 for none, where hasher_step does their work, else 1 to HASHER_THREADS_MAX, which start with the first
 * question.  NULL: no memory. */
struct hasher *hasher_new(unsigned threads, struct budget_root *budget) MUST_USE;
/* How many threads a machine with so many processors has for it. */
unsigned hasher_threads(unsigned processors);
/* Ends the threads, and waits for what they do.  Nobody asks any more, and every worker has ended; NULL is accepted. */
void hasher_free(struct hasher *h);

/* `wake` makes the worker call hasher_take soon; called by any thread. */
void hasher_port_init(struct hasher_port *p, void (*wake)(void *arg), void *arg);
/* Drops what nobody took; behind hasher_free, whose threads send to it. */
void hasher_port_fini(struct hasher_port *p);

/* A worker: is this the password of that user?  HASHER_WAIT, and then *ask is lent until hasher_take gives it back or
 * hasher_forget does away with it; `owner` comes back with it.  `from` tells clients apart, so that one that asks a lot waits behind
 * others and, when the queue is full, makes room for them.  `now_ms` is monotonic.  Keeps a copy of the password
 * until it was looked at, and no longer. */
enum hasher_verdict hasher_ask(struct hasher *h, struct hasher_port *port, const struct htpasswd *users, struct str user,
			       struct str password, uint64_t from, uint64_t now_ms, void *owner, struct hasher_ask **ask);

/* A worker: nobody waits for it any more.  What is being looked at is looked at to its end. */
void hasher_forget(struct hasher *h, struct hasher_ask *ask);

/* A worker: the next verdict, and whose; false when there is none. */
bool hasher_take(struct hasher_port *port, void **owner, enum hasher_verdict *verdict);

/* Looks at one password, in the thread that calls; false when none waits.  For tests. */
bool hasher_step(struct hasher *h, uint64_t now_ms);

#endif
