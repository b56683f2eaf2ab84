/* proxy/hasher: verdicts, turns, bounds, and threads that ask, answer and forget at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <pthread.h>
#include <semaphore.h>
#include <time.h>
#include "lib/base/mem.h"
#include "proxy/hasher.h"
#include "proxy/known.h"

static struct budget_root root;
static const struct htpasswd *users;	/* alice: secret, bob: correct horse */
static struct hasher *h;
static struct hasher_port port;
static unsigned woken;

static void wake(void *arg)
{
	(void)arg;
	woken++;
}

static int set_up(void **state)
{
	(void)state;
	budget_root_init(&root, 0);
	users = htpasswd_new(STR("alice:$apr1$12345678$0lqb/6VUFP8JY/s/jTrIk0\nbob:{SHA}L55TUjtiq8FBorTWAZ0jy6g129A=\n"), NULL);
	h = hasher_new(0, &root);
	woken = 0;
	hasher_port_init(&port, wake, NULL);
	return users && h ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	hasher_free(h);
	hasher_port_fini(&port);
	htpasswd_unref(users);
	return root.taken == 0 ? 0 : -1;
}

static struct hasher_ask *waits(const char *user, const char *password, uint64_t from, uint64_t now, void *owner)
{
	struct hasher_ask *a = NULL;

	assert_int_equal(hasher_ask(h, &port, users, str_of(user), str_of(password), from, now, owner, &a), HASHER_WAIT);
	assert_non_null(a);
	return a;
}

static enum hasher_verdict asks(const char *user, const char *password, uint64_t from, uint64_t now, void *owner)
{
	struct hasher_ask *a;

	return hasher_ask(h, &port, users, str_of(user), str_of(password), from, now, owner, &a);
}

static void gets(void *owner, enum hasher_verdict verdict)
{
	enum hasher_verdict v;
	void *o;

	assert_true(hasher_take(&port, &o, &v));
	assert_ptr_equal(o, owner);
	assert_int_equal(v, verdict);
}

static void gets_nothing(void)
{
	enum hasher_verdict v;
	void *o;

	assert_false(hasher_take(&port, &o, &v));
}

static int a, b, c;	/* owners */

static void right_and_wrong(void **state)
{
	(void)state;
	assert_false(hasher_step(h, 1));
	waits("alice", "secret", 1, 1, &a);
	gets_nothing();
	assert_true(hasher_step(h, 1));
	assert_int_equal(woken, 1);
	gets(&a, HASHER_RIGHT);
	waits("alice", "Secret", 1, 1, &b);
	waits("mallory", "secret", 1, 1, &c);
	assert_true(hasher_step(h, 1) && hasher_step(h, 1));
	gets(&b, HASHER_WRONG);
	gets(&c, HASHER_WRONG);
	gets_nothing();
	assert_false(hasher_step(h, 1));
}

/* What is right is looked at once in a while, what is wrong each time. */
static void only_what_is_right_is_remembered(void **state)
{
	(void)state;
	waits("bob", "correct horse", 1, 5, &a);
	hasher_step(h, 5);
	gets(&a, HASHER_RIGHT);
	assert_int_equal(asks("bob", "correct horse", 1, 6, &a), HASHER_RIGHT);
	assert_int_equal(asks("bob", "correct horse", 2, 5 + KNOWN_MS, &a), HASHER_RIGHT);
	waits("bob", "correct horsf", 1, 6, &b);
	hasher_step(h, 6);
	gets(&b, HASHER_WRONG);
	waits("bob", "correct horsf", 1, 6, &b);
	hasher_step(h, 6);
	gets(&b, HASHER_WRONG);
	waits("bob", "correct horse", 1, 6 + 2 * KNOWN_MS, &a);
	hasher_step(h, 6 + 2 * KNOWN_MS);
	gets(&a, HASHER_RIGHT);
}

/* An unknown user whose dummy hash is of just that password does not get in, then or later. */
static void an_unknown_user_never_gets_in(void **state)
{
	char name[24];

	(void)state;
	for (int i = 0; i < 8; i++) {
		snprintf(name, sizeof name, "nobody%d", i);
		for (int turn = 0; turn < 2; turn++) {
			waits(name, "secret", 1, 1, &a);
			waits(name, "correct horse", 1, 1, &b);
			assert_true(hasher_step(h, 1) && hasher_step(h, 1));
			gets(&a, HASHER_WRONG);
			gets(&b, HASHER_WRONG);
		}
	}
}

static void the_same_question_is_looked_at_once(void **state)
{
	(void)state;
	waits("alice", "secret", 1, 1, &a);
	waits("alice", "secret", 2, 1, &b);
	waits("alice", "secret", 1, 1, &c);
	assert_true(hasher_step(h, 1));
	assert_false(hasher_step(h, 1));
	gets(&c, HASHER_RIGHT);
	gets(&b, HASHER_RIGHT);
	gets(&a, HASHER_RIGHT);
	gets_nothing();
}

/* The job goes with its last ask; what is decided already comes to nobody. */
static void forgetting(void **state)
{
	struct hasher_ask *first = waits("alice", "secret", 1, 1, &a), *second = waits("alice", "secret", 1, 1, &b);

	(void)state;
	hasher_forget(h, first);
	assert_true(hasher_step(h, 1));
	hasher_forget(h, second);
	gets_nothing();
	first = waits("alice", "no", 1, 1, &a);
	second = waits("alice", "no", 1, 1, &b);
	hasher_forget(h, second);
	hasher_forget(h, first);
	assert_false(hasher_step(h, 1));
	waits("bob", "left behind", 1, 1, &a);	/* for hasher_free */
	waits("bob", "and sent", 0, 1, &b);
	assert_true(hasher_step(h, 1));
}

static void clients_take_turns(void **state)
{
	char password[24];

	(void)state;
	for (int i = 0; i < 20; i++) {
		snprintf(password, sizeof password, "guess %d", i);
		waits("alice", password, 66, 1, &a);
	}
	hasher_step(h, 1);
	gets(&a, HASHER_WRONG);
	waits("alice", "secret", 1, 1, &b);
	waits("bob", "correct horse", 2, 1, &c);
	hasher_step(h, 1);
	hasher_step(h, 1);
	gets(&b, HASHER_RIGHT);
	gets(&c, HASHER_RIGHT);
	hasher_step(h, 1);
	gets(&a, HASHER_WRONG);
}

/* A full queue refuses who filled it, and makes room for others at that one's cost. */
static void a_full_queue(void **state)
{
	enum hasher_verdict v = HASHER_WAIT;
	unsigned n = 0;
	char password[200];

	(void)state;
	memset(password, 'x', sizeof password);
	while (v == HASHER_WAIT && n < 10000) {
		snprintf(password + 100, 100, "guess %u", n++);
		v = asks("alice", password, 66, 1, &a);
	}
	assert_int_equal(v, HASHER_BUSY);
	assert_in_range(n, 100, 400);
	assert_true(root.taken <= HASHER_QUEUE + BUDGET_PORTION);
	gets_nothing();
	waits("alice", "secret", 1, 1, &b);
	gets(&a, HASHER_BUSY);
	gets_nothing();
	hasher_step(h, 1);		/* the first guess: its round is now */
	gets(&a, HASHER_WRONG);
	hasher_step(h, 1);
	gets(&b, HASHER_RIGHT);
}

static void who_waits_too_long_is_not_looked_at(void **state)
{
	(void)state;
	waits("alice", "secret", 1, 1, &a);
	waits("bob", "correct horse", 1, 1000, &b);
	assert_true(hasher_step(h, 1 + HASHER_WAIT_MS));
	gets(&a, HASHER_BUSY);
	assert_true(hasher_step(h, 1 + HASHER_WAIT_MS));
	gets(&b, HASHER_RIGHT);
}

static void no_memory(void **state)
{
	struct hasher_ask *ask;
	size_t n;

	(void)state;
	mem_fail_from(1);
	assert_null(hasher_new(1, &root));
	assert_false(hasher_step(h, 1));	/* no room for a look */
	for (n = 1; hasher_ask(h, &port, users, STR("bob"), STR("x"), 1, 1, &a, &ask) == HASHER_FAILED; n++)
		mem_fail_from(n);
	mem_fail_from(1);
	assert_true(n > 2);
	assert_true(hasher_step(h, 1));
	gets(&a, HASHER_FAILED);
	mem_fail_from(0);
	waits("bob", "correct horse", 1, 1, &a);
	hasher_step(h, 1);
	gets(&a, HASHER_RIGHT);
}

/* --- threads --- */

struct worker {
	pthread_t thread;
	struct hasher_port port;
	sem_t news;
	unsigned seed, right, wrong, busy, forgotten;
};

static void worker_wake(void *arg)
{
	sem_post(&((struct worker *)arg)->news);
}

/* Takes one verdict, of a question in `slot`. */
static void settle(struct worker *w, struct hasher_ask **slot, unsigned *waiting)
{
	enum hasher_verdict v;
	void *owner;

	while (!hasher_take(&w->port, &owner, &v))
		sem_wait(&w->news);
	*(struct hasher_ask **)owner = NULL;
	assert_in_range((uintptr_t)owner, (uintptr_t)slot, (uintptr_t)(slot + 7));
	(*waiting)--;
	w->right += v == HASHER_RIGHT;
	w->wrong += v == HASHER_WRONG;
	w->busy += v == HASHER_BUSY;
}

/* As the threads read it. */
static uint64_t clock_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	struct hasher_ask *slot[8] = {0};
	unsigned waiting = 0;

	for (unsigned i = 0; i < 600; i++) {
		unsigned r = (w->seed = w->seed * 1664525 + 1013904223) >> 8, s = r % 8;
		char password[24];
		struct str p = r % 3 ? (struct str){ password, (size_t)snprintf(password, sizeof password, "%u", r % 50) }
				     : STR("secret");

		if (slot[s] && r % 5 == 0) {
			hasher_forget(h, slot[s]);
			slot[s] = NULL;
			waiting--;
			w->forgotten++;
		}
		while (slot[s])
			settle(w, slot, &waiting);
		switch (hasher_ask(h, &w->port, users, STR("alice"), p, r % 3, clock_ms(), &slot[s], &slot[s])) {
		case HASHER_WAIT: waiting++; break;
		case HASHER_RIGHT: w->right++; break;
		case HASHER_BUSY: w->busy++; break;
		default: assert_true(false);
		}
	}
	while (waiting)
		settle(w, slot, &waiting);
	return NULL;
}

static void threads(void **state)
{
	enum { WORKERS = 4 };
	struct worker w[WORKERS] = {0};
	struct hasher *alone = h;
	unsigned right = 0, wrong = 0;

	(void)state;
	h = hasher_new(HASHER_THREADS_MAX, &root);
	for (unsigned i = 0; i < WORKERS; i++) {
		w[i].seed = i;
		sem_init(&w[i].news, 0, 0);
		hasher_port_init(&w[i].port, worker_wake, &w[i]);
		assert_int_equal(pthread_create(&w[i].thread, NULL, worker_main, &w[i]), 0);
	}
	for (unsigned i = 0; i < WORKERS; i++)
		pthread_join(w[i].thread, NULL);
	hasher_free(h);
	h = alone;
	for (unsigned i = 0; i < WORKERS; i++) {
		hasher_port_fini(&w[i].port);
		sem_destroy(&w[i].news);
		right += w[i].right;
		wrong += w[i].wrong;
		assert_int_equal(w[i].right + w[i].wrong + w[i].busy + w[i].forgotten, 600);
	}
	if (right < 300 || wrong < 100)
		fail_msg("%u right, %u wrong", right, wrong);
}

/* Ended while its thread is at work and more waits. */
static void ending_at_work(void **state)
{
	struct hasher *alone = h;

	(void)state;
	h = hasher_new(1, &root);
	for (int i = 0; i < 30; i++) {
		char password[24];

		snprintf(password, sizeof password, "guess %d", i);
		waits("alice", password, 1, clock_ms(), &a);
	}
	hasher_free(h);
	h = alone;
}

static void how_many_threads(void **state)
{
	(void)state;
	assert_int_equal(hasher_threads(1), 1);
	assert_int_equal(hasher_threads(2), 1);
	assert_int_equal(hasher_threads(64), HASHER_THREADS_MAX);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(right_and_wrong),
		TEST(only_what_is_right_is_remembered),
		TEST(an_unknown_user_never_gets_in),
		TEST(the_same_question_is_looked_at_once),
		TEST(forgetting),
		TEST(clients_take_turns),
		TEST(a_full_queue),
		TEST(who_waits_too_long_is_not_looked_at),
		TEST(no_memory),
		TEST(threads),
		TEST(ending_at_work),
		cmocka_unit_test(how_many_threads),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
