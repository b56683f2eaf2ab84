/* Inside the room: what an SSL_CTX of either end has. */
#ifndef THIMBLE_NET_TLS_CTX_H
#define THIMBLE_NET_TLS_CTX_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdint.h>
#include "lib/base/str.h"
#include "lib/net/tls_cert.h"
#include "lib/net/tls_error.h"

struct tls_ctx_spec {	/* as in the specification of either end */
	uint16_t min_version, max_version;
	const char *ciphers, *suites, *groups;
	bool park;
};

/* NULL when refused: *e (may be NULL) says why. */
SSL_CTX *tls_ctx_new(bool server, const struct tls_ctx_spec *spec, struct tls_error *e) MUST_USE;

/* Verifies peers against the authorities in `ca` and what `crl` (may be empty) revokes, both PEM; `names`: and tells
 * peers which they are.  With `crl` each certificate of a chain needs a list of its issuer, those between a peer's own and an
 * authority too: one who was revoked signs for nobody.  Needs tls_ctx_verified. */
MUST_USE enum err tls_ctx_trust(SSL_CTX *ctx, struct str ca, struct str crl, bool names, struct tls_error *e);

/* The verify callback of OpenSSL: the authority at the end of a chain is trusted because it was given, and needs no list. */
int tls_ctx_verified(int good, X509_STORE_CTX *store);

/* Whether SSL objects of `ctx` can show it: asked when a configuration is read, so that no handshake learns it. */
MUST_USE enum err tls_ctx_try(SSL_CTX *ctx, const struct tls_cert *cert, struct tls_error *e);

#endif
