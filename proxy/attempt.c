/* attempt: see attempt.h.  Counts what endpoints did; a retry may have hidden it from the client. */
#include "proxy/attempt.h"

#include "proxy/pool.h"
#include "proxy/worker.h"

/* What it says of the endpoint's health. */
static void note(const struct lease *l, enum cause cause, unsigned status)
{
	if (!l->up)
		return;
	if (cause == CAUSE_NONE && (status < 500 || !l->service->rules->server_errors))
		pool_note_good(l->up, l->service);
	else if (cause != CAUSE_UPSTREAM_CLOSED || !(l->up->c.t.flags & CONN_SERVED))	/* a kept one may be closed at any time */
		pool_note_bad(l->up, l->service, cause);
}

void attempt_ended(struct lease *l, enum cause cause, unsigned status)
{
	note(l, cause, status);
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
