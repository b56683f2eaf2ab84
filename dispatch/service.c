/* Door: services and the sets of endpoints that they consist of.  A service owns its set, a
 * reference to its rules and a number of the endpoint table; it is owned by those who hold
 * references: snapshots, routes, exchanges.  Its first set lies in its own block, since most never
 * have another; a later one replaces it whole, by one atomic step. */
#include "dispatch/service.h"

#include <stddef.h>
#include <string.h>
#include "dispatch/endpoint_table.h"
#include "dispatch/slot.h"
#include "dispatch/text.h"
#include "lib/base/mem.h"

#define NAME_MAX_LEN 1024

static enum err spec_check(const struct service_spec *spec, struct snapshot_error *err)
{
	uint32_t i;

	if (spec->name.n == 0 || spec->name.n > NAME_MAX_LEN || !text_value(spec->name))
		return snapshot_error_set(err, ERR_SYNTAX, "a service needs a printable name of at most %d bytes",
					  NAME_MAX_LEN);
	for (i = 0; i < spec->n_endpoints; i++) {
		if (!endpoint_address_valid(&spec->endpoints[i].address))
			return snapshot_error_set(err, ERR_SYNTAX, "endpoint %u has no usable address", i);
		if (spec->endpoints[i].state > ENDPOINT_DRAIN)
			return snapshot_error_set(err, ERR_SYNTAX, "endpoint %u has the unknown state %u", i, spec->endpoints[i].state);
	}
	return rules_check(&spec->rules, err);
}

/* --- sets --- */

/* So many that they cannot be counted are never less again: its connections end with their idle time, as they may. */
static void endpoint_enter(struct endpoint *e)
{
	uint16_t n = atomic_load_explicit(&e->sets, memory_order_relaxed);

	while (n < UINT16_MAX && !atomic_compare_exchange_weak_explicit(&e->sets, &n, (uint16_t)(n + 1), memory_order_relaxed, memory_order_relaxed))
		;
}

static void endpoint_leave(struct endpoint *e)
{
	uint16_t n = atomic_load_explicit(&e->sets, memory_order_relaxed);

	while (n < UINT16_MAX && !atomic_compare_exchange_weak_explicit(&e->sets, &n, (uint16_t)(n - 1), memory_order_relaxed, memory_order_relaxed))
		;
}

static size_t set_size(uint32_t n)
{
	return sizeof(struct endpoint_set) + n * sizeof(struct service_endpoint);
}

/* Lets go of the endpoints that are there. */
static void set_empty(struct endpoint_set *set)
{
	while (set->n) {
		struct endpoint *e = set->at[--set->n].endpoint;

		if (!set->replaced)
			endpoint_leave(e);
		endpoint_unref(e);
	}
}

/* What balancing would else have to look for at each request. */
static void set_look(struct endpoint_set *set)
{
	bool equal = set->n > 0 && set->at[0].weight;
	uint16_t most = 0;

	for (uint32_t i = 0; i < set->n; i++) {
		const struct service_endpoint *e = &set->at[i];

		equal = equal && e->state == ENDPOINT_READY && e->weight == set->at[0].weight;
		if (e->state == ENDPOINT_READY && e->weight > most)
			most = e->weight;
	}
	set->equal = equal;
	set->bits = most ? 32 - (unsigned)__builtin_clz(most) : 0;
}

static enum err set_fill(struct endpoint_set *set, struct endpoint_table *t, const struct service_endpoint_spec *e, uint32_t n)
{
	for (set->n = 0; set->n < n; set->n++) {
		struct service_endpoint *to = &set->at[set->n];

		to->endpoint = endpoint_get(t, &e[set->n].address);
		if (!to->endpoint) {
			set_empty(set);
			return ERR_MEM;
		}
		to->id = endpoint_id(to->endpoint);
		to->weight = e[set->n].weight;
		to->state = e[set->n].state;
		endpoint_enter(to->endpoint);
	}
	set_look(set);
	return OK;
}

struct endpoint_set *endpoint_set_new(struct endpoint_table *t, const struct service_endpoint_spec *e, uint32_t n)
{
	struct endpoint_set *set = mem_zalloc(set_size(n));

	if (set && set_fill(set, t, e, n) != OK) {
		mem_free(set);
		set = NULL;
	}
	return set;
}

void endpoint_set_free(struct endpoint_set *set)
{
	if (!set)
		return;
	set_empty(set);
	if (!set->inner)
		mem_free(set);
}

/* Requests to them are counted from here on, when they have limits or are compared. */
static void set_count(const struct service *s, const struct endpoint_set *set)
{
	if ((set->n < 2 || s->rules->balance == BALANCE_ROUND_ROBIN) && !rules_limit(s->rules))
		return;
	for (uint32_t i = 0; i < set->n; i++)
		slot_count(set->at[i].endpoint);
}

struct endpoint_set *service_swap(struct service *s, struct endpoint_set *set)
{
	struct endpoint_set *old;

	set_count(s, set);
	old = atomic_exchange_explicit(&s->set, set, memory_order_acq_rel);
	for (uint32_t i = 0; i < old->n; i++)
		endpoint_leave(old->at[i].endpoint);
	old->replaced = true;
	return old;
}

/* --- services --- */

/* Where in a service's block its first set lies. */
static size_t set_place(size_t name)
{
	const size_t align = _Alignof(struct endpoint_set);

	return (offsetof(struct service, name) + name + align - 1) / align * align;
}

struct service *service_new(struct endpoint_table *t, const struct service_spec *spec, struct snapshot_error *err)
{
	struct endpoint_set *set;
	size_t at = set_place(spec->name.n);
	struct service *s;

	if (spec_check(spec, err) != OK)
		return NULL;
	s = mem_zalloc(at + set_size(spec->n_endpoints));
	if (!s)
		goto fail;
	set = (struct endpoint_set *)((char *)s + at);
	set->inner = true;
	memcpy(s->name, spec->name.p, spec->name.n);
	s->name_len = (uint16_t)spec->name.n;
	s->table = endpoint_table_number(t);
	s->named = spec->named;
	chan_init(&s->health, 0);
	atomic_init(&s->refs, 1);
	atomic_init(&s->set, set);
	s->rules = rules_get(endpoint_table_rules(t), &spec->rules);
	if (!s->rules || set_fill(set, t, spec->endpoints, spec->n_endpoints) != OK)
		goto fail;
	set_count(s, set);
	if (endpoint_table_take_service(t, &s->index) == OK)
		return s;
	set_empty(set);
fail:
	if (s)
		rules_unref(endpoint_table_rules(t), s->rules);
	mem_free(s);
	snapshot_error_set(err, ERR_MEM, "no memory for a service");
	return NULL;
}

bool service_is(const struct service *s, const struct service_spec *spec)
{
	const struct endpoint_set *set = service_set(s);
	uint32_t i;

	if (!str_eq(service_name(s), spec->name) || !rules_same(s->rules, &spec->rules) || s->named != spec->named)
		return false;
	if (s->named)		/* whoever knows its names says what its set is */
		return true;
	if (set->n != spec->n_endpoints)
		return false;
	for (i = 0; i < set->n; i++)
		if (set->at[i].weight != spec->endpoints[i].weight || set->at[i].state != spec->endpoints[i].state ||
		    !endpoint_address_valid(&spec->endpoints[i].address) ||
		    !endpoint_is(set->at[i].endpoint, &spec->endpoints[i].address))
			return false;
	return true;
}

struct service *service_ref(struct service *s)
{
	atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
	return s;
}

void service_unref(struct service *s)
{
	struct endpoint_table *t;

	if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
		return;
	t = endpoint_table_at(s->table);
	endpoint_table_give_service(t, s->index);
	endpoint_set_free(atomic_load_explicit(&s->set, memory_order_relaxed));
	rules_unref(endpoint_table_rules(t), s->rules);
	mem_free(s);
}
