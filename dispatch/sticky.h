/* What keeps requests together: hashes of what they have in common, and the values of sticky cookies. */
#ifndef THIMBLE_DISPATCH_STICKY_H
#define THIMBLE_DISPATCH_STICKY_H

#include <stdbool.h>
#include <stdint.h>
#include "lib/base/hash.h"
#include "lib/base/str.h"

#define STICKY_VALUE 16		/* bytes of a cookie's value: hexadecimal digits */

/* A hash of `s` behind what `key` is of (0: nothing yet), the same in every process; never 0. */
uint32_t sticky_hash(uint32_t key, struct str s);

/* The value that stands for the endpoint with that id (endpoint_id) in the service of that name.  Without the key nobody
 * can tell from it who that is, or make one for another. */
void sticky_value(struct hash_key key, struct str service, uint32_t id, char out[STICKY_VALUE]);
/* The id that `value` stands for; 0: it is none of this key and service. */
uint32_t sticky_id(struct hash_key key, struct str service, struct str value);

/* Takes the next cookie of that name off the value of a Cookie field; false: there is no more. */
bool sticky_cookie(struct str *field, struct str name, struct str *value);
/* The first parameter of that name in a query, as it is written; false: there is none. */
bool sticky_query(struct str query, struct str name, struct str *value);

#endif
