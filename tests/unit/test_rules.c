/* dispatch/rules: equal ones are one object, each member counts, strings are copied. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "dispatch/rules.h"
#include "lib/base/mem.h"

static void equal_rules_are_one(void **state)
{
	struct rules_table *t = rules_table_new();
	char host[] = "shop.internal";
	struct rules r = {.max_connections = 7, .host = SERVICE_HOST_LITERAL, .host_literal = {host, sizeof host - 1}};
	const struct rules *a = rules_get(t, &r), *b = rules_get(t, &r), *c;

	(void)state;
	assert_ptr_equal(a, b);
	assert_ptr_not_equal(a->host_literal.p, host);
	memset(host, 'x', sizeof host - 1);
	assert_true(str_eq(a->host_literal, STR("shop.internal")));
	c = rules_get(t, &r);
	assert_ptr_not_equal(a, c);
	rules_unref(t, a);
	rules_unref(t, c);
	assert_true(str_eq(b->host_literal, STR("shop.internal")));
	rules_unref(t, b);
	rules_unref(t, NULL);
	rules_table_free(t);
	rules_table_free(NULL);
}

/* Changes the i-th member; false when there is none. */
static bool change(struct rules *r, unsigned i)
{
	switch (i) {
	case 0: r->max_connections = 1; return true;
	case 1: r->host = SERVICE_HOST_ENDPOINT; return true;
	case 2: r->proxy = SERVICE_PROXY_V2; return true;
	case 3: r->host_literal = STR("a"); return true;
	case 4: r->balance = BALANCE_ROUND_ROBIN; return true;
	case 5: r->by = BALANCE_BY_COOKIE; return true;
	case 6: r->same_site = SAME_SITE_NONE; return true;
	case 7: r->ttl_s = 1; return true;
	case 8: r->sticky_key.k0 = 1; return true;
	case 9: r->sticky_key.k1 = 1; return true;
	case 10: r->by_name = STR("a"); return true;
	case 11: r->retry_floor = 1; return true;
	case 12: r->retry_ratio = 1; return true;
	case 13: r->max_requests = 1; return true;
	case 14: r->bound = 125; return true;
	default: return false;
	}
}

static void every_member_counts(void **state)
{
	struct rules_table *t = rules_table_new();
	const struct rules none = {0}, *plain = rules_get(t, &none), *other;
	struct rules r;

	(void)state;
	for (unsigned i = 0; r = none, change(&r, i); i++) {
		assert_false(rules_same(&r, &none));
		other = rules_get(t, &r);
		assert_ptr_not_equal(other, plain);
		rules_unref(t, other);
	}
	rules_unref(t, plain);
	rules_table_free(t);
}

static void what_makes_no_sense_is_refused(void **state)
{
	struct snapshot_error err = {0};
	struct rules r = {.host = 3};

	(void)state;
	assert_int_equal(rules_check(&r, &err), ERR_SYNTAX);
	assert_string_equal(err.text, "unknown host policy 3");
	r = (struct rules){.host = SERVICE_HOST_LITERAL};
	assert_int_equal(rules_check(&r, NULL), ERR_SYNTAX);
	r.host_literal = STR("a b");
	assert_int_equal(rules_check(&r, NULL), ERR_SYNTAX);
	r.host_literal = STR("a.example:80");
	assert_int_equal(rules_check(&r, NULL), OK);
	r = (struct rules){.balance = BALANCE_STICKY};
	assert_int_equal(rules_check(&r, NULL), ERR_SYNTAX);
	r.by_name = STR("a\nb");
	assert_int_equal(rules_check(&r, NULL), ERR_SYNTAX);
	r.by_name = STR("home");
	assert_int_equal(rules_check(&r, NULL), OK);
	r = (struct rules){.balance = BALANCE_HASH, .by = BALANCE_BY_HEADER};
	assert_int_equal(rules_check(&r, NULL), ERR_SYNTAX);
	r.by = BALANCE_BY_ADDRESS;
	assert_int_equal(rules_check(&r, NULL), OK);
	r.balance = 4;
	assert_int_equal(rules_check(&r, NULL), ERR_SYNTAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_rules_are_one),
		cmocka_unit_test(every_member_counts),
		cmocka_unit_test(what_makes_no_sense_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
