/*
 * rules: what is wrong between things that are right by themselves.
 *
 * Purpose   two listeners on one address, two routes for the same requests, limits
 *           that contradict each other.
 * Owns      nothing.
 * Called by place.c, route.c and walk.c when their items are read.
 * Never     looks at an item that had an error of its own.
 */
#include "conf/walk.h"

#include <stdlib.h>

#include "conf/address.h"

void conf_check_listens(struct conf_walk *w, const bool *sound)
{
	const struct conf_listen *l = w->conf->listens;

	for (size_t i = 1; i < w->conf->listen_count; i++) {
		size_t j = 0;

		if (!sound[i] || (l[i].address.kind != CONF_UNIX && !l[i].address.port))
			continue;
		while (j < i && !(sound[j] && conf_address_same(&l[i].address, &l[j].address)))
			j++;
		if (j < i)
			conf_errors_add(w->errors, l[i].address.pos, "`%.60s` is listened on already, on line %u",
					l[i].address.text.p, l[j].address.pos.line);
	}
}

struct claim {			/* of a match to requests for one host, by one method */
	const struct conf_route *route;
	const struct conf_match *match;
	struct str host, method;	/* empty: any */
};

static int claims_differ(const struct claim *x, const struct claim *y)
{
	const struct conf_match *a = x->match, *b = y->match;
	int rc = conf_str_compare(a->path, b->path);

	if (!rc)
		rc = (a->path_kind > b->path_kind) - (a->path_kind < b->path_kind);
	if (!rc)
		rc = conf_str_compare(x->host, y->host);
	if (!rc)
		rc = conf_str_compare(x->method, y->method);
	if (!rc)
		rc = conf_pairs_compare(&a->headers, &b->headers, true);
	return rc ? rc : conf_pairs_compare(&a->query, &b->query, false);
}

static int claims_compare(const void *a, const void *b)
{
	const struct claim *x = a, *y = b;
	int rc = claims_differ(x, y);

	if (!rc)
		rc = (x->route > y->route) - (x->route < y->route);
	return rc ? rc : (x->match > y->match) - (x->match < y->match);
}

/* The claims of one match to one host, to `to` unless that is NULL; how many. */
static size_t claims_of(const struct conf_route *r, const struct conf_match *m, struct str host, struct claim *to)
{
	size_t count = m->methods.count ? m->methods.count : 1;

	for (size_t i = 0; to && i < count; i++)
		to[i] = (struct claim){r, m, host, m->methods.count ? m->methods.items[i] : STR("")};
	return count;
}

static size_t claims_fill(const struct conf *c, const bool *sound, struct claim *claims)
{
	size_t n = 0;

	for (size_t i = 0; i < c->route_count; i++) {
		const struct conf_route *r = &c->routes[i];
		size_t hosts = r->hosts.count ? r->hosts.count : 1;

		for (size_t j = 0; sound[i] && j < r->match_count * hosts; j++)
			n += claims_of(r, &r->matches[j / hosts], r->hosts.count ? r->hosts.items[j % hosts] : STR(""),
				       claims ? claims + n : NULL);
	}
	return n;
}

static void claims_clash(struct conf_walk *w, const struct claim *one, const struct claim *two)
{
	const struct conf_match *a = one->match, *b = two->match;
	bool more = two->method.n || b->headers.count || b->query.count;

	if (a == b)
		conf_errors_add(w->errors, two->route->pos, "the route on line %u has the host `%.80s` twice",
				two->route->pos.line, two->host.p);
	else
		conf_errors_add(w->errors, b->pos, "the %s on line %u has the same host and path%s as that on line %u",
				b == &two->route->match ? "route" : "match", b->pos.line,
				more ? " (and the same method, headers and query)" : "", a->pos.line);
}

void conf_check_routes(struct conf_walk *w, const bool *sound)
{
	size_t n = claims_fill(w->conf, sound, NULL);
	struct claim *claims = arena_alloc(w->scratch, n * sizeof *claims + 1);

	if (!claims) {
		w->errors->no_memory = true;
		return;
	}
	claims_fill(w->conf, sound, claims);
	qsort(claims, n, sizeof *claims, claims_compare);
	for (size_t i = 1; i < n; i++)
		if (!claims_differ(&claims[i - 1], &claims[i]))
			claims_clash(w, &claims[i - 1], &claims[i]);
}

void conf_check_limits(struct conf_walk *w, const struct conf_node *root)
{
	const struct conf_node *target = conf_node_child(conf_node_child(root, "limits"), "target");
	struct conf_limits *l = &w->conf->limits;

	if (l->target <= l->head)
		return;
	if (target)
		conf_errors_add(w->errors, target->pos, "`target` cannot be more than `head`: it is a part of it");
	else
		l->target = l->head;
}
