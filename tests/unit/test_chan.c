/* lib/base/chan: none lost, order kept, one wake-up, bytes bounded.  Meant for
 * the thread sanitizer, too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdbool.h>
#include <time.h>

#include "lib/base/chan.h"
#include "lib/base/mem.h"

struct msg {
	struct chan_node node;	/* first, so that a node is a message */
	uint32_t producer;
	uint32_t seq;
};

static void count_wake(void *arg)
{
	++*(int *)arg;
}

static void one_wake_up_for_many_channels(void **state)
{
	(void)state;
	enum { N = 10 };
	struct chan_reader r;
	struct chan c[N], *from;
	struct msg m[3 * N];
	int wakes = 0;
	chan_reader_init(&r, 1000000, count_wake, &wakes);
	for (uint32_t i = 0; i < N; i++)
		chan_init(&c[i], i);
	assert_null(chan_next(&r, &from));
	for (int round = 0; round < 3; round++) {
		for (uint32_t i = 0; i < 3 * N; i++) {
			m[i].seq = i;
			assert_int_equal(chan_send(&r, &c[i % N], &m[i].node, 32), OK);
		}
		assert_int_equal(wakes, round + 1);
		assert_int_equal(r.bytes, 3 * N * 32);
		for (uint32_t i = 0; i < N; i++) {
			struct chan_node *n = chan_next(&r, &from);
			assert_int_equal(from->owner, i);
			for (uint32_t k = 0; k < 3; k++, n = n->next)
				assert_ptr_equal(n, &m[i + k * N].node);
			assert_null(n);
		}
		assert_null(chan_next(&r, &from));
		assert_int_equal(r.bytes, 0);
	}
	chan_reader_fini(&r);
}

static void bytes_are_bounded_per_reader(void **state)
{
	(void)state;
	struct chan_reader r;
	struct chan a, b, *from;
	struct msg m[4];
	int wakes = 0;
	chan_reader_init(&r, 100, count_wake, &wakes);
	chan_init(&a, 0);
	chan_init(&b, 1);
	assert_int_equal(chan_send(&r, &a, &m[0].node, 500), OK);
	assert_int_equal(chan_send(&r, &b, &m[1].node, 1), ERR_LIMIT);
	assert_ptr_equal(chan_next(&r, &from), &m[0].node);
	assert_int_equal(chan_send(&r, &a, &m[0].node, 60), OK);
	assert_int_equal(chan_send(&r, &b, &m[1].node, 41), ERR_LIMIT);
	assert_int_equal(chan_send(&r, &b, &m[1].node, SIZE_MAX), ERR_LIMIT);
	assert_int_equal(chan_send(&r, &b, &m[1].node, 40), OK);
	assert_int_equal(r.bytes, 100);
	assert_non_null(chan_next(&r, &from));
	assert_non_null(chan_next(&r, &from));
	assert_int_equal(wakes, 2);
	chan_reader_fini(&r);
}

static void closing_takes_it_out_of_the_list(void **state)
{
	(void)state;
	for (uint32_t gone = 0; gone < 4; gone++) {
		struct chan_reader r;
		struct chan c[4], *from;
		struct msg m[5];
		int wakes = 0;
		chan_reader_init(&r, 1000, count_wake, &wakes);
		for (uint32_t i = 0; i < 4; i++)
			chan_init(&c[i], i);
		for (uint32_t i = 0; i < 4; i++)
			assert_int_equal(chan_send(&r, &c[i], &m[i].node, 1), OK);
		if (gone == 3)
			assert_ptr_equal(chan_next(&r, &from), &m[0].node);
		assert_ptr_equal(chan_close(&r, &c[gone]), &m[gone].node);
		assert_null(chan_close(&r, &c[gone]));
		memset(&c[gone], 0xee, sizeof(c[gone]));
		assert_int_equal(chan_send(&r, &c[gone == 1 ? 2 : 1], &m[4].node, 1), OK);
		int left = 0;
		for (struct chan_node *n; (n = chan_next(&r, &from));) {
			assert_int_not_equal(from->owner, gone);
			for (; n; n = n->next)
				left++;
		}
		assert_int_equal(left, gone == 3 ? 3 : 4);
		chan_reader_fini(&r);
	}
}

enum { PRODUCERS = 2, CHANNELS = 64 };

struct crowd {
	struct chan_reader reader;
	struct chan chan[CHANNELS];
	uint32_t channels;	/* that are used */
	uint32_t each;		/* messages of one producer */
	uint32_t seen[CHANNELS][PRODUCERS];
	sem_t wake;
	_Atomic long wakes;
	_Atomic uint32_t names;
	_Atomic int stop;
};

static void post(void *arg)
{
	struct crowd *w = arg;
	atomic_fetch_add(&w->wakes, 1);
	sem_post(&w->wake);
}

static void *produce(void *arg)
{
	struct crowd *w = arg;
	uint32_t me = atomic_fetch_add(&w->names, 1), rnd = me + 1;
	uint32_t seq[CHANNELS] = {0};
	for (uint32_t i = 0; i < w->each; i++) {
		rnd = rnd * 1664525 + 1013904223;
		uint32_t c = (rnd >> 20) % w->channels;
		struct msg *m = mem_alloc(sizeof(*m));
		m->producer = me;
		m->seq = seq[c]++;
		while (chan_send(&w->reader, &w->chan[c], &m->node, sizeof(*m)) != OK) {
			if (w->stop)
				return NULL;
			sched_yield();
		}
	}
	return NULL;
}

/* The seq of each producer rises by one on each channel: nothing lost, nothing
 * twice, nothing out of order. */
static long consume(struct crowd *w)
{
	long n = 0;
	struct chan *from;
	for (struct chan_node *next, *at; (at = chan_next(&w->reader, &from));) {
		for (; at; at = next) {
			struct msg *m = (struct msg *)at;
			next = at->next;
			assert_int_equal(m->seq, w->seen[from->owner][m->producer]);
			w->seen[from->owner][m->producer]++;
			mem_free(m);
			n++;
		}
	}
	return n;
}

static bool wait_for_wake(struct crowd *w)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_sec += 20;
	return sem_timedwait(&w->wake, &t) == 0;
}

static void crowd_run(uint32_t channels, uint32_t each, size_t limit)
{
	static struct crowd w;
	pthread_t t[PRODUCERS];
	memset(&w, 0, sizeof(w));
	w.channels = channels;
	w.each = each;
	chan_reader_init(&w.reader, limit, post, &w);
	sem_init(&w.wake, 0, 0);
	for (uint32_t i = 0; i < CHANNELS; i++)
		chan_init(&w.chan[i], i);
	for (int i = 0; i < PRODUCERS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, produce, &w), 0);
	long n = 0, total = (long)PRODUCERS * each;
	bool woken = true;
	while (n < total && (woken = wait_for_wake(&w))) {
		assert_true(atomic_load(&w.reader.bytes) <= limit);
		n += consume(&w);
	}
	w.stop = 1;
	for (int i = 0; i < PRODUCERS; i++)
		pthread_join(t[i], NULL);
	assert_true(woken);
	assert_int_equal(n, total);
	assert_int_equal(consume(&w), 0);
	assert_true(w.wakes > 0 && w.wakes <= total);
	chan_reader_fini(&w.reader);
	sem_destroy(&w.wake);
}

static void many_messages_from_two_threads(void **state)
{
	(void)state;
	crowd_run(CHANNELS, 600000, 50000);
}

/* With room for one message at a time, one that lies in a channel which is not
 * in the list stops everything: no later message hides the mistake. */
static void no_message_is_forgotten(void **state)
{
	(void)state;
	crowd_run(2, 100000, sizeof(struct msg));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_wake_up_for_many_channels),
		cmocka_unit_test(bytes_are_bounded_per_reader),
		cmocka_unit_test(closing_takes_it_out_of_the_list),
		cmocka_unit_test(many_messages_from_two_threads),
		cmocka_unit_test(no_message_is_forgotten),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
