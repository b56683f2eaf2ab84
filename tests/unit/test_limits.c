/* dispatch/addresses, dispatch/limits: parts of policies that say who may come and how often. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "dispatch/addresses.h"
#include "dispatch/limits.h"
#include "lib/base/mem.h"

#define SECOND 1000000u

static const uint8_t ip1[16] = {10, 0, 0, 1}, ip2[16] = {10, 0, 0, 2}, ip3[16] = {11};

static struct networks *net(uint8_t first, uint8_t last, uint8_t bits)
{
	struct networks *s = networks_new(&(struct network){NETWORK_IP4, bits, {first, 0, 0, last}}, 1);

	assert_non_null(s);
	return s;
}

static bool admits(const struct policy_part *p, const uint8_t *ip)
{
	return addresses_admit((const struct addresses *)p, NETWORK_IP4, ip);
}

static void deny_wins(void **state)
{
	struct policy_part *only = addresses_new(net(10, 0, 8), NULL), *but = addresses_new(NULL, net(10, 1, 32)),
		*both = addresses_new(net(10, 0, 8), net(10, 1, 32)), *small = addresses_new(net(10, 1, 32), net(10, 0, 8)),
		*again = addresses_new(net(10, 0, 8), net(10, 1, 32));

	(void)state;
	assert_true(admits(only, ip1) && admits(only, ip2) && !admits(only, ip3));
	assert_false(addresses_admit((struct addresses *)only, NETWORK_UNIX, NULL));
	assert_true(!admits(but, ip1) && admits(but, ip2) && admits(but, ip3));
	assert_true(addresses_admit((struct addresses *)but, NETWORK_UNIX, NULL));
	assert_true(!admits(both, ip1) && admits(both, ip2) && !admits(both, ip3));
	assert_false(admits(small, ip1));	/* however small what is allowed is */
	assert_true(policy_part_same(both, again));
	assert_false(policy_part_same(both, only) || policy_part_same(only, both) || policy_part_same(both, but));
	policy_part_unref(only);
	policy_part_unref(but);
	policy_part_unref(both);
	policy_part_unref(small);
	policy_part_unref(again);
	mem_fail_from(1);
	assert_null(addresses_new(NULL, NULL));
	mem_fail_from(0);
}

/* --- limits --- */

static struct limit_spec by(enum limit_by by, uint32_t count, uint32_t burst, const char *name)
{
	return (struct limit_spec){.by = (uint8_t)by, .bits4 = 32, .bits6 = 64, .count = count, .period_s = 60, .burst = burst,
				   .header = STR("X-Key"), .name = str_of(name)};
}

static struct limits *limits(const struct limit_spec *spec, unsigned n)
{
	struct policy_part *p = limits_new(spec, n);

	assert_non_null(p);
	return (struct limits *)p;
}

static uint64_t v4key(const struct limit *l, const uint8_t *ip)
{
	return limit_key_address(l, NETWORK_IP4, ip);
}

static void keys_of_addresses(void **state)
{
	struct limit_spec spec[2] = {by(LIMIT_BY_ADDRESS, 1, 1, "a"), by(LIMIT_BY_ADDRESS, 1, 1, "b")};
	uint8_t a[16] = {0x20, 1, [7] = 1, [15] = 1}, b[16] = {0x20, 1, [7] = 1, [15] = 2}, c[16] = {0x20, 1, [7] = 2};
	struct limits *s;
	const struct limit *l;

	(void)state;
	spec[1].bits4 = 20;
	spec[1].bits6 = 128;
	s = limits(spec, 2);
	l = s->limit;
	assert_true(v4key(l, ip1) == v4key(l, ip1));
	assert_false(v4key(l, ip1) == v4key(l, ip2) || v4key(l, ip1) == v4key(&l[1], ip1));
	assert_true(v4key(&l[1], ip1) == v4key(&l[1], ip2));
	assert_false(v4key(&l[1], ip1) == v4key(&l[1], ip3));
	assert_true(limit_key_address(l, NETWORK_IP6, a) == limit_key_address(l, NETWORK_IP6, b));
	assert_false(limit_key_address(l, NETWORK_IP6, a) == limit_key_address(l, NETWORK_IP6, c));
	assert_false(limit_key_address(&l[1], NETWORK_IP6, a) == limit_key_address(&l[1], NETWORK_IP6, b));
	assert_false(limit_key_address(l, NETWORK_IP4, ip1) == limit_key_address(l, NETWORK_IP6, ip1));
	assert_false(limit_key_address(l, NETWORK_UNIX, NULL) == limit_key_address(l, NETWORK_IP4, (uint8_t[4]){0}));
	policy_part_unref(&s->part);
}

static void keys_of_headers(void **state)
{
	struct limit_spec spec = by(LIMIT_BY_HEADER, 1, 1, "k");
	struct limits *s = limits(&spec, 1);
	const struct limit *l = s->limit;
	uint64_t a = limit_key_header(l, 0, STR("a")), ab = limit_key_header(l, a, STR("b"));

	(void)state;
	assert_true(limit_key_header(l, 0, STR("a")) == a);
	assert_false(a == ab || limit_key_header(l, 0, STR("b")) == ab || limit_key_header(l, 0, STR("ab")) == ab);
	assert_false(limit_key_header(l, 0, STR("")) == a);
	policy_part_unref(&s->part);
}

static void what_makes_limits_the_same(void **state)
{
	struct limit_spec a[2] = {by(LIMIT_BY_HEADER, 5, 5, "h"), by(LIMIT_BY_ROUTE, 9, 9, "")}, b[2];
	struct limits *s = limits(a, 2), *t;

	(void)state;
	t = limits(a, 1);
	assert_false(policy_part_same(&s->part, &t->part));
	policy_part_unref(&t->part);
	for (int i = 0; i < 9; i++) {
		memcpy(b, a, sizeof(b));
		b[0].count += i == 1;
		b[0].burst += i == 2;
		b[0].period_s += i == 3;
		b[1].by = i == 4 ? LIMIT_BY_ADDRESS : b[1].by;
		b[0].bits4 -= i == 5;
		b[0].bits6 -= i == 6;
		b[1].name = i == 7 ? STR("r") : b[1].name;
		b[0].header = i == 8 ? STR("x-kex") : STR("x-key");	/* in any case */
		t = limits(b, 2);
		assert_int_equal(policy_part_same(&s->part, &t->part), i == 0);
		assert_false(s->limit[0].id == t->limit[0].id || s->limit[0].id == s->limit[1].id);
		policy_part_unref(&t->part);
	}
	policy_part_unref(&s->part);
	mem_fail_from(1);
	assert_null(limits_new(a, 2));
	mem_fail_from(0);
}

static void none_takes_when_one_refuses(void **state)
{
	struct limit_spec spec[3] = {by(LIMIT_BY_ROUTE, 1, 5, "route"), by(LIMIT_BY_HEADER, 1, 4, "header"),
				     by(LIMIT_BY_ADDRESS, 1, 2, "address")};
	struct rate_table *t = rate_table_new(RATE_MEMORY_MIN);
	struct limits *s = limits(spec, 3);
	struct limits_answer a;
	uint64_t key[3] = {0, limit_key_header(&s->limit[1], 0, STR("x")), v4key(&s->limit[2], ip1)};

	(void)state;
	assert_true(s->tabled);
	for (int i = 0; i < 6; i++) {
		assert_int_equal(limits_take(s, t, key, SECOND, &a), OK);
		assert_int_equal(a.refused, i < 2 ? -1 : 2);
		assert_int_equal(a.by[0].left, i < 2 ? 4 - i : 2);
	}
	key[2] = v4key(&s->limit[2], ip2);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(limits_take(s, t, key, SECOND, &a), OK);
		assert_int_equal(a.refused, i < 2 ? -1 : 1);
	}
	key[1] = limit_key_header(&s->limit[1], 0, STR("y"));
	key[2] = v4key(&s->limit[2], ip3);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(limits_take(s, t, key, SECOND, &a), OK);
		assert_int_equal(a.refused, i < 1 ? -1 : 0);
	}
	policy_part_unref(&s->part);
	rate_table_free(t);
}

static void no_memory_takes_nothing(void **state)
{
	struct limit_spec spec[2] = {by(LIMIT_BY_ROUTE, 1, 1, "route"), by(LIMIT_BY_ADDRESS, 1, 1, "address")};
	struct rate_table *t = rate_table_new(RATE_MEMORY_MIN);
	struct limits *s = limits(spec, 2);
	struct limits_answer a;
	uint64_t key[2] = {0, v4key(&s->limit[1], ip1)};

	(void)state;
	mem_fail_from(1);
	assert_int_equal(limits_take(s, t, key, SECOND, &a), ERR_MEM);
	mem_fail_from(0);
	assert_int_equal(limits_take(s, t, key, SECOND, &a), OK);
	assert_int_equal(a.refused, -1);
	policy_part_unref(&s->part);
	rate_table_free(t);
	s = limits(spec, 1);
	assert_false(s->tabled);
	assert_int_equal(limits_take(s, NULL, key, SECOND, &a), OK);
	assert_true(a.refused < 0 && limits_take(s, NULL, key, SECOND, &a) == OK && a.refused == 0);
	policy_part_unref(&s->part);
}

static void assert_str(struct str s, const char *want)
{
	if (!str_eq(s, str_of(want)))
		fail_msg("%.*s, not %s", (int)s.n, s.p, want);
}

static void what_is_told(void **state)
{
	static const char longest[] = "a123456789012345678901234567890123456789012345678901234567890123";
	struct limit_spec spec[4] = {by(LIMIT_BY_ADDRESS, 120, 3, "one"), by(LIMIT_BY_ROUTE, 6, 5, ""),
				     by(LIMIT_BY_ROUTE, 1, 1, longest), by(LIMIT_BY_ROUTE, 1, 1000000, longest)};
	struct limits_answer a = {-1, {{true, 2, 500000000}, {true, 4, 10000000001}, {true, 0, 1}, {true, 1000000, 3600000000000}}};
	struct limits_fields f;
	struct limits *s;
	struct arena arena;

	(void)state;
	spec[3].period_s = 3600;
	s = limits(spec, 2);
	arena_init(&arena, NULL, 0, NULL);
	assert_int_equal(limits_tell(s, &a, &arena, &f), OK);
	assert_str(f.policy, "\"one\";q=3;w=2");
	assert_str(f.limit, "\"one\";r=2;t=1");
	assert_str(f.retry_after, "");
	a.refused = 1;	/* nothing but when to come again */
	assert_int_equal(limits_tell(s, &a, &arena, &f), OK);
	assert_true(f.policy.n == 0 && f.limit.n == 0);
	assert_str(f.retry_after, "11");
	policy_part_unref(&s->part);

	s = limits(spec, 4);
	a.refused = -1;
	assert_int_equal(limits_tell(s, &a, &arena, &f), OK);
	assert_true(f.policy.n > 2 * sizeof(longest) && memcmp(f.policy.p, "\"one\";q=3;w=2, \"a1", 18) == 0);
	assert_str((struct str){f.policy.p + f.policy.n - 24, 24}, "\";q=1000000;w=3600000000");
	assert_str((struct str){f.limit.p + f.limit.n - 18, 18}, "\";r=1000000;t=3600");
	a.refused = 2;
	assert_int_equal(limits_tell(s, &a, &arena, &f), OK);
	assert_true(f.policy.p[0] == '"' && f.policy.p[1] == 'a' && f.policy.p[f.policy.n - 1] == '0');
	assert_int_equal(f.limit.n, 2 + sizeof(longest) - 1 + strlen(";r=0;t=1"));
	assert_str(f.retry_after, "1");
	policy_part_unref(&s->part);
	arena_fini(&arena);
}

static void nothing_is_told_without_memory(void **state)
{
	struct limit_spec spec = by(LIMIT_BY_ROUTE, 1, 1, "route");
	struct limits_answer a = {-1, {{true, 0, 1}}};
	struct limits *s = limits(&spec, 1);
	struct limits_fields f;
	struct arena arena;

	(void)state;
	arena_init(&arena, NULL, 0, NULL);
	mem_fail_from(1);
	assert_int_equal(limits_tell(s, &a, &arena, &f), ERR_MEM);
	mem_fail_from(0);
	arena_fini(&arena);
	policy_part_unref(&s->part);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(deny_wins),
		cmocka_unit_test(keys_of_addresses),
		cmocka_unit_test(keys_of_headers),
		cmocka_unit_test(what_makes_limits_the_same),
		cmocka_unit_test(none_takes_when_one_refuses),
		cmocka_unit_test(no_memory_takes_nothing),
		cmocka_unit_test(what_is_told),
		cmocka_unit_test(nothing_is_told_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
