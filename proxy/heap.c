/* heap: see heap.h.  Owns what workers have handed over, until the next look.
 *
 * A thread keeps several hundred small blocks that it has freed, wherever they lie, and each of them keeps its page: two MB
 * after a wave of 1,000 SSL objects.  mem_trim does not touch them.  So a worker hands its own over when it asks, and
 * they are freed in a thread that ends, since the end of a thread is what empties its cache. */
#include "proxy/heap.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include "lib/base/mem.h"
#include "lib/net/loop.h"
#include "proxy/log.h"
#include "proxy/server.h"

#define SHARE 100u		/* one part of the time at most */

struct heap {
	_Atomic bool asked;
	uint32_t trimmed, wait;		/* ms: when it was given back, and for how long it is not again */
	unsigned n;
	_Atomic(void *) spare[];	/* owned: small blocks, of each worker; NULL: none */
};

struct heap *heap_new(unsigned workers)
{
	struct heap *h = mem_zalloc(sizeof *h + workers * sizeof h->spare[0]);

	if (h)
		h->n = workers;
	return h;
}

void heap_free(struct heap *h)
{
	for (unsigned i = 0; h && i < h->n; i++)
		mem_spare_free(atomic_load(&h->spare[i]));
	mem_free(h);
}

void heap_ask(struct server *server, unsigned worker)
{
	struct heap *h = server->heap;

	if (!atomic_load(&h->spare[worker]))	/* nobody else puts any there */
		atomic_store(&h->spare[worker], mem_spare_take());
	atomic_store(&h->asked, true);
	loop_wake(server->loop);
}

static uint64_t cpu_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void *free_all(void *heap)
{
	struct heap *h = heap;

	for (unsigned i = 0; i < h->n; i++)
		mem_spare_free(atomic_exchange(&h->spare[i], NULL));
	return NULL;
}

static void free_and_end(struct heap *h)
{
	sigset_t all, before;
	pthread_t thread;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	error = pthread_create(&thread, NULL, free_all, h);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error)
		free_all(h);
	else
		pthread_join(thread, NULL);
}

int64_t heap_tend(struct heap *h, uint32_t now_ms)
{
	uint64_t before;
	uint32_t took;

	if (!atomic_load_explicit(&h->asked, memory_order_relaxed))
		return -1;
	if (now_ms - h->trimmed < h->wait)
		return (int64_t)(h->wait - (now_ms - h->trimmed));
	before = cpu_us();
	atomic_store(&h->asked, false);
	free_and_end(h);
	mem_trim();
	took = (uint32_t)(cpu_us() - before);
	h->trimmed = now_ms;
	h->wait = 1 + took * SHARE / 1000;
	log_debug("a wave is over: the heap was given back in %u us", took);
	return -1;
}
