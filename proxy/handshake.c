/* handshake: see handshake.h.
 *
 * An SSL object costs 44 KB while hands are shaken, so it is made when the whole ClientHello is here (opening.c),
 * at most limits.handshakes of them a worker; others wait with their few hundred bytes, in order, and whoever has
 * kept them waiting for a second gives way: else a few connections that say nothing would shut everybody out.  When hands are
 * shaken, a TLS 1.3 connection of a client is parked at once: its SSL object goes, 200 bytes stay.  That of an
 * endpoint is parked by the pool when its first exchange is over, since tickets come behind the handshake.
 *
 * CONN_SHAKING has either an SSL object (TRANSPORT_TLS), or the bytes of its hello in work.head and a place in
 * the queue (TRANSPORT_HELLO). */
#include "proxy/handshake.h"

#include "lib/base/check.h"
#include "lib/net/tls_client.h"
#include "proxy/client.h"
#include "proxy/log.h"
#include "proxy/pool.h"
#include "proxy/stream.h"
#include "proxy/tls.h"
#include "proxy/identity.h"
#include "proxy/worker.h"

#define ITEM sizeof(struct conn *)
#define GIVE_WAY_MS 1000	/* for how long one may keep others waiting */

struct shaker {
	struct conn *c;
	uint32_t since;		/* ms */
};

/* --- one step --- */

static enum shaken done(struct conn *c, struct tls_live *l)
{
	if (c->t.flags & CONN_UPSTREAM)
		tls_client_shaken(l->ssl);
	return SHAKEN_DONE;
}

static enum shaken shake(struct worker *w, struct conn *c, struct str in)
{
	union tls_state *s = conn_tls(c);
	bool eof = false;

	for (;;) {
		enum tls_live_said said = s->live->done ? TLS_LIVE_DONE : tls_live_shake(s->live, in, eof);
		ssize_t left = tls_io_flush(&w->tls, &c->t, *s), n;

		if (said == TLS_LIVE_BAD || left < 0)
			return SHAKEN_FAILED;
		if (said == TLS_LIVE_DONE)
			return left ? SHAKEN_MORE : done(c, s->live);
		if (!(c->t.flags & CONN_READABLE))
			return SHAKEN_MORE;
		n = transport_read(&c->t, w->scratch, WORKER_READ_FIRST);
		if (n < (ssize_t)WORKER_READ_FIRST && !(n >= 0 && (c->t.flags & (CONN_PEER_DONE | CONN_BROKEN))))
			c->t.flags &= (uint8_t)~CONN_READABLE;
		if (n < 0)
			return errno == EAGAIN ? SHAKEN_MORE : SHAKEN_FAILED;
		eof = n == 0;
		in = (struct str){ w->scratch, (size_t)n };
	}
}

enum shaken handshake_step(struct worker *w, struct conn *c)
{
	return shake(w, c, (struct str){0});
}

/* What all TLS of a worker needs, made at first use. */
static bool gear(struct worker *w)
{
	return w->tls.sh || tls_io_init(&w->tls, &w->budget) == OK;
}

/* `ssl` and `who` (both moved, also when this fails; NULL when there was no memory for them) are those of `c` from
 * here on. */
static bool make_live(struct worker *w, struct conn *c, struct ssl_st *ssl, bool park, struct identity *who, bool named)
{
	struct tls_live *l = ssl ? tls_live_new(ssl, park, &w->budget) : NULL;

	if (!l || !named) {
		tls_live_free(l);
		identity_put(&w->identities, who);
		return false;
	}
	l->who = who;
	conn_tls(c)->live = l;
	c->t.type = TRANSPORT_TLS;
	w->ssl.live++;
	return true;
}

static void end_live(struct worker *w, struct tls_live *l)
{
	w->ssl.live--;
	tls_live_free(l);
}

void handshake_park(struct worker *w, struct conn *c)
{
	union tls_state *s = conn_tls(c);
	struct tls_live *l = s->live;
	struct tls13 *parked;

	if (c->t.type != TRANSPORT_TLS || !l->watched)
		return;
	switch (tls13_take(w->tls.sh, l->ssl, &l->watch, &parked)) {
	case TLS13_TAKEN:
		break;
	case TLS13_NEVER:
		tls13_watch_end(&l->watch, l->ssl);
		l->watched = false;
		return;
	default:
		return;		/* as it is, it works too */
	}
	parked->in = l->in;
	if (parked->in)
		parked->in->mark = 1;	/* it may hold whole records */
	parked->out = l->feed.out;
	parked->who = l->who;
	l->in = l->feed.out = NULL;
	end_live(w, l);
	s->parked = parked;
	c->t.type = TRANSPORT_TLS13;
	COUNT(w, parked);
}

/* --- with clients --- */

static void no_shaker(struct worker *w, const struct conn *c)
{
	uint32_t i = 0;

	while (((struct shaker *)slotq_at(&w->shakers, i, sizeof(struct shaker)))->c != c)
		i++;
	slotq_remove(&w->shakers, i, sizeof(struct shaker), &w->budget);
}

/* A drain waits for the request that hands were shaken for, as long as a head may take. */
static void last_chance(struct worker *w, struct conn *c)
{
	c->t.state = CONN_HEAD;
	c->work.head = NULL;
	worker_wait(w, c, w->list.head);
	worker_ready(w, c);
}

static void fail(struct worker *w, struct conn *c, enum cause cause)
{
	char ip[64];

	COUNT(w, cause[cause]);
	LOG_RATE(LEVEL_WARN, "a connection from %.*s was closed: %s", (int)client_ip(c, ip), ip, causes[cause].text.p);
	conn_close(w, c, false);
}

/* Who it is is known now; false: no memory for that. */
static bool recognise(struct worker *w, struct tls_live *l)
{
	l->who = identity_known(&w->identities, (struct identity *)(uintptr_t)l->who, l);
	return l->who;
}

static void over(struct worker *w, struct conn *c, bool good)
{
	struct buf *rest = NULL;

	no_shaker(w, c);
	worker_wait_end(c);
	if (good && !recognise(w, conn_tls(c)->live)) {
		c->t.state = CONN_IDLE;
		fail(w, c, CAUSE_NO_MEMORY);
		return;
	}
	if (good) {
		COUNT(w, handshakes);
		handshake_park(w, c);
		/* what came behind the handshake may be inside already */
		c->t.flags |= CONN_READABLE;
		if (w->settings->listeners[c->listener].opening & OPENING_TCP)
			stream_begin(w, c, snapshot_stream(w->snapshot, c->listener, (struct str){0}), &rest, (struct str){0});
		else if (w->draining)
			last_chance(w, c);
		else
			client_next(w, c, &rest, CLIENT_KEEP);
		return;
	}
	LOG_RATE(LEVEL_DEBUG, "a TLS handshake failed: %s", tls_live_why(conn_tls(c)->live));
	COUNT(w, cause[CAUSE_HANDSHAKE]);
	conn_unseal(w, c);
	client_next(w, c, &rest, CLIENT_LINGER);
}

static void go_on(struct worker *w, struct conn *c, struct str in)
{
	enum shaken got = shake(w, c, in);

	if (got != SHAKEN_MORE)
		over(w, c, got == SHAKEN_DONE);
}

static void begin(struct worker *w, struct conn *c, const struct hello *h)
{
	const struct tls_server *server = NULL;
	const struct tls_group *group;
	struct identity *who = NULL;
	struct ssl_st *ssl = NULL;
	struct buf *first = c->work.head;
	struct shaker shaker = { c, w->now_ms };

	c->work.head = NULL;
	if (gear(w) && slotq_push(&w->shakers, &shaker, sizeof shaker, SIZE_MAX, &w->budget) == OK) {
		server = tls_of_listener(w->server, c->listener);
		group = tls_server_group(server, (struct str){ h->name, h->name_n }, NULL);
		ssl = tls_server_ssl(server, group);
		who = identity_get(&w->identities, server, group, (struct str){ h->name, h->name_n });
	}
	if (!make_live(w, c, ssl, w->settings->listeners[c->listener].park, who, who)) {
		if (server)
			no_shaker(w, c);
		buf_free(&first, &w->budget);
		fail(w, c, CAUSE_NO_MEMORY);
		return;
	}
	go_on(w, c, buf_str(first));
	buf_free(&first, &w->budget);
}

void handshake_accept(struct worker *w, struct conn *c, const struct hello *h, struct buf **first)
{
	c->t.state = CONN_SHAKING;
	c->work.head = *first;
	*first = NULL;
	worker_wait(w, c, w->list.handshake);
	if (slotq_len(&w->shakers) < w->settings->handshakes && !slotq_len(&w->shake_queue)) {
		begin(w, c, h);
		return;
	}
	COUNT(w, handshakes_queued);
	if (slotq_push(&w->shake_queue, &c, ITEM, w->settings->queue, &w->budget) != OK)
		fail(w, c, CAUSE_HANDSHAKES_FULL);
}

void handshake_event(struct worker *w, struct conn *c)
{
	if (c->t.type == TRANSPORT_TLS)
		go_on(w, c, (struct str){0});
	else if (c->t.flags & CONN_BROKEN)
		conn_close(w, c, false);
}

void handshake_timeout(struct worker *w, struct conn *c)
{
	fail(w, c, CAUSE_HANDSHAKE_TIMEOUT);
}

void handshake_leave(struct worker *w, struct conn *c)
{
	if (c->t.type == TRANSPORT_TLS) {
		no_shaker(w, c);
		return;
	}
	buf_free(&c->work.head, &w->budget);
	for (uint32_t i = 0; i < slotq_len(&w->shake_queue); i++)
		if (*(struct conn **)slotq_at(&w->shake_queue, i, ITEM) == c) {
			slotq_remove(&w->shake_queue, i, ITEM, &w->budget);
			return;
		}
}

int64_t handshake_wait(const struct worker *w)
{
	const struct shaker *first = slotq_at((struct slotq *)(uintptr_t)&w->shakers, 0, sizeof(struct shaker));
	uint32_t for_ms;

	if (!first || !slotq_len(&w->shake_queue))
		return -1;
	for_ms = w->now_ms - first->since;
	return for_ms < GIVE_WAY_MS ? GIVE_WAY_MS - for_ms : 0;
}

void handshake_admit(struct worker *w)
{
	struct conn *c;

	while (slotq_len(&w->shake_queue) && slotq_len(&w->shakers) >= w->settings->handshakes && handshake_wait(w) == 0)
		fail(w, ((struct shaker *)slotq_at(&w->shakers, 0, sizeof(struct shaker)))->c, CAUSE_HANDSHAKE_SLOW);
	while (slotq_len(&w->shakers) < w->settings->handshakes && slotq_pop(&w->shake_queue, &c, ITEM, &w->budget)) {
		uint32_t need = 0;
		struct hello h = {0};

		CHECK(hello_peek(buf_str(c->work.head), &need, &h) == HELLO_DONE);
		begin(w, c, &h);
	}
}

/* --- with endpoints --- */

enum shaken handshake_connect(struct worker *w, struct upstream *u)
{
	struct ssl_st *ssl;

	if (!gear(w) || tls_connect(w->server, u->c.peer.pool->endpoint, &u->c.peer.pool->resume, &ssl) != OK ||
	    !make_live(w, &u->c, ssl, tls_endpoint_parks(w->server, u->c.peer.pool->endpoint), NULL, true))
		return SHAKEN_FAILED;
	return shake(w, &u->c, (struct str){0});
}

enum cause handshake_cause(struct upstream *u)
{
	const struct tls_live *l = u->c.t.type == TRANSPORT_TLS ? conn_tls(&u->c)->live : NULL;
	char text[ENDPOINT_TEXT_MAX];

	if (!l)
		return CAUSE_NO_MEMORY;
	LOG_RATE(LEVEL_WARN, "endpoint %s: the TLS handshake failed: %s", endpoint_text(u->c.peer.pool->endpoint, text).p, tls_live_why(l));
	return tls_live_distrusts(l) ? CAUSE_TLS_CERTIFICATE : CAUSE_TLS_FAILED;
}
