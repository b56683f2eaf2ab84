/* dispatch/networks: what is in a set, against the plain way of finding out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <arpa/inet.h>

#include "dispatch/networks.h"
#include "lib/base/mem.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static struct network block(const char *text)
{
	struct network n = {.family = NETWORK_UNIX};
	char copy[64], *slash;

	if (strcmp(text, "unix:") == 0)
		return n;
	strcpy(copy, text);
	slash = strchr(copy, '/');
	assert_non_null(slash);
	*slash = '\0';
	n.bits = (uint8_t)atoi(slash + 1);
	n.family = strchr(copy, ':') ? NETWORK_IP6 : NETWORK_IP4;
	assert_int_equal(inet_pton(n.family == NETWORK_IP6 ? AF_INET6 : AF_INET, copy, n.ip), 1);
	return n;
}

/* A set of up to 8 blocks, ended by NULL. */
static struct networks *set(const char *const *text)
{
	struct network n[8];
	size_t count = 0;
	struct networks *s;

	for (; text[count]; count++)
		n[count] = block(text[count]);
	s = networks_new(n, count);
	assert_non_null(s);
	return s;
}

static bool has(const struct networks *s, const char *ip)
{
	uint8_t bytes[16];
	bool v6 = strchr(ip, ':');

	assert_int_equal(inet_pton(v6 ? AF_INET6 : AF_INET, ip, bytes), 1);
	return networks_has(s, v6 ? NETWORK_IP6 : NETWORK_IP4, bytes);
}

static void borders(void **state)
{
	static const struct { const char *block, *in[4], *out[6]; } rows[] = {
		{"10.0.0.0/8", {"10.0.0.0", "10.255.255.255", "::ffff:10.1.1.1"}, {"9.255.255.255", "11.0.0.0", "a00::", "::a00:1"}},
		{"192.0.2.1/32", {"192.0.2.1"}, {"192.0.2.0", "192.0.2.2"}},
		{"192.0.2.128/25", {"192.0.2.128", "192.0.2.255"}, {"192.0.2.127", "192.0.3.0"}},
		{"0.0.0.0/0", {"0.0.0.0", "255.255.255.255", "::ffff:1.2.3.4"}, {"::", "::1"}},
		{"128.0.0.0/1", {"128.0.0.0", "255.0.0.0"}, {"127.255.255.255"}},
		{"::/0", {"::", "::1", "ffff::"}, {"0.0.0.0", "1.2.3.4", "::ffff:1.2.3.4"}},
		{"2001:db8::/33", {"2001:db8::", "2001:db8:7fff:ffff::"}, {"2001:db8:8000::", "2001:db7:ffff::", "32.1.13.184"}},
		{"fd00::1/128", {"fd00::1"}, {"fd00::", "fd00::2"}},
		{"::ffff:10.0.0.0/104", {"10.9.9.9", "::ffff:10.9.9.9"}, {"11.0.0.0", "::", "::ffff:9.0.0.1"}},
		{"::ffff:0.0.0.0/96", {"1.1.1.1", "::ffff:1.1.1.1"}, {"::1"}},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct networks *s = set((const char *const[]){rows[i].block, NULL});

		for (size_t k = 0; k < 4 && rows[i].in[k]; k++)
			assert_true(has(s, rows[i].in[k]));
		for (size_t k = 0; k < 6 && rows[i].out[k]; k++)
			assert_false(has(s, rows[i].out[k]));
		assert_false(networks_has(s, NETWORK_UNIX, NULL));
		networks_free(s);
	}
}

static void unix_peers_are_no_address(void **state)
{
	struct networks *s = set((const char *const[]){"unix:", NULL});

	(void)state;
	assert_true(networks_has(s, NETWORK_UNIX, NULL));
	assert_false(has(s, "0.0.0.0"));
	assert_false(has(s, "::"));
	assert_int_equal(networks_count(s), 1);
	networks_free(s);
	s = networks_new(NULL, 0);
	assert_int_equal(networks_count(s), 0);
	assert_false(has(s, "1.2.3.4") || has(s, "::1") || networks_has(s, NETWORK_UNIX, NULL));
	networks_free(s);
	networks_free(NULL);
}

static void what_lies_in_another_is_not_kept(void **state)
{
	struct networks *a = set((const char *const[]){"10.1.0.0/16", "10.0.0.0/8", "10.0.0.0/9", "10.0.0.0/8", "fd00::/8",
						       "fd00::/16", "::ffff:10.2.0.0/112", NULL});
	struct networks *b = set((const char *const[]){"fd00::/8", "10.0.0.0/8", NULL});
	struct networks *c = set((const char *const[]){"fd00::/8", "10.0.0.0/8", "unix:", NULL});
	struct networks *d = set((const char *const[]){"fd00::/8", "11.0.0.0/8", NULL});

	(void)state;
	assert_int_equal(networks_count(a), 2);
	assert_true(networks_same(a, b) && networks_hash(a) == networks_hash(b));
	assert_false(networks_same(a, c) || networks_same(a, d) || networks_same(a, NULL) || networks_same(NULL, a));
	assert_true(networks_hash(a) != networks_hash(c) && networks_hash(a) != networks_hash(d));
	assert_true(networks_same(NULL, NULL) && networks_hash(NULL) == 0);
	assert_true(has(a, "10.200.0.0") && has(a, "fd12::"));
	networks_free(a);
	networks_free(b);
	networks_free(c);
	networks_free(d);
}

static bool plainly(const struct network *n, size_t count, uint8_t family, const uint8_t *ip)
{
	for (size_t i = 0; i < count; i++) {
		unsigned bit = 0;

		while (n[i].family == family && bit < n[i].bits && !((n[i].ip[bit / 8] ^ ip[bit / 8]) & (0x80u >> bit % 8)))
			bit++;
		if (n[i].family == family && bit == n[i].bits)
			return true;
	}
	return false;
}

static uint32_t seed = 7;

static uint32_t next(void)
{
	seed = seed * 1664525 + 1013904223;
	return seed >> 16;
}

/* Blocks that lie close to each other, in both families, and addresses at and beside their borders. */
static void random_sets(void **state)
{
	size_t hits = 0, misses = 0;

	(void)state;
	for (int round = 0; round < 300; round++) {
		struct network n[40];
		size_t count = next() % 40;
		struct networks *s;

		for (size_t i = 0; i < count; i++) {
			n[i] = (struct network){.family = next() % 2 ? NETWORK_IP4 : NETWORK_IP6};
			n[i].bits = (uint8_t)(next() % (n[i].family == NETWORK_IP4 ? 33 : 129));
			for (size_t k = 0; k < 16; k++)
				n[i].ip[k] = (uint8_t)(next() % 4 ? 32 : next());
		}
		s = networks_new(n, count);
		assert_non_null(s);
		for (int k = 0; k < 200; k++) {
			uint8_t family = next() % 2 ? NETWORK_IP4 : NETWORK_IP6, ip[16];

			memset(ip, 32, sizeof(ip));
			if (count && next() % 4)
				memcpy(ip, n[next() % count].ip, sizeof(ip));
			ip[next() % 16] ^= (uint8_t)(1u << next() % 8);
			if (networks_has(s, family, ip))
				hits++;
			else
				misses++;
			assert_int_equal(networks_has(s, family, ip), plainly(n, count, family, ip));
		}
		networks_free(s);
	}
	assert_true(hits > 1000 && misses > 1000);
}

static void addresses_as_proxies_write_them(void **state)
{
	static const struct { const char *text, *is; } rows[] = {
		{"192.0.2.1", "192.0.2.1"}, {"192.0.2.1:80", "192.0.2.1"}, {"192.0.2.1:65535", "192.0.2.1"}, {"0.0.0.0", "0.0.0.0"},
		{"2001:db8::1", "2001:db8::1"}, {"[2001:db8::1]", "2001:db8::1"}, {"[2001:db8::1]:443", "2001:db8::1"},
		{"::", "::"}, {"::1", "::1"}, {"1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8"}, {"::ffff:192.0.2.1", "192.0.2.1"},
		{"[::ffff:c000:201]:1", "192.0.2.1"}, {"::192.0.2.1", "::192.0.2.1"},
	};
	static const char *const wrong[] = {
		"", "unknown", "_hidden", "192.0.2", "192.0.2.1:", "192.0.2.1:123456", "192.0.2.1:8o", "192.0.2.1:80:80", "192.0.2.01",
		"256.0.0.1", "192.0.2.1 ", " 192.0.2.1", "[192.0.2.1]", "[::1", "[::1]80", "[::1]:", "[]", "[", "::1]", "fe80::1%1",
		"192.0.2.1/32", "\"192.0.2.1\"", ":80", ":", "1:2:3:4:5:6:7:8:9", "[[::1]]",
		"0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0001",
	};
	uint8_t family, ip[16];

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		char text[INET6_ADDRSTRLEN];

		assert_int_equal(network_read_address((struct str){rows[i].text, strlen(rows[i].text)}, &family, ip), OK);
		assert_int_equal(family, strchr(rows[i].is, ':') ? NETWORK_IP6 : NETWORK_IP4);
		inet_ntop(family == NETWORK_IP4 ? AF_INET : AF_INET6, ip, text, sizeof(text));
		assert_string_equal(text, rows[i].is);
	}
	family = 77;
	memset(ip, 77, sizeof(ip));
	for (size_t i = 0; i < COUNT(wrong); i++) {
		assert_int_equal(network_read_address((struct str){wrong[i], strlen(wrong[i])}, &family, ip), ERR_SYNTAX);
		assert_true(family == 77 && ip[0] == 77 && ip[15] == 77);
	}
	assert_int_equal(network_read_address(STR("1.2.3.4\0"), &family, ip), ERR_SYNTAX);
}

static void masks(void **state)
{
	uint8_t all[16], to[16];

	(void)state;
	memset(all, 0xff, sizeof(all));
	for (unsigned bits = 0; bits <= 128; bits++) {
		memset(to, 0, sizeof(to));
		network_mask(to, all, bits);
		for (unsigned i = 0; i < 128; i++)
			assert_int_equal(to[i / 8] >> (7 - i % 8) & 1, i < bits);
	}
}

static void without_memory(void **state)
{
	struct network n = block("10.0.0.0/8");
	struct networks *s;

	(void)state;
	mem_fail_from(1);
	assert_null(networks_new(&n, 1));
	mem_fail_from(2);
	s = networks_new(&n, 1);	/* it stays a little larger */
	mem_fail_from(0);
	assert_non_null(s);
	assert_true(has(s, "10.0.0.1"));
	networks_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(borders),
		cmocka_unit_test(unix_peers_are_no_address),
		cmocka_unit_test(what_lies_in_another_is_not_kept),
		cmocka_unit_test(random_sets),
		cmocka_unit_test(addresses_as_proxies_write_them),
		cmocka_unit_test(masks),
		cmocka_unit_test(without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
