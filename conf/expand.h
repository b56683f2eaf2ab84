/* Inside the room: ${NAME} in values. */
#ifndef THIMBLE_CONF_EXPAND_H
#define THIMBLE_CONF_EXPAND_H

#include "conf/conf.h"

struct conf_expand {
	conf_env *env;			/* NULL: nothing is set */
	struct arena *arena;		/* borrowed; where results go */
	struct conf_errors *errors;	/* borrowed */
	uint64_t added;			/* bytes that variables have added to the file so far */
};

/* `raw` with ${NAME}, ${NAME:-default} and $$ replaced; `pos` is where raw begins,
 * `exact` whether a character of raw is a column of the file.  An error is added and
 * false returned when that cannot be; *out is then untouched. */
bool conf_expand(struct conf_expand *x, struct str raw, struct conf_pos pos, bool exact, struct str *out);

#endif
