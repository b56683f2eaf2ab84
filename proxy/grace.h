/* Grace: what was replaced while workers may be looking at it is freed when each of them has
 * begun another turn.  Workers keep nothing of it from turn to turn, so they take no lock and
 * no reference.  The main thread's own. */
#ifndef THIMBLE_PROXY_GRACE_H
#define THIMBLE_PROXY_GRACE_H

#include "dispatch/service.h"
#include "lib/base/err.h"

struct grace;
struct server;
struct worker;

/* NULL: no memory.  It wakes server->loop for grace_tend. */
struct grace *grace_new(struct server *server) MUST_USE;
/* Whom it waits for (borrowed); before their threads start. */
void grace_workers(struct grace *g, struct worker **workers, unsigned n);
/* When no worker runs any more.  NULL is accepted. */
void grace_free(struct grace *g);

/* `s` consists of `set` (moved when OK) from now on.  ERR_MEM: nothing has changed. */
MUST_USE enum err grace_publish(struct grace *g, struct service *s, struct endpoint_set *set);

/* When the loop was woken. */
void grace_tend(struct grace *g);

/* By a worker that got WORKER_PASS. */
void grace_passed(struct server *server);

#endif
