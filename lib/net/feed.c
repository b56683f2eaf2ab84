/* Door: the BIO between an SSL object and the bytes that a connection has read and is to send.  Owns the method table
 * of the process and each feed's `out`.  Called by OpenSSL inside of SSL_do_handshake, SSL_read and SSL_write.
 *
 * Why not a socket BIO: the ClientHello was read before there was an SSL object, a read takes what the kernel has and not
 * one record with two calls, and what was read behind the handshake stays in `in`, where the record layer that takes the
 * connection over finds it.  Why not a memory BIO: that copies, is charged to nobody, and takes without bound.
 *
 * A write takes all or fails for good, so that an SSL object never holds a record that was numbered and not given
 * out: the hand-over relies on it. */
#include "lib/net/feed.h"

#include <limits.h>
#include <openssl/bio.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <string.h>

static BIO_METHOD *method;	/* made once, never freed */
static int method_type;
static pthread_once_t method_once = PTHREAD_ONCE_INIT;

static int feed_read(BIO *bio, char *to, size_t n, size_t *got)
{
	struct feed *f = BIO_get_data(bio);

	BIO_clear_retry_flags(bio);
	if (f->in.n == 0) {
		if (!f->eof)
			BIO_set_retry_read(bio);
		return 0;
	}
	*got = n < f->in.n ? n : f->in.n;
	memcpy(to, f->in.p, *got);
	f->in.p += *got;
	f->in.n -= *got;
	return 1;
}

static int feed_write(BIO *bio, const char *p, size_t n, size_t *put)
{
	struct feed *f = BIO_get_data(bio);

	BIO_clear_retry_flags(bio);
	if (f->failed || buf_append(&f->out, f->budget, p, n, f->limit) != OK) {
		f->failed = true;
		return 0;
	}
	*put = n;
	return 1;
}

static long feed_ctrl(BIO *bio, int what, long number, void *p)
{
	const struct feed *f = BIO_get_data(bio);

	(void)number;
	(void)p;
	switch (what) {
	case BIO_CTRL_FLUSH:
		return 1;
	case BIO_CTRL_EOF:
		return f->eof && f->in.n == 0;
	case BIO_CTRL_PENDING:
		return f->in.n < LONG_MAX ? (long)f->in.n : LONG_MAX;
	default:
		return 0;
	}
}

static int feed_create(BIO *bio)
{
	BIO_set_init(bio, 1);
	return 1;
}

static void method_make(void)
{
	int index = BIO_get_new_index();
	BIO_METHOD *m = index < 0 ? NULL : BIO_meth_new(index | BIO_TYPE_SOURCE_SINK, "feed");

	method_type = index | BIO_TYPE_SOURCE_SINK;
	if (m && BIO_meth_set_read_ex(m, feed_read) && BIO_meth_set_write_ex(m, feed_write) &&
			BIO_meth_set_ctrl(m, feed_ctrl) && BIO_meth_set_create(m, feed_create))
		method = m;
	else
		BIO_meth_free(m);
}

enum err feed_attach(struct feed *f, SSL *ssl)
{
	BIO *bio;

	pthread_once(&method_once, method_make);
	bio = method ? BIO_new(method) : NULL;
	if (!bio)
		return ERR_MEM;
	BIO_set_data(bio, f);
	SSL_set_bio(ssl, bio, bio);
	return OK;
}

void feed_fini(struct feed *f)
{
	buf_free(&f->out, f->budget);
}

struct feed *feed_of(const SSL *ssl)
{
	BIO *in = SSL_get_rbio(ssl), *out = SSL_get_wbio(ssl);

	if (!method || !in || in != out || BIO_method_type(in) != method_type)
		return NULL;
	return BIO_get_data(in);
}
