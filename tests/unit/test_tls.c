/* lib/net/tls_cert, tls_server, tls_client, tls_ticket: what a configuration says of TLS, against OpenSSL's other end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "lib/base/mem.h"
#include "lib/net/tls_client.h"
#include "lib/net/tls_server.h"
#include "lib/net/tls_shown.h"
#include "lib/net/tls_ticket.h"
#include "tests/unit/tls_peer.h"

#define NOW 1800000000	/* for tickets */

/* --- PEM --- */

struct pem {
	char text[16384];
	size_t n;
};

static struct str pem_str(const struct pem *p)
{
	return (struct str){ p->text, p->n };
}

static void pem_take(struct pem *p, BIO *bio)
{
	int n = BIO_read(bio, p->text + p->n, (int)(sizeof(p->text) - p->n));

	assert_true(n > 0 && p->n + (size_t)n < sizeof(p->text));
	p->n += (size_t)n;
	BIO_free(bio);
}

static void pem_cert(struct pem *p, const struct tls_made *c)
{
	BIO *bio = BIO_new(BIO_s_mem());

	assert_true(PEM_write_bio_X509(bio, c->x509));
	pem_take(p, bio);
}

static void pem_key(struct pem *p, const struct tls_made *c, const char *passphrase)
{
	BIO *bio = BIO_new(BIO_s_mem());

	assert_true(PEM_write_bio_PrivateKey(bio, c->key, passphrase ? EVP_aes_128_cbc() : NULL, (const unsigned char *)passphrase,
		passphrase ? (int)strlen(passphrase) : 0, NULL, NULL));
	pem_take(p, bio);
}

/* --- what all tests use: made once, RSA keys take a while --- */

static struct tls_made ca, other_ca, a_ec, a_rsa, wild, b_ec, client_made, ed;
static const struct tls_cert *cert_a_ec, *cert_a_rsa, *cert_wild, *cert_b, *cert_client;
static struct pem pem_ca, pem_other_ca;

static const struct tls_cert *cert_of(const struct tls_made *m)
{
	struct pem chain = {0}, key = {0};
	struct tls_error e = {0};
	const struct tls_cert *c;

	pem_cert(&chain, m);
	pem_key(&key, m, NULL);
	c = tls_cert_new(pem_str(&chain), pem_str(&key), &e);
	if (!c)
		fail_msg("%s", e.text);
	return c;
}

static int setup(void **state)
{
	(void)state;
	tls_made_init(&ca, "EC", "An Authority", NULL);
	tls_made_init(&other_ca, "EC", "Another Authority", NULL);
	tls_made_init(&a_ec, "EC", "A.example", &ca);
	tls_made_init(&a_rsa, "RSA", "a.example", &ca);
	tls_made_init(&wild, "EC", "*.wild.example", &ca);
	tls_made_init(&b_ec, "EC", "b.example", &ca);
	tls_made_init(&client_made, "EC", "client", &ca);
	tls_made_init(&ed, "ED25519", "ed.example", &ca);
	cert_a_ec = cert_of(&a_ec);
	cert_a_rsa = cert_of(&a_rsa);
	cert_wild = cert_of(&wild);
	cert_b = cert_of(&b_ec);
	cert_client = cert_of(&client_made);
	pem_cert(&pem_ca, &ca);
	pem_cert(&pem_other_ca, &other_ca);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	tls_cert_unref(cert_a_ec);
	tls_cert_unref(cert_a_rsa);
	tls_cert_unref(cert_wild);
	tls_cert_unref(cert_b);
	tls_cert_unref(cert_client);
	struct tls_made *all[] = { &ca, &other_ca, &a_ec, &a_rsa, &wild, &b_ec, &client_made, &ed };
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		tls_made_fini(all[i]);
	return 0;
}

/* --- certificates --- */

static void certificates(void **state)
{
	const struct tls_cert *c;

	(void)state;
	assert_int_equal(tls_cert_kind(cert_a_ec), TLS_CERT_EC);
	assert_int_equal(tls_cert_kind(cert_a_rsa), TLS_CERT_RSA);
	c = cert_of(&ed);
	assert_int_equal(tls_cert_kind(c), TLS_CERT_ED);
	assert_int_equal(tls_cert_not_after(c) - tls_cert_not_before(c), 3600 * 25);
	assert_int_equal(tls_cert_names(c), 1);
	assert_true(str_eq(tls_cert_name(c, 0), STR("ed.example")));
	tls_cert_unref(tls_cert_ref(c));
	tls_cert_unref(c);
	assert_true(str_eq(tls_cert_name(cert_a_ec, 0), STR("a.example")));	/* small */
	tls_cert_unref(NULL);
}

/* A certificate with any subjectAltName (NULL: none). */
static const struct tls_cert *cert_named(const char *common, const char *alt)
{
	struct tls_made m;

	tls_made_names(&m, "EC", common, alt, &ca);
	const struct tls_cert *c = cert_of(&m);
	tls_made_fini(&m);
	return c;
}

static void names_and_hosts(void **state)
{
	static const struct { const char *common, *alt, *host; bool serves; } cases[] = {
		{ "x", "DNS:a.example", "a.example", true },
		{ "x", "DNS:a.example", "A.EXAMPLE", true },
		{ "x", "DNS:a.example.", "a.example", true },
		{ "x", "DNS:a.example", "b.a.example", false },
		{ "x", "DNS:a.example", "a.exampl", false },
		{ "x", "DNS:a.example", "x", false },		/* the common name counts no longer */
		{ "x", "DNS:a.example", "", false },
		{ "c.example", NULL, "c.example", true },
		{ "c.example", "IP:10.0.0.1", "c.example", false },
		{ "c.example", "URI:spiffe://td/x", "c.example", true },
		{ "x", "DNS:*.a.example", "b.a.example", true },
		{ "x", "DNS:*.a.example", "B.A.Example", true },
		{ "x", "DNS:*.a.example", "a.example", false },
		{ "x", "DNS:*.a.example", ".a.example", false },
		{ "x", "DNS:*.a.example", "c.b.a.example", false },
		{ "x", "DNS:*", "example", false },
		{ "x", "IP:10.0.0.1,IP:2001:db8::1", "10.0.0.1", true },
		{ "x", "IP:10.0.0.1,IP:2001:db8::1", "2001:DB8:0::1", true },
		{ "x", "IP:10.0.0.1", "10.0.0.2", false },
		{ "x", "DNS:10.0.0.1", "10.0.0.1", false },	/* an address is no name */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct tls_cert *c = cert_named(cases[i].common, cases[i].alt);

		if (tls_cert_serves(c, str_of(cases[i].host)) != cases[i].serves)
			fail_msg("%s and %s", cases[i].alt, cases[i].host);
		tls_cert_unref(c);
	}
}

static void assert_refused(const struct pem *chain, const struct pem *key, enum tls_part part, const char *text)
{
	struct tls_error e = {0};

	assert_null(tls_cert_new(pem_str(chain), pem_str(key), &e));
	assert_int_equal(e.err, ERR_SYNTAX);
	assert_int_equal(e.part, part);
	if (!strstr(e.text, text))
		fail_msg("'%s' is not in '%s'", text, e.text);
	assert_null(strchr(e.text, '\n'));
	assert_int_equal(ERR_peek_error(), 0);
	assert_null(tls_cert_new(pem_str(chain), pem_str(key), NULL));
}

static void certificates_refused(void **state)
{
	struct pem none = {0}, chain = {0}, key = {0}, rsa_key = {0}, locked = {0}, both = {0}, many = {0}, cut, text = {0};

	(void)state;
	pem_cert(&chain, &a_ec);
	pem_key(&key, &a_ec, NULL);
	pem_key(&rsa_key, &a_rsa, NULL);
	pem_key(&locked, &a_ec, "secret");
	pem_cert(&both, &ca);
	pem_cert(&both, &a_ec);
	for (int i = 0; i < 17; i++)
		pem_cert(&many, &a_ec);
	text.n = (size_t)snprintf(text.text, sizeof(text.text), "no PEM at all\n");
	assert_refused(&none, &key, TLS_PART_CERT, "holds no certificate");
	assert_refused(&text, &key, TLS_PART_CERT, "holds no certificate");
	assert_refused(&key, &key, TLS_PART_CERT, "holds no certificate");
	assert_refused(&chain, &none, TLS_PART_KEY, "holds no private key");
	assert_refused(&chain, &chain, TLS_PART_KEY, "holds no private key");
	assert_refused(&chain, &rsa_key, TLS_PART_KEY, "not the key of the certificate");
	assert_refused(&chain, &locked, TLS_PART_KEY, "encrypted");
	assert_refused(&both, &key, TLS_PART_CERT, "in place 2");
	assert_refused(&many, &key, TLS_PART_CERT, "more than 16");
	cut = chain;
	cut.text[100] = '!';
	assert_refused(&cut, &key, TLS_PART_CERT, "certificate 1 of it cannot be read");
	cut = chain;
	pem_cert(&cut, &ca);
	cut.text[chain.n + 100] = '!';
	assert_refused(&cut, &key, TLS_PART_CERT, "certificate 2 of it cannot be read");
	cut = key;
	cut.text[60] = '!';
	assert_refused(&chain, &cut, TLS_PART_KEY, "cannot be read");
}

/* --- handshakes --- */

/* OpenSSL as a client that knows the authority. */
static SSL_CTX *client_ctx(void)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());

	assert_non_null(ctx);
	assert_true(X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), ca.x509));
	return ctx;
}

/* The two talk until both are through or one fails; true when they are, tickets included. */
static bool talk(SSL *client, SSL *server)
{
	BIO *a, *b;
	bool good = false;
	char c;
	size_t n;

	assert_true(BIO_new_bio_pair(&a, 0, &b, 0));
	SSL_set_bio(client, a, a);
	SSL_set_bio(server, b, b);
	for (int i = 0; i < 20; i++) {
		int r = SSL_do_handshake(client), why = SSL_get_error(client, r);
		if (r != 1 && why != SSL_ERROR_WANT_READ)
			break;
		int s = SSL_do_handshake(server);
		why = SSL_get_error(server, s);
		if (s != 1 && why != SSL_ERROR_WANT_READ)
			break;
		good = r == 1 && s == 1;
		if (good)
			break;
	}
	if (good) {	/* tickets, or the alert of a certificate that was refused */
		SSL_read_ex(client, &c, 1, &n);
		good = SSL_get_error(client, 0) == SSL_ERROR_WANT_READ;
	}
	ERR_clear_error();
	return good;
}

static struct tls_server *server_of(struct tls_server_spec spec)
{
	struct tls_error e = {0};
	struct tls_server *s;

	if (!spec.certs) {
		spec.certs = &cert_a_ec;
		spec.n_certs = 1;
	}
	s = tls_server_new(&spec, &e);
	if (!s)
		fail_msg("%s", e.text);
	return s;
}

/* A handshake of OpenSSL's client with `s`; the caller frees both ends. */
static bool shake_name(const struct tls_server *s, SSL_CTX *ctx, const char *name, SSL **client, SSL **server,
		SSL_SESSION *session)
{
	*client = SSL_new(ctx);
	*server = tls_server_ssl(s, tls_server_group(s, str_of(name), NULL));
	assert_non_null(*client);
	assert_non_null(*server);
	SSL_set_connect_state(*client);
	if (name)
		SSL_set_tlsext_host_name(*client, name);
	if (session)
		SSL_set_session(*client, session);
	return talk(*client, *server);
}

static void done(SSL *client, SSL *server)
{
	SSL_set_shutdown(client, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
	SSL_free(client);
	SSL_free(server);
	ERR_clear_error();
}

/* Whether the two get on. */
static bool gets_on(const struct tls_server *s, SSL_CTX *ctx, const char *name)
{
	SSL *client, *server;
	bool good = shake_name(s, ctx, name, &client, &server, NULL);

	done(client, server);
	return good;
}

static void assert_shows(const struct tls_server *s, SSL_CTX *ctx, const char *name, const struct tls_made *what)
{
	SSL *client, *server;

	assert_true(shake_name(s, ctx, name, &client, &server, NULL));
	assert_int_equal(X509_cmp(SSL_get0_peer_certificate(client), what->x509), 0);
	done(client, server);
}

static void certificates_by_name(void **state)
{
	const struct tls_cert *certs[] = { cert_b, cert_a_ec, cert_a_rsa, cert_wild };
	struct tls_server *s = server_of((struct tls_server_spec){ .certs = certs, .n_certs = 4 });
	SSL_CTX *ctx = client_ctx(), *rsa_only = client_ctx();
	bool known;

	(void)state;
	assert_true(SSL_CTX_set1_sigalgs_list(rsa_only, "RSA-PSS+SHA256:RSA+SHA256"));
	assert_shows(s, ctx, "a.example", &a_ec);
	assert_shows(s, rsa_only, "a.example", &a_rsa);
	assert_shows(s, ctx, "b.example", &b_ec);
	assert_shows(s, ctx, "x.wild.example", &wild);
	assert_shows(s, ctx, "other.example", &b_ec);
	assert_shows(s, ctx, NULL, &b_ec);
	assert_false(gets_on(s, rsa_only, "b.example"));	/* it has none for it */
	tls_server_group(s, STR("a.example"), &known);
	assert_true(known);
	tls_server_group(s, STR("y.x.wild.example"), &known);
	assert_false(known);
	tls_server_group(s, STR("wild.example"), &known);
	assert_false(known);
	tls_server_group(s, STR("*.wild.example"), &known);
	const struct tls_group *g = tls_server_group(s, STR("x.wild.example"), &known);
	assert_true(known);
	assert_true(tls_group_serves(g, STR("y.wild.example")));
	assert_false(tls_group_serves(g, STR("a.example")));
	assert_false(tls_group_serves(tls_server_group(s, STR("nobody.example"), NULL), STR("nobody.example")));
	tls_server_unref(tls_server_ref(s));
	tls_server_unref(s);
	tls_server_unref(NULL);
	/* a name itself comes before its wildcard, wherever they stand */
	const struct tls_cert *exact = cert_named("x", "DNS:x.wild.example");
	for (int first = 0; first < 2; first++) {
		const struct tls_cert *two[] = { first ? exact : cert_wild, first ? cert_wild : exact };

		s = server_of((struct tls_server_spec){ .certs = two, .n_certs = 2 });
		assert_true(tls_cert_serves(exact, STR("x.wild.example")));
		assert_false(tls_group_serves(tls_server_group(s, STR("x.wild.example"), NULL), STR("y.wild.example")));
		assert_true(tls_group_serves(tls_server_group(s, STR("y.wild.example"), NULL), STR("y.wild.example")));
		tls_server_unref(s);
	}
	tls_cert_unref(exact);
	/* the default has both kinds, too */
	s = server_of((struct tls_server_spec){ .certs = certs + 1, .n_certs = 3 });
	assert_shows(s, ctx, NULL, &a_ec);
	assert_shows(s, rsa_only, NULL, &a_rsa);
	tls_server_unref(s);
	SSL_CTX_free(ctx);
	SSL_CTX_free(rsa_only);
}

static void many_names(void **state)
{
	enum { N = 200 };
	static const struct tls_cert *certs[N];
	char name[64];

	(void)state;
	for (int i = 0; i < N; i++) {
		snprintf(name, sizeof(name), "DNS:n%d.example,DNS:*.n%d.example", i * 7919 % 1000, i * 7919 % 1000);
		certs[i] = cert_named("x", name);
	}
	struct tls_server *s = server_of((struct tls_server_spec){ .certs = certs, .n_certs = N });
	for (int i = 0; i < N; i++) {
		bool known;
		snprintf(name, sizeof(name), "n%d.example", i * 7919 % 1000);
		assert_true(tls_group_serves(tls_server_group(s, str_of(name), &known), str_of(name)) && known);
		snprintf(name, sizeof(name), "www.n%d.example", i * 7919 % 1000);
		assert_true(tls_group_serves(tls_server_group(s, str_of(name), &known), str_of(name)) && known);
		tls_cert_unref(certs[i]);
	}
	tls_server_unref(s);
}

static void server_refused(struct tls_server_spec spec, enum tls_part part, const char *text)
{
	struct tls_error e = {0};

	if (!spec.certs) {
		spec.certs = &cert_a_ec;
		spec.n_certs = 1;
	}
	assert_null(tls_server_new(&spec, &e));
	assert_int_equal(e.err, ERR_SYNTAX);
	assert_int_equal(e.part, part);
	if (!strstr(e.text, text))
		fail_msg("'%s' is not in '%s'", text, e.text);
	assert_int_equal(ERR_peek_error(), 0);
	assert_null(tls_server_new(&spec, NULL));
}

static void client_refused(struct tls_client_spec spec, enum tls_part part, const char *text)
{
	struct tls_error e = {0};

	assert_null(tls_client_new(&spec, &e));
	assert_int_equal(e.err, ERR_SYNTAX);
	assert_int_equal(e.part, part);
	if (!strstr(e.text, text))
		fail_msg("'%s' is not in '%s'", text, e.text);
	assert_int_equal(ERR_peek_error(), 0);
}

static void servers_refused(void **state)
{
	const struct tls_cert *again = cert_named("x", "DNS:c.example,DNS:a.example");
	const struct tls_cert *certs[] = { cert_b, cert_a_ec, cert_a_rsa, again };
	struct tls_server_spec twice = { .certs = certs, .n_certs = 4 };
	struct tls_error e;
	const struct str empty[] = { { "", 0 } };

	(void)state;
	server_refused(twice, TLS_PART_CERT, "a.example");
	assert_null(tls_server_new(&twice, &e));
	assert_int_equal(e.index, 3);
	tls_cert_unref(again);
	/* what OpenSSL would not show is told here, and not at a handshake */
	struct tls_made made;
	tls_made_init(&made, "RSA-1024", "small.example", NULL);
	certs[1] = cert_of(&made);
	tls_made_fini(&made);
	twice.n_certs = 2;
	server_refused(twice, TLS_PART_CERT, "key too small");
	assert_null(tls_server_new(&twice, &e));
	assert_int_equal(e.index, 1);
	client_refused((struct tls_client_spec){ .cert = certs[1] }, TLS_PART_CERT, "key too small");
	tls_cert_unref(certs[1]);
	server_refused((struct tls_server_spec){ .ciphers = "NOTHING" }, TLS_PART_CIPHERS, "cipher");
	server_refused((struct tls_server_spec){ .ciphers = "ECDHE+AESGCM:NOTHING:@STRENGTH" }, TLS_PART_CIPHERS, "has: NOTHING");
	tls_server_unref(server_of((struct tls_server_spec){ .ciphers = "DEFAULT:-SHA1:!aNULL:AES128-SHA:@SECLEVEL=0" }));
	server_refused((struct tls_server_spec){ .suites = "TLS_NONE" }, TLS_PART_SUITES, "cipher suite");
	server_refused((struct tls_server_spec){ .groups = "P-1" }, TLS_PART_GROUPS, "group");
	server_refused((struct tls_server_spec){ .alpn = empty, .n_alpn = 1 }, TLS_PART_ALPN, "empty");
	struct tls_server_spec mtls = { .client_certs = TLS_CLIENT_CERTS_REQUIRE };
	server_refused(mtls, TLS_PART_CA, "holds no certificate");
	mtls.client_ca = STR("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
	server_refused(mtls, TLS_PART_CA, "certificate 1 of it cannot be read");
	mtls.client_ca = pem_str(&pem_ca);
	mtls.client_crl = pem_str(&pem_ca);
	server_refused(mtls, TLS_PART_CRL, "holds no list");
	mtls.client_crl = STR("-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n");
	server_refused(mtls, TLS_PART_CRL, "list 1 of it cannot be read");
}

static void versions_and_ciphers(void **state)
{
	struct tls_server *both = server_of((struct tls_server_spec){0});
	struct tls_server *new = server_of((struct tls_server_spec){ .min_version = TLS_VERSION_13 });
	struct tls_server *old = server_of((struct tls_server_spec){
		.max_version = TLS_VERSION_12, .ciphers = "ECDHE-ECDSA-CHACHA20-POLY1305",
	});
	struct tls_server *suite = server_of((struct tls_server_spec){
		.min_version = TLS_VERSION_13, .suites = "TLS_AES_256_GCM_SHA384", .groups = "P-384",
	});
	SSL_CTX *ctx = client_ctx(), *ctx12 = client_ctx(), *ctx11 = client_ctx(), *cbc = client_ctx();
	SSL *client, *server;

	(void)state;
	SSL_CTX_set_max_proto_version(ctx12, TLS1_2_VERSION);
	SSL_CTX_set_min_proto_version(ctx11, TLS1_VERSION);
	SSL_CTX_set_max_proto_version(ctx11, TLS1_1_VERSION);
	SSL_CTX_set_security_level(ctx11, 0);
	SSL_CTX_set_max_proto_version(cbc, TLS1_2_VERSION);
	assert_true(SSL_CTX_set_cipher_list(cbc, "ECDHE-ECDSA-AES128-SHA:AES128-SHA"));
	/* ours comes first, not the client's */
	assert_true(shake_name(both, ctx, NULL, &client, &server, NULL));
	assert_int_equal(SSL_version(server), TLS1_3_VERSION);
	assert_string_equal(SSL_get_cipher_name(server), "TLS_AES_128_GCM_SHA256");
	assert_true(SSL_get_options(server) & SSL_OP_NO_RENEGOTIATION && SSL_get_options(server) & SSL_OP_NO_COMPRESSION);
	assert_int_equal(SSL_get_max_early_data(server), 0);
	done(client, server);
	assert_true(shake_name(both, ctx12, NULL, &client, &server, NULL));
	assert_string_equal(SSL_get_cipher_name(server), "ECDHE-ECDSA-AES128-GCM-SHA256");
	assert_int_equal(SSL_renegotiate(client), 1);	/* the wish is granted to nobody */
	SSL_do_handshake(client);
	assert_true(SSL_do_handshake(server) == 1 || SSL_read(server, (char[1]){0}, 1) <= 0);
	assert_true(SSL_do_handshake(client) <= 0);
	done(client, server);
	assert_false(gets_on(both, ctx11, NULL));
	assert_false(gets_on(both, cbc, NULL));
	assert_false(gets_on(new, ctx12, NULL));
	assert_true(gets_on(new, ctx, NULL));
	assert_true(shake_name(old, ctx, NULL, &client, &server, NULL));
	assert_string_equal(SSL_get_cipher_name(server), "ECDHE-ECDSA-CHACHA20-POLY1305");
	done(client, server);
	assert_true(shake_name(suite, ctx, NULL, &client, &server, NULL));
	assert_string_equal(SSL_get_cipher_name(server), "TLS_AES_256_GCM_SHA384");
	assert_int_equal(SSL_get_negotiated_group(server), NID_secp384r1);
	done(client, server);
	/* ChaCha20 for those who would rather */
	assert_true(SSL_CTX_set_ciphersuites(ctx, "TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256"));
	assert_true(shake_name(both, ctx, NULL, &client, &server, NULL));
	assert_string_equal(SSL_get_cipher_name(server), "TLS_CHACHA20_POLY1305_SHA256");
	done(client, server);
	tls_server_unref(both);
	tls_server_unref(new);
	tls_server_unref(old);
	tls_server_unref(suite);
	SSL_CTX_free(ctx);
	SSL_CTX_free(ctx12);
	SSL_CTX_free(ctx11);
	SSL_CTX_free(cbc);
}

static void alpn(void **state)
{
	const struct str ours[] = { STR("h2"), STR("http/1.1") };
	struct tls_server *s = server_of((struct tls_server_spec){ .alpn = ours, .n_alpn = 2 });
	struct tls_server *deaf = server_of((struct tls_server_spec){0});
	static const struct { const char *wire; unsigned n; const char *chosen; } cases[] = {
		{ "\x08http/1.1\x02h2", 12, "h2" }, { "\x08http/1.1", 9, "http/1.1" }, { "\x03xyz\x08http/1.1", 13, "http/1.1" },
		{ "\x03xyz", 4, NULL }, { NULL, 0, "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		SSL_CTX *ctx = client_ctx();
		SSL *client, *server;
		const unsigned char *p;
		unsigned n;

		if (cases[i].wire)
			SSL_CTX_set_alpn_protos(ctx, (const unsigned char *)cases[i].wire, cases[i].n);
		assert_int_equal(shake_name(s, ctx, NULL, &client, &server, NULL), cases[i].chosen != NULL);
		SSL_get0_alpn_selected(client, &p, &n);
		if (cases[i].chosen) {
			assert_int_equal(n, strlen(cases[i].chosen));
			assert_memory_equal(n ? (const char *)p : "", cases[i].chosen, n);
		}
		done(client, server);
		assert_true(gets_on(deaf, ctx, NULL));
		SSL_CTX_free(ctx);
	}
	tls_server_unref(s);
	tls_server_unref(deaf);
}

/* --- client certificates --- */

static SSL_CTX *client_with(const struct tls_made *m)
{
	SSL_CTX *ctx = client_ctx();

	if (m) {
		assert_true(SSL_CTX_use_certificate(ctx, m->x509));
		assert_true(SSL_CTX_use_PrivateKey(ctx, m->key));
	}
	return ctx;
}

static void what_is_shown(const SSL *ssl, bool any)
{
	unsigned char hash[TLS_SHOWN_HASH];
	struct tls_shown *w;

	assert_int_equal(tls_shown_hash(ssl, hash), any);
	if (!any)
		return;
	mem_fail_from(1);
	assert_null(tls_shown_new(ssl));
	mem_fail_from(0);
	w = tls_shown_new(ssl);
	assert_non_null(w);
	assert_memory_equal(w->hash, hash, sizeof hash);
	assert_true(str_eq(w->subject, STR("CN=client")));
	assert_int_equal(w->spiffe.n, 0);
	assert_int_equal(w->field.n, 5 + 64 + 10 + 9 + 1 + 11);
	assert_memory_equal(w->field.p, "Hash=", 5);
	assert_memory_equal(w->field.p + 69, ";Subject=\"CN=client\";DNS=client", 31);
	mem_free(w);
}

static void client_certificates(void **state)
{
	struct tls_made foreign, expired;
	struct tls_server_spec spec = { .client_ca = pem_str(&pem_ca) };

	(void)state;
	tls_made_init(&foreign, "EC", "client", &other_ca);
	tls_made_init(&expired, "EC", "client", &ca);
	X509_gmtime_adj(X509_getm_notAfter(expired.x509), -60);
	assert_true(X509_sign(expired.x509, ca.key, EVP_sha256()));
	SSL_CTX *with = client_with(&client_made), *without = client_with(NULL);
	SSL_CTX *strange = client_with(&foreign), *late = client_with(&expired);
	for (int mode = 0; mode < 3; mode++) {
		for (int version = TLS_VERSION_12; version <= TLS_VERSION_13; version++) {
			SSL *client, *server;

			spec.client_certs = (enum tls_client_certs)mode;
			spec.min_version = spec.max_version = (uint16_t)version;
			struct tls_server *s = server_of(spec);
			assert_true(shake_name(s, with, NULL, &client, &server, NULL));
			assert_int_equal(sk_X509_NAME_num(SSL_get0_peer_CA_list(client)), mode ? 1 : -1);
			if (mode)
				assert_int_equal(X509_cmp(SSL_get0_peer_certificate(server), client_made.x509), 0);
			else
				assert_null(SSL_get0_peer_certificate(server));
			what_is_shown(server, mode);
			done(client, server);
			assert_int_equal(gets_on(s, without, NULL), mode != TLS_CLIENT_CERTS_REQUIRE);
			assert_int_equal(gets_on(s, strange, NULL), mode == TLS_CLIENT_CERTS_NONE);
			assert_int_equal(gets_on(s, late, NULL), mode == TLS_CLIENT_CERTS_NONE);
			tls_server_unref(s);
		}
	}
	SSL_CTX_free(with);
	SSL_CTX_free(without);
	SSL_CTX_free(strange);
	SSL_CTX_free(late);
	tls_made_fini(&foreign);
	tls_made_fini(&expired);
}

static void pem_crl(struct pem *p, const struct tls_made *issuer, const struct tls_made *revoked)
{
	X509_CRL *crl = X509_CRL_new();
	ASN1_TIME *t = X509_gmtime_adj(NULL, -60);
	BIO *bio = BIO_new(BIO_s_mem());

	X509_CRL_set_version(crl, 1);
	X509_CRL_set_issuer_name(crl, X509_get_subject_name(issuer->x509));
	X509_CRL_set1_lastUpdate(crl, t);
	X509_gmtime_adj(t, 3600);
	X509_CRL_set1_nextUpdate(crl, t);
	if (revoked) {
		X509_REVOKED *r = X509_REVOKED_new();
		X509_REVOKED_set_serialNumber(r, X509_get_serialNumber(revoked->x509));
		X509_gmtime_adj(t, -60);
		X509_REVOKED_set_revocationDate(r, t);
		assert_true(X509_CRL_add0_revoked(crl, r));
	}
	X509_CRL_sort(crl);
	assert_true(X509_CRL_sign(crl, issuer->key, EVP_sha256()));
	assert_true(PEM_write_bio_X509_CRL(bio, crl));
	pem_take(p, bio);
	X509_CRL_free(crl);
	ASN1_TIME_free(t);
}

static void revoked_clients(void **state)
{
	struct tls_made second;
	struct pem crl = {0}, foreign = {0};
	struct tls_server_spec spec = { .client_ca = pem_str(&pem_ca), .client_certs = TLS_CLIENT_CERTS_REQUIRE };

	(void)state;
	tls_made_init(&second, "EC", "client", &ca);
	SSL_CTX *first_ctx = client_with(&client_made), *second_ctx = client_with(&second);
	pem_crl(&crl, &ca, &second);
	spec.client_crl = pem_str(&crl);
	struct tls_server *s = server_of(spec);
	assert_true(gets_on(s, first_ctx, NULL));
	assert_false(gets_on(s, second_ctx, NULL));
	tls_server_unref(s);
	pem_crl(&foreign, &other_ca, NULL);	/* none of the issuer: nobody comes in by mistake */
	spec.client_crl = pem_str(&foreign);
	s = server_of(spec);
	assert_false(gets_on(s, first_ctx, NULL));
	tls_server_unref(s);
	SSL_CTX_free(first_ctx);
	SSL_CTX_free(second_ctx);
	tls_made_fini(&second);
}

/* --- tickets --- */

static SSL_SESSION *got;

static int on_session(SSL *ssl, SSL_SESSION *s)
{
	(void)ssl;
	SSL_SESSION_free(got);
	got = s;
	return 1;
}

static SSL_CTX *remembering(const struct tls_made *m)
{
	SSL_CTX *ctx = client_with(m);

	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_sess_set_new_cb(ctx, on_session);
	return ctx;
}

/* A session of `s` under `name`; the caller's.  NULL: it gives none. */
static SSL_SESSION *session_of(const struct tls_server *s, SSL_CTX *ctx, const char *name)
{
	SSL *client, *server;
	SSL_SESSION *r;

	assert_true(shake_name(s, ctx, name, &client, &server, NULL));
	done(client, server);
	r = got;
	got = NULL;
	return r;
}

static bool replaced;	/* the ticket, by the last handshake */

/* A copy is used: OpenSSL's client takes a session of TLS 1.3 once. */
static bool resumes(const struct tls_server *s, SSL_CTX *ctx, const char *name, const SSL_SESSION *session)
{
	SSL_SESSION *copy = SSL_SESSION_dup(session);
	const unsigned char *old, *new;
	size_t n, m;
	SSL *client, *server;
	bool reused;

	assert_true(shake_name(s, ctx, name, &client, &server, copy));
	SSL_SESSION_free(copy);
	reused = SSL_session_reused(server);
	assert_int_equal(reused, SSL_session_reused(client));
	SSL_SESSION_get0_ticket(session, &old, &n);
	SSL_SESSION_get0_ticket(SSL_get_session(client), &new, &m);
	replaced = n != m || memcmp(old, new, n) != 0;
	done(client, server);
	return reused;
}

static void tickets_for(int version)
{
	const struct tls_cert *certs[] = { cert_a_ec, cert_b };
	struct tls_tickets *t = tls_tickets_new(STR(""), NOW, NULL), *u = tls_tickets_new(STR(""), NOW, NULL);
	struct tls_server_spec spec = {
		.certs = certs, .n_certs = 2, .tickets = t, .n_tickets = 2, .max_version = (uint16_t)version,
		.client_ca = pem_str(&pem_ca),
	};
	struct tls_server *s = server_of(spec), *twin = server_of(spec);
	SSL_CTX *ctx = remembering(&client_made);
	SSL_SESSION *session = session_of(s, ctx, "a.example"), *more;

	assert_non_null(session);
	assert_true(resumes(s, ctx, "a.example", session));
	assert_true(resumes(twin, ctx, "a.example", session));
	assert_false(resumes(s, ctx, "b.example", session));	/* another name, other certificates */
	assert_false(resumes(s, ctx, NULL, session) && version == TLS_VERSION_12);
	spec.tickets = u;
	struct tls_server *stranger = server_of(spec);
	assert_false(resumes(stranger, ctx, "a.example", session));
	spec.tickets = NULL;
	struct tls_server *none = server_of(spec);
	assert_false(resumes(none, ctx, "a.example", session));
	SSL_SESSION_free(got);
	got = NULL;
	assert_null(session_of(none, ctx, "a.example"));

	/* what clients must show: a session of those who need not does not help */
	spec.tickets = t;
	spec.client_certs = TLS_CLIENT_CERTS_OPTIONAL;
	struct tls_server *optional = server_of(spec);
	spec.client_certs = TLS_CLIENT_CERTS_REQUIRE;
	struct tls_server *required = server_of(spec);
	spec.client_ca = pem_str(&pem_other_ca);
	struct tls_server *others = server_of(spec);
	assert_false(resumes(optional, ctx, "a.example", session));
	assert_false(resumes(required, ctx, "a.example", session));
	more = session_of(required, ctx, "a.example");
	assert_true(resumes(required, ctx, "a.example", more));
	SSL *client, *server;
	assert_false(shake_name(others, ctx, "a.example", &client, &server, more));	/* and they refuse its certificate */
	done(client, server);
	SSL_SESSION_free(more);

	/* a period later it is good, and replaced (in TLS 1.3 each is); two later it is not */
	assert_true(resumes(s, ctx, "a.example", session));
	assert_int_equal(replaced, version == TLS_VERSION_13);
	assert_int_equal(tls_tickets_turn(t, NOW + TLS_TICKET_PERIOD), OK);
	assert_true(resumes(s, ctx, "a.example", session));
	assert_true(replaced);
	more = session_of(s, ctx, "a.example");
	assert_int_equal(tls_tickets_turn(t, NOW + 2 * TLS_TICKET_PERIOD), OK);
	assert_false(resumes(s, ctx, "a.example", session));
	assert_true(resumes(s, ctx, "a.example", more));
	SSL_SESSION_free(more);
	more = session_of(s, ctx, "a.example");
	assert_int_equal(tls_tickets_turn(t, NOW + 2 * TLS_TICKET_PERIOD + 1), OK);
	assert_true(resumes(s, ctx, "a.example", more));
	assert_int_equal(tls_tickets_turn(t, NOW + 9 * TLS_TICKET_PERIOD), OK);	/* it slept */
	assert_false(resumes(s, ctx, "a.example", more));
	SSL_SESSION_free(more);
	SSL_SESSION_free(session);
	SSL_SESSION_free(got);
	got = NULL;
	struct tls_server *all[] = { s, twin, stranger, none, optional, required, others };
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		tls_server_unref(all[i]);
	tls_tickets_free(t);
	tls_tickets_free(u);
	tls_tickets_free(NULL);
	SSL_CTX_free(ctx);
}

static void tickets(void **state)
{
	(void)state;
	tickets_for(TLS_VERSION_13);
	tickets_for(TLS_VERSION_12);
}

/* Listeners that share keys: a session has a cipher of both, and without a name it is for what the certificate is for. */
static void tickets_of_another_listener(void **state)
{
	const char *cipher = "ECDHE-ECDSA-AES256-GCM-SHA384";
	const struct tls_cert *ip = cert_named("x", "IP:10.0.0.1"), *same_ip = cert_named("x", "IP:10.0.0.1"), *other_ip = cert_named("x", "IP:10.0.0.2");
	struct tls_tickets *t = tls_tickets_new(STR(""), NOW, NULL);

	(void)state;
	for (int version = TLS_VERSION_12; version <= TLS_VERSION_13; version++) {
		struct tls_server_spec spec = {
			.certs = &ip, .n_certs = 1, .tickets = t, .n_tickets = 1, .max_version = (uint16_t)version,
		};
		struct tls_server *first = server_of(spec), *renewed, *another, *strict, *lax;
		SSL_CTX *ctx = remembering(NULL);
		SSL_SESSION *session = session_of(first, ctx, NULL);

		spec.certs = &same_ip;
		renewed = server_of(spec);
		spec.certs = &other_ip;
		another = server_of(spec);
		assert_true(resumes(renewed, ctx, NULL, session));
		assert_false(resumes(another, ctx, NULL, session));
		spec.certs = &ip;
		spec.ciphers = cipher;
		strict = server_of(spec);
		spec.ciphers = "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-ECDSA-AES128-GCM-SHA256";
		lax = server_of(spec);
		assert_int_equal(resumes(strict, ctx, NULL, session), version == TLS_VERSION_13);
		assert_true(resumes(lax, ctx, NULL, session));
		SSL_SESSION_free(session);
		SSL_SESSION_free(got);
		got = NULL;
		struct tls_server *all[] = { first, renewed, another, strict, lax };
		for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
			tls_server_unref(all[i]);
		SSL_CTX_free(ctx);
	}
	tls_tickets_free(t);
	tls_cert_unref(ip);
	tls_cert_unref(same_ip);
	tls_cert_unref(other_ip);
}

/* Instances with the same file take each other's tickets, over periods and clocks that differ. */
static void shared_tickets(void **state)
{
	static const char secret[] = "0123456789abcdef0123456789abcdef and more";
	static const char other[] = "0123456789abcdef0123456789abcdeF and more";
	struct tls_tickets *a = tls_tickets_new(str_of(secret), NOW, NULL);
	struct tls_tickets *b = tls_tickets_new(str_of(secret), NOW + TLS_TICKET_PERIOD, NULL);
	struct tls_tickets *c = tls_tickets_new(str_of(other), NOW, NULL);
	struct tls_server *sa = server_of((struct tls_server_spec){ .tickets = a, .n_tickets = 1 });
	struct tls_server *sb = server_of((struct tls_server_spec){ .tickets = b, .n_tickets = 1 });
	struct tls_server *sc = server_of((struct tls_server_spec){ .tickets = c, .n_tickets = 1 });
	SSL_CTX *ctx = remembering(NULL);
	SSL_SESSION *of_a = session_of(sa, ctx, "a.example"), *of_b = session_of(sb, ctx, "a.example");
	SSL_SESSION *of_c = session_of(sc, ctx, "a.example");
	struct tls_error e;

	(void)state;
	assert_true(resumes(sb, ctx, "a.example", of_a));
	assert_true(resumes(sa, ctx, "a.example", of_b));
	assert_false(resumes(sc, ctx, "a.example", of_a));
	assert_int_equal(tls_tickets_turn(b, NOW + 2 * TLS_TICKET_PERIOD), OK);
	assert_false(resumes(sb, ctx, "a.example", of_a));
	assert_true(resumes(sb, ctx, "a.example", of_b));
	/* another secret: none of before, and those of whom else has it */
	assert_int_equal(tls_tickets_share(a, STR("too short"), NOW, &e), ERR_SYNTAX);
	assert_true(resumes(sa, ctx, "a.example", of_b));
	assert_int_equal(tls_tickets_share(a, str_of(other), NOW, &e), OK);
	assert_false(resumes(sa, ctx, "a.example", of_b));
	assert_true(resumes(sa, ctx, "a.example", of_c));
	assert_null(tls_tickets_new(STR("0123456789abcdef0123456789abcde"), NOW, &e));
	assert_int_equal(e.part, TLS_PART_TICKETS);
	assert_non_null(strstr(e.text, "31 bytes"));
	SSL_SESSION_free(of_a);
	SSL_SESSION_free(of_b);
	SSL_SESSION_free(of_c);
	SSL_SESSION_free(got);
	got = NULL;
	tls_server_unref(sa);
	tls_server_unref(sb);
	tls_server_unref(sc);
	tls_tickets_free(a);
	tls_tickets_free(b);
	tls_tickets_free(c);
	SSL_CTX_free(ctx);
}

/* --- our client --- */

static struct tls_client *client_of(struct tls_client_spec spec)
{
	struct tls_error e = {0};
	struct tls_client *c = tls_client_new(&spec, &e);

	if (!c)
		fail_msg("%s", e.text);
	return c;
}

/* An SSL object of a server that shows `m` for whatever it is asked. */
static SSL_CTX *server_ctx(const struct tls_made *m)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());

	assert_true(SSL_CTX_use_certificate(ctx, m->x509));
	assert_true(SSL_CTX_use_PrivateKey(ctx, m->key));
	SSL_CTX_set_session_id_context(ctx, (const unsigned char *)"x", 1);
	return ctx;
}

/* Whether `c` accepts that server as `name`; *reused and *asked (the name that was sent) may be NULL. */
static bool accepts(const struct tls_client *c, SSL_CTX *ctx, const char *name, struct tls_resume *resume, bool *reused,
		char *asked)
{
	SSL *client, *server = SSL_new(ctx);
	const char *sent;
	bool good;

	SSL_set_accept_state(server);
	assert_int_equal(tls_client_ssl(c, str_of(name), resume, &client), OK);
	good = talk(client, server);
	if (good)
		tls_client_shaken(client);
	if (reused)
		*reused = SSL_session_reused(client);
	sent = SSL_get_servername(server, TLSEXT_NAMETYPE_host_name);
	if (asked)
		strcpy(asked, sent ? sent : "");
	done(client, server);
	return good;
}

/* An authority that `issuer` has signed. */
static void authority_init(struct tls_made *m, const char *name, const struct tls_made *issuer)
{
	X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, NULL, NID_basic_constraints, "critical,CA:TRUE");

	tls_made_init(m, "EC", name, issuer);
	assert_true(X509_add_ext(m->x509, e, -1));
	X509_EXTENSION_free(e);
	assert_true(X509_sign(m->x509, issuer->key, EVP_sha256()));
}

/* Who comes in by which lists, over an authority between, whose certificate comes from the peer or is all that is trusted. */
static void revoked_authorities(void **state)
{
	struct tls_made between, leaf;
	struct pem pem_between = {0}, lists = {0};
	struct tls_server_spec spec = { .client_certs = TLS_CLIENT_CERTS_REQUIRE };
	enum { OF_ROOT = 1, REVOKES = 2, OF_BETWEEN = 4, TRUSTS_BETWEEN = 8 };
	static const struct { int is; bool comes_in; } cases[] = {
		{ 0, true }, { OF_ROOT | OF_BETWEEN, true }, { OF_ROOT | REVOKES | OF_BETWEEN, false },
		{ OF_ROOT, false }, { OF_BETWEEN, false },
		{ TRUSTS_BETWEEN | OF_BETWEEN, true }, { TRUSTS_BETWEEN | OF_ROOT, false },
	};

	(void)state;
	authority_init(&between, "An Authority Between", &ca);
	tls_made_init(&leaf, "EC", "a.example", &between);
	pem_cert(&pem_between, &between);
	SSL_CTX *client = client_with(&leaf), *origin = server_ctx(&leaf);
	assert_true(SSL_CTX_add1_chain_cert(client, between.x509) && SSL_CTX_add1_chain_cert(origin, between.x509));
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		int is = cases[i].is;

		lists.n = 0;
		if (is & OF_ROOT)
			pem_crl(&lists, &ca, is & REVOKES ? &between : NULL);
		if (is & OF_BETWEEN)
			pem_crl(&lists, &between, NULL);
		spec.client_ca = is & TRUSTS_BETWEEN ? pem_str(&pem_between) : pem_str(&pem_ca);
		spec.client_crl = pem_str(&lists);
		struct tls_server *s = server_of(spec);
		struct tls_client *c = client_of((struct tls_client_spec){ .ca = spec.client_ca, .crl = spec.client_crl });
		if (gets_on(s, client, NULL) != cases[i].comes_in || accepts(c, origin, "a.example", NULL, NULL, NULL) != cases[i].comes_in)
			fail_msg("case %zu", i);
		tls_server_unref(s);
		tls_client_unref(c);
	}
	SSL_CTX_free(client);
	SSL_CTX_free(origin);
	tls_made_fini(&between);
	tls_made_fini(&leaf);
}

static void endpoints_are_verified(void **state)
{
	struct tls_client *ours = client_of((struct tls_client_spec){ .ca = pem_str(&pem_ca) });
	struct tls_client *theirs = client_of((struct tls_client_spec){ .ca = pem_str(&pem_other_ca) });
	struct tls_client *system = client_of((struct tls_client_spec){0});
	struct tls_client *blind = client_of((struct tls_client_spec){ .insecure = true });
	struct tls_made address, expired;
	char asked[300];

	(void)state;
	tls_made_names(&address, "EC", "x", "IP:10.0.0.1,IP:2001:db8::1", &ca);
	tls_made_init(&expired, "EC", "a.example", &ca);
	X509_gmtime_adj(X509_getm_notAfter(expired.x509), -60);
	assert_true(X509_sign(expired.x509, ca.key, EVP_sha256()));
	SSL_CTX *a = server_ctx(&a_rsa), *w = server_ctx(&wild), *ip = server_ctx(&address), *late = server_ctx(&expired);
	assert_true(accepts(ours, a, "a.example", NULL, NULL, asked));
	assert_string_equal(asked, "a.example");
	assert_true(accepts(ours, a, "A.Example", NULL, NULL, NULL));
	assert_false(accepts(ours, a, "b.example", NULL, NULL, NULL));
	assert_false(accepts(ours, a, "10.0.0.1", NULL, NULL, NULL));
	assert_false(accepts(ours, late, "a.example", NULL, NULL, NULL));
	assert_true(accepts(ours, w, "x.wild.example", NULL, NULL, NULL));
	assert_false(accepts(ours, w, "y.x.wild.example", NULL, NULL, NULL));
	assert_false(accepts(ours, w, "wild.example", NULL, NULL, NULL));
	assert_true(accepts(ours, ip, "10.0.0.1", NULL, NULL, asked));
	assert_string_equal(asked, "");
	assert_true(accepts(ours, ip, "2001:db8::1", NULL, NULL, NULL));
	assert_false(accepts(ours, ip, "10.0.0.2", NULL, NULL, NULL));
	assert_false(accepts(theirs, a, "a.example", NULL, NULL, NULL));
	assert_false(accepts(system, a, "a.example", NULL, NULL, NULL));
	assert_true(accepts(blind, a, "whoever.example", NULL, NULL, asked));
	assert_string_equal(asked, "whoever.example");
	assert_true(accepts(blind, late, "a.example", NULL, NULL, NULL));
	SSL *ssl;
	assert_int_equal(tls_client_ssl(ours, STR(""), NULL, &ssl), ERR_SYNTAX);
	assert_int_equal(tls_client_ssl(ours, STR("a\0b"), NULL, &ssl), ERR_SYNTAX);
	char longer[300];
	memset(longer, 'a', sizeof(longer));
	assert_int_equal(tls_client_ssl(ours, (struct str){ longer, 254 }, NULL, &ssl), ERR_SYNTAX);
	tls_client_unref(tls_client_ref(ours));
	struct tls_client *all[] = { ours, theirs, system, blind, NULL };
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		tls_client_unref(all[i]);
	SSL_CTX_free(a);
	SSL_CTX_free(w);
	SSL_CTX_free(ip);
	SSL_CTX_free(late);
	tls_made_fini(&address);
	tls_made_fini(&expired);
}

static void what_a_client_shows_and_offers(void **state)
{
	const struct str offered[] = { STR("h2"), STR("http/1.1") };
	struct tls_server *s = server_of((struct tls_server_spec){
		.client_certs = TLS_CLIENT_CERTS_REQUIRE, .client_ca = pem_str(&pem_ca), .alpn = offered + 1, .n_alpn = 1,
	});
	struct tls_client *with = client_of((struct tls_client_spec){
		.ca = pem_str(&pem_ca), .cert = cert_client, .alpn = offered, .n_alpn = 2,
	});
	struct tls_client *without = client_of((struct tls_client_spec){ .ca = pem_str(&pem_ca) });
	const unsigned char *p;
	unsigned n;

	(void)state;
	for (int i = 0; i < 2; i++) {
		SSL *client, *server = tls_server_ssl(s, tls_server_group(s, STR("a.example"), NULL));
		assert_int_equal(tls_client_ssl(i ? without : with, STR("a.example"), NULL, &client), OK);
		assert_int_equal(talk(client, server), i == 0);
		if (i == 0) {
			assert_int_equal(X509_cmp(SSL_get0_peer_certificate(server), client_made.x509), 0);
			SSL_get0_alpn_selected(client, &p, &n);
			assert_int_equal(n, 8);
			assert_memory_equal(p, "http/1.1", 8);
		}
		done(client, server);
	}
	tls_server_unref(s);
	tls_client_unref(with);
	tls_client_unref(without);
}

/* A server's ticket key that has everybody renew: 2. */
static int renewing(SSL *ssl, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac, int seal)
{
	static unsigned char key[32] = { 1 };
	OSSL_PARAM params[] = {
		OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, key, sizeof(key)),
		OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)(uintptr_t)"SHA256", 0), OSSL_PARAM_construct_end(),
	};

	(void)ssl;
	if (seal) {
		memset(name, 'n', 16);
		memset(iv, 'i', 16);
	}
	if (name[0] != 'n' || !EVP_MAC_CTX_set_params(mac, params) || !EVP_CipherInit_ex(cipher, EVP_aes_256_cbc(), NULL, key, iv, seal))
		return 0;
	return seal ? 1 : 2;
}

static void clients_resume(void **state)
{
	struct tls_client *c = client_of((struct tls_client_spec){ .ca = pem_str(&pem_ca) });
	SSL_CTX *a = server_ctx(&a_ec), *other = server_ctx(&a_ec);
	struct tls_resume r = {0};
	bool reused;

	(void)state;
	assert_true(accepts(c, a, "a.example", &r, &reused, NULL));
	assert_false(reused);
	assert_non_null(r.session[0]);
	assert_non_null(r.session[1]);
	for (int i = 0; i < 5; i++) {
		assert_true(accepts(c, a, "a.example", &r, &reused, NULL));
		assert_true(reused);
		assert_non_null(r.session[0]);
	}
	/* nobody else's: who resumes does not verify */
	struct tls_client *strict = client_of((struct tls_client_spec){ .ca = pem_str(&pem_other_ca) });
	assert_false(accepts(strict, a, "a.example", &r, &reused, NULL));
	assert_null(r.session[0]);
	assert_false(accepts(c, a, "b.example", &r, &reused, NULL));
	assert_null(r.session[0]);
	tls_client_unref(strict);
	/* a ticket that comes to a connection from before is not for those from now on */
	SSL *before, *peer = SSL_new(a), *since;
	SSL_set_accept_state(peer);
	assert_int_equal(tls_client_ssl(c, STR("a.example"), &r, &before), OK);
	strict = client_of((struct tls_client_spec){ .ca = pem_str(&pem_other_ca) });
	assert_int_equal(tls_client_ssl(strict, STR("a.example"), &r, &since), OK);
	assert_true(talk(before, peer));
	assert_null(r.session[0]);
	done(before, peer);
	SSL_free(since);
	tls_client_unref(strict);
	assert_true(accepts(c, a, "a.example", &r, &reused, NULL));
	assert_false(reused);
	assert_non_null(r.session[1]);
	/* each is used once: two at the same time, and the third has none */
	SSL *three[3];
	for (int i = 0; i < 3; i++) {
		assert_int_equal(tls_client_ssl(c, STR("a.example"), &r, &three[i]), OK);
		assert_int_equal(SSL_get_session(three[i]) != NULL, i < 2);
	}
	for (int i = 0; i < 3; i++)
		SSL_free(three[i]);
	/* those of TLS 1.2 are good for many */
	SSL_CTX_set_max_proto_version(a, TLS1_2_VERSION);
	for (int i = 0; i < 3; i++) {
		assert_true(accepts(c, a, "a.example", &r, &reused, NULL));
		assert_int_equal(reused, i > 0);
		assert_int_equal(tls_client_ssl(c, STR("a.example"), &r, &three[0]), OK);
		assert_non_null(SSL_get_session(three[0]));
		SSL_free(three[0]);
	}
	/* a new ticket at each resumption, as some servers have it */
	SSL_CTX_set_tlsext_ticket_key_evp_cb(a, renewing);
	for (int i = 0; i < 5; i++) {
		assert_true(accepts(c, a, "a.example", &r, &reused, NULL));
		assert_int_equal(reused, i > 0);
	}
	assert_true(accepts(c, other, "a.example", &r, &reused, NULL));
	assert_false(reused);
	tls_resume_fini(&r);
	assert_null(r.session[0]);
	SSL *client, *server = SSL_new(a);
	SSL_set_accept_state(server);
	assert_int_equal(tls_client_ssl(c, STR("a.example"), &r, &client), OK);
	tls_client_settled(client);
	assert_true(talk(client, server));
	assert_null(r.session[0]);		/* a ticket that came later is nobody's */
	done(client, server);
	tls_client_unref(c);
	SSL_CTX_free(a);
	SSL_CTX_free(other);
}

static void clients_refused(void **state)
{
	const struct str empty[] = { { "", 0 } };

	(void)state;
	client_refused((struct tls_client_spec){ .ca = STR("nothing") }, TLS_PART_CA, "holds no certificate");
	client_refused((struct tls_client_spec){ .ca = pem_str(&pem_ca), .crl = STR("x") }, TLS_PART_CRL, "holds no list");
	client_refused((struct tls_client_spec){ .ciphers = "NONE" }, TLS_PART_CIPHERS, "cipher");
	client_refused((struct tls_client_spec){ .suites = "NONE" }, TLS_PART_SUITES, "suite");
	client_refused((struct tls_client_spec){ .groups = "NONE" }, TLS_PART_GROUPS, "group");
	client_refused((struct tls_client_spec){ .alpn = empty, .n_alpn = 1 }, TLS_PART_ALPN, "empty");
}

/* Both ends are parked, as they will be in the proxy. */
static void both_ends_park(void **state)
{
	struct tls_tickets *t = tls_tickets_new(STR(""), NOW, NULL);
	struct tls_server *s = server_of((struct tls_server_spec){ .tickets = t, .n_tickets = 2, .park = true });
	struct tls_client *c = client_of((struct tls_client_spec){ .ca = pem_str(&pem_ca), .park = true });
	struct tls13_shared *sh = tls13_shared_new(NULL);
	struct tls_resume resume = {0};
	struct end { SSL *ssl; struct feed feed; struct tls13_watch watch; struct tls13 *t; } e[2];

	(void)state;
	for (int round = 0; round < 2; round++) {
		memset(e, 0, sizeof(e));
		assert_int_equal(tls_client_ssl(c, STR("a.example"), &resume, &e[0].ssl), OK);
		e[1].ssl = tls_server_ssl(s, tls_server_group(s, STR("a.example"), NULL));
		for (int i = 0; i < 2; i++) {
			e[i].feed.limit = 1 << 20;
			assert_int_equal(tls13_watch(&e[i].watch, e[i].ssl), OK);
			assert_int_equal(feed_attach(&e[i].feed, e[i].ssl), OK);
		}
		for (int i = 0; i < 8; i++) {
			struct end *now = &e[i % 2], *from = &e[1 - i % 2];
			size_t n = buf_len(from->feed.out);
			char byte;
			size_t read;
			now->feed.in = buf_str(from->feed.out);
			if (SSL_do_handshake(now->ssl) == 1)
				SSL_read_ex(now->ssl, &byte, 1, &read);
			buf_consume(&from->feed.out, NULL, n);
			now->feed.in = (struct str){0};
		}
		assert_int_equal(SSL_session_reused(e[0].ssl), round);
		for (int i = 0; i < 2; i++) {
			assert_int_equal(tls13_take(sh, e[i].ssl, &e[i].watch, &e[i].t), TLS13_TAKEN);
			tls13_watch_end(&e[i].watch, e[i].ssl);
			SSL_free(e[i].ssl);
		}
		for (int i = 0; i < 4; i++) {
			char out[100];
			struct iovec iov = { (void *)"hello", 5 };
			size_t taken, sealed, used;
			struct str plain;
			assert_int_equal(tls13_seal(sh, e[i % 2].t, &iov, 1, out, sizeof(out), &taken, &sealed), OK);
			assert_int_equal(tls13_open(sh, e[1 - i % 2].t, out, sealed, &used, &plain), TLS13_MORE);
			assert_true(str_eq(plain, STR("hello")));
		}
		for (int i = 0; i < 2; i++) {
			feed_fini(&e[i].feed);
			tls13_free(sh, e[i].t);
		}
	}
	tls_resume_fini(&resume);
	tls13_shared_free(sh);
	tls_server_unref(s);
	tls_client_unref(c);
	tls_tickets_free(t);
}

/* --- memory --- */

static size_t allocs, fail_at;	/* of OpenSSL and of ours */

static bool refuse(void)
{
	return fail_at && ++allocs >= fail_at;
}

static void *count_malloc(size_t n, const char *file, int line)
{
	(void)file;
	(void)line;
	return refuse() ? NULL : malloc(n);
}

static void *count_realloc(void *p, size_t n, const char *file, int line)
{
	(void)file;
	(void)line;
	return refuse() ? NULL : realloc(p, n);
}

static void count_free(void *p, const char *file, int line)
{
	(void)file;
	(void)line;
	free(p);
}

/* One whole setting-up, with whatever memory there is; true when all of it came about. */
static bool set_up(const struct pem *chain, const struct pem *key, const struct pem *crl)
{
	const struct str offered[] = { STR("http/1.1") };
	struct tls_error e = {0};
	struct tls_cert *cert = tls_cert_new(pem_str(chain), pem_str(key), &e);
	struct tls_tickets *t = cert ? tls_tickets_new(STR(""), NOW, &e) : NULL;
	const struct tls_cert *certs[] = { cert };
	struct tls_server_spec server = {
		.certs = certs, .n_certs = 1, .tickets = t, .n_tickets = 1, .alpn = offered, .n_alpn = 1, .park = true,
		.client_certs = TLS_CLIENT_CERTS_OPTIONAL, .client_ca = pem_str(&pem_ca), .client_crl = pem_str(crl),
	};
	struct tls_client_spec client = { .cert = cert, .ca = pem_str(&pem_ca), .alpn = offered, .n_alpn = 1, .park = true };
	struct tls_server *s = t ? tls_server_new(&server, &e) : NULL;
	struct tls_client *c = s ? tls_client_new(&client, &e) : NULL;
	SSL *a = c ? tls_server_ssl(s, tls_server_group(s, STR("a.example"), NULL)) : NULL, *b = NULL;
	bool good = a && tls_client_ssl(c, STR("a.example"), NULL, &b) == OK;

	SSL_free(a);
	SSL_free(b);
	tls_client_unref(c);
	tls_server_unref(s);
	tls_tickets_free(t);
	tls_cert_unref(cert);
	return good;
}

static void no_memory(void **state)
{
	struct pem chain = {0}, key = {0}, crl = {0};

	(void)state;
	pem_cert(&chain, &a_ec);
	pem_cert(&chain, &ca);
	pem_key(&key, &a_ec, NULL);
	pem_crl(&crl, &ca, NULL);
	assert_true(set_up(&chain, &key, &crl));
	for (size_t n = 1; ; n++) {
		mem_fail_from(n);
		bool good = set_up(&chain, &key, &crl);
		mem_fail_from(0);
		if (good)
			break;
	}
	size_t failed = 0;
	for (size_t n = 1; ; n += 1 + n / 64, failed++) {
		allocs = 0;
		fail_at = n;
		bool good = set_up(&chain, &key, &crl);
		fail_at = 0;
		if (good)
			break;
	}
	assert_true(failed > 50);
	ERR_clear_error();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(certificates),
		cmocka_unit_test(names_and_hosts),
		cmocka_unit_test(certificates_refused),
		cmocka_unit_test(certificates_by_name),
		cmocka_unit_test(many_names),
		cmocka_unit_test(servers_refused),
		cmocka_unit_test(versions_and_ciphers),
		cmocka_unit_test(alpn),
		cmocka_unit_test(client_certificates),
		cmocka_unit_test(revoked_clients),
		cmocka_unit_test(revoked_authorities),
		cmocka_unit_test(tickets),
		cmocka_unit_test(tickets_of_another_listener),
		cmocka_unit_test(shared_tickets),
		cmocka_unit_test(endpoints_are_verified),
		cmocka_unit_test(what_a_client_shows_and_offers),
		cmocka_unit_test(clients_resume),
		cmocka_unit_test(clients_refused),
		cmocka_unit_test(both_ends_park),
		cmocka_unit_test(no_memory),
	};

	assert_true(CRYPTO_set_mem_functions(count_malloc, count_realloc, count_free));
	return cmocka_run_group_tests(tests, setup, teardown);
}
