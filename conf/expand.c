/*
 * expand: the environment inside values.
 *
 * Purpose   ${NAME}, ${NAME:-default} and $$ in a scalar, after YAML has been
 *           parsed: what a variable holds is a value and never structure.  A $ that no
 *           name follows is one.
 * Owns      nothing; results are in the arena of the caller.
 * Called by tree.c for every scalar that is a value.
 * Never     expands twice, looks inside keys, or calls getenv by itself.
 * Invariant variables add at most EXPAND_MAX bytes to one file.
 */
#include "conf/expand.h"

#include "conf/errors.h"
#include "lib/base/check.h"

#define EXPAND_MAX (16u << 20)

static bool name_char(char c, bool first)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' || (!first && c >= '0' && c <= '9');
}

static struct conf_pos pos_at(struct str raw, size_t at, struct conf_pos pos, bool exact)
{
	for (size_t i = 0; exact && i < at; i++)
		pos.column += ((unsigned char)raw.p[i] & 0xc0) != 0x80;
	return pos;
}

struct reference {
	struct str name, fallback;
	bool has_fallback;
	size_t size;	/* of the whole ${...} */
};

/* Why the ${ at the start of `s` is none, or NULL. */
static const char *reference_parse(struct str s, struct reference *r)
{
	size_t n = 2;
	const char *end = memchr(s.p, '}', s.n);

	if (!end)
		return "`${` without `}`";
	while (s.p + n < end && name_char(s.p[n], n == 2))
		n++;
	*r = (struct reference){.name = {s.p + 2, n - 2}, .size = (size_t)(end - s.p) + 1};
	if (!r->name.n)
		return "`${` must be followed by a name of letters, digits and `_`";
	if (s.p + n == end)
		return NULL;
	if (s.p[n] != ':' || s.p[n + 1] != '-')
		return "a variable is ${NAME} or ${NAME:-default}";
	r->has_fallback = true;
	r->fallback = (struct str){s.p + n + 2, (size_t)(end - s.p) - n - 2};
	return NULL;
}

/* The value of `r`; p NULL when it has none, or when there is no memory. */
static struct str reference_value(struct conf_expand *x, const struct reference *r)
{
	char name[256];
	const char *value = NULL;

	if (x->env && r->name.n < sizeof name) {
		memcpy(name, r->name.p, r->name.n);
		name[r->name.n] = '\0';
		value = x->env(name);
	}
	if (r->has_fallback && (!value || !*value))
		return r->fallback;
	return str_of(value);
}

/* One step: the reference or text at `at`; false when it is wrong. */
static bool expand_step(struct conf_expand *x, struct str raw, size_t *at, struct conf_pos pos, bool exact,
			struct str *piece)
{
	struct str rest = {raw.p + *at, raw.n - *at};
	const char *dollar = memchr(rest.p, '$', rest.n), *wrong;
	struct reference r = {.size = 0};

	if (dollar != rest.p) {
		*piece = (struct str){rest.p, dollar ? (size_t)(dollar - rest.p) : rest.n};
		*at += piece->n;
		return true;
	}
	if (str_starts(rest, STR("$$"))) {
		*piece = (struct str){rest.p, 1};
		*at += 2;
		return true;
	}
	if (rest.n == 1 || (rest.p[1] != '{' && !name_char(rest.p[1], true))) {	/* ends an expression, as in `^v1$` */
		*piece = (struct str){rest.p, 1};
		*at += 1;
		return true;
	}
	wrong = rest.p[1] == '{' ? reference_parse(rest, &r)
		: "`$` begins a variable, as in ${NAME}; write `$$` for a dollar";
	pos = pos_at(raw, *at, pos, exact);
	if (wrong) {
		conf_errors_add(x->errors, pos, "%s", wrong);
		return false;
	}
	*piece = reference_value(x, &r);
	if (!piece->p) {
		conf_errors_add(x->errors, pos, "the variable `%.*s` is not set", r.name.n > 80 ? 80 : (int)r.name.n,
				r.name.p);
		return false;
	}
	*at += r.size;
	x->added += piece->n;
	if (x->added > EXPAND_MAX) {
		conf_errors_add(x->errors, pos, "variables make the file larger than it may be");
		return false;
	}
	return true;
}

bool conf_expand(struct conf_expand *x, struct str raw, struct conf_pos pos, bool exact, struct str *out)
{
	struct str piece;
	size_t n = 0, at = 0;
	char *p;

	/* Twice the same walk: the first one counts. */
	while (at < raw.n) {
		if (!expand_step(x, raw, &at, pos, exact, &piece))
			return false;
		n += piece.n;
	}
	p = arena_alloc(x->arena, n + 1);
	if (!p) {
		x->errors->no_memory = true;
		return false;
	}
	*out = (struct str){p, n};
	for (at = 0; at < raw.n; p += piece.n, n -= piece.n) {
		uint64_t added = x->added;

		if (!expand_step(x, raw, &at, pos, exact, &piece))
			return false;
		x->added = added;
		CHECK(piece.n <= n);
		memcpy(p, piece.p, piece.n);
	}
	*p = '\0';
	return true;
}
