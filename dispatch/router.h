/* The router: which rule a request matches, by all that a Gateway API HTTPRoute
 * may ask.  Made once, never changed, read by any number of threads.
 *
 * Of the rules that match, the first by this order wins:
 *   1. host: the exact name, then the longest wildcard, then any host
 *   2. path: exact, then regular expression (longest expression first), then the
 *      longest prefix.  The API leaves the place of expressions open; after the
 *      prefixes a catch-all "/" would hide every one of them.
 *   3. a rule that asks for a method
 *   4. most header matches
 *   5. most query matches
 *   6. the earlier rule
 * A rule of a better host that does not match leaves the request to the rules of
 * the next one. */
#ifndef THIMBLE_DISPATCH_ROUTER_H
#define THIMBLE_DISPATCH_ROUTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "dispatch/error.h"
#include "lib/base/err.h"
#include "lib/base/str.h"

enum match_kind {
	MATCH_PREFIX,	/* paths only: whole segments; a slash at its end is ignored */
	MATCH_EXACT,
	MATCH_REGEX,	/* PCRE2, bytes; must match the whole */
};

struct match_pair {
	uint8_t kind;		/* MATCH_EXACT or MATCH_REGEX */
	struct str name;	/* of a header: any case; of a query parameter: byte for byte */
	struct str value;
};

struct route_match {		/* everything in it is borrowed */
	struct str host;	/* "a.example", "*.example" (one or more labels), "" or "*" (any) */
	uint8_t path_kind;	/* enum match_kind */
	struct str path;	/* "" is the prefix "/" */
	struct str method;	/* "" is any; byte for byte */
	const struct match_pair *headers;	/* all must match; of one name only the first counts */
	const struct match_pair *queries;	/* the same */
	uint16_t n_headers, n_queries;
	const void *target;	/* what a look-up answers */
};

struct route_query {		/* everything in it is borrowed */
	struct str host;	/* host[:port], any case; may be empty */
	struct str path;	/* without the query */
	struct str method;
	struct str query;	/* behind the '?'; the first of a repeated parameter counts, bytes as they are */
	/* The value of a header by its name, any case; false when there is none.
	 * Called only when a rule that matches otherwise asks for one. */
	bool (*header)(void *ctx, struct str name, struct str *value);
	void *ctx;
};

enum route_found {
	ROUTE_FOUND,
	ROUTE_NONE,		/* no rule matches: 404 */
	ROUTE_UNDECIDED,	/* an expression passed its limits, or no memory for it: 500, never another rule */
};

struct router;

/* The router of `n` rules; NULL when refused, and `err` (may be NULL) says why,
 * err->index being the place of the rule.  Nothing of `m` is kept but `target`. */
struct router *router_new(const struct route_match *m, size_t n, struct snapshot_error *err) MUST_USE;
void router_free(struct router *r);

/* The target of the rule for `q`, in *target when ROUTE_FOUND. */
enum route_found router_find(struct router *r, const struct route_query *q, const void **target);

/* Heap bytes that it holds, regular expressions not counted. */
size_t router_heap(const struct router *r);

#endif
