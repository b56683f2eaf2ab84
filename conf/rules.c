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

struct claim {			/* of a route to the requests for one host and path */
	const struct conf_route *route;
	struct str host;	/* empty: any */
};

static int str_compare(struct str a, struct str b)
{
	size_t n = a.n < b.n ? a.n : b.n;
	int rc = n ? memcmp(a.p, b.p, n) : 0;

	return rc ? rc : (a.n > b.n) - (a.n < b.n);
}

static int claims_differ(const struct claim *x, const struct claim *y)
{
	int rc = str_compare(x->route->path, y->route->path);

	if (!rc)
		rc = (x->route->path_kind > y->route->path_kind) - (x->route->path_kind < y->route->path_kind);
	return rc ? rc : str_compare(x->host, y->host);
}

static int claims_compare(const void *a, const void *b)
{
	const struct claim *x = a, *y = b;
	int rc = claims_differ(x, y);

	return rc ? rc : (x->route > y->route) - (x->route < y->route);
}

static size_t claims_fill(const struct conf *c, const bool *sound, struct claim *claims)
{
	size_t n = 0;

	for (size_t i = 0; i < c->route_count; i++) {
		const struct conf_route *r = &c->routes[i];

		if (!sound[i])
			continue;
		if (!r->hosts.count)
			claims[n++] = (struct claim){r, STR("")};
		for (size_t j = 0; j < r->hosts.count; j++)
			claims[n++] = (struct claim){r, r->hosts.items[j]};
	}
	return n;
}

void conf_check_routes(struct conf_walk *w, const bool *sound)
{
	const struct conf *c = w->conf;
	struct claim *claims;
	size_t most = 0, n;

	for (size_t i = 0; i < c->route_count; i++)
		most += 1 + c->routes[i].hosts.count;
	claims = arena_alloc(w->scratch, most * sizeof *claims + 1);
	if (!claims) {
		w->errors->no_memory = true;
		return;
	}
	n = claims_fill(c, sound, claims);
	qsort(claims, n, sizeof *claims, claims_compare);
	for (size_t i = 1; i < n; i++) {
		const struct claim *one = &claims[i - 1], *two = &claims[i];

		if (claims_differ(one, two))
			continue;
		if (one->route == two->route)
			conf_errors_add(w->errors, two->route->pos, "the route on line %u has the host `%.80s` twice",
					two->route->pos.line, two->host.p);
		else
			conf_errors_add(w->errors, two->route->pos,
					"the route on line %u has the same host and path as that on line %u",
					two->route->pos.line, one->route->pos.line);
	}
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
