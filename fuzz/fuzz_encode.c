/* The encoders, with bodies, pieces, flushes and rooms that nobody chose.
 *
 * The first byte chooses coding and level, the second what is said of the length, the third how it is cut.  Of the rest three things are
 * checked: after a flush the other side knows all that was put; at the end it knows that it is whole; and all memory was
 * given back.  With the highest bit of the first byte an allocation fails: an error then, and nothing left behind. */
#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/http/encode.h"
#include "tests/decode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char out[32768];

static uint32_t next_random(uint32_t *x)
{
	*x = *x * 1664525 + 1013904223;
	return *x >> 8;
}

static enum err step(struct encode *e, enum encode_op op, struct str in, uint32_t *seed, struct decode *d)
{
	size_t room, made;

	do {
		room = ENCODE_ROOM_MIN + next_random(seed) % (next_random(seed) % 4 ? 64 : sizeof out - ENCODE_ROOM_MIN);
		if (encode_step(e, op, &in, out, room, &made) != OK)
			return ERR_MEM;
		CHECK(made <= room && decode_put(d, (struct str){out, made}));
	} while (made == room);
	CHECK(in.n == 0);
	return OK;
}

static enum err pass(struct encode *e, struct str body, uint32_t seed, struct decode *d)
{
	size_t at = 0;

	while (at < body.n) {
		size_t n = 1 + next_random(&seed) % (next_random(&seed) % 4 ? 300 : 20000);
		bool flush = next_random(&seed) % 4 == 0;
		struct str known;

		n = n < body.n - at ? n : body.n - at;
		if (step(e, flush ? ENCODE_FLUSH : ENCODE_PUT, (struct str){body.p + at, n}, &seed, d) != OK)
			return ERR_MEM;
		at += n;
		known = decode_out(d);
		CHECK(known.n <= at && (!flush || known.n == at));
	}
	return step(e, ENCODE_END, STR(""), &seed, d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct encode_room room = {0};
	struct encode *e = NULL;
	struct str body, known;
	struct decode *d;
	enum coding c;
	enum err err;

	if (size < 3)
		return 0;
	c = CODING_GZIP + data[0] % 3;
	body = (struct str){(const char *)data + 3, size - 3};
	d = decode_new(c);
	mem_fail_from(data[0] & 0x80 ? 1 + data[2] % 16 : 0);
	err = encode_new(&e, c, data[0] / 3 % ENCODE_LEVELS, data[1] & 1 ? body.n : data[1] & 2 ? data[1] * 64u : ENCODE_UNKNOWN, &room);
	CHECK(err == OK || (err == ERR_MEM && !e));
	if (err == OK)
		err = pass(e, body, data[2] | 0x100u, d);
	encode_free(e);
	mem_fail_from(0);
	encode_room_fini(&room);
	CHECK(err == OK || data[0] & 0x80);
	known = decode_out(d);
	CHECK(err != OK || (decode_ended(d) && str_eq(known, body)));
	decode_free(d);
	return 0;
}
