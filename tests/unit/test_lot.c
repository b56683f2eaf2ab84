/* dispatch/slot and proxy/lot: turns and rounds, and many threads that want what is limited: never beyond it, and nobody waits in vain. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "dispatch/slot.h"
#include "lib/base/mem.h"
#include "proxy/lot.h"

static struct endpoint_table *table;

static struct endpoint *endpoint_new(uint16_t port)
{
	struct endpoint_address a = {.family = ENDPOINT_IP4, .port = port, .ip = {127, 0, 0, 1}};

	return endpoint_get(table, &a);
}

static char told[64];

static void note(void *ctx, unsigned worker)
{
	size_t n = strlen(told);

	(void)ctx;
	told[n] = (char)('0' + worker);
	told[n + 1] = 0;
}

static const char *heard(void)
{
	static char last[64];

	memcpy(last, told, sizeof last);
	told[0] = 0;
	return last;
}

static void limits_are_kept(void **state)
{
	struct endpoint e = {0};

	(void)state;
	assert_true(slot_take(&e, 2, false) && slot_take(&e, 2, false));
	assert_false(slot_take(&e, 2, false));
	assert_true(slot_take(&e, 0, false) && slot_load(&e) == 3);
	assert_false(slot_give(&e));
	atomic_fetch_or(&e.inflight, SLOT_WAITED);
	assert_true(slot_give(&e));
	assert_false(slot_take(&e, 2, false));		/* others wait */
	assert_true(slot_take(&e, 2, true) && slot_load(&e) == 2);
	assert_true(slot_take_conn(&e, 1));
	assert_false(slot_take_conn(&e, 1));
	assert_true(slot_take_conn(&e, 0) && slot_conns(&e) == 2);
	assert_true(slot_give_conn(&e));
	assert_false(slot_counted(&e));
	slot_count(&e);
	assert_true(slot_counted(&e) && slot_load(&e) == 2);
}

static void workers_take_turns(void **state)
{
	struct lot *lot = lot_new(5, note, NULL);
	struct endpoint *e = endpoint_new(1), *other = endpoint_new(2);

	(void)state;
	assert_false(lot_freed(lot, e, 0));
	assert_string_equal(heard(), "");
	assert_int_equal(lot_join(lot, e, 1, 0), OK);
	assert_int_equal(lot_join(lot, e, 3, 0), OK);
	assert_int_equal(lot_join(lot, e, 4, 0), OK);
	assert_true(slot_waited(e) && !slot_waited(other));
	for (int i = 0; i < 5; i++)
		assert_false(lot_freed(lot, e, 0));
	assert_string_equal(heard(), "13413");
	assert_true(lot_freed(lot, e, 4));		/* its own turn: no letter */
	assert_string_equal(heard(), "");
	assert_false(lot_freed(lot, other, 0));
	lot_stir(lot, e);
	lot_stir(lot, other);
	assert_string_equal(heard(), "134");
	lot_leave(lot, e, 1);
	lot_leave(lot, e, 3);
	heard();
	assert_true(slot_waited(e));
	lot_leave(lot, e, 4);
	assert_false(slot_waited(e));
	assert_string_equal(heard(), "");
	endpoint_unref(e);
	endpoint_unref(other);
	lot_free(lot);
	lot_free(NULL);
}

static void what_is_of_no_use_goes_round_once(void **state)
{
	struct lot *lot = lot_new(4, note, NULL);
	struct endpoint *e = endpoint_new(1);

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(lot_join(lot, e, i, 0), OK);
	assert_false(lot_freed(lot, e, 0));
	assert_string_equal(heard(), "1");
	assert_false(lot_pass(lot, e, 1) || lot_pass(lot, e, 2));
	assert_string_equal(heard(), "23");
	assert_true(lot_pass(lot, e, 0));		/* it is told itself */
	assert_false(lot_pass(lot, e, 0));
	assert_string_equal(heard(), "");
	/* one that leaves passes on what it was told of; a queue of it more or less is not leaving */
	assert_int_equal(lot_join(lot, e, 1, 0), OK);
	assert_false(lot_freed(lot, e, 0));
	assert_string_equal(heard(), "1");
	lot_leave(lot, e, 1);
	assert_string_equal(heard(), "");
	lot_leave(lot, e, 1);
	assert_string_equal(heard(), "2");
	lot_leave(lot, e, 2);
	lot_leave(lot, e, 3);
	lot_leave(lot, e, 0);
	endpoint_unref(e);
	lot_free(lot);
}

static void idle_connections_are_wanted(void **state)
{
	struct lot *lot = lot_new(2, note, NULL);
	struct endpoint *e = endpoint_new(1);

	(void)state;
	assert_true(slot_take_conn(e, 1));
	assert_false(lot_wants(lot, e, 0));
	assert_int_equal(lot_join(lot, e, 1, 1), OK);
	assert_true(lot_wants(lot, e, 0));
	assert_false(lot_wants(lot, e, 1));		/* its own turn */
	assert_int_equal(lot_join(lot, e, 0, 2), OK);
	assert_true(lot_wants(lot, e, 0) && !lot_wants(lot, e, 1));	/* the turn is still that of 1 */
	slot_give_conn(e);
	assert_false(lot_wants(lot, e, 0));		/* it may open one */
	lot_leave(lot, e, 0);
	lot_leave(lot, e, 1);
	heard();
	endpoint_unref(e);
	lot_free(lot);
}

static void without_memory_nobody_waits(void **state)
{
	struct lot *lot = lot_new(2, note, NULL);
	struct endpoint *e = endpoint_new(1);

	(void)state;
	mem_fail_from(1);
	assert_null(lot_new(2, note, NULL));
	mem_fail_from(1);
	assert_int_equal(lot_join(lot, e, 0, 0), ERR_MEM);
	mem_fail_from(0);
	assert_false(slot_waited(e));
	endpoint_unref(e);
	lot_free(lot);
}

/* --- threads --- */

#define WORKERS 4
#define EACH 4		/* requests of a worker under way, at most */
#define ROUNDS 3000	/* requests of a worker */
#define LIMIT 2

static struct {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool letter;
} box[WORKERS];

static struct endpoint *ends[2];
static _Atomic int at[2], conns_at[2];
static struct lot *shared;

static void deliver(void *ctx, unsigned worker)
{
	(void)ctx;
	pthread_mutex_lock(&box[worker].lock);
	box[worker].letter = true;
	pthread_cond_signal(&box[worker].cond);
	pthread_mutex_unlock(&box[worker].lock);
}

/* False: nothing came in 20 s. */
static bool wait_letter(unsigned me)
{
	struct timespec until;
	int err = 0;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 20;
	pthread_mutex_lock(&box[me].lock);
	while (!box[me].letter && err == 0)
		err = pthread_cond_timedwait(&box[me].cond, &box[me].lock, &until);
	box[me].letter = false;
	pthread_mutex_unlock(&box[me].lock);
	return err == 0;
}

/* Takes a slot and a connection of one of the two, as slots.c does. */
static int take_any(bool waited)
{
	for (int i = 0; i < 2; i++) {
		if (!slot_take(ends[i], LIMIT, waited))
			continue;
		if (slot_take_conn(ends[i], LIMIT)) {
			assert_true(atomic_fetch_add(&at[i], 1) < LIMIT && atomic_fetch_add(&conns_at[i], 1) < LIMIT);
			return i;
		}
		if (slot_give(ends[i]))
			lot_freed(shared, ends[i], LOT_NOBODY);
	}
	return -1;
}

static void give(int i)
{
	atomic_fetch_sub(&at[i], 1);
	atomic_fetch_sub(&conns_at[i], 1);
	if (slot_give_conn(ends[i]))
		lot_freed(shared, ends[i], LOT_NOBODY);
	if (slot_give(ends[i]))
		lot_freed(shared, ends[i], LOT_NOBODY);
}

static bool room(int i)
{
	return slot_load(ends[i]) < LIMIT && slot_conns(ends[i]) < LIMIT;
}

static void *want(void *arg)
{
	unsigned me = (unsigned)(uintptr_t)arg, running[EACH], n = 0;
	bool joined = false;
	int i;

	for (unsigned left = ROUNDS; left;) {
		while (n < EACH && left && (i = take_any(joined)) >= 0) {
			running[n++] = (unsigned)i;
			left--;
		}
		if (left && n < EACH && !joined) {
			for (i = 0; i < 2; i++)
				assert_int_equal(lot_join(shared, ends[i], me, LIMIT), OK);
			for (i = 0; i < 2; i++)
				if (room(i))
					lot_freed(shared, ends[i], LOT_NOBODY);
			joined = true;
		}
		if (joined && n == 0) {
			for (i = 0; i < 2; i++)
				if (room(i))
					lot_pass(shared, ends[i], me);
			assert_true(wait_letter(me));
			continue;
		}
		while (n)
			give((int)running[--n]);
		for (i = 0; joined && i < 2; i++)
			lot_leave(shared, ends[i], me);
		joined = false;
	}
	return NULL;
}

static void many_threads(void **state)
{
	pthread_t t[WORKERS];

	(void)state;
	shared = lot_new(WORKERS, deliver, NULL);
	for (int i = 0; i < 2; i++)
		ends[i] = endpoint_new((uint16_t)(i + 1));
	for (unsigned i = 0; i < WORKERS; i++) {
		pthread_mutex_init(&box[i].lock, NULL);
		pthread_cond_init(&box[i].cond, NULL);
	}
	for (uintptr_t i = 0; i < WORKERS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, want, (void *)i), 0);
	for (unsigned i = 0; i < WORKERS; i++)
		pthread_join(t[i], NULL);
	for (int i = 0; i < 2; i++) {
		assert_true(slot_load(ends[i]) == 0 && slot_conns(ends[i]) == 0 && !slot_waited(ends[i]));
		endpoint_unref(ends[i]);
	}
	lot_free(shared);
}

static int setup(void **state)
{
	(void)state;
	table = endpoint_table_new();
	return table ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	endpoint_table_free(table);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(limits_are_kept), cmocka_unit_test(workers_take_turns), cmocka_unit_test(what_is_of_no_use_goes_round_once),
		cmocka_unit_test(idle_connections_are_wanted), cmocka_unit_test(without_memory_nobody_waits), cmocka_unit_test(many_threads),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
