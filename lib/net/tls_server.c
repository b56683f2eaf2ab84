/* Door: the TLS of a listener.  Owns an SSL_CTX, references to its certificates, and the index from names to them; never
 * changes after it was made.  Called when a configuration is read, and at the start of each handshake.
 *
 * There is one SSL_CTX for all names: each SSL object is given the certificates of its name before it starts, since the
 * ClientHello was looked at before.  What keeps a session of one name from being resumed under another, or under other
 * client authorities, is its session id context: a digest of all of that (nginx CVE-2025-23419 is what happens without). */
#include "lib/net/tls_server.h"

#include <openssl/err.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/net/tls_ctx.h"
#include "lib/net/tls_ticket.h"

#define ALPN_MAX 255u

struct tls_group {
	struct str name;	/* lent by a certificate; begins with "*." for a wildcard; empty: the default */
	const struct tls_cert *cert[TLS_CERT_KINDS];	/* lent by the server; NULL: none of that kind */
};

struct tls_server {
	_Atomic uint32_t refs;
	SSL_CTX *ctx;			/* owned */
	const struct tls_cert **certs;	/* owned references */
	unsigned n_certs;
	struct tls_group *groups;	/* owned: in the order of their names, the default behind them */
	size_t n_groups;		/* without the default */
	unsigned char binding[32];	/* digest of what a session depends on beside its name */
	unsigned char alpn[ALPN_MAX];	/* as on the wire, our order */
	unsigned alpn_n;
};

/* --- names --- */

static int name_compare(struct str a, struct str b)
{
	size_t n = a.n < b.n ? a.n : b.n;
	int r = n ? memcmp(a.p, b.p, n) : 0;

	return r ? r : a.n < b.n ? -1 : a.n > b.n;
}

static int group_compare(const void *a, const void *b)
{
	return name_compare(((const struct tls_group *)a)->name, ((const struct tls_group *)b)->name);
}

static struct tls_group *group_find(const struct tls_server *s, struct str name)
{
	struct tls_group key = { .name = name };

	return s->n_groups ? bsearch(&key, s->groups, s->n_groups, sizeof(key), group_compare) : NULL;
}

static unsigned cert_index(const struct tls_server *s, const struct tls_cert *c)
{
	unsigned i = 0;

	while (s->certs[i] != c)
		i++;
	return i;
}

static enum err group_join(struct tls_server *s, struct tls_group *to, const struct tls_group *more, struct tls_error *e)
{
	for (int kind = 0; kind < TLS_CERT_KINDS; kind++) {
		if (!more->cert[kind] || more->cert[kind] == to->cert[kind])
			continue;
		if (!to->cert[kind]) {
			to->cert[kind] = more->cert[kind];
			continue;
		}
		unsigned a = cert_index(s, to->cert[kind]), b = cert_index(s, more->cert[kind]);
		enum err err = tls_error_set(e, ERR_SYNTAX, TLS_PART_CERT, "is the second with a key of this kind for %.*s",
			(int)to->name.n, to->name.p);
		if (e)
			e->index = a > b ? a : b;
		return err;
	}
	return OK;
}

/* One group for each name of each certificate; then those of one name are made one. */
static enum err index_names(struct tls_server *s, struct tls_error *e)
{
	size_t all = 0, n = 0;

	for (unsigned i = 0; i < s->n_certs; i++)
		all += tls_cert_names(s->certs[i]);
	s->groups = mem_zalloc((all + 1) * sizeof(*s->groups));
	if (!s->groups)
		return tls_error_set(e, ERR_MEM, TLS_PART_NONE, "no memory");
	for (unsigned i = 0; i < s->n_certs; i++)
		for (size_t j = 0; j < tls_cert_names(s->certs[i]); j++, n++) {
			s->groups[n].name = tls_cert_name(s->certs[i], j);
			s->groups[n].cert[tls_cert_kind(s->certs[i])] = s->certs[i];
		}
	if (n)
		qsort(s->groups, n, sizeof(*s->groups), group_compare);
	for (size_t i = 0; i < n; i++) {
		struct tls_group *last = s->n_groups ? &s->groups[s->n_groups - 1] : NULL;

		if (!last || name_compare(last->name, s->groups[i].name) != 0) {
			s->groups[s->n_groups++] = s->groups[i];
			continue;
		}
		enum err err = group_join(s, last, &s->groups[i], e);
		if (err != OK)
			return err;
	}
	return OK;
}

/* What is shown when no name fits: the first certificate, and beside it others that are for its first name. */
static void index_default(struct tls_server *s)
{
	const struct tls_cert *first = s->certs[0];
	struct tls_group *group = tls_cert_names(first) ? group_find(s, tls_cert_name(first, 0)) : NULL;
	struct tls_group fallback = {0};

	fallback.cert[tls_cert_kind(first)] = first;
	if (group)
		memcpy(fallback.cert, group->cert, sizeof(fallback.cert));
	s->groups[s->n_groups] = fallback;
}

const struct tls_group *tls_server_group(const struct tls_server *s, struct str name, bool *known)
{
	char wild[256] = "*";
	const char *dot = name.n ? memchr(name.p, '.', name.n) : NULL;
	const struct tls_group *g = name.n ? group_find(s, name) : NULL;

	if (!g && dot && dot != name.p && name.n < sizeof(wild)) {
		size_t rest = name.n - (size_t)(dot - name.p);

		memcpy(wild + 1, dot, rest);
		g = group_find(s, (struct str){ wild, 1 + rest });
	}
	if (known)
		*known = g != NULL;
	return g ? g : &s->groups[s->n_groups];
}

bool tls_group_serves(const struct tls_group *g, struct str host)
{
	for (int kind = 0; kind < TLS_CERT_KINDS; kind++)
		if (g->cert[kind] && tls_cert_serves(g->cert[kind], host))
			return true;
	return false;
}

/* --- ALPN --- */

static enum err set_alpn(struct tls_server *s, const struct tls_server_spec *spec, struct tls_error *e)
{
	for (unsigned i = 0; i < spec->n_alpn; i++) {
		struct str p = spec->alpn[i];

		if (p.n == 0 || p.n > 255 || s->alpn_n + 1 + p.n > ALPN_MAX)
			return tls_error_set(e, ERR_SYNTAX, TLS_PART_ALPN, "is too long, or has an empty protocol");
		s->alpn[s->alpn_n++] = (unsigned char)p.n;
		memcpy(s->alpn + s->alpn_n, p.p, p.n);
		s->alpn_n += (unsigned)p.n;
	}
	return OK;
}

/* RFC 7301 3.2: the first of ours that the client has; none is fatal. */
static int on_alpn(SSL *ssl, const unsigned char **out, unsigned char *n, const unsigned char *theirs, unsigned theirs_n,
		void *arg)
{
	const struct tls_server *s = arg;

	(void)ssl;
	if (SSL_select_next_proto((unsigned char **)out, n, s->alpn, s->alpn_n, theirs, theirs_n) == OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_OK;
	return SSL_TLSEXT_ERR_ALERT_FATAL;
}

/* --- the whole --- */

/* OpenSSL has looked at a certificate of a client's chain; what it found stays. */
static int on_verify(int good, X509_STORE_CTX *store)
{
	SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());

	if (X509_STORE_CTX_get_error_depth(store) == 0 && !tls_tickets_fit(X509_STORE_CTX_get_current_cert(store)))
		SSL_set_num_tickets(ssl, 0);
	return tls_ctx_verified(good, store);
}

static enum err set_clients(struct tls_server *s, const struct tls_server_spec *spec, struct tls_error *e)
{
	int mode = SSL_VERIFY_PEER;

	if (spec->client_certs == TLS_CLIENT_CERTS_NONE)
		return OK;
	if (spec->client_certs == TLS_CLIENT_CERTS_REQUIRE)
		mode |= SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
	SSL_CTX_set_verify(s->ctx, mode, on_verify);
	return tls_ctx_trust(s->ctx, spec->client_ca, spec->client_crl, true, e);
}

static bool cipher_ours(const SSL *ssl, const SSL_SESSION *session)
{
	const STACK_OF(SSL_CIPHER) *ours = SSL_get_ciphers(ssl);
	int i = 0;

	if (SSL_SESSION_get_protocol_version(session) >= TLS1_3_VERSION)
		return true;
	while (i < sk_SSL_CIPHER_num(ours) && sk_SSL_CIPHER_value(ours, i) != SSL_SESSION_get0_cipher(session))
		i++;
	return i < sk_SSL_CIPHER_num(ours);
}

/* A session does not outlive the certificate that its client has shown: then hands are shaken in full, and it is verified anew.  Nor has
 * it a cipher that is not ours, which it may be from another listener; of TLS 1.3 OpenSSL looks at that.
 * OpenSSL's contract: a ticket that is not used is one that could not be read. */
static SSL_TICKET_RETURN on_session(SSL *ssl, SSL_SESSION *session, const unsigned char *name, size_t n, SSL_TICKET_STATUS status,
		void *arg)
{
	const X509 *x;

	(void)name, (void)n, (void)arg;
	if (status != SSL_TICKET_SUCCESS && status != SSL_TICKET_SUCCESS_RENEW)
		return SSL_TICKET_RETURN_IGNORE_RENEW;
	x = SSL_SESSION_get0_peer(session);
	if ((x && X509_cmp_current_time(X509_get0_notAfter(x)) <= 0) || !cipher_ours(ssl, session))
		return SSL_TICKET_RETURN_IGNORE_RENEW;
	return status == SSL_TICKET_SUCCESS ? SSL_TICKET_RETURN_USE : SSL_TICKET_RETURN_USE_RENEW;
}

static enum err set_tickets(struct tls_server *s, const struct tls_server_spec *spec, struct tls_error *e)
{
	if (!spec->tickets) {
		SSL_CTX_set_options(s->ctx, SSL_OP_NO_TICKET);
		return SSL_CTX_set_num_tickets(s->ctx, 0) ? OK : tls_error_set(e, ERR_MEM, TLS_PART_TICKETS, "no memory");
	}
	if (!SSL_CTX_set_num_tickets(s->ctx, spec->n_tickets) || tls_tickets_use(spec->tickets, s->ctx) != OK)
		return tls_error_set(e, ERR_MEM, TLS_PART_TICKETS, "no memory");
	SSL_CTX_set_session_ticket_cb(s->ctx, NULL, on_session, NULL);
	return OK;
}

static void bind_sessions(struct tls_server *s, const struct tls_server_spec *spec)
{
	unsigned char all[1 + 2 * 32] = { (unsigned char)spec->client_certs };

	SHA256((const unsigned char *)spec->client_ca.p, spec->client_ca.n, all + 1);
	SHA256((const unsigned char *)spec->client_crl.p, spec->client_crl.n, all + 33);
	SHA256(all, sizeof(all), s->binding);
}

static void server_free(struct tls_server *s)
{
	SSL_CTX_free(s->ctx);
	for (unsigned i = 0; i < s->n_certs; i++)
		tls_cert_unref(s->certs[i]);
	mem_free(s->certs);
	mem_free(s->groups);
	mem_free(s);
}

static enum err server_fill(struct tls_server *s, const struct tls_server_spec *spec, struct tls_error *e)
{
	const struct tls_ctx_spec common = {
		.min_version = spec->min_version, .max_version = spec->max_version, .ciphers = spec->ciphers,
		.suites = spec->suites, .groups = spec->groups, .park = spec->park,
	};
	enum err err;

	s->certs = mem_alloc(spec->n_certs * sizeof(*s->certs));
	if (!s->certs)
		return tls_error_set(e, ERR_MEM, TLS_PART_NONE, "no memory");
	for (; s->n_certs < spec->n_certs; s->n_certs++)
		s->certs[s->n_certs] = tls_cert_ref(spec->certs[s->n_certs]);
	s->ctx = tls_ctx_new(true, &common, e);
	if (!s->ctx)
		return ERR_SYNTAX;
	for (unsigned i = 0; i < s->n_certs; i++) {
		if ((err = tls_ctx_try(s->ctx, s->certs[i], e)) != OK) {
			if (e)
				e->index = i;
			return err;
		}
	}
	if ((err = index_names(s, e)) != OK || (err = set_alpn(s, spec, e)) != OK || (err = set_clients(s, spec, e)) != OK ||
			(err = set_tickets(s, spec, e)) != OK)
		return err;
	index_default(s);
	if (s->alpn_n)
		SSL_CTX_set_alpn_select_cb(s->ctx, on_alpn, s);
	bind_sessions(s, spec);
	return OK;
}

struct tls_server *tls_server_new(const struct tls_server_spec *spec, struct tls_error *e)
{
	struct tls_server *s = mem_zalloc(sizeof(*s));

	CHECK(spec->n_certs > 0);
	if (!s) {
		tls_error_set(e, ERR_MEM, TLS_PART_NONE, "no memory");
		return NULL;
	}
	s->refs = 1;
	if (server_fill(s, spec, e) != OK) {
		server_free(s);
		return NULL;
	}
	ERR_clear_error();
	return s;
}

const struct tls_server *tls_server_ref(const struct tls_server *s)
{
	atomic_fetch_add_explicit(&((struct tls_server *)s)->refs, 1, memory_order_relaxed);
	return s;
}

void tls_server_unref(const struct tls_server *s)
{
	struct tls_server *mine = (struct tls_server *)s;

	if (s && atomic_fetch_sub_explicit(&mine->refs, 1, memory_order_acq_rel) == 1)
		server_free(mine);
}

/* Names and certificates of a group do not change while the server lives, and other servers that have the same name,
 * authorities and demand may take its sessions: other instances are such.  Without a name it is the certificate that says who we are. */
static bool set_binding(const struct tls_server *s, const struct tls_group *g, SSL *ssl)
{
	unsigned char all[sizeof(s->binding) + 256], context[SHA256_DIGEST_LENGTH];
	size_t n = g->name.n < 256 ? g->name.n : 256;

	memcpy(all, s->binding, sizeof(s->binding));
	if (n) {
		memcpy(all + sizeof(s->binding), g->name.p, n);
	} else {	/* no name begins with a NUL */
		n = 1 + TLS_CERT_WHO;
		all[sizeof(s->binding)] = 0;
		tls_cert_who(s->certs[0], all + sizeof(s->binding) + 1);
	}
	SHA256(all, sizeof(s->binding) + n, context);
	return SSL_set_session_id_context(ssl, context, sizeof(context)) == 1;
}

SSL *tls_server_ssl(const struct tls_server *s, const struct tls_group *g)
{
	SSL *ssl = SSL_new(s->ctx);
	bool good = ssl && set_binding(s, g, ssl);

	for (int kind = 0; kind < TLS_CERT_KINDS && good; kind++)
		good = !g->cert[kind] || tls_cert_use(g->cert[kind], ssl, NULL) == OK;
	if (!good) {
		SSL_free(ssl);
		ERR_clear_error();
		return NULL;
	}
	SSL_set_accept_state(ssl);
	return ssl;
}
