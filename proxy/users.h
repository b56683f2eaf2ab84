/* Files of users, as a snapshot is made. */
#ifndef THIMBLE_PROXY_USERS_H
#define THIMBLE_PROXY_USERS_H

#include "dispatch/error.h"
#include "dispatch/htpasswd.h"
#include "lib/base/str.h"

struct users_file;	/* the first of those that were read */

/* The users in the file at `path`, lent until users_free: each file is read once, however many routes name it.  A relative
 * path begins where the file `config` is.  NULL: *err says why, with the line.  Waits for the disk. */
const struct htpasswd *users_read(struct users_file **files, struct str config, struct str path,
				  struct snapshot_error *err) MUST_USE;
void users_free(struct users_file *files);

#endif
