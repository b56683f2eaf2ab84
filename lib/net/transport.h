/* One transport: a descriptor, and the plain way to move its bytes.  What a TLS connection reads and writes passes
 * lib/net/tls_io.h on top of these three functions; its state lies behind the transport in a larger object, so
 * that a plain connection pays nothing for it.
 *
 * Results are those of read(2) and writev(2): bytes, 0 at the end of input, -1
 * with errno.  EAGAIN is the only errno after which the transport still lives. */
#ifndef THIMBLE_NET_TRANSPORT_H
#define THIMBLE_NET_TRANSPORT_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum transport_type {
	TRANSPORT_PLAIN,
	TRANSPORT_HELLO,	/* will be TLS, or bytes that are passed on; plain until then */
	TRANSPORT_TLS,		/* an SSL object serves it: lib/net/tls_live.h */
	TRANSPORT_TLS13,	/* parked: lib/net/tls13.h */
};

struct transport {
	int fd;		/* owned; -1 when closed */
	uint8_t type;	/* enum transport_type */
	uint8_t state;	/* these three are the owner's: there is room for them here */
	uint8_t flags;
	uint8_t more;
};

_Static_assert(sizeof(struct transport) == 8, "a transport is 8 bytes");

static inline ssize_t transport_read(struct transport *t, void *p, size_t n)
{
	ssize_t r;

	do
		r = recv(t->fd, p, n, 0);
	while (r < 0 && errno == EINTR);
	return r;
}

static inline ssize_t transport_writev(struct transport *t, const struct iovec *iov, int n)
{
	struct msghdr m = { .msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)n };
	ssize_t r;

	do
		r = sendmsg(t->fd, &m, MSG_NOSIGNAL);
	while (r < 0 && errno == EINTR);
	return r;
}

/* Ends our side (FIN); the other may still send. */
static inline void transport_finish(struct transport *t)
{
	shutdown(t->fd, SHUT_WR);
}

#endif
