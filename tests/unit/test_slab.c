/* lib/base/slab: a random walk with contents checked, memory given back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "lib/base/mem.h"
#include "lib/base/slab.h"

struct world {
	struct budget_root root;
	struct budget budget;
	struct slab slab;
};

static void world_init(struct world *w, size_t size, uint64_t limit)
{
	budget_root_init(&w->root, limit);
	budget_init(&w->budget, &w->root);
	slab_init(&w->slab, size, &w->budget);
}

static void world_fini(struct world *w)
{
	slab_fini(&w->slab);
	assert_int_equal(w->budget.used, 0);
	budget_fini(&w->budget);
}

static uint32_t next(uint32_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 17;
	*seed ^= *seed << 5;
	return *seed;
}

/* What the door of slab.c promises of the lists. */
static void check_lists(const struct slab *s)
{
	size_t live = 0, empty = 0;
	const struct slab_chunk *highest = NULL;
	for (uint32_t i = 0; i < 8; i++) {
		const struct slab_chunk *prev = NULL;
		for (const struct slab_chunk *c = s->partial[i]; c; prev = c, c = c->next) {
			assert_ptr_equal(c->prev, prev);
			assert_int_equal(c->list, i);
			assert_true(c->live < s->per_chunk);
			live += c->live;
			empty += c->live == 0;
		}
		highest = s->partial[i] ? s->partial[i] : highest;
	}
	assert_true(empty <= 1);
	assert_ptr_equal(s->current, highest);
	assert_true(live <= s->live && (s->live - live) % s->per_chunk == 0);
}

static void walk(size_t size, uint32_t seed, int steps)
{
	enum { MAX = 5000 };
	static unsigned char *out[MAX];
	static unsigned char mark[MAX];
	struct world w;
	size_t n = 0, most = 0;
	world_init(&w, size, 0);
	for (int i = 0; i < steps; i++) {
		/* the tide changes, so that chunks fill and empty */
		bool rise = next(&seed) % 100 < ((i >> 14) & 1 ? 35u : 65u);
		if (rise && n < MAX) {
			out[n] = slab_get(&w.slab);
			assert_non_null(out[n]);
			assert_int_equal((uintptr_t)out[n] % 8, 0);
			mark[n] = (unsigned char)next(&seed);
			memset(out[n], mark[n], size);
			n++;
		} else if (!rise && n > 0) {
			size_t j = next(&seed) % n;
			for (size_t k = 0; k < size; k += size > 64 ? size - 1 : 1)
				assert_int_equal(out[j][k], mark[j]);
			slab_put(&w.slab, out[j]);
			n--;
			out[j] = out[n];
			mark[j] = mark[n];
		}
		most = w.slab.chunks > most ? w.slab.chunks : most;
		assert_int_equal(w.slab.live, n);
		assert_int_equal(w.budget.used, w.slab.chunks * SLAB_CHUNK);
		if (i % 64 == 0)
			check_lists(&w.slab);
	}
	while (n > 0)
		slab_put(&w.slab, out[--n]);
	check_lists(&w.slab);
	assert_true(most > 1);
	assert_int_equal(w.slab.chunks, 1);
	world_fini(&w);
}

static void random_walks(void **state)
{
	(void)state;
	const size_t sizes[] = {1, 8, 24, 64, 65, 200, 700, 1500, 4096};
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		walk(sizes[i], 77 + (uint32_t)i, 60000);
}

static void a_lone_object_keeps_one_chunk(void **state)
{
	(void)state;
	struct world w;
	world_init(&w, 64, 0);
	slab_put(&w.slab, slab_get(&w.slab));
	mem_fail_from(0);
	for (int i = 0; i < 1000; i++) {
		void *p = slab_get(&w.slab);
		assert_int_equal((uintptr_t)p % 64, 0);
		slab_put(&w.slab, p);
	}
	assert_int_equal(mem_fail_count(), 0);
	assert_int_equal(w.slab.chunks, 1);
	slab_put(&w.slab, NULL);
	world_fini(&w);
}

/* After a mass close a few objects are left here and there: what comes next
 * fills the fuller chunks, so that the others empty. */
static void fullest_first(void **state)
{
	(void)state;
	enum { CHUNKS = 20 };
	struct world w;
	world_init(&w, 64, 0);
	size_t per = w.slab.per_chunk;
	static void *out[CHUNKS * 256];
	for (size_t i = 0; i < CHUNKS * per; i++)
		out[i] = slab_get(&w.slab);
	assert_int_equal(w.slab.chunks, CHUNKS);
	/* chunk 0 keeps most of its objects, the others one each */
	for (size_t i = 0; i < CHUNKS * per; i++) {
		if (i < per ? i % 8 == 0 : i % per != 0) {
			slab_put(&w.slab, out[i]);
			out[i] = NULL;
		}
	}
	void *more = slab_get(&w.slab);
	assert_int_equal((uintptr_t)more / SLAB_CHUNK, (uintptr_t)out[1] / SLAB_CHUNK);
	for (size_t i = per; i < CHUNKS * per; i += per)
		slab_put(&w.slab, out[i]);
	assert_in_range(w.slab.chunks, 1, 2);
	slab_put(&w.slab, more);
	for (size_t i = 0; i < per; i++)
		slab_put(&w.slab, out[i]);
	world_fini(&w);
}

/* Objects that know their place, in a slab that is left by most of them. */
struct settler {
	struct settler **home;
	uint32_t number, pinned;
};

static bool settler_move(void *ctx, void *from, void *to)
{
	struct settler *s = to;

	if (((struct settler *)from)->pinned)
		return false;
	*s = *(struct settler *)from;
	*s->home = s;
	++*(size_t *)ctx;
	return true;
}

static void few_that_stay_are_brought_together(void **state)
{
	enum { N = 20000 };
	static struct settler *all[N];
	uint32_t seed = 5, stay = 0, pinned = 0;
	size_t moves = 0, moved, before;
	struct world w;

	(void)state;
	world_init(&w, sizeof(struct settler), 0);
	for (uint32_t i = 0; i < N; i++) {
		all[i] = slab_get(&w.slab);
		assert_non_null(all[i]);
		*all[i] = (struct settler){&all[i], i, 0};
	}
	assert_int_equal(slab_compact(&w.slab, SIZE_MAX, settler_move, &moves), 0);	/* dense */
	for (uint32_t i = 0; i < N; i++)
		if (next(&seed) % 100) {
			slab_put(&w.slab, all[i]);
			all[i] = NULL;
		} else {
			all[i]->pinned = ++stay % 50 == 0;
			pinned += all[i]->pinned;
		}
	before = w.slab.chunks;
	assert_true(slab_sparse(&w.slab) && before > 15);
	assert_in_range(slab_compact(&w.slab, 10, settler_move, &moves), 1, 10 + w.slab.per_chunk);	/* in pieces */
	do
		moved = slab_compact(&w.slab, 64, settler_move, &moves);
	while (moved);
	assert_int_equal(w.slab.live, stay);
	assert_in_range(w.slab.chunks, 1, 3 + pinned);
	assert_true(moves <= 2 * stay);
	for (uint32_t i = 0; i < N; i++)
		if (all[i]) {
			assert_true(all[i]->number == i && all[i]->home == &all[i]);
			slab_put(&w.slab, all[i]);
		}
	world_fini(&w);
}

static void no_memory_no_budget(void **state)
{
	(void)state;
	struct world w;
	world_init(&w, 1000, 2 * SLAB_CHUNK);
	mem_fail_from(1);
	assert_null(slab_get(&w.slab));
	mem_fail_from(0);
	assert_int_equal(w.budget.used, 0);
	void *out[64];
	size_t n = 0;
	while ((out[n] = slab_get(&w.slab)))
		n++;
	assert_int_equal(n, 2 * w.slab.per_chunk);
	slab_put(&w.slab, out[--n]);
	assert_non_null(slab_get(&w.slab));
	n++;
	assert_null(slab_get(&w.slab));
	while (n > 0)
		slab_put(&w.slab, out[--n]);
	world_fini(&w);
}

/* Whether the mapping around `p` is left out of core dumps: "dd" among its flags. */
static bool not_dumped(const void *p)
{
	char line[512];
	bool here = false, dd = false;
	FILE *f = fopen("/proc/self/smaps", "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		unsigned long from, to;
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			here = (uintptr_t)p >= from && (uintptr_t)p < to;
		else if (here && strncmp(line, "VmFlags:", 8) == 0)
			dd = strstr(line, " dd") != NULL;
	}
	fclose(f);
	return dd;
}

static void a_hidden_slab_is_in_no_core_dump(void **state)
{
	(void)state;
	struct world open, hidden;
	world_init(&open, 200, 0);
	world_init(&hidden, 200, 0);
	slab_hide(&hidden.slab);
	void *a = slab_get(&open.slab), *b[200];
	for (int i = 0; i < 200; i++) {
		b[i] = slab_get(&hidden.slab);
		assert_non_null(b[i]);
	}
	assert_true(hidden.slab.chunks > 1);
	assert_false(not_dumped(a));
	assert_true(not_dumped(b[0]));
	assert_true(not_dumped(b[199]));
	for (int i = 0; i < 200; i++)
		slab_put(&hidden.slab, b[i]);
	slab_put(&open.slab, a);
	world_fini(&open);
	world_fini(&hidden);
}

#ifdef THIMBLE_SANITIZED
static void what_was_put_back_is_poisoned(void **state)
{
	(void)state;
#ifdef __SANITIZE_ADDRESS__
	struct world w;
	world_init(&w, 48, 0);
	char *a = slab_get(&w.slab), *b = slab_get(&w.slab);
	assert_null(__asan_region_is_poisoned(a, 48));
	slab_put(&w.slab, a);
	assert_ptr_equal(__asan_region_is_poisoned(a, 48), a);
	assert_null(__asan_region_is_poisoned(b, 48));
	slab_put(&w.slab, b);
	world_fini(&w);
#endif
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_walks),
		cmocka_unit_test(a_lone_object_keeps_one_chunk),
		cmocka_unit_test(fullest_first),
		cmocka_unit_test(few_that_stay_are_brought_together),
		cmocka_unit_test(no_memory_no_budget),
		cmocka_unit_test(a_hidden_slab_is_in_no_core_dump),
#ifdef THIMBLE_SANITIZED
		cmocka_unit_test(what_was_put_back_is_poisoned),
#endif
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
