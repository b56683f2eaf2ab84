/* Origins (RFC 6454 6.2: scheme://host[:port], as browsers write them) and patterns of them. */
#ifndef THIMBLE_BASE_ORIGIN_H
#define THIMBLE_BASE_ORIGIN_H

#include <stdbool.h>
#include "lib/base/err.h"
#include "lib/base/str.h"

#define ORIGIN_MAX 512	/* bytes of a pattern */

/* What is behind a pattern: '*', an origin, or one whose host begins with "*." (one label) or "**." (any
 * number of labels, but not none). */
enum origin_kind { ORIGIN_ANY, ORIGIN_EXACT, ORIGIN_LABEL, ORIGIN_LABELS };

struct origin_pattern {
	enum origin_kind kind;
	struct str head;	/* all of an exact one; else the scheme and "://", or nothing */
	struct str tail;	/* from the dot behind the star */
};

/* Reads a pattern; parts are lent from it.  ERR_SYNTAX, and *why (a constant text that goes on from the pattern) when no
 * browser could send such an origin. */
MUST_USE enum err origin_parse(struct str pattern, struct origin_pattern *out, const char **why);

/* Whether an Origin field has such a value.  It may be any bytes; of those that match, those that stand for a star
 * are letters, digits, '-' and '_', with dots between. */
bool origin_match(const struct origin_pattern *p, struct str origin);

#endif
