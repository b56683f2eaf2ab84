/* The first thing that a TLS client says, its ClientHello, looked at before anything else knows of it: for whom
 * the connection is, while nothing is allocated for it but the bytes themselves.
 *
 * Nothing is consumed or changed: the same bytes then go to whoever speaks TLS, here or at an endpoint. */
#ifndef THIMBLE_NET_HELLO_H
#define THIMBLE_NET_HELLO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/base/str.h"

#define HELLO_MAX (16u * 1024)	/* bytes that are looked at, record headers and all */
#define HELLO_NAME_MAX 253	/* of a host name */

enum hello_kind {
	HELLO_MORE,	/* not whole yet */
	HELLO_DONE,
	HELLO_HTTP,	/* no TLS: the beginning of an HTTP/1 request, or of an HTTP/2 connection */
	HELLO_NOT_TLS,	/* something else */
	HELLO_BAD,	/* TLS records that hold no ClientHello */
	HELLO_BAD_NAME,	/* a ClientHello whose server name is no host name */
	HELLO_TOO_BIG,	/* longer than HELLO_MAX */
};

/* Protocols of the ALPN list that somebody here asks about. */
#define HELLO_ALPN_HTTP1 1u	/* http/1.1 */
#define HELLO_ALPN_H2 2u	/* h2 */
#define HELLO_ALPN_ACME 4u	/* acme-tls/1, RFC 8737 */

struct hello {
	uint16_t length;	/* bytes of the records that hold it: behind them comes something else */
	uint16_t message;	/* bytes of the handshake message in them, its 4 bytes of type and length too */
	uint16_t alpn_at, alpn_n;	/* the protocol name list (RFC 7301 3.1, without its length) in that message; 0: none */
	uint8_t alpn;		/* HELLO_ALPN_*: of the list */
	bool tls12, tls13;	/* offered */
	uint8_t name_n;		/* 0: no name was sent */
	char name[HELLO_NAME_MAX];	/* lower case, without a dot at the end; never empty labels */
};

/* Looks at `in`, all bytes of the connection so far.  *need is 0 at first and the caller's to keep: while fewer bytes
 * than it says are there, the call costs nothing, so that bytes that come one by one do not cost their
 * square.  *h is set when it is DONE, else untouched.  What is not MORE stays as it is when more follow. */
enum hello_kind hello_peek(struct str in, uint32_t *need, struct hello *h);

/* Copies `n` bytes from `at` on of the handshake message, which may lie in several records, out of the
 * bytes `in` that gave *h.  They are within it. */
void hello_copy(struct str in, const struct hello *h, size_t at, size_t n, uint8_t *to);

/* The alert that answers what hello_peek found (RFC 8446 6.2), as a whole record: fatal, `description`. */
#define HELLO_ALERT_SIZE 7
#define HELLO_ALERT_DECODE_ERROR 50
#define HELLO_ALERT_UNRECOGNIZED_NAME 112
void hello_alert(uint8_t description, uint8_t to[HELLO_ALERT_SIZE]);

#endif
