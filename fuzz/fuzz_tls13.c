/* The TLS 1.3 record layer, with records that nobody chose.
 *
 * The first byte chooses suite and role, the second how the bytes are cut.  Then come records: what kind, content type,
 * padding, length and content; the harness seals them under the key of the moment, so that the rules behind the tag are
 * reached, or it gives the bytes as they are, or a sealed record with a bit changed.
 *
 * Checked: the same bytes give the same data and the same end one record at a time and cut anywhere; a record with
 * another content than data gives none; and after each record what is sealed is read by the other side, whatever
 * KeyUpdates went before it. */
#include <stdlib.h>
#include <string.h>
#include "lib/base/check.h"
#include "tests/unit/tls_inner.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define WIRE_MAX (1u << 18)

enum { SEALED, RAW, FLIPPED, KINDS };

static struct tls13_shared *shared;

struct run {
	struct tls13 *us, *them;
	unsigned char *plain;
	size_t n;
	enum tls13_kind kind;
};

static void run_begin(struct run *r, uint8_t choice)
{
	struct tls13_secret a = { .b = "what the one end seals with, at first" }, b = { .b = "and the other" };
	enum tls13_suite suite = choice % TLS13_SUITES;
	bool client = choice & 0x80;

	r->us = tls13_new(shared, suite, client, &a, &b);
	r->them = tls13_new(shared, suite, !client, &b, &a);
	r->plain = malloc(WIRE_MAX);
	r->n = 0;
	r->kind = TLS13_MORE;
	CHECK(r->us && r->them && r->plain);
}

static void run_end(struct run *r)
{
	tls13_free(shared, r->us);
	tls13_free(shared, r->them);
	free(r->plain);
}

/* Data of ours, and the last word of a connection that must end. */
static void answer(struct run *r)
{
	unsigned char out[300];
	struct iovec iov = { out + 200, 50 };
	size_t taken, sealed, used;
	struct str plain;

	memset(out + 200, 'a', 50);
	if (r->kind == TLS13_BAD) {
		CHECK(tls13_seal(shared, r->us, &iov, 1, out, 200, &taken, &sealed) == ERR_SYS);
		sealed = tls13_finish(shared, r->us, out);
		CHECK(sealed == (r->us->flags & TLS13_THEIRS ? 0 : TLS13_ALERT));
		CHECK(sealed == 0 || tls13_open(shared, r->them, out, sealed, &used, &plain) == TLS13_BAD);
		CHECK(sealed == 0 || r->them->alert == r->us->alert);
		CHECK(tls13_finish(shared, r->us, out) == 0);
		return;
	}
	CHECK(tls13_seal(shared, r->us, &iov, 1, out, 200, &taken, &sealed) == OK && taken == 50);
	CHECK(tls13_open(shared, r->them, out, sealed, &used, &plain) == TLS13_MORE && used == sealed);
	CHECK(plain.n == 50 && plain.p[0] == 'a' && plain.p[49] == 'a');
	CHECK(!(r->them->flags & TLS13_REKEY));	/* nothing of ours asks */
}

/* Opens from bytes in a block of their own; what was used. */
static size_t run_open(struct run *r, const unsigned char *p, size_t n)
{
	unsigned char *block = malloc(n ? n : 1);
	struct str plain;
	size_t used;

	CHECK(block);
	if (n)
		memcpy(block, p, n);
	r->kind = tls13_open(shared, r->us, block, n, &used, &plain);
	CHECK(used <= n && plain.n <= used);
	CHECK(plain.n == 0 || (plain.p >= (char *)block && plain.p + plain.n <= (char *)block + used));
	CHECK(r->kind != TLS13_MORE || n - used < TLS13_RECORD);
	if (plain.n)
		memcpy(r->plain + r->n, plain.p, plain.n);
	r->n += plain.n;
	free(block);
	return used;
}

/* A type of 0 is padding: the content's last byte that is not 0 is the type then. */
static uint8_t type_of(uint8_t type, const uint8_t *content, size_t n)
{
	while (type == 0 && n)
		type = content[--n];
	return type;
}

/* The next record of the input, as bytes at `to`; 0: that was all. */
static size_t record_next(struct run *r, const uint8_t **data, size_t *size, unsigned char *to, bool *is_data)
{
	const uint8_t *p = *data;
	size_t n, pad, at;

	if (*size < 5)
		return 0;
	n = (size_t)p[3] << 8 | p[4];
	if (n > *size - 5)
		n = *size - 5;
	*data += 5 + n;
	*size -= 5 + n;
	*is_data = p[0] % KINDS == SEALED && type_of(p[1], p + 5, n) == 23;
	if (p[0] % KINDS == RAW) {
		memcpy(to, p + 5, n);
		return n;
	}
	pad = p[2] < 250 ? p[2] : (size_t)(p[2] - 249) * 2750;
	if (n + 1 + pad + 16 > 65535)
		return 0;
	n = tls_inner(r->us, TLS13_IN, r->us->seq[TLS13_IN], p[1], p + 5, n, pad, to);
	if (p[0] % KINDS == FLIPPED) {
		at = (size_t)p[2] * 8 % (n * 8);
		to[at / 8] ^= (unsigned char)(1u << p[0] % 8);
	}
	return n;
}

/* One record after the other, each with an answer; all of their bytes at `wire`. */
static size_t run_records(struct run *r, const uint8_t *data, size_t size, unsigned char *wire)
{
	size_t n = 0, kept = 0, one;
	bool is_data;

	while (r->kind == TLS13_MORE && n + (1u << 16) + 64 < WIRE_MAX && (one = record_next(r, &data, &size, wire + n, &is_data))) {
		size_t before = r->n;

		n += one;
		kept += run_open(r, wire + kept, n - kept);
		CHECK(is_data || r->n == before);
		answer(r);
	}
	return n;
}

static void run_cut(struct run *r, const unsigned char *wire, size_t n, uint32_t seed)
{
	size_t from = 0, to = 0;

	while (r->kind == TLS13_MORE && to < n) {
		seed = seed * 1664525 + 1013904223;
		to += 1 + (seed >> 8) % (seed >> 30 ? 40000 : 40);
		if (to > n)
			to = n;
		from += run_open(r, wire + from, to - from);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static unsigned char wire[WIRE_MAX];
	struct run whole, cut;
	size_t n;

	if (!shared)
		shared = tls13_shared_new(NULL);
	CHECK(shared);
	if (size < 2)
		return 0;
	run_begin(&whole, data[0]);
	run_begin(&cut, data[0]);
	n = run_records(&whole, data + 2, size - 2, wire);
	run_cut(&cut, wire, n, data[1]);
	CHECK(whole.kind == cut.kind && whole.n == cut.n && memcmp(whole.plain, cut.plain, cut.n) == 0);
	CHECK(whole.us->alert == cut.us->alert && (whole.kind != TLS13_MORE || whole.us->seq[TLS13_IN] == cut.us->seq[TLS13_IN]));
	answer(&cut);
	run_end(&whole);
	run_end(&cut);
	return 0;
}
