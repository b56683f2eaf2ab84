/* lib/net/tls13_take: connections that OpenSSL has begun, with OpenSSL at the other end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <openssl/err.h>

#include "lib/base/mem.h"
#include "tests/unit/tls_peer.h"

static const char *const suites[] = { "TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256" };

#define PERIOD (1u << 17)

static unsigned char data[2 * PERIOD];	/* random, and twice the same: a stream of it may begin anywhere */

/* One connection between what is under test and OpenSSL. */
struct world {
	SSL_CTX *server, *client;
	struct tls13_shared *sh;
	struct tls_half us;
	struct tls_peer peer;
};

static uint32_t next(uint32_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 17;
	*seed ^= *seed << 5;
	return *seed;
}

static void contexts(struct world *w, const char *suite)
{
	uint32_t seed = 7;

	memset(w, 0, sizeof(*w));
	w->server = tls_peer_ctx(true, suite);
	w->client = tls_peer_ctx(false, suite);
	w->sh = tls13_shared_new(NULL);
	assert_non_null(w->sh);
	for (size_t i = 0; i < PERIOD; i++)
		data[i] = data[i + PERIOD] = (unsigned char)next(&seed);
}

static void connect_two(struct world *w, bool as_server)
{
	tls_half_init(&w->us, as_server ? w->server : w->client, as_server);
	tls_peer_init(&w->peer, as_server ? w->client : w->server, !as_server);
}

static void disconnect(struct world *w)
{
	tls_half_fini(&w->us, w->sh);
	tls_peer_fini(&w->peer);
}

static void destroy(struct world *w)
{
	tls13_shared_free(w->sh);
	SSL_CTX_free(w->server);
	SSL_CTX_free(w->client);
}

/* Reads what is there, as an upstream that has had its answer: SSL_read until nothing comes. */
static void drain(struct tls_half *h)
{
	char got[4096];
	size_t n;

	h->feed.in = (struct str){ (char *)h->bytes, h->n };
	while (SSL_read_ex(h->ssl, got, sizeof(got), &n) == 1)
		;
	memmove(h->bytes, h->feed.in.p, h->feed.in.n);
	h->n = h->feed.in.n;
}

static void every_size(struct world *w)
{
	static const size_t borders[] = {
		1, 2, 15, 16, 17, 100, 255, 256, 1023, 1024, 4096, 8191, 16367, 16368, 16383, 16384, 16385, 20000, 32768, 50001,
	};
	uint32_t seed = 11;

	for (size_t i = 0; i < sizeof(borders) / sizeof(*borders); i++) {
		tls_peer_says(&w->us, &w->peer, w->sh, data + i, borders[i]);
		tls_half_says(&w->us, &w->peer, w->sh, data + i, borders[i]);
	}
	for (int i = 0; i < 40; i++) {
		size_t n = 1 + next(&seed) % 16384;

		tls_peer_says(&w->us, &w->peer, w->sh, data + n, n);
		tls_half_says(&w->us, &w->peer, w->sh, data, n);
	}
}

/* New keys on both sides, asked for and not, between data. */
static void every_update(struct world *w)
{
	tls_peer_says(&w->us, &w->peer, w->sh, data, 100);
	assert_true(SSL_key_update(w->peer.ssl, SSL_KEY_UPDATE_NOT_REQUESTED));
	tls_peer_says(&w->us, &w->peer, w->sh, data, 40000);
	assert_false(w->us.t->flags & TLS13_REKEY);
	tls_half_says(&w->us, &w->peer, w->sh, data, 40000);
	assert_true(SSL_key_update(w->peer.ssl, SSL_KEY_UPDATE_REQUESTED));
	tls_peer_says(&w->us, &w->peer, w->sh, data, 40000);
	assert_true(w->us.t->flags & TLS13_REKEY);
	tls_half_says(&w->us, &w->peer, w->sh, data, 40000);
	assert_false(w->us.t->flags & TLS13_REKEY);
	assert_int_equal(w->us.t->seq[TLS13_OUT], 3);
	tls_half_says(&w->us, &w->peer, w->sh, data, 40000);
	tls13_rekey(w->us.t, false);
	tls_half_says(&w->us, &w->peer, w->sh, data, 5);
	tls_peer_says(&w->us, &w->peer, w->sh, data, 5);
	tls13_rekey(w->us.t, true);
	tls_half_says(&w->us, &w->peer, w->sh, data, 17000);
	assert_int_equal(w->us.t->seq[TLS13_OUT], 2);
	tls_peer_says(&w->us, &w->peer, w->sh, data, 17000);
	assert_int_equal(w->us.t->seq[TLS13_IN], 2);	/* it has answered */
}

static void both_end(struct world *w)
{
	unsigned char alert[TLS13_ALERT];
	char c;
	size_t n = tls13_finish(w->sh, w->us.t, alert), used, got;
	struct str plain;

	assert_int_equal(n, TLS13_ALERT);
	assert_int_equal(BIO_write(w->peer.in, alert, (int)n), n);
	assert_int_equal(SSL_read_ex(w->peer.ssl, &c, 1, &got), 0);
	assert_int_equal(SSL_get_error(w->peer.ssl, 0), SSL_ERROR_ZERO_RETURN);
	assert_int_equal(tls13_finish(w->sh, w->us.t, alert), 0);
	/* its direction is open still */
	tls_peer_says(&w->us, &w->peer, w->sh, data, 1000);
	assert_int_equal(SSL_shutdown(w->peer.ssl), 1);
	tls_move(&w->us, &w->peer);
	assert_int_equal(tls13_open(w->sh, w->us.t, w->us.bytes, w->us.n, &used, &plain), TLS13_END);
	assert_int_equal(plain.n, 0);
}

static void all_suites_roles_and_tickets(void **state)
{
	static struct world w;

	(void)state;
	for (int suite = 0; suite < 3; suite++) {
		contexts(&w, suites[suite]);
		for (unsigned tickets = 0; tickets < 3; tickets++) {
			SSL_CTX_set_num_tickets(w.server, tickets);
			for (int as_server = 0; as_server < 2; as_server++) {
				connect_two(&w, as_server);
				tls_shake(&w.us, &w.peer);
				tls_take(&w.us, w.sh);
				assert_int_equal(w.us.t->suite, suite);
				if (as_server)
					assert_int_equal(w.us.t->seq[TLS13_OUT], tickets);
				every_size(&w);
				every_update(&w);
				every_size(&w);
				both_end(&w);
				disconnect(&w);
			}
		}
		destroy(&w);
	}
}

/* A request in the same flight as the client's Finished is neither lost nor read by OpenSSL. */
static void data_behind_the_handshake(void **state)
{
	static struct world w;
	size_t used;
	struct str plain;

	(void)state;
	contexts(&w, NULL);
	connect_two(&w, true);
	for (int i = 0; i < 3 && SSL_do_handshake(w.peer.ssl) != 1; i++) {
		tls_move(&w.us, &w.peer);
		w.us.feed.in = (struct str){ (char *)w.us.bytes, w.us.n };
		SSL_do_handshake(w.us.ssl);
		w.us.n = 0;
		tls_move(&w.us, &w.peer);
	}
	assert_int_equal(SSL_write(w.peer.ssl, "GET / HTTP/1.1\r\n", 16), 16);
	assert_int_equal(SSL_write(w.peer.ssl, "\r\n", 2), 2);
	tls_move(&w.us, &w.peer);
	w.us.feed.in = (struct str){ (char *)w.us.bytes, w.us.n };
	assert_int_equal(SSL_do_handshake(w.us.ssl), 1);
	struct str left = w.us.feed.in;
	assert_int_equal(left.n, 16 + 2 + 2 * TLS13_EXTRA);
	tls_take(&w.us, w.sh);
	assert_int_equal(tls13_open(w.sh, w.us.t, (void *)left.p, left.n, &used, &plain), TLS13_MORE);
	assert_int_equal(used, left.n);
	assert_int_equal(plain.n, 18);
	assert_memory_equal(plain.p, "GET / HTTP/1.1\r\n\r\n", 18);
	tls_half_says(&w.us, &w.peer, w.sh, data, 100);
	disconnect(&w);
	destroy(&w);
}

/* An upstream is taken after its first exchange: what both sides have read and written is counted. */
static void after_an_exchange(void **state)
{
	static struct world w;
	char got[300];
	size_t n;

	(void)state;
	for (int as_server = 0; as_server < 2; as_server++) {
		contexts(&w, NULL);
		connect_two(&w, as_server);
		tls_shake(&w.us, &w.peer);
		for (int i = 0; i < 5; i++) {
			assert_int_equal(SSL_write(w.us.ssl, data, 200), 200);
			tls_move(&w.us, &w.peer);
			assert_int_equal(SSL_read_ex(w.peer.ssl, got, 200, &n), 1);
			assert_int_equal(SSL_write(w.peer.ssl, data, 300), 300);
			tls_move(&w.us, &w.peer);
			drain(&w.us);
			assert_int_equal(w.us.n, 0);
		}
		tls_take(&w.us, w.sh);
		assert_int_equal(w.us.t->seq[TLS13_OUT], as_server ? 7 : 5);
		assert_int_equal(w.us.t->seq[TLS13_IN], as_server ? 5 : 7);
		every_size(&w);
		every_update(&w);
		both_end(&w);
		disconnect(&w);
		destroy(&w);
	}
}

/* --- sessions --- */

static SSL_SESSION *kept;

static int on_session(SSL *ssl, SSL_SESSION *s)
{
	(void)ssl;
	SSL_SESSION_free(kept);
	kept = s;
	return 1;
}

/* What both ends need to resume survives the take of either. */
static void resumption(void **state)
{
	static struct world w;

	(void)state;
	for (int as_server = 0; as_server < 2; as_server++) {
		contexts(&w, NULL);
		SSL_CTX_set_session_cache_mode(w.client, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
		SSL_CTX_sess_set_new_cb(w.client, on_session);
		for (int i = 0; i < 3; i++) {
			connect_two(&w, as_server);
			SSL *client = as_server ? w.peer.ssl : w.us.ssl;
			if (i)
				assert_true(SSL_set_session(client, kept));
			tls_shake(&w.us, &w.peer);
			assert_int_equal(SSL_session_reused(client), i > 0);
			if (as_server) {
				char c;
				size_t n;

				assert_int_equal(SSL_read_ex(w.peer.ssl, &c, 1, &n), 0);
			} else {
				drain(&w.us);
			}
			assert_non_null(kept);
			tls_take(&w.us, w.sh);
			assert_true(SSL_SESSION_is_resumable(kept));
			every_size(&w);
			if (as_server)	/* OpenSSL takes it for spoiled otherwise */
				SSL_shutdown(w.peer.ssl);
			disconnect(&w);
		}
		SSL_SESSION_free(kept);
		kept = NULL;
		destroy(&w);
	}
}

/* --- other handshakes --- */

static void a_second_hello_and_client_certificates(void **state)
{
	static struct world w;
	struct tls_made c;

	(void)state;
	for (int as_server = 0; as_server < 2; as_server++) {
		contexts(&w, NULL);
		assert_true(SSL_CTX_set1_groups_list(w.server, "P-384"));
		tls_made_init(&c, "RSA", "client", NULL);
		assert_true(SSL_CTX_use_certificate(w.client, c.x509));
		assert_true(SSL_CTX_use_PrivateKey(w.client, c.key));
		assert_true(X509_STORE_add_cert(SSL_CTX_get_cert_store(w.server), c.x509));
		SSL_CTX_set_verify(w.server, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
		tls_made_fini(&c);
		connect_two(&w, as_server);
		tls_shake(&w.us, &w.peer);
		tls_take(&w.us, w.sh);
		every_size(&w);
		every_update(&w);
		disconnect(&w);
		destroy(&w);
	}
}

/* --- when it must not be taken --- */

static enum tls13_taken try_take(struct world *w)
{
	struct tls13 *t = (void *)1;
	enum tls13_taken r = tls13_take(w->sh, w->us.ssl, &w->us.watch, &t);

	assert_true(r != TLS13_TAKEN && t == (void *)1);
	return r;
}

static void not_before_the_end_of_the_handshake(void **state)
{
	static struct world w;

	(void)state;
	for (int as_server = 0; as_server < 2; as_server++) {
		contexts(&w, NULL);
		connect_two(&w, as_server);
		assert_int_equal(try_take(&w), TLS13_NOT_NOW);
		SSL_do_handshake(w.peer.ssl);
		tls_move(&w.us, &w.peer);
		w.us.feed.in = (struct str){ (char *)w.us.bytes, w.us.n };
		SSL_do_handshake(w.us.ssl);
		assert_int_equal(try_take(&w), TLS13_NOT_NOW);
		disconnect(&w);
		destroy(&w);
	}
}

/* Hands `n` bytes of what the peer has sent to OpenSSL, which wants more of it. */
static void read_part(struct world *w, size_t n)
{
	char c[64];
	size_t got;

	assert_true(n <= w->us.n);
	w->us.feed.in = (struct str){ (char *)w->us.bytes, n };
	SSL_read_ex(w->us.ssl, c, sizeof(c), &got);
	assert_int_equal(w->us.feed.in.n, 0);
	memmove(w->us.bytes, w->us.bytes + n, w->us.n - n);
	w->us.n -= n;
}

/* OpenSSL reads a record, the first of the peer, with any content. */
static void read_inner(struct world *w, int type, const void *content, size_t n)
{
	const struct tls13_watch *seen = &w->us.watch;
	struct tls13 *t = tls13_new(w->sh, TLS13_AES_256_GCM_SHA384, true, &seen->secret[TLS13_IN], &seen->secret[TLS13_OUT]);

	assert_non_null(t);
	w->us.n = tls_inner(t, TLS13_IN, 0, type, content, n, 0, w->us.bytes);
	read_part(w, w->us.n);
	tls13_free(w->sh, t);
}

static void not_while_bytes_are_inside(void **state)
{
	static struct world w;
	char got[2000];
	size_t n;

	(void)state;
	for (size_t cut = 1; cut < 1000 + TLS13_EXTRA; cut = cut < 10 ? cut + 1 : cut + 97) {
		contexts(&w, NULL);
		SSL_CTX_set_num_tickets(w.server, 0);
		connect_two(&w, cut % 2);
		tls_shake(&w.us, &w.peer);
		assert_int_equal(SSL_write(w.peer.ssl, data, 1000), 1000);
		tls_move(&w.us, &w.peer);
		read_part(&w, cut);
		assert_int_equal(try_take(&w), TLS13_NOT_NOW);
		/* the rest, but not all of it is asked for */
		w.us.feed.in = (struct str){ (char *)w.us.bytes, w.us.n };
		assert_int_equal(SSL_read_ex(w.us.ssl, got, 999, &n), 1);
		w.us.n = 0;
		assert_int_equal(try_take(&w), TLS13_NOT_NOW);
		assert_int_equal(SSL_read_ex(w.us.ssl, got, 1, &n), 1);
		tls_take(&w.us, w.sh);
		assert_int_equal(w.us.t->seq[TLS13_IN], 1);
		every_size(&w);
		disconnect(&w);
		destroy(&w);
	}
}

/* SSL_has_pending does not tell of the beginning of a handshake message. */
static void not_within_a_message(void **state)
{
	static struct world w;
	static const unsigned char ticket[] = { 4, 0, 0, 60 };

	(void)state;
	for (size_t n = 1; n <= 4; n++) {
		contexts(&w, NULL);
		SSL_CTX_set_num_tickets(w.server, 0);
		connect_two(&w, false);
		tls_shake(&w.us, &w.peer);
		read_inner(&w, 22, ticket, n);
		assert_int_equal(SSL_has_pending(w.us.ssl), 0);
		assert_int_equal(try_take(&w), TLS13_NOT_NOW);
		disconnect(&w);
		destroy(&w);
	}
}

static void assert_never(struct world *w)
{
	assert_int_equal(try_take(w), TLS13_NEVER);
	/* and the SSL object is as good as it was */
	assert_int_equal(SSL_write(w->us.ssl, data, 100), 100);
	disconnect(w);
	destroy(w);
}

static void never_tls12(void **state)
{
	static struct world w;

	(void)state;
	for (int as_server = 0; as_server < 2; as_server++) {
		contexts(&w, NULL);
		SSL_CTX_set_min_proto_version(w.server, TLS1_2_VERSION);
		SSL_CTX_set_min_proto_version(w.client, TLS1_2_VERSION);
		SSL_CTX_set_max_proto_version(w.client, TLS1_2_VERSION);
		connect_two(&w, as_server);
		tls_shake(&w.us, &w.peer);
		assert_never(&w);
	}
}

static void never_after_an_update(void **state)
{
	static struct world w;

	(void)state;
	for (int as_server = 0; as_server < 2; as_server++) {
		for (int theirs = 0; theirs < 2; theirs++) {
			contexts(&w, NULL);
			connect_two(&w, as_server);
			tls_shake(&w.us, &w.peer);
			SSL_key_update(theirs ? w.peer.ssl : w.us.ssl, SSL_KEY_UPDATE_NOT_REQUESTED);
			if (theirs) {
				assert_int_equal(SSL_write(w.peer.ssl, data, 10), 10);
				tls_move(&w.us, &w.peer);
				drain(&w.us);
			} else {
				assert_int_equal(try_take(&w), TLS13_NOT_NOW);	/* it is not written yet */
				assert_int_equal(SSL_write(w.us.ssl, data, 10), 10);
			}
			assert_never(&w);
		}
	}
}

static void never_with_short_fragments(void **state)
{
	static struct world w;

	(void)state;
	for (int as_server = 0; as_server < 2; as_server++) {
		contexts(&w, NULL);
		assert_true(SSL_CTX_set_tlsext_max_fragment_length(w.client, TLSEXT_max_fragment_length_1024));
		connect_two(&w, as_server);
		tls_shake(&w.us, &w.peer);
		assert_never(&w);
	}
}

static void never_with_authentication_to_come(void **state)
{
	static struct world w;

	(void)state;
	contexts(&w, NULL);
	SSL_CTX_set_verify(w.server, SSL_VERIFY_PEER | SSL_VERIFY_POST_HANDSHAKE, NULL);
	SSL_CTX_set_post_handshake_auth(w.client, 1);
	connect_two(&w, true);
	tls_shake(&w.us, &w.peer);
	assert_never(&w);
}

/* Alerts of any kind, and an end that was only noted. */
static void never_after_an_end(void **state)
{
	static struct world w;

	(void)state;
	contexts(&w, NULL);
	connect_two(&w, true);
	tls_shake(&w.us, &w.peer);
	read_inner(&w, 21, "\1\x5a", 2);	/* user_canceled */
	assert_never(&w);

	contexts(&w, NULL);
	connect_two(&w, true);
	tls_shake(&w.us, &w.peer);
	SSL_set_shutdown(w.us.ssl, SSL_RECEIVED_SHUTDOWN);
	assert_never(&w);

	contexts(&w, NULL);
	connect_two(&w, true);
	tls_shake(&w.us, &w.peer);
	SSL_shutdown(w.peer.ssl);
	tls_move(&w.us, &w.peer);
	drain(&w.us);
	assert_never(&w);
}

/* A server that takes early data, and a client that sends some, refused or not. */
static void never_with_early_data(void **state)
{
	static struct world w;
	char got[64];
	size_t n;

	(void)state;
	for (int refused = 0; refused < 2; refused++) {
		contexts(&w, NULL);
		SSL_CTX_set_max_early_data(w.server, 1000);
		SSL_CTX_set_session_cache_mode(w.client, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
		SSL_CTX_sess_set_new_cb(w.client, on_session);
		connect_two(&w, true);
		tls_shake(&w.us, &w.peer);
		SSL_read_ex(w.peer.ssl, got, 1, &n);
		SSL_shutdown(w.peer.ssl);
		SSL_shutdown(w.us.ssl);
		disconnect(&w);
		if (refused)
			SSL_CTX_set_max_early_data(w.server, 0);
		connect_two(&w, true);
		SSL_set_session(w.peer.ssl, kept);
		assert_int_equal(SSL_write_early_data(w.peer.ssl, "early", 5, &n), 1);
		tls_move(&w.us, &w.peer);
		w.us.feed.in = (struct str){ (char *)w.us.bytes, w.us.n };
		if (!refused) {
			assert_int_equal(SSL_read_early_data(w.us.ssl, got, sizeof(got), &n), SSL_READ_EARLY_DATA_SUCCESS);
			assert_int_equal(n, 5);
			memmove(w.us.bytes, w.us.feed.in.p, w.us.feed.in.n);
			w.us.n = w.us.feed.in.n;
		}
		tls_shake(&w.us, &w.peer);
		assert_int_equal(SSL_get_early_data_status(w.us.ssl), refused ? SSL_EARLY_DATA_REJECTED : SSL_EARLY_DATA_ACCEPTED);
		SSL_SESSION_free(kept);
		kept = NULL;
		assert_never(&w);
	}
}

/* What a full buffer did not take is gone: such a connection is not parked. */
static void never_when_a_write_was_lost(void **state)
{
	static struct world w;

	(void)state;
	contexts(&w, NULL);
	connect_two(&w, true);
	tls_shake(&w.us, &w.peer);
	w.us.feed.limit = 10;
	assert_true(SSL_write(w.us.ssl, data, 100) <= 0);
	assert_int_equal(try_take(&w), TLS13_NEVER);
	w.us.feed.limit = 1 << 20;	/* what comes later must not go out without it */
	assert_true(SSL_write(w.us.ssl, data, 100) <= 0);
	assert_null(w.us.feed.out);
	disconnect(&w);
	destroy(&w);
}

/* --- memory --- */

static size_t allocs, fail_at;	/* of OpenSSL */

static void *count_malloc(size_t n, const char *file, int line)
{
	(void)file;
	(void)line;
	return fail_at && ++allocs >= fail_at ? NULL : malloc(n);
}

static void *count_realloc(void *p, size_t n, const char *file, int line)
{
	(void)file;
	(void)line;
	return fail_at && ++allocs >= fail_at ? NULL : realloc(p, n);
}

static void count_free(void *p, const char *file, int line)
{
	(void)file;
	(void)line;
	free(p);
}

/* Whatever is refused, the SSL object lives on and can be taken later. */
static void no_memory(void **state)
{
	static struct world w;
	struct tls13 *t;
	enum tls13_taken r;

	(void)state;
	for (int suite = 0; suite < 3; suite++) {
		contexts(&w, suites[suite]);
		for (int of_openssl = 0; of_openssl < 2; of_openssl++) {
			size_t failed = 0;

			for (size_t n = 1; ; n++) {
				tls13_shared_free(w.sh);
				w.sh = tls13_shared_new(NULL);
				connect_two(&w, true);
				tls_shake(&w.us, &w.peer);
				allocs = 0;
				if (of_openssl)
					fail_at = n;
				else
					mem_fail_from(n);
				r = tls13_take(w.sh, w.us.ssl, &w.us.watch, &t);
				fail_at = 0;
				mem_fail_from(0);
				if (r == TLS13_TAKEN)
					break;
				failed++;
				assert_int_equal(r, TLS13_NO_MEMORY);
				assert_int_equal(ERR_peek_error(), 0);
				assert_int_equal(SSL_write(w.us.ssl, data, 100), 100);
				tls_move(&w.us, &w.peer);
				assert_int_equal(SSL_read(w.peer.ssl, data + 1000, 100), 100);
				tls_take(&w.us, w.sh);
				tls_half_says(&w.us, &w.peer, w.sh, data, 100);
				disconnect(&w);
			}
			assert_true(failed >= (of_openssl ? 5 : 1));
			w.us.t = t;
			tls_half_says(&w.us, &w.peer, w.sh, data, 100);
			disconnect(&w);
		}
		destroy(&w);
	}
}

/* What a process asks itself at its start; and with too little memory it says no, and leaves nothing behind. */
static void the_trial(void **state)
{
	(void)state;
	assert_true(tls13_trial());
	for (size_t n = 1; ; n += 1 + n / 8) {
		allocs = 0;
		fail_at = n;
		bool good = tls13_trial();
		fail_at = 0;
		assert_int_equal(ERR_peek_error(), 0);
		if (good)
			break;
	}
	assert_true(allocs > 1000);
	for (size_t n = 1; ; n++) {
		mem_fail_from(n);
		bool good = tls13_trial();
		mem_fail_from(0);
		if (good)
			break;
	}
}

/* --- at random --- */

struct flow {
	size_t sent, got;	/* bytes */
};

static void flow_got(struct flow *f, const void *p, size_t n)
{
	assert_true(f->got + n <= f->sent);
	if (n)
		assert_memory_equal(p, data + f->got % PERIOD, n);
	f->got += n;
}

static void peer_writes(struct world *w, struct flow *in, size_t n, uint32_t *seed)
{
	if (next(seed) % 4 == 0 && SSL_get_key_update_type(w->peer.ssl) == SSL_KEY_UPDATE_NONE)
		SSL_key_update(w->peer.ssl, next(seed) % 2 ? SSL_KEY_UPDATE_REQUESTED : SSL_KEY_UPDATE_NOT_REQUESTED);
	if (in->sent - in->got > 50000)
		return;
	assert_int_equal(SSL_write(w->peer.ssl, data + in->sent % PERIOD, (int)n), n);
	in->sent += n;
}

static void we_write(struct world *w, struct flow *out, size_t n, uint32_t *seed)
{
	static unsigned char bytes[1 << 16];
	unsigned char *p = data + out->sent % PERIOD;
	struct iovec iov[3] = { { p, n / 3 }, { NULL, 0 }, { p + n / 3, n - n / 3 } };
	size_t taken, sealed;

	if (next(seed) % 4 == 0)
		tls13_rekey(w->us.t, next(seed) % 2);
	assert_int_equal(tls13_seal(w->sh, w->us.t, iov, 3, bytes, 50 + next(seed) % 40000, &taken, &sealed), OK);
	assert_int_equal(BIO_write(w->peer.in, bytes, (int)sealed), sealed);
	out->sent += taken;
}

static void both_read(struct world *w, struct flow *in, struct flow *out, uint32_t *seed)
{
	static unsigned char bytes[1 << 16];
	struct str plain;
	size_t used, n;
	int got;

	while (SSL_read_ex(w->peer.ssl, bytes, 1 + next(seed) % sizeof(bytes), &n) == 1)
		flow_got(out, bytes, n);
	got = BIO_read(w->peer.out, w->us.bytes + w->us.n, (int)(1 + next(seed) % 20000));
	w->us.n += got > 0 ? (size_t)got : 0;
	assert_int_equal(tls13_open(w->sh, w->us.t, w->us.bytes, w->us.n, &used, &plain), TLS13_MORE);
	flow_got(in, plain.p, plain.n);
	memmove(w->us.bytes, w->us.bytes + used, w->us.n - used);
	w->us.n -= used;
	assert_true(w->us.n < TLS13_RECORD);
}

/* Both ways at once, cut anywhere, with new keys now and then. */
static void walk(uint32_t seed, bool as_server)
{
	static struct world w;
	struct flow in = {0}, out = {0};

	contexts(&w, suites[seed % 3]);
	SSL_CTX_set_num_tickets(w.server, seed % 4);
	connect_two(&w, as_server);
	tls_shake(&w.us, &w.peer);
	tls_take(&w.us, w.sh);
	while (in.got < 2 * PERIOD || out.got < 2 * PERIOD) {
		size_t n = 1 + next(&seed) % (next(&seed) % 2 ? 100 : 30000);

		if (next(&seed) % 2)
			peer_writes(&w, &in, n, &seed);
		else
			we_write(&w, &out, n, &seed);
		both_read(&w, &in, &out, &seed);
	}
	assert_int_equal(out.got, out.sent);
	disconnect(&w);
	destroy(&w);
}

static void at_random(void **state)
{
	(void)state;
	for (uint32_t seed = 1; seed <= 24; seed++)
		walk(seed, seed % 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_suites_roles_and_tickets),
		cmocka_unit_test(data_behind_the_handshake),
		cmocka_unit_test(after_an_exchange),
		cmocka_unit_test(resumption),
		cmocka_unit_test(a_second_hello_and_client_certificates),
		cmocka_unit_test(not_before_the_end_of_the_handshake),
		cmocka_unit_test(not_while_bytes_are_inside),
		cmocka_unit_test(not_within_a_message),
		cmocka_unit_test(never_tls12),
		cmocka_unit_test(never_after_an_update),
		cmocka_unit_test(never_with_short_fragments),
		cmocka_unit_test(never_with_authentication_to_come),
		cmocka_unit_test(never_after_an_end),
		cmocka_unit_test(never_with_early_data),
		cmocka_unit_test(never_when_a_write_was_lost),
		cmocka_unit_test(no_memory),
		cmocka_unit_test(the_trial),
		cmocka_unit_test(at_random),
	};

	assert_true(CRYPTO_set_mem_functions(count_malloc, count_realloc, count_free));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
