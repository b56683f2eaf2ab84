/* Door: rate, token buckets.  A table owns its buckets; it is one for the process,
 * used by all workers, and outlives them.  Called by the gate of a request whose
 * route has a limit; never waits for more than another look-up.
 *
 * Why a bucket can be one word: it fills by one request in `interval`, so "full at time
 * F" tells how many are in it now, and taking one moves F on by `interval` (from now, if F
 * has passed).  That is allowed as long as F stays within `window` of now.
 *
 * The table is cut into shards by hash, each with a lock and an open-addressed array of
 * its own, from 8 slots to SLOTS_MOST: what a request may have to look through is bounded,
 * and so is what a growing shard needs for a moment, for one grows at a time.
 * A slot whose bucket is full again says no more than no slot at all: it may go at any
 * time.  Removing shifts back what follows, so there are no graves. */
#include "dispatch/rate.h"

#include <pthread.h>
#include "lib/base/check.h"
#include "lib/base/hash.h"
#include "lib/base/mem.h"

#define NS_PER_US 1000u
#define SLOTS_FIRST 8u
#define SLOTS_MOST 512u		/* of a shard: 8 KiB, the time of which a newcomer may need */
#define PAGE 4096u

struct slot {
	uint64_t key;		/* 0: free */
	uint64_t full;		/* ns: when the bucket is full again */
};

struct shard {
	pthread_mutex_t lock;	/* over all below */
	struct slot *slot;	/* owned; NULL while cap is 0 */
	uint32_t cap, n;	/* slots (a power of two), those in use */
};

struct rate_table {
	_Atomic(struct shard *) shards;	/* owned, n_shards; NULL until the first request */
	uint32_t n_shards, cap_most;
	pthread_mutex_t growing;	/* taken while a shard is; one at a time has two arrays */
	_Atomic uint64_t evicted;
};

/* --- one bucket --- */

struct rate rate_of(uint32_t count, uint32_t period_s, uint32_t burst)
{
	uint64_t period = (uint64_t)period_s * 1000000000u;
	struct rate r = {.interval = (period + count - 1) / count, .burst = burst};

	CHECK(count && count <= RATE_COUNT_MAX && burst && burst <= RATE_COUNT_MAX);
	CHECK(period_s && period_s <= RATE_PERIOD_MAX_S);
	r.window = r.interval * burst;
	return r;
}

/* The next word of a bucket, and *a, what that means.  Another thread's clock may have been ahead: more than the
 * window is missing then. */
static uint64_t bucket_take(const struct rate *r, uint64_t full, uint64_t now, struct rate_answer *a)
{
	uint64_t missing = full > now ? full - now : 0, spare;

	a->allowed = missing + r->interval <= r->window;
	if (a->allowed)
		missing += r->interval;
	spare = missing < r->window ? r->window - missing : 0;
	a->left = (uint32_t)(spare / r->interval);
	a->more_ns = missing > r->window ? missing - r->window + r->interval : r->interval - spare % r->interval;
	return now + missing;
}

static uint64_t bucket_give(const struct rate *r, uint64_t full)
{
	return full > r->interval ? full - r->interval : 0;
}

struct rate_answer rate_take(const struct rate *r, _Atomic uint64_t *full, uint64_t now_us)
{
	uint64_t old = atomic_load_explicit(full, memory_order_relaxed), new;
	struct rate_answer a;

	do {
		new = bucket_take(r, old, now_us * NS_PER_US, &a);
		if (!a.allowed)
			break;
	} while (!atomic_compare_exchange_weak_explicit(full, &old, new, memory_order_relaxed, memory_order_relaxed));
	return a;
}

void rate_give(const struct rate *r, _Atomic uint64_t *full)
{
	uint64_t old = atomic_load_explicit(full, memory_order_relaxed);

	while (!atomic_compare_exchange_weak_explicit(full, &old, bucket_give(r, old), memory_order_relaxed,
						      memory_order_relaxed))
		;
}

/* --- the array of a shard --- */

static size_t slots_bytes(uint32_t cap)
{
	return cap * sizeof(struct slot);
}

static struct slot *slots_new(uint32_t cap)
{
	size_t n = slots_bytes(cap);

	return n >= PAGE ? mem_pages(n) : mem_zalloc(n);
}

static void slots_free(struct slot *slot, uint32_t cap)
{
	if (slots_bytes(cap) >= PAGE)
		mem_pages_free(slot, slots_bytes(cap));
	else
		mem_free(slot);
}

/* How many of `cap` slots may be in use. */
static uint32_t room(uint32_t cap)
{
	return cap - cap / 8;
}

/* The slot of `key`, or the free one where it would be. */
static struct slot *slot_of(const struct shard *s, uint64_t key)
{
	uint32_t mask = s->cap - 1, i = (uint32_t)key & mask;

	while (s->slot[i].key && s->slot[i].key != key)
		i = (i + 1) & mask;
	return &s->slot[i];
}

/* Frees slot `i`; those behind it that could not be where they belong move up. */
static void slot_remove(struct shard *s, uint32_t i)
{
	uint32_t mask = s->cap - 1, k = i;

	for (;;) {
		k = (k + 1) & mask;
		if (!s->slot[k].key)
			break;
		if (((k - (uint32_t)s->slot[k].key) & mask) < ((k - i) & mask))
			continue;	/* it belongs behind `i` */
		s->slot[i] = s->slot[k];
		i = k;
	}
	s->slot[i] = (struct slot){0};
	s->n--;
}

/* Removes the buckets that are full again.  The slot of the one that will be first, when none was. */
static uint32_t shard_sweep(struct shard *s, uint64_t now)
{
	uint64_t least = UINT64_MAX;
	uint32_t i, first = 0;

	for (i = 0; i < s->cap; i++) {
		while (s->slot[i].key && s->slot[i].full <= now)
			slot_remove(s, i);
		if (s->slot[i].key && s->slot[i].full < least) {
			least = s->slot[i].full;
			first = i;
		}
	}
	return first;
}

/* Moves it to an array of `cap` slots, 0: none.  ERR_MEM: nothing changed. */
static enum err shard_resize(struct rate_table *t, struct shard *s, uint32_t cap)
{
	struct shard old = {.slot = s->slot, .cap = s->cap};
	struct slot *slot = NULL;
	uint32_t i;

	pthread_mutex_lock(&t->growing);
	if (cap)
		slot = slots_new(cap);
	if (slot || !cap) {
		s->slot = slot;
		s->cap = cap;
		for (i = 0; cap && i < old.cap; i++)
			if (old.slot[i].key)
				*slot_of(s, old.slot[i].key) = old.slot[i];
		slots_free(old.slot, old.cap);
	}
	pthread_mutex_unlock(&t->growing);
	return slot || !cap ? OK : ERR_MEM;
}

/* Makes one slot more usable. */
static enum err shard_make_room(struct rate_table *t, struct shard *s, uint64_t now)
{
	uint32_t first;

	if (s->n < room(s->cap))
		return OK;
	if (s->cap == 0)
		return shard_resize(t, s, SLOTS_FIRST);
	first = shard_sweep(s, now);
	if (s->n <= s->cap / 2)
		return OK;	/* so many went that growing would be for nothing */
	if (s->cap < t->cap_most && shard_resize(t, s, 2 * s->cap) == OK)
		return OK;
	if (s->n < room(s->cap))
		return OK;
	slot_remove(s, first);
	atomic_fetch_add_explicit(&t->evicted, 1, memory_order_relaxed);
	return OK;
}

/* --- the table --- */

struct rate_table *rate_table_new(size_t memory)
{
	struct rate_table *t = mem_zalloc(sizeof(*t));
	size_t most = slots_bytes(SLOTS_MOST), n;

	CHECK(memory >= RATE_MEMORY_MIN && memory <= RATE_MEMORY_MAX);
	if (!t)
		return NULL;
	t->cap_most = SLOTS_MOST;
	n = memory > most / 2 ? (memory - most / 2) / (most + sizeof(struct shard)) : 0;
	t->n_shards = n ? (uint32_t)n : 1;
	while (!n && slots_bytes(t->cap_most) * 3 / 2 + sizeof(struct shard) > memory)
		t->cap_most /= 2;
	CHECK(pthread_mutex_init(&t->growing, NULL) == 0);
	return t;
}

static void shards_free(struct shard *s, uint32_t n)
{
	uint32_t i;

	for (i = 0; s && i < n; i++) {
		slots_free(s[i].slot, s[i].cap);
		pthread_mutex_destroy(&s[i].lock);
	}
	mem_free(s);
}

void rate_table_free(struct rate_table *t)
{
	if (!t)
		return;
	shards_free(atomic_load(&t->shards), t->n_shards);
	pthread_mutex_destroy(&t->growing);
	mem_free(t);
}

/* Made by the first thread that wants them; NULL: no memory. */
static struct shard *shards_of(struct rate_table *t)
{
	struct shard *s = atomic_load_explicit(&t->shards, memory_order_acquire), *made;
	uint32_t i;

	if (s)
		return s;
	made = mem_zalloc(t->n_shards * sizeof(*made));
	if (!made)
		return NULL;
	for (i = 0; i < t->n_shards; i++)
		CHECK(pthread_mutex_init(&made[i].lock, NULL) == 0);
	if (atomic_compare_exchange_strong(&t->shards, &s, made))
		return made;
	shards_free(made, t->n_shards);	/* another thread was faster: `s` is its */
	return s;
}

/* By the upper half of a key; its place in the shard is by the lower one. */
static struct shard *shard_of(const struct rate_table *t, struct shard *shards, uint64_t key)
{
	return &shards[(key >> 32) * t->n_shards >> 32];
}

uint64_t rate_key(uint64_t limit, struct str key)
{
	uint64_t two[2] = {limit, hash_str(key)}, hash = hash_str((struct str){(const char *)two, sizeof(two)});

	return hash ? hash : 1;
}

enum err rate_table_take(struct rate_table *t, const struct rate *r, uint64_t key, uint64_t now_us,
			 struct rate_answer *answer)
{
	struct shard *shards = shards_of(t), *s;
	uint64_t now = now_us * NS_PER_US;
	struct slot *slot;
	enum err err = OK;

	if (!shards)
		return ERR_MEM;
	s = shard_of(t, shards, key);
	pthread_mutex_lock(&s->lock);
	slot = s->cap ? slot_of(s, key) : NULL;
	if (!slot || !slot->key) {
		err = shard_make_room(t, s, now);
		slot = err == OK ? slot_of(s, key) : NULL;
	}
	if (slot) {
		s->n += !slot->key;
		slot->key = key;
		slot->full = bucket_take(r, slot->full, now, answer);
	}
	pthread_mutex_unlock(&s->lock);
	return err;
}

void rate_table_give(struct rate_table *t, const struct rate *r, uint64_t key)
{
	struct shard *shards = atomic_load_explicit(&t->shards, memory_order_acquire), *s;
	struct slot *slot;

	if (!shards)
		return;
	s = shard_of(t, shards, key);
	pthread_mutex_lock(&s->lock);
	slot = s->cap ? slot_of(s, key) : NULL;
	if (slot && slot->key)
		slot->full = bucket_give(r, slot->full);
	pthread_mutex_unlock(&s->lock);
}

/* Gives back what it has too much of. */
static void shard_trim(struct rate_table *t, struct shard *s, uint64_t now)
{
	uint32_t cap = s->cap;

	shard_sweep(s, now);
	if (s->n == 0)
		cap = 0;
	while (cap > SLOTS_FIRST && s->n <= cap / 4)
		cap /= 2;
	if (cap < s->cap && shard_resize(t, s, cap) != OK)
		return;	/* it stays larger than it need be */
}

size_t rate_table_trim(struct rate_table *t, uint64_t now_us)
{
	struct shard *s = atomic_load_explicit(&t->shards, memory_order_acquire);
	size_t left = 0;
	uint32_t i;

	for (i = 0; s && i < t->n_shards; i++) {
		pthread_mutex_lock(&s[i].lock);
		shard_trim(t, &s[i], now_us * NS_PER_US);
		left += slots_bytes(s[i].cap);
		pthread_mutex_unlock(&s[i].lock);
	}
	return left;
}

struct rate_stats rate_table_stats(struct rate_table *t)
{
	struct shard *s = atomic_load_explicit(&t->shards, memory_order_acquire);
	struct rate_stats stats = {.evicted = atomic_load_explicit(&t->evicted, memory_order_relaxed)};
	uint32_t i;

	for (i = 0; s && i < t->n_shards; i++) {
		pthread_mutex_lock(&s[i].lock);
		stats.bytes += sizeof(*s) + slots_bytes(s[i].cap);
		stats.buckets += s[i].n;
		pthread_mutex_unlock(&s[i].lock);
	}
	return stats;
}
