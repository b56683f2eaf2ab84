/* Where a request goes: its route, an endpoint of the route's service, and the head
 * that this endpoint gets. */
#ifndef THIMBLE_PROXY_ROUTING_H
#define THIMBLE_PROXY_ROUTING_H

#include "proxy/exchange.h"

#define ROUTING_TRIES 3		/* endpoints tried for one request, at most */

/* Finds the route of `h`: x->route is a reference then, and the exchange's limits are the route's.
 * CAUSE_NONE, or why there is none or it cannot be used. */
enum cause routing_find(struct exchange *x, struct head *h) MUST_USE;

/* Whether the route, which rewrites paths or is particular about odd ones, takes this one as it came: CAUSE_NONE, or what is
 * answered. */
enum cause routing_path(struct exchange *x, const struct head *h) MUST_USE;

/* For a route to a service: chooses x->lease.endpoint and makes x->head, in the arena, and the upstream
 * codec.  `h` is changed into what the upstream gets.  CAUSE_NONE, or why not. */
enum cause routing_prepare(struct exchange *x, struct head *h) MUST_USE;

/* Whether there is an endpoint that was not tried, besides the one that is being tried. */
bool routing_untried(const struct exchange *x);
/* That one, or another than the last, or the same again; and its head.  CAUSE_NONE, or why not. */
enum cause routing_next_endpoint(struct exchange *x) MUST_USE;

/* Chooses l->endpoint among those of l->service, but for those in `tried` while there is another.  CAUSE_NONE, or
 * why there is none. */
enum cause routing_pick(struct lease *l, const struct endpoint_tried *tried) MUST_USE;

/* The same after l->endpoint was tried in vain, which is added to `tried`; false when no more are to be tried. */
bool routing_pick_other(struct lease *l, struct endpoint_tried *tried) MUST_USE;

/* For one that waited: the endpoint to give it, among those that have room for it now.  NULL: none has, or (*cause) none ever
 * will.  Lent until the end of the turn. */
struct endpoint *routing_free(struct lease *l, const struct endpoint_tried *tried, enum cause *cause) MUST_USE;

/* x->lease was aimed at another endpoint than `before`: so is x->head.  False: no memory. */
bool routing_aimed(struct exchange *x, const struct endpoint *before) MUST_USE;

/* The Host that l->endpoint sees, by the rule of its service, of a request for `authority`; borrowed, or made in `text`. */
struct str routing_host(const struct lease *l, struct str authority, char text[ENDPOINT_TEXT_MAX]);

#endif
