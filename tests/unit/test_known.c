/* proxy/known: MACs, remembering, forgetting, making room. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "lib/base/mem.h"
#include "proxy/known.h"

static struct known *made(void)
{
	struct known *k = mem_zalloc(sizeof *k);

	assert_int_equal(known_init(k), OK);
	return k;
}

static struct htpasswd *users(void)
{
	struct htpasswd *u = htpasswd_new(STR("a:{SHA}2jmj7l5rSw0yVb/vlWAYkK/YBwk="), NULL);

	assert_non_null(u);
	return u;
}

static union known_mac mac(const struct known *k, const struct htpasswd *u, struct str user, struct str password)
{
	struct digest_mac *maker = known_maker(k);
	union known_mac m;

	assert_non_null(maker);
	assert_int_equal(known_mac(maker, u, user, password, &m), OK);
	digest_mac_free(maker);
	return m;
}

static bool differ(union known_mac a, union known_mac b)
{
	return memcmp(a.bytes, b.bytes, 24) != 0;
}

static void macs(void **state)
{
	struct known *k = made(), *l = made();
	struct htpasswd *u = users(), *v = users();
	union known_mac m = mac(k, u, STR("alice"), STR("secret"));

	(void)state;
	assert_false(differ(m, mac(k, u, STR("alice"), STR("secret"))));
	assert_true(differ(m, mac(k, u, STR("alice"), STR("secret\0"))));
	assert_true(differ(m, mac(k, u, STR("alices"), STR("ecret"))));
	assert_true(differ(m, mac(k, u, STR("alic"), STR("esecret"))));
	assert_true(differ(m, mac(k, v, STR("alice"), STR("secret"))));
	assert_true(differ(m, mac(l, u, STR("alice"), STR("secret"))));
	assert_true(differ(m, mac(k, u, STR(""), STR(""))));
	known_fini(k);
	known_fini(l);
	mem_free(k);
	mem_free(l);
	htpasswd_unref(u);
	htpasswd_unref(v);
}

static void remembering(void **state)
{
	struct known *k = made();
	struct htpasswd *u = users();
	union known_mac m = mac(k, u, STR("alice"), STR("secret")), other = mac(k, u, STR("alice"), STR("Secret"));

	(void)state;
	assert_false(known_has(k, &m, 1000));
	known_add(k, &m, 1000);
	assert_true(known_has(k, &m, 1000));
	assert_true(known_has(k, &m, 999));	/* a clock that is behind */
	assert_false(known_has(k, &other, 1000));
	assert_true(known_has(k, &m, 1000 + KNOWN_MS - 1));
	assert_true(known_has(k, &m, 1000 + 2 * KNOWN_MS - 2));		/* since it was asked for */
	assert_false(known_has(k, &m, 1000 + 3 * KNOWN_MS));
	known_add(k, &m, 0);
	assert_true(known_has(k, &m, 0));
	mem_free(k);
	htpasswd_unref(u);
}

/* Of those that lie in one set the ones last used stay; the same twice takes one place. */
static void making_room(void **state)
{
	struct known *k = made();
	union known_mac m[KNOWN_WAYS + 1];

	(void)state;
	for (unsigned i = 0; i <= KNOWN_WAYS; i++) {
		memset(m[i].bytes, (int)i + 1, sizeof m[i].bytes);
		m[i].words[KNOWN_WORDS] = 7;
	}
	for (unsigned i = 0; i < KNOWN_WAYS; i++) {
		known_add(k, &m[i], 10 + i);
		known_add(k, &m[i], 10 + i);
	}
	assert_true(known_has(k, &m[0], 20));
	known_add(k, &m[KNOWN_WAYS], 21);
	for (unsigned i = 0; i <= KNOWN_WAYS; i++)
		assert_int_equal(known_has(k, &m[i], 22), i != 1);
	mem_free(k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(macs),
		cmocka_unit_test(remembering),
		cmocka_unit_test(making_room),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
