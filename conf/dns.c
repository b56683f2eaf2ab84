/*
 * dns: the readers of names that stand for endpoints, and of how they are asked for.
 *
 * Purpose   `dns` of a service, `dns` of the file.
 * Owns      nothing; results are in the tree's arena.
 * Called by walk.c through conf_reader_of(), place.c.
 * Never     asks for a name: that is what a running proxy does.
 */
#include "conf/address.h"
#include "conf/walk.h"

#define SERVERS_MAX 8
#define SEARCH_MAX 16

/* An address without a port has that of name servers. */
static const char *server_read(struct str s, struct conf_address *a)
{
	char with[64];
	bool bare6 = s.n && s.p[0] != '[' && memchr(s.p, ':', s.n) && memchr(s.p, ':', s.n) != memrchr(s.p, ':', s.n);
	bool port = s.n && s.p[0] == '[' ? s.p[s.n - 1] != ']' : !bare6 && memchr(s.p, ':', s.n);
	const char *wrong;

	if (s.n >= sizeof with - 8 || memchr(s.p, '\0', s.n))
		return "a name server is an IP address, with or without a port";
	snprintf(with, sizeof with, "%s%.*s%s%s", bare6 ? "[" : "", (int)s.n, s.p, bare6 ? "]" : "", port ? "" : ":53");
	wrong = conf_read_address(str_of(with), CONF_USE_ENDPOINT, a);
	if (wrong && port)
		return wrong;
	return wrong || (a->kind != CONF_INET && a->kind != CONF_INET6) || a->front
		? "a name server is an IP address, with or without a port" : NULL;
}

void conf_read_nameservers(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	struct conf_address_list list = {0};
	size_t count;
	const struct conf_node *c;

	*(struct conf_address_list *)at = list;
	if (n->kind == CONF_NODE_TEXT && str_eq(n->text, STR("system")))
		return;
	c = conf_walk_items(w, k, n, &count);
	if (n->kind == CONF_NODE_LIST && (!count || count > SERVERS_MAX)) {
		conf_errors_add(w->errors, n->pos, "`%s` is a list of 1 to %d addresses", k->name, SERVERS_MAX);
		return;
	}
	list.items = conf_walk_alloc(w, count * sizeof *list.items);
	if (!list.items)
		return;
	for (; count; count--, c = c->next) {
		struct conf_address *a = &list.items[list.count];
		const char *wrong;

		if (!conf_walk_text(w, k, c))
			continue;
		wrong = server_read(c->text, a);
		if (wrong) {
			conf_errors_add(w->errors, c->pos, "`%.60s`: %s", c->text.p, wrong);
			continue;
		}
		a->pos = c->pos;
		a->path = STR("");
		a->text = conf_walk_dup(w, c->text);
		list.count++;
	}
	*(struct conf_address_list *)at = list;
}

void conf_read_search(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	struct conf_str_list list = {0};
	size_t count;
	const struct conf_node *c;

	*(struct conf_str_list *)at = list;
	if (n->kind == CONF_NODE_TEXT && str_eq(n->text, STR("system")))
		return;
	c = conf_walk_items(w, k, n, &count);
	if (c == n && n->kind == CONF_NODE_TEXT && str_eq(n->text, STR("off")))
		count = 0;
	if (count > SEARCH_MAX) {
		conf_errors_add(w->errors, n->pos, "`%s` has more than %d domains", k->name, SEARCH_MAX);
		return;
	}
	list.items = conf_walk_alloc(w, count * sizeof *list.items);
	if (!list.items)
		return;
	for (; count; count--, c = c->next) {
		const char *wrong;

		if (!conf_walk_text(w, k, c))
			continue;
		wrong = conf_dns_name_wrong(c->text);
		if (wrong)
			conf_errors_add(w->errors, c->pos, "`%.60s` is no domain: letters, digits, `-` and dots", c->text.p);
		else
			list.items[list.count++] = conf_host_dup(w, c->text);
	}
	*(struct conf_str_list *)at = list;
}

void conf_read_hosts_file(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	if (n->kind == CONF_NODE_TEXT && str_eq(n->text, STR("off")))
		*(struct str *)at = STR("");
	else
		conf_read_file(w, k, n, at);
}

void conf_read_dns_host(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	struct conf_dns_name *d = at;
	const char *wrong;

	if (!conf_walk_text(w, k, n))
		return;
	wrong = memchr(n->text.p, ':', n->text.n) ? "is a name and more: the port is `port`" : conf_dns_name_wrong(n->text);
	if (wrong) {
		conf_errors_add(w->errors, n->pos, "`%.60s` %s", n->text.p, strncmp(wrong, "an ", 3) ? wrong : "is no host name");
		return;
	}
	d->address.kind = CONF_NAME;
	d->address.weight = 1;
	d->address.pos = n->pos;
	d->address.text = conf_walk_dup(w, n->text);
	d->address.path = conf_name_dup(w, n->text);
}

static void map_check(struct conf_walk *w, const struct conf_node *n, struct conf_dns_name *d)
{
	const struct conf_node *port = conf_node_child(n, "port");
	char text[300];

	if (d->srv && d->port)
		conf_errors_add(w->errors, port->key_pos, "`port` beside `srv: on`: SRV records have the port");
	d->address.port = (uint16_t)d->port;
	if (!d->port)
		return;
	snprintf(text, sizeof text, "%s:%u", d->address.text.p, d->port);
	d->address.text = conf_walk_dup(w, str_of(text));
}

void conf_read_dns_name(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	struct conf_dns_name *d = at;
	struct conf_address a = {.path = STR(""), .weight = 1};
	const char *wrong;

	*d = (struct conf_dns_name){.address = {.path = STR(""), .text = STR("")}};
	conf_walk_default(w, k->sub, d);
	if (n->kind == CONF_NODE_MAP) {
		size_t errors = w->errors->count + w->errors->more;

		conf_walk_map(w, k->sub, n, d);
		if (errors == w->errors->count + w->errors->more)
			map_check(w, n, d);
		return;
	}
	if (n->kind == CONF_NODE_TEXT && !n->text.n) {
		conf_errors_add(w->errors, n->pos, "`%s` needs a name and a port, or a map", k->name);
		return;
	}
	if (!conf_walk_text(w, k, n))
		return;
	wrong = conf_read_address(n->text, CONF_USE_ENDPOINT, &a);
	if (!wrong && a.kind != CONF_NAME)
		wrong = "an address stands in `endpoints`; this is for a name";
	if (wrong) {
		conf_errors_add(w->errors, n->pos, "`%.60s`: %s", n->text.p, wrong);
		return;
	}
	a.pos = n->pos;
	a.text = conf_walk_dup(w, a.text);
	a.path = conf_name_dup(w, a.path);
	d->address = a;
}

/* --- a service as a whole --- */

/* The one name that all endpoints of `s` go by; NULL: several, or addresses, or what SRV records say. */
static const struct conf_address *only_name(const struct conf_service *s)
{
	const struct conf_address *name = s->dns.address.path.n ? &s->dns.address : NULL;

	if (name && s->dns.srv)
		return NULL;
	for (size_t i = 0; i < s->endpoints.count; i++) {
		const struct conf_address *a = &s->endpoints.items[i];

		if (a->kind != CONF_NAME || (name && !str_eq(a->path, name->path)))
			return NULL;
		name = a;
	}
	return name;
}

struct str conf_service_dns_name(const struct conf_service *s)
{
	const struct conf_address *a = only_name(s);
	struct str name = a ? a->path : STR("");

	name.n -= name.n > 1 && name.p[name.n - 1] == '.';
	return name;
}

void conf_service_dns_check(struct conf_walk *w, const struct conf_node *n, struct conf_service *s)
{
	const struct conf_address *name = only_name(s), *d = &s->dns.address;

	if (n->kind == CONF_NODE_MAP && !conf_node_child(n, "endpoints") && !conf_node_child(n, "dns"))
		conf_errors_add(w->errors, n->pos, "a service needs `endpoints` or `dns`");
	for (size_t i = 0; d->path.n && !s->dns.srv && i < s->endpoints.count; i++)
		if (conf_address_same(d, &s->endpoints.items[i]))
			conf_errors_add(w->errors, s->endpoints.items[i].pos, "the endpoint `%.60s` is `dns`, too", d->text.p);
	if (d->path.n && !s->dns.srv && !d->port)
		s->dns.address.port = s->tls.on ? 443 : 80;
	/* one name and one port: that is what such an endpoint is called */
	if (s->host_kind != CONF_HOST_ENDPOINT || !name || s->endpoints.count + (d->path.n > 0) > 1)
		return;
	s->host_kind = CONF_HOST_NAME;
	s->host = name->text;
}
