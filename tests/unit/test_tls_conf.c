/* proxy/tls: what the configuration says of TLS, as handshakes show it; files that are wrong, and files that change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include <openssl/err.h>
#include <openssl/pem.h>

#include "conf/conf.h"
#include "lib/base/mem.h"
#include "lib/net/loop.h"
#include "lib/net/tls_client.h"
#include "lib/net/tls_server.h"
#include "proxy/server.h"
#include "proxy/settings.h"
#include "proxy/tls.h"
#include "tests/unit/tls_peer.h"

#define NOW ((int64_t)time(NULL))

static char root[64];
static struct tls_made ca, other_ca;
static struct server server;
static struct conf *conf;
static struct endpoint_table *endpoints;
static char told[4096];

/* --- files --- */

static const char *path(const char *name)
{
	static char text[4][128];	/* so many at a time */
	static unsigned n;

	n = (n + 1) % 4;
	snprintf(text[n], sizeof text[n], "%s/%s", root, name);
	return text[n];
}

static void put(const char *name, const char *text, size_t n)
{
	FILE *f = fopen(path(name), "we");

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, n, f), n);
	fclose(f);
}

static void put_x509(const char *name, X509 *x)
{
	FILE *f = fopen(path(name), "we");

	assert_true(f && PEM_write_X509(f, x));
	fclose(f);
}

/* NAME.pem and NAME.key. */
static void put_pair(const char *name, const struct tls_made *c)
{
	char file[64];
	FILE *f;

	snprintf(file, sizeof file, "%s.pem", name);
	put_x509(file, c->x509);
	snprintf(file, sizeof file, "%s.key", name);
	f = fopen(path(file), "we");
	assert_true(f && PEM_write_PrivateKey(f, c->key, NULL, NULL, 0, NULL, NULL));
	fclose(f);
}

static void make_pair(const char *name, const char *type, const char *host, const struct tls_made *issuer)
{
	struct tls_made c;

	tls_made_init(&c, type, host, issuer);
	put_pair(name, &c);
	tls_made_fini(&c);
}

static void put_crl(const char *name, const struct tls_made *issuer, X509 *revoked)
{
	X509_CRL *crl = X509_CRL_new();
	ASN1_TIME *t = ASN1_TIME_new();
	FILE *f = fopen(path(name), "we");

	X509_CRL_set_version(crl, 1);
	X509_CRL_set_issuer_name(crl, X509_get_subject_name(issuer->x509));
	X509_gmtime_adj(t, -60);
	X509_CRL_set1_lastUpdate(crl, t);
	X509_gmtime_adj(t, 3600);
	X509_CRL_set1_nextUpdate(crl, t);
	if (revoked) {
		X509_REVOKED *r = X509_REVOKED_new();

		X509_REVOKED_set_serialNumber(r, X509_get_serialNumber(revoked));
		X509_gmtime_adj(t, -60);
		X509_REVOKED_set_revocationDate(r, t);
		X509_CRL_add0_revoked(crl, r);
	}
	assert_true(X509_CRL_sign(crl, issuer->key, EVP_sha256()));
	assert_true(f && PEM_write_X509_CRL(f, crl));
	fclose(f);
	ASN1_TIME_free(t);
	X509_CRL_free(crl);
}

static int removed(const char *name, const struct stat *s, int type, struct FTW *f)
{
	(void)s, (void)type, (void)f;
	return remove(name);
}

static int begin_all(void **state)
{
	(void)state;
	strcpy(root, "/tmp/thimble-tls-XXXXXX");
	assert_non_null(mkdtemp(root));
	tls_made_init(&ca, "EC", "an authority", NULL);
	tls_made_init(&other_ca, "EC", "another authority", NULL);
	put_x509("ca.pem", ca.x509);
	put_x509("other-ca.pem", other_ca.x509);
	return 0;
}

static int end_all(void **state)
{
	(void)state;
	tls_made_fini(&ca);
	tls_made_fini(&other_ca);
	return nftw(root, removed, 8, FTW_DEPTH | FTW_PHYS);
}

static int begin(void **state)
{
	(void)state;
	make_pair("a", "EC", "a.test", &ca);
	make_pair("b", "EC", "b.test", &ca);
	make_pair("a-rsa", "RSA", "a.test", &ca);
	make_pair("client", "EC", "a client", &ca);
	make_pair("stranger", "EC", "a stranger", &other_ca);
	return 0;
}

/* --- the configuration --- */

static void note(void *ctx, struct conf_pos pos, const char *text)
{
	size_t n = strlen(told), front = strlen(root) + 1;
	const char *at;

	(void)ctx;
	snprintf(told + n, sizeof told - n, "%u:%u: ", pos.line, pos.column);
	for (n = strlen(told); *text && n + 1 < sizeof told; text++) {	/* without the folder */
		at = strncmp(text, root, front - 1) == 0 ? text += front : text;
		told[n++] = *at;
		told[n] = '\0';
	}
	snprintf(told + n, sizeof told - n, "\n");
}

static enum err load(const char *text)
{
	struct conf_errors errors;

	conf_errors_init(&errors);
	conf = conf_parse(path("thimble.yaml"), str_of(text), NULL, &errors);
	if (!conf)
		conf_errors_print(&errors, stderr);
	conf_errors_fini(&errors);
	assert_non_null(conf);
	told[0] = '\0';
	return tls_new(conf, NOW, note, NULL, &server.tls);
}

static void start(const char *text)
{
	if (load(text) != OK)
		fail_msg("%s", told);
	endpoints = endpoint_table_new();
}

static void stop(void)
{
	conf_free(conf);
	tls_free(server.tls);
	endpoint_table_free(endpoints);
	conf = NULL;
	server.tls = NULL;
	endpoints = NULL;
}

#define LISTEN(keys) "listen: {address: ':1', tls: {" keys "}}\nroutes: [{answer: {}}]\n"
#define A "certificates: {cert: a.pem, key: a.key}"
#define SERVICE(keys) "services: {s: " keys "}\nroutes: [{service: s}]\n"

/* --- handshakes --- */

struct seen {
	bool good, reused;
	char subject[64], asked[64], cipher[64], group[32];
	int version;
	SSL_SESSION *session;	/* of a client that remembers; owned */
};

static SSL_SESSION *got;

static int on_session(SSL *ssl, SSL_SESSION *session)
{
	(void)ssl;
	SSL_SESSION_free(got);
	got = session;
	return 1;
}

static SSL_CTX *client_ctx(void)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());

	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_sess_set_new_cb(ctx, on_session);
	return ctx;
}

static void use_pair(SSL_CTX *ctx, const char *name)
{
	char file[64];

	snprintf(file, sizeof file, "%s.pem", name);
	assert_true(SSL_CTX_use_certificate_file(ctx, path(file), SSL_FILETYPE_PEM));
	snprintf(file, sizeof file, "%s.key", name);
	assert_true(SSL_CTX_use_PrivateKey_file(ctx, path(file), SSL_FILETYPE_PEM));
}

static void subject_of(X509 *x, char *to, size_t n)
{
	*to = '\0';
	if (x)
		X509_NAME_get_text_by_NID(X509_get_subject_name(x), NID_commonName, to, (int)n);
}

/* Both are freed. */
static struct seen talk(SSL *client, SSL *srv)
{
	struct seen s = {0};
	BIO *a, *b;
	char c;
	size_t n;
	int r, q = 0;

	assert_true(BIO_new_bio_pair(&a, 0, &b, 0));
	SSL_set_bio(client, a, a);
	SSL_set_bio(srv, b, b);
	for (int i = 0; i < 20 && !s.good; i++) {
		r = SSL_do_handshake(client);
		if (r != 1 && SSL_get_error(client, r) != SSL_ERROR_WANT_READ)
			break;
		q = SSL_do_handshake(srv);
		if (q != 1 && SSL_get_error(srv, q) != SSL_ERROR_WANT_READ)
			break;
		s.good = r == 1 && q == 1;
	}
	if (s.good) {
		SSL_read_ex(client, &c, 1, &n);	/* tickets, or an alert */
		s.good = SSL_get_error(client, 0) == SSL_ERROR_WANT_READ;
	}
	s.version = SSL_version(client);
	s.reused = SSL_session_reused(client);
	subject_of(SSL_get0_peer_certificate(client), s.subject, sizeof s.subject);
	if (s.good) {
		snprintf(s.cipher, sizeof s.cipher, "%s", SSL_get_cipher_name(client));
		snprintf(s.group, sizeof s.group, "%s", OBJ_nid2sn((int)SSL_get_negotiated_group(client)));
	}
	snprintf(s.asked, sizeof s.asked, "%s", SSL_get_servername(srv, TLSEXT_NAMETYPE_host_name) ?: "");
	SSL_set_shutdown(client, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);	/* or its session is spoilt */
	SSL_free(client);
	SSL_free(srv);
	ERR_clear_error();
	return s;
}

/* A client of `ctx` that asks for `name` (may be NULL) at the listener; `session` (may be NULL) is what it resumes. */
static struct seen call_with(SSL_CTX *ctx, const char *name, SSL_SESSION *session)
{
	const struct tls_server *s = tls_of_listener(&server, 0);
	SSL *client = SSL_new(ctx), *srv = tls_server_ssl(s, tls_server_group(s, name ? str_of(name) : STR(""), NULL));
	struct seen seen;

	SSL_set_connect_state(client);
	if (name)
		SSL_set_tlsext_host_name(client, name);
	if (session) {	/* a copy: one of TLS 1.3 is used once */
		SSL_SESSION *copy = SSL_SESSION_dup(session);

		assert_true(SSL_set_session(client, copy));
		SSL_SESSION_free(copy);
	}
	seen = talk(client, srv);
	tls_server_unref(s);
	return seen;
}

static struct seen call(const char *name)
{
	SSL_CTX *ctx = client_ctx();
	struct seen seen = call_with(ctx, name, NULL);

	SSL_CTX_free(ctx);
	return seen;
}

static struct endpoint *endpoint_of(unsigned service)
{
	const struct conf_address *c = &conf->services[service].endpoints.items[0];
	struct endpoint_address a = {
		.family = c->kind == CONF_UNIX ? ENDPOINT_UNIX : c->kind == CONF_INET6 ? ENDPOINT_IP6 : ENDPOINT_IP4,
		.port = c->port, .path = c->kind == CONF_UNIX ? c->path.p : NULL, .tls = tls_number(server.tls, &conf->services[service]),
	};

	memcpy(a.ip, c->ip, 16);
	return endpoint_get(endpoints, &a);
}

/* We connect to an endpoint of the service, which is `ctx`. */
static struct seen connect_to(unsigned service, SSL_CTX *ctx)
{
	struct endpoint *e = endpoint_of(service);
	SSL *client, *srv = SSL_new(ctx);
	struct seen seen;

	assert_true(tls_of_endpoint(e));
	SSL_set_accept_state(srv);
	assert_int_equal(tls_connect(&server, e, NULL, &client), OK);
	seen = talk(client, srv);
	endpoint_unref(e);
	return seen;
}

static SSL_CTX *server_ctx(const char *pair)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());

	use_pair(ctx, pair);
	return ctx;
}

/* --- listeners --- */

static void nothing_asks_for_it(void **state)
{
	(void)state;
	start("routes: [{service: s}]\nservices: {s: 127.0.0.1:1}\n");
	assert_null(server.tls);
	assert_int_equal(tls_number(NULL, &conf->services[0]), 0);
	assert_int_equal(tls_tend(NULL, 0, NOW), -1);
	assert_int_equal(tls_counts(NULL).reloads, 0);
	stop();
}

/* cert, key: certificates are chosen by name, those of another kind by what the client can verify. */
static void certificates_by_name(void **state)
{
	SSL_CTX *ctx = client_ctx();

	(void)state;
	start(LISTEN("certificates: [{cert: a.pem, key: a.key}, {cert: b.pem, key: b.key}, {cert: a-rsa.pem, key: a-rsa.key}]"));
	assert_string_equal(call("a.test").subject, "a.test");
	assert_string_equal(call("b.test").subject, "b.test");
	assert_string_equal(call("c.test").subject, "a.test");
	assert_string_equal(call(NULL).subject, "a.test");
	SSL_CTX_set1_sigalgs_list(ctx, "rsa_pss_rsae_sha256");
	assert_true(call_with(ctx, "a.test", NULL).good);
	assert_false(call_with(ctx, "b.test", NULL).good);
	SSL_CTX_free(ctx);
	stop();
}

static struct seen call_by(const char *text, int version)
{
	SSL_CTX *ctx = client_ctx();
	struct seen seen;

	start(text);
	SSL_CTX_set_min_proto_version(ctx, version);
	SSL_CTX_set_max_proto_version(ctx, version);
	seen = call_with(ctx, NULL, NULL);
	SSL_CTX_free(ctx);
	stop();
	return seen;
}

/* min_version, max_version */
static void versions(void **state)
{
	(void)state;
	assert_true(call_by(LISTEN(A), TLS1_2_VERSION).good);
	assert_true(call_by(LISTEN(A), TLS1_3_VERSION).good);
	assert_false(call_by(LISTEN(A), TLS1_1_VERSION).good);
	assert_false(call_by(LISTEN(A ", min_version: 1.3"), TLS1_2_VERSION).good);
	assert_true(call_by(LISTEN(A ", min_version: 1.3"), TLS1_3_VERSION).good);
	assert_true(call_by(LISTEN(A ", max_version: 1.2"), TLS1_2_VERSION).good);
	assert_false(call_by(LISTEN(A ", max_version: 1.2"), TLS1_3_VERSION).good);
}

/* ciphers, suites, groups */
static void algorithms(void **state)
{
	(void)state;
	assert_string_equal(call_by(LISTEN(A), TLS1_2_VERSION).cipher, "ECDHE-ECDSA-AES128-GCM-SHA256");
	assert_string_equal(call_by(LISTEN(A ", ciphers: ECDHE-ECDSA-CHACHA20-POLY1305"), TLS1_2_VERSION).cipher,
			    "ECDHE-ECDSA-CHACHA20-POLY1305");
	assert_string_equal(call_by(LISTEN(A ", ciphers: [ECDHE-ECDSA-AES256-GCM-SHA384, ECDHE-ECDSA-AES128-GCM-SHA256]"),
				    TLS1_2_VERSION).cipher, "ECDHE-ECDSA-AES256-GCM-SHA384");
	assert_string_equal(call_by(LISTEN(A), TLS1_3_VERSION).cipher, "TLS_AES_128_GCM_SHA256");
	assert_string_equal(call_by(LISTEN(A ", suites: TLS_AES_256_GCM_SHA384"), TLS1_3_VERSION).cipher, "TLS_AES_256_GCM_SHA384");
	assert_string_equal(call_by(LISTEN(A), TLS1_3_VERSION).group, "X25519");
	assert_string_equal(call_by(LISTEN(A ", groups: [P-384]"), TLS1_3_VERSION).group, "secp384r1");
}

static bool lets_in(const char *pair)
{
	SSL_CTX *ctx = client_ctx();
	bool good;

	if (pair)
		use_pair(ctx, pair);
	good = call_with(ctx, NULL, NULL).good;
	SSL_CTX_free(ctx);
	return good;
}

/* client_certificates: ca, crl, mode */
static void who_clients_are(void **state)
{
	struct tls_made gone;

	(void)state;
	tls_made_init(&gone, "EC", "gone", &ca);
	put_pair("gone", &gone);
	put_crl("crl.pem", &ca, gone.x509);
	start(LISTEN(A ", client_certificates: {ca: ca.pem}"));
	assert_true(lets_in("client"));
	assert_true(lets_in("gone"));
	assert_false(lets_in("stranger"));
	assert_false(lets_in(NULL));
	stop();
	start(LISTEN(A ", client_certificates: {ca: ca.pem, mode: optional, crl: crl.pem}"));
	assert_true(lets_in("client"));
	assert_false(lets_in("gone"));
	assert_false(lets_in("stranger"));
	assert_true(lets_in(NULL));
	stop();
	start(LISTEN(A));
	assert_true(lets_in("stranger"));
	stop();
	tls_made_fini(&gone);
}

/* Whether what one listener gives is resumed by another, of another process say. */
static bool resumes(const char *one, const char *other)
{
	SSL_CTX *ctx = client_ctx();
	bool reused;

	start(one);
	SSL_SESSION_free(got);
	got = NULL;
	assert_true(call_with(ctx, "a.test", NULL).good);
	if (one != other) {
		stop();
		start(other);
	}
	reused = got && call_with(ctx, "a.test", got).reused;
	stop();
	SSL_SESSION_free(got);
	got = NULL;
	SSL_CTX_free(ctx);
	return reused;
}

/* tickets: on, off, key_file */
static void tickets(void **state)
{
	static const char on[] = LISTEN(A), off[] = LISTEN(A ", tickets: off"), shared[] = LISTEN(A ", tickets: {key_file: t1}");
	static const char again[] = LISTEN(A ", tickets: {key_file: t2}"), strange[] = LISTEN(A ", tickets: {key_file: t3}");

	(void)state;
	put("t1", "0123456789abcdef0123456789abcdef", 32);
	put("t2", "0123456789abcdef0123456789abcdef", 32);
	put("t3", "0123456789abcdef0123456789abcdeF", 32);
	assert_true(resumes(on, on));
	assert_false(resumes(off, off));
	assert_true(resumes(shared, shared));
	assert_true(resumes(shared, again));
	assert_false(resumes(shared, strange));
}

/* park; handshake and handshakes are settings of workers */
static void parking(void **state)
{
	struct settings *s;

	(void)state;
	start("listen: [{address: ':1', tls: {" A "}}, {address: ':2', tls: {" A ", park: off}}, ':3']\n"
	      "services: {s: {endpoints: 127.0.0.1:1, tls: {name: a.test}}, t: {endpoints: 127.0.0.1:1, tls: {name: a.test, park: off}}, u: 127.0.0.1:1}\n"
	      "limits: {handshakes: 7}\ntimeouts: {handshake: 3s}\nroutes: [{service: s}]\n");
	s = settings_new(conf);
	assert_true(s->listeners[0].park && (s->listeners[0].opening & OPENING_TLS));
	assert_true(!s->listeners[1].park && (s->listeners[1].opening & OPENING_TLS));
	assert_false(s->listeners[2].opening & OPENING_TLS);
	assert_int_equal(s->handshakes, 7);
	assert_int_equal(s->timeouts.handshake, 3000);
	settings_free(s);
	for (unsigned i = 0; i < 3; i++) {
		struct endpoint *e = endpoint_of(i);

		assert_int_equal(tls_of_endpoint(e), i < 2);
		if (i < 2)
			assert_int_equal(tls_endpoint_parks(&server, e), i == 0);
		endpoint_unref(e);
	}
	stop();
}

/* --- services --- */

static bool trusts(const char *text, const char *pair)
{
	SSL_CTX *ctx = server_ctx(pair);
	bool good;

	start(text);
	good = connect_to(0, ctx).good;
	stop();
	SSL_CTX_free(ctx);
	return good;
}

/* ca, crl, name, insecure_skip_verify */
static void endpoints_are_verified(void **state)
{
	struct tls_made gone;

	(void)state;
	tls_made_init(&gone, "EC", "a.test", &ca);
	put_pair("gone", &gone);
	put_crl("crl.pem", &ca, gone.x509);
	assert_true(trusts(SERVICE("{endpoints: 127.0.0.1:1, tls: {ca: ca.pem, name: a.test}}"), "a"));
	assert_true(trusts(SERVICE("{endpoints: https://127.0.0.1, host: a.test:443, tls: {ca: ca.pem}}"), "a"));
	assert_false(trusts(SERVICE("{endpoints: 127.0.0.1:1, tls: {ca: other-ca.pem, name: a.test}}"), "a"));
	assert_false(trusts(SERVICE("{endpoints: 127.0.0.1:1, tls: {name: a.test}}"), "a"));
	assert_false(trusts(SERVICE("{endpoints: 127.0.0.1:1, tls: {ca: ca.pem, name: a.test}}"), "b"));
	assert_true(trusts(SERVICE("{endpoints: 127.0.0.1:1, tls: {ca: ca.pem, name: a.test}}"), "gone"));
	assert_false(trusts(SERVICE("{endpoints: 127.0.0.1:1, tls: {ca: ca.pem, crl: crl.pem, name: a.test}}"), "gone"));
	assert_true(trusts(SERVICE("{endpoints: 127.0.0.1:1, tls: {ca: ca.pem, crl: crl.pem, name: a.test}}"), "a"));
	assert_true(trusts(SERVICE("{endpoints: 127.0.0.1:1, tls: {insecure_skip_verify: on}}"), "stranger"));
	tls_made_fini(&gone);
}

/* What is asked for, of a service without TLS's own name, and where there is none. */
static void names_that_are_asked_for(void **state)
{
	static const struct { const char *text, *asked; } rows[] = {
		{SERVICE("{endpoints: https://localhost, tls: {ca: ca.pem}}"), "localhost"},
		{SERVICE("{endpoints: ['localhost:1', 'localhost:2'], tls: {ca: ca.pem}}"), "localhost"},
		{SERVICE("{endpoints: https://localhost.a.test, tls: {ca: ca.pem}}"), "localhost.a.test"},
		{SERVICE("{endpoints: 'localhosts:1', tls: {ca: ca.pem}}"), "localhosts"},
		{SERVICE("{endpoints: 'local:1', tls: {ca: ca.pem}}"), "local"},
		{SERVICE("{endpoints: 127.0.0.1:1, host: a.test, tls: {ca: ca.pem}}"), "a.test"},
		{SERVICE("{endpoints: 127.0.0.1:1, host: a.test, tls: {ca: ca.pem, name: b.test}}"), "b.test"},
		{SERVICE("{endpoints: 127.0.0.1:1, tls: {ca: ca.pem, name: 127.0.0.1}}"), ""},
		{SERVICE("{endpoints: 127.0.0.1:1, tls: {ca: ca.pem, name: '[::1]'}}"), ""},
		{SERVICE("{endpoints: 127.0.0.1:1, tls: {insecure_skip_verify: on}}"), ""},
		{SERVICE("{endpoints: '[::1]:1', tls: {insecure_skip_verify: on}}"), ""},
		{SERVICE("{endpoints: 'unix:/run/x', tls: {insecure_skip_verify: on}}"), "localhost"},
	};
	SSL_CTX *ctx = server_ctx("a");

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		start(rows[i].text);
		assert_string_equal(connect_to(0, ctx).asked, rows[i].asked);
		stop();
	}
	SSL_CTX_free(ctx);
}

/* cert and key: who we are; and min_version, max_version, ciphers, suites, groups */
static void what_endpoints_see_of_us(void **state)
{
	static const struct { const char *keys; int version; const char *cipher, *group; } rows[] = {
		{SERVICE("{endpoints: 127.0.0.1:1, tls: {ca: ca.pem, name: a.test, cert: client.pem, key: client.key}}"),
		 TLS1_3_VERSION, "TLS_AES_128_GCM_SHA256", "X25519"},
		{SERVICE("{endpoints: 127.0.0.1:1, tls: {ca: ca.pem, name: a.test, cert: client.pem, key: client.key, max_version: 1.2}}"),
		 TLS1_2_VERSION, "ECDHE-ECDSA-AES128-GCM-SHA256", NULL},
		{SERVICE("{endpoints: 127.0.0.1:1, tls: {ca: ca.pem, name: a.test, cert: client.pem, key: client.key, max_version: 1.2, ciphers: ECDHE-ECDSA-AES256-GCM-SHA384}}"),
		 TLS1_2_VERSION, "ECDHE-ECDSA-AES256-GCM-SHA384", NULL},
		{SERVICE("{endpoints: 127.0.0.1:1, tls: {ca: ca.pem, name: a.test, cert: client.pem, key: client.key, min_version: 1.3, suites: TLS_CHACHA20_POLY1305_SHA256, groups: P-256}}"),
		 TLS1_3_VERSION, "TLS_CHACHA20_POLY1305_SHA256", "prime256v1"},
	};
	SSL_CTX *ctx = server_ctx("a"), *old = server_ctx("a");

	(void)state;
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	assert_true(SSL_CTX_load_verify_file(ctx, path("ca.pem")));
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct seen s;

		start(rows[i].keys);
		s = connect_to(0, ctx);
		assert_true(s.good);
		assert_int_equal(s.version, rows[i].version);
		assert_string_equal(s.cipher, rows[i].cipher);
		if (rows[i].group)
			assert_string_equal(s.group, rows[i].group);
		stop();
	}
	start(SERVICE("{endpoints: 127.0.0.1:1, tls: {ca: ca.pem, name: a.test}}"));
	assert_false(connect_to(0, ctx).good);
	stop();
	SSL_CTX_set_max_proto_version(old, TLS1_2_VERSION);
	start(SERVICE("{endpoints: 127.0.0.1:1, tls: {ca: ca.pem, name: a.test, min_version: 1.3}}"));
	assert_false(connect_to(0, old).good);
	stop();
	SSL_CTX_free(ctx);
	SSL_CTX_free(old);
}

/* Services that say the same have the same number; what differs has another. */
static void numbers(void **state)
{
	(void)state;
	start("services:\n"
	      "  a: {endpoints: 127.0.0.1:1, tls: {ca: ca.pem, name: a.test}}\n"
	      "  b: {endpoints: 127.0.0.2:1, tls: {ca: ca.pem, name: a.test}}\n"
	      "  c: {endpoints: 127.0.0.1:1, tls: {ca: ca.pem, name: b.test}}\n"
	      "  d: {endpoints: 127.0.0.1:1, tls: {ca: other-ca.pem, name: a.test}}\n"
	      "  e: {endpoints: 127.0.0.1:1, tls: {ca: ca.pem, name: a.test, ciphers: AES128-SHA}}\n"
	      "  f: 127.0.0.1:1\n"
	      "  g: {endpoints: 127.0.0.1:1, tls: {ca: ca.pem, name: a.test, min_version: 1.3}}\n"
	      "routes: [{service: a}]\n");
	uint16_t n[7];
	for (unsigned i = 0; i < 7; i++)
		n[i] = tls_number(server.tls, &conf->services[i]);
	assert_int_equal(n[0], n[1]);
	assert_int_equal(n[5], 0);
	for (unsigned i = 0; i < 7; i++)
		for (unsigned k = 0; k < i; k++)
			assert_true((i == 1 && k == 0) || n[i] != n[k]);
	stop();
}

/* As many as 16 bits have. */
static void numbers_are_bounded(void **state)
{
	size_t room = 1u << 23, n = 0;
	char *text = mem_alloc(room);

	(void)state;
	n += (size_t)snprintf(text + n, room - n, "routes: [{service: s1}]\nservices:\n");
	for (unsigned i = 1; i <= 65536; i++)
		n += (size_t)snprintf(text + n, room - n, "  s%u: {endpoints: 127.0.0.1:1, tls: {name: h%u}}\n", i, i);
	assert_int_equal(load(text), ERR_SYNTAX);
	assert_string_equal(told, "65538:41: more than 65535 services differ in their `tls`\n");
	conf_free(conf);
	strstr(text, "  s65536")[0] = '\0';
	start(text);
	assert_int_equal(tls_number(server.tls, &conf->services[65534]), 65535);
	stop();
	mem_free(text);
}

/* --- what is wrong --- */

static void each_error_at_its_place(void **state)
{
	static const struct { const char *text, *says; } rows[] = {
		{LISTEN("certificates: {cert: none.pem, key: a.key}"), "1:52: `none.pem` cannot be read: No such file or directory\n"},
		{LISTEN("certificates: {cert: ., key: a.key}"), "1:52: `.` cannot be read: Is a directory\n"},
		{LISTEN("certificates: {cert: /dev/null, key: a.key}"), "1:52: `/dev/null` cannot be read: Not a regular file\n"},
		{LISTEN("certificates: {cert: large, key: a.key}"), "1:52: `large` cannot be read: File too large\n"},
		{LISTEN("certificates: {cert: a.key, key: a.key}"),
		 "1:52: `a.key` holds no certificate (-----BEGIN CERTIFICATE-----)\n"},
		{LISTEN("certificates: {cert: garbage, key: a.key}"),
		 "1:52: `garbage` holds no certificate (-----BEGIN CERTIFICATE-----)\n"},
		{LISTEN("certificates: {cert: empty, key: a.key}"),
		 "1:52: `empty` is empty\n"},
		{LISTEN(A ", client_certificates: {ca: empty}"), "1:98: `empty` is empty\n"},
		{LISTEN(A ", client_certificates: {ca: ca.pem, crl: empty}"), "1:111: `empty` is empty\n"},
		{SERVICE("{endpoints: 127.0.0.1:1, tls: {name: a.test, ca: empty}}"), "1:64: `empty` is empty\n"},
		{LISTEN("certificates: {cert: a.pem, key: a.pem}"),
		 "1:64: `a.pem` holds no private key (-----BEGIN PRIVATE KEY-----) (`a.pem`)\n"},
		{LISTEN("certificates: {cert: a.pem, key: b.key}"), "1:64: `b.key` is not the key of the certificate (`a.pem`)\n"},
		{LISTEN("certificates: [{cert: none, key: a.key}, {cert: a.pem, key: b.key}, {cert: b.pem, key: none}]"),
		 "1:53: `none` cannot be read: No such file or directory\n1:91: `b.key` is not the key of the certificate (`a.pem`)\n"},
		{LISTEN("certificates: [{cert: a.pem, key: a.key}, {cert: twin.pem, key: twin.key}]"),
		 "1:80: `twin.pem` is the second with a key of this kind for a.test\n"},
		{LISTEN(A ", ciphers: [ECDHE-ECDSA-AES256-GCM-SHA384, NOPE]"), "1:81: `ciphers` names no cipher of TLS 1.2 that OpenSSL has: NOPE\n"},
		{LISTEN(A ", ciphers: NOPE"), "1:81: `ciphers` names no cipher of TLS 1.2 that OpenSSL has: NOPE\n"},
		{LISTEN("certificates: {cert: a.pem, key: b.key}, ciphers: NOPE"),
		 "1:64: `b.key` is not the key of the certificate (`a.pem`)\n"},
		{LISTEN("certificates: [{cert: a.pem, key: a.key}, {cert: a.pem, key: b.key}], ciphers: NOPE"),
		 "1:92: `b.key` is not the key of the certificate (`a.pem`)\n1:110: `ciphers` names no cipher of TLS 1.2 that OpenSSL has: NOPE\n"},
		{LISTEN(A ", suites: NOPE"),
		 "1:80: `suites` names a cipher suite of TLS 1.3 that OpenSSL has not: no cipher match\n"},
		{LISTEN(A ", groups: [X25519, NOPE]"), "1:80: `groups` names a group that OpenSSL has not\n"},
		{LISTEN(A ", client_certificates: {ca: none}"), "1:98: `none` cannot be read: No such file or directory\n"},
		{LISTEN(A ", client_certificates: {ca: garbage, crl: garbage}"),
		 "1:98: `garbage` holds no certificate (-----BEGIN CERTIFICATE-----)\n"},
		{LISTEN(A ", client_certificates: {ca: ca.pem, crl: a.pem}"),
		 "1:111: `a.pem` holds no list of revoked certificates (-----BEGIN X509 CRL-----)\n"},
		{LISTEN(A ", tickets: {key_file: short}"), "1:92: `short` has 31 bytes: at least 32 random ones are needed\n"},
		{LISTEN(A ", tickets: {key_file: empty}"), "1:92: `empty` is empty\n"},
		{SERVICE("{endpoints: 127.0.0.1:1, tls: {name: a.test, ca: garbage}}"),
		 "1:64: `garbage` holds no certificate (-----BEGIN CERTIFICATE-----)\n"},
		{SERVICE("{endpoints: 127.0.0.1:1, tls: {name: a.test, cert: a.pem, key: b.key}}"),
		 "1:78: `b.key` is not the key of the certificate (`a.pem`)\n"},
		{SERVICE("{endpoints: 127.0.0.1:1, tls: {name: a.test, groups: NOPE}}"),
		 "1:68: `groups` names a group that OpenSSL has not\n"},
	};
	size_t wrong = 0;
	char *large = mem_zalloc((4u << 20) + 1);

	(void)state;
	make_pair("twin", "EC", "a.test", &ca);
	put("garbage", "\0\xff-----BEGIN", 12);
	put("empty", "", 0);
	put("short", "0123456789abcdef0123456789abcde", 31);
	put("large", large, (4u << 20) + 1);
	mem_free(large);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_int_equal(load(rows[i].text), ERR_SYNTAX);
		assert_null(server.tls);
		conf_free(conf);
		conf = NULL;
		if (strcmp(told, rows[i].says) == 0)
			continue;
		print_error("--- %s\nwant %sgot  %s", rows[i].text, rows[i].says, told);
		wrong++;
	}
	assert_int_equal(wrong, 0);
}

static void no_memory(void **state)
{
	static const char text[] =
		"listen: {address: ':1', tls: {" A ", client_certificates: {ca: ca.pem}}}\n"
		"services: {s: {endpoints: 127.0.0.1:1, tls: {ca: ca.pem, name: a.test, cert: a.pem, key: a.key}}}\n"
		"routes: [{service: s}]\n";
	struct conf_errors errors;
	enum err err = ERR_MEM;

	(void)state;
	conf_errors_init(&errors);
	conf = conf_parse(path("thimble.yaml"), str_of(text), NULL, &errors);
	conf_errors_fini(&errors);
	assert_non_null(conf);
	for (size_t n = 1; err != OK; n++) {
		mem_fail_from(n);
		err = tls_new(conf, NOW, note, NULL, &server.tls);
		mem_fail_from(0);
		assert_true(err == OK || err == ERR_MEM);
		assert_true(n < 1000);
	}
	stop();
}

/* --- files that change --- */

static struct loop *loop;

static void on_ready(void *ctx, void *ptr, unsigned events)
{
	(void)ctx, (void)events;
	tls_event(ptr, *(uint32_t *)ctx);
}

static void on_nothing(void *ctx)
{
	(void)ctx;
}

static uint32_t clock_ms;

/* Some time goes by. */
static void pass(uint32_t ms)
{
	loop_pass(loop, clock_ms, 0);
	clock_ms += ms;
	tls_tend(server.tls, clock_ms, NOW);
}

static void watch(const char *text)
{
	static const struct loop_events events = { .begin = on_nothing, .ready = on_ready, .woken = on_nothing };

	clock_ms = 100;
	loop = loop_new(&events, &clock_ms);
	assert_non_null(loop);
	start(text);
	tls_watch(server.tls, loop, clock_ms, NOW);
	pass(1000);
	assert_int_equal(tls_counts(server.tls).reloads, 0);
}

static void watch_end_all(void)
{
	stop();
	loop_free(loop);
	loop = NULL;
}

static void a_pair_is_replaced(void **state)
{
	const struct tls_server *before, *same;

	(void)state;
	watch(LISTEN(A));
	before = tls_of_listener(&server, 0);
	make_pair("a", "EC", "new.test", &ca);
	pass(0);
	assert_string_equal(call(NULL).subject, "a.test");	/* not quiet yet */
	pass(299);
	assert_string_equal(call(NULL).subject, "a.test");
	pass(1);
	assert_string_equal(call(NULL).subject, "new.test");
	assert_int_equal(tls_counts(server.tls).reloads, 1);
	assert_int_equal(tls_counts(server.tls).refused, 0);
	/* who has the old one keeps it */
	assert_non_null(tls_server_group(before, STR("a.test"), NULL));
	tls_server_unref(before);
	/* the same bytes once more are no change */
	before = tls_of_listener(&server, 0);
	assert_int_equal(rename(path("a.pem"), path("moved")), 0);
	assert_int_equal(rename(path("moved"), path("a.pem")), 0);
	pass(0);
	pass(300);
	same = tls_of_listener(&server, 0);
	assert_ptr_equal(before, same);
	tls_server_unref(before);
	tls_server_unref(same);
	watch_end_all();
}

static void a_bad_pair_leaves_the_old_one(void **state)
{
	(void)state;
	watch("listen: [{address: ':1', tls: {certificates: [{cert: a.pem, key: a.key}, {cert: b.pem, key: b.key}]}}]\n"
	      "routes: [{answer: {}}]\n");
	assert_int_equal(rename(path("b.key"), path("b.old")), 0);
	make_pair("a", "EC", "new.test", &ca);
	pass(0);
	pass(300);
	assert_string_equal(call("new.test").subject, "new.test");	/* that one is good */
	assert_string_equal(call("b.test").subject, "b.test");
	assert_int_equal(tls_counts(server.tls).refused, 1);
	pass(60000);
	assert_int_equal(tls_counts(server.tls).refused, 1);	/* told once */
	put("b.key", "garbage", 7);
	pass(0);
	pass(300);
	assert_string_equal(call("b.test").subject, "b.test");
	assert_int_equal(tls_counts(server.tls).refused, 2);
	make_pair("b", "EC", "b2.test", &ca);
	pass(0);
	pass(300);
	assert_string_equal(call("b2.test").subject, "b2.test");
	assert_int_equal(tls_counts(server.tls).reloads, 2);
	watch_end_all();
}

/* Between the two, the certificate is not that of the key. */
static void certificate_and_key_come_apart(void **state)
{
	struct tls_made c;

	(void)state;
	watch(LISTEN(A));
	tls_made_init(&c, "EC", "new.test", &ca);
	put_pair("n", &c);
	assert_int_equal(link(path("n.key"), path("link")), 0);
	put_x509("a.pem", c.x509);
	pass(0);
	pass(200);
	assert_int_equal(rename(path("link"), path("a.key")), 0);
	pass(0);
	pass(200);
	assert_int_equal(tls_counts(server.tls).refused, 0);
	pass(100);
	assert_string_equal(call(NULL).subject, "new.test");
	assert_int_equal(tls_counts(server.tls).refused, 0);
	tls_made_fini(&c);
	watch_end_all();
}

static void news_without_end_are_looked_at(void **state)
{
	(void)state;
	watch(LISTEN(A));
	make_pair("a", "EC", "new.test", &ca);
	for (int i = 0; i < 21; i++) {
		put("a.key.tmp", "x", 1);
		assert_int_equal(chmod(path("a.key"), i % 2 ? 0600 : 0640), 0);
		pass(100);
	}
	assert_string_equal(call(NULL).subject, "new.test");
	watch_end_all();
}

static void authorities_and_secrets_are_replaced(void **state)
{
	SSL_CTX *ctx = client_ctx();
	SSL_SESSION *session;

	(void)state;
	put("t", "0123456789abcdef0123456789abcdef", 32);
	put_x509("who.pem", ca.x509);
	watch(LISTEN(A ", client_certificates: {ca: who.pem, mode: optional}, tickets: {key_file: t}"));
	assert_true(lets_in("client"));
	assert_false(lets_in("stranger"));
	put_x509("who.pem", other_ca.x509);
	pass(0);
	pass(300);
	assert_false(lets_in("client"));
	assert_true(lets_in("stranger"));
	SSL_SESSION_free(got);
	got = NULL;
	assert_true(call_with(ctx, "a.test", NULL).good);
	session = got;
	got = NULL;
	assert_non_null(session);
	assert_true(call_with(ctx, "a.test", session).reused);
	put("t", "another secret that nobody has seen", 35);
	pass(0);
	pass(300);
	assert_false(call_with(ctx, "a.test", session).reused);
	put("t", "short", 5);
	pass(0);
	pass(300);
	assert_int_equal(tls_counts(server.tls).refused, 1);
	assert_true(call_with(ctx, "a.test", NULL).good);
	SSL_SESSION_free(session);
	SSL_SESSION_free(got);
	got = NULL;
	SSL_CTX_free(ctx);
	watch_end_all();
}

static void trust_in_endpoints_is_replaced(void **state)
{
	SSL_CTX *ctx = server_ctx("a");

	(void)state;
	put_x509("who.pem", ca.x509);
	watch(SERVICE("{endpoints: 127.0.0.1:1, tls: {ca: who.pem, name: a.test}}"));
	assert_true(connect_to(0, ctx).good);
	put("who.pem", "", 0);	/* which must not be the system's */
	pass(0);
	pass(300);
	assert_true(connect_to(0, ctx).good);
	put_x509("who.pem", other_ca.x509);
	pass(0);
	pass(300);
	assert_false(connect_to(0, ctx).good);
	assert_int_equal(tls_counts(server.tls).refused, 1);
	SSL_CTX_free(ctx);
	watch_end_all();
}

/* A Secret of Kubernetes. */
static void a_folder_is_swapped(void **state)
{
	(void)state;
	assert_int_equal(mkdir(path("..1"), 0700), 0);
	assert_int_equal(mkdir(path("..2"), 0700), 0);
	make_pair("..1/tls", "EC", "one.test", &ca);
	make_pair("..2/tls", "EC", "two.test", &ca);
	assert_int_equal(symlink("..1", path("..data")), 0);
	assert_int_equal(symlink("..data/tls.pem", path("tls.pem")), 0);
	assert_int_equal(symlink("..data/tls.key", path("tls.key")), 0);
	watch(LISTEN("certificates: {cert: tls.pem, key: tls.key}"));
	for (int i = 0; i < 3; i++) {
		assert_string_equal(call(NULL).subject, i % 2 ? "two.test" : "one.test");
		assert_int_equal(symlink(i % 2 ? "..1" : "..2", path("..data_tmp")), 0);
		assert_int_equal(rename(path("..data_tmp"), path("..data")), 0);
		pass(0);
		pass(300);
	}
	assert_int_equal(tls_counts(server.tls).reloads, 3);
	watch_end_all();
}

/* What the kernel does not tell: a folder above is another one. */
static void a_look_now_and_then(void **state)
{
	(void)state;
	assert_int_equal(mkdir(path("d1"), 0700), 0);
	assert_int_equal(mkdir(path("d2"), 0700), 0);
	make_pair("d1/x", "EC", "one.test", &ca);
	make_pair("d2/x", "EC", "two.test", &ca);
	watch(LISTEN("certificates: {cert: d1/x.pem, key: d1/x.key}"));
	assert_int_equal(rename(path("d1"), path("d0")), 0);
	assert_int_equal(rename(path("d2"), path("d1")), 0);
	pass(0);
	pass(59000);
	assert_string_equal(call(NULL).subject, "one.test");
	pass(1000);
	assert_string_equal(call(NULL).subject, "two.test");
	/* and it is this one that is watched now */
	make_pair("d1/x", "EC", "three.test", &ca);
	pass(0);
	pass(300);
	assert_string_equal(call(NULL).subject, "three.test");
	watch_end_all();
}

/* Whatever allocation fails in a change, there is an old or a new one, and later the new one. */
static void no_memory_for_a_change(void **state)
{
	(void)state;
	for (size_t n = 1; n < 40; n++) {
		char host[32];

		make_pair("a", "EC", "a.test", &ca);
		watch(LISTEN(A));
		snprintf(host, sizeof host, "n%zu.test", n);
		make_pair("a", "EC", host, &ca);
		pass(0);
		mem_fail_from(n);
		pass(300);
		mem_fail_from(0);
		assert_true(call(NULL).good);
		pass(60000);
		assert_string_equal(call(NULL).subject, host);
		watch_end_all();
	}
}

static _Atomic bool enough;

/* What workers do, as fast as they can. */
static void *take(void *arg)
{
	struct endpoint *e = arg;
	size_t bad = 0;

	while (!atomic_load(&enough)) {
		const struct tls_server *s = tls_of_listener(&server, 0);
		SSL *ssl;

		bad += !tls_server_group(s, STR("a.test"), NULL);
		tls_server_unref(s);
		if (tls_connect(&server, e, NULL, &ssl) == OK)
			SSL_free(ssl);
		else
			bad++;
	}
	return (void *)bad;
}

static void workers_take_what_is_there(void **state)
{
	pthread_t threads[2];
	struct endpoint *e;
	void *bad;

	(void)state;
	watch("listen: {address: ':1', tls: {" A "}}\nroutes: [{service: s}]\n"
	      "services: {s: {endpoints: 127.0.0.1:1, tls: {ca: ca.pem, name: a.test, cert: a.pem, key: a.key}}}\n");
	e = endpoint_of(0);
	atomic_store(&enough, false);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, take, e), 0);
	for (int i = 0; i < 20; i++) {
		make_pair("a", "EC", "a.test", &ca);
		pass(0);
		pass(300);
	}
	atomic_store(&enough, true);
	for (int i = 0; i < 2; i++) {
		pthread_join(threads[i], &bad);
		assert_null(bad);
	}
	assert_int_equal(tls_counts(server.tls).reloads, 20);
	endpoint_unref(e);
	watch_end_all();
}

/* --- expiry --- */

static void put_days(const char *name, int days)
{
	struct tls_made c;

	tls_made_init(&c, "EC", name, &ca);
	X509_gmtime_adj(X509_getm_notAfter(c.x509), days * 86400L + 3600);
	assert_true(X509_sign(c.x509, ca.key, EVP_sha256()));
	put_pair(name, &c);
	tls_made_fini(&c);
}

/* What is written to the error log while `now` is the time; in `text`. */
static void log_of(int64_t now, char *text, size_t size)
{
	FILE *f = tmpfile();
	int before = dup(2);
	size_t n;

	assert_true(f && dup2(fileno(f), 2) == 2);
	tls_tend(server.tls, clock_ms, now);
	assert_int_equal(dup2(before, 2), 2);
	close(before);
	rewind(f);
	n = fread(text, 1, size - 1, f);
	text[n] = '\0';
	fclose(f);
}

static void the_last_month_is_told_daily(void **state)
{
	int64_t now = NOW;
	char text[2048];

	(void)state;
	put_days("d5", 5);
	put_days("d31", 31);
	put_days("d90", 90);
	watch("listen: {address: ':1', tls: {certificates: [{cert: d5.pem, key: d5.key}, {cert: d31.pem, key: d31.key},"
	      " {cert: d90.pem, key: d90.key}]}}\nroutes: [{answer: {}}]\n");
	log_of(now, text, sizeof text);
	assert_string_equal(text, "");
	log_of(now + 86400, text, sizeof text);
	assert_non_null(strstr(text, "warn  certificate "));
	assert_non_null(strstr(text, "/d5.pem (d5) expires in 4 days, on "));
	assert_null(strstr(text, "d31.pem"));
	log_of(now + 86400, text, sizeof text);
	assert_string_equal(text, "");
	log_of(now + 2 * 86400, text, sizeof text);
	assert_non_null(strstr(text, "/d5.pem (d5) expires in 3 days, on "));
	assert_non_null(strstr(text, "/d31.pem (d31) expires in 29 days, on "));
	assert_null(strstr(text, "d90.pem"));
	log_of(now + 4 * 86400, text, sizeof text);
	assert_non_null(strstr(text, "/d5.pem (d5) expires in 1 day, on "));
	log_of(now + 6 * 86400, text, sizeof text);
	assert_non_null(strstr(text, "error certificate "));
	assert_non_null(strstr(text, "/d5.pem (d5) has expired on "));
	watch_end_all();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(nothing_asks_for_it, begin),
		cmocka_unit_test_setup(certificates_by_name, begin),
		cmocka_unit_test_setup(versions, begin),
		cmocka_unit_test_setup(algorithms, begin),
		cmocka_unit_test_setup(who_clients_are, begin),
		cmocka_unit_test_setup(tickets, begin),
		cmocka_unit_test_setup(parking, begin),
		cmocka_unit_test_setup(endpoints_are_verified, begin),
		cmocka_unit_test_setup(names_that_are_asked_for, begin),
		cmocka_unit_test_setup(what_endpoints_see_of_us, begin),
		cmocka_unit_test_setup(numbers, begin),
		cmocka_unit_test_setup(numbers_are_bounded, begin),
		cmocka_unit_test_setup(each_error_at_its_place, begin),
		cmocka_unit_test_setup(no_memory, begin),
		cmocka_unit_test_setup(a_pair_is_replaced, begin),
		cmocka_unit_test_setup(a_bad_pair_leaves_the_old_one, begin),
		cmocka_unit_test_setup(certificate_and_key_come_apart, begin),
		cmocka_unit_test_setup(news_without_end_are_looked_at, begin),
		cmocka_unit_test_setup(authorities_and_secrets_are_replaced, begin),
		cmocka_unit_test_setup(trust_in_endpoints_is_replaced, begin),
		cmocka_unit_test_setup(a_folder_is_swapped, begin),
		cmocka_unit_test_setup(a_look_now_and_then, begin),
		cmocka_unit_test_setup(no_memory_for_a_change, begin),
		cmocka_unit_test_setup(workers_take_what_is_there, begin),
		cmocka_unit_test_setup(the_last_month_is_told_daily, begin),
	};

	return cmocka_run_group_tests(tests, begin_all, end_all);
}
