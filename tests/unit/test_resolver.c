/* resolver: candidates, the hosts file, answers as bytes, and bounds; what it does with real servers is in wire/test_dns.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/net/hosts.h"
#include "lib/net/loop.h"
#include "lib/net/resolver.h"

/* ---- candidates -------------------------------------------------------------- */

static void candidates(void **state)
{
	static char *domains[] = {(char *)"x.test", (char *)".", (char *)"y.test."};
	static const struct { unsigned n, ndots; const char *name, *want; } rows[] = {
		{0, 1, "a", "a|"}, {0, 1, "a.", "a|"}, {1, 1, "a", "a.x.test|a|"}, {1, 1, "a.b", "a.b|a.b.x.test|"}, {1, 2, "a.b", "a.b.x.test|a.b|"},
		{1, 0, "a", "a|a.x.test|"}, {1, 5, "a.b.", "a.b|"}, {3, 1, "a", "a.x.test|a.y.test|a|"}, {3, 1, "a.b", "a.b|a.b.x.test|a.b.y.test|"},
		{3, 15, "a.b.c", "a.b.c.x.test|a.b.c.y.test|a.b.c|"},
	};
	char name[RESOLVER_NAME_MAX + 2], all[1024], longest[RESOLVER_NAME_MAX + 1];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct resolver_search s = { domains, rows[i].n, rows[i].ndots };
		unsigned at = 0;

		all[0] = '\0';
		while (resolver_candidate(&s, (struct str){ rows[i].name, strlen(rows[i].name) }, &at, name))
			strcat(strcat(all, name), "|");
		assert_string_equal(all, rows[i].want);
	}
	memset(longest, 'a', sizeof(longest));		/* with a domain it is no name any more */
	for (unsigned at = 0, n = 0; n < 2; n++)
		assert_int_equal(resolver_candidate(&(struct resolver_search){ domains, 1, 1 }, (struct str){ longest, RESOLVER_NAME_MAX }, &at, name),
				 n ? 0 : RESOLVER_NAME_MAX);
}

/* ---- the hosts file ---------------------------------------------------------- */

static uint8_t ip4[HOSTS_ADDRESSES][16], ip6[HOSTS_ADDRESSES][16];
static size_t n4, n6;

static bool find(const char *text, const char *name)
{
	struct hosts h = { .text = (char *)(uintptr_t)text, .n = strlen(text) };

	return hosts_find(&h, str_of(name), ip4, &n4, ip6, &n6);
}

static void hosts(void **state)
{
	static const char text[] = "# 1.1.1.1 web\n127.0.0.1\tlocalhost localhost.localdomain # web\n\n 10.0.0.1  Web  web2\r\n10.0.0.2 web\n"
				   "::1 web ip6\nnonsense web\n10.0.0.3\n10.0.0.4 web2 web2\n10.0.0.5 last";

	(void)state;
	assert_true(find(text, "web"));
	assert_true(n4 == 2 && n6 == 1 && ip4[0][3] == 1 && ip4[1][3] == 2 && ip6[0][15] == 1);
	assert_true(find(text, "WEB2") && n4 == 2 && ip4[1][3] == 4);
	assert_true(find(text, "last") && n4 == 1);
	assert_true(find(text, "ip6") && n4 == 0 && n6 == 1);
	assert_false(find(text, "we"));
	assert_false(find(text, "10.0.0.3"));
	assert_false(find(text, ""));
	assert_false(find("", "web"));
	assert_false(find("# only", "only"));
}

static void hosts_are_bounded(void **state)
{
	char path[] = "/tmp/test_hosts.XXXXXX";
	FILE *f = fdopen(mkstemp(path), "w");
	struct hosts h = {0};

	(void)state;
	for (int i = 0; i < 2 * HOSTS_ADDRESSES; i++)
		fprintf(f, "10.0.0.%d many\n", i + 1);
	fflush(f);
	hosts_look(&h, path);
	assert_true(hosts_find(&h, STR("many"), ip4, &n4, ip6, &n6));
	assert_true(n4 == HOSTS_ADDRESSES && ip4[n4 - 1][3] == HOSTS_ADDRESSES);
	while (ftell(f) < (long)HOSTS_MAX)
		fprintf(f, "# nobody is here\n");
	fprintf(f, "10.0.0.1 behind\n");
	fclose(f);
	hosts_look(&h, path);
	assert_int_equal(h.n, HOSTS_MAX);
	assert_false(hosts_find(&h, STR("behind"), ip4, &n4, ip6, &n6));
	unlink(path);
	hosts_look(&h, path);
	assert_int_equal(h.n, 0);
	hosts_fini(&h);
}

/* ---- answers ----------------------------------------------------------------- */

static uint8_t message[70000];
static size_t size;

static void two(unsigned v)
{
	message[size++] = (uint8_t)(v >> 8);
	message[size++] = (uint8_t)v;
}

static void name(const char *text)
{
	for (size_t n; *text; text += n + (text[n] == '.')) {
		n = strcspn(text, ".");
		message[size++] = (uint8_t)n;
		memcpy(message + size, text, n);
		size += n;
	}
	message[size++] = 0;
}

static void begin(const char *asked, unsigned type, unsigned answers)
{
	size = 0;
	two(1), two(0x8180), two(1), two(answers), two(0), two(0);
	name(asked);
	two(type), two(1);
}

static void record(const char *of, unsigned type, uint32_t ttl, const void *data, size_t n)
{
	name(of);
	two(type), two(1), two(ttl >> 16), two(ttl & 0xffff), two((unsigned)n);
	memcpy(message + size, data, n);
	size += n;
}

static void alias(const char *of, const char *to, uint32_t ttl)
{
	size_t at;

	name(of);
	two(5), two(1), two(ttl >> 16), two(ttl & 0xffff), two(0);
	at = size;
	name(to);
	message[at - 1] = (uint8_t)(size - at);
}

static struct answer_part read_as(unsigned type, const char **why)
{
	*why = NULL;
	return resolver_read(message, size, type, why);
}

static void addresses(void **state)
{
	struct answer_part p;
	const char *why;

	(void)state;
	begin("web.test", 1, 3);
	alias("web.test", "other.test", 30);
	record("other.test", 1, 60, "\x0a\0\0\1", 4);
	record("other.test", 1, 90, "\x0a\0\0\2", 4);
	p = read_as(ANSWER_IP4, &why);
	assert_true(p.said == ANSWER_RECORDS && p.n == 2 && p.ttl == 30 && !why);
	assert_memory_equal(p.ip[1], "\x0a\0\0\2\0\0\0\0\0\0\0\0\0\0\0\0", 16);
	answer_part_fini(&p, false);
	begin("web.test", 28, 1);
	record("web.test", 28, 0x80000000u, "\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1", 16);
	p = read_as(ANSWER_IP6, &why);
	assert_true(p.said == ANSWER_RECORDS && p.n == 1 && p.ttl == 0);	/* RFC 2181 8 */
	answer_part_fini(&p, false);
	begin("web.test", 1, 1);		/* a record of somebody else */
	record("evil.test", 1, 60, "\x0a\0\0\1", 4);
	p = read_as(ANSWER_IP4, &why);
	assert_true(p.n == 0 && p.said != ANSWER_RECORDS);
	begin("web.test", 1, 1);		/* an alias, and nothing behind it */
	alias("web.test", "gone.test", 30);
	p = read_as(ANSWER_IP4, &why);
	assert_true(p.said == ANSWER_NONE && p.n == 0);
}

static void aliases_are_bounded(void **state)
{
	(void)state;
	for (int n = RESOLVER_ALIASES; n <= RESOLVER_ALIASES + 1; n++) {
		char of[32] = "web.test", to[32];
		struct answer_part p;
		const char *why;

		begin(of, 1, (unsigned)n + 1);
		for (int i = 0; i < n; i++) {
			snprintf(to, sizeof(to), "a%d.test", i);
			alias(of, to, 60);
			strcpy(of, to);
		}
		record(of, 1, 60, "\x0a\0\0\1", 4);
		p = read_as(ANSWER_IP4, &why);
		assert_int_equal(p.said, n > RESOLVER_ALIASES ? ANSWER_FAILED : ANSWER_RECORDS);
		answer_part_fini(&p, false);
	}
}

static void services(void **state)
{
	struct answer_part p;
	const char *why;

	(void)state;
	begin("_a._tcp.web.test", 33, 4);
	record("_a._tcp.web.test", 33, 60, "\0\1\0\2\0\120\1A\4TEST\0", 14);
	record("_a._tcp.web.test", 33, 50, "\0\1\0\2\0\0\1b\4test\0", 14);		/* no port */
	record("_a._tcp.web.test", 33, 50, "\0\1\0\2\0\120\0", 7);			/* "." */
	record("_a._tcp.web.test", 33, 50, "\0\3\0\4\0\121\1c\4test\0", 14);
	p = read_as(ANSWER_SRV, &why);
	assert_true(p.said == ANSWER_RECORDS && p.n == 2 && p.ttl == 50);
	for (uint32_t i = 0; i < p.n; i++)
		if (p.srv[i].port == 80) {
			assert_true(p.srv[i].priority == 1 && p.srv[i].weight == 2);
			assert_string_equal(p.srv[i].target, "a.test");
		} else {
			assert_true(p.srv[i].priority == 3 && p.srv[i].weight == 4 && p.srv[i].port == 81);
			assert_string_equal(p.srv[i].target, "c.test");
		}
	answer_part_fini(&p, true);
	begin("_a._tcp.web.test", 33, 1);
	record("_a._tcp.web.test", 33, 50, "\0\1\0\2\0\120\0", 7);
	p = read_as(ANSWER_SRV, &why);
	assert_true(p.said == ANSWER_NONE && !p.n && !p.srv);
	begin("_a._tcp.web.test", 33, 1);
	record("_a._tcp.web.test", 33, 50, "\0\1\0\2\0\120\3a.b\4test\0", 16);		/* a dot inside a label: no host */
	p = read_as(ANSWER_SRV, &why);
	assert_true(p.said != ANSWER_RECORDS && !p.n);
}

/* Every front of a good message, and every one with a byte changed, is read without harm. */
static void bytes_of_strangers(void **state)
{
	static const unsigned types[] = {ANSWER_IP4, ANSWER_IP6, ANSWER_SRV};
	static uint8_t whole[512];
	size_t n;

	(void)state;
	begin("web.test", 33, 5);
	alias("web.test", "b.test", 30);
	record("b.test", 1, 60, "\x0a\0\0\1", 4);
	record("b.test", 28, 60, "\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1", 16);
	record("b.test", 33, 60, "\0\1\0\2\0\120\1a\4test\0", 14);
	record("b.test", 33, 60, "\0\1\0\2\0\120\xc0\x0c", 8);
	n = size;
	memcpy(whole, message, n);
	for (size_t cut = 0; cut <= n; cut++)
		for (unsigned change = 0; change < 5; change++)
			for (unsigned t = 0; t < 3; t++) {
				uint8_t *p = mem_alloc(cut ? cut : 1);	/* of its own size, so that nothing behind it is read */
				struct answer_part part;
				const char *why;

				memcpy(p, whole, cut);
				if (change && cut)
					p[cut - 1] = "\0\xff\xc0\x3f"[change - 1];
				part = resolver_read(p, cut, types[t], &why);
				answer_part_fini(&part, types[t] == ANSWER_SRV);
				mem_free(p);
			}
}

/* ---- looks ------------------------------------------------------------------- */

static unsigned told;

static void on_told(void *ctx, struct answer *a)
{
	(void)ctx;
	told++;
	for (int i = 0; i < 2; i++)
		answer_part_fini(&a->part[i], false);
}

static void nothing(void *ctx)
{
	(void)ctx;
}

static void not_ready(void *ctx, void *ptr, unsigned events)
{
	(void)ctx, (void)ptr, (void)events;
}

static const struct loop_events events = { nothing, not_ready, nothing };

static struct resolver *resolver_of(struct loop *l)
{
	const struct resolver_config c = {
		.servers = "127.0.0.1:1", .n_search = 0, .ndots = 1, .timeout_ms = 100, .attempts = 1, .resolv_conf = "/nonexistent",
	};
	struct resolver *r = resolver_new(&c, l, &told);

	assert_non_null(r);
	return r;
}

static void looks_are_bounded(void **state)
{
	struct loop *l = loop_new(&events, NULL);
	struct resolver *r = resolver_of(l);
	struct look *look = NULL;

	(void)state;
	told = 0;
	for (int i = 0; i < RESOLVER_FLIGHT; i++) {
		assert_true(resolver_has_room(r));
		look = resolver_ask(r, STR("web.test"), ANSWER_IP4 | ANSWER_IP6, on_told, NULL, 1);
		assert_non_null(look);
	}
	assert_false(resolver_has_room(r));
	assert_null(resolver_ask(r, STR("web.test"), ANSWER_IP4, on_told, NULL, 1));
	resolver_forget(look);
	while (!resolver_has_room(r) || told < RESOLVER_FLIGHT - 1) {
		int64_t wait = resolver_tend(r, 1);

		loop_pass(l, 1, wait < 0 || wait > 10 ? 10 : wait);
		resolver_event(r);
	}
	assert_int_equal(told, RESOLVER_FLIGHT - 1);	/* nobody hears of what was forgotten */
	assert_int_equal(resolver_tend(r, 1), -1);
	assert_int_equal(resolver_counts(r).asked, 2 * RESOLVER_FLIGHT);
	assert_int_equal(resolver_counts(r).failed, 2 * RESOLVER_FLIGHT);
	resolver_free(r);
	loop_free(l);
}

static void what_is_under_way_ends_with_the_resolver(void **state)
{
	struct loop *l = loop_new(&events, NULL);
	struct resolver *r = resolver_of(l);

	(void)state;
	told = 0;
	for (int i = 0; i < 5; i++)
		assert_non_null(resolver_ask(r, STR("web.test."), ANSWER_SRV, on_told, NULL, 1));
	resolver_free(r);
	assert_int_equal(told, 0);
	r = resolver_of(l);		/* nothing was asked: nothing was made */
	resolver_free(r);
	loop_free(l);
}

static void no_memory(void **state)
{
	struct loop *l = loop_new(&events, NULL);

	(void)state;
	for (size_t n = 1; n < 200; n++) {
		struct resolver *r = resolver_of(l);
		struct look *look;

		told = 0;
		mem_fail_from(n);
		look = resolver_ask(r, STR("web.test"), ANSWER_IP4 | ANSWER_IP6, on_told, NULL, 1);
		mem_fail_from(0);
		for (int i = 0; look && !told && i < 1000; i++) {
			int64_t wait = resolver_tend(r, 1);

			if (told)
				break;
			loop_pass(l, 1, wait < 0 || wait > 10 ? 10 : wait);
			resolver_event(r);
		}
		assert_int_equal(told, look != NULL);
		resolver_free(r);
	}
	loop_free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(candidates),
		cmocka_unit_test(hosts),
		cmocka_unit_test(hosts_are_bounded),
		cmocka_unit_test(addresses),
		cmocka_unit_test(aliases_are_bounded),
		cmocka_unit_test(services),
		cmocka_unit_test(bytes_of_strangers),
		cmocka_unit_test(looks_are_bounded),
		cmocka_unit_test(what_is_under_way_ends_with_the_resolver),
		cmocka_unit_test(no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
