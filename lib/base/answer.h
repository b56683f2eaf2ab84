/* What was found out about a name: made by who asks (lib/net/resolver.h), judged by who keeps it (health/names.h). */
#ifndef THIMBLE_BASE_ANSWER_H
#define THIMBLE_BASE_ANSWER_H

#include <stdint.h>

/* What can be asked for, as bits. */
#define ANSWER_IP4 1u
#define ANSWER_IP6 2u
#define ANSWER_SRV 4u

enum answer_said {
	ANSWER_NOT_ASKED,
	ANSWER_RECORDS,		/* at least one */
	ANSWER_NONE,		/* for sure: there is no such name, or no such record of it */
	ANSWER_FAILED,		/* nobody knows: no answer in time, a server that failed, nonsense */
};

struct answer_srv {
	uint16_t priority, weight, port;
	char *target;		/* owned, ends with NUL; in lower case, without a dot at its end */
};

struct answer_part {		/* of one type; all zero: not asked */
	uint8_t said;		/* enum answer_said */
	uint32_t ttl;		/* seconds: the least of its records and of the aliases before them */
	uint32_t n;
	union {			/* owned */
		uint8_t (*ip)[16];	/* network byte order; the first 4 of IPv4, then zeros */
		struct answer_srv *srv;
	};
};

struct answer {
	struct answer_part part[2];	/* IPv4 and IPv6 addresses; for SRV, the first alone */
	const char *why;		/* static: of the part that failed; NULL: none did */
};

/* Leaves it zero.  `srv`: its records are of that type. */
void answer_part_fini(struct answer_part *p, int srv);

#endif
