/* Inside the room: what HTTP allows for names and values, and near misses. */
#ifndef THIMBLE_CONF_NAMES_H
#define THIMBLE_CONF_NAMES_H

#include "lib/base/str.h"

/* A token (RFC 9110 5.6.2): a field name, a protocol, a pseudonym. */
bool conf_is_token(struct str s);
/* No control bytes but tabs; no space or tab at either end. */
bool conf_is_field_value(struct str s);
/* 1 to 63 of letters, digits, `-`, `_` and `.`; begins with a letter or digit. */
bool conf_is_service_name(struct str s);

/* Why a header of this name is not for a configuration to change, or NULL. */
const char *conf_header_refused(struct str name);
/* What is wrong with `s` as the host of a route, or NULL.  `s` is in lower case. */
const char *conf_host_wrong(struct str s);
/* What is wrong with `s` as a name that name servers are asked for, or NULL.  It may end with a dot. */
const char *conf_dns_name_wrong(struct str s);
/* What is wrong with `s` as the path of a route, or NULL. */
const char *conf_path_wrong(struct str s);
/* The nearest of several words to one that was not found. */
struct conf_near {
	struct str word;	/* as written */
	struct str best;	/* so far; n == 0: none is near */
	unsigned distance;
};

void conf_near_try(struct conf_near *near, struct str candidate);

#endif
