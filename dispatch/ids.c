/* Door: ids, dense numbers for endpoints and services, so that a worker can keep
 * what it knows of them in an array.  Owns one bitmap.  Called by the endpoint
 * table under its lock.  Giving a number back never fails. */
#include "dispatch/ids.h"

#include <string.h>
#include "lib/base/check.h"
#include "lib/base/mem.h"

void ids_fini(struct ids *s)
{
	CHECK(s->live == 0);
	mem_free(s->used);
	*s = (struct ids){0};
}

static enum err ids_grow(struct ids *s)
{
	uint32_t n = s->n_words ? s->n_words * 2 : 1;
	uint64_t *used = mem_realloc(s->used, n * sizeof(*used));

	if (!used)
		return ERR_MEM;
	memset(used + s->n_words, 0, (n - s->n_words) * sizeof(*used));
	s->used = used;
	s->n_words = n;
	return OK;
}

enum err ids_take(struct ids *s, uint32_t *id)
{
	uint32_t bit;

	while (s->lowest < s->n_words && s->used[s->lowest] == UINT64_MAX)
		s->lowest++;
	if (s->lowest == s->n_words && ids_grow(s) != OK)
		return ERR_MEM;
	bit = (uint32_t)__builtin_ctzll(~s->used[s->lowest]);
	s->used[s->lowest] |= UINT64_C(1) << bit;
	s->live++;
	*id = s->lowest * 64 + bit;
	return OK;
}

void ids_give(struct ids *s, uint32_t id)
{
	uint32_t word = id / 64;
	uint64_t bit = UINT64_C(1) << (id % 64);

	CHECK(word < s->n_words && (s->used[word] & bit));
	s->used[word] &= ~bit;
	if (word < s->lowest)
		s->lowest = word;
	s->live--;
}
