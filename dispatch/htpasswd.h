/* The users of an htpasswd file and the hashes of their passwords.  Never changes after it was made. */
#ifndef THIMBLE_DISPATCH_HTPASSWD_H
#define THIMBLE_DISPATCH_HTPASSWD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/base/err.h"
#include "lib/base/str.h"

#define HTPASSWD_TEXT_MAX (1u << 20)	/* bytes of a file: some 12000 users */
#define HTPASSWD_USER_MAX 255		/* bytes of a name */

struct htpasswd;

struct htpasswd_error {
	enum err err;		/* ERR_MEM, ERR_LIMIT: the file is too large, ERR_SYNTAX */
	unsigned line;		/* from 1; 0: none in particular */
	char text[160];		/* for people; no line end, and nothing of the file's secrets */
};

/* The users of `text`, of which nothing is kept in place: lines user:hash, what is behind a further ':' is left out, as are
 * empty lines and those that begin with '#'; lines may end with CR LF.  NULL when refused: a line without ':', a name
 * or hash that is none, a name twice, no user at all; *err (may be NULL) says why.
 * One reference, moved to the caller. */
struct htpasswd *htpasswd_new(struct str text, struct htpasswd_error *err) MUST_USE;
/* Shared as const: only its count changes. */
const struct htpasswd *htpasswd_ref(const struct htpasswd *h);
/* NULL is accepted.  Any thread. */
void htpasswd_unref(const struct htpasswd *h);

/* Whether there is such a user, and in *hash what to verify the password with, lent.  For an unknown user it is somebody
 * else's, always the same for one name, so that its refusal takes the time that a known user's takes. */
bool htpasswd_find(const struct htpasswd *h, struct str user, struct str *hash);

size_t htpasswd_count(const struct htpasswd *h);
/* Whether both hold the same text. */
bool htpasswd_equal(const struct htpasswd *a, const struct htpasswd *b);
/* A number that no other of this process has or had. */
uint64_t htpasswd_id(const struct htpasswd *h);

#endif
