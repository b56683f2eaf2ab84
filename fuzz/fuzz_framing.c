/* Where an HTTP/1 message ends: chunked bodies, raw heads, start lines and the rules of fields, one by one.
 *
 * The first byte chooses what the rest is.  Each is compared with a second reader, which is written plainly and sees
 * all of the input at once; and what comes in parts must be what comes whole. */
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/check.h"
#include "lib/http/chunked.h"
#include "lib/http/framing.h"
#include "lib/http/rawhead.h"
#include "lib/http/token.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FIELDS 24

static uint32_t next_random(uint32_t *x)
{
	*x = *x * 1664525 + 1013904223;
	return *x >> 8;
}

/* --- chunked bodies --- */

struct decoded {
	char *p;
	size_t n;
	enum chunked_kind kind;
	size_t rest;	/* bytes that are left */
};

static struct decoded chunked_in_parts(struct str in, uint32_t seed, uint32_t max_line)
{
	struct decoded b = { .p = malloc(in.n + 1), .kind = CHUNKED_MORE };
	struct chunked c = { 0 };
	size_t from = 0, to;

	CHECK(b.p);
	do {
		to = from + (seed ? 1 + next_random(&seed) % 7 : in.n - from);
		to = to > in.n ? in.n : to;
		char *block = malloc(to - from + 1);
		struct str part = { block, to - from }, piece;

		CHECK(block);
		memcpy(block, in.p + from, to - from);
		while ((b.kind = chunked_next(&c, &part, max_line, &piece)) == CHUNKED_DATA) {
			CHECK(piece.n && b.n + piece.n <= in.n);
			memcpy(b.p + b.n, piece.p, piece.n);
			b.n += piece.n;
		}
		CHECK(b.kind != CHUNKED_MORE || !part.n);
		b.rest = in.n - to + part.n;
		from = to;
		free(block);
	} while (b.kind == CHUNKED_MORE && from < in.n);
	return b;
}

/* Passes quoted-string or token; NULL when there is neither. */
static const char *value_end(const char *p, const char *end)
{
	const char *from = p;

	if (p < end && *p == '"') {
		for (p++; p < end && *p != '"'; p++) {
			if (*p == '\\')
				p++;
			if (p >= end || (*p != '\t' && (unsigned char)*p < ' ') || *p == 0x7f)
				return NULL;
		}
		return p < end ? p + 1 : NULL;
	}
	while (p < end && token_char((unsigned char)*p))
		p++;
	return p > from ? p : NULL;
}

static const char *spaces_end(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\t'))
		p++;
	return p;
}

/* A whole size line without its CRLF, RFC 9112 7.1 with its bad white space. */
static bool size_line_right(const char *p, const char *end, uint64_t *size)
{
	const char *from = p;

	for (*size = 0; p < end && p - from < 16; p++) {
		char c = *p;
		int d = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;

		if (d < 0)
			break;
		if (*size >= (uint64_t)1 << 59)
			return false;
		*size = *size * 16 + (uint64_t)d;
	}
	if (p == from)
		return false;
	while (p < end) {
		p = spaces_end(p, end);
		if (p == end || *p++ != ';')
			return false;
		const char *name = p = spaces_end(p, end);

		while (p < end && token_char((unsigned char)*p))
			p++;
		if (p == name)
			return false;
		const char *q = spaces_end(p, end);

		if (q < end && *q == '=') {
			p = value_end(spaces_end(q + 1, end), end);
			if (!p)
				return false;
		}
	}
	return true;
}

/* A body that is whole in `in`: its length without the trailer section, or 0; the bytes go to *b. */
static size_t chunked_plainly(struct str in, struct decoded *b)
{
	const char *p = in.p, *end = in.p + in.n;

	for (;;) {
		const char *crlf = memmem(p, (size_t)(end - p), "\r\n", 2);
		uint64_t size;

		if (!crlf || !size_line_right(p, crlf, &size))
			return 0;
		p = crlf + 2;
		if (!size)
			return (size_t)(p - in.p);
		if ((uint64_t)(end - p) < size + 2 || memcmp(p + size, "\r\n", 2) != 0)
			return 0;
		memcpy(b->p + b->n, p, size);
		b->n += size;
		p += size + 2;
	}
}

static void fuzz_chunked(struct str in, uint8_t how)
{
	struct decoded plain = { .p = malloc(in.n + 1) };
	struct decoded whole = chunked_in_parts(in, 0, 1u << 20), split = chunked_in_parts(in, how | 0x100u, 1u << 20);
	size_t n = chunked_plainly(in, &plain);

	CHECK(whole.kind == split.kind && whole.n == split.n && !memcmp(whole.p, split.p, whole.n));
	CHECK(whole.kind != CHUNKED_TRAILERS || whole.rest == split.rest);
	if (whole.kind != CHUNKED_OVERHEAD) {
		CHECK((whole.kind == CHUNKED_TRAILERS) == (n != 0));
		CHECK(!n || (whole.rest == in.n - n && whole.n == plain.n && !memcmp(whole.p, plain.p, plain.n)));
	}
	free(whole.p);
	free(split.p);
	whole = chunked_in_parts(in, 0, 16);
	split = chunked_in_parts(in, how | 0x100u, 16);
	CHECK(whole.kind == split.kind && whole.n == split.n);
	CHECK(whole.kind != CHUNKED_TRAILERS || n);
	free(whole.p);
	free(split.p);
	free(plain.p);
}

/* --- raw heads --- */

static enum codec_fault scan_plainly(struct str in, size_t *end)
{
	*end = 0;
	for (size_t i = 0; i < in.n; i++) {
		char c = in.p[i];
		bool line_begins = i == 0 || (i >= 2 && in.p[i - 1] == '\n');

		if (line_begins && (c == ' ' || c == '\t'))
			return FAULT_FOLD;
		if (c == 0 || (c == '\n' && (i == 0 || in.p[i - 1] != '\r')))
			return FAULT_SYNTAX;
		if (c != '\n' && i && in.p[i - 1] == '\r')
			return FAULT_SYNTAX;
		if (c == '\n' && i >= 3 && !memcmp(in.p + i - 3, "\r\n\r\n", 4)) {
			*end = i + 1;
			return FAULT_NONE;
		}
	}
	return FAULT_NONE;
}

static void fuzz_scan(struct str in, uint32_t seed)
{
	uint32_t at = 0, line = 0, end = 0, part_at = 0, part_end = 0, part_line = 0;
	enum codec_fault whole = rawhead_scan(in, &at, &line, &end), part = FAULT_NONE, plain;
	size_t plain_end;

	plain = scan_plainly(in, &plain_end);
	CHECK(whole == plain && end == plain_end);
	if (end) {
		const char *crlf = memmem(in.p, end, "\r\n", 2);

		CHECK(crlf == in.p + line);
	}
	for (size_t n = 0; n < in.n && !part && !part_end; ) {
		n += 1 + next_random(&seed) % 9;
		n = n > in.n ? in.n : n;
		char *block = malloc(n);

		CHECK(block);
		memcpy(block, in.p, n);
		part = rawhead_scan((struct str){ block, n }, &part_at, &part_line, &part_end);
		free(block);
	}
	CHECK(part == whole && part_end == end);
}

/* A line that is right is refused in no part of it; one that is refused in part is never right. */
static void fuzz_lines(struct str in)
{
	struct head h, part;
	bool request = rawhead_request_line(in, true, 100, &h) == FAULT_NONE;
	bool status = rawhead_status_line(in, true, &part) == FAULT_NONE;
	bool target = request && (h.target.p[0] == '/' || h.target.p[0] == '*');

	CHECK(!(request && status));
	if (request) {
		CHECK(token_ok(h.method) && h.target.n && h.target.n <= 100 && h.minor <= 1);
		CHECK(h.method.n + h.target.n + 10 == in.n && !memchr(h.target.p, ' ', h.target.n));
	}
	for (size_t i = 0; target && i < h.target.n; i++)	/* what else a target may be, framing decides */
		target = h.target.p[i] > ' ' && h.target.p[i] < 0x7f;
	if (status)
		CHECK(part.status >= 100 && part.status <= 599 && part.minor <= 1);
	for (size_t n = 0; n <= in.n && n < 300; n++) {
		char *block = malloc(n + 1);
		struct str line = { block, n };

		CHECK(block);
		memcpy(block, in.p, n);
		if (request && target)
			CHECK(rawhead_request_line(line, false, 100, &part) == FAULT_NONE);
		if (status)
			CHECK(rawhead_status_line(line, false, &part) == FAULT_NONE);
		free(block);
	}
}

/* --- fields --- */

/* The lines of a raw head as fields.  False: they are none that llhttp would give. */
static bool fields_of(struct str in, struct head *h)
{
	while (in.n) {
		const char *lf = memchr(in.p, '\n', in.n);
		struct str line = { in.p, lf ? (size_t)(lf - in.p) : in.n };
		const char *colon = memchr(line.p, ':', line.n);
		struct str name = { line.p, colon ? (size_t)(colon - line.p) : 0 }, value;

		if (!token_ok(name))
			return false;
		value = str_trim((struct str){ colon + 1, line.n - name.n - 1 });
		if (head_add_id(h, FIELD_OTHER, name, value) != OK)
			return false;
		in.p += line.n + (lf != NULL);
		in.n -= line.n + (lf != NULL);
	}
	return true;
}

static void check_passing(const struct head *h)
{
	for (unsigned i = 0; i < h->n_fields; i++) {
		struct str name = field_name(&h->field[i]);
		enum field_id id = field_id_of(name);

		CHECK(id == h->field[i].id && id < FIELD_HOP && id != FIELD_CONTENT_LENGTH && !str_ieq(name, STR("transfer-encoding")));
		CHECK(h->status || id != FIELD_HOST);
	}
}

static void check_meaning(const struct head *h)
{
	CHECK(!(h->body == BODY_STREAMED && h->has_length));
	CHECK(h->body != BODY_SIZED || (h->has_length && h->length));
	CHECK(h->length <= INT64_MAX);
	if (h->status)
		return;
	CHECK(h->target.n && (h->target.p[0] == '/' || str_eq(h->target, STR("*"))));
	CHECK(h->path.p == h->target.p && h->path.n <= h->target.n && !memchr(h->path.p, '?', h->path.n));
	CHECK(h->authority.n == 0 ? h->minor == 0 : framing_authority_ok(h->authority));
	CHECK(h->body != BODY_TUNNEL && (!h->upgrade.n || h->body == BODY_NONE));
}

/* How many fields of that name came. */
static unsigned named(const struct field *f, unsigned n, const char *name)
{
	unsigned count = 0;

	for (unsigned i = 0; i < n; i++)
		count += str_ieq(field_name(&f[i]), str_of(name));
	return count;
}

static void fuzz_fields(struct str in, uint8_t how)
{
	static const char *const targets[] = { "/", "/a?b", "*", "http://h/x", "http://h?q", "https://h:8", "x", "http:///", "/%zz#", "http://u@h/" };
	struct field field[FIELDS], came[FIELDS];
	struct head h = { .field = field, .max_fields = FIELDS, .minor = how & 1 };
	char room[64];
	unsigned n;
	enum codec_fault f;

	if (!fields_of(in, &h))
		return;
	n = h.n_fields;
	memcpy(came, field, n * sizeof *field);
	if (how & 2) {
		h.status = (uint16_t)(how & 4 ? 200 : how & 8 ? 101 : how & 16 ? 204 : 103);
		f = framing_response(&h, how & 32 ? METHOD_HEAD : METHOD_GET, how & 64);
	} else {
		h.method_id = how & 4 ? METHOD_OPTIONS : METHOD_POST;
		h.target = str_of(targets[(how >> 3) % 10]);
		f = framing_request(&h, room);
	}
	CHECK(f < FAULT_N);
	if (f)
		return;
	check_passing(&h);
	check_meaning(&h);
	if (!h.status || h.status >= 200) {
		CHECK(!named(came, n, "transfer-encoding") || !named(came, n, "content-length"));
		CHECK(named(came, n, "transfer-encoding") <= 1 && named(came, n, "content-length") <= 1);
	}
	CHECK(h.status || named(came, n, "host") <= 1);
	n = h.n_fields;
	memcpy(came, field, n * sizeof *field);
	framing_trailers(&h);
	CHECK(h.n_fields <= n && !named(field, h.n_fields, "set-cookie") && !named(field, h.n_fields, "host"));
}

/* --- numbers and authorities --- */

static void fuzz_small(struct str in)
{
	uint64_t v = 0;
	char text[24], *z = malloc(in.n + 8);
	bool digits = in.n != 0, ok = framing_length(in, &v);
	struct str bare = in;

	CHECK(z);
	for (size_t i = 0; i < in.n; i++)
		digits = digits && in.p[i] >= '0' && in.p[i] <= '9';
	while (bare.n > 1 && bare.p[0] == '0')
		bare.p++, bare.n--;
	if (ok)
		CHECK(digits && str_eq(bare, (struct str){ text, (size_t)snprintf(text, sizeof text, "%llu", (unsigned long long)v) }));
	else
		CHECK(!digits || bare.n > 19 || (bare.n == 19 && memcmp(bare.p, "9223372036854775807", 19) > 0));
	if (framing_authority_ok(in)) {
		for (size_t i = 0; i < in.n; i++)
			CHECK(in.p[i] > ' ' && in.p[i] < 0x7f && !strchr("/?#@,\\\"<>^`{|}", in.p[i]));
		memcpy(z, in.p, in.n);
		memcpy(z + in.n, ":65536", 6);
		CHECK(!framing_authority_ok((struct str){ z, in.n + 6 }));
		if (!memchr(in.p, ':', in.n) || in.p[in.n - 1] == ']')
			CHECK(framing_authority_ok((struct str){ z, in.n + 5 }));
	}
	free(z);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 3)
		return 0;
	/* a block of its own: a read behind it is seen */
	char *copy = malloc(size - 2);
	struct str in = { copy, size - 2 };

	CHECK(copy);
	memcpy(copy, data + 2, size - 2);
	switch (data[0] % 5) {
	case 0: fuzz_chunked(in, data[1]); break;
	case 1: fuzz_scan(in, data[1]); break;
	case 2: fuzz_lines(in); break;
	case 3: fuzz_fields(in, data[1]); break;
	case 4: fuzz_small(in); break;
	}
	free(copy);
	return 0;
}
