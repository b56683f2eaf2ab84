/* lib/net/loop: edges and levels, muting, waking from another thread, the one timer, signals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/net/loop.h"

static struct seen {
	unsigned begins, woken, n, signals;
	void *ptr;
	unsigned events;
} seen;

static void on_begin(void *ctx)
{
	assert_ptr_equal(ctx, &seen);
	seen.begins++;
}

static void on_ready(void *ctx, void *ptr, unsigned events)
{
	(void)ctx;
	assert_true(seen.begins > 0);
	seen.n++;
	seen.ptr = ptr;
	seen.events = events;
}

static void on_woken(void *ctx)
{
	(void)ctx;
	seen.woken++;
}

static const struct loop_events events = { .begin = on_begin, .ready = on_ready, .woken = on_woken };

static uint32_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint32_t)(t.tv_sec * 1000 + t.tv_nsec / 1000000);
}

static void pass(struct loop *l, int64_t wait_ms)
{
	seen = (struct seen){ .signals = seen.signals };
	loop_pass(l, now_ms(), wait_ms);
}

static void pair(int fd[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
}

static void edges_come_once(void **state)
{
	struct loop *l = loop_new(&events, &seen);
	int fd[2], mark;
	char buf[8];

	(void)state;
	assert_non_null(l);
	pair(fd);
	assert_int_equal(loop_watch(l, fd[0], &mark, LOOP_EDGE), OK);
	pass(l, 0);
	assert_int_equal(seen.n, 1);
	assert_ptr_equal(seen.ptr, &mark);
	assert_int_equal(seen.events, LOOP_WRITABLE);
	pass(l, 0);
	assert_int_equal(seen.n, 0);		/* still writable, and told */
	assert_int_equal(write(fd[1], "ab", 2), 2);
	pass(l, 1000);
	assert_int_equal(seen.n, 1);
	assert_true(seen.events & LOOP_READABLE);
	assert_false(seen.events & LOOP_PEER_DONE);
	pass(l, 0);
	assert_int_equal(seen.n, 0);		/* unread, and told */
	assert_int_equal(write(fd[1], "c", 1), 1);
	pass(l, 1000);
	assert_int_equal(seen.n, 1);		/* more came */
	assert_int_equal(read(fd[0], buf, sizeof buf), 3);
	assert_int_equal(shutdown(fd[1], SHUT_WR), 0);
	pass(l, 1000);
	assert_true(seen.events & LOOP_PEER_DONE);
	assert_false(seen.events & LOOP_BROKEN);
	close(fd[1]);
	pass(l, 1000);
	assert_true(seen.events & LOOP_BROKEN);
	close(fd[0]);
	loop_free(l);
}

static void levels_and_mute(void **state)
{
	struct loop *l = loop_new(&events, &seen);
	int fd[2], mark;

	(void)state;
	pair(fd);
	assert_int_equal(loop_watch(l, fd[0], &mark, LOOP_LEVEL_IN), OK);
	pass(l, 0);
	assert_int_equal(seen.n, 0);
	assert_int_equal(write(fd[1], "x", 1), 1);
	for (int i = 0; i < 3; i++) {
		pass(l, 0);
		assert_int_equal(seen.n, 1);
		assert_int_equal(seen.events, LOOP_READABLE);
	}
	assert_int_equal(loop_rewatch(l, fd[0], &mark, LOOP_MUTED), OK);
	pass(l, 0);
	assert_int_equal(seen.n, 0);
	assert_int_equal(loop_rewatch(l, fd[0], &mark, LOOP_LEVEL_IN), OK);
	pass(l, 0);
	assert_int_equal(seen.n, 1);
	close(fd[0]);
	close(fd[1]);
	pass(l, 0);
	assert_int_equal(seen.n, 0);
	assert_int_equal(loop_watch(l, fd[0], &mark, LOOP_EDGE), ERR_SYS);
	loop_free(l);
}

static void many_at_once(void **state)
{
	enum { PAIRS = 300 };
	static int fd[PAIRS][2];
	struct loop *l = loop_new(&events, &seen);

	(void)state;
	for (int i = 0; i < PAIRS; i++) {
		pair(fd[i]);
		assert_int_equal(loop_watch(l, fd[i][0], fd[i], LOOP_EDGE), OK);
	}
	pass(l, 0);
	assert_int_equal(seen.n, 256);		/* a batch */
	pass(l, 0);
	assert_int_equal(seen.n, PAIRS - 256);
	for (int i = 0; i < PAIRS; i++) {
		close(fd[i][0]);
		close(fd[i][1]);
	}
	loop_free(l);
}

static void *wake_later(void *arg)
{
	struct timespec t = { .tv_nsec = 20000000 };

	nanosleep(&t, NULL);
	loop_wake(arg);
	loop_wake(arg);
	return NULL;
}

static void woken(void **state)
{
	struct loop *l = loop_new(&events, &seen);
	pthread_t t;

	(void)state;
	loop_wake(l);
	pass(l, -1);
	assert_int_equal(seen.woken, 1);
	pass(l, 0);
	assert_int_equal(seen.woken, 0);
	assert_int_equal(pthread_create(&t, NULL, wake_later, l), 0);
	pass(l, -1);		/* would sleep for ever */
	assert_int_equal(seen.woken, 1);
	assert_int_equal(seen.n, 0);
	pthread_join(t, NULL);
	loop_free(l);
}

static void timer(void **state)
{
	struct loop *l = loop_new(&events, &seen);
	uint32_t from = now_ms();

	(void)state;
	/* a pass may come back early, so until the time has come */
	while (now_ms() - from < 60)
		pass(l, (int64_t)60 - (now_ms() - from) > 0 ? (int64_t)60 - (now_ms() - from) : 0);
	assert_in_range(now_ms() - from, 60, 2000);
	/* a later deadline, then a nearer one */
	from = now_ms();
	pass(l, 0);
	loop_wake(l);
	pass(l, 60000);
	assert_int_equal(seen.woken, 1);
	pass(l, 30);
	assert_in_range(now_ms() - from, 25, 5000);
	loop_free(l);
}

static void on_signal(int signo, void *ctx)
{
	assert_int_equal(signo, SIGUSR2);
	assert_ptr_equal(ctx, &seen);
	seen.signals++;
}

static void signals(void **state)
{
	struct loop *l = loop_new(&events, &seen);

	(void)state;
	assert_int_equal(loop_on_signal(l, SIGUSR2, on_signal, &seen), OK);
	seen.signals = 0;
	raise(SIGUSR2);
	for (int i = 0; i < 100 && !seen.signals; i++)
		pass(l, 100);
	assert_int_equal(seen.signals, 1);
	loop_free(l);
}

static void no_memory(void **state)
{
	(void)state;
	mem_fail_from(1);
	assert_null(loop_new(&events, &seen));
	mem_fail_from(0);
	loop_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(edges_come_once),
		cmocka_unit_test(levels_and_mute),
		cmocka_unit_test(many_at_once),
		cmocka_unit_test(woken),
		cmocka_unit_test(timer),
		cmocka_unit_test(signals),
		cmocka_unit_test(no_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
