/* Encoders against the libraries' decoders: whole, in odd pieces, flushed, short of memory. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include "lib/base/mem.h"
#include "lib/http/encode.h"
#include "tests/decode.h"

#define MOST 70000

static char text[MOST], noise[MOST], mixed[MOST];

static uint32_t next_random(uint32_t *x)
{
	*x = *x * 1664525 + 1013904223;
	return *x >> 8;
}

static int make_bodies(void **state)
{
	static const char *const words[] = {"the ", "queue ", "holds ", "nothing, ", "and ", "so ", "it ", "costs ",
		"{\"id\": ", "<p>", "</p>\n", "0123 "};
	uint32_t x = 7;
	size_t n = 0;

	(void)state;
	while (n < MOST) {
		const char *w = words[next_random(&x) % 12];

		for (; *w && n < MOST; w++)
			text[n++] = *w;
	}
	for (n = 0; n < MOST; n++)
		noise[n] = (char)next_random(&x);
	for (n = 0; n < MOST; n++)
		mixed[n] = n / 3000 % 2 ? noise[n] : n / 3000 % 3 ? text[n] : 'x';
	return 0;
}

/* A body on its way through an encoder and back. */
struct way {
	struct encode *e;
	struct decode *d;
	uint32_t seed;		/* of the rooms that steps get; 0: always the same */
	size_t out;		/* bytes that came out of the encoder */
};

static void step(struct way *w, enum encode_op op, struct str in)
{
	static char out[MOST + 8192];
	size_t room, made;

	do {
		room = w->seed ? ENCODE_ROOM_MIN + next_random(&w->seed) % (next_random(&w->seed) % 4 ? 100 : 20000) : sizeof out;
		assert_int_equal(encode_step(w->e, op, &in, out, room, &made), OK);
		assert_true(made <= room);
		w->out += made;
		assert_true(decode_put(w->d, (struct str){out, made}));
	} while (made == room);
	assert_int_equal(in.n, 0);
}

static void known(struct way *w, struct str body)
{
	struct str out = decode_out(w->d);

	assert_int_equal(out.n, body.n);
	if (body.n)
		assert_memory_equal(out.p, body.p, body.n);
}

/* Through and back; the bytes that it took on its way. */
static size_t there_and_back(enum coding c, enum encode_level level, struct str body, uint64_t hint, uint32_t seed)
{
	struct encode_room room = {0};
	struct way w = {.seed = seed, .d = decode_new(c)};
	size_t at = 0;

	assert_int_equal(encode_new(&w.e, c, level, hint, &room), OK);
	while (at < body.n) {
		size_t n = seed ? 1 + next_random(&w.seed) % (next_random(&w.seed) % 4 ? 5000 : 20) : body.n;

		n = n < body.n - at ? n : body.n - at;
		step(&w, seed && next_random(&w.seed) % 8 == 0 ? ENCODE_FLUSH : ENCODE_PUT, (struct str){body.p + at, n});
		at += n;
	}
	step(&w, ENCODE_END, STR(""));
	known(&w, body);
	assert_true(decode_ended(w.d));
	step(&w, ENCODE_END, STR(""));		/* nothing more */
	encode_free(w.e);
	encode_room_fini(&room);
	decode_free(w.d);
	return w.out;
}

static void sizes(enum coding c)
{
	static const size_t edges[] = {1023, 1024, 1025, 4095, 4096, 8191, 8192, 8193, 16383, 16384, 16385, 16386, 32767, 32768,
		32769, 65535, 65536, 65537, MOST};
	const char *const bodies[] = {text, noise, mixed};
	uint32_t seed = 1;
	size_t n = 0, edge = 0;

	while (n <= MOST) {
		enum encode_level level = next_random(&seed) % ENCODE_LEVELS;
		uint64_t hint = next_random(&seed) % 2 ? ENCODE_UNKNOWN : next_random(&seed) % 4 ? n : n / 3;
		struct str body = {bodies[next_random(&seed) % 3], n};

		there_and_back(c, level, body, hint, next_random(&seed) | 1);
		if (n < 1100)
			n++;
		else if (edge < sizeof edges / sizeof *edges && n + 53 >= edges[edge])
			n = edges[edge++];
		else
			n += 53;
	}
}

static void test_sizes_gzip(void **state)
{
	(void)state;
	sizes(CODING_GZIP);
}

static void test_sizes_br(void **state)
{
	(void)state;
	sizes(CODING_BR);
}

static void test_sizes_zstd(void **state)
{
	(void)state;
	sizes(CODING_ZSTD);
}

static void test_levels(void **state)
{
	(void)state;
	for (enum coding c = CODING_GZIP; c < CODING_N; c++) {
		size_t n[ENCODE_LEVELS];

		for (enum encode_level l = 0; l < ENCODE_LEVELS; l++) {
			n[l] = there_and_back(c, l, (struct str){text, MOST}, ENCODE_UNKNOWN, 0);
			assert_true(n[l] < MOST / 2);
			/* what cannot be compressed grows by next to nothing */
			assert_true(there_and_back(c, l, (struct str){noise, MOST}, MOST, 0) < MOST + MOST / 500 + 64);
		}
		assert_true(n[ENCODE_SMALL] < n[ENCODE_BALANCED] && n[ENCODE_BALANCED] < n[ENCODE_FAST]);
	}
}

/* After a flush the other side knows all; a second one says nothing. */
static void test_flush(void **state)
{
	(void)state;
	for (enum coding c = CODING_GZIP; c < CODING_N; c++) {
		for (enum encode_level l = 0; l < ENCODE_LEVELS; l++) {
			struct encode_room room = {0};
			struct way w = {.d = decode_new(c)};
			size_t at = 0, before;

			assert_int_equal(encode_new(&w.e, c, l, ENCODE_UNKNOWN, &room), OK);
			step(&w, ENCODE_FLUSH, STR(""));
			assert_int_equal(w.out, 0);
			for (size_t n = 1; at + n < MOST; n = n * 3 + 1) {
				step(&w, ENCODE_PUT, (struct str){text + at, n});
				at += n;
				step(&w, ENCODE_FLUSH, STR(""));
				known(&w, (struct str){text, at});
				assert_false(decode_ended(w.d));
				before = w.out;
				step(&w, ENCODE_FLUSH, STR(""));
				assert_int_equal(w.out, before);
			}
			step(&w, ENCODE_END, (struct str){text + at, MOST - at});
			known(&w, (struct str){text, MOST});
			assert_true(decode_ended(w.d));
			encode_free(w.e);
			encode_room_fini(&room);
			decode_free(w.d);
		}
	}
}

static void test_memory(void **state)
{
	static char room_for_out[MOST];

	(void)state;
	for (enum coding c = CODING_GZIP; c < CODING_N; c++) {
		for (enum encode_level l = 0; l < ENCODE_LEVELS; l++) {
			struct budget_root root;
			struct budget budget;
			struct encode_room room = {.budget = &budget};
			struct encode *e;
			size_t made, held = 0;

			budget_root_init(&root, 0);
			budget_init(&budget, &root);
			assert_int_equal(encode_new(&e, c, l, ENCODE_UNKNOWN, &room), OK);
			for (unsigned i = 0; i < 160; i++) {
				const char *const bodies[] = {mixed, text, noise, mixed};
				struct str in = {bodies[i / 40] + i % 40 * 1000, i % 3 ? 16384 : 5000};

				do {
					assert_int_equal(encode_step(e, ENCODE_PUT, &in, room_for_out, MOST, &made), OK);
				} while (made == MOST);
				held = room.used > held ? room.used : held;
			}
			assert_int_equal(budget.used, room.used + room.spared);
			if (getenv("SHOW"))
				printf("%s %d: %zu KiB, %zu at times\n", coding_name(c).p, l, held / 1024, room.peak / 1024);
			if (room.peak > room.promised || (c != CODING_BR && room.promised > room.peak))
				fail_msg("%s %d holds %zu bytes, not %zu", coding_name(c).p, l, room.peak, room.promised);
			encode_free(e);
			assert_int_equal(budget.used, room.spared);
			encode_room_fini(&room);
			budget_fini(&budget);
		}
	}
}

static void test_short_bodies_hold_less(void **state)
{
	struct encode_room room = {0}, large = {0};
	struct encode *e;

	(void)state;
	for (enum coding c = CODING_GZIP; c < CODING_N; c++) {
		if (c == CODING_BR)
			continue;	/* its tables grow with what comes */
		room.peak = large.peak = 0;
		assert_int_equal(encode_new(&e, c, ENCODE_FAST, 1000, &room), OK);
		encode_free(e);
		assert_int_equal(encode_new(&e, c, ENCODE_FAST, ENCODE_UNKNOWN, &large), OK);
		encode_free(e);
		assert_true(room.peak < large.peak / 2);
	}
	encode_room_fini(&room);
	encode_room_fini(&large);
}

static void test_limit(void **state)
{
	struct encode_room room = {.limit = 250000};
	struct encode *a, *b, *none = NULL;

	(void)state;
	assert_int_equal(encode_new(&a, CODING_GZIP, ENCODE_FAST, ENCODE_UNKNOWN, &room), OK);
	assert_int_equal(encode_new(&b, CODING_GZIP, ENCODE_FAST, ENCODE_UNKNOWN, &room), OK);
	assert_int_equal(encode_new(&none, CODING_GZIP, ENCODE_FAST, ENCODE_UNKNOWN, &room), ERR_LIMIT);
	assert_null(none);
	encode_free(a);
	assert_int_equal(encode_new(&none, CODING_BR, ENCODE_FAST, ENCODE_UNKNOWN, &room), ERR_LIMIT);	/* it would grow */
	assert_int_equal(encode_new(&a, CODING_GZIP, ENCODE_FAST, 1000, &room), OK);
	encode_free(a);
	encode_free(b);
	encode_free(NULL);
	assert_int_equal(encode_new(&a, CODING_BR, ENCODE_SMALL, ENCODE_UNKNOWN, &room), OK);	/* one alone may always be */
	assert_int_equal(encode_new(&none, CODING_GZIP, ENCODE_FAST, 100, &room), ERR_LIMIT);
	encode_free(a);
	encode_room_fini(&room);
}

/* What one encoder had the next one takes; a while without one gives it back. */
static void test_memory_is_kept_for_the_next(void **state)
{
	(void)state;
	for (enum coding c = CODING_GZIP; c < CODING_N; c++) {
		struct encode_room room = {0};
		struct encode *e;
		size_t calls;

		mem_fail_from(0);
		assert_int_equal(encode_new(&e, c, ENCODE_FAST, ENCODE_UNKNOWN, &room), OK);
		calls = mem_fail_count();
		encode_free(e);
		assert_true(room.used == 0 && room.spared > 10000);
		mem_fail_from(0);
		assert_int_equal(encode_new(&e, c, ENCODE_FAST, ENCODE_UNKNOWN, &room), OK);
		assert_true(mem_fail_count() < calls);	/* small blocks are not kept */
		encode_room_trim(&room);
		encode_free(e);
		assert_true(room.spared > 10000);
		encode_room_trim(&room);
		assert_true(room.spared == 0 && !room.spare);
		encode_room_fini(&room);
	}
}

/* Not more of it than is worth keeping. */
static void test_what_is_kept_is_bounded(void **state)
{
	struct encode_room room = {0};
	struct encode *e[20];

	(void)state;
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(encode_new(&e[i], CODING_ZSTD, ENCODE_BALANCED, ENCODE_UNKNOWN, &room), OK);
	for (unsigned i = 0; i < 20; i++)
		encode_free(e[i]);
	assert_true(room.spared > 300000 && room.spared <= 512 * 1024);
	encode_room_fini(&room);
}

/* The n-th allocation and all after it fail: an error or the truth, and nothing left behind. */
static void test_no_memory(void **state)
{
	static char out[4096];

	(void)state;
	for (enum coding c = CODING_GZIP; c < CODING_N; c++) {
		bool whole = false;

		for (size_t n = 1; !whole && n < 2000; n++) {
			struct encode_room room = {0};
			struct str in = {text, 40000}, none = {0};
			struct encode *e = NULL;
			size_t made;
			enum err err;

			mem_fail_from(n);
			err = encode_new(&e, c, ENCODE_BALANCED, ENCODE_UNKNOWN, &room);
			assert_true(err == OK || (err == ERR_MEM && !e));
			do {
				err = err == OK ? encode_step(e, ENCODE_PUT, &in, out, sizeof out, &made) : err;
			} while (err == OK && made == sizeof out);
			do {
				err = err == OK ? encode_step(e, ENCODE_END, &none, out, sizeof out, &made) : err;
			} while (err == OK && made == sizeof out);
			whole = err == OK;
			encode_free(e);
			mem_fail_from(0);
			encode_room_fini(&room);
		}
		assert_true(whole);
	}
}

static void test_no_budget(void **state)
{
	(void)state;
	for (enum coding c = CODING_GZIP; c < CODING_N; c++) {
		struct budget_root root;
		struct budget budget;
		struct encode_room room = {.budget = &budget};
		struct encode *e = NULL;

		budget_root_init(&root, 5000);
		budget_init(&budget, &root);
		assert_int_equal(encode_new(&e, c, ENCODE_FAST, ENCODE_UNKNOWN, &room), ERR_MEM);
		assert_null(e);
		encode_room_fini(&room);
		budget_fini(&budget);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes_gzip), cmocka_unit_test(test_sizes_br), cmocka_unit_test(test_sizes_zstd),
		cmocka_unit_test(test_levels), cmocka_unit_test(test_flush), cmocka_unit_test(test_memory),
		cmocka_unit_test(test_short_bodies_hold_less), cmocka_unit_test(test_limit),
		cmocka_unit_test(test_memory_is_kept_for_the_next), cmocka_unit_test(test_what_is_kept_is_bounded),
		cmocka_unit_test(test_no_memory), cmocka_unit_test(test_no_budget),
	};

	return cmocka_run_group_tests(tests, make_bodies, NULL);
}
