/* Door: TLS 1.3 records after the handshake.  Owns connections (struct tls13, with their secrets, in slabs that core
 * dumps leave out) and knows the rules; tls13_gear.c has the cryptography.  Called by whoever moves the bytes of a
 * socket, never by a handshake.  Reads no socket and keeps no byte of input.
 *
 * Why this is right, duty by duty (RFC 8446 unless another is named):
 *
 * - Nothing is believed before its tag is right.  The header is authenticated with the record (5.2); an unencrypted
 *   record of any type, change_cipher_spec and alerts too, is refused: the handshake is over (5).
 * - Records are numbered in both directions, so one that was changed, lost, doubled or moved has a wrong tag.  A key is
 *   replaced after 2^24 records (5.5), so that numbers never wrap; one that would is refused all the same.
 * - Sizes.  A record says more than 2^14 + 256 bytes, or holds more than 2^14: record_overflow (5.1, 5.2, 5.4).
 *   No length from outside is used before that check, and only one that lies within the caller's bytes.
 * - Padding is the zeros behind the type (5.4); a record of nothing but zeros has no type: unexpected_message.
 * - Types.  Data; alerts of exactly two bytes (5.1); handshake messages: KeyUpdate, and where we are the client
 *   NewSessionTicket, which is dropped (tickets are kept as long as OpenSSL has the connection).  All others are
 *   unexpected_message: nobody was offered post-handshake authentication.
 * - Handshake messages may be cut and joined, but no other record comes between the parts (5.1) and none of them is
 *   empty; a KeyUpdate ends its record, since what follows has another key (5.1).
 * - KeyUpdate (4.6.3).  Theirs takes effect with the next record in.  One that asks is answered before our next data, once
 *   for however many asked, so that nobody makes us write.  Ours takes effect with the next record out.
 * - Work without data is bounded: 32 records in a row; 32 KeyUpdates, and one more for each record with data.
 * - Truncation.  Only close_notify is an end (TLS13_END); the end of the stream without it is for the owner to tell
 *   apart.  Behind close_notify everything is ignored (6.1); behind our own last alert nothing is sealed.
 * - A fault is told to the peer by the alert that the RFC names, encrypted, and nothing but that follows.
 * - Secrets are wiped when they are replaced and when the connection goes.
 *
 * Keys are kept beside the secrets, though they could be derived at need: that would save 56 to 88 bytes of 176 to
 * 240 and cost as much as sealing 4 KiB, each time.  A cipher context is keyed anew when another connection had it
 * before; a pool of keyed ones would save 0.2 us a record for 1.2 KB each, outside of the slab (bench/tls13.c). */
#include "lib/net/tls13.h"

#include <errno.h>
#include <string.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/base/slab.h"
#include "lib/net/tls13_gear.h"

/* NewSessionTicket is no longer than its fields can be (4.6.1). */
#define TICKET_MAX (4u + 4 + 1 + 255 + 2 + 65535 + 2 + 65534)

enum { TYPE_ALERT = 21, TYPE_HANDSHAKE = 22, TYPE_DATA = 23 };		/* ContentType */
enum { MESSAGE_TICKET = 4, MESSAGE_KEY_UPDATE = 24 };			/* HandshakeType */
enum { LEVEL_WARNING = 1, LEVEL_FATAL = 2 };
enum {
	CLOSE_NOTIFY = 0, UNEXPECTED_MESSAGE = 10, BAD_RECORD_MAC = 20, RECORD_OVERFLOW = 22, ILLEGAL_PARAMETER = 47,
	DECODE_ERROR = 50, INTERNAL_ERROR = 80, USER_CANCELED = 90,
};

struct tls13_shared {
	struct budget *budget;		/* borrowed */
	struct tls13_gear gear[TLS13_SUITES];	/* made for the first connection of each */
};

_Static_assert(sizeof(struct tls13) == 56, "with 120 to 184 bytes of keys behind it");

/* --- what is shared --- */

struct tls13_shared *tls13_shared_new(struct budget *budget)
{
	struct tls13_shared *sh = mem_zalloc(sizeof(*sh));

	if (!sh)
		return NULL;
	sh->budget = budget;
	for (int i = 0; i < TLS13_SUITES; i++) {
		slab_init(&sh->gear[i].slab, tls13_gear_object((enum tls13_suite)i), budget);
		slab_hide(&sh->gear[i].slab);
	}
	return sh;
}

void tls13_shared_free(struct tls13_shared *sh)
{
	if (!sh)
		return;
	for (int i = 0; i < TLS13_SUITES; i++) {
		slab_fini(&sh->gear[i].slab);
		tls13_gear_fini(&sh->gear[i]);
	}
	mem_free(sh);
}

struct tls13 *tls13_new(struct tls13_shared *sh, enum tls13_suite suite, bool client,
		const struct tls13_secret *in, const struct tls13_secret *out)
{
	struct tls13_gear *g = &sh->gear[suite];
	const struct tls13_secret *secret[2] = { in, out };
	struct tls13 *t;

	if (!g->cipher && !tls13_gear_init(g, suite))
		return NULL;
	t = slab_get(&g->slab);
	if (!t)
		return NULL;
	*t = (struct tls13){ .suite = (uint8_t)suite, .flags = client ? TLS13_CLIENT : 0 };
	for (int dir = 0; dir < 2; dir++) {
		if (!tls13_gear_start(g, t, dir, secret[dir])) {
			tls13_free(sh, t);
			return NULL;
		}
	}
	return t;
}

void tls13_free(struct tls13_shared *sh, struct tls13 *t)
{
	if (!t)
		return;
	struct tls13_gear *g = &sh->gear[t->suite];
	buf_free(&t->in, sh->budget);
	buf_free(&t->out, sh->budget);
	tls13_gear_wipe(g, t);
	slab_put(&g->slab, t);
}

/* --- opening --- */

static bool fail(struct tls13 *t, uint8_t alert)
{
	t->flags |= TLS13_FAILED;
	t->alert = alert;
	return false;
}

/* A record, or a KeyUpdate, that brought no data. */
static bool empty_handed(struct tls13 *t)
{
	return ++t->empty <= TLS13_EMPTY_MAX || fail(t, UNEXPECTED_MESSAGE);
}

static bool take_data(struct tls13 *t, unsigned char *p, size_t n, struct str *plain)
{
	if (t->message_head)
		return fail(t, UNEXPECTED_MESSAGE);
	if (n == 0)
		return empty_handed(t);
	t->empty = 0;
	if (t->updates)
		t->updates--;
	if (plain->n == 0)
		plain->p = (char *)p;
	else
		memmove((char *)plain->p + plain->n, p, n);
	plain->n += n;
	return true;
}

static bool take_alert(struct tls13 *t, const unsigned char *p, size_t n)
{
	if (t->message_head)
		return fail(t, UNEXPECTED_MESSAGE);
	if (n != 2)
		return fail(t, n ? DECODE_ERROR : UNEXPECTED_MESSAGE);
	if (p[1] == CLOSE_NOTIFY) {
		t->flags |= TLS13_ENDED;
		return true;
	}
	if (p[1] == USER_CANCELED)	/* some send it before close_notify */
		return empty_handed(t);
	t->flags |= TLS13_THEIRS;
	return fail(t, p[1]);
}

/* The one byte of a KeyUpdate's body. */
static bool take_update(struct tls13_gear *g, struct tls13 *t, unsigned char request)
{
	if (request > 1)
		return fail(t, ILLEGAL_PARAMETER);
	if (++t->updates > TLS13_UPDATES_MAX)
		return fail(t, UNEXPECTED_MESSAGE);
	if (request)
		t->flags |= TLS13_REKEY;
	return tls13_gear_advance(g, t, TLS13_IN) || fail(t, INTERNAL_ERROR);
}

/* One byte of the header of a handshake message. */
static bool take_message_head(struct tls13 *t, unsigned char b)
{
	if (t->message_head++ == 0) {
		t->message = b;
		t->message_left = 0;
		return b == MESSAGE_KEY_UPDATE || (b == MESSAGE_TICKET && (t->flags & TLS13_CLIENT)) || fail(t, UNEXPECTED_MESSAGE);
	}
	t->message_left = t->message_left << 8 | b;
	if (t->message_head < 4)
		return true;
	if (t->message == MESSAGE_KEY_UPDATE)
		return t->message_left == 1 || fail(t, DECODE_ERROR);
	return (t->message_left && t->message_left <= TICKET_MAX) || fail(t, DECODE_ERROR);
}

static bool take_messages(struct tls13_gear *g, struct tls13 *t, const unsigned char *p, size_t n)
{
	size_t i = 0, step;

	if (n == 0)
		return fail(t, UNEXPECTED_MESSAGE);
	if (!empty_handed(t))
		return false;
	while (i < n) {
		if (t->message_head < 4) {
			if (!take_message_head(t, p[i++]))
				return false;
			continue;
		}
		if (t->message == MESSAGE_KEY_UPDATE) {
			t->message_head = 0;
			return i + 1 == n ? take_update(g, t, p[i]) : fail(t, UNEXPECTED_MESSAGE);
		}
		step = n - i < t->message_left ? n - i : t->message_left;
		i += step;
		t->message_left -= (uint32_t)step;
		if (t->message_left == 0)
			t->message_head = 0;
	}
	return true;
}

/* Of a record that is open: its content by its type, which is the last byte that is not 0. */
static bool take_record(struct tls13_gear *g, struct tls13 *t, unsigned char *p, size_t n, struct str *plain)
{
	if (n > TLS13_PLAIN + 1)
		return fail(t, RECORD_OVERFLOW);
	while (n && p[n - 1] == 0)
		n--;
	if (n == 0)
		return fail(t, UNEXPECTED_MESSAGE);
	n--;
	switch (p[n]) {
	case TYPE_DATA:
		return take_data(t, p, n, plain);
	case TYPE_HANDSHAKE:
		return take_messages(g, t, p, n);
	case TYPE_ALERT:
		return take_alert(t, p, n);
	default:
		return fail(t, UNEXPECTED_MESSAGE);
	}
}

static bool header_good(struct tls13 *t, const unsigned char *p, size_t n)
{
	if (p[0] != TYPE_DATA)
		return fail(t, UNEXPECTED_MESSAGE);
	if (p[1] != 3 || p[2] != 3)
		return fail(t, DECODE_ERROR);
	return n <= TLS13_RECORD - TLS13_HEADER || fail(t, RECORD_OVERFLOW);
}

enum tls13_kind tls13_open(struct tls13_shared *sh, struct tls13 *t, void *bytes, size_t size,
		size_t *used, struct str *plain)
{
	struct tls13_gear *g = &sh->gear[t->suite];
	unsigned char *p = bytes;
	size_t left = size, n;

	*plain = (struct str){ bytes, 0 };
	while (!(t->flags & (TLS13_ENDED | TLS13_FAILED)) && left >= TLS13_HEADER) {
		n = (size_t)p[3] << 8 | p[4];
		if (!header_good(t, p, n))
			break;
		if (left < TLS13_HEADER + n)
			break;
		if (!tls13_gear_open(g, t, p, n))
			fail(t, BAD_RECORD_MAC);
		else if (take_record(g, t, p + TLS13_HEADER, n - TLS13_TAG, plain) && t->seq[TLS13_IN] &&
				t->seq[TLS13_IN] % TLS13_KEY_RECORDS == 0)
			tls13_rekey(t, true);	/* their key is worn, and few replace it by themselves */
		p += TLS13_HEADER + n;
		left -= TLS13_HEADER + n;
	}
	if (t->flags & (TLS13_ENDED | TLS13_FAILED)) {
		*used = size;
		return t->flags & TLS13_FAILED ? TLS13_BAD : TLS13_END;
	}
	*used = size - left;
	return TLS13_MORE;
}

/* --- sealing --- */

/* Data spread over pieces. */
struct pieces {
	const struct iovec *iov;
	int n;
	size_t off;	/* into the first of them */
};

static size_t pieces_copy(struct pieces *from, unsigned char *to, size_t n)
{
	size_t done = 0, step;

	while (done < n && from->n) {
		step = from->iov->iov_len - from->off;
		if (step > n - done)
			step = n - done;
		if (step)
			memcpy(to + done, (const unsigned char *)from->iov->iov_base + from->off, step);
		done += step;
		from->off += step;
		if (from->off == from->iov->iov_len) {
			from->iov++;
			from->n--;
			from->off = 0;
		}
	}
	return done;
}

/* Bytes at `out`; 0: OpenSSL refuses. */
static size_t seal_update(struct tls13_gear *g, struct tls13 *t, unsigned char *out)
{
	const unsigned char message[6] = { MESSAGE_KEY_UPDATE, 0, 0, 1, t->flags & TLS13_ASK ? 1 : 0, TYPE_HANDSHAKE };

	memcpy(out + TLS13_HEADER, message, sizeof(message));
	if (!tls13_gear_seal(g, t, out, sizeof(message)) || !tls13_gear_advance(g, t, TLS13_OUT))
		return 0;
	t->flags &= (uint8_t)~(TLS13_REKEY | TLS13_ASK);
	return TLS13_UPDATE;
}

enum err tls13_seal(struct tls13_shared *sh, struct tls13 *t, const struct iovec *iov, int n_iov,
		void *to, size_t room, size_t *taken, size_t *sealed)
{
	struct tls13_gear *g = &sh->gear[t->suite];
	struct pieces from = { iov, n_iov, 0 };
	unsigned char *out = to;
	size_t all = 0, done = 0, at = 0, n;

	if (t->flags & (TLS13_FINISHED | TLS13_FAILED)) {
		errno = EPIPE;
		return ERR_SYS;
	}
	for (int i = 0; i < n_iov; i++)
		all += iov[i].iov_len;
	while (done < all) {
		bool rekey = (t->flags & TLS13_REKEY) || t->seq[TLS13_OUT] >= TLS13_KEY_RECORDS;
		size_t extra = TLS13_EXTRA + (rekey ? TLS13_UPDATE : 0);

		if (room - at <= extra)
			break;
		if (rekey) {
			n = seal_update(g, t, out + at);
			if (n == 0)
				goto refused;
			at += n;
		}
		n = room - at - TLS13_EXTRA;
		n = pieces_copy(&from, out + at + TLS13_HEADER, n < TLS13_PLAIN ? n : TLS13_PLAIN);
		out[at + TLS13_HEADER + n] = TYPE_DATA;
		if (!tls13_gear_seal(g, t, out + at, n + 1))
			goto refused;
		done += n;
		at += n + TLS13_EXTRA;
	}
	*taken = done;
	*sealed = at;
	return OK;
refused:
	t->flags |= TLS13_FINISHED;	/* the peer will not see what was counted */
	errno = ENOMEM;
	return ERR_SYS;
}

size_t tls13_finish(struct tls13_shared *sh, struct tls13 *t, void *to)
{
	unsigned char *out = to;
	bool failed = t->flags & TLS13_FAILED;

	if (t->flags & (TLS13_FINISHED | TLS13_THEIRS))
		return 0;
	t->flags |= TLS13_FINISHED;
	out[TLS13_HEADER] = failed ? LEVEL_FATAL : LEVEL_WARNING;
	out[TLS13_HEADER + 1] = failed ? t->alert : CLOSE_NOTIFY;
	out[TLS13_HEADER + 2] = TYPE_ALERT;
	return tls13_gear_seal(&sh->gear[t->suite], t, out, 3) ? TLS13_ALERT : 0;
}

struct str tls13_alert_text(uint8_t alert)
{
	switch (alert) {
	case CLOSE_NOTIFY: return STR("close_notify");
	case UNEXPECTED_MESSAGE: return STR("unexpected_message");
	case BAD_RECORD_MAC: return STR("bad_record_mac");
	case RECORD_OVERFLOW: return STR("record_overflow");
	case 40: return STR("handshake_failure");
	case 42: return STR("bad_certificate");
	case 43: return STR("unsupported_certificate");
	case 44: return STR("certificate_revoked");
	case 45: return STR("certificate_expired");
	case 46: return STR("certificate_unknown");
	case ILLEGAL_PARAMETER: return STR("illegal_parameter");
	case 48: return STR("unknown_ca");
	case 49: return STR("access_denied");
	case DECODE_ERROR: return STR("decode_error");
	case 51: return STR("decrypt_error");
	case 70: return STR("protocol_version");
	case 71: return STR("insufficient_security");
	case INTERNAL_ERROR: return STR("internal_error");
	case 86: return STR("inappropriate_fallback");
	case USER_CANCELED: return STR("user_canceled");
	case 109: return STR("missing_extension");
	case 110: return STR("unsupported_extension");
	case 112: return STR("unrecognized_name");
	case 113: return STR("bad_certificate_status_response");
	case 115: return STR("unknown_psk_identity");
	case 116: return STR("certificate_required");
	case 120: return STR("no_application_protocol");
	default: return STR("unknown");
	}
}
