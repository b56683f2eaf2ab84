/* Door: the hand-over from OpenSSL's SSL object to lib/net/tls13.  Owns nothing but an index for the watch of
 * an SSL object.  Called before a handshake (watch) and when its owner would like to park the connection (take).
 *
 * The public interface gives all that is needed, in three places: the keylog callback names the two application traffic
 * secrets, at the moment when OpenSSL installs their keys; the message callback tells of each record and each handshake
 * message in both directions; and the cipher suite can be asked for.  OpenSSL sends 0 to 2 tickets by itself, which
 * use up numbers of our direction: hence the counting.
 *
 * Why nothing is lost.  A take is refused unless
 * - the handshake is over, it is TLS 1.3 with a suite that tls13 knows, and both secrets were seen;
 * - there was no early data, no post-handshake authentication, no KeyUpdate, no alert, no negotiated fragment length;
 * - no byte lies inside: SSL_has_pending says so of what was read and not asked for, but neither of a record whose header
 *   alone was read (`half`), nor of the first bytes of a handshake message whose rest is to come
 *   (`message_room` against `messages`; a peer that pads such records is taken for one that cuts them: it keeps its object).
 *   What was written is out, since a feed takes a record whole.
 * What one release of OpenSSL does another may not: tls13_trial plays it through once at the start of a process. */
#include "lib/net/tls13_take.h"

#include <openssl/crypto.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <string.h>

#include "lib/base/check.h"
#include "lib/net/feed.h"

static int watch_index = -1;
static pthread_once_t watch_once = PTHREAD_ONCE_INIT;

static void watch_index_make(void)
{
	watch_index = SSL_get_ex_new_index(0, NULL, NULL, NULL, NULL);
}

static int hex_of(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Bytes of a secret in hex; 0: it is none. */
static uint8_t secret_parse(const char *hex, unsigned char *to)
{
	size_t n = strlen(hex);

	if (n % 2 || n / 2 > TLS13_HASH_MAX)
		return 0;
	for (size_t i = 0; i < n / 2; i++) {
		int high = hex_of(hex[2 * i]), low = hex_of(hex[2 * i + 1]);

		if (high < 0 || low < 0)
			return 0;
		to[i] = (unsigned char)(high << 4 | low);
	}
	return (uint8_t)(n / 2);
}

/* "CLIENT_TRAFFIC_SECRET_0 <client random> <secret>": from here on records of that direction are counted. */
static void on_keylog(const SSL *ssl, const char *line)
{
	static const char client[] = "CLIENT_TRAFFIC_SECRET_0 ", server[] = "SERVER_TRAFFIC_SECRET_0 ";
	struct tls13_watch *w = SSL_get_ex_data(ssl, watch_index);
	bool theirs, of_client = strncmp(line, client, sizeof(client) - 1) == 0;
	const char *secret;

	if (!w || (!of_client && strncmp(line, server, sizeof(server) - 1) != 0))
		return;
	theirs = of_client == (SSL_is_server(ssl) != 0);
	int dir = theirs ? TLS13_IN : TLS13_OUT;
	secret = strrchr(line, ' ') + 1;
	w->odd |= w->secret_size[dir] != 0;
	w->secret_size[dir] = secret_parse(secret, w->secret[dir].b);
	w->secret[dir].seq = 0;
}

/* Only records under the application keys count. */
static void record_out(struct tls13_watch *w, int type)
{
	if (type == SSL3_RT_HEADER && w->secret_size[TLS13_OUT])
		w->secret[TLS13_OUT].seq++;
}

static void record_in(struct tls13_watch *w, int type, const unsigned char *p, size_t n)
{
	if (!w->secret_size[TLS13_IN])
		return;
	if (type == SSL3_RT_HEADER) {
		w->odd |= w->half || n != SSL3_RT_HEADER_LENGTH;
		w->half = true;
		w->record = n == SSL3_RT_HEADER_LENGTH ? (uint16_t)(p[3] << 8 | p[4]) : 0;
	} else {	/* the type within: it is deciphered */
		w->odd |= !w->half || n != 1;
		w->half = false;
		w->secret[TLS13_IN].seq++;
		if (n == 1 && p[0] == SSL3_RT_HANDSHAKE)
			w->message_room += w->record - (TLS13_EXTRA - SSL3_RT_HEADER_LENGTH);
	}
}

static void on_message(int out, int version, int type, const void *bytes, size_t n, SSL *ssl, void *arg)
{
	struct tls13_watch *w = arg;
	const unsigned char *p = bytes;

	(void)version;
	(void)ssl;
	switch (type) {
	case SSL3_RT_HEADER:
	case SSL3_RT_INNER_CONTENT_TYPE:
		if (out)
			record_out(w, type);
		else
			record_in(w, type, p, n);
		break;
	case SSL3_RT_ALERT:
		w->odd = true;
		break;
	case SSL3_RT_HANDSHAKE:
		if (n && p[0] == SSL3_MT_KEY_UPDATE)
			w->odd = true;
		if (!out && w->secret_size[TLS13_IN])
			w->messages += (uint32_t)n;
		break;
	default:
		break;
	}
}

enum err tls13_watch_ctx(SSL_CTX *ctx)
{
	pthread_once(&watch_once, watch_index_make);
	if (watch_index < 0)
		return ERR_MEM;
	SSL_CTX_set_keylog_callback(ctx, on_keylog);
	return OK;
}

enum err tls13_watch(struct tls13_watch *w, SSL *ssl)
{
	CHECK(watch_index >= 0);
	*w = (struct tls13_watch){0};
	if (!SSL_set_ex_data(ssl, watch_index, w))
		return ERR_MEM;
	SSL_set_msg_callback(ssl, on_message);
	SSL_set_msg_callback_arg(ssl, w);
	return OK;
}

void tls13_watch_end(struct tls13_watch *w, SSL *ssl)
{
	if (ssl) {
		SSL_set_msg_callback(ssl, NULL);
		SSL_set_ex_data(ssl, watch_index, NULL);
	}
	OPENSSL_cleanse(w, sizeof(*w));
}

static int suite_of(const SSL *ssl)
{
	const SSL_CIPHER *c = SSL_get_current_cipher(ssl);

	switch (c ? SSL_CIPHER_get_protocol_id(c) : 0) {
	case 0x1301:
		return TLS13_AES_128_GCM_SHA256;
	case 0x1302:
		return TLS13_AES_256_GCM_SHA384;
	case 0x1303:
		return TLS13_CHACHA20_POLY1305_SHA256;
	default:
		return -1;
	}
}

/* Whether there is anything about it that tls13 does not know. */
static bool strange(const SSL *ssl, const struct tls13_watch *w, int suite)
{
	const SSL_SESSION *session = SSL_get_session(ssl);
	size_t n = suite < 0 ? 0 : tls13_secret_size(suite);

	return n == 0 || w->odd || w->secret_size[TLS13_IN] != n || w->secret_size[TLS13_OUT] != n ||
		SSL_get_early_data_status(ssl) != SSL_EARLY_DATA_NOT_SENT || SSL_get_shutdown(ssl) != 0 ||
		(SSL_get_verify_mode(ssl) & SSL_VERIFY_POST_HANDSHAKE) || SSL_get_key_update_type(ssl) != SSL_KEY_UPDATE_NONE ||
		!session || SSL_SESSION_get_max_fragment_length(session) != TLSEXT_max_fragment_length_DISABLED;
}

enum tls13_taken tls13_take(struct tls13_shared *sh, SSL *ssl, const struct tls13_watch *w, struct tls13 **t)
{
	const struct feed *feed = feed_of(ssl);
	struct tls13 *taken;
	int suite;

	CHECK(feed && SSL_get_ex_data(ssl, watch_index) == w);
	if (feed->failed)
		return TLS13_NEVER;
	if (!SSL_is_init_finished(ssl))
		return TLS13_NOT_NOW;
	suite = SSL_version(ssl) == TLS1_3_VERSION ? suite_of(ssl) : -1;
	if (strange(ssl, w, suite))
		return TLS13_NEVER;
	if (w->half || w->message_room != w->messages || SSL_has_pending(ssl))
		return TLS13_NOT_NOW;

	/* Kernel TLS would be given the same here, per direction: the key, the IV and seq, by setsockopt(SOL_TLS, TLS_TX or
	 * TLS_RX) behind setsockopt(SOL_TCP, TCP_ULP, "tls"); once what is in the feed was sent and opened. */
	taken = tls13_new(sh, (enum tls13_suite)suite, !SSL_is_server(ssl), &w->secret[TLS13_IN], &w->secret[TLS13_OUT]);
	if (!taken)
		return TLS13_NO_MEMORY;
	/* An SSL object that is freed without an end spoils its session; and this one must not write any more. */
	SSL_set_shutdown(ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
	*t = taken;
	return TLS13_TAKEN;
}
