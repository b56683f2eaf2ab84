/* When certificates expire, told. */
#ifndef THIMBLE_PROXY_TLS_EXPIRY_H
#define THIMBLE_PROXY_TLS_EXPIRY_H

#include <stdbool.h>
#include <stdint.h>

struct tls;

#define TLS_EXPIRY_DAYS 30	/* before its end, a certificate is worth a warning */

enum tls_expiry_of {
	TLS_EXPIRY_ALL,
	TLS_EXPIRY_CHANGED,	/* those that have just been read */
	TLS_EXPIRY_DUE,		/* those that have expired or will soon */
};

/* A line in the error log for each of those certificates. */
void tls_expiry_tell(const struct tls *t, int64_t now, enum tls_expiry_of of);

#endif
