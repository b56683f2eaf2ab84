/*
 * walk: the nodes of a file, read by the table of keys.
 *
 * Purpose   find each key's row, let its type read the value, apply defaults; no
 *           code here, or anywhere, is about one key of a map.
 * Owns      the templates: what a listener, service or route is before its keys.
 * Called by conf.c; calls the readers of number.c, value.c, place.c and route.c.
 * Never     stops at an error: the rest of the file is read, to find the others.
 * Invariant the top level is read in the order of the table, not of the file.
 */
#include "conf/walk.h"

#include "conf/odd.h"
#include "conf/slip.h"
#include "lib/base/check.h"

void *conf_walk_alloc(struct conf_walk *w, size_t n)
{
	void *p = arena_alloc(&w->conf->arena, n ? n : 1);

	if (p)
		memset(p, 0, n);
	else
		w->errors->no_memory = true;
	return p;
}

struct str conf_walk_dup(struct conf_walk *w, struct str s)
{
	struct str copy = conf_dup(&w->conf->arena, s);

	if (copy.p)
		return copy;
	w->errors->no_memory = true;
	return STR("");
}

/* `{path}` without quotes. */
static bool is_placeholder(const struct conf_node *n)
{
	return n->kind == CONF_NODE_MAP && n->count == 1 && n->first->kind == CONF_NODE_TEXT && !n->first->text.n;
}

bool conf_walk_text(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n)
{
	if (n->kind == CONF_NODE_BAD)
		return false;
	if (n->kind == CONF_NODE_TEXT && n->text.n)
		return true;
	conf_errors_add(w->errors, n->pos, "`%s` needs a text, not %s%s", k->name, conf_node_what(n),
			is_placeholder(n) ? "; quote a value that begins with `{`" : "");
	return false;
}

const struct conf_node *conf_walk_items(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n,
					size_t *count)
{
	*count = 0;
	if (n->kind == CONF_NODE_LIST)
		*count = n->count;
	else if (n->kind == CONF_NODE_TEXT && n->text.n)
		*count = 1;
	else if (n->kind != CONF_NODE_BAD)
		conf_errors_add(w->errors, n->pos, "`%s` needs a text or a list of them, not %s", k->name,
				conf_node_what(n));
	return !*count ? NULL : n->kind == CONF_NODE_LIST ? n->first : n;
}

const char *conf_walk_hint(struct conf_walk *w, const struct conf_near *near)
{
	char text[128], *p;
	int n;

	if (!near->best.n)
		return "";
	n = snprintf(text, sizeof text, ", did you mean `%.*s`?", (int)near->best.n, near->best.p);
	p = arena_alloc(w->scratch, (size_t)n + 1);
	if (!p)
		return "";
	memcpy(p, text, (size_t)n + 1);
	return p;
}

int conf_word_find(const char *words, struct str s, struct conf_near *near)
{
	for (int i = 0;; i++) {
		size_t n = strcspn(words, "|");
		struct str word = {words, n};

		if (n && str_eq(word, s))
			return i;
		if (near && n)
			conf_near_try(near, word);
		if (!words[n])
			return -1;
		words += n + 1;
	}
}

static const struct conf_key *key_find(enum conf_noun noun, struct str name, struct conf_near *near)
{
	size_t count;
	const struct conf_key *keys = conf_keys(&count);

	for (size_t i = 0; i < count; i++)
		if (conf_key_in(&keys[i], noun) && str_eq(str_of(keys[i].name), name))
			return &keys[i];
	for (size_t i = 0; near && i < count; i++)
		if (conf_key_in(&keys[i], noun))
			conf_near_try(near, str_of(keys[i].name));
	return NULL;
}

/* What to say about a key that no other key is near to: ": why; its keys are ...". */
static void key_lost(enum conf_noun noun, struct str name, char *out, size_t size)
{
	static const char tls[] = "tls|ssl|https|cert|certificate|certificates";
	size_t count, used;
	const struct conf_key *keys = conf_keys(&count);
	const char *before = "; its keys are";

	used = (size_t)snprintf(out, size, "%s",
				conf_word_find(tls, name, NULL) >= 0 ? ": TLS is `tls` of a listener or of a service" : "");
	for (size_t i = 0; i < count && used < size; i++) {
		if (!conf_key_in(&keys[i], noun))
			continue;
		used += (size_t)snprintf(out + used, size - used, "%s `%s`", before, keys[i].name);
		before = ",";
	}
}

static void key_unknown(struct conf_walk *w, enum conf_noun noun, const struct conf_node *n,
			const struct conf_near *near)
{
	size_t count;
	const struct conf_key *keys = conf_keys(&count), *other = NULL;
	const char *slip = conf_slip_key(n->key);
	char rest[400];

	for (size_t i = 0; i < count && !other; i++)
		if (str_eq(str_of(keys[i].name), n->key))
			other = &keys[i];
	if (*slip)
		snprintf(rest, sizeof rest, "%s", slip);
	else if (near->best.n)
		snprintf(rest, sizeof rest, "%s", conf_walk_hint(w, near));
	else if (other)
		snprintf(rest, sizeof rest, "; it is a key of %s", conf_noun_name(other->noun));
	else
		key_lost(noun, n->key, rest, sizeof rest);
	conf_errors_add(w->errors, n->key_pos, "unknown key `%.80s` in %s%s", n->key.p, conf_noun_name(noun), rest);
}

/* Where the struct is that a key belongs to; in `defaults` that is a template. */
static char *key_base(struct conf_walk *w, const struct conf_key *k, enum conf_noun noun, void *base)
{
	if (noun != CONF_DEFAULTS)
		return base;
	if (k->noun == CONF_LISTEN)
		return (char *)&w->listen;
	return k->noun == CONF_SERVICE ? (char *)&w->service : (char *)&w->route;
}

static void keys_required(struct conf_walk *w, enum conf_noun noun, const struct conf_node *map)
{
	size_t count;
	const struct conf_key *keys = conf_keys(&count);

	for (size_t i = 0; i < count; i++)
		if (keys[i].noun == noun && keys[i].required && !conf_node_child(map, keys[i].name))
			conf_errors_add(w->errors, map->pos, "%s needs `%s`", conf_noun_name(noun), keys[i].name);
}

/* A map as a text alone: what to write for it. */
static void short_form(enum conf_noun noun, struct str s, char *out, size_t size)
{
	static const char *const forms[CONF_NOUNS] = {
		[CONF_REDIRECT] = "redirect: {to", [CONF_ANSWER] = "answer: {body",
		[CONF_BASIC_AUTH] = "basic_auth: {file", [CONF_CORS] = "cors: {origins",
	};
	const char *key = forms[noun], *quote = "";

	*out = '\0';
	if (!key || !s.n || s.n > 80 || (noun == CONF_CORS && !strpbrk(s.p, "*/")))
		return;
	if (noun == CONF_ANSWER && strspn(s.p, "0123456789") == s.n)
		key = "answer: {status";
	if (noun == CONF_REDIRECT && (str_eq(s, STR("http")) || str_eq(s, STR("https"))))
		key = "redirect: {scheme";
	if (strcspn(s.p, "{}[],#&*!|>'\"%@` ") != s.n)
		quote = strchr(s.p, '"') ? "'" : "\"";
	snprintf(out, size, ": write `%s: %s%s%s}`", key, quote, s.p, quote);
}

static bool is_map(struct conf_walk *w, enum conf_noun noun, const struct conf_node *n)
{
	char form[128] = "";

	if (n->kind == CONF_NODE_TEXT)
		short_form(noun, n->text, form, sizeof form);
	if (n->kind != CONF_NODE_MAP && n->kind != CONF_NODE_BAD)
		conf_errors_add(w->errors, n->pos, "%s is a map of keys, not %s%s", conf_noun_name(noun),
				conf_node_what(n), form);
	return n->kind == CONF_NODE_MAP;
}

bool conf_walk_map(struct conf_walk *w, enum conf_noun noun, const struct conf_node *map, void *base)
{
	bool known = true;

	if (!is_map(w, noun, map))
		return false;
	for (const struct conf_node *n = map->first; n; n = n->next) {
		struct conf_near near = {.word = n->key};
		const struct conf_key *k = key_find(noun, n->key, &near);

		if (k)
			conf_reader_of(k->type)(w, k, n, key_base(w, k, noun, base) + k->at);
		else
			key_unknown(w, noun, n, &near);
		known = known && k;
	}
	if (known)
		keys_required(w, noun, map);
	return known;
}

bool conf_walk_map_or_off(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *base, size_t size)
{
	memset(base, 0, size);
	if (n->kind == CONF_NODE_TEXT && str_eq(n->text, STR("off")))
		return false;
	conf_walk_default(w, k->sub, base);
	conf_walk_map(w, k->sub, n, base);
	return true;
}

/* The value that `k` takes from another key of the top level's maps. */
static void key_inherit(struct conf_walk *w, const struct conf_key *k, void *at)
{
	size_t n = strcspn(k->inherits, ".");
	const struct conf_key *map = key_find(CONF_TOP, (struct str){k->inherits, n}, NULL);
	const struct conf_key *from = map ? key_find(map->sub, str_of(k->inherits + n + 1), NULL) : NULL;

	CHECK(from && from->type == k->type);
	memcpy(at, (char *)w->conf + map->at + from->at, sizeof(uint64_t));
}

static void key_default(struct conf_walk *w, const struct conf_key *k, char *base);

void conf_walk_default(struct conf_walk *w, enum conf_noun noun, void *base)
{
	size_t count;
	const struct conf_key *keys = conf_keys(&count);

	for (size_t i = 0; i < count; i++)
		if (keys[i].noun == noun)
			key_default(w, &keys[i], base);
}

static void key_default(struct conf_walk *w, const struct conf_key *k, char *base)
{
	void *at = base + k->at;

	if (k->inherits) {
		key_inherit(w, k, at);
	} else if (k->fallback) {
		struct conf_node n = {.kind = CONF_NODE_TEXT, .text = str_of(k->fallback)};

		conf_reader_of(k->type)(w, k, &n, at);
	} else if (k->type == CONF_T_MAP) {
		conf_walk_default(w, k->sub, at);
	} else if (k->type == CONF_T_TEXT || k->type == CONF_T_NEW_PREFIX || k->type == CONF_T_NEW_PATH || k->type == CONF_T_NEW_HOST ||
		   k->type == CONF_T_TARGET || k->type == CONF_T_SIGN_IN) {
		*(struct str *)at = STR("");
	} else if (k->type == CONF_T_TLS_FILE || k->type == CONF_T_TLS_NAME) {
		*(struct conf_text *)at = (struct conf_text){.text = STR("")};
	} else if (k->type == CONF_T_HEADER_MAP || k->type == CONF_T_HEADER_NAMES) {
		*(struct conf_header_list *)at = (struct conf_header_list){0};
	}
}

static void templates_make(struct conf_walk *w)
{
	memset(&w->listen, 0, sizeof w->listen);
	memset(&w->service, 0, sizeof w->service);
	memset(&w->route, 0, sizeof w->route);
	w->listen.address.path = w->listen.address.text = w->service.name = STR("");
	conf_walk_default(w, CONF_LISTEN, &w->listen);
	conf_walk_default(w, CONF_SERVICE, &w->service);
	conf_walk_default(w, CONF_ROUTE, &w->route);
}

static void top_key(struct conf_walk *w, const struct conf_key *k, const struct conf_node *root)
{
	const struct conf_node *n = conf_node_child(root, k->name);

	if (k->type == CONF_T_DEFAULTS)
		templates_make(w);
	if (!n || k->type == CONF_T_MAP)
		key_default(w, k, (char *)w->conf);
	if (n)
		conf_reader_of(k->type)(w, k, n, (char *)w->conf + k->at);
}

static bool keys_known(struct conf_walk *w, const struct conf_node *root)
{
	bool known = true;

	for (const struct conf_node *n = root->first; n; n = n->next) {
		struct conf_near near = {.word = n->key};

		if (key_find(CONF_TOP, n->key, &near))
			continue;
		key_unknown(w, CONF_TOP, n, &near);
		known = false;
	}
	return known;
}

/* Whether a listener wants routes, or none could be read. */
static bool speaks_http(const struct conf *c)
{
	bool http = !c->listen_count;

	for (size_t i = 0; i < c->listen_count; i++)
		http = http || (c->listens[i].speaks == CONF_SPEAKS_HTTP && !c->listens[i].redirects);
	return http;
}

void conf_walk_file(struct conf_walk *w, const struct conf_node *root)
{
	bool known;
	size_t count;
	const struct conf_key *keys = conf_keys(&count);

	if (!is_map(w, CONF_TOP, root))
		return;
	known = keys_known(w, root);
	for (size_t i = 0; i < count; i++)
		if (keys[i].noun == CONF_TOP)
			top_key(w, &keys[i], root);
	if (known && !conf_node_child(root, "routes") && speaks_http(w->conf))
		conf_errors_add(w->errors, root->pos, "nothing to serve: there are no `routes`");
	conf_check_limits(w, root);
	if (!conf_errors_any(w->errors))
		conf_odd_note(w, root);
}
