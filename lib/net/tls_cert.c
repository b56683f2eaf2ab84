/* Door: certificates of our own.  Owns OpenSSL's objects of one certificate, its chain and its key, and the names in
 * it; never changes them after they were read.  Called when a configuration is read and at each handshake; does no
 * file work.
 *
 * Certificates are kept apart from SSL_CTX: an SSL object is given those of its name, so that a thousand names do not
 * make a thousand contexts. */
#include "lib/net/tls_cert.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdatomic.h>
#include <string.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"

struct tls_cert {
	_Atomic uint32_t refs;
	enum tls_cert_kind kind;
	X509 *leaf;		/* owned */
	STACK_OF(X509) *chain;	/* owned: the others */
	EVP_PKEY *key;		/* owned */
	int64_t not_before, not_after;
	char **names;		/* owned, each of them too */
	size_t n_names;
	unsigned char who[TLS_CERT_WHO];
};

/* --- reading --- */

static int no_passphrase(char *buf, int size, int writing, void *ctx)
{
	(void)buf;
	(void)size;
	(void)writing;
	*(bool *)ctx = true;
	return -1;
}

static enum err read_chain(struct tls_cert *c, struct str pem, struct tls_error *e)
{
	BIO *bio = pem.n <= INT32_MAX ? BIO_new_mem_buf(pem.n ? pem.p : "", (int)pem.n) : NULL;
	char why[128];
	unsigned n = 0;

	c->chain = sk_X509_new_null();
	if (!bio || !c->chain) {
		BIO_free(bio);
		return tls_error_set(e, ERR_MEM, TLS_PART_CERT, "no memory");
	}
	for (;;) {
		X509 *x = PEM_read_bio_X509_AUX(bio, NULL, NULL, NULL);

		if (!x)
			break;
		if (++n > TLS_CERT_CHAIN_MAX || (c->leaf && !sk_X509_push(c->chain, x))) {
			X509_free(x);
			BIO_free(bio);
			return n > TLS_CERT_CHAIN_MAX ? tls_error_set(e, ERR_SYNTAX, TLS_PART_CERT, "has more than %u certificates",
				TLS_CERT_CHAIN_MAX) : tls_error_set(e, ERR_MEM, TLS_PART_CERT, "no memory");
		}
		if (!c->leaf)
			c->leaf = x;
	}
	BIO_free(bio);
	if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE)
		return tls_error_set(e, ERR_SYNTAX, TLS_PART_CERT, "certificate %u of it cannot be read: %s", n + 1,
			tls_error_reason(why, sizeof(why)));
	if (!n)
		return tls_error_set(e, ERR_SYNTAX, TLS_PART_CERT, "holds no certificate (-----BEGIN CERTIFICATE-----)");
	ERR_clear_error();
	return OK;
}

static enum err read_key(struct tls_cert *c, struct str pem, struct tls_error *e)
{
	BIO *bio = pem.n <= INT32_MAX ? BIO_new_mem_buf(pem.n ? pem.p : "", (int)pem.n) : NULL;
	bool asked = false;

	if (!bio)
		return tls_error_set(e, ERR_MEM, TLS_PART_KEY, "no memory");
	c->key = PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, &asked);
	BIO_free(bio);
	if (c->key)
		return OK;
	if (asked)
		return tls_error_set(e, ERR_SYNTAX, TLS_PART_KEY, "is encrypted: it must be without a passphrase");
	if (!memmem(pem.p ? pem.p : "", pem.n, "PRIVATE KEY-----", 16))
		return tls_error_set(e, ERR_SYNTAX, TLS_PART_KEY, "holds no private key (-----BEGIN PRIVATE KEY-----)");
	return tls_error_set(e, ERR_SYNTAX, TLS_PART_KEY, "holds a private key that cannot be read");
}

static enum err check_pair(struct tls_cert *c, struct tls_error *e)
{
	switch (EVP_PKEY_get_base_id(c->key)) {
	case EVP_PKEY_RSA:
	case EVP_PKEY_RSA_PSS:
		c->kind = TLS_CERT_RSA;
		break;
	case EVP_PKEY_EC:
		c->kind = TLS_CERT_EC;
		break;
	case EVP_PKEY_ED25519:
	case EVP_PKEY_ED448:
		c->kind = TLS_CERT_ED;
		break;
	default:
		return tls_error_set(e, ERR_SYNTAX, TLS_PART_KEY, "is neither an RSA, an EC nor an Ed25519 key");
	}
	if (X509_check_private_key(c->leaf, c->key) == 1)
		return OK;
	for (int i = 0; i < sk_X509_num(c->chain); i++)
		if (X509_check_private_key(sk_X509_value(c->chain, i), c->key) == 1)
			return tls_error_set(e, ERR_SYNTAX, TLS_PART_CERT, "has the certificate of the key in place %d: it comes first, "
				"then the one that signed it", i + 2);
	return tls_error_set(e, ERR_SYNTAX, TLS_PART_KEY, "is not the key of the certificate");
}

/* Unix time of an ASN.1 time. */
static bool unix_time(const ASN1_TIME *t, int64_t *to)
{
	ASN1_TIME *epoch = ASN1_TIME_set(NULL, 0);
	int days, seconds;
	bool ok = epoch && ASN1_TIME_diff(&days, &seconds, epoch, t);

	ASN1_TIME_free(epoch);
	if (ok)
		*to = (int64_t)days * 86400 + seconds;
	return ok;
}

/* --- names --- */

static enum err add_name(struct tls_cert *c, const ASN1_STRING *s)
{
	const char *p = (const char *)ASN1_STRING_get0_data(s);
	size_t n = (size_t)ASN1_STRING_length(s);
	char **more, *name;

	while (n && p[n - 1] == '.')
		n--;
	if (n == 0 || n > 253 || memchr(p, 0, n) || c->n_names == TLS_CERT_NAMES_MAX)
		return OK;	/* no name that a client could ask for */
	more = mem_realloc(c->names, (c->n_names + 1) * sizeof(*more));
	if (!more)
		return ERR_MEM;
	c->names = more;
	name = mem_strndup(p, n);
	if (!name)
		return ERR_MEM;
	for (size_t i = 0; i < n; i++)
		if (name[i] >= 'A' && name[i] <= 'Z')
			name[i] = (char)(name[i] + 'a' - 'A');
	c->names[c->n_names++] = name;
	return OK;
}

static enum err read_names(struct tls_cert *c)
{
	GENERAL_NAMES *all = X509_get_ext_d2i(c->leaf, NID_subject_alt_name, NULL, NULL);
	X509_NAME *subject = X509_get_subject_name(c->leaf);
	enum err err = OK;
	bool any = false;

	for (int i = 0; i < sk_GENERAL_NAME_num(all) && err == OK; i++) {
		const GENERAL_NAME *one = sk_GENERAL_NAME_value(all, i);

		any |= one->type == GEN_DNS || one->type == GEN_IPADD;
		if (one->type == GEN_DNS)
			err = add_name(c, one->d.dNSName);
	}
	GENERAL_NAMES_free(all);
	int at = any ? -1 : X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
	if (at >= 0 && err == OK)
		err = add_name(c, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
	return err;
}

/* The names as the certificate has them, or its subject. */
static void digest_names(struct tls_cert *c)
{
	int at = X509_get_ext_by_NID(c->leaf, NID_subject_alt_name, -1);
	const ASN1_OCTET_STRING *names = at < 0 ? NULL : X509_EXTENSION_get_data(X509_get_ext(c->leaf, at));
	const unsigned char *p = names ? ASN1_STRING_get0_data(names) : NULL;
	size_t n = names ? (size_t)ASN1_STRING_length(names) : 0;

	if (names || X509_NAME_get0_der(X509_get_subject_name(c->leaf), &p, &n))
		SHA256(p, n, c->who);
}

void tls_cert_who(const struct tls_cert *c, unsigned char to[TLS_CERT_WHO])
{
	memcpy(to, c->who, TLS_CERT_WHO);
}

/* --- the whole --- */

static void cert_free(struct tls_cert *c)
{
	X509_free(c->leaf);
	sk_X509_pop_free(c->chain, X509_free);
	EVP_PKEY_free(c->key);
	for (size_t i = 0; i < c->n_names; i++)
		mem_free(c->names[i]);
	mem_free(c->names);
	mem_free(c);
}

struct tls_cert *tls_cert_new(struct str chain, struct str key, struct tls_error *e)
{
	struct tls_cert *c = mem_zalloc(sizeof(*c));

	if (!c) {
		tls_error_set(e, ERR_MEM, TLS_PART_CERT, "no memory");
		return NULL;
	}
	c->refs = 1;
	ERR_clear_error();
	if (read_chain(c, chain, e) != OK || read_key(c, key, e) != OK || check_pair(c, e) != OK)
		goto fail;
	if (!unix_time(X509_get0_notBefore(c->leaf), &c->not_before) || !unix_time(X509_get0_notAfter(c->leaf), &c->not_after)) {
		tls_error_set(e, ERR_SYNTAX, TLS_PART_CERT, "has no readable dates");
		goto fail;
	}
	if (read_names(c) != OK) {
		tls_error_set(e, ERR_MEM, TLS_PART_CERT, "no memory");
		goto fail;
	}
	digest_names(c);
	ERR_clear_error();
	return c;
fail:
	cert_free(c);
	return NULL;
}

const struct tls_cert *tls_cert_ref(const struct tls_cert *c)
{
	atomic_fetch_add_explicit(&((struct tls_cert *)c)->refs, 1, memory_order_relaxed);
	return c;
}

void tls_cert_unref(const struct tls_cert *c)
{
	struct tls_cert *mine = (struct tls_cert *)c;

	if (c && atomic_fetch_sub_explicit(&mine->refs, 1, memory_order_acq_rel) == 1)
		cert_free(mine);
}

enum tls_cert_kind tls_cert_kind(const struct tls_cert *c)
{
	return c->kind;
}

int64_t tls_cert_not_before(const struct tls_cert *c)
{
	return c->not_before;
}

int64_t tls_cert_not_after(const struct tls_cert *c)
{
	return c->not_after;
}

size_t tls_cert_names(const struct tls_cert *c)
{
	return c->n_names;
}

struct str tls_cert_name(const struct tls_cert *c, size_t i)
{
	CHECK(i < c->n_names);
	return str_of(c->names[i]);
}

/* "*.example.com" and "a.example.com". */
static bool wildcard_covers(struct str name, struct str host)
{
	const char *dot = memchr(host.p, '.', host.n);

	if (!str_starts(name, STR("*.")) || !dot || dot == host.p)
		return false;
	size_t label = (size_t)(dot - host.p);
	return str_ieq((struct str){ name.p + 1, name.n - 1 }, (struct str){ dot, host.n - label });
}

static bool serves_address(const struct tls_cert *c, const char *text)
{
	return X509_check_ip_asc(c->leaf, text, 0) == 1;
}

bool tls_cert_serves(const struct tls_cert *c, struct str host)
{
	char text[INET6_ADDRSTRLEN];
	unsigned char address[16];

	if (host.n && host.n < sizeof(text) && !memchr(host.p, 0, host.n)) {
		memcpy(text, host.p, host.n);
		text[host.n] = '\0';
		if (inet_pton(AF_INET, text, address) == 1 || inet_pton(AF_INET6, text, address) == 1)
			return serves_address(c, text);
	}
	for (size_t i = 0; host.n && i < c->n_names; i++)
		if (str_ieq(str_of(c->names[i]), host) || wildcard_covers(str_of(c->names[i]), host))
			return true;
	return false;
}

enum err tls_cert_use(const struct tls_cert *c, SSL *ssl, struct tls_error *e)
{
	char why[128];

	if (SSL_use_cert_and_key(ssl, c->leaf, c->key, c->chain, 1) == 1)
		return OK;
	if (ERR_GET_REASON(ERR_peek_last_error()) == ERR_R_MALLOC_FAILURE)
		return tls_error_set(e, ERR_MEM, TLS_PART_CERT, "no memory");
	return tls_error_set(e, ERR_SYNTAX, TLS_PART_CERT, "cannot be used: %s", tls_error_reason(why, sizeof(why)));
}
