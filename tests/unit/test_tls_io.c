/* lib/net/tls_io, lib/net/tls_live: data both ways through small sockets, by an SSL object and parked; the ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <fcntl.h>

#include "lib/net/tls_io.h"
#include "tests/unit/tls_peer.h"

struct world {
	SSL_CTX *ours, *theirs;
	SSL *peer;
	int fd;			/* the peer's */
	struct tls_io io;
	struct transport t;
	union tls_state s;
	char scratch[128 * 1024];
};

static void quiet(int fd)
{
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

static void world_init(struct world *w, bool tls13)
{
	int pair[2], small = 4096;

	memset(w, 0, sizeof *w);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	for (int i = 0; i < 2; i++) {
		quiet(pair[i]);
		setsockopt(pair[i], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
	}
	w->ours = tls_peer_ctx(true, "TLS_AES_128_GCM_SHA256");
	w->theirs = tls_peer_ctx(false, "TLS_AES_128_GCM_SHA256");
	if (!tls13) {
		SSL_CTX_set_min_proto_version(w->ours, TLS1_2_VERSION);
		SSL_CTX_set_max_proto_version(w->ours, TLS1_2_VERSION);
		SSL_CTX_set_min_proto_version(w->theirs, TLS1_2_VERSION);
		SSL_CTX_set_max_proto_version(w->theirs, TLS1_2_VERSION);
	}
	assert_int_equal(tls13_watch_ctx(w->ours), OK);
	assert_int_equal(tls_io_init(&w->io, NULL), OK);
	w->peer = SSL_new(w->theirs);
	SSL_set_connect_state(w->peer);
	SSL_set_fd(w->peer, w->fd = pair[1]);
	SSL *ssl = SSL_new(w->ours);
	SSL_set_accept_state(ssl);
	w->t = (struct transport){ .fd = pair[0], .type = TRANSPORT_TLS };
	w->s.live = tls_live_new(ssl, true, NULL);
	assert_non_null(w->s.live);
}

static void world_fini(struct world *w)
{
	tls_io_free(&w->io, &w->t, w->s);
	tls_io_fini(&w->io);
	SSL_free(w->peer);
	SSL_CTX_free(w->ours);
	SSL_CTX_free(w->theirs);
	close(w->fd);
	close(w->t.fd);
}

/* Both hands are shaken; with `park` the connection is parked then, with what came behind the handshake. */
static void shake(struct world *w, bool park)
{
	bool peer = false;

	for (int i = 0; i < 1000 && !(peer && w->s.live->done && tls_io_flush(&w->io, &w->t, w->s) == 0); i++) {
		char in[8192];
		ssize_t n;

		peer = peer || SSL_do_handshake(w->peer) == 1;
		n = transport_read(&w->t, in, sizeof in);
		if (n > 0)
			assert_int_not_equal(tls_live_shake(w->s.live, (struct str){ in, (size_t)n }, false), TLS_LIVE_BAD);
		assert_true(tls_io_flush(&w->io, &w->t, w->s) >= 0);
	}
	assert_true(peer && w->s.live->done);
	if (!park)
		return;
	struct tls_live *l = w->s.live;
	struct tls13 *parked;
	assert_int_equal(tls13_take(w->io.sh, l->ssl, &l->watch, &parked), TLS13_TAKEN);
	parked->in = l->in;
	if (parked->in)
		parked->in->mark = 1;
	l->in = NULL;
	tls_live_free(l);
	w->s.parked = parked;
	w->t.type = TRANSPORT_TLS13;
}

static unsigned char octet(size_t i)
{
	return (unsigned char)(i * 7 + (i >> 8) * 13 + (i >> 16));
}

/* Sends `n` bytes in pieces of odd sizes through a socket that takes little; what is not taken is given again. */
static void we_say(struct world *w, size_t n)
{
	static unsigned char data[1 << 20], got[1 << 16];
	size_t sent = 0, read = 0, seed = 1;
	unsigned stuck = 0;

	for (size_t i = 0; i < n; i++)
		data[i] = octet(i);
	while (read < n) {
		struct iovec iov[3];
		size_t at = sent;
		ssize_t r;
		int k = 0;

		for (; k < 3 && at < n; k++) {
			size_t piece = (seed = seed * 1103515245 + 12345) % 40000 % (n - at) + 1;

			iov[k] = (struct iovec){ data + at, piece };
			at += piece;
		}
		if (k) {
			r = tls_io_writev(&w->io, &w->t, w->s, iov, k);
			assert_true(r > 0 || errno == EAGAIN);
			sent += r > 0 ? (size_t)r : 0;
		}
		r = SSL_read(w->peer, got, sizeof got);
		for (ssize_t i = 0; i < r; i++)
			assert_int_equal(got[i], data[read + (size_t)i]);
		read += r > 0 ? (size_t)r : 0;
		stuck = r > 0 ? 0 : stuck + 1;
		assert_true(stuck < 1000);
	}
	assert_int_equal(sent, n);
	assert_int_equal(tls_io_flush(&w->io, &w->t, w->s), 0);
}

static void peer_says(struct world *w, size_t n)
{
	static unsigned char data[1 << 20];
	size_t sent = 0, read = 0;
	unsigned stuck = 0;
	struct str plain;
	bool empty;

	for (size_t i = 0; i < n; i++)
		data[i] = octet(i + 3);
	while (read < n) {
		int k = sent < n ? SSL_write(w->peer, data + sent, (int)(n - sent < 30000 ? n - sent : 30000)) : 0;
		ssize_t r;

		sent += k > 0 ? (size_t)k : 0;
		r = tls_io_read(&w->io, &w->t, w->s, w->scratch, sizeof w->scratch, 1 + sent % 9000, &plain, &empty);
		assert_true(r > 0 || (r < 0 && errno == EAGAIN));
		if (r > 0) {
			assert_int_equal(plain.n, r);
			assert_memory_equal(plain.p, data + read, plain.n);
			read += plain.n;
		}
		stuck = r > 0 || k > 0 ? 0 : stuck + 1;
		assert_true(stuck < 1000);
	}
	assert_int_equal(read, n);
}

static void both_ways(void **state)
{
	for (int how = 0; how < 3; how++) {	/* TLS 1.2, TLS 1.3 with its object, parked */
		struct world *w = malloc(sizeof *w);

		(void)state;
		world_init(w, how > 0);
		shake(w, how == 2);
		for (size_t n = 1; n < 1 << 20; n = n * 3 + 1) {
			we_say(w, n);
			peer_says(w, n);
		}
		world_fini(w);
		free(w);
	}
}

static void ends(void **state)
{
	for (int how = 0; how < 3; how++) {
		struct world *w = malloc(sizeof *w);
		struct str plain;
		bool empty;
		char byte;

		(void)state;
		world_init(w, how > 0);
		shake(w, how == 2);
		assert_int_equal(SSL_write(w->peer, "last", 4), 4);
		SSL_shutdown(w->peer);
		assert_int_equal(tls_io_read(&w->io, &w->t, w->s, w->scratch, sizeof w->scratch, 100, &plain, &empty), 4);
		assert_int_equal(tls_io_read(&w->io, &w->t, w->s, w->scratch, sizeof w->scratch, 100, &plain, &empty), 0);
		assert_int_equal(tls_io_read(&w->io, &w->t, w->s, w->scratch, sizeof w->scratch, 100, &plain, &empty), 0);
		we_say(w, 10);	/* the other way goes on */
		tls_io_finish(&w->io, &w->t, w->s);
		assert_int_equal(SSL_read(w->peer, &byte, 1), 0);
		assert_int_equal(SSL_get_error(w->peer, 0), SSL_ERROR_ZERO_RETURN);
		world_fini(w);
		free(w);
	}
}

static void a_cut_is_no_end(void **state)
{
	for (int how = 0; how < 3; how++) {
		struct world *w = malloc(sizeof *w);
		struct str plain;
		bool empty;

		(void)state;
		world_init(w, how > 0);
		shake(w, how == 2);
		shutdown(w->fd, SHUT_WR);
		assert_int_equal(tls_io_read(&w->io, &w->t, w->s, w->scratch, sizeof w->scratch, 100, &plain, &empty), -1);
		assert_int_equal(errno, ECONNRESET);
		world_fini(w);

		world_init(w, how > 0);
		shake(w, how == 2);
		assert_int_equal(write(w->fd, "\x17\x03\x03\x00\x20 0123456789012345678901234567890", 37), 37);
		assert_int_equal(tls_io_read(&w->io, &w->t, w->s, w->scratch, sizeof w->scratch, 100, &plain, &empty), -1);
		assert_int_equal(errno, EPROTO);
		assert_true(tls_io_failed(&w->t, w->s));
		assert_string_equal(tls_io_why(&w->t, w->s), how == 2 ? "bad_record_mac" :
			"decryption failed or bad record mac");
		assert_int_equal(tls_io_read(&w->io, &w->t, w->s, w->scratch, sizeof w->scratch, 100, &plain, &empty), -1);
		assert_int_equal(errno, ECONNRESET);	/* told once */
		tls_io_finish(&w->io, &w->t, w->s);	/* bad_record_mac */
		assert_true(SSL_read(w->peer, w->scratch, 1) <= 0 && SSL_get_error(w->peer, -1) == SSL_ERROR_SSL);
		world_fini(w);
		free(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_ways), cmocka_unit_test(ends), cmocka_unit_test(a_cut_is_no_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
