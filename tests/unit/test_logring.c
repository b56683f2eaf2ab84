/* The ring of records against a plain model, alone and with a reader in another thread. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lib/base/logring.h"

static uint32_t rng_state = 7;

static uint32_t rng(void)
{
	rng_state ^= rng_state << 13;
	rng_state ^= rng_state >> 17;
	rng_state ^= rng_state << 5;
	return rng_state;
}

/* The model is the byte stream itself: byte number i has this value. */
static char stream_byte(uint64_t i)
{
	return (char)(i * 2654435761u >> 13);
}

static void stream_fill(char *p, size_t n, uint64_t at)
{
	for (size_t i = 0; i < n; i++)
		p[i] = stream_byte(at + i);
}

static bool stream_match(const char *p, size_t n, uint64_t at)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] != stream_byte(at + i))
			return false;
	return true;
}

/* Reads up to `most` bytes; returns how many. */
static size_t drain(struct logring *r, size_t most, uint64_t at)
{
	struct str run[2];
	int n = logring_peek(r, run);
	size_t took = 0;

	for (int i = 0; i < n; i++) {
		assert_true(run[i].n > 0);
		assert_true(stream_match(run[i].p, run[i].n, at));
		at += run[i].n;
		took += run[i].n;
	}
	if (took > most)
		took = most;
	if (took)
		logring_release(r, took);
	return took;
}

static void walk_one(size_t size, size_t record_max)
{
	struct logring r = {0};
	uint64_t in = 0, out = 0, records = 0, dropped = 0;

	assert_int_equal(logring_init(&r, size), OK);
	for (int i = 0; i < 40000; i++) {
		if (rng() % 5 < 3) {
			size_t room = 1 + rng() % record_max, n = 1 + rng() % room;
			char *p = logring_reserve(&r, room);

			if (!p) {
				/* Refused only when it is full but for the gaps: the one at the last
				 * turn (a room that was too long then) and the one at this. */
				assert_true(in - out + record_max + 2 * room > r.size);
				assert_true(in != out || room > r.size / 2);
				dropped++;
				continue;
			}
			memset(p, 0x55, room);
			if (rng() % 16 == 0)
				continue;	/* given up: leaves no trace */
			stream_fill(p, n, in);
			logring_commit(&r, n);
			in += n;
			records++;
		} else {
			out += drain(&r, rng() % (2 * record_max), out);
		}
		assert_int_equal(logring_empty(&r), in == out);
	}
	while (out < in)
		out += drain(&r, SIZE_MAX, out);
	assert_true(logring_empty(&r));
	assert_int_equal(atomic_load(&r.records), records);
	assert_int_equal(atomic_load(&r.written), in);
	assert_int_equal(atomic_load(&r.dropped), dropped);
	logring_fini(&r);
}

static void test_random_walk(void **state)
{
	(void)state;
	walk_one(4096, 64);
	walk_one(4096, 2000);
	walk_one(4096, 4096);
	walk_one(65536, 6000);
	walk_one(65536, 300);
}

static void test_size_is_rounded(void **state)
{
	struct logring r = {0};

	(void)state;
	assert_int_equal(logring_init(&r, 1), OK);
	assert_int_equal(r.size, LOGRING_MIN);
	logring_fini(&r);
	assert_int_equal(logring_init(&r, 5000), OK);
	assert_int_equal(r.size, 8192);
	assert_null(logring_reserve(&r, 8193));
	assert_non_null(logring_reserve(&r, 8192));
	logring_fini(&r);
	assert_null(r.bytes);
}

static void test_exact_end(void **state)
{
	struct logring r = {0};
	uint64_t in = 0, out = 0;

	(void)state;
	assert_int_equal(logring_init(&r, 4096), OK);
	for (int i = 0; i < 64; i++) {	/* records that end exactly at the end */
		char *p = logring_reserve(&r, 1024);

		assert_non_null(p);
		stream_fill(p, 1024, in);
		logring_commit(&r, 1024);
		in += 1024;
		if (i % 4 == 3) {
			assert_null(logring_reserve(&r, 1));
			out += drain(&r, i % 8 == 3 ? 4096 : 1500, out);
			while (i % 8 == 7 && out < in)
				out += drain(&r, 700, out);
		}
	}
	assert_int_equal(in, out);
	logring_fini(&r);
}

static void test_crowded(void **state)
{
	struct logring r = {0};

	(void)state;
	assert_int_equal(logring_init(&r, 4096), OK);
	assert_non_null(logring_reserve(&r, 2048));
	logring_commit(&r, 2048);
	assert_false(logring_crowded(&r));
	assert_non_null(logring_reserve(&r, 1));
	logring_commit(&r, 1);
	assert_true(logring_crowded(&r));
	logring_release(&r, 1);
	assert_false(logring_crowded(&r));
	logring_fini(&r);
}

struct pair {
	struct logring ring;
	uint64_t total;		/* bytes that the writer committed; read after join */
	_Atomic bool done;
};

static void *pair_write(void *arg)
{
	struct pair *p = arg;
	uint32_t x = 99;

	for (int i = 0; i < 200000; i++) {
		size_t room, n;
		char *to;

		x = x * 1664525u + 1013904223u;
		room = 1 + (x >> 8) % 700;
		n = 1 + (x >> 18) % room;
		to = logring_reserve(&p->ring, room);
		if (!to) {
			sched_yield();
			continue;
		}
		stream_fill(to, n, p->total);
		logring_commit(&p->ring, n);
		p->total += n;
	}
	atomic_store(&p->done, true);
	return NULL;
}

static void test_two_threads(void **state)
{
	static struct pair p;
	pthread_t writer;
	uint64_t out = 0;
	bool done;

	(void)state;
	assert_int_equal(logring_init(&p.ring, 16384), OK);
	assert_int_equal(pthread_create(&writer, NULL, pair_write, &p), 0);
	do {
		size_t n;

		done = atomic_load(&p.done);
		n = drain(&p.ring, 1 + rng() % 9000, out);
		out += n;
		if (!n)
			sched_yield();
	} while (!done || !logring_empty(&p.ring));
	pthread_join(writer, NULL);
	assert_int_equal(out, p.total);
	assert_int_equal(atomic_load(&p.ring.records) + atomic_load(&p.ring.dropped), 200000);
	logring_fini(&p.ring);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_walk),
		cmocka_unit_test(test_size_is_rounded),
		cmocka_unit_test(test_exact_end),
		cmocka_unit_test(test_crowded),
		cmocka_unit_test(test_two_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
