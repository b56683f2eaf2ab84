/* Decoders for tests: bytes of a coding in, the bytes that they mean out, as they become known. */
#ifndef THIMBLE_TESTS_DECODE_H
#define THIMBLE_TESTS_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include "lib/base/str.h"
#include "lib/http/coding.h"

struct decode;

struct decode *decode_new(enum coding c);
void decode_free(struct decode *d);
/* False: that is no such coding, or goes on behind its end. */
bool decode_put(struct decode *d, struct str in);
/* What is known so far; lent until the next call. */
struct str decode_out(const struct decode *d);
/* The end has been read. */
bool decode_ended(const struct decode *d);

#endif
