/*
 * basic: the readers of basic auth.
 *
 * Purpose   whose password is asked for, and what endpoints get to see of it.
 * Owns      nothing; results are in the tree's arena.
 * Called by walk.c through conf_reader_of().
 * Never     opens the file of users: proxy does, when it makes the route.
 */
#include "conf/walk.h"

void conf_read_basic_auth(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	struct conf_basic_auth *b = at;

	if (n->kind == CONF_NODE_BAD)
		return;
	if (!conf_walk_map_or_off(w, k, n, b, sizeof *b))
		b->realm = b->user_header = STR("");
	if (!b->file.p)
		b->file = STR("");
}

void conf_read_file(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	if (!conf_walk_text(w, k, n))
		return;
	if (memchr(n->text.p, '\0', n->text.n))
		conf_errors_add(w->errors, n->pos, "`%s` is a path, and has no NUL in it", k->name);
	else
		*(struct str *)at = conf_walk_dup(w, n->text);
}

void conf_read_header(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	const char *why;

	if (!conf_walk_text(w, k, n))
		return;
	if (str_eq(n->text, STR("off"))) {
		*(struct str *)at = STR("");
		return;
	}
	why = conf_header_refused(n->text);
	if (!conf_is_token(n->text) || n->text.n > 256)
		conf_errors_add(w->errors, n->pos, "`%.60s` is not a header name", n->text.p);
	else if (why)
		conf_errors_add(w->errors, n->pos, "`%.60s` %s", n->text.p, why);
	else
		*(struct str *)at = conf_walk_dup(w, n->text);
}
