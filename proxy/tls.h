/* The TLS of listeners and services, as the configuration asks for it: made when the process starts, made again when
 * the files that it is of change, and handed to workers whole.  When nothing uses TLS there is none, and OpenSSL is
 * never touched. */
#ifndef THIMBLE_PROXY_TLS_H
#define THIMBLE_PROXY_TLS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "conf/conf.h"
#include "dispatch/endpoint.h"
#include "lib/base/err.h"

struct loop;
struct server;
struct ssl_st;		/* OpenSSL's SSL */
struct tls;		/* all of it: struct server has it */
struct tls_resume;
struct tls_server;

/* --- for workers, from any thread --- */

/* What a listener with OPENING_TLS speaks now, with a reference (tls_server_unref), which is to be held as long as an
 * SSL object or a group of it is used. */
const struct tls_server *tls_of_listener(struct server *s, unsigned listener) MUST_USE;

/* Whether connections to `e` speak TLS. */
static inline bool tls_of_endpoint(const struct endpoint *e)
{
	return e->tls != 0;
}

/* An SSL object for a new connection to `e`, which has TLS, as tls_client_ssl of what its service speaks now, and with
 * the name that is expected of it.  When that has changed, what is in `resume` is of no use until it is forgotten. */
MUST_USE enum err tls_connect(struct server *s, const struct endpoint *e, struct tls_resume *resume, struct ssl_st **ssl);

/* Whether connections to `e`, which has TLS, may be parked. */
bool tls_endpoint_parks(const struct server *s, const struct endpoint *e);

/* --- for the main thread --- */

/* Something is wrong with what stands at `pos` of the configuration; `text` is a sentence. */
typedef void tls_say(void *ctx, struct conf_pos pos, const char *text);

/* Makes what `c` asks for: *to, moved to the caller, is NULL when that is nothing.  `now`: unix time, seconds.
 * ERR_SYNTAX: `say` was told all that is wrong with it, and with the files.  ERR_MEM.  Keeps nothing of `c`. */
MUST_USE enum err tls_new(const struct conf *c, int64_t now, tls_say *say, void *ctx, struct tls **to);
/* When no worker is left that uses it.  NULL is accepted. */
void tls_free(struct tls *t);

/* The number of endpoints of `s`, a service of the configuration that `t` (may be NULL) was made of; 0: plain. */
uint16_t tls_number(const struct tls *t, const struct conf_service *s);

/* From now on changes of the files are seen, with `loop`, and told in the error log; when the kernel does not tell of them, by
 * looking.  Says when certificates expire. */
void tls_watch(struct tls *t, struct loop *loop, uint32_t now_ms, int64_t now);
/* The loop had an event. */
void tls_event(struct tls *t, uint32_t now_ms);
/* What is due: files that changed, keys of tickets, expiry.  In how many ms something will be; -1: never (`t` is NULL). */
int64_t tls_tend(struct tls *t, uint32_t now_ms, int64_t now);

struct tls_counts {
	uint64_t reloads;	/* certificates and the like that were replaced by those of changed files */
	uint64_t refused;	/* and that were not, since these are wrong */
};

/* All zero when `t` is NULL. */
struct tls_counts tls_counts(const struct tls *t);

/* What is odd: certificates that expire soon or have, that are for no host of a route, and hosts that none is for; as
 * conf_warnings_print.  `c` is what `t` (may be NULL) was made of. */
size_t tls_warnings_print(const struct tls *t, const struct conf *c, int64_t now, FILE *to);

#endif
