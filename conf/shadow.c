/*
 * shadow: routes that no request can reach.
 *
 * Purpose   a match all of whose requests another one takes before it is a mistake,
 *           most often an expression that was thought to come after the prefixes.
 * Owns      its list of claims, while it looks.
 * Called by warnings.c.
 * Never     guesses: of expressions it knows only the simplest, and a match that
 *           several others cover only together is not told.
 * Invariant the order of claims is that of dispatch/router.h: within one host, what
 *           stands before a claim is asked before it.
 */
#include "conf/odd.h"
#include "conf/walk.h"
#include "lib/base/mem.h"

#include <stdlib.h>

#define LOOKS_MAX 50000000	/* pairs of claims that are compared: less than a second */

/* The paths that a match takes, as far as that is plain. */
enum shape_kind {
	SHAPE_ONE,	/* `text` itself */
	SHAPE_BELOW,	/* `text`, and what stands behind it and a slash */
	SHAPE_STARTS,	/* what begins with `text` */
	SHAPE_OTHER,	/* an expression that is not understood */
};

struct shape {
	enum shape_kind kind;
	struct str text;
};

struct claim {			/* of a match to requests for one host, by one method */
	const struct conf_route *route;
	const struct conf_match *match;
	struct str host, method;	/* empty: any */
	struct shape path;
	size_t order;
};

struct claims {
	struct claim *items;
	size_t count;
	char *texts;		/* of shapes of expressions */
};

/* The literal at the front of `s`, unescaped to `to`, which goes behind it; its length in `s`. */
static size_t literal_take(struct str s, char **to)
{
	size_t i = 0;

	while (i < s.n && !strchr("^$.[]|()?*+{}", s.p[i])) {
		size_t n = 1;

		if (s.p[i] == '\\') {
			if (i + 1 == s.n || s.p[i + 1] == '\0' || !strchr("^$.[]|()?*+{}\\/-~%@:,;=&!", s.p[i + 1]))
				break;
			n = 2;
		}
		if (i + n < s.n && strchr("?*+{", s.p[i + n]))
			break;	/* it belongs to what follows */
		*(*to)++ = s.p[i + n - 1];
		i += n;
	}
	return i;
}

static bool is_one_of(struct str s, const char *const *list)
{
	for (; *list; list++)
		if (str_eq(s, str_of(*list)))
			return true;
	return false;
}

/* What an expression that has to match the whole of a path or a value is for. */
static struct shape expression_shape(struct str s, char **texts)
{
	static const char *const anything[] = {".*", "(.*)", "(?:.*)", NULL};
	static const char *const below[] = {"(/.*)?", "(?:/.*)?", "(\\/.*)?", NULL};
	struct str text = {*texts, 0}, rest;
	size_t n;

	if (s.n && s.p[0] == '^')
		s = (struct str){s.p + 1, s.n - 1};
	if (s.n && s.p[s.n - 1] == '$' && (s.n == 1 || s.p[s.n - 2] != '\\'))
		s.n--;
	n = literal_take(s, texts);
	text.n = (size_t)(*texts - text.p);
	rest = (struct str){s.p + n, s.n - n};
	if (!rest.n)
		return (struct shape){SHAPE_ONE, text};
	if (is_one_of(rest, anything))
		return (struct shape){SHAPE_STARTS, text};
	return (struct shape){is_one_of(rest, below) ? SHAPE_BELOW : SHAPE_OTHER, text};
}

static struct shape path_shape(const struct conf_match *m, char **texts)
{
	if (m->path_kind == CONF_PATH_REGEX)
		return expression_shape(m->path, texts);
	return (struct shape){m->path_kind == CONF_PATH_EXACT ? SHAPE_ONE : SHAPE_BELOW, m->path};
}

/* Whether `s` is `text`, or stands behind it and a slash. */
static bool is_below(struct str s, struct str text)
{
	return str_starts(s, text) && (s.n == text.n || s.p[text.n] == '/');
}

static bool path_covers(const struct claim *a, const struct claim *b)
{
	struct str wide = a->path.text, narrow = b->path.text;
	bool same = a->match->path_kind == b->match->path_kind && str_eq(a->match->path, b->match->path);

	if (same)
		return true;
	if (a->path.kind == SHAPE_STARTS && !wide.n)
		return true;	/* `.*` */
	if (str_eq(narrow, STR("/")) && b->match->path_kind == CONF_PATH_PREFIX)
		return false;	/* OPTIONS * is also for the prefix `/` */
	switch (a->path.kind) {
	case SHAPE_ONE:
		return b->path.kind == SHAPE_ONE && str_eq(wide, narrow);
	case SHAPE_BELOW:
		return b->path.kind == SHAPE_STARTS ? is_below(narrow, wide) && narrow.n > wide.n
			: b->path.kind != SHAPE_OTHER && is_below(narrow, wide);
	case SHAPE_STARTS:
		return b->path.kind != SHAPE_OTHER && str_starts(narrow, wide);
	default:
		return false;
	}
}

/* Whether every value that `b` is met by meets `a`. */
static bool value_covers(const struct conf_pair *a, const struct conf_pair *b)
{
	struct str any = STR(".*");

	return (a->regex && str_eq(a->value, any)) || (a->regex == b->regex && str_eq(a->value, b->value));
}

static bool pairs_cover(const struct conf_pair_list *a, const struct conf_pair_list *b, bool fold)
{
	for (size_t i = 0; i < a->count; i++) {
		size_t j = 0;

		while (j < b->count && !((fold ? str_ieq(a->items[i].name, b->items[j].name)
					       : str_eq(a->items[i].name, b->items[j].name)) &&
					 value_covers(&a->items[i], &b->items[j])))
			j++;
		if (j == b->count)
			return false;
	}
	return true;
}

/* Whether `a` takes every request that `b` could; both are of one host. */
static bool claim_covers(const struct claim *a, const struct claim *b)
{
	return (!a->method.n || str_eq(a->method, b->method)) && path_covers(a, b) &&
		pairs_cover(&a->match->headers, &b->match->headers, true) &&
		pairs_cover(&a->match->query, &b->match->query, false);
}

static int more(size_t a, size_t b)
{
	return (a < b) - (a > b);
}

/* The order in which the router asks; paths of one kind and length by their text, but for expressions, several of
 * which may match. */
static int claims_compare(const void *va, const void *vb)
{
	static const int rank[] = {[CONF_PATH_EXACT] = 0, [CONF_PATH_REGEX] = 1, [CONF_PATH_PREFIX] = 2};
	const struct claim *x = va, *y = vb;
	const struct conf_match *a = x->match, *b = y->match;
	int rc = conf_str_compare(x->host, y->host);

	if (!rc)
		rc = rank[a->path_kind] - rank[b->path_kind];
	if (!rc)
		rc = more(a->path.n, b->path.n);
	if (!rc && a->path_kind != CONF_PATH_REGEX)
		rc = conf_str_compare(a->path, b->path);
	if (!rc)
		rc = more(x->method.n != 0, y->method.n != 0);
	if (!rc)
		rc = more(a->headers.count, b->headers.count);
	if (!rc)
		rc = more(a->query.count, b->query.count);
	return rc ? rc : (x->order > y->order) - (x->order < y->order);
}

static size_t ways_of(const struct conf_route *r, const struct conf_match *m)
{
	return (r->hosts.count ? r->hosts.count : 1) * (m->methods.count ? m->methods.count : 1);
}

static void claims_add(struct claims *all, const struct conf_route *r, const struct conf_match *m, size_t order,
		       char **texts)
{
	size_t methods = m->methods.count ? m->methods.count : 1;
	struct shape path = path_shape(m, texts);

	for (size_t i = 0; i < ways_of(r, m); i++)
		all->items[all->count++] = (struct claim){
			r, m, r->hosts.count ? r->hosts.items[i / methods] : STR(""),
			m->methods.count ? m->methods.items[i % methods] : STR(""), path, order,
		};
}

/* All claims, in the router's order; false: no memory. */
static bool claims_make(struct claims *all, const struct conf *c, size_t *matches)
{
	size_t count = 0, bytes = 1;
	char *texts;

	*matches = 0;
	for (size_t i = 0; i < c->route_count; i++) {
		for (size_t j = 0; j < c->routes[i].match_count; j++) {
			count += ways_of(&c->routes[i], &c->routes[i].matches[j]);
			bytes += c->routes[i].matches[j].path.n;
		}
		*matches += c->routes[i].match_count;
	}
	all->count = 0;
	all->items = mem_alloc(count * sizeof *all->items + 1);
	all->texts = texts = mem_alloc(bytes);
	if (!all->items || !texts)
		return false;
	for (size_t i = 0, order = 0; i < c->route_count; i++)
		for (size_t j = 0; j < c->routes[i].match_count; j++)
			claims_add(all, &c->routes[i], &c->routes[i].matches[j], order++, &texts);
	qsort(all->items, all->count, sizeof *all->items, claims_compare);
	return true;
}

/* Where in the list of claims the host of the one that is looked at begins, and its expressions begin and end. */
struct view {
	size_t host, regex, regex_end;
	size_t looks;		/* that may still be taken */
};

/* The first in [from, to) that takes all requests of `b`; NULL: none that is plain. */
static const struct claim *range_cover(const struct claims *all, size_t from, size_t to, const struct claim *b,
				       struct view *v)
{
	for (size_t i = from; i < to && v->looks; i++, v->looks--)
		if (all->items[i].match != b->match && claim_covers(&all->items[i], b))
			return &all->items[i];
	return NULL;
}

/* The same of all that is asked before the n-th.  A prefix or an exact path covers no other before it, so only those
 * with the same one are looked at, and the expressions; before an expression all. */
static const struct claim *claim_cover(const struct claims *all, size_t n, struct view *v)
{
	const struct claim *b = &all->items[n], *a;
	size_t same = n;

	if (b->match->path_kind == CONF_PATH_REGEX)
		return range_cover(all, b->path.kind == SHAPE_ONE ? v->host : v->regex, n, b, v);
	a = b->match->path_kind == CONF_PATH_PREFIX ? range_cover(all, v->regex, v->regex_end, b, v) : NULL;
	while (!a && same > v->host && all->items[same - 1].match->path_kind == b->match->path_kind &&
	       str_eq(all->items[same - 1].match->path, b->match->path))
		same--;
	return a ? a : range_cover(all, same, n, b, v);
}

static const char *why(const struct conf_match *a, const struct conf_match *b)
{
	if (a->path_kind == b->path_kind)
		return a->path_kind == CONF_PATH_REGEX && a->path.n > b->path.n ? ": a longer expression is asked first" : "";
	return a->path_kind == CONF_PATH_REGEX ? ": expressions are asked before prefixes"
		: ": exact paths are asked before expressions";
}

static void shadow_tell(const struct claim *a, const struct claim *b, bool alone, struct conf_errors *to)
{
	conf_errors_add(to, b->match->pos, "no request reaches this %s: the %s on line %u takes %s before it%s",
			b->match == &b->route->match ? "route" : "match",
			a->match == &a->route->match ? "route" : "match", a->match->pos.line,
			alone ? "them all" : "some and others the rest", why(a->match, b->match));
}

/* `left[order]`: how many claims of a match are not known to be in the shadow; `first[order]`: who took the first of
 * those that are. */
static void shadows_find(const struct claims *all, size_t *left, const struct claim **first, bool *several,
			 struct conf_errors *to)
{
	struct view v = {.looks = LOOKS_MAX};

	for (size_t i = 0; i < all->count; i++) {
		const struct claim *b = &all->items[i], *a;

		if (!str_eq(all->items[v.host].host, b->host))
			v = (struct view){.host = i, .regex = i, .regex_end = i, .looks = v.looks};
		a = claim_cover(all, i, &v);
		if (b->match->path_kind == CONF_PATH_EXACT)
			v.regex = v.regex_end = i + 1;
		if (b->match->path_kind == CONF_PATH_REGEX)
			v.regex_end = i + 1;
		if (!a)
			continue;
		several[b->order] = several[b->order] || (first[b->order] && first[b->order]->match != a->match);
		first[b->order] = first[b->order] ? first[b->order] : a;
		if (!--left[b->order])
			shadow_tell(first[b->order], b, !several[b->order], to);
	}
}

void conf_shadows_find(const struct conf *c, struct conf_errors *to)
{
	struct claims all = {0};
	size_t matches = 0, *left = NULL;
	const struct claim **first = NULL;
	bool *several = NULL;

	if (claims_make(&all, c, &matches)) {
		left = mem_zalloc(matches * sizeof *left + 1);
		first = mem_zalloc(matches * sizeof *first + 1);
		several = mem_zalloc(matches + 1);
	}
	if (left && first && several) {
		for (size_t i = 0; i < all.count; i++)
			left[all.items[i].order]++;
		shadows_find(&all, left, first, several, to);
	} else {
		to->no_memory = true;
	}
	mem_free(left);
	mem_free(first);
	mem_free(several);
	mem_free(all.items);
	mem_free(all.texts);
}
