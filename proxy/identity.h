/* As whom we spoke on a TLS connection, how, and who the client is: made in its handshake, held by it while it lasts, shared by
 * the connections of one worker that agree in all of it. */
#ifndef THIMBLE_PROXY_IDENTITY_H
#define THIMBLE_PROXY_IDENTITY_H

#include <stdint.h>
#include "lib/net/tls_server.h"
#include "lib/net/tls_shown.h"
#include "proxy/access.h"
#include "proxy/conn.h"

struct identity {
	struct identity *next;		/* of the worker's list of this hash */
	uint32_t refs, hash;
	const struct tls_server *server;	/* owned reference */
	const struct tls_group *group;	/* of it: the certificates that were shown */
	struct tls_shown *shown;	/* owned: what the client's certificate says; NULL: it has shown none */
	struct tls_facts facts;		/* all zero until hands are shaken */
	uint8_t name_n;
	char name[];			/* that the client asked for: small letters */
};

/* Those of one worker; all zero to begin with. */
struct identities {
	struct identity **bucket;	/* owned; a power of two of them, NULL while there is nobody */
	uint32_t buckets, n;
};

/* One for a handshake that begins, with a reference; `server` is one too, moved.  `name`: what the client asks for, at most 255 bytes.
 * NULL: no memory. */
struct identity *identity_get(struct identities *all, const struct tls_server *server, const struct tls_group *group,
			      struct str name) MUST_USE;
/* The one for a handshake that began with `who` (a reference, moved) and has become `l`.  NULL: no memory. */
struct identity *identity_known(struct identities *all, struct identity *who, const struct tls_live *l) MUST_USE;
/* NULL is accepted. */
void identity_put(struct identities *all, struct identity *who);

/* That of a client's connection; NULL when it is not secure. */
struct identity *identity_of(struct conn *c);

/* As the access log has it; borrowed from it. */
struct access_tls identity_logged(const struct identity *who);

/* What it asked for; empty: no name. */
static inline struct str identity_name(const struct identity *who)
{
	return (struct str){ who->name, who->name_n };
}

#endif
