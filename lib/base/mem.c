/* Door: heap memory and pages.  Every room allocates here, so that a test can
 * make the n-th call of its thread fail.  Owns two counters per thread; keeps
 * no list of what is out (the sanitizers do that better) and never aborts.
 *
 * The hook costs an increment and one branch that is never taken: with no
 * failure asked for, fail_at is a number that no counter reaches. */
#include "lib/base/mem.h"

#include <malloc.h>
#ifdef THIMBLE_MIMALLOC
#include <mimalloc.h>
#endif
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/base/check.h"

#define NEVER SIZE_MAX

static _Thread_local size_t calls;
static _Thread_local size_t fail_at = NEVER;

static inline bool refuse(void)
{
	return __builtin_expect(++calls >= fail_at, 0);
}

/* `n` bytes, not cleared; never NULL for n == 0 alone. */
void *mem_alloc(size_t n)
{
	return refuse() ? NULL : malloc(n ? n : 1);
}

/* `n` bytes of zeros. */
void *mem_zalloc(size_t n)
{
	return refuse() ? NULL : calloc(1, n ? n : 1);
}

/* Moves the block at `p` (may be NULL) to one of `n` bytes; on failure `p` stays
 * as it is.  Unlike realloc(p, 0) it never frees. */
void *mem_realloc(void *p, size_t n)
{
	return refuse() ? NULL : realloc(p, n ? n : 1);
}

/* Gives a block back; NULL is accepted. */
void mem_free(void *p)
{
	free(p);
}

/* A terminated copy of the first `n` bytes at `p`, or of fewer when a NUL comes first. */
char *mem_strndup(const char *p, size_t n)
{
	return refuse() ? NULL : strndup(p, n);
}

/* glibc's: seven of each size of 24 + 16 i bytes up to 1032. */
#define SPARE_MIN 24
#define SPARE_MAX 1032
#define SPARE_STEP 16
#define SPARE_EACH 7

void *mem_spare_take(void)
{
	void *list = NULL;

#if defined(__GLIBC__) && !defined(THIMBLE_MIMALLOC)
	for (size_t n = SPARE_MIN; n <= SPARE_MAX; n += SPARE_STEP)
		for (int i = 0; i < SPARE_EACH; i++) {
			void **p = mem_alloc(n);

			if (!p)
				return list;
			*p = list;
			list = p;
		}
#endif
	return list;
}

void mem_spare_free(void *list)
{
	while (list) {
		void *next = *(void **)list;

		mem_free(list);
		list = next;
	}
}

static void *map(size_t n)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

static bool aligned(const void *p, size_t n)
{
	return ((uintptr_t)p & (n - 1)) == 0;
}

/* `n` bytes at a multiple of `n`, zeroed by the kernel; a power of two of at
 * least 4096.  The kernel places mappings side by side, so the plain call is
 * aligned most of the time; else twice as much is mapped and trimmed. */
void *mem_pages(size_t n)
{
	CHECK(n >= 4096 && (n & (n - 1)) == 0);
	if (refuse())
		return NULL;
	char *p = map(n);
	if (!p || aligned(p, n))
		return p;
	munmap(p, n);
	p = map(2 * n);
	if (!p)
		return NULL;
	size_t before = -(uintptr_t)p & (n - 1);
	if (before)
		munmap(p, before);
	munmap(p + before + n, n - before);
	return p + before;
}

/* Gives pages back to the system; `n` as it was asked for, NULL is accepted. */
void mem_pages_free(void *p, size_t n)
{
	if (p)
		CHECK(munmap(p, n) == 0);
}

/* For secrets.  A kernel that does not know the advice (before 3.4) dumps them. */
void mem_pages_hide(void *p, size_t n)
{
	(void)madvise(p, n, MADV_DONTDUMP);
}

/* What a heap block takes: what can be used of it and the 8 bytes before it. */
size_t mem_size(void *p)
{
	return p ? malloc_usable_size(p) + 8 : 0;
}

#ifdef THIMBLE_MIMALLOC
/* mimalloc keeps what was freed for a while, and its peak is then three times what is in use. */
__attribute__((constructor)) static void purge_at_once(void)
{
	mi_option_set(mi_option_decommit_delay, 0);
	mi_option_set(mi_option_segment_decommit_delay, 0);
}
#endif

/* Of the allocators that are built in (deploy/static), glibc's alone must be told. */
void mem_trim(void)
{
#if defined(THIMBLE_MIMALLOC)
	mi_collect(true);
#elif defined(__GLIBC__)
	malloc_trim(0);
#endif
}

/* Counting starts anew: call n of this thread and all after it fail; 0: none. */
void mem_fail_from(size_t n)
{
	calls = 0;
	fail_at = n ? n : NEVER;
}

/* Calls of this thread since mem_fail_from, failed ones included. */
size_t mem_fail_count(void)
{
	return calls;
}
