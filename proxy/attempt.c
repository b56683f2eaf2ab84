/* attempt: see attempt.h.  Counts what endpoints did; a retry may have hidden it from the client. */
#include "proxy/attempt.h"

#include "proxy/worker.h"

void attempt_ended(struct lease *l, enum cause cause, unsigned status)
{
	(void)status;
	switch (cause) {
	case CAUSE_NONE:
		return;
	case CAUSE_UPSTREAM_CLOSED:
		COUNT(l->w, tries_reset);
		return;
	case CAUSE_FIRST_BYTE_TIMEOUT:
	case CAUSE_SEND_TIMEOUT:
		COUNT(l->w, tries_timeout);
		return;
	default:
		COUNT(l->w, tries_bad);
	}
}
