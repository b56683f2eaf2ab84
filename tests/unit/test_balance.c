/* dispatch/balance: who is chosen, how often, and what changes when one comes or goes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "dispatch/balance.h"
#include "dispatch/slot.h"
#include "lib/base/mem.h"

#define MOST 1000

static struct endpoint_table *table;
static struct service_endpoint_spec specs[MOST];
static struct balance balance;
static unsigned got[MOST];

static int begin(void **state)
{
	(void)state;
	table = endpoint_table_new();
	balance_init(&balance, 42);
	for (uint32_t i = 0; i < MOST; i++)
		specs[i] = (struct service_endpoint_spec){
			.address = {.family = ENDPOINT_IP4, .port = 80, .ip = {10, 0, (uint8_t)(i >> 8), (uint8_t)i}}, .weight = 1,
		};
	return table ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	balance_fini(&balance);
	endpoint_table_free(table);
	return 0;
}

static struct service *service_with(uint8_t kind, uint32_t n)
{
	struct service_spec spec = {.name = STR("s"), .endpoints = specs, .n_endpoints = n, .rules = {.balance = kind}};
	struct service *s;

	if (kind == BALANCE_STICKY)
		spec.rules.by_name = STR("home");
	s = service_new(table, &spec, NULL);
	assert_non_null(s);
	return s;
}

static struct endpoint *at(const struct service *s, uint32_t i)
{
	return service_set(s)->at[i].endpoint;
}

/* With whatever was put in flight. */
static void let_go(struct service *s)
{
	for (uint32_t i = 0; i < service_set(s)->n; i++)
		atomic_store(&at(s, i)->inflight, 0);
	service_unref(s);
}

static void set_down(const struct service *s, uint32_t i, bool down)
{
	atomic_store(&at(s, i)->verdict, down ? VERDICT_DOWN | 1 : 0);
}

static uint32_t pick(const struct service *s, uint32_t key, const struct endpoint_tried *tried)
{
	struct endpoint *e = balance_pick(&balance, s, key, tried);
	uint32_t i = 0;

	assert_non_null(e);
	while (at(s, i) != e)
		i++;
	return i;
}

/* `n` choices, counted in `got`. */
static void picks(const struct service *s, unsigned n, const struct endpoint_tried *tried)
{
	memset(got, 0, sizeof got);
	while (n--)
		got[pick(s, 0, tried)]++;
}

/* The places chosen in a row, as digits. */
static const char *row(const struct service *s, const struct endpoint_tried *tried, unsigned n)
{
	static char out[64];

	for (unsigned i = 0; i < n; i++)
		out[i] = (char)('0' + pick(s, 0, tried));
	out[n] = 0;
	return out;
}

/* The sum of squares that the chi-square test takes, with shares by `weight`. */
static double squares(const unsigned *count, uint32_t n, unsigned total, const uint16_t *weight)
{
	double sum = 0, weights = 0;

	for (uint32_t i = 0; i < n; i++)
		weights += weight[i];
	for (uint32_t i = 0; i < n; i++) {
		double want = total * weight[i] / weights, off = count[i] - want;

		sum += off * off / want;
	}
	return sum;
}

static void weigh(uint32_t n, const uint16_t *weight)
{
	for (uint32_t i = 0; i < n; i++)
		specs[i].weight = weight[i];
}

/* --- all kinds --- */

static void who_is_not_there_is_not_chosen(void **state)
{
	(void)state;
	for (uint8_t kind = BALANCE_LEAST; kind <= BALANCE_STICKY; kind++) {
		struct service *none = service_with(kind, 0), *s;

		assert_null(balance_pick(&balance, none, 0, NULL));
		assert_null(balance_pick(&balance, none, 7, NULL));
		specs[0].weight = 0;
		specs[1].state = ENDPOINT_DRAIN;
		s = service_with(kind, 2);
		assert_null(balance_pick(&balance, s, 0, NULL));
		assert_null(balance_pick(&balance, s, 7, NULL));
		let_go(s);
		let_go(none);
		specs[0].weight = 1;
		specs[1].state = ENDPOINT_READY;
	}
}

/* Up before new, new before ready, ready before serving, serving before terminating. */
static void the_order_of_preference(void **state)
{
	(void)state;
	for (uint8_t kind = BALANCE_LEAST; kind <= BALANCE_STICKY; kind++) {
		for (uint32_t key = 0; key <= 5; key += 5) {
			struct endpoint_tried tried = {0};
			struct service *s;

			specs[0].state = ENDPOINT_TERMINATING;
			specs[1].state = ENDPOINT_SERVING;
			specs[2].state = ENDPOINT_READY;
			specs[3].state = ENDPOINT_DRAIN;
			s = service_with(kind, 4);
			for (unsigned i = 0; i < 20; i++)
				assert_int_equal(pick(s, key, NULL), 2);
			endpoint_tried_add(&tried, at(s, 2));
			assert_int_equal(pick(s, key, &tried), 1);
			set_down(s, 1, true);
			assert_int_equal(pick(s, key, &tried), 0);
			endpoint_tried_add(&tried, at(s, 0));
			assert_int_equal(pick(s, key, &tried), 2);	/* again, rather than one that is down */
			set_down(s, 2, true);
			assert_int_equal(pick(s, key, NULL), 0);
			set_down(s, 0, true);
			assert_int_equal(pick(s, key, NULL), 2);	/* all are down: as if none was */
			assert_int_equal(pick(s, key, &tried), 1);
			endpoint_tried_add(&tried, at(s, 1));
			assert_int_equal(pick(s, key, &tried), 2);
			let_go(s);
		}
	}
}

static void equal_inputs_choose_alike(void **state)
{
	struct balance other;

	(void)state;
	balance_init(&other, 42);
	weigh(5, (uint16_t[]){3, 1, 4, 1, 5});
	for (uint8_t kind = BALANCE_LEAST; kind <= BALANCE_STICKY; kind++) {
		struct service *s = service_with(kind, 5);

		for (uint32_t i = 0; i < 50; i++)
			assert_ptr_equal(balance_pick(&balance, s, i % 3, NULL), balance_pick(&other, s, i % 3, NULL));
		let_go(s);
	}
	balance_fini(&other);
}

/* --- least --- */

static void least_spreads_evenly(void **state)
{
	static const uint16_t ones[10] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
	struct service *s;

	(void)state;
	for (uint32_t n = 1; n <= 10; n++) {
		s = service_with(BALANCE_LEAST, n);
		picks(s, 10000, NULL);
		assert_true(squares(got, n, 10000, ones) < 28);	/* chi-square with 9 degrees: beyond in one of a thousand */
		if (n > 2) {
			set_down(s, 1, true);
			picks(s, 10000, NULL);
			assert_int_equal(got[1], 0);
			got[1] = got[n - 1];
			assert_true(squares(got, n - 1, 10000, ones) < 28);
			set_down(s, 1, false);
		}
		let_go(s);
	}
}

static void least_heeds_weights(void **state)
{
	static const uint16_t rows[][4] = {{1, 3, 1, 5}, {100, 1, 1, 1}, {65535, 1000, 30000, 7}, {2, 2, 2, 1}};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct service *s;

		weigh(4, rows[i]);
		s = service_with(BALANCE_LEAST, 4);
		picks(s, 50000, NULL);
		assert_true(squares(got, 4, 50000, rows[i]) < 17);
		let_go(s);
	}
}

/* Whoever has more in flight is not the better of two; with weights, for its weight. */
static void least_heeds_what_is_in_flight(void **state)
{
	struct service *s;

	(void)state;
	s = service_with(BALANCE_LEAST, 2);
	atomic_store(&at(s, 0)->inflight, 1);
	assert_string_equal(row(s, NULL, 12), "111111111111");
	atomic_store(&at(s, 1)->inflight, 2);
	assert_string_equal(row(s, NULL, 12), "000000000000");
	let_go(s);
	weigh(2, (uint16_t[]){1, 3});
	s = service_with(BALANCE_LEAST, 2);
	atomic_store(&at(s, 0)->inflight, 3);
	atomic_store(&at(s, 1)->inflight, 8);
	assert_string_equal(row(s, NULL, 12), "111111111111");
	atomic_store(&at(s, 1)->inflight, 10);
	assert_string_equal(row(s, NULL, 12), "000000000000");
	set_down(s, 0, true);
	assert_string_equal(row(s, NULL, 12), "111111111111");
	let_go(s);
}

/* Two choices keep the longest queue short: by chance alone it would be about 6 of 1000 on 1000. */
static void two_choices_bound_the_load(void **state)
{
	struct service *s = service_with(BALANCE_LEAST, MOST);
	uint32_t most = 0;

	(void)state;
	for (unsigned i = 0; i < MOST; i++) {
		struct endpoint *e = at(s, pick(s, 0, NULL));

		assert_true(slot_take(e, 0, false));
		most = slot_load(e) > most ? slot_load(e) : most;
	}
	assert_in_range(most, 2, 4);
	let_go(s);
}

/* --- round robin --- */

static void equals_take_turns(void **state)
{
	struct endpoint_tried tried = {0};
	struct service *s = service_with(BALANCE_ROUND_ROBIN, 4);

	(void)state;
	while (pick(s, 0, NULL) != 3)
		;
	assert_string_equal(row(s, NULL, 9), "012301230");
	set_down(s, 1, true);
	assert_string_equal(row(s, NULL, 7), "2302302");
	set_down(s, 1, false);
	endpoint_tried_add(&tried, at(s, 3));
	assert_string_equal(row(s, &tried, 7), "0120120");
	let_go(s);
}

static void weighted_turns_are_exact_and_smooth(void **state)
{
	static const uint16_t weight[4] = {5, 1, 1, 3};
	struct service *s;
	unsigned run = 0, longest = 0;
	uint32_t last = 9;

	(void)state;
	weigh(4, weight);
	s = service_with(BALANCE_ROUND_ROBIN, 4);
	for (unsigned round = 0; round < 20; round++) {
		memset(got, 0, sizeof got);
		for (unsigned i = 0; i < 10; i++) {
			uint32_t one = pick(s, 0, NULL);

			got[one]++;
			run = one == last ? run + 1 : 1;
			longest = run > longest ? run : longest;
			last = one;
		}
		for (uint32_t i = 0; i < 4; i++)
			assert_int_equal(got[i], weight[i]);
	}
	assert_in_range(longest, 1, 2);	/* never five in a row */
	set_down(s, 3, true);
	picks(s, 7, NULL);
	for (uint32_t i = 0; i < 3; i++)
		assert_in_range(got[i], weight[i] - 1u, weight[i] + 1u);
	picks(s, 700, NULL);
	assert_in_range(got[0], 499, 501);
	assert_int_equal(got[3], 0);
	set_down(s, 3, false);
	picks(s, 1000, NULL);
	assert_in_range(got[3], 298, 302);
	let_go(s);
}

static void the_first_turn_is_by_chance(void **state)
{
	static const uint16_t weight[3] = {1, 2, 5}, ones[3] = {1, 1, 1};
	struct service *s, *equal = service_with(BALANCE_ROUND_ROBIN, 3);

	(void)state;
	weigh(3, weight);
	s = service_with(BALANCE_ROUND_ROBIN, 3);
	memset(got, 0, sizeof got);
	for (uint64_t seed = 0; seed < 8000; seed++) {	/* workers, or sets that live for one request */
		balance_fini(&balance);
		balance_init(&balance, seed * UINT64_C(0x2545f4914f6cdd1d));
		got[pick(s, 0, NULL)]++;
		got[10 + pick(equal, 0, NULL)]++;
	}
	assert_true(squares(got, 3, 8000, weight) < 14);
	assert_true(squares(got + 10, 3, 8000, ones) < 14);
	let_go(s);
	let_go(equal);
}

static void turns_follow_the_set(void **state)
{
	struct service *s;
	struct endpoint_set *old;

	(void)state;
	weigh(3, (uint16_t[]){60000, 1, 1});
	s = service_with(BALANCE_ROUND_ROBIN, 3);
	picks(s, 1000, NULL);
	assert_in_range(got[0], 999, 1000);
	for (unsigned i = 0; i < 20; i++) {	/* a set may lie where the one before the last lay */
		weigh(3, i & 1 ? (uint16_t[]){1, 2, 1} : (uint16_t[]){1, 1, 2});
		old = service_swap(s, endpoint_set_new(table, specs, 3));
		endpoint_set_free(old);
		picks(s, 4, NULL);
		for (uint32_t k = 0; k < 3; k++)
			assert_int_equal(got[k], specs[k].weight);
	}
	weigh(3, (uint16_t[]){7, 7, 7});
	old = service_swap(s, endpoint_set_new(table, specs, 2));
	endpoint_set_free(old);
	picks(s, 4, NULL);
	assert_true(got[0] == 2 && got[1] == 2);
	let_go(s);
	s = service_with(BALANCE_ROUND_ROBIN, 3);	/* another one, with the number that this one had */
	picks(s, 3, NULL);
	assert_true(got[0] == 1 && got[1] == 1 && got[2] == 1);
	balance_forget(&balance);
	picks(s, 3, NULL);
	assert_true(got[0] == 1 && got[1] == 1 && got[2] == 1);
	let_go(s);
}

static void nothing_is_kept_for_the_quiet(void **state)
{
	struct service *least = service_with(BALANCE_LEAST, 2), *turns = service_with(BALANCE_ROUND_ROBIN, 2);

	(void)state;
	picks(least, 10, NULL);
	assert_null(balance.turns);
	mem_fail_from(1);
	picks(turns, 1000, NULL);	/* without memory for its turns: by chance */
	mem_fail_from(0);
	assert_in_range(got[0], 400, 600);
	picks(turns, 1000, NULL);
	assert_int_equal(got[0], 500);
	assert_non_null(balance.turns);
	let_go(least);
	let_go(turns);
}

/* --- hash --- */

enum { KEYS = 20000 };
static uint32_t before[KEYS];

static void hash_all(const struct service *s)
{
	memset(got, 0, sizeof got);
	for (uint32_t k = 0; k < KEYS; k++)
		got[before[k] = pick(s, k * 2654435761u + 1, NULL)]++;
}

static void hash_shares_are_those_of_the_weights(void **state)
{
	static const uint16_t rows[][5] = {{1, 1, 1, 1, 1}, {1, 2, 3, 4, 10}, {65535, 65535, 1000, 20000, 40000}};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct service *s;

		weigh(5, rows[i]);
		s = service_with(BALANCE_HASH, 5);
		hash_all(s);
		assert_true(squares(got, 5, KEYS, rows[i]) < 18);
		let_go(s);
	}
}

/* One of ten goes, is down, drains, or gets half its weight: of its keys alone some move. */
static void few_keys_move(void **state)
{
	static const uint16_t nines[9] = {2, 2, 2, 2, 2, 2, 2, 2, 2};
	struct service *s, *less;
	unsigned moved = 0;

	(void)state;
	for (uint32_t i = 0; i < 10; i++)
		specs[i].weight = 2;
	s = service_with(BALANCE_HASH, 10);
	hash_all(s);
	assert_in_range(got[9], KEYS / 10 * 0.9, KEYS / 10 * 1.1);
	less = service_with(BALANCE_HASH, 9);
	memset(got, 0, sizeof got);
	for (uint32_t k = 0; k < KEYS; k++) {
		uint32_t now = pick(less, k * 2654435761u + 1, NULL);

		if (before[k] == 9)
			got[now]++, moved++;
		else
			assert_int_equal(now, before[k]);
		set_down(s, 9, true);
		assert_int_equal(pick(s, k * 2654435761u + 1, NULL), now);	/* down is as good as gone */
		set_down(s, 9, false);
	}
	assert_true(squares(got, 9, moved, nines) < 27);	/* and they spread over all others */
	let_go(less);
	specs[9].state = ENDPOINT_TERMINATING;
	less = service_with(BALANCE_HASH, 10);
	for (uint32_t k = 0; k < KEYS; k++) {
		uint32_t now = pick(less, k * 2654435761u + 1, NULL);

		assert_true(now != 9 && (now == before[k] || before[k] == 9));
	}
	let_go(less);
	specs[9].state = ENDPOINT_READY;
	specs[9].weight = 1;
	less = service_with(BALANCE_HASH, 10);
	moved = 0;
	for (uint32_t k = 0; k < KEYS; k++) {
		uint32_t now = pick(less, k * 2654435761u + 1, NULL);

		moved += now != before[k];
		assert_true(now == before[k] || before[k] == 9);
	}
	assert_in_range(moved, KEYS / 10 * 0.42, KEYS / 10 * 0.55);
	let_go(less);
	let_go(s);
}

static void hash_tries_another(void **state)
{
	struct service *s = service_with(BALANCE_HASH, 5);

	(void)state;
	for (uint32_t key = 1; key < 200; key++) {
		struct endpoint_tried tried = {0};
		bool seen[5] = {0};

		for (unsigned i = 0; i < 5; i++) {
			uint32_t one = pick(s, key, &tried);

			assert_false(seen[one]);
			seen[one] = true;
			endpoint_tried_add(&tried, at(s, one));
		}
		assert_int_equal(pick(s, key, &tried), pick(s, key, NULL));
	}
	let_go(s);
}

static void without_a_key_it_is_least(void **state)
{
	struct service *s = service_with(BALANCE_HASH, 2);

	(void)state;
	picks(s, 10000, NULL);
	assert_in_range(got[0], 4800, 5200);
	atomic_store(&at(s, 0)->inflight, 9);
	assert_string_equal(row(s, NULL, 8), "11111111");
	let_go(s);
}

/* --- room --- */

static bool room(void *ctx, const struct endpoint *e)
{
	return !strchr(ctx, '0' + e->address[3]);
}

/* The places of what is chosen of those with room, '-' for none; `full`: those without. */
static const char *free_row(const struct service *s, uint32_t key, const struct endpoint_tried *tried, const char *full, unsigned n)
{
	static char out[32];

	for (unsigned i = 0; i < n; i++) {
		struct endpoint *e = balance_free(&balance, s, key, tried, room, (void *)(uintptr_t)full);

		out[i] = e ? (char)('0' + e->address[3]) : '-';
	}
	out[n] = 0;
	return out;
}

static void those_with_room_are_chosen(void **state)
{
	struct service *none = service_with(BALANCE_LEAST, 0), *s = service_with(BALANCE_LEAST, 4);
	struct endpoint_tried tried = {0};

	(void)state;
	assert_string_equal(free_row(none, 0, NULL, "", 1), "-");
	assert_string_equal(free_row(s, 0, NULL, "0123", 2), "--");
	assert_string_equal(free_row(s, 0, NULL, "023", 3), "111");
	for (uint32_t i = 0; i < 4; i++)
		atomic_store(&at(s, i)->inflight, 4 - i);
	assert_string_equal(free_row(s, 0, NULL, "", 3), "333");		/* who has least */
	assert_string_equal(free_row(s, 0, NULL, "3", 3), "222");
	/* those that are down are none to wait less for, while one is up */
	for (uint32_t i = 0; i < 4; i++)
		set_down(s, i, i != 1);
	assert_string_equal(free_row(s, 0, NULL, "1", 2), "--");
	set_down(s, 1, true);
	assert_string_equal(free_row(s, 0, NULL, "1", 2), "33");
	/* nor those that were tried, while another was not */
	for (uint32_t i = 0; i < 4; i++)
		set_down(s, i, false);
	endpoint_tried_add(&tried, at(s, 0));
	assert_string_equal(free_row(s, 0, &tried, "123", 2), "--");
	let_go(none);
	let_go(s);
}

static void keys_go_where_room_is(void **state)
{
	struct service *hash = service_with(BALANCE_HASH, 4), *sticky = service_with(BALANCE_STICKY, 4);
	char home[2] = {0};

	(void)state;
	for (uint32_t key = 1; key < 50; key++) {
		uint32_t first = pick(hash, key, NULL);
		const char *next;

		home[0] = (char)('0' + first);
		assert_int_equal(free_row(hash, key, NULL, "", 1)[0], home[0]);
		next = free_row(hash, key, NULL, home, 3);
		assert_true(next[0] != home[0] && next[0] == next[1] && next[1] == next[2]);
	}
	/* a session waits where it is, and goes when that is down */
	assert_string_equal(free_row(sticky, service_set(sticky)->at[2].id, NULL, "2", 1), "-");
	set_down(sticky, 2, true);
	assert_string_not_equal(free_row(sticky, service_set(sticky)->at[2].id, NULL, "2", 1), "-");
	let_go(hash);
	let_go(sticky);
}

/* Who has more than its part goes past: the rest of the keys stay where they are. */
static void a_bound_is_kept(void **state)
{
	struct service_spec spec = {.name = STR("s"), .endpoints = specs, .n_endpoints = 5, .rules = {.balance = BALANCE_HASH, .bound = 125}};
	struct service *s, *free_one = service_with(BALANCE_HASH, 5);
	unsigned moved = 0;
	uint32_t load[5] = {0};

	(void)state;
	s = service_new(table, &spec, NULL);
	for (uint32_t k = 0; k < 1000; k++) {
		uint32_t key = k * 2654435761u + 1, one = pick(s, key, NULL);

		moved += one != pick(free_one, key, NULL);
		assert_true(load[one] < 1.25 * (k + 1) / 5);
		load[one]++;
		atomic_fetch_add(&at(s, one)->inflight, 1);
	}
	assert_in_range(moved, 1, 250);
	for (uint32_t k = 1; k < 100; k++) {	/* one key alone, as if all wanted the same */
		uint32_t one = pick(s, 7, NULL);

		assert_true(load[one] < 1.25 * (1000 + k) / 5);
		load[one]++;
		atomic_fetch_add(&at(s, one)->inflight, 1);
	}
	for (uint32_t i = 0; i < 5; i++)
		atomic_fetch_sub(&at(s, i)->inflight, load[i]);
	for (uint32_t k = 1; k < 100; k++)
		assert_int_equal(pick(s, k, NULL), pick(free_one, k, NULL));	/* nothing in flight: as without a bound */
	service_unref(s);
	service_unref(free_one);
}

/* --- sticky --- */

static void sessions_stay(void **state)
{
	struct endpoint_tried tried = {0};
	struct service *s;
	uint32_t home;

	(void)state;
	specs[0].weight = 0;
	specs[1].state = ENDPOINT_DRAIN;
	specs[2].state = ENDPOINT_TERMINATING;
	s = service_with(BALANCE_STICKY, 6);
	for (uint32_t i = 0; i < 6; i++) {
		home = service_set(s)->at[i].id;
		atomic_store(&at(s, i)->inflight, 1000);
		for (unsigned k = 0; k < 10; k++)
			assert_int_equal(pick(s, home, NULL), i);
		atomic_store(&at(s, i)->inflight, 0);
		set_down(s, i, true);
		assert_in_range(pick(s, home, NULL), 3, 5);
		assert_int_not_equal(pick(s, home, NULL), i);
		set_down(s, i, false);
	}
	home = service_set(s)->at[1].id;
	endpoint_tried_add(&tried, at(s, 1));
	assert_in_range(pick(s, home, &tried), 3, 5);
	for (uint32_t i = 0; i < 6; i++)
		set_down(s, i, true);
	assert_int_equal(pick(s, home, NULL), 1);	/* all are down: then it may as well stay */
	assert_in_range(pick(s, home, &tried), 3, 5);
	for (uint32_t i = 0; i < 6; i++)
		set_down(s, i, false);
	for (uint32_t key = 1; key < 100; key++)
		assert_in_range(pick(s, key, NULL), 3, 5);	/* somebody who is not there */
	let_go(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
		TEST(who_is_not_there_is_not_chosen), TEST(the_order_of_preference), TEST(equal_inputs_choose_alike),
		TEST(least_spreads_evenly), TEST(least_heeds_weights), TEST(least_heeds_what_is_in_flight),
		TEST(two_choices_bound_the_load),
		TEST(equals_take_turns), TEST(weighted_turns_are_exact_and_smooth), TEST(the_first_turn_is_by_chance),
		TEST(turns_follow_the_set), TEST(nothing_is_kept_for_the_quiet),
		TEST(hash_shares_are_those_of_the_weights), TEST(few_keys_move), TEST(hash_tries_another), TEST(without_a_key_it_is_least), TEST(a_bound_is_kept),
		TEST(those_with_room_are_chosen), TEST(keys_go_where_room_is), TEST(sessions_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
