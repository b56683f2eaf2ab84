/* Door: records between a socket and the data in them.  Owns two scratch buffers a thread; what a connection must keep
 * (half a record in, sealed bytes out) is in its own bufs.  Called by whoever owns the transport.
 *
 * Writing: a record that was sealed has its number and must go out as it is.  So what the socket did not take is kept
 * sealed, and its plain bytes count as not taken; buf.mark says how many they are.  The caller, who
 * keeps what was not taken, gives them again first, and they are passed over.  That a short write costs both forms is
 * bounded by one piece of 16 KiB and what is sealed with it. */
#include "lib/net/tls_io.h"

#include <string.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"

#define IN_SIZE (64u * 1024)
#define OUT_SIZE (128u * 1024)

_Static_assert(TLS_IO_OUT <= OUT_SIZE, "what is sealed in one go fits");

enum err tls_io_init(struct tls_io *io, struct budget *budget)
{
	*io = (struct tls_io){ .budget = budget };
	io->sh = tls13_shared_new(budget);
	io->out = mem_pages(OUT_SIZE);
	io->in = mem_pages(IN_SIZE);
	if (io->sh && io->out && io->in)
		return OK;
	tls_io_fini(io);
	return ERR_MEM;
}

void tls_io_fini(struct tls_io *io)
{
	tls13_shared_free(io->sh);
	if (io->out)
		mem_pages_free(io->out, OUT_SIZE);
	if (io->in)
		mem_pages_free(io->in, IN_SIZE);
	*io = (struct tls_io){0};
}

static struct buf **waiting(struct transport *t, union tls_state s)
{
	return t->type == TRANSPORT_TLS13 ? &s.parked->out : &s.live->feed.out;
}

static ssize_t fail(int error)
{
	errno = error;
	return -1;
}

/* --- reading --- */

/* Of a connection that has failed: that is told once. */
static ssize_t fault(bool theirs, bool told)
{
	return fail(told ? ECONNRESET : theirs ? ECONNABORTED : EPROTO);
}

static ssize_t read_parked(struct tls_io *io, struct transport *t, struct tls13 *c, char *p, size_t size, size_t n,
			   struct str *plain, bool *empty)
{
	enum tls13_kind kind;
	size_t have, used;
	ssize_t r;

	if (n < TLS13_RECORD)
		n = TLS13_RECORD;
	for (;;) {
		if (c->flags & TLS13_FAILED)
			return fault(c->flags & TLS13_THEIRS, c->flags & TLS13_TOLD);
		if (c->flags & TLS13_ENDED)
			return 0;
		have = buf_len(c->in);
		CHECK(have < size);
		r = 0;
		if (!c->in || !c->in->mark) {	/* marked: whole records may be in it */
			size_t want = n < size - have ? n : size - have;

			r = transport_read(t, p + have, want);
			if (r < 0) {
				*empty = false;
				return -1;
			}
			if (r == 0)
				return fail(ECONNRESET);
			*empty = (size_t)r < want;
		}
		if (have)
			memcpy(p, buf_str(c->in).p, have);
		kind = tls13_open(io->sh, c, p, have + (size_t)r, &used, plain);
		buf_free(&c->in, io->budget);
		if (buf_append(&c->in, io->budget, p + used, have + (size_t)r - used, UINT32_MAX) != OK)
			return fail(ENOMEM);
		if (plain->n) {
			*empty = *empty && kind == TLS13_MORE;	/* else the end is to be told too */
			return (ssize_t)plain->n;
		}
		if (kind == TLS13_MORE && *empty)
			return fail(EAGAIN);
	}
}

static ssize_t read_live(struct tls_io *io, struct transport *t, struct tls_live *l, char *p, size_t size, size_t n,
			 struct str *plain, bool *empty)
{
	enum tls_live_said said;
	struct str in = {0};
	size_t got;
	ssize_t r;

	if (n > size)
		n = size;
	for (;;) {
		if (l->ended)
			return 0;
		/* what is inside comes first */
		said = tls_live_read(l, in, false, p, n, &got);
		if (got) {
			l->empty = 0;
			*plain = (struct str){ p, got };
			*empty = *empty && said == TLS_LIVE_MORE && !l->ended;	/* else there is more inside */
			return (ssize_t)got;
		}
		if (said == TLS_LIVE_BAD)
			return fault(tls_live_alerted(l), l->told);
		if (l->ended)
			return 0;
		if (l->empty > TLS_LIVE_EMPTY) {
			tls_live_weary(l);
			return fault(false, l->told);
		}
		r = transport_read(t, io->in, IN_SIZE);
		if (r < 0) {
			*empty = false;
			return -1;
		}
		if (r == 0)
			return fail(ECONNRESET);
		l->empty += (uint32_t)r;
		*empty = (size_t)r < IN_SIZE;
		in = (struct str){ io->in, (size_t)r };
	}
}

bool tls_io_begun(const struct transport *t, union tls_state s)
{
	return t->type == TRANSPORT_TLS13 ? buf_len(s.parked->in) : tls_live_begun(s.live);
}

bool tls_io_failed(const struct transport *t, union tls_state s)
{
	return t->type == TRANSPORT_TLS13 ? s.parked->flags & TLS13_FAILED : s.live->failed;
}

const char *tls_io_why(const struct transport *t, union tls_state s)
{
	return t->type == TRANSPORT_TLS13 ? tls13_alert_text(s.parked->alert).p : tls_live_why(s.live);
}

ssize_t tls_io_read(struct tls_io *io, struct transport *t, union tls_state s, void *p, size_t size, size_t n,
		struct str *plain, bool *empty)
{
	ssize_t r;

	*empty = false;
	*plain = (struct str){0};
	if (t->type == TRANSPORT_TLS13) {
		r = read_parked(io, t, s.parked, p, size, n, plain, empty);
		if (r < 0 && tls_io_failed(t, s))
			s.parked->flags |= TLS13_TOLD;
	} else {
		r = read_live(io, t, s.live, p, size, n, plain, empty);
		if (r < 0 && tls_io_failed(t, s))
			s.live->told = true;
	}
	return r;
}

/* --- writing --- */

static ssize_t send_some(struct transport *t, const void *p, size_t n)
{
	struct iovec one = { .iov_base = (void *)(uintptr_t)p, .iov_len = n };
	ssize_t r = transport_writev(t, &one, 1);

	return r < 0 && errno == EAGAIN ? 0 : r;
}

ssize_t tls_io_flush(struct tls_io *io, struct transport *t, union tls_state s)
{
	struct buf **out = waiting(t, s);
	struct str left = buf_str(*out);
	ssize_t r;

	if (!left.n)
		return 0;
	r = send_some(t, left.p, left.n);
	if (r < 0)
		return -1;
	buf_consume(out, io->budget, (size_t)r);
	return (ssize_t)buf_len(*out);
}

/* Copies `n` descriptors without their first `skip` bytes; how many are left. */
static int without(struct iovec *to, const struct iovec *from, int n, size_t skip)
{
	int left = 0;

	for (int i = 0; i < n; i++) {
		size_t off = skip < from[i].iov_len ? skip : from[i].iov_len;

		skip -= off;
		if (from[i].iov_len == off)
			continue;
		to[left++] = (struct iovec){ (char *)from[i].iov_base + off, from[i].iov_len - off };
	}
	return left;
}

/* Seals some of `iov` to *sealed bytes at *records; how much of it, -1 when the connection cannot go on. */
static ssize_t seal(struct tls_io *io, struct transport *t, union tls_state s, const struct iovec *iov, int n,
		    const char **records, size_t *sealed)
{
	size_t taken;

	if (t->type == TRANSPORT_TLS13) {
		*records = io->out;
		return tls13_seal(io->sh, s.parked, iov, n, io->out, TLS_IO_OUT, &taken, sealed) == OK ? (ssize_t)taken : -1;
	}
	taken = tls_live_write(s.live, iov->iov_base, iov->iov_len < TLS13_PLAIN ? iov->iov_len : TLS13_PLAIN);
	*records = buf_str(s.live->feed.out).p;
	*sealed = buf_len(s.live->feed.out);
	return taken ? (ssize_t)taken : fail(EPROTO);
}

/* Keeps what of `sealed` bytes was not sent, and how many of `taken` plain bytes count as not taken with it: all but
 * those of whole records that went out before.  -1: no memory. */
static ssize_t keep_sealed(struct tls_io *io, struct transport *t, union tls_state s, const char *records, size_t sealed,
			   size_t sent, size_t taken)
{
	struct buf **out = waiting(t, s);
	size_t first = sent > TLS13_UPDATE ? sent - TLS13_UPDATE : 0;	/* a KeyUpdate may have gone before */
	size_t whole = t->type == TRANSPORT_TLS13 ? first / (TLS13_PLAIN + TLS13_EXTRA) * TLS13_PLAIN : 0;

	if (t->type == TRANSPORT_TLS13 && buf_append(out, io->budget, records + sent, sealed - sent, UINT32_MAX) != OK)
		return fail(ENOMEM);
	if (t->type == TRANSPORT_TLS)
		buf_consume(out, io->budget, sent);
	if (whole > taken)
		whole = 0;
	(*out)->mark = (uint32_t)(taken - whole);
	return (ssize_t)whole;
}

ssize_t tls_io_writev(struct tls_io *io, struct transport *t, union tls_state s, const struct iovec *iov, int n_iov)
{
	struct buf **out = waiting(t, s);
	struct iovec rest[TLS_IO_PIECES];
	size_t done = 0;
	int n;

	if (*out) {
		size_t mark = (*out)->mark;
		ssize_t left = tls_io_flush(io, t, s);

		if (left)
			return left < 0 ? -1 : fail(EAGAIN);
		done = mark;
	}
	CHECK(n_iov <= TLS_IO_PIECES);
	while ((n = without(rest, iov, n_iov, done)) > 0) {
		const char *records;
		size_t sealed;
		ssize_t taken = seal(io, t, s, rest, n, &records, &sealed), sent, kept;

		if (taken < 0)
			return -1;
		sent = send_some(t, records, sealed);
		if (sent < 0)
			return -1;
		if ((size_t)sent < sealed) {
			kept = keep_sealed(io, t, s, records, sealed, (size_t)sent, (size_t)taken);
			if (kept < 0)
				return -1;
			done += (size_t)kept;
			return done ? (ssize_t)done : fail(EAGAIN);
		}
		if (t->type == TRANSPORT_TLS)
			buf_consume(out, io->budget, sealed);
		done += (size_t)taken;
	}
	return (ssize_t)done;
}

/* --- ending --- */

/* As much as goes, since nobody will try again.  Whether that was all. */
static bool send_last(struct tls_io *io, struct transport *t, union tls_state s)
{
	size_t before;
	ssize_t left;

	do {
		before = buf_len(*waiting(t, s));
		left = tls_io_flush(io, t, s);
	} while (left > 0 && (size_t)left < before);
	return left == 0;
}

void tls_io_finish(struct tls_io *io, struct transport *t, union tls_state s)
{
	char alert[TLS13_ALERT];
	size_t n;

	if (!send_last(io, t, s))
		return;
	if (t->type == TRANSPORT_TLS) {
		tls_live_finish(s.live);
		send_last(io, t, s);
		return;
	}
	n = tls13_finish(io->sh, s.parked, alert);
	if (n && buf_append(&s.parked->out, io->budget, alert, n, UINT32_MAX) == OK)
		send_last(io, t, s);
}

void tls_io_free(struct tls_io *io, struct transport *t, union tls_state s)
{
	if (t->type == TRANSPORT_TLS13)
		tls13_free(io->sh, s.parked);
	else
		tls_live_free(s.live);
}
