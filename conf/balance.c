/*
 * balance: the readers of what says which endpoint gets a request, and how much of them.
 *
 * Purpose   `balance: round_robin`, `balance: {hash: {header: X-User}}`, `balance: {sticky: {cookie: home}}`;
 *           `{address: 10.0.0.1:80, weight: 3, state: drain}`.
 * Owns      nothing; results are in the tree's arena.
 * Called by walk.c through conf_reader_of(); place.c for endpoints.
 * Never     chooses one: that is dispatch.
 */
#include "conf/scalar.h"
#include "conf/walk.h"

#define KEY_MIN 16
#define KEY_MAX 256
#define NAME_MAX_LEN 256

void conf_read_balance(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	static const char *const ways[] = {"hash", "sticky"};
	struct conf_balance *b = at;
	struct conf_near near = {.word = n->text};
	int i;

	*b = (struct conf_balance){.name = STR(""), .key = STR("")};
	if (n->kind == CONF_NODE_MAP) {
		const struct conf_node *hash = conf_node_child(n, ways[0]), *sticky = conf_node_child(n, ways[1]);
		const struct conf_node *bound = conf_node_child(n, "bound");

		conf_walk_map(w, k->sub, n, at);
		if (bound && !hash)
			conf_errors_add(w->errors, bound->key_pos, "`bound` is for `hash`");
		else if (hash && sticky)
			conf_errors_add(w->errors, sticky->key_pos, "`hash` or `sticky`, not both");
		else if (!n->count)
			conf_errors_add(w->errors, n->pos, "`%s` is an empty map: it has `hash` or `sticky`", k->name);
		return;
	}
	if (!conf_walk_text(w, k, n))
		return;
	i = conf_word_find(k->words, n->text, &near);
	if (i >= 0) {
		b->kind = (enum conf_balance_kind)i;
		return;
	}
	for (i = 0; i < 2; i++) {
		if (!str_eq(n->text, str_of(ways[i])))
			continue;
		conf_errors_add(w->errors, n->pos, "`%s` needs to know by what: write `%s: {%s}`", ways[i], k->name,
				i ? "sticky: {cookie: NAME}" : "hash: address");
		return;
	}
	conf_errors_add(w->errors, n->pos, "`%s` is least, round_robin, or a map with `hash` or `sticky`, not `%.60s`%s", k->name,
			n->text.p, conf_walk_hint(w, &near));
}

void conf_read_hash(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	struct conf_balance *b = at;
	struct conf_near near = {.word = n->text};
	int i;

	b->kind = CONF_BALANCE_HASH;
	if (n->kind == CONF_NODE_MAP) {
		conf_walk_map(w, k->sub, n, at);
		if (n->count != 1)
			conf_errors_add(w->errors, n->pos, "`%s` goes by one thing: `header`, `cookie` or `query`", k->name);
		return;
	}
	if (!conf_walk_text(w, k, n))
		return;
	i = conf_word_find(k->words, n->text, &near);
	if (i >= 0)
		b->by = i ? CONF_HASH_PATH : CONF_HASH_ADDRESS;
	else
		conf_errors_add(w->errors, n->pos, "`%s` is address, path, or a map such as `{header: NAME}`, not `%.60s`%s", k->name,
				n->text.p, conf_walk_hint(w, &near));
}

/* The name of what the choice goes by; which kind of thing that is the key says. */
void conf_read_hash_name(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	struct conf_balance *b = at;
	bool query = *k->name == 'q', header = *k->name == 'h';

	if (!conf_walk_text(w, k, n))
		return;
	if (n->text.n > NAME_MAX_LEN || (!query && !conf_is_token(n->text)) || (query && strcspn(n->text.p, "&#= ") != n->text.n)) {
		conf_errors_add(w->errors, n->pos, "`%.60s` is not the name of a %s", n->text.p,
				header ? "header" : query ? "query parameter" : "cookie");
		return;
	}
	if (header && conf_header_refused(n->text))
		conf_errors_add(w->errors, n->pos, "`%.60s` is not among the fields that requests are told apart by", n->text.p);
	b->by = query ? CONF_HASH_QUERY : header ? CONF_HASH_HEADER : CONF_HASH_COOKIE;
	b->name = conf_walk_dup(w, n->text);
}

void conf_read_sticky(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	struct conf_balance *b = at;

	conf_walk_default(w, k->sub, at);
	b->kind = CONF_BALANCE_STICKY;
	conf_walk_map(w, k->sub, n, at);
}

void conf_read_sticky_key(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	if (!conf_walk_text(w, k, n))
		return;
	if (n->text.n < KEY_MIN || n->text.n > KEY_MAX)	/* and not a byte of it in the message */
		conf_errors_add(w->errors, n->pos, "`%s` has %d to %d bytes, as `openssl rand -hex 16` makes them", k->name, KEY_MIN, KEY_MAX);
	else
		*(struct str *)at = conf_walk_dup(w, n->text);
}
