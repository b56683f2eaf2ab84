/* Chunked bodies: one row per rule, each row whole and byte by byte. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include "lib/http/chunked.h"

#define LIMIT 64
#define S(literal) {literal, sizeof(literal) - 1}

enum { DONE = CHUNKED_TRAILERS, BAD = CHUNKED_BAD, MORE = CHUNKED_MORE, OVER = CHUNKED_OVERHEAD };

static const struct row {
	const char *name;
	struct str in;
	int end;		/* what it comes to */
	const char *body;	/* the bytes before that */
	size_t rest;		/* left in the input, when whole */
} rows[] = {
	{"one chunk", S("5\r\nhello\r\n0\r\n\r\n"), DONE, "hello", 2},
	{"two chunks", S("3\r\nabc\r\n2\r\nde\r\n0\r\n"), DONE, "abcde", 0},
	{"hex of both cases", S("a\r\n0123456789\r\nA\r\n0123456789\r\n0\r\n"), DONE, "01234567890123456789", 0},
	{"sixteen digits", S("0000000000000005\r\nhello\r\n0\r\n"), DONE, "hello", 0},
	{"seventeen digits", S("00000000000000005\r\nhello\r\n"), BAD, "", 1},
	{"sixteen zeros end it", S("0000000000000000\r\n\r\n"), DONE, "", 2},
	{"2^63 - 1", S("7fffffffffffffff\r\nhi"), MORE, "hi", 0},
	{"2^63", S("8000000000000000\r\nhi"), BAD, "", 1},
	{"2^64 - 1", S("ffffffffffffffff\r\nhi"), BAD, "", 1},
	{"no digits", S("\r\nhello"), BAD, "", 0},
	{"plus", S("+5\r\nhello"), BAD, "", 0},
	{"minus", S("-5\r\nhello"), BAD, "", 0},
	{"0x", S("0x5\r\nhello"), BAD, "", 0},
	{"leading space", S(" 5\r\nhello"), BAD, "", 0},
	{"trailing space", S("5 \r\nhello"), BAD, "", 0},
	{"space before an extension", S("5 ;a\r\nhello\r\n0\r\n"), DONE, "hello", 0},
	{"LF after the size", S("5\nhello\r\n"), BAD, "", 0},
	{"CR alone after the size", S("5\rhello\r\n"), BAD, "", 0},
	{"CR CR LF", S("5\r\r\nhello\r\n"), BAD, "", 0},
	{"LF after the data", S("5\r\nhello\n0\r\n"), BAD, "hello", 0},
	{"two other bytes after the data", S("5\r\nhelloXX0\r\n"), BAD, "hello", 0},
	{"CR and another byte after the data", S("5\r\nhello\rX0\r\n"), BAD, "hello", 0},
	{"more data than announced", S("5\r\nhello!\r\n0\r\n"), BAD, "hello", 0},
	{"less data than announced", S("5\r\nhell\r\n0\r\n"), BAD, "hell\r", 0},
	{"extension", S("5;a=b\r\nhello\r\n0;x\r\n"), DONE, "hello", 0},
	{"extensions with spaces", S("5 ; a = b ; c\r\nhello\r\n0\r\n"), DONE, "hello", 0},
	{"quoted value", S("5;a=\"x;y\"\r\nhello\r\n0\r\n"), DONE, "hello", 0},
	{"escape in quotes", S("5;a=\"\\\"\\\\\"\r\nhello\r\n0\r\n"), DONE, "hello", 0},
	{"CRLF in quotes", S("5;a=\"\r\n\"\r\nhello\r\n"), BAD, "", 0},
	{"LF in quotes", S("5;a=\"\n\"\r\nhello\r\n"), BAD, "", 0},
	{"escaped CR", S("5;a=\"\\\r\"\r\nhello\r\n"), BAD, "", 0},
	{"bytes behind the quote", S("5;a=\"b\"c\r\nhello\r\n"), BAD, "", 0},
	{"LF in an extension", S("5;a\nhello\r\n"), BAD, "", 0},
	{"CR in an extension", S("5;a\rb\r\nhello\r\n"), BAD, "", 0},
	{"NUL in an extension", S("5;a=\0\r\nhello\r\n"), BAD, "", 0},
	{"extension without semicolon", S("5 a=b\r\nhello\r\n"), BAD, "", 0},
	{"extension without name", S("5;\r\nhello\r\n"), BAD, "", 0},
	{"extension without value", S("5;a=\r\nhello\r\n"), BAD, "", 0},
	{"space, then the end", S("5;a \r\nhello\r\n"), BAD, "", 0},
	{"8-bit extension", S("5;a=\xe9\r\nhello\r\n"), BAD, "", 0},
	{"cut in the size", S("5"), MORE, "", 0},
	{"cut in the data", S("5\r\nhel"), MORE, "hel", 0},
	{"cut before the last chunk", S("5\r\nhello\r\n"), MORE, "hello", 0},
	{"trailers are not touched", S("0\r\nA: b\r\n\r\n"), DONE, "", 8},
	{"a line beyond the limit", S("5;aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\nhello"), OVER, "", 0},
};

/* Runs `in`, `step` bytes at a time; returns the last kind, and the body bytes. */
static int run(struct str in, size_t step, char *body, size_t *n, size_t *rest)
{
	struct chunked c = {0};
	struct str piece = {NULL, 0}, part = {in.p, 0};
	int kind = CHUNKED_MORE;

	*n = 0;
	while (part.p + part.n < in.p + in.n) {
		size_t left = (size_t)(in.p + in.n - part.p) - part.n;

		part.n += left < step ? left : step;
		do {
			kind = (int)chunked_next(&c, &part, LIMIT, &piece);
			if (kind == CHUNKED_DATA) {
				memcpy(body + *n, piece.p, piece.n);
				*n += piece.n;
			}
		} while (kind == CHUNKED_DATA);
		if (kind != CHUNKED_MORE)
			break;
		assert_int_equal(part.n, 0);
	}
	*rest = (size_t)(in.p + in.n - part.p);
	return kind;
}

static void test_rows(void **state)
{
	char body[256];
	size_t n, rest;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *r = &rows[i];

		for (size_t step = 1; step <= r->in.n; step = step == 1 ? 2 : step == 2 ? 3 : step < r->in.n ? r->in.n : step + 1) {
			int kind = run(r->in, step, body, &n, &rest);

			if (kind != r->end)
				fail_msg("%s, step %zu: %d, not %d", r->name, step, kind, r->end);
			if (n != strlen(r->body) || memcmp(body, r->body, n) != 0)
				fail_msg("%s, step %zu: body %.*s", r->name, step, (int)n, body);
			if (kind == DONE && rest != r->rest)
				fail_msg("%s, step %zu: %zu bytes left", r->name, step, rest);
		}
	}
}

/* Every byte that may follow "5" and "5;a": nothing but the grammar's. */
static void test_bytes(void **state)
{
	char body[8];
	size_t n, rest;

	(void)state;
	for (int b = 0; b < 256; b++) {
		char size[2] = {'5', (char)b}, ext[4] = {'5', ';', 'a', (char)b};
		bool hex = (b >= '0' && b <= '9') || (b >= 'a' && b <= 'f') || (b >= 'A' && b <= 'F');
		bool line = b == '\r' || b == ';' || b == ' ' || b == '\t';
		bool token = b > ' ' && b < 127 && !strchr("\"(),/:;<=>?@[\\]{}", b);

		assert_int_equal(run((struct str){size, 2}, 2, body, &n, &rest), hex || line ? MORE : BAD);
		assert_int_equal(run((struct str){ext, 4}, 4, body, &n, &rest), token || line || b == '=' ? MORE : BAD);
	}
}

/* Extensions are bounded over the whole body, and long bodies pay for theirs. */
static void test_flood(void **state)
{
	struct chunked c = {0};
	struct str piece = {NULL, 0};
	int kind = CHUNKED_DATA, chunks = 0;

	(void)state;
	for (; chunks < 100 && kind != CHUNKED_OVERHEAD; chunks++) {
		struct str in = STR("1;a=bbbbbbbbbbbbbbbbbbbb\r\nx\r\n");

		do
			kind = (int)chunked_next(&c, &in, LIMIT, &piece);
		while (kind == CHUNKED_DATA);
	}
	assert_in_range(chunks, 2, 20);
	c = (struct chunked){0};
	for (chunks = 0; chunks < 1000; chunks++) {
		struct str in = STR("a;a=bbbbbbbbbbbbbbbbbbbb\r\n0123456789\r\n");

		do
			kind = (int)chunked_next(&c, &in, LIMIT, &piece);
		while (kind == CHUNKED_DATA);
		assert_int_equal(kind, CHUNKED_MORE);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows), cmocka_unit_test(test_bytes), cmocka_unit_test(test_flood),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
