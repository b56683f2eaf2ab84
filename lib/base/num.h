/* Numbers and text, without locale, sign or surprise. */
#ifndef THIMBLE_BASE_NUM_H
#define THIMBLE_BASE_NUM_H

#include <stddef.h>
#include <stdint.h>
#include "lib/base/err.h"
#include "lib/base/str.h"

#define NUM_DEC_MAX 20	/* bytes that num_dec writes at most */
#define NUM_HEX_MAX 16	/* bytes that num_hex writes at most */

/* Write `v` to `to` without a terminator and return how many bytes that took:
 * decimal, lower-case hexadecimal, and decimal with leading zeros to `width`. */
size_t num_dec(char *to, uint64_t v);
size_t num_hex(char *to, uint64_t v);
size_t num_dec_padded(char *to, uint64_t v, size_t width);

/* The whole of `s` as one number: digits only, at least one, no sign, no space.
 * ERR_SYNTAX when it is anything else, ERR_LIMIT above `max`.  Leading zeros are
 * allowed, and cannot make it overflow. */
MUST_USE enum err num_parse_dec(struct str s, uint64_t max, uint64_t *v);
MUST_USE enum err num_parse_hex(struct str s, uint64_t max, uint64_t *v);

/* The value of a hexadecimal digit; -1 for anything else. */
static inline int num_hex_digit(char c)
{
	unsigned d = (unsigned char)c - '0';
	if (d < 10)
		return (int)d;
	d = ((unsigned char)c | 0x20u) - 'a';
	return d < 6 ? (int)d + 10 : -1;
}

#endif
