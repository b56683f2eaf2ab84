/* Door: the conditions of one rule: method, path expression, headers, query.  A
 * rule_cond is one heap block with its strings, plus its compiled expressions.
 * Called by the router while it is built and for each candidate of a look-up.
 * Cheap questions come first; headers and query are asked for last. */
#include "dispatch/rule.h"

#include "dispatch/text.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"

static bool pair_counts(const struct match_pair *p, uint16_t i, bool fold)
{
	uint16_t k;

	for (k = 0; k < i; k++)
		if (fold ? str_ieq(p[k].name, p[i].name) : str_eq(p[k].name, p[i].name))
			return false;
	return true;
}

uint16_t rule_pairs(const struct match_pair *p, uint16_t n, bool fold)
{
	uint16_t i, count = 0;

	for (i = 0; i < n; i++)
		count += pair_counts(p, i, fold);
	return count;
}

static size_t pairs_text(const struct match_pair *p, uint16_t n)
{
	size_t sum = 0;
	uint16_t i;

	for (i = 0; i < n; i++)
		sum += p[i].name.n + p[i].value.n;
	return sum;
}

static struct str put(char **at, struct str s)
{
	struct str copy = {*at, s.n};

	if (s.n)
		memcpy(*at, s.p, s.n);
	*at += s.n;
	return copy;
}

static enum err compile(struct regex_pool **pool, struct str pattern, struct regex **out, const char *what,
			struct snapshot_error *err)
{
	char why[128];
	enum err e = regex_new(pool, pattern, out, why, sizeof(why));

	if (e == ERR_MEM)
		return snapshot_error_set(err, e, "no memory for an expression");
	if (e != OK)
		return snapshot_error_set(err, e, "%s: %s", what, why);
	return OK;
}

static enum err pairs_fill(struct regex_pool **pool, struct rule_pair *to, const struct match_pair *p, uint16_t n,
			   bool fold, char **text, struct snapshot_error *err)
{
	uint16_t i;
	enum err e;

	for (i = 0; i < n; i++) {
		if (p[i].kind != MATCH_EXACT && p[i].kind != MATCH_REGEX)
			return snapshot_error_set(err, ERR_SYNTAX, "a header or parameter is matched exactly or by expression");
		if (p[i].name.n == 0 || (fold && !text_token(p[i].name)))
			return snapshot_error_set(err, ERR_SYNTAX, "a header or parameter to match has no proper name");
		if (!pair_counts(p, i, fold))
			continue;
		to->name = put(text, p[i].name);
		if (p[i].kind == MATCH_EXACT) {
			to->value = put(text, p[i].value);
		} else {
			e = compile(pool, p[i].value, &to->regex, fold ? "header" : "query parameter", err);
			if (e != OK)
				return e;
		}
		to++;
	}
	return OK;
}

enum err rule_cond_new(struct regex_pool **pool, const struct route_match *m, struct rule_cond **out,
		       struct snapshot_error *err)
{
	uint16_t n_headers = rule_pairs(m->headers, m->n_headers, true);
	uint16_t n_queries = rule_pairs(m->queries, m->n_queries, false);
	size_t head = sizeof(struct rule_cond) + ((size_t)n_headers + n_queries) * sizeof(struct rule_pair);
	struct rule_cond *c;
	enum err e = OK;
	char *text;

	if (m->method.n && !text_token(m->method))
		return snapshot_error_set(err, ERR_SYNTAX, "a method is a token");
	if (m->path_kind != MATCH_REGEX && m->method.n == 0 && n_headers == 0 && n_queries == 0) {
		*out = NULL;
		return OK;
	}
	c = mem_zalloc(head + m->method.n + pairs_text(m->headers, m->n_headers) + pairs_text(m->queries, m->n_queries));
	if (!c)
		return snapshot_error_set(err, ERR_MEM, "no memory for a rule");
	text = (char *)c + head;
	c->n_headers = n_headers;
	c->n_queries = n_queries;
	c->method = put(&text, m->method);
	if (m->path_kind == MATCH_REGEX)
		e = compile(pool, m->path, &c->path, "path", err);
	if (e == OK)
		e = pairs_fill(pool, c->pair, m->headers, m->n_headers, true, &text, err);
	if (e == OK)
		e = pairs_fill(pool, c->pair + n_headers, m->queries, m->n_queries, false, &text, err);
	if (e != OK) {
		rule_cond_free(c);
		return e;
	}
	*out = c;
	return OK;
}

void rule_cond_free(struct rule_cond *c)
{
	unsigned i;

	if (!c)
		return;
	for (i = 0; i < (unsigned)c->n_headers + c->n_queries; i++)
		regex_free(c->pair[i].regex);
	regex_free(c->path);
	mem_free(c);
}

/* The first parameter of that name: its value is what is behind the '=', or empty. */
static bool query_value(struct str query, struct str name, struct str *value)
{
	const char *p = query.p, *end = query.p + query.n, *amp, *eq;

	for (; query.n && p < end; p = amp + 1) {
		amp = memchr(p, '&', (size_t)(end - p));
		if (!amp)
			amp = end;
		if ((size_t)(amp - p) < name.n || memcmp(p, name.p, name.n) != 0)
			continue;
		eq = p + name.n;
		if (eq != amp && *eq != '=')
			continue;
		*value = eq == amp ? STR("") : (struct str){eq + 1, (size_t)(amp - eq - 1)};
		return true;
	}
	return false;
}

static enum regex_match pair_match(struct regex_pool *pool, const struct rule_pair *p, struct str value)
{
	if (p->regex)
		return regex_match(pool, p->regex, value);
	return str_eq(p->value, value) ? REGEX_YES : REGEX_NO;
}

enum regex_match rule_match(struct regex_pool *pool, const struct rule_cond *c, const struct route_query *q)
{
	enum regex_match m = REGEX_YES;
	struct str value;
	unsigned i;

	if (!c)
		return REGEX_YES;
	if (c->method.n && !str_eq(c->method, q->method))
		return REGEX_NO;
	if (c->path)
		m = regex_match(pool, c->path, q->path);
	for (i = 0; m == REGEX_YES && i < c->n_headers; i++)
		m = q->header && q->header(q->ctx, c->pair[i].name, &value) ? pair_match(pool, &c->pair[i], value)
									     : REGEX_NO;
	for (; m == REGEX_YES && i < (unsigned)c->n_headers + c->n_queries; i++)
		m = query_value(q->query, c->pair[i].name, &value) ? pair_match(pool, &c->pair[i], value)
								   : REGEX_NO;
	return m;
}
