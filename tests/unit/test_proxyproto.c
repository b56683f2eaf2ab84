/* The PROXY protocol: rows of headers, each whole and byte by byte; what is written is read back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <stdio.h>

#include "lib/net/proxyproto.h"

#define S(literal) {literal, sizeof(literal) - 1}
#define SIG "\r\n\r\n\0\r\nQUIT\n"
#define A4 "\xc0\0\2\1" "\xc6\x33\x64\2" "\x1f\x90" "\1\xbb"	/* 192.0.2.1:8080 to 198.51.100.2:443 */
#define A6 "\x20\1\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\1" "\x20\1\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\2" "\x1f\x90" "\1\xbb"
#define Z36 "000000000000000000000000000000000000"
#define Z216 Z36 Z36 Z36 Z36 Z36 Z36

enum { DONE = PROXYPROTO_DONE, MORE = PROXYPROTO_MORE, BAD = PROXYPROTO_BAD, NONE = PROXYPROTO_NONE };

static const struct row {
	const char *name;
	struct str in;
	int kind;
	size_t rest;		/* DONE: bytes behind the header */
	const char *source;	/* "" for none */
} rows[] = {
	{ "text, IPv4", S("PROXY TCP4 192.0.2.1 198.51.100.2 8080 443\r\nGET"), DONE, 3, "192.0.2.1 8080" },
	{ "text, IPv6", S("PROXY TCP6 2001:db8::1 2001:DB8::2 8080 443\r\n"), DONE, 0, "2001:db8::1 8080" },
	{ "text, the longest IPv6", S("PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n"), DONE, 0,
	  "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535" },
	{ "text, port 0", S("PROXY TCP4 192.0.2.1 198.51.100.2 0 0\r\n"), DONE, 0, "192.0.2.1 0" },
	{ "text, a mapped IPv4", S("PROXY TCP6 ::ffff:192.0.2.1 ::1 1 2\r\n"), DONE, 0, "::ffff:192.0.2.1 1" },
	{ "unknown", S("PROXY UNKNOWN\r\n\r\n"), DONE, 2, "" },
	{ "unknown, with more", S("PROXY UNKNOWN ffff::1 and so on\r\n"), DONE, 0, "" },
	{ "unknown, 107 bytes", S("PROXY UNKNOWN " Z36 Z36 "0000000000000000000\r\n"), DONE, 0, "" },
	{ "unknown, 108 bytes", S("PROXY UNKNOWN " Z36 Z36 "00000000000000000000\r\n"), BAD, 0, "" },
	{ "no end in 107 bytes", S("PROXY UNKNOWN " Z36 Z36 "000000000000000000000"), BAD, 0, "" },
	{ "unknown with a tail", S("PROXY UNKNOWNX\r\n"), BAD, 0, "" },
	{ "unknown in small letters", S("PROXY unknown\r\n"), BAD, 0, "" },
	{ "text, source 0.0.0.0", S("PROXY TCP4 0.0.0.0 198.51.100.2 1 2\r\n"), DONE, 0, "" },
	{ "only the word", S("PROXY \r\n"), BAD, 0, "" },
	{ "no family of ours", S("PROXY UDP4 192.0.2.1 198.51.100.2 1 2\r\n"), BAD, 0, "" },
	{ "IPv6 in TCP4", S("PROXY TCP4 2001:db8::1 2001:db8::2 1 2\r\n"), BAD, 0, "" },
	{ "IPv4 in TCP6", S("PROXY TCP6 192.0.2.1 198.51.100.2 1 2\r\n"), BAD, 0, "" },
	{ "zone", S("PROXY TCP6 fe80::1%1 fe80::2 1 2\r\n"), BAD, 0, "" },
	{ "brackets", S("PROXY TCP6 [::1] [::2] 1 2\r\n"), BAD, 0, "" },
	{ "leading zero in an address", S("PROXY TCP4 192.0.02.1 198.51.100.2 1 2\r\n"), BAD, 0, "" },
	{ "256", S("PROXY TCP4 192.0.2.256 198.51.100.2 1 2\r\n"), BAD, 0, "" },
	{ "three parts", S("PROXY TCP4 192.0.2 198.51.100.2 1 2\r\n"), BAD, 0, "" },
	{ "leading zero in a port", S("PROXY TCP4 192.0.2.1 198.51.100.2 01 2\r\n"), BAD, 0, "" },
	{ "port 65536", S("PROXY TCP4 192.0.2.1 198.51.100.2 65536 2\r\n"), BAD, 0, "" },
	{ "signed port", S("PROXY TCP4 192.0.2.1 198.51.100.2 +1 2\r\n"), BAD, 0, "" },
	{ "one port", S("PROXY TCP4 192.0.2.1 198.51.100.2 1\r\n"), BAD, 0, "" },
	{ "three ports", S("PROXY TCP4 192.0.2.1 198.51.100.2 1 2 3\r\n"), BAD, 0, "" },
	{ "two spaces", S("PROXY TCP4  192.0.2.1 198.51.100.2 1 2\r\n"), BAD, 0, "" },
	{ "space in front", S("PROXY  TCP4 192.0.2.1 198.51.100.2 1 2\r\n"), BAD, 0, "" },
	{ "space at the end", S("PROXY TCP4 192.0.2.1 198.51.100.2 1 2 \r\n"), BAD, 0, "" },
	{ "tab", S("PROXY TCP4\t192.0.2.1 198.51.100.2 1 2\r\n"), BAD, 0, "" },
	{ "LF alone", S("PROXY TCP4 192.0.2.1 198.51.100.2 1 2\nGET / HTTP/1.1\r\n"), BAD, 0, "" },
	{ "CR alone", S("PROXY TCP4 192.0.2.1 198.51.100.2 1 2\rGET"), BAD, 0, "" },
	{ "NUL in an address", S("PROXY TCP4 192.0.2.1\0 198.51.100.2 1 2\r\n"), BAD, 0, "" },
	{ "cut", S("PROXY TCP4 192.0.2.1"), MORE, 0, "" },
	{ "cut before LF", S("PROXY TCP4 192.0.2.1 198.51.100.2 1 2\r"), MORE, 0, "" },
	{ "small letters", S("proxy TCP4 192.0.2.1 198.51.100.2 1 2\r\n"), NONE, 0, "" },
	{ "a request", S("GET / HTTP/1.1\r\n"), NONE, 0, "" },
	{ "a request with P", S("POST / HTTP/1.1\r\n"), NONE, 0, "" },
	{ "a method like it", S("PROXYX / HTTP/1.1\r\n"), NONE, 0, "" },
	{ "TLS", S("\x16\3\1"), NONE, 0, "" },
	{ "empty lines", S("\r\n\r\nGET"), NONE, 0, "" },

	{ "binary, IPv4", S(SIG "\x21\x11\0\x0c" A4 "rest"), DONE, 4, "192.0.2.1 8080" },
	{ "binary, IPv6", S(SIG "\x21\x21\0\x24" A6 "rest"), DONE, 4, "2001:db8::1 8080" },
	{ "binary, local", S(SIG "\x20\0\0\0"), DONE, 0, "" },
	{ "binary, local with an address", S(SIG "\x20\x11\0\x0c" A4), DONE, 0, "" },
	{ "binary, local with anything", S(SIG "\x20\x21\0\3" "abc"), DONE, 0, "" },
	{ "binary, unspecified", S(SIG "\x21\0\0\5" "hello"), DONE, 0, "" },
	{ "binary, UDP", S(SIG "\x21\x12\0\x0c" A4), DONE, 0, "" },
	{ "binary, unix", S(SIG "\x21\x31\0\xd8" Z216), DONE, 0, "" },
	{ "binary, unix too short", S(SIG "\x21\x31\0\x0c" A4), BAD, 0, "" },
	{ "binary, source 0.0.0.0", S(SIG "\x21\x11\0\x0c" "\0\0\0\0" "\xc6\x33\x64\2" "\x1f\x90" "\1\xbb"), DONE, 0, "" },
	{ "binary, no room for addresses", S(SIG "\x21\x11\0\x0b" A4), BAD, 0, "" },
	{ "binary, IPv6 in the room of IPv4", S(SIG "\x21\x21\0\x0c" A4), BAD, 0, "" },
	{ "binary, version 1", S(SIG "\x11\x11\0\x0c" A4), BAD, 0, "" },
	{ "binary, another command", S(SIG "\x22\x11\0\x0c" A4), BAD, 0, "" },
	{ "binary, another family", S(SIG "\x21\x41\0\x0c" A4), BAD, 0, "" },
	{ "binary, another transport", S(SIG "\x21\x13\0\x0c" A4), BAD, 0, "" },
	{ "binary, a TLV", S(SIG "\x21\x11\0\x11" A4 "\4\0\2xx"), DONE, 0, "192.0.2.1 8080" },
	{ "binary, an empty TLV", S(SIG "\x21\x11\0\x0f" A4 "\4\0\0"), DONE, 0, "192.0.2.1 8080" },
	{ "binary, a cut TLV", S(SIG "\x21\x11\0\x0e" A4 "\4\0"), BAD, 0, "" },
	{ "binary, a TLV beyond the header", S(SIG "\x21\x11\0\x10" A4 "\4\0\2x"), BAD, 0, "" },
	{ "binary, the sum", S(SIG "\x21\x11\0\x13" A4 "\3\0\4\xdc\xa6\xb6\xbb"), DONE, 0, "192.0.2.1 8080" },
	{ "binary, a wrong sum", S(SIG "\x21\x11\0\x13" A4 "\3\0\4\xdc\xa6\xb6\xba"), BAD, 0, "" },
	{ "binary, a sum of three bytes", S(SIG "\x21\x11\0\x12" A4 "\3\0\3\0\0\0"), BAD, 0, "" },
	{ "binary, too long", S(SIG "\x21\x11\x0f\xf1" A4), BAD, 0, "" },
	{ "binary, as long as may be", S(SIG "\x21\x11\x0f\xf0" A4), MORE, 0, "" },
	{ "binary, cut", S(SIG "\x21\x11\0\x0c" "\xc0\0\2\1"), MORE, 0, "" },
	{ "binary, half a signature", S("\r\n\r\n\0\r\nQU"), MORE, 0, "" },
	{ "binary, nearly a signature", S("\r\n\r\n\0\r\nQUIT\r"), NONE, 0, "" },
};

static void source_is(const struct row *r, const struct proxyproto *p)
{
	char ip[INET6_ADDRSTRLEN], text[80] = "";

	if (p->family) {
		inet_ntop(p->family == 4 ? AF_INET : AF_INET6, p->src.ip, ip, sizeof ip);
		snprintf(text, sizeof text, "%s %u", ip, p->src.port);
	}
	assert_string_equal(text, r->source);
}

static void every_row(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct row *r = &rows[i];
		struct proxyproto p;
		int kind = proxyproto_read(r->in, &p);

		if (kind != r->kind)
			print_error("row: %s\n", r->name);
		assert_int_equal(kind, r->kind);
		if (kind != DONE)
			continue;
		assert_int_equal(p.length, r->in.n - r->rest);
		source_is(r, &p);
	}
}

/* Each byte in a block of its own size; what is decided early is what the whole gives. */
static void byte_by_byte(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct row *r = &rows[i];
		int kind = MORE;

		for (size_t n = 0; n <= r->in.n && kind == MORE; n++) {
			char *part = malloc(n ? n : 1);
			struct proxyproto p;

			memcpy(part, r->in.p, n);
			kind = proxyproto_read((struct str){ part, n }, &p);
			free(part);
			if (kind == DONE) {
				assert_int_equal(n, r->in.n - r->rest);
				source_is(r, &p);
			}
		}
		if (kind != r->kind)
			print_error("row: %s\n", r->name);
		assert_int_equal(kind, r->kind);
	}
}

/* A sum behind other TLVs, over all bytes of the header. */
static void sum_covers_all(void **state)
{
	static const char head[] = SIG "\x21\x11\0\x19" A4 "\4\0\3abc" "\3\0\4\0\0\0\0";
	uint8_t b[sizeof head - 1];
	uint32_t crc = ~0u;
	struct proxyproto p;

	(void)state;
	memcpy(b, head, sizeof b);
	for (size_t i = 0; i < sizeof b; i++) {	/* another way to the same sum: bit by bit */
		crc ^= b[i];
		for (int k = 0; k < 8; k++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
	}
	crc = ~crc;
	for (int k = 0; k < 4; k++)
		b[sizeof b - 4 + (size_t)k] = (uint8_t)(crc >> (24 - 8 * k));
	assert_int_equal(proxyproto_read((struct str){ (char *)b, sizeof b }, &p), DONE);
	for (size_t i = 16; i < sizeof b; i++) {
		if (i == 34)
			continue;	/* the type of the sum */
		b[i] ^= 1;
		assert_int_equal(proxyproto_read((struct str){ (char *)b, sizeof b }, &p), BAD);
		b[i] ^= 1;
	}
}

static void one_sum_is_enough(void **state)
{
	static const char two[] = SIG "\x21\x11\0\x1a" A4 "\3\0\4\xdc\xa6\xb6\xbb" "\3\0\4\xdc\xa6\xb6\xbb";
	struct proxyproto p;

	(void)state;
	assert_int_equal(proxyproto_read((struct str){ two, sizeof two - 1 }, &p), BAD);
}

static void writes(const struct proxyproto *p, const char *bytes, size_t n)
{
	char to[PROXYPROTO_WRITE_MAX];
	struct proxyproto back;

	assert_int_equal(proxyproto_write(p, to), n);
	assert_memory_equal(to, bytes, n);
	assert_int_equal(proxyproto_read((struct str){ to, n }, &back), DONE);
	assert_int_equal(back.length, n);
	assert_int_equal(back.family, p->local ? 0 : p->family);
	assert_int_equal(back.local, p->local);
	if (p->family && !p->local) {
		assert_memory_equal(&back.src, &p->src, sizeof p->src);
		assert_memory_equal(&back.dst, &p->dst, sizeof p->dst);
	}
}

#define WRITES(p, literal) writes(p, literal, sizeof(literal) - 1)

static void what_is_written(void **state)
{
	struct proxyproto p = { .version = 1, .family = 4, .src = { { 192, 0, 2, 1 }, 8080 }, .dst = { { 198, 51, 100, 2 }, 443 } };

	(void)state;
	WRITES(&p, "PROXY TCP4 192.0.2.1 198.51.100.2 8080 443\r\n");
	p.version = 2;
	WRITES(&p, SIG "\x21\x11\0\x0c" A4);
	p.local = true;
	WRITES(&p, SIG "\x20\0\0\0");
	p = (struct proxyproto){ .version = 1, .family = 6, .src = { { 0x20, 1, 0xd, 0xb8, [15] = 1 }, 8080 },
		.dst = { { 0x20, 1, 0xd, 0xb8, [15] = 2 }, 443 } };
	WRITES(&p, "PROXY TCP6 2001:db8::1 2001:db8::2 8080 443\r\n");
	p.version = 2;
	WRITES(&p, SIG "\x21\x21\0\x24" A6);
	p.family = 0;
	WRITES(&p, SIG "\x21\0\0\0");
	p.version = 1;
	WRITES(&p, "PROXY UNKNOWN\r\n");
	memset(&p, 0xff, sizeof p);
	p.version = 1;
	p.family = 6;
	p.local = false;
	WRITES(&p, "PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row), cmocka_unit_test(byte_by_byte), cmocka_unit_test(sum_covers_all),
		cmocka_unit_test(one_sum_is_enough), cmocka_unit_test(what_is_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
