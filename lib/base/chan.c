/* Door: messages between threads, without a lock.  Owns messages between send
 * and take, and nothing else; allocates nothing, and calls only the reader's
 * wake-up.  Senders are any threads, the reader is one.
 *
 * Why `queued`: "the message list was empty" does not say whether the channel is
 * in the reader's list, for the reader takes a channel out of the list before it
 * takes its messages; a sender between the two would link it a second time.  So
 * the channel has a flag of its own.  A sender pushes its message, then sets the
 * flag, and links the channel only if the flag was clear.  The reader reads the
 * channel's link, clears the flag, then takes the messages: a sender that found
 * the flag set did so before it was cleared, hence its message is seen (both are
 * read-modify-write operations on one word, with acquire and release).  The price
 * is a channel that is visited once in vain. */
#include "lib/base/chan.h"

#include "lib/base/check.h"

#define get(p) atomic_load_explicit(p, memory_order_relaxed)
#define set(p, v) atomic_store_explicit(p, v, memory_order_relaxed)
#define swap(p, v) atomic_exchange_explicit(p, v, memory_order_acq_rel)
#define replace(p, old, v) \
	atomic_compare_exchange_weak_explicit(p, old, v, memory_order_acq_rel, memory_order_relaxed)

/* `limit` in bytes. */
void chan_reader_init(struct chan_reader *r, size_t limit, void (*wake)(void *arg), void *arg)
{
	*r = (struct chan_reader){.limit = limit, .wake = wake, .arg = arg};
}

/* Senders have stopped; channels that were visited in vain may still be listed. */
void chan_reader_fini(struct chan_reader *r)
{
	struct chan *c;
	CHECK(chan_next(r, &c) == NULL);
	CHECK(get(&r->bytes) == 0);
}

static enum err reserve(struct chan_reader *r, size_t bytes)
{
	size_t waiting = get(&r->bytes), sum;
	do {
		if (__builtin_add_overflow(waiting, bytes, &sum))
			return ERR_LIMIT;
		if (waiting > 0 && sum > r->limit)
			return ERR_LIMIT;
	} while (!replace(&r->bytes, &waiting, sum));
	return OK;
}

/* May call wake before it returns; the message may be gone by then. */
enum err chan_send(struct chan_reader *r, struct chan *c, struct chan_node *m, size_t bytes)
{
	enum err e = reserve(r, bytes);
	if (e != OK)
		return e;
	m->bytes = bytes;
	struct chan_node *newer = get(&c->head);
	do
		m->next = newer;
	while (!replace(&c->head, &newer, m));

	if (swap(&c->queued, 1) == 1)
		return OK;
	struct chan *first = get(&r->dirty);
	do
		set(&c->dirty, first);
	while (!replace(&r->dirty, &first, c));
	if (!first)
		r->wake(r->arg);
	return OK;
}

/* Everything that waits in `c`, oldest first. */
static struct chan_node *take(struct chan_reader *r, struct chan *c)
{
	struct chan_node *m = swap(&c->head, NULL), *oldest = NULL;
	size_t bytes = 0;
	while (m) {
		struct chan_node *older = m->next;
		bytes += m->bytes;
		m->next = oldest;
		oldest = m;
		m = older;
	}
	if (bytes)
		atomic_fetch_sub_explicit(&r->bytes, bytes, memory_order_relaxed);
	return oldest;
}

/* Moves the shared list behind the reader's own, first come first. */
static void collect(struct chan_reader *r)
{
	struct chan *c = swap(&r->dirty, NULL), *oldest = NULL;
	while (c) {
		struct chan *older = get(&c->dirty);
		set(&c->dirty, oldest);
		oldest = c;
		c = older;
	}
	if (!r->taken) {
		r->taken = oldest;
		return;
	}
	struct chan *last = r->taken;
	while (get(&last->dirty))
		last = get(&last->dirty);
	set(&last->dirty, oldest);
}

/* Call until NULL, or be woken for nothing that came before. */
struct chan_node *chan_next(struct chan_reader *r, struct chan **from)
{
	for (;;) {
		if (!r->taken)
			collect(r);
		struct chan *c = r->taken;
		if (!c)
			return NULL;
		r->taken = get(&c->dirty);
		swap(&c->queued, 0);
		struct chan_node *m = take(r, c);
		if (m) {
			*from = c;
			return m;
		}
	}
}

/* The last that is done with a channel. */
struct chan_node *chan_close(struct chan_reader *r, struct chan *c)
{
	if (get(&c->queued)) {
		collect(r);
		struct chan *prev = NULL, *at = r->taken;
		while (at && at != c) {
			prev = at;
			at = get(&at->dirty);
		}
		CHECK(at);
		if (prev)
			set(&prev->dirty, get(&c->dirty));
		else
			r->taken = get(&c->dirty);
		set(&c->queued, 0);
	}
	return take(r, c);
}
