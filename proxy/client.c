/* client: see client.h.
 *
 * A client connection is IDLE (nothing read), HEAD (a part of a head is kept), BUSY (an
 * exchange has it), STREAM (its bytes are passed on) or LINGER (we are done, it may not be).  This file
 * moves it between IDLE, HEAD and LINGER; what comes before HTTP, or instead of it, is opening.c's.  The
 * head deadline starts with a head's first byte and is never moved by more bytes; an idle connection
 * waits in the idle list; both are one link in the struct. */
#include "proxy/client.h"

#include <arpa/inet.h>
#include <stdio.h>

#include "lib/base/check.h"
#include "lib/net/socket.h"
#include "proxy/exchange.h"
#include "proxy/log.h"
#include "proxy/opening.h"
#include "proxy/peer.h"
#include "proxy/server.h"
#include "proxy/stream.h"
#include "proxy/worker.h"

#define ACCEPT_BATCH 64

/* --- accepting --- */

static void accepted(struct worker *w, struct acceptor *a, int fd, const struct socket_address *peer)
{
	struct conn *c = worker_conn(w, fd, false, w->settings->listeners[a->listener].opening & OPENING_TLS);

	if (!c) {
		LOG_RATE(LEVEL_WARN, "a new connection was closed: no memory for it");
		return;
	}
	COUNT(w, accepted);
	c->listener = a->listener;
	c->t.more = w->settings->listeners[a->listener].opening;
	if (peer_note(w, c, peer) != OK)
		conn_close(w, c, true);
	else if (c->t.more)	/* nothing but OPENING_* yet */
		opening_begin(w, c);
	else
		worker_wait(w, c, w->list.idle);
}

static void accept_pause(struct worker *w, const char *why)
{
	if (w->accept_paused)
		return;
	w->accept_paused = true;
	COUNT(w, accept_paused);
	LOG_RATE(LEVEL_WARN, "accepting is paused: %s", why);
	for (unsigned i = 0; i < w->settings->n_listeners; i++)
		if (w->acceptors[i].t.fd >= 0)
			CHECK(loop_rewatch(w->loop, w->acceptors[i].t.fd, &w->acceptors[i], LOOP_MUTED) == OK);
}

void client_accept(struct worker *w, struct acceptor *a)
{
	struct socket_address peer;
	int fd;

	for (int i = 0; i < ACCEPT_BATCH; i++) {
		if (!worker_may_open(w, false)) {
			accept_pause(w, "as many connections are open as limits allow");
			return;
		}
		fd = socket_accept(a->t.fd, &peer);
		if (fd >= 0) {
			accepted(w, a, fd, &peer);
			continue;
		}
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
			accept_pause(w, "out of file descriptors or kernel memory");
			w->accept_refused = true;
			w->accept_refused_ms = w->now_ms;
		}
		if (errno != ECONNABORTED)
			return;
	}
}

void client_accept_check(struct worker *w)
{
	if (!w->accept_paused || w->draining || !worker_may_open(w, false))
		return;
	/* our own count cannot tell when the kernel has some again */
	if (w->accept_refused && w->now_ms - w->accept_refused_ms < WORKER_ACCEPT_RETRY_MS)
		return;
	w->accept_refused = false;
	w->accept_paused = false;
	for (unsigned i = 0; i < w->settings->n_listeners; i++)
		if (w->acceptors[i].t.fd >= 0)
			CHECK(loop_rewatch(w->loop, w->acceptors[i].t.fd, &w->acceptors[i], LOOP_LEVEL_IN) == OK);
}

/* --- reading heads --- */

static bool begun(struct conn *c)
{
	return conn_secure(c) && tls_io_begun(&c->t, *conn_tls(c));
}

/* A request may come.  A part of a record of TLS is the beginning of its head, whose bytes are not there yet. */
static void wait_first(struct worker *w, struct conn *c)
{
	bool head = begun(c);

	c->t.state = head ? CONN_HEAD : CONN_IDLE;
	c->work.head = NULL;
	worker_wait(w, c, head ? w->list.head : w->list.idle);
}

/* Its TLS is broken: the alert is not lost to a reset. */
static void client_broken(struct worker *w, struct conn *c)
{
	struct buf *rest = NULL;

	if (c->t.state == CONN_HEAD)
		rest = c->work.head;
	conn_unseal(w, c);
	client_next(w, c, &rest, CLIENT_LINGER);
}

static void client_close(struct worker *w, struct conn *c, bool reset)
{
	if (c->t.state == CONN_HEAD)
		buf_free(&c->work.head, &w->budget);
	conn_close(w, c, reset);
}

/* The bytes so far are no whole head. */
static void head_wait(struct worker *w, struct conn *c, struct buf *kept, struct str in, uint32_t mark, bool eof)
{
	bool first = c->t.state == CONN_IDLE;

	if (!eof && in.n == 0 && !kept && !w->draining) {	/* empty lines before a request */
		if (!first)
			wait_first(w, c);
		if (c->t.flags & CONN_READABLE)		/* still idle, and a FIN is behind them */
			worker_ready(w, c);
		return;
	}
	if (eof || conn_keep(w, &kept, in) != OK) {
		buf_free(&kept, &w->budget);
		c->t.state = CONN_IDLE;
		client_close(w, c, false);
		return;
	}
	if (!kept) {
		c->t.state = CONN_IDLE;
		c->work.head = NULL;
		worker_wait(w, c, w->list.idle);
		if (w->draining)
			client_close(w, c, false);
		else if (c->t.flags & CONN_READABLE)
			worker_ready(w, c);
		return;
	}
	kept->mark = mark ? mark : 1;
	c->work.head = kept;
	c->t.state = CONN_HEAD;
	if (first || !ttl_linked(&c->link))
		worker_wait(w, c, w->list.head);
	if (c->t.flags & CONN_READABLE)
		worker_ready(w, c);
}

/* Hands the bytes to a codec; kept (owned, may be NULL) is where they lie, if not in scratch. */
static void head_parse(struct worker *w, struct conn *c, struct buf *kept, struct str in, bool eof)
{
	struct exchange *x = exchange_new(w, c);
	struct codec_event ev;
	enum codec_kind kind;

	if (!x) {
		LOG_RATE(LEVEL_WARN, "a connection was closed: no memory for its request");
		c->t.state = CONN_IDLE;
		buf_free(&kept, &w->budget);
		client_close(w, c, true);
		return;
	}
	h1_init(&x->server, CODEC_SERVER, w->h1_server);
	if (kept)
		x->server.mark = kept->mark;
	kind = codec_next(&x->server.codec, &in, eof, &ev);
	if (kind == CODEC_MORE) {
		uint32_t mark = x->server.mark;

		exchange_drop(x);
		head_wait(w, c, kept, in, mark, eof);
		return;
	}
	worker_wait_end(c);
	c->t.state = CONN_BUSY;
	c->work.exchange = x;
	if (kind == CODEC_HEAD) {
		exchange_begin(x, ev.head, &in);
		/* the head lay in `kept` until now */
		if (conn_keep(w, &kept, in) != OK) {
			x->client_closing = true;	/* it may be DONE already, and bytes are lost */
			exchange_cut(x, CAUSE_NO_MEMORY);
		}
		x->in = kept;
		exchange_go(x);
	} else {
		CHECK(kind == CODEC_BAD);
		buf_free(&kept, &w->budget);
		exchange_refuse(x, ev.fault);
	}
}

/* Nothing to read just now.  New keys, or empty lines, in parts are no head after all. */
static void head_pause(struct worker *w, struct conn *c)
{
	if (!w->draining && !(c->t.state == CONN_HEAD && c->work.head) && begun(c) != (c->t.state == CONN_HEAD))
		wait_first(w, c);
}

static void head_read(struct worker *w, struct conn *c)
{
	struct buf *kept = c->t.state == CONN_HEAD ? c->work.head : NULL;
	struct str in = buf_str(kept);
	ssize_t n = -1;

	if (c->t.more & OPENING_ANY) {
		opening_read(w, c);
		return;
	}
	if (kept && !kept->mark) {
		/* read behind the last request: look at it before reading more */
		head_parse(w, c, kept, in, false);
		return;
	}
	if (!(c->t.flags & CONN_READABLE))
		return;
	n = conn_input(w, c, &kept, WORKER_READ_FIRST, w->settings->request.head + WORKER_READ_FIRST, &in);
	if (c->t.state == CONN_HEAD)
		c->work.head = kept;
	if (n < 0) {
		/* an idle one that a drain finds readable has its chance here */
		if (errno == EPROTO)
			client_broken(w, c);
		else if (errno != EAGAIN || (w->draining && c->t.state == CONN_IDLE))
			client_close(w, c, false);
		else
			head_pause(w, c);
		return;
	}
	head_parse(w, c, kept, in, n == 0);
}

/* --- lingering --- */

static void linger_read(struct worker *w, struct conn *c)
{
	size_t left = WORKER_VISIT;
	struct str in;
	ssize_t n;

	while ((c->t.flags & CONN_READABLE) && left) {
		n = conn_read(w, c, left, &in);
		if (n == 0 || (n < 0 && errno != EAGAIN)) {
			conn_close(w, c, false);
			return;
		}
		if (n > 0)
			left -= (size_t)n < left ? (size_t)n : left;
	}
	if (c->t.flags & CONN_READABLE)
		worker_ready(w, c);
}

/* --- moving --- */

bool client_move(struct worker *w, struct conn *c, struct conn *to)
{
	struct peer_v6 *v6 = NULL;

	if (c->t.state > CONN_LINGER || (c->t.flags & CONN_IN_READY))
		return false;
	if ((c->t.flags & CONN_V6) && !(v6 = slab_get(&w->peers_v6)))
		return false;
	if (loop_rewatch(w->loop, c->t.fd, to, LOOP_EDGE) != OK) {
		slab_put(&w->peers_v6, v6);
		return false;
	}
	*to = *c;
	if (c->t.type != TRANSPORT_PLAIN)
		*conn_tls(to) = *conn_tls(c);
	ttl_moved(&to->link);
	if (v6) {
		*v6 = *c->peer.v6;
		slab_put(&w->peers_v6, c->peer.v6);
		to->peer.v6 = v6;
	}
	if (to->t.state == CONN_BUSY)
		to->work.exchange->client = to->work.exchange->lease.clock = to;
	if (to->t.state == CONN_STREAM)
		to->work.stream->client = to->work.stream->lease.clock = to;
	return true;
}

/* --- what others call --- */

void client_visit(struct worker *w, struct conn *c)
{
	if (c->t.state == CONN_LINGER)
		linger_read(w, c);
	else
		head_read(w, c);
}

void client_drop(struct worker *w, struct conn *c)
{
	client_close(w, c, false);
}

void client_refuse(struct worker *w, struct conn *c, enum cause cause)
{
	struct exchange *x = exchange_new(w, c);

	if (!x) {
		conn_close(w, c, true);
		return;
	}
	h1_init(&x->server, CODEC_SERVER, w->h1_server);
	worker_wait_end(c);
	c->t.state = CONN_BUSY;
	c->work.exchange = x;
	exchange_answer_cause(x, cause);
}

void client_timeout(struct worker *w, struct conn *c)
{
	if (c->t.more & OPENING_ANY) {
		opening_timeout(w, c);
		return;
	}
	if (c->t.state != CONN_HEAD) {
		if (c->t.state == CONN_IDLE)
			COUNT(w, idle_closed);
		client_close(w, c, false);
		return;
	}
	buf_free(&c->work.head, &w->budget);
	c->t.state = CONN_IDLE;
	client_refuse(w, c, CAUSE_HEAD_TIMEOUT);
}

void client_next(struct worker *w, struct conn *c, struct buf **rest, enum client_fate fate)
{
	worker_wait_end(c);
	c->t.state = CONN_IDLE;
	c->work.head = NULL;
	/* an answer that was sent before a drain began has not said that it was the last */
	if (w->draining && fate == CLIENT_KEEP && !*rest && !conn_says(c))
		fate = CLIENT_CLOSE;
	if (fate != CLIENT_KEEP) {
		bool quiet = fate == CLIENT_CLOSE && !*rest && !(c->t.flags & CONN_READABLE);

		buf_free(rest, &w->budget);
		if (quiet || !w->settings->timeouts.linger || (c->t.flags & CONN_BROKEN)) {
			conn_close(w, c, false);
			return;
		}
		/* Closing now would reset the connection, and our answer with it. */
		conn_finish(w, c);
		c->t.state = CONN_LINGER;
		worker_wait(w, c, w->list.linger);
		worker_ready(w, c);
		return;
	}
	if (*rest) {
		c->t.state = CONN_HEAD;
		c->work.head = *rest;
		c->work.head->mark = 0;
		*rest = NULL;
		worker_wait(w, c, w->list.head);
		worker_ready(w, c);
		return;
	}
	wait_first(w, c);
	if (c->t.flags & CONN_READABLE)
		worker_ready(w, c);
}

static bool is_unix(const struct conn *c)
{
	return !(c->t.flags & CONN_V6) && c->peer.v4 == 0;
}

size_t client_ip(const struct conn *c, char *text)
{
	const uint8_t *b = (const uint8_t *)&c->peer.v4;
	char *p = text;

	if (is_unix(c))
		return (size_t)(stpcpy(text, "unknown") - text);
	if (c->t.flags & CONN_V6)
		return inet_ntop(AF_INET6, c->peer.v6->ip, text, INET6_ADDRSTRLEN) ? strlen(text) : 0;
	for (int i = 0; i < 4; i++) {
		unsigned v = b[i];

		if (i)
			*p++ = '.';
		if (v >= 100)
			*p++ = (char)('0' + v / 100);
		if (v >= 10)
			*p++ = (char)('0' + v / 10 % 10);
		*p++ = (char)('0' + v % 10);
	}
	return (size_t)(p - text);
}

uint8_t client_address(const struct conn *c, uint8_t ip[16])
{
	if (is_unix(c))
		return NETWORK_UNIX;
	if (c->t.flags & CONN_V6) {
		memcpy(ip, c->peer.v6->ip, 16);
		return NETWORK_IP6;
	}
	memcpy(ip, &c->peer.v4, 4);
	return NETWORK_IP4;
}

bool client_trusted(const struct worker *w, const struct conn *c)
{
	const struct networks *trusted = w->settings->listeners[c->listener].trusted;
	uint8_t ip[16], family;

	if (!trusted)
		return false;
	family = client_address(c, ip);
	return networks_has(trusted, family, ip);
}
