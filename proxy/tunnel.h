/* Bytes both ways between two connections: of an exchange after 101, and of a stream. */
#ifndef THIMBLE_PROXY_TUNNEL_H
#define THIMBLE_PROXY_TUNNEL_H

#include "proxy/exchange.h"

/* One direction.  All pointers are borrowed for the call. */
struct tunnel_way {
	struct worker *w;
	struct conn *from, *to;
	struct conn *clock;	/* whose time-out is renewed by each byte; */
	uint32_t idle_ms;	/* 0: none */
	struct buf **waiting;	/* what was read and not taken yet */
	bool *fin;		/* `from` has ended its side, and all before that was written */
	uint64_t *bytes;	/* read */
};

enum tunnel_end {
	TUNNEL_ON,		/* nothing ended but what *fin says */
	TUNNEL_FROM_BROKEN, TUNNEL_TO_BROKEN,	/* that connection is gone */
	TUNNEL_NO_MEMORY,
};

/* Moves what can be moved now. */
enum tunnel_end tunnel_move(const struct tunnel_way *way) MUST_USE;

/* The 101 is in the worker's vec; *from_up (consumed) are bytes that came behind it. */
void tunnel_begin(struct exchange *x, struct str *from_up);
/* Something happened on one of the two connections. */
void tunnel_pump(struct exchange *x);

#endif
