/* Door: endpoints and the table that interns them, and the choice of one for an
 * exchange.  The table owns its buckets and the numbers; an endpoint is owned by
 * those who hold references.  Snapshots are built on one thread while workers let
 * go on others, so the table has a lock; it is taken to make an endpoint and to
 * drop the last reference, never on the way of a request.
 * Invariant: what is in the table has at least one reference whenever the lock is
 * free, for the last one is dropped under it.
 * It never writes a verdict after the first zero. */
#include "dispatch/endpoint.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "dispatch/endpoint_table.h"
#include "dispatch/ids.h"
#include "dispatch/service.h"
#include "lib/base/check.h"
#include "lib/base/hash.h"
#include "lib/base/mem.h"

#define UNIX_TEXT "unix:"
#define TEXT_MAX (sizeof(UNIX_TEXT) + ENDPOINT_PATH_MAX)

_Static_assert(sizeof(struct endpoint) <= 64, "an endpoint is small: there are many");

struct endpoint_table {
	pthread_mutex_t lock;		/* over all below */
	struct endpoint **bucket;	/* owned array, a power of two long; NULL at first */
	uint32_t n_buckets;
	uint32_t bound;			/* every index given so far is below */
	struct ids endpoints, services;
	struct rules_table *rules;	/* owned; it has a lock of its own */
};

struct endpoint_table *endpoint_table_new(void)
{
	struct endpoint_table *t = mem_zalloc(sizeof(*t));

	if (!t)
		return NULL;
	t->rules = rules_table_new();
	if (!t->rules) {
		mem_free(t);
		return NULL;
	}
	CHECK(pthread_mutex_init(&t->lock, NULL) == 0);
	return t;
}

void endpoint_table_free(struct endpoint_table *t)
{
	if (!t)
		return;
	ids_fini(&t->endpoints);
	ids_fini(&t->services);
	rules_table_free(t->rules);
	pthread_mutex_destroy(&t->lock);
	mem_free(t->bucket);
	mem_free(t);
}

uint32_t endpoint_table_live(struct endpoint_table *t)
{
	uint32_t n;

	pthread_mutex_lock(&t->lock);
	n = t->endpoints.live;
	pthread_mutex_unlock(&t->lock);
	return n;
}

uint32_t endpoint_table_bound(struct endpoint_table *t)
{
	uint32_t n;

	pthread_mutex_lock(&t->lock);
	n = t->bound;
	pthread_mutex_unlock(&t->lock);
	return n;
}

enum err endpoint_table_take_service(struct endpoint_table *t, uint32_t *index)
{
	enum err err;

	pthread_mutex_lock(&t->lock);
	err = ids_take(&t->services, index);
	pthread_mutex_unlock(&t->lock);
	return err;
}

void endpoint_table_give_service(struct endpoint_table *t, uint32_t index)
{
	pthread_mutex_lock(&t->lock);
	ids_give(&t->services, index);
	pthread_mutex_unlock(&t->lock);
}

struct rules_table *endpoint_table_rules(struct endpoint_table *t)
{
	return t->rules;
}

bool endpoint_address_valid(const struct endpoint_address *a)
{
	size_t n;

	if (a->family == ENDPOINT_IP4 || a->family == ENDPOINT_IP6)
		return a->port != 0;
	if (a->family != ENDPOINT_UNIX || !a->path)
		return false;
	n = strnlen(a->path, ENDPOINT_PATH_MAX + 1);
	return n >= 2 && n <= ENDPOINT_PATH_MAX && (a->path[0] == '/' || a->path[0] == '@');
}

/* Writes the text of an address, which with `tls` is the identity: one text, one address. */
static size_t address_text(const struct endpoint_address *a, char text[TEXT_MAX])
{
	char ip[INET6_ADDRSTRLEN];

	if (a->family == ENDPOINT_UNIX)
		return (size_t)snprintf(text, TEXT_MAX, UNIX_TEXT "%s", a->path);
	CHECK(inet_ntop(a->family == ENDPOINT_IP4 ? AF_INET : AF_INET6, a->ip, ip, sizeof(ip)));
	return (size_t)snprintf(text, TEXT_MAX, a->family == ENDPOINT_IP4 ? "%s:%u" : "[%s]:%u", ip, a->port);
}

static struct endpoint **table_bucket(struct endpoint_table *t, struct str text)
{
	return &t->bucket[hash_str(text) & (t->n_buckets - 1)];
}

static enum err table_grow(struct endpoint_table *t)
{
	uint32_t old_n = t->n_buckets, i;
	struct endpoint **old = t->bucket, *e, *next;
	uint32_t n = old_n ? old_n * 2 : 8;
	struct endpoint **bucket = mem_zalloc(n * sizeof(struct endpoint *));

	if (!bucket)
		return ERR_MEM;
	t->bucket = bucket;
	t->n_buckets = n;
	for (i = 0; i < old_n; i++) {
		for (e = old[i]; e; e = next) {
			struct endpoint **b = table_bucket(t, endpoint_text(e));

			next = e->next;
			e->next = *b;
			*b = e;
		}
	}
	mem_free(old);
	return OK;
}

static struct endpoint *table_add(struct endpoint_table *t, const struct endpoint_address *a, struct str text)
{
	struct endpoint *e, **b;

	if (t->endpoints.live >= t->n_buckets && table_grow(t) != OK)
		return NULL;
	e = mem_zalloc(sizeof(*e) + text.n + 1);
	if (!e)
		return NULL;
	if (ids_take(&t->endpoints, &e->index) != OK) {
		mem_free(e);
		return NULL;
	}
	if (e->index >= t->bound)
		t->bound = e->index + 1;
	atomic_init(&e->refs, 1);
	e->table = t;
	e->family = a->family;
	e->tls = a->tls;
	if (a->family != ENDPOINT_UNIX) {
		e->port = a->port;
		memcpy(e->ip, a->ip, a->family == ENDPOINT_IP4 ? 4 : 16);
	}
	e->text_len = (uint8_t)text.n;
	memcpy(e->text, text.p, text.n);
	b = table_bucket(t, text);
	e->next = *b;
	*b = e;
	return e;
}

struct endpoint *endpoint_get(struct endpoint_table *t, const struct endpoint_address *a)
{
	char buf[TEXT_MAX];
	struct str text = {buf, 0};
	struct endpoint *e = NULL;

	CHECK(endpoint_address_valid(a));
	text.n = address_text(a, buf);
	pthread_mutex_lock(&t->lock);
	if (t->n_buckets)
		for (e = *table_bucket(t, text); e && (e->tls != a->tls || !str_eq(endpoint_text(e), text)); e = e->next)
			;
	if (e)
		endpoint_ref(e);
	else
		e = table_add(t, a, text);
	pthread_mutex_unlock(&t->lock);
	return e;
}

struct endpoint *endpoint_ref(struct endpoint *e)
{
	atomic_fetch_add_explicit(&e->refs, 1, memory_order_relaxed);
	return e;
}

static void table_remove(struct endpoint_table *t, struct endpoint *e)
{
	struct endpoint **at = table_bucket(t, endpoint_text(e));

	while (*at != e)
		at = &(*at)->next;
	*at = e->next;
	ids_give(&t->endpoints, e->index);
}

void endpoint_unref(struct endpoint *e)
{
	struct endpoint_table *t;
	uint32_t refs;
	bool last;

	if (!e)
		return;
	/* Not the last: no lock.  endpoint_get may find an endpoint as long as it is
	 * in the table, so that 1 -> 0 happens under the lock alone. */
	refs = atomic_load_explicit(&e->refs, memory_order_relaxed);
	while (refs > 1)
		if (atomic_compare_exchange_weak_explicit(&e->refs, &refs, refs - 1, memory_order_release,
							  memory_order_relaxed))
			return;
	t = e->table;
	pthread_mutex_lock(&t->lock);
	last = atomic_fetch_sub_explicit(&e->refs, 1, memory_order_acq_rel) == 1;
	if (last)
		table_remove(t, e);
	pthread_mutex_unlock(&t->lock);
	if (last)
		mem_free(e);
}

struct endpoint_address endpoint_address_of(const struct endpoint *e)
{
	struct endpoint_address a = {.family = e->family, .port = e->port, .tls = e->tls};

	if (e->family == ENDPOINT_UNIX)
		a.path = e->text + sizeof(UNIX_TEXT) - 1;
	else
		memcpy(a.ip, e->ip, sizeof(a.ip));
	return a;
}

bool endpoint_is(const struct endpoint *e, const struct endpoint_address *a)
{
	if (e->family != a->family || e->tls != a->tls)
		return false;
	if (e->family == ENDPOINT_UNIX)
		return strcmp(e->text + sizeof(UNIX_TEXT) - 1, a->path) == 0;
	return e->port == a->port && memcmp(e->ip, a->ip, e->family == ENDPOINT_IP4 ? 4 : 16) == 0;
}

void endpoint_tried_add(struct endpoint_tried *t, const struct endpoint *e)
{
	t->index[t->n++ % ENDPOINT_TRIED_MAX] = e->index;
}

bool endpoint_tried_has(const struct endpoint_tried *t, const struct endpoint *e)
{
	uint32_t i, n = t->n < ENDPOINT_TRIED_MAX ? t->n : ENDPOINT_TRIED_MAX;

	for (i = 0; i < n; i++)
		if (t->index[i] == e->index)
			return true;
	return false;
}

struct endpoint *endpoint_pick(const struct service *s, uint32_t *cursor, const struct endpoint_tried *tried)
{
	const struct endpoint_set *set = service_set(s);
	uint32_t n = set->n, start, i, best = 0;
	int best_rank = -1;

	if (n == 0)
		return NULL;
	start = *cursor % n;
	for (i = 0; i < n && best_rank < 3; i++) {
		uint32_t at = start + i < n ? start + i : start + i - n;
		const struct endpoint *e = set->at[at].endpoint;
		int rank = 2 * endpoint_up(e) + !(tried && endpoint_tried_has(tried, e));

		if (rank > best_rank) {
			best_rank = rank;
			best = at;
		}
	}
	*cursor = best + 1;
	return set->at[best].endpoint;
}
