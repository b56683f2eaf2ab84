/* A ring of records, bounded in bytes: one thread writes, one other thread reads.
 * A record is written in place (reserve, fill, commit) and never straddles the
 * end, so that the reader gets at most two runs of whole records. */
#ifndef THIMBLE_BASE_LOGRING_H
#define THIMBLE_BASE_LOGRING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/base/err.h"
#include "lib/base/str.h"

#define LOGRING_MIN 4096	/* the smallest size, bytes */

/* All positions count bytes since the start and never turn back; a position
 * modulo `size` is the place in `bytes`. */
struct logring {
	char *bytes;		/* owned; `size` bytes of pages, NULL before init */
	size_t size;		/* a power of two */

	char pad1[64];		/* the writer's line from here */
	_Atomic size_t tail;	/* end of what was committed */
	size_t start;		/* writer: where the open reservation lies */
	size_t head_seen;	/* writer: a head that was true once */
	size_t gap;		/* end of the data before the last turn of the ring; read after tail */
	_Atomic uint64_t records;	/* committed; writer adds, anyone reads */
	_Atomic uint64_t written;	/* bytes committed */
	_Atomic uint64_t dropped;	/* records for which there was no room */

	char pad2[64];		/* the reader's line from here */
	_Atomic size_t head;	/* all before it was released */
};

/* Maps a ring of at least `size` bytes (rounded up to a power of two, at least LOGRING_MIN).
 * Pages cost nothing until they are written.  ERR_MEM leaves *r as it was.
 * The counts go on from what *r holds, so zero it before the first use. */
enum err logring_init(struct logring *r, size_t size) MUST_USE;
/* Gives the pages back; what was not read is lost.  The counts stay.  Both threads must be done. */
void logring_fini(struct logring *r);

/* Writer: room for a record of up to `n` bytes, lent until the next commit or
 * reserve; NULL when there is none, which counts as one record dropped.  Up to
 * half of the size always fits an empty ring. */
char *logring_reserve(struct logring *r, size_t n) MUST_USE;
/* Writer: the first `n` bytes of the room just lent become a record. */
void logring_commit(struct logring *r, size_t n);
/* Writer: counts a record that was lost before it could be reserved (no ring). */
void logring_drop(struct logring *r);
/* Writer: orders all commits so far before its later sequentially consistent
 * loads, for a reader that announces its sleep and then looks once more. */
void logring_publish(struct logring *r);
/* Writer: more than half of the ring is taken. */
bool logring_crowded(struct logring *r);

/* Reader: what is there, in order, as 0, 1 or 2 runs; returns how many.  Valid until released. */
int logring_peek(const struct logring *r, struct str run[2]);
/* Reader: the first `n` bytes of what peek showed are done; need not end a record. */
void logring_release(struct logring *r, size_t n);
/* Either: nothing to read. */
bool logring_empty(const struct logring *r);

#endif
