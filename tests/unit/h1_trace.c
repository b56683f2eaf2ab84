/* Messages as text, for tables of expectations. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "lib/base/check.h"
#include "tests/unit/h1_trace.h"

void trace_add(struct trace *t, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	int n = vsnprintf(t->text + t->n, sizeof(t->text) - t->n, format, ap);
	va_end(ap);
	CHECK(n >= 0);
	t->n += (size_t)n;
	if (t->n >= sizeof(t->text))
		t->n = sizeof(t->text) - 1;
}

#define ARG(s) (int)(s).n, (s).p

void trace_head(struct trace *t, const struct head *h)
{
	static const char *const body[] = {"none", "sized", "streamed", "tunnel"};

	if (h->status)
		trace_add(t, "%u %.*s %s", h->status, ARG(h->reason), body[h->body]);
	else
		trace_add(t, "%.*s %.*s %.*s %s", ARG(h->method), ARG(h->target), ARG(h->authority), body[h->body]);
	if (h->has_length)
		trace_add(t, "=%llu", (unsigned long long)h->length);
	if (h->minor == 0)
		trace_add(t, " 1.0");
	if (h->close)
		trace_add(t, " close");
	if (h->until_close)
		trace_add(t, " eof");
	if (h->expect_continue)
		trace_add(t, " expect");
	if (h->te_trailers)
		trace_add(t, " trailers");
	if (h->upgrade.n)
		trace_add(t, " upgrade=%.*s", ARG(h->upgrade));
	for (unsigned i = 0; i < h->n_fields; i++)
		trace_add(t, " | %.*s: %.*s", ARG(field_name(&h->field[i])), ARG(field_value(&h->field[i])));
}

const char *fault_name(enum codec_fault f)
{
	static const char *const names[FAULT_N] = {
		"NONE", "SYNTAX", "VERSION", "HEAD_SIZE", "FIELD_COUNT", "TARGET_SIZE", "HOST", "TARGET", "LENGTH",
		"TRANSFER_CODING", "CODING_UNKNOWN", "BOTH_LENGTHS", "FOLD", "CHUNK", "CHUNK_OVERHEAD", "TRAILER",
		"CONNECT", "CONNECTION", "STATUS", "SWITCH", "INTERIM", "EXTRA", "CUT",
	};

	return names[f];
}

/* One event; false when nothing more comes out of this input. */
static bool step_once(struct trace *t, struct h1 *c, struct str *in, bool eof, bool *in_body)
{
	struct codec_event ev = {0};
	enum codec_kind kind = codec_next(&c->codec, in, eof, &ev);

	if (*in_body && kind != CODEC_BODY && kind != CODEC_MORE) {
		trace_add(t, "\n");
		*in_body = false;
	}
	switch (kind) {
	case CODEC_MORE:
		return false;
	case CODEC_HEAD:
		trace_add(t, "HEAD ");
		trace_head(t, ev.head);
		trace_add(t, "\n");
		return true;
	case CODEC_BODY:
		CHECK(ev.body.n);
		trace_add(t, "%s%.*s", *in_body ? "" : "BODY ", ARG(ev.body));
		*in_body = true;
		return true;
	case CODEC_TRAILERS:
		trace_add(t, "TRAILERS");
		for (unsigned i = 0; i < ev.head->n_fields; i++)
			trace_add(t, " | %.*s: %.*s", ARG(field_name(&ev.head->field[i])), ARG(field_value(&ev.head->field[i])));
		trace_add(t, "\n");
		return true;
	case CODEC_END:
		trace_add(t, "END\n");
		return true;
	case CODEC_BAD:
		trace_add(t, "BAD %s\n", fault_name(ev.fault));
		return false;
	}
	return false;
}

/* What is left is passed again at an address of its own, so that a read behind it is seen. */
void trace_feed(struct trace *t, struct h1 *c, struct str in, size_t step, bool eof, bool forget)
{
	bool in_body = false, stop = false;
	size_t from = 0, to = 0;

	while (!stop) {
		bool last = to == in.n;

		if (!last)
			to += in.n - to < step ? in.n - to : step;
		else if (!eof)
			break;
		char *copy = malloc(to - from + 1);
		CHECK(copy);
		memcpy(copy, in.p + from, to - from);
		char *exact = to - from ? realloc(copy, to - from) : copy;
		struct str part = {exact, to - from};
		size_t before = t->n;
		while (step_once(t, c, &part, last, &in_body))
			;
		bool bad = t->n > before && strstr(t->text + before, "BAD ") != NULL;
		from = to - part.n;
		free(exact);
		if (forget && !bad && t->n == 0) {
			struct h1 fresh;

			h1_init(&fresh, (enum codec_role)c->role, c->shared);
			fresh.mark = c->mark;
			fresh.blanks = c->blanks;
			if (c->role == CODEC_SERVER)
				*c = fresh;
		}
		stop = bad || (last && eof);
	}
	if (in_body)
		trace_add(t, "...\n");
}
