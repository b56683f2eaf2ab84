/* A tree of strings in one block: the child of a node by a piece (a label of a
 * host, a segment of a path) is found with one hash probe, however many there are.
 * Grows only while it is built; nodes are named by their place in the block. */
#ifndef THIMBLE_DISPATCH_TRIE_H
#define THIMBLE_DISPATCH_TRIE_H

#include <stdint.h>
#include "lib/base/err.h"
#include "lib/base/str.h"

#define TRIE_NONE 0u

struct trie_node {
	uint32_t parent;	/* TRIE_NONE: a root */
	uint32_t list[2];	/* for the owner; 0 when new */
	uint32_t len;
	char piece[];
};

struct trie_slot {
	uint32_t tag, node;	/* node: TRIE_NONE when free */
};

struct trie {
	char *block;		/* owned */
	struct trie_slot *slot;	/* owned, a power of two long */
	uint32_t used, cap;	/* bytes of the block */
	uint32_t n_slots, n_children;
	uint32_t longest;	/* bytes of the longest piece */
};

/* All zero is an empty trie. */
void trie_fini(struct trie *t);

static inline struct trie_node *trie_at(const struct trie *t, uint32_t node)
{
	return (struct trie_node *)(t->block + node);
}

/* A new root; ERR_MEM. */
MUST_USE enum err trie_root(struct trie *t, uint32_t *node);
/* The child of `parent` by `piece`, made when new; ERR_MEM. */
MUST_USE enum err trie_add(struct trie *t, uint32_t parent, struct str piece, uint32_t *node);
/* The child of `parent` by `piece`, TRIE_NONE when there is none. */
uint32_t trie_child(const struct trie *t, uint32_t parent, struct str piece);

/* Gives back what it has grown beyond its need; nothing is added after that. */
void trie_trim(struct trie *t);

#endif
