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

/* Writes a block at `to`: its address without what is behind its bits, and its bits. */
static void put(uint8_t *to, const uint8_t *ip, unsigned bits, unsigned width)
{
	unsigned i;

	for (i = 0; i < width; i++) {
		unsigned left = bits > 8 * i ? bits - 8 * i : 0;

		to[i] = (uint8_t)(left >= 8 ? ip[i] : ip[i] & ~(0xffu >> left));
	}
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
