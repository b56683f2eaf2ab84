/* Credentials of the Basic scheme (RFC 7617), and the policy of a route that asks for them. */
#ifndef THIMBLE_DISPATCH_BASIC_H
#define THIMBLE_DISPATCH_BASIC_H

#include <stdbool.h>
#include "dispatch/error.h"
#include "dispatch/htpasswd.h"
#include "dispatch/policy.h"
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

struct basic_spec {			/* everything in it is borrowed */
	const struct htpasswd *users;
	struct str realm;
	struct str user_header;		/* empty: none */
	bool forward;
};

struct basic_auth {
	struct policy_part part;
	const struct htpasswd *users;	/* owned reference */
	struct str challenge;		/* the value of WWW-Authenticate, in this block */
	struct str user_header;		/* in which endpoints see who it is; empty: none */
	bool forward;			/* they see Authorization */
};

/* The part POLICY_BASIC for `spec`, with one reference, moved to the caller; NULL when refused, and `err` (may be NULL) says
 * why.  Takes a reference of spec->users. */
struct policy_part *basic_new(const struct basic_spec *spec, struct snapshot_error *err) MUST_USE;

#endif
