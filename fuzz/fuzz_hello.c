/* ClientHellos of any bytes.
 *
 * The first byte chooses: the rest is what came on the connection, or a handshake message that is cut into
 * records here.  What is seen whole is seen byte by byte too; a message says the same however it is cut; what was
 * found is what a second, plain reading of the message finds. */
#include <stdint.h>
#include <stdlib.h>

#include "lib/base/check.h"
#include "lib/net/hello.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum hello_kind peek(const uint8_t *p, size_t n, uint32_t *need, struct hello *h)
{
	uint8_t *block = malloc(n ? n : 1);
	enum hello_kind kind;

	CHECK(block);
	if (n)
		memcpy(block, p, n);
	kind = hello_peek((struct str){ (char *)block, n }, need, h);
	free(block);
	return kind;
}

static bool same(const struct hello *a, const struct hello *b)
{
	return a->message == b->message && a->alpn_at == b->alpn_at && a->alpn_n == b->alpn_n && a->alpn == b->alpn &&
	       a->tls12 == b->tls12 && a->tls13 == b->tls13 && a->name_n == b->name_n && !memcmp(a->name, b->name, a->name_n);
}

/* In steps of `step` bytes; how many bytes it took. */
static enum hello_kind peek_slowly(const uint8_t *p, size_t n, size_t step, struct hello *h, size_t *used)
{
	enum hello_kind kind = HELLO_MORE;
	uint32_t need = 0;

	for (size_t i = 0; kind == HELLO_MORE; i += step) {
		*used = i < n ? i : n;
		kind = peek(p, *used, &need, h);
		CHECK(kind != HELLO_MORE || need == 0 || need > *used);
		if (i >= n)
			break;
	}
	return kind;
}

static void check_name(const struct hello *h)
{
	CHECK(h->name_n <= HELLO_NAME_MAX);
	for (size_t i = 0, label = 0; i < h->name_n; i++) {
		char c = h->name[i];

		label = c == '.' ? 0 : label + 1;
		CHECK(label <= 63 && (c == '.' ? i && h->name[i - 1] != '.' && i + 1 < h->name_n :
			(c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_'));
	}
}

/* Another reader, of a message that is right: where the body of an extension is. */
static const uint8_t *extension(const uint8_t *m, size_t n, unsigned type, size_t *len)
{
	size_t at = 4 + 2 + 32;

	at += 1u + m[at];
	at += 2u + (size_t)(m[at] << 8 | m[at + 1]);
	at += 1u + m[at];
	for (at += 2; at < n; at += 4 + *len) {
		*len = (size_t)(m[at + 2] << 8 | m[at + 3]);
		CHECK(at + 4 + *len <= n);
		if ((unsigned)(m[at] << 8 | m[at + 1]) == type)
			return m + at + 4;
	}
	return NULL;
}

static void check_done(const uint8_t *p, size_t n, const struct hello *h)
{
	uint8_t *m = malloc(h->message);
	const uint8_t *e;
	size_t len;

	CHECK(m && h->length <= n && h->length <= HELLO_MAX && h->message + 5u <= h->length);
	hello_copy((struct str){ (const char *)p, n }, h, 0, h->message, m);
	CHECK(m[0] == 1 && (size_t)(m[1] << 16 | m[2] << 8 | m[3]) + 4 == h->message);
	check_name(h);
	e = extension(m, h->message, 0, &len);
	CHECK(!e == !h->name_n);
	if (e) {
		CHECK(len == 5u + h->name_n || (len == 6u + h->name_n && e[len - 1] == '.'));
		for (size_t i = 0; i < h->name_n; i++)
			CHECK(h->name[i] == e[5 + i] || (h->name[i] ^ e[5 + i]) == 0x20);
	}
	e = extension(m, h->message, 16, &len);
	CHECK(!e == !h->alpn_at && (!e || (len == h->alpn_n + 2u && e + 2 == m + h->alpn_at)));
	e = extension(m, h->message, 43, &len);
	CHECK(e || !h->tls13);
	free(m);
}

/* Records of sizes that `seed` chooses; their length. */
static size_t cut(const uint8_t *m, size_t n, uint32_t seed, uint8_t *to)
{
	size_t at = 0, step;

	for (size_t i = 0; i < n; i += step) {
		seed = seed * 1664525 + 1013904223;
		step = 1 + (seed >> 16) % (seed >> 31 ? 8 : 600);
		step = n - i < step ? n - i : step;
		memcpy(to + at, (uint8_t[]){ 22, 3, 1, (uint8_t)(step >> 8), (uint8_t)step }, 5);
		memcpy(to + at + 5, m + i, step);
		at += 5 + step;
	}
	return at;
}

static enum hello_kind check(const uint8_t *p, size_t n, uint8_t how, struct hello *h)
{
	struct hello slow;
	uint32_t need = 0;
	size_t used;
	enum hello_kind kind = peek(p, n, &need, h);
	/* byte by byte where that does not take long */
	size_t step = n < 600 ? 1 : 1 + how;

	CHECK(peek_slowly(p, n, step, &slow, &used) == kind);
	CHECK(kind != HELLO_TOO_BIG || n > 4);
	if (kind == HELLO_DONE) {
		CHECK(h->length == slow.length && same(h, &slow) && used < h->length + step);
		check_done(p, n, h);
	}
	return kind;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hello one, two;
	enum hello_kind kind, other;
	uint8_t how, *records;
	size_t n;

	if (!size)
		return 0;
	how = *data++;
	size--;
	if (how & 1) {
		check(data, size, how, &one);
		return 0;
	}
	if (!size || size > 4000)
		return 0;
	records = malloc(6 * size);
	CHECK(records);
	/* one record against many */
	memcpy(records, (uint8_t[]){ 22, 3, 3, (uint8_t)(size >> 8), (uint8_t)size }, 5);
	memcpy(records + 5, data, size);
	kind = check(records, size + 5, how, &one);
	n = cut(data, size, how, records);
	other = check(records, n, how, &two);
	/* whether there is more in the record in which it ends depends on the records, and so does their length */
	if (kind != HELLO_BAD && kind != HELLO_TOO_BIG && other != HELLO_TOO_BIG)
		CHECK(kind == other && (kind != HELLO_DONE || same(&one, &two)));
	free(records);
	return 0;
}
