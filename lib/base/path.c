/* path: see path.h.  A pure function in two steps: escapes, byte by byte, and then segments,
 * in place.  Owns nothing. */
#include "lib/base/path.h"

#include "lib/base/num.h"

static bool unreserved(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '.' || c == '_' || c == '~';
}

bool path_is_normal(struct str path)
{
	for (size_t i = 0; i < path.n; i++) {
		unsigned char c = (unsigned char)path.p[i];

		if (c == '%' || c >= 0x7f || c <= ' ')
			return false;
		if (c == '/' && i + 1 < path.n && (path.p[i + 1] == '.' || path.p[i + 1] == '/'))
			return false;
	}
	return true;
}

size_t path_normal_escapes(struct str path, char *out)
{
	static const char digits[] = "0123456789ABCDEF";
	size_t n = 0;

	for (size_t i = 0; i < path.n; i++) {
		unsigned char c = (unsigned char)path.p[i];
		int high = -1, low = -1;

		if (c == '%' && i + 2 < path.n) {
			high = num_hex_digit(path.p[i + 1]);
			low = num_hex_digit(path.p[i + 2]);
		}
		if (high >= 0 && low >= 0) {
			c = (unsigned char)(high << 4 | low);
			i += 2;
		}
		if (high >= 0 && low >= 0 ? unreserved(c) : c > ' ' && c < 0x7f && c != '%') {
			out[n++] = (char)c;
			continue;
		}
		out[n++] = '%';
		out[n++] = digits[c >> 4];
		out[n++] = digits[c & 15];
	}
	return n;
}

/* RFC 3986 5.2.4, and empty segments go too. */
static size_t normal_segments(char *p, size_t n)
{
	size_t from = 0, to = 0;

	while (from < n) {
		size_t end = from + 1;	/* p[from] is the '/' in front of a segment */

		while (end < n && p[end] != '/')
			end++;
		if (end - from == 3 && p[from + 1] == '.' && p[from + 2] == '.') {
			while (to && p[--to] != '/')
				;
			if (end == n)
				p[to++] = '/';
		} else if (end - from == 1 || (end - from == 2 && p[from + 1] == '.')) {
			if (end == n)
				p[to++] = '/';
		} else {
			memmove(p + to, p + from, end - from);
			to += end - from;
		}
		from = end;
	}
	return to;
}

/* The byte at *i, decoded when it is an escape; *i moves behind it. */
static unsigned char next_byte(struct str s, size_t *i, bool *escaped)
{
	int high, low;

	*escaped = false;
	if (s.p[*i] == '%' && *i + 2 < s.n) {
		high = num_hex_digit(s.p[*i + 1]);
		low = num_hex_digit(s.p[*i + 2]);
		if (high >= 0 && low >= 0) {
			*escaped = true;
			*i += 3;
			return (unsigned char)(high << 4 | low);
		}
	}
	return (unsigned char)s.p[(*i)++];
}

enum path_oddity path_oddity(struct str path)
{
	enum path_oddity odd = PATH_PLAIN;
	size_t length = 0, dots = 0;	/* of the segment so far; dots while it has nothing else */
	bool escaped;

	for (size_t i = 1; i < path.n;) {
		unsigned char c = next_byte(path, &i, &escaped);

		if (c == '\\' || (escaped && (c == '/' || c == 0)) || (c == ';' && dots && dots == length && dots <= 2))
			return PATH_UNSURE;
		if (c == '/') {
			if (length == 0 || (dots == length && dots <= 2))
				odd = PATH_SEGMENTS;
			length = dots = 0;
			continue;
		}
		length++;
		dots += c == '.' && dots + 1 == length;
	}
	return length && dots == length && dots <= 2 ? PATH_SEGMENTS : odd;
}

size_t path_normal(struct str path, char *out)
{
	return normal_segments(out, path_normal_escapes(path, out));
}
