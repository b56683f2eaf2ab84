/* Door: byte accounting.  A worker's budget is one thread's; the root is shared,
 * touched in portions only.  Called by whatever holds memory for longer than a
 * call.  Owns no memory, never frees anybody else's: a refusal is an answer, and
 * what to give up is for the caller to know.
 *
 * Invariants: used <= held in every budget; root.taken is the sum of all held;
 * taken passes the limit only by what was forced. */
#include "lib/base/budget.h"

#include "lib/base/check.h"

/* `limit` in bytes, 0 for none. */
void budget_root_init(struct budget_root *r, uint64_t limit)
{
	*r = (struct budget_root){.limit = limit};
}

/* Joins a worker; `r` outlives it. */
void budget_init(struct budget *b, struct budget_root *r)
{
	*b = (struct budget){.root = r};
	atomic_fetch_add_explicit(&r->workers, 1, memory_order_relaxed);
}

/* Leaves; whatever is still charged is a leak, hence the CHECK. */
void budget_fini(struct budget *b)
{
	CHECK(b->used == 0);
	atomic_fetch_sub_explicit(&b->root->taken, b->held, memory_order_relaxed);
	atomic_fetch_sub_explicit(&b->root->workers, 1, memory_order_relaxed);
	b->held = 0;
}

/* What one worker may hold unused: all workers together 1/16 of the whole. */
static uint64_t portion(const struct budget_root *r)
{
	if (r->limit == 0)
		return BUDGET_PORTION;
	uint32_t workers = atomic_load_explicit(&r->workers, memory_order_relaxed);
	uint64_t share = r->limit / 16 / (workers ? workers : 1);
	return share < BUDGET_PORTION ? share : BUDGET_PORTION;
}

static void note_peak(struct budget_root *r, uint64_t taken)
{
	uint64_t peak = atomic_load_explicit(&r->peak, memory_order_relaxed);
	while (taken > peak &&
	    !atomic_compare_exchange_weak_explicit(&r->peak, &peak, taken, memory_order_relaxed, memory_order_relaxed))
		;
}

/* Takes `most` bytes from the root, or `least` when that is too much; 0 when even that is. */
static uint64_t take(struct budget_root *r, uint64_t most, uint64_t least)
{
	uint64_t taken = atomic_load_explicit(&r->taken, memory_order_relaxed);
	uint64_t n;
	do {
		uint64_t left = r->limit == 0 ? most : taken < r->limit ? r->limit - taken : 0;
		if (left < least)
			return 0;
		n = left < most ? least : most;
	} while (!atomic_compare_exchange_weak_explicit(&r->taken, &taken, taken + n,
	    memory_order_relaxed, memory_order_relaxed));
	note_peak(r, taken + n);
	return n;
}

/* Charges `n` bytes or refuses; the shared word is touched only when the portion is used up. */
enum err budget_charge(struct budget *b, size_t n)
{
	if (!b)
		return OK;
	uint64_t left = b->held - b->used;
	if (__builtin_expect(left < n, 0)) {
		uint64_t least = n - left, more = portion(b->root);
		uint64_t got = take(b->root, least < UINT64_MAX - more ? least + more : least, least);
		if (got == 0) {
			b->refused++;
			return ERR_MEM;
		}
		b->held += got;
	}
	b->used += n;
	return OK;
}

/* Charges `n` bytes whatever the limit. */
void budget_force(struct budget *b, size_t n)
{
	if (!b)
		return;
	uint64_t left = b->held - b->used;
	if (left < n) {
		uint64_t more = n - left;
		note_peak(b->root, atomic_fetch_add_explicit(&b->root->taken, more, memory_order_relaxed) + more);
		b->held += more;
	}
	b->used += n;
}

/* Takes back a charge of `n` bytes; others see them after budget_settle. */
void budget_credit(struct budget *b, size_t n)
{
	if (!b)
		return;
	CHECK(b->used >= n);
	b->used -= n;
}

/* Gives back what is unused beyond one portion. */
void budget_settle(struct budget *b)
{
	if (!b)
		return;
	uint64_t keep = portion(b->root), left = b->held - b->used;
	if (left <= keep)
		return;
	atomic_fetch_sub_explicit(&b->root->taken, left - keep, memory_order_relaxed);
	b->held -= left - keep;
}

/* True when `owner` (not NULL) has the one token now. */
bool budget_oversized_take(struct budget *b, void *owner)
{
	if (!b)
		return true;
	CHECK(owner);
	void *none = NULL;
	return atomic_compare_exchange_strong(&b->root->oversized, &none, owner) || none == owner;
}

/* Gives the token back; does nothing when `owner` does not have it. */
void budget_oversized_give(struct budget *b, void *owner)
{
	if (b && owner)
		atomic_compare_exchange_strong(&b->root->oversized, &owner, NULL);
}
