/* HTTP/1, incoming: bytes to events.
 *
 * One struct h1 lives as long as one message pair.  It is embedded by its user, owns
 * nothing, and borrows what the worker shares (h1_parse.c).  It never reads past the
 * message that it carries, and never goes on behind a fault.
 *
 * Invariants: a head is taken whole or not at all; the input is consumed only as far
 * as events have told of it (and the empty lines before a request). */
#include "lib/base/check.h"
#include "lib/http/framing.h"
#include "lib/http/h1.h"
#include "lib/http/h1_parse.h"
#include "lib/http/h1_put.h"
#include "lib/http/rawhead.h"

/* Empty lines before a request line that are passed over (RFC 9112 2.2). */
#define BLANKS_MAX 4

static enum codec_kind bad(struct h1 *c, struct codec_event *ev, enum codec_fault f)
{
	c->in = IN_BAD;
	c->fault = (uint8_t)f;
	c->close = true;
	ev->fault = f;
	return CODEC_BAD;
}

/* All input is used: more, unless nothing more can come. */
static enum codec_kind more(struct h1 *c, bool eof, struct codec_event *ev)
{
	return eof ? bad(c, ev, FAULT_CUT) : CODEC_MORE;
}

static void consume(struct str *in, size_t n)
{
	in->p += n;
	in->n -= n;
}

/* The section is not whole yet.  Beyond the limit it is refused; below, it is parsed
 * for faults when it arrives and whenever it has doubled. */
static __attribute__((noinline)) enum codec_fault partial(struct h1 *c, enum h1_section what, struct str in, uint32_t at)
{
	const struct codec_limits *limits = h1_limits(c->shared);
	bool full = in.n >= limits->head;
	enum codec_fault f = FAULT_NONE;

	if (c->mark == 0 || full || __builtin_clz(c->mark) != __builtin_clz(at | 1))
		f = h1_parse_partial(c->shared, what, in);
	c->mark = at;
	if (f || !full)
		return f;
	if (what == H1_REQUEST && !memchr(in.p, '\r', in.n))
		return FAULT_TARGET_SIZE;
	return FAULT_HEAD_SIZE;
}

/* Finds and reads one whole section at the front of the input.  *end is 0 when it has
 * not come; then there may be a fault all the same. */
static enum codec_fault section(struct h1 *c, enum h1_section what, struct str in, uint32_t *end)
{
	const struct codec_limits *limits = h1_limits(c->shared);
	uint32_t at = c->mark < in.n ? c->mark : 0, line = 0;
	bool resumed = at != 0;
	enum codec_fault f;

	if (in.n > limits->head)
		in.n = limits->head;
	f = rawhead_scan(in, &at, &line, end);
	if (!f && !*end)
		return partial(c, what, in, at);
	if (!f && resumed) {	/* the mark was in other hands: it must decide nothing */
		at = 0;
		f = rawhead_scan(in, &at, &line, end);
	}
	c->mark = 0;
	return f ? f : h1_parse(c->shared, what, (struct str){in.p, *end}, line);
}

/* Where the incoming body ends, from the head that framing.c has judged. */
static void in_begin(struct h1 *c, const struct head *h)
{
	switch (h->body) {
	case BODY_SIZED:
		c->in = IN_SIZED;
		c->in_left = h->length;
		break;
	case BODY_STREAMED:
		c->in = h->until_close ? IN_UNTIL_EOF : IN_CHUNKED;
		c->close |= h->until_close;
		c->chunked = (struct chunked){0};
		break;
	case BODY_TUNNEL:
		c->in = IN_TUNNEL;
		c->out = OUT_TUNNEL;
		c->close = true;
		break;
	default:
		c->in = IN_END;
	}
}

/* Kept out of h1_next, so that the other events need no room for what a head takes. */
static __attribute__((noinline)) enum codec_kind next_request(struct h1 *c, struct str *in, bool eof, struct codec_event *ev)
{
	struct head *h = h1_head(c->shared);
	enum codec_fault f;
	uint32_t end;

	while (c->blanks < BLANKS_MAX && in->n >= 2 && in->p[0] == '\r' && in->p[1] == '\n') {
		consume(in, 2);
		c->blanks++;
		c->mark = 0;
	}
	if (in->n == 0)
		return CODEC_MORE;
	if (in->p[0] == '\r' && in->n == 1 && c->blanks < BLANKS_MAX)
		return more(c, eof, ev);
	if (in->p[0] == '\r' || in->p[0] == '\n')
		return bad(c, ev, FAULT_SYNTAX);
	f = section(c, H1_REQUEST, *in, &end);
	if (!f && !end)
		return more(c, eof, ev);
	if (end || f) {
		c->request_method = h->method_id;
		c->request_minor = h->minor;
	}
	if (!f)
		f = framing_request(h, h1_target_room(c->shared));
	if (f)
		return bad(c, ev, f);
	consume(in, end);
	c->upgrade_asked = h->upgrade.n != 0;
	c->te_trailers = h->te_trailers;
	c->close |= h->close;
	in_begin(c, h);
	ev->head = h;
	return CODEC_HEAD;
}

static __attribute__((noinline)) enum codec_kind next_response(struct h1 *c, struct str *in, bool eof, struct codec_event *ev)
{
	struct head *h = h1_head(c->shared);
	enum codec_fault f;
	uint32_t end;

	if (in->n == 0)
		return c->interims ? more(c, eof, ev) : CODEC_MORE;
	if (c->out == OUT_HEAD)
		return bad(c, ev, FAULT_EXTRA);
	if (in->p[0] == '\r' || in->p[0] == '\n')
		return bad(c, ev, FAULT_SYNTAX);
	f = section(c, H1_RESPONSE, *in, &end);
	if (!f && !end)
		return more(c, eof, ev);
	if (!f)
		f = framing_response(h, c->request_method, c->upgrade_asked);
	if (f)
		return bad(c, ev, f);
	if (h->status < 200 && h->status != 101 && c->interims++ >= h1_limits(c->shared)->interim)
		return bad(c, ev, FAULT_INTERIM);
	consume(in, end);
	ev->head = h;
	if (h->status < 200 && h->status != 101)
		return CODEC_HEAD;
	/* An answer that did not wait for the whole request: what the origin makes of the
	 * rest cannot be known, so that nothing may follow on that connection. */
	c->close |= h->close || c->out != OUT_DONE;
	in_begin(c, h);
	return CODEC_HEAD;
}

static enum codec_kind next_sized(struct h1 *c, struct str *in, bool eof, struct codec_event *ev)
{
	if (in->n == 0)
		return more(c, eof, ev);
	ev->body = (struct str){in->p, in->n < c->in_left ? in->n : (size_t)c->in_left};
	consume(in, ev->body.n);
	c->in_left -= ev->body.n;
	if (c->in_left == 0)
		c->in = IN_END;
	return CODEC_BODY;
}

static enum codec_kind next_until_eof(struct h1 *c, struct str *in, bool eof, struct codec_event *ev)
{
	if (in->n == 0 && !eof)
		return CODEC_MORE;
	if (in->n == 0) {
		c->in = IN_DONE;
		return CODEC_END;
	}
	ev->body = *in;
	consume(in, in->n);
	return CODEC_BODY;
}

static __attribute__((noinline)) enum codec_kind next_trailers(struct h1 *c, struct str *in, bool eof, struct codec_event *ev)
{
	struct head *h = h1_head(c->shared);
	enum codec_fault f;
	uint32_t end;

	if (in->n == 0 || (in->n == 1 && in->p[0] == '\r'))
		return more(c, eof, ev);
	if (in->p[0] == '\r' && in->p[1] == '\n') {
		consume(in, 2);
		c->in = IN_DONE;
		return CODEC_END;
	}
	f = section(c, H1_TRAILERS, *in, &end);
	if (f)
		return bad(c, ev, f == FAULT_HEAD_SIZE || f == FAULT_FIELD_COUNT ? f : FAULT_TRAILER);
	if (!end)
		return more(c, eof, ev);
	consume(in, end);
	framing_trailers(h);
	if (h->n_fields == 0) {
		c->in = IN_DONE;
		return CODEC_END;
	}
	c->in = IN_END;
	ev->head = h;
	return CODEC_TRAILERS;
}

static __attribute__((noinline)) enum codec_kind next_chunked(struct h1 *c, struct str *in, bool eof, struct codec_event *ev)
{
	switch (chunked_next(&c->chunked, in, h1_limits(c->shared)->chunk_overhead, &ev->body)) {
	case CHUNKED_DATA:
		return CODEC_BODY;
	case CHUNKED_TRAILERS:
		c->in = IN_TRAILERS;
		c->mark = 0;
		return next_trailers(c, in, eof, ev);
	case CHUNKED_BAD:
		return bad(c, ev, FAULT_CHUNK);
	case CHUNKED_OVERHEAD:
		return bad(c, ev, FAULT_CHUNK_OVERHEAD);
	case CHUNKED_MORE:
		break;
	}
	return more(c, eof, ev);
}

static enum codec_kind h1_next(struct codec *codec, struct str *in, bool eof, struct codec_event *ev)
{
	struct h1 *c = (struct h1 *)codec;

	ev->stream = 0;
	switch ((enum h1_in)c->in) {
	case IN_HEAD:
		return c->role == CODEC_SERVER ? next_request(c, in, eof, ev) : next_response(c, in, eof, ev);
	case IN_SIZED:
		return next_sized(c, in, eof, ev);
	case IN_CHUNKED:
		return next_chunked(c, in, eof, ev);
	case IN_TRAILERS:
		return next_trailers(c, in, eof, ev);
	case IN_UNTIL_EOF:
	case IN_TUNNEL:
		return next_until_eof(c, in, eof, ev);
	case IN_END:
		c->in = IN_DONE;
		return CODEC_END;
	case IN_DONE:
		return c->role == CODEC_UPSTREAM && in->n ? bad(c, ev, FAULT_EXTRA) : CODEC_MORE;
	case IN_BAD:
		break;
	}
	return bad(c, ev, (enum codec_fault)c->fault);
}

static const struct codec_ops h1_ops = {h1_next, h1_put_head, h1_put_body, h1_put_end};

/* Ready for one message pair. */
void h1_init(struct h1 *c, enum codec_role role, struct h1_shared *shared)
{
	*c = (struct h1){
		.codec = {&h1_ops},
		.shared = shared,
		.role = (uint8_t)role,
		.request_minor = 1,
	};
}

/* The next head put says Connection: close. */
void h1_close_after(struct h1 *c)
{
	c->close = true;
}

/* The outgoing side, and what it told of the request, stays. */
void h1_reread(struct h1 *c)
{
	c->in = IN_HEAD;
	c->in_left = 0;
	c->chunked = (struct chunked){0};
	c->mark = 0;
	c->interims = 0;
	c->close = false;
}

/* Both directions are whole and the connection may carry another message pair. */
bool h1_reusable(const struct h1 *c)
{
	return !c->close && c->in == IN_DONE && c->out == OUT_DONE;
}

/* The incoming message has been read to its end. */
bool h1_in_done(const struct h1 *c)
{
	return c->in == IN_END || c->in == IN_DONE;
}

/* A body was put whose end is the end of the connection. */
bool h1_out_until_close(const struct h1 *c)
{
	return c->until_close;
}

/* Bytes that are known to be missing from the incoming body. */
uint64_t h1_in_missing(const struct h1 *c)
{
	switch ((enum h1_in)c->in) {
	case IN_SIZED:
		return c->in_left;
	case IN_END:
	case IN_DONE:
		return 0;
	default:
		return UINT64_MAX;
	}
}
