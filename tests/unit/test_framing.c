/* The rules of framing and routing: a row each. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "lib/http/framing.h"
#include "lib/http/rawhead.h"
#include "tests/unit/h1_trace.h"

#define S(literal) {literal, sizeof(literal) - 1}
#define N(array) (sizeof(array) / sizeof((array)[0]))

static const struct {
	struct str in;
	enum codec_fault fault;
	uint32_t end;
} raw[] = {
	{S("A: b\r\n\r\n"), FAULT_NONE, 8},
	{S("A: b\r\n\r\nrest"), FAULT_NONE, 8},
	{S("A: b\r\nC: d\r\n"), FAULT_NONE, 0},
	{S("A: b\r\nC: d\r"), FAULT_NONE, 0},
	{S("A: b\r\nC: d\r\n\r"), FAULT_NONE, 0},
	{S("A:\tb\t\x01\x1f\x7f\x80\xff\r\n\r\n"), FAULT_NONE, 14},	/* other bytes are not looked at here */
	{S("A: b\nC: d\r\n\r\n"), FAULT_SYNTAX, 0},
	{S("A: b\r\n\n"), FAULT_SYNTAX, 0},
	{S("A: b\n\r\n"), FAULT_SYNTAX, 0},
	{S("A: b\rC: d\r\n\r\n"), FAULT_SYNTAX, 0},
	{S("A: b\r\r\n\r\n"), FAULT_SYNTAX, 0},
	{S("A: b\r\n\rC: d\r\n\r\n"), FAULT_SYNTAX, 0},
	{S("A: b\0\r\n\r\n"), FAULT_SYNTAX, 0},
	{S("\0"), FAULT_SYNTAX, 0},
	{S("A: b\r\n c\r\n\r\n"), FAULT_FOLD, 0},
	{S("A: b\r\n\tc\r\n\r\n"), FAULT_FOLD, 0},
	{S("A: b\r\n \r\n\r\n"), FAULT_FOLD, 0},
	{S("A: b\r\n\x01\r\nC: d\r\n\r\n"), FAULT_NONE, 17},
	{S(" A: b\r\n\r\n"), FAULT_FOLD, 0},
	{S("A: bbbbbbbbbbbbbbbbbbbbbbbbbbbbb\n"), FAULT_SYNTAX, 0},
};

static void test_scan(void **state)
{
	(void)state;
	for (size_t i = 0; i < N(raw); i++) {
		uint32_t at = 0, line = 0, end = 0;
		enum codec_fault f = rawhead_scan(raw[i].in, &at, &line, &end);

		if (f != raw[i].fault || end != raw[i].end)
			fail_msg("row %zu: %s, end %u", i, fault_name(f), end);
		if (end && raw[i].in.p + line != strstr(raw[i].in.p, "\r\n"))
			fail_msg("row %zu: first line %u", i, line);
		at = 0;	/* byte by byte, going on where it was */
		for (size_t n = 1; n <= raw[i].in.n && !f && !end; n++)
			f = rawhead_scan((struct str){raw[i].in.p, n}, &at, &line, &end);
		if (f != raw[i].fault || end != raw[i].end)
			fail_msg("row %zu in bytes: %s, end %u", i, fault_name(f), end);
	}
}

static const struct {
	struct str line;
	enum codec_fault whole, part;
} request_lines[] = {
	{S("GET / HTTP/1.1"), FAULT_NONE, FAULT_NONE},
	{S("GET / HTTP/1.0"), FAULT_NONE, FAULT_NONE},
	{S("QUERY /a HTTP/1.1"), FAULT_NONE, FAULT_NONE},
	{S("x!#$%&'*+-.^_`|~ / HTTP/1.1"), FAULT_NONE, FAULT_NONE},
	{S("MMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMM / HTTP/1.1"), FAULT_NONE, FAULT_NONE},
	{S("MMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMM / HTTP/1.1"), FAULT_SYNTAX, FAULT_SYNTAX},
	{S("GET /12345678 HTTP/1.1"), FAULT_NONE, FAULT_NONE},
	{S("GET /123456789012345 HTTP/1.1"), FAULT_NONE, FAULT_NONE},
	{S("GET /1234567890123456 HTTP/1.1"), FAULT_TARGET_SIZE, FAULT_TARGET_SIZE},
	{S("GET /1234567890123456"), FAULT_TARGET_SIZE, FAULT_TARGET_SIZE},
	{S("CONNECT a:1 HTTP/1.1"), FAULT_CONNECT, FAULT_CONNECT},
	{S("GET /"), FAULT_VERSION, FAULT_NONE},
	{S("GET / "), FAULT_SYNTAX, FAULT_NONE},
	{S("GET  / HTTP/1.1"), FAULT_SYNTAX, FAULT_SYNTAX},
	{S("GET /  HTTP/1.1"), FAULT_SYNTAX, FAULT_SYNTAX},
	{S("GET / HTTP/1.1 "), FAULT_SYNTAX, FAULT_SYNTAX},
	{S("GET / HTTP/1.1 x"), FAULT_SYNTAX, FAULT_SYNTAX},
	{S("GET\t/ HTTP/1.1"), FAULT_SYNTAX, FAULT_SYNTAX},
	{S("GET /\tHTTP/1.1"), FAULT_VERSION, FAULT_TARGET},
	{S("GET htt"), FAULT_VERSION, FAULT_NONE},
	{S("GET HTTPS://a/"), FAULT_VERSION, FAULT_NONE},
	{S("GET x"), FAULT_VERSION, FAULT_TARGET},
	{S("GET /\xc3"), FAULT_VERSION, FAULT_TARGET},
	{S(" GET / HTTP/1.1"), FAULT_SYNTAX, FAULT_SYNTAX},
	{S("GET"), FAULT_SYNTAX, FAULT_NONE},
	{S("G\xc3T / HTTP/1.1"), FAULT_SYNTAX, FAULT_SYNTAX},
	{S("GET / http/1.1"), FAULT_SYNTAX, FAULT_NONE},
	{S("GET / HTTP/1."), FAULT_SYNTAX, FAULT_NONE},
	{S("GET / HTTP/01.1"), FAULT_SYNTAX, FAULT_SYNTAX},
	{S("GET / HTTP/1.11"), FAULT_SYNTAX, FAULT_SYNTAX},
	{S("GET / HTTP/1,1"), FAULT_SYNTAX, FAULT_NONE},
	{S("GET / HTTP/1.2"), FAULT_VERSION, FAULT_NONE},
	{S("GET / HTTP/0.9"), FAULT_VERSION, FAULT_NONE},
	{S("GET / HTTP/2.0"), FAULT_VERSION, FAULT_NONE},
	{S("PRI * HTTP/2.0"), FAULT_VERSION, FAULT_NONE},
	{S("GET / XTTP/1.1"), FAULT_SYNTAX, FAULT_NONE},
	{S("\x16\x03\x01"), FAULT_SYNTAX, FAULT_SYNTAX},
}, status_lines[] = {
	{S("HTTP/1.1 200 OK"), FAULT_NONE, FAULT_NONE},
	{S("HTTP/1.0 200 OK"), FAULT_NONE, FAULT_NONE},
	{S("HTTP/1.1 200 "), FAULT_NONE, FAULT_NONE},
	{S("HTTP/1.1 200"), FAULT_NONE, FAULT_NONE},
	{S("HTTP/1.1 599 x y\tz\xe9"), FAULT_NONE, FAULT_NONE},
	{S("HTTP/1.1 100 Continue"), FAULT_NONE, FAULT_NONE},
	{S("HTTP/1.1 099 x"), FAULT_STATUS, FAULT_STATUS},
	{S("HTTP/1.1 600 x"), FAULT_STATUS, FAULT_STATUS},
	{S("HTTP/1.1 2000 OK"), FAULT_SYNTAX, FAULT_SYNTAX},
	{S("HTTP/1.1 20 OK"), FAULT_SYNTAX, FAULT_SYNTAX},
	{S("HTTP/1.1 2x0 OK"), FAULT_SYNTAX, FAULT_SYNTAX},
	{S("HTTP/1.1  200 OK"), FAULT_SYNTAX, FAULT_SYNTAX},
	{S("HTTP/1.1 200\tOK"), FAULT_SYNTAX, FAULT_SYNTAX},
	{S("HTTP/1.1"), FAULT_SYNTAX, FAULT_NONE},
	{S("HTTP/1.1 "), FAULT_SYNTAX, FAULT_NONE},
	{S("HTTP/2.0 200 OK"), FAULT_VERSION, FAULT_VERSION},
	{S("HTTP/1.2 200 OK"), FAULT_VERSION, FAULT_VERSION},
	{S("HTTP/0.9 200 OK"), FAULT_VERSION, FAULT_VERSION},
	{S("http/1.1 200 OK"), FAULT_SYNTAX, FAULT_SYNTAX},
	{S("ICY 200 OK"), FAULT_SYNTAX, FAULT_SYNTAX},
	{S("<html>"), FAULT_SYNTAX, FAULT_SYNTAX},
	{S("HTT"), FAULT_SYNTAX, FAULT_NONE},
	{S(""), FAULT_SYNTAX, FAULT_NONE},
};

static void test_start_lines(void **state)
{
	struct head h = {0};

	(void)state;
	for (size_t i = 0; i < N(request_lines); i++) {
		enum codec_fault w = rawhead_request_line(request_lines[i].line, true, 16, &h);
		enum codec_fault p = rawhead_request_line(request_lines[i].line, false, 16, &h);

		if (w != request_lines[i].whole || p != request_lines[i].part)
			fail_msg("%s: %s, part %s", request_lines[i].line.p, fault_name(w), fault_name(p));
	}
	for (size_t i = 0; i < N(status_lines); i++) {
		enum codec_fault w = rawhead_status_line(status_lines[i].line, true, &h);
		enum codec_fault p = rawhead_status_line(status_lines[i].line, false, &h);

		if (w != status_lines[i].whole || p != status_lines[i].part)
			fail_msg("%s: %s, part %s", status_lines[i].line.p, fault_name(w), fault_name(p));
	}
	assert_int_equal(rawhead_status_line(STR("HTTP/1.1 200 a\x01"), true, &h), FAULT_NONE);
	assert_int_equal(h.reason.n, 0);
	assert_int_equal(rawhead_status_line(STR("HTTP/1.0 404 Oh no"), true, &h), FAULT_NONE);
	assert_true(str_eq(h.reason, STR("Oh no")) && h.status == 404 && h.minor == 0);
}

static const struct {
	const char *value;
	bool ok;
	uint64_t n;
} lengths[] = {
	{"0", true, 0}, {"5", true, 5}, {"00005", true, 5}, {"010", true, 10},
	{"9223372036854775807", true, INT64_MAX}, {"9223372036854775808", false, 0},
	{"18446744073709551621", false, 0}, {"99999999999999999999999", false, 0},
	{"", false, 0}, {"-5", false, 0}, {"+5", false, 0}, {"5,5", false, 0}, {"5, 5", false, 0}, {"5 5", false, 0},
	{"5,", false, 0}, {"0x5", false, 0}, {"5.0", false, 0}, {"1e3", false, 0}, {"0_5", false, 0}, {"5abc", false, 0},
	{" 5", false, 0}, {"5 ", false, 0}, {"\v5", false, 0}, {"\xb2", false, 0}, {"abc", false, 0},
};

static const struct {
	const char *value;
	bool ok;
} authorities[] = {
	{"example.test", true}, {"example.test:80", true}, {"example.test:", true}, {"a_b-c~d", true}, {"1.2.3.4:65535", true},
	{"[::1]", true}, {"[::1]:8080", true}, {"[1:2::ffff:1.2.3.4]", true}, {"%41b", true}, {"a!$&'()*+;=b", true},
	{"", false}, {":80", false}, {"a:65536", false}, {"a:99999999", false}, {"a:8x", false}, {"a:-1", false}, {"a:80:80", false},
	{"a b", false}, {"a,b", false}, {"u@a", false}, {"u:p@a", false}, {"a/b", false}, {"a?b", false}, {"a#b", false},
	{"a\\b", false}, {"a\"b", false}, {"<a>", false}, {"a\tb", false}, {"%4", false}, {"%zz", false}, {"a\x7f", false}, {"\xc3\xa9", false},
	{"[::1", false}, {"[]", false}, {"[a]", false}, {"[::g]", false}, {"[::1]x", false}, {"[::1]:x", false}, {"::1", false}, {"[fe80::1%25eth0]", false},
	{"a[b]", false}, {"a^b", false}, {"a|b", false}, {"a`b", false}, {"{a}", false},
};

static void test_values(void **state)
{
	(void)state;
	for (size_t i = 0; i < N(lengths); i++) {
		uint64_t n = 0;
		bool ok = framing_length(str_of(lengths[i].value), &n);

		if (ok != lengths[i].ok || n != lengths[i].n)
			fail_msg("length %s: %d, %llu", lengths[i].value, ok, (unsigned long long)n);
	}
	for (size_t i = 0; i < N(authorities); i++)
		if (framing_authority_ok(str_of(authorities[i].value)) != authorities[i].ok)
			fail_msg("authority %s", authorities[i].value);
}

/* "A: b\nC: d" as fields; the strings are those of `text`. */
static void fields_of(struct head *h, const char *text)
{
	while (*text) {
		const char *colon = strchr(text, ':'), *end = strchr(text, '\n');

		end = end ? end : text + strlen(text);
		h->field[h->n_fields++] = (struct field){
			.name = text, .name_len = (uint16_t)(colon - text),
			.value = colon + 2 <= end ? colon + 2 : colon + 1,
			.value_len = colon + 2 <= end ? (uint32_t)(end - colon - 2) : 0,
		};
		text = *end ? end + 1 : end;
	}
}

#define H "Host: a.test\n"
#define UP "Connection: Upgrade\nUpgrade: websocket"

static const struct {
	const char *line, *fields, *what;	/* what comes out, or the fault */
} requests[] = {
	/* Host and authority */
	{"GET /x 1", "Host: a.test", "GET /x a.test none"},
	{"GET /x 1", "A: b\nhost: a.test:81\nC: d", "GET /x a.test:81 none | A: b | C: d"},
	{"GET /x 1", "", "HOST"},
	{"GET /x 1", "Host:", "HOST"},
	{"GET /x 1", H "Host: a.test", "HOST"},
	{"GET /x 1", "Host: a b", "HOST"},
	{"GET /x 1", "Host: a,b", "HOST"},
	{"GET /x 1", "Host: u@a", "HOST"},
	{"GET /x 1", "Host: a/b", "HOST"},
	{"GET /x 0", "", "GET /x  none 1.0 close"},
	{"GET /x 0", H "Host: a.test", "HOST"},
	/* target forms */
	{"GET http://b.test/y?z 1", H, "GET /y?z b.test none"},
	{"GET HTTP://b.test:8/y 1", H, "GET /y b.test:8 none"},
	{"GET https://b.test 1", H, "GET / b.test none"},
	{"GET http://b.test?q=1 1", H, "GET /?q=1 b.test none"},
	{"OPTIONS http://b.test 1", H, "OPTIONS * b.test none"},
	{"OPTIONS http://b.test/ 1", H, "OPTIONS / b.test none"},
	{"GET http://b.test/ 1", "", "HOST"},
	{"GET http://b.test/ 0", "", "GET / b.test none 1.0 close"},
	{"GET http:///y 1", H, "TARGET"},
	{"GET http://u@b.test/y 1", H, "TARGET"},
	{"GET http://b.test:99999/y 1", H, "TARGET"},
	{"GET http:/b.test/y 1", H, "TARGET"},
	{"GET ftp://b.test/y 1", H, "TARGET"},
	{"GET b.test:80 1", H, "TARGET"},
	{"GET x 1", H, "TARGET"},
	{"OPTIONS * 1", H, "OPTIONS * a.test none"},
	{"GET * 1", H, "TARGET"},
	{"OPTIONS *x 1", H, "TARGET"},
	{"GET /a#b 1", H, "TARGET"},
	{"GET /a\\b 1", H, "TARGET"},
	{"GET /a\x7f 1", H, "TARGET"},
	{"GET /a\x01 1", H, "TARGET"},
	{"GET /\xc3\xa9 1", H, "TARGET"},
	{"GET /%zz%2/../x//y;..;/%00?a=%20+&b=/../x?y&&=; 1", H, "GET /%zz%2/../x//y;..;/%00?a=%20+&b=/../x?y&&=; a.test none"},
	{"CONNECT a:80 1", H, "CONNECT"},
	/* where it ends */
	{"POST /x 1", H "Content-Length: 5", "POST /x a.test sized=5"},
	{"POST /x 1", H "Content-Length: 0", "POST /x a.test none=0"},
	{"GET /x 1", H "Content-Length: 5", "GET /x a.test sized=5"},
	{"POST /x 1", H "Content-Length: 5\nContent-Length: 5", "LENGTH"},
	{"POST /x 1", H "Content-Length: 5, 5", "LENGTH"},
	{"POST /x 1", H "Content-Length: -5", "LENGTH"},
	{"POST /x 1", H "Content-Length:", "LENGTH"},
	{"POST /x 1", H "Transfer-Encoding: chunked", "POST /x a.test streamed"},
	{"POST /x 1", H "transfer-ENCODING: ChUnKeD", "POST /x a.test streamed"},
	{"POST /x 1", H "Transfer-Encoding: chunked\nContent-Length: 5", "BOTH_LENGTHS"},
	{"POST /x 1", H "Content-Length: 5\nTransfer-Encoding:", "BOTH_LENGTHS"},
	{"POST /x 1", H "Transfer-Encoding:", "TRANSFER_CODING"},
	{"POST /x 1", H "Transfer-Encoding: cow", "CODING_UNKNOWN"},
	{"POST /x 1", H "Transfer-Encoding: gzip", "CODING_UNKNOWN"},
	{"POST /x 1", H "Transfer-Encoding: xchunked", "CODING_UNKNOWN"},
	{"POST /x 1", H "Transfer-Encoding: gzip, chunked", "TRANSFER_CODING"},
	{"POST /x 1", H "Transfer-Encoding: chunked, gzip", "TRANSFER_CODING"},
	{"POST /x 1", H "Transfer-Encoding: chunked, chunked", "TRANSFER_CODING"},
	{"POST /x 1", H "Transfer-Encoding: ,chunked", "TRANSFER_CODING"},
	{"POST /x 1", H "Transfer-Encoding: chunked,", "TRANSFER_CODING"},
	{"POST /x 1", H "Transfer-Encoding: identity", "TRANSFER_CODING"},
	{"POST /x 1", H "Transfer-Encoding: \"chunked\"", "TRANSFER_CODING"},
	{"POST /x 1", H "Transfer-Encoding: chunked;q=1", "TRANSFER_CODING"},
	{"POST /x 1", H "Transfer-Encoding: chunked\nTransfer-Encoding: chunked", "TRANSFER_CODING"},
	{"POST /x 1", H "Transfer-Encoding: chunked\nTransfer-Encoding: cow", "TRANSFER_CODING"},
	{"POST /x 0", H "Transfer-Encoding: chunked", "TRANSFER_CODING"},
	{"POST /x 0", H "Content-Length: 5", "POST /x a.test sized=5 1.0 close"},
	/* Connection, hop-by-hop */
	{"GET /x 1", H "Connection: close", "GET /x a.test none close"},
	{"GET /x 1", H "Connection: x, CLOSE", "GET /x a.test none close"},
	{"GET /x 1", H "Connection: close, keep-alive", "GET /x a.test none close"},
	{"GET /x 1", H "Connection: x\nConnection: close", "GET /x a.test none close"},
	{"GET /x 0", H "Connection: Keep-Alive", "GET /x a.test none 1.0"},
	{"GET /x 0", H "Connection: keep-alive, close", "GET /x a.test none 1.0 close"},
	{"GET /x 1", H "Connection: X-A,,  x-b\nX-A: 1\nX-B: 2\nX-C: 3\nx-a: 4", "GET /x a.test none | X-C: 3"},
	{"POST /x 1", H "Connection: Host, Content-Length\nContent-Length: 5", "POST /x a.test sized=5"},
	{"POST /x 1", H "Connection: Transfer-Encoding\nTransfer-Encoding: chunked", "POST /x a.test streamed"},
	{"GET /x 1", H "Connection: Connection, TE\nTE: trailers\nX: y", "GET /x a.test none trailers | X: y"},
	{"GET /x 1", H "Keep-Alive: 5\nProxy-Connection: x\nTE: gzip\nTrailer: x\nUpgrade: y\nHTTP2-Settings: z\nA: b", "GET /x a.test none | A: b"},
	{"GET /x 1", H "TE: gzip;q=1, Trailers", "GET /x a.test none trailers"},
	{"GET /x 0", H "TE: trailers", "GET /x a.test none 1.0 close"},
	{"GET /x 1", H "X_A: 1\nTransfer_Encoding: chunked\nX-B: 2", "GET /x a.test none | X_A: 1 | Transfer_Encoding: chunked | X-B: 2"},
	{"GET /x 1", H "Expect: 100-Continue", "GET /x a.test none expect | Expect: 100-Continue"},
	{"GET /x 1", H "Expect: 42", "GET /x a.test none | Expect: 42"},
	{"GET /x 0", H "Expect: 100-continue", "GET /x a.test none 1.0 close"},
	/* Upgrade */
	{"GET /x 1", H UP, "GET /x a.test none upgrade=websocket"},
	{"GET /x 1", H "Connection: keep-alive, upgrade\nUpgrade: a/1", "GET /x a.test none upgrade=a/1"},
	{"GET /x 1", H "Upgrade: websocket", "GET /x a.test none"},
	{"GET /x 1", H UP "\nContent-Length: 0", "GET /x a.test none=0 upgrade=websocket"},
	{"GET /x 1", H UP "\nContent-Length: 5", "GET /x a.test sized=5"},
	{"GET /x 1", H UP "\nTransfer-Encoding: chunked", "GET /x a.test streamed"},
	{"GET /x 1", H UP "\nUpgrade: b", "GET /x a.test none"},
	{"GET /x 1", H UP ", b", "GET /x a.test none"},
	{"GET /x 1", H UP "/", "GET /x a.test none"},
	{"GET /x 0", H UP, "GET /x a.test none 1.0 close"},
	{"GET /x 1", H "Connection: Upgrade, HTTP2-Settings\nUpgrade: h2c\nHTTP2-Settings: AAM", "GET /x a.test none"},
	{"GET /x 1", H "Connection: Upgrade\nUpgrade: H2C", "GET /x a.test none"},
};

static void test_requests(void **state)
{
	(void)state;
	for (size_t i = 0; i < N(requests); i++) {
		struct field room[32];
		char target_room[128];
		struct trace t = {.n = 0};
		struct head h = {.field = room, .max_fields = 32, .upgrade = STR("stale"), .close = true};
		const char *sp = strchr(requests[i].line, ' '), *sp2 = strrchr(requests[i].line, ' ');

		h.method = (struct str){requests[i].line, (size_t)(sp - requests[i].line)};
		h.method_id = (uint8_t)method_of(h.method);
		h.target = (struct str){sp + 1, (size_t)(sp2 - sp - 1)};
		h.minor = (uint8_t)(sp2[1] - '0');
		fields_of(&h, requests[i].fields);
		enum codec_fault f = framing_request(&h, target_room);
		if (f)
			trace_add(&t, "%s", fault_name(f));
		else
			trace_head(&t, &h);
		if (strcmp(t.text, requests[i].what) != 0)
			fail_msg("%s, %s: %s, not %s", requests[i].line, requests[i].fields, t.text, requests[i].what);
		if (!f && !str_starts(h.target, h.path))
			fail_msg("%s: path %.*s", requests[i].line, (int)h.path.n, h.path.p);
	}
}

static const struct {
	unsigned status, minor;
	const char *fields, *what;
	uint8_t method;
	bool upgrade;
} responses[] = {
	{200, 1, "Content-Length: 5\nA: b", "200  sized=5 | A: b", METHOD_GET, false},
	{200, 1, "Content-Length: 0", "200  none=0", METHOD_GET, false},
	{200, 1, "", "200  streamed eof", METHOD_GET, false},
	{200, 1, "Transfer-Encoding: Chunked", "200  streamed", METHOD_GET, false},
	{200, 1, "Connection: close, x\nX: y\nTransfer-Encoding: chunked", "200  streamed close", METHOD_GET, false},
	{200, 0, "Content-Length: 5", "200  sized=5 1.0 close", METHOD_GET, false},
	{200, 0, "Content-Length: 5\nConnection: keep-alive", "200  sized=5 1.0", METHOD_GET, false},
	{200, 0, "Transfer-Encoding: chunked", "TRANSFER_CODING", METHOD_GET, false},
	{200, 1, "Transfer-Encoding: chunked\nContent-Length: 5", "BOTH_LENGTHS", METHOD_GET, false},
	{200, 1, "Transfer-Encoding: gzip, chunked", "TRANSFER_CODING", METHOD_GET, false},
	{200, 1, "Transfer-Encoding: gzip", "CODING_UNKNOWN", METHOD_GET, false},
	{200, 1, "Content-Length: 5\nContent-Length: 6", "LENGTH", METHOD_GET, false},
	{200, 1, "Content-Length: abc", "LENGTH", METHOD_GET, false},
	{200, 1, "Content-Length: abc", "LENGTH", METHOD_HEAD, false},
	{200, 1, "Content-Length: 5", "200  none=5", METHOD_HEAD, false},
	{200, 1, "Transfer-Encoding: chunked", "200  none", METHOD_HEAD, false},
	{200, 1, "", "200  none", METHOD_HEAD, false},
	{204, 1, "Content-Length: 5", "204  none", METHOD_GET, false},
	{204, 1, "Transfer-Encoding: chunked", "204  none", METHOD_GET, false},
	{304, 1, "Content-Length: 5\nETag: x", "304  none=5 | ETag: x", METHOD_GET, false},
	{304, 1, "", "304  none", METHOD_GET, false},
	{205, 1, "Content-Length: 0", "205  none=0", METHOD_GET, false},
	{100, 1, "", "100  none", METHOD_POST, false},
	{103, 1, "Link: x\nContent-Length: 5\nTransfer-Encoding: cow", "103  none | Link: x", METHOD_GET, false},
	{101, 1, UP, "SWITCH", METHOD_GET, false},
	{101, 1, UP "\nContent-Length: 5\nA: b", "101  tunnel upgrade=websocket | A: b", METHOD_GET, true},
	{101, 1, "Upgrade: websocket", "SWITCH", METHOD_GET, true},
	{101, 1, "Connection: Upgrade", "SWITCH", METHOD_GET, true},
	{101, 1, "Connection: Upgrade\nUpgrade: h2c", "SWITCH", METHOD_GET, true},
	{101, 0, UP, "SWITCH", METHOD_GET, true},
	{200, 1, UP "\nContent-Length: 0", "200  none=0", METHOD_GET, true},
	{99, 1, "", "STATUS", METHOD_GET, false},
	{600, 1, "", "STATUS", METHOD_GET, false},
	{200, 1, "Content-Length: 0\nKeep-Alive: 5\nTrailer: X\nSet-Cookie: a=1\nSet-Cookie: b_c=2\nX_Y: z",
		"200  none=0 | Set-Cookie: a=1 | Set-Cookie: b_c=2 | X_Y: z", METHOD_GET, false},
};

static void test_responses(void **state)
{
	(void)state;
	for (size_t i = 0; i < N(responses); i++) {
		struct field room[32];
		struct trace t = {.n = 0};
		struct head h = {.field = room, .max_fields = 32};

		h.status = (uint16_t)responses[i].status;
		h.minor = (uint8_t)responses[i].minor;
		fields_of(&h, responses[i].fields);
		enum codec_fault f = framing_response(&h, responses[i].method, responses[i].upgrade);
		if (f)
			trace_add(&t, "%s", fault_name(f));
		else
			trace_head(&t, &h);
		if (strcmp(t.text, responses[i].what) != 0)
			fail_msg("row %zu, %s: %s, not %s", i, responses[i].fields, t.text, responses[i].what);
	}
}

/* 100 names are read, 101 are refused. */
static void test_connection_names(void **state)
{
	struct field room[4];
	char list[512], spare[4];
	struct head h;

	(void)state;
	for (size_t names = 100; names <= 101; names++) {
		h = (struct head){.field = room, .max_fields = 4, .minor = 1, .target = STR("/"), .method = STR("GET"), .method_id = METHOD_GET};
		list[0] = '\0';
		for (size_t i = 0; i < names; i++)
			strcat(list, "a,");
		assert_int_equal(head_add(&h, STR("Host"), STR("a")), OK);
		assert_int_equal(head_add(&h, STR("Connection"), str_of(list)), OK);
		assert_int_equal(framing_request(&h, spare), names == 100 ? FAULT_NONE : FAULT_CONNECTION);
	}
}

static void test_trailers(void **state)
{
	static const char *const gone[] = {
		"Host", "Content-Length", "Transfer-Encoding", "Trailer", "TE", "Connection", "Upgrade", "Authorization", "Cookie",
		"Set-Cookie", "Content-Encoding", "Content-Range", "X-Forwarded-For", "X-Forwarded-Port", "If-Match", "Range", "Expect",
		"Cache-Control", "Vary", "WWW-Authenticate", "Proxy-Authorization", "Location", "Via", "X_Y", "X-Real-IP",
	}, *const kept[] = {"Grpc-Status", "X-Checksum", "Server-Timing", "ETag", "Digest"};
	struct field room[N(gone) + N(kept)];
	struct head h = {.field = room, .max_fields = N(room)};

	(void)state;
	for (size_t i = 0; i < N(gone); i++)
		assert_int_equal(head_add(&h, str_of(gone[i]), STR("x")), OK);
	for (size_t i = 0; i < N(kept); i++)
		assert_int_equal(head_add(&h, str_of(kept[i]), STR("x")), OK);
	framing_trailers(&h);
	assert_int_equal(h.n_fields, N(kept));
	for (size_t i = 0; i < N(kept); i++)
		assert_true(str_eq(field_name(&h.field[i]), str_of(kept[i])));
}

static void test_faults(void **state)
{
	(void)state;
	for (unsigned f = FAULT_NONE + 1; f < FAULT_N; f++) {
		assert_in_range(codec_fault_status((enum codec_fault)f), 400, 599);
		assert_true(codec_fault_text((enum codec_fault)f).n > 0);
		assert_non_null(fault_name((enum codec_fault)f));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scan), cmocka_unit_test(test_start_lines), cmocka_unit_test(test_values),
		cmocka_unit_test(test_requests), cmocka_unit_test(test_responses), cmocka_unit_test(test_connection_names),
		cmocka_unit_test(test_trailers), cmocka_unit_test(test_faults),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
