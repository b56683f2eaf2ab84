/* Small numbers that are unique among those in use: the lowest free one is given. */
#ifndef THIMBLE_DISPATCH_IDS_H
#define THIMBLE_DISPATCH_IDS_H

#include <stdint.h>
#include "lib/base/err.h"

struct ids {
	uint64_t *used;		/* owned: a bit for each number */
	uint32_t n_words;
	uint32_t lowest;	/* every word before this one is full */
	uint32_t live;		/* numbers in use */
};

/* All zero is an empty set.  CHECKs that no number is in use. */
void ids_fini(struct ids *s);
MUST_USE enum err ids_take(struct ids *s, uint32_t *id);
void ids_give(struct ids *s, uint32_t id);

#endif
