/* Inside the room: texts as numbers, and numbers as texts. */
#ifndef THIMBLE_CONF_SCALAR_H
#define THIMBLE_CONF_SCALAR_H

#include "lib/base/str.h"

/* Each: NULL and *out, or what is wrong with `s` (a format-free phrase that follows
 * "`s` "), and *out untouched. */
const char *conf_read_count(struct str s, uint64_t *out);
const char *conf_read_duration(struct str s, uint64_t *ms);
const char *conf_read_size(struct str s, uint64_t *bytes);
const char *conf_read_bool(struct str s, bool *out);

#define CONF_NUMBER_TEXT 32

/* As one would write it in a file, with the largest unit that divides it. */
void conf_write_duration(uint64_t ms, char out[CONF_NUMBER_TEXT]);
void conf_write_size(uint64_t bytes, char out[CONF_NUMBER_TEXT]);

#endif
