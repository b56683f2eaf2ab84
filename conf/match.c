/*
 * match: the readers of what a request must be like.
 *
 * Purpose   paths, methods, headers and query parameters of a route, beside the
 *           others of its keys or as alternatives in `matches`.
 * Owns      nothing; results are in the tree's arena.
 * Called by walk.c through conf_reader_of(); its comparisons by rules.c.
 * Never     compiles an expression (that is dispatch, which the check asks too).
 * Invariant a path is one that a request can have; the pairs of a list are in the
 *           order of their names, so that equal lists are equal item by item.
 */
#include "conf/walk.h"
#include "lib/base/path.h"

#include <stdlib.h>

#define METHODS_MAX 32
#define PAIRS_MAX 64
#define MATCHES_MAX 1024

/* The path of `n` in its normal form, a copy in the tree; n == 0, reported, when it is wrong. */
static struct str path_read(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n)
{
	const char *wrong;
	struct str s = {NULL, 0};
	char *p;

	if (!conf_walk_text(w, k, n))
		return s;
	wrong = conf_path_wrong(n->text);
	if (!wrong) {
		p = conf_walk_alloc(w, n->text.n * 3 + 1);
		if (!p)
			return s;
		s = (struct str){p, path_normal_escapes(n->text, p)};
		wrong = conf_path_wrong(s);	/* `/%2e%2e/` shows what it is */
	}
	if (!wrong)
		return s;
	conf_errors_add(w->errors, n->pos, "the path `%.80s` %s", n->text.p, wrong);
	return (struct str){NULL, 0};
}

/* The same for a prefix, which is literal: a `*` at its end is a slip. */
static struct str prefix_read(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n)
{
	struct str s = path_read(w, k, n);
	size_t size = n->text.n;

	if (!s.n || s.p[s.n - 1] != '*')
		return s;
	while (size > 1 && strchr("*/", n->text.p[size - 1]))
		size--;
	conf_errors_add(w->errors, n->pos, "the path `%.80s` ends in `*`: a prefix needs none, write `%.*s`", n->text.p,
			size > 80 ? 80 : (int)size, n->text.p);
	return (struct str){NULL, 0};
}

void conf_read_prefix(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	struct conf_match *m = at;
	struct str s = prefix_read(w, k, n);

	if (!s.n)
		return;
	if (s.n > 1 && s.p[s.n - 1] == '/')
		((char *)s.p)[--s.n] = '\0';	/* `/api/` as a prefix is `/api` */
	m->path_kind = CONF_PATH_PREFIX;
	m->path = s;
}

void conf_read_exact(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	struct conf_match *m = at;
	struct str s = path_read(w, k, n);

	if (!s.n)
		return;
	m->path_kind = CONF_PATH_EXACT;
	m->path = s;
}

void conf_read_new_prefix(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	struct str s = prefix_read(w, k, n);

	if (s.n)
		*(struct str *)at = s;
}

void conf_read_new_path(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	struct str s = path_read(w, k, n);

	if (s.n)
		*(struct str *)at = s;
}

void conf_read_path(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	if (n->kind != CONF_NODE_MAP) {
		conf_read_prefix(w, k, n, at);
		return;
	}
	if (conf_walk_map(w, k->sub, n, at) && n->count != 1)
		conf_errors_add(w->errors, n->count ? n->first->next->key_pos : n->pos,
				"a path is one of `prefix`, `exact` and `regex`");
}

/* The expression of `n`, a copy in the tree; n == 0, reported, when it is none. */
static struct str regex_read(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n)
{
	if (!conf_walk_text(w, k, n))
		return (struct str){NULL, 0};
	for (size_t i = 0; i < n->text.n; i++) {
		if ((unsigned char)n->text.p[i] >= 0x20 && n->text.p[i] != 0x7f)
			continue;
		conf_errors_add(w->errors, n->pos, "an expression has no control bytes; write `\\t` or `\\x09` for one");
		return (struct str){NULL, 0};
	}
	return conf_walk_dup(w, n->text);
}

void conf_read_path_regex(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	struct conf_match *m = at;
	struct str s = regex_read(w, k, n);

	if (!s.n)
		return;
	m->path_kind = CONF_PATH_REGEX;
	m->path = s;
}

void conf_read_pattern(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	struct conf_pair *p = at;

	p->regex = true;
	p->value = regex_read(w, k, n);
}

static bool method_ok(struct conf_walk *w, const struct conf_node *n, const struct conf_str_list *before)
{
	char upper[33] = "";
	bool lower = false;

	if (!conf_is_token(n->text) || n->text.n >= sizeof upper) {
		conf_errors_add(w->errors, n->pos, "`%.60s` is not a method, such as GET", n->text.p);
		return false;
	}
	for (size_t i = 0; i < n->text.n; i++) {
		bool small = n->text.p[i] >= 'a' && n->text.p[i] <= 'z';

		upper[i] = small ? (char)(n->text.p[i] - 32) : n->text.p[i];
		lower = lower || small;
	}
	if (lower)
		conf_errors_add(w->errors, n->pos, "methods are case-sensitive; did you mean %s?", upper);
	for (size_t i = 0; !lower && i < before->count; i++) {
		if (!str_eq(before->items[i], n->text))
			continue;
		conf_errors_add(w->errors, n->pos, "the method %s is there twice", upper);
		return false;
	}
	return !lower;
}

void conf_read_methods(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	struct conf_str_list list = {0};
	size_t count;
	const struct conf_node *c = conf_walk_items(w, k, n, &count);

	if (!count && n->kind == CONF_NODE_LIST)
		conf_errors_add(w->errors, n->pos, "`%s` is an empty list; leave it out for any method", k->name);
	if (count > METHODS_MAX) {
		conf_errors_add(w->errors, n->pos, "`%s` has more than %d methods", k->name, METHODS_MAX);
		return;
	}
	list.items = conf_walk_alloc(w, count * sizeof *list.items);
	if (!list.items)
		return;
	for (; count; count--, c = c->next)
		if (conf_walk_text(w, k, c) && method_ok(w, c, &list))
			list.items[list.count++] = conf_walk_dup(w, c->text);
	*(struct conf_str_list *)at = list;
}

int conf_str_compare(struct str a, struct str b)
{
	size_t n = a.n < b.n ? a.n : b.n;
	int rc = n ? memcmp(a.p, b.p, n) : 0;

	return rc ? rc : (a.n > b.n) - (a.n < b.n);
}

static int header_compare(const void *a, const void *b)
{
	const struct conf_pair *x = a, *y = b;

	return strcasecmp(x->name.p, y->name.p);
}

static int parameter_compare(const void *a, const void *b)
{
	const struct conf_pair *x = a, *y = b;

	return conf_str_compare(x->name, y->name);
}

int conf_pairs_compare(const struct conf_pair_list *a, const struct conf_pair_list *b, bool fold)
{
	int rc = (a->count > b->count) - (a->count < b->count);

	for (size_t i = 0; !rc && i < a->count; i++) {
		rc = fold ? header_compare(&a->items[i], &b->items[i]) : parameter_compare(&a->items[i], &b->items[i]);
		if (!rc)
			rc = a->items[i].regex - b->items[i].regex;
		if (!rc)
			rc = conf_str_compare(a->items[i].value, b->items[i].value);
	}
	return rc;
}

/* Whether `s` can stand in a query as it is; `=` only in a value. */
static bool query_ok(struct conf_walk *w, struct str s, struct conf_pos pos, bool name)
{
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if (c > 0x20 && c < 0x7f && c != '&' && c != '#' && (c != '=' || !name))
			continue;
		conf_errors_add(w->errors, pos, "`%.60s` must be written as it is in a URL: `%%%02X` for the byte after `%.*s`",
				s.p, c, i > 20 ? 20 : (int)i, i > 20 ? s.p + i - 20 : s.p);
		return false;
	}
	if (!s.n && name)
		conf_errors_add(w->errors, pos, "a query parameter needs a name");
	return s.n || !name;
}

static bool pair_name_ok(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n)
{
	if (k->type == CONF_T_QUERY_PAIRS)
		return query_ok(w, n->key, n->key_pos, true);
	if (!conf_is_token(n->key))
		conf_errors_add(w->errors, n->key_pos, "`%.60s` is not a header name", n->key.p);
	return conf_is_token(n->key);
}

static bool pair_value_ok(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n)
{
	if (k->type == CONF_T_QUERY_PAIRS)
		return query_ok(w, n->text, n->pos, false);
	if (!conf_is_field_value(n->text))
		conf_errors_add(w->errors, n->pos, "a header's value has no control bytes, and no space at its ends");
	return conf_is_field_value(n->text);
}

static bool pair_read(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, struct conf_pair *p)
{
	bool named = pair_name_ok(w, k, n), whole = false;

	*p = (struct conf_pair){.pos = n->key_pos, .name = conf_walk_dup(w, n->key), .value = STR("")};
	if (n->kind == CONF_NODE_MAP) {
		whole = conf_walk_map(w, k->sub, n, p) && p->value.n;
	} else if (n->kind == CONF_NODE_LIST) {
		conf_errors_add(w->errors, n->pos, "%s is a text or `{ regex: ... }`, not a list", conf_noun_name(k->sub));
	} else if (n->kind == CONF_NODE_TEXT && pair_value_ok(w, k, n)) {
		p->value = conf_walk_dup(w, n->text);
		whole = true;
	}
	return named && whole;
}

void conf_read_pairs(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	struct conf_pair_list list = {0};
	bool fold = k->type == CONF_T_HEADER_PAIRS;

	if (n->kind != CONF_NODE_MAP || n->count > PAIRS_MAX) {
		if (n->kind == CONF_NODE_MAP)
			conf_errors_add(w->errors, n->pos, "`%s` has more than %d names", k->name, PAIRS_MAX);
		else if (n->kind != CONF_NODE_BAD)
			conf_errors_add(w->errors, n->pos, "`%s` needs a map of names and values, not %s", k->name,
					conf_node_what(n));
		return;
	}
	list.items = conf_walk_alloc(w, n->count * sizeof *list.items);
	if (!list.items)
		return;
	for (const struct conf_node *c = n->first; c; c = c->next)
		list.count += pair_read(w, k, c, &list.items[list.count]);
	qsort(list.items, list.count, sizeof *list.items, fold ? header_compare : parameter_compare);
	for (size_t i = 1; fold && i < list.count; i++)
		if (header_compare(&list.items[i - 1], &list.items[i]) == 0)
			conf_errors_add(w->errors, list.items[i].pos, "`%.60s` is there twice: names are the same in any case",
					list.items[i].name.p);
	*(struct conf_pair_list *)at = list;
}

void conf_read_matches(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	struct conf_route *r = at;

	if (n->kind != CONF_NODE_LIST || !n->count || n->count > MATCHES_MAX) {
		if (n->kind == CONF_NODE_LIST)
			conf_errors_add(w->errors, n->pos, n->count ? "`%s` has more than %d items"
					: "`%s` is an empty list; leave it out for any request", k->name, MATCHES_MAX);
		else if (n->kind != CONF_NODE_BAD)
			conf_errors_add(w->errors, n->pos, "`%s` is a list, not %s", k->name, conf_node_what(n));
		return;
	}
	r->matches = conf_walk_alloc(w, n->count * sizeof *r->matches);
	for (const struct conf_node *c = n->first; r->matches && c; c = c->next) {
		struct conf_match *m = &r->matches[r->match_count++];

		m->pos = c->pos;
		conf_walk_default(w, k->sub, m);
		conf_walk_map(w, k->sub, c, m);
	}
}
