/*
 * route: the readers of routes.
 *
 * Purpose   whose requests a route is for, and what becomes of them.
 * Owns      nothing; results are in the tree's arena.
 * Called by walk.c through conf_reader_of().
 * Never     matches a request: that is dispatch.
 * Invariant a route of the tree has one action, and at least one match (match.c).
 */
#include "conf/slip.h"
#include "conf/walk.h"

#include <stdlib.h>

#define BACKENDS_MAX 1024	/* services of one route */
#define WEIGHT_MAX 1000000
#define WAYS_MAX 65536	/* of a route: hosts x matches x methods, where more than hosts multiply */

struct str conf_host_dup(struct conf_walk *w, struct str s)
{
	struct str copy;
	char *p;

	if (s.n > 1 && s.p[s.n - 1] == '.')
		s.n--;	/* `example.com.` is the same host */
	copy = conf_walk_dup(w, s);
	p = (char *)copy.p;
	for (size_t i = 0; i < copy.n; i++)
		if (p[i] >= 'A' && p[i] <= 'Z')
			p[i] = (char)(p[i] + 32);
	return copy;
}

void conf_read_hosts(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	struct conf_str_list list = {0};
	size_t count;
	const struct conf_node *c = conf_walk_items(w, k, n, &count);

	if (!count && n->kind == CONF_NODE_LIST)
		conf_errors_add(w->errors, n->pos, "`host` is an empty list; leave it out for any host");
	list.items = conf_walk_alloc(w, count * sizeof *list.items);
	if (!list.items)
		return;
	for (; count; count--, c = c->next) {
		struct str host;
		const char *wrong;

		if (!conf_walk_text(w, k, c))
			continue;
		host = conf_host_dup(w, c->text);
		wrong = host.n ? conf_host_wrong(host) : NULL;
		if (wrong)
			conf_errors_add(w->errors, c->pos, "`%.80s` %s", c->text.p, wrong);
		else
			list.items[list.count++] = host;
	}
	*(struct conf_str_list *)at = list;
}

const char *conf_location_wrong(struct str s)
{
	struct str host;

	for (size_t i = 0; i < s.n; i++)
		if ((unsigned char)s.p[i] <= 0x20 || (unsigned char)s.p[i] >= 0x7f || strchr("<>\"\\^`|", s.p[i]))
			return "has a byte that a URL cannot have";
	if (s.p[0] == '/')
		return str_starts(s, STR("//")) || str_starts(s, STR("/{path}"))
			? "begins with two slashes, which is another host to a browser" : NULL;
	if (str_starts(s, STR("http://")))
		host = (struct str){s.p + 7, s.n - 7};
	else if (str_starts(s, STR("https://")))
		host = (struct str){s.p + 8, s.n - 8};
	else
		return "must begin with http://, https:// or /";
	if (!host.n || host.p[0] == '/' || str_starts(host, STR("{path}")))
		return "has no host";
	return NULL;
}

/* Takes one part off the front of `s`; false when it is no placeholder. */
static bool part_take(struct str *s, struct conf_part *part)
{
	static const struct { struct str name; enum conf_part_kind kind; } places[] = {
		{{"{host}", 6}, CONF_PART_HOST}, {{"{path}", 6}, CONF_PART_PATH},
	};
	size_t n = 0;

	for (size_t i = 0; i < 2; i++) {
		if (!str_starts(*s, places[i].name))
			continue;
		*part = (struct conf_part){places[i].kind, STR("")};
		s->p += 6;
		s->n -= 6;
		return true;
	}
	while (n < s->n && s->p[n] != '{' && s->p[n] != '}')
		n++;
	*part = (struct conf_part){CONF_PART_TEXT, {s->p, n}};
	s->p += n;
	s->n -= n;
	return n > 0;
}

void conf_read_target(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	struct conf_redirect *r = at;
	struct str left;
	const char *wrong;

	if (!conf_walk_text(w, k, n))
		return;
	wrong = conf_location_wrong(n->text);
	if (wrong) {
		conf_errors_add(w->errors, n->pos, "`%.80s` %s", n->text.p, wrong);
		return;
	}
	r->to = left = conf_walk_dup(w, n->text);
	/* A placeholder has six bytes, and at most one text stands before each. */
	r->parts = conf_walk_alloc(w, (n->text.n / 3 + 2) * sizeof *r->parts);
	while (r->parts && left.n) {
		struct conf_part *part = &r->parts[r->part_count];

		if (!part_take(&left, part)) {
			conf_errors_add(w->errors, n->pos, "`%.20s` is no placeholder; there are {host} and {path}",
					left.p);
			return;
		}
		part->text = conf_walk_dup(w, part->text);
		r->part_count++;
	}
}

struct conf_service *conf_service_find(struct conf_walk *w, struct str name, struct conf_pos pos)
{
	struct conf_near near = {.word = name};
	size_t low = 0, high = w->conf->service_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int rc = conf_str_compare(w->by_name[middle]->name, name);

		if (!rc) {
			w->by_name[middle]->used = true;
			return w->by_name[middle];
		}
		if (rc < 0)
			low = middle + 1;
		else
			high = middle;
	}
	for (size_t i = 0; i < w->conf->service_count && w->errors->count < CONF_ERRORS_MAX; i++)
		conf_near_try(&near, w->by_name[i]->name);
	conf_errors_add(w->errors, pos, "there is no service `%.80s`%s", name.p, conf_walk_hint(w, &near));
	return NULL;
}

static void backends_read(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, struct conf_route *r)
{
	static const struct conf_key weight = {.name = "weight", .type = CONF_T_COUNT, .max = WEIGHT_MAX};
	uint64_t sum = 0;

	if (!n->count || n->count > BACKENDS_MAX) {
		conf_errors_add(w->errors, n->pos, n->count ? "`%s` has more than %d names" : "`%s` is an empty map", k->name,
				BACKENDS_MAX);
		return;
	}
	r->backends = conf_walk_alloc(w, n->count * sizeof *r->backends);
	for (const struct conf_node *c = n->first; c && r->backends; c = c->next) {
		struct conf_backend *b = &r->backends[r->backend_count];

		b->service = conf_service_find(w, c->key, c->key_pos);
		conf_read_number(w, &weight, c, &b->weight);
		sum += b->weight;
		r->backend_count++;
	}
	if (r->backends && !sum)
		conf_errors_add(w->errors, n->pos, "nobody serves this route: no weight is above 0");
}

void conf_read_service_name(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	struct conf_route *r = at;

	if (n->kind == CONF_NODE_MAP)
		backends_read(w, k, n, r);
	else if (conf_walk_text(w, k, n))
		r->service = conf_service_find(w, n->text, n->pos);
}

static void action_check(struct conf_walk *w, const struct conf_node *n, bool known, struct conf_route *r)
{
	static const char *const actions[] = {"service", "redirect", "answer"};
	const char *first = NULL;

	for (unsigned i = 0; i < 3; i++) {
		const struct conf_node *c = conf_node_child(n, actions[i]);

		if (!c)
			continue;
		if (first)
			conf_errors_add(w->errors, c->key_pos, "a route has one action: `%s` or `%s`", first, actions[i]);
		else
			r->action = (enum conf_action)i;
		first = actions[i];
	}
	if (!first && known)
		conf_errors_add(w->errors, n->pos, "a route needs `service`, `redirect` or `answer`");
}

static void answer_check(struct conf_walk *w, const struct conf_node *n, const struct conf_answer *a)
{
	const struct conf_node *body = conf_node_child(conf_node_child(n, "answer"), "body");

	if (body && a->body.n && (a->status == 204 || a->status == 205 || a->status == 304))
		conf_errors_add(w->errors, body->key_pos, "an answer with status %u has no body", a->status);
}

/* Whether all matches have the same prefix, for `key` to be taken off or replaced; else an error. */
static bool prefix_check(struct conf_walk *w, const struct conf_node *key, const struct conf_route *r)
{
	for (size_t i = 0; i < r->match_count; i++) {
		const struct conf_match *m = &r->matches[i];

		if (m->path_kind == CONF_PATH_PREFIX && str_eq(m->path, r->matches->path))
			continue;
		conf_errors_add(w->errors, key->key_pos, m->path_kind == CONF_PATH_PREFIX
				? "`%s` needs the same prefix in all matches" : "`%s` needs a path that is a prefix",
				key->key.p);
		return false;
	}
	return true;
}

/* What changes a request's path or host on its way to a service. */
static void rewrite_check(struct conf_walk *w, const struct conf_node *n, const struct conf_route *r)
{
	const struct conf_node *strip = r->strip_prefix ? conf_node_child(n, "strip_prefix") : NULL,
		*swap = conf_node_child(n, "replace_prefix"), *all = conf_node_child(n, "replace_path"),
		*host = conf_node_child(n, "replace_host"), *either = strip ? strip : swap;

	if (strip && swap)
		conf_errors_add(w->errors, swap->key_pos, "`strip_prefix` or `replace_prefix`, not both");
	if (either && all)
		conf_errors_add(w->errors, all->key_pos, "`%s` or `replace_path`, not both", either->key.p);
	if (either)
		prefix_check(w, either, r);
	either = either ? either : all ? all : host;
	if (either && r->action != CONF_ACTION_SERVICE)
		conf_errors_add(w->errors, either->key_pos, "`%s` is for a route with a `service`", either->key.p);
}

static void mirror_check(struct conf_walk *w, const struct conf_node *n, const struct conf_route *r)
{
	const struct conf_node *mirror = conf_node_child(n, "mirror");

	if (mirror && r->action != CONF_ACTION_SERVICE)
		conf_errors_add(w->errors, mirror->key_pos, "`mirror` is for a route with a `service`");
}

static void new_path_check(struct conf_walk *w, const struct conf_node *path, const struct conf_route *r)
{
	const struct conf_node *full = conf_node_child(path, "replace_full"),
		*prefix = conf_node_child(path, "replace_prefix");

	if (full && prefix)
		conf_errors_add(w->errors, prefix->key_pos, "`replace_full` or `replace_prefix`, not both");
	else if (prefix)
		prefix_check(w, prefix, r);
	else if (!full && !path->count)
		conf_errors_add(w->errors, path->pos, "a new path needs `replace_full` or `replace_prefix`");
}

void conf_redirect_check(struct conf_walk *w, const struct conf_node *redirect, const struct conf_redirect *r, bool sound)
{
	static const char *const others[] = {"scheme", "host", "port", "path"};
	const struct conf_node *to = conf_node_child(redirect, "to"), *c;
	const char *wrong = r->host.n ? conf_host_wrong(r->host) : NULL;
	bool some = to;

	for (unsigned i = 0; i < 4; i++) {
		c = conf_node_child(redirect, others[i]);
		some = some || c;
		if (c && to)
			conf_errors_add(w->errors, c->key_pos, "`%s` cannot stand beside `to`, which says all of it", others[i]);
	}
	if (redirect && !some && sound)
		conf_errors_add(w->errors, redirect->pos, "a redirect needs `to`, or one of `scheme`, `host`, `port` and `path`");
	c = conf_node_child(redirect, "host");
	if (c && wrong)
		conf_errors_add(w->errors, c->pos, "`%.80s` %s", r->host.p,
				strstr(wrong, "has a port") ? "has a port: write it as `port`" : wrong);
}

static void redirect_check(struct conf_walk *w, const struct conf_node *n, const struct conf_route *r, bool sound)
{
	const struct conf_node *redirect = conf_node_child(n, "redirect"), *c = conf_node_child(redirect, "path");

	conf_redirect_check(w, redirect, &r->redirect, sound);
	if (c && c->kind == CONF_NODE_MAP)
		new_path_check(w, c, r);
}

static void matches_check(struct conf_walk *w, const struct conf_node *n, struct conf_route *r)
{
	static const char *const alone[] = {"path", "method", "headers", "query"};
	const struct conf_node *matches = conf_node_child(n, "matches");
	size_t ways = 0;

	for (unsigned i = 0; matches && i < 4; i++) {
		const struct conf_node *c = conf_node_child(n, alone[i]);

		if (c)
			conf_errors_add(w->errors, c->key_pos, "`%s` cannot stand beside `matches`: write it in each of them",
					alone[i]);
	}
	if (!r->match_count) {
		r->match.pos = r->pos;
		r->matches = &r->match;
		r->match_count = 1;
	}
	for (size_t i = 0; i < r->match_count; i++)
		ways += r->matches[i].methods.count ? r->matches[i].methods.count : 1;
	if (ways > 1 && r->hosts.count > WAYS_MAX / ways)
		conf_errors_add(w->errors, r->pos, "%zu hosts with %zu matches each are more than %d", r->hosts.count, ways,
				WAYS_MAX);
}

void conf_read_routes(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	struct conf *c = at;
	bool *sound;

	if (n->kind != CONF_NODE_LIST) {
		if (n->kind == CONF_NODE_TEXT && !n->text.n)
			conf_errors_add(w->errors, n->pos, "nothing to serve: `%s` is empty", k->name);
		else if (n->kind != CONF_NODE_BAD)
			conf_errors_add(w->errors, n->pos, "`%s` is a list, not %s%s", k->name, conf_node_what(n),
					conf_slip_key(n->first ? n->first->key : STR("")));
		return;
	}
	if (!n->count)
		conf_errors_add(w->errors, n->pos, "nothing to serve: `%s` is empty", k->name);
	c->routes = conf_walk_alloc(w, n->count * sizeof *c->routes);
	sound = arena_alloc(w->scratch, n->count + 1);
	if (!c->routes || !sound) {
		w->errors->no_memory = true;
		return;
	}
	for (const struct conf_node *item = n->first; item; item = item->next) {
		struct conf_route *r = &c->routes[c->route_count];
		size_t errors = w->errors->count + w->errors->more;
		bool known;

		*r = w->route;
		r->pos = item->pos;
		known = conf_walk_map(w, CONF_ROUTE, item, r);
		matches_check(w, item, r);
		action_check(w, item, known, r);
		answer_check(w, item, &r->answer);
		rewrite_check(w, item, r);
		mirror_check(w, item, r);
		redirect_check(w, item, r, errors == w->errors->count + w->errors->more);
		sound[c->route_count++] = errors == w->errors->count + w->errors->more;
	}
	conf_check_routes(w, sound);
}
