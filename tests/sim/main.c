/* sim: runs stories and the walk.
 *
 *   sim                         every story once
 *   sim NAME [--seed N]         one story (its events shuffled by the seed, 0: in order)
 *   sim walk --seed N [--seeds M]   random walks, seeds N to N + M - 1
 *   sim lean --seed N [--seeds M]   the same, and memory fails now and then
 *   sim torture [--every N]     every story again and again, with memory failing from each N-th allocation on
 *   sim list
 *
 * Exit 0: all held.  A failed expectation prints its place, the story, the seed, and what everybody got. */
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "proxy/log.h"
#include "tests/sim/walk.h"
#include "tests/sim/world.h"

static void tell(const struct story *s, uint64_t seed)
{
	world.story = s->name;
	world.lean = false;
	if (!world_begin(s->conf, seed)) {
		fprintf(stderr, "no memory for %s\n", s->name);
		exit(1);
	}
	net.shuffle = seed;
	s->tell();
	world_end();
}

/* Memory fails from the story's n-th allocation on: to its end, or (`brief`) to the end of that turn.
 * False when the story never came so far. */
static bool tell_lean(const struct story *s, size_t n, bool brief)
{
	bool reached;

	world.story = s->name;
	world.lean = true;
	CHECK(world_begin(s->conf, n));
	world.brief = brief ? n : 0;
	mem_fail_from(n);
	s->tell();
	reached = mem_fail_count() >= n || (brief && !world.brief);
	world_end();
	return reached;
}

static void torture(const struct story *s, size_t every)
{
	size_t runs = 0, n;

	for (int brief = 0; brief < 2; brief++)
		for (n = 1; tell_lean(s, n, brief); n += every)
			runs++;
	printf("%s: %zu runs, %zu allocations\n", s->name, runs, n);
}

/* A worker that finds no memory at its start says so and leaves nothing behind. */
static void torture_start(void)
{
	size_t n = 0;

	world.story = "start";
	do {
		mem_fail_from(++n);
	} while (!world_begin(NULL, 0));
	mem_fail_from(0);
	world_end();
	printf("start: %zu allocations\n", n - 1);
}

static const struct story *find(const char *name, int i)
{
	const struct story *lists[] = { stories, stories_queue, stories_retry, stories_admit, stories_call, stories_ask, stories_mirror,
		stories_stream, stories_compress, stories_basic, stories_slots, stories_again };

	for (unsigned l = 0; l < sizeof lists / sizeof lists[0]; l++)
		for (const struct story *s = lists[l]; s->name; s++)
			if (name ? strcmp(s->name, name) == 0 : i-- == 0)
				return s;
	return NULL;
}

static int each(const char *what, size_t every, uint64_t seed)
{
	const struct story *s;
	int n = 0;

	if (strcmp(what, "torture") == 0)
		torture_start();
	for (; (s = find(NULL, n)); n++) {
		if (strcmp(what, "list") == 0)
			puts(s->name);
		else if (strcmp(what, "torture") == 0)
			torture(s, every);
		else
			tell(s, seed);
	}
	printf("%d stories\n", n);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "all";
	uint64_t seed = 0, seeds = 1, every = 1;
	const struct story *s = find(what, 0);

	log_set_level(LEVEL_ERROR);
	for (int i = 2; i + 1 < argc; i += 2) {
		uint64_t v = strtoull(argv[i + 1], NULL, 0);

		if (strcmp(argv[i], "--seed") == 0)
			seed = v;
		else if (strcmp(argv[i], "--seeds") == 0)
			seeds = v;
		else if (strcmp(argv[i], "--every") == 0)
			every = v ? v : 1;
		else {
			fprintf(stderr, "%s: no such option\n", argv[i]);
			return 2;
		}
	}
	if (s && every > 1)
		torture(s, every);
	else if (s)
		tell(s, seed);
	else if (strcmp(what, "walk") == 0 || strcmp(what, "lean") == 0)
		walk(seed, seeds, *what == 'l');
	else if (strcmp(what, "all") == 0 || strcmp(what, "torture") == 0 || strcmp(what, "list") == 0)
		return each(what, every, seed);
	else {
		fprintf(stderr, "%s: no such story\n", what);
		return 2;
	}
	return 0;
}
