/* Digests and what is made of them, by a library; no type of that library gets out. */
#ifndef THIMBLE_CRYPTO_DIGEST_H
#define THIMBLE_CRYPTO_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/base/err.h"
#include "lib/base/str.h"

#define DIGEST_MD5_SIZE 16
#define DIGEST_SHA1_SIZE 20
#define DIGEST_MAC_SIZE 32
#define DIGEST_MAC_KEY 32

enum digest_kind { DIGEST_MD5, DIGEST_SHA1 };	/* for password hashes that are made of them, and for nothing new */

struct digest;	/* one thread's, used again and again */

/* NULL: no memory. */
struct digest *digest_new(void) MUST_USE;
/* NULL is accepted. */
void digest_free(struct digest *d);

/* Begins anew; what went wrong is told by digest_end, with ERR_SYS: the library has no such digest (a system
 * may forbid MD5), or no memory. */
void digest_start(struct digest *d, enum digest_kind kind);
void digest_add(struct digest *d, const void *p, size_t n);
/* `out` has the kind's size. */
MUST_USE enum err digest_end(struct digest *d, void *out);

struct digest_mac;	/* HMAC-SHA-256 under one key; one thread's, used again and again */

/* NULL: no memory, or the library has no such thing. */
struct digest_mac *digest_mac_new(const uint8_t key[DIGEST_MAC_KEY]) MUST_USE;
/* NULL is accepted. */
void digest_mac_free(struct digest_mac *m);
/* ERR_SYS as above. */
MUST_USE enum err digest_mac_of(struct digest_mac *m, struct str text, uint8_t out[DIGEST_MAC_SIZE]);

/* Whether two runs of `n` bytes are equal, in a time that depends on `n` alone. */
bool digest_equal(const void *a, const void *b, size_t n);

#endif
