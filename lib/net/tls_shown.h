/* Who a client is, by the certificate that it has shown and that was verified: what logs and endpoints want to know of
 * it, as texts that neither can be misled by.  The certificate itself need not stay. */
#ifndef THIMBLE_NET_TLS_SHOWN_H
#define THIMBLE_NET_TLS_SHOWN_H

#include <stdbool.h>
#include <stddef.h>
#include "lib/base/err.h"
#include "lib/base/str.h"

struct ssl_st;		/* OpenSSL's SSL */

#define TLS_SHOWN_HASH 32u		/* bytes of SHA-256 */
#define TLS_SHOWN_SUBJECT_MAX 512u	/* bytes of a subject; a longer one is left out, since a part of it is another's */
#define TLS_SHOWN_FIELD_MAX 4096u	/* bytes of a field; alternative names that have no room in it are left out */

struct tls_shown {
	unsigned char hash[TLS_SHOWN_HASH];	/* SHA-256 of the certificate */
	struct str field;	/* X-Forwarded-Client-Cert as Envoy has it: Hash, Subject, URI..., DNS... */
	struct str subject;	/* RFC 4514, in it; may be empty */
	struct str spiffe;	/* the one SPIFFE ID, in it; empty: none, or not the only URI */
	char text[];
};

/* The SHA-256 of the certificate that the client of `ssl` has shown, now or when the session that was resumed began.
 * False: it has shown none, or that was not verified. */
bool tls_shown_hash(const struct ssl_st *ssl, unsigned char hash[TLS_SHOWN_HASH]);

/* What is in it; to be freed with mem_free.  NULL: no memory.
 *
 * All bytes are printable ASCII.  In `subject` all that is special anywhere is written as \XX, so that it never ends a
 * quoted string nor begins another element.  Of the alternative names URIs and DNS names are there, in the order of the certificate; a `;` or `,`
 * of a URI is %3B or %2C; one that has bytes which its kind cannot have is left out. */
struct tls_shown *tls_shown_new(const struct ssl_st *ssl) MUST_USE;

#endif
