/* A stream: one client connection whose bytes are passed on, unread, to an endpoint and back. */
#ifndef THIMBLE_PROXY_STREAM_H
#define THIMBLE_PROXY_STREAM_H

#include "dispatch/service.h"
#include "proxy/cause.h"
#include "proxy/conn.h"
#include "proxy/lease.h"

enum stream_phase {
	STREAM_WAITS,	/* for a connection to an endpoint */
	STREAM_RUNS,
	STREAM_DONE,	/* deaf; logged and freed at the end of the turn */
};

struct stream {
	struct lease lease;		/* first: its ops know it by that; the service is an owned reference */
	struct conn *client;		/* borrowed; CONN_STREAM */
	struct stream *next, *prev;	/* in worker->streams; DONE: next in worker->streams_done */
	struct buf *name;		/* owned: the server name of TLS, for the log; NULL: none */
	struct buf *to_up, *to_client;	/* owned: read, not taken by the socket yet */
	uint64_t began_us;		/* monotonic */
	union {
		struct endpoint_tried tried;	/* STREAM_WAITS */
		struct {
			uint64_t bytes_in, bytes_out, connect_us;
		} ran;				/* STREAM_RUNS */
	} u;
	uint8_t phase;		/* enum stream_phase */
	uint8_t cause;		/* enum cause */
	uint8_t retries;	/* endpoints asked after the first */
	bool tls;		/* it began with a ClientHello */
	bool connected;		/* an endpoint had it: u is ran */
	bool client_fin, up_fin;	/* that side has ended, and the other was told */
};

/* Passes `c` on to `service`.  *first (moved) is what it has said so far; `name`: for the log.  `c` is CONN_STREAM
 * afterwards, or closed when there is no memory. */
void stream_begin(struct worker *w, struct conn *c, struct service *service, struct buf **first, struct str name);

/* Counts and logs a connection that would have been a stream and is not. */
void stream_refused(struct worker *w, struct conn *c, struct str name, enum cause cause);

/* Something happened on the client's connection, or it is its turn again. */
void stream_event(struct stream *s);
/* Its time-out ran out. */
void stream_timeout(struct stream *s);

/* Ends `n` of those that run, or all: the time to finish them is over. */
void stream_cut(struct worker *w, size_t n);
/* At the end of the turn: logs what became of it, closes the client's connection, frees it. */
void stream_finish(struct stream *s);

#endif
