/* Inside names*.c: names, and the services that are made of them. */
#ifndef THIMBLE_PROXY_NAMES_PARTS_H
#define THIMBLE_PROXY_NAMES_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include "dispatch/service.h"
#include "health/name.h"
#include "lib/net/resolver.h"
#include "proxy/names.h"

struct name;
struct recipe;

/* One that uses a name: an item of a recipe, or an SRV record of another name. */
struct use {
	struct name *name;		/* that has a place in its list; NULL: none */
	struct use *before, *next;	/* of name->uses */
	struct recipe *recipe;		/* borrowed; NULL: */
	struct name *srv;		/* borrowed */
};

struct name {
	struct names *names;		/* borrowed */
	struct name *chain;		/* of its bucket */
	struct use *uses;		/* without any it is freed */
	struct look *look;		/* lent: it is being asked for */
	struct name_state state;
	struct answer_part have[2];
	struct use *targets;		/* owned: of an SRV name, one for each record in have[0] */
	uint32_t heap_at;		/* its place there, when it is not being asked for */
	uint32_t n;
	uint64_t due;
	uint8_t types;			/* ANSWER_* */
	bool srv;
	bool said_unusable, said_left_out;
	char text[];			/* in lower case, perhaps with a dot at its end; ends with NUL */
};

struct item {
	struct endpoint *endpoint;	/* owned reference; NULL: */
	struct use use;
	uint16_t port;			/* of addresses */
	uint16_t weight;
	uint8_t state;			/* enum endpoint_state */
	uint8_t families;		/* ANSWER_IP4, ANSWER_IP6 */
};

/* What a service consists of, as its configuration has it. */
struct recipe {
	struct service *service;	/* owned reference */
	struct recipe *next_dirty;
	bool dirty;
	uint16_t tls;			/* of its endpoints */
	uint32_t n;
	struct item item[];
};

struct names {
	struct server *server;		/* borrowed; NULL before names_start */
	struct endpoint_table *endpoints;	/* borrowed */
	struct resolver_config config;	/* owned texts, until names_start */
	char *texts;			/* owned: they lie there */
	struct resolver *resolver;	/* owned */
	struct name_policy policy;
	struct name **bucket;		/* owned, a power of two */
	uint32_t n_buckets, n_names;
	struct name **heap;		/* owned: those that are not being asked for; what is due first is first */
	uint32_t n_heap, room;
	struct recipe **recipes;	/* owned */
	uint32_t n_recipes;
	struct recipe *dirty;
	uint64_t retry;			/* when those that there was no memory for are tried again; 0: there are none */
	uint64_t random;
	uint64_t now_ms;		/* of this pass */
	uint64_t changes;
	uint64_t lines_ms;		/* when there was room for another line of the error log */
	uint32_t lines, lines_out;	/* lines that there is room for; that were left out since the last one */
};

/* Whether a line may be told now: NAMES_LINES at once, and NAMES_LINES_S a second.  One that may not is counted. */
#define NAMES_LINES 100
#define NAMES_LINES_S 10
bool names_may_tell(struct names *n);

/* --- names_table.c --- */

/* The name of that text and kind, for `u`, which is of no name yet; asked for at once when it is new, and anew when types are
 * asked for that it did not have.  ERR_MEM: `u` is as it was. */
MUST_USE enum err name_use(struct names *n, struct str text, bool srv, uint8_t types, struct use *u);
/* `u` is of no name afterwards; the name goes with the last of its uses. */
void name_unuse(struct use *u);
void names_table_fini(struct names *n);

/* In the heap, by its due time. */
void name_plan(struct name *name);
/* The first, taken out. */
struct name *names_next(struct names *n);

/* --- names_recipe.c --- */

/* Makes its service what it is by what is known now, if that is another set.  ERR_MEM: later. */
MUST_USE enum err recipe_publish(struct names *n, struct recipe *r);
void recipe_free(struct recipe *r);

#endif
