/* origin.c - an origin that records every request before it answers.
 *
 * usage: origin NAME PORT RECORD [garbage SEED | drip MS | silent]
 *
 * One thread, one epoll loop.  A request is `METHOD /...` with a field `X-Id: N`, and a body
 * of Content-Length bytes or none.  Before anything is answered one line `N METHOD NAME` is appended to RECORD
 * by one write, so that a kill loses no record of what was answered.  The answer, at most
 * 1 KiB in one write, repeats `<N-check>`, so that a byte of somebody else's answer shows.
 *
 *   garbage  answers are changed at random places, cut, or nothing but noise
 *   drip     the body is sent a byte every MS milliseconds
 *   silent   requests are read and recorded, and never answered
 *
 * Bounded: at most CONNS connections; ends with SIGTERM. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CONNS 4096
#define IN 8192

enum mode { PLAIN, GARBAGE, DRIP, SILENT };

struct conn {
	int fd;
	unsigned n;		/* bytes in `in` */
	char in[IN];
	char out[1024];		/* what drips */
	unsigned left, at;
	unsigned long long due;	/* ms */
};

static struct conn *conns[65536];
static int ep, record, n_open;
static const char *name;
static enum mode mode;
static unsigned long long argument, seed;

static unsigned long long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (unsigned long long)t.tv_sec * 1000 + (unsigned long long)t.tv_nsec / 1000000;
}

static unsigned noise(void)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (unsigned)(seed >> 33);
}

static void conn_end(struct conn *c)
{
	conns[c->fd] = NULL;
	close(c->fd);
	free(c);
	n_open--;
}

/* A whole answer with the number in it; returns its length. */
static unsigned make(char *p, const char *id, const char *method, int head)
{
	unsigned long long number = strtoull(id, NULL, 10);
	char body[700];
	unsigned n = 0;

	for (unsigned i = 0; i < 20; i++)
		n += (unsigned)sprintf(body + n, "<%s-%04x>", id, (unsigned)((number * 0x9e3779b97f4a7c15ULL) >> 48));
	n += (unsigned)sprintf(body + n, " %s %s\n", method, name);
	return (unsigned)sprintf(p, "HTTP/1.1 200 OK\r\nX-Id: %s\r\nX-Origin: %s\r\nContent-Length: %u\r\n\r\n%s",
				 id, name, n, head ? "" : body);
}

/* Spoils an answer: its bytes, its length, or all of it.  False: the connection is to end behind it. */
static int spoil(char *p, unsigned *n)
{
	static const char *bits[] = {
		"Transfer-Encoding: chunked\r\n", "Content-Length: 7\r\n", "\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\n",
		"HTTP/1.1 204 No Content\r\n\r\n", "HTTP/0.9 1", "Connection: close\r\n", ": x\r\n", "X: a\r\n b\r\n", "0\r\n\r\n",
	};
	unsigned how = noise() % 8, k = 1 + noise() % 4;
	const char *bit;

	switch (how) {
	case 0:
		for (unsigned i = 0; i < *n; i++)
			p[i] = (char)noise();
		return 0;
	case 1:
		*n = noise() % *n;
		return 0;
	case 2:		/* something in the middle */
		bit = bits[noise() % (sizeof bits / sizeof *bits)];
		k = noise() % 90;
		memmove(p + k + strlen(bit), p + k, *n - k);
		memcpy(p + k, bit, strlen(bit));
		*n += (unsigned)strlen(bit);
		return noise() % 2;
	default:
		while (k--)
			p[noise() % (how < 6 ? 100 : *n)] = (char)noise();
		return noise() % 2;
	}
}

/* One whole request.  False: the connection is gone. */
static int serve(struct conn *c, const char *head, const char *method)
{
	char out[1200], line[128], id[24] = "0";
	const char *at = strcasestr(head, "\nX-Id:");
	unsigned n;
	int keep = 1;

	if (at)
		sscanf(at + 6, " %20[0-9]", id);
	n = (unsigned)snprintf(line, sizeof line, "%s %s %s\n", id, method, name);
	if (write(record, line, n) != (ssize_t)n)
		exit(1);
	if (mode == SILENT)
		return 1;
	n = make(out, id, method, !strcmp(method, "HEAD"));
	if (mode == DRIP) {
		memcpy(c->out, out, n);
		c->left = n;
		c->at = 0;
		c->due = now_ms();
		return 1;
	}
	if (mode == GARBAGE && noise() % 8)
		keep = spoil(out, &n);
	if (send(c->fd, out, n, MSG_NOSIGNAL) != (ssize_t)n || !keep) {
		conn_end(c);
		return 0;
	}
	return 1;
}

static void readable(struct conn *c)
{
	ssize_t got = recv(c->fd, c->in + c->n, IN - 1 - c->n, MSG_DONTWAIT);

	if (got <= 0) {
		if (got == 0 || errno != EAGAIN)
			conn_end(c);
		return;
	}
	c->n += (unsigned)got;
	for (;;) {
		char *end, *field, method[16] = "";
		unsigned body = 0, all;
		struct conn *me = c;

		c->in[c->n] = '\0';
		end = strstr(c->in, "\r\n\r\n");
		if (!end)
			break;
		end[2] = '\0';
		field = strcasestr(c->in, "\nContent-Length:");
		if (field)
			body = (unsigned)strtoul(field + 16, NULL, 10);
		all = (unsigned)(end + 4 - c->in) + body;
		if (all > c->n) {
			end[2] = '\r';
			break;
		}
		sscanf(c->in, "%15s", method);
		if (!serve(c, c->in, method))
			return;
		memmove(me->in, me->in + all, me->n - all);
		me->n -= all;
	}
	if (c->n == IN - 1)
		conn_end(c);
}

static void drip(void)
{
	unsigned long long now = now_ms();

	for (unsigned i = 0; i < sizeof conns / sizeof *conns; i++) {
		struct conn *c = conns[i];
		unsigned n = 1;

		if (!c || !c->left || now < c->due)
			continue;
		if (!c->at)	/* the head at once */
			n = (unsigned)(strstr(c->out, "\r\n\r\n") + 4 - c->out);
		if (send(c->fd, c->out + c->at, n, MSG_NOSIGNAL) < 0) {
			conn_end(c);
			continue;
		}
		c->at += n;
		c->left -= n;
		c->due = now + argument;
	}
}

static void take(int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC), on = 1;
	struct epoll_event ev = { .events = EPOLLIN };

	if (fd < 0)
		return;
	if (n_open >= CONNS || fd >= (int)(sizeof conns / sizeof *conns) || !(conns[fd] = calloc(1, sizeof **conns))) {
		close(fd);
		return;
	}
	n_open++;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	conns[fd]->fd = fd;
	ev.data.fd = fd;
	epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev);
}

int main(int argc, char **argv)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct epoll_event ev = { .events = EPOLLIN }, got[64];
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	if (argc < 4) {
		fprintf(stderr, "usage: origin NAME PORT RECORD [garbage SEED | drip MS | silent]\n");
		return 2;
	}
	name = argv[1];
	a.sin_port = htons((unsigned short)atoi(argv[2]));
	record = open(argv[3], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (argc > 4)
		mode = !strcmp(argv[4], "garbage") ? GARBAGE : !strcmp(argv[4], "drip") ? DRIP : SILENT;
	if (argc > 5)
		argument = seed = strtoull(argv[5], NULL, 10);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (record < 0 || bind(listener, (struct sockaddr *)&a, sizeof a) || listen(listener, 1024)) {
		perror("origin");
		return 1;
	}
	signal(SIGPIPE, SIG_IGN);
	ep = epoll_create1(EPOLL_CLOEXEC);
	ev.data.fd = listener;
	epoll_ctl(ep, EPOLL_CTL_ADD, listener, &ev);
	printf("ready\n");
	fflush(stdout);
	for (;;) {
		int n = epoll_wait(ep, got, 64, mode == DRIP ? (int)(argument < 50 ? argument : 50) : -1);

		for (int i = 0; i < n; i++) {
			if (got[i].data.fd == listener)
				take(listener);
			else if (conns[got[i].data.fd])
				readable(conns[got[i].data.fd]);
		}
		if (mode == DRIP)
			drip();
	}
}
