/* Paths of URIs in their normal form (RFC 3986 6.2.2), for comparing: what is forwarded stays as it came. */
#ifndef THIMBLE_BASE_PATH_H
#define THIMBLE_BASE_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include "lib/base/str.h"

/* What in a path an origin may read otherwise than its normal form says. */
enum path_oddity {
	PATH_PLAIN,
	PATH_SEGMENTS,	/* dot segments, written plainly or with escapes, or empty ones: the normal form has none */
	PATH_UNSURE,	/* what is a slash or the end to some, and what the normal form keeps: a backslash, an encoded one, an
			 * encoded slash, an encoded NUL, dot segments with parameters (`/..;x/`) */
};

/* The worst of what is odd in `path`, which begins with '/'. */
enum path_oddity path_oddity(struct str path);

/* Whether path_normal would change nothing. */
bool path_is_normal(struct str path);

/* Writes the normal form of `path`, which begins with '/', to `out` (3 * path.n bytes) and returns its length:
 * unreserved characters are decoded, other escapes have capital digits, bytes that need an
 * escape get one, dot segments are resolved, and slashes that follow each other become
 * one, since origins of many kinds read them as one.  An encoded slash stays encoded, and a '%' that
 * begins no escape becomes "%25", so that it cannot begin one with what is decoded behind it: a normal form is
 * its own normal form. */
size_t path_normal(struct str path, char *out);

/* The first half of it: escapes alone. */
size_t path_normal_escapes(struct str path, char *out);

#endif
