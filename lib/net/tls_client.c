/* Door: the TLS towards endpoints.  Owns an SSL_CTX and never changes it after it was made.  Called when a configuration is
 * read, and at the start of each handshake; OpenSSL calls it when a ticket comes.
 *
 * Peers are verified, chain and name, unless the specification says in so many words that nothing is; there is no way
 * to an SSL object that verifies the one and not the other.  Authorities of the system are looked up in its folder, by
 * OpenSSL and once each, when a peer names them: parsed, all of them are most of a megabyte. */
#include "lib/net/tls_client.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "lib/base/hash.h"
#include "lib/base/mem.h"
#include "lib/net/tls_ctx.h"

struct tls_client {
	_Atomic uint32_t refs;
	uint64_t id;			/* of this one in the process, from 1 */
	SSL_CTX *ctx;			/* owned */
	const struct tls_cert *cert;	/* owned reference; may be NULL */
	bool insecure;
};

static _Atomic uint64_t last_id;

/* --- sessions --- */

static int resume_index = -1;
static pthread_once_t resume_once = PTHREAD_ONCE_INIT;

static void resume_index_make(void)
{
	resume_index = SSL_get_ex_new_index(0, NULL, NULL, NULL, NULL);
}

/* Where a session of `ssl` goes; NULL: nowhere.  Not to what another client or name has now: whoever resumes does not
 * verify.  (As long as the SSL object is there, no other SSL_CTX can have the address of its own.) */
static struct tls_resume *resume_of(const SSL *ssl)
{
	struct tls_resume *r = resume_index < 0 ? NULL : SSL_get_ex_data(ssl, resume_index);

	return r && r->ctx == SSL_get_SSL_CTX(ssl) ? r : NULL;
}

/* A ticket came; 1: the reference is ours now. */
static int on_session(SSL *ssl, SSL_SESSION *session)
{
	struct tls_resume *r = resume_of(ssl);

	if (!r)
		return 0;
	SSL_SESSION_free(r->session[TLS_RESUME_MAX - 1]);
	memmove(r->session + 1, r->session, (TLS_RESUME_MAX - 1) * sizeof(*r->session));
	r->session[0] = session;
	return 1;
}

void tls_resume_fini(struct tls_resume *r)
{
	for (int i = 0; i < TLS_RESUME_MAX; i++) {
		SSL_SESSION_free(r->session[i]);
		r->session[i] = NULL;
	}
	r->of = 0;
	r->ctx = NULL;
}

/* Sessions of another client or name are forgotten. */
static void resume_bind(struct tls_resume *r, const struct tls_client *c, struct str name)
{
	uint64_t of = hash_keyed_fold((struct hash_key){ c->id, 0 }, name) | 1;

	if (r->of == of)
		return;
	tls_resume_fini(r);
	r->of = of;
	r->ctx = c->ctx;
}

static void resume_drop_newest(struct tls_resume *r)
{
	SSL_SESSION_free(r->session[0]);
	memmove(r->session, r->session + 1, (TLS_RESUME_MAX - 1) * sizeof(*r->session));
	r->session[TLS_RESUME_MAX - 1] = NULL;
}

/* Tries the newest that is any good. */
static bool resume_use(struct tls_resume *r, SSL *ssl)
{
	bool good;

	while (r->session[0] && !SSL_SESSION_is_resumable(r->session[0]))
		resume_drop_newest(r);
	if (!r->session[0])
		return true;
	good = SSL_set_session(ssl, r->session[0]) == 1;
	if (SSL_SESSION_get_protocol_version(r->session[0]) >= TLS1_3_VERSION)
		resume_drop_newest(r);
	return good;
}

void tls_client_shaken(SSL *ssl)
{
	SSL_SESSION *now;

	if (!resume_of(ssl) || SSL_version(ssl) >= TLS1_3_VERSION || !SSL_session_reused(ssl))
		return;
	now = SSL_get1_session(ssl);
	if (!now || now == resume_of(ssl)->session[0] || !SSL_SESSION_is_resumable(now) || !on_session(ssl, now))
		SSL_SESSION_free(now);
}

void tls_client_settled(SSL *ssl)
{
	SSL_set_ex_data(ssl, resume_index, NULL);
}

/* --- the whole --- */

static enum err set_alpn(SSL_CTX *ctx, const struct tls_client_spec *spec, struct tls_error *e)
{
	unsigned char wire[255];
	unsigned n = 0;

	for (unsigned i = 0; i < spec->n_alpn; i++) {
		struct str p = spec->alpn[i];

		if (p.n == 0 || n + 1 + p.n > sizeof(wire))
			return tls_error_set(e, ERR_SYNTAX, TLS_PART_ALPN, "is too long, or has an empty protocol");
		wire[n++] = (unsigned char)p.n;
		memcpy(wire + n, p.p, p.n);
		n += (unsigned)p.n;
	}
	if (n && SSL_CTX_set_alpn_protos(ctx, wire, n) != 0)	/* 0 is good, here alone */
		return tls_error_set(e, ERR_MEM, TLS_PART_ALPN, "no memory");
	return OK;
}

static enum err set_trust(SSL_CTX *ctx, const struct tls_client_spec *spec, struct tls_error *e)
{
	if (spec->insecure) {
		SSL_CTX_set_verify(ctx, SSL_VERIFY_NONE, NULL);
		return OK;
	}
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, tls_ctx_verified);
	if (spec->ca.n)
		return tls_ctx_trust(ctx, spec->ca, spec->crl, false, e);
	if (SSL_CTX_set_default_verify_paths(ctx) != 1)
		return tls_error_set(e, ERR_SYNTAX, TLS_PART_CA, "the certificates of the system's authorities cannot be read");
	return OK;
}

static enum err client_fill(struct tls_client *c, const struct tls_client_spec *spec, struct tls_error *e)
{
	const struct tls_ctx_spec common = {
		.min_version = spec->min_version, .max_version = spec->max_version, .ciphers = spec->ciphers,
		.suites = spec->suites, .groups = spec->groups, .park = spec->park,
	};
	enum err err;

	c->insecure = spec->insecure;
	c->cert = spec->cert ? tls_cert_ref(spec->cert) : NULL;
	pthread_once(&resume_once, resume_index_make);
	if (resume_index < 0)
		return tls_error_set(e, ERR_MEM, TLS_PART_NONE, "no memory");
	c->ctx = tls_ctx_new(false, &common, e);
	if (!c->ctx)
		return ERR_SYNTAX;
	if (c->cert && (err = tls_ctx_try(c->ctx, c->cert, e)) != OK)
		return err;
	if ((err = set_alpn(c->ctx, spec, e)) != OK || (err = set_trust(c->ctx, spec, e)) != OK)
		return err;
	SSL_CTX_set_session_cache_mode(c->ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_sess_set_new_cb(c->ctx, on_session);
	return OK;
}

static void client_free(struct tls_client *c)
{
	SSL_CTX_free(c->ctx);
	tls_cert_unref(c->cert);
	mem_free(c);
}

struct tls_client *tls_client_new(const struct tls_client_spec *spec, struct tls_error *e)
{
	struct tls_client *c = mem_zalloc(sizeof(*c));

	if (!c) {
		tls_error_set(e, ERR_MEM, TLS_PART_NONE, "no memory");
		return NULL;
	}
	c->refs = 1;
	c->id = atomic_fetch_add_explicit(&last_id, 1, memory_order_relaxed) + 1;
	if (client_fill(c, spec, e) != OK) {
		client_free(c);
		return NULL;
	}
	ERR_clear_error();
	return c;
}

const struct tls_client *tls_client_ref(const struct tls_client *c)
{
	atomic_fetch_add_explicit(&((struct tls_client *)c)->refs, 1, memory_order_relaxed);
	return c;
}

void tls_client_unref(const struct tls_client *c)
{
	struct tls_client *mine = (struct tls_client *)c;

	if (c && atomic_fetch_sub_explicit(&mine->refs, 1, memory_order_acq_rel) == 1)
		client_free(mine);
}

/* --- a connection --- */

static bool is_address(const char *name)
{
	unsigned char address[16];

	return inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1;
}

/* What is asked for (RFC 6066 3 has no addresses), and who must answer. */
static bool set_name(const struct tls_client *c, SSL *ssl, const char *name)
{
	bool address = is_address(name);

	if (!address && SSL_set_tlsext_host_name(ssl, name) != 1)
		return false;
	if (c->insecure)
		return true;
	SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	return address ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name) == 1 : SSL_set1_host(ssl, name) == 1;
}

enum err tls_client_ssl(const struct tls_client *c, struct str name, struct tls_resume *resume, SSL **to)
{
	char text[254];
	SSL *ssl;

	if (name.n == 0 || name.n >= sizeof(text) || memchr(name.p, 0, name.n))
		return ERR_SYNTAX;
	if (resume)
		resume_bind(resume, c, name);
	memcpy(text, name.p, name.n);
	text[name.n] = '\0';
	ssl = SSL_new(c->ctx);
	if (!ssl || !set_name(c, ssl, text) || (c->cert && tls_cert_use(c->cert, ssl, NULL) != OK) ||
			!SSL_set_ex_data(ssl, resume_index, resume) || (resume && !resume_use(resume, ssl))) {
		SSL_free(ssl);
		ERR_clear_error();
		return ERR_MEM;
	}
	SSL_set_connect_state(ssl);
	*to = ssl;
	return OK;
}
