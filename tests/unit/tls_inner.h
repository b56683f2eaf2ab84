/* TLS 1.3 records whose content a test chooses. */
#ifndef THIMBLE_TESTS_TLS_INNER_H
#define THIMBLE_TESTS_TLS_INNER_H

#include "lib/net/tls13.h"

/* Seals `n` bytes of any content and `pad` zeros under the key that `t` (of a test) opens with (dir TLS13_IN) or seals with,
 * as record number `seq`; bytes at `out`.  A second implementation, on purpose. */
size_t tls_inner(const struct tls13 *t, int dir, uint64_t seq, int type, const void *content, size_t n,
		size_t pad, unsigned char *out);

#endif
