/*
 * value: the readers of texts, headers, networks and protocols.
 *
 * Purpose   values of listeners, logs and messages that are more than a number.
 * Owns      nothing; results are in the tree's arena.
 * Called by walk.c through conf_reader_of().
 * Never     lets a byte through that could not stand in a message head.
 */
#include "conf/address.h"
#include "conf/walk.h"

#define HEADERS_MAX 100

void conf_read_token(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	if (!conf_walk_text(w, k, n))
		return;
	if (str_eq(n->text, STR("off")))
		*(struct str *)at = STR("");
	else if (!conf_is_token(n->text) || n->text.n > 64)
		conf_errors_add(w->errors, n->pos, "`%s` must be a word of letters, digits and `-`, or off, not `%.60s`",
				k->name, n->text.p);
	else
		*(struct str *)at = conf_walk_dup(w, n->text);
}

void conf_read_text(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	if (n->kind == CONF_NODE_TEXT && n->text.n <= k->max)
		*(struct str *)at = conf_walk_dup(w, n->text);
	else if (n->kind == CONF_NODE_TEXT)
		conf_errors_add(w->errors, n->pos, "`%s` has more than %u bytes", k->name, (unsigned)k->max);
	else
		conf_walk_text(w, k, n);
}

static bool value_ok(struct conf_walk *w, const struct conf_node *n)
{
	if (conf_is_field_value(n->text))
		return true;
	conf_errors_add(w->errors, n->pos, "a header's value has no control bytes, and no space at its ends");
	return false;
}

void conf_read_value(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	if (conf_walk_text(w, k, n) && value_ok(w, n))
		*(struct str *)at = conf_walk_dup(w, n->text);
}

void conf_read_sink(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	struct conf_near near = {.word = n->text};
	struct conf_sink *sink = at;
	int i;

	if (!conf_walk_text(w, k, n))
		return;
	i = conf_word_find(k->words, n->text, &near);
	if (i >= 0) {
		*sink = (struct conf_sink){(enum conf_sink_kind)i, STR("")};
	} else if (memchr(n->text.p, '/', n->text.n) && !memchr(n->text.p, '\0', n->text.n)) {
		*sink = (struct conf_sink){CONF_SINK_FILE, conf_walk_dup(w, n->text)};
	} else {
		conf_errors_add(w->errors, n->pos, "`%s` is %s, or a path with a `/` in it, not `%.60s`%s", k->name,
				k->words[0] == '|' ? "stderr" : "stdout, stderr, off", n->text.p,
				conf_walk_hint(w, &near));
	}
}

/* True when `name` may be changed; an error otherwise. */
static bool header_ok(struct conf_walk *w, struct str name, struct conf_pos pos)
{
	const char *why = conf_header_refused(name);

	if (!conf_is_token(name))
		conf_errors_add(w->errors, pos, "`%.60s` is not a header name", name.p);
	else if (why)
		conf_errors_add(w->errors, pos, "`%.60s` %s", name.p, why);
	return conf_is_token(name) && !why;
}

/* Appends, unless it is there already. */
static void header_add(struct conf_walk *w, struct conf_header_list *list, struct str name, struct str value,
		       struct conf_pos pos)
{
	for (size_t i = 0; i < list->count; i++) {
		if (!str_ieq(list->items[i].name, name))
			continue;
		conf_errors_add(w->errors, pos, "`%.60s` is there twice: names are the same in any case", name.p);
		return;
	}
	list->items[list->count++] = (struct conf_header){pos, conf_walk_dup(w, name), conf_walk_dup(w, value)};
}

static bool headers_make(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, size_t count,
			 struct conf_header_list *list)
{
	*list = (struct conf_header_list){0};
	if (count > HEADERS_MAX) {
		conf_errors_add(w->errors, n->pos, "`%s` has more than %d headers", k->name, HEADERS_MAX);
		return false;
	}
	list->items = conf_walk_alloc(w, count * sizeof *list->items);
	return list->items;
}

void conf_read_header_map(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	if (n->kind != CONF_NODE_MAP) {
		if (n->kind != CONF_NODE_BAD)
			conf_errors_add(w->errors, n->pos, "`%s` needs a map of names and values, not %s", k->name,
					conf_node_what(n));
		return;
	}
	if (!headers_make(w, k, n, n->count, at))
		return;
	for (const struct conf_node *c = n->first; c; c = c->next) {
		bool ok = header_ok(w, c->key, c->key_pos);

		if (c->kind == CONF_NODE_LIST || c->kind == CONF_NODE_MAP)
			conf_errors_add(w->errors, c->pos, "a header's value is a text, not %s", conf_node_what(c));
		else if (c->kind == CONF_NODE_TEXT && value_ok(w, c) && ok)
			header_add(w, at, c->key, c->text, c->key_pos);
	}
}

void conf_read_header_names(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	size_t count;
	const struct conf_node *c = conf_walk_items(w, k, n, &count);

	if (!headers_make(w, k, n, count, at))
		return;
	for (; count; count--, c = c->next)
		if (conf_walk_text(w, k, c) && header_ok(w, c->text, c->pos))
			header_add(w, at, c->text, STR(""), c->pos);
}

/* `unix:` in a list; without quotes YAML takes it for a key without a value. */
static struct str network_text(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n)
{
	if (n->kind == CONF_NODE_MAP && n->count == 1 && str_eq(n->first->key, STR("unix")) &&
	    n->first->kind == CONF_NODE_TEXT && !n->first->text.n)
		return STR("unix:");
	return conf_walk_text(w, k, n) ? n->text : (struct str){NULL, 0};
}

void conf_read_networks(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	struct conf_cidr_list list = {0};
	size_t count;
	const struct conf_node *c = conf_walk_items(w, k, n, &count);

	if (c == n && str_eq(n->text, str_of(k->words)))
		count = 0;
	else if (n->kind == CONF_NODE_LIST && !count && strcmp(k->words, "all") == 0)
		conf_errors_add(w->errors, n->pos, "`%s` is an empty list; leave it out, or write `all`", k->name);
	list.items = conf_walk_alloc(w, count * sizeof *list.items);
	if (!list.items)
		return;
	for (; count; count--, c = c->next) {
		struct str text = network_text(w, k, c);
		const char *wrong = text.n ? conf_read_cidr(text, &list.items[list.count]) : NULL;

		if (!text.n)
			continue;
		if (wrong)
			conf_errors_add(w->errors, c->pos, "`%.60s`: %s", text.p, wrong);
		else
			list.items[list.count++].pos = c->pos;
	}
	*(struct conf_cidr_list *)at = list;
}

static void lower(struct str s)
{
	char *p = (char *)s.p;	/* a copy of our own */

	for (size_t i = 0; i < s.n; i++)
		if (p[i] >= 'A' && p[i] <= 'Z')
			p[i] = (char)(p[i] + 32);
}

void conf_read_protocols(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	struct conf_str_list list = {0};
	size_t count;
	const struct conf_node *c = conf_walk_items(w, k, n, &count);

	if (c == n && str_eq(n->text, STR("off")))
		count = 0;
	list.items = conf_walk_alloc(w, count * sizeof *list.items);
	if (!list.items)
		return;
	for (; count; count--, c = c->next) {
		if (!conf_walk_text(w, k, c))
			continue;
		if (str_ieq(c->text, STR("h2c"))) {
			conf_errors_add(w->errors, c->pos, "`h2c` cannot be upgraded to: it would carry requests past the routes");
		} else if (!conf_is_token(c->text)) {
			conf_errors_add(w->errors, c->pos, "`%.60s` is not the name of a protocol", c->text.p);
		} else {
			struct str copy = conf_walk_dup(w, c->text);

			if (copy.n)
				lower(copy);
			list.items[list.count++] = copy;
		}
	}
	*(struct conf_str_list *)at = list;
}
