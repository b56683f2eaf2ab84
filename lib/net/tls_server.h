/* The TLS of a listener: what it speaks, its certificates by name, whom it asks for one.  Made once, then shared by all
 * workers; a handshake begins when the ClientHello is here and the name is known (lib/net/hello.h). */
#ifndef THIMBLE_NET_TLS_SERVER_H
#define THIMBLE_NET_TLS_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/base/err.h"
#include "lib/base/str.h"
#include "lib/net/tls_cert.h"
#include "lib/net/tls_error.h"

struct ssl_st;		/* OpenSSL's SSL */
struct tls_tickets;

#define TLS_VERSION_12 0x0303
#define TLS_VERSION_13 0x0304

enum tls_client_certs { TLS_CLIENT_CERTS_NONE, TLS_CLIENT_CERTS_OPTIONAL, TLS_CLIENT_CERTS_REQUIRE };

struct tls_server_spec {	/* everything in it is borrowed; strings may be empty (NULL) for the default */
	const struct tls_cert *const *certs;	/* the first is shown for names that none is for */
	unsigned n_certs;			/* at least 1 */
	uint16_t min_version, max_version;	/* TLS_VERSION_*; 0: 1.2 and 1.3 */
	const char *ciphers;		/* of TLS 1.2, OpenSSL's names with ':' between */
	const char *suites;		/* of TLS 1.3, likewise */
	const char *groups;		/* likewise */
	const struct str *alpn;		/* protocols, the one that we like best first */
	unsigned n_alpn;		/* 0: ALPN is not looked at */
	enum tls_client_certs client_certs;
	struct str client_ca;		/* PEM; needed unless NONE */
	struct str client_crl;		/* PEM of revoked ones: then each certificate of a client's chain needs one of its issuer */
	struct tls_tickets *tickets;	/* outlives the server; NULL: no resumption */
	unsigned n_tickets;		/* sent after a full handshake of TLS 1.3 */
	bool park;			/* connections may be taken over: lib/net/tls13_take.h */
};

struct tls_server;
struct tls_group;	/* the certificates that are shown for one name, of different kinds; part of a server */

/* Checks and makes it.  NULL when refused: *e (may be NULL) says why.  One reference, moved to the caller. */
struct tls_server *tls_server_new(const struct tls_server_spec *spec, struct tls_error *e) MUST_USE;
/* Shared as const: only its count changes. */
const struct tls_server *tls_server_ref(const struct tls_server *s);
/* NULL is accepted.  Any thread. */
void tls_server_unref(const struct tls_server *s);

/* The certificates for a server name (small letters, no dot at its end; empty: none was sent): those of the name
 * itself, then of its wildcard, then the first; *known (may be NULL) is false for the last.  Lent as long as the server
 * is. */
const struct tls_group *tls_server_group(const struct tls_server *s, struct str name, bool *known);
/* Whether one of them is for `host`, as tls_cert_serves: else a request for it gets 421 (RFC 9110 15.5.20). */
bool tls_group_serves(const struct tls_group *g, struct str host);

/* An SSL object that will accept, with those certificates; its sessions are resumed under the same name, client
 * authorities and demand only.  It has no BIO yet.  NULL: no memory. */
struct ssl_st *tls_server_ssl(const struct tls_server *s, const struct tls_group *g) MUST_USE;

#endif
