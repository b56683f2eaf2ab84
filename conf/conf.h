/* The configuration: text in, a plain checked tree out, or every error of the
 * file with its place.  The tree is final: defaults and overrides are applied,
 * names are resolved, addresses are parsed, so its users never look at defaults.
 *
 * All of the tree is read-only and owned by its struct conf.  Every struct str in
 * it is followed by a NUL byte, and `.p` is never NULL; an absent one has n == 0.
 * Durations are milliseconds, sizes are bytes. */
#ifndef THIMBLE_CONF_CONF_H
#define THIMBLE_CONF_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/str.h"

#define CONF_NO_LIMIT UINT64_MAX	/* of a body limit that is off */

struct conf_pos {
	uint32_t line, column;	/* from 1, column in characters; 0 when it is not from a file */
};

enum conf_address_kind { CONF_INET, CONF_INET6, CONF_UNIX, CONF_NAME };
/* Whether an endpoint gets requests. */
enum conf_state { CONF_READY, CONF_SERVING, CONF_TERMINATING, CONF_DRAIN };
enum conf_front { CONF_FRONT_NONE, CONF_FRONT_HTTP, CONF_FRONT_HTTPS };

struct conf_address {
	struct conf_pos pos;
	enum conf_address_kind kind;
	enum conf_front front;		/* of an endpoint: what it was written with */
	bool any;		/* `:80` or `*:80`: every address, IPv6 and IPv4; kind is CONF_INET6, ip zero */
	uint8_t ip[16];		/* network order; the first 4 bytes for CONF_INET */
	uint16_t port;		/* host order; a listener may have 0: the kernel picks one */
	struct str path;	/* of CONF_UNIX; fits sun_path with its NUL.  Of CONF_NAME, an endpoint's: the name, which may end with a dot */
	struct str text;	/* as written, without its scheme */
	uint32_t weight;	/* of an endpoint, as the next */
	enum conf_state state;
};

struct conf_cidr {
	struct conf_pos pos;
	enum conf_address_kind kind;	/* CONF_UNIX: all peers on unix sockets; bits 0, ip zero */
	uint8_t bits;
	uint8_t ip[16];
};

struct conf_header {
	struct conf_pos pos;
	struct str name;	/* a valid field name, as written */
	struct str value;	/* a valid field value; empty in `remove` */
};

struct conf_header_list {
	struct conf_header *items;	/* owned by the tree, as every array here */
	size_t count;
};

/* Applied in this order: remove, set, add. */
struct conf_headers {
	struct conf_header_list remove, set, add;
};

enum conf_x_forwarded { CONF_XF_APPEND, CONF_XF_REPLACE, CONF_XF_OFF };
enum conf_client_cert { CONF_CERT_OFF, CONF_CERT_SET, CONF_CERT_APPEND, CONF_CERT_PASS };
enum conf_underscores { CONF_UNDERSCORES_DROP, CONF_UNDERSCORES_ALLOW, CONF_UNDERSCORES_REFUSE };

struct conf_cidr_list {
	struct conf_cidr *items;
	size_t count;
};

struct conf_str_list {
	struct str *items;
	size_t count;
};

struct conf_service;

/* A text that something beyond this room may refuse; empty: none. */
struct conf_text {
	struct conf_pos pos;
	struct str text;
};

enum conf_tls_version { CONF_TLS_12, CONF_TLS_13 };

struct conf_algorithms {
	enum conf_tls_version min_version, max_version;
	struct conf_text ciphers, suites, groups;	/* OpenSSL's names with ':' between; empty: the default */
};

struct conf_certificate {
	struct conf_pos pos;
	struct conf_text cert, key;	/* files */
};

struct conf_certificate_list {
	struct conf_certificate *items;
	size_t count;
};

enum conf_client_mode { CONF_CLIENT_REQUIRE, CONF_CLIENT_OPTIONAL };

struct conf_client_certificates {
	struct conf_text ca, crl;	/* files; no `ca`: none are asked for */
	enum conf_client_mode mode;
};

/* TLS that ends at a listener. */
struct conf_listen_tls {
	struct conf_pos pos;
	bool on;			/* else nothing of it counts */
	struct conf_certificate_list certificates;	/* at least one */
	struct conf_algorithms algorithms;
	struct conf_client_certificates clients;
	bool tickets;
	struct conf_text ticket_key;	/* file */
	bool park;
};

/* TLS towards the endpoints of a service. */
struct conf_service_tls {
	struct conf_pos pos;
	bool on;			/* else nothing of it counts */
	struct conf_algorithms algorithms;
	struct conf_text ca, crl;	/* files */
	struct conf_text name;		/* host name or address; empty with `insecure` alone, or without endpoints */
	bool insecure;			/* nothing is verified */
	struct conf_text cert, key;	/* files: both, or none */
	bool park;
};

/* A server name of TLS and where connections for it go. */
struct conf_name {
	struct conf_pos pos;
	struct str host;	/* lower case, "*.x" for a wildcard; empty: any */
	const struct conf_service *service;
};

struct conf_name_list {
	struct conf_name *items;	/* no host twice */
	size_t count;
};

enum conf_part_kind { CONF_PART_TEXT, CONF_PART_HOST, CONF_PART_PATH };

/* A redirect's target in pieces: literal text, the request's host (with its port),
 * the request's path with its query. */
struct conf_part {
	enum conf_part_kind kind;
	struct str text;	/* of CONF_PART_TEXT */
};

enum conf_scheme { CONF_SCHEME_SAME, CONF_SCHEME_HTTP, CONF_SCHEME_HTTPS };

/* One of the two; the other, or both, are empty. */
struct conf_new_path {
	struct str full;
	struct str prefix;	/* in place of that of the matches, which all have the same */
};

struct conf_redirect {
	struct str to;		/* as written; empty: */
	struct conf_part *parts;
	size_t part_count;
	enum conf_scheme scheme;
	struct str host;	/* without a port; empty: that of the request */
	uint32_t port;		/* 0: that of the scheme, or when that is the same, of the request */
	struct conf_new_path path;
	uint32_t status;	/* 301, 302, 303, 307, 308 */
};

/* What a listener does with its connections. */
enum conf_speaks {
	CONF_SPEAKS_HTTP,
	CONF_SPEAKS_TCP,	/* bytes pass to `service` */
	CONF_SPEAKS_SNI,	/* TLS passes, unopened, by its server name */
};

enum conf_proxy_in { CONF_PROXY_IN_OFF, CONF_PROXY_IN_ON, CONF_PROXY_IN_OPTIONAL };

struct conf_listen {
	struct conf_pos pos;
	struct conf_address address;
	enum conf_speaks speaks;
	struct conf_listen_tls tls;		/* not of CONF_SPEAKS_SNI */
	enum conf_proxy_in proxy_protocol;	/* not off: there are trusted_proxies */
	const struct conf_service *service;	/* of CONF_SPEAKS_TCP */
	struct conf_name_list sni;		/* of CONF_SPEAKS_SNI */
	struct conf_cidr_list trusted_proxies;
	bool redirects;				/* of CONF_SPEAKS_HTTP: `redirect` is there, and counts */
	struct conf_redirect redirect;		/* without a prefix to replace */
	enum conf_x_forwarded x_forwarded;
	enum conf_client_cert x_forwarded_client_cert;	/* set, append: clients show certificates; append, pass: there are trusted_proxies */
	bool forwarded;			/* add RFC 7239 Forwarded */
	struct str via;			/* pseudonym; empty: no Via */
	struct str request_id;		/* field name; empty: none */
	enum conf_underscores underscores;
	struct conf_str_list upgrade;	/* protocol tokens in lower case */
};

enum conf_proxy_out { CONF_PROXY_OUT_OFF, CONF_PROXY_OUT_V1, CONF_PROXY_OUT_V2 };
enum conf_host_kind { CONF_HOST_KEEP, CONF_HOST_ENDPOINT, CONF_HOST_NAME };

struct conf_address_list {
	struct conf_address *items;
	size_t count;
};

enum conf_balance_kind { CONF_BALANCE_LEAST, CONF_BALANCE_ROUND_ROBIN, CONF_BALANCE_HASH, CONF_BALANCE_STICKY };
enum conf_hash_by { CONF_HASH_ADDRESS, CONF_HASH_HEADER, CONF_HASH_COOKIE, CONF_HASH_QUERY, CONF_HASH_PATH };
enum conf_same_site { CONF_SAME_SITE_LAX, CONF_SAME_SITE_STRICT, CONF_SAME_SITE_NONE };

/* Which endpoint gets a request. */
struct conf_balance {
	enum conf_balance_kind kind;
	enum conf_hash_by by;		/* of CONF_BALANCE_HASH */
	uint32_t bound;			/* of CONF_BALANCE_HASH: percent of the mean that one may have in flight; 0: any */
	struct str name;		/* of the header, cookie or parameter, or of the sticky cookie */
	uint64_t ttl;			/* of the sticky cookie; 0: as long as the browser runs */
	enum conf_same_site same_site;
	struct str key;			/* a secret; empty: one of this process */
};

enum conf_family { CONF_FAMILY_BOTH, CONF_FAMILY_IP4, CONF_FAMILY_IP6 };

/* A name that stands for endpoints. */
struct conf_dns_name {
	struct conf_address address;	/* of CONF_NAME; path empty: there is none; port 0: of `srv` */
	uint32_t port;			/* as `port` says it */
	bool srv;			/* its SRV records say where */
	enum conf_family family;
};

struct conf_retry_budget {
	uint32_t ratio;			/* of CONF_SHARE_ALL */
	uint32_t min_per_second;	/* 0: none */
};

enum conf_health_kind { CONF_HEALTH_NONE, CONF_HEALTH_TCP, CONF_HEALTH_HTTP };
enum conf_health_method { CONF_HEALTH_GET, CONF_HEALTH_HEAD, CONF_HEALTH_OPTIONS };

struct conf_statuses {
	uint16_t from, to;
};

#define CONF_STATUSES_MAX 8

/* How endpoints are checked. */
struct conf_health {
	enum conf_health_kind kind;	/* CONF_HEALTH_NONE: nothing of it counts */
	struct str http;		/* path, with a query or without */
	bool tcp;
	enum conf_health_method method;
	struct str host;		/* empty: that of the service, or the endpoint's address */
	struct conf_statuses statuses[CONF_STATUSES_MAX];	/* that are good */
	uint32_t status_count;
	struct conf_header_list headers;
	uint32_t port;			/* 0: the endpoint's own */
	uint64_t interval, timeout;
	uint32_t rise, fall;
};

/* What puts endpoints out, and for how long. */
struct conf_eject {
	bool on;
	uint32_t failures;	/* 0: they do not count */
	uint32_t ratio;		/* of CONF_SHARE_ALL; 0: it does not count */
	uint32_t volume;
	uint64_t interval, time, max_time;
	uint32_t max_share, panic;	/* of CONF_SHARE_ALL */
	bool server_errors;	/* answers of 500 and above are failures */
};

struct conf_service {
	struct conf_pos pos;
	struct str name;
	uint32_t index;			/* its place in conf.services */
	bool used;			/* by a route or a listener */
	struct conf_address_list endpoints;	/* may be empty: 503 */
	struct conf_dns_name dns;
	enum conf_host_kind host_kind;
	struct str host;		/* of CONF_HOST_NAME */
	uint32_t max_connections;	/* per endpoint; 0: no limit */
	uint32_t max_requests;		/* per endpoint; 0: no limit */
	struct conf_balance balance;
	struct conf_health health;
	struct conf_eject eject;
	enum conf_proxy_out proxy_protocol;
	struct conf_service_tls tls;
	struct conf_retry_budget retry_budget;
};

enum conf_path_kind { CONF_PATH_PREFIX, CONF_PATH_EXACT, CONF_PATH_REGEX };
enum conf_action { CONF_ACTION_SERVICE, CONF_ACTION_REDIRECT, CONF_ACTION_ANSWER };
enum conf_odd_paths { CONF_ODD_PASS, CONF_ODD_REFUSE, CONF_ODD_REDIRECT };

/* One of the services that a route's requests are divided between. */
struct conf_backend {
	const struct conf_service *service;
	uint32_t weight;	/* its share is that of the sum, which is above 0 */
};

struct conf_answer {
	uint32_t status;	/* 200 to 599; no body with 204, 205, 304 */
	struct str body;
	struct str type;	/* Content-Type */
};

/* A header or a query parameter that a request must have. */
struct conf_pair {
	struct conf_pos pos;
	bool regex;		/* `value` is an expression, not compiled yet; else the value itself */
	struct str name;	/* as written */
	struct str value;
};

struct conf_pair_list {
	struct conf_pair *items;	/* by name, no name twice: headers in any case */
	size_t count;
};

/* The requests that a route is for, of its hosts; all that is asked must be so. */
struct conf_match {
	struct conf_pos pos;
	enum conf_path_kind path_kind;
	struct str path;		/* starts with '/', in the normal form of RFC 3986 6.2.2 without dot
					 * segments; a prefix has no '/' at its end unless it is "/"; or an expression */
	struct conf_str_list methods;	/* one of them; none: any */
	struct conf_pair_list headers, query;
};

enum conf_rate_by { CONF_BY_ADDRESS, CONF_BY_ROUTE, CONF_BY_HEADER };

/* How often requests may come: `count` in `period` seconds, `burst` at once. */
struct conf_rate_limit {
	struct conf_pos pos;
	uint32_t count, period;
	uint32_t burst;
	enum conf_rate_by by;		/* what each has that is limited by itself */
	struct str header;		/* of CONF_BY_HEADER */
	struct str name;		/* in RateLimit fields; empty: it is not told */
	uint32_t ipv4_prefix, ipv6_prefix;	/* of CONF_BY_ADDRESS: bits that make an address another one */
};

struct conf_rate_limit_list {
	struct conf_rate_limit *items;
	size_t count;
};

enum conf_auth_method { CONF_AUTH_GET, CONF_AUTH_HEAD, CONF_AUTH_POST };

/* A service that is asked whether a request may pass. */
struct conf_auth {
	const struct conf_service *service;	/* NULL: nobody is asked */
	struct str path;			/* and query */
	enum conf_auth_method method;
	struct conf_header_list request_headers;	/* of the client's, that it sees; items NULL: all */
	struct conf_header_list response_headers;	/* of its answer, that endpoints see */
	struct str sign_in;			/* empty: none */
	bool set_cookie;			/* its cookies go to the client */
	uint64_t timeout;
};

#define CONF_SHARE_ALL 1000000u

/* A service that gets copies of requests. */
struct conf_mirror {
	const struct conf_service *service;	/* NULL: none does */
	uint32_t share;				/* of CONF_SHARE_ALL */
	uint64_t body_limit;			/* 0: of requests without a body alone */
	uint64_t timeout;
};

/* Which pages of other sites may read the answers; dispatch/cors.h. */
struct conf_cors {
	bool on;
	struct conf_str_list origins;	/* patterns (lib/base/origin.h), none twice; at least one when it is on */
	struct conf_str_list methods, headers, expose;	/* may hold "*" */
	bool credentials;
	uint64_t max_age;		/* or CONF_NO_LIMIT: not said */
};

struct conf_basic_auth {
	struct str file;	/* its path as written; empty: off */
	struct str realm;
	struct str user_header;	/* empty: none */
	bool forward;		/* Authorization goes on to the endpoint */
};

/* Strict-Transport-Security (RFC 6797). */
struct conf_hsts {
	bool on;
	uint64_t max_age;
	bool include_subdomains, preload;
};

struct conf_route_timeouts {
	uint64_t first_byte;	/* 0: off, as for the two below */
	uint64_t between_bytes;
	uint64_t tunnel;
};

#define CONF_RETRY_ON_MAX 16

enum conf_retry_said { CONF_RETRY_DEFAULT, CONF_RETRY_OFF, CONF_RETRY_ON };

struct conf_backoff {
	uint64_t base, max;
};

/* When a request is sent again. */
struct conf_retry {
	enum conf_retry_said said;	/* unless it is CONF_RETRY_ON nothing else counts */
	uint32_t attempts;
	bool connect, reset, timeout;
	uint16_t statuses[CONF_RETRY_ON_MAX];
	size_t status_count;
	struct conf_str_list methods;	/* none: those that are idempotent */
	uint64_t per_try_timeout;	/* 0: off */
	struct conf_backoff backoff;
};

enum conf_coding { CONF_CODING_ZSTD, CONF_CODING_BR, CONF_CODING_GZIP, CONF_CODINGS };
enum conf_compress_level { CONF_COMPRESS_FAST, CONF_COMPRESS_BALANCED, CONF_COMPRESS_SMALL };

struct conf_compress {
	bool on;
	enum conf_coding codings[CONF_CODINGS];	/* in order of preference; at least one when it is on */
	size_t coding_count;
	struct conf_str_list types;	/* media types, with one `*` at most, behind the `/` */
	uint64_t min_size;
	enum conf_compress_level level;
};

struct conf_route {
	struct conf_pos pos;
	struct conf_str_list hosts;	/* lower case, "*.x" for a wildcard; none: any host */
	struct conf_match *matches;	/* one of them must be met; at least one */
	size_t match_count;
	struct conf_match match;	/* what the route says itself: the only one unless it has `matches` */
	enum conf_action action;
	const struct conf_service *service;	/* of CONF_ACTION_SERVICE; NULL: */
	struct conf_backend *backends;		/* several, with weights */
	size_t backend_count;
	struct conf_redirect redirect;		/* of CONF_ACTION_REDIRECT */
	struct conf_answer answer;		/* of CONF_ACTION_ANSWER */
	bool strip_prefix;
	struct str replace_prefix;	/* empty: none, as the next two */
	struct str replace_path;
	struct str replace_host;	/* an authority */
	enum conf_odd_paths odd_paths;
	struct conf_headers request_headers, response_headers;
	struct conf_cidr_list allow, deny;	/* whose requests it takes; no `allow`: everybody's */
	struct conf_rate_limit_list rate_limits;	/* all of them hold; no name twice */
	struct conf_cors cors;
	struct conf_basic_auth basic_auth;
	struct conf_auth auth;
	struct conf_mirror mirror;
	uint64_t body_limit;		/* or CONF_NO_LIMIT */
	struct conf_hsts hsts;
	struct conf_route_timeouts timeouts;
	struct conf_retry retry;
	struct conf_compress compress;
};

enum conf_nxdomain { CONF_NXDOMAIN_KEEP, CONF_NXDOMAIN_DROP };

/* How names of endpoints are asked for. */
struct conf_dns {
	struct conf_address_list nameservers;	/* none: those of resolv_conf */
	struct conf_str_list search;		/* items NULL: those of resolv_conf */
	uint32_t ndots;				/* CONF_NDOTS_AUTO: as resolv_conf has it */
	uint64_t timeout;
	uint32_t attempts;
	uint64_t ttl_min, ttl_max;
	uint64_t stale;				/* 0: for ever */
	enum conf_nxdomain nxdomain;
	uint32_t addresses;
	struct str hosts;			/* a file; empty: none */
	struct str resolv_conf;
};

#define CONF_NDOTS_AUTO UINT32_MAX

struct conf_limits {
	uint64_t head;			/* a request's head */
	uint64_t answer_head;		/* an answer's head */
	uint32_t fields;		/* fields of a head */
	uint64_t target;		/* the request target */
	uint64_t body;			/* or CONF_NO_LIMIT; routes hold their own */
	uint64_t replay;		/* of a request body, kept for a retry; 0: none */
	uint32_t connections;		/* client connections; 0: from the limit of open files */
	uint64_t receive_window;	/* kernel receive buffer of a connection; 0: the kernel's own */
	uint64_t unsent;		/* bytes the kernel may hold unsent of a client connection; 0: no bound */
	uint64_t chunk_overhead;	/* framing bytes of a chunked body beyond its data */
	uint32_t handshakes;		/* TLS handshakes under way in a worker */
	uint32_t calls;			/* requests of our own under way in a worker */
	uint64_t queue;			/* bytes of one dispatch queue */
	uint64_t waiting;		/* bytes of requests that wait for a service, in a worker */
	uint64_t rate_memory;		/* bytes of all that rate limits remember */
	uint64_t compress;		/* bytes of all encoders */
};

struct conf_timeouts {
	uint64_t head, handshake, body, write, idle;	/* client side */
	uint64_t connect, queue, first_byte, between_bytes, upstream_idle;	/* first_byte, between_bytes: 0 is off */
	uint64_t tunnel;	/* 0: off */
	uint64_t linger, drain;	/* 0: none */
};

enum conf_level { CONF_LOG_DEBUG, CONF_LOG_INFO, CONF_LOG_WARN, CONF_LOG_ERROR };
enum conf_sink_kind { CONF_SINK_OFF, CONF_SINK_STDOUT, CONF_SINK_STDERR, CONF_SINK_FILE };
enum conf_format { CONF_FORMAT_TEXT, CONF_FORMAT_JSON };

struct conf_sink {
	enum conf_sink_kind kind;
	struct str path;	/* of CONF_SINK_FILE */
};

struct conf_log {
	enum conf_level level;
	struct conf_sink error, access;
	enum conf_format format;	/* of the access log */
	uint64_t buffer;
};

/* What is odd at a place, without being wrong. */
struct conf_note {
	struct conf_pos pos;
	struct str text;
	struct conf_note *next;	/* in no order */
};

struct conf {
	struct arena arena;		/* holds all of the tree but this struct */
	struct str file;		/* what messages call it */
	uint32_t workers;		/* 0: one per processor */
	struct conf_listen *listens;	/* at least one */
	size_t listen_count;
	struct conf_route *routes;	/* at least one when a listener speaks HTTP; in the order of the file */
	size_t route_count;
	struct conf_service *services;
	size_t service_count;
	struct conf_limits limits;
	struct conf_timeouts timeouts;
	struct conf_dns dns;
	struct conf_log log;
	struct conf_note *notes;
};

#define CONF_ERRORS_MAX 100

struct conf_error {
	struct conf_pos pos;	/* line 0: of the whole file */
	struct str text;	/* one line, without its place */
	struct str source;	/* the line it is about, printable; may be a part of it */
	uint32_t caret;		/* columns before the caret in `source` */
};

/* Embedded by the caller; in the order of the file after a parse. */
struct conf_errors {
	struct arena arena;
	const char *file;	/* owned by the arena */
	struct conf_error items[CONF_ERRORS_MAX];
	size_t count;		/* in items */
	size_t more;		/* found beyond that */
	bool no_memory;
};

void conf_errors_init(struct conf_errors *e);
void conf_errors_fini(struct conf_errors *e);
/* `file:line:column: message`, the source line and a caret for each. */
void conf_errors_print(const struct conf_errors *e, FILE *to);

/* The environment; getenv fits.  NULL for a name that is not set. */
typedef char *conf_env(const char *name);

/* Reads `text`, called `file_name` in messages.  The tree, moved to the caller
 * (conf_free), or NULL, and then `errors` (initialised, empty) says all that is
 * wrong, or has no_memory.  `env` NULL: no variable is set.  `text` may go afterwards. */
struct conf *conf_parse(const char *file_name, struct str text, conf_env *env, struct conf_errors *errors) MUST_USE;

/* The same for the file at `path`; "-" is the standard input. */
struct conf *conf_load(const char *path, conf_env *env, struct conf_errors *errors) MUST_USE;

/* One service, one route for everything: requests that come in at `listen`
 * (NULL: 127.0.0.1:8080) go to the endpoint `to`. */
struct conf *conf_for_target(const char *to, const char *listen, struct conf_errors *errors) MUST_USE;

/* What is odd but not wrong, `file:line:column: warning: text` for each, in the order of the file: services and
 * matches that nothing reaches, time-outs that never run out, and the like.  How many there are.  Takes up to a
 * second for tens of thousands of routes. */
size_t conf_warnings_print(const struct conf *c, FILE *to);

/* What a file may hold, as a JSON Schema (draft 2020-12) for editors; of write errors ferror() knows. */
void conf_schema_print(FILE *to);

/* Every key with its values, default and meaning, as the tables in Markdown that docs/configuration.md has, each
 * between the marks `<!-- keys: NOUN -->` and `<!-- /keys -->`; of write errors ferror() knows. */
void conf_page_print(FILE *to);

/* NULL is fine. */
void conf_free(struct conf *c);

#endif
