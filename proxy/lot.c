/* lot: see lot.h.
 *
 * A table of seats: one for each endpoint that somebody waits for, with the number of queues in each worker
 * that do.  It lies in a few stripes, a lock each, which only those take that wait, and that give back
 * what is waited for.
 *
 * No wake-up is lost.  SLOT_WAITED is set, and cleared, under the lock, in the very word that counts
 * slots: who gives one back sees the mark in the step that gives, or its slot is there for
 * whoever sets the mark, since both are steps on one word.  Of connections, which are another word, the giver
 * first counts down and then reads the mark, the waiter first sets it and then reads the count, all
 * sequentially consistent: one of them sees the other.  So after lot_join there is
 * either no room, and a giver will come, or the one that joined sees it and says lot_freed.
 *
 * lot_freed begins a round: the next worker is told.  It looks at all that it has waiting, and takes what it
 * can; if it leaves room it passes on (lot_pass, lot_leave), until each has looked once: what none
 * of them has a use for stays.  So one slot wakes one worker, mostly, and no herd.  Turns go round by
 * endpoint, and who did not wait takes no slot that others wait for: nobody starves. */
#include "proxy/lot.h"

#include <pthread.h>

#include "dispatch/slot.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"

#define STRIPES 16

struct seat {
	struct seat *next;		/* owned: chain of the stripe */
	struct endpoint *endpoint;	/* owned reference */
	uint32_t max_conns;		/* the lowest limit among those that wait; 0: none */
	unsigned turn;			/* who was told last */
	unsigned waiting;		/* workers that wait */
	unsigned round;			/* of them, those that are still to be told of what is free */
	uint32_t joined[];		/* by worker: queues of it */
};

struct lot {
	unsigned n;			/* workers */
	void (*tell)(void *ctx, unsigned worker);
	void *ctx;			/* borrowed */
	struct stripe {
		pthread_mutex_t lock;
		struct seat *seats;
	} stripe[STRIPES];
};

struct lot *lot_new(unsigned n, void (*tell)(void *ctx, unsigned worker), void *ctx)
{
	struct lot *lot = mem_zalloc(sizeof *lot);

	if (!lot)
		return NULL;
	lot->n = n;
	lot->tell = tell;
	lot->ctx = ctx;
	for (unsigned i = 0; i < STRIPES; i++)
		CHECK(pthread_mutex_init(&lot->stripe[i].lock, NULL) == 0);
	return lot;
}

void lot_free(struct lot *lot)
{
	if (!lot)
		return;
	for (unsigned i = 0; i < STRIPES; i++) {
		CHECK(!lot->stripe[i].seats);
		pthread_mutex_destroy(&lot->stripe[i].lock);
	}
	mem_free(lot);
}

/* --- under the lock --- */

static struct stripe *stripe_lock(struct lot *lot, const struct endpoint *e)
{
	struct stripe *s = &lot->stripe[e->index % STRIPES];

	pthread_mutex_lock(&s->lock);
	return s;
}

static struct seat **seat_find(struct stripe *s, const struct endpoint *e)
{
	struct seat **at = &s->seats;

	while (*at && (*at)->endpoint != e)
		at = &(*at)->next;
	return at;
}

static unsigned next_of(const struct lot *lot, const struct seat *s)
{
	unsigned i = s->turn;

	do
		i = i + 1 < lot->n ? i + 1 : 0;
	while (!s->joined[i]);
	return i;
}

/* Somebody waits.  True: it is `worker` itself. */
static bool tell_next(struct lot *lot, struct seat *s, unsigned worker)
{
	s->turn = next_of(lot, s);
	s->round--;
	if (s->turn == worker)
		return true;
	lot->tell(lot->ctx, s->turn);
	return false;
}

static struct seat *seat_new(struct lot *lot, struct stripe *stripe, struct endpoint *e)
{
	struct seat *s = mem_zalloc(sizeof *s + lot->n * sizeof *s->joined);

	if (!s)
		return NULL;
	s->endpoint = endpoint_ref(e);
	s->next = stripe->seats;
	stripe->seats = s;
	return s;
}

static struct seat *seat_drop(struct seat **at)
{
	struct seat *s = *at;

	atomic_fetch_and_explicit(&s->endpoint->inflight, ~SLOT_WAITED, memory_order_seq_cst);
	*at = s->next;
	return s;
}

/* --- what others call --- */

enum err lot_join(struct lot *lot, struct endpoint *e, unsigned worker, uint32_t max_conns)
{
	struct stripe *stripe = stripe_lock(lot, e);
	struct seat *s = *seat_find(stripe, e);

	if (!s)
		s = seat_new(lot, stripe, e);
	if (s) {
		if (s->joined[worker]++ == 0)
			s->waiting++;
		if (max_conns && (!s->max_conns || max_conns < s->max_conns))
			s->max_conns = max_conns;
		atomic_fetch_or_explicit(&e->inflight, SLOT_WAITED, memory_order_seq_cst);
	}
	pthread_mutex_unlock(&stripe->lock);
	return s ? OK : ERR_MEM;
}

void lot_leave(struct lot *lot, struct endpoint *e, unsigned worker)
{
	struct stripe *stripe = stripe_lock(lot, e);
	struct seat **at = seat_find(stripe, e), *s = *at, *gone = NULL;

	CHECK(s && s->joined[worker]);
	if (--s->joined[worker] == 0 && --s->waiting == 0)
		gone = seat_drop(at);
	else if (!s->joined[worker] && s->round)
		tell_next(lot, s, LOT_NOBODY);	/* it may be the one that was told */
	pthread_mutex_unlock(&stripe->lock);
	if (gone)
		endpoint_unref(gone->endpoint);
	mem_free(gone);
}

bool lot_freed(struct lot *lot, struct endpoint *e, unsigned worker)
{
	struct stripe *stripe = stripe_lock(lot, e);
	struct seat *s = *seat_find(stripe, e);
	bool self = false;

	if (s) {
		s->round = s->waiting;
		self = tell_next(lot, s, worker);
	}
	pthread_mutex_unlock(&stripe->lock);
	return self;
}

bool lot_pass(struct lot *lot, struct endpoint *e, unsigned worker)
{
	struct stripe *stripe = stripe_lock(lot, e);
	struct seat *s = *seat_find(stripe, e);
	bool self = s && s->round && tell_next(lot, s, worker);

	pthread_mutex_unlock(&stripe->lock);
	return self;
}

void lot_stir(struct lot *lot, struct endpoint *e)
{
	struct stripe *stripe = stripe_lock(lot, e);
	struct seat *s = *seat_find(stripe, e);

	for (unsigned i = 0; s && i < lot->n; i++)
		if (s->joined[i])
			lot->tell(lot->ctx, i);
	pthread_mutex_unlock(&stripe->lock);
}

bool lot_wants(struct lot *lot, struct endpoint *e, unsigned worker)
{
	struct stripe *stripe = stripe_lock(lot, e);
	struct seat *s = *seat_find(stripe, e);
	bool wants = s && s->max_conns && slot_conns(e) >= s->max_conns && next_of(lot, s) != worker;

	pthread_mutex_unlock(&stripe->lock);
	return wants;
}
