/* short: the program over sockets that take and give a few bytes at a time.
 *
 * Linked into thimble_short, where --wrap sends the program's calls here; its own code is the one
 * that thimble has.  Only descriptors that were watched edge-triggered are touched: connections,
 * and no file, log or eventfd.
 *
 * The contract of edges stays whole.  A read shorter than asked tells the program that the socket is
 * empty, a short write that it is full, so that it waits for an edge; the descriptor is therefore
 * armed again, and the kernel tells of what is left at the next poll.  To the program that is a peer
 * which sends and takes byte by byte.  A look ahead (MSG_PEEK) takes nothing and is left alone.
 *
 * SHORT_BYTES  bytes that a call moves at most (1)
 * SHORT_FIRST  of the first so many bytes each way of a connection (8192; 0: of all).  Behind them a
 *              call moves up to
 * SHORT_MOST   bytes (3000), another number each time
 * SHORT_AGAIN  per cent of the calls that are refused with EAGAIN first (0)
 * SHORT_SEED   what chance starts from (1) */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define FDS 65536
#define PIECES 64

/* A watched connection; used by the one worker that owns it. */
struct watched {
	bool on;
	int epoll;
	struct epoll_event event;
	size_t in, out;		/* bytes moved so far */
	uint64_t chance;
};

static struct watched table[FDS];
static size_t short_bytes, short_first, short_most;
static unsigned short_again, short_seed;

/* What the linker makes of the program's calls. */
ssize_t __real_recv(int fd, void *p, size_t n, int flags);
ssize_t __real_sendmsg(int fd, const struct msghdr *m, int flags);
ssize_t __real_splice(int in, off64_t *in_at, int out, off64_t *out_at, size_t n, unsigned flags);
int __real_epoll_ctl(int epoll, int op, int fd, struct epoll_event *e);
int __real_close(int fd);
ssize_t __wrap_recv(int fd, void *p, size_t n, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags);
ssize_t __wrap_send(int fd, const void *p, size_t n, int flags);
ssize_t __wrap_read(int fd, void *p, size_t n);
ssize_t __wrap_write(int fd, const void *p, size_t n);
ssize_t __wrap_writev(int fd, const struct iovec *iov, int n);
ssize_t __wrap_splice(int in, off64_t *in_at, int out, off64_t *out_at, size_t n, unsigned flags);
int __wrap_epoll_ctl(int epoll, int op, int fd, struct epoll_event *e);
int __wrap_close(int fd);
ssize_t __real_read(int fd, void *p, size_t n);
ssize_t __real_write(int fd, const void *p, size_t n);
ssize_t __real_writev(int fd, const struct iovec *iov, int n);

static size_t setting(const char *name, size_t otherwise)
{
	const char *text = getenv(name);

	return text && *text ? strtoul(text, NULL, 10) : otherwise;
}

__attribute__((constructor)) static void settings_read(void)
{
	short_bytes = setting("SHORT_BYTES", 1);
	short_first = setting("SHORT_FIRST", 8192);
	short_most = setting("SHORT_MOST", 3000);
	short_again = (unsigned)setting("SHORT_AGAIN", 0);
	short_seed = (unsigned)setting("SHORT_SEED", 1);
	if (!short_bytes)
		short_bytes = 1;
	if (!short_most)
		short_most = 1;
}

static struct watched *watched(int fd)
{
	return fd >= 0 && fd < FDS && table[fd].on ? &table[fd] : NULL;
}

static uint32_t chance(struct watched *s, uint32_t n)
{
	s->chance = s->chance * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(s->chance >> 33) % n;
}

/* What one call may move of `n` bytes, `moved` of which went before. */
static size_t piece(struct watched *s, size_t moved, size_t n)
{
	size_t most = short_bytes;

	if (short_first && moved >= short_first)
		most = 1 + chance(s, (uint32_t)short_most);
	return n < most ? n : most;
}

static void arm(struct watched *s, int fd)
{
	int kept = errno;

	__real_epoll_ctl(s->epoll, EPOLL_CTL_MOD, fd, &s->event);
	errno = kept;
}

/* No: it is refused for now, as by a socket that has nothing or takes nothing.  A socket that has ended says so. */
static bool may_go(struct watched *s, int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLRDHUP };

	if (!short_again || chance(s, 100) >= short_again || poll(&p, 1, 0) != 0)
		return true;
	arm(s, fd);
	errno = EAGAIN;
	return false;
}

/* Counts, and asks for an edge when the program may take this for the end of what there is. */
static ssize_t moved(struct watched *s, int fd, size_t *count, ssize_t r, size_t wanted)
{
	if (r > 0)
		*count += (size_t)r;
	if (r > 0 && (size_t)r < wanted)
		arm(s, fd);
	return r;
}

static ssize_t receive(struct watched *s, int fd, void *p, size_t n, int flags)
{
	if (!may_go(s, fd))
		return -1;
	return moved(s, fd, &s->in, __real_recv(fd, p, piece(s, s->in, n), flags), n);
}

static ssize_t transmit(struct watched *s, int fd, const struct msghdr *m, int flags)
{
	struct iovec iov[PIECES];
	struct msghdr part = *m;
	size_t all = 0, left;

	for (size_t i = 0; i < m->msg_iovlen; i++)
		all += m->msg_iov[i].iov_len;
	if (!may_go(s, fd))
		return -1;
	left = piece(s, s->out, all);
	part.msg_iov = iov;
	part.msg_iovlen = 0;
	for (size_t i = 0; i < m->msg_iovlen && i < PIECES && left; i++) {
		struct iovec *v = &iov[part.msg_iovlen++];

		*v = m->msg_iov[i];
		if (v->iov_len > left)
			v->iov_len = left;
		left -= v->iov_len;
	}
	return moved(s, fd, &s->out, __real_sendmsg(fd, &part, flags), all);
}

ssize_t __wrap_recv(int fd, void *p, size_t n, int flags)
{
	struct watched *s = watched(fd);

	return s && !(flags & MSG_PEEK) ? receive(s, fd, p, n, flags) : __real_recv(fd, p, n, flags);
}

ssize_t __wrap_read(int fd, void *p, size_t n)
{
	struct watched *s = watched(fd);

	return s ? receive(s, fd, p, n, 0) : __real_read(fd, p, n);
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags)
{
	struct watched *s = watched(fd);

	return s ? transmit(s, fd, m, flags) : __real_sendmsg(fd, m, flags);
}

ssize_t __wrap_send(int fd, const void *p, size_t n, int flags)
{
	struct iovec iov = { (void *)p, n };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

	return __wrap_sendmsg(fd, &m, flags);
}

ssize_t __wrap_write(int fd, const void *p, size_t n)
{
	return watched(fd) ? __wrap_send(fd, p, n, 0) : __real_write(fd, p, n);
}

ssize_t __wrap_writev(int fd, const struct iovec *iov, int n)
{
	struct msghdr m = { .msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)n };
	struct watched *s = watched(fd);

	return s ? transmit(s, fd, &m, 0) : __real_writev(fd, iov, n);
}

ssize_t __wrap_splice(int in, off64_t *in_at, int out, off64_t *out_at, size_t n, unsigned flags)
{
	struct watched *s = watched(in) ? watched(in) : watched(out);
	int fd = watched(in) ? in : out;
	size_t *count;

	if (!s)
		return __real_splice(in, in_at, out, out_at, n, flags);
	if (!may_go(s, fd))
		return -1;
	count = fd == in ? &s->in : &s->out;
	return moved(s, fd, count, __real_splice(in, in_at, out, out_at, piece(s, *count, n), flags), n);
}

int __wrap_epoll_ctl(int epoll, int op, int fd, struct epoll_event *e)
{
	if (op != EPOLL_CTL_DEL && fd >= 0 && fd < FDS && (op == EPOLL_CTL_ADD || table[fd].on)) {
		struct watched *s = &table[fd];

		if (op == EPOLL_CTL_ADD)
			*s = (struct watched){ .chance = short_seed * 2654435761u + (unsigned)fd };
		s->on = e->events & EPOLLET;
		s->epoll = epoll;
		s->event = *e;
	}
	return __real_epoll_ctl(epoll, op, fd, e);
}

int __wrap_close(int fd)
{
	if (fd >= 0 && fd < FDS)
		table[fd].on = false;
	return __real_close(fd);
}
