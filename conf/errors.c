/*
 * errors: what is wrong with a file, all of it, each with its place.
 *
 * Purpose   a person repairs a file in one go; so every error is kept (up to
 *           CONF_ERRORS_MAX), sorted by place, and shown with its line.
 * Owns      the texts, in the arena of the struct conf_errors.
 * Called by every file of this room; printed by whoever loads a file.
 * Never     keeps a pointer into the file's text; prints a byte of it that a
 *           terminal would obey.
 * Invariant every text in it is one printable line.
 */
#include "conf/errors.h"

#include <stdarg.h>

#define SOURCE_WIDTH 100	/* columns of a quoted line */
#define SOURCE_BEFORE 60	/* of these, at most before the caret */

void conf_errors_init(struct conf_errors *e)
{
	memset(e, 0, sizeof *e);
	arena_init(&e->arena, NULL, 0, NULL);
	e->file = "";
}

void conf_errors_fini(struct conf_errors *e)
{
	arena_fini(&e->arena);
	memset(e, 0, sizeof *e);
	e->file = "";
}

static struct str errors_dup(struct conf_errors *e, struct str s)
{
	char *p = arena_alloc(&e->arena, s.n + 1);

	if (!p) {
		e->no_memory = true;
		return STR("");
	}
	if (s.n)
		memcpy(p, s.p, s.n);
	p[s.n] = '\0';
	return (struct str){p, s.n};
}

void conf_errors_begin(struct conf_errors *e, const char *file)
{
	e->file = errors_dup(e, str_of(file)).p;
}

/* Bytes of the character at `s`, 1 for what is not UTF-8; *plain: print it as it is. */
static size_t char_size(struct str s, bool *plain)
{
	unsigned char c = (unsigned char)s.p[0];
	size_t n = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;

	*plain = c >= 0x20 && c < 0x7f;
	if (c < 0xc2 || c > 0xf4 || s.n < n)
		return 1;
	for (size_t i = 1; i < n; i++)
		if (((unsigned char)s.p[i] & 0xc0) != 0x80)
			return 1;
	/* C2 80 to C2 9F are control characters too. */
	*plain = c != 0xc2 || (unsigned char)s.p[1] >= 0xa0;
	return n;
}

/* Appends the character at the front of `s` to out[*n], printable, and takes it off. */
static void char_print(struct str *s, char *out, size_t *n)
{
	bool plain;
	size_t size = char_size(*s, &plain);

	if (plain) {
		memcpy(out + *n, s->p, size);
		*n += size;
	} else {
		out[(*n)++] = s->p[0] == '\t' ? ' ' : '?';
	}
	s->p += size;
	s->n -= size;
}

void conf_errors_add(struct conf_errors *e, struct conf_pos pos, const char *fmt, ...)
{
	struct conf_error *item;
	char text[600], shown[sizeof text];
	size_t n = 0;
	struct str left;
	va_list ap;

	if (e->count == CONF_ERRORS_MAX) {
		e->more++;
		return;
	}
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	item = &e->items[e->count++];
	*item = (struct conf_error){.pos = pos, .source = STR("")};
	for (left = str_of(text); left.n;)
		char_print(&left, shown, &n);
	item->text = errors_dup(e, (struct str){shown, n});
}

size_t conf_break_size(struct str s)
{
	if (str_starts(s, STR("\r\n")))
		return 2;
	if (s.n && (s.p[0] == '\n' || s.p[0] == '\r'))
		return 1;
	if (str_starts(s, STR("\xc2\x85")))
		return 2;
	if (str_starts(s, STR("\xe2\x80\xa8")) || str_starts(s, STR("\xe2\x80\xa9")))
		return 3;
	return 0;
}

static bool pos_before(struct conf_pos a, struct conf_pos b)
{
	return a.line != b.line ? a.line < b.line : a.column < b.column;
}

/* Insertion: few items, nearly sorted, and equal places keep their order. */
static void errors_sort(struct conf_errors *e)
{
	for (size_t i = 1; i < e->count; i++) {
		struct conf_error item = e->items[i];
		size_t at = i;

		for (; at && pos_before(item.pos, e->items[at - 1].pos); at--)
			e->items[at] = e->items[at - 1];
		e->items[at] = item;
	}
}

/* The part of `line` around the item's column, printable. */
static void error_quote(struct conf_errors *e, struct conf_error *item, struct str line)
{
	uint32_t column = item->pos.column ? item->pos.column - 1 : 0;
	uint32_t first = column > SOURCE_BEFORE ? column - SOURCE_BEFORE : 0;
	char out[SOURCE_WIDTH * 4];
	size_t n = 0;

	for (uint32_t at = 0; line.n && at < first + SOURCE_WIDTH; at++) {
		if (at <= first)
			n = 0;	/* what is further left is not shown */
		char_print(&line, out, &n);
	}
	item->source = errors_dup(e, (struct str){out, n});
	item->caret = column - first;
}

static size_t line_size(struct str text)
{
	size_t n = 0;

	while (n < text.n && !conf_break_size((struct str){text.p + n, text.n - n}))
		n++;
	return n;
}

void conf_errors_finish(struct conf_errors *e, struct str text)
{
	uint32_t line = 1;
	size_t i = 0;

	errors_sort(e);
	while (i < e->count && !e->items[i].pos.line)
		i++;
	while (i < e->count) {
		size_t n = line_size(text);

		for (; i < e->count && e->items[i].pos.line == line; i++)
			error_quote(e, &e->items[i], (struct str){text.p, n});
		if (n == text.n)
			return;
		n += conf_break_size((struct str){text.p + n, text.n - n});
		text.p += n;
		text.n -= n;
		line++;
	}
}

void conf_errors_print(const struct conf_errors *e, FILE *to)
{
	for (size_t i = 0; i < e->count; i++) {
		const struct conf_error *item = &e->items[i];

		if (item->pos.line)
			fprintf(to, "%s:%u:%u: %s\n", e->file, item->pos.line, item->pos.column, item->text.p);
		else
			fprintf(to, "%s: %s\n", e->file, item->text.p);
		if (item->source.n)
			fprintf(to, "    %s\n    %*s^\n", item->source.p, (int)item->caret, "");
	}
	if (e->more)
		fprintf(to, "%s: and %zu more\n", e->file, e->more);
	if (e->no_memory)
		fprintf(to, "%s: out of memory\n", e->file);
}
