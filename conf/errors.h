/* Inside the room: how errors are collected. */
#ifndef THIMBLE_CONF_ERRORS_H
#define THIMBLE_CONF_ERRORS_H

#include "conf/conf.h"

/* Names the file; before anything is added. */
void conf_errors_begin(struct conf_errors *e, const char *file);
/* One more, or counted only when there are CONF_ERRORS_MAX. */
void conf_errors_add(struct conf_errors *e, struct conf_pos pos, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Puts them in the order of the file and takes the lines that they quote from `text`. */
void conf_errors_finish(struct conf_errors *e, struct str text);

static inline bool conf_errors_any(const struct conf_errors *e)
{
	return e->count || e->no_memory;
}

/* How many bytes the line break at `s` has, as YAML 1.1 has it; 0: none. */
size_t conf_break_size(struct str s);

#endif
