/* identity: see identity.h.  A small table by hash in each worker; it is gone with the last of them.
 *
 * Whoever connects chooses the name and, among those it has, the certificate; so an identity may be all of one connection.  It has
 * a bound, that of the name (253 bytes) and of struct tls_shown. */
#include "proxy/identity.h"

#include "lib/base/check.h"
#include "lib/base/hash.h"
#include "lib/base/mem.h"

#define BUCKETS_FIRST 16u

/* What those that share one agree in. */
struct key {
	const struct tls_group *group;
	struct tls_facts facts;
	struct str name;
	const unsigned char *hash;	/* of the client's certificate; NULL: none */
};

static uint32_t hash_of(const struct key *k)
{
	struct {
		const void *group, *cipher;
		uint64_t name, version, resumed;
		unsigned char hash[TLS_SHOWN_HASH];
	} all = { k->group, k->facts.cipher.p, hash_str(k->name), k->facts.version, k->facts.resumed, {0} };

	if (k->hash)
		memcpy(all.hash, k->hash, sizeof all.hash);
	return (uint32_t)hash_str((struct str){ (const char *)&all, sizeof all });
}

static bool is(const struct identity *who, const struct key *k)
{
	return who->group == k->group && who->facts.version == k->facts.version && who->facts.resumed == k->facts.resumed &&
	       who->facts.cipher.p == k->facts.cipher.p && str_eq(identity_name(who), k->name) && !who->shown == !k->hash &&
	       (!k->hash || memcmp(who->shown->hash, k->hash, TLS_SHOWN_HASH) == 0);
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

/* That of `k`, with a reference, in *to; else *hash is what it will be found by. */
static bool find(const struct identities *all, const struct key *k, uint32_t *hash, struct identity **to)
{
	struct identity *who;

	*hash = hash_of(k);
	who = all->buckets ? all->bucket[*hash & (all->buckets - 1)] : NULL;
	while (who && (who->hash != *hash || !is(who, k)))
		who = who->next;
	*to = who;
	if (who)
		who->refs++;
	return who;
}

/* A new one with a reference; `server` and `shown` are moved, also when there is no memory: NULL. */
static struct identity *add(struct identities *all, const struct key *k, uint32_t hash, const struct tls_server *server,
			    struct tls_shown *shown)
{
	struct identity *who = grow(all) == OK ? mem_alloc(sizeof *who + k->name.n) : NULL;

	if (!who) {
		tls_server_unref(server);
		mem_free(shown);
		if (!all->n) {
			mem_free(all->bucket);
			*all = (struct identities){0};
		}
		return NULL;
	}
	*who = (struct identity){
		.refs = 1, .hash = hash, .server = server, .group = k->group, .shown = shown, .facts = k->facts,
		.name_n = (uint8_t)k->name.n,
	};
	if (k->name.n)
		memcpy(who->name, k->name.p, k->name.n);
	link_in(all, who);
	all->n++;
	return who;
}

struct identity *identity_get(struct identities *all, const struct tls_server *server, const struct tls_group *group, struct str name)
{
	struct key k = { .group = group, .name = name };
	struct identity *who;
	uint32_t hash;

	if (!find(all, &k, &hash, &who))
		return add(all, &k, hash, server, NULL);
	tls_server_unref(server);
	return who;
}

struct identity *identity_known(struct identities *all, struct identity *who, const struct tls_live *l)
{
	unsigned char of[TLS_SHOWN_HASH];
	struct key k = {
		.group = who->group, .facts = tls_live_facts(l), .name = identity_name(who),
		.hash = tls_shown_hash(l->ssl, of) ? of : NULL,
	};
	struct tls_shown *shown = NULL;
	struct identity *known;
	uint32_t hash;

	if (!find(all, &k, &hash, &known) && (!k.hash || (shown = tls_shown_new(l->ssl))))
		known = add(all, &k, hash, tls_server_ref(who->server), shown);
	identity_put(all, who);
	return known;
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
	mem_free(who->shown);
	mem_free(who);
	if (--all->n)
		return;
	mem_free(all->bucket);
	*all = (struct identities){0};
}

struct access_tls identity_logged(const struct identity *who)
{
	return (struct access_tls){
		.minor = (uint8_t)(who->facts.version - TLS_VERSION_12 + 2), .resumed = who->facts.resumed, .cipher = who->facts.cipher,
		.name = identity_name(who), .client = who->shown ? who->shown->subject : STR(""),
		.client_id = who->shown ? who->shown->spiffe : STR(""),
	};
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
