/* PROXY protocol headers of any bytes.
 *
 * What is read whole is read byte by byte too, in blocks of their size; what follows changes nothing; a
 * header that is written for what was read says the same; and a header that the input describes is
 * read back with bytes of the input behind it. */
#include <stdint.h>
#include <stdlib.h>

#include "lib/base/check.h"
#include "lib/net/proxyproto.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum proxyproto_kind read_block(struct str in, struct proxyproto *p)
{
	char *block = malloc(in.n ? in.n : 1);
	enum proxyproto_kind kind;

	CHECK(block);
	if (in.n)
		memcpy(block, in.p, in.n);
	kind = proxyproto_read((struct str){ block, in.n }, p);
	free(block);
	return kind;
}

static bool same(const struct proxyproto *a, const struct proxyproto *b)
{
	return a->family == b->family && !memcmp(a->src.ip, b->src.ip, 16) && !memcmp(a->dst.ip, b->dst.ip, 16) &&
	       a->src.port == b->src.port && a->dst.port == b->dst.port;
}

static void check_read(const struct proxyproto *p, size_t n)
{
	static const uint8_t zero[16];

	CHECK(p->version == 1 || p->version == 2);
	CHECK(p->length <= n && p->length >= 15);
	CHECK(p->length <= (p->version == 1 ? PROXYPROTO_V1_MAX : PROXYPROTO_MAX));
	CHECK(p->family == 0 || p->family == 4 || p->family == 6);
	CHECK(!p->family || memcmp(p->src.ip, zero, p->family == 4 ? 4 : 16));
	CHECK(!p->local || (p->version == 2 && !p->family));
}

/* What was read, written in both versions and read back. */
static void check_written(struct proxyproto p)
{
	char to[PROXYPROTO_WRITE_MAX];
	struct proxyproto back;

	for (p.version = 1; p.version <= 2; p.version++) {
		size_t n = proxyproto_write(&p, to);

		CHECK(n <= sizeof to);
		CHECK(read_block((struct str){ to, n }, &back) == PROXYPROTO_DONE);
		CHECK(back.length == n && back.version == p.version);
		if (p.family)
			CHECK(same(&p, &back));
		else
			CHECK(!back.family);
	}
}

/* A header of the input's choice, in front of the rest of the input. */
static void check_made(const uint8_t *data, size_t size)
{
	struct proxyproto p = { 0 }, back;
	char *all;
	size_t n;

	if (size < 38)
		return;
	p.version = data[0] & 1 ? 1 : 2;
	p.family = data[0] & 2 ? 4 : 6;
	p.local = p.version == 2 && data[0] & 4;
	memcpy(p.src.ip, data + 1, p.family == 4 ? 4 : 16);
	memcpy(p.dst.ip, data + 17, p.family == 4 ? 4 : 16);
	p.src.ip[0] |= 1;	/* not 0.0.0.0 */
	p.src.port = (uint16_t)(data[33] << 8 | data[34]);
	p.dst.port = (uint16_t)(data[35] << 8 | data[36]);
	all = malloc(PROXYPROTO_WRITE_MAX + size);
	CHECK(all);
	n = proxyproto_write(&p, all);
	memcpy(all + n, data, size);
	CHECK(read_block((struct str){ all, n + size }, &back) == PROXYPROTO_DONE);
	CHECK(back.length == n && back.local == p.local && (p.local || same(&p, &back)));
	for (size_t i = 0; i < n; i++)
		CHECK(read_block((struct str){ all, i }, &back) == PROXYPROTO_MORE);
	free(all);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str in = { (const char *)data, size };
	struct proxyproto whole = { 0 }, part = { 0 };
	enum proxyproto_kind kind = read_block(in, &whole), early = PROXYPROTO_MORE;
	size_t n = 0;

	while (early == PROXYPROTO_MORE && n <= size) {
		early = read_block((struct str){ in.p, n }, &part);
		n++;
	}
	CHECK(early == kind);
	if (kind == PROXYPROTO_DONE) {
		CHECK(n - 1 == whole.length && same(&whole, &part) && part.length == whole.length && part.local == whole.local);
		check_read(&whole, size);
		check_written(whole);
	}
	check_made(data, size);
	return 0;
}
