/* dispatch/retry: when a request may be sent again, and how many may be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "dispatch/retry.h"

enum { GET = 1, POST = 3 };

static const struct retry_policy plain = {
	.attempts = 2, .on = 1 << RETRY_CONNECT | 1 << RETRY_RESET, .methods = 1 << GET,
};
static const struct retry_policy full = {
	.attempts = 3, .on = 0xf, .same = true, .n_statuses = 2, .status = {503, 429}, .methods = 1 << GET,
	.base_ms = 20, .max_ms = 100,
};

/* A GET that was sent, and may go elsewhere. */
static struct retry_case sent(enum retry_event event)
{
	return (struct retry_case){.event = (uint8_t)event, .method = GET, .sent = true, .kept = true, .untried = true,
				   .left_ms = UINT32_MAX};
}

static enum retry_why judge(const struct retry_policy *p, struct retry_case c, struct retry_plan *plan)
{
	struct retry_plan none;

	return retry_judge(p, &c, plan ? plan : &none);
}

/* Every case of a small world: what must never be, whatever the policy. */
static void never_twice_when_that_does_harm(void **state)
{
	unsigned allowed = 0;

	(void)state;
	for (unsigned bits = 0; bits < 1u << 9; bits++) {
		struct retry_case c = {
			.event = (uint8_t)(bits & 3), .method = bits & 4 ? GET : POST, .sent = bits & 8, .kept = bits & 16,
			.passed = bits & 32, .stale = bits & 64, .untried = bits & 128, .status = 503, .left_ms = UINT32_MAX,
		};
		struct retry_plan plan;

		if (retry_judge(bits & 256 ? &full : &plain, &c, &plan) != RETRY_WHY_NONE)
			continue;
		allowed++;
		assert_false(c.passed);
		if (c.sent) {
			assert_int_equal(c.method, GET);
			assert_true(c.kept);
		}
		if (!(bits & 256))	/* without a policy: elsewhere, or once more on a fresh connection */
			assert_true(c.untried || c.stale);
		assert_int_equal(plan.charged, c.sent && c.event != RETRY_CONNECT && !c.stale);
	}
	assert_true(allowed > 20);
}

static void what_was_not_sent_has_no_method(void **state)
{
	struct retry_case c = sent(RETRY_CONNECT);
	struct retry_plan plan;

	(void)state;
	c.method = POST;
	c.sent = c.kept = false;
	assert_int_equal(judge(&plain, c, &plan), RETRY_WHY_NONE);
	assert_int_equal(plan.wait_ms, 0);
	assert_false(plan.charged);
	c.sent = true;
	assert_int_equal(judge(&plain, c, NULL), RETRY_WHY_METHOD);
	c.method = GET;
	assert_int_equal(judge(&plain, c, NULL), RETRY_WHY_BODY);
}

static void each_reason(void **state)
{
	struct retry_policy off = full;
	struct retry_case c = sent(RETRY_STATUS);

	(void)state;
	off.attempts = 0;
	c.status = 503;
	assert_int_equal(judge(&full, c, NULL), RETRY_WHY_NONE);
	assert_int_equal(judge(&off, c, NULL), RETRY_WHY_OFF);
	assert_int_equal(judge(&plain, c, NULL), RETRY_WHY_OFF);
	assert_int_equal(judge(&plain, sent(RETRY_TIMEOUT), NULL), RETRY_WHY_OFF);
	c.status = 502;
	assert_int_equal(judge(&full, c, NULL), RETRY_WHY_OFF);
	c.status = 429;
	c.tries = 3;
	assert_int_equal(judge(&full, c, NULL), RETRY_WHY_ATTEMPTS);
	c.tries = 0;
	c.passed = true;
	assert_int_equal(judge(&full, c, NULL), RETRY_WHY_PASSED);
	c = sent(RETRY_RESET);
	c.untried = false;
	assert_int_equal(judge(&plain, c, NULL), RETRY_WHY_ENDPOINTS);
	c.stale = true;
	assert_int_equal(judge(&plain, c, NULL), RETRY_WHY_NONE);
	c = sent(RETRY_TIMEOUT);
	c.left_ms = 5;
	assert_int_equal(judge(&full, c, NULL), RETRY_WHY_TIME);
}

/* Half of it at least, twice as much each time, never more than the most; other numbers, other pauses. */
static void pauses(void **state)
{
	struct retry_case c = sent(RETRY_STATUS);
	uint32_t least[3] = {10, 20, 40}, most[3] = {20, 40, 80};
	struct retry_plan plan;

	(void)state;
	c.status = 503;
	for (c.tries = 0; c.tries < 3; c.tries++) {
		uint32_t low = UINT32_MAX, high = 0;

		for (c.random = 0; c.random < 0x10000; c.random += 0x101) {
			assert_int_equal(judge(&full, c, &plan), RETRY_WHY_NONE);
			low = plan.wait_ms < low ? plan.wait_ms : low;
			high = plan.wait_ms > high ? plan.wait_ms : high;
		}
		assert_in_range(low, least[c.tries], least[c.tries] + 2);
		assert_int_equal(high, most[c.tries]);
	}
	c = sent(RETRY_RESET);
	assert_int_equal(judge(&full, c, &plan), RETRY_WHY_NONE);
	assert_int_equal(plan.wait_ms, 0);	/* elsewhere, at once */
	c.untried = false;
	assert_int_equal(judge(&full, c, &plan), RETRY_WHY_NONE);
	assert_in_range(plan.wait_ms, 10, 20);
	struct retry_policy wild = full;
	wild.attempts = RETRY_ATTEMPTS_MAX;
	wild.base_ms = wild.max_ms = 60000;
	c.tries = RETRY_ATTEMPTS_MAX - 1;
	assert_int_equal(judge(&wild, c, &plan), RETRY_WHY_NONE);
	assert_in_range(plan.wait_ms, 30000, 60000);
	wild.base_ms = 1;
	wild.max_ms = 1;
	c.random = 0xffff;
	assert_int_equal(judge(&wild, c, &plan), RETRY_WHY_NONE);
	assert_int_equal(plan.wait_ms, 1);	/* never none: who waits is not asked in the same turn */
}

/* It speaks for the endpoint that sent it. */
static void retry_after(void **state)
{
	struct retry_case c = sent(RETRY_STATUS);
	struct retry_plan plan;

	(void)state;
	c.status = 503;
	c.after_ms = 5000;
	assert_int_equal(judge(&full, c, NULL), RETRY_WHY_NONE);
	c.untried = false;
	assert_int_equal(judge(&full, c, NULL), RETRY_WHY_LATER);
	c.after_ms = 90;
	assert_int_equal(judge(&full, c, &plan), RETRY_WHY_NONE);
	assert_int_equal(plan.wait_ms, 90);
	assert_int_equal(retry_after_ms(STR("0")), 0);
	assert_int_equal(retry_after_ms(STR("120")), 120000);
	assert_int_equal(retry_after_ms(STR("99999999999999999999999")), UINT32_MAX);
	assert_int_equal(retry_after_ms(STR("Fri, 31 Dec 1999 23:59:59 GMT")), UINT32_MAX);
	assert_int_equal(retry_after_ms(STR("")), 0);
	assert_int_equal(retry_after_ms(STR("5 minutes")), 0);
	assert_int_equal(retry_after_ms(STR("-1")), UINT32_MAX);
}

static void parts(void **state)
{
	struct retry_policy other = full;
	struct policy_part *a = retry_new(&full), *b = retry_new(&other), *c;

	(void)state;
	other.status[1] = 500;
	c = retry_new(&other);
	assert_true(policy_part_same(a, b));
	assert_false(policy_part_same(a, c));
	policy_part_unref(a);
	policy_part_unref(b);
	policy_part_unref(c);
}

static void every_reason_has_a_word_of_its_own(void **state)
{
	(void)state;
	assert_int_equal(retry_why_token(RETRY_WHY_NONE).n, 0);
	for (unsigned i = 1; i < RETRY_WHY_N; i++)
		for (unsigned j = 0; j < i; j++)
			assert_false(str_eq(retry_why_token(i), retry_why_token(j)));
}

/* --- the budget --- */

static unsigned take_all(struct retry_share *s, uint32_t asked, uint32_t now)
{
	unsigned n = 0;

	while (retry_share_take(s, asked, 200000, now))
		n++;
	return n;
}

static void a_share_of_requests(void **state)
{
	struct retry_share s = {.at_ms = 1000};
	uint32_t asked = 0, now = 1000;
	unsigned n;

	(void)state;
	assert_int_equal(take_all(&s, 4, 1000), 0);
	assert_int_equal(take_all(&s, 5, 1000), 1);
	assert_int_equal(take_all(&s, 105, 2000), 20);
	s = (struct retry_share){.at_ms = now};
	n = 0;
	for (unsigned i = 0; i < 100000; i++) {	/* each request fails, a thousand a second */
		n += retry_share_take(&s, ++asked, 200000, now++);
		assert_true(n <= asked / 5);
	}
	assert_in_range(n, 19990, 20000);
}

/* What ten quiet seconds, or an hour, have left is no more than what ten seconds give. */
static void it_does_not_pile_up(void **state)
{
	struct retry_share s = {.at_ms = 0};
	uint32_t asked = 0, now = 0;

	(void)state;
	for (unsigned i = 0; i < 3600; i++) {	/* a hundred requests a second, of which one fails */
		asked += 100;
		now += 1000;
		assert_true(retry_share_take(&s, asked, 200000, now));
	}
	assert_in_range(take_all(&s, asked, now), 150, 200);
	assert_int_equal(take_all(&s, asked, now + 20000), 0);
	/* the same without a look in between */
	s = (struct retry_share){.at_ms = 0};
	assert_in_range(take_all(&s, 360000, 3600000), 199, 200);
	/* and modulo 2^32 */
	s = (struct retry_share){.seen = 0xfffffff0u, .at_ms = 0xffffff00u};
	assert_int_equal(take_all(&s, 84, 100), 20);
}

static void a_floor_for_all(void **state)
{
	_Atomic uint32_t word = 0xdeadbeef;
	uint64_t now = 77000000;
	unsigned n = 0;

	(void)state;
	assert_false(retry_floor_take(&word, 0, now));
	while (retry_floor_take(&word, 10, now))
		n++;
	assert_int_equal(n, 10);
	assert_false(retry_floor_take(&word, 10, now + 50000));
	assert_true(retry_floor_take(&word, 10, now + 100100));
	assert_false(retry_floor_take(&word, 10, now + 100200));
	n = 0;
	for (unsigned i = 0; i < 10000; i++)	/* ten seconds */
		n += retry_floor_take(&word, 10, now + 200000 + i * 1000ull);
	assert_in_range(n, 98, 102);
	n = 0;
	while (retry_floor_take(&word, 10, now + 3600000000ull))
		n++;
	assert_int_equal(n, 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(never_twice_when_that_does_harm),
		cmocka_unit_test(what_was_not_sent_has_no_method),
		cmocka_unit_test(each_reason),
		cmocka_unit_test(pauses),
		cmocka_unit_test(retry_after),
		cmocka_unit_test(parts),
		cmocka_unit_test(every_reason_has_a_word_of_its_own),
		cmocka_unit_test(a_share_of_requests),
		cmocka_unit_test(it_does_not_pile_up),
		cmocka_unit_test(a_floor_for_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
