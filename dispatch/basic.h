/* Credentials of the Basic scheme (RFC 7617). */
#ifndef THIMBLE_DISPATCH_BASIC_H
#define THIMBLE_DISPATCH_BASIC_H

#include "dispatch/htpasswd.h"
#include "lib/base/err.h"
#include "lib/base/str.h"
#include "lib/crypto/password.h"

#define BASIC_ROOM (HTPASSWD_USER_MAX + 1 + PASSWORD_MAX + 2)	/* bytes that basic_read needs */

enum basic {
	BASIC_OK,
	BASIC_NONE,	/* another scheme */
	BASIC_BAD,	/* not base64, no ':', a control character: nobody's credentials */
	BASIC_LONG,	/* longer than any that there can be */
};

/* Reads the value of an Authorization field; user and password then lie in `room` (BASIC_ROOM bytes), which holds a
 * secret in every case but BASIC_NONE: wipe it. */
enum basic basic_read(struct str value, char *room, struct str *user, struct str *password);

#endif
