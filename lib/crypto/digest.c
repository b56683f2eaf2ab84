/* digest: see digest.h.  The one file here that knows libcrypto.  Owns a context for each struct digest; the memory of
 * the library does not come through lib/base/mem.  Called where passwords are looked at, never with a socket. */
#include "lib/crypto/digest.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include "lib/base/mem.h"

struct digest {
	EVP_MD_CTX *ctx;	/* owned */
	bool failed;		/* since digest_start; and behind an end, so that nothing is added there */
};

struct digest_mac {
	EVP_MAC_CTX *ctx;	/* owned; has the key */
};

struct digest *digest_new(void)
{
	struct digest *d = mem_zalloc(sizeof *d);

	if (!d)
		return NULL;
	d->ctx = EVP_MD_CTX_new();
	if (d->ctx)
		return d;
	mem_free(d);
	return NULL;
}

void digest_free(struct digest *d)
{
	if (!d)
		return;
	EVP_MD_CTX_free(d->ctx);
	mem_free(d);
}

void digest_start(struct digest *d, enum digest_kind kind)
{
	d->failed = EVP_DigestInit_ex(d->ctx, kind == DIGEST_MD5 ? EVP_md5() : EVP_sha1(), NULL) != 1;
}

void digest_add(struct digest *d, const void *p, size_t n)
{
	if (!d->failed && n)
		d->failed = EVP_DigestUpdate(d->ctx, p, n) != 1;
}

enum err digest_end(struct digest *d, void *out)
{
	bool ok = !d->failed && EVP_DigestFinal_ex(d->ctx, out, NULL) == 1;

	d->failed = true;
	return ok ? OK : ERR_SYS;
}

/* The context begins anew with the key that it has: looking the algorithm up takes longer than the sum. */
struct digest_mac *digest_mac_new(const uint8_t key[DIGEST_MAC_KEY])
{
	char sha256[] = "SHA256";
	const OSSL_PARAM params[] = {
		OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, sha256, 0), OSSL_PARAM_construct_end(),
	};
	struct digest_mac *m = mem_zalloc(sizeof *m);
	EVP_MAC *hmac = m ? EVP_MAC_fetch(NULL, "HMAC", NULL) : NULL;

	if (hmac)
		m->ctx = EVP_MAC_CTX_new(hmac);
	EVP_MAC_free(hmac);	/* the context has a reference */
	if (m && m->ctx && EVP_MAC_init(m->ctx, key, DIGEST_MAC_KEY, params) == 1)
		return m;
	digest_mac_free(m);
	return NULL;
}

void digest_mac_free(struct digest_mac *m)
{
	if (!m)
		return;
	EVP_MAC_CTX_free(m->ctx);
	mem_free(m);
}

enum err digest_mac_of(struct digest_mac *m, struct str text, uint8_t out[DIGEST_MAC_SIZE])
{
	const unsigned char *p = (const unsigned char *)(text.p ? text.p : "");
	size_t n;

	if (EVP_MAC_init(m->ctx, NULL, 0, NULL) != 1 || EVP_MAC_update(m->ctx, p, text.n) != 1 ||
	    EVP_MAC_final(m->ctx, out, &n, DIGEST_MAC_SIZE) != 1)
		return ERR_SYS;
	return n == DIGEST_MAC_SIZE ? OK : ERR_SYS;
}

bool digest_equal(const void *a, const void *b, size_t n)
{
	return CRYPTO_memcmp(a, b, n) == 0;
}
