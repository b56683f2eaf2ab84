/* load.c - sends numbered requests at a steady rate and looks at every answer.
 *
 * usage: load PORT RATE SECONDS [posts PERCENT] [from N] [conns N] [timeout MS]
 *
 * Open loop: a request is sent when its time has come, on a connection that is idle or on a new one
 * (at most `conns`; what is late is counted).  Each has a number of its own; `posts` of a hundred are POSTs with a body.
 * At the end one line of JSON: what became of them.
 *
 *   ok       the answer of this request, whole
 *   error    an honest answer that is not 200, whole; by status
 *   cut      the connection ended inside an answer, so that it shows
 *   lost     the connection ended, or the time was over, without a byte of an answer
 *   stuck    the time was over in the middle of an answer
 *   odd      an answer of 200 that the origin spoiled, or that cannot be understood
 *   wrong    a byte of another request's answer: never right
 *
 * Numbers of GETs that were not ok are listed (the first hundred). */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
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

#define CONNS_MAX 2000
#define IN 16384
#define TOLD 100

struct conn {
	int fd;			/* -1: none */
	int busy, post;
	unsigned long long id, sent_us;
	unsigned n;
	char in[IN];
};

static struct conn conns[CONNS_MAX];
static int ep, n_conns = 256;
static struct sockaddr_in to = { .sin_family = AF_INET };
static unsigned long long ok[2], error[2], cut[2], lost[2], odd[2], wrong, late, stuck, sent[2], status[1000], reconnects;
static unsigned long long told[TOLD], n_told, slowest_us, timeout_us = 30000000;
static unsigned long long last_bad_us, began_us;

static unsigned long long now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (unsigned long long)t.tv_sec * 1000000 + (unsigned long long)t.tv_nsec / 1000;
}

static void bad(struct conn *c)
{
	last_bad_us = now_us() - began_us;
	if (!c->post && n_told < TOLD)
		told[n_told++] = c->id;
}

static void conn_end(struct conn *c)
{
	close(c->fd);
	c->fd = -1;
	c->busy = 0;
}

/* With it a number that noise has changed is not taken for another one.  The same in origin.c. */
static unsigned check_of(unsigned long long id)
{
	return (unsigned)((id * 0x9e3779b97f4a7c15ULL) >> 48);
}

/* Any number in angle brackets that is not this request's. */
static int foreign(const struct conn *c)
{
	unsigned long long id;
	unsigned check;
	char end;

	for (const char *p = c->in; (p = memchr(p, '<', (size_t)(c->in + c->n - p))); p++)
		if (sscanf(p, "<%20llu-%4x%c", &id, &check, &end) == 3 && end == '>' && check == check_of(id) && id != c->id)
			return 1;
	return 0;
}

/* The answer is here as far as it will be.  `ended`: the connection has. */
static int judge(struct conn *c, int ended)
{
	char *end, *field, mine[40];
	unsigned code = 0;
	long body = -1;

	c->in[c->n] = '\0';
	while (!strncmp(c->in, "HTTP/1.1 1", 10) && (end = strstr(c->in, "\r\n\r\n"))) {	/* interim */
		c->n -= (unsigned)(end + 4 - c->in);
		memmove(c->in, end + 4, c->n + 1);
	}
	end = strstr(c->in, "\r\n\r\n");
	if (!end && !ended)
		return 0;
	if (!c->n) {
		lost[c->post]++;
		bad(c);
		return 1;
	}
	field = strcasestr(c->in, "\nContent-Length:");
	if (end && field && field < end)
		body = atol(field + 16);
	if (!strncmp(c->in, "HTTP/1.1 204", 12) || !strncmp(c->in, "HTTP/1.1 304", 12))	/* these end with their head */
		body = 0;
	if (end && body >= 0 && (long)(c->in + c->n - end - 4) < body && !ended)
		return 0;
	if (end && body < 0 && !ended) {	/* chunked: to its end */
		if (!strstr(end, "\r\n0\r\n\r\n"))
			return 0;
	}
	if (foreign(c)) {
		wrong++;
		bad(c);
		if (wrong <= 3)
			fprintf(stderr, "wrong: request %llu got:\n%s\n", c->id, c->in);
		return 1;
	}
	sscanf(c->in, "HTTP/1.1 %3u", &code);
	if (code < 1000)
		status[code]++;
	if (!end || (body >= 0 && (long)(c->in + c->n - end - 4) < body) || (body < 0 && ended)) {
		cut[c->post]++;
		bad(c);
		return 1;
	}
	snprintf(mine, sizeof mine, "<%llu-%04x>", c->id, check_of(c->id));
	if (code == 200 && strstr(end, mine) == end + 4 && strchr(end + 4, '\n')) {
		ok[c->post]++;
	} else if (code == 200) {
		odd[c->post]++;
		bad(c);
	} else {
		error[c->post]++;
		bad(c);
	}
	return 1;
}

static int conn_open(struct conn *c)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLRDHUP, .data.ptr = c };
	int on = 1;

	c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&to, sizeof to)) {
		perror("load: connect");
		exit(1);
	}
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	epoll_ctl(ep, EPOLL_CTL_ADD, c->fd, &ev);
	reconnects++;
	return 1;
}

static int request(unsigned long long id, int post)
{
	struct conn *c = NULL, *free_one = NULL;
	char out[512];
	int n;

	for (int i = 0; i < n_conns && !c; i++) {
		if (conns[i].fd >= 0 && !conns[i].busy)
			c = &conns[i];
		else if (conns[i].fd < 0 && !free_one)
			free_one = &conns[i];
	}
	if (!c && free_one && conn_open(free_one))
		c = free_one;
	if (!c)
		return 0;
	if (post)
		n = snprintf(out, sizeof out, "POST /r HTTP/1.1\r\nHost: load\r\nX-Id: %llu\r\nContent-Length: 100\r\n\r\n%0100llu", id, id);
	else
		n = snprintf(out, sizeof out, "GET /r HTTP/1.1\r\nHost: load\r\nX-Id: %llu\r\n\r\n", id);
	if (send(c->fd, out, (size_t)n, MSG_NOSIGNAL) != n) {	/* closed while idle: another one */
		conn_end(c);
		return request(id, post);
	}
	c->busy = 1;
	c->post = post;
	c->id = id;
	c->n = 0;
	c->sent_us = now_us();
	sent[post]++;
	return 1;
}

static void answered(struct conn *c)
{
	unsigned long long took = now_us() - c->sent_us;

	if (took > slowest_us)
		slowest_us = took;
	c->busy = 0;
}

static void readable(struct conn *c)
{
	ssize_t got = recv(c->fd, c->in + c->n, IN - 1 - c->n, MSG_DONTWAIT);

	if (got < 0 && errno == EAGAIN)
		return;
	if (got > 0)
		c->n += (unsigned)got;
	if (c->busy && judge(c, got <= 0)) {
		answered(c);
		if (got > 0 && strcasestr(c->in, "\nConnection: close"))
			conn_end(c);
		else if (got > 0)
			return;
	}
	if (got <= 0 && c->fd >= 0)
		conn_end(c);
}

static void overdue(void)
{
	unsigned long long now = now_us();

	for (int i = 0; i < n_conns; i++) {
		struct conn *c = &conns[i];

		if (c->fd >= 0 && c->busy && now - c->sent_us > timeout_us) {
			*(c->n ? &stuck : &lost[c->post]) += 1;
			bad(c);
			answered(c);
			conn_end(c);
		}
	}
}

static int busy(void)
{
	int n = 0;

	for (int i = 0; i < n_conns; i++)
		n += conns[i].fd >= 0 && conns[i].busy;
	return n;
}

static void report(unsigned long long us)
{
	printf("{\"seconds\": %.1f, \"sent\": %llu, \"posts\": %llu, \"ok\": %llu, \"posts_ok\": %llu, \"error\": %llu, \"posts_error\": %llu, "
	       "\"cut\": %llu, \"posts_cut\": %llu, \"lost\": %llu, \"posts_lost\": %llu, \"stuck\": %llu, \"odd\": %llu, \"wrong\": %llu, \"late\": %llu, "
	       "\"connects\": %llu, \"slowest_ms\": %llu, \"last_bad_ms\": %llu, \"status\": {",
	       (double)us / 1e6, sent[0] + sent[1], sent[1], ok[0], ok[1], error[0], error[1], cut[0], cut[1], lost[0], lost[1],
	       stuck, odd[0] + odd[1], wrong, late, reconnects, slowest_us / 1000, last_bad_us / 1000);
	for (int i = 0, first = 1; i < 1000; i++)
		if (status[i]) {
			printf("%s\"%d\": %llu", first ? "" : ", ", i, status[i]);
			first = 0;
		}
	printf("}, \"bad\": [");
	for (unsigned i = 0; i < n_told; i++)
		printf("%s%llu", i ? ", " : "", told[i]);
	printf("]}\n");
}

int main(int argc, char **argv)
{
	unsigned long long rate, seconds, posts = 0, id = 1, due = 0, first, end_us;
	struct epoll_event got[256];

	if (argc < 4) {
		fprintf(stderr, "usage: load PORT RATE SECONDS [posts PERCENT] [from N] [conns N] [timeout MS]\n");
		return 2;
	}
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	to.sin_port = htons((unsigned short)atoi(argv[1]));
	rate = strtoull(argv[2], NULL, 10);
	seconds = strtoull(argv[3], NULL, 10);
	for (int i = 4; i + 1 < argc; i += 2) {
		unsigned long long v = strtoull(argv[i + 1], NULL, 10);

		if (!strcmp(argv[i], "posts"))
			posts = v;
		else if (!strcmp(argv[i], "from"))
			id = v;
		else if (!strcmp(argv[i], "conns"))
			n_conns = v < CONNS_MAX ? (int)v : CONNS_MAX;
		else if (!strcmp(argv[i], "timeout"))
			timeout_us = v * 1000;
	}
	first = id;
	signal(SIGPIPE, SIG_IGN);
	ep = epoll_create1(EPOLL_CLOEXEC);
	for (int i = 0; i < CONNS_MAX; i++)
		conns[i].fd = -1;
	began_us = now_us();
	end_us = began_us + seconds * 1000000;
	while (now_us() < end_us || (busy() && now_us() < end_us + timeout_us + 1000000)) {
		int n = epoll_wait(ep, got, 256, 1);

		for (int i = 0; i < n; i++)
			if (((struct conn *)got[i].data.ptr)->fd >= 0)
				readable(got[i].data.ptr);
		due = (now_us() - began_us) * rate / 1000000;
		if (now_us() >= end_us)
			due = 0;
		for (; id - first < due; id++)
			if (!request(id, id * 2654435761u % 100 < posts)) {
				late++;
				break;
			}
		overdue();
	}
	report(now_us() - began_us);
	return wrong != 0;
}
