/* What changes in a head on its way through: who forwarded it, request ids, and the
 * edits that the route asks for. */
#ifndef THIMBLE_PROXY_FORWARD_H
#define THIMBLE_PROXY_FORWARD_H

#include "proxy/exchange.h"

/* Makes the request head what the upstream gets: fields that the listener does not
 * let through go, X-Forwarded-*, Forwarded, Via and the request id come, the route's edits last.
 * Strings are made in the exchange's arena.  CAUSE_NONE, or why not. */
enum cause forward_request(struct exchange *x, struct head *h) MUST_USE;

/* The same for a question of our own about the request, which is asked before it passes: without the route's
 * edits.  What identifies the client is there as the endpoint would see it. */
enum cause forward_question(struct exchange *x, struct head *h) MUST_USE;

/* Makes the answer head what the client gets: Date when it has none, the request id, the route's edits. */
enum cause forward_answer(struct exchange *x, struct head *h) MUST_USE;

/* The same for an answer of our own; `edits`: with those of the route. */
enum cause forward_own_answer(struct exchange *x, struct head *h, bool edits) MUST_USE;

/* Has whatever answer goes to the client changed so, whether an endpoint's or ours; before the route's own edits.
 * `name` and `value` are borrowed for as long as the exchange lives.  ERR_MEM. */
MUST_USE enum err forward_note(struct exchange *x, enum header_op op, struct str name, struct str value);
/* The same for several, borrowed likewise. */
MUST_USE enum err forward_notes(struct exchange *x, const struct header_mod *mods, unsigned n);

/* Fields that what was noted and the route's edits may add to an answer, at most. */
unsigned forward_added(const struct exchange *x);

/* "http" or "https": what the client speaks, as far as we know or a trusted peer says. */
struct str forward_scheme(const struct exchange *x, const struct head *h);

/* The id of this exchange: the client's, when it is one, or a new one; in the arena. */
struct str forward_request_id(struct exchange *x, const struct head *h);

#endif
