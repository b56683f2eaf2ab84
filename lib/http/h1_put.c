/* HTTP/1, outgoing: heads, bodies and ends to bytes.
 *
 * The other half of h1.c, on the same struct h1.  Framing is always made here: a size
 * line, a Content-Length, a Connection field is never copied from what came in.
 *
 * Invariant: what has been put so far is a prefix of exactly one message (interim heads
 * aside); a command that would break that is ERR_SYNTAX and puts nothing.  A head is
 * trusted to hold valid names and values: whoever makes one has checked them. */
#include "lib/base/num.h"
#include "lib/base/put.h"
#include "lib/http/h1_put.h"

/* Start line, framing and Connection at their longest, without the strings of the head. */
#define HEAD_FIXED 256

static bool is_line(const struct field *f)
{
	return f->line && f->value == f->name + f->name_len + 2;
}

/* Fields in order.  Those that still lie behind each other as they were read, each a
 * plain line, are copied as one run. */
static char *put_fields(char *p, const struct head *h)
{
	const struct field *f = h->field;
	unsigned left = h->n_fields;

	while (left) {
		if (is_line(f)) {
			const char *run = f->name, *stop;

			do {
				stop = f->value + f->value_len;
				f++;
				left--;
			} while (left && f->name == stop + 2 && is_line(f));
			p = put_str(p, (struct str){run, (size_t)(stop - run)});
		} else {
			p = put_str(p, field_name(f));
			p = PUT(p, ": ");
			p = put_str(p, field_value(f));
			f++;
			left--;
		}
		p = PUT(p, "\r\n");
	}
	return p;
}

/* An upper bound of what the head's own strings take. */
static size_t head_size(const struct head *h)
{
	size_t n = HEAD_FIXED + h->method.n + h->target.n + h->authority.n + h->upgrade.n + h->reason.n;
	const struct field *f = h->field;

	for (unsigned left = h->n_fields; left; left--, f++)
		n += (uint64_t)f->value_len + f->name_len;
	return n + 4 * (size_t)h->n_fields;
}

/* Content-Length or Transfer-Encoding, where the next state asks for one. */
static char *put_framing(char *p, enum h1_out state, bool length, uint64_t n)
{
	if (state == OUT_CHUNKED)
		return PUT(p, "Transfer-Encoding: chunked\r\n");
	if (!length)
		return p;
	p = PUT(p, "Content-Length: ");
	p += num_dec(p, n);
	return PUT(p, "\r\n");
}

static char *connection_make(char *p, bool close, bool keep_alive, bool te, struct str upgrade)
{
	char *start;

	p = PUT(p, "Connection: ");
	start = p;
	if (close)
		p = PUT(p, "close");
	if (keep_alive)
		p = p == start ? PUT(p, "keep-alive") : PUT(p, ", keep-alive");
	if (te)
		p = p == start ? PUT(p, "TE") : PUT(p, ", TE");
	if (upgrade.n) {
		p = p == start ? PUT(p, "Upgrade\r\nUpgrade: ") : PUT(p, ", Upgrade\r\nUpgrade: ");
		p = put_str(p, upgrade);
	}
	p = PUT(p, "\r\n");
	return te ? PUT(p, "TE: trailers\r\n") : p;
}

/* The one Connection field, and Upgrade. */
static inline char *put_connection(char *p, bool close, bool keep_alive, bool te, struct str upgrade)
{
	if (!close && !keep_alive && !te && !upgrade.n)
		return p;
	return connection_make(p, close, keep_alive, te, upgrade);
}

static enum h1_out state_of(uint8_t body)
{
	return body == BODY_SIZED ? OUT_SIZED : body == BODY_STREAMED ? OUT_CHUNKED : OUT_SWALLOWED;
}

static void request_begin(struct h1 *c, const struct head *h, struct str upgrade)
{
	c->out = (uint8_t)state_of(h->body);
	c->out_left = h->body == BODY_SIZED ? h->length : 0;
	c->request_method = h->method_id;
	c->upgrade_asked = upgrade.n != 0;
}

static char *put_request(struct h1 *c, char *p, const struct head *h)
{
	enum h1_out state = state_of(h->body);
	struct str upgrade = state == OUT_SWALLOWED ? h->upgrade : STR("");

	p = put_str(p, h->method);
	p = PUT(p, " ");
	p = put_str(p, h->target);
	p = PUT(p, " HTTP/1.1\r\nHost: ");
	p = put_str(p, h->authority);
	p = PUT(p, "\r\n");
	p = put_fields(p, h);
	p = put_connection(p, c->close, false, h->te_trailers, upgrade);
	p = put_framing(p, state, state == OUT_SIZED || (h->has_length && h->length == 0),
		state == OUT_SIZED ? h->length : 0);
	request_begin(c, h, upgrade);
	return PUT(p, "\r\n");
}

static char *put_status(char *p, const struct head *h)
{
	struct str reason = h->reason.n ? h->reason : status_reason(h->status);

	p = PUT(p, "HTTP/1.1 ");
	*p++ = (char)('0' + h->status / 100);
	*p++ = (char)('0' + h->status / 10 % 10);
	*p++ = (char)('0' + h->status % 10);
	*p++ = ' ';
	p = put_str(p, reason);
	return PUT(p, "\r\n");
}

/* 1xx: no framing, nothing of the connection; 101 ends HTTP on it. */
static char *put_interim(struct h1 *c, char *p, const struct head *h)
{
	p = put_status(p, h);
	p = put_fields(p, h);
	if (h->status == 101) {
		p = put_connection(p, false, false, false, h->upgrade);
		c->in = IN_TUNNEL;
		c->out = OUT_TUNNEL;
		c->close = true;
	}
	return PUT(p, "\r\n");
}

static char *put_answer(struct h1 *c, char *p, const struct head *h)
{
	bool no_body = c->request_method == METHOD_HEAD || h->status == 204 || h->status == 304;
	enum h1_out state = state_of(h->body);
	bool length = state == OUT_SIZED;

	c->out_left = state == OUT_SIZED ? h->length : 0;
	if (no_body) {
		length = h->status != 204 && (length || h->has_length);
		if (state == OUT_CHUNKED)
			c->out_left = UINT64_MAX;
		state = OUT_SWALLOWED;
	} else if (state == OUT_SWALLOWED) {
		length = true;
	} else if (state == OUT_CHUNKED && c->request_minor == 0) {
		state = OUT_RAW;
		c->close = c->until_close = true;
	}
	p = put_status(p, h);
	p = put_fields(p, h);
	p = put_connection(p, c->close, !c->close && c->request_minor == 0, false, STR(""));
	p = put_framing(p, state, length, no_body || state == OUT_SIZED ? h->length : 0);
	c->out = (uint8_t)state;
	return PUT(p, "\r\n");
}

/* Is this the head that may be put now? */
static bool head_fits(const struct h1 *c, const struct head *h)
{
	if (c->out != OUT_HEAD)
		return false;
	if (c->role == CODEC_UPSTREAM)
		return h->status == 0 && h->method.n && h->target.n && h->body != BODY_TUNNEL;
	if (h->status < 100 || h->status > 599)
		return false;
	if (h->status != 101)
		return h->body != BODY_TUNNEL;
	return c->upgrade_asked && h->upgrade.n && (c->in == IN_END || c->in == IN_DONE);
}

/* Puts a head as one piece.  ERR_LIMIT: it does not fit into the scratch area. */
enum err h1_put_head(struct codec *codec, uint32_t stream, const struct head *h, struct vec *out)
{
	struct h1 *c = (struct h1 *)codec;
	char *start = out->next, *p;

	(void)stream;
	if (!head_fits(c, h))
		return ERR_SYNTAX;
	if (h->status && h->status < 200 && c->request_minor == 0)
		return OK;
	if (head_size(h) > (size_t)(out->end - start) || vec_room(out) == 0)
		return ERR_LIMIT;
	if (c->role == CODEC_UPSTREAM)
		p = put_request(c, start, h);
	else if (h->status < 200)
		p = put_interim(c, start, h);
	else
		p = put_answer(c, start, h);
	return vec_commit(out, p);
}

/* size CRLF piece CRLF: at most three pieces of the vec, and often two. */
static enum err put_chunk(struct str piece, struct vec *out)
{
	static const char hex[] = "0123456789abcdef";
	char line[18];
	unsigned i = sizeof(line);
	enum err e;

	if (vec_room(out) < 3 || out->end - out->next < (ptrdiff_t)sizeof(line) + 2)
		return ERR_LIMIT;
	line[--i] = '\n';
	line[--i] = '\r';
	for (uint64_t n = piece.n; n; n >>= 4)
		line[--i] = hex[n & 15];
	e = vec_copy(out, (struct str){line + i, sizeof(line) - i});
	if (!e)
		e = vec_borrow(out, piece);
	return e ? e : vec_copy(out, STR("\r\n"));
}

/* Puts a body piece, borrowed. */
enum err h1_put_body(struct codec *codec, uint32_t stream, struct str piece, struct vec *out)
{
	struct h1 *c = (struct h1 *)codec;
	enum err e = OK;

	(void)stream;
	if (piece.n == 0)
		return c->out == OUT_HEAD || c->out == OUT_DONE ? ERR_SYNTAX : OK;
	switch ((enum h1_out)c->out) {
	case OUT_CHUNKED:
		return put_chunk(piece, out);
	case OUT_RAW:
	case OUT_TUNNEL:
		return vec_borrow(out, piece);
	case OUT_SIZED:
	case OUT_SWALLOWED:
		if (piece.n > c->out_left)
			return ERR_SYNTAX;
		if (c->out == OUT_SIZED)
			e = vec_borrow(out, piece);
		if (!e && c->out_left != UINT64_MAX)
			c->out_left -= piece.n;
		return e;
	default:
		return ERR_SYNTAX;
	}
}

static size_t trailers_size(const struct head *trailers)
{
	return trailers ? head_size(trailers) : HEAD_FIXED;
}

static enum err put_last_chunk(const struct h1 *c, const struct head *trailers, struct vec *out)
{
	char *p = out->next;

	if (c->role == CODEC_UPSTREAM || !c->te_trailers)
		trailers = NULL;
	if (trailers_size(trailers) > (size_t)(out->end - p) || vec_room(out) == 0)
		return ERR_LIMIT;
	p = PUT(p, "0\r\n");
	if (trailers)
		p = put_fields(p, trailers);
	p = PUT(p, "\r\n");
	return vec_commit(out, p);
}

/* Ends the message, with trailers where the client takes them. */
enum err h1_put_end(struct codec *codec, uint32_t stream, const struct head *trailers, struct vec *out)
{
	struct h1 *c = (struct h1 *)codec;
	enum err e = OK;

	(void)stream;
	if (c->out == OUT_HEAD || c->out == OUT_DONE || (c->out == OUT_SIZED && c->out_left))
		return ERR_SYNTAX;
	if (c->out == OUT_CHUNKED)
		e = put_last_chunk(c, trailers, out);
	if (!e)
		c->out = OUT_DONE;
	return e;
}
