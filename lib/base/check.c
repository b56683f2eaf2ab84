/* Door: where a broken promise ends the process.  Owns nothing, is called from
 * the CHECK macro alone, allocates nothing and does not return. */
#include "lib/base/check.h"

#include <stdio.h>
#include <stdlib.h>

_Noreturn void check_failed(const char *cond, const char *file, int line)
{
	fprintf(stderr, "thimble: %s:%d: check failed: %s\n", file, line, cond);
	abort();
}
