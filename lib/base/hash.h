/* Hashes for tables whose keys come from outside (host names, paths, header
 * names): SipHash-1-3 under a random key of this process, so that nobody can
 * choose names that collide. */
#ifndef THIMBLE_BASE_HASH_H
#define THIMBLE_BASE_HASH_H

#include <stdint.h>
#include "lib/base/str.h"

struct hash_key {
	uint64_t k0, k1;
};

/* SipHash-1-3 of the bytes of `s`, or of them with ASCII capitals made small. */
uint64_t hash_keyed(struct hash_key key, struct str s);
uint64_t hash_keyed_fold(struct hash_key key, struct str s);

/* The same under the key of this process, drawn before main. */
uint64_t hash_str(struct str s);
/* Equal for all that str_ieq calls equal. */
uint64_t hash_host(struct str s);

/* That key: for what is hashed in pieces of its own. */
struct hash_key hash_process_key(void);

/* For tests and fuzzers that must repeat themselves; before any table is filled. */
void hash_set_key(struct hash_key key);

#endif
