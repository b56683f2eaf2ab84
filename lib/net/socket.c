/* socket: see socket.h.  Owns nothing; every descriptor it returns is the caller's. */
#include "lib/net/socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef SO_BUF_LOCK
#define SO_BUF_LOCK 72	/* Linux 5.14, asm-generic; musl 1.2.3 has no name for it */
#endif

void socket_address_any(struct socket_address *a, uint16_t port)
{
	static const uint8_t zero[16];
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

	socket_address_ip(a, fd >= 0, zero, port);
	a->dual = fd >= 0;
	if (fd >= 0)
		close(fd);
}

void socket_address_ip(struct socket_address *a, bool v6, const uint8_t *ip, uint16_t port)
{
	memset(a, 0, sizeof *a);
	if (v6) {
		struct sockaddr_in6 *s = (struct sockaddr_in6 *)&a->name.storage;

		s->sin6_family = AF_INET6;
		s->sin6_port = htons(port);
		memcpy(&s->sin6_addr, ip, 16);
		a->len = sizeof *s;
	} else {
		struct sockaddr_in *s = (struct sockaddr_in *)&a->name.storage;

		s->sin_family = AF_INET;
		s->sin_port = htons(port);
		memcpy(&s->sin_addr, ip, 4);
		a->len = sizeof *s;
	}
}

enum err socket_address_unix(struct socket_address *a, const char *path)
{
	size_t n = strlen(path);

	if (n >= sizeof a->name.un.sun_path)
		return ERR_LIMIT;
	memset(a, 0, sizeof *a);
	a->name.un.sun_family = AF_UNIX;
	memcpy(a->name.un.sun_path, path, n + 1);
	a->len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + 1);
	return OK;
}

uint16_t socket_address_port(const struct socket_address *a)
{
	if (a->name.sa.sa_family == AF_INET)
		return ntohs(((const struct sockaddr_in *)&a->name.storage)->sin_port);
	if (a->name.sa.sa_family == AF_INET6)
		return ntohs(((const struct sockaddr_in6 *)&a->name.storage)->sin6_port);
	return 0;
}

void socket_address_text(const struct socket_address *a, char *text)
{
	char ip[INET6_ADDRSTRLEN];

	switch (a->name.sa.sa_family) {
	case AF_INET:
		inet_ntop(AF_INET, &((const struct sockaddr_in *)&a->name.storage)->sin_addr, ip, sizeof ip);
		snprintf(text, SOCKET_TEXT, "%s:%u", ip, socket_address_port(a));
		break;
	case AF_INET6:
		inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)&a->name.storage)->sin6_addr, ip, sizeof ip);
		snprintf(text, SOCKET_TEXT, "[%s]:%u", ip, socket_address_port(a));
		break;
	default:
		snprintf(text, SOCKET_TEXT, "unix:%s", a->name.un.sun_path);
	}
}

/* A socket file that nobody answers on is left over from a process that is gone. */
static void remove_stale(const struct socket_address *a)
{
	struct stat st;
	int fd;

	if (lstat(a->name.un.sun_path, &st) || !S_ISSOCK(st.st_mode))
		return;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	if (connect(fd, &a->name.sa, a->len) && errno == ECONNREFUSED)
		unlink(a->name.un.sun_path);
	close(fd);
}

static int bind_new(const struct socket_address *a, bool shared)
{
	int fd = socket(a->name.sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int on = 1, only = !a->dual, saved;

	if (fd < 0)
		return -1;
	if (a->name.sa.sa_family != AF_UNIX) {
		if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on))
			goto fail;
		if (shared && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on))
			goto fail;
		if (a->name.sa.sa_family == AF_INET6)
			setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof only);
	}
	if (bind(fd, &a->name.sa, a->len))
		goto fail;
	return fd;
fail:
	saved = errno;
	close(fd);
	errno = saved;
	return -1;
}

/* Accepted sockets inherit both. */
static void tune_listener(int fd, const struct socket_limits *limits)
{
	int on = 1, unsent = (int)limits->unsent;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	if (unsent)
		setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
}

int socket_listen(const struct socket_address *a, bool shared, int backlog, const struct socket_limits *limits)
{
	int fd, saved;

	if (a->name.sa.sa_family == AF_UNIX)
		remove_stale(a);
	fd = bind_new(a, shared);
	if (fd < 0)
		return -1;
	if (a->name.sa.sa_family != AF_UNIX)
		tune_listener(fd, limits);
	if (listen(fd, backlog)) {
		saved = errno;
		close(fd);
		errno = saved;
		return -1;
	}
	return fd;
}

int socket_probe(const struct socket_address *a)
{
	int fd = bind_new(a, false);
	int error = 0;

	if (fd < 0)
		return errno;
	/* with SO_REUSEADDR a bind beside a listener succeeds only if listen would fail */
	if (listen(fd, 1))
		error = errno;
	close(fd);
	return error;
}

enum err socket_bound(int fd, struct socket_address *a)
{
	a->len = sizeof a->name;
	return getsockname(fd, &a->name.sa, &a->len) == 0 ? OK : ERR_SYS;
}

int socket_accept(int listener, struct socket_address *peer)
{
	int fd;

	do {
		peer->len = sizeof peer->name;
		fd = accept4(listener, &peer->name.sa, &peer->len, SOCK_NONBLOCK | SOCK_CLOEXEC);
	} while (fd < 0 && errno == EINTR);
	return fd;
}

void socket_receive_small(int fd, const struct socket_limits *limits)
{
	int n = SOCKET_RECEIVE_FIRST;

	if (limits->receive)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &n, sizeof n);
}

void socket_receive_large(int fd, const struct socket_limits *limits)
{
	int n = limits->receive > INT_MAX / 2 ? INT_MAX / 2 : (int)limits->receive, got = 0, unlock = 0;
	socklen_t len = sizeof got;

	if (!n)
		return;
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &n, sizeof n);
	/* the kernel tells twice what it took */
	if (getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &got, &len) == 0 && got / 2 < n)
		setsockopt(fd, SOL_SOCKET, SO_BUF_LOCK, &unlock, sizeof unlock);
}

int socket_connect(const struct socket_address *a, bool *done)
{
	int fd = socket(a->name.sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int saved, on = 1;

	if (fd < 0)
		return -1;
	if (a->name.sa.sa_family != AF_UNIX)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	*done = connect(fd, &a->name.sa, a->len) == 0;
	if (*done || errno == EINPROGRESS || errno == EINTR)
		return fd;
	saved = errno;
	close(fd);
	errno = saved;
	return -1;
}

int socket_error(int fd)
{
	int error = 0;
	socklen_t n = sizeof error;

	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n) ? errno : error;
}

void socket_reset_on_close(int fd)
{
	struct linger now = { .l_onoff = 1, .l_linger = 0 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}
