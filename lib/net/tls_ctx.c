/* Door: the part of an SSL_CTX that both ends have in common: versions, ciphers, what is switched off, whom to trust.  Owns
 * nothing.  Called when a configuration is read.
 *
 * The defaults: TLS 1.2 and 1.3; in 1.2 forward secrecy and AEAD alone; AES-128-GCM before the others, since it is the
 * cheapest and a parked connection the smallest with it, but ChaCha20 first for clients that put it first (they have no AES
 * in hardware).  Off without a question: renegotiation, compression, early data, session caches in memory. */
#include "lib/net/tls_ctx.h"

#include <limits.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <string.h>

#include "lib/net/tls13_take.h"

#define CIPHERS \
	"ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384:" \
	"ECDHE-RSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305"
#define SUITES "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"
#define GROUPS "X25519:P-256:P-384"

static void set_options(SSL_CTX *ctx)
{
	SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE |
		SSL_OP_PRIORITIZE_CHACHA);
	SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_max_early_data(ctx, 0);
}

/* OpenSSL leaves out what it does not know, as long as something is left.  Each name is tried alone; what begins with a sign (!, -, +, @)
 * takes away or orders. */
static enum err try_ciphers(SSL_CTX *ctx, const char *list, struct tls_error *e)
{
	char name[128];

	for (const char *p = list; *p; p += *p != '\0') {
		size_t n = strcspn(p, ":, ;");
		bool alone = (*p >= 'A' && *p <= 'Z') || (*p >= 'a' && *p <= 'z') || (*p >= '0' && *p <= '9');

		if (alone && n < sizeof(name)) {
			memcpy(name, p, n);
			name[n] = '\0';
			if (SSL_CTX_set_cipher_list(ctx, name) != 1) {
				ERR_clear_error();
				return tls_error_set(e, ERR_SYNTAX, TLS_PART_CIPHERS, "names no cipher of TLS 1.2 that OpenSSL has: %s", name);
			}
		}
		p += n;
	}
	return OK;
}

static enum err set_algorithms(SSL_CTX *ctx, const struct tls_ctx_spec *spec, struct tls_error *e)
{
	char why[128];

	if (spec->ciphers && try_ciphers(ctx, spec->ciphers, e) != OK)
		return ERR_SYNTAX;
	if (SSL_CTX_set_cipher_list(ctx, spec->ciphers ? spec->ciphers : CIPHERS) != 1)
		return tls_error_set(e, ERR_SYNTAX, TLS_PART_CIPHERS, "names no cipher of TLS 1.2 that OpenSSL has");
	if (SSL_CTX_set_ciphersuites(ctx, spec->suites ? spec->suites : SUITES) != 1)
		return tls_error_set(e, ERR_SYNTAX, TLS_PART_SUITES, "names a cipher suite of TLS 1.3 that OpenSSL has not: %s",
			tls_error_reason(why, sizeof(why)));
	if (SSL_CTX_set1_groups_list(ctx, spec->groups ? spec->groups : GROUPS) != 1)
		return tls_error_set(e, ERR_SYNTAX, TLS_PART_GROUPS, "names a group that OpenSSL has not");
	return OK;
}

SSL_CTX *tls_ctx_new(bool server, const struct tls_ctx_spec *spec, struct tls_error *e)
{
	SSL_CTX *ctx = SSL_CTX_new(server ? TLS_server_method() : TLS_client_method());

	if (!ctx || !SSL_CTX_set_min_proto_version(ctx, spec->min_version ? spec->min_version : TLS1_2_VERSION) ||
			!SSL_CTX_set_max_proto_version(ctx, spec->max_version ? spec->max_version : TLS1_3_VERSION) ||
			(spec->park && tls13_watch_ctx(ctx) != OK)) {
		tls_error_set(e, ERR_MEM, TLS_PART_NONE, "no memory for OpenSSL");
		SSL_CTX_free(ctx);
		return NULL;
	}
	set_options(ctx);
	if (set_algorithms(ctx, spec, e) != OK) {
		SSL_CTX_free(ctx);
		return NULL;
	}
	return ctx;
}

enum err tls_ctx_try(SSL_CTX *ctx, const struct tls_cert *cert, struct tls_error *e)
{
	SSL *ssl = SSL_new(ctx);
	enum err err = ssl ? tls_cert_use(cert, ssl, e) : tls_error_set(e, ERR_MEM, TLS_PART_CERT, "no memory");

	SSL_free(ssl);
	return err;
}

/* --- trust --- */

static BIO *bio_of(struct str pem)
{
	return pem.n <= INT_MAX ? BIO_new_mem_buf(pem.n ? pem.p : "", (int)pem.n) : NULL;
}

/* Whether the reading of PEM ended because there was no more of it. */
static bool at_end(void)
{
	bool end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;

	if (end)
		ERR_clear_error();
	return end;
}

static enum err trust_ca(SSL_CTX *ctx, struct str pem, bool names, struct tls_error *e)
{
	BIO *bio = bio_of(pem);
	char why[128];
	unsigned n = 0;
	X509 *x;

	if (!bio)
		return tls_error_set(e, ERR_MEM, TLS_PART_CA, "no memory");
	while ((x = PEM_read_bio_X509_AUX(bio, NULL, NULL, NULL))) {
		bool added = X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), x) && (!names || SSL_CTX_add_client_CA(ctx, x));

		X509_free(x);
		n++;
		if (!added) {
			BIO_free(bio);
			return tls_error_set(e, ERR_MEM, TLS_PART_CA, "no memory");
		}
	}
	BIO_free(bio);
	if (!at_end())
		return tls_error_set(e, ERR_SYNTAX, TLS_PART_CA, "certificate %u of it cannot be read: %s", n + 1,
			tls_error_reason(why, sizeof(why)));
	return n ? OK : tls_error_set(e, ERR_SYNTAX, TLS_PART_CA, "holds no certificate (-----BEGIN CERTIFICATE-----)");
}

static enum err trust_crl(SSL_CTX *ctx, struct str pem, struct tls_error *e)
{
	X509_STORE *store = SSL_CTX_get_cert_store(ctx);
	BIO *bio = bio_of(pem);
	char why[128];
	unsigned n = 0;
	X509_CRL *crl;

	if (!bio)
		return tls_error_set(e, ERR_MEM, TLS_PART_CRL, "no memory");
	while ((crl = PEM_read_bio_X509_CRL(bio, NULL, NULL, NULL))) {
		int added = X509_STORE_add_crl(store, crl);

		X509_CRL_free(crl);
		n++;
		if (!added) {
			BIO_free(bio);
			return tls_error_set(e, ERR_MEM, TLS_PART_CRL, "no memory");
		}
	}
	BIO_free(bio);
	if (!at_end())
		return tls_error_set(e, ERR_SYNTAX, TLS_PART_CRL, "list %u of it cannot be read: %s", n + 1,
			tls_error_reason(why, sizeof(why)));
	if (!n)
		return tls_error_set(e, ERR_SYNTAX, TLS_PART_CRL, "holds no list of revoked certificates (-----BEGIN X509 CRL-----)");
	X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
	return OK;
}

int tls_ctx_verified(int good, X509_STORE_CTX *store)
{
	int depth = X509_STORE_CTX_get_error_depth(store);

	if (good || X509_STORE_CTX_get_error(store) != X509_V_ERR_UNABLE_TO_GET_CRL || depth == 0 ||
			depth != sk_X509_num(X509_STORE_CTX_get0_chain(store)) - 1)
		return good;
	X509_STORE_CTX_set_error(store, X509_V_OK);
	return 1;
}

enum err tls_ctx_trust(SSL_CTX *ctx, struct str ca, struct str crl, bool names, struct tls_error *e)
{
	enum err err = trust_ca(ctx, ca, names, e);

	/* what was given is trusted, whoever signed it */
	X509_STORE_set_flags(SSL_CTX_get_cert_store(ctx), X509_V_FLAG_PARTIAL_CHAIN);
	return err != OK || crl.n == 0 ? err : trust_crl(ctx, crl, e);
}
