/* Policies: what a route asks of a request and its answer beyond sending them on.
 *
 * Most routes have none.  A policy is a handful of parts, one a feature, each an object of its own
 * that its feature's file makes and knows; parts without state are shared by the routes that say
 * the same.  Neither a policy nor a part changes after it was made, but for what a part counts. */
#ifndef THIMBLE_DISPATCH_POLICY_H
#define THIMBLE_DISPATCH_POLICY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/base/err.h"

/* In the order in which a request meets them; the last three are about what happens after the gates. */
enum policy_id {
	POLICY_ADDRESSES,	/* allow, deny */
	POLICY_CORS,
	POLICY_RATE,
	POLICY_BASIC,		/* basic auth */
	POLICY_AUTH,		/* auth by a sub-request */
	POLICY_MIRROR,
	POLICY_ENCODE,		/* compression of answers */
	POLICY_RETRY,
	POLICY_N
};

struct policy_part;
struct service;

struct policy_kind {
	/* Whether both would do the same: then a new configuration keeps the old one, with what it has counted. */
	bool (*same)(const struct policy_part *a, const struct policy_part *b);
	void (*free)(struct policy_part *p);
	/* The services of its snapshot are there: takes references of those that it names.  Once or more, before it
	 * is used.  NULL: it names none. */
	void (*bind)(struct policy_part *p, struct service *const *services, size_t n);
};

/* The front of every part. */
struct policy_part {
	_Atomic uint32_t refs;
	const struct policy_kind *kind;
};

/* One reference, the maker's. */
static inline void policy_part_init(struct policy_part *p, const struct policy_kind *kind)
{
	atomic_init(&p->refs, 1);
	p->kind = kind;
}

struct policy_part *policy_part_ref(struct policy_part *p);
/* NULL is accepted.  Any thread. */
void policy_part_unref(struct policy_part *p);
/* NULL is the same as NULL alone. */
bool policy_part_same(const struct policy_part *a, const struct policy_part *b);

struct policy {
	_Atomic uint32_t refs;
	struct policy_part *part[POLICY_N];	/* owned references; NULL: not asked for */
};

/* A policy with one reference, of the parts in `part`, whose references move to it; NULL: no memory, and nothing moved. */
struct policy *policy_new(struct policy_part *const part[POLICY_N]) MUST_USE;
struct policy *policy_ref(struct policy *p);
/* NULL is accepted.  Any thread. */
void policy_unref(struct policy *p);
/* NULL is the same as NULL alone. */
bool policy_same(const struct policy *a, const struct policy *b);
/* Gives its parts the services of the snapshot that it is for; NULL is accepted. */
void policy_bind(struct policy *p, struct service *const *services, size_t n);

/* A service that a part names: by its number in the configuration until it is bound. */
struct policy_service {
	uint32_t index;
	struct service *service;	/* owned reference, once it is bound */
};

void policy_service_bind(struct policy_service *s, struct service *const *services, size_t n);
bool policy_service_same(const struct policy_service *a, const struct policy_service *b);
/* Gives the reference back. */
void policy_service_drop(struct policy_service *s);

#endif
