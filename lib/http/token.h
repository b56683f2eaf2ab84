/* Characters of the HTTP grammar (RFC 9110 5.6.2). */
#ifndef THIMBLE_HTTP_TOKEN_H
#define THIMBLE_HTTP_TOKEN_H

#include <stdbool.h>
#include <stdint.h>
#include "lib/base/str.h"

/* tchar: letters, digits and !#$%&'*+-.^_`|~ */
static inline bool token_char(unsigned char c)
{
	static const uint64_t set[4] = {0x03ff6cfa00000000, 0x57ffffffc7fffffe, 0, 0};

	return set[c >> 6] >> (c & 63) & 1;
}

static inline bool token_ok(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!token_char((unsigned char)s.p[i]))
			return false;
	return s.n != 0;
}

static inline bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* The next member of a comma list, without white space; empty members are
 * passed over (RFC 9110 5.6.1).  False at the end. */
static inline bool list_next(struct str *list, struct str *member)
{
	while (list->n) {
		const char *comma = memchr(list->p, ',', list->n);
		size_t n = comma ? (size_t)(comma - list->p) : list->n;

		*member = str_trim((struct str){list->p, n});
		list->p += n + (comma != NULL);
		list->n -= n + (comma != NULL);
		if (member->n)
			return true;
	}
	return false;
}

#endif
