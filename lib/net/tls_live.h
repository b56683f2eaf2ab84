/* A connection that OpenSSL serves: in its handshake, and afterwards one that is not parked (lib/net/tls13_take.h).
 * It costs some 13 KB when it idles and 44 KB in its handshake: make one late, park it early. */
#ifndef THIMBLE_NET_TLS_LIVE_H
#define THIMBLE_NET_TLS_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/base/err.h"
#include "lib/net/feed.h"
#include "lib/net/tls13_take.h"

#define TLS_LIVE_OUT (64u * 1024)	/* bytes of records that may wait to be sent, at most */
#define TLS_LIVE_EMPTY (256u * 1024)	/* bytes of records without any data: four of the largest tickets */

struct tls_live {
	struct ssl_st *ssl;		/* owned */
	struct feed feed;
	struct tls13_watch watch;
	struct buf *in;			/* owned: bytes of the peer that it did not take yet */
	const void *who;		/* the owner's: who the peer has shown itself to be */
	void *wait;			/* the owner's, while it shakes hands */
	bool watched;			/* it may be parked */
	bool done;			/* hands are shaken */
	bool ended;			/* close_notify came */
	bool failed;
	bool told;			/* the owner's, of that */
	unsigned long error;		/* OpenSSL's, of that; 0: it has none */
	uint32_t empty;			/* the owner's: bytes that came since there was data */
};

/* Takes `ssl` (moved, also when this fails), which has no BIO; NULL: no memory. `park`: it may be parked. */
struct tls_live *tls_live_new(struct ssl_st *ssl, bool park, struct budget *budget) MUST_USE;
/* NULL is accepted. */
void tls_live_free(struct tls_live *l);

enum tls_live_said {
	TLS_LIVE_MORE,		/* it wants more bytes */
	TLS_LIVE_DONE,
	TLS_LIVE_BAD,		/* it cannot go on; what it has to say about that is in feed.out */
};

/* Goes on with the handshake with `in` (lent; what is not taken is kept); `eof`: and then the peer has ended.  What is to
 * be sent is in feed.out. */
enum tls_live_said tls_live_shake(struct tls_live *l, struct str in, bool eof);

/* After the handshake: reads on with `in` (as above) at most `n` bytes into `p`; *got is how much.  MORE: all is read;
 * DONE: *got bytes, there may be more without any more input; BAD. `l->ended` tells the end. */
enum tls_live_said tls_live_read(struct tls_live *l, struct str in, bool eof, void *p, size_t n, size_t *got);

/* Whether bytes of a record are inside that is not whole: of one that is done and has read all. */
bool tls_live_begun(const struct tls_live *l);

/* Seals at most `n` bytes into feed.out; how many, 0: it takes none, it has failed. */
size_t tls_live_write(struct tls_live *l, const void *p, size_t n);

/* What was agreed on: of one that is done. */
struct tls_facts {
	uint16_t version;	/* TLS_VERSION_* */
	bool resumed;
	struct str cipher;	/* its name in the registry of IANA; for ever there */
};

struct tls_facts tls_live_facts(const struct tls_live *l);

/* close_notify into feed.out. */
void tls_live_finish(struct tls_live *l);

/* Ends it: so much came without data that the peer is after our time (OpenSSL takes KeyUpdates without end). */
void tls_live_weary(struct tls_live *l);

/* Whether it failed since the peer sent an alert. */
bool tls_live_alerted(const struct tls_live *l);

/* Whether it failed since the certificate of the peer is not trusted. */
bool tls_live_distrusts(const struct tls_live *l);

/* What went wrong last, for logs: one line. */
const char *tls_live_why(const struct tls_live *l);

#endif
