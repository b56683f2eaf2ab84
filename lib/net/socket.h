/* Sockets made ready for a proxy: non-blocking, close-on-exec, no delay. */
#ifndef THIMBLE_NET_SOCKET_H
#define THIMBLE_NET_SOCKET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>
#include "lib/base/err.h"

#define SOCKET_TEXT 128	/* room for any address as text, unix paths cut */

union socket_name {	/* enough for every family that we speak */
	struct sockaddr sa;
	struct sockaddr_storage storage;
	struct sockaddr_un un;
};

struct socket_address {
	union socket_name name;
	socklen_t len;
	bool dual;	/* an IPv6 listener that takes IPv4 too */
};

/* What the kernel may hold for one connection; 0: as it likes. */
struct socket_limits {
	uint32_t receive;	/* bytes received and not read, once the reader keeps up (SO_RCVBUF) */
	uint32_t unsent;	/* bytes accepted from us and not yet sent (TCP_NOTSENT_LOWAT) */
};

/* What a connection may have received and not read until its reader has shown that it keeps up:
 * about what the kernel offers at first anyway. */
#define SOCKET_RECEIVE_FIRST (64 * 1024)

/* Every address, IPv6 and IPv4. */
void socket_address_any(struct socket_address *a, uint16_t port);
/* From parts: 4 or 16 bytes of `ip` in network order. */
void socket_address_ip(struct socket_address *a, bool v6, const uint8_t *ip, uint16_t port);
/* ERR_LIMIT when the path is too long for sockaddr_un. */
MUST_USE enum err socket_address_unix(struct socket_address *a, const char *path);
/* "1.2.3.4:80", "[::1]:80", "unix:/path"; `text` has SOCKET_TEXT bytes. */
void socket_address_text(const struct socket_address *a, char *text);
/* Port in host order; 0 for unix. */
uint16_t socket_address_port(const struct socket_address *a);

/* A listening socket.  `shared`: several may listen on one TCP address (SO_REUSEPORT), and the
 * kernel spreads connections over them.  What it accepts has TCP_NODELAY and limits->unsent set.
 * -1: errno says why.  A stale unix socket file, one that nobody listens on, is replaced. */
int socket_listen(const struct socket_address *a, bool shared, int backlog, const struct socket_limits *limits);
/* Whether somebody listens on `a` already: 0 free, else the errno that a bind got. */
int socket_probe(const struct socket_address *a);
/* What it is bound to (port 0 was asked for).  ERR_SYS. */
MUST_USE enum err socket_bound(int fd, struct socket_address *a);

/* An accepted connection, or -1 with errno.  `peer` is filled in. */
int socket_accept(int listener, struct socket_address *peer);
/* Begins to connect: a descriptor, or -1 with errno.  *done: connected at once. */
int socket_connect(const struct socket_address *a, bool *done);
/* The result of a connect that has ended: 0 or an errno. */
int socket_error(int fd);

/* For a TCP connection that has just been made, and for one that is done with being large:
 * its receive buffer stays at SOCKET_RECEIVE_FIRST.  No effect when limits->receive is 0. */
void socket_receive_small(int fd, const struct socket_limits *limits);
/* Its reader keeps up: up to limits->receive.  Where the system's bound (net.core.rmem_max) is lower than
 * that, the kernel sizes it as it likes again, since a bound too low would cost throughput. */
void socket_receive_large(int fd, const struct socket_limits *limits);
/* The next close resets the connection, so that the peer can tell that it was cut. */
void socket_reset_on_close(int fd);

#endif
