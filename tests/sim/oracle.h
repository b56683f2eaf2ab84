/* A second reading of HTTP/1: small, strict, and not the proxy's, so that the two do not share
 * their faults.  It reads what the proxy wrote, never what it was sent. */
#ifndef THIMBLE_SIM_ORACLE_H
#define THIMBLE_SIM_ORACLE_H

#include <stdbool.h>
#include <stddef.h>
#include "lib/base/str.h"
#include "tests/sim/net.h"

enum message_state {
	MESSAGE_NONE,	/* no byte of one */
	MESSAGE_HEAD,	/* a part of a head */
	MESSAGE_PART,	/* the head, and a part of the body */
	MESSAGE_WHOLE,
	MESSAGE_BAD,	/* nothing that the proxy may ever write */
};

struct message {
	enum message_state state;
	const char *why;	/* MESSAGE_BAD */
	struct str head;	/* lines without the start line, each with its CR LF; borrowed */
	struct str method, target;
	unsigned status, minor;
	bool chunked, sized, until_close;
	size_t length;		/* announced */
	size_t used;		/* bytes of the input that it takes */
	struct bytes body;	/* owned: decoded; see message_free */
};

/* The request, or the answer, at the start of `in`.  For an answer: that to `method`; `ended`: nothing comes
 * behind `in` and the end was a clean one, which can make a body whole.  Interim answers are messages too. */
void message_request(struct message *m, struct str in);
void message_answer(struct message *m, struct str in, struct str method, bool ended);
void message_free(struct message *m);

/* The value of a field, and how often the name is there. */
struct str message_field(const struct message *m, struct str name, unsigned *times);

#endif
