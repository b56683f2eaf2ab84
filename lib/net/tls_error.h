/* Why something of TLS was refused: what part of it, and a sentence for people. */
#ifndef THIMBLE_NET_TLS_ERROR_H
#define THIMBLE_NET_TLS_ERROR_H

#include <stddef.h>
#include "lib/base/err.h"

enum tls_part {
	TLS_PART_NONE,
	TLS_PART_CERT,		/* a certificate and its chain */
	TLS_PART_KEY,		/* its private key */
	TLS_PART_CA,		/* the authorities that the peer's certificate is verified against */
	TLS_PART_CRL,		/* and what they have revoked */
	TLS_PART_CIPHERS,	/* of TLS 1.2 */
	TLS_PART_SUITES,	/* of TLS 1.3 */
	TLS_PART_GROUPS,
	TLS_PART_ALPN,
	TLS_PART_TICKETS,	/* the shared keys of tickets */
};

struct tls_error {
	enum err err;		/* ERR_MEM, or ERR_SYNTAX for what cannot be */
	enum tls_part part;
	unsigned index;		/* of a certificate of a server, from 0 */
	char text[224];		/* for people; goes on from the name of the file or key; no line end, nothing secret */
};

/* Notes an error and empties OpenSSL's queue of them; `err` is returned.  `e` may be NULL. */
enum err tls_error_set(struct tls_error *e, enum err err, enum tls_part part, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* What OpenSSL says of its last error, for the end of such a text; empties its queue.  At `text`, which has room for `n`. */
const char *tls_error_reason(char *text, size_t n);

#endif
