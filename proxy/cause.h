/* Why thimble answered by itself or ended a connection: one code each, the same in
 * the access log (`cause`) and, for upstream trouble, in Proxy-Status (RFC 9209). */
#ifndef THIMBLE_PROXY_CAUSE_H
#define THIMBLE_PROXY_CAUSE_H

#include "lib/base/str.h"
#include "lib/http/codec.h"

/* CAUSE(name, log token, status of our answer, Proxy-Status error or "", text)
 * Status 0: nothing is answered, the connection just ends. */
#define CAUSES(CAUSE) \
	CAUSE(NONE, "", 0, "", "") \
	/* the client's doing */ \
	CAUSE(CLIENT_LEFT, "client_left", 0, "", "the client left") \
	CAUSE(BAD_REQUEST, "bad_request", 400, "", "the request is not valid HTTP") \
	CAUSE(HEAD_TIMEOUT, "head_timeout", 408, "", "the request head did not arrive in time") \
	CAUSE(BODY_TIMEOUT, "body_timeout", 408, "", "the request body did not arrive in time") \
	CAUSE(BODY_CUT, "body_cut", 400, "", "the connection ended inside the request body") \
	CAUSE(BODY_LIMIT, "body_limit", 413, "", "the request body is larger than this route allows") \
	CAUSE(WRITE_TIMEOUT, "write_timeout", 0, "", "the client did not take the answer in time") \
	CAUSE(AMBIGUOUS_PATH, "ambiguous_path", 400, "", "the path is not in normal form, and this route rewrites it") \
	CAUSE(ODD_PATH, "odd_path", 400, "", "the path has dot segments, empty segments or an encoded slash") \
	CAUSE(PATH_REDIRECT, "path_redirect", 308, "", "the path has a normal form") \
	CAUSE(MISDIRECTED, "misdirected", 421, "", "the certificate of this connection is not for this host") \
	CAUSE(TLS_BROKEN, "tls_broken", 0, "", "the client broke a rule of TLS") \
	CAUSE(HANDSHAKE, "handshake_failed", 0, "", "the TLS handshake failed") \
	CAUSE(HANDSHAKE_TIMEOUT, "handshake_timeout", 0, "", "the TLS handshake did not end in time") \
	CAUSE(HANDSHAKE_SLOW, "handshake_slow", 0, "", "the TLS handshake kept others waiting for a second") \
	CAUSE(HANDSHAKES_FULL, "handshakes_full", 0, "", "too many connections wait for their TLS handshake") \
	CAUSE(UNDERSCORE, "underscore", 400, "", "a field name contains an underscore") \
	CAUSE(BASIC_REQUIRED, "basic_required", 401, "", "a user and a password are needed") \
	CAUSE(BASIC_FAILED, "basic_failed", 401, "", "user or password are wrong") \
	CAUSE(CORS_REFUSED, "cors_refused", 403, "", "pages of this origin may not use this route") \
	CAUSE(MAX_FORWARDS, "max_forwards", 200, "", "Max-Forwards is 0, so it is the proxy that answers") \
	CAUSE(TRACE_HERE, "trace_here", 501, "http_request_denied", "TRACE is not answered by the proxy itself") \
	CAUSE(ADDRESS_DENIED, "address_denied", 403, "", "this route is not open to this client") \
	CAUSE(RATE_LIMITED, "rate_limited", 429, "", "too many requests in too short a time") \
	CAUSE(PROXY_UNTRUSTED, "proxy_untrusted", 0, "", "it is not among the listener's trusted_proxies, and connections must begin with a PROXY protocol header") \
	CAUSE(PROXY_HEADER, "proxy_header", 0, "", "it did not begin with a valid PROXY protocol header") \
	CAUSE(UNKNOWN_NAME, "unknown_name", 0, "", "no service is for this server name") \
	CAUSE(BAD_HELLO, "bad_hello", 0, "", "the first TLS message is no valid ClientHello") \
	CAUSE(HELLO_SIZE, "hello_size", 0, "", "the ClientHello is larger than 16 KiB") \
	CAUSE(NOT_TLS, "not_tls", 0, "", "the connection does not begin with TLS") \
	CAUSE(PLAIN_HTTP, "plain_http", 400, "", "this port speaks TLS, and the request came without it") \
	/* routing */ \
	CAUSE(NO_ROUTE, "no_route", 404, "", "no route matches this host and path") \
	CAUSE(NO_SERVICE, "no_service", 500, "proxy_configuration_error", "the route has no valid service") \
	CAUSE(BAD_REWRITE, "bad_rewrite", 500, "proxy_configuration_error", "the route's rewrite gives no valid target") \
	CAUSE(NO_ENDPOINT, "no_endpoint", 503, "destination_unavailable", "the service has no endpoint that can serve") \
	CAUSE(UNRESOLVED, "unresolved", 503, "dns_error", "the names of the service's endpoints are not known to stand for any address") \
	CAUSE(QUEUE_FULL, "queue_full", 503, "connection_limit_reached", "too many requests wait for this service") \
	CAUSE(QUEUE_TIMEOUT, "queue_timeout", 503, "connection_limit_reached", "no endpoint had room for the request in time") \
	CAUSE(CALLS_FULL, "calls_full", 503, "connection_limit_reached", "the proxy asks too many services at once") \
	CAUSE(GATE_TIMEOUT, "gate_timeout", 504, "http_response_timeout", "what decides about this request did not answer in time") \
	CAUSE(AUTH_REFUSED, "auth_refused", 403, "", "the service that decides about this request refused it") \
	CAUSE(AUTH_UNREACHABLE, "auth_unreachable", 502, "destination_unavailable", "the service that decides about this request could not be reached") \
	CAUSE(AUTH_TIMEOUT, "auth_timeout", 504, "http_response_timeout", "the service that decides about this request did not answer in time") \
	CAUSE(AUTH_ERROR, "auth_error", 502, "proxy_internal_response", "the service that decides about this request failed") \
	CAUSE(AUTH_FAILED, "auth_failed", 502, "http_protocol_error", "the service that decides about this request gave no valid answer") \
	CAUSE(AUTH_ANSWER_SIZE, "auth_answer_size", 502, "http_response_body_size", "the answer of the service that decides about this request is too large") \
	/* the upstream's doing */ \
	CAUSE(CONNECT_REFUSED, "connect_refused", 502, "connection_refused", "the endpoint refused the connection") \
	CAUSE(CONNECT_TIMEOUT, "connect_timeout", 504, "connection_timeout", "the endpoint did not accept the connection in time") \
	CAUSE(CONNECT_FAILED, "connect_failed", 502, "destination_ip_unroutable", "the endpoint could not be reached") \
	CAUSE(TLS_FAILED, "tls_failed", 502, "tls_protocol_error", "the TLS handshake with the endpoint failed") \
	CAUSE(TLS_CERTIFICATE, "tls_certificate", 502, "tls_certificate_error", "the endpoint's certificate is not trusted") \
	CAUSE(UPSTREAM_TLS, "upstream_tls", 502, "tls_protocol_error", "the endpoint broke a rule of TLS") \
	CAUSE(UPSTREAM_ALERT, "upstream_alert", 502, "tls_alert_received", "the endpoint ended the connection with a TLS alert") \
	CAUSE(UPSTREAM_CLOSED, "upstream_closed", 502, "connection_terminated", "the endpoint closed the connection before it answered") \
	CAUSE(FIRST_BYTE_TIMEOUT, "first_byte_timeout", 504, "http_response_timeout", "the endpoint did not answer in time") \
	CAUSE(SEND_TIMEOUT, "send_timeout", 504, "connection_write_timeout", "the endpoint did not take the request in time") \
	CAUSE(BAD_ANSWER, "bad_answer", 502, "http_protocol_error", "the endpoint's answer is not valid HTTP") \
	CAUSE(ANSWER_HEAD_SIZE, "answer_head_size", 502, "http_response_header_section_size", "the head of the endpoint's answer is too large") \
	CAUSE(ANSWER_SIZE, "answer_size", 502, "http_response_body_size", "the answer is larger than the proxy reads of it") \
	CAUSE(BAD_UPGRADE, "bad_upgrade", 502, "http_upgrade_failed", "the endpoint switched protocols unasked") \
	CAUSE(ANSWER_CUT, "answer_cut", 0, "http_response_incomplete", "the endpoint's answer ended too early") \
	CAUSE(ANSWER_STALLED, "answer_stalled", 0, "http_response_timeout", "the endpoint stopped in the middle of its answer") \
	CAUSE(ANSWER_BROKEN, "answer_broken", 0, "http_protocol_error", "the body of the endpoint's answer is not valid HTTP") \
	CAUSE(UPSTREAM_RESET, "upstream_reset", 0, "", "the endpoint reset the connection") \
	CAUSE(TUNNEL_IDLE, "tunnel_idle", 0, "", "nothing went through the tunnel for too long") \
	/* ours */ \
	CAUSE(NO_MEMORY, "no_memory", 503, "proxy_internal_error", "the proxy is out of memory") \
	CAUSE(NO_DESCRIPTORS, "no_descriptors", 503, "proxy_internal_error", "the proxy is out of file descriptors") \
	CAUSE(BASIC_BUSY, "basic_busy", 503, "proxy_internal_error", "too many passwords wait to be looked at") \
	CAUSE(BASIC_ERROR, "basic_error", 500, "proxy_internal_error", "the password could not be looked at") \
	CAUSE(DRAINED, "drained", 0, "", "the proxy shut down")

enum cause {
#define CAUSE(name, token, status, error, text) CAUSE_##name,
	CAUSES(CAUSE)
#undef CAUSE
	CAUSE_N
};

struct cause_info {
	struct str token;	/* for logs and metrics */
	uint16_t status;	/* of our answer; 0: none */
	struct str error;	/* Proxy-Status error type; "" when the upstream is not to blame */
	struct str text;	/* one sentence for people */
};

extern const struct cause_info causes[CAUSE_N];

/* What a fault in an origin's answer is called, before and after its head was passed on. */
enum cause cause_of_answer_fault(enum codec_fault fault, bool head_passed);
/* What a failed connect is called. */
enum cause cause_of_connect(int error);
/* Why no connection was got has its reason here: another endpoint would not help. */
bool cause_is_ours(enum cause cause);

#endif
