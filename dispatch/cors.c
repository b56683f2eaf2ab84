/* Door: cors, the policy and its decision.  A policy is one heap block: patterns, and the values of its fields, joined when
 * it is made, so that an answer lends them.  Called when a route is made and once for each request of it.
 * Never forwards, never answers: it says which fields an answer carries. */
#include "dispatch/cors.h"

#include "dispatch/text.h"
#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "lib/base/origin.h"

struct cors {
	struct policy_part part;
	bool credentials, any_origin;
	bool all_methods, all_headers;	/* "*" is among them */
	uint16_t n_origins;
	uint32_t max_age;
	struct str origins;		/* as they were written, joined */
	struct str methods, headers, expose, age;	/* values of fields; empty: no such field */
	struct origin_pattern origin[];	/* strings are behind it */
};

/* --- making --- */

static bool has_star(struct cors_list l)
{
	for (uint16_t i = 0; i < l.n; i++)
		if (str_eq(l.items[i], STR("*")))
			return true;
	return false;
}

static enum err names_check(struct cors_list l, const char *what, struct snapshot_error *err)
{
	if (l.n > CORS_NAMES_MAX)
		return snapshot_error_set(err, ERR_SYNTAX, "cors has at most %d names in a list", CORS_NAMES_MAX);
	for (uint16_t i = 0; i < l.n; i++)
		if (!text_token(l.items[i]))
			return snapshot_error_set(err, ERR_SYNTAX, "cors: a name of %s is no name", what);
	return OK;
}

static enum err origins_check(const struct cors_spec *s, struct snapshot_error *err)
{
	struct origin_pattern p;
	const char *why;

	if (s->origins.n == 0 || s->origins.n > CORS_ORIGINS_MAX)
		return snapshot_error_set(err, ERR_SYNTAX, "cors names 1 to %d origins", CORS_ORIGINS_MAX);
	for (uint16_t i = 0; i < s->origins.n; i++) {
		if (origin_parse(s->origins.items[i], &p, &why) != OK)
			return snapshot_error_set(err, ERR_SYNTAX, "the origin '%.*s' %s",
						  (int)(s->origins.items[i].n < 80 ? s->origins.items[i].n : 80),
						  s->origins.items[i].p, why);
		if (p.kind == ORIGIN_ANY && s->credentials)
			return snapshot_error_set(err, ERR_SYNTAX, "cors with credentials names its origins: "
						  "with '*' every site could act as whoever visits it");
	}
	return OK;
}

static enum err spec_check(const struct cors_spec *s, struct snapshot_error *err)
{
	enum err e = origins_check(s, err);

	if (e == OK)
		e = names_check(s->methods, "methods", err);
	if (e == OK)
		e = names_check(s->headers, "headers", err);
	if (e == OK)
		e = names_check(s->expose, "expose", err);
	if (e == OK && s->credentials && has_star(s->expose))
		e = snapshot_error_set(err, ERR_SYNTAX, "cors with credentials names what it exposes: browsers take no '*' then");
	return e;
}

static size_t joined_length(struct cors_list l)
{
	size_t n = 0;

	for (uint16_t i = 0; i < l.n; i++)
		n += l.items[i].n + 2;
	return n;
}

/* "a, b, c" at *at, which moves behind it. */
static struct str join(char **at, struct cors_list l)
{
	char *from = *at, *to = from;

	for (uint16_t i = 0; i < l.n; i++) {
		if (i) {
			memcpy(to, ", ", 2);
			to += 2;
		}
		memcpy(to, l.items[i].p, l.items[i].n);
		to += l.items[i].n;
	}
	*at = to;
	return (struct str){ from, (size_t)(to - from) };
}

/* The patterns lend from `origins`, where their texts are. */
static void set_origins(struct cors *c, const struct cors_spec *s)
{
	const char *at = c->origins.p, *why;

	for (uint16_t i = 0; i < s->origins.n; i++) {
		struct str text = { at, s->origins.items[i].n };

		if (origin_parse(text, &c->origin[i], &why) == OK && c->origin[i].kind == ORIGIN_ANY)
			c->any_origin = true;
		at += text.n + 2;
	}
	c->n_origins = s->origins.n;
}

static bool cors_same(const struct policy_part *p, const struct policy_part *q)
{
	const struct cors *a = (const struct cors *)p, *b = (const struct cors *)q;

	return a->credentials == b->credentials && a->max_age == b->max_age && str_eq(a->origins, b->origins) &&
	       str_eq(a->methods, b->methods) && str_eq(a->headers, b->headers) && str_eq(a->expose, b->expose);
}

static void cors_free(struct policy_part *p)
{
	mem_free(p);
}

static const struct policy_kind kind = { .same = cors_same, .free = cors_free };

struct policy_part *cors_new(const struct cors_spec *s, struct snapshot_error *err)
{
	size_t head = sizeof(struct cors) + s->origins.n * sizeof(struct origin_pattern);
	struct cors *c;
	char *at;

	if (spec_check(s, err) != OK)
		return NULL;
	c = mem_zalloc(head + joined_length(s->origins) + joined_length(s->methods) + joined_length(s->headers) +
		       joined_length(s->expose) + NUM_DEC_MAX);
	if (!c) {
		snapshot_error_set(err, ERR_MEM, "no memory for cors");
		return NULL;
	}
	policy_part_init(&c->part, &kind);
	at = (char *)c + head;
	c->credentials = s->credentials;
	c->max_age = s->max_age;
	c->all_methods = has_star(s->methods);
	c->all_headers = has_star(s->headers);
	c->origins = join(&at, s->origins);
	c->methods = join(&at, s->methods);
	c->headers = join(&at, s->headers);
	c->expose = join(&at, s->expose);
	if (s->max_age != CORS_NO_AGE)
		c->age = (struct str){ at, num_dec(at, s->max_age) };
	set_origins(c, s);
	return &c->part;
}

/* --- deciding --- */

static bool origin_allowed(const struct cors *c, struct str origin)
{
	for (uint16_t i = 0; i < c->n_origins; i++)
		if (origin_match(&c->origin[i], origin))
			return true;
	return false;
}

static void put(struct cors_answer *a, struct str name, struct str value)
{
	if (value.n)
		a->field[a->n++] = (struct cors_field){ name, value };
}

/* A list of names as browsers send it: fit to be sent back. */
static bool names_ok(struct str s)
{
	while (s.n) {
		const char *comma = memchr(s.p, ',', s.n);
		size_t n = comma ? (size_t)(comma - s.p) : s.n;

		if (!text_token(str_trim((struct str){ s.p, n })))
			return false;
		s.p += n + (comma != NULL);
		s.n -= n + (comma != NULL);
	}
	return true;
}

/* With credentials a browser takes '*' by the letter, so that what was asked for is sent back. */
static void preflight(const struct cors *c, const struct cors_request *q, struct cors_answer *a)
{
	struct str methods = c->methods, headers = c->headers;

	if (c->credentials && c->all_methods)
		methods = text_token(q->request_method) ? q->request_method : STR("");
	if (c->credentials && c->all_headers)
		headers = names_ok(q->request_headers) ? q->request_headers : STR("");
	put(a, STR("Access-Control-Allow-Methods"), methods);
	put(a, STR("Access-Control-Allow-Headers"), headers);
	put(a, STR("Access-Control-Max-Age"), c->age);
	if (c->credentials && c->all_methods)
		a->vary[a->n_vary++] = STR("Access-Control-Request-Method");
	if (c->credentials && c->all_headers)
		a->vary[a->n_vary++] = STR("Access-Control-Request-Headers");
}

void cors_decide(const struct policy_part *cors, const struct cors_request *q, struct cors_answer *out)
{
	const struct cors *c = (const struct cors *)cors;

	*out = (struct cors_answer){
		.preflight = q->origin.n && q->request_method.n && str_eq(q->method, STR("OPTIONS")),
		.allowed = q->origin.n == 0 || c->any_origin || origin_allowed(c, q->origin),
	};
	if (!c->any_origin)
		out->vary[out->n_vary++] = STR("Origin");
	if (!out->allowed || (q->origin.n == 0 && !c->any_origin))
		return;
	put(out, STR("Access-Control-Allow-Origin"), c->any_origin ? STR("*") : q->origin);
	if (c->credentials)
		put(out, STR("Access-Control-Allow-Credentials"), STR("true"));
	put(out, STR("Access-Control-Expose-Headers"), c->expose);
	if (out->preflight)
		preflight(c, q, out);
}
