/* Reads the field lines of a head with llhttp: the only file that knows it.
 *
 * Called by h1.c, for a whole head or to find out early that one cannot become whole.
 * Owns what the codecs of a worker share: a head, its field array, a parser made
 * ready.  Nothing lives from one call to the next but the head that was read.
 *
 * Each call copies a prepared llhttp state, runs it over the bytes once, and stops
 * where the fields end, so that no body, upgrade or keep-alive rule of llhttp is ever
 * in force.  The prepared state has read a plain request line: start lines are read in
 * rawhead.c, so that all versions of llhttp agree on them, and a method or status that
 * is new to llhttp passes. */
#include <llhttp.h>
#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/http/h1_parse.h"
#include "lib/http/rawhead.h"

#ifdef THIMBLE_LLHTTP_SSE42
/* llhttp_execute, compiled for SSE4.2 (cmake/llhttp.cmake). */
llhttp_errno_t llhttp_execute_sse42(llhttp_t *p, const char *data, size_t n);
#endif

/* Bytes of a head that is long: shorter ones have few names or values of 16 bytes, and
 * the plain copy is the faster one for them. */
#define WIDE_MIN 256

/* Fields that head_add may add behind those that were read. */
#define FIELDS_SPARE 64

struct h1_shared {
	const struct codec_limits *limits;	/* borrowed */
	struct field *field;		/* owned: limits->fields + FIELDS_SPARE */
	char *target_room;		/* owned: limits->target + 1 bytes */
	struct field *last;		/* the field that is being read, NULL before the first */
	enum codec_fault fault;		/* why a callback stopped the parser */
	struct head head;
	bool wide;			/* long heads are for llhttp_execute_sse42 */
	llhttp_t ready;			/* has read a start line */
	llhttp_t parser;		/* becomes a copy of it for each use */
};

static int stop(struct h1_shared *s, enum codec_fault f)
{
	s->fault = f;
	return -1;
}

/* llhttp hands up a run in one piece or in several that follow each other. */
static int on_name(llhttp_t *p, const char *at, size_t n)
{
	struct h1_shared *s = p->data;
	struct field *f = s->last;

	if (f && f->name + f->name_len == at) {
		if (n > (size_t)(UINT16_MAX - f->name_len))
			return stop(s, FAULT_HEAD_SIZE);
		f->name_len = (uint16_t)(f->name_len + n);
		return 0;
	}
	if (s->head.n_fields == s->limits->fields)
		return stop(s, FAULT_FIELD_COUNT);
	if (n > UINT16_MAX)
		return stop(s, FAULT_HEAD_SIZE);
	f = s->last = &s->field[s->head.n_fields++];
	*f = (struct field){.name = at, .name_len = (uint16_t)n};
	return 0;
}

static int on_value(llhttp_t *p, const char *at, size_t n)
{
	struct h1_shared *s = p->data;
	struct field *f = s->last;

	if (!f->value)
		f->value = at;
	else if (f->value + f->value_len != at)
		return stop(s, FAULT_FOLD);
	f->value_len += (uint32_t)n;
	return 0;
}

/* 2: no body, and llhttp_execute returns here. */
static int on_fields_end(llhttp_t *p)
{
	(void)p;
	return 2;
}

static const llhttp_settings_t settings = {
	.on_header_field = on_name,
	.on_header_value = on_value,
	.on_headers_complete = on_fields_end,
};

/* NULL: no memory. */
struct h1_shared *h1_shared_new(const struct codec_limits *limits)
{
	static const struct str start = {"GET / HTTP/1.1\r\n", 16};
	struct h1_shared *s = mem_zalloc(sizeof(*s));

	if (!s)
		return NULL;
	s->limits = limits;
	s->head.max_fields = (uint16_t)(limits->fields > UINT16_MAX - FIELDS_SPARE ?
		UINT16_MAX : limits->fields + FIELDS_SPARE);
	s->field = mem_alloc(s->head.max_fields * sizeof(*s->field));
	s->target_room = mem_alloc((size_t)limits->target + 1);
	if (!s->field || !s->target_room) {
		h1_shared_free(s);
		return NULL;
	}
	llhttp_init(&s->ready, HTTP_REQUEST, &settings);
	s->ready.data = s;
	CHECK(llhttp_execute(&s->ready, start.p, start.n) == HPE_OK);
#ifdef THIMBLE_LLHTTP_SSE42
	s->wide = __builtin_cpu_supports("sse4.2");
#endif
	return s;
}

/* For tests: as on a processor that has nothing of its own. */
bool h1_shared_plain(struct h1_shared *s)
{
	bool wide = s->wide;

	s->wide = false;
	return wide;
}

/* Accepts NULL. */
void h1_shared_free(struct h1_shared *s)
{
	if (!s)
		return;
	mem_free(s->field);
	mem_free(s->target_room);
	mem_free(s);
}

const struct codec_limits *h1_limits(const struct h1_shared *s)
{
	return s->limits;
}

struct head *h1_head(struct h1_shared *s)
{
	return &s->head;
}

char *h1_target_room(struct h1_shared *s)
{
	return s->target_room;
}

static bool was_read(const struct h1_shared *s, enum field_id id)
{
	for (unsigned i = 0; i < s->head.n_fields; i++)
		if (field_id_of(field_name(&s->field[i])) == id)
			return true;
	return false;
}

/* The versions of llhttp find different words for two lengths. */
static enum codec_fault fault_of(const struct h1_shared *s, llhttp_errno_t e)
{
	switch (e) {
	case HPE_USER:
		return s->fault ? s->fault : FAULT_SYNTAX;
	case HPE_INVALID_CONTENT_LENGTH:
	case HPE_UNEXPECTED_CONTENT_LENGTH:
	case HPE_INVALID_TRANSFER_ENCODING:
		if (was_read(s, FIELD_TRANSFER_ENCODING))
			return was_read(s, FIELD_CONTENT_LENGTH) ? FAULT_BOTH_LENGTHS : FAULT_TRANSFER_CODING;
		return FAULT_LENGTH;
	default:
		return FAULT_SYNTAX;
	}
}

static inline bool is_space(char c)
{
	return c <= ' ' && (c == ' ' || c == '\t');
}

/* What llhttp leaves to be done for a field line, and what its versions differ in. */
static enum codec_fault fields_finish(struct head *h)
{
	struct field *end = h->field + h->n_fields;

	for (struct field *f = h->field; f < end; f++) {
		const char *colon = f->name + f->name_len, *stop;

		if (f->name_len == 0 || *colon != ':')
			return FAULT_SYNTAX;
		if (!f->value)
			f->value = colon + 1;
		stop = f->value + f->value_len;
		while (stop > f->value && is_space(stop[-1]))
			stop--;
		f->value_len = (uint32_t)(stop - f->value);
		f->line = f->value == colon + 2 && colon[1] == ' ' && *stop == '\r';
	}
	return FAULT_NONE;
}

/* Reads field lines into the shared head. */
static llhttp_errno_t fields_read(struct h1_shared *s, const char *p, size_t n)
{
	s->parser = s->ready;
#ifdef THIMBLE_LLHTTP_SSE42
	if (n >= WIDE_MIN && s->wide)
		return llhttp_execute_sse42(&s->parser, p, n);
#endif
	return llhttp_execute(&s->parser, p, n);
}

static void head_reset(struct h1_shared *s)
{
	struct head *h = &s->head;

	h->method = h->target = h->path = h->authority = h->upgrade = h->reason = STR("");
	h->field = s->field;
	h->n_fields = 0;
	h->status = 0;
	h->method_id = METHOD_OTHER;
	h->minor = 1;
	s->last = NULL;
	s->fault = FAULT_NONE;
}

static enum codec_fault start_line(struct h1_shared *s, enum h1_section what, struct str line, bool whole)
{
	if (what == H1_RESPONSE)
		return rawhead_status_line(line, whole, &s->head);
	return rawhead_request_line(line, whole, s->limits->target, &s->head);
}

/* A whole section; see the promise in the header. */
enum codec_fault h1_parse(struct h1_shared *s, enum h1_section what, struct str bytes, uint32_t line)
{
	size_t skip = 0;

	head_reset(s);
	if (what != H1_TRAILERS) {
		enum codec_fault f = start_line(s, what, (struct str){bytes.p, line}, true);

		if (f)
			return f;
		skip = line + 2;
	}
	llhttp_errno_t e = fields_read(s, bytes.p + skip, bytes.n - skip);
	if (e != HPE_PAUSED_UPGRADE)
		return fault_of(s, e);
	if (llhttp_get_error_pos(&s->parser) != bytes.p + bytes.n)
		return FAULT_SYNTAX;
	return fields_finish(&s->head);
}

/* The beginning of a section; see the promise in the header. */
enum codec_fault h1_parse_partial(struct h1_shared *s, enum h1_section what, struct str bytes)
{
	const char *cr = memchr(bytes.p, '\r', bytes.n);
	struct str line = {bytes.p, cr ? (size_t)(cr - bytes.p) : bytes.n};
	size_t skip = 0;

	head_reset(s);
	if (what != H1_TRAILERS) {
		enum codec_fault f = start_line(s, what, line, cr != NULL);

		if (f)
			return f;
		skip = bytes.n - line.n > 2 ? line.n + 2 : bytes.n;
	}
	llhttp_errno_t e = fields_read(s, bytes.p + skip, bytes.n - skip);
	return e == HPE_OK ? FAULT_NONE : fault_of(s, e);
}
