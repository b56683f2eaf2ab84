/* A neutral message head: what a request or an answer says, whatever protocol
 * carried it.  Hop-by-hop fields are gone and framing is a value, so that HTTP/1
 * and HTTP/2 on either side are no special case.
 *
 * A head borrows: its strings point into the bytes that were parsed, into an
 * arena, or into constants, and it is valid as long as those are. */
#ifndef THIMBLE_HTTP_HEAD_H
#define THIMBLE_HTTP_HEAD_H

#include <stdbool.h>
#include <stdint.h>
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/str.h"

/* How the body is framed (RFC 9112 6, RFC 9113 8.1). */
enum body {
	BODY_NONE,	/* the head is all */
	BODY_SIZED,	/* head.length bytes */
	BODY_STREAMED,	/* until the sender says that it ends */
	BODY_TUNNEL,	/* after 101: bytes until both ends have closed */
};

/* Field names that somebody here asks about; all others are FIELD_OTHER.
 * FIELD_FRAMING marks the first that framing.c decides from, FIELD_HOP the first
 * that never passes (RFC 9110 7.6.1). */
enum field_id {
	FIELD_OTHER,
	FIELD_CONTENT_TYPE,
	FIELD_DATE,
	FIELD_SERVER,
	FIELD_VIA,
	FIELD_FORWARDED,
	FIELD_X_FORWARDED_FOR,
	FIELD_X_FORWARDED_PROTO,
	FIELD_X_FORWARDED_HOST,
	FIELD_X_FORWARDED_CLIENT_CERT,
	FIELD_LOCATION,
	FIELD_USER_AGENT,
	FIELD_REFERER,
	FIELD_AUTHORIZATION,
	FIELD_COOKIE,
	FIELD_SET_COOKIE,
	FIELD_PROXY_STATUS,
	FIELD_FRAMING,
	FIELD_HOST = FIELD_FRAMING,
	FIELD_CONTENT_LENGTH,
	FIELD_EXPECT,
	FIELD_HOP,
	FIELD_CONNECTION = FIELD_HOP,
	FIELD_KEEP_ALIVE,
	FIELD_PROXY_CONNECTION,
	FIELD_TE,
	FIELD_TRAILER,
	FIELD_TRANSFER_ENCODING,
	FIELD_UPGRADE,
	FIELD_HTTP2_SETTINGS,
};

enum method {
	METHOD_OTHER, METHOD_GET, METHOD_HEAD, METHOD_POST, METHOD_PUT, METHOD_DELETE,
	METHOD_CONNECT, METHOD_OPTIONS, METHOD_TRACE, METHOD_PATCH,
};

struct field {
	const char *name;	/* as it came, case kept */
	const char *value;	/* without the white space around it */
	uint32_t value_len;
	uint16_t name_len;
	uint8_t id;		/* enum field_id */
	uint8_t line;		/* as parsed: name, ": ", value, CRLF lie together; only a hint to the writer */
};

struct head {
	/* a request has these */
	struct str method;
	struct str target;	/* origin form, path and query as they came; or "*" */
	struct str path;	/* target up to the '?' */
	struct str authority;	/* host[:port]: of the absolute form, else of Host; the Host field is not among the fields */
	struct str upgrade;	/* the one protocol asked for, "" when none (requests); agreed on with 101 (answers) */
	/* an answer has these */
	struct str reason;	/* may be empty */
	uint64_t length;	/* bytes, when has_length */
	struct field *field;	/* in the order in which they came, duplicates kept */
	uint16_t n_fields, max_fields;
	uint16_t keep_alive;	/* of an answer: seconds that its sender keeps the connection, plus one; 0: it does not say */
	uint16_t status;	/* 0: a request */
	uint8_t method_id;	/* enum method */
	uint8_t minor;		/* HTTP/1.minor of the sender; 1 for HTTP/2 */
	uint8_t body;		/* enum body */
	bool has_length;	/* Content-Length was given: also with BODY_NONE (HEAD, 304) */
	bool expect_continue;	/* Expect: 100-continue (the field stays among the fields) */
	bool te_trailers;	/* the sender takes trailers */
	bool close;		/* the sender will not reuse this connection */
	bool until_close;	/* BODY_STREAMED that only the end of the connection ends: a cut looks like an end */
};

static inline struct str field_name(const struct field *f)
{
	return (struct str){f->name, f->name_len};
}

static inline struct str field_value(const struct field *f)
{
	return (struct str){f->value, f->value_len};
}

/* The id of a name, any case. */
enum field_id field_id_of(struct str name);
enum method method_of(struct str method);

/* GET, HEAD, OPTIONS, TRACE, PUT, DELETE: may be sent again (RFC 9110 9.2.2). */
bool method_idempotent(uint8_t method_id);

/* A copy of `h` in `a`, with room for `more` fields besides those that it has.  ERR_MEM, and *to is untouched. */
MUST_USE enum err head_dup(struct head *to, const struct head *h, struct arena *a, unsigned more);

/* The first field of that name at or after *i, and *i moves behind it; NULL when there is none. */
struct field *head_find(const struct head *h, struct str name, unsigned *i);
/* The first field of that id; NULL when there is none. */
struct field *head_find_id(const struct head *h, uint8_t id);

/* Appends a field whose name has that id (FIELD_OTHER for a name without one); ERR_LIMIT when
 * there is no room, or it is longer than a field can be.  Strings are borrowed. */
MUST_USE static inline enum err head_add_id(struct head *h, enum field_id id, struct str name, struct str value)
{
	if (h->n_fields >= h->max_fields || name.n > UINT16_MAX || value.n > UINT32_MAX)
		return ERR_LIMIT;
	struct field *f = &h->field[h->n_fields++];
	f->name = name.p;
	f->value = value.p;
	f->value_len = (uint32_t)value.n;
	f->name_len = (uint16_t)name.n;
	f->id = (uint8_t)id;
	f->line = 0;
	return OK;
}

/* The same for a name whose id is not known. */
MUST_USE enum err head_add(struct head *h, struct str name, struct str value);
/* The first field of that name gets the value, others of it go; appended when there is none. */
MUST_USE enum err head_set(struct head *h, struct str name, struct str value);
/* Whether names differ in case, `_` and `-` alone: applications behind CGI and its like see one name in both. */
bool head_alike(struct str a, struct str b);
/* Removes every field of that name; how many there were. */
unsigned head_remove(struct head *h, struct str name);
/* The same, with those that are alike. */
unsigned head_remove_alike(struct head *h, struct str name);

/* Adds `name` to Vary (RFC 9110 12.5.5), unless that or `*` is there.  ERR_MEM, ERR_LIMIT. */
MUST_USE enum err head_vary(struct head *h, struct str name, struct arena *a);

/* The standard reason phrase of a status, "" when it has none. */
struct str status_reason(unsigned status);

#endif
