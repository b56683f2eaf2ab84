/* For tls13.c alone: keys and ciphers of one suite, for the connections of one thread. */
#ifndef THIMBLE_NET_TLS13_GEAR_H
#define THIMBLE_NET_TLS13_GEAR_H

#include "lib/base/slab.h"
#include "lib/net/tls13.h"

#define TLS13_HEADER 5u
#define TLS13_TAG 16u

struct evp_cipher_st;
struct evp_cipher_ctx_st;
struct evp_mac_ctx_st;

struct tls13_gear {
	struct evp_cipher_st *cipher;		/* owned; NULL: not made yet */
	struct evp_cipher_ctx_st *ctx[2];	/* owned: for opening and for sealing */
	const struct tls13 *keyed[2];		/* whose key is in them */
	struct evp_mac_ctx_st *hmac;		/* owned */
	struct slab slab;			/* its connections */
};

/* Bytes of a connection of that suite, keys included. */
size_t tls13_gear_object(enum tls13_suite suite);

/* Makes the contexts (the slab is the caller's); false: no memory, or OpenSSL has not got it. */
bool tls13_gear_init(struct tls13_gear *g, enum tls13_suite suite);
void tls13_gear_fini(struct tls13_gear *g);

/* Gives `t` (its suite is set) a direction: secret, key, IV and number.  False: OpenSSL refuses; likewise below. */
bool tls13_gear_start(struct tls13_gear *g, struct tls13 *t, int dir, const struct tls13_secret *secret);
/* The next secret of that direction, with its key, IV and number 0 (RFC 8446, 7.2). */
bool tls13_gear_advance(struct tls13_gear *g, struct tls13 *t, int dir);
/* Leaves nothing of `t`, neither in it nor in a context. */
void tls13_gear_wipe(struct tls13_gear *g, struct tls13 *t);

/* Makes a record at `p` of the `n` bytes behind its header, the last of which is the content type: the header is
 * written, and the tag behind. */
bool tls13_gear_seal(struct tls13_gear *g, struct tls13 *t, unsigned char *p, size_t n);
/* Deciphers in place the record at `p`: `n` bytes behind its header, tag included.  False: it is not theirs, or not the
 * next; the bytes are wiped. */
bool tls13_gear_open(struct tls13_gear *g, struct tls13 *t, unsigned char *p, size_t n);

#endif
