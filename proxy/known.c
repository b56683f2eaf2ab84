/* known: see known.h.  A table of atomic words that is read without a lock.  A reader that meets the writer sees words of two
 * MACs, which are together a third one's in no practical case.  Holds no password, and nothing that could be tried against one
 * without the key, which never leaves. */
#include "proxy/known.h"

#include <string.h>
#include <sys/random.h>

#include "lib/base/check.h"
#include "lib/crypto/password.h"

#define get(p) atomic_load_explicit(p, memory_order_relaxed)
#define set(p, v) atomic_store_explicit(p, v, memory_order_relaxed)

enum err known_init(struct known *k)
{
	return getrandom(k->key, sizeof k->key, 0) == sizeof k->key ? OK : ERR_SYS;
}

void known_fini(struct known *k)
{
	explicit_bzero(k->key, sizeof k->key);
}

struct digest_mac *known_maker(const struct known *k)
{
	return digest_mac_new(k->key);
}

/* No two are taken for one: the length of the name is in it. */
enum err known_mac(struct digest_mac *maker, const struct htpasswd *users, struct str user, struct str password,
		   union known_mac *out)
{
	char text[sizeof(uint64_t) + 1 + HTPASSWD_USER_MAX + PASSWORD_MAX], *at = text;
	uint64_t id = htpasswd_id(users);
	enum err e;

	CHECK(user.n <= HTPASSWD_USER_MAX && password.n <= PASSWORD_MAX);
	memcpy(at, &id, sizeof id);
	at += sizeof id;
	*at++ = (char)user.n;
	if (user.n)
		memcpy(at, user.p, user.n);
	at += user.n;
	if (password.n)
		memcpy(at, password.p, password.n);
	at += password.n;
	e = digest_mac_of(maker, (struct str){ text, (size_t)(at - text) }, out->bytes);
	explicit_bzero(text, (size_t)(at - text));
	return e;
}

static struct known_entry *ways_of(struct known *k, const union known_mac *m)
{
	return k->entry[m->words[KNOWN_WORDS] % KNOWN_SETS];
}

static bool is_mac(struct known_entry *e, const union known_mac *m)
{
	for (unsigned i = 0; i < KNOWN_WORDS; i++)
		if (get(&e->mac[i]) != m->words[i])
			return false;
	return true;
}

bool known_has(struct known *k, const union known_mac *m, uint64_t now)
{
	struct known_entry *way = ways_of(k, m);

	for (unsigned i = 0; i < KNOWN_WAYS; i++) {
		uint64_t used = get(&way[i].used_ms);

		if (!used || now >= used + KNOWN_MS || !is_mac(&way[i], m))
			continue;
		if (used < now)		/* another thread's clock may be a moment ahead */
			set(&way[i].used_ms, now);
		return true;
	}
	return false;
}

void known_add(struct known *k, const union known_mac *m, uint64_t now)
{
	struct known_entry *way = ways_of(k, m), *to = way;

	for (unsigned i = 0; i < KNOWN_WAYS; i++) {
		if (is_mac(&way[i], m)) {
			to = &way[i];
			break;
		}
		if (get(&way[i].used_ms) < get(&to->used_ms))
			to = &way[i];
	}
	set(&to->used_ms, 0);
	for (unsigned i = 0; i < KNOWN_WORDS; i++)
		set(&to->mac[i], m->words[i]);
	set(&to->used_ms, now ? now : 1);
}
