/* See tls_peer.h. */
#include "tests/unit/tls_peer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <openssl/err.h>
#include <openssl/x509v3.h>

/* --- certificates --- */

static void add_extension(X509 *x, X509 *issuer, int nid, const char *value)
{
	X509V3_CTX ctx;
	X509_EXTENSION *e;

	X509V3_set_ctx(&ctx, issuer, x, NULL, NULL, 0);
	e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	assert_non_null(e);
	assert_true(X509_add_ext(x, e, -1));
	X509_EXTENSION_free(e);
}

static EVP_PKEY *new_key(const char *type)
{
	if (strcmp(type, "ED25519") == 0)
		return EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
	if (strncmp(type, "RSA", 3) == 0)
		return EVP_RSA_gen(type[3] ? 1024 : 2048);
	return EVP_EC_gen("P-256");
}

void tls_made_names(struct tls_made *c, const char *type, const char *name, const char *alt, const struct tls_made *issuer)
{
	static long serial = 1;
	EVP_PKEY *by;
	X509_NAME *subject;

	c->key = new_key(type);
	c->x509 = X509_new();
	assert_non_null(c->key);
	assert_non_null(c->x509);
	X509_set_version(c->x509, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(c->x509), ++serial);
	X509_gmtime_adj(X509_getm_notBefore(c->x509), -3600);
	X509_gmtime_adj(X509_getm_notAfter(c->x509), 3600 * 24);
	X509_set_pubkey(c->x509, c->key);
	subject = X509_get_subject_name(c->x509);
	X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0);
	X509_set_issuer_name(c->x509, issuer ? X509_get_subject_name(issuer->x509) : subject);
	if (alt)
		add_extension(c->x509, issuer ? issuer->x509 : c->x509, NID_subject_alt_name, alt);
	if (!issuer)
		add_extension(c->x509, c->x509, NID_basic_constraints, "critical,CA:TRUE");
	by = issuer ? issuer->key : c->key;
	assert_true(X509_sign(c->x509, by, EVP_PKEY_get_base_id(by) == EVP_PKEY_ED25519 ? NULL : EVP_sha256()) > 0);
}

void tls_made_init(struct tls_made *c, const char *type, const char *name, const struct tls_made *issuer)
{
	char alt[256];

	snprintf(alt, sizeof(alt), "DNS:%s", name);
	tls_made_names(c, type, name, alt, issuer);
}

void tls_made_fini(struct tls_made *c)
{
	X509_free(c->x509);
	EVP_PKEY_free(c->key);
	*c = (struct tls_made){0};
}

/* --- two sides --- */

SSL_CTX *tls_peer_ctx(bool server, const char *suite)
{
	SSL_CTX *ctx = SSL_CTX_new(server ? TLS_server_method() : TLS_client_method());

	assert_non_null(ctx);
	SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION);
	SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
	if (suite)
		assert_true(SSL_CTX_set_ciphersuites(ctx, suite));
	if (server) {
		struct tls_made c;

		tls_made_init(&c, "EC", "localhost", NULL);
		assert_true(SSL_CTX_use_certificate(ctx, c.x509));
		assert_true(SSL_CTX_use_PrivateKey(ctx, c.key));
		tls_made_fini(&c);
	}
	return ctx;
}

void tls_peer_init(struct tls_peer *p, SSL_CTX *ctx, bool server)
{
	*p = (struct tls_peer){ .ssl = SSL_new(ctx), .in = BIO_new(BIO_s_mem()), .out = BIO_new(BIO_s_mem()) };
	assert_non_null(p->ssl);
	BIO_set_mem_eof_return(p->in, -1);
	SSL_set_bio(p->ssl, p->in, p->out);
	if (server)
		SSL_set_accept_state(p->ssl);
	else
		SSL_set_connect_state(p->ssl);
}

void tls_peer_fini(struct tls_peer *p)
{
	SSL_free(p->ssl);
	ERR_clear_error();
	*p = (struct tls_peer){0};
}

void tls_half_init(struct tls_half *h, SSL_CTX *ctx, bool server)
{
	memset(h, 0, sizeof(*h));
	h->feed.limit = 1 << 20;
	assert_int_equal(tls13_watch_ctx(ctx), OK);
	h->ssl = SSL_new(ctx);
	assert_non_null(h->ssl);
	assert_int_equal(tls13_watch(&h->watch, h->ssl), OK);
	assert_int_equal(feed_attach(&h->feed, h->ssl), OK);
	if (server)
		SSL_set_accept_state(h->ssl);
	else
		SSL_set_connect_state(h->ssl);
}

void tls_half_fini(struct tls_half *h, struct tls13_shared *sh)
{
	SSL_free(h->ssl);
	tls13_watch_end(&h->watch, NULL);
	feed_fini(&h->feed);
	tls13_free(sh, h->t);
	ERR_clear_error();
	h->ssl = NULL;
	h->t = NULL;
}

/* What was not used up moves to the front. */
static void keep(struct tls_half *h, const void *rest, size_t n)
{
	memmove(h->bytes, rest, n);
	h->n = n;
}

static void say(struct tls_half *h, struct tls_peer *p)
{
	size_t n = buf_len(h->feed.out);

	if (h->peer_takes && n > h->peer_takes)
		n = h->peer_takes;
	if (n) {
		assert_int_equal(BIO_write(p->in, buf_str(h->feed.out).p, (int)n), n);
		buf_consume(&h->feed.out, h->feed.budget, n);
	}
}

void tls_move(struct tls_half *h, struct tls_peer *p)
{
	int n;

	do
		say(h, p);
	while (!h->peer_takes && buf_len(h->feed.out));
	n = BIO_read(p->out, h->bytes + h->n, (int)(sizeof(h->bytes) - h->n));
	if (n > 0)
		h->n += (size_t)n;
}

/* True when its handshake is through; asserts that it wants but more bytes otherwise. */
static bool shake(SSL *ssl)
{
	int r = SSL_do_handshake(ssl);

	assert_true(r == 1 || SSL_get_error(ssl, r) == SSL_ERROR_WANT_READ);
	return r == 1;
}

void tls_shake(struct tls_half *h, struct tls_peer *p)
{
	for (int i = 0; i < 50; i++) {
		bool mine, theirs;

		h->feed.in = (struct str){ (char *)h->bytes, h->n };
		mine = shake(h->ssl);
		keep(h, h->feed.in.p, h->feed.in.n);
		theirs = shake(p->ssl);
		tls_move(h, p);
		if (mine && theirs)
			return;
	}
	fail_msg("the handshake does not end");
}

void tls_take(struct tls_half *h, struct tls13_shared *sh)
{
	assert_int_equal(tls13_take(sh, h->ssl, &h->watch, &h->t), TLS13_TAKEN);
	tls13_watch_end(&h->watch, h->ssl);
	SSL_free(h->ssl);
	h->ssl = NULL;
}

/* --- data --- */

void tls_peer_says(struct tls_half *h, struct tls_peer *p, struct tls13_shared *sh, const void *data, size_t n)
{
	const char *left = data;
	size_t used;
	struct str plain;

	while (n) {
		size_t step = n < 50000 ? n : 50000;

		assert_int_equal(SSL_write(p->ssl, left, (int)step), step);
		tls_move(h, p);
		assert_int_equal(tls13_open(sh, h->t, h->bytes, h->n, &used, &plain), TLS13_MORE);
		assert_int_equal(plain.n, step);
		assert_memory_equal(plain.p, left, step);
		assert_int_equal(used, h->n);
		h->n = 0;
		left += step;
		n -= step;
	}
}

void tls_half_says(struct tls_half *h, struct tls_peer *p, struct tls13_shared *sh, const void *data, size_t n)
{
	static unsigned char sealed_bytes[1 << 16], got[1 << 16];
	const char *left = data;

	tls_move(h, p);
	while (n) {
		struct iovec iov = { (void *)left, n };
		size_t taken, sealed, read = 0, once;

		assert_int_equal(tls13_seal(sh, h->t, &iov, 1, sealed_bytes, sizeof(sealed_bytes), &taken, &sealed), OK);
		assert_true(taken > 0);
		assert_int_equal(BIO_write(p->in, sealed_bytes, (int)sealed), sealed);
		while (read < taken) {
			assert_int_equal(SSL_read_ex(p->ssl, got + read, taken - read, &once), 1);
			read += once;
		}
		assert_memory_equal(got, left, taken);
		left += taken;
		n -= taken;
	}
}
