/* Inside of proxy/tls*.c: what the TLS of the process is made of.  Parts name each other by number; TLS_NONE is nobody.
 * Everything but `now` of fronts and backs is the main thread's alone. */
#ifndef THIMBLE_PROXY_TLS_PARTS_H
#define THIMBLE_PROXY_TLS_PARTS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include "conf/conf.h"
#include "lib/base/arena.h"
#include "lib/net/tls_cert.h"
#include "lib/net/tls_client.h"
#include "lib/net/tls_server.h"
#include "lib/net/tls_ticket.h"
#include "lib/net/watch.h"
#include "proxy/tls.h"

#define TLS_NONE UINT32_MAX
#define TLS_FILE_MAX (4u << 20)	/* bytes of one */

struct tls_file {
	struct conf_text name;		/* and where the configuration has it first */
	uint64_t hash;			/* of what was read last; 0: nothing could be */
	int error;			/* errno then; 0: none */
	bool changed;			/* since the pass before */
	bool told;			/* that it cannot be read: once for each change */
	struct str text;		/* in a pass: what is in it, owned */
	uint32_t next;			/* of its bucket */
};

/* A file where it is named. */
struct tls_use {
	uint32_t file;
	struct conf_pos pos;
};

/* A certificate with its key. */
struct tls_pair {
	struct tls_use cert, key;
	const struct tls_cert *now;	/* owned reference; NULL: never was a good one */
	bool changed;			/* `now` is another since the pass before */
};

struct tls_algorithms {
	uint16_t min_version, max_version;
	struct conf_text ciphers, suites, groups;
};

/* Of a listener. */
struct tls_front {
	struct conf_pos pos;
	uint32_t *pairs;		/* in the arena */
	uint32_t n_pairs;
	struct tls_algorithms algorithms;
	struct tls_use ca, crl;
	uint8_t clients;		/* enum tls_client_certs */
	uint32_t tickets;
	bool park;
	bool http;			/* else any protocol */
	const struct tls_server *now;	/* owned reference, under the lock */
};

/* Towards endpoints. */
struct tls_back {
	struct conf_pos pos;
	struct tls_algorithms algorithms;
	struct tls_use ca, crl;
	uint32_t pair;
	bool insecure, park;
	const struct tls_client *now;	/* owned reference, under the lock */
};

/* What an endpoint's number stands for: number 1 is the first. */
struct tls_number {
	uint32_t back;
	struct str name;		/* empty: nobody is expected */
	uint32_t next;			/* of its bucket */
};

struct tls_key {
	struct tls_use file;		/* of a shared secret */
	struct tls_tickets *tickets;	/* owned */
};

/* An error that waits for others that stand before it. */
struct tls_said {
	struct tls_said *next;
	struct conf_pos pos;
	const char *text;
};

/* Owned arrays that grow. */
#define TLS_LIST(type) struct { type *at; uint32_t n, room; }
#define TLS_BUCKETS 256u

struct tls {
	pthread_mutex_t lock;		/* held for a pointer and its count */
	struct arena arena;		/* of texts */
	struct str folder;		/* with its slash; borrowed while parts are made */
	TLS_LIST(struct tls_file) files;
	TLS_LIST(struct tls_pair) pairs;
	TLS_LIST(struct tls_front) fronts;
	TLS_LIST(struct tls_back) backs;
	TLS_LIST(struct tls_number) numbers;
	TLS_LIST(struct tls_key) keys;
	uint32_t bucket[TLS_BUCKETS];	/* of files */
	uint32_t name_bucket[TLS_BUCKETS];	/* of numbers */
	uint32_t *of_listener;		/* owned: its front */
	uint32_t n_listeners;
	uint16_t *of_service;		/* owned: its number; 0: plain */
	uint32_t n_services;
	tls_say *say;
	void *say_ctx;
	uint32_t wrong;			/* errors so far */
	struct tls_said *said;		/* at the start, in the arena: in the order of the file */
	bool started;			/* they are told at once */
	bool no_memory;			/* is the reason of some */

	struct watch *watch;		/* owned; NULL: there is none, or not yet */
	bool news;			/* something may have changed, since: */
	uint32_t news_at, first_news_at;	/* ms: the last time, the first */
	uint32_t looked_at, turned_at;	/* ms: all files; tickets */
	int64_t told_day;		/* of expiry: days since 1970 */
	struct tls_counts counts;
};

/* --- tls_make.c --- */

/* The parts of `c`, nothing of them read.  ERR_MEM; ERR_SYNTAX: told. */
MUST_USE enum err tls_parts_make(struct tls *t, const struct conf *c);

/* --- tls_load.c --- */

/* Says what is wrong with something at `pos`. */
void tls_wrong(struct tls *t, struct conf_pos pos, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Reads all files, and makes again what is of those that have changed.  True: something was put in the place of another. */
bool tls_load(struct tls *t, int64_t now_s);

#endif
