/* proxyproto: see proxyproto.h.
 *
 * Pure: bytes in, a value out, and back.  It keeps no state between two calls: a text header has at most 107
 * bytes, and of a binary one nothing but its fixed part is looked at until all of it is there.  Called by
 * the client side before a head is read and by the pool behind a connect.
 * Whether a header is to be believed is not decided here. */
#include "lib/net/proxyproto.h"

#include <arpa/inet.h>
#include <string.h>

#include "lib/base/num.h"
#include "lib/base/put.h"

#define SIGNATURE "\r\n\r\n\0\r\nQUIT\n"
#define FIXED 16u	/* signature, version and command, family, length */

#define TLV_CRC32C 3

/* --- version 1: a line of text --- */

/* The next part of the line, up to a space or its end; the space is consumed. */
static struct str part(struct str *line)
{
	const char *space = memchr(line->p, ' ', line->n);
	struct str s = { line->p, space ? (size_t)(space - line->p) : line->n };

	line->p += s.n + (space != NULL);
	line->n -= s.n + (space != NULL);
	return s;
}

static bool read_ip(struct str s, int af, uint8_t *ip)
{
	char text[INET6_ADDRSTRLEN];

	if (s.n >= sizeof text || memchr(s.p, 0, s.n))
		return false;
	memcpy(text, s.p, s.n);
	text[s.n] = 0;
	return inet_pton(af, text, ip) == 1;
}

static bool read_port(struct str s, uint16_t *port)
{
	uint64_t v;

	if ((s.n > 1 && s.p[0] == '0') || num_parse_dec(s, UINT16_MAX, &v) != OK)
		return false;
	*port = (uint16_t)v;
	return true;
}

/* The line behind "PROXY ", without its CRLF. */
static bool read_line(struct str line, struct proxyproto *p)
{
	bool last_space = line.n && line.p[line.n - 1] == ' ';
	struct str family = part(&line);
	int af = AF_INET;

	if (str_eq(family, STR("UNKNOWN")))
		return true;	/* whatever follows is to be ignored */
	p->family = 4;
	if (str_eq(family, STR("TCP6"))) {
		p->family = 6;
		af = AF_INET6;
	} else if (!str_eq(family, STR("TCP4"))) {
		return false;
	}
	return read_ip(part(&line), af, p->src.ip) && read_ip(part(&line), af, p->dst.ip) &&
	       read_port(part(&line), &p->src.port) && read_port(part(&line), &p->dst.port) && !line.n && !last_space;
}

static enum proxyproto_kind read_v1(struct str in, struct proxyproto *p)
{
	for (size_t i = 6; i < in.n; i++) {
		unsigned char c = (unsigned char)in.p[i];

		if (c == '\r') {
			if (i + 2 > PROXYPROTO_V1_MAX)
				return PROXYPROTO_BAD;
			if (i + 1 == in.n)
				return PROXYPROTO_MORE;
			p->version = 1;
			p->length = (uint16_t)(i + 2);
			if (in.p[i + 1] != '\n' || !read_line((struct str){ in.p + 6, i - 6 }, p))
				return PROXYPROTO_BAD;
			return PROXYPROTO_DONE;
		}
		if (c < ' ' || c > '~' || i + 3 > PROXYPROTO_V1_MAX)
			return PROXYPROTO_BAD;
	}
	return PROXYPROTO_MORE;
}

/* --- version 2: binary --- */

/* RFC 9260 appendix A: reflected, half a byte at a time. */
static uint32_t crc32c(uint32_t crc, const uint8_t *b, size_t n)
{
	static const uint32_t table[16] = {
		0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
		0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
	};

	while (n--) {
		crc ^= *b++;
		crc = crc >> 4 ^ table[crc & 15];
		crc = crc >> 4 ^ table[crc & 15];
	}
	return crc;
}

/* Whether the sum of all `n` bytes of the header, with zeros for the sum at `at`, is the one there. */
static bool crc_right(const uint8_t *b, size_t n, size_t at)
{
	static const uint8_t zero[4];
	uint32_t told = (uint32_t)b[at] << 24 | (uint32_t)b[at + 1] << 16 | (uint32_t)b[at + 2] << 8 | b[at + 3];
	uint32_t crc = crc32c(~0u, b, at);

	crc = crc32c(crc, zero, 4);
	crc = crc32c(crc, b + at + 4, n - at - 4);
	return ~crc == told;
}

/* TLVs from `at` to `n`, the end of the header, and nothing between or behind them. */
static bool tlvs_right(const uint8_t *b, size_t n, size_t at)
{
	bool summed = false;

	while (at < n) {
		size_t len;

		if (n - at < 3)
			return false;
		len = (size_t)b[at + 1] << 8 | b[at + 2];
		if (n - at - 3 < len)
			return false;
		if (b[at] == TLV_CRC32C) {
			if (summed || len != 4 || !crc_right(b, n, at + 3))
				return false;
			summed = true;
		}
		at += 3 + len;
	}
	return true;
}

static uint16_t port_at(const uint8_t *b)
{
	return (uint16_t)(b[0] << 8 | b[1]);
}

/* The addresses of a TCP connection, `size` bytes each. */
static void read_ends(const uint8_t *b, size_t size, struct proxyproto *p)
{
	p->family = size == 4 ? 4 : 6;
	memcpy(p->src.ip, b, size);
	memcpy(p->dst.ip, b + size, size);
	p->src.port = port_at(b + 2 * size);
	p->dst.port = port_at(b + 2 * size + 2);
}

static enum proxyproto_kind read_v2(const uint8_t *b, size_t n, struct proxyproto *p)
{
	static const uint8_t sizes[] = { 0, 12, 36, 216 };	/* of addresses: none, IPv4, IPv6, unix */
	size_t length;

	if (n > 12 && b[12] != 0x20 && b[12] != 0x21)
		return PROXYPROTO_BAD;
	if (n > 13 && (b[13] >> 4 > 3 || (b[13] & 15) > 2))
		return PROXYPROTO_BAD;
	if (n < FIXED)
		return PROXYPROTO_MORE;
	length = FIXED + port_at(b + 14);
	if (length > PROXYPROTO_MAX)
		return PROXYPROTO_BAD;
	p->local = b[12] == 0x20;
	if (!p->local && length < FIXED + sizes[b[13] >> 4])
		return PROXYPROTO_BAD;
	if (n < length)
		return PROXYPROTO_MORE;
	p->version = 2;
	p->length = (uint16_t)length;
	if (p->local || b[13] >> 4 == 0)
		return PROXYPROTO_DONE;
	if (!tlvs_right(b, length, FIXED + sizes[b[13] >> 4]))
		return PROXYPROTO_BAD;
	if (b[13] == 0x11 || b[13] == 0x21)
		read_ends(b + FIXED, b[13] == 0x11 ? 4 : 16, p);
	return PROXYPROTO_DONE;
}

/* --- both --- */

/* `in` begins with `head`, or is the beginning of it. */
static bool begins(struct str in, struct str head)
{
	return memcmp(in.p, head.p, in.n < head.n ? in.n : head.n) == 0;
}

enum proxyproto_kind proxyproto_read(struct str in, struct proxyproto *p)
{
	static const uint8_t zero[16];
	struct proxyproto got = { 0 };
	enum proxyproto_kind kind;

	if (!in.n)
		return PROXYPROTO_MORE;
	if (begins(in, STR("PROXY ")))
		kind = read_v1(in, &got);
	else if (begins(in, STR(SIGNATURE)))
		kind = read_v2((const uint8_t *)in.p, in.n, &got);
	else
		return PROXYPROTO_NONE;
	if (kind != PROXYPROTO_DONE)
		return kind;
	if (got.family && !memcmp(got.src.ip, zero, got.family == 4 ? 4 : 16))
		got.family = 0;
	*p = got;
	return kind;
}

static char *put_ip(char *to, int af, const uint8_t *ip)
{
	char text[INET6_ADDRSTRLEN];

	return put_str(to, str_of(inet_ntop(af, ip, text, sizeof text)));
}

static size_t write_v1(const struct proxyproto *p, char *to)
{
	int af = p->family == 4 ? AF_INET : AF_INET6;
	char *at = PUT(to, "PROXY ");

	if (!p->family) {
		at = PUT(at, "UNKNOWN");
	} else {
		at = put_str(at, p->family == 4 ? STR("TCP4 ") : STR("TCP6 "));
		at = put_ip(at, af, p->src.ip);
		*at++ = ' ';
		at = put_ip(at, af, p->dst.ip);
		*at++ = ' ';
		at += num_dec(at, p->src.port);
		*at++ = ' ';
		at += num_dec(at, p->dst.port);
	}
	at = PUT(at, "\r\n");
	return (size_t)(at - to);
}

static size_t write_v2(const struct proxyproto *p, char *to)
{
	size_t size = p->local || !p->family ? 0 : p->family == 4 ? 4 : 16, n = size ? 2 * size + 4 : 0;
	uint8_t *b = (uint8_t *)PUT(to, SIGNATURE);

	*b++ = p->local ? 0x20 : 0x21;
	*b++ = !size ? 0 : size == 4 ? 0x11 : 0x21;
	*b++ = 0;
	*b++ = (uint8_t)n;
	if (size) {
		memcpy(b, p->src.ip, size);
		memcpy(b + size, p->dst.ip, size);
		b += 2 * size;
		*b++ = (uint8_t)(p->src.port >> 8);
		*b++ = (uint8_t)p->src.port;
		*b++ = (uint8_t)(p->dst.port >> 8);
		*b++ = (uint8_t)p->dst.port;
	}
	return FIXED + n;
}

size_t proxyproto_write(const struct proxyproto *p, char *to)
{
	return p->version == 1 ? write_v1(p, to) : write_v2(p, to);
}
