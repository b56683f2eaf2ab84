/* Inside the room: what a person meant when YAML gave up. */
#ifndef THIMBLE_CONF_SLIP_H
#define THIMBLE_CONF_SLIP_H

#include "conf/conf.h"

/* The rest of the text from `pos` on; empty when there is no such place. */
struct str conf_slip_at(struct str text, struct conf_pos pos);

/* What to do about libyaml's `problem` at *pos (which may move to where the slip is),
 * met in what began on the line `begin`; NULL: its own words are the best. */
const char *conf_slip(struct str text, const char *problem, uint32_t begin, struct conf_pos *pos);

/* What to do when the text goes on at *pos behind a plain scalar (`dollar`: a `$` is
 * its last byte) with what ends one inside `[ ]` and `{ }`; NULL: nothing. */
const char *conf_slip_scalar(struct str text, bool dollar, struct conf_pos *pos);

/* What to add about a key that begins with a `-`, or "". */
const char *conf_slip_key(struct str key);

#endif
