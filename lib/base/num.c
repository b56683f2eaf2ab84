/* Door: numbers to text and back, for heads, logs and metrics.  Owns nothing,
 * allocates nothing, knows no locale. */
#include "lib/base/num.h"

static const char two[] = "0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546474849"
	"5051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899";

/* At most NUM_DEC_MAX bytes.  Two digits a step: the divisions are what it costs. */
size_t num_dec(char *to, uint64_t v)
{
	size_t n = 1;
	for (uint64_t limit = 10; v >= limit && n < NUM_DEC_MAX; limit *= 10)
		n++;
	char *p = to + n;
	for (; v >= 10; v /= 100)
		memcpy(p -= 2, two + 2 * (v % 100), 2);
	if (p != to)
		*to = (char)('0' + v);
	return n;
}

/* At most NUM_HEX_MAX bytes. */
size_t num_hex(char *to, uint64_t v)
{
	size_t n = v ? (size_t)(67 - __builtin_clzll(v)) / 4 : 1;
	for (size_t i = n; i-- > 0; v >>= 4)
		to[i] = "0123456789abcdef"[v & 15];
	return n;
}

/* `width` bytes, or more when `v` needs them: then as num_dec. */
size_t num_dec_padded(char *to, uint64_t v, size_t width)
{
	char digits[NUM_DEC_MAX];
	size_t n = num_dec(digits, v), zeros = n < width ? width - n : 0;
	memset(to, '0', zeros);
	memcpy(to + zeros, digits, n);
	return zeros + n;
}

/* Digits are read to the end even when the value is too large already: what is
 * no number at all is ERR_SYNTAX, however it begins. */
static enum err parse(struct str s, unsigned base, uint64_t max, uint64_t *v)
{
	uint64_t sum = 0;
	bool large = false;
	if (s.n == 0)
		return ERR_SYNTAX;
	for (size_t i = 0; i < s.n; i++) {
		int d = num_hex_digit(s.p[i]);
		if (d < 0 || (unsigned)d >= base)
			return ERR_SYNTAX;
		large = large || __builtin_mul_overflow(sum, base, &sum) ||
		    __builtin_add_overflow(sum, (unsigned)d, &sum);
	}
	if (large || sum > max)
		return ERR_LIMIT;
	*v = sum;
	return OK;
}

/* `*v` is untouched unless OK. */
enum err num_parse_dec(struct str s, uint64_t max, uint64_t *v)
{
	return parse(s, 10, max, v);
}

/* `*v` is untouched unless OK. */
enum err num_parse_hex(struct str s, uint64_t max, uint64_t *v)
{
	return parse(s, 16, max, v);
}
