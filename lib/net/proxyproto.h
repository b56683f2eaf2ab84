/* The PROXY protocol (HAProxy's doc/proxy-protocol.txt), versions 1 and 2: a header in front of a
 * connection's bytes, by which a proxy tells whose connection it is. */
#ifndef THIMBLE_NET_PROXYPROTO_H
#define THIMBLE_NET_PROXYPROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/base/str.h"

#define PROXYPROTO_V1_MAX 107	/* bytes of a text header with its CRLF, as the protocol has it */
#define PROXYPROTO_MAX 4096	/* bytes of a binary header that are taken, TLVs and all */
#define PROXYPROTO_WRITE_MAX PROXYPROTO_V1_MAX	/* bytes of any header that is written */

enum proxyproto_kind {
	PROXYPROTO_MORE,	/* a part of a header, or of what may become one */
	PROXYPROTO_DONE,	/* a header */
	PROXYPROTO_NONE,	/* the bytes are the beginning of something else */
	PROXYPROTO_BAD,		/* they begin like a header, and are none */
};

struct proxyproto_end {
	uint8_t ip[16];		/* network order; the first four with family 4 */
	uint16_t port;		/* host order */
};

struct proxyproto {
	uint8_t version;	/* 1 or 2 */
	uint8_t family;		/* 4, 6, or 0: it names no address, and that of the socket counts */
	bool local;		/* a connection of the proxy's own (LOCAL): only version 2 can say so */
	uint16_t length;	/* bytes of the header */
	struct proxyproto_end src, dst;
};

/* Reads a header at the front of `in`, which are all bytes of the connection so far.  *p is set when it is
 * DONE, else untouched.  What is not MORE stays as it is when more bytes follow.
 *
 * Strict where the protocol is: one space between the parts of a text header, addresses of the family
 * that it names, no leading zeros.  Of a binary header the TLVs are bounded and passed over; a CRC-32C among them
 * must be right.  UDP, unix and unknown families name no address (family 0), and so does 0.0.0.0 as the
 * source, which nobody has. */
enum proxyproto_kind proxyproto_read(struct str in, struct proxyproto *p);

/* Writes *p as a header of its version to `to` (PROXYPROTO_WRITE_MAX bytes); its length. */
size_t proxyproto_write(const struct proxyproto *p, char *to);

#endif
