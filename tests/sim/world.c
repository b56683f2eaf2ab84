/* world: see world.h.
 *
 * world_end is where the invariants are that hold after every story, whatever happened in it: the
 * worker ends by itself, its slabs, pools and queues are empty (worker_free and slab_fini CHECK it),
 * not a byte of the budget is used, no descriptor is open or counted, every exchange
 * wrote its access record. */
#include "tests/sim/world.h"

#include <stdio.h>
#include <stdlib.h>

#include "conf/conf.h"
#include "dispatch/rate.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "proxy/hasher.h"
#include "proxy/heap.h"
#include "proxy/lot.h"
#include "proxy/pool.h"
#include "proxy/slots.h"

#define PORT_STREAMS 9100	/* endpoints from here on get no bare HTTP */
#define TURNS_MAX 200000	/* a worker that does not come to rest in so many spins */

struct world world;

/* Of the main thread, which a world has not: workers only wake it. */
static const struct loop_events main_loop;

_Noreturn void world_failed(const char *cond, const char *file, int line)
{
	fprintf(stderr, "%s:%d: story %s, seed %llu: expected %s\n", file, line, world.story,
		(unsigned long long)world.story_seed, cond);
	for (unsigned i = 0; i < net.n_peers && i < 40; i++) {
		const struct peer *p = net.peers[i];

		if (world.about && world.about != p)
			continue;
		fprintf(stderr, "--- %s %u: sent %zu bytes, %zu read%s%s; got %zu%s%s%s\n%.*s\n", p->client ? "client" : "origin",
			p->port, p->in.n, p->in_read, p->fin ? ", fin" : "", p->rst ? ", rst" : "", p->got.n,
			p->shut ? ", shut" : "", p->closed ? ", closed" : "", p->reset ? " by reset" : "",
			(int)(p->got.n < 3000 ? p->got.n : 3000), p->got.p ? p->got.p : "");
	}
	abort();
}

static bool load(const char *text)
{
	static struct conf_errors errors;	/* too large for a stack of many frames */
	struct snapshot_error err = {0};
	struct conf *c;

	conf_errors_init(&errors);
	c = conf_parse("sim", str_of(text), NULL, &errors);
	if (!c) {
		if (!errors.no_memory)
			conf_errors_print(&errors, stderr);
		CHECK(errors.no_memory);
		conf_errors_fini(&errors);
		return false;
	}
	conf_errors_fini(&errors);
	world.settings = settings_new(c);
	world.endpoints = endpoint_table_new();
	if (world.settings)
		world.server.rates = rate_table_new(world.settings->rate_memory);
	if (world.settings && world.endpoints && world.server.rates)
		world.snapshot = settings_snapshot(c, NULL, NULL, world.endpoints, &err);
	conf_free(c);
	if (world.snapshot && world.settings->hasher_threads)
		world.server.hasher = hasher_new(0, &world.server.budget);
	return world.snapshot && (world.server.hasher || !world.settings->hasher_threads);
}

static void unload(void)
{
	hasher_free(world.server.hasher);
	lot_free(world.server.lot);
	snapshot_unref(world.snapshot);
	endpoint_table_free(world.endpoints);
	settings_free(world.settings);
	rate_table_free(world.server.rates);
	loop_free(world.server.loop);
	heap_free(world.server.heap);
	world.snapshot = NULL;
	world.endpoints = NULL;
	world.settings = NULL;
	world.server.rates = NULL;
	world.server.loop = NULL;
	world.server.hasher = NULL;
	world.server.lot = NULL;
	world.server.heap = NULL;
}

static bool listen_all(void)
{
	for (unsigned i = 0; i < world.settings->n_listeners; i++) {
		world.listeners[i] = net_listener();
		if (worker_listen(world.w, i, world.listeners[i]) != OK)
			return false;
	}
	world.listener = world.listeners[0];
	return true;
}

bool world_begin(const char *conf, uint64_t seed)
{
	const char *story = world.story;
	bool lean = world.lean;

	world = (struct world){ .story = story, .story_seed = seed, .lean = lean };
	net_begin(seed);
	budget_root_init(&world.server.budget, 0);
	world.server.loop = loop_new(&main_loop, NULL);
	world.server.lot = lot_new(1, slots_tell, &world.server);
	world.server.workers = &world.w;
	world.server.n_workers = 1;
	world.server.heap = heap_new(1);
	if (world.server.loop && world.server.lot && world.server.heap && load(conf ? conf : CONF_DEFAULT)) {
		world.w = worker_new(&world.server, world.settings, world.snapshot, 0);
		if (world.w) {
			world.w->balance.random = 0;	/* every run makes the same choices */
			if (listen_all())
				return true;
			worker_free(world.w);
		}
	}
	unload();
	net_end();
	return false;
}

/* True when the turn had nothing to do. */
static bool turn(void)
{
	unsigned long before = net.delivered + net.calls;

	worker_turn(world.w);
	CHECK(world.w->vec.n == 0);
	if (world.brief && mem_fail_count() >= world.brief) {
		mem_fail_from(0);
		world.brief = 0;
	}
	return net.delivered + net.calls == before && !world.w->n_ready && !world.w->dirty && !world.w->look;
}

void world_settle(void)
{
	unsigned turns = 0;

	do {
		while (!turn())
			CHECK(++turns < TURNS_MAX);
	} while (!world.no_looks && world.server.hasher && hasher_step(world.server.hasher, net.now_us / 1000));
	turn();
}

void world_sleep(unsigned ms)
{
	uint64_t until = net.now_us + (uint64_t)ms * 1000;
	unsigned turns = 0;

	for (;;) {
		world_settle();
		turn();		/* its poll is asked to wait for what is due now */
		if (net.wait_ms < 0 || net.now_us + (uint64_t)net.wait_ms * 1000 > until)
			break;
		CHECK(++turns < TURNS_MAX);
		net.now_us += (uint64_t)net.wait_ms * 1000;
	}
	net.now_us = until;
	world_settle();
}

static void check_drained(void)
{
	struct worker *w = world.w;

	CHECK(worker_open(w) == 0);
	CHECK(w->exchanges.live == 0 && w->conns.live == 0 && w->upstreams.live == 0 && w->peers_v6.live == 0);
	CHECK(w->streams_slab.live == 0 && !w->streams && !w->streams_done);
	CHECK(w->calls.slab.live == 0 && !w->calls.all && !w->calls.due);
	CHECK(!w->done && !w->dead && !w->dirty);
	for (uint32_t i = 0; i < w->n_pools; i++)
		CHECK(!w->pools[i] || (!w->pools[i]->conns && !slotq_len(&w->pools[i]->waiting)));
	CHECK(w->server->fds == 0 && w->server->clients == 0);
	CHECK(net.n_records == w->counters.requests + w->counters.streams);
}

static void skip(struct str *in, size_t n)
{
	if (!n)
		return;		/* it may be no bytes at no place */
	in->p += n;
	in->n -= n;
}

/* What a client got is what its exchanges logged: in this order, each framed so that it can be told from the
 * next, and only the last of them not whole. */
static void check_answers(const struct peer *client)
{
	struct str in = peer_got(client);
	struct message m = {0};
	bool whole = true;

	world.about = client;
	for (unsigned i = 0; i < net.n_records; i++) {
		const struct record *r = &net.records[i];

		if (r->port != client->port || r->status == 0)
			continue;
		do {
			message_answer(&m, in, r->head ? STR("HEAD") : STR("GET"), !client->reset);
			message_free(&m);
			if (m.state == MESSAGE_BAD)
				world_failed(m.why, __FILE__, __LINE__);
			skip(&in, m.used);
			whole = m.state == MESSAGE_WHOLE;
		} while (whole && m.status < 200 && m.status != 101);
		if (m.state <= MESSAGE_HEAD)
			return;		/* it did not take more */
		if (m.status != r->status)
			world_failed("the status that was logged", __FILE__, __LINE__);
		if (m.status == 101)
			return;
		if (!whole)
			break;
	}
	if (whole && in.n && memcmp(in.p, "HTTP/1.1 1", in.n < 10 ? in.n : 10) != 0)
		world_failed("no bytes behind the last answer", __FILE__, __LINE__);
}

/* What an origin got are requests that it cannot misread, up to one that asked for a tunnel. */
static void check_requests(const struct peer *origin)
{
	struct str in = peer_got(origin);
	struct message m;
	unsigned upgrade;

	world.about = origin;
	do {
		message_request(&m, in);
		message_free(&m);
		if (m.state == MESSAGE_BAD)
			world_failed(m.why, __FILE__, __LINE__);
		skip(&in, m.used);
		message_field(&m, STR("Upgrade"), &upgrade);
	} while (m.state == MESSAGE_WHOLE && !upgrade);
}

void world_end(void)
{
	mem_fail_from(0);
	net.meddle = NULL;
	net.no_accept = net.no_watch = false;
	world.no_looks = false;
	worker_tell(world.w, WORKER_DRAIN);
	world_settle();
	for (int i = 0; i < 100 && worker_open(world.w); i++)
		world_sleep(10000);
	check_drained();
	for (unsigned i = 0; i < net.n_peers; i++) {
		const struct peer *p = net.peers[i];

		if (p->client ? p->listener == world.listener : p->port < PORT_STREAMS)
			(p->client ? check_answers : check_requests)(p);
	}
	hasher_free(world.server.hasher);
	world.server.hasher = NULL;
	worker_free(world.w);
	CHECK(world.server.budget.taken == 0);
	unload();
	net_end();
}

struct peer *world_client(void)
{
	struct peer *p = peer_connect(world.listener);

	world_settle();
	return p;
}

struct peer *world_client_at(unsigned listener)
{
	struct peer *p = peer_connect(world.listeners[listener]);

	world_settle();
	return p;
}

void world_say(struct peer *p, const char *text)
{
	peer_send(p, str_of(text));
	world_settle();
}

struct peer *world_up(unsigned i)
{
	return net_upstream(i);
}

void world_answer(const struct peer *client, unsigned i, struct str method, struct message *m)
{
	struct str in = peer_got(client);
	bool ended = client && (client->shut || client->closed) && !client->reset;

	for (;;) {
		message_answer(m, in, method, ended);
		if (m->state == MESSAGE_BAD)
			world_failed(m->why, __FILE__, __LINE__);
		if (m->state <= MESSAGE_HEAD)
			return;
		if (m->status >= 200 && i-- == 0)
			return;
		if (m->state != MESSAGE_WHOLE) {
			message_free(m);
			*m = (struct message){0};
			return;
		}
		in.p += m->used;
		in.n -= m->used;
		message_free(m);
	}
}

unsigned world_status(const struct peer *client, unsigned i)
{
	struct message m;

	world_answer(client, i, STR("GET"), &m);
	message_free(&m);
	return m.state >= MESSAGE_PART ? m.status : 0;
}

unsigned world_requests(const struct peer *upstream)
{
	struct str in = peer_got(upstream);
	struct message m;
	unsigned n = 0;

	for (;;) {
		message_request(&m, in);
		if (m.state == MESSAGE_BAD)
			world_failed(m.why, __FILE__, __LINE__);
		message_free(&m);
		if (m.state != MESSAGE_WHOLE)
			return n;
		n++;
		in.p += m.used;
		in.n -= m.used;
	}
}

bool world_got(const struct peer *p, const char *text)
{
	struct str s = peer_got(p);

	return s.n && memmem(s.p, s.n, text, strlen(text));
}

uint64_t world_count_cause(enum cause cause)
{
	return world.w->counters.cause[cause];
}
