/* For tests of TLS: certificates made on the spot, and OpenSSL as the other side. */
#ifndef THIMBLE_TESTS_TLS_PEER_H
#define THIMBLE_TESTS_TLS_PEER_H

#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "lib/net/feed.h"
#include "lib/net/tls13.h"
#include "lib/net/tls13_take.h"
#include "tests/unit/tls_inner.h"

struct tls_made {
	EVP_PKEY *key;
	X509 *x509;
};

/* A key pair of `type` ("EC", "RSA", "RSA-1024", "ED25519") and a certificate of `name` (subject and DNS SAN), good
 * for a day, signed by `issuer`; NULL: by itself, an authority.  tls_made_names: with any subjectAltName, NULL for none. */
void tls_made_init(struct tls_made *c, const char *type, const char *name, const struct tls_made *issuer);
void tls_made_names(struct tls_made *c, const char *type, const char *name, const char *alt, const struct tls_made *issuer);
void tls_made_fini(struct tls_made *c);

/* An SSL_CTX that speaks TLS 1.3 alone, with a certificate when it is a server. */
SSL_CTX *tls_peer_ctx(bool server, const char *suite);

/* OpenSSL over two memory BIOs. */
struct tls_peer {
	SSL *ssl;
	BIO *in, *out;	/* of ssl */
};

void tls_peer_init(struct tls_peer *p, SSL_CTX *ctx, bool server);
void tls_peer_fini(struct tls_peer *p);

/* OpenSSL over a feed, watched: what will be taken over. */
struct tls_half {
	SSL *ssl;
	struct feed feed;
	struct tls13_watch watch;
	struct tls13 *t;	/* once it is taken */
	unsigned char bytes[1 << 17];	/* read and not used up */
	size_t n;
	size_t peer_takes;	/* bytes that go to the peer in one go; 0: all */
};

void tls_half_init(struct tls_half *h, SSL_CTX *ctx, bool server);
void tls_half_fini(struct tls_half *h, struct tls13_shared *sh);

/* Moves bytes between the two until both handshakes are through. */
void tls_shake(struct tls_half *h, struct tls_peer *p);
/* Bytes that the peer has written to h->bytes, and what h has written to the peer. */
void tls_move(struct tls_half *h, struct tls_peer *p);
/* Takes it over; asserts that it works, and frees the SSL object. */
void tls_take(struct tls_half *h, struct tls13_shared *sh);

/* The peer writes, h opens: asserts that it gets the same bytes. */
void tls_peer_says(struct tls_half *h, struct tls_peer *p, struct tls13_shared *sh, const void *data, size_t n);
/* h seals, the peer reads: likewise. */
void tls_half_says(struct tls_half *h, struct tls_peer *p, struct tls13_shared *sh, const void *data, size_t n);

#endif
