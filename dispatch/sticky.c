/* Door: sticky cookies and keys of hashes, from text to numbers and back.  Owns nothing.  Called by proxy/affinity.c for
 * requests to services that ask for it, and for no other.
 * A cookie is a block of 64 bits under a small cipher: the id of the endpoint in one half, a mark of the service in the other, so that
 * a value of our own opens to what it was made of and any other to a mark that is wrong.  The cipher is four rounds of Luby and
 * Rackoff over a keyed hash.  A MAC beside the id would say more of it: addresses are few enough to try them all. */
#include "dispatch/sticky.h"

#include <string.h>
#include "lib/base/num.h"

#define ROUNDS 4

uint32_t sticky_hash(uint32_t key, struct str s)
{
	static const struct hash_key everywhere = {UINT64_C(0x7468696d626c6521), UINT64_C(0x7265717565737473)};
	struct hash_key k = {everywhere.k0 ^ key, everywhere.k1};
	uint32_t h = (uint32_t)hash_keyed(k, s);

	return h ? h : 1;
}

static uint32_t round_of(struct hash_key key, uint8_t round, uint32_t half)
{
	const char in[5] = {(char)round, (char)half, (char)(half >> 8), (char)(half >> 16), (char)(half >> 24)};

	return (uint32_t)hash_keyed(key, (struct str){in, sizeof(in)});
}

/* Apart from `round_of` by its length, which no name of a service has with that. */
static uint32_t mark_of(struct hash_key key, struct str service)
{
	return (uint32_t)(hash_keyed((struct hash_key){key.k0, ~key.k1}, service) >> 32);
}

void sticky_value(struct hash_key key, struct str service, uint32_t id, char out[STICKY_VALUE])
{
	static const char digits[] = "0123456789abcdef";
	uint32_t a = id, b = mark_of(key, service);
	uint64_t both;

	for (uint8_t i = 0; i < ROUNDS; i += 2) {
		a ^= round_of(key, i, b);
		b ^= round_of(key, i + 1, a);
	}
	both = (uint64_t)a << 32 | b;
	for (int i = STICKY_VALUE; i-- > 0; both >>= 4)
		out[i] = digits[both & 15];
}

uint32_t sticky_id(struct hash_key key, struct str service, struct str value)
{
	uint64_t both = 0;
	uint32_t a, b;

	if (value.n != STICKY_VALUE)
		return 0;
	for (size_t i = 0; i < value.n; i++) {
		int digit = num_hex_digit(value.p[i]);

		if (digit < 0)
			return 0;
		both = both << 4 | (uint64_t)digit;
	}
	a = (uint32_t)(both >> 32);
	b = (uint32_t)both;
	for (uint8_t i = ROUNDS; i > 0; i -= 2) {
		b ^= round_of(key, i - 1, a);
		a ^= round_of(key, i - 2, b);
	}
	return b == mark_of(key, service) ? a : 0;
}

/* Takes what stands before the next `mark`. */
static struct str take(struct str *rest, char mark)
{
	const char *end = rest->n ? memchr(rest->p, mark, rest->n) : NULL;
	struct str one = {rest->p, end ? (size_t)(end - rest->p) : rest->n};

	*rest = end ? (struct str){end + 1, rest->n - one.n - 1} : (struct str){rest->p + rest->n, 0};
	return one;
}

static bool pair(struct str one, struct str name, struct str *value)
{
	struct str said = take(&one, '=');

	if (!str_eq(said, name))
		return false;
	*value = one;
	return true;
}

bool sticky_cookie(struct str *field, struct str name, struct str *value)
{
	while (field->n)
		if (pair(str_trim(take(field, ';')), name, value))
			return true;
	return false;
}

bool sticky_query(struct str query, struct str name, struct str *value)
{
	while (query.n)
		if (pair(take(&query, '&'), name, value))
			return true;
	return false;
}
