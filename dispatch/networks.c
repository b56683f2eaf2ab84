/* Door: networks, sets of CIDR blocks: who is trusted, let in or kept out.  Each is
 * one heap block, owned by who made it.  Called when a configuration becomes
 * settings and routes, and for requests that somebody has to be told apart for;
 * never asks a resolver.
 *
 * A block is its address and, behind it, its bits: 5 bytes for IPv4, 17 for IPv6.
 * Two blocks lie one in the other or apart; of the former only the outer one is
 * kept, so that in the order of their bytes the only block that can hold an address
 * is the last that does not begin behind it. */
#include "dispatch/networks.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include "lib/base/hash.h"
#include "lib/base/mem.h"

struct networks {
	uint32_t n4, n6;
	bool unix_peers;
	uint8_t block[];	/* n4 of WIDTH4 + 1 bytes, then n6 of WIDTH6 + 1; each sorted */
};

#define WIDTH4 4u
#define WIDTH6 16u
#define MAPPED_BITS 96u

static const uint8_t mapped[MAPPED_BITS / 8] = {[10] = 0xff, [11] = 0xff};

static bool is_mapped(const uint8_t *ip)
{
	return memcmp(ip, mapped, sizeof(mapped)) == 0;
}

/* Whether the first `bits` of both are the same. */
static bool same_bits(const uint8_t *a, const uint8_t *b, unsigned bits)
{
	unsigned whole = bits / 8, rest = bits % 8;

	return memcmp(a, b, whole) == 0 && (rest == 0 || (a[whole] ^ b[whole]) >> (8 - rest) == 0);
}

void network_mask(uint8_t *to, const uint8_t *ip, unsigned bits)
{
	memcpy(to, ip, bits / 8);
	if (bits % 8)
		to[bits / 8] = (uint8_t)(ip[bits / 8] & ~(0xffu >> bits % 8));
}

/* Whether `s` is a port behind an address: ":80". */
static bool is_port(struct str s)
{
	size_t i;

	for (i = 1; i < s.n; i++)
		if (s.p[i] < '0' || s.p[i] > '9')
			return false;
	return s.n > 1 && s.n <= 6 && s.p[0] == ':';
}

enum err network_read_address(struct str text, uint8_t *family, uint8_t ip[16])
{
	bool brackets = text.n && text.p[0] == '[';
	const char *end = !text.n ? NULL : memchr(text.p, brackets ? ']' : ':', text.n);
	struct str rest = {end, end ? text.n - (size_t)(end - text.p) : 0};
	char z[INET6_ADDRSTRLEN] = "";
	uint8_t v[16];

	if (brackets && end) {
		text = (struct str){text.p + 1, (size_t)(end - text.p) - 1};
		rest = (struct str){end + 1, rest.n - 1};
		if (rest.n && !is_port(rest))
			return ERR_SYNTAX;
	} else if (is_port(rest)) {
		text.n -= rest.n;	/* `1.2.3.4:80`; behind the first colon of an IPv6 address there is another */
	}
	if (!text.n || text.n >= sizeof(z) || memchr(text.p, '\0', text.n))
		return ERR_SYNTAX;
	memcpy(z, text.p, text.n);
	/* never into `ip`: some write there before they see that it is no address */
	if (!brackets && inet_pton(AF_INET, z, v) == 1) {
		*family = NETWORK_IP4;
		memcpy(ip, v, 4);
		return OK;
	}
	if (inet_pton(AF_INET6, z, v) != 1)
		return ERR_SYNTAX;
	*family = is_mapped(v) ? NETWORK_IP4 : NETWORK_IP6;
	memcpy(ip, is_mapped(v) ? v + 12 : v, is_mapped(v) ? 4 : 16);
	return OK;
}

/* Writes a block at `to`: its address without what is behind its bits, and its bits. */
static void put(uint8_t *to, const uint8_t *ip, unsigned bits, unsigned width)
{
	memset(to, 0, width);
	network_mask(to, ip, bits);
	to[width] = (uint8_t)bits;
}

static int compare4(const void *a, const void *b)
{
	return memcmp(a, b, WIDTH4 + 1);
}

static int compare6(const void *a, const void *b)
{
	return memcmp(a, b, WIDTH6 + 1);
}

/* Drops what lies in another block: of sorted ones, the outer comes first.  How many are left. */
static uint32_t outermost(uint8_t *block, uint32_t n, unsigned width)
{
	const uint8_t *last = NULL;
	uint32_t i, kept = 0;

	for (i = 0; i < n; i++) {
		const uint8_t *b = block + (size_t)i * (width + 1);
		uint8_t *to = block + (size_t)kept * (width + 1);

		if (last && same_bits(last, b, last[width]))
			continue;
		memmove(to, b, width + 1);
		last = to;
		kept++;
	}
	return kept;
}

struct networks *networks_new(const struct network *list, size_t n)
{
	struct networks *s = n < UINT32_MAX ? mem_zalloc(sizeof(*s) + n * (WIDTH6 + 1)) : NULL, *smaller;
	size_t i, size;
	uint8_t *six;

	if (!s)
		return NULL;
	for (i = 0; i < n; i++) {
		const struct network *b = &list[i];
		bool is4 = b->family == NETWORK_IP6 && b->bits >= MAPPED_BITS && is_mapped(b->ip);

		s->unix_peers |= b->family == NETWORK_UNIX;
		if (b->family == NETWORK_IP4)
			put(s->block + s->n4++ * (WIDTH4 + 1), b->ip, b->bits, WIDTH4);
		else if (is4)
			put(s->block + s->n4++ * (WIDTH4 + 1), b->ip + 12, b->bits - MAPPED_BITS, WIDTH4);
	}
	qsort(s->block, s->n4, WIDTH4 + 1, compare4);
	s->n4 = outermost(s->block, s->n4, WIDTH4);
	six = s->block + s->n4 * (WIDTH4 + 1);
	for (i = 0; i < n; i++) {
		const struct network *b = &list[i];

		if (b->family == NETWORK_IP6 && !(b->bits >= MAPPED_BITS && is_mapped(b->ip)))
			put(six + s->n6++ * (WIDTH6 + 1), b->ip, b->bits, WIDTH6);
	}
	qsort(six, s->n6, WIDTH6 + 1, compare6);
	s->n6 = outermost(six, s->n6, WIDTH6);
	size = sizeof(*s) + s->n4 * (WIDTH4 + 1) + s->n6 * (WIDTH6 + 1);
	smaller = mem_realloc(s, size);
	return smaller ? smaller : s;
}

void networks_free(struct networks *s)
{
	mem_free(s);
}

/* The block that holds `ip` is the last of the `n` that does not begin behind it, or there is none. */
static bool holds(const uint8_t *block, uint32_t n, unsigned width, const uint8_t *ip)
{
	const uint8_t *b;
	uint32_t low = 0;

	while (n > low) {
		uint32_t middle = low + (n - low) / 2;

		if (memcmp(block + (size_t)middle * (width + 1), ip, width) <= 0)
			low = middle + 1;
		else
			n = middle;
	}
	if (low == 0)
		return false;
	b = block + (size_t)(low - 1) * (width + 1);
	return same_bits(b, ip, b[width]);
}

bool networks_has(const struct networks *s, uint8_t family, const uint8_t *ip)
{
	if (family == NETWORK_UNIX)
		return s->unix_peers;
	if (family == NETWORK_IP6 && !is_mapped(ip))
		return holds(s->block + s->n4 * (WIDTH4 + 1), s->n6, WIDTH6, ip);
	return holds(s->block, s->n4, WIDTH4, family == NETWORK_IP6 ? ip + 12 : ip);
}

size_t networks_count(const struct networks *s)
{
	return (size_t)s->n4 + s->n6 + s->unix_peers;
}

static struct str blocks(const struct networks *s)
{
	return (struct str){(const char *)s->block, (size_t)s->n4 * (WIDTH4 + 1) + (size_t)s->n6 * (WIDTH6 + 1)};
}

bool networks_same(const struct networks *a, const struct networks *b)
{
	if (!a || !b)
		return a == b;
	return a->n4 == b->n4 && a->n6 == b->n6 && a->unix_peers == b->unix_peers && str_eq(blocks(a), blocks(b));
}

uint64_t networks_hash(const struct networks *s)
{
	return s ? hash_str(blocks(s)) + s->unix_peers + 1 : 0;
}
