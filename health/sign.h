/* Passive signs: what one worker sees of one endpoint, on its way to the main thread.
 *
 * Signs add: counts grow while the sign waits to be read, and whoever reads takes all of them.  So however many requests
 * fail, one message of a worker and endpoint is on its way at a time, and no count is lost.  Made at the first failure. */
#ifndef THIMBLE_HEALTH_SIGN_H
#define THIMBLE_HEALTH_SIGN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "dispatch/service.h"
#include "lib/base/chan.h"

struct sign {
	struct chan_node node;		/* first; while it is on its way, and until it is settled */
	_Atomic uint32_t refs;		/* the worker's, and one while it is on its way */
	_Atomic uint32_t ok, failed;	/* since they were read */
	_Atomic uint32_t run;		/* failures since something went well */
	_Atomic uint8_t cause;		/* the last one's, a number that is the workers' */
	_Atomic bool going;		/* on its way */
	_Atomic bool sent;		/* ... and its sender has let go of the channel */
	struct endpoint *endpoint;	/* owned reference */
	struct service *service;	/* owned reference while it is going: whose channel it takes */
};

/* One reference, the worker's; NULL: no memory. */
struct sign *sign_new(struct endpoint *e) MUST_USE;
/* NULL is accepted. */
void sign_put(struct sign *s);

/* The worker: a request of `service` went well there.  Needed while the endpoint has VERDICT_WATCHED.  Sends the sign, unless
 * it is on its way or too much is; then the next one takes it along. */
void sign_good(struct sign *s, struct chan_reader *to, const struct service *service);
/* The same of a request that failed, of a service that may be gone (NULL).  The endpoint has VERDICT_WATCHED from now on. */
void sign_failed(struct sign *s, struct chan_reader *to, const struct service *service, uint8_t cause);

struct sign_counts {
	uint32_t ok, failed, run;
	uint8_t cause;
};

/* The reader, of what chan_next gave: its counts, which are zero then; false: not yet, since the service's channel may still be
 * in the reader's list, which must not lose its service; ask again.  When true, the references that were on the way are the
 * reader's: the sign, and *service. */
bool sign_settle(struct sign *s, struct sign_counts *counts, struct service **service);

#endif
