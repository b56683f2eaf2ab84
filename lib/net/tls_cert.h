/* A certificate with its chain, its key and the names that it is for: read from PEM text, checked, and then shared. */
#ifndef THIMBLE_NET_TLS_CERT_H
#define THIMBLE_NET_TLS_CERT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/base/err.h"
#include "lib/base/str.h"
#include "lib/net/tls_error.h"

struct ssl_st;		/* OpenSSL's SSL */

#define TLS_CERT_CHAIN_MAX 16u	/* certificates of one chain */
#define TLS_CERT_NAMES_MAX 1000u

enum tls_cert_kind { TLS_CERT_RSA, TLS_CERT_EC, TLS_CERT_ED, TLS_CERT_KINDS };

struct tls_cert;

/* Reads the server's own certificate, then those between it and an authority, and the private key, which has no
 * passphrase.  NULL when refused: *e (may be NULL) says why.  One reference, moved to the caller. */
struct tls_cert *tls_cert_new(struct str chain, struct str key, struct tls_error *e) MUST_USE;
/* Shared as const: only its count changes. */
const struct tls_cert *tls_cert_ref(const struct tls_cert *c);
/* NULL is accepted.  Any thread. */
void tls_cert_unref(const struct tls_cert *c);

enum tls_cert_kind tls_cert_kind(const struct tls_cert *c);
/* Unix time in seconds from when and until when it is good; the chain's certificates are not asked. */
int64_t tls_cert_not_before(const struct tls_cert *c);
int64_t tls_cert_not_after(const struct tls_cert *c);

/* Names that it is for: host names of its subjectAltName, in small letters, perhaps with "*." before them; of its
 * subject's common name when it has none of them.  Lent; [0, n). */
size_t tls_cert_names(const struct tls_cert *c);
struct str tls_cert_name(const struct tls_cert *c, size_t i);

/* Whether it is for `host`: a name without a dot at its end, or an address as in RFC 3986 without brackets (RFC 9110 4.3.4:
 * "*" stands for one label). */
bool tls_cert_serves(const struct tls_cert *c, struct str host);

/* What `ssl` shows to its peer, beside others of another kind.  ERR_MEM, or ERR_SYNTAX when OpenSSL will not (a
 * key too short for its security level, say: that depends on the SSL_CTX); *e (may be NULL) says why. */
MUST_USE enum err tls_cert_use(const struct tls_cert *c, struct ssl_st *ssl, struct tls_error *e);

#define TLS_CERT_WHO 32u

/* A digest of all that it is for, addresses too: its successors have the same. */
void tls_cert_who(const struct tls_cert *c, unsigned char to[TLS_CERT_WHO]);

#endif
