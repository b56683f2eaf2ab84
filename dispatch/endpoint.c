/* Door: endpoints and the table that interns them.  The table owns its slots and the numbers; an endpoint is owned by
 * those who hold references.  Snapshots are built on one thread while workers let
 * go on others, so the table has a lock; it is taken to make an endpoint and to
 * drop the last reference, never on the way of a request.
 * Invariant: what is in the table has at least one reference whenever the lock is
 * free, for the last one is dropped under it.
 * It never writes a verdict after the first zero. */
#include "dispatch/endpoint.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include "dispatch/endpoint_table.h"
#include "dispatch/ids.h"
#include "dispatch/slot.h"
#include "dispatch/rules.h"
#include "lib/base/check.h"
#include "lib/base/hash.h"
#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "lib/base/put.h"

_Static_assert(offsetof(struct endpoint, address) + 4 <= 40, "an endpoint is small: there are many");

struct endpoint_table {
	pthread_mutex_t lock;		/* over all below */
	struct endpoint **slot;		/* owned array, open, a power of two long; NULL at first */
	uint32_t n_slots;
	uint32_t bound;			/* every index given so far is below */
	struct ids endpoints, services;
	struct rules_table *rules;	/* owned; it has a lock of its own */
	uint8_t number;			/* its place among the tables */
};

/* An endpoint says by one byte where it is: eight for a pointer would be a fifth of it. */
static _Atomic(struct endpoint_table *) tables[ENDPOINT_TABLES_MAX];

static bool table_number(struct endpoint_table *t)
{
	for (t->number = 0; t->number < ENDPOINT_TABLES_MAX; t->number++) {
		struct endpoint_table *none = NULL;

		if (atomic_compare_exchange_strong(&tables[t->number], &none, t))
			return true;
	}
	return false;
}

struct endpoint_table *endpoint_table_at(uint8_t number)
{
	return atomic_load_explicit(&tables[number], memory_order_relaxed);
}

uint8_t endpoint_table_number(const struct endpoint_table *t)
{
	return t->number;
}

struct endpoint_table *endpoint_table_new(void)
{
	struct endpoint_table *t = mem_zalloc(sizeof(*t));

	if (!t)
		return NULL;
	t->rules = rules_table_new();
	if (!t->rules || !table_number(t)) {
		rules_table_free(t->rules);
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
	atomic_store(&tables[t->number], NULL);
	mem_free(t->slot);
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

/* --- the address --- */

/* The bytes that are kept of it. */
static struct str address_bytes(const struct endpoint_address *a)
{
	if (a->family == ENDPOINT_UNIX)
		return (struct str){a->path, strlen(a->path) + 1};
	return (struct str){(const char *)a->ip, a->family == ENDPOINT_IP4 ? 4 : 16};
}

static struct str own_bytes(const struct endpoint *e)
{
	const char *p = (const char *)e->address;

	return (struct str){p, e->family == ENDPOINT_IP4 ? 4 : e->family == ENDPOINT_IP6 ? 16 : strlen(p) + 1};
}

struct endpoint_address endpoint_address_of(const struct endpoint *e)
{
	struct endpoint_address a = {.family = e->family, .port = e->port, .tls = e->tls, .health = e->health};

	if (e->family == ENDPOINT_UNIX)
		a.path = (const char *)e->address;
	else
		memcpy(a.ip, e->address, e->family == ENDPOINT_IP4 ? 4 : 16);
	return a;
}

bool endpoint_is(const struct endpoint *e, const struct endpoint_address *a)
{
	return e->family == a->family && e->tls == a->tls && e->health == a->health && (e->family == ENDPOINT_UNIX || e->port == a->port) &&
	       str_eq(own_bytes(e), address_bytes(a));
}

static char *put_octet(char *p, unsigned v)
{
	if (v >= 100)
		*p++ = (char)('0' + v / 100);
	if (v >= 10)
		*p++ = (char)('0' + v / 10 % 10);
	*p++ = (char)('0' + v % 10);
	return p;
}

struct str endpoint_text(const struct endpoint *e, char text[ENDPOINT_TEXT_MAX])
{
	char *p = text;

	if (e->family == ENDPOINT_UNIX) {
		p = put_str(PUT(p, "unix:"), str_of((const char *)e->address));
		*p = 0;
		return (struct str){text, (size_t)(p - text)};
	}
	if (e->family == ENDPOINT_IP4) {
		for (int i = 0; i < 4; i++) {
			p = put_octet(p, e->address[i]);
			*p++ = i < 3 ? '.' : ':';
		}
	} else {
		*p++ = '[';
		CHECK(inet_ntop(AF_INET6, e->address, p, INET6_ADDRSTRLEN));
		p += strlen(p);
		p = PUT(p, "]:");
	}
	p += num_dec(p, e->port);
	*p = 0;
	return (struct str){text, (size_t)(p - text)};
}

/* Puts family, port and, for whoever asks for it, the number of TLS before the bytes.  The rules of health are left
 * out: hardly an address has several. */
static uint64_t address_hash(struct hash_key key, uint8_t family, uint16_t port, uint16_t tls, struct str bytes)
{
	uint8_t b[5 + ENDPOINT_PATH_MAX + 1] = {family, (uint8_t)port, (uint8_t)(port >> 8), (uint8_t)tls, (uint8_t)(tls >> 8)};

	memcpy(b + 5, bytes.p, bytes.n);
	return hash_keyed(key, (struct str){(const char *)b, 5 + bytes.n});
}

uint32_t endpoint_id(const struct endpoint *e)
{
	static const struct hash_key everywhere = {UINT64_C(0x7468696d626c6521), UINT64_C(0x656e64706f696e74)};
	uint32_t id = (uint32_t)address_hash(everywhere, e->family, e->port, 0, own_bytes(e));

	return id ? id : 1;
}

/* --- the table --- */

static uint32_t slot_of(const struct endpoint_table *t, const struct endpoint_address *a)
{
	return (uint32_t)address_hash(hash_process_key(), a->family, a->port, a->tls, address_bytes(a)) & (t->n_slots - 1);
}

static uint32_t own_slot(const struct endpoint_table *t, const struct endpoint *e)
{
	struct endpoint_address a = endpoint_address_of(e);

	return slot_of(t, &a);
}

static enum err table_grow(struct endpoint_table *t)
{
	uint32_t old_n = t->n_slots, i, at;
	struct endpoint **old = t->slot;
	uint32_t n = old_n ? old_n * 2 : 8;
	struct endpoint **slot = mem_zalloc(n * sizeof(struct endpoint *));

	if (!slot)
		return ERR_MEM;
	t->slot = slot;
	t->n_slots = n;
	for (i = 0; i < old_n; i++) {
		if (!old[i])
			continue;
		for (at = own_slot(t, old[i]); t->slot[at]; at = (at + 1) & (n - 1))
			;
		t->slot[at] = old[i];
	}
	mem_free(old);
	return OK;
}

/* The slot of `a`, or the free one where it would be; there is a free one. */
static struct endpoint **table_find(struct endpoint_table *t, const struct endpoint_address *a)
{
	uint32_t at = slot_of(t, a);

	while (t->slot[at] && !endpoint_is(t->slot[at], a))
		at = (at + 1) & (t->n_slots - 1);
	return &t->slot[at];
}

static struct endpoint *endpoint_new(struct endpoint_table *t, const struct endpoint_address *a)
{
	struct str bytes = address_bytes(a);
	size_t size = offsetof(struct endpoint, address) + bytes.n;
	struct endpoint *e = mem_zalloc(size < sizeof(*e) ? sizeof(*e) : size);

	if (!e)
		return NULL;
	if (ids_take(&t->endpoints, &e->index) != OK) {
		mem_free(e);
		return NULL;
	}
	if (e->index >= t->bound)
		t->bound = e->index + 1;
	atomic_init(&e->refs, 1);
	e->table = t->number;
	e->family = a->family;
	e->tls = a->tls;
	e->health = a->health;
	e->port = a->family == ENDPOINT_UNIX ? 0 : a->port;
	memcpy(e->address, bytes.p, bytes.n);
	return e;
}

struct endpoint *endpoint_get(struct endpoint_table *t, const struct endpoint_address *a)
{
	struct endpoint_address key = *a;
	struct endpoint *e = NULL, **at;

	CHECK(endpoint_address_valid(a));
	if (a->family == ENDPOINT_UNIX)
		key.port = 0;
	pthread_mutex_lock(&t->lock);
	if (t->endpoints.live < t->n_slots / 4 * 3 || table_grow(t) == OK) {
		at = table_find(t, &key);
		if (*at)
			e = endpoint_ref(*at);
		else
			e = *at = endpoint_new(t, &key);
	}
	pthread_mutex_unlock(&t->lock);
	return e;
}

struct endpoint *endpoint_ref(struct endpoint *e)
{
	atomic_fetch_add_explicit(&e->refs, 1, memory_order_relaxed);
	return e;
}

/* Those behind it that would not be found any more move up. */
static void table_remove(struct endpoint_table *t, struct endpoint *e)
{
	struct endpoint_address a = endpoint_address_of(e);
	uint32_t mask = t->n_slots - 1, hole = (uint32_t)(table_find(t, &a) - t->slot), i;

	CHECK(t->slot[hole] == e);
	for (i = (hole + 1) & mask; t->slot[i]; i = (i + 1) & mask) {
		if (((i - own_slot(t, t->slot[i])) & mask) < ((i - hole) & mask))
			continue;
		t->slot[hole] = t->slot[i];
		hole = i;
	}
	t->slot[hole] = NULL;
	ids_give(&t->endpoints, e->index);
}

/* It may be the last. */
static __attribute__((noinline)) void unref_locked(struct endpoint *e)
{
	struct endpoint_table *t = endpoint_table_at(e->table);
	bool last;

	pthread_mutex_lock(&t->lock);
	last = atomic_fetch_sub_explicit(&e->refs, 1, memory_order_acq_rel) == 1;
	if (last)
		table_remove(t, e);
	pthread_mutex_unlock(&t->lock);
	if (!last)
		return;
	CHECK(!(atomic_load(&e->inflight) & ~SLOT_COUNTED) && !atomic_load(&e->conns));	/* whoever has one has a reference */
	mem_free(e);
}

void endpoint_unref(struct endpoint *e)
{
	uint32_t refs;

	if (!e)
		return;
	/* Not the last: no lock.  endpoint_get may find an endpoint as long as it is
	 * in the table, so that 1 -> 0 happens under the lock alone. */
	refs = atomic_load_explicit(&e->refs, memory_order_relaxed);
	while (refs > 1)
		if (atomic_compare_exchange_weak_explicit(&e->refs, &refs, refs - 1, memory_order_release,
							  memory_order_relaxed))
			return;
	unref_locked(e);
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
