/* digest: see digest.h.  The one file here that knows libcrypto.  Owns a context for each struct digest; the memory of
 * the library does not come through lib/base/mem.  Called where passwords are looked at, never with a socket. */
#include "lib/crypto/digest.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "lib/base/mem.h"

struct digest {
	EVP_MD_CTX *ctx;	/* owned */
	bool failed;		/* since digest_start; and behind an end, so that nothing is added there */
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

enum err digest_mac(const uint8_t key[DIGEST_MAC_KEY], struct str text, uint8_t out[DIGEST_MAC_SIZE])
{
	const unsigned char *p = (const unsigned char *)(text.p ? text.p : "");

	return HMAC(EVP_sha256(), key, DIGEST_MAC_KEY, p, text.n, out, NULL) ? OK : ERR_SYS;
}

bool digest_equal(const void *a, const void *b, size_t n)
{
	return CRYPTO_memcmp(a, b, n) == 0;
}
