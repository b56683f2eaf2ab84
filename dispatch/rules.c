/* Door: rules of services, interned.  The table owns the copies, each with its strings in one
 * block; services count references.  A lock guards it: it is taken when services come and go,
 * never on the way of a request. */
#include "dispatch/rules.h"

#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include "dispatch/text.h"
#include "lib/base/check.h"
#include "lib/base/hash.h"
#include "lib/base/mem.h"

#define HOST_MAX_LEN 512
#define NAME_MAX_LEN 256	/* of what balancing goes by */
#define BUCKETS 256

/* Which members lie behind the block as text. */
static const size_t texts[] = { offsetof(struct rules, host_literal), offsetof(struct rules, by_name) };

struct kept {
	struct kept *next;	/* owned by the table: chain of its bucket */
	uint32_t refs, bucket;
	struct rules rules;
	char text[];
};

struct rules_table {
	pthread_mutex_t lock;
	struct kept *bucket[BUCKETS];
};

struct rules_table *rules_table_new(void)
{
	struct rules_table *t = mem_zalloc(sizeof *t);

	if (t)
		CHECK(pthread_mutex_init(&t->lock, NULL) == 0);
	return t;
}

void rules_table_free(struct rules_table *t)
{
	if (!t)
		return;
	for (unsigned i = 0; i < BUCKETS; i++)
		CHECK(!t->bucket[i]);
	pthread_mutex_destroy(&t->lock);
	mem_free(t);
}

enum err rules_check(const struct rules *r, struct snapshot_error *err)
{
	if (r->host > SERVICE_HOST_LITERAL)
		return snapshot_error_set(err, ERR_SYNTAX, "unknown host policy %u", r->host);
	if (r->host == SERVICE_HOST_LITERAL &&
	    (r->host_literal.n == 0 || r->host_literal.n > HOST_MAX_LEN || !text_host(r->host_literal)))
		return snapshot_error_set(err, ERR_SYNTAX, "the host to send is not a host name");
	if (r->balance > BALANCE_STICKY || r->by > BALANCE_BY_PATH || r->same_site > SAME_SITE_NONE)
		return snapshot_error_set(err, ERR_SYNTAX, "unknown way %u of balancing", r->balance);
	if ((r->balance == BALANCE_STICKY || (r->balance == BALANCE_HASH && r->by != BALANCE_BY_ADDRESS && r->by != BALANCE_BY_PATH)) &&
	    (r->by_name.n == 0 || r->by_name.n > NAME_MAX_LEN || !text_value(r->by_name)))
		return snapshot_error_set(err, ERR_SYNTAX, "what balancing goes by has no proper name");
	return OK;
}

static struct str *text_at(struct rules *r, size_t i)
{
	return (struct str *)((char *)r + texts[i]);
}

static struct str text_of(const struct rules *r, size_t i)
{
	return *(const struct str *)((const char *)r + texts[i]);
}

bool rules_same(const struct rules *a, const struct rules *b)
{
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		if (!str_eq(text_of(a, i), text_of(b, i)))
			return false;
	return a->max_connections == b->max_connections && a->max_requests == b->max_requests && a->host == b->host && a->proxy == b->proxy &&
	       a->balance == b->balance && a->by == b->by && a->bound == b->bound && a->same_site == b->same_site && a->ttl_s == b->ttl_s &&
	       a->sticky_key.k0 == b->sticky_key.k0 && a->sticky_key.k1 == b->sticky_key.k1 &&
	       a->server_errors == b->server_errors && a->health == b->health && a->retry_floor == b->retry_floor && a->retry_ratio == b->retry_ratio;
}

static struct kept *kept_new(const struct rules *r)
{
	struct kept *k;
	char *at;
	size_t n = 0;

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		n += text_of(r, i).n;
	k = mem_alloc(sizeof *k + n);
	if (!k)
		return NULL;
	k->refs = 0;
	k->rules = *r;
	at = k->text;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct str s = text_of(r, i);

		if (s.n)
			memcpy(at, s.p, s.n);
		*text_at(&k->rules, i) = (struct str){ at, s.n };
		at += s.n;
	}
	return k;
}

const struct rules *rules_get(struct rules_table *t, const struct rules *r)
{
	uint32_t at = (uint32_t)(hash_str(r->host_literal) % BUCKETS);
	struct kept *k;

	pthread_mutex_lock(&t->lock);
	for (k = t->bucket[at]; k && !rules_same(&k->rules, r); k = k->next)
		;
	if (!k && (k = kept_new(r))) {
		k->bucket = at;
		k->next = t->bucket[at];
		t->bucket[at] = k;
	}
	if (k)
		k->refs++;
	pthread_mutex_unlock(&t->lock);
	return k ? &k->rules : NULL;
}

void rules_unref(struct rules_table *t, const struct rules *r)
{
	struct kept *k, **at;

	if (!r)
		return;
	k = (struct kept *)((char *)(uintptr_t)r - offsetof(struct kept, rules));
	pthread_mutex_lock(&t->lock);
	if (--k->refs == 0) {
		for (at = &t->bucket[k->bucket]; *at != k; at = &(*at)->next)
			;
		*at = k->next;
	} else {
		k = NULL;
	}
	pthread_mutex_unlock(&t->lock);
	mem_free(k);
}
