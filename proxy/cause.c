/* cause: see cause.h.  A table and two mappings; owns nothing. */
#include "proxy/cause.h"

#include <errno.h>

const struct cause_info causes[CAUSE_N] = {
#define CAUSE(name, token, status, error, text) \
	[CAUSE_##name] = { { token, sizeof token - 1 }, status, { error, sizeof error - 1 }, { text, sizeof text - 1 } },
	CAUSES(CAUSE)
#undef CAUSE
};

enum cause cause_of_answer_fault(enum codec_fault fault, bool head_passed)
{
	if (head_passed)
		return fault == FAULT_CUT ? CAUSE_ANSWER_CUT : CAUSE_ANSWER_BROKEN;
	switch (fault) {
	case FAULT_CUT:
		return CAUSE_UPSTREAM_CLOSED;
	case FAULT_HEAD_SIZE:
	case FAULT_FIELD_COUNT:
		return CAUSE_ANSWER_HEAD_SIZE;
	case FAULT_SWITCH:
		return CAUSE_BAD_UPGRADE;
	default:
		return CAUSE_BAD_ANSWER;
	}
}

enum cause cause_of_connect(int error)
{
	switch (error) {
	case ECONNREFUSED:
	case ENOENT:		/* a unix socket that is not there */
	case EAGAIN:		/* a unix socket whose backlog is full */
	case ECONNRESET:
		return CAUSE_CONNECT_REFUSED;
	case ETIMEDOUT:
		return CAUSE_CONNECT_TIMEOUT;
	case EMFILE:
	case ENFILE:
		return CAUSE_NO_DESCRIPTORS;
	case ENOMEM:
	case ENOBUFS:
		return CAUSE_NO_MEMORY;
	default:
		return CAUSE_CONNECT_FAILED;
	}
}

bool cause_is_ours(enum cause cause)
{
	return cause == CAUSE_NO_MEMORY || cause == CAUSE_NO_DESCRIPTORS || cause == CAUSE_QUEUE_FULL || cause == CAUSE_NO_ENDPOINT ||
	       cause == CAUSE_UNRESOLVED;
}
