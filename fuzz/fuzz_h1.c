/* The HTTP/1 codec, both roles, with bytes that nobody chose.
 *
 * The first two bytes choose the role, the request that an answer belongs to and how
 * the input is split.  Of the rest three things are checked: it gives the same events
 * whole and split; what the other codec puts for those events is read back as the
 * same message; and that message is the only one in the bytes put. */
#include <stdlib.h>
#include "lib/base/check.h"
#include "lib/http/h1.h"
#include "lib/http/h1_put.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct codec_limits limits = {.head = 4096, .target = 512, .fields = 24, .interim = 4, .chunk_overhead = 256};
static const struct codec_limits wide = {.head = 65536, .target = 1024, .fields = 64, .interim = 4, .chunk_overhead = 256};
static struct h1_shared *shared, *shared_wide;
static char scratch[VEC_SCRATCH];

/* A message as bytes that can be compared. */
struct log {
	char *p;
	size_t n, cap;
	size_t body;	/* bytes of the body piece at the end, 0 when the last thing is none */
	bool bad, end, tunnel;
};

static void log_add(struct log *l, const void *p, size_t n)
{
	if (l->n + n > l->cap) {
		l->cap = (l->n + n) * 2;
		l->p = realloc(l->p, l->cap);
		CHECK(l->p);
	}
	if (n)
		memcpy(l->p + l->n, p, n);
	l->n += n;
}

static void log_str(struct log *l, struct str s)
{
	log_add(l, &s.n, sizeof(s.n));
	log_add(l, s.p, s.n);
}

static void log_fields(struct log *l, const struct head *h)
{
	for (unsigned i = 0; i < h->n_fields; i++) {
		log_str(l, field_name(&h->field[i]));
		log_str(l, field_value(&h->field[i]));
	}
}

/* What must arrive at the other side; `method`: of the request. */
static void log_head(struct log *l, const struct head *h, uint8_t method)
{
	bool no_body = h->status && (method == METHOD_HEAD || h->status < 200 || h->status == 204 || h->status == 304);
	/* An answer without a body and without a length gets a length of 0. */
	bool length = h->has_length || (h->status && h->body == BODY_NONE && !no_body);

	log_add(l, "H", 1);
	log_str(l, h->method);
	log_str(l, h->target);
	log_str(l, h->path);
	log_str(l, h->authority);
	log_str(l, h->upgrade);
	log_str(l, h->status && h->reason.n == 0 ? status_reason(h->status) : h->reason);
	log_add(l, &h->status, sizeof(h->status));
	log_add(l, &h->body, sizeof(h->body));
	log_add(l, &length, sizeof(length));
	log_add(l, &h->length, length ? sizeof(h->length) : 0);
	log_add(l, &h->expect_continue, sizeof(bool));
	log_add(l, &h->te_trailers, sizeof(bool));
	log_fields(l, h);
	l->tunnel = h->body == BODY_TUNNEL;
}

static void log_body(struct log *l, struct str piece)
{
	if (l->body == 0)
		log_add(l, "B", 1);
	log_add(l, piece.p, piece.n);
	l->body += piece.n;
}

static bool log_same(const struct log *a, const struct log *b)
{
	return a->n == b->n && a->bad == b->bad && a->end == b->end && (a->n == 0 || memcmp(a->p, b->p, a->n) == 0);
}

/* What is put goes into a log too: as bytes. */
struct sink {
	struct h1 codec;
	struct log bytes;
	bool on, skip_trailers;
};

static void sink_take(struct sink *s, enum err e, struct vec *v)
{
	CHECK(e == OK);
	for (unsigned i = 0; i < v->n; i++)
		log_add(&s->bytes, v->iov[i].iov_base, v->iov[i].iov_len);
	vec_reset(v);
}

/* One event, told to the log and put to the sink. */
static void event_take(struct log *l, enum codec_kind kind, const struct codec_event *ev, struct sink *s, uint8_t method)
{
	struct vec v = {.scratch = scratch, .end = scratch + sizeof(scratch)};

	vec_reset(&v);
	if (kind != CODEC_BODY && kind != CODEC_MORE)
		l->body = 0;
	switch (kind) {
	case CODEC_HEAD:
		log_head(l, ev->head, method);
		if (s && ev->head->status == 0 && ev->head->authority.n == 0)
			s->on = false;	/* HTTP/1.0 without Host: its owner must name an authority first */
		if (s && s->on)
			sink_take(s, codec_put_head(&s->codec.codec, 0, ev->head, &v), &v);
		break;
	case CODEC_BODY:
		CHECK(ev->body.n);
		log_body(l, ev->body);
		if (s && s->on)
			sink_take(s, codec_put_body(&s->codec.codec, 0, ev->body, &v), &v);
		break;
	case CODEC_TRAILERS:
		CHECK(ev->head->n_fields);
		if (s && s->skip_trailers)
			break;
		log_add(l, "T", 1);
		log_fields(l, ev->head);
		if (s && s->on)
			sink_take(s, codec_put_end(&s->codec.codec, 0, ev->head, &v), &v);
		break;
	case CODEC_END:
		log_add(l, "E", 1);
		CHECK(!l->end);
		l->end = true;
		if (s && s->on && s->codec.out != OUT_DONE)
			sink_take(s, codec_put_end(&s->codec.codec, 0, NULL, &v), &v);
		break;
	case CODEC_BAD:
		CHECK(ev->fault > FAULT_NONE && ev->fault < FAULT_N && codec_fault_text(ev->fault).n);
		l->bad = true;
		break;
	case CODEC_MORE:
		break;
	}
}

static uint32_t next_random(uint32_t *x)
{
	*x = *x * 1664525 + 1013904223;
	return *x >> 8;
}

/* Reads until the message ends, in random parts unless seed is 0.  Bytes that are left. */
static size_t read_all(struct h1 *c, struct str in, uint32_t seed, struct log *l, struct sink *s)
{
	size_t from = 0, to = seed ? 0 : in.n;
	uint8_t method = c->request_method;

	for (;;) {
		/* a block of its own: a read behind the part is seen */
		char *part = malloc(to - from ? to - from : 1);
		CHECK(part);
		memcpy(part, in.p + from, to - from);
		struct str left = {part, to - from};
		enum codec_kind kind;
		struct codec_event ev;

		do {
			size_t before = left.n;

			kind = codec_next(&c->codec, &left, to == in.n, &ev);
			CHECK(left.n <= before && left.p == part + (to - from) - left.n);
			event_take(l, kind, &ev, s, method);
		} while (kind != CODEC_MORE && kind != CODEC_BAD && kind != CODEC_END);
		from = to - left.n;
		free(part);
		if (kind != CODEC_MORE || to == in.n)
			return in.n - from;
		if (c->role == CODEC_SERVER && l->n == 0 && (seed & 1)) {	/* given up while incomplete */
			uint32_t mark = c->mark;
			uint8_t blanks = c->blanks;

			h1_init(c, CODEC_SERVER, c->shared);
			c->mark = mark;
			c->blanks = blanks;
		}
		size_t step = 1 + next_random(&seed) % (next_random(&seed) % 4 ? 4 : 200);
		to += in.n - to < step ? in.n - to : step;
	}
}

static const char *const asked[] = {
	"GET /x HTTP/1.1\r\nHost: a\r\nTE: trailers\r\n\r\n",
	"HEAD /x HTTP/1.1\r\nHost: a\r\nTE: trailers\r\n\r\n",
	"GET /x HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nTE: trailers\r\n\r\n",
	"GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTE: trailers\r\n\r\n",
};

/* A pair of codecs through which one of the requests above has gone. */
static void ask(struct h1 *client, struct h1 *origin, const char *request, struct h1_shared *sh)
{
	struct str in = str_of(request);
	struct vec v = {.scratch = scratch, .end = scratch + sizeof(scratch)};
	struct codec_event ev;

	vec_reset(&v);
	h1_init(client, CODEC_SERVER, sh);
	h1_init(origin, CODEC_UPSTREAM, sh);
	CHECK(codec_next(&client->codec, &in, false, &ev) == CODEC_HEAD);
	CHECK(codec_put_head(&origin->codec, 0, ev.head, &v) == OK);
	CHECK(codec_next(&client->codec, &in, false, &ev) == CODEC_END);
	CHECK(codec_put_end(&origin->codec, 0, NULL, &v) == OK);
}

static void codec_ready(struct h1 *c, uint8_t choice, struct h1_shared *sh)
{
	struct h1 other;

	if (choice & 1)
		ask(&other, c, asked[choice >> 1 & 3], sh);
	else
		h1_init(c, CODEC_SERVER, sh);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct log whole = {0}, split = {0}, back = {0};
	struct sink sink = {.on = true};
	struct h1 c, other;

	if (!shared) {
		shared = h1_shared_new(&limits);
		shared_wide = h1_shared_new(&wide);
		CHECK(shared && shared_wide);
	}
	if (size < 2)
		return 0;
	struct str in = {(const char *)data + 2, size - 2};

	codec_ready(&c, data[0], shared);
	if (data[0] & 1)
		ask(&sink.codec, &other, asked[data[0] >> 1 & 3], shared_wide);
	else
		h1_init(&sink.codec, CODEC_UPSTREAM, shared_wide);
	sink.skip_trailers = c.role == CODEC_SERVER;	/* those of requests are not put */
	size_t rest = read_all(&c, in, 0, &whole, &sink);

	codec_ready(&c, data[0], shared);
	struct sink quiet = {.skip_trailers = sink.skip_trailers};
	size_t rest_split = read_all(&c, in, data[1] | 0x100u, &split, &quiet);
	CHECK(log_same(&whole, &split));
	CHECK(whole.bad || rest_split <= rest);

	if (sink.on && whole.end) {
		codec_ready(&c, data[0], shared_wide);
		rest = read_all(&c, (struct str){sink.bytes.p, sink.bytes.n}, 0, &back, NULL);
		CHECK(rest == 0 && log_same(&whole, &back));
	}
	free(whole.p);
	free(split.p);
	free(back.p);
	free(sink.bytes.p);
	return 0;
}
