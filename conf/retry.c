/*
 * retry: the readers of what is tried again.
 *
 * Purpose   events, statuses and methods, and what of them does not go together.
 * Owns      nothing; results are in the tree's arena.
 * Called by walk.c through conf_reader_of().
 * Never     decides about a request: that is dispatch.
 */
#include "conf/scalar.h"
#include "conf/walk.h"

#include <stdlib.h>

void conf_read_retry(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	struct conf_retry *r = at;
	const struct conf_node *on;

	if (n->kind == CONF_NODE_BAD)
		return;
	if (!conf_walk_map_or_off(w, k, n, r, sizeof *r)) {
		r->said = CONF_RETRY_OFF;
		return;
	}
	r->said = CONF_RETRY_ON;
	on = conf_node_child(n, "on");
	if (on && r->timeout && !r->per_try_timeout)
		conf_errors_add(w->errors, on->pos,
				"`timeout` needs `per_try_timeout`: without it the first try may take all the time that there is");
}

static bool status_add(struct conf_retry *r, uint32_t status)
{
	for (size_t i = 0; i < r->status_count; i++)
		if (r->statuses[i] == status)
			return false;
	r->statuses[r->status_count++] = (uint16_t)status;
	return true;
}

static void event_add(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, struct conf_retry *r)
{
	struct conf_near near = {.word = n->text};
	bool *const events[] = {&r->connect, &r->reset, &r->timeout};
	uint64_t status;
	int word;

	if (!conf_walk_text(w, k, n))
		return;
	if (!conf_read_count(n->text, &status)) {
		if (status < 400 || status > 599)
			conf_errors_add(w->errors, n->pos, "`%.20s` is not a status from 400 to 599", n->text.p);
		else if (!status_add(r, (uint32_t)status))
			conf_errors_add(w->errors, n->pos, "`%.20s` is there twice", n->text.p);
		return;
	}
	word = conf_word_find("connect|reset|timeout", n->text, &near);
	if (word < 0)
		conf_errors_add(w->errors, n->pos, "`%.60s` is not connect, reset, timeout or a status such as 503%s", n->text.p,
				conf_walk_hint(w, &near));
	else if (*events[word])
		conf_errors_add(w->errors, n->pos, "`%s` is there twice", n->text.p);
	else
		*events[word] = true;
}

void conf_read_retry_on(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	struct conf_retry *r = at;
	size_t count;
	const struct conf_node *item = conf_walk_items(w, k, n, &count);

	r->connect = r->reset = r->timeout = false;
	r->status_count = 0;
	if (item == n && str_eq(n->text, STR("default"))) {
		r->connect = r->reset = true;
		return;
	}
	if (!count && n->kind == CONF_NODE_LIST)
		conf_errors_add(w->errors, n->pos, "`%s` is an empty list; write `retry: off`", k->name);
	if (count > CONF_RETRY_ON_MAX) {
		conf_errors_add(w->errors, n->pos, "`%s` has more than %d items", k->name, CONF_RETRY_ON_MAX);
		return;
	}
	for (; count; count--, item = item->next)
		event_add(w, k, item, r);
}

void conf_read_retry_methods(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	static const char known[] = "GET|HEAD|POST|PUT|DELETE|OPTIONS|TRACE|PATCH";
	struct conf_str_list list = {0};
	size_t count;
	const struct conf_node *item = conf_walk_items(w, k, n, &count);

	if (item == n && str_eq(n->text, STR("idempotent"))) {
		*(struct conf_str_list *)at = list;
		return;
	}
	if (!count && n->kind == CONF_NODE_LIST)
		conf_errors_add(w->errors, n->pos, "`%s` is an empty list; write `retry: off`", k->name);
	list.items = conf_walk_alloc(w, count * sizeof *list.items);
	for (; list.items && count; count--, item = item->next) {
		struct conf_near near = {.word = item->text};

		if (!conf_walk_text(w, k, item))
			continue;
		if (conf_word_find(known, item->text, &near) < 0)
			conf_errors_add(w->errors, item->pos, "`%.40s` is not a method of HTTP itself%s", item->text.p,
					conf_walk_hint(w, &near));
		else
			list.items[list.count++] = conf_walk_dup(w, item->text);
	}
	*(struct conf_str_list *)at = list;
}
