/* Within dispatch: the router's parts, for router_new.c, which makes them, and
 * router.c, which reads them.
 *
 * Two tries.  In `hosts`, labels from the right; a node holds the roots of the path
 * trees for the exact name and for the wildcard that ends there, the root that of
 * any host.  In `paths`, segments from the left; a node holds the rules for the exact
 * path and for the prefix that ends there.  The root of a path tree is the prefix
 * "/", and holds the rules with an expression where others hold exact ones. */
#ifndef THIMBLE_DISPATCH_ROUTER_INNER_H
#define THIMBLE_DISPATCH_ROUTER_INNER_H

#include <stdint.h>
#include "dispatch/regex.h"
#include "dispatch/rule.h"
#include "dispatch/trie.h"

#define ROUTER_HOST_MAX 253	/* bytes of a host name */

enum { HOST_EXACT = 0, HOST_WILD = 1 };			/* list[] of a node of hosts */
enum { PATH_EXACT = 0, PATH_PREFIX = 1, PATH_REGEX = 0 };	/* list[] of a node of paths; REGEX: of a root */

struct rule {
	const void *target;
	uint32_t cond;		/* 1 + the place of its conditions; 0: none, as most */
	uint32_t next;		/* 1 + the next rule of the list, in order of precedence; 0: the last */
};

struct router {
	struct trie hosts, paths;
	uint32_t host_root;
	size_t n_rules;
	struct rule *rule;		/* owned array */
	struct rule_cond **cond;	/* owned array of owned conditions */
	uint32_t n_conds;
	struct regex_pool *pool;	/* owned; NULL when no rule has an expression */
};

#endif
