/* Time-outs that cost a link and a store: one list per distinct duration, kept
 * in the order of linking, so that only its head can be the next to expire.
 * Time comes in as an argument: milliseconds in 32 bits, compared modulo 2^32. */
#ifndef THIMBLE_BASE_TTL_H
#define THIMBLE_BASE_TTL_H

#include <stdbool.h>
#include <stdint.h>

#define TTL_LISTS 64		/* distinct durations that one set can hold */
#define TTL_RECENT 16		/* a power of two */
#define TTL_MAX_MS (7u * 24 * 3600 * 1000)

struct ttl_link {
	struct ttl_link *next, *prev;	/* both NULL when not linked */
};

struct ttl_list {
	struct ttl_link head;	/* circular; head.next is the oldest */
	uint32_t ms;		/* duration */
};

struct ttl {
	struct ttl_list list[TTL_LISTS];
	unsigned n;
	uint16_t stamp_offset;	/* where the 32-bit stamp is, in bytes from the link */
	uint8_t recent[TTL_RECENT];	/* lists asked for lately, by a hash of their duration; only hints */
};

/* Every linked object has a uint32_t stamp at `stamp_offset` bytes from its link. */
void ttl_init(struct ttl *t, uint16_t stamp_offset);

/* The list for a duration, made when new.  Durations above TTL_MAX_MS are cut to
 * it; when all lists are taken, the nearest longer one (or the longest) serves. */
uint8_t ttl_list_for(struct ttl *t, uint64_t ms);

/* Links, or links anew, at the tail of `list`: expires `ms` after `now`. */
void ttl_link(struct ttl *t, uint8_t list, struct ttl_link *l, uint32_t now);
/* Does nothing when it is not linked. */
void ttl_unlink(struct ttl_link *l);

/* `l` is a copy of a link that was at another place: its neighbours know it here from now on. */
void ttl_moved(struct ttl_link *l);

/* A duration near `ms`, not shorter, of which there are four from each power of two to the next: for those that differ
 * from one to the other, so that they do not need a list each. */
static inline uint32_t ttl_coarse(uint32_t ms)
{
	unsigned bits = 32u - (unsigned)__builtin_clz(ms | 1);
	uint32_t rest = bits > 3 ? (1u << (bits - 3)) - 1 : 0;

	return (ms + rest) & ~rest;
}

static inline bool ttl_linked(const struct ttl_link *l)
{
	return l->next != 0;
}

/* Unlinks and returns one that has expired; NULL when there is none. */
struct ttl_link *ttl_expired(struct ttl *t, uint32_t now);

/* Milliseconds until the next one expires; -1 when nothing is linked; 0 when due. */
int64_t ttl_next(struct ttl *t, uint32_t now);

#endif
