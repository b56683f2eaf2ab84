/* encode: zlib, brotli and zstd behind one contract.
 *
 * Called by the proxy, for answers on routes that compress, and by tests.  The only file that includes the
 * three libraries.  They are asked for little: small windows, small tables, no threads.  A library's memory comes from
 * room_alloc, so that it is counted and can be made to fail.  Brotli as it is packaged ends the process when memory fails; so
 * its allocator does not return then, but jumps out of the library, whose state is never looked at again: all of its
 * blocks are in a list of ours.
 *
 * Why these parameters: what one answer holds counts here for more than the last per cent of its size, since a slow client
 * holds it for as long as it likes.  Brotli's qualities 0 and 1 keep no window, only blocks; they are given blocks of
 * 16 KiB, gathered here, since each piece would be a block of its own.  Its next quality takes ten times as much. */
#define ZSTD_STATIC_LINKING_ONLY	/* for custom allocators alone */
#include "lib/http/encode.h"

#include <brotli/encode.h>
#include <setjmp.h>
#include <zlib.h>
#include <zstd.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"

#define SPARE_LEAST 1024u		/* bytes of a block that is worth keeping */
#define SPARE_MOST (512u * 1024)	/* bytes of all that are kept */
#define KIB 1024u
#define BLOCK 16384u	/* bytes of a block of brotli's fast quality */

struct br_block {		/* before each block that brotli has */
	struct br_block *next, *prev;
};

_Static_assert(sizeof(struct br_block) % 16 == 0, "what is behind it is aligned as malloc aligns");

struct br {
	struct encode_room *room;	/* borrowed */
	struct br_block list;		/* owned: all that the library has; the head of a ring */
	BrotliEncoderState *state;	/* in it */
	jmp_buf *out;			/* where the allocator goes when there is no memory */
	char *block;		/* owned; NULL: pieces are passed on as they come */
	size_t size, n;		/* bytes that it has room for, and that are in it */
	size_t passed;		/* of those, bytes that the library has: while it is being passed on */
};

struct encode {
	struct encode_room *room;	/* borrowed */
	size_t promised;		/* bytes that it holds at most */
	enum coding coding;
	bool dirty;			/* bytes were taken that no flush has followed */
	bool ended;			/* the end was written */
	union {
		z_stream gzip;
		ZSTD_CCtx *zstd;		/* owned */
		struct br br;
	};
};

/* --- memory --- */

/* In the front of a block that waits for the next encoder.  They all ask for the same sizes again and again, and
 * malloc would give blocks of that size back to the system, page for page, and get them again for each answer. */
struct encode_spare {
	struct encode_spare *next;
	size_t size;	/* as mem_size has it */
};

static void *spare_take(struct encode_room *room, size_t n)
{
	for (struct encode_spare **at = &room->spare, *s; (s = *at); at = &s->next) {
		if (s->size < n + 8 || s->size > n + n / 8 + 32)
			continue;
		*at = s->next;
		room->spared -= s->size;
		room->used += s->size;
		return s;
	}
	return NULL;
}

static bool spare_keep(struct encode_room *room, void *p, size_t size)
{
	struct encode_spare *s = p;

	if (size < SPARE_LEAST || size > SPARE_MOST - room->spared)
		return false;
	*s = (struct encode_spare){room->spare, size};
	room->spare = s;
	room->spared += size;
	return true;
}

static void *room_alloc(void *ctx, size_t n)
{
	struct encode_room *room = ctx;
	void *p = spare_take(room, n);

	room->wanted = true;
	if (!p) {
		p = mem_alloc(n);
		if (!p)
			return NULL;
		if (budget_charge(room->budget, mem_size(p)) != OK) {
			mem_free(p);
			return NULL;
		}
		room->used += mem_size(p);
	}
	if (room->used > room->peak)
		room->peak = room->used;
	return p;
}

static void room_free(void *ctx, void *p)
{
	struct encode_room *room = ctx;
	size_t size = mem_size(p);

	if (!p)
		return;
	room->used -= size;
	if (spare_keep(room, p, size))
		return;
	budget_credit(room->budget, size);
	mem_free(p);
}

static void spare_free(struct encode_room *room)
{
	struct encode_spare *s;

	while ((s = room->spare)) {
		room->spare = s->next;
		budget_credit(room->budget, s->size);
		mem_free(s);
	}
	room->spared = 0;
}

void encode_room_trim(struct encode_room *room)
{
	if (!room->wanted)
		spare_free(room);
	room->wanted = false;
}

void encode_room_fini(struct encode_room *room)
{
	CHECK(room->used == 0 && room->promised == 0);
	spare_free(room);
}

/* --- parameters --- */

/* The bits of a window for `length` bytes, not more than `most`. */
static int window_bits(uint64_t length, int least, int most)
{
	int bits = least;

	while (bits < most && (uint64_t)1 << bits < length)
		bits++;
	return bits;
}

/* --- gzip --- */

static void *gzip_alloc(void *ctx, unsigned items, unsigned size)
{
	return room_alloc(ctx, (size_t)items * size);
}

static bool gzip_new(struct encode *e, enum encode_level level, uint64_t length)
{
	static const struct { int level, bits, table; } as[ENCODE_LEVELS] = {
		[ENCODE_FAST] = {1, 14, 6}, [ENCODE_BALANCED] = {4, 14, 7}, [ENCODE_SMALL] = {6, 15, 8},
	};
	int bits = window_bits(length, 10, as[level].bits), table = bits - 7;

	if (table > as[level].table)
		table = as[level].table;
	e->gzip = (z_stream){.zalloc = gzip_alloc, .zfree = room_free, .opaque = e->room};
	/* 16: with the header and trailer of gzip (RFC 1952) */
	return deflateInit2(&e->gzip, as[level].level, Z_DEFLATED, bits + 16, table, Z_DEFAULT_STRATEGY) == Z_OK;
}

static enum err gzip_step(struct encode *e, enum encode_op op, struct str *in, char *out, size_t room, size_t *made)
{
	static const int flush[] = {[ENCODE_PUT] = Z_NO_FLUSH, [ENCODE_FLUSH] = Z_SYNC_FLUSH, [ENCODE_END] = Z_FINISH};
	z_stream *z = &e->gzip;
	int rc;

	z->next_in = (unsigned char *)(uintptr_t)in->p;
	z->avail_in = (unsigned)in->n;
	z->next_out = (unsigned char *)out;
	z->avail_out = (unsigned)room;
	rc = deflate(z, flush[op]);
	/* Z_BUF_ERROR: there was nothing to do */
	CHECK(rc == Z_OK || rc == Z_STREAM_END || rc == Z_BUF_ERROR);
	in->p += in->n - z->avail_in;
	in->n = z->avail_in;
	*made = room - z->avail_out;
	return OK;
}

/* --- zstd --- */

static bool zstd_set(ZSTD_CCtx *z, ZSTD_cParameter what, int value)
{
	return !ZSTD_isError(ZSTD_CCtx_setParameter(z, what, value));
}

static bool zstd_new(struct encode *e, enum encode_level level, uint64_t length)
{
	static const struct { int bits, table, strategy, search, match; } as[ENCODE_LEVELS] = {
		[ENCODE_FAST] = {13, 12, ZSTD_fast, 1, 6},
		[ENCODE_BALANCED] = {14, 12, ZSTD_greedy, 2, 4},
		[ENCODE_SMALL] = {15, 14, ZSTD_lazy2, 4, 4},
	};
	int bits = window_bits(length, 10, as[level].bits);
	int table = bits < as[level].table ? bits : as[level].table;
	ZSTD_customMem mem = {room_alloc, room_free, e->room};
	ZSTD_CCtx *z = e->zstd = ZSTD_createCCtx_advanced(mem);
	ZSTD_outBuffer out = {NULL, 0, 0};
	ZSTD_inBuffer in = {NULL, 0, 0};

	if (!z)
		return false;
	/* the first step, with nothing to do, makes it take all its memory */
	if (zstd_set(z, ZSTD_c_windowLog, bits) && zstd_set(z, ZSTD_c_hashLog, table) &&
	    zstd_set(z, ZSTD_c_chainLog, table) && zstd_set(z, ZSTD_c_searchLog, as[level].search) &&
	    zstd_set(z, ZSTD_c_minMatch, as[level].match) && zstd_set(z, ZSTD_c_strategy, as[level].strategy) &&
	    zstd_set(z, ZSTD_c_useRowMatchFinder, ZSTD_ps_disable) && zstd_set(z, ZSTD_c_contentSizeFlag, 0) &&
	    !ZSTD_isError(ZSTD_compressStream2(z, &out, &in, ZSTD_e_continue)))
		return true;
	ZSTD_freeCCtx(z);
	return false;
}

static enum err zstd_step(struct encode *e, enum encode_op op, struct str *in, char *out, size_t room, size_t *made)
{
	static const ZSTD_EndDirective flush[] = {
		[ENCODE_PUT] = ZSTD_e_continue, [ENCODE_FLUSH] = ZSTD_e_flush, [ENCODE_END] = ZSTD_e_end,
	};
	ZSTD_inBuffer from = {in->p, in->n, 0};
	ZSTD_outBuffer to = {out, room, 0};
	size_t left;

	do {
		left = ZSTD_compressStream2(e->zstd, &to, &from, flush[op]);
		if (ZSTD_isError(left))
			return ERR_MEM;
	} while (to.pos < room && (from.pos < from.size || (op != ENCODE_PUT && left)));
	in->p += from.pos;
	in->n -= from.pos;
	*made = to.pos;
	e->ended = op == ENCODE_END && left == 0;	/* one more end would be one more frame */
	return OK;
}

/* --- brotli --- */

static void *br_alloc(void *ctx, size_t n)
{
	struct br *br = ctx;
	struct br_block *b = room_alloc(br->room, sizeof(*b) + n);

	if (!b)
		longjmp(*br->out, 1);
	b->next = br->list.next;
	b->prev = &br->list;
	b->next->prev = b->prev->next = b;
	return b + 1;
}

static void br_give(void *ctx, void *p)
{
	struct br_block *b;

	if (!p)
		return;
	b = (struct br_block *)p - 1;
	b->next->prev = b->prev;
	b->prev->next = b->next;
	room_free(((struct br *)ctx)->room, b);
}

static void br_free(struct br *br)
{
	while (br->list.next != &br->list)
		br_give(br, br->list.next + 1);
	room_free(br->room, br->block);
}

static void br_set(struct br *br, enum encode_level level, uint64_t length)
{
	static const struct { unsigned quality; int bits; } as[ENCODE_LEVELS] = {
		[ENCODE_FAST] = {1, 14}, [ENCODE_BALANCED] = {3, 15}, [ENCODE_SMALL] = {5, 16},
	};
	/* without a window these are the bits of a block */
	int bits = level == ENCODE_FAST ? as[level].bits : window_bits(length, 10, as[level].bits);

	BrotliEncoderSetParameter(br->state, BROTLI_PARAM_QUALITY, as[level].quality);
	BrotliEncoderSetParameter(br->state, BROTLI_PARAM_LGWIN, (uint32_t)bits);
	if (length < BLOCK)
		BrotliEncoderSetParameter(br->state, BROTLI_PARAM_SIZE_HINT, (uint32_t)length);
}

static bool br_new(struct br *br, enum encode_level level, uint64_t length, struct encode_room *room)
{
	jmp_buf out;

	br->room = room;
	br->list.next = br->list.prev = &br->list;
	br->out = &out;
	if (setjmp(out)) {
		br_free(br);
		return false;
	}
	br->state = BrotliEncoderCreateInstance(br_alloc, br_give, br);
	CHECK(br->state);
	br_set(br, level, length);
	if (level != ENCODE_FAST)
		return true;
	br->size = length < BLOCK ? (size_t)length + 1 : BLOCK;
	br->block = room_alloc(room, br->size);
	if (!br->block)
		br_free(br);
	return br->block;
}

/* The library's own step; *in is empty when it returns with room left. */
static enum err br_pass(struct br *br, BrotliEncoderOperation op, struct str *in, char *to, size_t room, size_t *made)
{
	const uint8_t *from = (const uint8_t *)in->p;
	uint8_t *at = (uint8_t *)to;
	size_t n = in->n, left = room;
	jmp_buf out;

	br->out = &out;
	if (setjmp(out))
		return ERR_MEM;
	do {
		CHECK(BrotliEncoderCompressStream(br->state, op, &n, &from, &left, &at, NULL));
	} while (left && (n || BrotliEncoderHasMoreOutput(br->state)));
	in->p += in->n - n;
	in->n = n;
	*made = room - left;
	return OK;
}

static enum err br_step(struct br *br, enum encode_op op, struct str *in, char *out, size_t room, size_t *made)
{
	static const BrotliEncoderOperation as[] = {
		[ENCODE_PUT] = BROTLI_OPERATION_PROCESS, [ENCODE_FLUSH] = BROTLI_OPERATION_FLUSH,
		[ENCODE_END] = BROTLI_OPERATION_FINISH,
	};
	size_t total = 0, n;
	bool last = false;

	if (!br->block)
		return br_pass(br, as[op], in, out, room, made);
	while (!last) {
		struct str block;

		n = br->passed ? 0 : br->size - br->n;
		n = n < in->n ? n : in->n;
		if (n)
			memcpy(br->block + br->n, in->p, n);
		br->n += n;
		in->p += n;
		in->n -= n;
		last = in->n == 0;
		if (last && op == ENCODE_PUT && br->n < br->size)
			break;
		block = (struct str){br->block + br->passed, br->n - br->passed};
		if (br_pass(br, last ? as[op] : BROTLI_OPERATION_PROCESS, &block, out + total, room - total, &n) != OK)
			return ERR_MEM;
		total += n;
		br->passed = br->n - block.n;
		if (total == room)
			break;	/* it may have more */
		br->n = br->passed = 0;
	}
	*made = total;
	return OK;
}

/* --- all of them --- */

/* What each holds at most.  Brotli takes its memory as it goes, by what it reads, so that is not to be seen when it begins:
 * 674 KiB and 1.8 MiB for text, 0.94 and 2 MiB for machine code, at most those tables twice while they grow. */
static const size_t most[CODING_N][ENCODE_LEVELS] = {
	[CODING_GZIP] = {102 * KIB, 134 * KIB, 262 * KIB},
	[CODING_BR] = {172 * KIB, 1200 * KIB, 2600 * KIB},
	[CODING_ZSTD] = {96 * KIB, 166 * KIB, 370 * KIB},
};

enum err encode_new(struct encode **out, enum coding c, enum encode_level level, uint64_t length,
		    struct encode_room *room)
{
	size_t before = room->used;
	struct encode *e;
	bool made;

	CHECK(c > CODING_NONE && c < CODING_N && level < ENCODE_LEVELS);
	if (room->limit && room->promised && room->promised + most[c][level] > room->limit)
		return ERR_LIMIT;
	e = room_alloc(room, sizeof(*e));
	if (!e)
		return ERR_MEM;
	*e = (struct encode){.room = room, .coding = c};
	made = c == CODING_GZIP ? gzip_new(e, level, length) : c == CODING_BR ? br_new(&e->br, level, length, room)
		: zstd_new(e, level, length);
	if (!made) {
		room_free(room, e);
		return ERR_MEM;
	}
	e->promised = c == CODING_BR ? most[c][level] : room->used - before;
	room->promised += e->promised;
	*out = e;
	return OK;
}

void encode_free(struct encode *e)
{
	if (!e)
		return;
	if (e->coding == CODING_GZIP)
		deflateEnd(&e->gzip);
	else if (e->coding == CODING_BR)
		br_free(&e->br);
	else
		ZSTD_freeCCtx(e->zstd);
	e->room->promised -= e->promised;
	room_free(e->room, e);
}

enum err encode_step(struct encode *e, enum encode_op op, struct str *in, char *out, size_t room, size_t *made)
{
	enum err err;

	CHECK(room >= ENCODE_ROOM_MIN);
	if (in->n)
		e->dirty = true;
	*made = 0;
	if (e->ended || (op != ENCODE_END && !e->dirty))
		return OK;
	err = e->coding == CODING_GZIP ? gzip_step(e, op, in, out, room, made)
		: e->coding == CODING_BR ? br_step(&e->br, op, in, out, room, made) : zstd_step(e, op, in, out, room, made);
	if (err == OK && op == ENCODE_FLUSH && *made < room)
		e->dirty = false;
	return err;
}
