/* Inside the room, and for its tests: the table of keys.  Everything that knows
 * a key knows it from here: the parser, the defaults, and the check of the
 * reference page. */
#ifndef THIMBLE_CONF_KEYS_H
#define THIMBLE_CONF_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The maps of the language. */
enum conf_noun {
	CONF_TOP, CONF_LIMITS, CONF_TIMEOUTS, CONF_LOG, CONF_DEFAULTS,
	CONF_LISTEN, CONF_SERVICE, CONF_ENDPOINT, CONF_BALANCE, CONF_HASH, CONF_STICKY, CONF_HEALTH, CONF_EJECT, CONF_ROUTE,
	CONF_MATCH, CONF_PATH, CONF_PATTERN, CONF_REDIRECT, CONF_NEW_PATH, CONF_ANSWER, CONF_HEADERS, CONF_ROUTE_TIMEOUTS,
	CONF_RATE_LIMIT, CONF_RATE_BY, CONF_AUTH, CONF_MIRROR,
	CONF_BASIC_AUTH, CONF_CORS,
	CONF_COMPRESS,
	CONF_DNS, CONF_DNS_NAME,
	CONF_LISTEN_TLS, CONF_CERTIFICATE, CONF_CLIENT_CERTIFICATES, CONF_TICKETS, CONF_SERVICE_TLS, CONF_HSTS,
	CONF_RETRY, CONF_BACKOFF, CONF_RETRY_BUDGET,
	CONF_NOUNS,
};

/* How a value is read, and where to: in brackets the field that `at` is the offset of. */
enum conf_type {
	CONF_T_MAP,		/* keys of `sub` [their struct] */
	CONF_T_DURATION,	/* [uint64_t, ms] */
	CONF_T_SIZE,		/* [uint64_t, bytes] */
	CONF_T_COUNT,		/* [uint32_t] */
	CONF_T_BOOL,		/* [bool] */
	CONF_T_WORD,		/* one of `words` [an enum of int's size: its place in words] */
	CONF_T_STATUS,		/* one of `words`, or min to max [uint32_t] */
	CONF_T_TOKEN,		/* or `off` [struct str] */
	CONF_T_TEXT,		/* max bytes [struct str] */
	CONF_T_VALUE,		/* of a header [struct str] */
	CONF_T_SINK,		/* a file or one of `words` [struct conf_sink] */
	CONF_T_ADDRESS,		/* [struct conf_address] */
	CONF_T_ENDPOINTS,	/* addresses or maps of CONF_ENDPOINT [struct conf_address_list] */
	CONF_T_ENDPOINT,	/* [struct conf_address] */
	CONF_T_BALANCE,		/* one of `words`, or a map of CONF_BALANCE [struct conf_balance] */
	CONF_T_HASH,		/* one of `words`, or a map of CONF_HASH [struct conf_balance] */
	CONF_T_HASH_NAME,	/* [struct conf_balance] */
	CONF_T_STICKY,		/* a map of CONF_STICKY [struct conf_balance] */
	CONF_T_STICKY_KEY,	/* [struct str] */
	CONF_T_HEALTH,		/* a map of CONF_HEALTH, or `off` [struct conf_health] */
	CONF_T_STATUSES,	/* [struct conf_health] */
	CONF_T_EJECT,		/* a switch or a map of CONF_EJECT [struct conf_eject] */
	CONF_T_HOST,		/* keep, endpoint or a name [struct conf_service] */
	CONF_T_NETWORKS,	/* or `words`: the empty list [struct conf_cidr_list] */
	CONF_T_PROTOCOLS,	/* [struct conf_str_list] */
	CONF_T_HEADER_MAP,	/* [struct conf_header_list] */
	CONF_T_HEADER_NAMES,	/* [struct conf_header_list] */
	CONF_T_HOSTS,		/* [struct conf_str_list] */
	CONF_T_PATH,		/* a text or a map of CONF_PATH [struct conf_match] */
	CONF_T_PREFIX,		/* [struct conf_match], as the next two */
	CONF_T_EXACT,
	CONF_T_PATH_REGEX,
	CONF_T_METHODS,		/* [struct conf_str_list] */
	CONF_T_HEADER_PAIRS,	/* texts or maps of CONF_PATTERN, by name [struct conf_pair_list] */
	CONF_T_QUERY_PAIRS,	/* the same */
	CONF_T_PATTERN,		/* [struct conf_pair] */
	CONF_T_MATCHES,		/* a list of maps of CONF_MATCH [struct conf_route] */
	CONF_T_NEW_PREFIX,	/* [struct str], as the next two */
	CONF_T_NEW_PATH,
	CONF_T_NEW_HOST,
	CONF_T_COMPRESS,	/* a switch or a map of CONF_COMPRESS [struct conf_compress] */
	CONF_T_CODINGS,		/* one or more of `words`, or `all` [struct conf_compress] */
	CONF_T_TYPES,		/* media types, or `common` [struct conf_str_list] */
	CONF_T_TARGET,		/* [struct conf_redirect] */
	CONF_T_SERVICE,		/* the name of one, or names with weights [struct conf_route] */
	CONF_T_SERVICE_NAME,	/* [const struct conf_service *] */
	CONF_T_QUERY_PATH,	/* with a query or without [struct str] */
	CONF_T_SIGN_IN,		/* [struct str] */
	CONF_T_SHARE,		/* [uint32_t, of CONF_SHARE_ALL] */
	CONF_T_RATE_LIMITS,	/* rates or maps of CONF_RATE_LIMIT, or `off` [struct conf_rate_limit_list] */
	CONF_T_RATE,		/* [struct conf_rate_limit], as the next two */
	CONF_T_RATE_BY,		/* one of `words`, or a map of CONF_RATE_BY */
	CONF_T_RATE_HEADER,
	CONF_T_ONE_SERVICE,	/* the name of one [const struct conf_service *] */
	CONF_T_NAMES,		/* server names and their services [struct conf_name_list] */
	CONF_T_BASIC_AUTH,	/* a map of CONF_BASIC_AUTH, or `off` [struct conf_basic_auth] */
	CONF_T_FILE,		/* that is read [struct str] */
	CONF_T_HEADER,		/* the name of a field that is set, or `off` [struct str] */
	CONF_T_CORS,		/* a map of CONF_CORS, or `off` [struct conf_cors] */
	CONF_T_ORIGINS,		/* patterns of origins [struct conf_str_list] */
	CONF_T_FIELD_NAMES,		/* of fields, or `*` [struct conf_str_list] */
	CONF_T_TLS_FILE,	/* [struct conf_text], as the next two */
	CONF_T_CIPHERS,
	CONF_T_TLS_NAME,
	CONF_T_TLS_VERSION,	/* one of `words` [enum conf_tls_version] */
	CONF_T_CERTIFICATES,	/* a map of CONF_CERTIFICATE, or a list of them [struct conf_certificate_list] */
	CONF_T_CLIENT_CERTIFICATES,	/* or `off` [struct conf_client_certificates] */
	CONF_T_TICKETS,		/* or on, off [struct conf_listen_tls] */
	CONF_T_LISTEN_TLS,	/* or off [struct conf_listen_tls] */
	CONF_T_SERVICE_TLS,	/* or on, off [struct conf_service_tls] */
	CONF_T_HSTS,		/* or on, off [struct conf_hsts] */
	CONF_T_DNS_NAME,	/* a name and a port, or a map of CONF_DNS_NAME [struct conf_dns_name] */
	CONF_T_DNS_HOST,	/* [struct conf_dns_name] */
	CONF_T_NAMESERVERS,	/* addresses, or `system` [struct conf_address_list] */
	CONF_T_SEARCH,		/* domains, or `system`, or `off` [struct conf_str_list] */
	CONF_T_HOSTS_FILE,	/* or `off` [struct str] */
	CONF_T_RETRY,		/* a map of CONF_RETRY, or `off` [struct conf_retry] */
	CONF_T_RETRY_ON,	/* events and statuses, or `default` [struct conf_retry] */
	CONF_T_RETRY_METHODS,	/* methods, or `idempotent` [struct conf_str_list] */
	CONF_T_LISTENS,		/* [struct conf], as the next three */
	CONF_T_SERVICES,
	CONF_T_ROUTES,
	CONF_T_DEFAULTS,
	CONF_TYPES,
};

struct conf_key {
	enum conf_noun noun;	/* the map that it is in */
	const char *name;
	enum conf_type type;
	enum conf_noun sub;	/* of CONF_T_MAP, and of what may be or hold one */
	size_t at;		/* offset in the noun's struct */
	const char *fallback;	/* the default as one would write it; NULL: none */
	const char *inherits;	/* instead: the key that gives it, "limits.body" */
	uint64_t min, max;
	const char *words;	/* "append|replace|off"; for numbers one word more... */
	uint64_t word_value;	/* ...and what it means */
	bool required;
	bool shared;		/* may stand in `defaults` */
	const char *doc;	/* one line of Markdown; stands in the reference page */
};

/* All of them, by noun. */
const struct conf_key *conf_keys(size_t *count);
/* One word for a noun, as the schema and the marks of the reference page have it. */
const char *conf_noun_id(enum conf_noun noun);
/* The heading under which the reference page has it. */
const char *conf_noun_section(enum conf_noun noun);
/* How messages call a noun: "a route". */
const char *conf_noun_name(enum conf_noun noun);
/* May `key` stand in `noun`?  (In `defaults` stand the shared ones of others.) */
bool conf_key_in(const struct conf_key *key, enum conf_noun noun);

#endif
