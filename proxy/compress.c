/* compress: see compress.h.
 *
 * Stands between the upstream's codec and the client's: body events go into an encoder (lib/http/encode.h) and come out
 * in w->coded, an area that all exchanges of a worker share.  Each has given back what it made there before
 * another is visited: it was written, or copied to x->to_client.  An encoder lives from an answer's head to its
 * end; the head is put only when it is there, so that an answer that finds no memory goes as it is.
 *
 * Nothing is held back: when no more waits to be read the encoder is flushed.  Nothing is hidden: the end of the coding is
 * made of the origin's end alone, so a cut answer is cut, in its framing and in its coding. */
#include "proxy/compress.h"

#include "dispatch/encoding.h"
#include "lib/base/mem.h"
#include "proxy/answer.h"

#define CODED_SIZE (64u * 1024)
#define CODED_LOW 4096u		/* what is left when it is emptied */
#define FIELDS_ADDED 2		/* to a head, at most */

void compress_worker_free(struct worker *w)
{
	encode_room_fini(&w->encoders);
	mem_pages_free(w->coded, CODED_SIZE);
}

/* --- the request --- */

enum gate_said compress_gate(struct exchange *x, struct policy_part *part, struct head *h)
{
	const struct encoding *policy = (const struct encoding *)part;
	struct compress *c = arena_alloc(&x->arena, sizeof *c);

	if (!c) {
		exchange_fail(x, CAUSE_NO_MEMORY);
		return GATE_STOP;
	}
	*c = (struct compress){ .policy = policy, .weak_asked = coding_asked_weak(h) };
	/* HTTP/1.0 would have to be told the end by closing: its answers keep their length */
	if (x->minor > 0 && !coding_forbidden(h))
		c->coding = (uint8_t)coding_choose(h, policy->codings, policy->n_codings);
	x->compress = c;
	return GATE_PASS;
}

/* --- the head --- */

/* Whether the bytes behind a head are all of a chunked body, and shorter than is worth it. */
static bool ends_here(struct str rest, uint64_t min_size)
{
	static const struct str end = { "\r\n0\r\n\r\n", 7 };

	return rest.n >= end.n && rest.n < min_size &&
	       str_eq((struct str){ rest.p + rest.n - end.n, end.n }, end);
}

/* Whether an answer like that is ever compressed on this route, whoever asks. */
static bool fits(const struct exchange *x, const struct head *h)
{
	const struct encoding *policy = x->compress->policy;

	if ((h->body == BODY_NONE && x->method != METHOD_HEAD) || h->max_fields - h->n_fields < FIELDS_ADDED)
		return false;
	return (!h->has_length || h->length >= policy->min_size) && coding_fits(h, policy->types, policy->n_types);
}

/* An encoder and the area for what it makes; false: not now. */
static bool begin(struct exchange *x, uint64_t length)
{
	struct compress *c = x->compress;
	struct worker *w = x->w;

	if (!w->coded)
		w->coded = mem_pages(CODED_SIZE);
	c->from = c->to = 0;
	if (w->coded && encode_new(&c->encode, c->coding, c->policy->level, length, &w->encoders) == OK)
		return true;
	COUNT(w, compress_refused);
	return false;
}

static enum cause cause_of(enum err err)
{
	return err == OK ? CAUSE_NONE : err == ERR_MEM ? CAUSE_NO_MEMORY : CAUSE_ANSWER_HEAD_SIZE;
}

/* A 304 for a client that may have a compressed answer: it is about that one.  Caches take its Vary for theirs (RFC 9111 3.2), and
 * its length would be another (RFC 9110 8.6). */
static enum cause not_modified(struct exchange *x, struct head *h)
{
	enum err err = coding_weaken(h, &x->arena);

	h->has_length = false;
	h->length = 0;
	return cause_of(err == OK ? coding_put_vary(h, &x->arena) : err);
}

enum cause compress_head(struct exchange *x, struct head *h, struct str rest)
{
	struct compress *c = x->compress;
	enum err err;

	if (h->status == 304 && c->weak_asked)
		return not_modified(x, h);
	if (!fits(x, h))
		return CAUSE_NONE;
	err = coding_put_vary(h, &x->arena);
	if (err != OK || c->coding == CODING_NONE)
		return cause_of(err);
	if (x->method != METHOD_HEAD) {
		if (!h->has_length && ends_here(rest, c->policy->min_size))
			return CAUSE_NONE;
		if (!begin(x, h->has_length ? h->length : ENCODE_UNKNOWN))
			return CAUSE_NONE;
		COUNT(x->w, compressed);
	}
	return cause_of(coding_put(h, c->coding, &x->arena));
}

enum cause compress_whole(struct exchange *x, struct head *h, struct str *body)
{
	struct compress *c = x->compress;
	uint8_t framing = h->body;
	struct str in = *body;
	size_t made;
	enum err err;

	if (body->n > CODED_SIZE || !fits(x, h))
		return CAUSE_NONE;
	err = coding_put_vary(h, &x->arena);
	if (err != OK || c->coding == CODING_NONE || !begin(x, body->n))
		return cause_of(err);
	err = encode_step(c->encode, ENCODE_END, &in, x->w->coded, CODED_SIZE, &made);
	compress_free(x);
	if (err != OK || made >= body->n)
		return CAUSE_NONE;
	COUNT(x->w, compressed);
	COUNT_ADD(x->w, compress_in, body->n);
	COUNT_ADD(x->w, compress_out, made);
	*body = (struct str){ x->w->coded, made };
	err = coding_put(h, c->coding, &x->arena);
	h->body = framing;
	h->has_length = true;
	h->length = made;
	return cause_of(err);
}

/* --- the body --- */

/* Puts what was made. */
static bool put(struct exchange *x)
{
	struct compress *c = x->compress;
	struct worker *w = x->w;
	struct str piece = { w->coded + c->from, c->to - c->from };

	if (piece.n == 0)
		return true;
	if (vec_room(&w->vec) < 4 && !answer_flush(x))
		return false;
	x->bytes_out += piece.n;
	COUNT_ADD(w, bytes_out, piece.n);
	COUNT_ADD(w, compress_out, piece.n);
	c->from = c->to;
	if (codec_put_body(&x->server.codec, 0, piece, &w->vec) == OK)
		return true;
	vec_reset(&w->vec);
	exchange_fail(x, CAUSE_ANSWER_BROKEN);
	return false;
}

/* Makes room in the area, by writing what is in it. */
static bool make_room(struct exchange *x)
{
	struct compress *c = x->compress;

	if (CODED_SIZE - c->to >= CODED_LOW)
		return true;
	if (!put(x) || !answer_flush(x))
		return false;
	c->from = c->to = 0;
	return true;
}

static bool step(struct exchange *x, enum encode_op op, struct str in)
{
	struct compress *c = x->compress;
	struct worker *w = x->w;
	size_t room, made;

	if (w->vec.n == 0 && c->from == c->to)
		c->from = c->to = 0;
	do {
		if (!make_room(x))
			return false;
		room = CODED_SIZE - c->to;
		if (encode_step(c->encode, op, &in, w->coded + c->to, room, &made) != OK) {
			vec_reset(&w->vec);
			exchange_fail(x, CAUSE_NO_MEMORY);
			return false;
		}
		c->to += made;
	} while (made == room);
	return true;
}

bool compress_body(struct exchange *x, struct str piece)
{
	COUNT_ADD(x->w, compress_in, piece.n);
	return step(x, ENCODE_PUT, piece);
}

static bool written(struct exchange *x)
{
	return put(x) && (!x->w->vec.n || answer_flush(x));
}

bool compress_flush(struct exchange *x)
{
	return step(x, ENCODE_FLUSH, STR("")) && written(x);
}

bool compress_pause(struct exchange *x, bool more)
{
	if (!(x->lease.up->c.t.flags & CONN_READABLE))
		return compress_flush(x);
	return (more && !x->to_client) || written(x);
}

bool compress_end(struct exchange *x)
{
	if (!step(x, ENCODE_END, STR("")) || !put(x))
		return false;
	compress_free(x);
	return true;
}

bool compress_trailers(struct exchange *x, struct head *trailers)
{
	coding_trailers(trailers);
	return compress_end(x);
}

void compress_free(struct exchange *x)
{
	encode_free(x->compress->encode);
	x->compress->encode = NULL;
}
