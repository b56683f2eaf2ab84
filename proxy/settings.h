/* What the configuration says about everything but routes and services, in the
 * form that workers use.  Read-only once made; shared by all threads. */
#ifndef THIMBLE_PROXY_SETTINGS_H
#define THIMBLE_PROXY_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "dispatch/networks.h"
#include "dispatch/snapshot.h"
#include "lib/base/arena.h"
#include "lib/http/codec.h"
#include "lib/net/socket.h"

struct conf;
struct conf_address;
struct health;
struct tls;

enum forwarded_for { FORWARDED_APPEND, FORWARDED_REPLACE, FORWARDED_OFF };
enum client_cert { CLIENT_CERT_OFF, CLIENT_CERT_SET, CLIENT_CERT_APPEND, CLIENT_CERT_PASS };
enum underscores { UNDERSCORES_DROP, UNDERSCORES_ALLOW, UNDERSCORES_REFUSE };

/* What comes before HTTP on the connections of a listener, or instead of it: bits, which a client's connection has in
 * transport.more until it is done with them. */
#define OPENING_TLS 0x08u	/* TLS, which ends here */
#define OPENING_PROXY 0x10u	/* a PROXY protocol header */
#define OPENING_MAY 0x20u	/* ... which may be missing */
#define OPENING_SNI 0x40u	/* TLS, which is passed on by its server name */
#define OPENING_TCP 0x80u	/* bytes, which are passed on */
#define OPENING_ANY 0xf8u

struct listener {
	struct socket_address address;
	struct str label;		/* as configured: for logs */
	struct networks *trusted;	/* owned: peers whose X-Forwarded-* and Forwarded are believed, and PROXY protocol headers; NULL: nobody */
	uint8_t x_forwarded;		/* enum forwarded_for */
	uint8_t underscores;		/* enum underscores */
	uint8_t client_cert;		/* enum client_cert: X-Forwarded-Client-Cert */
	uint8_t opening;		/* OPENING_*; 0: HTTP and nothing else */
	bool forwarded;			/* add Forwarded (RFC 7239) */
	bool park;			/* OPENING_TLS: connections may be parked */
	const struct route *redirect;	/* owned reference: for all requests; NULL: routes are */
	bool redirect_plain;		/* ... but for those that came by https, as a trusted peer says: they would come again for ever */
	struct str via[2];		/* our Via member for HTTP/1.0 and 1.1, "1.1 thimble"; empty: none */
	struct str request_id;		/* field name; empty: none */
	struct str *upgrade;		/* protocols that may be upgraded to, lower case */
	unsigned n_upgrade;
};

struct timeouts {	/* milliseconds; 0: none, where the configuration allows that */
	uint32_t head, handshake, body, write, idle, linger;
	uint32_t connect, queue, upstream_idle, drain, tunnel;
};

struct settings {
	struct arena arena;		/* owns what is pointed to from here */
	struct listener *listeners;
	unsigned n_listeners;
	unsigned workers;
	struct codec_limits request, answer;
	struct socket_limits socket;
	struct timeouts timeouts;
	uint32_t replay;	/* bytes of a request body kept for a retry */
	unsigned hasher_threads;	/* that look at passwords; 0: no route asks for any */
	size_t compress;		/* bytes of all encoders of a worker */
	uint32_t queue;		/* bytes of one dispatch queue */
	uint64_t waiting;	/* bytes of the requests that wait for one service, in a worker */
	size_t rate_memory;	/* bytes of all buckets of rate limits */
	uint32_t handshakes;	/* TLS handshakes under way in one worker; more wait */
	uint32_t calls;		/* requests of our own under way in one worker */
	uint32_t connections;	/* client connections in all; 0: as descriptors allow */
	uint64_t fds;		/* descriptors that clients and upstreams may use together */
	uint32_t checks;		/* descriptors for checks of endpoints, beside those */
	uint64_t fds_accept;	/* accept pauses when so many are in use: a reserve is left for upstreams */
};

/* Copies what is needed out of `c`; NULL when there is no memory. */
struct settings *settings_new(const struct conf *c) MUST_USE;
void settings_free(struct settings *s);

/* Whether a snapshot can be made of `c`, and its TLS: what conf cannot see, such as an expression that does not compile
 * or a certificate that cannot be read, is written to `to` with its place in the file, as `file:line:column: text`; so
 * is what is odd about certificates (tls_warnings_print).  `now`: unix time, seconds. */
bool settings_check(const struct conf *c, int64_t now, FILE *to);

/* The first snapshot of `c`, whose TLS is `tls` (tls_new), and whose endpoints are judged by `health` (may be NULL); NULL when refused, and *err says why, its text with the place in
 * the file. */
struct snapshot *settings_snapshot(const struct conf *c, const struct tls *tls, struct health *health,
				   struct endpoint_table *endpoints, struct snapshot_error *err) MUST_USE;

/* The address of an endpoint as dispatch has it; its path, if any, is borrowed from `a`, which is no name. */
struct endpoint_address settings_address(const struct conf_address *a, uint16_t tls);

#endif
