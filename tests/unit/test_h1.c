/* The HTTP/1 codec: what comes in as events, what goes out as bytes; one row per rule,
 * each row whole, in pieces, and byte by byte. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "lib/http/h1_parse.h"
#include "tests/unit/h1_trace.h"

#define S(literal) {literal, sizeof(literal) - 1}
#define N(array) (sizeof(array) / sizeof((array)[0]))
#define G "GET /x HTTP/1.1\r\nHost: a\r\n"
#define P "POST /x HTTP/1.1\r\nHost: a\r\n"
#define TE "Transfer-Encoding: chunked\r\n"
#define PT P TE "\r\n"

static const struct codec_limits limits = {.head = 1024, .target = 256, .fields = 16, .interim = 3, .chunk_overhead = 64};
static struct h1_shared *shared;
static char scratch[VEC_SCRATCH];

static int setup(void **state)
{
	(void)state;
	shared = h1_shared_new(&limits);
	return shared ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	h1_shared_free(shared);
	return 0;
}

struct row {
	const char *name;
	struct str in;
	const char *what;
};

static const struct row requests[] = {
	{"plain", S(G "\r\n"), "HEAD GET /x a none\nEND\n"},
	{"value shapes", S(G "A:\r\nB: \r\nC:\t d e \t\r\nD:e\r\nE: \xe9\r\nF: a:b, \"c\"\r\n\r\n"),
		"HEAD GET /x a none | A:  | B:  | C: d e | D: e | E: \xe9 | F: a:b, \"c\"\nEND\n"},
	{"host last, odd case", S("GET / HTTP/1.1\r\nA: b\r\nhOST:a\r\n\r\n"), "HEAD GET / a none | A: b\nEND\n"},
	{"a method that llhttp does not know", S("BREW /x HTTP/1.1\r\nHost: a\r\n\r\n"), "HEAD BREW /x a none\nEND\n"},
	{"PROPFIND", S("PROPFIND /x HTTP/1.1\r\nHost: a\r\n\r\n"), "HEAD PROPFIND /x a none\nEND\n"},
	{"SOURCE", S("SOURCE /x HTTP/1.1\r\nHost: a\r\n\r\n"), "HEAD SOURCE /x a none\nEND\n"},
	{"HTTP/1.0", S("GET /x HTTP/1.0\r\n\r\n"), "HEAD GET /x  none 1.0 close\nEND\n"},
	{"empty lines before", S("\r\n\r\n" G "\r\n"), "HEAD GET /x a none\nEND\n"},
	{"many empty lines", S("\r\n\r\n\r\n\r\n\r\n" G "\r\n"), "BAD SYNTAX\n"},
	{"LF before", S("\n" G "\r\n"), "BAD SYNTAX\n"},
	{"CR before", S("\r" G "\r\n"), "BAD SYNTAX\n"},
	{"pipelined: not touched", S(G "\r\n" G "\r\n"), "HEAD GET /x a none\nEND\n"},
	{"absolute form", S("GET http://b:8/y HTTP/1.1\r\nHost: a\r\n\r\n"), "HEAD GET /y b:8 none\nEND\n"},
	{"absolute form without path", S("GET HTTP://b?q HTTP/1.1\r\nHost: a\r\n\r\n"), "HEAD GET /?q b none\nEND\n"},
	{"asterisk", S("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"), "HEAD OPTIONS * a none\nEND\n"},
	{"odd but legal path", S("GET /%2F%2f%5c%41%7e%C3%A9;v=1,2:@!$&'()*+=?a=1&b=%20+&c=/../x?y&&=; HTTP/1.1\r\nHost: a\r\n\r\n"),
		"HEAD GET /%2F%2f%5c%41%7e%C3%A9;v=1,2:@!$&'()*+=?a=1&b=%20+&c=/../x?y&&=; a none\nEND\n"},
	{"a lone question mark", S("GET /x? HTTP/1.1\r\nHost: a\r\n\r\n"), "HEAD GET /x? a none\nEND\n"},
	{"unwise characters", S("GET /\"<>^`{|} HTTP/1.1\r\nHost: a\r\n\r\n"), "HEAD GET /\"<>^`{|} a none\nEND\n"},
	{"two slashes", S("GET //x HTTP/1.1\r\nHost: a\r\n\r\n"), "HEAD GET //x a none\nEND\n"},
	{"CONNECT", S("CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n"), "BAD CONNECT\n"},
	{"no Host", S("GET /x HTTP/1.1\r\nA: b\r\n\r\n"), "BAD HOST\n"},
	{"two Hosts", S(G "Host: a\r\n\r\n"), "BAD HOST\n"},
	{"HTTP/0.9", S("GET /x\r\n\r\n"), "BAD VERSION\n"},
	{"HTTP/0.9 with fields and a length", S("POST /x\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"), "BAD VERSION\n"},
	{"HTTP/0.9 with LF", S("GET /x\nHost: a\r\n\r\n"), "BAD SYNTAX\n"},
	{"HTTP/2.0", S("GET /x HTTP/2.0\r\nHost: a\r\n\r\n"), "BAD VERSION\n"},
	{"HTTP/1.2", S("GET /x HTTP/1.2\r\nHost: a\r\n\r\n"), "BAD VERSION\n"},
	{"HTTP/2 preface", S("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), "BAD VERSION\n"},
	{"TLS", S("\x16\x03\x01\x02\x00\x01"), "BAD SYNTAX\n"},
	{"space in the target", S("GET /a b HTTP/1.1\r\nHost: a\r\n\r\n"), "BAD SYNTAX\n"},
	{"NUL in the target", S("GET /a\0b HTTP/1.1\r\nHost: a\r\n\r\n"), "BAD SYNTAX\n"},
	{"fragment", S("GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n"), "BAD TARGET\n"},
	{"8 bit in the target", S("GET /\xc3\xa9 HTTP/1.1\r\nHost: a\r\n\r\n"), "BAD TARGET\n"},
	{"userinfo", S("GET http://u:p@a/ HTTP/1.1\r\nHost: a\r\n\r\n"), "BAD TARGET\n"},
	{"space before the colon", S(G "A : b\r\n\r\n"), "BAD SYNTAX\n"},
	{"tab before the colon", S(G "A\t: b\r\n\r\n"), "BAD SYNTAX\n"},
	{"space in the name", S(G "A B: c\r\n\r\n"), "BAD SYNTAX\n"},
	{"empty name", S(G ": b\r\n\r\n"), "BAD SYNTAX\n"},
	{"no colon", S(G "A\r\n\r\n"), "BAD SYNTAX\n"},
	{"space before the first field", S("GET /x HTTP/1.1\r\n Host: a\r\n\r\n"), "BAD FOLD\n"},
	{"fold", S(G "A: b\r\n c\r\n\r\n"), "BAD FOLD\n"},
	{"folded Content-Length", S(P "Content-Length:\r\n 5\r\n\r\nhello"), "BAD FOLD\n"},
	{"LF at a line's end", S("GET /x HTTP/1.1\nHost: a\r\n\r\n"), "BAD SYNTAX\n"},
	{"LF at the head's end", S(G "\n"), "BAD SYNTAX\n"},
	{"CR in a value", S(G "A: b\rC: d\r\n\r\n"), "BAD SYNTAX\n"},
	{"NUL in a value", S(G "A: b\0c\r\n\r\n"), "BAD SYNTAX\n"},
	{"control in a value", S(G "A: b\x01\r\n\r\n"), "BAD SYNTAX\n"},
	{"form feed before chunked", S(P "Transfer-Encoding:\fchunked\r\n\r\n"), "BAD SYNTAX\n"},
	{"nbsp before chunked", S(P "Transfer-Encoding:\xa0" "chunked\r\n\r\n"), "BAD TRANSFER_CODING\n"},
	{"sized", S(P "Content-Length: 5\r\n\r\nhelloGET"), "HEAD POST /x a sized=5\nBODY hello\nEND\n"},
	{"length zero", S(P "Content-Length: 0\r\n\r\n"), "HEAD POST /x a none=0\nEND\n"},
	{"two equal lengths", S(P "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello"), "BAD LENGTH\n"},
	{"a list of lengths", S(P "Content-Length: 5, 5\r\n\r\nhello"), "BAD LENGTH\n"},
	{"2^63", S(P "Content-Length: 9223372036854775808\r\n\r\n"), "BAD LENGTH\n"},
	{"2^64 + 5", S(P "Content-Length: 18446744073709551621\r\n\r\nhello"), "BAD LENGTH\n"},
	{"minus", S(P "Content-Length: -5\r\n\r\nhello"), "BAD LENGTH\n"},
	{"vertical tab", S(P "Content-Length: \v5\r\n\r\nhello"), "BAD LENGTH\n"},
	{"both lengths", S(P "Content-Length: 5\r\n" TE "\r\n0\r\n\r\n"), "BAD BOTH_LENGTHS\n"},
	{"both, the other order", S(P TE "Content-Length: 5\r\n\r\n0\r\n\r\n"), "BAD BOTH_LENGTHS\n"},
	{"empty coding beside a length", S(P "Content-Length: 5\r\nTransfer-Encoding:\r\n\r\nhello"), "BAD BOTH_LENGTHS\n"},
	{"chunked", S(PT "5\r\nhello\r\n1;x=\"y\"\r\n!\r\n0\r\n\r\nGET"), "HEAD POST /x a streamed\nBODY hello!\nEND\n"},
	{"tab before chunked", S(P "Transfer-Encoding:\tchunked\r\n\r\n0\r\n\r\n"), "HEAD POST /x a streamed\nEND\n"},
	{"chunked twice", S(P TE TE "\r\n0\r\n\r\n"), "BAD TRANSFER_CODING\n"},
	{"gzip, chunked", S(P "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"), "BAD TRANSFER_CODING\n"},
	{"chunked, gzip", S(P "Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n"), "BAD TRANSFER_CODING\n"},
	{"unknown coding", S(P "Transfer-Encoding: cow\r\n\r\n"), "BAD CODING_UNKNOWN\n"},
	{"chunked in HTTP/1.0", S("POST /x HTTP/1.0\r\nHost: a\r\n" TE "\r\n0\r\n\r\n"), "BAD TRANSFER_CODING\n"},
	{"bad chunk", S(PT "5\r\nhelloXX0\r\n\r\n"), "HEAD POST /x a streamed\nBODY hello\nBAD CHUNK\n"},
	{"extension too long", S(PT "5;aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\nhello\r\n0\r\n\r\n"),
		"HEAD POST /x a streamed\nBAD CHUNK_OVERHEAD\n"},
	{"trailers", S(PT "0\r\nX-T: 1\r\nContent-Length: 5\r\nHost: b\r\nY: \t2 \r\n\r\nGET"),
		"HEAD POST /x a streamed\nTRAILERS | X-T: 1 | Y: 2\nEND\n"},
	{"only forbidden trailers", S(PT "0\r\nTransfer-Encoding: cow\r\n\r\n"), "HEAD POST /x a streamed\nEND\n"},
	{"trailer that looks like a request", S(PT "0\r\nX:POST /s HTTP/1.1\r\n\r\n"),
		"HEAD POST /x a streamed\nTRAILERS | X: POST /s HTTP/1.1\nEND\n"},
	{"trailer without colon", S(PT "0\r\nGET /s HTTP/1.1\r\n\r\n"), "HEAD POST /x a streamed\nBAD TRAILER\n"},
	{"trailer with LF", S(PT "0\r\nA: b\nC: d\r\n\r\n"), "HEAD POST /x a streamed\nBAD TRAILER\n"},
	{"LF for the empty line", S(PT "0\r\n\n"), "HEAD POST /x a streamed\nBAD TRAILER\n"},
	{"CR and another byte for the empty line", S(PT "0\r\n\rX"), "HEAD POST /x a streamed\nBAD TRAILER\n"},
	{"folded trailer", S(PT "0\r\nA: b\r\n c\r\n\r\n"), "HEAD POST /x a streamed\nBAD TRAILER\n"},
	{"fold at the front of the trailers", S(PT "0\r\n A: b\r\n\r\n"), "HEAD POST /x a streamed\nBAD TRAILER\n"},
	{"many trailers", S(PT "0\r\na:b\r\na:b\r\na:b\r\na:b\r\na:b\r\na:b\r\na:b\r\na:b\r\na:b\r\na:b\r\na:b\r\na:b\r\na:b\r\na:b\r\na:b\r\na:b\r\na:b\r\n\r\n"),
		"HEAD POST /x a streamed\nBAD FIELD_COUNT\n"},
	{"fields at the limit", S(G "a:b\r\na:b\r\na:b\r\na:b\r\na:b\r\na:b\r\na:b\r\na:b\r\na:b\r\na:b\r\na:b\r\na:b\r\na:b\r\na:b\r\nlast:b\r\n\r\n"),
		"HEAD GET /x a none | a: b | a: b | a: b | a: b | a: b | a: b | a: b | a: b | a: b | a: b | a: b | a: b | a: b | a: b | last: b\nEND\n"},
	{"fields beyond", S(G "a:b\r\na:b\r\na:b\r\na:b\r\na:b\r\na:b\r\na:b\r\na:b\r\na:b\r\na:b\r\na:b\r\na:b\r\na:b\r\na:b\r\na:b\r\na:b\r\n\r\n"), "BAD FIELD_COUNT\n"},
	{"Connection: close with a tab", S(G "Connection: close\t\r\n\r\n"), "HEAD GET /x a none close\nEND\n"},
	{"upgrade", S(G "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n\r\nbytes"),
		"HEAD GET /x a none upgrade=websocket | Sec-WebSocket-Key: k\nEND\n"},
	{"upgrade with a body", S(P "Connection: Upgrade\r\nUpgrade: websocket\r\n" TE "\r\n2\r\nhi\r\n0\r\n\r\n"),
		"HEAD POST /x a streamed\nBODY hi\nEND\n"},
	{"nothing", S(""), ""},
	{"an empty line only", S("\r\n"), ""},
	{"cut in the method", S("GE"), "BAD CUT\n"},
	{"cut in the head", S(G), "BAD CUT\n"},
	{"cut in a sized body", S(P "Content-Length: 5\r\n\r\nhel"), "HEAD POST /x a sized=5\nBODY hel\nBAD CUT\n"},
	{"cut in a chunk", S(PT "5\r\nhel"), "HEAD POST /x a streamed\nBODY hel\nBAD CUT\n"},
	{"cut between chunks", S(PT "5\r\nhello\r\n"), "HEAD POST /x a streamed\nBODY hello\nBAD CUT\n"},
	{"cut in the trailers", S(PT "0\r\nA: b\r\n"), "HEAD POST /x a streamed\nBAD CUT\n"},
	{"cut before the empty line", S(PT "0\r\n"), "HEAD POST /x a streamed\nBAD CUT\n"},
};

#define OK1 "HTTP/1.1 200 OK\r\n"

static const struct row answers[] = {
	{"sized", S(OK1 "A: b\r\nContent-Length: 2\r\n\r\nhi"), "HEAD 200 OK sized=2 | A: b\nBODY hi\nEND\n"},
	{"bytes behind it", S(OK1 "Content-Length: 2\r\n\r\nhiX"), "HEAD 200 OK sized=2\nBODY hi\nEND\nBAD EXTRA\n"},
	{"chunked with trailers", S(OK1 TE "Trailer: X-T\r\n\r\n2\r\nhi\r\n0\r\nX-T: 1\r\n\r\n"),
		"HEAD 200 OK streamed\nBODY hi\nTRAILERS | X-T: 1\nEND\n"},
	{"until the end", S(OK1 "A: b\r\n\r\nhi"), "HEAD 200 OK streamed eof | A: b\nBODY hi\nEND\n"},
	{"until the end, empty", S(OK1 "\r\n"), "HEAD 200 OK streamed eof\nEND\n"},
	{"no reason", S("HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n"), "HEAD 200  none=0\nEND\n"},
	{"empty reason", S("HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n"), "HEAD 200  none=0\nEND\n"},
	{"unclean reason", S("HTTP/1.1 200 a\x02\r\nContent-Length: 0\r\n\r\n"), "HEAD 200  none=0\nEND\n"},
	{"HTTP/1.0", S("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n"), "HEAD 200 OK none=0 1.0 close\nEND\n"},
	{"chunked in HTTP/1.0", S("HTTP/1.0 200 OK\r\n" TE "\r\n0\r\n\r\n"), "BAD TRANSFER_CODING\n"},
	{"204 with bytes", S("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nSTALE"), "HEAD 204 No Content none\nEND\nBAD EXTRA\n"},
	{"304 with a length", S("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n"), "HEAD 304 Not Modified none=5\nEND\n"},
	{"interim", S("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n" OK1 "Content-Length: 0\r\n\r\n"),
		"HEAD 103 Early Hints none | Link: x\nHEAD 100 Continue none\nHEAD 200 OK none=0\nEND\n"},
	{"too many interim", S("HTTP/1.1 100 C\r\n\r\nHTTP/1.1 100 C\r\n\r\nHTTP/1.1 100 C\r\n\r\nHTTP/1.1 100 C\r\n\r\n"),
		"HEAD 100 C none\nHEAD 100 C none\nHEAD 100 C none\nBAD INTERIM\n"},
	{"interim, then the end", S("HTTP/1.1 100 C\r\n\r\n"), "HEAD 100 C none\nBAD CUT\n"},
	{"101 unasked", S("HTTP/1.1 101 S\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"), "BAD SWITCH\n"},
	{"both lengths", S(OK1 "Content-Length: 3\r\n" TE "\r\n0\r\n\r\n"), "BAD BOTH_LENGTHS\n"},
	{"two lengths", S(OK1 "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd"), "BAD LENGTH\n"},
	{"a word as length", S(OK1 "Content-Length: abc\r\n\r\n"), "BAD LENGTH\n"},
	{"unknown coding", S(OK1 "Transfer-Encoding: cow\r\n\r\nhello"), "BAD CODING_UNKNOWN\n"},
	{"chunk over 64 bits", S(OK1 TE "\r\n10000000000000005\r\nhello\r\n"), "HEAD 200 OK streamed\nBAD CHUNK\n"},
	{"status of four digits", S("HTTP/1.1 2000 OK\r\n\r\n"), "BAD SYNTAX\n"},
	{"status 600", S("HTTP/1.1 600 OK\r\n\r\n"), "BAD STATUS\n"},
	{"HTTP/2.0", S("HTTP/2.0 200 OK\r\n\r\n"), "BAD VERSION\n"},
	{"no status line", S("hello"), "BAD SYNTAX\n"},
	{"empty line before", S("\r\n" OK1 "\r\n"), "BAD SYNTAX\n"},
	{"bare LF", S("HTTP/1.1 200 OK\nContent-Length: 0\n\n"), "BAD SYNTAX\n"},
	{"CR in a value", S(OK1 "A: b\rSet-Cookie: c\r\n\r\n"), "BAD SYNTAX\n"},
	{"NUL in a value", S(OK1 "A: b\0c\r\n\r\n"), "BAD SYNTAX\n"},
	{"fold", S(OK1 "A: b\r\n c\r\n\r\n"), "BAD FOLD\n"},
	{"nothing", S(""), ""},
	{"cut in the head", S(OK1), "BAD CUT\n"},
	{"cut in the body", S(OK1 "Content-Length: 9\r\n\r\nhi"), "HEAD 200 OK sized=9\nBODY hi\nBAD CUT\n"},
	{"cut in a chunked body", S(OK1 TE "\r\n2\r\nhi\r\n"), "HEAD 200 OK streamed\nBODY hi\nBAD CUT\n"},
};

static struct vec vec_new(void)
{
	struct vec v = {.scratch = scratch, .end = scratch + sizeof(scratch)};

	vec_reset(&v);
	return v;
}

/* A codec that has sent a request of that kind to its origin. */
static void asked(struct h1 *c, enum method method, const char *upgrade)
{
	struct head h = {.method = STR("X"), .target = STR("/"), .method_id = (uint8_t)method, .upgrade = str_of(upgrade)};
	struct vec v = vec_new();

	h1_init(c, CODEC_UPSTREAM, shared);
	assert_int_equal(codec_put_head(&c->codec, 0, &h, &v), OK);
	assert_int_equal(codec_put_end(&c->codec, 0, NULL, &v), OK);
}

static void run_rows(const struct row *rows, size_t n, bool upstream)
{
	static const size_t steps[] = {4096, 1, 2, 7, 64};

	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < N(steps); k++) {
			struct trace t = {.n = 0};
			struct h1 c;
			bool same;

			if (upstream)
				asked(&c, METHOD_GET, "");
			else
				h1_init(&c, CODEC_SERVER, shared);
			trace_feed(&t, &c, rows[i].in, steps[k], true, k % 2);
			same = strcmp(t.text, rows[i].what) == 0;
			/* In pieces, the same things may be seen in another order: another fault. */
			const char *bad = strstr(rows[i].what, "BAD ");
			if (!same && k && bad)
				same = strncmp(t.text, rows[i].what, (size_t)(bad - rows[i].what) + 4) == 0;
			if (!same)
				fail_msg("%s, in steps of %zu:\n%s-- not\n%s", rows[i].name, steps[k], t.text, rows[i].what);
		}
	}
}

static void test_requests(void **state)
{
	(void)state;
	run_rows(requests, N(requests), false);
}

static void test_answers(void **state)
{
	(void)state;
	run_rows(answers, N(answers), true);
}

/* Every byte in a name, in a value and in a target. */
static void test_bytes(void **state)
{
	(void)state;
	for (int b = 0; b < 256; b++) {
		char name[] = G "A?B: c\r\n\r\n", value[] = G "A: b?c\r\n\r\n", target[] = "GET /a?b HTTP/1.1\r\nHost: a\r\n\r\n", first[] = G "?B: c\r\n\r\n";
		bool token = b > ' ' && b < 127 && !strchr("\"(),/:;<=>?@[\\]{}", b);
		struct {
			char *text;
			size_t n;
			bool ok;
		} rows[] = {
			{name, sizeof(name) - 1, token || b == ':'},
			{first, sizeof(first) - 1, token},
			{value, sizeof(value) - 1, b == '\t' || (b >= ' ' && b != 127)},
			{target, sizeof(target) - 1, b > ' ' && b < 127 && b != '#' && b != '\\'},
		};

		*(strchr(name + 20, '?')) = (char)b;
		*(strchr(first + 20, '?')) = (char)b;
		*(strchr(value + 20, '?')) = (char)b;
		*(strchr(target, '?')) = (char)b;
		for (size_t i = 0; i < N(rows); i++) {
			struct trace t = {.n = 0};
			struct h1 c;

			h1_init(&c, CODEC_SERVER, shared);
			trace_feed(&t, &c, (struct str){rows[i].text, rows[i].n}, 4096, true, false);
			if ((strncmp(t.text, "HEAD", 4) == 0) != rows[i].ok)
				fail_msg("byte %02x, row %zu: %s", b, i, t.text);
		}
	}
}

static enum codec_fault feed_fault(struct str in, size_t step)
{
	struct trace t = {.n = 0};
	struct h1 c;

	h1_init(&c, CODEC_SERVER, shared);
	trace_feed(&t, &c, in, step, false, true);
	for (int f = 1; f < FAULT_N; f++)
		if (strncmp(t.text, "BAD ", 4) == 0 && strncmp(t.text + 4, fault_name((enum codec_fault)f), t.n - 5) == 0)
			return (enum codec_fault)f;
	return FAULT_NONE;
}

/* Limits, whole and dripped. */
static void test_limits(void **state)
{
	static char big[3000];
	static const size_t steps[] = {4096, 1, 10};

	(void)state;
	for (size_t k = 0; k < N(steps); k++) {
		memset(big, 'a', sizeof(big));
		memcpy(big, "GET /", 5);
		assert_int_equal(feed_fault((struct str){big, 250}, steps[k]), FAULT_NONE);
		assert_int_equal(feed_fault((struct str){big, sizeof(big)}, steps[k]), FAULT_TARGET_SIZE);
		memcpy(big + 260, " HTTP/1.1\r\nHost: a\r\n\r\n", 22);	/* a target of 256 */
		assert_int_equal(feed_fault((struct str){big, 282}, steps[k]), FAULT_NONE);
		memcpy(big + 260, "a HTTP/1.1\r\nHost: a\r\n\r\n", 23);
		assert_int_equal(feed_fault((struct str){big, 283}, steps[k]), FAULT_TARGET_SIZE);
		memset(big, 'a', sizeof(big));
		memcpy(big, G "X: ", sizeof(G) + 2);
		assert_int_equal(feed_fault((struct str){big, 1023}, steps[k]), FAULT_NONE);
		assert_int_equal(feed_fault((struct str){big, sizeof(big)}, steps[k]), FAULT_HEAD_SIZE);
		memcpy(big + 1020, "\r\n\r\n", 4);	/* a head of 1024 */
		assert_int_equal(feed_fault((struct str){big, 1100}, steps[k]), FAULT_NONE);
		memcpy(big + 1020, "a\r\n\r\n", 5);
		assert_int_equal(feed_fault((struct str){big, 1100}, steps[k]), FAULT_HEAD_SIZE);
	}
}

/* Garbage is refused when it arrives, not when a head's worth of it has come. */
static void test_early(void **state)
{
	static const struct str garbage[] = {S("\x16"), S("GET /x\n"), S("get  "), S(G "A b"), S(G "A\r\n"), S("GET \x01"), S("GET ftp"), S("(\r")};

	(void)state;
	for (size_t i = 0; i < N(garbage); i++)
		if (feed_fault(garbage[i], 4096) == FAULT_NONE)
			fail_msg("%s is waited for", garbage[i].p);
}

/* What was put, as text. */
static void vec_text(const struct vec *v, struct trace *t)
{
	t->n = 0;
	t->text[0] = '\0';
	for (unsigned i = 0; i < v->n; i++)
		trace_add(t, "%.*s", (int)v->iov[i].iov_len, (char *)v->iov[i].iov_base);
	assert_int_equal(t->n, v->bytes);
}

/* One request into a server codec. */
static void served(struct h1 *c, const char *request)
{
	struct trace t = {.n = 0};

	h1_init(c, CODEC_SERVER, shared);
	trace_feed(&t, c, str_of(request), 4096, false, false);
	assert_non_null(strstr(t.text, "END"));
}

#define HEAD_X "HEAD /x HTTP/1.1\r\nHost: a\r\n\r\n"
#define G10 "GET /x HTTP/1.0\r\n\r\n"
#define G10K "GET /x HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"
#define GC G "Connection: close\r\n\r\n"
#define GTE G "TE: trailers\r\nConnection: TE\r\n\r\n"

static const struct {
	const char *request;
	struct head h;
	const char *body;	/* NULL: none put */
	const char *what;
	bool reusable, until_close;
} puts_server[] = {
	{G "\r\n", {.status = 200, .body = BODY_SIZED, .length = 2, .has_length = true}, "hi",
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", true, false},
	{G "\r\n", {.status = 200, .reason = S("Fine"), .body = BODY_STREAMED}, "hi",
		"HTTP/1.1 200 Fine\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", true, false},
	{GTE, {.status = 200, .body = BODY_STREAMED}, "hi",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nT: u\r\n\r\n", true, false},
	{G "\r\n", {.status = 404}, NULL, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", true, false},
	{G "\r\n", {.status = 204}, NULL, "HTTP/1.1 204 No Content\r\n\r\n", true, false},
	{G "\r\n", {.status = 204, .has_length = true, .length = 5}, NULL, "HTTP/1.1 204 No Content\r\n\r\n", true, false},
	{G "\r\n", {.status = 304, .has_length = true, .length = 5}, NULL, "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", true, false},
	{G "\r\n", {.status = 304}, NULL, "HTTP/1.1 304 Not Modified\r\n\r\n", true, false},
	{G "\r\n", {.status = 299}, NULL, "HTTP/1.1 299 \r\nContent-Length: 0\r\n\r\n", true, false},
	{HEAD_X, {.status = 200, .has_length = true, .length = 5}, NULL, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", true, false},
	{HEAD_X, {.status = 200}, NULL, "HTTP/1.1 200 OK\r\n\r\n", true, false},
	{HEAD_X, {.status = 502, .body = BODY_SIZED, .has_length = true, .length = 2}, "hi",
		"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 2\r\n\r\n", true, false},
	{HEAD_X, {.status = 200, .body = BODY_STREAMED}, "hi", "HTTP/1.1 200 OK\r\n\r\n", true, false},
	{GC, {.status = 200}, NULL, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", false, false},
	{G10, {.status = 200, .body = BODY_STREAMED}, "hi", "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhi", false, true},
	{G10, {.status = 200, .body = BODY_SIZED, .length = 2}, "hi",
		"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi", false, false},
	{G10K, {.status = 200, .body = BODY_SIZED, .length = 2}, "hi",
		"HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nhi", true, false},
	{G10K, {.status = 200, .body = BODY_STREAMED}, "hi", "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhi", false, true},
};

static void test_put_server(void **state)
{
	struct field room = {.name = "T", .name_len = 1, .value = "u", .value_len = 1};
	struct head trailers = {.field = &room, .n_fields = 1};
	struct trace t;

	(void)state;
	for (size_t i = 0; i < N(puts_server); i++) {
		struct vec v = vec_new();
		struct h1 c;

		served(&c, puts_server[i].request);
		assert_int_equal(codec_put_head(&c.codec, 0, &puts_server[i].h, &v), OK);
		assert_false(h1_reusable(&c));
		if (puts_server[i].body)
			assert_int_equal(codec_put_body(&c.codec, 0, str_of(puts_server[i].body), &v), OK);
		assert_int_equal(codec_put_end(&c.codec, 0, &trailers, &v), OK);
		vec_text(&v, &t);
		if (strcmp(t.text, puts_server[i].what) != 0)
			fail_msg("row %zu:\n%s-- not\n%s", i, t.text, puts_server[i].what);
		assert_int_equal(h1_reusable(&c), puts_server[i].reusable);
		assert_int_equal(h1_out_until_close(&c), puts_server[i].until_close);
		assert_int_equal(codec_put_end(&c.codec, 0, NULL, &v), ERR_SYNTAX);
		assert_int_equal(codec_put_head(&c.codec, 0, &puts_server[i].h, &v), ERR_SYNTAX);
	}
}

#define HR .method = S("PUT"), .target = S("/y"), .authority = S("b:8"), .method_id = METHOD_PUT

static const struct {
	struct head h;
	const char *body, *what;
} puts_upstream[] = {
	{{HR}, NULL, "PUT /y HTTP/1.1\r\nHost: b:8\r\n\r\n"},
	{{.method = S("GET"), .target = S("/")}, NULL, "GET / HTTP/1.1\r\nHost: \r\n\r\n"},
	{{HR, .has_length = true}, NULL, "PUT /y HTTP/1.1\r\nHost: b:8\r\nContent-Length: 0\r\n\r\n"},
	{{HR, .body = BODY_SIZED, .has_length = true, .length = 2}, "hi", "PUT /y HTTP/1.1\r\nHost: b:8\r\nContent-Length: 2\r\n\r\nhi"},
	{{HR, .body = BODY_STREAMED}, "hi", "PUT /y HTTP/1.1\r\nHost: b:8\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n"},
	{{HR, .upgrade = S("websocket")}, NULL, "PUT /y HTTP/1.1\r\nHost: b:8\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"},
	{{HR, .te_trailers = true}, NULL, "PUT /y HTTP/1.1\r\nHost: b:8\r\nConnection: TE\r\nTE: trailers\r\n\r\n"},
	{{HR, .te_trailers = true, .upgrade = S("x")}, NULL,
		"PUT /y HTTP/1.1\r\nHost: b:8\r\nConnection: TE, Upgrade\r\nUpgrade: x\r\nTE: trailers\r\n\r\n"},
	{{HR, .upgrade = S("x"), .body = BODY_SIZED, .length = 2}, "hi", "PUT /y HTTP/1.1\r\nHost: b:8\r\nContent-Length: 2\r\n\r\nhi"},
};

static void test_put_upstream(void **state)
{
	struct field room = {.name = "T", .name_len = 1, .value = "u", .value_len = 1};
	struct head trailers = {.field = &room, .n_fields = 1};
	struct trace t;

	(void)state;
	for (size_t i = 0; i < N(puts_upstream); i++) {
		struct vec v = vec_new();
		struct h1 c;

		h1_init(&c, CODEC_UPSTREAM, shared);
		assert_int_equal(codec_put_body(&c.codec, 0, STR("x"), &v), ERR_SYNTAX);
		assert_int_equal(codec_put_head(&c.codec, 0, &puts_upstream[i].h, &v), OK);
		if (puts_upstream[i].body)
			assert_int_equal(codec_put_body(&c.codec, 0, str_of(puts_upstream[i].body), &v), OK);
		assert_int_equal(codec_put_end(&c.codec, 0, &trailers, &v), OK);
		vec_text(&v, &t);
		if (strcmp(t.text, puts_upstream[i].what) != 0)
			fail_msg("row %zu:\n%s-- not\n%s", i, t.text, puts_upstream[i].what);
	}
}

/* Commands that would make bytes which are not one message. */
static void test_misuse(void **state)
{
	struct head sized = {.status = 200, .body = BODY_SIZED, .length = 3}, none = {.status = 200};
	struct head request = {HR}, interim = {.status = 103}, sw = {.status = 101, .upgrade = STR("x"), .body = BODY_TUNNEL};
	struct vec v = vec_new();
	struct h1 c;

	(void)state;
	served(&c, G "\r\n");
	assert_int_equal(codec_put_end(&c.codec, 0, NULL, &v), ERR_SYNTAX);
	assert_int_equal(codec_put_head(&c.codec, 0, &request, &v), ERR_SYNTAX);
	assert_int_equal(codec_put_head(&c.codec, 0, &sw, &v), ERR_SYNTAX);	/* nobody asked */
	assert_int_equal(codec_put_head(&c.codec, 0, &interim, &v), OK);
	assert_int_equal(codec_put_head(&c.codec, 0, &sized, &v), OK);
	size_t n = v.bytes;
	assert_int_equal(codec_put_head(&c.codec, 0, &interim, &v), ERR_SYNTAX);
	assert_int_equal(codec_put_body(&c.codec, 0, STR("four"), &v), ERR_SYNTAX);
	assert_int_equal(codec_put_body(&c.codec, 0, STR("ab"), &v), OK);
	assert_int_equal(codec_put_end(&c.codec, 0, NULL, &v), ERR_SYNTAX);
	assert_int_equal(codec_put_body(&c.codec, 0, STR("cd"), &v), ERR_SYNTAX);
	assert_int_equal(v.bytes, n + 2);
	assert_int_equal(codec_put_body(&c.codec, 0, STR("c"), &v), OK);
	assert_int_equal(codec_put_end(&c.codec, 0, NULL, &v), OK);
	assert_int_equal(codec_put_body(&c.codec, 0, STR("c"), &v), ERR_SYNTAX);

	served(&c, G "\r\n");
	assert_int_equal(codec_put_head(&c.codec, 0, &none, &v), OK);
	assert_int_equal(codec_put_body(&c.codec, 0, STR("x"), &v), ERR_SYNTAX);
	assert_int_equal(codec_put_end(&c.codec, 0, NULL, &v), OK);

	h1_init(&c, CODEC_UPSTREAM, shared);
	assert_int_equal(codec_put_head(&c.codec, 0, &none, &v), ERR_SYNTAX);
}

/* An empty piece must not become the last chunk; a full vec puts nothing. */
static void test_chunks(void **state)
{
	struct head h = {.status = 200, .body = BODY_STREAMED};
	struct vec v = vec_new();
	struct trace t;
	struct h1 c;

	(void)state;
	served(&c, G "\r\n");
	assert_int_equal(codec_put_head(&c.codec, 0, &h, &v), OK);
	vec_reset(&v);
	assert_int_equal(codec_put_body(&c.codec, 0, STR(""), &v), OK);
	assert_int_equal(v.bytes, 0);
	assert_int_equal(codec_put_body(&c.codec, 0, STR("0123456789abcdefX"), &v), OK);
	assert_int_equal(codec_put_body(&c.codec, 0, STR("y"), &v), OK);
	assert_int_equal(codec_put_end(&c.codec, 0, NULL, &v), OK);
	vec_text(&v, &t);
	assert_string_equal(t.text, "11\r\n0123456789abcdefX\r\n1\r\ny\r\n0\r\n\r\n");
	assert_int_equal(v.n, 5);

	served(&c, G "\r\n");
	assert_int_equal(codec_put_head(&c.codec, 0, &h, &v), OK);
	vec_reset(&v);
	while (vec_room(&v) > 2)
		assert_int_equal(vec_borrow(&v, STR("p")), OK);
	size_t n = v.bytes;
	assert_int_equal(codec_put_body(&c.codec, 0, STR("y"), &v), ERR_LIMIT);
	assert_int_equal(v.bytes, n);
}

static void test_head_limit(void **state)
{
	struct field f = {.name = "A", .name_len = 1, .value = scratch, .value_len = VEC_SCRATCH - 100};
	struct head h = {.status = 200, .field = &f, .n_fields = 1};
	struct vec v = vec_new();
	struct h1 c;

	(void)state;
	served(&c, G "\r\n");
	assert_int_equal(codec_put_head(&c.codec, 0, &h, &v), ERR_LIMIT);
	assert_int_equal(v.bytes, 0);
	f.value_len = 10;
	assert_int_equal(codec_put_head(&c.codec, 0, &h, &v), OK);
}

/* 101 through both codecs, and bytes in both directions. */
static void test_tunnel(void **state)
{
	static const char request[] = G "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\nearly";
	static const char answer[] = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 0\r\n\r\nup";
	struct str in = str_of(request), back = str_of(answer);
	struct codec_event ev;
	struct h1 client, origin;
	struct vec v = vec_new();
	struct trace t;

	(void)state;
	h1_init(&client, CODEC_SERVER, shared);
	h1_init(&origin, CODEC_UPSTREAM, shared);
	assert_int_equal(codec_next(&client.codec, &in, false, &ev), CODEC_HEAD);
	assert_int_equal(codec_put_head(&origin.codec, 0, ev.head, &v), OK);
	assert_int_equal(codec_next(&client.codec, &in, false, &ev), CODEC_END);
	assert_int_equal(codec_put_end(&origin.codec, 0, NULL, &v), OK);
	assert_int_equal(codec_next(&client.codec, &in, false, &ev), CODEC_MORE);	/* HTTP until 101 */
	assert_int_equal(in.n, 5);
	vec_reset(&v);
	assert_int_equal(codec_next(&origin.codec, &back, false, &ev), CODEC_HEAD);
	assert_int_equal(ev.head->body, BODY_TUNNEL);
	assert_int_equal(codec_put_head(&client.codec, 0, ev.head, &v), OK);
	vec_text(&v, &t);
	assert_string_equal(t.text, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
	assert_int_equal(codec_next(&origin.codec, &back, false, &ev), CODEC_BODY);
	assert_true(str_eq(ev.body, STR("up")));
	assert_int_equal(codec_next(&client.codec, &in, false, &ev), CODEC_BODY);
	assert_true(str_eq(ev.body, STR("early")));
	vec_reset(&v);
	assert_int_equal(codec_put_body(&origin.codec, 0, ev.body, &v), OK);
	assert_int_equal(codec_put_body(&client.codec, 0, STR("x"), &v), OK);
	assert_int_equal(v.bytes, 6);
	assert_int_equal(codec_next(&client.codec, &in, true, &ev), CODEC_END);
	assert_int_equal(codec_put_end(&origin.codec, 0, NULL, &v), OK);
	assert_int_equal(codec_next(&origin.codec, &back, true, &ev), CODEC_END);
	assert_false(h1_reusable(&origin));
	assert_false(h1_reusable(&client));
}

/* When a connection may carry another pair. */
static void test_reuse(void **state)
{
	struct head put = {.method = STR("POST"), .target = STR("/"), .method_id = METHOD_POST, .body = BODY_SIZED, .length = 3};
	struct str in;
	struct codec_event ev;
	struct vec v = vec_new();
	struct trace t = {.n = 0};
	struct h1 c;

	(void)state;
	asked(&c, METHOD_GET, "");
	trace_feed(&t, &c, STR(OK1 "Content-Length: 2\r\n\r\nh"), 4096, false, false);
	assert_int_equal(h1_in_missing(&c), 1);
	assert_false(h1_in_done(&c) || h1_reusable(&c));
	trace_feed(&t, &c, STR("i"), 4096, false, false);
	assert_true(h1_in_done(&c) && h1_reusable(&c));
	assert_int_equal(h1_in_missing(&c), 0);
	asked(&c, METHOD_GET, "");
	trace_feed(&t, &c, STR(OK1 "Content-Length: 0\r\nConnection: close\r\n\r\n"), 4096, false, false);
	assert_true(h1_in_done(&c));
	assert_false(h1_reusable(&c));
	asked(&c, METHOD_GET, "");
	trace_feed(&t, &c, STR(OK1 "\r\nhi"), 4096, true, false);
	assert_true(h1_in_done(&c));
	assert_false(h1_reusable(&c));

	/* an answer before the whole request */
	h1_init(&c, CODEC_UPSTREAM, shared);
	assert_int_equal(codec_put_head(&c.codec, 0, &put, &v), OK);
	trace_feed(&t, &c, STR(OK1 "Content-Length: 0\r\n\r\n"), 4096, false, false);
	assert_int_equal(codec_put_body(&c.codec, 0, STR("abc"), &v), OK);
	assert_int_equal(codec_put_end(&c.codec, 0, NULL, &v), OK);
	assert_false(h1_reusable(&c));

	/* an answer to nothing */
	h1_init(&c, CODEC_UPSTREAM, shared);
	in = STR(OK1);
	assert_int_equal(codec_next(&c.codec, &in, false, &ev), CODEC_BAD);
	assert_int_equal(ev.fault, FAULT_EXTRA);
	assert_int_equal(codec_next(&c.codec, &in, false, &ev), CODEC_BAD);
	assert_int_equal(ev.fault, FAULT_EXTRA);

	/* HEAD */
	t.n = 0;
	asked(&c, METHOD_HEAD, "");
	trace_feed(&t, &c, STR(OK1 "Content-Length: 2\r\n\r\n"), 4096, false, false);
	assert_string_equal(t.text, "HEAD 200 OK none=2\nEND\n");
	assert_true(h1_reusable(&c));

	/* we want to close */
	served(&c, G "\r\n");
	h1_close_after(&c);
	vec_reset(&v);
	assert_int_equal(codec_put_head(&c.codec, 0, &(struct head){.status = 204}, &v), OK);
	vec_text(&v, &t);
	assert_string_equal(t.text, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
}

/* After a refusal the answer is framed for the client that asked. */
static void test_refusal(void **state)
{
	struct head h = {.status = 400, .body = BODY_SIZED, .length = 3};
	struct vec v = vec_new();
	struct trace t = {.n = 0};
	struct h1 c;

	(void)state;
	h1_init(&c, CODEC_SERVER, shared);
	trace_feed(&t, &c, STR("HEAD /x HTTP/1.1\r\n\r\n"), 4096, false, false);
	assert_string_equal(t.text, "BAD HOST\n");
	assert_int_equal(codec_put_head(&c.codec, 0, &h, &v), OK);
	assert_int_equal(codec_put_body(&c.codec, 0, STR("bad"), &v), OK);
	assert_int_equal(codec_put_end(&c.codec, 0, NULL, &v), OK);
	vec_text(&v, &t);
	assert_string_equal(t.text, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 3\r\n\r\n");
	assert_false(h1_reusable(&c));
}

/* Fields that were changed on the way are put as they are now. */
static void test_edited(void **state)
{
	static const char text[] = G "A: 1\r\nB: 2\r\nC:3\r\nD: 4 \r\nE: 5\r\nF: 6\r\n\r\n";
	struct str in = str_of(text);
	struct codec_event ev;
	struct h1 client, origin;
	struct vec v = vec_new();
	struct trace t;

	(void)state;
	h1_init(&client, CODEC_SERVER, shared);
	h1_init(&origin, CODEC_UPSTREAM, shared);
	assert_int_equal(codec_next(&client.codec, &in, false, &ev), CODEC_HEAD);
	assert_int_equal(head_set(ev.head, STR("B"), STR("new")), OK);
	assert_int_equal(head_remove(ev.head, STR("e")), 1);
	assert_int_equal(head_add(ev.head, STR("Via"), STR("1.1 t")), OK);
	ev.head->field[0].value_len = 0;	/* cut short in place */
	assert_int_equal(codec_put_head(&origin.codec, 0, ev.head, &v), OK);
	vec_text(&v, &t);
	assert_string_equal(t.text, "GET /x HTTP/1.1\r\nHost: a\r\nA: \r\nB: new\r\nC: 3\r\nD: 4\r\nF: 6\r\nVia: 1.1 t\r\n\r\n");
}

/* Any byte at any place of a name or value: the copies of the parser find the same. */
static void test_processors(void **state)
{
	(void)state;
	static const char head[] = "GET / HTTP/1.1\r\nHost: a.test\r\nA-name-of-more-than-16-bytes: a value of more than 16 bytes\r\nB: c\r\n"
		"C: a head is long when it has 256 bytes or more, for which this value is made so that nothing else would be "
		"in it, and a name of nearly 32 bytes behind it\r\nAnother-name-of-30-bytes-and-more: d\r\n\r\n";
	struct h1_shared *plain = h1_shared_new(&limits);
	unsigned good = 0;

	assert_non_null(plain);
	if (!h1_shared_plain(plain)) {
		h1_shared_free(plain);
		skip();
	}
	for (size_t i = 0; i < sizeof(head) - 1; i++) {
		for (unsigned byte = 0; byte < 256; byte++) {
			struct trace t = {.n = 0}, u = {.n = 0};
			char bytes[sizeof(head)];
			struct h1 c;

			memcpy(bytes, head, sizeof(head));
			bytes[i] = (char)byte;
			h1_init(&c, CODEC_SERVER, shared);
			trace_feed(&t, &c, (struct str){bytes, sizeof(head) - 1}, sizeof(head), false, false);
			h1_init(&c, CODEC_SERVER, plain);
			trace_feed(&u, &c, (struct str){bytes, sizeof(head) - 1}, sizeof(head), false, false);
			if (t.n != u.n || memcmp(t.text, u.text, t.n) != 0)
				fail_msg("byte %zu is 0x%02x: %s, and plain %s", i, byte, t.text, u.text);
			good += memcmp(t.text, "HEAD", 4) == 0;
		}
	}
	assert_in_range(good, 1000, 256 * sizeof(head));
	h1_shared_free(plain);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_processors), cmocka_unit_test(test_requests), cmocka_unit_test(test_answers), cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_limits), cmocka_unit_test(test_early), cmocka_unit_test(test_put_server),
		cmocka_unit_test(test_put_upstream), cmocka_unit_test(test_misuse), cmocka_unit_test(test_chunks),
		cmocka_unit_test(test_head_limit), cmocka_unit_test(test_tunnel), cmocka_unit_test(test_reuse),
		cmocka_unit_test(test_refusal), cmocka_unit_test(test_edited),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
