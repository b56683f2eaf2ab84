/* Encoders: the bytes of one body, compressed while they pass.
 *
 * An encoder lives as long as one answer.  What it holds is bounded by its coding and level, whatever passes through it
 * (docs/configuration.md has the figures), is charged to a budget at its true size, and comes from lib/base/mem.
 * Only what is longer than its window costs memory for a window: one for a short body is smaller. */
#ifndef THIMBLE_HTTP_ENCODE_H
#define THIMBLE_HTTP_ENCODE_H

#include <stddef.h>
#include <stdint.h>
#include "lib/base/budget.h"
#include "lib/base/err.h"
#include "lib/base/str.h"
#include "lib/http/coding.h"

enum encode_level { ENCODE_FAST, ENCODE_BALANCED, ENCODE_SMALL, ENCODE_LEVELS };

#define ENCODE_UNKNOWN UINT64_MAX	/* a length that is not known */
#define ENCODE_ROOM_MIN 64		/* bytes of room that a step needs at least */

struct encode_spare;

/* What the encoders of one thread share.  All zero but for budget and limit to begin with. */
struct encode_room {
	struct budget *budget;	/* borrowed; may be NULL */
	size_t used;		/* bytes that all of them hold now */
	size_t peak;		/* the most they held */
	size_t promised;	/* bytes that all of them hold at most, before they end */
	size_t limit;		/* of what is promised, but for one alone; 0: none */
	struct encode_spare *spare;	/* owned: memory of those that are gone, for those to come; charged, too */
	size_t spared;		/* bytes of it */
	bool wanted;		/* it was asked for since the last trim */
};

/* Once in a while (a second, say) as long as there is `spare`: frees it when nothing was asked for since the last time. */
void encode_room_trim(struct encode_room *room);
/* CHECKs that no encoder is left, frees what is. */
void encode_room_fini(struct encode_room *room);

enum encode_op {
	ENCODE_PUT,	/* take bytes; what comes out of it may come later */
	ENCODE_FLUSH,	/* and give out all that can be known of the bytes so far */
	ENCODE_END,	/* and end; nothing may follow */
};

struct encode;

/* An encoder for a body of `length` bytes (a hint: another length costs bytes, not truth).  ERR_LIMIT when the room has no
 * place for all that it may come to hold, ERR_MEM.  `c` is not CODING_NONE. */
MUST_USE enum err encode_new(struct encode **out, enum coding c, enum encode_level level, uint64_t length,
			     struct encode_room *room);
/* NULL is accepted. */
void encode_free(struct encode *e);

/* Takes bytes off the front of *in and writes *made bytes, at most `room`, at `out`.  When *made < room the step is done: all of
 * *in was taken, and of a flush or an end nothing is left inside.  Else it is called again with the same op.
 * What was taken is nowhere needed any more.  A flush behind a flush writes nothing.
 * ERR_MEM: it has ended, and what came out of it so far is the front of a body that is not whole. */
MUST_USE enum err encode_step(struct encode *e, enum encode_op op, struct str *in, char *out, size_t room, size_t *made);

#endif
