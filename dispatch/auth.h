/* Auth by a sub-request: what a route shows to the service that decides, and what its answer means. */
#ifndef THIMBLE_DISPATCH_AUTH_H
#define THIMBLE_DISPATCH_AUTH_H

#include "dispatch/policy.h"
#include "lib/base/arena.h"
#include "lib/base/str.h"

#define AUTH_URL_MAX 8192u	/* a longer URL is not given to where one signs in */

struct auth_names {
	const struct str *items;	/* names of fields, in any case */
	uint16_t n;
};

struct auth_spec {			/* everything in it is borrowed */
	uint32_t service;		/* number of the service that is asked */
	struct str method, path;	/* what it is asked; the path with its query */
	bool all_fields;		/* it sees all fields that say something about the client; else: */
	struct auth_names request;
	struct auth_names response;	/* fields of its answer that the request carries on */
	struct str sign_in;		/* a Location with {host} and {url}; empty: none */
	bool set_cookie;
	uint32_t timeout_ms;
};

struct auth {
	struct policy_part part;
	struct policy_service service;
	struct auth_spec spec;		/* its strings and arrays are owned */
};

/* The part with one reference; NULL when there is no memory. */
struct policy_part *auth_new(const struct auth_spec *spec) MUST_USE;

/* Whether the service sees a field of that name of the client's request. */
bool auth_shows(const struct auth *a, struct str name);

enum auth_verdict {
	AUTH_PASS,	/* 2xx: the request goes on */
	AUTH_REFUSE,	/* 3xx, 4xx: the client gets this answer */
	AUTH_SIGN_IN,	/* 401, and there is a place to sign in */
	AUTH_ERROR,	/* 5xx */
	AUTH_ODD,	/* nothing that is an answer to that question */
};

/* What an answer with `status` means; `browses`: the request is one that a redirect helps, GET or HEAD. */
enum auth_verdict auth_judge(const struct auth *a, unsigned status, bool browses);

/* Whether a field of a refusal is passed on to the client. */
bool auth_passes_on(struct str name);

/* The URL of a request, made in `arena`; just the target when it names no host.  ERR_MEM. */
MUST_USE enum err auth_url(struct str scheme, struct str authority, struct str target, struct arena *arena, struct str *out);

/* The Location of where to sign in, made in `arena`, for a request for `url` at `authority`: {host} is its host without the port,
 * {url} the URL as the value of a parameter, or that of the site when it is longer than AUTH_URL_MAX.  ERR_SYNTAX when {host} is
 * asked for and there is none; ERR_MEM. */
MUST_USE enum err auth_sign_in(const struct auth *a, struct str scheme, struct str authority, struct str url,
			       struct arena *arena, struct str *out);

#endif
