/* One line of the access log, as text or JSON, written straight into the worker's ring. */
#ifndef THIMBLE_PROXY_ACCESS_H
#define THIMBLE_PROXY_ACCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/base/str.h"

#define ACCESS_NONE (-1)	/* a duration that was never measured */

/* Of a client's connection by TLS; strings as in the record. */
struct access_tls {
	uint8_t minor;			/* of TLS 1.2, 1.3 */
	bool resumed;
	struct str cipher;
	struct str name;		/* that the client asked for */
	struct str client;		/* the subject of its certificate; empty when it has shown none */
	struct str client_id;		/* its SPIFFE ID */
};

/* All pointers are borrowed for the call.  An empty string, like ACCESS_NONE, is written as
 * absent.  Never fill in what carries credentials: the record has no place for other fields. */
struct access_record {
	int64_t time_unix_ms;		/* wall time at the end of the exchange */

	int client_family;		/* AF_INET, AF_INET6; anything else: absent */
	uint16_t client_port;
	uint8_t client_addr[16];	/* network order; the first 4 for AF_INET */

	struct str listener;		/* its label */
	struct str method;
	struct str authority;
	struct str target;		/* with its query string */
	uint8_t http_major, http_minor;	/* major 0: not known, or: */
	struct str protocol;		/* of a connection that was passed on: letters alone */
	uint16_t status;		/* as sent to the client; 0: none was sent */
	uint64_t bytes_in;		/* request body */
	uint64_t bytes_out;		/* body sent to the client */
	int64_t duration_us;		/* first byte of the request to the end */
	int64_t connect_us;		/* ACCESS_NONE when no connection was made */
	int64_t first_byte_us;		/* request to the upstream's head */

	struct str route;
	struct str service;
	struct str endpoint;		/* address and port */
	struct str cause;		/* short token; empty when nothing went wrong */
	struct str fault;		/* which rule of HTTP a refused message broke; mostly empty */
	unsigned retries;
	struct str retry_cause;		/* why the last of the tries was that led to another, or to an answer of ours */
	struct str no_retry;		/* why there was no further one */
	struct str request_id;
	struct str user;		/* who was let in by a password */
	struct str referer;
	struct str user_agent;

	bool reused;			/* the upstream connection had served before */
	bool client_closed;		/* the client left early */
	bool upgrade;			/* became a tunnel */
	const struct access_tls *tls;	/* NULL: plain, and nothing of it is written */
};

/* What a string may take once it is escaped, bytes; longer ones end in "..." and set the cut mark. */
enum {
	ACCESS_TARGET_MAX = 2048,
	ACCESS_REFERER_MAX = 1024,
	ACCESS_AGENT_MAX = 512,
	ACCESS_AUTHORITY_MAX = 256,	/* and the name of TLS */
	ACCESS_CLIENT_MAX = 512,	/* subject, SPIFFE ID */
	ACCESS_LABEL_MAX = 128,		/* listener, route, service, endpoint, request id, user */
	ACCESS_TOKEN_MAX = 64,		/* method, cause, cipher */
	ACCESS_LINE_MAX = 6144,		/* the whole line, at most, of a plain connection */
	ACCESS_TLS_MAX = 1536,		/* what TLS adds to it */
};

/* The date text of one second, kept by whoever formats many records. */
struct access_date {
	int64_t second;			/* unix time that `text` shows; text[0] 0: none yet */
	char text[24];			/* 2026-01-31T23:59:59. */
};

/* RFC 3339 in UTC with milliseconds, 24 bytes, for the years 1970 to 9999 (what is outside is
 * moved to the nearer end); returns the end. */
char *access_time(char *out, int64_t unix_ms, struct access_date *date);
/* Formats into `out`, ACCESS_LINE_MAX bytes, and ACCESS_TLS_MAX more when there is `tls`; returns the length, a newline last.  No NUL is added. */
size_t access_text(char *out, const struct access_record *r, struct access_date *date);
size_t access_json(char *out, const struct access_record *r, struct access_date *date);

/* Writes the record to the access log in its configured format; false when the
 * log is off or the record had to be dropped (which is counted).  Never blocks, never allocates but the
 * thread's ring at first use.  Worker threads; call log_turn_end once a turn. */
bool access_write(const struct access_record *r);

#endif
