/*
 * rate: the readers of rate limits.
 *
 * Purpose   `rate_limit: 10/s`, a map of what it is by, or a list of both.
 * Owns      nothing; results are in the tree's arena.
 * Called by walk.c through conf_reader_of().
 * Never     counts a request: that is dispatch.
 * Invariant a limit of the tree has a burst; no two of a route have one name.
 */
#include "conf/scalar.h"
#include "conf/walk.h"

#define LIMITS_MAX 8
#define COUNT_MAX 1000000u

/* NULL, or what is wrong with `s` as a phrase behind "`s` ". */
static const char *rate_parse(struct str s, struct conf_rate_limit *r)
{
	static const struct { char unit; uint32_t seconds; } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}};
	const char *slash = s.n ? memchr(s.p, '/', s.n) : NULL;
	struct str count = {s.p, slash ? (size_t)(slash - s.p) : s.n}, unit = {s.p + count.n, s.n - count.n};
	uint64_t v = 0;
	const char *wrong = conf_read_count(count, &v);

	if (!slash)
		return wrong ? "is not a rate, such as 10/s, 100/m or 1000/h" : "needs a time: 10/s, 100/m or 1000/h";
	if (wrong && strcmp(wrong, "is too large"))
		return "is not a rate, such as 10/s, 100/m or 1000/h";
	if (wrong || !v || v > COUNT_MAX)
		return "must be from 1 to 1000000 in its time";
	for (size_t i = 0; i < 3; i++) {
		if (unit.n != 2 || unit.p[1] != units[i].unit)
			continue;
		r->count = (uint32_t)v;
		r->period = units[i].seconds;
		return NULL;
	}
	return "has a time that is none of s, m and h, as in 10/s, 100/m or 1000/h";
}

void conf_read_rate(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	const char *wrong;

	if (!conf_walk_text(w, k, n))
		return;
	wrong = rate_parse(n->text, at);
	if (wrong)
		conf_errors_add(w->errors, n->pos, "`%.60s` %s", n->text.p, wrong);
}

void conf_read_rate_by(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	struct conf_rate_limit *r = at;
	struct conf_near near = {.word = n->text};
	int i;

	if (n->kind == CONF_NODE_MAP) {
		conf_walk_map(w, k->sub, n, at);
		return;
	}
	if (!conf_walk_text(w, k, n))
		return;
	i = conf_word_find(k->words, n->text, &near);
	if (i >= 0)
		r->by = (enum conf_rate_by)i;
	else
		conf_errors_add(w->errors, n->pos, "`%s` is address, route or `{ header: NAME }`, not `%.60s`%s", k->name,
				n->text.p, conf_walk_hint(w, &near));
}

void conf_read_rate_header(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	struct conf_rate_limit *r = at;

	if (!conf_walk_text(w, k, n))
		return;
	if (!conf_is_token(n->text) || n->text.n > 256) {
		conf_errors_add(w->errors, n->pos, "`%.60s` is not a header name", n->text.p);
		return;
	}
	if (conf_header_refused(n->text))
		conf_errors_add(w->errors, n->pos, "`%.60s` is not among the fields that requests are told apart by", n->text.p);
	r->by = CONF_BY_HEADER;
	r->header = conf_walk_dup(w, n->text);
}

/* What it is when its keys are read: the rest of the defaults depend on them. */
static void limit_finish(struct conf_rate_limit *r)
{
	static const struct str names[] = {
		[CONF_BY_ADDRESS] = {"address", 7}, [CONF_BY_ROUTE] = {"route", 5}, [CONF_BY_HEADER] = {"header", 6},
	};

	if (!r->burst)
		r->burst = r->count;
	if (!r->name.p)
		r->name = names[r->by];
}

static void limit_add(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n,
		      struct conf_rate_limit_list *list)
{
	struct conf_rate_limit *r = &list->items[list->count];
	size_t errors = w->errors->count + w->errors->more;

	*r = (struct conf_rate_limit){.pos = n->pos, .header = STR("")};
	conf_walk_default(w, k->sub, r);
	if (n->kind == CONF_NODE_TEXT)
		conf_read_rate(w, k, n, r);
	else
		conf_walk_map(w, k->sub, n, r);
	limit_finish(r);
	if (errors != w->errors->count + w->errors->more)
		return;
	for (size_t i = 0; i < list->count && r->name.n; i++)
		if (str_eq(list->items[i].name, r->name))
			conf_errors_add(w->errors, n->pos, "two limits are called `%.64s`: give one of them another `name`",
					r->name.p);
	list->count++;
}

void conf_read_rate_limits(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	bool many = n->kind == CONF_NODE_LIST;
	struct conf_rate_limit_list list = {0};

	if (n->kind == CONF_NODE_BAD)
		return;
	if (n->kind == CONF_NODE_TEXT && str_eq(n->text, str_of(k->words))) {
		*(struct conf_rate_limit_list *)at = list;
		return;
	}
	if (many && (!n->count || n->count > LIMITS_MAX)) {
		conf_errors_add(w->errors, n->pos, n->count ? "`%s` has more than %d items"
				: "`%s` is an empty list; write `off` for no limit", k->name, LIMITS_MAX);
		return;
	}
	list.items = conf_walk_alloc(w, (many ? n->count : 1) * sizeof *list.items);
	if (!list.items)
		return;
	if (!many)
		limit_add(w, k, n, &list);
	for (const struct conf_node *c = many ? n->first : NULL; c; c = c->next)
		limit_add(w, k, c, &list);
	*(struct conf_rate_limit_list *)at = list;
}
