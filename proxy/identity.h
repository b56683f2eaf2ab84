/* As whom we spoke on a TLS connection: made in its handshake, held by it while it lasts, shared by the connections of
 * one worker that agree in it.  Who the client is will be here too. */
#ifndef THIMBLE_PROXY_IDENTITY_H
#define THIMBLE_PROXY_IDENTITY_H

#include <stdint.h>
#include "lib/net/tls_server.h"
#include "proxy/conn.h"

struct identity {
	struct identity *next;		/* of the worker's list of this hash */
	uint32_t refs, hash;
	const struct tls_server *server;	/* owned reference */
	const struct tls_group *group;	/* of it: the certificates that were shown */
};

/* Those of one worker; all zero to begin with. */
struct identities {
	struct identity **bucket;	/* owned; a power of two of them, NULL while there is nobody */
	uint32_t buckets, n;
};

/* One for these, with a reference; `server` is one too, moved.  NULL: no memory. */
struct identity *identity_get(struct identities *all, const struct tls_server *server, const struct tls_group *group) MUST_USE;
/* NULL is accepted. */
void identity_put(struct identities *all, struct identity *who);

/* That of a client's connection; NULL when it is not secure. */
struct identity *identity_of(struct conn *c);

#endif
