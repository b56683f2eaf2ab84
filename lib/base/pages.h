/* Chunks of whole pages between the slabs of one thread and the system: what a busy second
 * frees and takes again does not go through the kernel each time, and what was not needed
 * for a while goes back to it. */
#ifndef THIMBLE_BASE_PAGES_H
#define THIMBLE_BASE_PAGES_H

#include <stddef.h>
#include "lib/base/budget.h"
#include "lib/base/err.h"

struct pages {
	struct budget *budget;	/* borrowed; may be NULL: charged for chunks kept here, too */
	void *list;		/* owned: chunks, linked by their first word */
	unsigned n;		/* chunks in it */
	unsigned low;		/* the fewest there were since the last trim */
	size_t size;		/* bytes of a chunk */
};

/* `size`: a power of two, at least a page. */
void pages_init(struct pages *p, size_t size, struct budget *budget);
/* Frees what is kept. */
void pages_fini(struct pages *p);

/* A chunk at a multiple of its size, not cleared; NULL when there is no memory or budget. */
void *pages_get(struct pages *p) MUST_USE;
void pages_put(struct pages *p, void *chunk);

/* Once in a while (a second, say) as long as n is not 0: frees the chunks that nobody needed since the
 * last time.  Two calls without a get in between free all. */
void pages_trim(struct pages *p);

#endif
