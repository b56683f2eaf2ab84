/* Regular expressions, always over the whole subject, bytes not characters, with
 * limits on what a match may cost. */
#ifndef THIMBLE_DISPATCH_REGEX_H
#define THIMBLE_DISPATCH_REGEX_H

#include <stddef.h>
#include "lib/base/err.h"
#include "lib/base/str.h"

#define REGEX_PATTERN_MAX 1024	/* bytes */

enum regex_match { REGEX_NO, REGEX_YES, REGEX_UNDECIDED };

struct regex;		/* a compiled expression */
struct regex_pool;	/* what the expressions of one router share */

/* The pool is made with the first expression: *pool is NULL before.  ERR_MEM, or
 * ERR_SYNTAX with a sentence in `why`. */
MUST_USE enum err regex_new(struct regex_pool **pool, struct str pattern, struct regex **out,
			    char *why, size_t why_size);
void regex_free(struct regex *r);
/* After every expression of it; NULL is accepted. */
void regex_pool_free(struct regex_pool *p);

/* Any thread.  REGEX_UNDECIDED when a limit was passed, or there is no memory. */
enum regex_match regex_match(struct regex_pool *p, const struct regex *r, struct str subject);

#endif
