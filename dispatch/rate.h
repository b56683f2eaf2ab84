/* Rates: token buckets, for so many requests in a time and so many at once.
 *
 * A bucket is one word, the time at which it is full again (the generic cell rate
 * algorithm, ITU-T I.371), so that one that is full needs no memory at all.  A table has the
 * buckets of those that are told apart, addresses say, for all threads, within a bound in
 * bytes.  Time comes in: microseconds of a clock that all threads read alike. */
#ifndef THIMBLE_DISPATCH_RATE_H
#define THIMBLE_DISPATCH_RATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "lib/base/err.h"
#include "lib/base/str.h"

#define RATE_COUNT_MAX 1000000u		/* requests in a time, and at once */
#define RATE_PERIOD_MAX_S 3600u

struct rate {
	uint64_t interval;	/* ns in which one more is allowed, rounded up: never more than was meant */
	uint64_t window;	/* ns in which an empty bucket is full again */
	uint32_t burst;		/* requests of a full bucket */
};

struct rate_answer {
	bool allowed;
	uint32_t left;		/* requests that may come at once now */
	uint64_t more_ns;	/* until that is one more */
};

/* `count` requests in `period_s` seconds, `burst` at once: none of them 0, none above its bound. */
struct rate rate_of(uint32_t count, uint32_t period_s, uint32_t burst);

/* Seconds, rounded up. */
static inline uint64_t rate_seconds(uint64_t ns)
{
	return ns / 1000000000u + (ns % 1000000000u != 0);
}

/* One request from the bucket `full` (0 at first: a full one), which any number of threads share. */
struct rate_answer rate_take(const struct rate *r, _Atomic uint64_t *full, uint64_t now_us);
/* Gives back what a take got that was allowed: the request was not let through. */
void rate_give(const struct rate *r, _Atomic uint64_t *full);

struct rate_table;

struct rate_stats {
	size_t bytes;		/* that the table has */
	size_t buckets;		/* in it; some may be full again */
	uint64_t evicted;	/* forgotten before they were full again: all others were not, either */
};

#define RATE_MEMORY_MIN 4096u			/* bytes */
#define RATE_MEMORY_MAX (1024u * 1024 * 1024)

/* A table that never has more than `memory` bytes, and none before the first request but those of a
 * small struct.  NULL when there is no memory. */
struct rate_table *rate_table_new(size_t memory) MUST_USE;
/* NULL is accepted. */
void rate_table_free(struct rate_table *t);

/* The name of a bucket: of limit `limit`, of whoever says `key`.  Keyed: nobody can choose names
 * that are the same. */
uint64_t rate_key(uint64_t limit, struct str key);

/* As rate_take, from the bucket `key` of a table.  When all memory of the table is taken, buckets that are full again
 * make room; if there is none, the one that would be full first: who had it may come at once with a burst
 * again, and the others stay limited.  ERR_MEM when the system has no memory. */
MUST_USE enum err rate_table_take(struct rate_table *t, const struct rate *r, uint64_t key, uint64_t now_us,
				  struct rate_answer *answer);
void rate_table_give(struct rate_table *t, const struct rate *r, uint64_t key);

/* Once in a while: forgets the buckets that are full again and gives back the memory that is not needed.
 * Bytes of those that are left. */
size_t rate_table_trim(struct rate_table *t, uint64_t now_us);
struct rate_stats rate_table_stats(struct rate_table *t);

#endif
