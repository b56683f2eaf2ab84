/* The normal form of paths: what it promises, and that other spellings of a path come to the same.
 *
 * The first bytes choose the spelling; the rest is the path. */
#include <stdint.h>
#include <stdlib.h>

#include "lib/base/check.h"
#include "lib/base/num.h"
#include "lib/base/path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PATH_MAX_IN 512

static bool unreserved(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || (c && strchr("-._~", c));
}

/* The normal form of `in` in a block of its own size. */
static char *normal(struct str in, size_t *n)
{
	char *copy = malloc(in.n), *out = malloc(3 * in.n);

	CHECK(copy && out);
	memcpy(copy, in.p, in.n);
	*n = path_normal((struct str){ copy, in.n }, out);
	CHECK(*n <= 3 * in.n);
	free(copy);
	return out;
}

/* A segment of a normal form is no dot segment, and only the last may be empty. */
static void check_segments(const char *p, size_t n)
{
	CHECK(n && p[0] == '/');
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && p[end] != '/'; end++)
			;
		size_t len = end - i - 1;

		CHECK(len || end == n);
		CHECK(!(len == 1 && p[i + 1] == '.') && !(len == 2 && p[i + 1] == '.' && p[i + 2] == '.'));
	}
}

static void check_escapes(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		CHECK(p[i] > ' ' && p[i] < 0x7f);
		if (p[i] != '%')
			continue;
		CHECK(n - i >= 3);
		int high = num_hex_digit(p[i + 1]), low = num_hex_digit(p[i + 2]);

		CHECK(high >= 0 && low >= 0 && !(p[i + 1] >= 'a') && !(p[i + 2] >= 'a'));
		CHECK(!unreserved((unsigned char)(high << 4 | low)));
	}
}

/* Whether the byte at i is part of an escape, or of what may be taken for one. */
static bool in_escape(struct str s, size_t i)
{
	return s.p[i] == '%' || (i >= 1 && s.p[i - 1] == '%') || (i >= 2 && s.p[i - 2] == '%');
}

/* Another spelling of the same path: escapes where none are needed, segments that lead nowhere. */
static size_t respell(struct str in, uint32_t seed, char *to)
{
	static const char *const nowhere[] = { "/", "/.", "/%2e", "/x/..", "/%78/%2E.", "/./." };
	static const char digits[] = "0123456789abcdefABCDEF";
	char *at = to;

	for (size_t i = 0; i < in.n; i++) {
		unsigned char c = (unsigned char)in.p[i];

		seed = seed * 1664525 + 1013904223;
		if (c == '/' && (seed >> 28) < 6) {
			const char *s = nowhere[seed >> 28];

			/* in front of a slash, so that what follows is a segment still */
			memcpy(at, s, strlen(s));
			at += strlen(s);
		}
		if (unreserved(c) && !in_escape(in, i) && (seed >> 24 & 3) == 0) {
			*at++ = '%';
			*at++ = digits[c >> 4];
			*at++ = (c & 15) < 10 ? digits[c & 15] : digits[(c & 15) + (seed >> 20 & 1 ? 6 : 0)];
			continue;
		}
		*at++ = (char)c;
	}
	return (size_t)(at - to);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char in[PATH_MAX_IN], other[8 * PATH_MAX_IN], *once, *twice, *again;
	size_t n, m, k;

	if (size < 2 || size > PATH_MAX_IN)
		return 0;
	in[0] = '/';
	memcpy(in + 1, data + 2, size - 2);
	struct str path = { in, size - 1 };

	once = normal(path, &n);
	check_segments(once, n);
	check_escapes(once, n);
	if (path_is_normal(path))
		CHECK(n == path.n && !memcmp(once, in, n));

	twice = normal((struct str){ once, n }, &m);
	CHECK(m == n && !memcmp(once, twice, n));

	m = respell(path, (uint32_t)data[0] << 24 | (uint32_t)data[1] << 16, other);
	again = normal((struct str){ other, m }, &k);
	CHECK(k == n && !memcmp(once, again, n));
	free(once);
	free(twice);
	free(again);
	return 0;
}
