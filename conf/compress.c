/*
 * compress: the readers of what a route compresses, and how.
 *
 * Purpose   `compress` as a switch or a map, its codings and its media types.
 * Owns      the types that `common` stands for; results are in the tree's arena.
 * Called by walk.c through conf_reader_of().
 * Never     compresses anything.
 */
#include "conf/scalar.h"
#include "conf/walk.h"

#define TYPES_MAX 100
#define TYPE_MAX 127	/* bytes of one of them (RFC 6838 4.2) */

/* What is text in the end, and nothing that is compressed already. */
static const struct str common[] = {
	{"text/*", 6}, {"application/json", 16}, {"application/*+json", 18}, {"application/javascript", 22},
	{"application/x-javascript", 24}, {"application/xml", 15}, {"application/*+xml", 17}, {"image/svg+xml", 13},
	{"application/wasm", 16}, {"application/x-ndjson", 20}, {"application/vnd.ms-fontobject", 29}, {"font/ttf", 8},
	{"font/otf", 8}, {"image/bmp", 9}, {"image/x-icon", 12},
};

#define COMMON (sizeof common / sizeof common[0])

void conf_read_compress(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	struct conf_compress *c = at;
	bool on = true;

	if (n->kind == CONF_NODE_BAD)
		return;
	if (n->kind == CONF_NODE_LIST || (n->kind == CONF_NODE_TEXT && conf_read_bool(n->text, &on))) {
		conf_errors_add(w->errors, n->pos, "`%s` is on, off or a map, not %s", k->name, conf_node_what(n));
		return;
	}
	memset(c, 0, sizeof *c);
	if (!on)
		return;
	conf_walk_default(w, k->sub, c);
	if (n->kind == CONF_NODE_MAP)
		conf_walk_map(w, k->sub, n, c);
	c->on = true;
}

static bool coding_add(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, struct conf_compress *c)
{
	struct conf_near near = {.word = n->text};
	int found;

	if (!conf_walk_text(w, k, n))
		return false;
	found = conf_word_find(k->words, n->text, &near);
	if (found < 0) {
		conf_errors_add(w->errors, n->pos, "`%.60s` is not one of zstd, br and gzip%s", n->text.p,
				conf_walk_hint(w, &near));
		return false;
	}
	for (size_t i = 0; i < c->coding_count; i++) {
		if (c->codings[i] == (enum conf_coding)found) {
			conf_errors_add(w->errors, n->pos, "`%s` is there twice", n->text.p);
			return false;
		}
	}
	c->codings[c->coding_count++] = (enum conf_coding)found;
	return true;
}

void conf_read_codings(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	struct conf_compress *c = at;
	size_t count;
	const struct conf_node *item = conf_walk_items(w, k, n, &count);

	if (!count && n->kind == CONF_NODE_LIST)
		conf_errors_add(w->errors, n->pos, "`%s` is an empty list; write `compress: off`", k->name);
	c->coding_count = 0;
	if (item == n && str_eq(n->text, STR("all"))) {
		while (c->coding_count < CONF_CODINGS) {
			c->codings[c->coding_count] = (enum conf_coding)c->coding_count;
			c->coding_count++;
		}
		return;
	}
	for (; count; count--, item = item->next)
		if (!coding_add(w, k, item, c))
			return;
}

/* What is wrong with `s` as a type or a kind of types, or NULL. */
static const char *type_wrong(struct str s)
{
	const char *slash = memchr(s.p, '/', s.n), *star;
	struct str type, rest;
	size_t stars = 0;

	if (!slash || s.n > TYPE_MAX)
		return "is not a media type such as `text/html`, `text/*` or `application/*+json`";
	type = (struct str){s.p, (size_t)(slash - s.p)};
	rest = (struct str){slash + 1, s.n - type.n - 1};
	if (memchr(type.p, '*', type.n))
		return "has a `*` before the `/`; name the types, since most others are compressed already";
	if (!conf_is_token(type) || !conf_is_token(rest))
		return "is not a media type such as `text/html`, `text/*` or `application/*+json`";
	for (star = rest.p; star < rest.p + rest.n; star++)
		stars += *star == '*';
	return stars > 1 ? "has more than one `*`" : NULL;
}

static void type_add(struct conf_walk *w, const struct conf_node *n, struct conf_str_list *list)
{
	const char *wrong;

	if (str_eq(n->text, STR("common"))) {
		memcpy(list->items + list->count, common, sizeof common);
		list->count += COMMON;
		return;
	}
	wrong = type_wrong(n->text);
	if (wrong)
		conf_errors_add(w->errors, n->pos, "`%.130s` %s", n->text.p, wrong);
	else
		list->items[list->count++] = conf_walk_dup(w, n->text);
}

void conf_read_types(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	struct conf_str_list list = {0};
	size_t count;
	const struct conf_node *item = conf_walk_items(w, k, n, &count);

	if (item == n && str_eq(n->text, STR("common"))) {
		*(struct conf_str_list *)at = (struct conf_str_list){(struct str *)(uintptr_t)common, COMMON};	/* never written to */
		return;
	}
	if (!count && n->kind == CONF_NODE_LIST)
		conf_errors_add(w->errors, n->pos, "`%s` is an empty list; write `compress: off`", k->name);
	if (count > TYPES_MAX) {
		conf_errors_add(w->errors, n->pos, "`%s` has more than %d items", k->name, TYPES_MAX);
		return;
	}
	list.items = conf_walk_alloc(w, (count + COMMON * count) * sizeof *list.items);
	for (; list.items && count; count--, item = item->next)
		if (conf_walk_text(w, k, item))
			type_add(w, item, &list);
	*(struct conf_str_list *)at = list;
}
