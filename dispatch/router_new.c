/* Door: how a router is made.  Checks every rule, sorts them once by what decides
 * between rules of one host and path, and puts each at the head of its list, the
 * last first.  Runs on whatever thread builds a snapshot; the router is seen by
 * others only when it is whole. */
#include <stdlib.h>
#include "dispatch/router.h"
#include "dispatch/router_inner.h"
#include "dispatch/text.h"
#include "lib/base/mem.h"

#define PATH_MAX_LEN 4096
#define PAIRS_MAX 64	/* of headers, and of query parameters, in one rule */

struct rank {		/* what decides between rules of one host and path */
	uint32_t at;		/* place of the rule */
	uint32_t regex;		/* length of the expression; 0: none */
	uint16_t headers, queries;
	bool method;
};

static int rank_compare(const void *va, const void *vb)
{
	const struct rank *a = va, *b = vb;

	if (a->regex != b->regex)
		return a->regex > b->regex ? -1 : 1;
	if (a->method != b->method)
		return a->method ? -1 : 1;
	if (a->headers != b->headers)
		return a->headers > b->headers ? -1 : 1;
	if (a->queries != b->queries)
		return a->queries > b->queries ? -1 : 1;
	return a->at < b->at ? -1 : a->at > b->at;
}

static enum err path_check(const struct route_match *m, struct snapshot_error *err)
{
	if (m->path_kind > MATCH_REGEX)
		return snapshot_error_set(err, ERR_SYNTAX, "unknown kind %u of a path match", m->path_kind);
	if (m->path_kind == MATCH_REGEX)
		return OK;
	if (m->path.n == 0 && m->path_kind == MATCH_PREFIX)
		return OK;
	if (m->path.n == 0 || m->path.p[0] != '/')
		return snapshot_error_set(err, ERR_SYNTAX, "a path begins with '/'");
	if (m->path.n > PATH_MAX_LEN)
		return snapshot_error_set(err, ERR_SYNTAX, "a path is longer than %d bytes", PATH_MAX_LEN);
	if (!text_target(m->path) || memchr(m->path.p, '?', m->path.n) || memchr(m->path.p, '#', m->path.n))
		return snapshot_error_set(err, ERR_SYNTAX, "a path holds a space, a control byte, '?' or '#'");
	return OK;
}

/* Takes a host apart: the name without "*." and the dot at its end; *wild also for any host. */
static enum err host_check(struct str host, struct str *name, bool *wild, struct snapshot_error *err)
{
	size_t i;

	*wild = true;
	if (host.n == 0 || str_eq(host, STR("*"))) {
		*name = STR("");
		return OK;
	}
	*wild = str_starts(host, STR("*."));
	*name = *wild ? (struct str){host.p + 2, host.n - 2} : host;
	if (text_host_of(*name).n + (name->n && name->p[name->n - 1] == '.') != name->n)
		return snapshot_error_set(err, ERR_SYNTAX, "a host to match has no port");
	*name = text_host_of(*name);
	if (!text_host(*name) || name->n > ROUTER_HOST_MAX)
		return snapshot_error_set(err, ERR_SYNTAX,
					  "a host is a name, '*.' and a name, or '*', of at most %d bytes", ROUTER_HOST_MAX);
	for (i = 0; i < name->n; i++)
		if (name->p[i] == '.' && (i == 0 || name->p[i - 1] == '.'))
			return snapshot_error_set(err, ERR_SYNTAX, "a host has an empty label");
	return OK;
}

/* The node of `name`, whose labels are added from the right. */
static enum err host_node(struct router *r, struct str name, uint32_t *node)
{
	char label[ROUTER_HOST_MAX];
	size_t end = name.n, n, i;

	*node = r->host_root;
	while (end > 0) {
		for (n = 0; n < end && name.p[end - 1 - n] != '.'; n++)
			;
		for (i = 0; i < n; i++) {
			char c = name.p[end - n + i];

			label[i] = c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
		}
		if (trie_add(&r->hosts, *node, (struct str){label, n}, node) != OK)
			return ERR_MEM;
		end -= n < end ? n + 1 : n;
	}
	return OK;
}

/* The root of the path tree for a host, made when new. */
static enum err host_tree(struct router *r, struct str name, bool wild, uint32_t *tree)
{
	uint32_t node, *list;

	if (host_node(r, name, &node) != OK)
		return ERR_MEM;
	list = &trie_at(&r->hosts, node)->list[wild ? HOST_WILD : HOST_EXACT];
	if (*list == TRIE_NONE && trie_root(&r->paths, list) != OK)
		return ERR_MEM;
	*tree = *list;
	return OK;
}

static enum err path_node(struct router *r, uint32_t tree, struct str path, uint32_t *node)
{
	const char *p = path.p, *end = path.p + path.n, *slash;

	*node = tree;
	while (path.n && p < end) {
		p++;
		slash = p < end ? memchr(p, '/', (size_t)(end - p)) : NULL;
		if (!slash)
			slash = end;
		if (trie_add(&r->paths, *node, (struct str){p, (size_t)(slash - p)}, node) != OK)
			return ERR_MEM;
		p = slash;
	}
	return OK;
}

static enum err cond_add(struct router *r, const struct route_match *m, uint32_t at, struct snapshot_error *err)
{
	struct rule_cond *made, **grown;
	enum err e = rule_cond_new(&r->pool, m, &made, err);

	if (e != OK || !made)
		return e;
	grown = r->n_conds & (r->n_conds - 1) ? r->cond : mem_realloc(r->cond, (r->n_conds ? r->n_conds * 2 : 1) * sizeof(*grown));
	if (!grown) {
		rule_cond_free(made);
		return snapshot_error_set(err, ERR_MEM, "no memory for the router");
	}
	r->cond = grown;
	r->cond[r->n_conds++] = made;
	r->rule[at].cond = r->n_conds;
	return OK;
}

static enum err rule_place(struct router *r, const struct route_match *m, uint32_t at, struct snapshot_error *err)
{
	struct str name, path = m->path_kind == MATCH_PREFIX ? text_no_slash(m->path) : m->path;
	uint32_t tree, node, *list;
	bool wild;
	enum err e = host_check(m->host, &name, &wild, err);

	if (e == OK)
		e = path_check(m, err);
	if (e == OK)
		e = cond_add(r, m, at, err);
	if (e != OK)
		return e;
	if (host_tree(r, name, wild, &tree) != OK ||
	    path_node(r, tree, m->path_kind == MATCH_REGEX ? STR("") : path, &node) != OK)
		return snapshot_error_set(err, ERR_MEM, "no memory for the router");
	list = &trie_at(&r->paths, node)->list[m->path_kind == MATCH_PREFIX ? PATH_PREFIX : PATH_EXACT];
	r->rule[at].target = m->target;
	r->rule[at].next = *list;
	*list = at + 1;
	return OK;
}

static enum err ranks_make(struct rank *rank, const struct route_match *m, size_t n, struct snapshot_error *err)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (m[i].n_headers > PAIRS_MAX || m[i].n_queries > PAIRS_MAX) {
			snapshot_error_set(err, ERR_SYNTAX, "a rule asks for more than %d headers or parameters", PAIRS_MAX);
			if (err)
				err->index = i;
			return ERR_SYNTAX;
		}
		rank[i] = (struct rank){
			.at = (uint32_t)i,
			.regex = m[i].path_kind == MATCH_REGEX ? (uint32_t)m[i].path.n : 0,
			.headers = rule_pairs(m[i].headers, m[i].n_headers, true),
			.queries = rule_pairs(m[i].queries, m[i].n_queries, false),
			.method = m[i].method.n != 0,
		};
	}
	qsort(rank, n, sizeof(*rank), rank_compare);
	return OK;
}

struct router *router_new(const struct route_match *m, size_t n, struct snapshot_error *err)
{
	struct router *r = mem_zalloc(sizeof(*r));
	struct rank *rank = mem_alloc(n * sizeof(*rank));
	size_t i;

	if (!r || !rank || n >= UINT32_MAX || !(r->rule = mem_zalloc(n * sizeof(*r->rule))) ||
	    trie_root(&r->hosts, &r->host_root) != OK) {
		snapshot_error_set(err, ERR_MEM, "no memory for the router");
		goto fail;
	}
	r->n_rules = n;
	if (ranks_make(rank, m, n, err) != OK)
		goto fail;
	for (i = n; i-- > 0;)
		if (rule_place(r, &m[rank[i].at], rank[i].at, err) != OK) {
			if (err)
				err->index = rank[i].at;
			goto fail;
		}
	mem_free(rank);
	trie_trim(&r->hosts);
	trie_trim(&r->paths);
	return r;
fail:
	mem_free(rank);
	router_free(r);
	return NULL;
}
