/* health/eject, rise and wheel: what puts an endpoint out, for how long, what brings it back; and when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "health/eject.h"
#include "health/policy.h"
#include "health/wheel.h"

static const struct eject_rules rules = {
	.on = true, .max_share = 50, .failures = 5, .ratio = 40, .volume = 20, .interval = 10000, .time = 10000, .max_time = 60000,
};

static void failures_in_a_row(void **state)
{
	struct eject e = {0};

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(eject_note(&e, &rules, 0, 1, 1, 1000 + i), EJECT_NO);
	assert_true(eject_watches(&e, &rules));
	assert_int_equal(eject_note(&e, &rules, 1, 0, 0, 1010), EJECT_NO);	/* something went well */
	assert_int_equal(e.run, 0);
	assert_int_equal(eject_note(&e, &rules, 0, 4, 4, 1020), EJECT_NO);
	assert_int_equal(eject_note(&e, &rules, 0, 1, 1, 1030), EJECT_RUN);
	/* a batch: good ones among them, the last six bad */
	e = (struct eject){0};
	assert_int_equal(eject_note(&e, &rules, 100, 6, 6, 1000), EJECT_RUN);
	e = (struct eject){0};
	assert_int_equal(eject_note(&e, &rules, 100, 6, 2, 1000), EJECT_NO);
}

static void ratio_of_an_interval(void **state)
{
	struct eject e = {0};

	(void)state;
	assert_int_equal(eject_note(&e, &rules, 11, 8, 1, 0), EJECT_NO);	/* 19 say nothing */
	assert_int_equal(eject_note(&e, &rules, 1, 0, 0, 5000), EJECT_NO);	/* nor what goes well */
	assert_int_equal(eject_note(&e, &rules, 0, 1, 1, 9999), EJECT_RATIO);	/* 9 of 21 */
	assert_int_equal(eject_note(&e, &rules, 0, 1, 1, 10000), EJECT_NO);	/* another interval */
	assert_int_equal(e.failed, 1);
	e = (struct eject){0};
	assert_int_equal(eject_note(&e, &rules, 61, 39, 1, 0), EJECT_NO);
	e = (struct eject){0};
	assert_int_equal(eject_note(&e, &rules, 60, 40, 1, 0), EJECT_RATIO);
	e = (struct eject){0};
	assert_int_equal(eject_note(&e, &rules, UINT32_MAX, UINT32_MAX, 1, 0), EJECT_RATIO);
	assert_int_equal(eject_note(&e, &rules, UINT32_MAX, UINT32_MAX, UINT32_MAX, 1), EJECT_RUN);	/* nothing wraps */
}

static void off_is_off(void **state)
{
	struct eject_rules r = rules;
	struct eject e = {0};

	(void)state;
	r.on = false;
	assert_int_equal(eject_note(&e, &r, 0, 1000, 1000, 0), EJECT_NO);
	assert_false(eject_watches(&e, &r));
	r = rules;
	r.failures = r.ratio = 0;
	assert_int_equal(eject_note(&e, &r, 0, 1000, 1000, 0), EJECT_NO);
}

/* Each time is longer, time heals, and the first failure after it came back is enough. */
static void damping(void **state)
{
	struct eject e = {0};
	uint32_t now = UINT32_MAX - 30000;	/* over the wrap of the clock */

	(void)state;
	for (unsigned i = 1; i <= 8; i++) {
		uint32_t ms = eject_out(&e, &rules, now);

		assert_int_equal(ms, i < 6 ? i * 10000 : 60000);
		assert_true(e.out && e.until == now + ms);
		assert_int_equal(eject_note(&e, &rules, 0, 50, 50, now), EJECT_NO);	/* requests that it had before */
		now += ms;
		eject_back(&e, &rules, now);
		assert_false(e.out);
		assert_false(eject_calm(&e, &rules, now));
		assert_int_equal(eject_note(&e, &rules, 0, 1, 1, now), EJECT_RUN);
	}
	now += 35000;	/* three of eight are healed */
	assert_int_equal(eject_out(&e, &rules, now), 60000);
	assert_int_equal(e.times, 6);
	eject_back(&e, &rules, now + 60000);
	now += 60000 + 45000;
	assert_int_equal(eject_out(&e, &rules, now), 30000);
	eject_back(&e, &rules, now += 30000);
	assert_int_equal(eject_note(&e, &rules, 1, 0, 0, now), EJECT_NO);	/* the probation is over */
	assert_int_equal(eject_note(&e, &rules, 0, 1, 1, now), EJECT_NO);
	assert_false(eject_calm(&e, &rules, now + 29999));
	assert_true(eject_calm(&e, &rules, now + 30000));
	assert_int_equal(eject_out(&e, &rules, now + 100000), 10000);		/* a clean sheet */
	for (unsigned i = 0; i < 1000; i++)
		eject_out(&e, &rules, now);
	assert_int_equal(e.times, 255);
}

static void shares(void **state)
{
	struct eject_rules r = rules;

	(void)state;
	assert_false(eject_spares(&r, 1, 0));	/* never the last */
	assert_true(eject_spares(&r, 2, 0));
	assert_false(eject_spares(&r, 2, 1));
	assert_true(eject_spares(&r, 4, 1));
	assert_false(eject_spares(&r, 4, 2));
	r.max_share = 10;
	assert_true(eject_spares(&r, 5, 0));	/* 10 % of 5 is one, not none */
	assert_false(eject_spares(&r, 5, 1));
	r.max_share = 100;
	assert_true(eject_spares(&r, 5, 3));
	assert_false(eject_spares(&r, 5, 4));
	r.max_share = 0;
	assert_false(eject_spares(&r, 100, 0));
	assert_false(eject_spares(&r, 0, 0));
}

static void rise_and_fall(void **state)
{
	const struct check_rules c = {.rise = 2, .fall = 3};
	struct rise s = {0};
	static const struct { bool good, changes; } is[] = {
		{false, false}, {false, false}, {true, false}, {false, false}, {false, false}, {false, true}, {false, false},
		{true, false}, {false, false}, {true, false}, {true, true}, {true, false}, {false, false}, {false, false}, {false, true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof is / sizeof *is; i++)
		assert_int_equal(rise_note(&s, &c, is[i].good), is[i].changes);
	assert_true(s.unwell);
}

static void good_statuses(void **state)
{
	const struct check_rules c = {.status = {{200, 299}, {404, 404}}};

	(void)state;
	assert_true(check_status_good(&c, 200) && check_status_good(&c, 299) && check_status_good(&c, 404));
	assert_false(check_status_good(&c, 300) || check_status_good(&c, 403) || check_status_good(&c, 0) || check_status_good(&c, 199));
}

/* On the average a check comes when its interval is over, and each but a tick earlier or later than the jitter. */
static void intervals_are_kept(void **state)
{
	static const uint32_t intervals[] = {100, 250, 1000, 5000, 10000};

	(void)state;
	for (size_t i = 0; i < sizeof intervals / sizeof *intervals; i++) {
		const struct check_rules c = {.interval = intervals[i]};
		uint32_t due = UINT32_MAX - 50 * c.interval, half = (c.interval < 5000 ? 1 : 4) * WHEEL_TICK / 2, random = 1;
		uint64_t all = 0;

		for (unsigned n = 0; n < 10000; n++) {
			uint32_t next = check_after(&c, due, random *= 2654435761u);

			assert_in_range(next - due, c.interval - c.interval / 20 - half, c.interval + c.interval / 20 + half);
			all += next - due;
			due = next;
		}
		assert_in_range(all / 10000, c.interval - c.interval / 20, c.interval + c.interval / 20);
		if (c.interval >= 1000)
			assert_in_range(all / 10000, c.interval - 5, c.interval + 5);
	}
}

static void policies_are_bounded(void **state)
{
	struct health_policy p = {.eject = rules, .check = {.kind = CHECK_HTTP, .request = STR("GET /a"), .host = STR("h"), .fields = STR("A: b\r\n")}};
	struct health_policies t;
	char path[] = "GET /b";
	uint16_t n;

	(void)state;
	assert_int_equal(health_policies_init(&t, &(struct health_policy){.eject = rules}), OK);
	assert_int_equal(health_policies_number(&t, &(struct health_policy){.eject = rules}, &n), OK);
	assert_int_equal(n, 0);
	assert_int_equal(health_policies_number(&t, &p, &n), OK);
	assert_int_equal(n, 1);
	p.check.request = STR(path);
	assert_int_equal(health_policies_number(&t, &p, &n), OK);
	assert_int_equal(n, 2);
	path[5] = 'a';	/* texts are copied */
	assert_int_equal(health_policies_number(&t, &p, &n), OK);
	assert_int_equal(n, 1);
	t.n = UINT16_MAX + 1u;	/* as if so many were there */
	t.at[2]->check.port = 1;
	struct health_policy **few = t.at, **many = test_calloc(t.n, sizeof *many);

	for (uint32_t i = 0; i < t.n; i++)
		many[i] = few[i < 3 ? i : 0];
	t.at = many;
	p.check.port = 2;
	assert_int_equal(health_policies_number(&t, &p, &n), ERR_LIMIT);
	t.at = few;
	t.n = 3;
	test_free(many);
	health_policies_fini(&t);
}

static void wheel_turns(void **state)
{
	struct wheel w;
	struct wheel_item i[3] = {{0}}, *d;
	uint32_t now = UINT32_MAX - 20;

	(void)state;
	wheel_init(&w, now);
	assert_int_equal(wheel_wait(&w, now), -1);
	wheel_add(&w, &i[0], now + 100);
	wheel_add(&w, &i[1], now - 5);		/* over already: at the next look */
	wheel_add(&w, &i[2], now + 100000);	/* several times round */
	assert_true(wheel_wait(&w, now) <= WHEEL_TICK);
	now += WHEEL_TICK;
	d = wheel_due(&w, now);
	assert_ptr_equal(d, &i[1]);
	assert_null(d->next);
	for (uint32_t end = now + 200; now != end && !(d = wheel_due(&w, now)); now++)
		;
	assert_ptr_equal(d, &i[0]);
	assert_true((int32_t)(now - i[0].due) >= 0 && now - i[0].due < 3 * WHEEL_TICK);
	for (unsigned n = 0; n < 2000000 && !(d = wheel_due(&w, now)); n++) {
		int64_t wait = wheel_wait(&w, now);

		assert_true(wait >= 0);
		now += wait ? (uint32_t)wait : WHEEL_TICK;
	}
	assert_ptr_equal(d, &i[2]);
	assert_true((int32_t)(now - i[2].due) >= 0 && now - i[2].due < 3 * WHEEL_TICK);
	wheel_add(&w, &i[0], now + 5);
	now += 1000000;		/* a long sleep */
	assert_ptr_equal(wheel_due(&w, now), &i[0]);
	assert_int_equal(wheel_wait(&w, now), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(failures_in_a_row),
		cmocka_unit_test(ratio_of_an_interval),
		cmocka_unit_test(off_is_off),
		cmocka_unit_test(damping),
		cmocka_unit_test(shares),
		cmocka_unit_test(rise_and_fall),
		cmocka_unit_test(good_statuses),
		cmocka_unit_test(intervals_are_kept),
		cmocka_unit_test(policies_are_bounded),
		cmocka_unit_test(wheel_turns),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
