/* A client's connection between and before exchanges: accepting it, reading heads,
 * idling, lingering.  While an exchange runs, exchange.c has it. */
#ifndef THIMBLE_PROXY_CLIENT_H
#define THIMBLE_PROXY_CLIENT_H

#include "proxy/cause.h"
#include "proxy/conn.h"

struct acceptor;

/* Takes what waits on a listener, up to a batch. */
void client_accept(struct worker *w, struct acceptor *a);
/* Stops or goes on accepting, as descriptors allow. */
void client_accept_check(struct worker *w);

/* Answers a connection that is IDLE, and of whose request nothing is kept, with the status of `cause`. */
void client_refuse(struct worker *w, struct conn *c, enum cause cause);

/* Something happened, or there is something left to look at: IDLE, HEAD, LINGER. */
void client_visit(struct worker *w, struct conn *c);
/* Closes it without a word: IDLE, HEAD, LINGER. */
void client_drop(struct worker *w, struct conn *c);
/* Its time-out ran out: IDLE, HEAD, LINGER. */
void client_timeout(struct worker *w, struct conn *c);

/* Moves a connection to `to`, memory of the same kind; false: it must stay.  Between turns only. */
bool client_move(struct worker *w, struct conn *c, struct conn *to);

/* What becomes of a client's connection behind an exchange. */
enum client_fate {
	CLIENT_KEEP,	/* it may carry another */
	CLIENT_CLOSE,	/* it is closed */
	CLIENT_LINGER,	/* its request was not read to the end: it may still be sending */
};

/* The exchange of `c` is over; *rest (moved) are bytes that were read beyond it.  What is closed lingers first
 * when the client is, or may be, still sending. */
void client_next(struct worker *w, struct conn *c, struct buf **rest, enum client_fate fate);

/* The client's address as text, without the port, into `text` (46 bytes); its length.  "unknown" (RFC 7239 6.2)
 * for a unix socket. */
size_t client_ip(const struct conn *c, char *text);
/* The same as networks have it: the enum network_family, and to `ip` the 4 or 16 bytes that there are. */
uint8_t client_address(const struct conn *c, uint8_t ip[16]);
/* Whether its listener trusts it. */
bool client_trusted(const struct worker *w, const struct conn *c);

#endif
