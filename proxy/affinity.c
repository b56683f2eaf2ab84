/* affinity: see affinity.h.
 *
 * Called by routing.c and forward.c for services that hash or are sticky, and for no other.  Keeps nothing: what the
 * request said is in x->lease.key, and whether the endpoint is another one shows when it answers. */
#include "proxy/affinity.h"

#include <stdio.h>

#include "dispatch/networks.h"
#include "dispatch/sticky.h"
#include "proxy/admit.h"
#include "proxy/client.h"
#include "proxy/forward.h"

#define COOKIES_MAX 8		/* of one name that are looked at */

/* An IPv6 client has its network, 64 bits, to choose addresses from. */
static uint32_t of_address(uint8_t family, const uint8_t *ip)
{
	if (family == NETWORK_UNIX)
		return 0;
	return sticky_hash(0, (struct str){ (const char *)ip, family == NETWORK_IP4 ? 4 : 8 });
}

/* All fields of that name: two are as good as one with a comma (RFC 9110 5.3). */
static uint32_t of_header(const struct head *h, struct str name)
{
	const struct field *f;
	uint32_t key = 0;
	unsigned i = 0;

	while ((f = head_find(h, name, &i)))
		key = sticky_hash(key, field_value(f));
	return key;
}

/* What the first cookie of that name says, of a sticky one the first that is ours. */
static uint32_t of_cookies(const struct head *h, const struct rules *r, struct str service, bool sticky)
{
	unsigned left = COOKIES_MAX;
	uint32_t key = 0;

	for (unsigned i = 0; i < h->n_fields; i++) {
		struct str field = field_value(&h->field[i]), value;

		if (h->field[i].id != FIELD_COOKIE)
			continue;
		while (left && !key && sticky_cookie(&field, r->by_name, &value)) {
			key = sticky ? sticky_id(r->sticky_key, service, value) : sticky_hash(0, value);
			left--;
		}
	}
	return key;
}

static uint32_t of_query(const struct head *h, struct str name)
{
	struct str query = { h->path.p + h->path.n + 1, h->target.n - h->path.n - 1 }, value;

	if (h->target.n <= h->path.n || !sticky_query(query, name, &value))
		return 0;
	return sticky_hash(0, value);
}

uint32_t affinity_of(struct exchange *x, const struct head *h)
{
	const struct rules *r = x->lease.service->rules;
	struct who who;

	if (r->balance == BALANCE_STICKY) {
		x->https = forward_scheme(x, h).n == 5;
		return of_cookies(h, r, service_name(x->lease.service), true);
	}
	switch (r->by) {
	case BALANCE_BY_HEADER:
		return of_header(h, r->by_name);
	case BALANCE_BY_COOKIE:
		return of_cookies(h, r, (struct str){0}, false);
	case BALANCE_BY_QUERY:
		return of_query(h, r->by_name);
	case BALANCE_BY_PATH:
		return sticky_hash(0, h->path);
	default:
		who = admit_who(x, h);
		return of_address(who.family, who.ip);
	}
}

uint32_t affinity_of_conn(const struct service *s, const struct conn *c)
{
	uint8_t ip[16], family;

	if (s->rules->balance != BALANCE_HASH || s->rules->by != BALANCE_BY_ADDRESS)
		return 0;
	family = client_address(c, ip);
	return of_address(family, ip);
}

enum err affinity_answer(struct exchange *x, struct head *h)
{
	static const char *const sites[] = {
		[SAME_SITE_LAX] = "; SameSite=Lax", [SAME_SITE_STRICT] = "; SameSite=Strict", [SAME_SITE_NONE] = "; SameSite=None",
	};
	const struct rules *r = x->lease.service->rules;
	uint32_t id = endpoint_id(x->lease.endpoint);
	char value[STICKY_VALUE], age[32] = "";
	size_t size = r->by_name.n + 128;
	char *p;
	int n;

	if (id == x->lease.key)
		return OK;
	p = arena_alloc(&x->arena, size);
	if (!p)
		return ERR_MEM;
	sticky_value(r->sticky_key, service_name(x->lease.service), id, value);
	if (r->ttl_s)
		snprintf(age, sizeof age, "; Max-Age=%u", r->ttl_s);
	/* browsers take SameSite=None with Secure alone; without either it is Lax */
	n = snprintf(p, size, "%.*s=%.*s; Path=/%s; HttpOnly%s%s", (int)r->by_name.n, r->by_name.p, STICKY_VALUE, value, age,
		     x->https ? "; Secure" : "", r->same_site == SAME_SITE_NONE && !x->https ? "" : sites[r->same_site]);
	return head_add_id(h, FIELD_SET_COOKIE, STR("Set-Cookie"), (struct str){ p, (size_t)n });
}
