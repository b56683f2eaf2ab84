/* How long an endpoint keeps a connection that is idle: what it says of that (Keep-Alive: timeout=5), and what its closes
 * have taught.  One word an endpoint, shared by all workers, 0 at first; whatever is in it, it is only a hint. */
#ifndef THIMBLE_DISPATCH_IDLE_H
#define THIMBLE_DISPATCH_IDLE_H

#include <stdatomic.h>
#include <stdint.h>

#define IDLE_LEAST_MS 64u	/* what is closed sooner teaches nothing */

/* It keeps them for `seconds`. */
void idle_told(_Atomic uint32_t *word, uint32_t seconds, uint32_t now_ms);

/* It has closed one, and not many at once, that had been idle for `idle_ms`.  Two closes in a row after about the same time teach; a single one, as
 * of an endpoint that ends, does not. */
void idle_closed(_Atomic uint32_t *word, uint32_t idle_ms, uint32_t now_ms);

/* How long one may be kept, at most `max_ms`: so much less than the endpoint keeps it that it is not used as it is being closed.
 * What was learned is doubted more and more from five minutes on, and what it said is forgotten an hour later. */
uint32_t idle_keep_ms(_Atomic uint32_t *word, uint32_t max_ms, uint32_t now_ms);

#endif
