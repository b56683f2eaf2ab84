/* Passwords against their hashes, in the forms that htpasswd files hold. */
#ifndef THIMBLE_CRYPTO_PASSWORD_H
#define THIMBLE_CRYPTO_PASSWORD_H

#include <stdbool.h>
#include "lib/base/err.h"
#include "lib/base/str.h"

#define PASSWORD_MAX 255	/* bytes of a password, as htpasswd has it */
#define PASSWORD_HASH_MAX 128	/* bytes of a hash */

/* What one look may cost: about a second at the most, with both. */
#define PASSWORD_BCRYPT_COST_MAX 14
#define PASSWORD_ROUNDS_MAX 500000

/* Whether `hash` is one that password_verify takes: bcrypt ($2y$, $2a$, $2b$), SHA-crypt ($5$, $6$), MD5-crypt ($1$), APR1 ($apr1$),
 * {SHA}.  ERR_SYNTAX else, and *why is a constant text that goes on from "the password": no byte of the hash is in it. */
MUST_USE enum err password_check(struct str hash, const char **why);

struct password_room;	/* what one thread needs for its work: about 33 KiB */

/* NULL: no memory. */
struct password_room *password_room_new(void) MUST_USE;
/* NULL is accepted. */
void password_room_free(struct password_room *r);

/* Whether `hash`, which password_check takes, is of `password`: *right.  Takes from a tenth of a millisecond to
 * a second.  A password that is too long or holds a NUL is wrong at once.  ERR_SYS: a library could not do it.
 * Leaves nothing of the password in memory. */
MUST_USE enum err password_verify(struct password_room *r, struct str hash, struct str password, bool *right);

#endif
