/* Networks: a set of CIDR blocks, and whether an address is in one of them.  Made
 * once and then only read, from any thread. */
#ifndef THIMBLE_DISPATCH_NETWORKS_H
#define THIMBLE_DISPATCH_NETWORKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/base/err.h"
#include "lib/base/str.h"

enum network_family { NETWORK_UNIX = 0, NETWORK_IP4 = 4, NETWORK_IP6 = 6 };

struct network {
	uint8_t family;		/* enum network_family; NETWORK_UNIX: every peer on a unix socket */
	uint8_t bits;		/* at most 32, or 128; 0 is every address of the family */
	uint8_t ip[16];		/* network order, the first 4 for IPv4; what is behind `bits` does not count */
};

/* The first `bits` of `ip` to `to`, which keeps the rest of its bytes; those in between are zeros. */
void network_mask(uint8_t *to, const uint8_t *ip, unsigned bits);

/* An address as proxies write it: IPv4 or IPv6, the latter also in brackets, with or without a port.  Its 4 or 16 bytes
 * to `ip`, and which it is to *family; an IPv4-mapped one is the IPv4 address.  ERR_SYNTAX. */
MUST_USE enum err network_read_address(struct str text, uint8_t *family, uint8_t ip[16]);

struct networks;

/* A set of `n` blocks in any order, that may lie in each other; moved to the caller.
 * NULL when there is no memory.  A block of IPv4-mapped IPv6 addresses (RFC 4291
 * 2.5.5.2) is the IPv4 block that it stands for. */
struct networks *networks_new(const struct network *list, size_t n) MUST_USE;
/* NULL is accepted. */
void networks_free(struct networks *s);

/* Whether an address is in one of the blocks; `ip` has 4 or 16 bytes, and may be NULL
 * for NETWORK_UNIX.  An IPv4-mapped IPv6 address is the IPv4 address.  No other address of
 * one family is ever in a block of another. */
bool networks_has(const struct networks *s, uint8_t family, const uint8_t *ip);

/* How many blocks are kept: those that lie in another one are not. */
size_t networks_count(const struct networks *s);
/* Whether both are made of the same blocks, and a hash that is then the same.  NULL is
 * like no other. */
bool networks_same(const struct networks *a, const struct networks *b);
uint64_t networks_hash(const struct networks *s);

#endif
