/* grace: see grace.h.
 *
 * Rounds: what was replaced waits until the round that runs is over, then every worker gets a letter
 * (WORKER_PASS), which it answers when its next turn begins; the last to answer wakes the main thread. */
#include "proxy/grace.h"

#include <stdatomic.h>

#include "lib/base/mem.h"
#include "lib/net/loop.h"
#include "proxy/server.h"
#include "proxy/worker.h"

struct replaced {
	struct replaced *next;		/* owned */
	struct service *service;	/* owned reference: the set may lie in it */
	struct endpoint_set *set;	/* owned */
};

struct grace {
	struct server *server;		/* borrowed */
	struct worker **workers;	/* borrowed */
	unsigned n;
	_Atomic unsigned passed;	/* workers that answered in this round */
	struct replaced *waiting;	/* owned: for the next round */
	struct replaced *leaving;	/* owned: freed when this round is over; NULL: none runs */
};

struct grace *grace_new(struct server *server)
{
	struct grace *g = mem_zalloc(sizeof *g);

	if (g)
		g->server = server;
	return g;
}

void grace_workers(struct grace *g, struct worker **workers, unsigned n)
{
	g->workers = workers;
	g->n = n;
}

static void release(struct replaced *list)
{
	struct replaced *next;

	for (; list; list = next) {
		next = list->next;
		endpoint_set_free(list->set);
		service_unref(list->service);
		mem_free(list);
	}
}

void grace_free(struct grace *g)
{
	if (!g)
		return;
	release(g->waiting);
	release(g->leaving);
	mem_free(g);
}

static void round_begin(struct grace *g)
{
	g->leaving = g->waiting;
	g->waiting = NULL;
	atomic_store(&g->passed, 0);
	for (unsigned i = 0; i < g->n; i++)
		worker_tell(g->workers[i], WORKER_PASS);
}

enum err grace_publish(struct grace *g, struct service *s, struct endpoint_set *set)
{
	struct replaced *r = mem_alloc(sizeof *r);

	if (!r)
		return ERR_MEM;
	*r = (struct replaced){ g->waiting, service_ref(s), service_swap(s, set) };
	g->waiting = r;
	if (!g->leaving)
		round_begin(g);
	return OK;
}

void grace_tend(struct grace *g)
{
	if (!g->leaving || atomic_load(&g->passed) < g->n)
		return;
	release(g->leaving);
	g->leaving = NULL;
	if (g->waiting)
		round_begin(g);
}

void grace_passed(struct server *server)
{
	struct grace *g = server->grace;

	if (atomic_fetch_add(&g->passed, 1) + 1 == g->n)
		loop_wake(server->loop);
}
