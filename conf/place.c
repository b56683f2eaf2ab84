/*
 * place: the readers of listeners and services.
 *
 * Purpose   where requests come in and where they can go.
 * Owns      nothing; results are in the tree's arena.
 * Called by walk.c through conf_reader_of().
 * Invariant services are sorted by name in w->by_name before a listener or route is read.
 */
#include "conf/address.h"
#include "conf/walk.h"

#include <stdlib.h>

#define LISTENS_MAX 256
#define ENDPOINTS_MAX 10000
#define NAMES_MAX 10000

struct str conf_name_dup(struct conf_walk *w, struct str s)
{
	struct str copy = conf_walk_dup(w, s);
	char *p = (char *)(uintptr_t)copy.p;	/* ours */

	for (size_t i = 0; i < copy.n; i++)
		if (p[i] >= 'A' && p[i] <= 'Z')
			p[i] = (char)(p[i] + 32);
	return copy;
}

static bool address_read(struct conf_walk *w, const struct conf_node *n, enum conf_address_use use,
			 struct conf_address *a)
{
	const char *wrong = conf_read_address(n->text, use, a);

	if (wrong) {
		conf_errors_add(w->errors, n->pos, "`%.60s`: %s", n->text.p, wrong);
		return false;
	}
	a->pos = n->pos;
	a->text = conf_walk_dup(w, a->text);
	a->path = a->kind == CONF_NAME ? conf_name_dup(w, a->path) : conf_walk_dup(w, a->path);
	return true;
}

void conf_read_address_key(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	if (conf_walk_text(w, k, n))
		address_read(w, n, CONF_USE_LISTEN, at);
}

void conf_read_one_service(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	if (conf_walk_text(w, k, n))
		*(const struct conf_service **)at = conf_service_find(w, n->text, n->pos);
}

static int names_compare(const void *a, const void *b)
{
	const struct conf_name *x = a, *y = b;
	int rc = conf_str_compare(x->host, y->host);

	return rc ? rc : (x->pos.line > y->pos.line) - (x->pos.line < y->pos.line);
}

/* What is wrong with a server name, or NULL; `*` is any, and *host empty then. */
static const char *name_read(struct conf_walk *w, struct str s, struct str *host)
{
	*host = STR("");
	if (str_eq(s, STR("*")))
		return NULL;
	*host = conf_host_dup(w, s);
	if (s.n && s.p[0] == '[')
		return "is an address: TLS sends none as a server name";
	return s.n ? conf_host_wrong(*host) : "is no server name";
}

void conf_read_names(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	struct conf_name_list list = {0};

	if (n->kind != CONF_NODE_MAP || !n->count || n->count > NAMES_MAX) {
		if (n->kind != CONF_NODE_BAD)
			conf_errors_add(w->errors, n->pos, "`%s` is a map of 1 to %d server names and their services, as in `{a.example.com: web, \"*\": other}`",
					k->name, NAMES_MAX);
		return;
	}
	list.items = conf_walk_alloc(w, n->count * sizeof *list.items);
	if (!list.items)
		return;
	for (const struct conf_node *c = n->first; c; c = c->next) {
		struct conf_name *name = &list.items[list.count];
		const char *wrong = name_read(w, c->key, &name->host);

		name->pos = c->key_pos;
		if (wrong)
			conf_errors_add(w->errors, c->key_pos, "`%.80s` %s", c->key.p, wrong);
		else if (conf_walk_text(w, k, c) && (name->service = conf_service_find(w, c->text, c->pos)))
			list.count++;
	}
	qsort(list.items, list.count, sizeof *list.items, names_compare);
	for (size_t i = 1; i < list.count; i++)
		if (str_eq(list.items[i - 1].host, list.items[i].host))
			conf_errors_add(w->errors, list.items[i].pos, "the server name `%.80s` is there twice: names are the same in any case",
					list.items[i].host.n ? list.items[i].host.p : "*");
	*(struct conf_name_list *)at = list;
}

static void plain_check(struct conf_walk *w, const struct conf_service *s, struct conf_pos pos)
{
	if (s && s->tls.on)
		conf_errors_add(w->errors, pos, "the service `%.60s` has `tls`, and what a listener passes on is not put into TLS", s->name.p);
}

/* That of a listener is for all its requests, so that there is no prefix, and what leads back here never ends. */
static void redirect_check(struct conf_walk *w, const struct conf_node *n, struct conf_listen *l, bool sound)
{
	const struct conf_node *redirect = conf_node_child(n, "redirect"), *path = conf_node_child(redirect, "path");
	const struct conf_node *prefix = conf_node_child(path, "replace_prefix");
	const struct conf_redirect *r = &l->redirect;
	enum conf_scheme own = l->tls.on ? CONF_SCHEME_HTTPS : CONF_SCHEME_HTTP;

	l->redirects = redirect;
	conf_redirect_check(w, redirect, r, sound);
	if (prefix)
		conf_errors_add(w->errors, prefix->key_pos, "the `redirect` of a listener is for all paths: there is no prefix to replace");
	else if (redirect && sound && !r->to.n && !r->host.n && !r->port && (r->scheme ? r->scheme == own : path != NULL))
		conf_errors_add(w->errors, redirect->key_pos, "the redirect leads back to this listener, for ever%s",
				l->tls.on ? ": it is for one without `tls`" : "");
}

/* Who says whose certificate it was. */
static void client_cert_check(struct conf_walk *w, const struct conf_node *n, const struct conf_listen *l)
{
	const struct conf_node *c = conf_node_child(n, "x_forwarded_client_cert");
	enum conf_client_cert is = l->x_forwarded_client_cert;

	if (c && (is == CONF_CERT_SET || is == CONF_CERT_APPEND) && !(l->tls.on && l->tls.clients.ca.text.n))
		conf_errors_add(w->errors, c->pos, "no client shows a certificate here: that needs `tls` with `client_certificates`%s",
				is == CONF_CERT_APPEND ? "; to let pass what `trusted_proxies` say, write `pass`" : "");
	if (c && (is == CONF_CERT_APPEND || is == CONF_CERT_PASS) && !l->trusted_proxies.count)
		conf_errors_add(w->errors, c->pos, "`%s` needs `trusted_proxies`: those whose field is believed", c->text.p);
}

/* What the keys of a listener say of each other; `sound`: each by itself was all right. */
static void listen_check(struct conf_walk *w, const struct conf_node *n, struct conf_listen *l, bool sound)
{
	const struct conf_node *tls = conf_node_child(n, "tls");
	static const char *const http[] = {
		"x_forwarded", "x_forwarded_client_cert", "forwarded", "via", "request_id", "underscores", "upgrade", "redirect",
	};
	const struct conf_node *service = conf_node_child(n, "service"), *sni = conf_node_child(n, "sni");
	const struct conf_node *proxy = conf_node_child(n, "proxy_protocol");

	l->speaks = sni ? CONF_SPEAKS_SNI : service ? CONF_SPEAKS_TCP : CONF_SPEAKS_HTTP;
	if (service && sni)
		conf_errors_add(w->errors, sni->key_pos, "`service` or `sni`, not both");
	for (size_t i = 0; l->speaks != CONF_SPEAKS_HTTP && i < sizeof http / sizeof *http; i++) {
		const struct conf_node *c = conf_node_child(n, http[i]);

		if (c)
			conf_errors_add(w->errors, c->key_pos, "`%s` is about HTTP, which a listener with `%s` does not read",
					http[i], sni ? "sni" : "service");
	}
	if (l->speaks == CONF_SPEAKS_HTTP) {
		redirect_check(w, n, l, sound);
		if (sound)
			client_cert_check(w, n, l);
	}
	if (service)
		plain_check(w, l->service, service->pos);
	for (size_t i = 0; i < l->sni.count; i++)
		plain_check(w, l->sni.items[i].service, l->sni.items[i].pos);
	if (tls && l->tls.on && l->speaks == CONF_SPEAKS_SNI)
		conf_errors_add(w->errors, tls->key_pos, "`tls` ends TLS, and a listener with `sni` passes it on as it is");
	if (proxy && l->proxy_protocol != CONF_PROXY_IN_OFF && !l->trusted_proxies.count)
		conf_errors_add(w->errors, proxy->key_pos, "`proxy_protocol` needs `trusted_proxies`: those whose headers are believed");
}

static void listen_read(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n,
			struct conf_listen *l)
{
	*l = w->listen;
	l->pos = n->pos;
	if (n->kind == CONF_NODE_MAP) {
		size_t errors = w->errors->count + w->errors->more;

		conf_walk_map(w, CONF_LISTEN, n, l);
		listen_check(w, n, l, errors == w->errors->count + w->errors->more);
	} else if (conf_walk_text(w, k, n)) {
		address_read(w, n, CONF_USE_LISTEN, &l->address);
	}
}

void conf_read_listens(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	struct conf *c = at;
	const struct conf_node *item = n->kind == CONF_NODE_LIST ? n->first : n;
	size_t count = n->kind == CONF_NODE_LIST ? n->count : 1;
	bool sound[LISTENS_MAX] = {0};

	if (!count)
		conf_errors_add(w->errors, n->pos, "`%s` has no address: nobody could connect", k->name);
	else if (count > LISTENS_MAX)
		conf_errors_add(w->errors, n->pos, "more than %d listeners", LISTENS_MAX);
	if (!count || count > LISTENS_MAX)
		return;
	c->listens = conf_walk_alloc(w, count * sizeof *c->listens);
	if (!c->listens)
		return;
	for (; c->listen_count < count; item = item->next) {
		size_t errors = w->errors->count + w->errors->more;

		listen_read(w, k, item, &c->listens[c->listen_count]);
		sound[c->listen_count++] = errors == w->errors->count + w->errors->more;
	}
	conf_check_listens(w, sound);
}

static int endpoints_compare(const void *a, const void *b)
{
	const struct conf_address *x = *(struct conf_address *const *)a, *y = *(struct conf_address *const *)b;
	int rc;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	rc = memcmp(x->ip, y->ip, sizeof x->ip);
	if (rc)
		return rc;
	if (x->port != y->port)
		return x->port < y->port ? -1 : 1;
	rc = strcmp(x->path.p, y->path.p);
	return rc ? rc : (x > y) - (x < y);
}

static void endpoints_check(struct conf_walk *w, const struct conf_address_list *list)
{
	struct conf_address **sorted;

	if (list->count < 2)
		return;
	sorted = arena_alloc(w->scratch, list->count * sizeof *sorted);
	if (!sorted) {
		w->errors->no_memory = true;
		return;
	}
	for (size_t i = 0; i < list->count; i++)
		sorted[i] = &list->items[i];
	qsort(sorted, list->count, sizeof *sorted, endpoints_compare);
	for (size_t i = 1; i < list->count; i++)
		if (conf_address_same(sorted[i - 1], sorted[i]))
			conf_errors_add(w->errors, sorted[i]->pos, "the endpoint `%.60s` is there twice", sorted[i]->text.p);
}

void conf_read_endpoint(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	if (conf_walk_text(w, k, n))
		address_read(w, n, CONF_USE_ENDPOINT, at);
}

/* An address, or a map that says more of it; false: it is none. */
static bool endpoint_read(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, struct conf_address *a)
{
	size_t errors = w->errors->count + w->errors->more;

	a->weight = 1;
	if (n->kind != CONF_NODE_MAP)
		return conf_walk_text(w, k, n) && address_read(w, n, CONF_USE_ENDPOINT, a);
	conf_walk_map(w, CONF_ENDPOINT, n, a);
	return errors == w->errors->count + w->errors->more;
}

void conf_read_endpoints(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	struct conf_address_list list = {0};
	size_t count = 1;
	const struct conf_node *c = n->kind == CONF_NODE_MAP ? n : conf_walk_items(w, k, n, &count);

	if (count > ENDPOINTS_MAX) {
		conf_errors_add(w->errors, n->pos, "more than %d endpoints", ENDPOINTS_MAX);
		return;
	}
	list.items = conf_walk_alloc(w, count * sizeof *list.items);
	if (!list.items)
		return;
	for (; count; count--, c = c->next)
		if (endpoint_read(w, k, c, &list.items[list.count]))
			list.count++;
	endpoints_check(w, &list);
	*(struct conf_address_list *)at = list;
}

/* A host name or address, with or without a port. */
static const char *authority_wrong(struct str s)
{
	const char *colon = memrchr(s.p, ':', s.n);
	size_t port = 0;

	if (colon && s.p[s.n - 1] != ']') {
		for (port = 1; port < s.n - (size_t)(colon - s.p); port++)
			if (colon[port] < '0' || colon[port] > '9')
				return "has no number for its port";
		if (port < 2 || port > 6)
			return "has no number for its port";
	}
	s.n -= port;
	if (s.n && s.p[0] == '*')
		return "is not one host";
	return conf_host_wrong(s);
}

void conf_read_host_mode(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	struct conf_service *s = at;
	struct conf_near near = {.word = n->text};
	const char *wrong;
	int i;

	if (!conf_walk_text(w, k, n))
		return;
	i = conf_word_find(k->words, n->text, &near);
	if (i >= 0) {
		s->host_kind = (enum conf_host_kind)i;
		s->host = STR("");
		return;
	}
	wrong = authority_wrong(n->text);
	if (!wrong && near.best.n && near.distance == 1)
		wrong = "is neither keep nor endpoint";
	if (wrong) {
		conf_errors_add(w->errors, n->pos, "`%.60s` %s%s", n->text.p, wrong, conf_walk_hint(w, &near));
		return;
	}
	s->host_kind = CONF_HOST_NAME;
	s->host = conf_walk_dup(w, n->text);
}

void conf_read_new_host(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	const char *wrong;

	if (!conf_walk_text(w, k, n))
		return;
	wrong = authority_wrong(n->text);
	if (wrong)
		conf_errors_add(w->errors, n->pos, "`%.60s` %s", n->text.p, wrong);
	else
		*(struct str *)at = conf_walk_dup(w, n->text);
}

static void service_read(struct conf_walk *w, const struct conf_node *n, struct conf_service *s)
{
	static const struct conf_key endpoints = {.name = "endpoints", .type = CONF_T_ENDPOINTS};
	uint32_t index = s->index;
	size_t errors = w->errors->count + w->errors->more;

	*s = w->service;
	s->index = index;
	s->dns.address.path = s->dns.address.text = STR("");
	s->pos = n->key_pos;
	s->name = conf_walk_dup(w, n->key);
	if (!conf_is_service_name(n->key))
		conf_errors_add(w->errors, n->key_pos,
				"`%.60s`: a service's name has 1 to 63 letters, digits, `-`, `_` and `.`", n->key.p);
	if (n->kind == CONF_NODE_MAP)
		conf_walk_map(w, CONF_SERVICE, n, s);
	else if (n->kind == CONF_NODE_TEXT && !n->text.n)
		conf_errors_add(w->errors, n->pos, "the service `%.60s` needs endpoints; `[]` is none", n->key.p);
	else
		conf_read_endpoints(w, &endpoints, n, &s->endpoints);
	if (errors == w->errors->count + w->errors->more) {
		conf_service_dns_check(w, n, s);
		conf_service_tls_check(w, n, s);
	}
}

static int services_compare(const void *a, const void *b)
{
	const struct conf_service *x = *(struct conf_service *const *)a, *y = *(struct conf_service *const *)b;

	return strcmp(x->name.p, y->name.p);
}

void conf_read_services(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	struct conf *c = at;
	size_t i = 0;

	if (n->kind != CONF_NODE_MAP) {
		if (n->kind != CONF_NODE_BAD)
			conf_errors_add(w->errors, n->pos, "`%s` is a map of names and their endpoints, not %s", k->name,
					conf_node_what(n));
		return;
	}
	c->services = conf_walk_alloc(w, n->count * sizeof *c->services);
	w->by_name = arena_alloc(w->scratch, (n->count + 1) * sizeof(struct conf_service *));
	if (!c->services || !w->by_name) {
		w->errors->no_memory = true;
		return;
	}
	c->service_count = n->count;
	for (const struct conf_node *s = n->first; s; s = s->next, i++) {
		c->services[i].index = (uint32_t)i;
		service_read(w, s, &c->services[i]);
		w->by_name[i] = &c->services[i];
	}
	qsort(w->by_name, c->service_count, sizeof(struct conf_service *), services_compare);
}
