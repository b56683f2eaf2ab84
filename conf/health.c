/*
 * health: the readers of how endpoints are checked, and what puts them out.
 *
 * Purpose   `health: {http: /healthz}`, `health: {tcp: on}`, the statuses that are good; `eject: {failures: 3}`, `eject: off`.
 * Owns      nothing; results are in the tree's arena.
 * Called by walk.c through conf_reader_of().
 * Never     checks anything: that is the room health.
 */
#include "conf/scalar.h"
#include "conf/walk.h"

void conf_read_health(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	struct conf_health *h = at;
	static const char *const of_http[] = {"method", "host", "statuses", "headers"};
	const struct conf_node *http, *c;

	if (n->kind != CONF_NODE_MAP && n->kind != CONF_NODE_BAD && !str_eq(n->text, STR("off"))) {
		conf_errors_add(w->errors, n->pos, "`%s` is off or a map, such as {http: /healthz}, not %s", k->name, conf_node_what(n));
		return;
	}
	if (!conf_walk_map_or_off(w, k, n, at, sizeof *h))
		return;
	http = conf_node_child(n, "http");
	h->kind = http ? CONF_HEALTH_HTTP : CONF_HEALTH_TCP;
	if (!h->status_count)
		h->statuses[h->status_count++] = (struct conf_statuses){200, 399};
	if (!http && !h->tcp)	/* with both, `http` says more */
		conf_errors_add(w->errors, n->pos, "`%s` needs to know how: write `http: /healthz`, or `tcp: on`", k->name);
	for (size_t i = 0; !http && i < sizeof of_http / sizeof *of_http; i++)
		if ((c = conf_node_child(n, of_http[i])))
			conf_errors_add(w->errors, c->key_pos, "`%s` belongs to a check by `http`", of_http[i]);
}

/* `200`, `2xx`, `200-299`. */
static bool statuses_read(struct str s, struct conf_statuses *to)
{
	unsigned v[2] = {0, 0};

	for (size_t i = 0; i < s.n; i++) {
		size_t digit = i % 4;

		if (digit == 3 ? s.p[i] != '-' : s.p[i] < '0' || s.p[i] > '9') {
			if (s.n != 3 || i != 1 || memcmp(s.p + 1, "xx", 2) != 0)
				return false;
			*to = (struct conf_statuses){(uint16_t)(v[0] * 100), (uint16_t)(v[0] * 100 + 99)};
			return v[0] >= 2 && v[0] <= 5;
		}
		if (digit < 3 && i < 7)
			v[i / 4] = v[i / 4] * 10 + (unsigned)(s.p[i] - '0');
	}
	if (s.n != 3 && s.n != 7)
		return false;
	*to = (struct conf_statuses){(uint16_t)v[0], (uint16_t)(s.n == 7 ? v[1] : v[0])};
	return to->from >= 200 && to->to <= 599 && to->from <= to->to;
}

void conf_read_statuses(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	struct conf_health *h = at;
	size_t count;
	const struct conf_node *item = conf_walk_items(w, k, n, &count);

	if (!count && n->kind == CONF_NODE_LIST)
		conf_errors_add(w->errors, n->pos, "`%s` is an empty list; then no check could go well", k->name);
	if (count > CONF_STATUSES_MAX) {
		conf_errors_add(w->errors, n->pos, "`%s` has more than %d items", k->name, CONF_STATUSES_MAX);
		return;
	}
	h->status_count = 0;
	for (; count; count--, item = item->next) {
		if (!conf_walk_text(w, k, item))
			continue;
		if (statuses_read(item->text, &h->statuses[h->status_count]))
			h->status_count++;
		else
			conf_errors_add(w->errors, item->pos, "`%.40s` is not a status from 200 to 599, such as 200, 2xx or 200-299", item->text.p);
	}
}

void conf_read_eject(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	struct conf_eject *e = at;
	bool on = true;

	if (n->kind == CONF_NODE_BAD)
		return;
	if (n->kind == CONF_NODE_LIST || (n->kind == CONF_NODE_TEXT && conf_read_bool(n->text, &on))) {
		conf_errors_add(w->errors, n->pos, "`%s` is on, off or a map, not %s", k->name, conf_node_what(n));
		return;
	}
	conf_walk_default(w, k->sub, e);
	if (n->kind == CONF_NODE_MAP)
		conf_walk_map(w, k->sub, n, e);
	e->on = on;
}
