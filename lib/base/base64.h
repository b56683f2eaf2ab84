/* Base64 (RFC 4648 4), read strictly. */
#ifndef THIMBLE_BASE_BASE64_H
#define THIMBLE_BASE_BASE64_H

#include <stddef.h>
#include "lib/base/err.h"
#include "lib/base/str.h"

/* Bytes that `n` characters decode to at most. */
#define BASE64_BYTES(n) ((n) / 4 * 3)

/* Decodes all of `s` to `out` (BASE64_BYTES(s.n) bytes), *n of them.  ERR_SYNTAX for anything but
 * whole groups of the standard alphabet with their padding, whose left-over bits are zero:
 * of one run of bytes there is one form.  `out` may then hold part of it. */
MUST_USE enum err base64_decode(struct str s, void *out, size_t *n);

#endif
