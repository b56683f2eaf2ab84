/* The one door for heap memory, so that a test can make the n-th call fail. */
#ifndef THIMBLE_BASE_MEM_H
#define THIMBLE_BASE_MEM_H

#include <stddef.h>
#include "lib/base/err.h"

/* As malloc, calloc, realloc, free and strndup; NULL means no memory. */
void *mem_alloc(size_t n) MUST_USE;
void *mem_zalloc(size_t n) MUST_USE;
void *mem_realloc(void *p, size_t n) MUST_USE;
void mem_free(void *p);
char *mem_strndup(const char *p, size_t n) MUST_USE;

/* Whole pages, zeroed, `n` bytes at an address that is a multiple of `n`
 * (a power of two, at least a page); given back to the system at once. */
void *mem_pages(size_t n) MUST_USE;
void mem_pages_free(void *p, size_t n);
/* Leaves pages got from mem_pages out of core dumps, as far as the system can. */
void mem_pages_hide(void *p, size_t n);

/* What the heap block at `p` really takes, in bytes, the allocator's own share included. */
size_t mem_size(void *p);

/* Gives the system what is free in the heap, as far as the allocator keeps any; takes
 * milliseconds when much was.  Any thread. */
void mem_trim(void);

/* An allocator keeps small blocks that a thread has freed for that thread, and each of them keeps its page from the system.
 * mem_spare_take takes them, as a list (moved; NULL: none), as far as one can see from outside: by allocating.  glibc's alone.
 * mem_spare_free frees such a list in whatever thread; for good when that thread ends. */
void *mem_spare_take(void) MUST_USE;
void mem_spare_free(void *list);

/* For tests: the n-th call from now (1 is the next) and all after it fail, for
 * this thread; 0 means none.  mem_fail_count: calls since it was last set. */
void mem_fail_from(size_t n);
size_t mem_fail_count(void);

#endif
