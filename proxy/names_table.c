/* names_table: see names_parts.h.
 *
 * Purpose   one name, however many use it, and which is due first.
 * Owns      the names.
 * Called by names.c. */
#include "proxy/names_parts.h"

#include <string.h>

#include "lib/base/check.h"
#include "lib/base/hash.h"
#include "lib/base/mem.h"

#define IN_NO_HEAP UINT32_MAX

/* --- the heap --- */

static void heap_put(struct names *n, uint32_t i, struct name *name)
{
	n->heap[i] = name;
	name->heap_at = i;
}

static void heap_up(struct names *n, uint32_t i, struct name *name)
{
	for (; i && n->heap[(i - 1) / 2]->due > name->due; i = (i - 1) / 2)
		heap_put(n, i, n->heap[(i - 1) / 2]);
	heap_put(n, i, name);
}

static void heap_down(struct names *n, uint32_t i, struct name *name)
{
	for (uint32_t child; (child = 2 * i + 1) < n->n_heap; i = child) {
		if (child + 1 < n->n_heap && n->heap[child + 1]->due < n->heap[child]->due)
			child++;
		if (n->heap[child]->due >= name->due)
			break;
		heap_put(n, i, n->heap[child]);
	}
	heap_put(n, i, name);
}

static void heap_remove(struct names *n, struct name *name)
{
	uint32_t i = name->heap_at;
	struct name *last;

	if (i == IN_NO_HEAP)
		return;
	name->heap_at = IN_NO_HEAP;
	last = n->heap[--n->n_heap];
	if (last == name)
		return;
	if (i && n->heap[(i - 1) / 2]->due > last->due)
		heap_up(n, i, last);
	else
		heap_down(n, i, last);
}

/* There is always room: for as many as there are names. */
void name_plan(struct name *name)
{
	struct names *n = name->names;

	heap_remove(n, name);
	CHECK(n->n_heap < n->room);
	heap_up(n, n->n_heap++, name);
}

struct name *names_next(struct names *n)
{
	struct name *name = n->heap[0];

	heap_remove(n, name);
	return name;
}

static enum err heap_reach(struct names *n, uint32_t count)
{
	uint32_t room = n->room ? n->room : 4;
	struct name **grown;

	if (count <= n->room)
		return OK;
	while (room < count)
		room *= 2;
	grown = mem_realloc(n->heap, room * sizeof(*grown));
	if (!grown)
		return ERR_MEM;
	n->heap = grown;
	n->room = room;
	return OK;
}

/* --- the table --- */

static struct name **bucket_of(struct names *n, struct str text)
{
	return &n->bucket[hash_str(text) & (n->n_buckets - 1)];
}

static enum err buckets_reach(struct names *n, uint32_t count)
{
	uint32_t before = n->n_buckets, now = before ? 2 * before : 8;
	struct name **old = n->bucket, **grown, *next;

	if (count <= before)
		return OK;
	grown = mem_zalloc(now * sizeof(*grown));
	if (!grown)
		return ERR_MEM;
	n->bucket = grown;
	n->n_buckets = now;
	for (uint32_t i = 0; i < before; i++)
		for (struct name *at = old[i]; at; at = next) {
			struct name **b = bucket_of(n, (struct str){ at->text, at->n });

			next = at->chain;
			at->chain = *b;
			*b = at;
		}
	mem_free(old);
	return OK;
}

static struct name *name_find(struct names *n, struct str text, bool srv)
{
	struct name *at = n->n_buckets ? *bucket_of(n, text) : NULL;

	while (at && (at->srv != srv || !str_eq((struct str){ at->text, at->n }, text)))
		at = at->chain;
	return at;
}

static struct name *name_new(struct names *n, struct str text, bool srv)
{
	struct name *name, **b;

	if (buckets_reach(n, n->n_names + 1) != OK || heap_reach(n, n->n_names + 1) != OK)
		return NULL;
	name = mem_zalloc(sizeof(*name) + text.n + 1);
	if (!name)
		return NULL;
	name->names = n;
	name->srv = srv;
	name->n = (uint32_t)text.n;
	name->heap_at = IN_NO_HEAP;
	memcpy(name->text, text.p, text.n);
	b = bucket_of(n, text);
	name->chain = *b;
	*b = name;
	n->n_names++;
	return name;
}

static void name_free(struct name *name)
{
	struct names *n = name->names;
	struct name **at = bucket_of(n, (struct str){ name->text, name->n });

	while (*at != name)
		at = &(*at)->chain;
	*at = name->chain;
	n->n_names--;
	heap_remove(n, name);
	if (name->look)
		resolver_forget(name->look);
	for (uint32_t i = 0; name->targets && i < name->have[0].n; i++)
		name_unuse(&name->targets[i]);
	mem_free(name->targets);
	for (int i = 0; i < 2; i++)
		answer_part_fini(&name->have[i], name->srv);
	mem_free(name);
}

enum err name_use(struct names *n, struct str text, bool srv, uint8_t types, struct use *u)
{
	struct name *name = name_find(n, text, srv);

	if (!name)
		name = name_new(n, text, srv);
	if (!name)
		return ERR_MEM;
	u->name = name;
	u->before = NULL;
	u->next = name->uses;
	if (u->next)
		u->next->before = u;
	name->uses = u;
	if ((types & ~name->types) == 0)
		return OK;
	name->types |= types;
	name->due = 0;
	if (!name->look)
		name_plan(name);
	return OK;
}

void name_unuse(struct use *u)
{
	struct name *name = u->name;

	if (!name)
		return;
	u->name = NULL;
	*(u->before ? &u->before->next : &name->uses) = u->next;
	if (u->next)
		u->next->before = u->before;
	if (!name->uses)
		name_free(name);
}

void names_table_fini(struct names *n)
{
	CHECK(!n->n_names);
	mem_free(n->bucket);
	mem_free(n->heap);
}
