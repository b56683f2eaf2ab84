/* Door: the look-up.  Walks the host from the right and the path from the left, as
 * far as there are nodes for them: what a client sends beyond the longest configured
 * name or path is never looked at.  Then back up, from the most specific to the
 * least.  Owns the router; allocates only for an expression.
 * Called once for each request, by any thread. */
#include "dispatch/router.h"

#include "dispatch/router_inner.h"
#include "dispatch/text.h"
#include "lib/base/mem.h"

static enum route_found list_find(const struct router *r, uint32_t list, const struct route_query *q,
				  const void **target)
{
	for (; list; list = r->rule[list - 1].next) {
		const struct rule *rule = &r->rule[list - 1];

		switch (rule_match(r->pool, rule->cond ? r->cond[rule->cond - 1] : NULL, q)) {
		case REGEX_YES:
			*target = rule->target;
			return ROUTE_FOUND;
		case REGEX_UNDECIDED:
			return ROUTE_UNDECIDED;
		case REGEX_NO:
			break;
		}
	}
	return ROUTE_NONE;
}

/* The deepest node on the path; *whole: it is the node of the whole path. */
static uint32_t path_walk(const struct router *r, uint32_t root, struct str path, bool *whole)
{
	const char *p = path.p, *end = path.p + path.n;
	uint32_t node = root, child;

	*whole = false;
	if (path.n == 0 || *p != '/')
		return node;
	while (p < end) {
		size_t left = (size_t)(end - ++p);
		size_t look = left <= r->paths.longest ? left : (size_t)r->paths.longest + 1;
		const char *slash = look ? memchr(p, '/', look) : NULL;
		struct str segment = {p, slash ? (size_t)(slash - p) : look};

		child = trie_child(&r->paths, node, segment);
		if (child == TRIE_NONE)
			return node;
		node = child;
		p += segment.n;
	}
	*whole = true;
	return node;
}

/* The first rule of the tree at `root` that matches. */
static enum route_found tree_find(const struct router *r, uint32_t root, const struct route_query *q,
				  const void **target)
{
	bool whole;
	uint32_t node = path_walk(r, root, q->path, &whole);
	enum route_found found = ROUTE_NONE;

	if (whole)
		found = list_find(r, trie_at(&r->paths, node)->list[PATH_EXACT], q, target);
	if (found == ROUTE_NONE)
		found = list_find(r, trie_at(&r->paths, root)->list[PATH_REGEX], q, target);
	for (; found == ROUTE_NONE && node != TRIE_NONE; node = trie_at(&r->paths, node)->parent)
		found = list_find(r, trie_at(&r->paths, node)->list[PATH_PREFIX], q, target);
	return found;
}

static inline char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

/* The deepest node on the host; *rest: how many bytes of the host it leaves, with
 * the dot between. */
static uint32_t host_walk(const struct router *r, struct str host, size_t *rest)
{
	char label[ROUTER_HOST_MAX];
	uint32_t node = r->host_root, child;
	size_t end = host.n, n;

	*rest = host.n;
	while (end > 0) {
		for (n = 0; n < end && n <= r->hosts.longest && host.p[end - 1 - n] != '.'; n++)
			;
		if (n > r->hosts.longest)
			break;
		for (size_t i = 0; i < n; i++)
			label[i] = lower(host.p[end - n + i]);
		child = trie_child(&r->hosts, node, (struct str){label, n});
		if (child == TRIE_NONE)
			break;
		node = child;
		*rest = end - n;
		if (*rest == 0)
			break;
		end = *rest - 1;
	}
	return node;
}

enum route_found router_find(struct router *r, const struct route_query *q, const void **target)
{
	size_t rest;
	uint32_t node = host_walk(r, text_host_of(q->host), &rest), tree;
	enum route_found found = ROUTE_NONE;

	if (rest == 0 && (tree = trie_at(&r->hosts, node)->list[HOST_EXACT]))
		found = tree_find(r, tree, q, target);
	/* A wildcard stands for one byte at least, before the dot. */
	if (rest <= 1 && node != r->host_root)
		node = trie_at(&r->hosts, node)->parent;
	for (; found == ROUTE_NONE && node != TRIE_NONE; node = trie_at(&r->hosts, node)->parent)
		if ((tree = trie_at(&r->hosts, node)->list[HOST_WILD]))
			found = tree_find(r, tree, q, target);
	return found;
}

void router_free(struct router *r)
{
	size_t i;

	if (!r)
		return;
	for (i = 0; i < r->n_conds; i++)
		rule_cond_free(r->cond[i]);
	mem_free(r->cond);
	mem_free(r->rule);
	trie_fini(&r->hosts);
	trie_fini(&r->paths);
	regex_pool_free(r->pool);
	mem_free(r);
}

size_t router_heap(const struct router *r)
{
	size_t sum = mem_size((void *)(uintptr_t)r) + mem_size(r->rule) + mem_size(r->cond) + mem_size(r->hosts.block) +
		     mem_size(r->hosts.slot) + mem_size(r->paths.block) + mem_size(r->paths.slot);
	size_t i;

	for (i = 0; i < r->n_conds; i++)
		sum += mem_size(r->cond[i]);
	return sum;
}
