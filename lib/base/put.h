/* Bytes put one behind the other into room that was made before: heads, lines of a log. */
#ifndef THIMBLE_BASE_PUT_H
#define THIMBLE_BASE_PUT_H

#include <string.h>
#include "lib/base/str.h"

/* Copies `s` to `to` and returns the end.  Short ones, which nearly all are, go in two halves that
 * may overlap: a call of memcpy costs more than the copy. */
static inline char *put_str(char *to, struct str s)
{
	const char *p = s.p;
	size_t n = s.n;

	if (n >= 16) {
		if (n > 32) {
			memcpy(to, p, n);
			return to + n;
		}
		memcpy(to, p, 16);
		memcpy(to + n - 16, p + n - 16, 16);
	} else if (n >= 8) {
		memcpy(to, p, 8);
		memcpy(to + n - 8, p + n - 8, 8);
	} else if (n >= 4) {
		memcpy(to, p, 4);
		memcpy(to + n - 4, p + n - 4, 4);
	} else if (n) {
		to[0] = p[0];
		to[n / 2] = p[n / 2];
		to[n - 1] = p[n - 1];
	}
	return to + n;
}

/* Puts a string literal. */
#define PUT(to, literal) (memcpy((to), (literal), sizeof(literal) - 1), (to) + sizeof(literal) - 1)

#endif
