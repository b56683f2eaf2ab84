/* See tls_inner.h. */
#include "tests/unit/tls_inner.h"

#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

size_t tls_inner(const struct tls13 *t, int dir, uint64_t seq, int type, const void *content, size_t n,
		size_t pad, unsigned char *out)
{
	static const struct { const char *cipher; size_t key; } kinds[] = {
		{ "AES-128-GCM", 16 }, { "AES-256-GCM", 32 }, { "ChaCha20-Poly1305", 32 },
	};
	size_t secret = tls13_secret_size(t->suite), key = kinds[t->suite].key, inner = n + 1 + pad;
	const unsigned char *k = t->key + (size_t)dir * (secret + key + 12) + secret;
	EVP_CIPHER *cipher = EVP_CIPHER_fetch(NULL, kinds[t->suite].cipher, NULL);
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	unsigned char nonce[12], *plain = malloc(inner);
	int len;

	memcpy(nonce, k + key, 12);
	for (int i = 0; i < 8; i++)
		nonce[4 + i] ^= (unsigned char)(seq >> (56 - 8 * i));
	memcpy(plain, content ? content : "", n);
	plain[n] = (unsigned char)type;
	memset(plain + n + 1, 0, pad);
	out[0] = 23;
	out[1] = out[2] = 3;
	out[3] = (unsigned char)((inner + 16) >> 8);
	out[4] = (unsigned char)(inner + 16);
	if (!EVP_EncryptInit_ex(ctx, cipher, NULL, k, nonce) || !EVP_EncryptUpdate(ctx, NULL, &len, out, 5) ||
			!EVP_EncryptUpdate(ctx, out + 5, &len, plain, (int)inner) || !EVP_EncryptFinal_ex(ctx, out + 5 + inner, &len) ||
			!EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, 16, out + 5 + inner))
		abort();
	free(plain);
	EVP_CIPHER_CTX_free(ctx);
	EVP_CIPHER_free(cipher);
	return 5 + inner + 16;
}
