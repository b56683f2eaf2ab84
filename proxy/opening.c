/* opening: see opening.h.
 *
 * transport.more has what is still to come, and loses a bit for each part that has: when none is left the connection is
 * as any other (client.c), or a stream has it (stream.c).  What was read and is not enough is kept as a part of a
 * head is, CONN_HEAD with work.head, whose mark is what hello_peek wants to keep.  One head deadline, from the
 * accept, covers all of it.
 *
 * A PROXY protocol header is believed only from those that the listener trusts; where it must come, a connection of anybody
 * else is closed unread.  Nothing here opens TLS: names that are not passed on go to handshake.c, when the listener
 * has certificates. */
#include "proxy/opening.h"

#include "lib/net/hello.h"
#include "lib/net/proxyproto.h"
#include "proxy/client.h"
#include "proxy/exchange.h"
#include "proxy/handshake.h"
#include "proxy/log.h"
#include "proxy/peer.h"
#include "proxy/stream.h"
#include "proxy/worker.h"

#define OPENING_KEPT (HELLO_MAX + WORKER_READ_FIRST)

/* The bytes of a connection so far. */
struct said {
	struct buf *kept;	/* owned: where they lie, or */
	struct str in;		/* lent: in the worker's scratch buffer */
};

enum step {
	STEP_ON,	/* this part has come: the next one */
	STEP_MORE,	/* a part of it has */
	STEP_OVER,	/* the connection is not ours any more */
};

/* --- ends --- */

static void shut(struct worker *w, struct conn *c, struct said *s)
{
	buf_free(&s->kept, &w->budget);
	c->t.state = CONN_IDLE;
	conn_close(w, c, false);
}

/* A few bytes, for which a connection that was written nothing to has room. */
static bool say(struct conn *c, struct str s)
{
	ssize_t n = 1;

	while (s.n && n > 0) {
		struct iovec iov = { (char *)s.p, s.n };

		n = transport_writev(&c->t, &iov, 1);
		if (n > 0)
			s = (struct str){ s.p + n, s.n - (size_t)n };
	}
	return n > 0;
}

/* Ends a connection that was to be a stream: a line in the access log, and `last` as the last bytes. */
static void refuse(struct worker *w, struct conn *c, struct said *s, struct str name, enum cause cause, struct str last)
{
	stream_refused(w, c, name, cause);
	c->t.more = 0;
	if (!last.n || !say(c, last) || !w->settings->timeouts.linger) {
		shut(w, c, s);
		return;
	}
	/* closing now would reset the connection, and our word with it */
	buf_free(&s->kept, &w->budget);
	transport_finish(&c->t);
	c->t.state = CONN_LINGER;
	worker_wait(w, c, w->list.linger);
	worker_ready(w, c);
}

static void refuse_tls(struct worker *w, struct conn *c, struct said *s, struct str name, enum cause cause, uint8_t alert)
{
	uint8_t record[HELLO_ALERT_SIZE];

	hello_alert(alert, record);
	refuse(w, c, s, name, cause, (struct str){ (const char *)record, sizeof record });
}

/* HTTP where TLS should be is told so in its own language. */
static void refuse_http(struct worker *w, struct conn *c, struct said *s)
{
	buf_free(&s->kept, &w->budget);
	c->t.state = CONN_IDLE;
	c->t.more = 0;
	client_refuse(w, c, CAUSE_PLAIN_HTTP);
}

static void refuse_proxy(struct worker *w, struct conn *c, struct said *s, enum cause cause)
{
	char text[PEER_TEXT];

	COUNT(w, cause[cause]);
	LOG_RATE(LEVEL_WARN, "a connection from %s was closed: %s", peer_text(c, text), causes[cause].text.p);
	shut(w, c, s);
}

/* --- parts --- */

static void consume(struct worker *w, struct said *s, size_t n)
{
	if (s->kept) {
		buf_consume(&s->kept, &w->budget, n);
		s->in = buf_str(s->kept);
	} else {
		s->in.p += n;
		s->in.n -= n;
	}
}

static enum step open_proxy(struct worker *w, struct conn *c, struct said *s)
{
	struct proxyproto p = {0};
	enum proxyproto_kind kind = proxyproto_read(s->in, &p);
	enum cause cause = CAUSE_NONE;

	if (kind == PROXYPROTO_MORE)
		return STEP_MORE;
	if (kind == PROXYPROTO_DONE && peer_told(w, c, &p) != OK)
		cause = CAUSE_NO_MEMORY;
	else if (kind == PROXYPROTO_BAD || (kind == PROXYPROTO_NONE && !(c->t.more & OPENING_MAY)))
		cause = CAUSE_PROXY_HEADER;
	if (cause != CAUSE_NONE) {
		refuse_proxy(w, c, s, cause);
		return STEP_OVER;
	}
	if (kind == PROXYPROTO_DONE)
		consume(w, s, p.length);
	c->t.more &= (uint8_t)~(OPENING_PROXY | OPENING_MAY);
	return STEP_ON;
}

/* All that was said goes to a stream. */
static enum step pass_on(struct worker *w, struct conn *c, struct said *s, struct service *service, struct str name)
{
	if (!s->kept && conn_keep(w, &s->kept, s->in) != OK) {
		refuse(w, c, s, name, CAUSE_NO_MEMORY, (struct str){0});
		return STEP_OVER;
	}
	c->t.more = 0;
	stream_begin(w, c, service, &s->kept, name);
	return STEP_OVER;
}

/* All that was said goes to a handshake. */
static enum step accept_tls(struct worker *w, struct conn *c, struct said *s, const struct hello *h)
{
	if (!s->kept && conn_keep(w, &s->kept, s->in) != OK) {
		refuse(w, c, s, (struct str){ h->name, h->name_n }, CAUSE_NO_MEMORY, (struct str){0});
		return STEP_OVER;
	}
	c->t.more = 0;
	handshake_accept(w, c, h, &s->kept);
	return STEP_OVER;
}

static enum step open_hello(struct worker *w, struct conn *c, struct said *s)
{
	uint32_t need = s->kept ? s->kept->mark : 0;
	struct hello h = {0};
	struct service *service;
	struct str name = {0};

	switch (hello_peek(s->in, &need, &h)) {
	case HELLO_MORE:
		if (!s->kept && s->in.n && conn_keep(w, &s->kept, s->in) != OK) {
			refuse(w, c, s, name, CAUSE_NO_MEMORY, (struct str){0});
			return STEP_OVER;
		}
		if (s->kept)
			s->kept->mark = need;
		return STEP_MORE;
	case HELLO_DONE:
		name = (struct str){ h.name, h.name_n };
		service = c->t.more & OPENING_SNI ? snapshot_stream(w->snapshot, c->listener, name) : NULL;
		if (service)
			return pass_on(w, c, s, service, name);
		if (c->t.more & OPENING_TLS)
			return accept_tls(w, c, s, &h);
		refuse_tls(w, c, s, name, CAUSE_UNKNOWN_NAME, HELLO_ALERT_UNRECOGNIZED_NAME);
		return STEP_OVER;
	case HELLO_BAD_NAME:
		refuse_tls(w, c, s, name, CAUSE_UNKNOWN_NAME, HELLO_ALERT_UNRECOGNIZED_NAME);
		return STEP_OVER;
	case HELLO_BAD:
		refuse_tls(w, c, s, name, CAUSE_BAD_HELLO, HELLO_ALERT_DECODE_ERROR);
		return STEP_OVER;
	case HELLO_TOO_BIG:
		refuse_tls(w, c, s, name, CAUSE_HELLO_SIZE, HELLO_ALERT_DECODE_ERROR);
		return STEP_OVER;
	case HELLO_HTTP:
		refuse_http(w, c, s);
		return STEP_OVER;
	case HELLO_NOT_TLS:
		break;
	}
	refuse(w, c, s, name, CAUSE_NOT_TLS, (struct str){0});
	return STEP_OVER;
}

/* Nothing more is to come before HTTP: what has come is the beginning of a head. */
static void open_http(struct worker *w, struct conn *c, struct said *s)
{
	if (!s->kept && conn_keep(w, &s->kept, s->in) != OK) {
		refuse_proxy(w, c, s, CAUSE_NO_MEMORY);
		return;
	}
	c->work.head = s->kept;
	c->t.state = s->kept ? CONN_HEAD : CONN_IDLE;
	if (s->kept) {
		s->kept->mark = 0;
		client_visit(w, c);
		return;
	}
	worker_wait(w, c, w->list.idle);
	if (c->t.flags & CONN_READABLE)
		worker_ready(w, c);
}

static enum step open_next(struct worker *w, struct conn *c, struct said *s)
{
	if (c->t.more & OPENING_PROXY)
		return open_proxy(w, c, s);
	if (c->t.more & (OPENING_SNI | OPENING_TLS))
		return open_hello(w, c, s);
	if (c->t.more & OPENING_TCP)
		return pass_on(w, c, s, snapshot_stream(w->snapshot, c->listener, (struct str){0}), (struct str){0});
	open_http(w, c, s);
	return STEP_OVER;
}

static void keep(struct worker *w, struct conn *c, struct said *s)
{
	if (!s->kept && conn_keep(w, &s->kept, s->in) != OK) {
		LOG_RATE(LEVEL_WARN, "a connection was closed: no memory for its first bytes");
		shut(w, c, s);
		return;
	}
	c->work.head = s->kept;
	c->t.state = s->kept ? CONN_HEAD : CONN_IDLE;
	if (c->t.flags & CONN_READABLE)
		worker_ready(w, c);
}

/* --- what others call --- */

/* The client ended before it had said what it must. */
static void ended(struct worker *w, struct conn *c, struct said *s)
{
	if (s->kept && (c->t.more & OPENING_PROXY))
		refuse_proxy(w, c, s, CAUSE_PROXY_HEADER);
	else if (s->kept && (c->t.more & (OPENING_SNI | OPENING_TLS)))
		refuse(w, c, s, (struct str){0}, CAUSE_CLIENT_LEFT, (struct str){0});
	else
		shut(w, c, s);
}

void opening_read(struct worker *w, struct conn *c)
{
	struct said s = { .kept = c->t.state == CONN_HEAD ? c->work.head : NULL };
	enum step step;
	ssize_t n = -1;

	errno = EAGAIN;
	if (c->t.flags & CONN_READABLE)
		n = conn_input(w, c, &s.kept, WORKER_READ_FIRST, OPENING_KEPT, &s.in);
	if (c->t.state == CONN_HEAD)
		c->work.head = s.kept;
	if (n < 0 && errno == EAGAIN && !(w->draining && c->t.state == CONN_IDLE))
		return;
	if (n <= 0) {
		ended(w, c, &s);
		return;
	}
	do
		step = open_next(w, c, &s);
	while (step == STEP_ON);
	if (step == STEP_MORE)
		keep(w, c, &s);
}

void opening_begin(struct worker *w, struct conn *c)
{
	struct said s = {0};

	worker_wait(w, c, w->list.head);
	if ((c->t.more & OPENING_PROXY) && !client_trusted(w, c)) {
		if (!(c->t.more & OPENING_MAY)) {
			refuse_proxy(w, c, &s, CAUSE_PROXY_UNTRUSTED);
			return;
		}
		c->t.more &= (uint8_t)~(OPENING_PROXY | OPENING_MAY);
	}
	if (!(c->t.more & (OPENING_PROXY | OPENING_SNI | OPENING_TLS)))
		open_next(w, c, &s);
}

void opening_timeout(struct worker *w, struct conn *c)
{
	struct said s = { .kept = c->t.state == CONN_HEAD ? c->work.head : NULL };

	if (c->t.more & OPENING_PROXY)
		refuse_proxy(w, c, &s, CAUSE_HEAD_TIMEOUT);
	else
		refuse(w, c, &s, (struct str){0}, CAUSE_HEAD_TIMEOUT, (struct str){0});
}
