/* Door: keyed string hashes.  Owns the key of the process, drawn from the
 * kernel before main and then only read.  Never a checksum and never stored:
 * the values are of this process alone.
 *
 * SipHash (Aumasson and Bernstein, 2012) with one round per word and three at
 * the end: the variant that several languages use for their tables. */
#include "lib/base/hash.h"

#include <sys/random.h>

#include "lib/base/check.h"

static struct hash_key process_key;

__attribute__((constructor)) static void draw_key(void)
{
	CHECK(getrandom(&process_key, sizeof(process_key), 0) == (ssize_t)sizeof(process_key));
}

struct sip {
	uint64_t a, b, c, d;
};

static inline uint64_t rotate(uint64_t x, int n)
{
	return x << n | x >> (64 - n);
}

static inline void sip_round(struct sip *s)
{
	s->a += s->b;
	s->c += s->d;
	s->b = rotate(s->b, 13) ^ s->a;
	s->d = rotate(s->d, 16) ^ s->c;
	s->a = rotate(s->a, 32) + s->d;
	s->c += s->b;
	s->d = rotate(s->d, 21) ^ s->a;
	s->b = rotate(s->b, 17) ^ s->c;
	s->c = rotate(s->c, 32);
}

static inline void sip_word(struct sip *s, uint64_t word)
{
	s->d ^= word;
	sip_round(s);
	s->a ^= word;
}

/* Little-endian, whatever the machine: `n` is at most 8. */
static inline uint64_t load(const char *p, size_t n)
{
	uint64_t word = 0;
	memcpy(&word, p, n);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	word = __builtin_bswap64(word);
#endif
	return word;
}

/* Sets bit 5 of each byte that is A to Z.  No byte of `low` exceeds 0x7f, so the
 * two sums carry nothing into the next byte. */
static inline uint64_t fold(uint64_t word)
{
	const uint64_t each = 0x0101010101010101u;
	uint64_t low = word & each * 0x7f;
	uint64_t from_a = low + each * (0x80 - 'A'), past_z = low + each * (0x7f - 'Z');
	return word | ((from_a & ~past_z & ~word & each * 0x80) >> 2);
}

static inline uint64_t sip13(struct hash_key key, struct str s, bool folding)
{
	struct sip v = {
		key.k0 ^ 0x736f6d6570736575u, key.k1 ^ 0x646f72616e646f6du,
		key.k0 ^ 0x6c7967656e657261u, key.k1 ^ 0x7465646279746573u,
	};
	size_t i = 0;
	for (; i + 8 <= s.n; i += 8) {
		uint64_t word = load(s.p + i, 8);
		sip_word(&v, folding ? fold(word) : word);
	}
	uint64_t last = i < s.n ? load(s.p + i, s.n - i) : 0;
	sip_word(&v, (folding ? fold(last) : last) | (uint64_t)s.n << 56);
	v.c ^= 0xff;
	for (int round = 0; round < 3; round++)
		sip_round(&v);
	return v.a ^ v.b ^ v.c ^ v.d;
}

/* Reads s.n bytes and no byte more. */
uint64_t hash_keyed(struct hash_key key, struct str s)
{
	return sip13(key, s, false);
}

/* As hash_keyed of the same text in small letters. */
uint64_t hash_keyed_fold(struct hash_key key, struct str s)
{
	return sip13(key, s, true);
}

/* For keys whose case matters. */
uint64_t hash_str(struct str s)
{
	return sip13(process_key, s, false);
}

/* For names whose case does not. */
uint64_t hash_host(struct str s)
{
	return sip13(process_key, s, true);
}

struct hash_key hash_process_key(void)
{
	return process_key;
}

/* Replaces the key that was drawn. */
void hash_set_key(struct hash_key key)
{
	process_key = key;
}
