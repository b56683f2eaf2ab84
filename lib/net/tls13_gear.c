/* Door: the cryptography of TLS 1.3 records: key schedule and AEAD, all of it OpenSSL's EVP.  Owns the cipher contexts of one
 * suite and thread, and decides nothing: tls13.c has the rules and calls this.
 *
 * - A nonce (RFC 8446, 5.3) is the IV xor the number of the record.  A number is used once under a key: seq[] only
 *   grows, in tls13_gear_seal and tls13_gear_open alone, and starts anew in install alone, together with a key.
 * - Nothing that was deciphered under a wrong tag is left.
 * - A secret is wiped where it was replaced or used; the heap holds at most one key schedule per suite and direction, and
 *   none of a connection that is gone.
 * - After a failure OpenSSL's queue of errors is empty: other SSL objects of the thread look at it. */
#include "lib/net/tls13_gear.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <string.h>

#include "lib/base/check.h"

#define HEADER TLS13_HEADER
#define TAG TLS13_TAG
#define IV 12u
#define KEY_MAX 32u

static const struct suite {
	const char *cipher;
	const char *hash;
	uint8_t secret;		/* bytes: of the hash */
	uint8_t key;		/* bytes */
} suites[TLS13_SUITES] = {
	[TLS13_AES_128_GCM_SHA256] = { "AES-128-GCM", "SHA256", 32, 16 },
	[TLS13_AES_256_GCM_SHA384] = { "AES-256-GCM", "SHA384", 48, 32 },
	[TLS13_CHACHA20_POLY1305_SHA256] = { "ChaCha20-Poly1305", "SHA256", 32, 32 },
};

size_t tls13_gear_object(enum tls13_suite suite)
{
	return sizeof(struct tls13) + 2 * ((size_t)suites[suite].secret + suites[suite].key + IV);
}

size_t tls13_secret_size(enum tls13_suite suite)
{
	return suites[suite].secret;
}

/* --- secrets --- */

static unsigned char *secret_of(struct tls13 *t, int dir)
{
	const struct suite *s = &suites[t->suite];

	return t->key + (size_t)dir * (s->secret + s->key + IV);
}

static unsigned char *key_of(struct tls13 *t, int dir)
{
	return secret_of(t, dir) + suites[t->suite].secret;
}

static unsigned char *iv_of(struct tls13 *t, int dir)
{
	return key_of(t, dir) + suites[t->suite].key;
}

/* HKDF-Expand-Label(secret, label, "", n) of RFC 8446 7.1.  `n` is at most one hash, so that HKDF-Expand is one HMAC, of the
 * HkdfLabel and a 1 (RFC 5869, 2.3). */
static bool expand(struct tls13_gear *g, const struct suite *s, const unsigned char *secret, const char *label,
		unsigned char *out, size_t n)
{
	unsigned char info[32], hash[TLS13_HASH_MAX];
	size_t len = 6 + strlen(label), got;
	bool ok;

	CHECK(n <= s->secret && len + 5 <= sizeof(info));
	info[0] = 0;
	info[1] = (unsigned char)n;
	info[2] = (unsigned char)len;
	memcpy(info + 3, "tls13 ", 6);
	memcpy(info + 9, label, len - 6);
	info[3 + len] = 0;
	info[4 + len] = 1;
	ok = EVP_MAC_init(g->hmac, secret, s->secret, NULL) && EVP_MAC_update(g->hmac, info, len + 5) &&
		EVP_MAC_final(g->hmac, hash, &got, sizeof(hash)) && got == s->secret;
	if (ok)
		memcpy(out, hash, n);
	else
		ERR_clear_error();
	OPENSSL_cleanse(hash, sizeof(hash));
	return ok;
}

/* The secret of that direction is there: its key and IV, and the first record.  False: OpenSSL refuses. */
static bool key_install(struct tls13_gear *g, struct tls13 *t, int dir)
{
	static const unsigned char nothing[TLS13_HASH_MAX];
	const struct suite *s = &suites[t->suite];
	const unsigned char *secret = secret_of(t, dir);
	bool ok = expand(g, s, secret, "key", key_of(t, dir), s->key) && expand(g, s, secret, "iv", iv_of(t, dir), IV);

	(void)EVP_MAC_init(g->hmac, nothing, s->secret, NULL);	/* it holds the secret no longer */
	t->seq[dir] = 0;
	if (g->keyed[dir] == t)
		g->keyed[dir] = NULL;
	return ok;
}

bool tls13_gear_start(struct tls13_gear *g, struct tls13 *t, int dir, const struct tls13_secret *secret)
{
	memcpy(secret_of(t, dir), secret->b, suites[t->suite].secret);
	if (!key_install(g, t, dir))
		return false;
	t->seq[dir] = secret->seq;
	return true;
}

bool tls13_gear_advance(struct tls13_gear *g, struct tls13 *t, int dir)
{
	unsigned char next[TLS13_HASH_MAX];
	size_t n = suites[t->suite].secret;
	bool ok = expand(g, &suites[t->suite], secret_of(t, dir), "traffic upd", next, n);

	if (ok)
		memcpy(secret_of(t, dir), next, n);
	OPENSSL_cleanse(next, sizeof(next));
	return ok && key_install(g, t, dir);
}

void tls13_gear_wipe(struct tls13_gear *g, struct tls13 *t)
{
	static const unsigned char nothing[KEY_MAX + IV];

	for (int dir = 0; dir < 2; dir++) {
		if (g->keyed[dir] != t)
			continue;
		(void)EVP_CipherInit_ex2(g->ctx[dir], NULL, nothing, nothing, -1, NULL);
		g->keyed[dir] = NULL;
	}
	OPENSSL_cleanse(t, tls13_gear_object(t->suite));
}

/* --- contexts --- */

void tls13_gear_fini(struct tls13_gear *g)
{
	for (int dir = 0; dir < 2; dir++) {
		EVP_CIPHER_CTX_free(g->ctx[dir]);
		g->ctx[dir] = NULL;
	}
	EVP_CIPHER_free(g->cipher);
	EVP_MAC_CTX_free(g->hmac);
	g->cipher = NULL;
	g->hmac = NULL;
}

bool tls13_gear_init(struct tls13_gear *g, enum tls13_suite suite)
{
	const struct suite *s = &suites[suite];
	OSSL_PARAM hash[2] = {
		OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)s->hash, 0), OSSL_PARAM_construct_end()
	};
	unsigned char nothing[TLS13_HASH_MAX] = {0};
	EVP_MAC *hmac = EVP_MAC_fetch(NULL, "HMAC", NULL);

	g->cipher = EVP_CIPHER_fetch(NULL, s->cipher, NULL);
	g->hmac = hmac ? EVP_MAC_CTX_new(hmac) : NULL;
	EVP_MAC_free(hmac);
	for (int dir = 0; dir < 2; dir++)
		g->ctx[dir] = EVP_CIPHER_CTX_new();
	if (g->cipher && g->hmac && g->ctx[0] && g->ctx[1] && EVP_MAC_init(g->hmac, nothing, s->secret, hash) &&
			EVP_CipherInit_ex2(g->ctx[TLS13_IN], g->cipher, nothing, nothing, 0, NULL) &&
			EVP_CipherInit_ex2(g->ctx[TLS13_OUT], g->cipher, nothing, nothing, 1, NULL))
		return true;
	ERR_clear_error();
	tls13_gear_fini(g);
	return false;
}

/* --- one record --- */

/* Makes the context of that direction ready for the next record, whose header is the additional data. */
static EVP_CIPHER_CTX *cipher_begin(struct tls13_gear *g, struct tls13 *t, int dir, const unsigned char *header,
		const OSSL_PARAM *tag)
{
	EVP_CIPHER_CTX *ctx = g->ctx[dir];
	unsigned char nonce[IV];
	uint64_t n = t->seq[dir];
	int len;

	memcpy(nonce, iv_of(t, dir), IV);
	for (unsigned i = IV; i > IV - 8; n >>= 8)
		nonce[--i] ^= (unsigned char)n;
	if (!EVP_CipherInit_ex2(ctx, NULL, g->keyed[dir] == t ? NULL : key_of(t, dir), nonce, -1, tag)) {
		g->keyed[dir] = NULL;
		return NULL;
	}
	g->keyed[dir] = t;
	return EVP_CipherUpdate(ctx, NULL, &len, header, HEADER) ? ctx : NULL;
}

bool tls13_gear_seal(struct tls13_gear *g, struct tls13 *t, unsigned char *p, size_t n)
{
	OSSL_PARAM tag[2] = {
		OSSL_PARAM_construct_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, p + HEADER + n, TAG), OSSL_PARAM_construct_end()
	};
	EVP_CIPHER_CTX *ctx;
	int len, rest;

	p[0] = 23;		/* application_data: what it is is within (5.2) */
	p[1] = p[2] = 3;
	p[3] = (unsigned char)((n + TAG) >> 8);
	p[4] = (unsigned char)(n + TAG);
	if (t->seq[TLS13_OUT] == UINT64_MAX)
		return false;
	ctx = cipher_begin(g, t, TLS13_OUT, p, NULL);
	if (!ctx || !EVP_EncryptUpdate(ctx, p + HEADER, &len, p + HEADER, (int)n) || (size_t)len != n ||
			!EVP_EncryptFinal_ex(ctx, p + HEADER + n, &rest) || rest != 0 || !EVP_CIPHER_CTX_get_params(ctx, tag)) {
		ERR_clear_error();
		return false;
	}
	t->seq[TLS13_OUT]++;
	return true;
}

bool tls13_gear_open(struct tls13_gear *g, struct tls13 *t, unsigned char *p, size_t n)
{
	unsigned char *body = p + HEADER;
	EVP_CIPHER_CTX *ctx;
	int len, rest;

	if (n < TAG || t->seq[TLS13_IN] == UINT64_MAX)
		return false;
	n -= TAG;
	OSSL_PARAM tag[2] = {
		OSSL_PARAM_construct_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, body + n, TAG), OSSL_PARAM_construct_end()
	};
	ctx = cipher_begin(g, t, TLS13_IN, p, tag);
	if (!ctx || !EVP_DecryptUpdate(ctx, body, &len, body, (int)n) || (size_t)len != n ||
			!EVP_DecryptFinal_ex(ctx, body + n, &rest)) {
		OPENSSL_cleanse(body, n);
		ERR_clear_error();
		return false;
	}
	t->seq[TLS13_IN]++;
	return true;
}
