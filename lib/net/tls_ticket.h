/* Keys of session tickets: stateless, replaced from time to time, the same in all instances that share a secret. */
#ifndef THIMBLE_NET_TLS_TICKET_H
#define THIMBLE_NET_TLS_TICKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/base/err.h"
#include "lib/base/str.h"
#include "lib/net/tls_error.h"

struct ssl_ctx_st;	/* OpenSSL's SSL_CTX and X509 */
struct x509_st;

#define TLS_TICKET_PERIOD (12 * 3600)	/* seconds that a key makes tickets; it reads them for one period more */
#define TLS_TICKET_SHARED_MIN 32u	/* bytes of a shared secret */

/* A ticket holds the certificate that the client has shown, and a ClientHello with it must not pass HELLO_MAX: bytes of one
 * that gets tickets. */
#define TLS_TICKET_CERT_MAX 8192

struct tls_tickets;

/* `shared`: the contents of a file of random bytes that several instances have; empty: secrets of this process alone,
 * each of which is forgotten when it is old.  `now`: unix time, seconds.  NULL when refused: *e (may be NULL). */
struct tls_tickets *tls_tickets_new(struct str shared, int64_t now, struct tls_error *e) MUST_USE;
/* Another shared secret from now on: what was made with the one before is not resumed.  ERR_SYNTAX, ERR_MEM: nothing has
 * changed, and *e (may be NULL) says why.  By the thread that turns it. */
MUST_USE enum err tls_tickets_share(struct tls_tickets *t, struct str shared, int64_t now, struct tls_error *e);
/* When no SSL_CTX uses it any more; wipes it.  NULL is accepted. */
void tls_tickets_free(struct tls_tickets *t);

/* Once in a while, a minute say, by one thread: makes the keys of `now`.  Others may be using them.  ERR_SYS: no
 * randomness; the keys stay as they were. */
MUST_USE enum err tls_tickets_turn(struct tls_tickets *t, int64_t now);

/* Makes `t` (borrowed) what `ctx` makes its tickets with.  ERR_MEM. */
MUST_USE enum err tls_tickets_use(struct tls_tickets *t, struct ssl_ctx_st *ctx);

/* Whether a session with that certificate of its client (NULL: it has shown none) gets tickets: TLS 1.2 asks here, for
 * TLS 1.3 the server says that there are none. */
bool tls_tickets_fit(const struct x509_st *shown);

#endif
