/* identity: see identity.h.  A small table by hash in each worker; it is gone with the last of them. */
#include "proxy/identity.h"

#include "lib/base/check.h"
#include "lib/base/hash.h"
#include "lib/base/mem.h"

#define BUCKETS_FIRST 16u

static uint32_t hash_of(const struct tls_group *group)
{
	uintptr_t key = (uintptr_t)group;

	return (uint32_t)hash_str((struct str){ (const char *)&key, sizeof key });
}

static void link_in(struct identities *all, struct identity *who)
{
	struct identity **at = &all->bucket[who->hash & (all->buckets - 1)];

	who->next = *at;
	*at = who;
}

/* Room for one more; without memory for that the chains grow. */
static enum err grow(struct identities *all)
{
	uint32_t n = all->buckets ? all->buckets * 2 : BUCKETS_FIRST;
	struct identities bigger;

	if (all->n < all->buckets)
		return OK;
	bigger = (struct identities){ .bucket = mem_zalloc(n * sizeof(struct identity *)), .buckets = n, .n = all->n };
	if (!bigger.bucket)
		return all->buckets ? OK : ERR_MEM;
	for (uint32_t i = 0; i < all->buckets; i++)
		for (struct identity *who = all->bucket[i], *next; who; who = next) {
			next = who->next;
			link_in(&bigger, who);
		}
	mem_free(all->bucket);
	*all = bigger;
	return OK;
}

struct identity *identity_get(struct identities *all, const struct tls_server *server, const struct tls_group *group)
{
	uint32_t hash = hash_of(group);
	struct identity *who = all->buckets ? all->bucket[hash & (all->buckets - 1)] : NULL;

	while (who && who->group != group)
		who = who->next;
	if (who) {
		who->refs++;
		tls_server_unref(server);
		return who;
	}
	who = grow(all) == OK ? mem_zalloc(sizeof *who) : NULL;
	if (!who) {
		tls_server_unref(server);
		return NULL;
	}
	*who = (struct identity){ .refs = 1, .hash = hash, .server = server, .group = group };
	link_in(all, who);
	all->n++;
	return who;
}

void identity_put(struct identities *all, struct identity *who)
{
	struct identity **at;

	if (!who || --who->refs)
		return;
	at = &all->bucket[who->hash & (all->buckets - 1)];
	while (*at != who)
		at = &(*at)->next;
	*at = who->next;
	tls_server_unref(who->server);
	mem_free(who);
	if (--all->n)
		return;
	mem_free(all->bucket);
	*all = (struct identities){0};
}

struct identity *identity_of(struct conn *c)
{
	union tls_state *s = conn_tls(c);

	switch (c->t.type) {
	case TRANSPORT_TLS:
		return (struct identity *)(uintptr_t)s->live->who;
	case TRANSPORT_TLS13:
		return (struct identity *)(uintptr_t)s->parked->who;
	default:
		return NULL;
	}
}
