/* Takes an established TLS 1.3 connection over from OpenSSL, whose SSL object can then be freed: see tls13.h for
 * what goes on with it. */
#ifndef THIMBLE_NET_TLS13_TAKE_H
#define THIMBLE_NET_TLS13_TAKE_H

#include <stdbool.h>
#include <stdint.h>
#include "lib/base/err.h"
#include "lib/net/tls13.h"

struct ssl_st;		/* OpenSSL's SSL and SSL_CTX */
struct ssl_ctx_st;

/* What an SSL object shows of itself, from before its handshake to the take: secrets, and what it counted. */
struct tls13_watch {
	struct tls13_secret secret[2];	/* by direction, as TLS13_IN and TLS13_OUT */
	uint8_t secret_size[2];		/* bytes; 0: not there yet */
	uint16_t record;		/* bytes behind the header of the record that is being read */
	bool half;			/* a record's header was read, and not all of the record */
	bool odd;			/* there was something that a take would lose: it never parks */
	uint32_t message_room;		/* bytes of records read with handshake messages, padding included */
	uint32_t messages;		/* bytes of the handshake messages that were handled */
};

/* Once for each SSL_CTX whose connections may be taken, before the first: takes its keylog callback.  ERR_MEM. */
MUST_USE enum err tls13_watch_ctx(struct ssl_ctx_st *ctx);
/* Watches `ssl`, of such an SSL_CTX, from before its handshake; takes its message callback.  `w` lives until the SSL object
 * is freed or tls13_watch_end was called.  ERR_MEM. */
MUST_USE enum err tls13_watch(struct tls13_watch *w, struct ssl_st *ssl);
/* Watches no longer and wipes `w`; `ssl` may be NULL when it is gone. */
void tls13_watch_end(struct tls13_watch *w, struct ssl_st *ssl);

enum tls13_taken {
	TLS13_TAKEN,		/* *t is the connection now; of the SSL object nothing but its facts may be used */
	TLS13_NOT_NOW,		/* in the middle of something: later, perhaps */
	TLS13_NEVER,		/* this one keeps its SSL object */
	TLS13_NO_MEMORY,
};

/* Takes over the connection of `ssl`, which `w` watches and a feed serves (lib/net/feed.h).  All or nothing: unless it says
 * TLS13_TAKEN the SSL object is as it was.  Afterwards what is left in the feed's `in` goes to tls13_open first, and what
 * is in its `out` is sent first; names, ALPN and certificates can be read off the SSL object until it is freed. */
MUST_USE enum tls13_taken tls13_take(struct tls13_shared *sh, struct ssl_st *ssl, const struct tls13_watch *w,
		struct tls13 **t);

/* Plays handshakes of two ends in memory, takes both over and lets them talk: some milliseconds, once at the start of
 * a process that would park.  False: this OpenSSL is not what we took it for (or there is no memory): take nothing. */
bool tls13_trial(void);

#endif
