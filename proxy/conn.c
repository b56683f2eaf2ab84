/* conn: what both kinds of connection share: events, reading, keeping what was
 * not consumed, closing.  Called by client, pool and exchange; never frees: see bury in
 * worker.c. */
#include "proxy/conn.h"

#include "lib/base/check.h"
#include "lib/net/loop.h"
#include "proxy/handshake.h"
#include "proxy/log.h"
#include "proxy/peer.h"
#include "proxy/pool.h"
#include "proxy/worker.h"

void conn_note(struct conn *c, unsigned events)
{
	if (events & LOOP_READABLE)
		c->t.flags |= CONN_READABLE;
	if (events & LOOP_PEER_DONE)
		c->t.flags |= CONN_PEER_DONE | CONN_READABLE;
	if (events & LOOP_BROKEN)
		c->t.flags |= CONN_BROKEN | CONN_READABLE;
}

bool conn_says(struct conn *c)
{
	char byte;

	if (!(c->t.flags & CONN_READABLE) && recv(c->t.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0)
		c->t.flags |= CONN_READABLE;
	return c->t.flags & CONN_READABLE;
}

/* A rule of TLS was broken, or the peer says that we did. */
static void note_fault(struct worker *w, struct conn *c, bool theirs)
{
	const char *why = tls_io_why(&c->t, *conn_tls(c));
	char text[PEER_TEXT], end[ENDPOINT_TEXT_MAX];

	if (theirs)
		COUNT(w, tls_alerts);
	else
		COUNT(w, tls_faults);
	if (c->t.flags & CONN_UPSTREAM)
		LOG_RATE(LEVEL_WARN, "endpoint %s: %s: %s", endpoint_text(c->peer.pool->endpoint, end).p,
			theirs ? "it ended a connection with a TLS alert" : "a connection broke a rule of TLS", why);
	else
		LOG_RATE(LEVEL_DEBUG, "a connection from %s %s: %s", peer_text(c, text),
			theirs ? "ended with a TLS alert" : "broke a rule of TLS", why);
}

/* Not while a plain connection reads. */
static ssize_t read_secure(struct worker *w, struct conn *c, size_t n, struct str *in)
{
	bool empty;
	ssize_t r;

	do	/* a record that is not whole, and an end behind it, is no reason to wait */
		r = tls_io_read(&w->tls, &c->t, *conn_tls(c), w->scratch, w->scratch_size, n, in, &empty);
	while (r < 0 && errno == EAGAIN && empty && (c->t.flags & (CONN_PEER_DONE | CONN_BROKEN)));
	if (r < 0 && (errno == EPROTO || errno == ECONNABORTED)) {
		int error = errno;

		note_fault(w, c, error == ECONNABORTED);
		errno = error;
		return r;
	}
	if ((r < 0 && errno == EAGAIN) || (empty && !(c->t.flags & (CONN_PEER_DONE | CONN_BROKEN))))
		c->t.flags &= (uint8_t)~CONN_READABLE;
	return r;
}

ssize_t conn_read(struct worker *w, struct conn *c, size_t n, struct str *in)
{
	ssize_t r;

	if (conn_secure(c))
		return read_secure(w, c, n, in);
	r = transport_read(&c->t, w->scratch, n);
	*in = (struct str){ w->scratch, r > 0 ? (size_t)r : 0 };
	/* A short read means that the socket is empty, unless a FIN waits behind it. */
	if (r < 0 || ((size_t)r < n && !(c->t.flags & (CONN_PEER_DONE | CONN_BROKEN))))
		c->t.flags &= (uint8_t)~CONN_READABLE;
	return r;
}

ssize_t conn_write(struct worker *w, struct conn *c, const struct iovec *iov, int n)
{
	return conn_secure(c) ? tls_io_writev(&w->tls, &c->t, *conn_tls(c), iov, n) : transport_writev(&c->t, iov, n);
}

void conn_finish(struct worker *w, struct conn *c)
{
	if (conn_secure(c))
		tls_io_finish(&w->tls, &c->t, *conn_tls(c));
	transport_finish(&c->t);
}

enum cause conn_cause(const struct conn *c, int error)
{
	bool up = c->t.flags & CONN_UPSTREAM;

	switch (error) {
	case EPROTO:
		return up ? CAUSE_UPSTREAM_TLS : CAUSE_TLS_BROKEN;
	case ECONNABORTED:
		return up ? CAUSE_UPSTREAM_ALERT : CAUSE_CLIENT_LEFT;
	default:
		return up ? CAUSE_UPSTREAM_CLOSED : CAUSE_CLIENT_LEFT;
	}
}

void conn_tls_free(struct worker *w, struct conn *c)
{
	identity_put(&w->identities, identity_of(c));
	w->ssl.live -= c->t.type == TRANSPORT_TLS;
	tls_io_free(&w->tls, &c->t, *conn_tls(c));
	c->t.type = TRANSPORT_HELLO;
}

void conn_unseal(struct worker *w, struct conn *c)
{
	if (!conn_secure(c))
		return;
	tls_io_finish(&w->tls, &c->t, *conn_tls(c));
	conn_tls_free(w, c);
}

ssize_t conn_input(struct worker *w, struct conn *c, struct buf **kept, size_t n, size_t limit, struct str *in)
{
	struct str piece;
	ssize_t r = conn_read(w, c, n, &piece);

	if (r <= 0 || !*kept) {
		*in = r > 0 ? piece : buf_str(*kept);
		return r;
	}
	if (buf_append(kept, &w->budget, piece.p, piece.n, limit) != OK) {
		errno = ENOMEM;
		return -1;
	}
	*in = buf_str(*kept);
	return r;
}

enum err conn_keep(struct worker *w, struct buf **kept, struct str rest)
{
	if (*kept) {
		buf_consume(kept, &w->budget, buf_len(*kept) - rest.n);
		return OK;
	}
	return buf_append(kept, &w->budget, rest.p, rest.n, UINT32_MAX);
}

/* Keeps what of `v` is behind its first `skip` bytes. */
static enum err keep_rest(struct worker *w, struct buf **waiting, const struct vec *v, size_t skip)
{
	for (unsigned i = 0; i < v->n; i++) {
		size_t n = v->iov[i].iov_len;
		enum err err;

		if (skip >= n) {
			skip -= n;
			continue;
		}
		err = buf_append(waiting, &w->budget, (char *)v->iov[i].iov_base + skip, n - skip, UINT32_MAX);
		if (err != OK)
			return err;
		skip = 0;
	}
	return OK;
}

ssize_t conn_output(struct worker *w, struct conn *c, struct str first, struct buf **waiting, struct vec *v)
{
	struct iovec iov[VEC_PIECES + 2];
	struct str kept = buf_str(*waiting);
	size_t taken = 0, before = first.n + kept.n;
	ssize_t r = 0;
	int n = 0, gone = 0;

	if (first.n)
		iov[n++] = (struct iovec){ (char *)first.p, first.n };
	if (kept.n)
		iov[n++] = (struct iovec){ (char *)kept.p, kept.n };
	memcpy(iov + n, v->iov, v->n * sizeof *iov);
	n += (int)v->n;
	if (n)
		r = conn_write(w, c, iov, n);
	if (r < 0 && errno != EAGAIN)
		gone = errno;
	taken = r > 0 ? (size_t)r : 0;
	if (taken > first.n)
		buf_consume(waiting, &w->budget, taken < before ? taken - first.n : kept.n);
	if (v->n && taken < before + v->bytes &&
	    keep_rest(w, waiting, v, taken > before ? taken - before : 0) != OK)
		gone = ENOMEM;
	vec_reset(v);
	errno = gone;
	return gone ? -1 : (ssize_t)taken;
}

enum err conn_hold(struct worker *w, struct buf **waiting, struct vec *v)
{
	enum err err = keep_rest(w, waiting, v, 0);

	vec_reset(v);
	return err;
}

void conn_close(struct worker *w, struct conn *c, bool reset)
{
	CHECK(c->t.state != CONN_DEAD);
	if (c->t.state == CONN_SHAKING)
		handshake_leave(w, c);
	worker_wait_end(c);
	if (c->t.flags & CONN_IN_READY)
		worker_not_ready(w, c);
	if (reset)
		c->t.flags |= CONN_RESET;
	c->t.state = CONN_DEAD;
	c->work.next_dead = w->dead;
	w->dead = c;
}
