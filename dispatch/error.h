/* Why a specification was refused: what part of it, and a sentence for people. */
#ifndef THIMBLE_DISPATCH_ERROR_H
#define THIMBLE_DISPATCH_ERROR_H

#include <stddef.h>
#include "lib/base/err.h"

enum snapshot_part { PART_NONE, PART_SERVICE, PART_ROUTE };

struct snapshot_error {
	enum err err;			/* ERR_MEM, or ERR_SYNTAX for a specification that cannot be */
	enum snapshot_part part;
	size_t index;			/* which service or route of the specification, from 0 */
	size_t match;			/* which match of that route, from 0 */
	char text[192];			/* for people; ends with NUL, no line end */
};

/* Notes an error; `err` is returned.  `e` may be NULL. */
enum err snapshot_error_set(struct snapshot_error *e, enum err err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
