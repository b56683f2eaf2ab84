/* What the two halves of the log share: log.c, where lines begin, and logwriter.c, where they
 * end.  For these two files alone.
 *
 * Every thread that logs has a node with up to two rings (errors, access).  Nodes
 * are made at a thread's first line, never freed, and taken over by the next new
 * thread once theirs has ended, so that walking them needs no lock:
 *
 *   LIVE -> ENDED (its thread) -> LIVE (a new thread)
 *                              -> FREEING -> FREE (the writer, rings empty: pages go back) -> LIVE
 *
 * Sleep: `state` is AWAKE, NAP (it wrote a moment ago and comes back by itself) or ASLEEP.
 * A producer publishes its tail, then reads `state`; the writer sets ASLEEP, then
 * looks at the tails: one of the two sees the other.  So traffic costs one
 * wake-up a nap at most, and an idle process none. */
#ifndef THIMBLE_PROXY_LOGWORK_H
#define THIMBLE_PROXY_LOGWORK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>
#include "lib/base/logring.h"
#include "proxy/access.h"
#include "proxy/log.h"

enum log_class { CLASS_ERROR, CLASS_ACCESS, CLASSES };
enum node_state { NODE_FREE, NODE_LIVE, NODE_ENDED, NODE_FREEING };
enum writer_state { AWAKE, NAP, ASLEEP };

struct node {
	struct node *next;		/* shared; set before the node is seen */
	_Atomic int state;		/* enum node_state */
	_Atomic bool mapped[CLASSES];	/* the ring has pages; set by its thread, cleared with the pages */
	struct logring ring[CLASSES];	/* written by the node's thread, read by the writer thread */
	bool news;			/* the thread's: access records since its last turn end */
	struct access_date date;	/* the thread's, for its error lines */
};

struct logwork {
	_Atomic(struct node *) nodes;
	_Atomic bool running;		/* lines go to rings */
	_Atomic bool access_on;
	_Atomic int format;		/* enum log_format */
	_Atomic size_t ring_size[CLASSES];
	pthread_key_t key;		/* its destructor ends a thread's node; made by the first log_start */

	_Atomic int state;		/* enum writer_state */
	_Atomic bool stalled[CLASSES];	/* its sink takes nothing now: no use to wake the writer */
	_Atomic int event;		/* eventfd that the writer sleeps on; -1 */
	_Atomic bool reopen;

	_Atomic uint64_t lost[CLASSES];	/* dropped, beyond what the rings count */
	_Atomic uint64_t written, write_errors, ring_bytes;
};

extern struct logwork logwork;

int64_t log_clock(clockid_t id);	/* ms */
/* Makes the writer's poll return. */
void log_kick(void);
bool log_pending(struct node *n, enum log_class c);
uint64_t log_dropped(enum log_class c);
/* Gives the rings of `n` back.  Its thread has ended or is the caller, and the writer is done with it or the caller. */
void log_unmap(struct node *n);
struct node *log_node_self(void);	/* NULL when this thread has none */
void log_node_end(void *node);		/* the destructor of `key` */
/* A line into the caller's own ring; false when it was dropped. */
bool log_line_to_ring(enum log_level level, const char *text);
/* Waits for a full pipe, but not for ever. */
void log_line_to_stderr(enum log_level level, const char *text);

#endif
