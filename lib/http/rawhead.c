/* Raw heads: one fast look at the bytes, and the start lines.
 *
 * Called by the HTTP/1 codec before anything else reads a head.  Owns nothing, keeps
 * no state but the position that the caller holds for it.
 *
 * Invariant: what passed rawhead_scan has CR and LF only as the pair that ends a
 * line, no NUL, and no line that begins with white space. */
#ifdef __SSE2__
#include <emmintrin.h>
#endif
#include "lib/http/rawhead.h"
#include "lib/http/token.h"

#define METHOD_MAX 32

/* A bit for each of the 16 bytes at p that is below 0x10: NUL, TAB, LF and CR are. */
static unsigned low_mask(const unsigned char *p)
{
#ifdef __SSE2__
	__m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);

	return (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(v, _mm_set1_epi8(15)), v));
#else
	unsigned mask = 0;

	for (unsigned k = 0; k < 16; k++)
		mask |= (unsigned)(p[k] < 16) << k;
	return mask;
#endif
}

/* The first such byte at or behind i; n when there is none. */
static inline size_t next_low(const unsigned char *p, size_t i, size_t n)
{
	for (; n - i >= 16; i += 16) {
		unsigned mask = low_mask(p + i);

		if (mask)
			return i + (unsigned)__builtin_ctz(mask);
	}
	while (i < n && p[i] >= 0x10)
		i++;
	return i;
}

/* Looks over the bytes; see the promise in the header. */
enum codec_fault rawhead_scan(struct str in, uint32_t *at, uint32_t *line, uint32_t *end)
{
	const unsigned char *p = (const unsigned char *)in.p;
	size_t n = in.n, i = *at, first = n;

	*end = 0;
	if (i == 0 && n && (p[0] == ' ' || p[0] == '\t'))
		return FAULT_FOLD;
	for (;;) {
		i = next_low(p, i, n);
		if (n - i >= 3 && p[i] == '\r' && p[i + 1] == '\n' && p[i + 2] > ' ') {
			first = i < first ? i : first;
			i += 3;		/* the end of a line with another behind it, as nearly all are */
			continue;
		}
		if (i == n)
			break;
		if (p[i] == '\n' || p[i] == '\0')
			return FAULT_SYNTAX;
		if (p[i] != '\r') {
			i++;
			continue;
		}
		if (n - i >= 2 && p[i + 1] != '\n')
			return FAULT_SYNTAX;
		if (n - i < 3)
			break;
		if (p[i + 2] == ' ' || p[i + 2] == '\t')
			return FAULT_FOLD;
		if (p[i + 2] == '\r') {
			if (n - i < 4)
				break;
			if (p[i + 3] != '\n')
				return FAULT_SYNTAX;
			*line = (uint32_t)(i < first ? i : first);
			*end = (uint32_t)i + 4;
			*at = *end;
			return FAULT_NONE;
		}
		first = i < first ? i : first;
		i += 2;
	}
	*at = (uint32_t)i;
	return FAULT_NONE;
}

/* "HTTP/1.0" or "HTTP/1.1", exactly; another version of that shape is another fault. */
static enum codec_fault version_of(const char *p, uint8_t *minor)
{
	if (memcmp(p, "HTTP/", 5) != 0 || !is_digit(p[5]) || p[6] != '.' || !is_digit(p[7]))
		return FAULT_SYNTAX;
	if (p[5] != '1' || p[7] > '1')
		return FAULT_VERSION;
	*minor = (uint8_t)(p[7] - '0');
	return FAULT_NONE;
}

/* May more bytes make a target of this?  (What a target is, framing.c decides.) */
static bool target_begins(struct str t)
{
	static const char shape[] = "http";

	for (size_t i = 0; i < t.n; i++) {
		unsigned char c = (unsigned char)t.p[i];

		if (c <= ' ' || c >= 0x7f)
			return false;
		if (i < 4 && t.p[0] != '/' && t.p[0] != '*' && (c | 0x20) != shape[i])
			return false;
	}
	return true;
}

/* method SP target SP version, one space each. */
enum codec_fault rawhead_request_line(struct str line, bool whole, uint32_t max_target, struct head *h)
{
	size_t i = 0, t;
	const char *space;

	while (i < line.n && i <= METHOD_MAX && token_char((unsigned char)line.p[i]))
		i++;
	if (i > METHOD_MAX || (i == 0 && line.n))
		return FAULT_SYNTAX;
	if (i == line.n)
		return whole ? FAULT_SYNTAX : FAULT_NONE;
	if (line.p[i] != ' ')
		return FAULT_SYNTAX;
	h->method = (struct str){line.p, i};
	h->method_id = (uint8_t)method_of(h->method);
	if (h->method_id == METHOD_CONNECT)
		return FAULT_CONNECT;
	t = i + 1;
	space = memchr(line.p + t, ' ', line.n - t);
	h->target = (struct str){line.p + t, space ? (size_t)(space - line.p) - t : line.n - t};
	if (h->target.n > max_target)
		return FAULT_TARGET_SIZE;
	if (!space && !whole)
		return target_begins(h->target) ? FAULT_NONE : FAULT_TARGET;
	if (!space)
		return h->target.n ? FAULT_VERSION : FAULT_SYNTAX;
	if (h->target.n == 0)
		return FAULT_SYNTAX;
	t += h->target.n + 1;
	if (line.n - t > 8)
		return FAULT_SYNTAX;
	if (!whole)
		return FAULT_NONE;
	return line.n - t == 8 ? version_of(line.p + t, &h->minor) : FAULT_SYNTAX;
}

/* A reason is kept when it is text (RFC 9112 4), and is nothing otherwise. */
static struct str reason_clean(struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if ((c < ' ' && c != '\t') || c == 0x7f)
			return STR("");
	}
	return s;
}

/* version SP three digits [SP reason]; the space before an empty reason may lack. */
enum codec_fault rawhead_status_line(struct str line, bool whole, struct head *h)
{
	static const char shape[] = "HTTP/";
	enum codec_fault f;

	if (line.n < 8) {
		for (size_t i = 0; i < line.n && i < 5; i++)
			if (line.p[i] != shape[i])
				return FAULT_SYNTAX;
		return whole ? FAULT_SYNTAX : FAULT_NONE;
	}
	f = version_of(line.p, &h->minor);
	if (f)
		return f;
	if (line.n < 12)
		return whole ? FAULT_SYNTAX : FAULT_NONE;
	if (line.p[8] != ' ' || (line.n > 12 && line.p[12] != ' '))
		return FAULT_SYNTAX;
	if (!is_digit(line.p[9]) || !is_digit(line.p[10]) || !is_digit(line.p[11]))
		return FAULT_SYNTAX;
	h->status = (uint16_t)((line.p[9] - '0') * 100 + (line.p[10] - '0') * 10 + (line.p[11] - '0'));
	if (h->status < 100 || h->status > 599)
		return FAULT_STATUS;
	h->reason = line.n > 13 ? reason_clean((struct str){line.p + 13, line.n - 13}) : STR("");
	return FAULT_NONE;
}
