/* A worker's event loop: libevent for signals, wake-ups and the one timer; an
 * epoll set of its own, nested in it as one event, for connections.
 *
 * Why two: a connection watched by libevent costs a struct event and its place
 * in libevent's tables, about 175 bytes, and 500 instructions more a request.
 * In the nested set it costs nothing but the pointer that the kernel keeps. */
#ifndef THIMBLE_NET_LOOP_H
#define THIMBLE_NET_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include "lib/base/err.h"

struct loop;

/* What an event means; several may come together. */
#define LOOP_READABLE 1u
#define LOOP_WRITABLE 2u
#define LOOP_PEER_DONE 4u	/* the peer ended its side (FIN); bytes may be left to read */
#define LOOP_BROKEN 8u		/* reset or error: the connection is gone */

/* How a descriptor is watched. */
enum loop_mode {
	LOOP_EDGE,	/* in, out and peer-done, edge-triggered, armed once for life */
	LOOP_LEVEL_IN,	/* readable, level-triggered: listeners */
	LOOP_MUTED,	/* nothing, but kept in the set */
};

struct loop_events {
	/* A batch of ready() calls follows: time to read the clock. */
	void (*begin)(void *ctx);
	/* `ptr` had `events`; the two are as given to loop_watch. */
	void (*ready)(void *ctx, void *ptr, unsigned events);
	/* Somebody called loop_wake since the last time. */
	void (*woken)(void *ctx);
};

/* NULL when there is no memory or no descriptor (errno says). `ev` is borrowed. */
struct loop *loop_new(const struct loop_events *ev, void *ctx);
void loop_free(struct loop *l);

/* Watches `fd` for `ptr` (borrowed; never NULL).  ERR_SYS: errno. */
MUST_USE enum err loop_watch(struct loop *l, int fd, void *ptr, enum loop_mode mode);
/* Changes the mode of a watched descriptor. */
MUST_USE enum err loop_rewatch(struct loop *l, int fd, void *ptr, enum loop_mode mode);

/* One pass at time `now_ms`: waits for at most `wait_ms` (-1: until something happens), then
 * hands out what is ready, at most 256 connections, so that wake-ups get their turn.  It may
 * come back earlier than asked, with nothing. */
void loop_pass(struct loop *l, uint32_t now_ms, int64_t wait_ms);

/* Makes the loop's next pass call woken().  From any thread; async-signal-safe. */
void loop_wake(struct loop *l);

/* Calls `fn` in the loop's thread when the process gets `signo`.  ERR_MEM. */
MUST_USE enum err loop_on_signal(struct loop *l, int signo, void (*fn)(int signo, void *ctx), void *ctx);

#endif
