/* TLS on a descriptor: what lib/net/transport.h is for plain bytes.  A connection is served by an SSL object (struct
 * tls_live) or parked (struct tls13); both look the same from here.
 *
 * Results are those of read(2) and writev(2), as there. */
#ifndef THIMBLE_NET_TLS_IO_H
#define THIMBLE_NET_TLS_IO_H

#include "lib/net/tls_live.h"
#include "lib/net/transport.h"

#define TLS_IO_PIECES 80	/* of one write, at most */
#define TLS_IO_OUT (4 * (TLS13_PLAIN + TLS13_EXTRA) + TLS13_UPDATE)	/* bytes sealed in one go */

/* What connections of one thread share. */
struct tls_io {
	struct tls13_shared *sh;	/* owned */
	struct budget *budget;		/* borrowed */
	char *out;			/* owned: records on their way */
	char *in;			/* owned: records for an SSL object */
};

/* ERR_MEM. */
MUST_USE enum err tls_io_init(struct tls_io *io, struct budget *budget);
void tls_io_fini(struct tls_io *io);

/* The connection behind a transport of type TRANSPORT_TLS or TRANSPORT_TLS13. */
union tls_state {
	struct tls_live *live;	/* owned */
	struct tls13 *parked;	/* owned */
	void *any;
};

/* Reads some `n` bytes of data or a little more: *plain, lent, lies in the `size` bytes at `p`, of which TLS13_RECORD are
 * needed besides `n`.  0 is close_notify; -1: EAGAIN, ECONNRESET when the connection ended without one, EPROTO when a
 * rule of TLS was broken, ECONNABORTED when the peer says so by an alert (once each, and ECONNRESET from then on),
 * ENOMEM.  *empty: the socket has nothing more just now, as a short read tells, unless an end waits behind it. */
ssize_t tls_io_read(struct tls_io *io, struct transport *t, union tls_state s, void *p, size_t size, size_t n,
		struct str *plain, bool *empty);

/* Whether a record has begun to come and is not whole, behind EAGAIN: up to TLS13_RECORD bytes are kept for it. */
bool tls_io_begun(const struct transport *t, union tls_state s);

/* Whether a rule of TLS was broken, by one of both sides. */
bool tls_io_failed(const struct transport *t, union tls_state s);
/* Which, for logs: behind EPROTO and ECONNABORTED, until anything else is done. */
const char *tls_io_why(const struct transport *t, union tls_state s);

/* Writes.  What it says was taken has gone to the kernel whole.  Of what was not, a beginning may be sealed
 * already: whoever writes again must begin with the same bytes. */
ssize_t tls_io_writev(struct tls_io *io, struct transport *t, union tls_state s, const struct iovec *iov, int n_iov);

/* Sends what is sealed and waits, as far as it goes; -1 with errno when the connection is gone, else what is left. */
ssize_t tls_io_flush(struct tls_io *io, struct transport *t, union tls_state s);

/* Says close_notify, or the alert that a fault calls for, if that can be said at once. */
void tls_io_finish(struct tls_io *io, struct transport *t, union tls_state s);

/* Frees it; says nothing. */
void tls_io_free(struct tls_io *io, struct transport *t, union tls_state s);

#endif
