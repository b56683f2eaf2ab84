/* Passwords that were found right: remembered, so that they are not hashed for each request. */
#ifndef THIMBLE_PROXY_KNOWN_H
#define THIMBLE_PROXY_KNOWN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "dispatch/htpasswd.h"
#include "lib/base/err.h"
#include "lib/base/str.h"
#include "lib/crypto/digest.h"

#define KNOWN_MS 300000u	/* for so long after it was last asked for */
#define KNOWN_SETS 256		/* a power of two */
#define KNOWN_WAYS 4
#define KNOWN_WORDS 3		/* 192 bits of a MAC tell it from others */

/* Of a file, a user and a password, under a key of this process. */
union known_mac {
	uint8_t bytes[DIGEST_MAC_SIZE];
	uint64_t words[DIGEST_MAC_SIZE / 8];
};

struct known_entry {
	_Atomic uint64_t mac[KNOWN_WORDS];
	_Atomic uint64_t used_ms;	/* 0: empty */
};

struct known {
	uint8_t key[DIGEST_MAC_KEY];	/* does not change */
	struct known_entry entry[KNOWN_SETS][KNOWN_WAYS];
};

/* Of zeroed memory.  ERR_SYS: the kernel gives no random key. */
MUST_USE enum err known_init(struct known *k);
void known_fini(struct known *k);

/* What a thread makes MACs with, moved to it; NULL as digest_mac_new. */
struct digest_mac *known_maker(const struct known *k) MUST_USE;

/* The name has at most HTPASSWD_USER_MAX bytes, the password PASSWORD_MAX.  ERR_SYS: the library could not do it. */
MUST_USE enum err known_mac(struct digest_mac *maker, const struct htpasswd *users, struct str user, struct str password,
			    union known_mac *out);

/* Any thread, without a lock.  `now` in monotonic ms. */
bool known_has(struct known *k, const union known_mac *m, uint64_t now);
/* One thread at a time; what was asked for least lately may make room. */
void known_add(struct known *k, const union known_mac *m, uint64_t now);

#endif
