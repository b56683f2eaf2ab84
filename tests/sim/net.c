/* net: see net.h.
 *
 * Keeps to what Linux does: events are edges (a change arms one, the mask is what is true when it is
 * handed out), a read is short only at the end of what is there, a writer that was refused is
 * told of new room, a reset lets what came before it be read, closing with unread bytes resets.
 * Called by the story on one side and by the proxy, through --wrap, on the other. */
#include "tests/sim/net.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/net/socket.h"
#include "proxy/access.h"

#define FD_PEER 1000000		/* descriptors from here on are peers */
#define FD_LISTENER 2000000	/* and these listeners */
#define LISTENERS 4
#define BATCH 256
#define WALL_S 1700000000	/* unix time when the monotonic clock is 0 */

struct loop {
	const struct loop_events *ev;	/* borrowed */
	void *ctx;			/* borrowed */
	bool woken;
};

struct acceptor_here {
	void *ptr;
	enum loop_mode mode;
	bool open, watched;
};

struct net net;
static struct acceptor_here listeners[LISTENERS];
static unsigned n_listeners;

/* What the linker makes of the proxy's calls. */
struct loop *__wrap_loop_new(const struct loop_events *ev, void *ctx);
void __wrap_loop_free(struct loop *l);
enum err __wrap_loop_watch(struct loop *l, int fd, void *ptr, enum loop_mode mode);
enum err __wrap_loop_rewatch(struct loop *l, int fd, void *ptr, enum loop_mode mode);
void __wrap_loop_pass(struct loop *l, uint32_t now_ms, int64_t wait_ms);
void __wrap_loop_wake(struct loop *l);
int __wrap_socket_accept(int listener, struct socket_address *peer);
int __wrap_socket_connect(const struct socket_address *a, bool *done);
int __wrap_socket_error(int fd);
enum err __wrap_socket_bound(int fd, struct socket_address *a);
void __wrap_socket_receive_small(int fd, const struct socket_limits *limits);
void __wrap_socket_receive_large(int fd, const struct socket_limits *limits);
void __wrap_socket_reset_on_close(int fd);
ssize_t __wrap_recv(int fd, void *p, size_t n, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags);
int __wrap_shutdown(int fd, int how);
int __wrap_close(int fd);
int __wrap_clock_gettime(clockid_t id, struct timespec *t);
ssize_t __wrap_getrandom(void *p, size_t n, unsigned flags);
bool __wrap_log_access_on(void);
bool __wrap_access_write(const struct access_record *r);
int __real_close(int fd);
int __real_clock_gettime(clockid_t id, struct timespec *t);

/* --- buffers, chance --- */

void bytes_add(struct bytes *b, const void *p, size_t n)
{
	if (b->n + n > b->room) {
		b->room = 2 * (b->n + n) + 64;
		b->p = realloc(b->p, b->room);
		CHECK(b->p);
	}
	if (n)
		memcpy(b->p + b->n, p, n);
	b->n += n;
}

uint32_t net_random(uint32_t n)
{
	uint64_t v = net.seed += 0x9e3779b97f4a7c15u;

	v = (v ^ (v >> 30)) * 0xbf58476d1ce4e5b9u;
	v = (v ^ (v >> 27)) * 0x94d049bb133111ebu;
	return n ? (uint32_t)((v ^ (v >> 31)) >> 16) % n : 0;
}

void net_begin(uint64_t seed)
{
	net = (struct net){ .on = true, .now_us = 1000000, .seed = seed, .wait_ms = -1, .log_on = true };
	n_listeners = 0;
}

void net_end(void)
{
	for (unsigned i = 0; i < net.n_peers; i++) {
		struct peer *p = net.peers[i];

		CHECK(p->closed || (p->client && !p->accepted));
		free(p->in.p);
		free(p->got.p);
		free(p);
	}
	for (unsigned i = 0; i < n_listeners; i++)
		CHECK(!listeners[i].open);
	free(net.peers);
	free(net.records);
	net = (struct net){0};
}

/* --- what a story does --- */

static struct peer *peer_new(void)
{
	struct peer *p = calloc(1, sizeof *p);

	if (net.n_peers == net.max_peers) {
		net.max_peers = 2 * net.max_peers + 16;
		net.peers = realloc(net.peers, net.max_peers * sizeof *net.peers);
	}
	CHECK(p && net.peers);
	p->fd = FD_PEER + (int)net.n_peers;
	p->room = SIZE_MAX;
	net.peers[net.n_peers++] = p;
	return p;
}

int net_listener(void)
{
	CHECK(n_listeners < LISTENERS);
	listeners[n_listeners] = (struct acceptor_here){ .open = true };
	return FD_LISTENER + (int)n_listeners++;
}

struct peer *peer_connect(int listener)
{
	struct peer *p = peer_new();

	p->client = true;
	p->link = PEER_UP;
	p->listener = listener;
	p->port = (uint16_t)(20000 + net.n_peers);
	return p;
}

struct peer *net_upstream(unsigned i)
{
	for (unsigned k = 0; k < net.n_peers; k++)
		if (!net.peers[k]->client && i-- == 0)
			return net.peers[k];
	return NULL;
}

static bool alive(const struct peer *p)
{
	return p && !p->closed && p->link == PEER_UP && !p->rst;
}

void peer_send(struct peer *p, struct str s)
{
	if (!alive(p) || p->fin || !s.n)
		return;
	bytes_add(&p->in, s.p, s.n);
	p->event = true;
}

void peer_fin(struct peer *p)
{
	if (!alive(p) || p->fin)
		return;
	p->fin = true;
	p->event = true;
}

void peer_rst(struct peer *p)
{
	if (!alive(p))
		return;
	p->rst = true;
	p->error = ECONNRESET;
	p->event = true;
}

void peer_room(struct peer *p, size_t room)
{
	if (!p || (!room && p->link != PEER_UP))	/* who has just connected can write */
		return;
	p->room = room;
	p->blocked |= !room && p->event;	/* the event may have been for the room that has gone */
	if (room && p->blocked && alive(p)) {
		p->blocked = false;
		p->event = true;
	}
}

void peer_up(struct peer *p)
{
	if (!p || p->link != PEER_WAITS || p->closed)
		return;
	p->link = PEER_UP;
	p->event = true;
}

void peer_refuse(struct peer *p, int error)
{
	if (!p || p->link != PEER_WAITS || p->closed)
		return;
	p->link = PEER_FAILED;
	p->error = error;
	p->event = true;
}

void peer_nudge(struct peer *p)
{
	if (p && !p->closed && p->link == PEER_UP)
		p->event = true;
}

void peer_hush(struct peer *p)
{
	if (p)
		p->event = false;
}

struct str peer_got(const struct peer *p)
{
	return p ? (struct str){ p->got.p, p->got.n } : (struct str){0};
}

bool peer_open(const struct peer *p)
{
	return p && !p->closed;
}

/* --- the loop --- */

static struct peer *peer_of(int fd)
{
	CHECK(fd >= FD_PEER && fd < FD_PEER + (int)net.n_peers);
	CHECK(!net.peers[fd - FD_PEER]->closed);
	return net.peers[fd - FD_PEER];
}

struct loop *__wrap_loop_new(const struct loop_events *ev, void *ctx)
{
	struct loop *l = mem_zalloc(sizeof *l);

	if (l) {
		l->ev = ev;
		l->ctx = ctx;
	}
	return l;
}

void __wrap_loop_free(struct loop *l)
{
	mem_free(l);
}

enum err __wrap_loop_watch(struct loop *l, int fd, void *ptr, enum loop_mode mode)
{
	struct peer *p;

	(void)l;
	if (net.no_watch) {
		errno = ENOSPC;
		return ERR_SYS;
	}
	if (fd >= FD_LISTENER) {
		struct acceptor_here *a = &listeners[fd - FD_LISTENER];

		CHECK(a->open && !a->watched);
		*a = (struct acceptor_here){ .ptr = ptr, .mode = mode, .open = true, .watched = true };
		return OK;
	}
	p = peer_of(fd);
	CHECK(!p->watched && mode == LOOP_EDGE);
	p->watched = true;
	p->ptr = ptr;
	p->mode = mode;
	p->event |= p->link == PEER_UP;
	return OK;
}

enum err __wrap_loop_rewatch(struct loop *l, int fd, void *ptr, enum loop_mode mode)
{
	struct acceptor_here *a;
	struct peer *p;

	(void)l;
	if (fd < FD_LISTENER) {	/* it has moved; what is ready is told again */
		p = peer_of(fd);
		CHECK(p->watched && p->mode == mode);
		p->ptr = ptr;
		p->event |= p->link == PEER_UP;
		return OK;
	}
	a = &listeners[fd - FD_LISTENER];
	CHECK(a->open && a->watched && a->ptr == ptr);
	a->mode = mode;
	return OK;
}

static unsigned mask_of(const struct peer *p)
{
	unsigned mask = 0;

	if (p->link == PEER_WAITS)
		return 0;
	if (p->link == PEER_FAILED)
		return LOOP_BROKEN | LOOP_WRITABLE | LOOP_READABLE | LOOP_PEER_DONE;
	if (p->in.n > p->in_read || p->fin || p->rst)
		mask |= LOOP_READABLE;
	if (p->room)
		mask |= LOOP_WRITABLE;
	if (p->fin || p->rst)
		mask |= LOOP_PEER_DONE;
	if (p->rst || (p->fin && p->shut))
		mask |= LOOP_BROKEN;
	return mask;
}

static bool somebody_waits(unsigned listener)
{
	for (unsigned i = 0; i < net.n_peers; i++)
		if (net.peers[i]->client && !net.peers[i]->accepted && net.peers[i]->listener == (int)listener + FD_LISTENER)
			return true;
	return false;
}

struct happened {
	void *ptr;
	unsigned mask;
};

static unsigned gather(struct happened *h)
{
	unsigned n = 0;

	for (unsigned i = 0; i < n_listeners; i++)
		if (listeners[i].open && listeners[i].watched && listeners[i].mode == LOOP_LEVEL_IN && somebody_waits(i))
			h[n++] = (struct happened){ listeners[i].ptr, LOOP_READABLE };
	for (unsigned i = 0; i < net.n_peers && n < BATCH; i++) {
		struct peer *p = net.peers[i];
		unsigned mask;

		if (!p->event || !p->watched || p->closed)
			continue;
		p->event = false;
		mask = mask_of(p);
		if (mask)
			h[n++] = (struct happened){ p->ptr, mask };
	}
	for (unsigned i = n; net.shuffle && i > 1; i--) {
		unsigned k = net_random(i);
		struct happened t = h[k];

		h[k] = h[i - 1];
		h[i - 1] = t;
	}
	return n;
}

void __wrap_loop_pass(struct loop *l, uint32_t now_ms, int64_t wait_ms)
{
	struct happened h[BATCH];
	unsigned n;

	(void)now_ms;
	CHECK(wait_ms >= -1);
	net.wait_ms = wait_ms;
	if (l->woken) {
		l->woken = false;
		net.delivered++;
		l->ev->woken(l->ctx);
	}
	n = gather(h);
	net.delivered += n;
	if (n)
		l->ev->begin(l->ctx);
	for (unsigned i = 0; i < n; i++)
		l->ev->ready(l->ctx, h[i].ptr, h[i].mask);
}

void __wrap_loop_wake(struct loop *l)
{
	l->woken = true;
}

/* --- sockets --- */

int __wrap_socket_accept(int listener, struct socket_address *peer)
{
	static const uint8_t v4[4] = { 192, 0, 2, 1 }, v6[16] = { 0x20, 1, 0xd, 0xb8, [15] = 1 };

	if (net.no_accept) {
		errno = EMFILE;
		return -1;
	}
	for (unsigned i = 0; i < net.n_peers; i++) {
		struct peer *p = net.peers[i];

		if (!p->client || p->accepted || p->listener != listener)
			continue;
		p->accepted = true;
		socket_address_ip(peer, p->v6, p->v6 ? v6 : v4, p->port);
		return p->fd;
	}
	errno = EAGAIN;
	return -1;
}

int __wrap_socket_connect(const struct socket_address *a, bool *done)
{
	struct peer *p;

	if (net.connects == CONNECT_FAIL) {
		errno = ENETUNREACH;
		return -1;
	}
	p = peer_new();
	p->port = socket_address_port(a);
	net.connects_n++;
	*done = false;
	if (net.connects == CONNECT_UP)
		peer_up(p);
	else if (net.connects == CONNECT_REFUSED)
		peer_refuse(p, ECONNREFUSED);
	return p->fd;
}

int __wrap_socket_error(int fd)
{
	struct peer *p = peer_of(fd);
	int error = p->error;

	p->error = 0;
	return error;
}

enum err __wrap_socket_bound(int fd, struct socket_address *a)
{
	static const uint8_t v4[4] = { 198, 51, 100, 1 }, v6[16] = { 0x20, 1, 0xd, 0xb8, [15] = 2 };
	const struct peer *p = peer_of(fd);

	socket_address_ip(a, p->v6, p->v6 ? v6 : v4, 443);
	return OK;
}

void __wrap_socket_receive_small(int fd, const struct socket_limits *limits)
{
	(void)limits;
	CHECK(!peer_of(fd)->client);
}

void __wrap_socket_receive_large(int fd, const struct socket_limits *limits)
{
	__wrap_socket_receive_small(fd, limits);
}

void __wrap_socket_reset_on_close(int fd)
{
	peer_of(fd)->reset = true;
}

ssize_t __wrap_recv(int fd, void *to, size_t n, int flags)
{
	struct peer *p = peer_of(fd);
	size_t there;

	net.calls++;
	if (net.meddle)
		net.meddle();
	there = p->in.n - p->in_read;
	CHECK(n > 0);
	if (there) {
		if (n > there)
			n = there;
		memcpy(to, p->in.p + p->in_read, n);
		if (!(flags & MSG_PEEK))
			p->in_read += n;
		return (ssize_t)n;
	}
	if (p->error) {
		errno = p->error;
		p->error = 0;
		return -1;
	}
	if (p->fin || p->rst || p->link != PEER_UP)
		return 0;
	errno = EAGAIN;
	return -1;
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags)
{
	struct peer *p = peer_of(fd);
	size_t all = 0, taken = 0;

	CHECK((flags & MSG_NOSIGNAL) && m->msg_iovlen <= 1024);
	net.calls++;
	if (net.meddle)
		net.meddle();
	for (size_t i = 0; i < m->msg_iovlen; i++)
		all += m->msg_iov[i].iov_len;
	CHECK(all > 0 && !p->shut);
	if (p->rst || p->link != PEER_UP) {
		errno = p->error ? p->error : EPIPE;
		p->error = 0;
		return -1;
	}
	for (size_t i = 0; i < m->msg_iovlen && taken < p->room; i++) {
		size_t n = m->msg_iov[i].iov_len;

		if (n > p->room - taken)
			n = p->room - taken;
		bytes_add(&p->got, m->msg_iov[i].iov_base, n);
		taken += n;
	}
	if (p->room != SIZE_MAX)
		p->room -= taken;
	if (taken < all)
		p->blocked = true;
	if (taken)
		return (ssize_t)taken;
	errno = EAGAIN;
	return -1;
}

int __wrap_shutdown(int fd, int how)
{
	struct peer *p = peer_of(fd);

	CHECK(how == SHUT_WR);
	if (!p->shut && p->fin)
		p->event = true;	/* now both sides have ended: EPOLLHUP */
	p->shut = true;
	return 0;
}

int __wrap_close(int fd)
{
	struct peer *p;

	if (fd < FD_PEER)
		return __real_close(fd);
	if (fd >= FD_LISTENER) {
		CHECK(listeners[fd - FD_LISTENER].open);
		listeners[fd - FD_LISTENER].open = false;
		return 0;
	}
	p = peer_of(fd);
	p->reset |= p->in.n > p->in_read;
	p->closed = true;
	p->watched = false;
	return 0;
}

/* --- time, chance, the access log --- */

int __wrap_clock_gettime(clockid_t id, struct timespec *t)
{
	if (!net.on)
		return __real_clock_gettime(id, t);
	t->tv_sec = (time_t)(net.now_us / 1000000) + (id == CLOCK_MONOTONIC ? 0 : WALL_S);
	t->tv_nsec = (long)(net.now_us % 1000000 * 1000);
	return 0;
}

ssize_t __wrap_getrandom(void *p, size_t n, unsigned flags)
{
	(void)flags;
	memset(p, 0x5a, n);
	return (ssize_t)n;
}

bool __wrap_log_access_on(void)
{
	return net.log_on;
}

/* A record is looked through, so that a sanitizer sees a string that is gone. */
bool __wrap_access_write(const struct access_record *r)
{
	static char line[ACCESS_LINE_MAX];
	struct access_date date = {0};
	size_t n = net.n_records % 2 ? access_text(line, r, &date) : access_json(line, r, &date);

	CHECK(n > 0 && n <= sizeof line && line[n - 1] == '\n');
	CHECK(r->duration_us >= 0);
	if (net.n_records == net.max_records) {
		net.max_records = 2 * net.max_records + 16;
		net.records = realloc(net.records, net.max_records * sizeof *net.records);
		CHECK(net.records);
	}
	net.records[net.n_records++] = (struct record){ r->client_port, r->status, str_eq(r->method, STR("HEAD")) };
	return true;
}
