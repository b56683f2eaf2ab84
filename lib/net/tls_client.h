/* The TLS towards the endpoints of a service: what we speak, whom we trust, who we are.  Made once, then shared by all
 * workers. */
#ifndef THIMBLE_NET_TLS_CLIENT_H
#define THIMBLE_NET_TLS_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/base/err.h"
#include "lib/base/str.h"
#include "lib/net/tls_cert.h"
#include "lib/net/tls_error.h"

struct ssl_st;		/* OpenSSL's SSL and SSL_SESSION */
struct ssl_session_st;

struct tls_client_spec {	/* everything in it is borrowed; strings may be empty (NULL) for the default */
	struct str ca;		/* PEM; empty: what the system trusts */
	struct str crl;		/* PEM of revoked ones, for the whole chain; with `ca` only */
	bool insecure;		/* nothing is verified */
	const struct tls_cert *cert;	/* shown when asked for; may be NULL */
	uint16_t min_version, max_version;	/* TLS_VERSION_* of tls_server.h; 0: 1.2 and 1.3 */
	const char *ciphers, *suites, *groups;	/* OpenSSL's names with ':' between */
	const struct str *alpn;	/* protocols that are offered, in this order */
	unsigned n_alpn;
	bool park;		/* connections may be taken over: lib/net/tls13_take.h */
};

struct tls_client;

/* Checks and makes it.  NULL when refused: *e (may be NULL) says why.  One reference, moved to the caller. */
struct tls_client *tls_client_new(const struct tls_client_spec *spec, struct tls_error *e) MUST_USE;
/* Shared as const: only its count changes. */
const struct tls_client *tls_client_ref(const struct tls_client *c);
/* NULL is accepted.  Any thread. */
void tls_client_unref(const struct tls_client *c);

/* The last sessions that an endpoint gave one worker, to be resumed by the next connections there. */
#define TLS_RESUME_MAX 2	/* as many tickets as servers send at once */

struct tls_resume {
	struct ssl_session_st *session[TLS_RESUME_MAX];	/* owned; the newest first, NULL: none */
	uint64_t of;	/* which client and name: of the last use; 0: not used yet */
	const void *ctx;	/* of that client; compared alone */
};

/* Forgets them, and whose they were; when no SSL object has it. */
void tls_resume_fini(struct tls_resume *r);

/* An SSL object that will connect to `name`: that is what it asks for (unless it is an address), and who the peer must
 * be, a host name or an address without brackets.  `resume` (may be NULL; borrowed as long as the SSL object lives, or
 * tls_client_settled was called) has what it tries to resume, and is where tickets go that come.  A session of TLS 1.3 leaves
 * it: tickets are used once (RFC 8446 C.4).  Those of another client or name are forgotten, and theirs that come later are
 * dropped: a peer whose session is resumed is not verified anew.  No BIO yet.
 * ERR_MEM, or ERR_SYNTAX: a peer can have no such name. */
MUST_USE enum err tls_client_ssl(const struct tls_client *c, struct str name, struct tls_resume *resume, struct ssl_st **ssl);
/* Hands are shaken: to be called then, since a new ticket in a resumed handshake of TLS 1.2 makes the old one useless, and
 * OpenSSL does not tell of it. */
void tls_client_shaken(struct ssl_st *ssl);
/* Tickets that come from now on are dropped. */
void tls_client_settled(struct ssl_st *ssl);

#endif
