/* base64: see base64.h.  A pure function, one group of four characters at a time. */
#include "lib/base/base64.h"

/* The value of a character; 64 for one that has none. */
static unsigned value_of(char character)
{
	unsigned char c = (unsigned char)character;

	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26u;
	if (c >= '0' && c <= '9')
		return c - '0' + 52u;
	return c == '+' ? 62 : c == '/' ? 63 : 64;
}

enum err base64_decode(struct str s, void *out, size_t *n)
{
	unsigned char *to = out;

	if (s.n % 4 != 0)
		return ERR_SYNTAX;
	for (size_t i = 0; i < s.n; i += 4) {
		unsigned pad = i + 4 < s.n || s.p[i + 3] != '=' ? 0 : s.p[i + 2] != '=' ? 1 : 2;
		uint32_t group = 0;

		for (unsigned k = 0; k < 4; k++) {
			unsigned v = k < 4 - pad ? value_of(s.p[i + k]) : 0;

			if (v > 63)
				return ERR_SYNTAX;
			group = group << 6 | v;
		}
		if (group & ((1u << 8 * pad) - 1))
			return ERR_SYNTAX;
		for (unsigned k = 0; k < 3 - pad; k++)
			*to++ = (unsigned char)(group >> (16 - 8 * k));
	}
	*n = (size_t)(to - (unsigned char *)out);
	return OK;
}
