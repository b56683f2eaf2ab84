/*
 * keys: every key of the language, once.
 *
 * Purpose   name, place, type, default, bounds and meaning of each key, as data.
 * Owns      the table, which never changes.
 * Called by walk.c (which reads a file by it) and by tests.
 * Never     holds code for one key: a type does that, in items.c.
 * Invariant the keys of CONF_TOP stand in the order in which they must be read:
 *           what others inherit from first, services before the listeners and routes that name them.
 */
#include "conf/keys.h"

#include "conf/conf.h"

#define KIB 1024ull
#define MIB (1024ull * KIB)
#define SECOND 1000ull
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)

#define AT(type, field) .at = offsetof(struct type, field)

/* Of either end of TLS. */
#define ALGORITHMS(noun, type) \
	{noun, "min_version", CONF_T_TLS_VERSION, AT(type, algorithms.min_version), .fallback = "1.2", .words = "1.2|1.3", \
	 .doc = "the oldest version of TLS"}, \
	{noun, "max_version", CONF_T_TLS_VERSION, AT(type, algorithms.max_version), .fallback = "1.3", .words = "1.2|1.3", \
	 .doc = "the newest version of TLS"}, \
	{noun, "ciphers", CONF_T_CIPHERS, AT(type, algorithms.ciphers), .fallback = "default", .words = "default", \
	 .doc = "of TLS 1.2, the best first, by OpenSSL's names; default: AES-GCM and ChaCha20, with forward secrecy"}, \
	{noun, "suites", CONF_T_CIPHERS, AT(type, algorithms.suites), .fallback = "default", .words = "default", \
	 .doc = "of TLS 1.3, likewise; default: AES-128-GCM, AES-256-GCM, ChaCha20"}, \
	{noun, "groups", CONF_T_CIPHERS, AT(type, algorithms.groups), .fallback = "default", .words = "default", \
	 .doc = "for the key exchange, likewise; default: X25519, P-256, P-384"},

static const struct conf_key keys[] = {
	{CONF_TOP, "workers", CONF_T_COUNT, AT(conf, workers), .fallback = "auto", .min = 1, .max = 256,
	 .words = "auto", .doc = "worker threads; auto: one per processor"},
	{CONF_TOP, "limits", CONF_T_MAP, CONF_LIMITS, AT(conf, limits), .doc = "how much is too much"},
	{CONF_TOP, "timeouts", CONF_T_MAP, CONF_TIMEOUTS, AT(conf, timeouts), .doc = "how long is too long"},
	{CONF_TOP, "dns", CONF_T_MAP, CONF_DNS, AT(conf, dns), .doc = "how names of endpoints are asked for"},
	{CONF_TOP, "log", CONF_T_MAP, CONF_LOG, AT(conf, log), .doc = "where logs go"},
	{CONF_TOP, "defaults", CONF_T_DEFAULTS, CONF_DEFAULTS,
	 .doc = "for all listen, route and service items that do not say otherwise"},
	{CONF_TOP, "services", CONF_T_SERVICES, CONF_SERVICE, .doc = "groups of endpoints, by name"},
	{CONF_TOP, "listen", CONF_T_LISTENS, CONF_LISTEN, .fallback = "127.0.0.1:8080", .doc = "where clients connect"},
	{CONF_TOP, "routes", CONF_T_ROUTES, CONF_ROUTE, .doc = "which request goes where; at least one, unless no listener speaks HTTP"},

	{CONF_LIMITS, "head", CONF_T_SIZE, AT(conf_limits, head), .fallback = "64KiB", .min = KIB, .max = 16 * MIB,
	 .doc = "the head of a request; beyond: 431"},
	{CONF_LIMITS, "answer_head", CONF_T_SIZE, AT(conf_limits, answer_head), .fallback = "64KiB", .min = KIB,
	 .max = 16 * MIB, .doc = "the head of an answer; beyond: 502"},
	{CONF_LIMITS, "fields", CONF_T_COUNT, AT(conf_limits, fields), .fallback = "200", .min = 8, .max = 10000,
	 .doc = "fields in a head"},
	{CONF_LIMITS, "target", CONF_T_SIZE, AT(conf_limits, target), .fallback = "8KiB", .min = 256, .max = MIB,
	 .doc = "path and query of a request; beyond: 414; never more than `head`"},
	{CONF_LIMITS, "body", CONF_T_SIZE, AT(conf_limits, body), .fallback = "off", .min = 1, .max = MIB * MIB,
	 .words = "off", .word_value = CONF_NO_LIMIT, .doc = "the body of a request; beyond: 413; off: any size"},
	{CONF_LIMITS, "replay", CONF_T_SIZE, AT(conf_limits, replay), .fallback = "16KiB", .min = 1, .max = 16 * MIB,
	 .words = "off", .doc = "how much of a request body is kept so that it can be sent again; off: none"},
	{CONF_LIMITS, "connections", CONF_T_COUNT, AT(conf_limits, connections), .fallback = "auto", .min = 1,
	 .max = 10000000, .words = "auto", .doc = "client connections; auto: from the limit of open files"},
	{CONF_LIMITS, "receive_window", CONF_T_SIZE, AT(conf_limits, receive_window), .fallback = "2MiB",
	 .min = 4 * KIB, .max = 64 * MIB, .words = "off",
	 .doc = "the kernel's receive buffer of an upstream connection whose client keeps up, 64KiB until then; off: the kernel decides"},
	{CONF_LIMITS, "unsent", CONF_T_SIZE, AT(conf_limits, unsent), .fallback = "128KiB", .min = 4 * KIB,
	 .max = 64 * MIB, .words = "off",
	 .doc = "bytes that the kernel may hold unsent for a client connection; off: the kernel decides"},
	{CONF_LIMITS, "chunk_overhead", CONF_T_SIZE, AT(conf_limits, chunk_overhead), .fallback = "16KiB", .min = KIB,
	 .max = 16 * MIB, .doc = "bytes of one chunk's size line with its extensions; beyond: 400"},
	{CONF_LIMITS, "queue", CONF_T_SIZE, AT(conf_limits, queue), .fallback = "64KiB", .min = KIB, .max = 64 * MIB,
	 .doc = "bytes of one dispatch queue, 8 for each request that waits in it; beyond: 503 (`queue_full`)"},
	{CONF_LIMITS, "handshakes", CONF_T_COUNT, AT(conf_limits, handshakes), .fallback = "128", .min = 1, .max = 100000,
	 .doc = "TLS handshakes with clients under way in one worker; more wait, as many as `queue` has room for"},
	{CONF_LIMITS, "calls", CONF_T_COUNT, AT(conf_limits, calls), .fallback = "4096", .min = 1, .max = 1000000,
	 .doc = "requests of the proxy's own under way in one worker, for `auth` and `mirror`; beyond: 503 (`calls_full`)"},

	{CONF_LIMITS, "rate_memory", CONF_T_SIZE, AT(conf_limits, rate_memory), .fallback = "4MiB", .min = 4 * KIB,
	 .max = 1024 * MIB, .doc = "all that `rate_limit` remembers, about 20 bytes for each client that was there lately"},
	{CONF_LIMITS, "compress", CONF_T_SIZE, AT(conf_limits, compress), .fallback = "64MiB", .min = 64 * KIB,
	 .max = 64 * KIB * MIB,
	 .doc = "memory of all answers that are being compressed; beyond: answers are sent as they are"},

	{CONF_TIMEOUTS, "head", CONF_T_DURATION, AT(conf_timeouts, head), .fallback = "10s", .min = 100, .max = HOUR,
	 .doc = "from the first byte of a request to the end of its head; from the connect to the end of a PROXY protocol header or of TLS's first message"},
	{CONF_TIMEOUTS, "handshake", CONF_T_DURATION, AT(conf_timeouts, handshake), .fallback = "10s", .min = 100, .max = 10 * MINUTE,
	 .doc = "a client's TLS handshake, with its time in the queue, from its whole ClientHello; that one has `head`"},
	{CONF_TIMEOUTS, "body", CONF_T_DURATION, AT(conf_timeouts, body), .fallback = "30s", .min = 100, .max = DAY,
	 .doc = "between two pieces of a request body; beyond: 408"},
	{CONF_TIMEOUTS, "write", CONF_T_DURATION, AT(conf_timeouts, write), .fallback = "60s", .min = 100, .max = DAY,
	 .doc = "a client that takes nothing of its answer, or an endpoint that takes nothing of a request; beyond, for an endpoint: 504 (`send_timeout`)"},
	{CONF_TIMEOUTS, "idle", CONF_T_DURATION, AT(conf_timeouts, idle), .fallback = "75s", .min = 100, .max = DAY,
	 .doc = "a client connection between two requests"},
	{CONF_TIMEOUTS, "connect", CONF_T_DURATION, AT(conf_timeouts, connect), .fallback = "5s", .min = 10,
	 .max = 10 * MINUTE,
	 .doc = "to connect to an endpoint; also to wait for one of `max_connections`, beyond: 503 (`queue_timeout`)"},
	{CONF_TIMEOUTS, "first_byte", CONF_T_DURATION, AT(conf_timeouts, first_byte), .fallback = "60s", .min = 10,
	 .max = 7 * DAY, .words = "off",
	 .doc = "from the whole request sent to the end of the answer's head; beyond: 504"},
	{CONF_TIMEOUTS, "between_bytes", CONF_T_DURATION, AT(conf_timeouts, between_bytes), .fallback = "60s",
	 .min = 10, .max = 7 * DAY, .words = "off", .doc = "between two pieces of an answer"},
	{CONF_TIMEOUTS, "upstream_idle", CONF_T_DURATION, AT(conf_timeouts, upstream_idle), .fallback = "4s",
	 .min = 10, .max = DAY,
	 .doc = "how long an unused upstream connection is kept; make it less than the endpoint keeps it"},
	{CONF_TIMEOUTS, "tunnel", CONF_T_DURATION, AT(conf_timeouts, tunnel), .fallback = "1h", .min = 100,
	 .max = 30 * DAY, .words = "off", .doc = "a WebSocket or other tunnel, or a TCP connection that is passed on, without traffic"},
	{CONF_TIMEOUTS, "linger", CONF_T_DURATION, AT(conf_timeouts, linger), .fallback = "2s", .min = 10,
	 .max = MINUTE, .words = "off", .doc = "reading on after an early answer, so that the client sees it"},
	{CONF_TIMEOUTS, "drain", CONF_T_DURATION, AT(conf_timeouts, drain), .fallback = "9s", .min = 10, .max = DAY,
	 .words = "off", .doc = "to end requests in flight at a stop"},

	{CONF_LOG, "level", CONF_T_WORD, AT(conf_log, level), .fallback = "info", .words = "debug|info|warn|error",
	 .doc = "the least that is worth a line in the error log"},
	{CONF_LOG, "error", CONF_T_SINK, AT(conf_log, error), .fallback = "stderr", .words = "||stderr",
	 .doc = "where the error log goes"},
	{CONF_LOG, "access", CONF_T_SINK, AT(conf_log, access), .fallback = "stdout", .words = "off|stdout|stderr",
	 .doc = "where the access log goes"},
	{CONF_LOG, "format", CONF_T_WORD, AT(conf_log, format), .fallback = "text", .words = "text|json",
	 .doc = "of the access log"},
	{CONF_LOG, "buffer", CONF_T_SIZE, AT(conf_log, buffer), .fallback = "256KiB", .min = 4 * KIB, .max = 64 * MIB,
	 .doc = "log bytes that may wait to be written, per worker; beyond: lines are lost and counted"},

	{CONF_DNS, "nameservers", CONF_T_NAMESERVERS, AT(conf_dns, nameservers), .fallback = "system", .words = "system",
	 .doc = "who is asked, in this order; system: those of `resolv_conf`"},
	{CONF_DNS, "search", CONF_T_SEARCH, AT(conf_dns, search), .fallback = "system", .words = "system|off",
	 .doc = "domains that a name may stand in; system: those of `resolv_conf`; off: none"},
	{CONF_DNS, "ndots", CONF_T_COUNT, AT(conf_dns, ndots), .fallback = "auto", .min = 0, .max = 15, .words = "auto",
	 .word_value = CONF_NDOTS_AUTO,
	 .doc = "a name with fewer dots is looked for in the search domains before it is taken as it is; auto: as `resolv_conf` has it, or 1"},
	{CONF_DNS, "timeout", CONF_T_DURATION, AT(conf_dns, timeout), .fallback = "2s", .min = 50, .max = MINUTE,
	 .doc = "for the answer of one name server; doubled when all have been asked once"},
	{CONF_DNS, "attempts", CONF_T_COUNT, AT(conf_dns, attempts), .fallback = "2", .min = 1, .max = 10,
	 .doc = "how often each name server is asked"},
	{CONF_DNS, "ttl_min", CONF_T_DURATION, AT(conf_dns, ttl_min), .fallback = "5s", .min = 100, .max = HOUR,
	 .doc = "a name is not asked for sooner, however short its records are said to be good"},
	{CONF_DNS, "ttl_max", CONF_T_DURATION, AT(conf_dns, ttl_max), .fallback = "5m", .min = 100, .max = DAY,
	 .doc = "nor later, however long"},
	{CONF_DNS, "stale", CONF_T_DURATION, AT(conf_dns, stale), .fallback = "off", .min = SECOND, .max = 30 * DAY, .words = "off",
	 .doc = "how long the last good answer is used when no other comes; off: for ever"},
	{CONF_DNS, "nxdomain", CONF_T_WORD, AT(conf_dns, nxdomain), .fallback = "keep", .words = "keep|drop",
	 .doc = "when a name that had addresses has none: keep those, or go without (503)"},
	{CONF_DNS, "addresses", CONF_T_COUNT, AT(conf_dns, addresses), .fallback = "256", .min = 1, .max = 4096,
	 .doc = "of one name and family; more are left out, and told"},
	{CONF_DNS, "hosts", CONF_T_HOSTS_FILE, AT(conf_dns, hosts), .fallback = "/etc/hosts", .words = "off",
	 .doc = "names that are here are not asked for elsewhere; off: no such file"},
	{CONF_DNS, "resolv_conf", CONF_T_FILE, AT(conf_dns, resolv_conf), .fallback = "/etc/resolv.conf",
	 .doc = "what the system says of name servers and search domains"},

	{CONF_DNS_NAME, "name", CONF_T_DNS_HOST, .required = true, .doc = "what is asked for; a dot at its end: not in search domains"},
	{CONF_DNS_NAME, "port", CONF_T_COUNT, AT(conf_dns_name, port), .fallback = "auto", .min = 1, .max = 65535,
	 .words = "auto", .doc = "of its addresses; auto: 80, or 443 with `tls`; SRV records have their own"},
	{CONF_DNS_NAME, "srv", CONF_T_BOOL, AT(conf_dns_name, srv), .fallback = "off",
	 .doc = "it has SRV records: names, ports, weights and priorities"},
	{CONF_DNS_NAME, "family", CONF_T_WORD, AT(conf_dns_name, family), .fallback = "both", .words = "both|ip4|ip6",
	 .doc = "which addresses are asked for"},

	{CONF_LISTEN, "address", CONF_T_ADDRESS, AT(conf_listen, address), .required = true, .doc = "where to listen"},
	{CONF_LISTEN, "trusted_proxies", CONF_T_NETWORKS, AT(conf_listen, trusted_proxies), .shared = true,
	 .fallback = "none", .words = "none",
	 .doc = "peers whose X-Forwarded-*, Forwarded and PROXY protocol headers are believed; `\"unix:\"` for those on a unix socket"},
	{CONF_LISTEN, "proxy_protocol", CONF_T_WORD, AT(conf_listen, proxy_protocol), .fallback = "off",
	 .words = "off|on|optional",
	 .doc = "whether connections begin with a PROXY protocol header (version 1 or 2); on: those of others than `trusted_proxies` are closed"},
	{CONF_LISTEN, "tls", CONF_T_LISTEN_TLS, CONF_LISTEN_TLS, AT(conf_listen, tls), .fallback = "off", .words = "off",
	 .doc = "TLS ends here: HTTPS"},
	{CONF_LISTEN, "service", CONF_T_ONE_SERVICE, AT(conf_listen, service),
	 .doc = "instead of HTTP and routes: bytes pass to this service"},
	{CONF_LISTEN, "sni", CONF_T_NAMES, AT(conf_listen, sni),
	 .doc = "instead of HTTP and routes: TLS passes unopened to the service of its server name"},
	{CONF_LISTEN, "x_forwarded", CONF_T_WORD, AT(conf_listen, x_forwarded), .fallback = "append",
	 .words = "append|replace|off", .shared = true, .doc = "X-Forwarded-For, -Proto and -Host"},
	{CONF_LISTEN, "forwarded", CONF_T_BOOL, AT(conf_listen, forwarded), .fallback = "off", .shared = true,
	 .doc = "add Forwarded (RFC 7239)"},
	{CONF_LISTEN, "via", CONF_T_TOKEN, AT(conf_listen, via), .fallback = "thimble", .shared = true,
	 .doc = "our name in Via; off: no Via"},
	{CONF_LISTEN, "request_id", CONF_T_TOKEN, AT(conf_listen, request_id), .fallback = "X-Request-Id",
	 .shared = true,
	 .doc = "the field that carries a request's id: the client's, when it has a plain one of at most 128 bytes, else a new one; off: none"},
	{CONF_LISTEN, "underscores", CONF_T_WORD, AT(conf_listen, underscores), .fallback = "drop",
	 .words = "drop|allow|refuse", .shared = true,
	 .doc = "request fields with `_` in their name: forward without them, with them, or answer 400"},
	{CONF_LISTEN, "upgrade", CONF_T_PROTOCOLS, AT(conf_listen, upgrade), .fallback = "websocket", .shared = true,
	 .doc = "protocols that a client may switch to; off: none; `h2c` is refused"},

	{CONF_SERVICE, "endpoints", CONF_T_ENDPOINTS, CONF_ENDPOINT, AT(conf_service, endpoints),
	 .doc = "addresses that answer, or names that stand for some; `[]`: every request gets 503. This or `dns` is needed"},
	{CONF_SERVICE, "dns", CONF_T_DNS_NAME, CONF_DNS_NAME, AT(conf_service, dns),
	 .doc = "a name whose addresses are endpoints, beside those in `endpoints`"},
	{CONF_SERVICE, "balance", CONF_T_BALANCE, CONF_BALANCE, AT(conf_service, balance), .fallback = "least", .words = "least|round_robin",
	 .shared = true, .doc = "which endpoint gets a request; least: of two by chance the one with less in flight"},
	{CONF_SERVICE, "host", CONF_T_HOST, .fallback = "keep", .words = "keep|endpoint", .shared = true,
	 .doc = "the Host that endpoints see: the client's, the endpoint's address, or this one"},
	{CONF_SERVICE, "tls", CONF_T_SERVICE_TLS, CONF_SERVICE_TLS, AT(conf_service, tls), .fallback = "off", .words = "off|on",
	 .doc = "endpoints speak TLS; on by itself when they begin with `https://`"},
	{CONF_SERVICE, "max_connections", CONF_T_COUNT, AT(conf_service, max_connections), .fallback = "0", .min = 1,
	 .max = 1000000, .words = "off", .shared = true, .doc = "connections per endpoint and worker; 0: no limit"},
	{CONF_SERVICE, "proxy_protocol", CONF_T_WORD, AT(conf_service, proxy_protocol), .fallback = "off",
	 .words = "off|v1|v2",
	 .doc = "begin each connection with a PROXY protocol header of this version, which names the client; no two requests share one"},

	{CONF_ENDPOINT, "address", CONF_T_ENDPOINT, .required = true, .doc = "as one without a map"},
	{CONF_ENDPOINT, "weight", CONF_T_COUNT, AT(conf_address, weight), .fallback = "1", .max = 65535,
	 .doc = "its share, as part of the sum of all; 0: nothing that is new"},
	{CONF_ENDPOINT, "state", CONF_T_WORD, AT(conf_address, state), .fallback = "ready", .words = "ready|serving|terminating|drain",
	 .doc = "ready ones come first, then those that serve, then those that terminate; drain: nothing that is new"},

	{CONF_BALANCE, "hash", CONF_T_HASH, CONF_HASH, .words = "address|path", .doc = "requests that are alike in this have one endpoint"},
	{CONF_BALANCE, "sticky", CONF_T_STICKY, CONF_STICKY, .doc = "a cookie keeps clients where their first request went"},

	{CONF_HASH, "header", CONF_T_HASH_NAME, .doc = "all values of this field"},
	{CONF_HASH, "cookie", CONF_T_HASH_NAME, .doc = "the first cookie of this name"},
	{CONF_HASH, "query", CONF_T_HASH_NAME, .doc = "the first query parameter of this name, as it is written"},

	{CONF_STICKY, "cookie", CONF_T_TOKEN, AT(conf_balance, name), .required = true, .doc = "its name, another one for each service of a host"},
	{CONF_STICKY, "ttl", CONF_T_DURATION, AT(conf_balance, ttl), .fallback = "off", .min = SECOND, .max = 400 * DAY, .words = "off",
	 .doc = "how long the client keeps it; off: until it ends"},
	{CONF_STICKY, "same_site", CONF_T_WORD, AT(conf_balance, same_site), .fallback = "lax", .words = "lax|strict|none",
	 .doc = "on which requests from other sites it is sent; none: on all, over TLS alone"},
	{CONF_STICKY, "key", CONF_T_STICKY_KEY, AT(conf_balance, key),
	 .doc = "a secret that its values are made with, the same after a restart and in other instances; without it: one of this process"},

	{CONF_ROUTE, "host", CONF_T_HOSTS, AT(conf_route, hosts),
	 .doc = "`example.com`, `\"*.example.com\"`; without it: any host. No port: routes look at the name alone"},
	{CONF_ROUTE, "path", CONF_T_PATH, CONF_PATH, AT(conf_route, match), .fallback = "/", .doc = "which paths"},
	{CONF_ROUTE, "method", CONF_T_METHODS, AT(conf_route, match.methods),
	 .doc = "`GET`, `[GET, HEAD]`; without it: any"},
	{CONF_ROUTE, "headers", CONF_T_HEADER_PAIRS, CONF_PATTERN, AT(conf_route, match.headers),
	 .doc = "headers that a request must have, all of them"},
	{CONF_ROUTE, "query", CONF_T_QUERY_PAIRS, CONF_PATTERN, AT(conf_route, match.query),
	 .doc = "query parameters that a request must have, all of them"},
	{CONF_ROUTE, "matches", CONF_T_MATCHES, CONF_MATCH,
	 .doc = "alternatives, instead of `path`, `method`, `headers` and `query` of the route"},
	{CONF_ROUTE, "service", CONF_T_SERVICE, 
	 .doc = "action: forward to this service, or to several: name to weight, 0 to 1000000"},
	{CONF_ROUTE, "redirect", CONF_T_MAP, CONF_REDIRECT, AT(conf_route, redirect),
	 .doc = "action: send the client elsewhere"},
	{CONF_ROUTE, "answer", CONF_T_MAP, CONF_ANSWER, AT(conf_route, answer), .doc = "action: a fixed answer"},
	{CONF_ROUTE, "strip_prefix", CONF_T_BOOL, AT(conf_route, strip_prefix), .fallback = "off",
	 .doc = "forward without the prefix; only with a prefix and a service"},
	{CONF_ROUTE, "replace_prefix", CONF_T_NEW_PREFIX, AT(conf_route, replace_prefix),
	 .doc = "forward with this in place of the prefix; only with a prefix and a service"},
	{CONF_ROUTE, "replace_path", CONF_T_NEW_PATH, AT(conf_route, replace_path),
	 .doc = "forward with this in place of the whole path; the query stays"},
	{CONF_ROUTE, "replace_host", CONF_T_NEW_HOST, AT(conf_route, replace_host),
	 .doc = "the Host that endpoints see, whatever `host` of the service says"},
	{CONF_ROUTE, "odd_paths", CONF_T_WORD, AT(conf_route, odd_paths), .fallback = "pass",
	 .words = "pass|refuse|redirect", .shared = true,
	 .doc = "paths that an origin may read otherwise than we do: with dot segments, empty segments, or an encoded slash or backslash; see below"},
	{CONF_ROUTE, "request_headers", CONF_T_MAP, CONF_HEADERS, AT(conf_route, request_headers), .shared = true,
	 .doc = "changes to what endpoints see"},
	{CONF_ROUTE, "response_headers", CONF_T_MAP, CONF_HEADERS, AT(conf_route, response_headers), .shared = true,
	 .doc = "changes to what clients see"},
	{CONF_ROUTE, "allow", CONF_T_NETWORKS, AT(conf_route, allow), .fallback = "all", .words = "all", .shared = true,
	 .doc = "clients whose requests it takes; all others: 403"},
	{CONF_ROUTE, "deny", CONF_T_NETWORKS, AT(conf_route, deny), .fallback = "none", .words = "none", .shared = true,
	 .doc = "clients whose requests it does not take, even if they are in `allow`: 403"},
	{CONF_ROUTE, "rate_limit", CONF_T_RATE_LIMITS, CONF_RATE_LIMIT, AT(conf_route, rate_limits), .fallback = "off",
	 .words = "off", .shared = true, .doc = "how often requests may come; beyond: 429"},
	{CONF_ROUTE, "cors", CONF_T_CORS, CONF_CORS, AT(conf_route, cors), .fallback = "off", .words = "off", .shared = true,
	 .doc = "which pages of other sites may read the answers"},
	{CONF_ROUTE, "basic_auth", CONF_T_BASIC_AUTH, CONF_BASIC_AUTH, AT(conf_route, basic_auth), .fallback = "off",
	 .words = "off", .shared = true, .doc = "a user and a password are needed; else: 401"},
	{CONF_ROUTE, "auth", CONF_T_MAP, CONF_AUTH, AT(conf_route, auth),
	 .doc = "a service is asked whether a request may pass"},
	{CONF_ROUTE, "mirror", CONF_T_MAP, CONF_MIRROR, AT(conf_route, mirror),
	 .doc = "another service gets copies of the requests; only with a service"},
	{CONF_ROUTE, "body_limit", CONF_T_SIZE, AT(conf_route, body_limit), .inherits = "limits.body", .min = 1,
	 .max = MIB * MIB, .words = "off", .word_value = CONF_NO_LIMIT, .shared = true,
	 .doc = "the body of a request on this route"},
	{CONF_ROUTE, "compress", CONF_T_COMPRESS, CONF_COMPRESS, AT(conf_route, compress), .fallback = "off", .shared = true,
	 .doc = "answers that a client takes compressed"},
	{CONF_ROUTE, "hsts", CONF_T_HSTS, CONF_HSTS, AT(conf_route, hsts), .fallback = "off", .words = "off|on", .shared = true,
	 .doc = "Strict-Transport-Security in answers over TLS: browsers are to come by TLS alone"},
	{CONF_ROUTE, "timeouts", CONF_T_MAP, CONF_ROUTE_TIMEOUTS, AT(conf_route, timeouts),
	 .doc = "time-outs of this route"},

	{CONF_MATCH, "path", CONF_T_PATH, CONF_PATH, .fallback = "/", .doc = "which paths"},
	{CONF_MATCH, "method", CONF_T_METHODS, AT(conf_match, methods), .doc = "`GET`, `[GET, HEAD]`; without it: any"},
	{CONF_MATCH, "headers", CONF_T_HEADER_PAIRS, CONF_PATTERN, AT(conf_match, headers),
	 .doc = "headers that a request must have, all of them"},
	{CONF_MATCH, "query", CONF_T_QUERY_PAIRS, CONF_PATTERN, AT(conf_match, query),
	 .doc = "query parameters that a request must have, all of them"},

	{CONF_PATH, "prefix", CONF_T_PREFIX,
	 .doc = "whole segments: `/api` is for `/api` and `/api/x`, not for `/apis`; a slash at its end makes no difference"},
	{CONF_PATH, "exact", CONF_T_EXACT, .doc = "this path and no other"},
	{CONF_PATH, "regex", CONF_T_PATH_REGEX, .doc = "the whole path, not a part of it"},

	{CONF_PATTERN, "regex", CONF_T_PATTERN, .required = true,
	 .doc = "the whole value, not a part of it: `{ regex: '.*' }` for any"},

	{CONF_REDIRECT, "to", CONF_T_TARGET,
	 .doc = "where to; `{host}` and `{path}` stand for those of the request, the path with its query"},
	{CONF_REDIRECT, "scheme", CONF_T_WORD, AT(conf_redirect, scheme), .words = "|http|https",
	 .doc = "the new scheme; without it: that of the request"},
	{CONF_REDIRECT, "host", CONF_T_NEW_HOST, AT(conf_redirect, host),
	 .doc = "the new host, without a port; without it: that of the request"},
	{CONF_REDIRECT, "port", CONF_T_COUNT, AT(conf_redirect, port), .min = 1, .max = 65535,
	 .doc = "the new port; without it: the one of `scheme`, or else that of the request"},
	{CONF_REDIRECT, "path", CONF_T_MAP, CONF_NEW_PATH, AT(conf_redirect, path),
	 .doc = "the new path; without it: that of the request. The query stays"},
	{CONF_REDIRECT, "status", CONF_T_STATUS, AT(conf_redirect, status), .fallback = "302",
	 .words = "301|302|303|307|308", .doc = "status code"},

	{CONF_NEW_PATH, "replace_full", CONF_T_NEW_PATH, AT(conf_new_path, full), .doc = "this in place of the whole path"},
	{CONF_NEW_PATH, "replace_prefix", CONF_T_NEW_PREFIX, AT(conf_new_path, prefix),
	 .doc = "this in place of the route's prefix; what is behind that stays"},

	{CONF_ANSWER, "status", CONF_T_STATUS, AT(conf_answer, status), .fallback = "200", .min = 200, .max = 599,
	 .doc = "status code; 204, 205 and 304 have no body"},
	{CONF_ANSWER, "body", CONF_T_TEXT, AT(conf_answer, body), .max = MIB, .doc = "the text of the answer"},
	{CONF_ANSWER, "type", CONF_T_VALUE, AT(conf_answer, type), .fallback = "text/plain", .doc = "Content-Type"},

	{CONF_HEADERS, "remove", CONF_T_HEADER_NAMES, AT(conf_headers, remove), .doc = "all fields of this name go"},
	{CONF_HEADERS, "set", CONF_T_HEADER_MAP, AT(conf_headers, set), .doc = "this value and no other"},
	{CONF_HEADERS, "add", CONF_T_HEADER_MAP, AT(conf_headers, add), .doc = "one more field"},

	{CONF_ROUTE_TIMEOUTS, "first_byte", CONF_T_DURATION, AT(conf_route_timeouts, first_byte),
	 .inherits = "timeouts.first_byte", .min = 10, .max = 7 * DAY, .words = "off",
	 .doc = "from the whole request sent to the end of the answer's head"},
	{CONF_ROUTE_TIMEOUTS, "between_bytes", CONF_T_DURATION, AT(conf_route_timeouts, between_bytes),
	 .inherits = "timeouts.between_bytes", .min = 10, .max = 7 * DAY, .words = "off",
	 .doc = "between two pieces of an answer"},
	{CONF_ROUTE_TIMEOUTS, "tunnel", CONF_T_DURATION, AT(conf_route_timeouts, tunnel),
	 .inherits = "timeouts.tunnel", .min = 100, .max = 30 * DAY, .words = "off", .doc = "a tunnel without traffic"},

	{CONF_AUTH, "service", CONF_T_SERVICE_NAME, AT(conf_auth, service), .required = true, .doc = "who is asked"},
	{CONF_AUTH, "path", CONF_T_QUERY_PATH, AT(conf_auth, path), .fallback = "/", .doc = "what it is asked for"},
	{CONF_AUTH, "method", CONF_T_WORD, AT(conf_auth, method), .fallback = "GET", .words = "GET|HEAD|POST",
	 .doc = "how; never with a body"},
	{CONF_AUTH, "request_headers", CONF_T_HEADER_NAMES, AT(conf_auth, request_headers),
	 .doc = "fields of the client's request that it sees; without it: all but those about ranges, conditions and the body"},
	{CONF_AUTH, "response_headers", CONF_T_HEADER_NAMES, AT(conf_auth, response_headers),
	 .doc = "fields of its answer that endpoints see; those that the client sent by these names go"},
	{CONF_AUTH, "sign_in", CONF_T_SIGN_IN, AT(conf_auth, sign_in),
	 .doc = "where a GET or HEAD is sent with 302 in place of a 401; `{url}` and `{host}` stand for those of the request"},
	{CONF_AUTH, "set_cookie", CONF_T_BOOL, AT(conf_auth, set_cookie), .fallback = "on",
	 .doc = "cookies that it sets when it lets a request pass go to the client, with the endpoint's answer"},
	{CONF_AUTH, "timeout", CONF_T_DURATION, AT(conf_auth, timeout), .fallback = "5s", .min = 10, .max = 10 * MINUTE,
	 .doc = "from the question to the end of the answer, all tries together; beyond: 504 (`auth_timeout`)"},

	{CONF_MIRROR, "service", CONF_T_SERVICE_NAME, AT(conf_mirror, service), .required = true,
	 .doc = "who gets the copies"},
	{CONF_MIRROR, "share", CONF_T_SHARE, AT(conf_mirror, share), .fallback = "100%",
	 .doc = "of how many requests: `10%`, `0.1`"},
	{CONF_MIRROR, "body_limit", CONF_T_SIZE, AT(conf_mirror, body_limit), .fallback = "64KiB", .min = 1,
	 .max = 16 * MIB, .words = "off", .doc = "a request with a larger body is not copied; off: none with a body is"},
	{CONF_MIRROR, "timeout", CONF_T_DURATION, AT(conf_mirror, timeout), .fallback = "10s", .min = 10, .max = HOUR,
	 .doc = "for a copy and its answer; beyond: its connection is closed"},

	{CONF_RATE_LIMIT, "rate", CONF_T_RATE, .required = true, .doc = "requests in a second, a minute or an hour"},
	{CONF_RATE_LIMIT, "burst", CONF_T_COUNT, AT(conf_rate_limit, burst), .fallback = "auto", .min = 1, .max = 1000000,
	 .words = "auto", .doc = "requests that may come at once; auto: as many as `rate` names"},
	{CONF_RATE_LIMIT, "by", CONF_T_RATE_BY, CONF_RATE_BY, .fallback = "address", .words = "address|route",
	 .doc = "what is limited by itself: each client, the route as a whole, or each value of a header"},
	{CONF_RATE_LIMIT, "name", CONF_T_TOKEN, AT(conf_rate_limit, name),
	 .doc = "in RateLimit and RateLimit-Policy, without it `address`, `route` or `header`; off: the limit is not told"},
	{CONF_RATE_LIMIT, "ipv4_prefix", CONF_T_COUNT, AT(conf_rate_limit, ipv4_prefix), .fallback = "32", .min = 1,
	 .max = 32, .doc = "IPv4 clients that have so many bits in common are one"},
	{CONF_RATE_LIMIT, "ipv6_prefix", CONF_T_COUNT, AT(conf_rate_limit, ipv6_prefix), .fallback = "64", .min = 1,
	 .max = 128, .doc = "the same for IPv6"},

	{CONF_RATE_BY, "header", CONF_T_RATE_HEADER, .required = true,
	 .doc = "name of a request field; requests without it share a limit"},

	{CONF_CORS, "origins", CONF_T_ORIGINS, AT(conf_cors, origins), .required = true,
	 .doc = "`https://app.example.com`, `\"https://*.example.com\"` (one label), `\"https://**.example.com\"` (one or more), `\"*\"` (all)"},
	{CONF_CORS, "methods", CONF_T_METHODS, AT(conf_cors, methods),
	 .doc = "besides GET, HEAD and POST, which need no leave; `\"*\"`: all"},
	{CONF_CORS, "headers", CONF_T_FIELD_NAMES, AT(conf_cors, headers),
	 .doc = "fields that a script may set in its requests; `\"*\"`: all; without `credentials`, browsers leave Authorization out of it"},
	{CONF_CORS, "expose", CONF_T_FIELD_NAMES, AT(conf_cors, expose),
	 .doc = "fields of answers that a script may read; `\"*\"`: all, not with credentials"},
	{CONF_CORS, "credentials", CONF_T_BOOL, AT(conf_cors, credentials), .fallback = "off",
	 .doc = "cookies and Authorization go with requests; not with the origin `*`"},
	{CONF_CORS, "max_age", CONF_T_DURATION, AT(conf_cors, max_age), .fallback = "off", .min = 0, .max = 7 * DAY,
	 .words = "off", .word_value = CONF_NO_LIMIT,
	 .doc = "how long a browser may keep the answer to a preflight; off: as long as it likes, mostly 5 seconds"},

	{CONF_BASIC_AUTH, "file", CONF_T_FILE, AT(conf_basic_auth, file), .required = true,
	 .doc = "users and the hashes of their passwords, as htpasswd writes it; a relative path begins where the configuration is"},
	{CONF_BASIC_AUTH, "realm", CONF_T_VALUE, AT(conf_basic_auth, realm), .fallback = "restricted",
	 .doc = "what a browser shows when it asks for the password"},
	{CONF_BASIC_AUTH, "user_header", CONF_T_HEADER, AT(conf_basic_auth, user_header), .fallback = "off",
	 .doc = "a field in which endpoints see the user's name, and nothing that a client wrote"},
	{CONF_BASIC_AUTH, "forward", CONF_T_BOOL, AT(conf_basic_auth, forward), .fallback = "off",
	 .doc = "endpoints see Authorization, and in it the password"},
	{CONF_COMPRESS, "encodings", CONF_T_CODINGS, .fallback = "all", .words = "zstd|br|gzip",
	 .doc = "in order of preference; all: zstd, br, gzip"},
	{CONF_COMPRESS, "types", CONF_T_TYPES, AT(conf_compress, types), .fallback = "common",
	 .doc = "which Content-Types; `common` may be one of several"},
	{CONF_COMPRESS, "min_size", CONF_T_SIZE, AT(conf_compress, min_size), .fallback = "1KiB", .min = 1, .max = 1024 * MIB,
	 .doc = "shorter answers are sent as they are"},
	{CONF_COMPRESS, "level", CONF_T_WORD, AT(conf_compress, level), .fallback = "fast", .words = "fast|balanced|small",
	 .doc = "processor time and memory against size"},

	{CONF_LISTEN_TLS, "certificates", CONF_T_CERTIFICATES, CONF_CERTIFICATE, AT(conf_listen_tls, certificates), .required = true,
	 .doc = "who we are: chosen by server name; the first is for names that none is for"},
	ALGORITHMS(CONF_LISTEN_TLS, conf_listen_tls)
	{CONF_LISTEN_TLS, "client_certificates", CONF_T_CLIENT_CERTIFICATES, CONF_CLIENT_CERTIFICATES, AT(conf_listen_tls, clients),
	 .fallback = "off", .words = "off", .doc = "clients are asked who they are"},
	{CONF_LISTEN_TLS, "tickets", CONF_T_TICKETS, CONF_TICKETS, .fallback = "on", .words = "on|off",
	 .doc = "whether clients can resume a session; on: with keys of this process alone, which change twice a day"},
	{CONF_LISTEN_TLS, "park", CONF_T_BOOL, AT(conf_listen_tls, park), .fallback = "on",
	 .doc = "keep a TLS 1.3 connection without OpenSSL's 14 KB for it"},

	{CONF_CERTIFICATE, "cert", CONF_T_TLS_FILE, AT(conf_certificate, cert), .required = true,
	 .doc = "PEM: the certificate, then those between it and an authority"},
	{CONF_CERTIFICATE, "key", CONF_T_TLS_FILE, AT(conf_certificate, key), .required = true,
	 .doc = "PEM: its private key (RSA, EC or Ed25519), without a passphrase"},

	{CONF_CLIENT_CERTIFICATES, "ca", CONF_T_TLS_FILE, AT(conf_client_certificates, ca), .required = true,
	 .doc = "PEM: the authorities that a client's certificate must be from"},
	{CONF_CLIENT_CERTIFICATES, "crl", CONF_T_TLS_FILE, AT(conf_client_certificates, crl),
	 .doc = "PEM: what they have revoked; then each of them needs a list in it"},
	{CONF_CLIENT_CERTIFICATES, "mode", CONF_T_WORD, AT(conf_client_certificates, mode), .fallback = "require",
	 .words = "require|optional", .doc = "whether a client without a certificate is refused; one with a wrong one always is"},

	{CONF_TICKETS, "key_file", CONF_T_TLS_FILE, AT(conf_listen_tls, ticket_key), .required = true,
	 .doc = "at least 32 random bytes: instances that have the same resume each other's sessions"},

	{CONF_SERVICE_TLS, "ca", CONF_T_TLS_FILE, AT(conf_service_tls, ca),
	 .doc = "PEM: the authorities that an endpoint's certificate must be from; without it: those that the system trusts"},
	{CONF_SERVICE_TLS, "crl", CONF_T_TLS_FILE, AT(conf_service_tls, crl),
	 .doc = "PEM: what they have revoked; then each of them needs a list in it"},
	{CONF_SERVICE_TLS, "name", CONF_T_TLS_NAME, AT(conf_service_tls, name),
	 .doc = "who an endpoint must be, and is asked for (SNI); without it: `host` of the service, if that is a name, or `localhost`"},
	{CONF_SERVICE_TLS, "insecure_skip_verify", CONF_T_BOOL, AT(conf_service_tls, insecure), .fallback = "off",
	 .doc = "take any certificate: whoever is in between can read and change everything"},
	{CONF_SERVICE_TLS, "cert", CONF_T_TLS_FILE, AT(conf_service_tls, cert),
	 .doc = "PEM: the certificate that we show, then those between it and an authority"},
	{CONF_SERVICE_TLS, "key", CONF_T_TLS_FILE, AT(conf_service_tls, key), .doc = "PEM: its private key, without a passphrase"},
	ALGORITHMS(CONF_SERVICE_TLS, conf_service_tls)
	{CONF_SERVICE_TLS, "park", CONF_T_BOOL, AT(conf_service_tls, park), .fallback = "on",
	 .doc = "keep a TLS 1.3 connection without OpenSSL's 14 KB for it"},

	{CONF_HSTS, "max_age", CONF_T_DURATION, AT(conf_hsts, max_age), .fallback = "365d", .max = 3650 * DAY,
	 .doc = "how long; 0s: no longer"},
	{CONF_HSTS, "include_subdomains", CONF_T_BOOL, AT(conf_hsts, include_subdomains), .fallback = "off",
	 .doc = "hosts below this one too"},
	{CONF_HSTS, "preload", CONF_T_BOOL, AT(conf_hsts, preload), .fallback = "off",
	 .doc = "browsers may have the host in their own lists; hard to take back"},
};

const struct conf_key *conf_keys(size_t *count)
{
	*count = sizeof keys / sizeof keys[0];
	return keys;
}

static const struct { const char *id, *name, *section; } nouns[CONF_NOUNS] = {
	[CONF_TOP] = {"file", "the file", "The file"},
	[CONF_LIMITS] = {"limits", "`limits`", "limits"},
	[CONF_TIMEOUTS] = {"timeouts", "`timeouts`", "timeouts"},
	[CONF_LOG] = {"log", "`log`", "log"},
	[CONF_DEFAULTS] = {"defaults", "`defaults`", "defaults"},
	[CONF_LISTEN] = {"listen", "a listener", "listen"},
	[CONF_SERVICE] = {"service", "a service", "services"},
	[CONF_ENDPOINT] = {"endpoint_map", "an endpoint", "endpoints"},
	[CONF_BALANCE] = {"balance", "`balance`", "balance"},
	[CONF_HASH] = {"hash", "`hash`", "hash"},
	[CONF_STICKY] = {"sticky", "`sticky`", "sticky"},
	[CONF_ROUTE] = {"route", "a route", "routes"},
	[CONF_MATCH] = {"match", "a match", "matches"},
	[CONF_PATH] = {"path", "a path", "path"},
	[CONF_PATTERN] = {"pattern", "a value to match", "values to match"},
	[CONF_REDIRECT] = {"redirect", "a redirect", "redirect"},
	[CONF_NEW_PATH] = {"new_path", "a new path", "path of a redirect"},
	[CONF_ANSWER] = {"answer", "an answer", "answer"},
	[CONF_HEADERS] = {"headers", "header changes", "headers"},
	[CONF_ROUTE_TIMEOUTS] = {"route_timeouts", "the `timeouts` of a route", "timeouts of a route"},
	[CONF_RATE_LIMIT] = {"rate_limit", "a rate limit", "rate_limit"},
	[CONF_AUTH] = {"auth", "`auth`", "auth"},
	[CONF_MIRROR] = {"mirror", "`mirror`", "mirror"},
	[CONF_RATE_BY] = {"rate_by", "`by`", "by header"},
	[CONF_BASIC_AUTH] = {"basic_auth", "`basic_auth`", "basic_auth"},
	[CONF_CORS] = {"cors", "`cors`", "cors"},
	[CONF_COMPRESS] = {"compress", "`compress`", "compress"},
	[CONF_DNS] = {"dns", "`dns`", "dns"},
	[CONF_DNS_NAME] = {"dns_name", "`dns` of a service", "dns of a service"},
	[CONF_LISTEN_TLS] = {"listen_tls", "`tls` of a listener", "tls of a listener"},
	[CONF_CERTIFICATE] = {"certificate", "a certificate", "certificates"},
	[CONF_CLIENT_CERTIFICATES] = {"client_certificates", "`client_certificates`", "client_certificates"},
	[CONF_TICKETS] = {"tickets", "`tickets`", "tickets"},
	[CONF_SERVICE_TLS] = {"service_tls", "`tls` of a service", "tls of a service"},
	[CONF_HSTS] = {"hsts", "`hsts`", "hsts"},
};

const char *conf_noun_id(enum conf_noun noun)
{
	return nouns[noun].id;
}

const char *conf_noun_name(enum conf_noun noun)
{
	return nouns[noun].name;
}

const char *conf_noun_section(enum conf_noun noun)
{
	return nouns[noun].section;
}

bool conf_key_in(const struct conf_key *key, enum conf_noun noun)
{
	return noun == CONF_DEFAULTS ? key->shared : key->noun == noun;
}
