/* Door: what a parked TLS 1.3 connection takes, and what its records cost beside SSL_write and SSL_read.
 *
 * Bytes are those of the slab, its chunks included.  Times are the processor time of this thread, best of several
 * runs; OpenSSL works over a feed as it would in the proxy, with its buffers released between records and with them
 * kept.  "Same" is one connection record after record; "others" goes around 64 connections, so that each record finds
 * another's key in the cipher context. */
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/base/check.h"
#include "lib/base/slab.h"
#include "lib/net/feed.h"
#include "lib/net/tls13.h"
#include "lib/net/tls13_take.h"

#define MANY 10000
#define OTHERS 64
#define RUNS 7
#define ROUND 512	/* records in one run */

static const char *const names[TLS13_SUITES] = { "AES_128_GCM_SHA256", "AES_256_GCM_SHA384", "CHACHA20_POLY1305_SHA256" };
static const size_t sizes[] = { 100, 1024, 16384 };
static unsigned char plain[16384], wire[ROUND * TLS13_RECORD];

static double now(void)
{
	struct timespec t;

	CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) == 0);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static const struct tls13_secret secret = { .b = "any secret will do for measuring" };

/* --- the record layer --- */

static void measure_bytes(void)
{
	static struct tls13 *t[MANY];

	for (int suite = 0; suite < TLS13_SUITES; suite++) {
		struct budget_root root;
		struct budget budget;

		budget_root_init(&root, 0);
		budget_init(&budget, &root);
		struct tls13_shared *sh = tls13_shared_new(&budget);
		double from = now();
		for (int i = 0; i < MANY; i++)
			CHECK((t[i] = tls13_new(sh, (enum tls13_suite)suite, false, &secret, &secret)));
		double each = (now() - from) / MANY;
		printf("  %-26s %6.1f bytes, made in %.1f us\n", names[suite], (double)budget.used / MANY, each / 1000);
		for (int i = 0; i < MANY; i++)
			tls13_free(sh, t[i]);
		tls13_shared_free(sh);
		budget_fini(&budget);
	}
}

/* ns a record: sealed by `n` connections in turn, then opened by as many. */
static void own_records(enum tls13_suite suite, size_t size, int n, double *seal, double *open)
{
	struct tls13_shared *sh = tls13_shared_new(NULL);
	struct tls13 *from[OTHERS], *to[OTHERS];
	struct iovec iov = { plain, size };
	size_t taken, sealed, used;
	struct str got;

	for (int i = 0; i < n; i++) {
		from[i] = tls13_new(sh, suite, false, &secret, &secret);
		to[i] = tls13_new(sh, suite, true, &secret, &secret);
	}
	*seal = *open = 1e18;
	for (int run = 0; run < RUNS; run++) {
		double begun = now();
		for (int i = 0; i < ROUND; i++)
			CHECK(tls13_seal(sh, from[i % n], &iov, 1, wire + (size_t)i * TLS13_RECORD, TLS13_RECORD, &taken, &sealed) == OK);
		double between = now();
		for (int i = 0; i < ROUND; i++) {
			CHECK(tls13_open(sh, to[i % n], wire + (size_t)i * TLS13_RECORD, sealed, &used, &got) == TLS13_MORE);
			CHECK(got.n == size);
		}
		double end = now();
		*seal = (between - begun) / ROUND < *seal ? (between - begun) / ROUND : *seal;
		*open = (end - between) / ROUND < *open ? (end - between) / ROUND : *open;
	}
	for (int i = 0; i < n; i++) {
		tls13_free(sh, from[i]);
		tls13_free(sh, to[i]);
	}
	tls13_shared_free(sh);
}

/* --- OpenSSL --- */

struct end {
	SSL *ssl;
	struct feed feed;
	struct tls13_watch watch;
};

static SSL_CTX *context(enum tls13_suite suite, bool server, bool release)
{
	SSL_CTX *ctx = SSL_CTX_new(server ? TLS_server_method() : TLS_client_method());
	char name[64];

	snprintf(name, sizeof(name), "TLS_%s", names[suite]);
	CHECK(ctx && SSL_CTX_set_ciphersuites(ctx, name) && tls13_watch_ctx(ctx) == OK);
	if (release)
		SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
	if (server) {
		EVP_PKEY *key = EVP_EC_gen("P-256");
		X509 *x = X509_new();
		CHECK(key && x && X509_set_pubkey(x, key));
		X509_gmtime_adj(X509_getm_notBefore(x), 0);
		X509_gmtime_adj(X509_getm_notAfter(x), 3600);
		CHECK(X509_sign(x, key, EVP_sha256()) && SSL_CTX_use_certificate(ctx, x) && SSL_CTX_use_PrivateKey(ctx, key));
		X509_free(x);
		EVP_PKEY_free(key);
	}
	return ctx;
}

static void end_init(struct end *e, SSL_CTX *ctx, bool server)
{
	memset(e, 0, sizeof(*e));
	e->feed.limit = 1 << 20;
	CHECK((e->ssl = SSL_new(ctx)) && tls13_watch(&e->watch, e->ssl) == OK && feed_attach(&e->feed, e->ssl) == OK);
	(server ? SSL_set_accept_state : SSL_set_connect_state)(e->ssl);
}

static int step(struct end *e, struct end *from)
{
	size_t n = buf_len(from->feed.out), got;
	char c;
	int r;

	e->feed.in = buf_str(from->feed.out);
	r = SSL_do_handshake(e->ssl);
	if (r == 1)
		(void)SSL_read_ex(e->ssl, &c, 1, &got);
	buf_consume(&from->feed.out, NULL, n - e->feed.in.n);
	return r;
}

static void shake(struct end *server, struct end *client)
{
	for (int i = 0; i < 4; i++) {
		step(client, server);
		step(server, client);
	}
	CHECK(SSL_is_init_finished(server->ssl) && SSL_is_init_finished(client->ssl));
}

static void openssl_records(enum tls13_suite suite, size_t size, bool release, double *seal, double *open)
{
	SSL_CTX *ctx[2] = { context(suite, false, release), context(suite, true, release) };
	struct end server, client;
	static unsigned char got[16384];
	size_t n, record = size + TLS13_EXTRA;

	end_init(&server, ctx[1], true);
	end_init(&client, ctx[0], false);
	shake(&server, &client);
	*seal = *open = 1e18;
	for (int run = 0; run < RUNS; run++) {
		double time = 0, begun;
		for (int i = 0; i < ROUND; i++) {
			begun = now();
			CHECK(SSL_write_ex(server.ssl, plain, size, &n) == 1);
			time += now() - begun;
			CHECK(buf_len(server.feed.out) == record);
			memcpy(wire + (size_t)i * TLS13_RECORD, buf_str(server.feed.out).p, record);
			begun = now();
			buf_free(&server.feed.out, NULL);
			time += now() - begun;
		}
		*seal = time / ROUND < *seal ? time / ROUND : *seal;
		begun = now();
		for (int i = 0; i < ROUND; i++) {
			client.feed.in = (struct str){ (char *)wire + (size_t)i * TLS13_RECORD, record };
			CHECK(SSL_read_ex(client.ssl, got, sizeof(got), &n) == 1 && n == size);
			CHECK(SSL_read_ex(client.ssl, got, sizeof(got), &n) == 0);	/* until it wants more, as a proxy must */
		}
		time = now() - begun;
		*open = time / ROUND < *open ? time / ROUND : *open;
	}
	SSL_free(server.ssl);
	SSL_free(client.ssl);
	SSL_CTX_free(ctx[0]);
	SSL_CTX_free(ctx[1]);
}

static void measure_take(enum tls13_suite suite)
{
	SSL_CTX *ctx[2] = { context(suite, false, true), context(suite, true, true) };
	struct tls13_shared *sh = tls13_shared_new(NULL);
	double best = 1e18;

	for (int i = 0; i < 50; i++) {
		struct end server, client;
		struct tls13 *t;

		end_init(&server, ctx[1], true);
		end_init(&client, ctx[0], false);
		shake(&server, &client);
		double begun = now();
		CHECK(tls13_take(sh, server.ssl, &server.watch, &t) == TLS13_TAKEN);
		double time = now() - begun;
		best = time < best ? time : best;
		tls13_free(sh, t);
		SSL_free(server.ssl);
		SSL_free(client.ssl);
		feed_fini(&server.feed);
		feed_fini(&client.feed);
	}
	printf("  %-26s %.1f us\n", names[suite], best / 1000);
	tls13_shared_free(sh);
	SSL_CTX_free(ctx[0]);
	SSL_CTX_free(ctx[1]);
}

int main(void)
{
	double seal[2], open[2], ssl_seal[2], ssl_open[2];

	printf("a connection, of %d\n", MANY);
	measure_bytes();
	printf("ns a record, sealed / opened\n  %-26s %6s %15s %15s %19s %19s\n", "", "bytes", "own, same", "own, others",
		"SSL, released", "SSL, kept");
	for (int suite = 0; suite < TLS13_SUITES; suite++) {
		for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
			own_records((enum tls13_suite)suite, sizes[i], 1, &seal[0], &open[0]);
			own_records((enum tls13_suite)suite, sizes[i], OTHERS, &seal[1], &open[1]);
			openssl_records((enum tls13_suite)suite, sizes[i], true, &ssl_seal[0], &ssl_open[0]);
			openssl_records((enum tls13_suite)suite, sizes[i], false, &ssl_seal[1], &ssl_open[1]);
			printf("  %-26s %6zu %7.0f /%6.0f %7.0f /%6.0f %10.0f /%7.0f %10.0f /%7.0f\n", names[suite], sizes[i], seal[0], open[0],
				seal[1], open[1], ssl_seal[0], ssl_open[0], ssl_seal[1], ssl_open[1]);
		}
	}
	printf("a take\n");
	for (int suite = 0; suite < TLS13_SUITES; suite++)
		measure_take((enum tls13_suite)suite);
	double begun = now();
	CHECK(tls13_trial());
	printf("a trial\n  all suites, the second time  %.2f ms\n", (now() - begun) / 1e6);
	return 0;
}
