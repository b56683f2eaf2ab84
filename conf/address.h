/* Inside the room: texts as addresses. */
#ifndef THIMBLE_CONF_ADDRESS_H
#define THIMBLE_CONF_ADDRESS_H

#include "conf/conf.h"

enum conf_address_use { CONF_USE_LISTEN, CONF_USE_ENDPOINT };

/* NULL and *out (its strings borrowed from `s`, its pos as it was), or what is wrong
 * as a phrase that begins with "an address ..." or the like; *out is then untouched. */
const char *conf_read_address(struct str s, enum conf_address_use use, struct conf_address *out);

/* The same for `10.0.0.0/8`, or a lone address. */
const char *conf_read_cidr(struct str s, struct conf_cidr *out);

/* The same place on the network? */
bool conf_address_same(const struct conf_address *a, const struct conf_address *b);

#endif
