/* Door: cors, the policy and its decision.  A policy is one heap block: patterns, and the values of its fields, joined when
 * it is made, so that an answer lends them.  Called when a route is made and once for each request of it.
 * Never forwards, never answers: it says which fields an answer carries. */
#include "dispatch/cors.h"

#include "dispatch/text.h"
#include "lib/base/hash.h"
#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "lib/base/origin.h"

struct cors {
	bool credentials, any_origin;
	bool all_methods, all_headers;	/* "*" is among them */
	uint16_t n_origins;
	uint32_t max_age;
	struct str origins;		/* as they were written, joined, for cors_is */
	struct str methods, headers, expose, age;	/* values of fields; empty: no such field */
	struct origin_pattern origin[];	/* strings are behind it */
};

#define PREFLIGHT_VARY STR("Origin, Access-Control-Request-Method, Access-Control-Request-Headers")

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

struct cors *cors_new(const struct cors_spec *s, struct snapshot_error *err)
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
	return c;
}

void cors_free(struct cors *c)
{
	mem_free(c);
}

/* --- being the same --- */

static bool take(struct str *s, struct str prefix)
{
	if (!str_starts(*s, prefix))
		return false;
	s->p += prefix.n;
	s->n -= prefix.n;
	return true;
}

static bool joined_is(struct str joined, struct cors_list l)
{
	for (uint16_t i = 0; i < l.n; i++)
		if ((i && !take(&joined, STR(", "))) || !take(&joined, l.items[i]))
			return false;
	return joined.n == 0;
}

bool cors_is(const struct cors *c, const struct cors_spec *s)
{
	return c->credentials == s->credentials && c->max_age == s->max_age && joined_is(c->origins, s->origins) &&
	       joined_is(c->methods, s->methods) && joined_is(c->headers, s->headers) && joined_is(c->expose, s->expose);
}

static uint64_t list_hash(uint64_t h, struct cors_list l)
{
	struct hash_key key = { h, l.n };

	for (uint16_t i = 0; i < l.n; i++)
		key.k0 = hash_keyed(key, l.items[i]);
	return key.k0 + l.n;
}

uint64_t cors_spec_hash(const struct cors_spec *s)
{
	uint64_t h = hash_str(STR("cors")) + (s->credentials ? 1u : 0u) + ((uint64_t)s->max_age << 8);

	return list_hash(list_hash(list_hash(list_hash(h, s->origins), s->methods), s->headers), s->expose);
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
	if (c->credentials && (c->all_methods || c->all_headers))
		a->vary = PREFLIGHT_VARY;
}

void cors_decide(const struct cors *c, const struct cors_request *q, struct cors_answer *out)
{
	*out = (struct cors_answer){
		.preflight = q->origin.n && q->request_method.n && str_eq(q->method, STR("OPTIONS")),
		.allowed = q->origin.n == 0 || c->any_origin || origin_allowed(c, q->origin),
	};
	if (!c->any_origin)
		out->vary = STR("Origin");
	if (!out->allowed || (q->origin.n == 0 && !c->any_origin))
		return;
	put(out, STR("Access-Control-Allow-Origin"), c->any_origin ? STR("*") : q->origin);
	if (c->credentials)
		put(out, STR("Access-Control-Allow-Credentials"), STR("true"));
	put(out, STR("Access-Control-Expose-Headers"), c->expose);
	if (out->preflight)
		preflight(c, q, out);
}

bool cors_owns(struct str name)
{
	const struct str prefix = STR("Access-Control-");

	return name.n > prefix.n && str_ieq((struct str){ name.p, prefix.n }, prefix);
}

/* --- Vary --- */

/* Takes the next member off a list; false at its end.  Empty members are none (RFC 9110 5.6.1). */
static bool next_member(struct str *list, struct str *member)
{
	while (list->n) {
		const char *comma = memchr(list->p, ',', list->n);
		size_t n = comma ? (size_t)(comma - list->p) : list->n;

		*member = str_trim((struct str){ list->p, n });
		list->p += n + (comma != NULL);
		list->n -= n + (comma != NULL);
		if (member->n)
			return true;
	}
	return false;
}

static bool names(struct str list, struct str wanted)
{
	struct str member;

	while (next_member(&list, &member))
		if (str_ieq(member, wanted) || str_eq(member, STR("*")))
			return true;
	return false;
}

enum err cors_vary(struct str vary, struct str add, struct arena *a, struct str *out)
{
	struct str rest = add, member, more[4];
	size_t n = 0, sum = vary.n;
	char *at;

	while (n < 4 && next_member(&rest, &member))
		if (!names(vary, member)) {
			more[n++] = member;
			sum += member.n + 2;
		}
	if (n == 0) {
		*out = vary;
		return OK;
	}
	at = arena_alloc(a, sum);
	if (!at)
		return ERR_MEM;
	out->p = at;
	if (vary.n)
		memcpy(at, vary.p, vary.n);
	at += vary.n;
	for (size_t i = 0; i < n; i++) {
		if (at != out->p) {
			memcpy(at, ", ", 2);
			at += 2;
		}
		memcpy(at, more[i].p, more[i].n);
		at += more[i].n;
	}
	out->n = (size_t)(at - out->p);
	return OK;
}
