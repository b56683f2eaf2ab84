/* sign: see sign.h.
 *
 * A channel lies in its service, so a service must not be freed while its channel is in the reader's list.  A sign on its way
 * holds the service.  It lets go when its sender is done with the channel (`sent`), which was linked by then, and the
 * channel is found not linked: the reader has passed it since. */
#include "health/sign.h"

#include "health/verdict.h"
#include "lib/base/mem.h"

struct sign *sign_new(struct endpoint *e)
{
	struct sign *s = mem_zalloc(sizeof *s);

	if (!s)
		return NULL;
	atomic_init(&s->refs, 1);
	s->endpoint = endpoint_ref(e);
	return s;
}

void sign_put(struct sign *s)
{
	if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
		return;
	endpoint_unref(s->endpoint);
	mem_free(s);
}

static void send(struct sign *s, struct chan_reader *to, const struct service *service)
{
	struct service *of = (struct service *)(uintptr_t)service;

	if (!service || atomic_exchange_explicit(&s->going, true, memory_order_seq_cst))
		return;
	s->service = service_ref(of);
	atomic_store_explicit(&s->sent, false, memory_order_relaxed);
	atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
	if (chan_send(to, &of->health, &s->node, sizeof *s) == OK) {
		atomic_store_explicit(&s->sent, true, memory_order_release);
		return;
	}
	s->service = NULL;
	service_unref(of);	/* never the last: the caller has one */
	atomic_fetch_sub_explicit(&s->refs, 1, memory_order_relaxed);
	atomic_store_explicit(&s->going, false, memory_order_release);
}

void sign_good(struct sign *s, struct chan_reader *to, const struct service *service)
{
	atomic_store_explicit(&s->run, 0, memory_order_relaxed);
	atomic_fetch_add_explicit(&s->ok, 1, memory_order_seq_cst);
	send(s, to, service);
}

void sign_failed(struct sign *s, struct chan_reader *to, const struct service *service, uint8_t cause)
{
	atomic_store_explicit(&s->cause, cause, memory_order_relaxed);
	atomic_fetch_add_explicit(&s->run, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&s->failed, 1, memory_order_seq_cst);
	verdict_set(s->endpoint, VERDICT_WATCHED, true);
	send(s, to, service);
}

bool sign_settle(struct sign *s, struct sign_counts *counts, struct service **service)
{
	if (!atomic_load_explicit(&s->sent, memory_order_acquire) ||
	    atomic_load_explicit(&s->service->health.queued, memory_order_acquire))
		return false;
	*service = s->service;
	s->service = NULL;
	atomic_store_explicit(&s->going, false, memory_order_seq_cst);
	/* what fails from here on sends it again, what failed before is in the counts */
	*counts = (struct sign_counts){
		.failed = atomic_exchange_explicit(&s->failed, 0, memory_order_seq_cst),
		.ok = atomic_exchange_explicit(&s->ok, 0, memory_order_seq_cst),
		.run = atomic_load_explicit(&s->run, memory_order_relaxed),
		.cause = atomic_load_explicit(&s->cause, memory_order_relaxed),
	};
	return true;
}
