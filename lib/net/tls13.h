/* The record layer of an established TLS 1.3 connection (RFC 8446, 5), without OpenSSL's SSL object: what
 * is left of such a connection are two traffic secrets with their keys and two sequence numbers.
 *
 * OpenSSL does the handshake; then the connection is taken over (tls13_take.h) and the SSL object is freed.
 * An idle connection costs one struct tls13, 176 to 240 bytes, in place of 13.5 KB.
 *
 * A pure machine: bytes in, bytes out.  It reads no socket and no clock; the memory that it works on is
 * the caller's. */
#ifndef THIMBLE_NET_TLS13_H
#define THIMBLE_NET_TLS13_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>
#include "lib/base/buf.h"
#include "lib/base/budget.h"
#include "lib/base/err.h"
#include "lib/base/str.h"

#define TLS13_PLAIN 16384u			/* bytes of data in one record, at most */
#define TLS13_RECORD (5u + TLS13_PLAIN + 256u)	/* bytes of a record that a peer may send, at most */
#define TLS13_EXTRA 22u				/* what sealing adds to a record: header, content type, tag */
#define TLS13_ALERT (TLS13_EXTRA + 2u)		/* bytes of a sealed alert */
#define TLS13_UPDATE (TLS13_EXTRA + 5u)		/* bytes of a sealed KeyUpdate */
#define TLS13_HASH_MAX 48u

/* A key is replaced after this many records: RFC 8446 5.5 has 2^24.5 for AES-GCM. */
#define TLS13_KEY_RECORDS (UINT64_C(1) << 24)
/* Records without data that may follow one another. */
#define TLS13_EMPTY_MAX 32u
/* KeyUpdates of a peer: this many at once; each record with data pays for one more. */
#define TLS13_UPDATES_MAX 32u

enum tls13_suite { TLS13_AES_128_GCM_SHA256, TLS13_AES_256_GCM_SHA384, TLS13_CHACHA20_POLY1305_SHA256, TLS13_SUITES };

/* Directions. */
enum { TLS13_IN, TLS13_OUT };

/* tls13.flags */
#define TLS13_CLIENT 1u		/* we are the client of this connection */
#define TLS13_ENDED 2u		/* close_notify came: what comes behind it is ignored */
#define TLS13_FAILED 4u		/* it broke a rule, or the peer says that we did: `alert` */
#define TLS13_THEIRS 8u		/* `alert` came from the peer */
#define TLS13_FINISHED 16u	/* our last alert was sealed: nothing may follow it */
#define TLS13_REKEY 32u		/* a KeyUpdate of ours goes before the next data */
#define TLS13_ASK 64u		/* and it asks for one of theirs */
#define TLS13_TOLD 128u		/* the owner's, of TLS13_FAILED */

/* One connection.  `in`, `out` and `who` are for whoever reads and writes its socket; the rest is private. */
struct tls13 {
	struct buf *in;		/* owned, the owner's: the beginning of a record that is not whole */
	struct buf *out;	/* owned, the owner's: sealed and not yet sent */
	const void *who;	/* the owner's: who the peer has shown itself to be */
	uint8_t suite;		/* enum tls13_suite */
	uint8_t flags;
	uint8_t alert;		/* TLS13_FAILED: its number (RFC 8446, 6) */
	uint8_t empty;		/* records without data since the last one with */
	uint8_t updates;	/* KeyUpdates of the peer that no data has paid for */
	uint8_t message;	/* type of the handshake message that is being read */
	uint8_t message_head;	/* bytes of its header that are here, 0..4 */
	uint32_t message_left;	/* its length as far as that is known; then what is left of it */
	uint64_t seq[2];	/* records opened and sealed under the keys of now */
	unsigned char key[];	/* secret: for each direction the traffic secret, the key and the IV */
};

/* What connections of one thread share: cipher contexts, and the slabs that connections live in. */
struct tls13_shared;

/* `budget` (borrowed, may be NULL) is charged for connections and their bufs.  NULL: no memory. */
struct tls13_shared *tls13_shared_new(struct budget *budget) MUST_USE;
/* CHECKs that all connections are gone; NULL is accepted. */
void tls13_shared_free(struct tls13_shared *sh);

/* One direction of a connection: the traffic secret of now, and how many records went under it. */
struct tls13_secret {
	unsigned char b[TLS13_HASH_MAX];
	uint64_t seq;
};

/* Bytes of a suite's traffic secrets: 32 or 48. */
size_t tls13_secret_size(enum tls13_suite suite);

/* A connection that goes on from here; the secrets are copied (wiping them is the caller's).  NULL: no memory. */
struct tls13 *tls13_new(struct tls13_shared *sh, enum tls13_suite suite, bool client,
		const struct tls13_secret *in, const struct tls13_secret *out) MUST_USE;
/* Wipes it and frees `in` and `out`; NULL is accepted. */
void tls13_free(struct tls13_shared *sh, struct tls13 *t);

enum tls13_kind {
	TLS13_MORE,	/* all that was whole is open */
	TLS13_END,	/* the peer has ended its direction (close_notify); ours stays open */
	TLS13_BAD,	/* the connection must end, t->alert says why: send what tls13_finish gives, then close */
};

/* Opens the whole records among the `n` bytes at `p`, in place.  *plain is their data, one run that lies
 * in those bytes; *used how many of them are done with: what is behind is the beginning of a record (fewer
 * than TLS13_RECORD bytes), to be given again with more.  With TLS13_BAD *plain is what was good before the fault. */
enum tls13_kind tls13_open(struct tls13_shared *sh, struct tls13 *t, void *p, size_t n, size_t *used, struct str *plain);

/* Seals data of `iov` into at most `room` bytes at `out`, which lie elsewhere.  *taken is how much of it
 * went in, *sealed what is at `out`: to be sent before anything that is sealed later.  Little room takes nothing:
 * TLS13_UPDATE + TLS13_EXTRA + 1 bytes always take some.  ERR_SYS (errno) when it is finished or failed: EPIPE,
 * or OpenSSL refuses: ENOMEM; nothing is sealed then and the connection must be closed. */
MUST_USE enum err tls13_seal(struct tls13_shared *sh, struct tls13 *t, const struct iovec *iov, int n_iov,
		void *out, size_t room, size_t *taken, size_t *sealed);

/* Ends our direction: seals the alert that a failure calls for, else close_notify.  Bytes at `out`, at most
 * TLS13_ALERT; 0 when there is nothing to say: said already, or the peer failed us. */
size_t tls13_finish(struct tls13_shared *sh, struct tls13 *t, void *out);

/* The next data goes under a new key of ours; `ask`: and the peer is asked for a new one of its own. */
static inline void tls13_rekey(struct tls13 *t, bool ask)
{
	t->flags |= ask ? TLS13_REKEY | TLS13_ASK : TLS13_REKEY;
}

/* The name of an alert, for logs. */
struct str tls13_alert_text(uint8_t alert);

#endif
