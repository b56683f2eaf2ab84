/* Door: an SSL object with its feed, and what both need to be driven from outside.  Owned by a connection; called by its
 * handshake and by lib/net/tls_io.  It knows no socket: bytes come in as arguments and go out in the feed. */
#include "lib/net/tls_live.h"

#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "lib/base/mem.h"

struct tls_live *tls_live_new(SSL *ssl, bool park, struct budget *budget)
{
	struct tls_live *l = mem_zalloc(sizeof *l);

	if (!l) {
		SSL_free(ssl);
		return NULL;
	}
	l->ssl = ssl;
	l->feed.budget = budget;
	l->feed.limit = TLS_LIVE_OUT;
	if (feed_attach(&l->feed, ssl) == OK && (!park || tls13_watch(&l->watch, ssl) == OK)) {
		l->watched = park;
		return l;
	}
	tls_live_free(l);
	return NULL;
}

void tls_live_free(struct tls_live *l)
{
	if (!l)
		return;
	if (l->watched)
		tls13_watch_end(&l->watch, l->ssl);
	if (l->done && !l->failed)	/* else OpenSSL takes its session for spoilt, and nobody resumes it */
		SSL_set_shutdown(l->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
	SSL_free(l->ssl);
	buf_free(&l->in, l->feed.budget);
	feed_fini(&l->feed);
	mem_free(l);
}

/* Lends `in` behind what was kept to the SSL object. */
static bool lend(struct tls_live *l, struct str in, bool eof)
{
	l->feed.eof |= eof;
	if (l->in) {
		if (buf_append(&l->in, l->feed.budget, in.p, in.n, UINT32_MAX) != OK)
			return false;
		in = buf_str(l->in);
	}
	l->feed.in = in;
	ERR_clear_error();
	return true;
}

/* And keeps what it did not take. */
static bool keep(struct tls_live *l)
{
	struct str rest = l->feed.in;

	l->feed.in = (struct str){0};
	if (l->in) {
		buf_consume(&l->in, l->feed.budget, buf_len(l->in) - rest.n);
		return true;
	}
	return buf_append(&l->in, l->feed.budget, rest.p, rest.n, UINT32_MAX) == OK;
}

static enum tls_live_said bad(struct tls_live *l)
{
	if (!l->failed)
		l->error = ERR_peek_last_error();
	l->failed = true;
	return TLS_LIVE_BAD;
}

enum tls_live_said tls_live_shake(struct tls_live *l, struct str in, bool eof)
{
	int rc, error;

	if (l->failed || !lend(l, in, eof))
		return bad(l);
	rc = SSL_do_handshake(l->ssl);
	error = SSL_get_error(l->ssl, rc);
	if (!keep(l) || l->feed.failed)
		return bad(l);
	if (rc == 1) {
		l->done = true;
		return TLS_LIVE_DONE;
	}
	return error == SSL_ERROR_WANT_READ && !eof ? TLS_LIVE_MORE : bad(l);
}

enum tls_live_said tls_live_read(struct tls_live *l, struct str in, bool eof, void *p, size_t n, size_t *got)
{
	int rc = 0, error = SSL_ERROR_NONE;

	*got = 0;
	if (l->failed || !lend(l, in, eof))
		return bad(l);
	while (*got < n) {
		rc = SSL_read(l->ssl, (char *)p + *got, n - *got > INT_MAX ? INT_MAX : (int)(n - *got));
		if (rc <= 0) {
			error = SSL_get_error(l->ssl, rc);
			break;
		}
		*got += (size_t)rc;
	}
	if (!keep(l) || l->feed.failed)
		return bad(l);
	if (error == SSL_ERROR_NONE)
		return TLS_LIVE_DONE;
	if (error == SSL_ERROR_ZERO_RETURN)
		l->ended = true;
	else if (error != SSL_ERROR_WANT_READ)
		return bad(l);
	return TLS_LIVE_MORE;
}

bool tls_live_begun(const struct tls_live *l)
{
	return l->in || SSL_has_pending(l->ssl);
}

size_t tls_live_write(struct tls_live *l, const void *p, size_t n)
{
	int rc;

	if (l->failed || n == 0)
		return 0;
	ERR_clear_error();
	rc = SSL_write(l->ssl, p, n > INT_MAX ? INT_MAX : (int)n);
	if (rc > 0 && !l->feed.failed)
		return (size_t)rc;
	l->failed = true;
	return 0;
}

struct tls_facts tls_live_facts(const struct tls_live *l)
{
	return (struct tls_facts){
		.version = (uint16_t)SSL_version(l->ssl), .resumed = SSL_session_reused(l->ssl) == 1,
		.cipher = str_of(SSL_CIPHER_standard_name(SSL_get_current_cipher(l->ssl))),
	};
}

void tls_live_finish(struct tls_live *l)
{
	if (l->done && !l->failed && !l->feed.failed) {
		ERR_clear_error();
		SSL_shutdown(l->ssl);
		ERR_clear_error();
	}
}

void tls_live_weary(struct tls_live *l)
{
	if (!l->failed)
		l->error = ERR_PACK(ERR_LIB_SSL, 0, SSL_R_TOO_MANY_KEY_UPDATES);
	l->failed = true;
}

/* OpenSSL's reasons for alerts of the peer are their numbers and SSL_AD_REASON_OFFSET. */
bool tls_live_alerted(const struct tls_live *l)
{
	return l->failed && ERR_GET_LIB(l->error) == ERR_LIB_SSL && ERR_GET_REASON(l->error) >= SSL_AD_REASON_OFFSET;
}

bool tls_live_distrusts(const struct tls_live *l)
{
	/* OpenSSL looks at certificates that are taken whatever they are, too */
	return (SSL_get_verify_mode(l->ssl) & SSL_VERIFY_PEER) && SSL_get_verify_result(l->ssl) != X509_V_OK;
}

const char *tls_live_why(const struct tls_live *l)
{
	const char *text = l->error ? ERR_reason_error_string(l->error) : NULL;

	if (tls_live_distrusts(l))
		return X509_verify_cert_error_string(SSL_get_verify_result(l->ssl));
	if (l->feed.eof)
		return "the peer left";
	return text ? text : "no reason given";
}
