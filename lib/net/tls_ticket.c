/* Door: keys of session tickets (RFC 5077, 4; RFC 8446, 4.6.1).  Owns three keys, those of the last, this and the next
 * period, and what they are derived from.  OpenSSL calls it in handshakes, on any worker; one thread turns it.
 *
 * With a shared secret the keys of a period are HMACs of its number: instances agree without talking, and so they
 * take tickets of the next period, too, from one whose clock is ahead.  Without one each period has random keys, so that
 * what was recorded cannot be read with what the process has two periods later.
 *
 * A lock is held for the copy of 80 bytes, once a handshake; nobody waits for anything while holding it. */
#include "lib/net/tls_ticket.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/params.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"

enum { LAST, NOW, NEXT, KEYS };

struct ticket_key {
	unsigned char name[16], cipher[32], mac[32];
};

struct tls_tickets {
	pthread_mutex_t lock;		/* of `key` and `there` */
	struct ticket_key key[KEYS];
	bool there[KEYS];
	bool shared;			/* `secret` is what other instances have */
	unsigned char secret[32];
	int64_t period;			/* the number of the period that NOW is for */
	EVP_CIPHER *aes;		/* owned */
};

/* HMAC-SHA-256(secret, what | period). */
static bool derive(const struct tls_tickets *t, const char *what, int64_t period, unsigned char *to, size_t n)
{
	unsigned char message[32] = {0}, hash[32];
	unsigned size;

	CHECK(strlen(what) <= 16 && n <= sizeof(hash));
	memcpy(message, what, strlen(what));
	for (int i = 0; i < 8; i++)
		message[16 + i] = (unsigned char)((uint64_t)period >> (56 - 8 * i));
	if (!HMAC(EVP_sha256(), t->secret, sizeof(t->secret), message, sizeof(message), hash, &size))
		return false;
	memcpy(to, hash, n);
	OPENSSL_cleanse(hash, sizeof(hash));
	return true;
}

static bool key_make(const struct tls_tickets *t, int64_t period, struct ticket_key *k)
{
	if (!t->shared)
		return RAND_bytes(k->name, sizeof(k->name)) == 1 && RAND_priv_bytes(k->cipher, sizeof(k->cipher)) == 1 &&
			RAND_priv_bytes(k->mac, sizeof(k->mac)) == 1;
	return derive(t, "ticket name", period, k->name, sizeof(k->name)) &&
		derive(t, "ticket cipher", period, k->cipher, sizeof(k->cipher)) &&
		derive(t, "ticket mac", period, k->mac, sizeof(k->mac));
}

/* The keys of `period`; what is kept of those before it is what they were. */
static bool keys_of(struct tls_tickets *t, int64_t period)
{
	struct ticket_key key[KEYS] = {0};
	bool there[KEYS] = { false, true, t->shared }, ok = key_make(t, period, &key[NOW]);

	if (t->shared) {
		there[LAST] = true;
		ok = ok && key_make(t, period - 1, &key[LAST]) && key_make(t, period + 1, &key[NEXT]);
	} else if (t->there[NOW] && period == t->period + 1) {
		there[LAST] = true;
		key[LAST] = t->key[NOW];
	}
	if (ok) {
		pthread_mutex_lock(&t->lock);
		memcpy(t->key, key, sizeof(key));
		memcpy(t->there, there, sizeof(there));
		pthread_mutex_unlock(&t->lock);
		t->period = period;
	}
	OPENSSL_cleanse(key, sizeof(key));
	return ok;
}

static int64_t period_of(int64_t now)
{
	return now / TLS_TICKET_PERIOD;
}

static bool secret_fits(struct str shared, struct tls_error *e)
{
	if (shared.n >= TLS_TICKET_SHARED_MIN)
		return true;
	tls_error_set(e, ERR_SYNTAX, TLS_PART_TICKETS, "has %zu bytes: at least %u random ones are needed", shared.n,
		TLS_TICKET_SHARED_MIN);
	return false;
}

enum err tls_tickets_share(struct tls_tickets *t, struct str shared, int64_t now, struct tls_error *e)
{
	unsigned char before[sizeof(t->secret)];
	bool was = t->shared, good;

	if (!secret_fits(shared, e))
		return ERR_SYNTAX;
	memcpy(before, t->secret, sizeof(before));
	t->shared = true;
	good = SHA256((const unsigned char *)shared.p, shared.n, t->secret) && keys_of(t, period_of(now));
	if (!good) {
		t->shared = was;
		memcpy(t->secret, before, sizeof(before));
	}
	OPENSSL_cleanse(before, sizeof(before));
	return good ? OK : tls_error_set(e, ERR_MEM, TLS_PART_TICKETS, "no memory");
}

struct tls_tickets *tls_tickets_new(struct str shared, int64_t now, struct tls_error *e)
{
	struct tls_tickets *t;

	if (shared.n && !secret_fits(shared, e))
		return NULL;
	t = mem_zalloc(sizeof(*t));
	if (!t) {
		tls_error_set(e, ERR_MEM, TLS_PART_TICKETS, "no memory");
		return NULL;
	}
	pthread_mutex_init(&t->lock, NULL);
	t->shared = shared.n > 0;
	t->aes = EVP_CIPHER_fetch(NULL, "AES-256-CBC", NULL);
	if (t->aes && (!t->shared || SHA256((const unsigned char *)shared.p, shared.n, t->secret)) && keys_of(t, period_of(now)))
		return t;
	tls_error_set(e, ERR_MEM, TLS_PART_TICKETS, "no memory, or no randomness");
	tls_tickets_free(t);
	return NULL;
}

void tls_tickets_free(struct tls_tickets *t)
{
	if (!t)
		return;
	EVP_CIPHER_free(t->aes);
	pthread_mutex_destroy(&t->lock);
	OPENSSL_cleanse(t, sizeof(*t));
	mem_free(t);
}

enum err tls_tickets_turn(struct tls_tickets *t, int64_t now)
{
	int64_t period = period_of(now);

	if (period == t->period)
		return OK;
	if (keys_of(t, period))
		return OK;
	ERR_clear_error();
	return ERR_SYS;
}

static int tickets_index = -1;
static pthread_once_t tickets_once = PTHREAD_ONCE_INIT;

static void tickets_index_make(void)
{
	tickets_index = SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, NULL);
}

static bool key_start(const struct tls_tickets *t, const struct ticket_key *k, const unsigned char *iv,
		EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac, int enc)
{
	OSSL_PARAM params[3] = {
		OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, (void *)k->mac, sizeof(k->mac)),
		OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)"SHA256", 0),
		OSSL_PARAM_construct_end(),
	};

	return EVP_MAC_CTX_set_params(mac, params) && EVP_CipherInit_ex2(cipher, t->aes, k->cipher, iv, enc, NULL);
}

bool tls_tickets_fit(const X509 *shown)
{
	return !shown || i2d_X509(shown, NULL) <= TLS_TICKET_CERT_MAX;
}

/* OpenSSL's contract: -1 fails, 0 is no ticket of ours, 1 is good, 2 is good and is to be replaced. */
static int on_ticket(SSL *ssl, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac, int enc)
{
	struct tls_tickets *t = SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), tickets_index);
	struct ticket_key k;
	int which = NOW, r;

	if (enc && !tls_tickets_fit(SSL_get0_peer_certificate(ssl)))
		return 0;	/* TLS 1.2: an empty ticket (RFC 5077, 3.3) */
	if (enc && RAND_bytes(iv, EVP_CIPHER_get_iv_length(t->aes)) != 1)
		return -1;
	pthread_mutex_lock(&t->lock);
	if (!enc)
		for (which = LAST; which < KEYS && !(t->there[which] && memcmp(name, t->key[which].name, sizeof(k.name)) == 0); which++)
			;
	if (which < KEYS)
		k = t->key[which];
	pthread_mutex_unlock(&t->lock);
	if (which == KEYS)
		return 0;
	if (enc)
		memcpy(name, k.name, sizeof(k.name));
	/* a client of TLS 1.3 uses a ticket once: it needs another, whatever the key's age */
	bool replace = which == LAST || SSL_version(ssl) >= TLS1_3_VERSION;
	r = !key_start(t, &k, iv, cipher, mac, enc) ? -1 : !enc && replace ? 2 : 1;
	OPENSSL_cleanse(&k, sizeof(k));
	return r;
}

enum err tls_tickets_use(struct tls_tickets *t, SSL_CTX *ctx)
{
	pthread_once(&tickets_once, tickets_index_make);
	if (tickets_index < 0 || !SSL_CTX_set_ex_data(ctx, tickets_index, t) ||
			!SSL_CTX_set_tlsext_ticket_key_evp_cb(ctx, on_ticket))
		return ERR_MEM;
	return OK;
}
