/* Door: time-outs.  Owns its list heads, not what is linked.  The worker asks
 * once a turn what has expired and how long it may sleep.  Reads no clock,
 * allocates nothing, calls nobody.
 *
 * Invariant: in each list stamps never fall from head to tail, since time does
 * not run backwards between two calls; so the head alone decides.  All
 * comparisons are of 32-bit differences: right as long as nothing is seen more
 * than 2^31 ms (24 days) late or early, and TTL_MAX_MS is 7 days. */
#include "lib/base/ttl.h"

#include <stddef.h>
#include <string.h>

#include "lib/base/check.h"

static uint32_t *stamp_of(const struct ttl *t, struct ttl_link *l)
{
	return (uint32_t *)(void *)((char *)l + t->stamp_offset);
}

/* Milliseconds until the head of `list` is due; not positive when it is. */
static int32_t left_of(const struct ttl *t, const struct ttl_list *list, uint32_t now)
{
	return (int32_t)(*stamp_of(t, list->head.next) + list->ms - now);
}

static bool list_empty(const struct ttl_list *list)
{
	return list->head.next == &list->head;
}

/* No list yet.  A set must not be moved once it has lists. */
void ttl_init(struct ttl *t, uint16_t stamp_offset)
{
	t->n = 0;
	t->stamp_offset = stamp_offset;
	memset(t->recent, 0, sizeof(t->recent));
}

/* Of two durations: does `a` serve `ms` better than `b`?  Longer ones before
 * shorter ones, then the nearest. */
static bool serves_better(uint32_t a, uint32_t b, uint32_t ms)
{
	if ((a >= ms) != (b >= ms))
		return a >= ms;
	return a >= ms ? a < b : a > b;
}

static uint8_t list_search(struct ttl *t, uint32_t ms)
{
	unsigned best = 0;
	for (unsigned i = 0; i < t->n; i++) {
		if (serves_better(t->list[i].ms, t->list[best].ms, ms))
			best = i;
	}
	if (t->n > 0 && t->list[best].ms == ms)
		return (uint8_t)best;
	if (t->n == TTL_LISTS)
		return (uint8_t)best;
	struct ttl_list *list = &t->list[t->n];
	list->ms = ms;
	list->head.next = list->head.prev = &list->head;
	return (uint8_t)t->n++;
}

/* One look for a duration that was asked for lately; linear in the lists otherwise. */
uint8_t ttl_list_for(struct ttl *t, uint64_t want)
{
	uint32_t ms = want > TTL_MAX_MS ? TTL_MAX_MS : (uint32_t)want;
	uint8_t *recent = &t->recent[ms * 0x9e3779b1u >> 16 & (TTL_RECENT - 1)];
	if (*recent >= t->n || t->list[*recent].ms != ms)
		*recent = list_search(t, ms);
	return *recent;
}

/* Stores the stamp; a few stores whatever the number of links. */
void ttl_link(struct ttl *t, uint8_t list, struct ttl_link *l, uint32_t now)
{
	CHECK(list < t->n);
	ttl_unlink(l);
	struct ttl_link *head = &t->list[list].head;
	l->next = head;
	l->prev = head->prev;
	head->prev->next = l;
	head->prev = l;
	*stamp_of(t, l) = now;
}

/* From whichever list it is in. */
void ttl_unlink(struct ttl_link *l)
{
	if (!l->next)
		return;
	l->next->prev = l->prev;
	l->prev->next = l->next;
	l->next = l->prev = NULL;
}

/* Call until NULL; of several that are due the list made first gives its own first. */
struct ttl_link *ttl_expired(struct ttl *t, uint32_t now)
{
	for (unsigned i = 0; i < t->n; i++) {
		struct ttl_list *list = &t->list[i];
		if (list_empty(list) || left_of(t, list, now) > 0)
			continue;
		struct ttl_link *l = list->head.next;
		ttl_unlink(l);
		return l;
	}
	return NULL;
}

/* Looks at the head of each list: two loads and a compare for one. */
int64_t ttl_next(struct ttl *t, uint32_t now)
{
	int64_t least = -1;
	for (unsigned i = 0; i < t->n; i++) {
		struct ttl_list *list = &t->list[i];
		if (list_empty(list))
			continue;
		int32_t left = left_of(t, list, now);
		if (left <= 0)
			return 0;
		if (least < 0 || left < least)
			least = left;
	}
	return least;
}

void ttl_moved(struct ttl_link *l)
{
	if (!l->next)
		return;
	l->next->prev = l;
	l->prev->next = l;
}
