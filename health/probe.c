/* probe: see probe.h.
 *
 * Owns the checks that are under way.  A plain one is four system calls: connect, send, and a tick later recv and the connect to
 * nowhere that resets the connection and leaves the socket for the next check: a fifth of a check is making and closing
 * one.  What it could not send or read at once is tried again when it is looked at. */
#include "health/probe.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "health/wheel.h"
#include "lib/base/buf.h"
#include "lib/base/mem.h"
#include "lib/http/h1.h"
#include "lib/net/socket.h"
#include "lib/net/tls_live.h"

#define READ_MAX (16u * 1024)
#define INTERIM_MAX 8
#define READS_MAX 4096		/* of a TLS connection in one look: nothing else bounds what is no data */
#define PROBES_IDLE 128	/* sockets of a family that are kept, at most */

struct probe {
	struct wheel_item look;		/* first */
	const struct endpoint *endpoint;	/* borrowed */
	const struct check_rules *rules;	/* borrowed */
	void *who;
	struct probe *prev, *next;	/* borrowed: all of them */
	struct buf *in;			/* owned: the beginning of a head */
	struct tls_live *tls;		/* owned; NULL: plain */
	struct h1 h1;
	int fd;
	uint32_t began, step;		/* ms: when, and after how many it is looked at next */
	uint32_t sent;			/* bytes of the request */
	bool asked;			/* all of it */
};

struct prober {
	const struct probe_ops *ops;	/* borrowed */
	void *ctx;			/* borrowed */
	struct wheel wheel;
	struct probe *all;
	uint32_t n, n_tls;
	int idle[2][PROBES_IDLE];	/* owned: sockets of IPv4 and IPv6 that are not connected; each was taken */
	uint32_t n_idle[2];
	uint32_t most;			/* sockets, when there was no descriptor for another one */
	struct codec_limits limits;
	struct h1_shared *h1;		/* owned; NULL: no answer was read yet */
	struct vec vec;
	char out[PROBE_HEAD_MAX];
	char in[READ_MAX + TLS13_RECORD];
	char plain[READ_MAX];
	char why[256];
};

/* What a look has found. */
enum found { FOUND_NOTHING, FOUND_GOOD, FOUND_BAD };

struct prober *prober_new(const struct probe_ops *ops, void *ctx, uint32_t now)
{
	struct prober *p = mem_zalloc(sizeof *p);

	if (!p)
		return NULL;
	p->ops = ops;
	p->ctx = ctx;
	p->most = UINT32_MAX;
	p->limits = (struct codec_limits){
		.head = PROBE_HEAD_MAX, .target = PROBE_HEAD_MAX, .fields = 128, .interim = INTERIM_MAX, .chunk_overhead = 1024,
	};
	p->vec.scratch = p->out;
	p->vec.end = p->out + sizeof p->out;
	vec_reset(&p->vec);
	wheel_init(&p->wheel, now);
	return p;
}

/* --- one check --- */

/* Resets the connection of `fd` and keeps the socket. */
static bool keep(struct prober *p, const struct endpoint *e, int fd)
{
	static const struct sockaddr nowhere = { .sa_family = AF_UNSPEC };
	bool v6 = e->family == ENDPOINT_IP6;

	if (e->family == ENDPOINT_UNIX || p->n_idle[v6] == PROBES_IDLE || connect(fd, &nowhere, sizeof nowhere) != 0)
		return false;
	p->idle[v6][p->n_idle[v6]++] = fd;
	return true;
}

static void drop(struct prober *p, int fd)
{
	socket_reset_on_close(fd);
	close(fd);
	p->ops->give(p->ctx);
}

/* `well`: as far as the connection goes. */
static void probe_end(struct prober *p, struct probe *c, bool well)
{
	*(c->prev ? &c->prev->next : &p->all) = c->next;
	if (c->next)
		c->next->prev = c->prev;
	p->n--;
	p->n_tls -= c->endpoint->tls != 0;
	if (!well || !keep(p, c->endpoint, c->fd))
		drop(p, c->fd);
	tls_live_free(c->tls);
	buf_free(&c->in, NULL);
	mem_free(c);
}

static enum found bad(struct prober *p, const char *what, const char *more)
{
	snprintf(p->why, sizeof p->why, "%s%s%s", what, more ? ": " : "", more ? more : "");
	return FOUND_BAD;
}

/* The head of the request, and the codec knows of it. */
static struct str request_of(struct prober *p, struct probe *c)
{
	const struct check_rules *r = c->rules;
	const char *space = memchr(r->request.p, ' ', r->request.n);
	struct head h = { .method = { r->request.p, (size_t)(space - r->request.p) }, .minor = 1, .body = BODY_NONE };
	char text[ENDPOINT_TEXT_MAX], *end;
	struct str head = {0};

	h.target = h.path = (struct str){ space + 1, r->request.n - h.method.n - 1 };
	h.method_id = (uint8_t)method_of(h.method);
	h.authority = r->host.n ? r->host : c->endpoint->family == ENDPOINT_UNIX ? STR("localhost") : endpoint_text(c->endpoint, text);
	h1_init(&c->h1, CODEC_UPSTREAM, p->h1);
	vec_reset(&p->vec);
	if (codec_put_head(&c->h1.codec, 0, &h, &p->vec) != OK || p->vec.n != 1)
		return head;
	head = (struct str){ p->vec.iov[0].iov_base, p->vec.iov[0].iov_len };
	if (head.n + r->fields.n > sizeof p->out || codec_put_end(&c->h1.codec, 0, NULL, &p->vec) != OK)
		return (struct str){0};
	/* more lines before the empty one */
	end = p->out + head.n - 2;
	memcpy(end, r->fields.p, r->fields.n);
	memcpy(end + r->fields.n, "\r\n", 2);
	return (struct str){ p->out, head.n + r->fields.n };
}

/* -1: the connection is gone; else whether all went. */
static int put(struct prober *p, struct probe *c, struct str out)
{
	ssize_t n;

	do {
		n = send(c->fd, out.p + c->sent, out.n - c->sent, MSG_NOSIGNAL);
		c->sent += n > 0 ? (uint32_t)n : 0;
	} while (n > 0 && c->sent < out.n);
	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		bad(p, c->sent ? "the request was not taken" : "it could not be connected to", strerror(errno));
		return -1;
	}
	return n >= 0;
}

static enum found answer(struct prober *p, struct probe *c, struct str in, bool eof)
{
	struct codec_event ev;
	enum codec_kind kind;

	if (c->in) {
		if (buf_append(&c->in, NULL, in.p, in.n, PROBE_HEAD_MAX + READ_MAX) != OK)
			return bad(p, "its answer is too long", NULL);
		in = buf_str(c->in);
	}
	for (;;) {
		struct str rest = in;

		kind = codec_next(&c->h1.codec, &rest, eof, &ev);
		if (c->in)
			buf_consume(&c->in, NULL, in.n - rest.n);
		in = rest;
		if (kind == CODEC_BAD)
			return bad(p, "its answer is not HTTP", codec_fault_text(ev.fault).p);
		if (kind != CODEC_HEAD)
			break;
		if (ev.head->status < 200)
			continue;
		if (check_status_good(c->rules, ev.head->status))
			return FOUND_GOOD;
		snprintf(p->why, sizeof p->why, "it answered with status %u", ev.head->status);
		return FOUND_BAD;
	}
	if (eof)
		return bad(p, "it closed the connection without an answer", NULL);
	if (!c->in && in.n && buf_append(&c->in, NULL, in.p, in.n, PROBE_HEAD_MAX + READ_MAX) != OK)
		return bad(p, "there is no memory", NULL);
	return FOUND_NOTHING;
}

static enum found no_answer(struct prober *p, int error)
{
	return bad(p, error == ECONNREFUSED ? "it could not be connected to" : "the connection broke", strerror(error));
}

static enum found look_plain(struct prober *p, struct probe *c)
{
	enum found found;
	ssize_t n;

	if (!c->asked) {
		int went = put(p, c, c->rules->kind == CHECK_HTTP ? request_of(p, c) : STR(""));

		if (went <= 0)
			return went ? FOUND_BAD : FOUND_NOTHING;
		c->asked = true;
		return c->rules->kind == CHECK_HTTP ? FOUND_NOTHING : FOUND_GOOD;
	}
	do {	/* what a head may have bounds it */
		n = recv(c->fd, p->in, READ_MAX, 0);
		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? FOUND_NOTHING : no_answer(p, errno);
		found = answer(p, c, (struct str){ p->in, (size_t)n }, n == 0);
	} while (found == FOUND_NOTHING);
	return found;
}

/* --- with TLS --- */

static bool flush(struct probe *c)
{
	struct str out;
	ssize_t n = 0;

	while ((out = buf_str(c->tls->feed.out)).n && (n = send(c->fd, out.p, out.n, MSG_NOSIGNAL)) > 0)
		buf_consume(&c->tls->feed.out, NULL, (size_t)n);
	return n >= 0 || errno == EAGAIN || errno == EINTR;
}

static enum found shaken(struct prober *p, struct probe *c)
{
	struct str request;

	if (c->rules->kind != CHECK_HTTP)
		return FOUND_GOOD;
	request = request_of(p, c);
	if (tls_live_write(c->tls, request.p, request.n) != request.n)
		return bad(p, "its TLS failed", tls_live_why(c->tls));
	c->asked = true;
	return flush(c) ? FOUND_NOTHING : no_answer(p, errno);
}

/* One read. */
static enum found read_tls(struct prober *p, struct probe *c, bool *more)
{
	ssize_t n = recv(c->fd, p->in, READ_MAX, 0);
	struct str in = { p->in, n > 0 ? (size_t)n : 0 };
	enum tls_live_said said;
	size_t got;

	*more = n > 0;
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		return no_answer(p, errno);
	if (!c->asked) {
		said = tls_live_shake(c->tls, in, n == 0);
		if (!flush(c))
			return said == TLS_LIVE_BAD ? bad(p, "the TLS handshake failed", tls_live_why(c->tls)) : no_answer(p, errno);
		return said == TLS_LIVE_BAD ? bad(p, "the TLS handshake failed", tls_live_why(c->tls)) :
		       said == TLS_LIVE_DONE ? shaken(p, c) : FOUND_NOTHING;
	}
	if (!flush(c))
		return no_answer(p, errno);
	said = tls_live_read(c->tls, in, n == 0, p->plain, sizeof p->plain, &got);
	if (got || c->tls->ended || n == 0)
		return answer(p, c, (struct str){ p->plain, got }, c->tls->ended || n == 0);
	return said == TLS_LIVE_BAD ? bad(p, "its TLS failed", tls_live_why(c->tls)) : FOUND_NOTHING;
}

static enum found look_tls(struct prober *p, struct probe *c)
{
	enum found found;
	bool more;

	for (unsigned i = 0; i < READS_MAX; i++) {
		found = read_tls(p, c, &more);
		if (found != FOUND_NOTHING || !more)
			return found;
	}
	return FOUND_NOTHING;
}

static enum found begin_tls(struct prober *p, struct probe *c)
{
	struct ssl_st *ssl = NULL;

	if (p->ops->tls(p->ctx, c->endpoint, &ssl) != OK)
		return bad(p, "TLS cannot be spoken with it", NULL);
	c->tls = tls_live_new(ssl, false, NULL);
	return c->tls ? FOUND_NOTHING : bad(p, "there is no memory", NULL);
}

/* --- */

static enum found look(struct prober *p, struct probe *c)
{
	int error;

	if (!c->endpoint->tls)
		return look_plain(p, c);
	if (!c->tls) {	/* connected yet? */
		ssize_t n = send(c->fd, "", 0, MSG_NOSIGNAL);

		error = n < 0 ? errno : 0;
		if (error && error != EAGAIN && error != EINTR)
			return no_answer(p, error);
		if (error || begin_tls(p, c) == FOUND_BAD)
			return error ? FOUND_NOTHING : FOUND_BAD;
	}
	return look_tls(p, c);
}

/* It is looked at, and again later, unless it ends. */
static void step(struct prober *p, struct probe *c, uint32_t now)
{
	enum found found = look(p, c);
	void *who = c->who;
	uint32_t left;

	if (found == FOUND_NOTHING && now - c->began >= c->rules->timeout)
		found = bad(p, c->asked ? "it did not answer in time" :
			    c->tls ? "the TLS handshake did not end in time" : "it could not be connected to in time", NULL);
	if (found != FOUND_NOTHING) {
		probe_end(p, c, found == FOUND_GOOD);
		p->ops->done(p->ctx, who, found == FOUND_GOOD, p->why);
		return;
	}
	left = c->rules->timeout - (now - c->began);
	wheel_add(&p->wheel, &c->look, now + (c->step < left ? c->step : left));
	c->step *= 2;
}

/* A socket to connect `e` by, which was taken; -1: there is none. */
static int take(struct prober *p, const struct endpoint *e)
{
	static const int families[] = { [ENDPOINT_UNIX] = AF_UNIX, [ENDPOINT_IP4] = AF_INET, [ENDPOINT_IP6] = AF_INET6 };
	bool v6 = e->family == ENDPOINT_IP6;
	int fd;

	if (e->family != ENDPOINT_UNIX && p->n_idle[v6])
		return p->idle[v6][--p->n_idle[v6]];
	for (unsigned i = 0; i < 2; i++)	/* those of another family are of no use now */
		if (p->n_idle[i] && p->n + p->n_idle[0] + p->n_idle[1] >= p->most)
			drop(p, p->idle[i][--p->n_idle[i]]);
	if (!p->ops->take(p->ctx)) {
		p->most = p->n + p->n_idle[0] + p->n_idle[1];
		return -1;
	}
	fd = socket(families[e->family], SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		p->ops->give(p->ctx);
	return fd;
}

/* False: errno says why it cannot be connected to. */
static bool begin_connect(const struct endpoint *e, uint16_t port, int fd)
{
	struct endpoint_address from = endpoint_address_of(e);
	struct socket_address a;

	if (e->family != ENDPOINT_UNIX)
		socket_address_ip(&a, e->family == ENDPOINT_IP6, from.ip, port ? port : e->port);
	else if (socket_address_unix(&a, from.path) != OK)
		return errno = ENAMETOOLONG, false;
	return connect(fd, &a.name.sa, a.len) == 0 || errno == EINPROGRESS;
}

static bool ready(struct prober *p, const struct check_rules *r)
{
	if (r->kind == CHECK_HTTP && !p->h1)
		p->h1 = h1_shared_new(&p->limits);
	return r->kind != CHECK_HTTP || p->h1;
}

enum err prober_begin(struct prober *p, const struct endpoint *e, const struct check_rules *r, void *who, uint32_t now)
{
	struct probe *c;
	int fd;

	if (p->n >= PROBES_MAX || (e->tls && p->n_tls >= PROBES_TLS_MAX) || !ready(p, r) || (fd = take(p, e)) < 0)
		return ERR_LIMIT;
	c = mem_alloc(sizeof *c);
	if (!c) {
		drop(p, fd);
		return ERR_LIMIT;
	}
	if (!begin_connect(e, r->port, fd)) {
		bad(p, "it could not be connected to", strerror(errno));
		mem_free(c);
		drop(p, fd);
		p->ops->done(p->ctx, who, false, p->why);
		return OK;
	}
	*c = (struct probe){ .endpoint = e, .rules = r, .who = who, .fd = fd, .began = now, .step = WHEEL_TICK, .next = p->all };
	if (p->all)
		p->all->prev = c;
	p->all = c;
	p->n++;
	p->n_tls += e->tls != 0;
	step(p, c, now);
	return OK;
}

void prober_tend(struct prober *p, uint32_t now)
{
	struct wheel_item *i = wheel_due(&p->wheel, now), *next;

	for (; i; i = next) {
		next = i->next;
		step(p, (struct probe *)i, now);
	}
}

int64_t prober_wait(const struct prober *p, uint32_t now)
{
	return wheel_wait(&p->wheel, now);
}

void prober_free(struct prober *p)
{
	if (!p)
		return;
	while (p->all)
		probe_end(p, p->all, false);
	for (unsigned v6 = 0; v6 < 2; v6++)
		while (p->n_idle[v6])
			drop(p, p->idle[v6][--p->n_idle[v6]]);
	h1_shared_free(p->h1);
	mem_free(p);
}
