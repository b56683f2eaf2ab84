/* Ring of records between one writing and one reading thread.
 *
 * Owns its pages.  A worker formats a log line into reserve()'s room and commits
 * it; the log's writer thread peeks at runs of whole records, hands them to
 * writev, and releases what the kernel took.  Never blocks, never copies, never
 * grows: without room the record is counted as dropped.
 *
 * Invariants: head <= tail <= head + size.  A record that would straddle the end
 * starts at the front instead, and `gap` tells the reader where the data before
 * the turn ended.  One gap is enough: the writer may pass the end again only
 * when head has passed it, and then the reader is done with the old gap.  */
#include "lib/base/logring.h"

#include "lib/base/check.h"
#include "lib/base/mem.h"

static size_t logring_load(const _Atomic size_t *p, memory_order order)
{
	return atomic_load_explicit(p, order);
}

static void logring_count(_Atomic uint64_t *p, uint64_t n)
{
	/* One thread writes each count: no locked instruction needed. */
	uint64_t old = atomic_load_explicit(p, memory_order_relaxed);

	atomic_store_explicit(p, old + n, memory_order_relaxed);
}

enum err logring_init(struct logring *r, size_t size)
{
	size_t n = LOGRING_MIN;
	char *bytes;

	while (n < size && n <= SIZE_MAX / 4)
		n *= 2;
	bytes = mem_pages(n);
	if (!bytes)
		return ERR_MEM;
	r->bytes = bytes;
	r->size = n;
	r->start = r->head_seen = r->gap = 0;
	atomic_store_explicit(&r->tail, 0, memory_order_relaxed);
	atomic_store_explicit(&r->head, 0, memory_order_relaxed);
	return OK;
}

void logring_fini(struct logring *r)
{
	if (r->bytes)
		mem_pages_free(r->bytes, r->size);
	r->bytes = NULL;
	r->size = 0;
}

/* The head as the writer knows it, read anew when the old one leaves no room up to `end`. */
static bool logring_fits(struct logring *r, size_t end)
{
	if (end - r->head_seen <= r->size)
		return true;
	r->head_seen = logring_load(&r->head, memory_order_acquire);
	return end - r->head_seen <= r->size;
}

char *logring_reserve(struct logring *r, size_t n)
{
	size_t start = logring_load(&r->tail, memory_order_relaxed);
	size_t place = start & (r->size - 1);

	CHECK(n > 0);
	if (n > r->size - place)
		start += r->size - place;	/* at the front; a gap stays behind */
	if (n > r->size || !logring_fits(r, start + n)) {
		logring_drop(r);
		return NULL;
	}
	r->start = start;
	return r->bytes + (start & (r->size - 1));
}

void logring_commit(struct logring *r, size_t n)
{
	CHECK(n > 0);
	if ((r->start & (r->size - 1)) == 0)
		r->gap = logring_load(&r->tail, memory_order_relaxed);
	logring_count(&r->records, 1);
	logring_count(&r->written, n);
	atomic_store_explicit(&r->tail, r->start + n, memory_order_release);
}

void logring_drop(struct logring *r)
{
	logring_count(&r->dropped, 1);
}

void logring_publish(struct logring *r)
{
	atomic_store(&r->tail, logring_load(&r->tail, memory_order_relaxed));
}

bool logring_crowded(struct logring *r)
{
	size_t tail = logring_load(&r->tail, memory_order_relaxed);

	if (tail - r->head_seen <= r->size / 2)
		return false;
	r->head_seen = logring_load(&r->head, memory_order_acquire);
	return tail - r->head_seen > r->size / 2;
}

int logring_peek(const struct logring *r, struct str run[2])
{
	size_t tail = logring_load(&r->tail, memory_order_acquire);
	size_t head = logring_load(&r->head, memory_order_relaxed);
	size_t mask = r->size - 1, turn;
	int n = 0;

	if (head == tail)
		return 0;
	turn = (head & ~mask) + r->size;
	if (tail <= turn) {
		run[n++] = (struct str){r->bytes + (head & mask), tail - head};
		return n;
	}
	if (head < r->gap)
		run[n++] = (struct str){r->bytes + (head & mask), r->gap - head};
	run[n++] = (struct str){r->bytes, tail - turn};
	return n;
}

void logring_release(struct logring *r, size_t n)
{
	size_t tail = logring_load(&r->tail, memory_order_acquire);
	size_t head = logring_load(&r->head, memory_order_relaxed);
	size_t turn = (head & ~(r->size - 1)) + r->size;

	if (tail > turn && n >= r->gap - head)
		head = turn + (n - (r->gap - head));
	else
		head += n;
	CHECK(tail - head <= r->size);
	atomic_store_explicit(&r->head, head, memory_order_release);
}

bool logring_empty(const struct logring *r)
{
	/* Sequentially consistent, the other half of logring_publish. */
	return atomic_load(&r->tail) == atomic_load_explicit(&r->head, memory_order_relaxed);
}
