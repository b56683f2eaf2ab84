/*
 * cors: the readers of what pages of other sites may do.
 *
 * Purpose   origins, names of fields, and what of them does not go together.
 * Owns      nothing; results are in the tree's arena.
 * Called by walk.c through conf_reader_of().
 * Never     decides about a request: that is dispatch.
 * Invariant with credentials no origin is `*`, and nothing is exposed by `*`.
 */
#include "conf/walk.h"
#include "lib/base/origin.h"

#define ORIGINS_MAX 256
#define NAMES_MAX 256

static bool has(const struct conf_str_list *l, struct str s, bool fold)
{
	for (size_t i = 0; i < l->count; i++)
		if (fold ? str_ieq(l->items[i], s) : str_eq(l->items[i], s))
			return true;
	return false;
}

/* With credentials: what a browser would not take, or what would let any site act as its visitors. */
static void credentials_check(struct conf_walk *w, const struct conf_node *n, const struct conf_cors *c)
{
	const struct conf_node *origins = conf_node_child(n, "origins"), *expose = conf_node_child(n, "expose");

	if (!c->credentials)
		return;
	if (origins && has(&c->origins, STR("*"), false))
		conf_errors_add(w->errors, origins->pos,
				"with `credentials`, the origin `*` would let every site act as whoever visits it: name the origins");
	if (expose && has(&c->expose, STR("*"), false))
		conf_errors_add(w->errors, expose->pos, "with `credentials`, browsers do not take `*` here: name the fields");
}

void conf_read_cors(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	struct conf_cors *c = at;

	if (n->kind == CONF_NODE_BAD || !conf_walk_map_or_off(w, k, n, c, sizeof *c))
		return;
	c->on = true;
	if (n->kind == CONF_NODE_MAP)
		credentials_check(w, n, c);
}

/* The list that `n` is read to, with room for its items, and the first of them; NULL when there is nothing to read. */
static const struct conf_node *list_make(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n,
					 size_t max, struct conf_str_list *list)
{
	size_t count;
	const struct conf_node *first = conf_walk_items(w, k, n, &count);

	*list = (struct conf_str_list){0};
	if (!count && n->kind == CONF_NODE_LIST)
		conf_errors_add(w->errors, n->pos, "`%s` is an empty list", k->name);
	if (count > max) {
		conf_errors_add(w->errors, n->pos, "`%s` has more than %zu items", k->name, max);
		return NULL;
	}
	list->items = conf_walk_alloc(w, count * sizeof *list->items);
	return list->items ? first : NULL;
}

static void add(struct conf_walk *w, const struct conf_node *n, struct conf_str_list *list, bool fold)
{
	if (has(list, n->text, fold))
		conf_errors_add(w->errors, n->pos, "`%.80s` is there twice", n->text.p);
	else
		list->items[list->count++] = conf_walk_dup(w, n->text);
}

void conf_read_origins(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	struct conf_str_list list;
	struct origin_pattern p;
	const char *why;

	for (const struct conf_node *c = list_make(w, k, n, ORIGINS_MAX, &list); c; c = n->kind == CONF_NODE_LIST ? c->next : NULL) {
		if (!conf_walk_text(w, k, c))
			continue;
		if (origin_parse(c->text, &p, &why) != OK)
			conf_errors_add(w->errors, c->pos, "the origin `%.80s` %s", c->text.p, why);
		else
			add(w, c, &list, false);
	}
	*(struct conf_str_list *)at = list;
}

void conf_read_field_names(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	struct conf_str_list list;

	for (const struct conf_node *c = list_make(w, k, n, NAMES_MAX, &list); c; c = n->kind == CONF_NODE_LIST ? c->next : NULL) {
		if (!conf_walk_text(w, k, c))
			continue;
		if (!conf_is_token(c->text))
			conf_errors_add(w->errors, c->pos, "`%.60s` is not a header name", c->text.p);
		else
			add(w, c, &list, true);
	}
	*(struct conf_str_list *)at = list;
}
