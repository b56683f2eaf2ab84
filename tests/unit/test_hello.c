/* The ClientHello peek: hellos built from parts, then whole, cut into records and byte by byte; and rows of
 * what is wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include <string.h>

#include "lib/net/hello.h"

enum { DONE = HELLO_DONE, MORE = HELLO_MORE, BAD = HELLO_BAD, HTTP = HELLO_HTTP, NOT = HELLO_NOT_TLS, NAME = HELLO_BAD_NAME, BIG = HELLO_TOO_BIG };

#define SNI(list, n, name) "\0\0\0" list "\0" n "\0\0" name
#define A_NAME "\0\0\0\x0e\0\x0c\0\0\x09" "a.example"
#define ALPN "\0\x10\0\x0e\0\x0c\2h2\x08http/1.1"
#define VERSIONS "\0\x2b\0\5\4\3\4\3\3"
#define OTHER "\0\x17\0\0" "\0\x0d\0\4\0\2\4\3"

/* A hello of TLS 1.2 with these extensions, as a handshake message.  Its length. */
static size_t message(uint8_t *m, const void *extensions, size_t n)
{
	size_t at = 4;

	m[0] = 1;
	m[at++] = 3, m[at++] = 3;
	memset(m + at, 7, 32), at += 32;
	m[at++] = 32, memset(m + at, 9, 32), at += 32;
	m[at++] = 0, m[at++] = 4, m[at++] = 0x13, m[at++] = 1, m[at++] = 0xc0, m[at++] = 0x2f;
	m[at++] = 1, m[at++] = 0;
	if (extensions) {
		m[at++] = (uint8_t)(n >> 8), m[at++] = (uint8_t)n;
		memcpy(m + at, extensions, n);
		at += n;
	}
	m[1] = (uint8_t)((at - 4) >> 16), m[2] = (uint8_t)((at - 4) >> 8), m[3] = (uint8_t)(at - 4);
	return at;
}

/* Cuts a message into records of `size` bytes.  The length of all. */
static size_t records(uint8_t *r, const uint8_t *m, size_t n, size_t size)
{
	size_t at = 0;

	for (size_t i = 0; i < n; i += size) {
		size_t k = n - i < size ? n - i : size;

		r[at++] = 22, r[at++] = 3, r[at++] = 1, r[at++] = (uint8_t)(k >> 8), r[at++] = (uint8_t)k;
		memcpy(r + at, m + i, k);
		at += k;
	}
	return at;
}

/* The same bytes one after the other, each time in a block of their size. */
static int slowly(const uint8_t *r, size_t n, struct hello *h, size_t *used)
{
	uint32_t need = 0;
	int kind = MORE;

	for (size_t i = 0; i <= n && kind == MORE; i++) {
		uint8_t *part = malloc(i ? i : 1);

		memcpy(part, r, i);
		kind = hello_peek((struct str){ (char *)part, i }, &need, h);
		free(part);
		*used = i;
	}
	return kind;
}

static int at_once(const uint8_t *r, size_t n, struct hello *h)
{
	uint32_t need = 0;

	return hello_peek((struct str){ (const char *)r, n }, &need, h);
}

static const struct row {
	const char *name;
	struct str ext;
	int kind;
	const char *sni;
	unsigned alpn, tls12, tls13;
} rows[] = {
#define S(literal) {literal, sizeof(literal) - 1}
	{ "no extensions", { NULL, 0 }, DONE, "", 0, 1, 0 },
	{ "an empty list of them", S(""), DONE, "", 0, 1, 0 },
	{ "all that is read", S(OTHER A_NAME ALPN VERSIONS), DONE, "a.example", 3, 1, 1 },
	{ "a name", S(SNI("\7", "\5", "\2") "ab"), DONE, "ab", 0, 1, 0 },
	{ "capitals", S(SNI("\x0c", "\x0a", "\7") "A.eXmPl"), DONE, "a.exmpl", 0, 1, 0 },
	{ "a dot at the end", S(SNI("\7", "\5", "\2") "a."), DONE, "a", 0, 1, 0 },
	{ "underscore and hyphen", S(SNI("\x0a", "\x08", "\5") "_a-1b"), DONE, "_a-1b", 0, 1, 0 },
	{ "an address", S(SNI("\x0e", "\x0c", "\x09") "127.0.0.1"), DONE, "127.0.0.1", 0, 1, 0 },
	{ "an IPv6 address", S(SNI("\x08", "\6", "\3") "::1"), NAME, "", 0, 0, 0 },
	{ "a dot alone", S(SNI("\6", "\4", "\1") "."), NAME, "", 0, 0, 0 },
	{ "two dots", S(SNI("\x09", "\7", "\4") "a..b"), NAME, "", 0, 0, 0 },
	{ "a dot in front", S(SNI("\7", "\5", "\2") ".b"), NAME, "", 0, 0, 0 },
	{ "NUL", S(SNI("\x08", "\6", "\3") "a\0b"), NAME, "", 0, 0, 0 },
	{ "8-bit name", S(SNI("\6", "\4", "\1") "\xe9"), NAME, "", 0, 0, 0 },
	{ "a star", S(SNI("\x08", "\6", "\3") "*.b"), NAME, "", 0, 0, 0 },
	{ "a space", S(SNI("\x08", "\6", "\3") "a b"), NAME, "", 0, 0, 0 },
	{ "no name in it", S(SNI("\5", "\3", "\0")), BAD, "", 0, 0, 0 },
	{ "an empty list of names", S("\0\0\0\2\0\0"), BAD, "", 0, 0, 0 },
	{ "an empty extension", S("\0\0\0\0"), BAD, "", 0, 0, 0 },
	{ "another type of name", S("\0\0\0\6\0\4\1\0\1a"), BAD, "", 0, 0, 0 },
	{ "two names", S("\0\0\0\x0a\0\x08\0\0\1a\0\0\1b"), BAD, "", 0, 0, 0 },
	{ "the name is longer than its list", S("\0\0\0\6\0\4\0\0\2a"), BAD, "", 0, 0, 0 },
	{ "the list is longer than the extension", S("\0\0\0\6\0\5\0\0\1a"), BAD, "", 0, 0, 0 },
	{ "bytes behind the list", S("\0\0\0\7\0\4\0\0\1a\0"), BAD, "", 0, 0, 0 },
	{ "the name twice", S(A_NAME A_NAME), BAD, "", 0, 0, 0 },
	{ "one protocol", S("\0\x10\0\5\0\3\2h2"), DONE, "", 2, 1, 0 },
	{ "another protocol", S("\0\x10\0\x0d\0\x0b\x0a" "acme-tls/1"), DONE, "", 4, 1, 0 },
	{ "no protocol that is known", S("\0\x10\0\5\0\3\2h3"), DONE, "", 0, 1, 0 },
	{ "no protocol", S("\0\x10\0\2\0\0"), BAD, "", 0, 0, 0 },
	{ "an empty protocol", S("\0\x10\0\3\0\1\0"), BAD, "", 0, 0, 0 },
	{ "a protocol longer than its list", S("\0\x10\0\5\0\3\3h2"), BAD, "", 0, 0, 0 },
	{ "protocols twice", S(ALPN ALPN), BAD, "", 0, 0, 0 },
	{ "TLS 1.3 alone", S("\0\x2b\0\3\2\3\4"), DONE, "", 0, 0, 1 },
	{ "versions unknown", S("\0\x2b\0\3\2\x7f\1"), DONE, "", 0, 0, 0 },
	{ "no versions", S("\0\x2b\0\1\0"), BAD, "", 0, 0, 0 },
	{ "half a version", S("\0\x2b\0\2\1\3"), BAD, "", 0, 0, 0 },
	{ "versions twice", S(VERSIONS VERSIONS), BAD, "", 0, 0, 0 },
	{ "an extension longer than the list", S("\0\x17\0\1"), BAD, "", 0, 0, 0 },
	{ "half an extension", S("\0\x17\0"), BAD, "", 0, 0, 0 },
	{ "a bad name before a bad extension", S(SNI("\6", "\4", "\1") "." "\0\x17\0"), BAD, "", 0, 0, 0 },
};

static void expect(const struct row *r, int kind, const struct hello *h, size_t n, size_t m)
{
	if (kind != r->kind)
		print_error("row: %s\n", r->name);
	assert_int_equal(kind, r->kind);
	if (kind != DONE)
		return;
	assert_int_equal(h->length, n);
	assert_int_equal(h->message, m);
	assert_int_equal(h->name_n, strlen(r->sni));
	assert_memory_equal(h->name, r->sni, h->name_n);
	assert_int_equal(h->alpn, r->alpn);
	assert_int_equal(h->tls12, r->tls12);
	assert_int_equal(h->tls13, r->tls13);
}

static void every_row(void **state)
{
	static const size_t sizes[] = { 16384, 100, 17, 5, 4, 3, 1 };
	uint8_t m[1024], r[8192];

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
			size_t n = message(m, rows[i].ext.p, rows[i].ext.n), all = records(r, m, n, sizes[k]), used;
			struct hello h, slow;

			expect(&rows[i], at_once(r, all, &h), &h, all, n);
			expect(&rows[i], slowly(r, all, &slow, &used), &slow, all, n);
			if (rows[i].kind == DONE) {
				assert_int_equal(used, all);
				assert_memory_equal(&h, &slow, sizeof h);
				r[all] = 20;	/* more behind it changes nothing */
				assert_int_equal(at_once(r, all + 1, &h), DONE);
			}
		}
	}
}

static void protocols_are_found(void **state)
{
	uint8_t m[1024], r[8192], list[64];
	size_t n = message(m, OTHER ALPN, sizeof(OTHER ALPN) - 1), all = records(r, m, n, 3);
	struct hello h;

	(void)state;
	assert_int_equal(at_once(r, all, &h), DONE);
	assert_int_equal(h.alpn_n, 12);
	hello_copy((struct str){ (char *)r, all }, &h, h.alpn_at, h.alpn_n, list);
	assert_memory_equal(list, "\2h2\x08http/1.1", 12);
	hello_copy((struct str){ (char *)r, all }, &h, 0, 6, list);
	assert_memory_equal(list, m, 6);
}

static void a_name_of_253_bytes(void **state)
{
	uint8_t m[1024], r[2048], ext[300] = { 0 };
	struct hello h;

	(void)state;
	for (size_t n = 250; n < 270; n++) {
		ext[2] = (uint8_t)((n + 5) >> 8), ext[3] = (uint8_t)(n + 5);
		ext[4] = (uint8_t)((n + 3) >> 8), ext[5] = (uint8_t)(n + 3);
		ext[6] = 0;
		ext[7] = (uint8_t)(n >> 8), ext[8] = (uint8_t)n;
		for (size_t i = 0; i < n; i++)
			ext[9 + i] = i % 60 == 59 ? '.' : 'x';
		size_t all = records(r, m, message(m, ext, 9 + n), 16384);

		assert_int_equal(at_once(r, all, &h), n <= 253 ? DONE : NAME);
		if (n <= 253)
			assert_int_equal(h.name_n, n);
		memset(ext + 9, 'x', n);	/* one label */
		all = records(r, m, message(m, ext, 9 + n), 16384);
		assert_int_equal(at_once(r, all, &h), NAME);
	}
}

/* A hello as long as may be, and one byte longer. */
static void how_long_it_may_be(void **state)
{
	static uint8_t m[20000], r[120000], ext[17000];
	struct hello h;
	size_t n, all, used;

	(void)state;
	ext[0] = 0, ext[1] = 0x15;	/* padding */
	for (size_t over = 0; over < 2; over++) {
		size_t pad = HELLO_MAX - 5 - message(m, ext, 4) + over;

		ext[2] = (uint8_t)(pad >> 8), ext[3] = (uint8_t)pad;
		n = message(m, ext, 4 + pad);
		all = records(r, m, n, 16384);
		assert_int_equal(all, HELLO_MAX + over);
		assert_int_equal(at_once(r, all, &h), over ? BIG : DONE);
		assert_int_equal(at_once(r, 9, &h), over ? BIG : MORE);
	}
	/* what records take counts too */
	n = message(m, ext, 4 + 4000);
	ext[2] = 4000 >> 8, ext[3] = 4000 & 255;
	n = message(m, ext, 4 + 4000);
	all = records(r, m, n, 1);
	assert_int_equal(at_once(r, all, &h), BIG);
	assert_int_equal(slowly(r, all, &h, &used), BIG);
	assert_true(used <= HELLO_MAX + 1);
}

static const struct {
	const char *name;
	struct str in;
	int kind;
} raw[] = {
	{ "nothing", S(""), MORE },
	{ "one byte", S("\x16"), MORE },
	{ "half a header", S("\x16\3\1"), MORE },
	{ "a request", S("GET / HTTP/1.1\r\n"), HTTP },
	{ "the beginning of a method", S("POS"), MORE },
	{ "a method", S("PATCH "), HTTP },
	{ "no method", S("PROXY TCP4 "), NOT },
	{ "HTTP/2", S("PRI * HTTP/2.0\r\n"), HTTP },
	{ "small letters", S("get / "), NOT },
	{ "SSH", S("SSH-2.0-x\r\n"), NOT },
	{ "an alert", S("\x15\3\1\0\2\2\x28"), NOT },
	{ "SSL 2", S("\x80\x2e\1\3\1\0\x15"), NOT },
	{ "another version of records", S("\x16\4"), NOT },
	{ "an empty record", S("\x16\3\1\0\0"), BAD },
	{ "a record of 2^14 + 1 bytes", S("\x16\3\1\x40\1"), BAD },
	{ "a record of 2^14 bytes", S("\x16\3\1\x40\0"), BIG },
	{ "another message", S("\x16\3\1\0\x20\2"), BAD },
	{ "a hello of 2^24 - 1 bytes", S("\x16\3\1\0\x20\1\xff\xff\xff"), BIG },
	{ "an alert in the middle", S("\x16\3\1\0\4\1\0\0\x40\x15"), BAD },
	{ "another version in the middle", S("\x16\3\1\0\4\1\0\0\x40\x16\2"), BAD },
	{ "an empty hello", S("\x16\3\1\0\4\1\0\0\0"), BAD },
	{ "more in its record", S("\x16\3\1\0\6\1\0\0\1\3\3"), BAD },
	{ "SSL 2 inside", S("\x16\3\1\0\6\1\0\0\2\2\0"), BAD },
};

static void raw_bytes(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof raw / sizeof *raw; i++) {
		const uint8_t *p = (const uint8_t *)raw[i].in.p;
		struct hello h;
		size_t used;
		int kind = at_once(p, raw[i].in.n, &h), slow = slowly(p, raw[i].in.n, &h, &used);

		if (kind != raw[i].kind || slow != kind)
			print_error("row: %s\n", raw[i].name);
		assert_int_equal(kind, raw[i].kind);
		assert_int_equal(slow, kind);
	}
}

/* Every length in the message made wrong, and the message cut at every byte with its length told truly. */
static void lengths_fit(void **state)
{
	uint8_t m[1024], r[2048];
	size_t n = message(m, A_NAME ALPN VERSIONS, sizeof(A_NAME ALPN VERSIONS) - 1);
	struct hello h;

	(void)state;
	for (size_t cut = 4; cut < n; cut++) {
		m[2] = (uint8_t)((cut - 4) >> 8), m[3] = (uint8_t)(cut - 4);
		/* without extensions it is a hello again */
		assert_int_equal(at_once(r, records(r, m, cut, 7), &h), cut == 4 + 2 + 32 + 33 + 6 + 2 ? DONE : BAD);
	}
}

static void alerts(void **state)
{
	uint8_t a[HELLO_ALERT_SIZE];

	(void)state;
	hello_alert(HELLO_ALERT_UNRECOGNIZED_NAME, a);
	assert_memory_equal(a, "\x15\3\3\0\2\2\x70", sizeof a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row), cmocka_unit_test(protocols_are_found), cmocka_unit_test(a_name_of_253_bytes),
		cmocka_unit_test(how_long_it_may_be), cmocka_unit_test(raw_bytes), cmocka_unit_test(lengths_fit), cmocka_unit_test(alerts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
