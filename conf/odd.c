/*
 * odd: what is right by itself and yet has no effect, or another one than it seems.
 *
 * Purpose   a person who wrote it meant something: each is noted with its place.
 * Owns      nothing; notes are in the tree's arena.
 * Called by walk.c, when a file has no error.
 * Never     notes what is only unusual: what it tells can be shown from the file alone.
 */
#include "conf/odd.h"

#include <stdarg.h>

#include "conf/scalar.h"

static void note(struct conf_walk *w, struct conf_pos pos, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void note(struct conf_walk *w, struct conf_pos pos, const char *fmt, ...)
{
	struct conf_note *n = conf_walk_alloc(w, sizeof *n);
	char text[400];
	va_list ap;

	if (!n)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	*n = (struct conf_note){pos, conf_walk_dup(w, str_of(text)), w->conf->notes};
	w->conf->notes = n;
}

/* --- time-outs --- */

static bool may_upgrade(const struct conf *c)
{
	for (size_t i = 0; i < c->listen_count; i++)
		if (c->listens[i].speaks == CONF_SPEAKS_HTTP && c->listens[i].upgrade.count)
			return true;
	return false;
}

/* Whether a listener passes bytes on, for as long as `tunnel` lets it be silent. */
static bool passes_on(const struct conf *c)
{
	for (size_t i = 0; i < c->listen_count; i++)
		if (c->listens[i].speaks != CONF_SPEAKS_HTTP)
			return true;
	return false;
}

static bool has_tls(const struct conf *c)
{
	for (size_t i = 0; i < c->listen_count; i++)
		if (c->listens[i].tls.on)
			return true;
	return false;
}

static bool has_service(const struct conf *c)
{
	for (size_t i = 0; i < c->service_count; i++)
		if (c->services[i].used)
			return true;
	return false;
}

static void route_timeouts(struct conf_walk *w, const struct conf_route *r, const struct conf_node *item)
{
	const struct conf_node *own = conf_node_child(item, "timeouts"), *tunnel = conf_node_child(own, "tunnel");

	if (own && r->action != CONF_ACTION_SERVICE)
		note(w, own->key_pos, "`timeouts` of a route without a `service` never run out");
	else if (tunnel && r->timeouts.tunnel && !may_upgrade(w->conf))
		note(w, tunnel->key_pos, "`tunnel` never runs out: no listener has a protocol to `upgrade` to");
}

/* Whether all routes that have a service have a time-out `name` of their own, and there is one. */
static bool is_overruled(const struct conf_walk *w, const struct conf_node *routes, const char *name)
{
	const struct conf_route *r = w->conf->routes;
	size_t n = 0;

	for (const struct conf_node *item = routes ? routes->first : NULL; item; item = item->next, r++) {
		if (r->action != CONF_ACTION_SERVICE)
			continue;
		if (!conf_node_child(conf_node_child(item, "timeouts"), name))
			return false;
		n++;
	}
	return n > 0;
}

static void top_timeouts(struct conf_walk *w, const struct conf_node *root)
{
	const struct conf_timeouts *t = &w->conf->timeouts;
	const struct { const char *name; uint64_t value; bool of_routes; } upstream[] = {
		{"connect", t->connect, false}, {"upstream_idle", t->upstream_idle, false},
		{"first_byte", t->first_byte, true}, {"between_bytes", t->between_bytes, true},
		{"tunnel", t->tunnel, true},
	};
	const struct conf_node *routes = conf_node_child(root, "routes");

	for (size_t i = 0; i < sizeof upstream / sizeof upstream[0]; i++) {
		const char *name = upstream[i].name;
		const struct conf_node *n = conf_node_child(conf_node_child(root, "timeouts"), name);

		if (!n || !upstream[i].value || (strcmp(name, "tunnel") == 0 && passes_on(w->conf)))
			continue;
		if (!has_service(w->conf))
			note(w, n->key_pos, "`%s` never runs out: no route leads to a service", name);
		else if (strcmp(name, "tunnel") == 0 && !may_upgrade(w->conf))
			note(w, n->key_pos, "`%s` never runs out: no listener has a protocol to `upgrade` to", name);
		else if (upstream[i].of_routes && is_overruled(w, routes, name))
			note(w, n->key_pos, "`%s` never runs out: every route with a service has its own", name);
	}
}

/* --- TLS --- */

static void tls(struct conf_walk *w, const struct conf_node *root)
{
	const struct conf_node *time = conf_node_child(conf_node_child(root, "timeouts"), "handshake");
	const struct conf_node *count = conf_node_child(conf_node_child(root, "limits"), "handshakes");

	for (size_t i = 0; i < w->conf->service_count; i++) {
		const struct conf_service *s = &w->conf->services[i];

		if (s->tls.on && s->tls.insecure)
			note(w, s->tls.pos, "the endpoints of `%.60s` are not verified: whoever is in between can read and change everything",
			     s->name.p);
	}
	if (time && !has_tls(w->conf))
		note(w, time->key_pos, "`handshake` never runs out: no listener has `tls`");
	if (count && !has_tls(w->conf))
		note(w, count->key_pos, "`handshakes` is never reached: no listener has `tls`");
}

static void hsts(struct conf_walk *w, const struct conf_route *r, const struct conf_node *item)
{
	const struct conf_node *n = conf_node_child(item, "hsts");

	if (n && r->hsts.on && !has_tls(w->conf))
		note(w, n->key_pos, "`hsts` is never sent: no listener has `tls`");
}

/* --- limits --- */

static void body_limit(struct conf_walk *w, const struct conf_node *root)
{
	const struct conf_node *n = conf_node_child(conf_node_child(root, "limits"), "body");
	bool by_default = conf_node_child(conf_node_child(root, "defaults"), "body_limit");
	const struct conf_node *routes = conf_node_child(root, "routes");

	if (!n || !routes)
		return;
	for (const struct conf_node *item = routes->first; item; item = item->next)
		if (!by_default && !conf_node_child(item, "body_limit"))
			return;
	note(w, n->key_pos, by_default ? "`body` holds for no route: `body_limit` in `defaults` does"
	     : "`body` holds for no route: each has its own `body_limit`");
}

static void replay(struct conf_walk *w, const struct conf_node *root)
{
	const struct conf_node *n = conf_node_child(conf_node_child(root, "limits"), "replay");
	uint64_t most = 0;
	char text[CONF_NUMBER_TEXT];

	for (size_t i = 0; i < w->conf->route_count; i++)
		if (w->conf->routes[i].action == CONF_ACTION_SERVICE && w->conf->routes[i].body_limit > most)
			most = w->conf->routes[i].body_limit;
	if (!n || !most || w->conf->limits.replay <= most)
		return;
	conf_write_size(most, text);
	note(w, n->key_pos, "`replay` is more than any body has: the largest that a route allows is %s", text);
}

#define FIELD_LEAST 4	/* bytes of `a:` and its line break */

static void fields(struct conf_walk *w, const struct conf_node *root)
{
	const struct conf_node *n = conf_node_child(conf_node_child(root, "limits"), "fields");
	const struct conf_limits *l = &w->conf->limits;
	uint64_t head = l->head > l->answer_head ? l->head : l->answer_head;

	if (n && (uint64_t)l->fields * FIELD_LEAST > head)
		note(w, n->key_pos, "`fields` is never reached: so many do not fit into a head of `%s`",
		     l->head < l->answer_head ? "answer_head" : "head");
}

/* --- routes --- */

/* A header that a head has no more when routes look at it (lib/http takes it out). */
static void match_headers(struct conf_walk *w, const struct conf_match *m)
{
	for (size_t i = 0; i < m->headers.count; i++) {
		const struct conf_pair *p = &m->headers.items[i];

		if (conf_header_refused(p->name))
			note(w, p->pos, "no request fits: routes do not see `%.60s`%s", p->name.p,
			     str_ieq(p->name, STR("Host")) ? "; `host` of a route is for that" : "");
	}
}

/* An expression that begins with a byte other than `/`. */
static void match_path(struct conf_walk *w, const struct conf_match *m)
{
	struct str s = m->path;

	if (m->path_kind != CONF_PATH_REGEX || memchr(s.p, '|', s.n))
		return;
	if (s.p[0] == '^')
		s = (struct str){s.p + 1, s.n - 1};
	if (!s.n || strchr("/\\.[](){}*+?^$", s.p[0]) || (s.n > 1 && strchr("?*{", s.p[1])))
		return;
	note(w, m->pos, "no request fits: every path begins with `/`, and `%.80s` does not", m->path.p);
}

static void rewrite(struct conf_walk *w, const struct conf_route *r, const struct conf_node *item)
{
	const struct conf_node *strip = conf_node_child(item, "strip_prefix"), *swap = conf_node_child(item, "replace_prefix");

	if (strip && r->strip_prefix && str_eq(r->matches->path, STR("/")))
		note(w, strip->key_pos, "`strip_prefix` changes nothing: the prefix is `/`");
	if (swap && str_eq(r->matches->path, r->replace_prefix))
		note(w, swap->key_pos, "`replace_prefix` changes nothing: it is the prefix itself");
}

/* Only the path changes, and only to itself. */
static void loop(struct conf_walk *w, const struct conf_route *r, const struct conf_node *item)
{
	const struct conf_redirect *to = &r->redirect;
	const struct conf_node *n = conf_node_child(conf_node_child(item, "redirect"), "path");
	bool same = to->path.prefix.n && str_eq(to->path.prefix, r->matches->path);

	if (!n || to->scheme || to->host.n || to->port)
		return;
	if (to->path.full.n && r->match_count == 1 && !r->matches->methods.count)
		same = r->matches->path_kind == CONF_PATH_EXACT && str_eq(to->path.full, r->matches->path);
	if (same)
		note(w, n->key_pos, "the redirect leads back to itself, for ever");
}

/* --- listeners --- */

static bool is_loopback(const struct conf_address *a)
{
	static const uint8_t one[16] = {[15] = 1};

	return a->kind == CONF_UNIX || (a->kind == CONF_INET ? a->ip[0] == 127 : !a->any && memcmp(a->ip, one, 16) == 0);
}

static void trust(struct conf_walk *w, const struct conf_listen *l)
{
	if (l->speaks != CONF_SPEAKS_HTTP && l->proxy_protocol == CONF_PROXY_IN_OFF)
		return;
	for (size_t i = 0; i < l->trusted_proxies.count && !is_loopback(&l->address); i++) {
		const struct conf_cidr *n = &l->trusted_proxies.items[i];

		if (n->kind != CONF_UNIX && !n->bits)
			note(w, n->pos, "everybody is trusted: any client can say that it is another one");
	}
}

void conf_odd_note(struct conf_walk *w, const struct conf_node *root)
{
	const struct conf_node *routes = conf_node_child(root, "routes");	/* NULL: no listener speaks HTTP */
	const struct conf_route *r = w->conf->routes;

	for (size_t i = 0; i < w->conf->listen_count; i++)
		trust(w, &w->conf->listens[i]);
	top_timeouts(w, root);
	body_limit(w, root);
	replay(w, root);
	fields(w, root);
	tls(w, root);
	for (const struct conf_node *item = routes ? routes->first : NULL; item; item = item->next, r++) {
		route_timeouts(w, r, item);
		rewrite(w, r, item);
		loop(w, r, item);
		hsts(w, r, item);
		for (size_t i = 0; i < r->match_count; i++) {
			match_headers(w, &r->matches[i]);
			match_path(w, &r->matches[i]);
		}
	}
}
