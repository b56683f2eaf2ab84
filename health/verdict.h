/* The verdict on an endpoint, one atomic word in the endpoint itself.  This room is its
 * only writer; workers read it when they choose. */
#ifndef THIMBLE_HEALTH_VERDICT_H
#define THIMBLE_HEALTH_VERDICT_H

#include <stdbool.h>
#include "dispatch/endpoint.h"

/* How long an endpoint that could not be connected to is avoided while others are up. */
#define VERDICT_AVOID_MS 1000

/* A connect failed.  True when it was this call that took the endpoint down: the caller
 * then owes verdict_retry after VERDICT_AVOID_MS.  Any thread. */
bool verdict_connect_failed(struct endpoint *e);

/* A connect succeeded: the endpoint is up.  True when it had been down. */
bool verdict_connected(struct endpoint *e);

/* The time is over: it may be tried again (failures stay counted until it connects). */
void verdict_retry(struct endpoint *e);

/* Bits that are not of connects: VERDICT_EJECTED and VERDICT_UNWELL are the main thread's. */
void verdict_set(struct endpoint *e, uint32_t bit, bool down);

#endif
