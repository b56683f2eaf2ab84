/* Inside the room: what is odd in a configuration that is right. */
#ifndef THIMBLE_CONF_ODD_H
#define THIMBLE_CONF_ODD_H

#include "conf/errors.h"
#include "conf/walk.h"

/* Notes in the tree what has no effect, or another one than it seems; only what is
 * certain.  For a tree without errors. */
void conf_odd_note(struct conf_walk *w, const struct conf_node *root);		/* odd.c */

/* Adds each match that no request can reach, at its place. */
void conf_shadows_find(const struct conf *c, struct conf_errors *to);		/* shadow.c */

#endif
