/* name: what becomes of answers, and when a name is asked for again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <arpa/inet.h>

#include "health/name.h"
#include "lib/base/mem.h"

static const struct name_policy plain = { .ttl_min = 5000, .ttl_max = 300000, .most = 256 };

/* A part with the addresses of a list, "10.0.0.1 10.0.0.2"; "" is none, NULL a failure. */
static struct answer_part part_of(int family, const char *list, uint32_t ttl)
{
	struct answer_part p = { .said = (uint8_t)(list ? ANSWER_NONE : ANSWER_FAILED), .ttl = ttl };
	char text[4096], *save = NULL;

	if (!list || !*list)
		return p;
	p.said = ANSWER_RECORDS;
	p.ip = mem_zalloc(256 * 16);
	strcpy(text, list);
	for (char *one = strtok_r(text, " ", &save); one; one = strtok_r(NULL, " ", &save))
		assert_int_equal(inet_pton(family, one, p.ip[p.n++]), 1);
	return p;
}

static struct answer answer_of(const char *ip4, const char *ip6, uint32_t ttl)
{
	return (struct answer){ .part = { part_of(AF_INET, ip4, ttl), part_of(AF_INET6, ip6, ttl) }, .why = "why" };
}

static const char *text_of(const struct answer_part have[2])
{
	static char text[4096];
	size_t used = 0;

	text[0] = '\0';
	for (int i = 0; i < 2; i++)
		for (uint32_t k = 0; k < have[i].n; k++) {
			char ip[INET6_ADDRSTRLEN];

			inet_ntop(i ? AF_INET6 : AF_INET, have[i].ip[k], ip, sizeof(ip));
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", used ? " " : "", ip);
		}
	return text;
}

struct known {
	struct name_state state;
	struct answer_part have[2];
};

static struct name_news take(struct known *k, const char *ip4, const char *ip6, uint32_t ttl, const struct name_policy *p, uint64_t now)
{
	struct answer a = answer_of(ip4, ip6, ttl);

	return name_take(&k->state, k->have, &a, false, p, now);
}

static void forget(struct known *k)
{
	answer_part_fini(&k->have[0], false);
	answer_part_fini(&k->have[1], false);
}

static void usable(void **state)
{
	static const struct { const char *ip; bool usable; } rows[] = {
		{"0.0.0.0", false}, {"0.1.2.3", false}, {"1.0.0.1", true}, {"10.0.0.1", true}, {"127.0.0.1", true}, {"169.254.1.1", true},
		{"223.255.255.255", true}, {"224.0.0.1", false}, {"240.0.0.1", false}, {"255.255.255.255", false},
		{"::", false}, {"::1", true}, {"::2", true}, {"2001:db8::1", true}, {"fd00::1", true}, {"fe80::1", false}, {"febf::1", false},
		{"fec0::1", true}, {"ff02::1", false}, {"::ffff:10.0.0.1", false}, {"::fffe:10.0.0.1", true}, {"64:ff9b::10.0.0.1", true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		bool ip6 = strchr(rows[i].ip, ':');
		uint8_t ip[16] = {0};

		assert_int_equal(inet_pton(ip6 ? AF_INET6 : AF_INET, rows[i].ip, ip), 1);
		if (name_usable(ip, ip6) != rows[i].usable)
			fail_msg("%s", rows[i].ip);
	}
}

/* Steps of one name: what is said, and what is known then. */
static void what_is_kept(void **state)
{
	static const struct { const char *ip4, *ip6, *known; bool changed; enum name_result result; } rows[] = {
		{"10.0.0.2 10.0.0.1", "", "10.0.0.1 10.0.0.2", true, NAME_GOOD},
		{"10.0.0.1 10.0.0.2", "", "10.0.0.1 10.0.0.2", false, NAME_GOOD},
		{"10.0.0.1 10.0.0.2 10.0.0.1 10.0.0.2", "", "10.0.0.1 10.0.0.2", false, NAME_GOOD},
		{"10.0.0.2", "::2 ::3", "10.0.0.2 ::2 ::3", true, NAME_GOOD},
		{NULL, NULL, "10.0.0.2 ::2 ::3", false, NAME_FAILED},
		{"10.0.0.2", NULL, "10.0.0.2 ::2 ::3", false, NAME_GOOD},
		{"10.0.0.3", NULL, "10.0.0.3 ::2 ::3", true, NAME_GOOD},
		{"", NULL, "10.0.0.3 ::2 ::3", false, NAME_FAILED},
		{"", "", "10.0.0.3 ::2 ::3", false, NAME_MISSING},
		{"0.0.0.0", "ff02::1", "10.0.0.3 ::2 ::3", false, NAME_FAILED},
		{"0.0.0.0 10.0.0.3", "", "10.0.0.3", true, NAME_GOOD},
		{"", "::5", "::5", true, NAME_GOOD},
	};
	struct known k = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct name_news news = take(&k, rows[i].ip4, rows[i].ip6, 10, &plain, 1000 * i);

		if (strcmp(text_of(k.have), rows[i].known) != 0 || news.changed != rows[i].changed || news.result != rows[i].result)
			fail_msg("row %zu: %s, changed %d, result %d", i, text_of(k.have), news.changed, news.result);
	}
	forget(&k);
}

static void a_missing_name_is_dropped_if_asked_for(void **state)
{
	struct name_policy p = plain;
	struct known k = {0};

	(void)state;
	p.drop = true;
	assert_true(take(&k, "10.0.0.1", "::1", 1, &p, 0).changed);
	assert_false(take(&k, NULL, "", 1, &p, 0).changed);	/* nobody knows */
	assert_true(take(&k, "", "", 1, &p, 0).changed);
	assert_string_equal(text_of(k.have), "");
	assert_false(take(&k, "", "", 1, &p, 0).changed);
	forget(&k);
}

static void too_many_are_cut_always_the_same(void **state)
{
	struct name_policy p = plain;
	struct known k = {0};
	struct name_news news;

	(void)state;
	p.most = 2;
	news = take(&k, "10.0.0.5 10.0.0.1 10.0.0.4 10.0.0.2 0.0.0.0", "", 1, &p, 0);
	assert_true(news.left_out == 2 && news.unusable == 1 && news.changed);
	assert_string_equal(text_of(k.have), "10.0.0.1 10.0.0.2");
	assert_false(take(&k, "10.0.0.2 10.0.0.4 10.0.0.1 10.0.0.5", "", 1, &p, 0).changed);
	forget(&k);
}

static void stale_is_dropped(void **state)
{
	struct name_policy p = plain;
	struct known k = {0};

	(void)state;
	p.stale = 60000;
	take(&k, "10.0.0.1", "", 1, &p, 1000);
	assert_false(name_expire(&k.state, k.have, false, &p, 100000));	/* it was good when it was last asked for */
	take(&k, NULL, NULL, 1, &p, 60999);
	assert_false(name_expire(&k.state, k.have, false, &p, 60999));
	assert_true(name_due(&k.state, &p, 60999, 0) == 61000);		/* no later */
	assert_true(name_expire(&k.state, k.have, false, &p, 61000));
	assert_false(name_expire(&k.state, k.have, false, &p, 61000));
	take(&k, "10.0.0.1", "", 1, &p, 61000);
	assert_false(name_expire(&k.state, k.have, false, &p, 61000));
	take(&k, "", "", 1, &p, 62000);
	assert_true(name_expire(&k.state, k.have, false, &p, 121000));
	p.stale = 0;
	take(&k, "10.0.0.1", "", 1, &p, 0);
	take(&k, NULL, NULL, 1, &p, 0);
	assert_false(name_expire(&k.state, k.have, false, &p, UINT64_MAX / 2));
	forget(&k);
}

/* The bounds of when it is due, over many draws; each of them is met nearly. */
static void due_between(const struct known *k, const struct name_policy *p, uint64_t low, uint64_t high)
{
	uint64_t least = UINT64_MAX, most = 0;

	for (uint32_t i = 0; i < 20000; i++) {
		uint64_t due = name_due(&k->state, p, 1000000, i * 2654435761u) - 1000000;

		least = due < least ? due : least;
		most = due > most ? due : most;
	}
	if (least < low || most > high || least > low + (high - low) / 10 + 1 || most + (high - low) / 10 + 1 < high)
		fail_msg("%llu to %llu, not %llu to %llu", (unsigned long long)least, (unsigned long long)most, (unsigned long long)low,
			 (unsigned long long)high);
}

static void due(void **state)
{
	struct known k = {0};

	(void)state;
	assert_true(name_due(&k.state, &plain, 77, 5) == 77);	/* never asked for: now */
	take(&k, "10.0.0.1", "", 60, &plain, 0);
	due_between(&k, &plain, 54000, 60250);
	take(&k, "10.0.0.1", "", 0, &plain, 0);			/* the floor */
	due_between(&k, &plain, 5000, 5250);
	take(&k, "10.0.0.1", "", 5, &plain, 0);
	due_between(&k, &plain, 5000, 5250);
	take(&k, "10.0.0.1", "", INT32_MAX, &plain, 0);		/* the cap */
	due_between(&k, &plain, 270000, 300250);
	for (unsigned i = 0; i < 300; i++) {
		uint64_t wait = i > 3 ? 10000 : 1000u << i;

		take(&k, NULL, NULL, 5, &plain, 0);
		if (i < 6 || i > 290)
			due_between(&k, &plain, wait - wait / 4, wait);
	}
	take(&k, "10.0.0.1", "", 60, &plain, 0);
	take(&k, NULL, NULL, 5, &plain, 0);
	due_between(&k, &plain, 750, 1000);			/* the first again */
	forget(&k);
}

static struct answer srv_of(size_t n, const struct answer_srv *from)
{
	struct answer a = { .part[0] = { .said = ANSWER_RECORDS, .ttl = 1, .n = (uint32_t)n } };

	a.part[0].srv = mem_alloc(n * sizeof(*from));
	for (size_t i = 0; i < n; i++) {
		a.part[0].srv[i] = from[i];
		a.part[0].srv[i].target = mem_strndup(from[i].target, strlen(from[i].target));
	}
	return a;
}

static void srv(void **state)
{
	static struct answer_srv rows[] = {
		{10, 5, 80, (char *)"b"}, {0, 1, 80, (char *)"z"}, {10, 5, 80, (char *)"a"}, {10, 9, 80, (char *)"b"}, {0, 1, 81, (char *)"z"},
	};
	struct known k = {0};
	struct answer a = srv_of(5, rows);
	struct name_policy p = plain;

	(void)state;
	assert_true(name_take(&k.state, k.have, &a, true, &p, 0).changed);
	assert_int_equal(k.have[0].n, 4);
	assert_int_equal(name_group(&k.have[0], 0), 2);
	assert_int_equal(name_group(&k.have[0], 2), 2);
	assert_int_equal(name_group(&k.have[0], 4), 0);
	assert_true(k.have[0].srv[0].port == 80 && k.have[0].srv[1].port == 81);
	assert_string_equal(k.have[0].srv[2].target, "a");
	assert_true(k.have[0].srv[3].weight == 9);
	a = srv_of(3, (struct answer_srv[]){ rows[4], rows[2], rows[3] });
	assert_true(name_take(&k.state, k.have, &a, true, &p, 0).changed);
	a = srv_of(3, (struct answer_srv[]){ rows[2], rows[4], rows[0] });	/* another weight */
	assert_true(name_take(&k.state, k.have, &a, true, &p, 0).changed);
	a = srv_of(3, (struct answer_srv[]){ rows[0], rows[2], rows[4] });
	assert_false(name_take(&k.state, k.have, &a, true, &p, 0).changed);
	p.most = 1;
	a = srv_of(5, rows);
	assert_int_equal(name_take(&k.state, k.have, &a, true, &p, 0).left_out, 3);
	a = (struct answer){ .part[0] = { .said = ANSWER_FAILED } };
	assert_false(name_take(&k.state, k.have, &a, true, &p, 0).changed);
	assert_int_equal(k.have[0].n, 1);
	answer_part_fini(&k.have[0], true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(usable),
		cmocka_unit_test(what_is_kept),
		cmocka_unit_test(a_missing_name_is_dropped_if_asked_for),
		cmocka_unit_test(too_many_are_cut_always_the_same),
		cmocka_unit_test(stale_is_dropped),
		cmocka_unit_test(due),
		cmocka_unit_test(srv),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
