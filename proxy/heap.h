/* Heap: what a wave of connections or handshakes has left in it goes back to the system.  That takes milliseconds, and who
 * allocates meanwhile waits; so the main thread does it, when a worker says that a wave is over, and not too often. */
#ifndef THIMBLE_PROXY_HEAP_H
#define THIMBLE_PROXY_HEAP_H

#include <stdint.h>
#include "lib/base/err.h"

struct heap;
struct server;

/* NULL: no memory. */
struct heap *heap_new(unsigned workers) MUST_USE;
/* When no worker runs any more.  NULL is accepted. */
void heap_free(struct heap *h);

/* By the worker of that index: wakes server->loop. */
void heap_ask(struct server *server, unsigned worker);

/* By the main thread.  In how many ms to call it again; -1: when it was woken. */
int64_t heap_tend(struct heap *h, uint32_t now_ms);

#endif
