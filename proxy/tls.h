/* The TLS of listeners and services, as the configuration asks for it: made when the process starts, made again when
 * the files that it is of change, and handed to workers whole.  When nothing uses TLS there is none, and OpenSSL is
 * never touched. */
#ifndef THIMBLE_PROXY_TLS_H
#define THIMBLE_PROXY_TLS_H

#include <stdbool.h>
#include <stdint.h>
#include "dispatch/endpoint.h"
#include "lib/base/err.h"

struct server;
struct ssl_st;		/* OpenSSL's SSL */
struct tls;		/* all of it: struct server has it */
struct tls_resume;
struct tls_server;

/* What a listener with OPENING_TLS speaks now, with a reference (tls_server_unref), which is to be held as long as an
 * SSL object or a group of it is used.  Any thread. */
const struct tls_server *tls_of_listener(struct server *s, unsigned listener) MUST_USE;

/* Whether connections to `e` speak TLS. */
static inline bool tls_of_endpoint(const struct endpoint *e)
{
	return e->tls != 0;
}

/* An SSL object for a new connection to `e`, which has TLS, as tls_client_ssl of what its service speaks now, and with
 * the name that is expected of it.  A session in `resume` that is of an earlier one is forgotten.  Any thread. */
MUST_USE enum err tls_connect(struct server *s, const struct endpoint *e, struct tls_resume *resume, struct ssl_st **ssl);

/* Whether connections to `e`, which has TLS, may be parked. */
bool tls_endpoint_parks(const struct server *s, const struct endpoint *e);

#endif
