/* The ends of the log: opening, opening again, and writes that do not wait.
 *
 * Owns the descriptors it opened.  Called by the writer thread, and by log_start
 * and log_stop when that thread does not run.  Standard output and error are
 * shared with whoever started us, so their flags are never touched: a pipe or
 * terminal is opened once more through /proc for a non-blocking description of
 * our own, a socket is written with MSG_DONTWAIT, and where neither works a
 * write is no longer than what poll promises.  */
#include "proxy/logsink.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/mem.h"

#define FILE_FLAGS (O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)
#define FILE_MODE 0640

/* fd 1 or 2, as a description of our own where that can be had. */
static enum err logsink_adopt(struct logsink *s, int fd)
{
	char proc[32];
	struct stat st;

	if (fstat(fd, &st) < 0)
		return ERR_SYS;
	s->fd = fd;
	s->socket = S_ISSOCK(st.st_mode);
	if (s->socket || S_ISREG(st.st_mode))
		return OK;
	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	fd = open(proc, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	if (fd < 0) {
		s->piecemeal = true;
		return OK;
	}
	s->fd = fd;
	s->own = true;
	return OK;
}

enum err logsink_open(struct logsink *s, const struct log_dest *dest, char *why, size_t why_n)
{
	struct logsink new = {.kind = dest->sink, .fd = -1};
	const char *name = dest->sink == LOG_FILE ? dest->path : dest->sink == LOG_STDOUT ? "stdout" : "stderr";
	enum err e = OK;

	if (!name || !*name) {
		snprintf(why, why_n, "log file without a path");
		return ERR_SYNTAX;
	}
	new.name = mem_strndup(name, strlen(name));
	if (!new.name) {
		snprintf(why, why_n, "no memory for the log %s", name);
		return ERR_MEM;
	}
	if (dest->sink == LOG_FILE) {
		new.fd = open(name, FILE_FLAGS, FILE_MODE);
		new.own = true;
		if (new.fd < 0)
			e = ERR_SYS;
	} else {
		e = logsink_adopt(&new, dest->sink == LOG_STDOUT ? STDOUT_FILENO : STDERR_FILENO);
	}
	if (e != OK) {
		snprintf(why, why_n, "cannot open the log %s: %s", name, strerror(errno));
		mem_free(new.name);
		return e;
	}
	*s = new;
	return OK;
}

void logsink_close(struct logsink *s)
{
	if (s->own)
		close(s->fd);
	mem_free(s->name);
	*s = (struct logsink){.fd = -1};
}

enum err logsink_reopen(struct logsink *s)
{
	int fd;

	if (s->kind != LOG_FILE)
		return OK;
	fd = open(s->name, FILE_FLAGS, FILE_MODE);
	if (fd < 0)
		return ERR_SYS;
	close(s->fd);
	s->fd = fd;
	s->blocked = false;
	s->retry_ms = 0;
	return OK;
}

bool logsink_same(const struct logsink *a, const struct logsink *b)
{
	struct stat x, y;

	return fstat(a->fd, &x) == 0 && fstat(b->fd, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* Cuts the list to what a pipe with room is sure to take: PIPE_BUF bytes; 0 when it has no room. */
static int logsink_promised(struct logsink *s, struct iovec *iov, int n)
{
	struct pollfd p = {.fd = s->fd, .events = POLLOUT};
	size_t left = PIPE_BUF;

	if (poll(&p, 1, 0) <= 0)
		return 0;
	for (int i = 0; i < n; i++) {
		if (iov[i].iov_len >= left) {
			iov[i].iov_len = left;
			return i + 1;
		}
		left -= iov[i].iov_len;
	}
	return n;
}

size_t logsink_write(struct logsink *s, struct iovec *iov, int n)
{
	size_t want = 0;
	ssize_t took;

	for (int i = 0; i < n; i++)
		want += iov[i].iov_len;
	s->blocked = false;
	if (s->piecemeal && !(n = logsink_promised(s, iov, n))) {
		s->blocked = true;
		return 0;
	}
	do {
		if (s->socket) {
			struct msghdr m = {.msg_iov = iov, .msg_iovlen = (size_t)n};

			took = sendmsg(s->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
		} else {
			took = writev(s->fd, iov, n);
		}
	} while (took < 0 && errno == EINTR);
	if (took < 0 && errno == EAGAIN) {
		s->blocked = true;
		return 0;
	}
	s->error = took < 0 ? errno : 0;
	if (took < 0)
		return 0;
	s->blocked = (size_t)took < want;
	return (size_t)took;
}
