/* Handshakes of TLS, with clients and with endpoints: from bytes to a connection that conn_read and conn_write serve,
 * parked where that can be. */
#ifndef THIMBLE_PROXY_HANDSHAKE_H
#define THIMBLE_PROXY_HANDSHAKE_H

#include "lib/net/hello.h"
#include "proxy/cause.h"
#include "proxy/conn.h"

enum shaken {
	SHAKEN_MORE,	/* something is to come yet */
	SHAKEN_DONE,
	SHAKEN_FAILED,	/* what there was to say about it is said */
};

/* A client's connection, TRANSPORT_HELLO, whose ClientHello is `h`; *first (moved) are its bytes and what came behind
 * them.  CONN_SHAKING, then CONN_IDLE; or it is closed.  When as many shake hands as limits allow, it waits its turn. */
void handshake_accept(struct worker *w, struct conn *c, const struct hello *h, struct buf **first);
/* Something happened on it, or its time-out ran out: CONN_SHAKING. */
void handshake_event(struct worker *w, struct conn *c);
void handshake_timeout(struct worker *w, struct conn *c);
/* By conn_close. */
void handshake_leave(struct worker *w, struct conn *c);
/* Once a turn: those that wait have their turn, in the end at the cost of who keeps them waiting. */
void handshake_admit(struct worker *w);
/* In how many ms somebody is to give way; -1: nobody waits. */
int64_t handshake_wait(const struct worker *w);

/* Towards an endpoint, on a connection that has just been made, TRANSPORT_HELLO. */
enum shaken handshake_connect(struct worker *w, struct upstream *u) MUST_USE;
/* It goes on: CONN_CONNECTING, TRANSPORT_TLS. */
enum shaken handshake_step(struct worker *w, struct conn *c) MUST_USE;

/* Why it failed; says so in the log. */
enum cause handshake_cause(struct upstream *u);

/* Puts the SSL object of a connection away, if it can be: then it is TRANSPORT_TLS13. */
void handshake_park(struct worker *w, struct conn *c);

#endif
