/* Door: snapshots.  A snapshot owns its router and one reference to each service and
 * route of the specification; what did not change since the generation before is
 * taken from it.  Built on whatever thread reads the configuration, while workers
 * go on with the old one; read by all.
 * Never half: every object that was made for a refused one is dropped again. */
#include "dispatch/snapshot.h"

#include <stdatomic.h>
#include "lib/base/hash.h"
#include "lib/base/mem.h"

#define ALIKE 64		/* shapes of routes that new ones are compared with */

struct snapshot {
	_Atomic uint32_t refs;
	uint64_t generation;
	struct router *router;		/* owned */
	struct service **service;	/* owned array of owned references */
	const struct route **route;	/* the same */
	struct way *way;		/* owned array: by listener */
	size_t n_services, n_routes, n_ways;
};

struct way {			/* that connections of a listener take which does not speak HTTP */
	struct service *service;	/* borrowed: all of them; or */
	struct router *names;		/* owned: by server name; its targets are services */
};

/* Finds numbers by a hash, while a snapshot is built: an open table. */
struct finder {
	struct finder_slot {
		uint64_t hash;
		size_t at;		/* 1 + the number; 0: free */
	} *slot;			/* owned */
	size_t mask;
};

static enum err finder_init(struct finder *f, size_t n)
{
	size_t size = 8;

	while (size < 2 * n)
		size *= 2;
	f->mask = size - 1;
	f->slot = mem_zalloc(size * sizeof(*f->slot));
	return f->slot ? OK : ERR_MEM;
}

static void finder_add(struct finder *f, uint64_t hash, size_t at)
{
	size_t i = hash & f->mask;

	while (f->slot[i].at)
		i = (i + 1) & f->mask;
	f->slot[i] = (struct finder_slot){hash, at + 1};
}

/* The next number under `hash`, SIZE_MAX when there is no more; *i is SIZE_MAX at first. */
static size_t finder_next(const struct finder *f, uint64_t hash, size_t *i)
{
	*i = *i == SIZE_MAX ? hash & f->mask : (*i + 1) & f->mask;
	for (; f->slot[*i].at; *i = (*i + 1) & f->mask)
		if (f->slot[*i].hash == hash)
			return f->slot[*i].at - 1;
	return SIZE_MAX;
}

static void no_memory(struct snapshot_error *err)
{
	snapshot_error_set(err, ERR_MEM, "no memory for a snapshot");
}

static void place(struct snapshot_error *err, enum snapshot_part part, size_t index)
{
	err->part = part;
	err->index = index;
}

static struct service *old_service(struct snapshot *old, const struct finder *f, const struct service_spec *spec,
				   uint64_t hash)
{
	size_t i = SIZE_MAX, at;

	while ((at = finder_next(f, hash, &i)) != SIZE_MAX)
		if (service_is(old->service[at], spec))
			return service_ref(old->service[at]);
	return NULL;
}

static bool name_taken(const struct finder *f, const struct service_spec *specs, size_t at, uint64_t hash)
{
	size_t i = SIZE_MAX, other;

	while ((other = finder_next(f, hash, &i)) != SIZE_MAX)
		if (str_eq(specs[other].name, specs[at].name))
			return true;
	return false;
}

static enum err services_make(struct snapshot *s, const struct snapshot_spec *spec, struct snapshot *old,
			      struct finder *before, struct finder *names, struct snapshot_error *err)
{
	size_t i;

	for (i = 0; old && i < old->n_services; i++)
		finder_add(before, hash_str(service_name(old->service[i])), i);
	for (i = 0; i < spec->n_services; i++) {
		const struct service_spec *one = &spec->services[i];
		uint64_t hash = hash_str(one->name);
		struct service *made;

		if (name_taken(names, spec->services, i, hash)) {
			snapshot_error_set(err, ERR_SYNTAX, "there are two services '%.*s'", (int)one->name.n, one->name.p);
			place(err, PART_SERVICE, i);
			return ERR_SYNTAX;
		}
		finder_add(names, hash, i);
		made = old_service(old, before, one, hash);
		if (!made)
			made = service_new(spec->endpoints, one, err);
		if (!made) {
			place(err, PART_SERVICE, i);
			return err->err;
		}
		s->service[s->n_services++] = made;
	}
	return OK;
}

static const struct route *old_route(struct snapshot *old, const struct finder *f, const struct route_spec *spec,
				     uint64_t hash)
{
	size_t i = SIZE_MAX, at;

	while ((at = finder_next(f, hash, &i)) != SIZE_MAX)
		if (route_is(old->route[at], spec))
			return route_ref(old->route[at]);
	return NULL;
}

/* Puts the services of a split in their places: in *made, the caller's, which is NULL for none. */
static enum err backends_resolve(const struct snapshot *s, const struct snapshot_route *one, struct route_spec *is,
				 struct route_backend **made)
{
	*made = NULL;
	if (is->action != ROUTE_SPLIT)
		return OK;
	is->backends = *made = mem_alloc(is->n_backends * sizeof(**made));
	if (!*made)
		return ERR_MEM;
	for (size_t i = 0; i < is->n_backends; i++)
		(*made)[i] = (struct route_backend){
			.service = one->backends[i].service < s->n_services ? s->service[one->backends[i].service] : NULL,
			.weight = one->backends[i].weight,
		};
	return OK;
}

static enum err routes_make(struct snapshot *s, const struct snapshot_spec *spec, struct snapshot *old,
			    struct finder *before, struct snapshot_error *err)
{
	const struct route *alike[ALIKE] = {NULL};	/* borrowed: made of late, by what they do */
	size_t i;

	for (i = 0; old && i < old->n_routes; i++)
		finder_add(before, old->route[i]->hash, i);
	for (i = 0; i < spec->n_routes; i++) {
		const struct snapshot_route *one = &spec->routes[i];
		struct route_spec is = one->route;
		struct route_backend *backends;
		const struct route *made, **like;
		uint64_t hash;

		policy_bind(is.policy, s->service, s->n_services);
		if (backends_resolve(s, one, &is, &backends) != OK) {
			no_memory(err);
			return ERR_MEM;
		}
		is.service = is.action == ROUTE_SERVICE && one->service < s->n_services ? s->service[one->service] : NULL;
		hash = route_spec_hash(&is);
		made = old_route(old, before, &is, hash);
		like = &alike[route_shape_hash(&is) % ALIKE];
		if (!made)
			made = route_new(&is, hash, *like, err);
		*like = made;
		mem_free(backends);
		if (!made) {
			place(err, PART_ROUTE, i);
			return err->err;
		}
		s->route[s->n_routes++] = made;
	}
	return OK;
}

/* Which route the n-th match of all belongs to. */
static void match_place(const struct snapshot_spec *spec, size_t n, struct snapshot_error *err)
{
	size_t i = 0;

	while (i < spec->n_routes && n >= spec->routes[i].n_matches)
		n -= spec->routes[i++].n_matches;
	if (i == spec->n_routes)
		return;
	place(err, PART_ROUTE, i);
	err->match = n;
}

static enum err router_make(struct snapshot *s, const struct snapshot_spec *spec, struct snapshot_error *err)
{
	struct route_match *all;
	size_t i, k, n = 0;

	for (i = 0; i < spec->n_routes; i++)
		n += spec->routes[i].n_matches;
	all = mem_alloc(n * sizeof(*all));
	if (!all) {
		no_memory(err);
		return ERR_MEM;
	}
	for (i = 0, n = 0; i < spec->n_routes; i++)
		for (k = 0; k < spec->routes[i].n_matches; k++) {
			all[n] = spec->routes[i].matches[k];
			all[n++].target = s->route[i];
		}
	s->router = router_new(all, n, err);
	mem_free(all);
	if (s->router)
		return OK;
	if (err->err == ERR_SYNTAX)
		match_place(spec, err->index, err);
	return err->err;
}

/* A host's rule for every path, since server names have none. */
static struct router *names_make(const struct snapshot *s, const struct snapshot_listener *l, struct snapshot_error *err)
{
	struct route_match *m = mem_zalloc(l->n_names * sizeof(*m));
	struct router *r;
	size_t i;

	if (!m) {
		no_memory(err);
		return NULL;
	}
	for (i = 0; i < l->n_names; i++) {
		m[i].host = l->names[i].host;
		m[i].path = STR("/");
		m[i].target = s->service[l->names[i].service];
	}
	r = router_new(m, l->n_names, err);
	mem_free(m);
	return r;
}

static enum err ways_make(struct snapshot *s, const struct snapshot_spec *spec, struct snapshot_error *err)
{
	for (; s->n_ways < spec->n_listeners; s->n_ways++) {
		const struct snapshot_listener *l = &spec->listeners[s->n_ways];
		struct way *w = &s->way[s->n_ways];

		if (l->service != SNAPSHOT_NO_SERVICE)
			w->service = s->service[l->service];
		else if (l->n_names && !(w->names = names_make(s, l, err)))
			return err->err;
	}
	return OK;
}

static struct snapshot *snapshot_new(const struct snapshot_spec *spec, struct snapshot *old)
{
	struct snapshot *s = mem_zalloc(sizeof(*s));

	if (!s)
		return NULL;
	atomic_init(&s->refs, 1);
	s->generation = old ? old->generation + 1 : 1;
	s->service = mem_alloc(spec->n_services * sizeof(struct service *));
	s->route = mem_alloc(spec->n_routes * sizeof(struct route *));
	s->way = mem_zalloc(spec->n_listeners * sizeof(*s->way));
	if (s->service && s->route && s->way)
		return s;
	snapshot_unref(s);
	return NULL;
}

struct snapshot *snapshot_build(const struct snapshot_spec *spec, struct snapshot *old, struct snapshot_error *err)
{
	struct finder services = {0}, names = {0}, routes = {0};
	struct snapshot_error why = {0};
	struct snapshot *s = snapshot_new(spec, old);
	enum err e = ERR_MEM;

	if (!s || finder_init(&services, old ? old->n_services : 0) != OK ||
	    finder_init(&names, spec->n_services) != OK || finder_init(&routes, old ? old->n_routes : 0) != OK)
		no_memory(&why);
	else
		e = services_make(s, spec, old, &services, &names, &why);
	if (e == OK)
		e = routes_make(s, spec, old, &routes, &why);
	if (e == OK)
		e = router_make(s, spec, &why);
	if (e == OK)
		e = ways_make(s, spec, &why);
	mem_free(services.slot);
	mem_free(names.slot);
	mem_free(routes.slot);
	if (e == OK)
		return s;
	snapshot_unref(s);
	*err = why;
	return NULL;
}

struct snapshot *snapshot_ref(struct snapshot *s)
{
	atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
	return s;
}

void snapshot_unref(struct snapshot *s)
{
	size_t i;

	if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
		return;
	router_free(s->router);
	for (i = 0; i < s->n_routes; i++)
		route_unref(s->route[i]);
	for (i = 0; i < s->n_services; i++)
		service_unref(s->service[i]);
	for (i = 0; i < s->n_ways; i++)
		router_free(s->way[i].names);
	mem_free(s->way);
	mem_free(s->route);
	mem_free(s->service);
	mem_free(s);
}

enum route_found snapshot_find(struct snapshot *s, const struct route_query *q, const struct route **route)
{
	const void *target;
	enum route_found found = router_find(s->router, q, &target);

	if (found == ROUTE_FOUND)
		*route = target;
	return found;
}

struct service *snapshot_stream(struct snapshot *s, size_t listener, struct str name)
{
	struct route_query q = {.host = name, .path = STR("/")};
	const void *target;

	if (listener >= s->n_ways)
		return NULL;
	if (s->way[listener].service || !s->way[listener].names)
		return s->way[listener].service;
	return router_find(s->way[listener].names, &q, &target) == ROUTE_FOUND ? (struct service *)(uintptr_t)target : NULL;
}

uint64_t snapshot_generation(const struct snapshot *s)
{
	return s->generation;
}

struct service *const *snapshot_services(const struct snapshot *s, size_t *n)
{
	*n = s->n_services;
	return s->service;
}

size_t snapshot_heap(const struct snapshot *s)
{
	size_t sum = mem_size((void *)(uintptr_t)s) + mem_size(s->service) + mem_size(s->route) + mem_size(s->way) +
		     router_heap(s->router);
	size_t i;

	for (i = 0; i < s->n_ways; i++)
		sum += s->way[i].names ? router_heap(s->way[i].names) : 0;
	return sum;
}
