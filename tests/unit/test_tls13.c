/* lib/net/tls13: records by RFC 8448, and every rule of RFC 8446 that a peer may break. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <errno.h>
#include <openssl/err.h>

#include "lib/base/mem.h"
#include "lib/base/slab.h"
#include "tests/unit/tls_peer.h"

enum { ALERT = 21, HANDSHAKE = 22, DATA = 23 };

static struct tls13_shared *sh;
static struct tls13 *us, *them;		/* a server and its client */
static unsigned char wire[1 << 18];	/* what `us` is to read */
static size_t wired;
static unsigned char bytes[1 << 17];	/* data */

static struct tls13_secret secret_of(int seed)
{
	struct tls13_secret s = {0};

	for (size_t i = 0; i < sizeof(s.b); i++)
		s.b[i] = (unsigned char)(seed * 31 + (int)i * 7);
	return s;
}

static void begin_as(enum tls13_suite suite, bool client)
{
	struct tls13_secret a = secret_of(1), b = secret_of(2);

	us = tls13_new(sh, suite, client, &a, &b);
	them = tls13_new(sh, suite, !client, &b, &a);
	assert_non_null(us);
	assert_non_null(them);
	wired = 0;
}

static void begin(void)
{
	begin_as(TLS13_AES_128_GCM_SHA256, false);
}

static void end(void)
{
	tls13_free(sh, us);
	tls13_free(sh, them);
	us = them = NULL;
}

static int setup(void **state)
{
	(void)state;
	sh = tls13_shared_new(NULL);
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)(i * 2654435761u >> 13);
	return sh ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	tls13_shared_free(sh);
	return 0;
}

/* Appends to what us is to read: a record of any content, the next in order. */
static void put_padded(int type, const void *content, size_t n, size_t pad)
{
	wired += tls_inner(us, TLS13_IN, us->seq[TLS13_IN] + 0, type, content, n, pad, wire + wired);
}

static enum tls13_kind open_wire(struct str *plain)
{
	size_t used;
	enum tls13_kind kind = tls13_open(sh, us, wire, wired, &used, plain);

	memmove(wire, wire + used, wired - used);
	wired -= used;
	return kind;
}

/* One record that brings no data and breaks nothing. */
static void good_padded(int type, const void *content, size_t n, size_t pad)
{
	struct str plain;

	put_padded(type, content, n, pad);
	assert_int_equal(open_wire(&plain), TLS13_MORE);
	assert_int_equal(wired, 0);
	assert_int_equal(plain.n, type == DATA ? n : 0);
	if (plain.n)
		assert_memory_equal(plain.p, content, n);
}

static void good(int type, const void *content, size_t n)
{
	good_padded(type, content, n, 0);
}

/* us has refused: the alert goes out encrypted, fatal, once, and nothing behind it. */
static void assert_alert(uint8_t alert)
{
	unsigned char out[100];
	size_t n, used, taken, sealed;
	struct str plain;
	struct iovec iov = { bytes, 10 };
	bool begun = them->message_head;

	assert_true(us->flags & TLS13_FAILED);
	assert_int_equal(us->alert, alert);
	assert_int_equal(tls13_open(sh, us, wire, 1000, &used, &plain), TLS13_BAD);
	assert_int_equal(plain.n, 0);
	assert_int_equal(tls13_seal(sh, us, &iov, 1, out, sizeof(out), &taken, &sealed), ERR_SYS);
	assert_int_equal(errno, EPIPE);
	n = tls13_finish(sh, us, out);
	assert_int_equal(n, TLS13_ALERT);
	assert_int_equal(tls13_finish(sh, us, out + n), 0);
	assert_int_equal(tls13_open(sh, them, out, n, &used, &plain), TLS13_BAD);
	assert_int_equal(them->alert, begun ? 10 : alert);
	assert_true(them->flags & TLS13_THEIRS);
	assert_int_equal(tls13_finish(sh, them, out), 0);
	assert_int_equal(ERR_peek_error(), 0);
}

/* The bytes in `wire` are refused, and nothing of them is handed up. */
static void refused(uint8_t alert)
{
	struct str plain;

	assert_int_equal(open_wire(&plain), TLS13_BAD);
	assert_int_equal(plain.n, 0);
	assert_int_equal(wired, 0);
	assert_alert(alert);
	end();
}

static void bad(int type, const void *content, size_t n, uint8_t alert)
{
	put_padded(type, content, n, 0);
	refused(alert);
}

/* --- RFC 8448 --- */

/* Section 3, "Simple 1-RTT Handshake": what follows the handshake there. */
static const char client_secret[] = "9e40646ce79a7f9dc05af8889bce6552875afa0b06df0087f792ebb7c17504a5";
static const char server_secret[] = "a11af9f05531f856ad47116b45a950328204b4f44bfb6b3a4b4f1f3fcb631643";
static const char client_key[] = "17422dda596ed5d9acd890e3c63f5051", client_iv[] = "5b78923dee08579033e523d9";
static const char server_key[] = "9f02283b6c9c07efc26bb9f2ac92e356", server_iv[] = "cf782b88dd83549aadf1e984";
static const char server_ticket[] =
	"17030300de3a6b8f90414a97d6959c3487680de5134a2b240e6cffac116e95d41d6af8f6b580dcf3d11d63c758db289a"
	"015940252f55713e061dc13e078891a38efbcf5753ad8ef170ad3c7353d16d9da773b9ca7f2b9fa1b6c0d4a3d03f75e0"
	"9c30ba1e62972ac46f75f7b981be63439b2999ce13064615139891d5e4c5b406f16e3fc181a77ca475840025db2f0a77"
	"f81b5ab05b94c01346755f69232c86519d86cbeeac87aac347d143f9605d64f650db4d023e70e952ca49fe5137121c74"
	"bc2697687e248746d6df353005f3bce18696129c8153556b3b6c6779b37bf15985684f";
static const char client_data[] =
	"1703030043a23f7054b62c94d0affafe8228ba55cbefacea42f914aa66bcab3f2b9819a8a5b46b395bd54a9a20441e2b"
	"62974e1f5a6292a2977014bd1e3deae63aeebb21694915e4";
static const char server_data[] =
	"17030300432e937e11ef4ac740e538ad36005fc4a46932fc3225d05f82aa1b36e30efaf97d90e6dffc602dcb501a59a8"
	"fcc49c4bf2e5f0a21c0047c2abf332540dd032e167c2955d";
static const char client_end[] = "1703030013c9872760655666b74d7ff1153efd6db6d0b0e3";
static const char server_end[] = "1703030013b58fd67166ebf599d24720cfbe7efa7a8864a9";

static size_t unhex(const char *hex, unsigned char *to)
{
	size_t n = strlen(hex) / 2;

	for (size_t i = 0; i < n; i++) {
		unsigned byte;

		assert_int_equal(sscanf(hex + 2 * i, "%2x", &byte), 1);
		to[i] = (unsigned char)byte;
	}
	return n;
}

static void assert_hex(const void *p, const char *hex)
{
	unsigned char want[300];
	size_t n = unhex(hex, want);

	assert_memory_equal(p, want, n);
}

/* Reads the records of one end as the other, and writes what the other wrote. */
static void trace(bool client, const char *const theirs[], const char *data, const char *close, uint64_t sealed_before)
{
	struct tls13_secret in = {0}, out = { .seq = sealed_before };
	unsigned char payload[50], out_bytes[100];
	struct iovec iov = { payload, 50 };
	struct str plain, all = {0};
	size_t taken, sealed, used;
	enum tls13_kind kind = TLS13_MORE;

	for (int i = 0; i < 50; i++)
		payload[i] = (unsigned char)i;
	unhex(client ? server_secret : client_secret, in.b);
	unhex(client ? client_secret : server_secret, out.b);
	struct tls13 *t = tls13_new(sh, TLS13_AES_128_GCM_SHA256, client, &in, &out);
	assert_non_null(t);
	assert_hex(t->key + 32, client ? server_key : client_key);
	assert_hex(t->key + 48, client ? server_iv : client_iv);
	assert_hex(t->key + 60 + 32, client ? client_key : server_key);
	assert_hex(t->key + 60 + 48, client ? client_iv : server_iv);
	for (int i = 0; theirs[i]; i++) {
		assert_int_equal(kind, TLS13_MORE);
		wired = unhex(theirs[i], wire);
		kind = tls13_open(sh, t, wire, wired, &used, &plain);
		assert_int_equal(used, wired);
		all = plain.n ? plain : all;
		if (plain.n)
			assert_memory_equal(plain.p, payload, 50);
	}
	assert_int_equal(all.n, 50);
	assert_int_equal(kind, TLS13_END);
	assert_int_equal(tls13_seal(sh, t, &iov, 1, out_bytes, sizeof(out_bytes), &taken, &sealed), OK);
	assert_int_equal(sealed, 50 + TLS13_EXTRA);
	assert_hex(out_bytes, data);
	assert_int_equal(tls13_finish(sh, t, out_bytes), TLS13_ALERT);
	assert_hex(out_bytes, close);
	tls13_free(sh, t);
}

static void rfc8448(void **state)
{
	const char *const of_server[] = { server_ticket, server_data, server_end, NULL };
	const char *const of_client[] = { client_data, client_end, NULL };

	(void)state;
	trace(true, of_server, client_data, client_end, 0);
	trace(false, of_client, server_data, server_end, 1);
}

/* --- records --- */

static void sizes_and_padding(void **state)
{
	static const size_t sizes[] = { 0, 1, 2, 16, 100, 1000, 16000, 16383, 16384 };
	static const size_t pads[] = { 0, 1, 15, 16, 255, 256, 4000, 16384 };

	(void)state;
	for (int suite = 0; suite < TLS13_SUITES; suite++) {
		begin_as(suite, false);
		for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
			for (size_t j = 0; j < sizeof(pads) / sizeof(*pads); j++)
				if (sizes[i] + pads[j] <= 16384)
					good_padded(DATA, bytes + i + j, sizes[i], pads[j]);
		/* data that ends in zeros loses none of them */
		good_padded(DATA, "\1\0\0\0", 4, 0);
		good_padded(DATA, "\0\0\0\0", 4, 20);
		end();
	}
}

static void records_too_large(void **state)
{
	(void)state;
	begin();	/* 2^14 + 2 within: type and padding count */
	put_padded(DATA, bytes, 16384, 1);
	refused(22);
	begin();
	put_padded(DATA, bytes, 16385, 0);
	refused(22);
	begin();
	put_padded(DATA, NULL, 0, 16385);
	refused(22);
	begin();	/* told by its length alone, before it is there */
	memcpy(wire, "\x17\3\3\x41\1", wired = 5);
	refused(22);
	begin();	/* 2^14 + 256 may be: it is waited for */
	struct str plain;
	memcpy(wire, "\x17\3\3\x41\0", wired = 5);
	assert_int_equal(open_wire(&plain), TLS13_MORE);
	assert_int_equal(wired, 5);
	memset(wire + 5, 7, 16640);
	wired = 5 + 16640;
	refused(20);
}

static void records_too_small(void **state)
{
	(void)state;
	for (size_t n = 0; n < 16; n++) {
		begin();
		memcpy(wire, "\x17\3\3\0\0", 5);
		wire[4] = (unsigned char)n;
		wired = 5 + n;
		refused(20);
	}
	begin();	/* a tag over nothing: not even a type */
	wired = tls_inner(us, TLS13_IN, 0, 0, NULL, 0, 0, wire);
	refused(10);
	for (size_t pad = 0; pad <= 16384; pad += 1024) {
		begin();
		put_padded(0, NULL, 0, pad);
		refused(10);
	}
}

/* The handshake is over: nothing comes in the clear. */
static void unencrypted_records(void **state)
{
	(void)state;
	for (int type = 0; type < 256; type++) {
		if (type == DATA)
			continue;
		begin();
		memcpy(wire, "?\3\3\0\1\1", wired = 6);
		wire[0] = (unsigned char)type;
		refused(10);
	}
	static const char *const versions[] = { "\x17\3\1\0\x20", "\x17\3\4\0\x20", "\x17\2\3\0\x20", "\x17\0\0\0\x20" };
	for (int i = 0; i < 4; i++) {
		begin();
		memcpy(wire, versions[i], wired = 5);
		refused(50);
	}
	begin();
	memcpy(wire, "GET / HTTP/1.1\r\n\r\n", wired = 18);
	refused(10);
}

static void unknown_types(void **state)
{
	(void)state;
	for (int type = 1; type < 256; type++) {
		if (type == DATA || type == HANDSHAKE || type == ALERT)
			continue;
		begin();
		bad(type, "\1", 1, 10);
	}
}

/* Three records: a byte or a bit of any changed, one missing, twice, in another order. */
static void tampering(void **state)
{
	static unsigned char right[3][200];
	size_t n[3], used;
	struct str plain;

	(void)state;
	for (int suite = 0; suite < TLS13_SUITES; suite++) {
		begin_as(suite, false);
		for (int i = 0; i < 3; i++)
			n[i] = tls_inner(us, TLS13_IN, (uint64_t)i, DATA, bytes + i, 30 + (size_t)i, 0, right[i]);
		end();
		for (size_t bit = 0; bit < 8 * n[1]; bit++) {
			begin_as(suite, false);
			memcpy(wire, right[0], n[0]);
			memcpy(wire + n[0], right[1], n[1]);
			wire[n[0] + bit / 8] ^= (unsigned char)(1u << bit % 8);
			wired = n[0] + n[1];
			enum tls13_kind kind = tls13_open(sh, us, wire, wired, &used, &plain);
			assert_int_equal(plain.n, 30);	/* the one before it */
			assert_memory_equal(plain.p, bytes, 30);
			if (kind == TLS13_MORE) {	/* a larger length: it waits */
				assert_in_range(bit, 24, 39);
				memset(wire + wired, 0, 20000);
				kind = tls13_open(sh, us, wire + used, 20000, &used, &plain);
				assert_int_equal(plain.n, 0);
			}
			assert_int_equal(kind, TLS13_BAD);
			assert_alert(bit < 8 ? 10 : bit < 24 ? 50 : bit == 31 ? 22 : 20);
			if (bit >= 40) {	/* nothing of what it said is left */
				static const unsigned char zeros[31];
				assert_memory_equal(wire + n[0] + 5, zeros, 31);
			}
			end();
		}
		static const int orders[][2] = { { 0, 0 }, { 0, 2 }, { 1, 0 }, { 2, 1 } };
		for (int i = 0; i < 4; i++) {
			begin_as(suite, false);
			int a = orders[i][0], b = orders[i][1];
			memcpy(wire, right[a], n[a]);
			memcpy(wire + n[a], right[b], n[b]);
			wired = n[a] + n[b];
			assert_int_equal(open_wire(&plain), TLS13_BAD);
			assert_int_equal(plain.n, a == 0 ? 30 : 0);
			assert_alert(20);
			end();
		}
		/* and what we sealed is not ours to read */
		begin_as(suite, false);
		wired = tls_inner(us, TLS13_OUT, 0, DATA, bytes, 30, 0, wire);
		refused(20);
	}
}

/* A stream of records, cut at each byte. */
static void any_cut(void **state)
{
	static unsigned char stream[4096];
	size_t n = 0, used;
	struct str a, b;

	(void)state;
	begin();
	n += tls_inner(us, TLS13_IN, 0, DATA, bytes, 40, 3, stream + n);
	n += tls_inner(us, TLS13_IN, 1, DATA, NULL, 0, 0, stream + n);
	n += tls_inner(us, TLS13_IN, 2, DATA, bytes + 40, 1, 0, stream + n);
	n += tls_inner(us, TLS13_IN, 3, DATA, bytes + 41, 100, 0, stream + n);
	end();
	for (size_t cut = 0; cut <= n; cut++) {
		begin();
		memcpy(wire, stream, n);
		assert_int_equal(tls13_open(sh, us, wire, cut, &used, &a), TLS13_MORE);
		char first[200];
		memcpy(first, a.p, a.n);
		memcpy(wire, stream, used);	/* what was opened lies there no longer */
		assert_int_equal(tls13_open(sh, us, wire + used, n - used, &used, &b), TLS13_MORE);
		assert_int_equal(a.n + b.n, 141);
		assert_memory_equal(first, bytes, a.n);
		assert_memory_equal(b.p, bytes + a.n, b.n);
		assert_int_equal(us->seq[TLS13_IN], 4);
		end();
	}
}

/* --- alerts --- */

static void alerts(void **state)
{
	unsigned char out[TLS13_ALERT];
	struct str plain;

	(void)state;
	for (int level = 0; level < 3; level++) {
		for (int alert = 0; alert < 256; alert++) {
			unsigned char a[2] = { (unsigned char)level, (unsigned char)alert };

			begin();
			put_padded(ALERT, a, 2, 0);
			if (alert == 90) {	/* user_canceled: close_notify will follow */
				assert_int_equal(open_wire(&plain), TLS13_MORE);
			} else if (alert == 0) {
				assert_int_equal(open_wire(&plain), TLS13_END);
				assert_int_equal(tls13_finish(sh, us, out), TLS13_ALERT);	/* ours goes out still */
			} else {
				assert_int_equal(open_wire(&plain), TLS13_BAD);
				assert_int_equal(us->alert, alert);
				assert_true(us->flags & TLS13_THEIRS);
				assert_int_equal(tls13_finish(sh, us, out), 0);
			}
			assert_true(tls13_alert_text((uint8_t)alert).n > 0);
			end();
		}
	}
	begin();
	bad(ALERT, "\1\0\1", 3, 50);
	begin();
	bad(ALERT, "\1\0\1\0", 4, 50);
	begin();
	bad(ALERT, "\1", 1, 50);
	begin();
	bad(ALERT, "", 0, 10);
}

static void what_follows_the_end_is_ignored(void **state)
{
	struct str plain;
	size_t used;

	(void)state;
	begin();
	wired = tls_inner(us, TLS13_IN, 0, DATA, bytes, 20, 0, wire);
	wired += tls_inner(us, TLS13_IN, 1, ALERT, "\1\0", 2, 0, wire + wired);
	wired += tls_inner(us, TLS13_IN, 2, DATA, bytes, 20, 0, wire + wired);
	memcpy(wire + wired, "rubbish", 7);
	wired += 7;
	assert_int_equal(tls13_open(sh, us, wire, wired, &used, &plain), TLS13_END);
	assert_int_equal(used, wired);
	assert_int_equal(plain.n, 20);
	assert_int_equal(tls13_open(sh, us, wire, 7, &used, &plain), TLS13_END);
	assert_int_equal(used, 7);
	assert_int_equal(plain.n, 0);
	end();
}

static void nothing_is_sealed_behind_the_end(void **state)
{
	unsigned char out[200];
	struct iovec iov = { bytes, 20 };
	size_t taken, sealed, used;
	struct str plain;

	(void)state;
	begin();
	assert_int_equal(tls13_finish(sh, us, out), TLS13_ALERT);
	assert_int_equal(tls13_finish(sh, us, out), 0);
	assert_int_equal(tls13_seal(sh, us, &iov, 1, out + 100, 100, &taken, &sealed), ERR_SYS);
	assert_int_equal(errno, EPIPE);
	assert_int_equal(tls13_open(sh, them, out, TLS13_ALERT, &used, &plain), TLS13_END);
	/* what it still says is heard */
	good(DATA, bytes, 100);
	end();
}

/* --- handshake messages --- */

static void updates(void **state)
{
	(void)state;
	for (int suite = 0; suite < TLS13_SUITES; suite++) {
		begin_as(suite, suite == 1);
		good(DATA, bytes, 100);
		good(HANDSHAKE, "\x18\0\0\1\0", 5);
		assert_int_equal(us->seq[TLS13_IN], 0);
		assert_false(us->flags & TLS13_REKEY);
		good_padded(DATA, bytes, 100, 50);
		good_padded(HANDSHAKE, "\x18\0\0\1\1", 5, 100);
		assert_true(us->flags & TLS13_REKEY);
		good(DATA, bytes, 100);
		/* in any parts */
		for (size_t cut = 1; cut < 5; cut++) {
			good(HANDSHAKE, "\x18\0\0\1\0", cut);
			assert_int_not_equal(us->seq[TLS13_IN], 0);
			good(HANDSHAKE, &"\x18\0\0\1\0"[cut], 5 - cut);
			assert_int_equal(us->seq[TLS13_IN], 0);
			good(DATA, bytes, 100);
		}
		end();
	}
}

/* The record behind a KeyUpdate, in the same read, has the new key; the old one is worth nothing. */
static void an_update_takes_effect_at_once(void **state)
{
	struct iovec iov = { bytes, 1000 };
	size_t taken, sealed, n;
	struct str plain;
	struct tls13 *old;
	struct tls13_secret a = secret_of(1), b = secret_of(2);

	(void)state;
	begin();
	assert_int_equal(tls13_seal(sh, them, &iov, 1, wire, sizeof(wire), &taken, &n), OK);
	tls13_rekey(them, true);
	assert_int_equal(tls13_seal(sh, them, &iov, 1, wire + n, sizeof(wire) - n, &taken, &sealed), OK);
	assert_int_equal(taken, 1000);
	assert_int_equal(sealed, TLS13_UPDATE + 1000 + TLS13_EXTRA);
	wired = n + sealed;
	assert_int_equal(open_wire(&plain), TLS13_MORE);
	assert_int_equal(plain.n, 2000);
	assert_memory_equal(plain.p, bytes, 1000);
	assert_memory_equal(plain.p + 1000, bytes, 1000);
	assert_true(us->flags & TLS13_REKEY);
	old = tls13_new(sh, TLS13_AES_128_GCM_SHA256, false, &a, &b);
	assert_non_null(old);
	assert_memory_not_equal(old->key, us->key, 60);
	wired = tls_inner(old, TLS13_IN, us->seq[TLS13_IN], DATA, bytes, 10, 0, wire);
	tls13_free(sh, old);
	refused(20);
}

/* However many ask, one answer goes before the next data, and none before there is data. */
static void one_answer_for_many_updates(void **state)
{
	static unsigned char out[1000];
	struct iovec none = { bytes, 0 }, iov = { bytes, 10 };
	size_t taken, sealed, used;
	struct str plain;

	(void)state;
	begin();
	for (int i = 0; i < 10; i++)
		good(HANDSHAKE, "\x18\0\0\1\1", 5);
	assert_int_equal(tls13_seal(sh, us, &none, 1, out, sizeof(out), &taken, &sealed), OK);
	assert_int_equal(sealed, 0);
	assert_int_equal(tls13_seal(sh, us, &iov, 1, out, sizeof(out), &taken, &sealed), OK);
	assert_int_equal(sealed, TLS13_UPDATE + 10 + TLS13_EXTRA);
	assert_int_equal(tls13_open(sh, them, out, sealed, &used, &plain), TLS13_MORE);
	assert_int_equal(plain.n, 10);
	assert_false(them->flags & TLS13_REKEY);	/* the answer asks for nothing */
	assert_int_equal(tls13_seal(sh, us, &iov, 1, out, sizeof(out), &taken, &sealed), OK);
	assert_int_equal(sealed, 10 + TLS13_EXTRA);
	assert_int_equal(tls13_open(sh, them, out, sealed, &used, &plain), TLS13_MORE);
	assert_int_equal(plain.n, 10);
	/* one of ours that asks, and one later that does not */
	for (int ask = 1; ask >= 0; ask--) {
		tls13_rekey(us, ask);
		assert_int_equal(tls13_seal(sh, us, &iov, 1, out, sizeof(out), &taken, &sealed), OK);
		assert_int_equal(tls13_open(sh, them, out, sealed, &used, &plain), TLS13_MORE);
		assert_int_equal(them->flags & TLS13_REKEY ? 1 : 0, ask);
		them->flags &= (uint8_t)~TLS13_REKEY;
	}
	end();
}

static void bad_updates(void **state)
{
	static const struct { const char *content; size_t n; uint8_t alert; } cases[] = {
		{ "\x18\0\0\1\2", 5, 47 },		/* neither of its two values */
		{ "\x18\0\0\1\xff", 5, 47 },
		{ "\x18\0\0\0", 4, 50 },		/* no value */
		{ "\x18\0\0\2\0\0", 6, 50 },
		{ "\x18\1\0\1\0", 5, 50 },
		{ "\x18\0\0\1\0\0", 6, 10 },		/* more behind it, under the old key */
		{ "\x18\0\0\1\0\x18\0\0\1\0", 10, 10 },
		{ "", 0, 10 },				/* no part of a message */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		for (int client = 0; client < 2; client++) {
			begin_as(TLS13_AES_128_GCM_SHA256, client);
			bad(HANDSHAKE, cases[i].content, cases[i].n, cases[i].alert);
		}
	}
	/* other records between its parts */
	static const struct { int type; const char *content; size_t n; } between[] = {
		{ DATA, "x", 1 }, { DATA, "", 0 }, { ALERT, "\1\0", 2 }, { ALERT, "\2\50", 2 }, { HANDSHAKE, "", 0 },
	};
	for (size_t i = 0; i < sizeof(between) / sizeof(*between); i++) {
		for (size_t cut = 1; cut < 5; cut++) {
			begin();
			good(HANDSHAKE, "\x18\0\0\1\0", cut);
			bad(between[i].type, between[i].content, between[i].n, 10);
		}
	}
}

static void other_messages(void **state)
{
	(void)state;
	for (int client = 0; client < 2; client++) {
		for (int type = 0; type < 256; type++) {
			unsigned char message[6] = { (unsigned char)type, 0, 0, 2, 0, 0 };

			if (type == 24 || (type == 4 && client))
				continue;
			begin_as(TLS13_AES_128_GCM_SHA256, client);
			bad(HANDSHAKE, message, 6, 10);
			begin_as(TLS13_AES_128_GCM_SHA256, client);	/* its type is enough */
			bad(HANDSHAKE, message, 1, 10);
		}
	}
}

static void tickets(void **state)
{
	static unsigned char ticket[140000];

	(void)state;
	/* in one record, in many, one behind the other, before a KeyUpdate */
	begin_as(TLS13_AES_128_GCM_SHA256, true);
	memcpy(ticket, "\4\0\0\xc8", 4);
	good(HANDSHAKE, ticket, 204);
	good(DATA, bytes, 10);
	for (size_t cut = 1; cut < 204; cut += 13) {
		good(HANDSHAKE, ticket, cut);
		good(HANDSHAKE, ticket + cut, 204 - cut);
		good(DATA, bytes, 10);
	}
	memcpy(ticket + 204, ticket, 204);
	memcpy(ticket + 408, "\x18\0\0\1\1", 5);
	good(HANDSHAKE, ticket, 408);
	good(HANDSHAKE, ticket, 413);
	assert_int_equal(us->seq[TLS13_IN], 0);
	good(DATA, bytes, 10);
	/* the longest that its fields make */
	memcpy(ticket, "\4\2\1\x9", 4);
	for (size_t at = 0; at < 4 + 0x20109; at += 16384)
		good(HANDSHAKE, ticket + at, 4 + 0x20109 - at < 16384 ? 4 + 0x20109 - at : 16384);
	good(DATA, bytes, 10);
	bad(HANDSHAKE, "\4\2\1\xa", 4, 50);
	begin_as(TLS13_AES_128_GCM_SHA256, true);
	bad(HANDSHAKE, "\4\0\0\0", 4, 50);
	begin_as(TLS13_AES_128_GCM_SHA256, true);
	good(HANDSHAKE, "\4\0\0\5xx", 6);
	bad(DATA, "x", 1, 10);
}

/* --- floods --- */

static void empty_records(void **state)
{
	static const struct { int type; const char *content; size_t n; } kinds[] = {
		{ DATA, "", 0 }, { ALERT, "\1\x5a", 2 }, { HANDSHAKE, "\x18\0\0\1\0", 5 }, { HANDSHAKE, "\4\0\0\1x", 5 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		begin_as(TLS13_AES_128_GCM_SHA256, true);
		for (int round = 0; round < 2 - (i == 2); round++) {
			for (unsigned j = 0; j < TLS13_EMPTY_MAX; j++)
				good_padded(kinds[i].type, kinds[i].content, kinds[i].n, j);
			if (i != 2)
				good(DATA, "x", 1);
		}
		for (unsigned j = 0; j < (i == 2 ? 0 : TLS13_EMPTY_MAX); j++)
			good_padded(kinds[i].type, kinds[i].content, kinds[i].n, j);
		bad(kinds[i].type, kinds[i].content, kinds[i].n, 10);
	}
	/* parts of a message count as well */
	begin_as(TLS13_AES_128_GCM_SHA256, true);
	good(HANDSHAKE, "\4\0\1\0", 4);
	for (unsigned j = 1; j < TLS13_EMPTY_MAX; j++)
		good(HANDSHAKE, "x", 1);
	bad(HANDSHAKE, "x", 1, 10);
}

/* A peer may change its keys with each record of data, and so often at once. */
static void update_floods(void **state)
{
	(void)state;
	begin();
	for (int i = 0; i < 1000; i++) {
		good(HANDSHAKE, "\x18\0\0\1\1", 5);
		good(DATA, "x", 1);
	}
	for (unsigned i = 0; i < TLS13_UPDATES_MAX; i++)
		good(HANDSHAKE, "\x18\0\0\1\0", 5);
	good(DATA, "x", 1);
	good(HANDSHAKE, "\x18\0\0\1\0", 5);
	bad(HANDSHAKE, "\x18\0\0\1\0", 5, 10);
}

/* --- numbers --- */

static void keys_are_replaced_in_time(void **state)
{
	static unsigned char out[1 << 17];
	struct iovec iov = { bytes, 50000 };
	size_t taken, sealed, used;
	struct str plain;

	(void)state;
	for (int suite = 0; suite < TLS13_SUITES; suite++) {
		begin_as(suite, false);
		us->seq[TLS13_OUT] = them->seq[TLS13_IN] = TLS13_KEY_RECORDS - 2;
		assert_int_equal(tls13_seal(sh, us, &iov, 1, out, sizeof(out), &taken, &sealed), OK);
		assert_int_equal(taken, 50000);
		assert_int_equal(sealed, 50000 + 4 * TLS13_EXTRA + TLS13_UPDATE);
		assert_int_equal(us->seq[TLS13_OUT], 2);
		assert_int_equal(tls13_open(sh, them, out, sealed, &used, &plain), TLS13_MORE);
		assert_int_equal(plain.n, 50000);
		assert_memory_equal(plain.p, bytes, 50000);
		/* one that does not do so by itself is asked to */
		assert_true(them->flags & TLS13_REKEY && them->flags & TLS13_ASK);
		assert_int_equal(tls13_seal(sh, them, &iov, 1, out, sizeof(out), &taken, &sealed), OK);
		assert_int_equal(tls13_open(sh, us, out, sealed, &used, &plain), TLS13_MORE);
		assert_int_equal(plain.n, 50000);
		assert_true(us->flags & TLS13_REKEY && !(us->flags & TLS13_ASK));
		end();
	}
}

static void numbers_do_not_wrap(void **state)
{
	(void)state;
	begin();
	us->seq[TLS13_IN] = UINT64_MAX - 1;
	good(DATA, bytes, 10);
	put_padded(DATA, bytes, 10, 0);
	refused(20);
	begin();
	us->seq[TLS13_OUT] = UINT64_MAX;
	unsigned char out[200];
	struct iovec iov = { bytes, 10 };
	size_t taken, sealed;
	assert_int_equal(tls13_seal(sh, us, &iov, 1, out, sizeof(out), &taken, &sealed), ERR_SYS);
	assert_int_equal(errno, ENOMEM);
	us->seq[TLS13_OUT] = 0;		/* and that is final */
	assert_int_equal(tls13_seal(sh, us, &iov, 1, out, sizeof(out), &taken, &sealed), ERR_SYS);
	assert_int_equal(errno, EPIPE);
	assert_int_equal(tls13_finish(sh, us, out), 0);
	end();
}

/* --- sealing --- */

static void pieces_and_room(void **state)
{
	static unsigned char out[1 << 18];
	struct iovec iov[6] = { { NULL, 0 }, { bytes, 1 }, { bytes + 1, 20000 }, { bytes, 0 }, { bytes + 20001, 3 },
		{ bytes + 20004, 40000 } };
	size_t taken, sealed, used;
	struct str plain;

	(void)state;
	for (size_t room = 0; room < 70000; room = room < 200 ? room + 1 : room + 977) {
		begin();
		for (int rekey = 0; rekey < 2; rekey++) {
			if (rekey)
				tls13_rekey(us, false);
			memset(out, 0xee, sizeof(out));
			assert_int_equal(tls13_seal(sh, us, iov, 6, out, room, &taken, &sealed), OK);
			assert_true(sealed <= room && taken <= 60004);
			assert_int_equal(out[room], 0xee);
			assert_true(taken || room <= TLS13_EXTRA + (rekey ? TLS13_UPDATE : 0));
			assert_int_equal(tls13_open(sh, them, out, sealed, &used, &plain), TLS13_MORE);
			assert_int_equal(used, sealed);
			assert_int_equal(plain.n, taken);
			assert_memory_equal(plain.p, bytes, taken);
		}
		end();
	}
	begin();
	assert_int_equal(tls13_seal(sh, us, NULL, 0, out, 100, &taken, &sealed), OK);
	assert_int_equal(taken + sealed, 0);
	end();
}

/* Two connections of one worker in turn, and one that comes where another was: contexts are keyed anew. */
static void connections_share_contexts(void **state)
{
	static unsigned char out[2000];
	struct tls13 *a[4], *b[4];
	struct iovec iov = { bytes, 100 };
	size_t taken, sealed, used;
	struct str plain;

	(void)state;
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 4; i++) {
			struct tls13_secret s = secret_of(10 * round + 2 * i), c = secret_of(10 * round + 2 * i + 1);

			a[i] = tls13_new(sh, i % 3, false, &c, &s);
			b[i] = tls13_new(sh, i % 3, true, &s, &c);
		}
		for (int i = 0; i < 200; i++) {
			struct tls13 *from = i & 1 ? a[i * 7 % 4] : b[i * 7 % 4], *to = i & 1 ? b[i * 7 % 4] : a[i * 7 % 4];

			if (i % 11 == 0)
				tls13_rekey(from, i % 2);
			assert_int_equal(tls13_seal(sh, from, &iov, 1, out, sizeof(out), &taken, &sealed), OK);
			assert_int_equal(tls13_open(sh, to, out, sealed, &used, &plain), TLS13_MORE);
			assert_int_equal(plain.n, 100);
			assert_memory_equal(plain.p, bytes, 100);
		}
		for (int i = 0; i < 4; i++) {
			tls13_free(sh, a[i]);
			tls13_free(sh, b[i]);
		}
	}
}

/* --- memory --- */

static bool holds(const unsigned char *p, size_t n, const unsigned char *what, size_t size)
{
	for (size_t i = 0; i + size <= n; i++)
		if (memcmp(p + i, what, size) == 0)
			return true;
	return false;
}

/* The mapping that a connection lies in has "dd" among its flags. */
static void secrets_are_in_no_core_dump(void **state)
{
	char line[512];

	(void)state;
	for (int suite = 0; suite < TLS13_SUITES; suite++) {
		bool here = false, found = false;
		FILE *f = fopen("/proc/self/smaps", "r");

		assert_non_null(f);
		begin_as(suite, false);
		while (fgets(line, sizeof(line), f)) {
			unsigned long from, to;
			if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
				here = (uintptr_t)us >= from && (uintptr_t)us < to;
			else if (here && strncmp(line, "VmFlags:", 8) == 0)
				found = strstr(line, " dd") != NULL;
		}
		fclose(f);
		assert_true(found);
		end();
	}
}

static void secrets_are_wiped(void **state)
{
	static const size_t sizes[] = { 56 + 120, 56 + 184, 56 + 152 };

	(void)state;
	for (int suite = 0; suite < TLS13_SUITES; suite++) {
		unsigned char key[184], *at;
		size_t n = sizes[suite] - 56;
		struct tls13 *kept;

		begin_as(suite, false);
		kept = them;	/* so that the chunk stays */
		at = (unsigned char *)us;
		memcpy(key, us->key, n);
		assert_true(holds(at, sizes[suite], key, 16));
		tls13_free(sh, us);
		SLAB_UNPOISON(at, sizes[suite]);
		for (size_t i = 8; i < sizes[suite]; i++)	/* before: the link of the free list */
			assert_int_equal(at[i], 0);
		SLAB_POISON(at, sizes[suite]);
		tls13_free(sh, kept);
	}
}

static void no_memory(void **state)
{
	struct budget_root root;
	struct budget budget;
	struct tls13_secret s = secret_of(3);
	struct tls13 *t;

	(void)state;
	mem_fail_from(1);
	assert_null(tls13_shared_new(NULL));
	mem_fail_from(0);
	budget_root_init(&root, SLAB_CHUNK);
	budget_init(&budget, &root);
	struct tls13_shared *own = tls13_shared_new(&budget);
	assert_non_null(own);
	mem_fail_from(1);
	assert_null(tls13_new(own, TLS13_AES_128_GCM_SHA256, false, &s, &s));
	mem_fail_from(0);
	t = tls13_new(own, TLS13_AES_128_GCM_SHA256, false, &s, &s);
	assert_non_null(t);
	assert_int_equal(budget.used, SLAB_CHUNK);
	assert_null(tls13_new(own, TLS13_AES_256_GCM_SHA384, false, &s, &s));	/* the budget is spent */
	tls13_free(own, t);
	tls13_free(own, NULL);
	tls13_shared_free(own);
	assert_int_equal(budget.used, 0);
	budget_fini(&budget);
	tls13_shared_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rfc8448),
		cmocka_unit_test(sizes_and_padding),
		cmocka_unit_test(records_too_large),
		cmocka_unit_test(records_too_small),
		cmocka_unit_test(unencrypted_records),
		cmocka_unit_test(unknown_types),
		cmocka_unit_test(tampering),
		cmocka_unit_test(any_cut),
		cmocka_unit_test(alerts),
		cmocka_unit_test(what_follows_the_end_is_ignored),
		cmocka_unit_test(nothing_is_sealed_behind_the_end),
		cmocka_unit_test(updates),
		cmocka_unit_test(an_update_takes_effect_at_once),
		cmocka_unit_test(one_answer_for_many_updates),
		cmocka_unit_test(bad_updates),
		cmocka_unit_test(other_messages),
		cmocka_unit_test(tickets),
		cmocka_unit_test(empty_records),
		cmocka_unit_test(update_floods),
		cmocka_unit_test(keys_are_replaced_in_time),
		cmocka_unit_test(numbers_do_not_wrap),
		cmocka_unit_test(pieces_and_room),
		cmocka_unit_test(connections_share_contexts),
		cmocka_unit_test(secrets_are_in_no_core_dump),
		cmocka_unit_test(secrets_are_wiped),
		cmocka_unit_test(no_memory),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
