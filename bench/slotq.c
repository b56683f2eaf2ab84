/* Door: what a lazily grown queue costs, in bytes and nanoseconds, beside the
 * published figures for channels that are built of blocks of 32 slots.
 *
 * Bytes are counted, not computed: the linker routes malloc, calloc, realloc and
 * free of this program through the count below, which adds what the C library
 * says that a block can hold and the 8 bytes before it.  A queue lives on the
 * heap here, so that its handle is counted, too; embedded it would be 16 bytes.
 * Times are the processor time of this thread, best of several runs. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/base/slotq.h"

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void __real_free(void *p);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void __wrap_free(void *p);

static bool counting;
static size_t heap;	/* bytes in blocks that are out */

static void count(void *p, int sign)
{
	if (__builtin_expect(counting && p, 0))
		heap += (size_t)sign * (malloc_usable_size(p) + 8);
}

void *__wrap_malloc(size_t n)
{
	void *p = __real_malloc(n);
	count(p, 1);
	return p;
}

void *__wrap_calloc(size_t n, size_t size)
{
	void *p = __real_calloc(n, size);
	count(p, 1);
	return p;
}

void *__wrap_realloc(void *p, size_t n)
{
	count(p, -1);
	void *q = __real_realloc(p, n);
	count(q, 1);
	return q;
}

void __wrap_free(void *p)
{
	count(p, -1);
	__real_free(p);
}

static const size_t messages[] = {8, 24, 128, 250, 1024};
/* Bytes of one unbounded or bounded channel after creation, whatever its
 * capacity: one block of 32 slots and its head, as published. */
static const unsigned published[] = {800, 1312, 4640, 8544, 33312};
static const unsigned capacities[] = {1, 32, 1024};

#define COUNT(a) (sizeof(a) / sizeof(*(a)))
#define MESSAGE_MAX 1024

static char item[MESSAGE_MAX];		/* goes in */
static char out[MESSAGE_MAX];

static void push(struct slotq *q, size_t size, unsigned capacity)
{
	CHECK(slotq_push(q, item, size, size * capacity, NULL) == OK);
}

struct bytes {
	size_t created, first, full, drained;
};

/* One queue through its stages; what other code allocates meanwhile would show. */
static struct bytes measure_bytes(size_t size, unsigned capacity)
{
	struct bytes b;
	heap = 0;
	counting = true;
	struct slotq *q = mem_alloc(sizeof(*q));
	CHECK(q);
	slotq_init(q);
	b.created = heap;
	push(q, size, capacity);
	b.first = heap;
	while (slotq_len(q) < capacity)
		push(q, size, capacity);
	CHECK(slotq_push(q, item, size, size * capacity, NULL) == ERR_LIMIT);
	b.full = heap;
	while (slotq_pop(q, out, size, NULL))
		;
	b.drained = heap;
	mem_free(q);
	counting = false;
	CHECK(heap == 0);
	return b;
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Nanoseconds for one item in and out, `burst` in before the first comes out. */
static double measure_time(size_t size, unsigned burst)
{
	enum { ITEMS = 200000, RUNS = 5 };
	double best = 0;
	struct slotq q;
	slotq_init(&q);
	for (int run = 0; run < RUNS; run++) {
		double start = now();
		for (unsigned done = 0; done < ITEMS; done += burst) {
			for (unsigned i = 0; i < burst; i++)
				push(&q, size, burst);
			for (unsigned i = 0; i < burst; i++)
				CHECK(slotq_pop(&q, out, size, NULL));
		}
		double each = (now() - start) / (double)((ITEMS + burst - 1) / burst * burst);
		best = run == 0 || each < best ? each : best;
	}
	slotq_fini(&q, size, NULL);
	return best;
}

int main(void)
{
	printf("bytes on the heap, the queue's own 16-byte handle (an allocation here) included\n");
	printf("%8s %9s | %8s %8s %8s %8s | %s\n", "message", "capacity", "created", "1st item", "full", "drained",
	    "published, created");
	for (size_t m = 0; m < COUNT(messages); m++) {
		for (size_t c = 0; c < COUNT(capacities); c++) {
			struct bytes b = measure_bytes(messages[m], capacities[c]);
			printf("%8zu %9u | %8zu %8zu %8zu %8zu | %u\n", messages[m], capacities[c],
			    b.created, b.first, b.full, b.drained, published[m]);
		}
	}
	printf("\nns per item, in and out\n%8s | %13s %12s %14s\n", "message", "one at a time", "bursts of 32",
	    "bursts of 1024");
	for (size_t m = 0; m < COUNT(messages); m++)
		printf("%8zu | %13.1f %12.1f %14.1f\n", messages[m], measure_time(messages[m], 1),
		    measure_time(messages[m], 32), measure_time(messages[m], 1024));
	return 0;
}
