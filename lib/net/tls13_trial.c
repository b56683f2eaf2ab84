/* Door: a hand-over played through in memory, so that a process knows whether the OpenSSL that it was started with
 * shows what tls13_take needs: a shared library is replaced without us.  Owns nothing that outlives the call.  Called
 * once, at the start, by a process that would park; never on a connection.
 *
 * Two ends, a pre-shared key instead of certificates; the server sends its tickets, and both are taken over. */
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <string.h>

#include "lib/net/feed.h"
#include "lib/net/tls13_take.h"

#define FLIGHTS_MAX 8

struct end {
	SSL *ssl;
	struct feed feed;
	struct tls13_watch watch;
	struct tls13 *t;
};

static const struct suite {
	const char *name;
	unsigned char id[2];
} suites[TLS13_SUITES] = {
	{ "TLS_AES_128_GCM_SHA256", { 0x13, 1 } },
	{ "TLS_AES_256_GCM_SHA384", { 0x13, 2 } },
	{ "TLS_CHACHA20_POLY1305_SHA256", { 0x13, 3 } },
};

/* The key that both ends have: no secret, nothing of value goes under it. */
static SSL_SESSION *psk_session(SSL *ssl)
{
	static const unsigned char key[32] = "a trial in memory, and no secret";
	const struct suite *suite = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
	const SSL_CIPHER *cipher = SSL_CIPHER_find(ssl, suite->id);
	SSL_SESSION *s = SSL_SESSION_new();

	if (s && cipher && SSL_SESSION_set1_master_key(s, key, sizeof(key)) && SSL_SESSION_set_cipher(s, cipher) &&
			SSL_SESSION_set_protocol_version(s, TLS1_3_VERSION))
		return s;
	SSL_SESSION_free(s);
	return NULL;
}

static int psk_use(SSL *ssl, const EVP_MD *md, const unsigned char **id, size_t *n, SSL_SESSION **session)
{
	(void)md;
	*id = (const unsigned char *)"trial";
	*n = 5;
	*session = psk_session(ssl);
	return *session != NULL;
}

static int psk_find(SSL *ssl, const unsigned char *id, size_t n, SSL_SESSION **session)
{
	*session = n == 5 && memcmp(id, "trial", 5) == 0 ? psk_session(ssl) : NULL;
	return 1;
}

static SSL_CTX *context(const struct suite *suite, bool server)
{
	SSL_CTX *ctx = SSL_CTX_new(server ? TLS_server_method() : TLS_client_method());

	if (!ctx || !SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) || !SSL_CTX_set_ciphersuites(ctx, suite->name) ||
			tls13_watch_ctx(ctx) != OK) {
		SSL_CTX_free(ctx);
		return NULL;
	}
	SSL_CTX_set_app_data(ctx, (void *)suite);
	if (server)
		SSL_CTX_set_psk_find_session_callback(ctx, psk_find);
	else
		SSL_CTX_set_psk_use_session_callback(ctx, psk_use);
	return ctx;
}

static bool end_init(struct end *e, const struct suite *suite, bool server)
{
	SSL_CTX *ctx = context(suite, server);

	*e = (struct end){ .feed.limit = 64 * 1024 };
	e->ssl = ctx ? SSL_new(ctx) : NULL;
	SSL_CTX_free(ctx);	/* the SSL object has it */
	if (!e->ssl || tls13_watch(&e->watch, e->ssl) != OK || feed_attach(&e->feed, e->ssl) != OK)
		return false;
	if (server)
		SSL_set_accept_state(e->ssl);
	else
		SSL_set_connect_state(e->ssl);
	return true;
}

static void end_fini(struct end *e, struct tls13_shared *sh)
{
	tls13_watch_end(&e->watch, e->ssl);
	SSL_free(e->ssl);
	feed_fini(&e->feed);
	tls13_free(sh, e->t);
}

/* `e` goes on with what `from` has written; true when its handshake is through. */
static bool step(struct end *e, struct end *from)
{
	size_t n = buf_len(from->feed.out);
	char c;
	size_t got;
	int r;

	e->feed.in = buf_str(from->feed.out);
	r = SSL_do_handshake(e->ssl);
	if (r == 1)
		(void)SSL_read_ex(e->ssl, &c, 1, &got);	/* tickets */
	buf_consume(&from->feed.out, NULL, n - e->feed.in.n);
	e->feed.in = (struct str){0};
	return r == 1;
}

/* What `from` seals `to` opens. */
static bool says(struct tls13_shared *sh, struct end *from, struct end *to)
{
	unsigned char out[200], data[100];
	struct iovec iov = { data, sizeof(data) };
	size_t taken, sealed, used;
	struct str plain;

	memset(data, 'x', sizeof(data));
	return tls13_seal(sh, from->t, &iov, 1, out, sizeof(out), &taken, &sealed) == OK && taken == sizeof(data) &&
		tls13_open(sh, to->t, out, sealed, &used, &plain) == TLS13_MORE && plain.n == taken && memcmp(plain.p, data, taken) == 0;
}

static bool play(struct tls13_shared *sh, struct end *server, struct end *client)
{
	bool through[2] = { false, false };

	for (int i = 0; i < FLIGHTS_MAX && !(through[0] && through[1] && !client->feed.out && !server->feed.out); i++) {
		through[0] = step(client, server);
		through[1] = step(server, client);
	}
	return through[0] && through[1] && tls13_take(sh, server->ssl, &server->watch, &server->t) == TLS13_TAKEN &&
		tls13_take(sh, client->ssl, &client->watch, &client->t) == TLS13_TAKEN &&
		says(sh, server, client) && says(sh, client, server) && says(sh, server, client);
}

bool tls13_trial(void)
{
	struct tls13_shared *sh = tls13_shared_new(NULL);
	bool good = sh != NULL;

	for (int i = 0; i < TLS13_SUITES && good; i++) {
		struct end server = {0}, client = {0};

		good = end_init(&server, &suites[i], true) && end_init(&client, &suites[i], false) && play(sh, &server, &client);
		end_fini(&server, sh);
		end_fini(&client, sh);
	}
	tls13_shared_free(sh);
	ERR_clear_error();
	return good;
}
