/* Endpoints: one address of a service each.  The identity of an endpoint is its
 * address, with what is spoken there; services and generations that name the same address share one object,
 * so that what is known about it (the verdict, pools under its index) survives a
 * reload.  Reference-counted; the table holds no reference. */
#ifndef THIMBLE_DISPATCH_ENDPOINT_H
#define THIMBLE_DISPATCH_ENDPOINT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/base/err.h"
#include "lib/base/str.h"

#define ENDPOINT_PATH_MAX 107	/* bytes of a Unix socket's path, without the NUL */

enum endpoint_family { ENDPOINT_UNIX = 0, ENDPOINT_IP4 = 4, ENDPOINT_IP6 = 6 };

struct endpoint_address {
	uint8_t family;		/* enum endpoint_family */
	uint16_t port;		/* host byte order; 0 for Unix */
	uint8_t ip[16];		/* network byte order; the first 4 for IPv4 */
	const char *path;	/* borrowed, ends with NUL; NULL unless Unix */
	uint16_t tls;		/* 0: plain; else which TLS is spoken there, a number that is the caller's */
	uint16_t health;	/* 0: the usual; else by which rules its health is judged, a number as `tls` is */
};

/* The verdict word: written by health alone, read by everybody. */
#define VERDICT_FAILURES 0x0000ffffu	/* consecutive failures to connect */
#define VERDICT_AVOID 0x80000000u	/* a connect has just failed */
#define VERDICT_EJECTED 0x40000000u	/* too many requests failed */
#define VERDICT_UNWELL 0x20000000u	/* its checks fail */
#define VERDICT_WATCHED 0x10000000u	/* what goes well there is news, too */
#define VERDICT_DOWN 0xe0000000u	/* any of them: not to be chosen while another is up */

struct endpoint_table;

struct endpoint {
	_Atomic uint32_t refs;
	_Atomic uint32_t verdict;	/* VERDICT_...; 0 when new */
	_Atomic uint32_t inflight;	/* slot.h: requests that hold a slot of it, where somebody counts them, and its marks */
	_Atomic uint32_t conns;		/* connections to it, of all workers, those under way too */
	_Atomic uint32_t idle;		/* idle.h: how long it keeps connections */
	uint32_t index;			/* small and unique among those alive; used again after the last unref */
	uint16_t port, tls, health;
	_Atomic uint16_t sets;		/* sets of services that it is in now; UINT16_MAX: so many, and for ever */
	uint8_t family;
	uint8_t table;			/* which one has it */
	uint8_t address[];		/* 4 or 16 bytes in network order, or a path that ends with NUL */
};

/* A table for the process: made once, outlives every endpoint and service.
 * NULL when there is no memory, or ENDPOINT_TABLES_MAX are there.  It may be used from any thread. */
#define ENDPOINT_TABLES_MAX 8
struct endpoint_table *endpoint_table_new(void) MUST_USE;
/* CHECKs that no endpoint and no service is alive; NULL is accepted. */
void endpoint_table_free(struct endpoint_table *t);
/* Endpoints alive, and a bound that every index is below. */
uint32_t endpoint_table_live(struct endpoint_table *t);
uint32_t endpoint_table_bound(struct endpoint_table *t);

/* The endpoint of that address, new or shared, with one more reference (owned by
 * the caller); NULL when there is no memory.  The address must be valid. */
struct endpoint *endpoint_get(struct endpoint_table *t, const struct endpoint_address *a) MUST_USE;
/* Whether it can be an address: a port, or an absolute path (or '@name') that fits. */
bool endpoint_address_valid(const struct endpoint_address *a);

struct endpoint *endpoint_ref(struct endpoint *e);
/* NULL is accepted.  Any thread. */
void endpoint_unref(struct endpoint *e);
/* The caller's reference is the only one. */
static inline bool endpoint_alone(const struct endpoint *e)
{
	return atomic_load_explicit(&e->refs, memory_order_acquire) == 1;
}

/* Its address; path is borrowed from `e`. */
struct endpoint_address endpoint_address_of(const struct endpoint *e);
bool endpoint_is(const struct endpoint *e, const struct endpoint_address *a);

/* The text of its address alone, "10.0.0.1:80", "[::1]:80", "unix:/run/x": in `text`, with NUL behind it. */
#define ENDPOINT_TEXT_MAX (sizeof("unix:") + ENDPOINT_PATH_MAX)
struct str endpoint_text(const struct endpoint *e, char text[ENDPOINT_TEXT_MAX]);

/* A number that follows from the address and is the same in every process: for choices that several of them must
 * make alike.  Never 0; seldom the same for two. */
uint32_t endpoint_id(const struct endpoint *e);

static inline bool endpoint_up(const struct endpoint *e)
{
	return !(atomic_load_explicit(&e->verdict, memory_order_relaxed) & VERDICT_DOWN);
}

/* Whether any service has it now; else connections to it are of no more use. */
static inline bool endpoint_used(const struct endpoint *e)
{
	return atomic_load_explicit(&e->sets, memory_order_relaxed);
}

/* Endpoints that one exchange has tried; all zero is none.  It remembers the last few. */
#define ENDPOINT_TRIED_MAX 7

struct endpoint_tried {
	uint32_t n;				/* how often one was added */
	uint32_t index[ENDPOINT_TRIED_MAX];	/* of the endpoints, a ring */
};

void endpoint_tried_add(struct endpoint_tried *t, const struct endpoint *e);
bool endpoint_tried_has(const struct endpoint_tried *t, const struct endpoint *e);

#endif
