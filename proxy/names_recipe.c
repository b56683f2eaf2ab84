/* names_recipe: see names_parts.h.
 *
 * Purpose   from what names stand for to the set of a service, and the line that tells of it.
 * Owns      nothing.
 * Called by names.c.
 * Invariant what is known in the same way gives the same set, in the same order: items as configured, addresses by their bytes. */
#include "proxy/names_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "health/health.h"
#include "lib/base/mem.h"
#include "proxy/grace.h"
#include "proxy/log.h"
#include "proxy/server.h"

#define TOLD 5		/* endpoints in a line */

struct planned {
	struct service_endpoint_spec spec;
	uint32_t order;
	bool twice;
};

struct plan {
	struct planned *at;	/* owned */
	uint32_t n, room;
};

static struct planned *plan_add(struct plan *p)
{
	uint32_t room = p->room ? 2 * p->room : 16;
	struct planned *grown;

	if (p->n == p->room) {
		grown = mem_realloc(p->at, room * sizeof(*grown));
		if (!grown)
			return NULL;
		p->at = grown;
		p->room = room;
	}
	memset(&p->at[p->n], 0, sizeof(*p->at));
	p->at[p->n].order = p->n;
	return &p->at[p->n++];
}

static bool addresses_add(struct plan *p, const struct name *name, const struct item *i, uint16_t port, uint16_t weight, uint16_t tls)
{
	for (int family = 0; family < 2; family++) {
		if (!(i->families & (family ? ANSWER_IP6 : ANSWER_IP4)))
			continue;
		for (uint32_t k = 0; k < name->have[family].n; k++) {
			struct planned *to = plan_add(p);

			if (!to)
				return false;
			to->spec.weight = weight;
			to->spec.state = i->state;
			to->spec.address = (struct endpoint_address){ .family = family ? ENDPOINT_IP6 : ENDPOINT_IP4, .port = port, .tls = tls };
			memcpy(to->spec.address.ip, name->have[family].ip[k], 16);
		}
	}
	return true;
}

/* Of the groups of SRV records the first that has an address. */
static bool services_add(struct plan *p, const struct name *name, const struct item *i, uint16_t tls)
{
	const struct answer_part *srv = &name->have[0];
	uint32_t before = p->n;

	for (uint32_t at = 0, end; name->targets && at < srv->n && p->n == before; at = end)
		for (end = at + name_group(srv, at); at < end; at++)
			if (!addresses_add(p, name->targets[at].name, i, srv->srv[at].port, srv->srv[at].weight ? srv->srv[at].weight : 1, tls))
				return false;
	return true;
}

static bool item_add(struct plan *p, const struct item *i, uint16_t tls)
{
	struct planned *to;

	if (i->use.name && i->use.name->srv)
		return services_add(p, i->use.name, i, tls);
	if (i->use.name)
		return addresses_add(p, i->use.name, i, i->port, i->weight, tls);
	to = plan_add(p);
	if (to)
		to->spec = (struct service_endpoint_spec){ endpoint_address_of(i->endpoint), i->weight, i->state };
	return to;
}

static int address_compare(const struct endpoint_address *a, const struct endpoint_address *b)
{
	int rc;

	if (a->family != b->family)
		return a->family < b->family ? -1 : 1;
	if (a->port != b->port)
		return a->port < b->port ? -1 : 1;
	rc = memcmp(a->ip, b->ip, sizeof(a->ip));
	return rc || a->family != ENDPOINT_UNIX ? rc : strcmp(a->path, b->path);
}

static int planned_compare(const void *a, const void *b)
{
	const struct planned *x = a, *y = b;
	int rc = address_compare(&x->spec.address, &y->spec.address);

	return rc ? rc : (x->order > y->order) - (x->order < y->order);
}

static int order_compare(const void *a, const void *b)
{
	const struct planned *x = a, *y = b;

	return (x->order > y->order) - (x->order < y->order);
}

/* What two names stand for, or a name and an address, is there once. */
static void plan_unique(struct plan *p)
{
	uint32_t n = 0;

	if (!p->n)
		return;
	qsort(p->at, p->n, sizeof(*p->at), planned_compare);
	for (uint32_t i = 1; i < p->n; i++)
		p->at[i].twice = address_compare(&p->at[i - 1].spec.address, &p->at[i].spec.address) == 0;
	qsort(p->at, p->n, sizeof(*p->at), order_compare);
	for (uint32_t i = 0; i < p->n; i++)
		if (!p->at[i].twice)
			p->at[n++] = p->at[i];
	p->n = n;
}

static bool is_now(const struct plan *p, const struct endpoint_set *set)
{
	if (set->n != p->n)
		return false;
	for (uint32_t i = 0; i < p->n; i++)
		if (set->at[i].weight != p->at[i].spec.weight || set->at[i].state != p->at[i].spec.state ||
		    !endpoint_is(set->at[i].endpoint, &p->at[i].spec.address))
			return false;
	return true;
}

/* --- the line --- */

static int pointer_compare(const void *a, const void *b)
{
	uintptr_t x = (uintptr_t)*(struct endpoint *const *)a, y = (uintptr_t)*(struct endpoint *const *)b;

	return (x > y) - (x < y);
}

/* The endpoints of a set in the order of their places; NULL: no memory. */
static struct endpoint **sorted(const struct endpoint_set *set)
{
	struct endpoint **e = mem_alloc(set->n * sizeof(*e) + 1);

	for (uint32_t i = 0; e && i < set->n; i++)
		e[i] = set->at[i].endpoint;
	if (e && set->n)
		qsort(e, set->n, sizeof(*e), pointer_compare);
	return e;
}

/* Those of `set` that `other` has not: how many, and the first few behind `text`. */
static uint32_t missing_text(const struct endpoint_set *set, struct endpoint **other, uint32_t n_other, char *text, size_t size)
{
	uint32_t n = 0;
	size_t used = 0;
	char one[ENDPOINT_TEXT_MAX];

	*text = '\0';
	for (uint32_t i = 0; i < set->n; i++) {
		struct endpoint *e = set->at[i].endpoint;

		if (n_other && bsearch(&e, other, n_other, sizeof(*other), pointer_compare))
			continue;
		if (n++ < TOLD && used < size)
			used += (size_t)snprintf(text + used, size - used, "%s%s", n > 1 ? ", " : "", endpoint_text(e, one).p);
	}
	if (n > TOLD && used < size)
		snprintf(text + used, size - used, ", ...");
	return n;
}

static void tell(struct names *n, const struct recipe *r, const struct endpoint_set *old, const struct endpoint_set *new)
{
	struct endpoint **before = sorted(old), **after = sorted(new);
	char added[512], removed[512];
	uint32_t n_added, n_removed;

	if (before && after && log_wants(LEVEL_INFO) && names_may_tell(n)) {
		n_added = missing_text(new, before, old->n, added, sizeof(added));
		n_removed = missing_text(old, after, new->n, removed, sizeof(removed));
		log_line(LEVEL_INFO, "service %.*s: %u endpoint%s now; %u added%s%s%s, %u removed%s%s%s",
			      (int)r->service->name_len, r->service->name, new->n, new->n == 1 ? "" : "s",
			      n_added, n_added ? " (" : "", added, n_added ? ")" : "",
			      n_removed, n_removed ? " (" : "", removed, n_removed ? ")" : "");
	}
	mem_free(before);
	mem_free(after);
}

static enum err set_publish(struct names *n, struct recipe *r, const struct plan *p)
{
	struct service_endpoint_spec *specs = mem_alloc(p->n * sizeof(*specs) + 1);
	struct endpoint_set *set;

	for (uint32_t i = 0; specs && i < p->n; i++)
		specs[i] = p->at[i].spec;
	set = specs ? endpoint_set_new(n->endpoints, specs, p->n) : NULL;
	mem_free(specs);
	if (!set)
		return ERR_MEM;
	tell(n, r, service_set(r->service), set);
	if (grace_publish(n->server->grace, r->service, set) != OK) {
		endpoint_set_free(set);
		return ERR_MEM;
	}
	n->changes++;
	if (n->server->health)
		health_service(n->server->health, r->service);
	return OK;
}

enum err recipe_publish(struct names *n, struct recipe *r)
{
	struct plan p = {0};
	bool whole = true;
	enum err err;

	for (uint32_t i = 0; whole && i < r->n; i++)
		whole = item_add(&p, &r->item[i], r->tls);
	for (uint32_t i = 0; i < p.n; i++)
		p.at[i].spec.address.health = r->service->rules->health;
	plan_unique(&p);
	err = !whole ? ERR_MEM : is_now(&p, service_set(r->service)) ? OK : set_publish(n, r, &p);
	mem_free(p.at);
	return err;
}

void recipe_free(struct recipe *r)
{
	if (!r)
		return;
	for (uint32_t i = 0; i < r->n; i++) {
		name_unuse(&r->item[i].use);
		endpoint_unref(r->item[i].endpoint);
	}
	service_unref(r->service);
	mem_free(r);
}
