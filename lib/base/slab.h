/* Objects of one size, for one thread; memory comes in chunks of 16 KiB that go
 * back to the system as soon as they are empty.  The fullest chunk is used
 * first, so that empty ones appear. */
#ifndef THIMBLE_BASE_SLAB_H
#define THIMBLE_BASE_SLAB_H

#include <stddef.h>
#include <stdint.h>
#include "lib/base/budget.h"
#include "lib/base/err.h"

#define SLAB_CHUNK (16u * 1024)

struct slab_chunk;

struct slab {
	struct budget *budget;	/* borrowed; may be NULL */
	uint32_t size;		/* bytes an object takes, a multiple of 8 */
	uint32_t per_chunk;
	size_t live;		/* objects handed out */
	size_t chunks;
	struct slab_chunk *partial[8];	/* by fullness, fullest last */
	struct slab_chunk *spare;	/* one empty chunk kept, so that a lone object does not flap */
};

/* `size` is rounded up to 8 and is at most 4096. */
void slab_init(struct slab *s, size_t size, struct budget *budget);
/* CHECKs that no object is out. */
void slab_fini(struct slab *s);

/* An object, not cleared; NULL when there is no memory or no budget. */
void *slab_get(struct slab *s) MUST_USE;
/* Takes it back; NULL is accepted. */
void slab_put(struct slab *s, void *object);

#endif
