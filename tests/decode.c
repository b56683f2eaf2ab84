/* decode: the libraries' own decoders, so that what the encoders make is judged by another than their maker. */
#include "tests/decode.h"

#include <brotli/decode.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

#include "lib/base/check.h"

struct decode {
	enum coding coding;
	bool ended;
	char *out;
	size_t n, cap;
	z_stream gzip;
	BrotliDecoderState *br;
	ZSTD_DStream *zstd;
};

struct decode *decode_new(enum coding c)
{
	struct decode *d = calloc(1, sizeof(*d));

	CHECK(d);
	d->coding = c;
	if (c == CODING_GZIP)
		CHECK(inflateInit2(&d->gzip, 15 + 16) == Z_OK);
	else if (c == CODING_BR)
		CHECK((d->br = BrotliDecoderCreateInstance(NULL, NULL, NULL)));
	else
		CHECK((d->zstd = ZSTD_createDStream()));
	return d;
}

void decode_free(struct decode *d)
{
	if (d->coding == CODING_GZIP)
		inflateEnd(&d->gzip);
	BrotliDecoderDestroyInstance(d->br);
	ZSTD_freeDStream(d->zstd);
	free(d->out);
	free(d);
}

/* One step into the room at the end of `out`; false: not of this coding. */
static bool step(struct decode *d, struct str *in)
{
	unsigned char *to = (unsigned char *)d->out + d->n;
	const unsigned char *from = (const unsigned char *)in->p;
	size_t room = d->cap - d->n, left = in->n;
	bool good = true;

	if (d->coding == CODING_GZIP) {
		d->gzip.next_in = (unsigned char *)(uintptr_t)from;
		d->gzip.avail_in = (unsigned)left;
		d->gzip.next_out = to;
		d->gzip.avail_out = (unsigned)room;
		int rc = inflate(&d->gzip, Z_NO_FLUSH);

		d->ended = rc == Z_STREAM_END;
		good = rc == Z_OK || rc == Z_STREAM_END || rc == Z_BUF_ERROR;
		left = d->gzip.avail_in;
		room = d->gzip.avail_out;
	} else if (d->coding == CODING_BR) {
		BrotliDecoderResult rc = BrotliDecoderDecompressStream(d->br, &left, &from, &room, &to, NULL);

		d->ended = rc == BROTLI_DECODER_RESULT_SUCCESS;
		good = rc != BROTLI_DECODER_RESULT_ERROR;
	} else {
		ZSTD_inBuffer i = {from, left, 0};
		ZSTD_outBuffer o = {to, room, 0};
		size_t rc = ZSTD_decompressStream(d->zstd, &o, &i);

		d->ended = rc == 0;
		good = !ZSTD_isError(rc);
		left -= i.pos;
		room -= o.pos;
	}
	in->p += in->n - left;
	in->n = left;
	d->n = d->cap - room;
	return good;
}

bool decode_put(struct decode *d, struct str in)
{
	bool full = false;

	while (in.n || full) {
		if (d->ended)
			return in.n == 0;
		if (d->cap - d->n < 4096) {
			d->cap = 2 * d->cap + 16384;
			d->out = realloc(d->out, d->cap);
			CHECK(d->out);
		}
		if (!step(d, &in))
			return false;
		full = d->n == d->cap;
	}
	return true;
}

struct str decode_out(const struct decode *d)
{
	return (struct str){d->out, d->n};
}

bool decode_ended(const struct decode *d)
{
	return d->ended;
}
