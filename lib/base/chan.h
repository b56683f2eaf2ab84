/* chan: messages from many threads to one reader.
 *
 * A channel is 24 bytes, meant to be embedded by the thousand: idle it owns
 * nothing.  Channels with news are in one list of their reader, and the reader
 * is woken once when that list stops being empty, not once per channel.
 *
 * A message is a chan_node inside the sender's object.  From chan_send to
 * chan_next it belongs to the channel; then to the reader.  Messages of one
 * sender to one channel keep their order; between channels there is none. */
#ifndef THIMBLE_BASE_CHAN_H
#define THIMBLE_BASE_CHAN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/base/err.h"

struct chan_node {
	struct chan_node *next;	/* the next newer message of a batch; NULL ends it */
	size_t bytes;		/* what it counts for */
};

struct chan {
	_Atomic(struct chan_node *) head;	/* owned: newest message not yet taken */
	_Atomic(struct chan *) dirty;		/* the next channel with news */
	_Atomic uint32_t queued;		/* 1 while it is in the reader's list */
	uint32_t owner;				/* for the reader: which service this is, say */
};

_Static_assert(sizeof(struct chan) == 24, "an idle channel is 24 bytes");

struct chan_reader {
	_Atomic(struct chan *) dirty;	/* channels with news, last first; each at most once */
	_Atomic size_t bytes;		/* of all messages sent and not yet taken */
	size_t limit;			/* bytes */
	struct chan *taken;		/* the reader's own: channels to visit, in order */
	void (*wake)(void *arg);	/* called by a sender, on its thread */
	void *arg;			/* borrowed */
};

/* `wake` makes the reader call chan_next soon (it writes an eventfd, say); it may
 * be called by several threads at once.  Not more than `limit` bytes wait. */
void chan_reader_init(struct chan_reader *r, size_t limit, void (*wake)(void *arg), void *arg);
/* CHECKs that nothing waits. */
void chan_reader_fini(struct chan_reader *r);

/* All zero but for `owner` is a channel without messages. */
static inline void chan_init(struct chan *c, uint32_t owner)
{
	*c = (struct chan){.owner = owner};
}

/* Any thread: moves `m`, which counts for `bytes`, to the channel.  ERR_LIMIT when
 * more than the limit would wait, except that one message of any size passes when
 * nothing waits; `m` is then still the caller's. */
MUST_USE enum err chan_send(struct chan_reader *r, struct chan *c, struct chan_node *m, size_t bytes);

/* The reader: all messages of one channel that has news, oldest first, and which
 * channel; NULL when there is no news.  They are the caller's and count no more. */
struct chan_node *chan_next(struct chan_reader *r, struct chan **c);

/* The reader: chan_next may have something. */
static inline bool chan_waits(struct chan_reader *r)
{
	return r->taken || atomic_load_explicit(&r->dirty, memory_order_relaxed);
}

/* The reader, when nobody sends to `c` any more and it is to be freed: takes it out
 * of the list, returns what waited in it as chan_next does.  Linear in the channels with news. */
struct chan_node *chan_close(struct chan_reader *r, struct chan *c);

#endif
