/* Names, asked for at name servers (by c-ares) and in /etc/hosts: never from a worker, never waiting.
 *
 * Nothing is made before the first question: no channel, no socket, no file is read. */
#ifndef THIMBLE_NET_RESOLVER_H
#define THIMBLE_NET_RESOLVER_H

#include <stdbool.h>
#include <stdint.h>
#include "lib/base/answer.h"
#include "lib/base/err.h"
#include "lib/base/str.h"

struct loop;
struct look;
struct resolver;

#define RESOLVER_NAME_MAX 253	/* bytes of a name, without a dot at its end */
#define RESOLVER_FLIGHT 64	/* looks under way; more are refused */
#define RESOLVER_SEARCH_MAX 16	/* search domains */
#define RESOLVER_ALIASES 16	/* CNAMEs in one answer; beyond: ANSWER_FAILED */

struct resolver_config {		/* borrowed by resolver_new, which copies all */
	const char *servers;		/* "127.0.0.1:53,[::1]:5353"; NULL: those of resolv_conf */
	const char *const *search;	/* domains; n_search is -1: those of resolv_conf */
	int n_search, ndots;		/* ndots -1: as resolv_conf has it */
	uint32_t timeout_ms, attempts;	/* for one server's answer, and how often each is asked; the time doubles then */
	const char *hosts;		/* "/etc/hosts"; NULL: none */
	const char *resolv_conf;	/* "/etc/resolv.conf" */
};

struct resolver_counts {
	uint64_t asked;		/* questions sent to name servers (not how often) */
	uint64_t failed;	/* of them: no answer, or no usable one */
};

/* `ptr` is what the loop will say it with (loop_watch).  NULL: no memory. */
struct resolver *resolver_new(const struct resolver_config *c, struct loop *loop, void *ptr) MUST_USE;
/* Nobody hears of what was under way.  NULL is accepted. */
void resolver_free(struct resolver *r);

/* `a` is moved to the callee.  Never from inside resolver_ask. */
typedef void resolver_done(void *ctx, struct answer *a);

/* Looks for `name`, which may end with a dot (then it is no beginning of one): addresses (ANSWER_IP4, ANSWER_IP6 or both)
 * first in the hosts file, then with the search domains, in the order of resolv.conf(5); or ANSWER_SRV.  At the first of these
 * names that has a record it ends, and at one that nothing is known of: another might be somebody else.  NULL: there
 * are RESOLVER_FLIGHT already, or no memory. */
struct look *resolver_ask(struct resolver *r, struct str name, unsigned types, resolver_done *done, void *ctx, uint64_t now_ms) MUST_USE;
/* `done` is not to be called. */
void resolver_forget(struct look *l);
/* There may be another. */
bool resolver_has_room(const struct resolver *r);

/* The loop had an event for `ptr`. */
void resolver_event(struct resolver *r);
/* What is due; calls `done`.  In how many ms something may be; -1: not by itself. */
int64_t resolver_tend(struct resolver *r, uint64_t now_ms);

struct resolver_counts resolver_counts(const struct resolver *r);

/* --- inside, and for tests --- */

struct resolver_search {
	char **domains;
	unsigned n, ndots;
};

/* The `i`-th name (from 0) that `name` may mean, into `out`; its length, 0 when there are no more.  Those that would be too long are
 * left out. */
size_t resolver_candidate(const struct resolver_search *s, struct str name, unsigned *i, char out[RESOLVER_NAME_MAX + 2]);

/* What `n` bytes of a whole, successful answer say for one type, which is a bit of ANSWER_*: moved to the caller.  `why` (static) is
 * left alone unless that is ANSWER_FAILED. */
struct answer_part resolver_read(const uint8_t *p, size_t n, unsigned type, const char **why);

#endif
