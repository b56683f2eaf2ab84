/* Inside the room: YAML as a tree of nodes with places, before it has a meaning. */
#ifndef THIMBLE_CONF_TREE_H
#define THIMBLE_CONF_TREE_H

#include "conf/conf.h"

enum conf_node_kind {
	CONF_NODE_TEXT,
	CONF_NODE_LIST,
	CONF_NODE_MAP,
	CONF_NODE_BAD,	/* wrong, and reported already */
};

/* Owned by the arena it was read into; texts are followed by a NUL. */
struct conf_node {
	enum conf_node_kind kind;
	struct conf_pos pos;
	struct conf_pos key_pos;	/* of a member of a map, as key */
	struct str key;
	struct str text;		/* of CONF_NODE_TEXT, variables replaced */
	struct conf_node *first, *next;
	uint32_t count;			/* of members */
};

/* Reads one YAML document.  OK, and *root (NULL: nothing in it) even if smaller
 * errors were added to `e`; ERR_SYNTAX, reported, when there is no whole tree. */
MUST_USE enum err conf_tree_read(struct str text, conf_env *env, struct arena *arena,
				 struct conf_errors *e, struct conf_node **root);

/* The member called `key`, or NULL. */
const struct conf_node *conf_node_child(const struct conf_node *map, const char *key);

/* For messages: "a list" and the like. */
const char *conf_node_what(const struct conf_node *n);

/* A copy of `s` with a NUL after it; p NULL: no memory. */
struct str conf_dup(struct arena *arena, struct str s) MUST_USE;

#endif
