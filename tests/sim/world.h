/* A world: a configuration, one worker, and the network of net.h around it. */
#ifndef THIMBLE_SIM_WORLD_H
#define THIMBLE_SIM_WORLD_H

#include "proxy/server.h"
#include "proxy/settings.h"
#include "proxy/worker.h"
#include "tests/sim/net.h"
#include "tests/sim/oracle.h"

/* One story: straight-line code that plays clients and origins. */
struct story {
	const char *name, *conf;	/* conf: YAML, put before the default one's listen, NULL for that alone */
	void (*tell)(void);
};

extern const struct story stories[], stories_queue[], stories_retry[], stories_admit[], stories_call[], stories_ask[], stories_mirror[],
	stories_stream[], stories_compress[], stories_basic[], stories_again[], stories_slots[];	/* each ends with a NULL name */

struct world {
	struct server server;
	struct settings *settings;
	struct endpoint_table *endpoints;
	struct snapshot *snapshot;
	struct worker *w;
	int listener, listeners[4];	/* the first, and all: of the first alone what goes by is read as HTTP */
	bool lean;	/* memory fails: expectations do not count, only invariants do */
	bool no_looks;	/* passwords wait to be looked at until this is false again */
	size_t brief;	/* memory that fails from this allocation on comes back at the end of the turn */
	const char *story;
	uint64_t story_seed;
	const struct peer *about;	/* which peer a failure is about; NULL: all are shown */
};

extern struct world world;

#define CONF_PLAIN \
	"workers: 1\n" \
	"listen:\n" \
	"  - {address: 127.0.0.1:8080, forwarded: on}\n" \
	"log: {access: off}\n"
#define CONF_TIMES \
	"timeouts: {head: 2s, body: 3s, write: 4s, idle: 5s, connect: 1s, queue: 1s, first_byte: 6s, between_bytes: 7s,\n" \
	"           upstream_idle: 8s, tunnel: 9s, linger: 1s}\n"
#define CONF_ROUTES \
	"routes:\n" \
	"  - service: origin\n" \
	"  - {path: /local, answer: {status: 200, body: \"here\\n\"}}\n" \
	"  - {path: /away, redirect: {to: 'http://b.example{path}'}}\n" \
	"  - {path: /pair, service: pair}\n" \
	"  - {path: /named, service: named}\n" \
	"  - {path: /none, service: none}\n" \
	"  - {path: /small, service: origin, body_limit: 10B}\n"
#define CONF_SERVICES \
	"services:\n" \
	"  origin: 127.0.0.1:9001\n" \
	"  pair: {endpoints: [127.0.0.1:9001, 127.0.0.1:9002], balance: round_robin}\n" \
	"  named: {endpoints: [127.0.0.1:9003, 127.0.0.1:9004], host: endpoint, balance: round_robin}\n" \
	"  none: []\n"
#define CONF_DEFAULT CONF_PLAIN CONF_TIMES CONF_ROUTES CONF_SERVICES

/* Fails the story with its place, unless memory fails. */
#define EXPECT(cond) \
	do { \
		if (!(cond) && !world.lean) \
			world_failed(#cond, __FILE__, __LINE__); \
	} while (0)
_Noreturn void world_failed(const char *cond, const char *file, int line);

/* False when there was no memory. */
bool world_begin(const char *conf, uint64_t seed);
/* Drains the worker, lets the longest time-out pass, and CHECKs that nothing is left anywhere. */
void world_end(void);
/* Turns until nothing happens any more. */
void world_settle(void);
/* Lets time pass, a time-out at a time. */
void world_sleep(unsigned ms);

/* A client that has come, and was accepted. */
struct peer *world_client(void);
/* The same at another listener. */
struct peer *world_client_at(unsigned listener);
/* Sends, and settles. */
void world_say(struct peer *p, const char *text);
/* The i-th connect of the worker. */
struct peer *world_up(unsigned i);

/* How the i-th final answer that a client got reads: 0 when there is none. */
unsigned world_status(const struct peer *client, unsigned i);
/* That answer; message_free is due.  `method` is what was asked. */
void world_answer(const struct peer *client, unsigned i, struct str method, struct message *m);
/* Whole requests that an upstream connection got. */
unsigned world_requests(const struct peer *upstream);
/* What was written holds `text`. */
bool world_got(const struct peer *p, const char *text);
uint64_t world_count_cause(enum cause cause);

#endif
