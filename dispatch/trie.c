/* Door: trie, the index of the router over hosts and paths.  Owns its block of nodes
 * and one hash table for all edges.  Called by the router alone; read by many
 * threads once it is built.
 * The hash is keyed: who chooses Host and path cannot choose collisions. */
#include "dispatch/trie.h"

#include "lib/base/hash.h"
#include "lib/base/mem.h"

#define ALIGN 4u
#define FIRST 8u	/* so that no node is at TRIE_NONE */

void trie_fini(struct trie *t)
{
	mem_free(t->block);
	mem_free(t->slot);
	*t = (struct trie){0};
}

static enum err node_new(struct trie *t, uint32_t parent, struct str piece, uint32_t *node)
{
	uint64_t at = t->used ? t->used : FIRST;
	uint64_t end = (at + sizeof(struct trie_node) + piece.n + ALIGN - 1) & ~(uint64_t)(ALIGN - 1);
	struct trie_node *n;

	if (end > t->cap) {
		uint64_t cap = end * 2 < 256 ? 256 : end * 2;
		char *block = cap < UINT32_MAX ? mem_realloc(t->block, cap) : NULL;

		if (!block)
			return ERR_MEM;
		t->block = block;
		t->cap = (uint32_t)cap;
	}
	n = (struct trie_node *)(t->block + at);
	*n = (struct trie_node){.parent = parent, .len = (uint32_t)piece.n};
	if (piece.n)
		memcpy(n->piece, piece.p, piece.n);
	if (piece.n > t->longest)
		t->longest = (uint32_t)piece.n;
	t->used = (uint32_t)end;
	*node = (uint32_t)at;
	return OK;
}

enum err trie_root(struct trie *t, uint32_t *node)
{
	return node_new(t, TRIE_NONE, STR(""), node);
}

static uint64_t edge_hash(uint32_t parent, struct str piece)
{
	uint64_t h = (hash_str(piece) + parent) * UINT64_C(0x9e3779b97f4a7c15);

	return h ^ h >> 32;
}

/* The slot of that edge, or the free one where it would be; there is a free one. */
static struct trie_slot *edge_slot(const struct trie *t, uint64_t hash, uint32_t parent, struct str piece)
{
	uint32_t mask = t->n_slots - 1, i = (uint32_t)hash & mask, tag = (uint32_t)(hash >> 32);

	for (;; i = (i + 1) & mask) {
		struct trie_slot *s = &t->slot[i];
		const struct trie_node *n;

		if (s->node == TRIE_NONE)
			return s;
		if (s->tag != tag)
			continue;
		n = trie_at(t, s->node);
		if (n->parent == parent && str_eq((struct str){n->piece, n->len}, piece))
			return s;
	}
}

static enum err slots_grow(struct trie *t)
{
	struct trie old = *t;
	uint32_t i, n = old.n_slots ? old.n_slots * 2 : 8;
	struct trie_slot *slot = n > old.n_slots ? mem_zalloc(n * sizeof(*slot)) : NULL;

	if (!slot)
		return ERR_MEM;
	t->slot = slot;
	t->n_slots = n;
	for (i = 0; i < old.n_slots; i++) {
		const struct trie_node *e;
		struct str piece;

		if (old.slot[i].node == TRIE_NONE)
			continue;
		e = trie_at(t, old.slot[i].node);
		piece = (struct str){e->piece, e->len};
		*edge_slot(t, edge_hash(e->parent, piece), e->parent, piece) = old.slot[i];
	}
	mem_free(old.slot);
	return OK;
}

enum err trie_add(struct trie *t, uint32_t parent, struct str piece, uint32_t *node)
{
	uint64_t hash = edge_hash(parent, piece);
	struct trie_slot *s;

	if (t->n_children >= t->n_slots / 4 * 3 && slots_grow(t) != OK)
		return ERR_MEM;
	s = edge_slot(t, hash, parent, piece);
	if (s->node == TRIE_NONE) {
		uint32_t at;

		if (node_new(t, parent, piece, &at) != OK)
			return ERR_MEM;
		*s = (struct trie_slot){(uint32_t)(hash >> 32), at};
		t->n_children++;
	}
	*node = s->node;
	return OK;
}

uint32_t trie_child(const struct trie *t, uint32_t parent, struct str piece)
{
	if (t->n_slots == 0 || piece.n > t->longest)
		return TRIE_NONE;
	return edge_slot(t, edge_hash(parent, piece), parent, piece)->node;
}

void trie_trim(struct trie *t)
{
	char *block = t->used ? mem_realloc(t->block, t->used) : NULL;

	if (!block)
		return;
	t->block = block;
	t->cap = t->used;
}
