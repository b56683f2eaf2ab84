/* names: see names.h.
 *
 * Purpose   asks for what is due, hands answers to the policy (health/name.h), and has services made anew when that changes what
 *           is known.
 * Owns      the resolver; the names (names_table.c) and recipes (names_recipe.c).
 * Called by server.c, on the main thread alone.
 * Never     waits, and never takes what is known away because nobody answers. */
#include "proxy/names.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "conf/conf.h"
#include "dispatch/snapshot.h"
#include "lib/base/mem.h"
#include "lib/net/socket.h"
#include "proxy/log.h"
#include "proxy/names_parts.h"
#include "proxy/server.h"
#include "proxy/settings.h"
#include "proxy/tls.h"

#define RETRY_MS 1000	/* after there was no memory */

/* --- out of the configuration --- */

static bool has_name(const struct conf_service *c)
{
	bool name = c->dns.address.path.n;

	for (size_t i = 0; i < c->endpoints.count && !name; i++)
		name = c->endpoints.items[i].kind == CONF_NAME;
	return name;
}

static enum err name_item(struct names *n, struct recipe *r, const struct conf_address *a, bool srv, uint8_t families)
{
	struct item *i = &r->item[r->n++];

	i->port = a->port;
	i->weight = (uint16_t)a->weight;
	i->state = (uint8_t)a->state;	/* the same order */
	i->families = families;
	i->use.recipe = r;
	return name_use(n, a->path, srv, srv ? ANSWER_SRV : families, &i->use);
}

static enum err address_item(struct names *n, struct recipe *r, const struct conf_address *a)
{
	struct endpoint_address e = settings_address(a, r->tls);
	struct item *i = &r->item[r->n++];

	i->weight = (uint16_t)a->weight;
	i->state = (uint8_t)a->state;	/* the same order */
	i->endpoint = endpoint_get(n->endpoints, &e);
	return i->endpoint ? OK : ERR_MEM;
}

static enum err items_add(struct names *n, struct recipe *r, const struct conf_service *c)
{
	static const uint8_t families[] = {
		[CONF_FAMILY_BOTH] = ANSWER_IP4 | ANSWER_IP6, [CONF_FAMILY_IP4] = ANSWER_IP4, [CONF_FAMILY_IP6] = ANSWER_IP6,
	};
	enum err err = OK;

	for (size_t i = 0; err == OK && i < c->endpoints.count; i++) {
		const struct conf_address *a = &c->endpoints.items[i];

		err = a->kind == CONF_NAME ? name_item(n, r, a, false, ANSWER_IP4 | ANSWER_IP6) : address_item(n, r, a);
	}
	if (err == OK && c->dns.address.path.n)
		err = name_item(n, r, &c->dns.address, c->dns.srv, families[c->dns.family]);
	return err;
}

static enum err recipe_add(struct names *n, const struct conf_service *c, struct service *s, uint16_t tls)
{
	size_t items = c->endpoints.count + (c->dns.address.path.n > 0);
	struct recipe *r = mem_zalloc(sizeof(*r) + items * sizeof(r->item[0]));

	if (!r)
		return ERR_MEM;
	r->service = service_ref(s);
	r->tls = tls;
	n->recipes[n->n_recipes++] = r;
	return items_add(n, r, c);
}

/* A copy of a text at *p, which goes behind it. */
static const char *text_put(char **p, struct str s)
{
	char *to = *p;

	if (s.n)
		memcpy(to, s.p, s.n);
	to[s.n] = '\0';
	*p += s.n + 1;
	return to;
}

/* The name servers as c-ares takes them: "127.0.0.1:53,[::1]:53". */
static const char *servers_put(char **p, const struct conf_address_list *list)
{
	char *to = *p;

	for (size_t i = 0; i < list->count; i++) {
		char ip[SOCKET_TEXT];
		struct socket_address a;

		socket_address_ip(&a, list->items[i].kind == CONF_INET6, list->items[i].ip, list->items[i].port);
		socket_address_text(&a, ip);
		*p += sprintf(*p, "%s%s", i ? "," : "", ip);
	}
	++*p;
	return list->count ? to : NULL;
}

static enum err config_make(struct names *n, const struct conf_dns *c)
{
	size_t size = c->hosts.n + c->resolv_conf.n + 2 + c->nameservers.count * (SOCKET_TEXT + 1) + 1 + c->search.count * sizeof(char *);
	const char **search;
	char *p;

	for (size_t i = 0; i < c->search.count; i++)
		size += c->search.items[i].n + 1;
	n->texts = p = mem_zalloc(size);
	if (!p)
		return ERR_MEM;
	search = (const char **)(void *)p;
	p += c->search.count * sizeof(*search);
	n->config = (struct resolver_config){
		.search = search, .n_search = c->search.items ? (int)c->search.count : -1,
		.ndots = c->ndots == CONF_NDOTS_AUTO ? -1 : (int)c->ndots,
		.timeout_ms = (uint32_t)c->timeout, .attempts = c->attempts,
		.hosts = c->hosts.n ? text_put(&p, c->hosts) : NULL, .resolv_conf = text_put(&p, c->resolv_conf),
		.servers = servers_put(&p, &c->nameservers),
	};
	for (size_t i = 0; i < c->search.count; i++)
		search[i] = text_put(&p, c->search.items[i]);
	return OK;
}

static enum err names_make(struct names *n, const struct conf *c, const struct tls *tls, struct snapshot *s, uint32_t count)
{
	struct service *const *services;
	size_t n_services;
	enum err err = config_make(n, &c->dns);

	n->recipes = mem_zalloc(count * sizeof(*n->recipes));
	if (err != OK || !n->recipes)
		return ERR_MEM;
	n->policy = (struct name_policy){
		.ttl_min = (uint32_t)c->dns.ttl_min, .stale = (uint32_t)c->dns.stale,
		.ttl_max = (uint32_t)(c->dns.ttl_max < c->dns.ttl_min ? c->dns.ttl_min : c->dns.ttl_max),
		.most = c->dns.addresses, .drop = c->dns.nxdomain == CONF_NXDOMAIN_DROP,
	};
	if (getrandom(&n->random, sizeof(n->random), 0) != sizeof(n->random))
		n->random = (uintptr_t)n;
	n->random |= 1;
	n->lines = NAMES_LINES;
	services = snapshot_services(s, &n_services);
	for (size_t i = 0; err == OK && i < n_services; i++)
		if (has_name(&c->services[i]))
			err = recipe_add(n, &c->services[i], services[i], tls_number(tls, &c->services[i]));
	return err;
}

enum err names_new(const struct conf *c, const struct tls *tls, struct snapshot *s, struct endpoint_table *endpoints, struct names **to)
{
	struct names *n;
	uint32_t count = 0;

	*to = NULL;
	for (size_t i = 0; i < c->service_count; i++)
		count += has_name(&c->services[i]);
	if (!count)
		return OK;
	n = mem_zalloc(sizeof(*n));
	if (!n)
		return ERR_MEM;
	n->endpoints = endpoints;
	if (names_make(n, c, tls, s, count) == OK) {
		*to = n;
		return OK;
	}
	names_free(n);
	return ERR_MEM;
}

void names_free(struct names *n)
{
	if (!n)
		return;
	for (uint32_t i = 0; i < n->n_recipes; i++)
		recipe_free(n->recipes[i]);
	mem_free(n->recipes);
	names_table_fini(n);
	resolver_free(n->resolver);
	mem_free(n->texts);
	mem_free(n);
}

enum err names_start(struct names *n, struct server *server)
{
	n->server = server;
	n->resolver = resolver_new(&n->config, server->loop, n);
	mem_free(n->texts);
	n->texts = NULL;
	return n->resolver ? OK : ERR_MEM;
}

/* --- answers --- */

static void recipe_dirty(struct names *n, struct recipe *r)
{
	if (r->dirty)
		return;
	r->dirty = true;
	r->next_dirty = n->dirty;
	n->dirty = r;
}

/* All services that are made of `name`, by themselves or by an SRV name. */
static void users_dirty(struct names *n, const struct name *name)
{
	for (const struct use *u = name->uses; u; u = u->next) {
		if (u->recipe)
			recipe_dirty(n, u->recipe);
		for (const struct use *v = u->srv ? u->srv->uses : NULL; v; v = v->next)
			if (v->recipe)
				recipe_dirty(n, v->recipe);
	}
}

static void targets_free(struct use *targets, uint32_t count)
{
	for (uint32_t i = 0; targets && i < count; i++)
		name_unuse(&targets[i]);
	mem_free(targets);
}

/* The names that SRV records lead to, which are whole; without memory there are none, and the name is asked for again. */
static enum err targets_make(struct names *n, struct name *name, struct use **to)
{
	const struct answer_part *srv = &name->have[0];
	char text[RESOLVER_NAME_MAX + 2];

	*to = mem_zalloc(srv->n * sizeof(**to) + 1);
	for (uint32_t i = 0; *to && i < srv->n; i++) {
		int len = snprintf(text, sizeof(text), "%s.", srv->srv[i].target);

		(*to)[i].srv = name;
		if (name_use(n, (struct str){ text, (size_t)len }, false, ANSWER_IP4 | ANSWER_IP6, &(*to)[i]) == OK)
			continue;
		targets_free(*to, i);
		*to = NULL;
	}
	return *to ? OK : ERR_MEM;
}

bool names_may_tell(struct names *n)
{
	uint64_t more = (n->now_ms - n->lines_ms) * NAMES_LINES_S / 1000;

	if (more) {
		n->lines = more > NAMES_LINES - n->lines ? NAMES_LINES : n->lines + (uint32_t)more;
		n->lines_ms = n->now_ms;
	}
	if (!n->lines) {
		n->lines_out++;
		return false;
	}
	n->lines--;
	if (n->lines_out)
		log_warn("names: %u lines were left out here, since there were too many at once", n->lines_out);
	n->lines_out = 0;
	return true;
}

#define TELL(names, level, ...) \
	do { \
		if (log_wants(level) && names_may_tell(names)) \
			log_line((level), __VA_ARGS__); \
	} while (0)

/* An error log line when a name begins to fail or is found again, and of what is not used. */
static void news_tell(struct name *name, const struct name_news *news, bool was_out, bool had)
{
	const char *known = name->have[0].n + name->have[1].n ? "what is known of it stays in use" :
			    had ? "its endpoints are gone" : "it has no endpoints";

	if (news->result != NAME_GOOD && !was_out)
		TELL(name->names, LEVEL_WARN, "name %s: %s; %s", name->text,
			 news->result == NAME_MISSING ? "there is none, or it has no such records" : news->why ? news->why : "no answer", known);
	if (news->result == NAME_GOOD && was_out)
		TELL(name->names, LEVEL_INFO, "name %s: found again", name->text);
	if (news->unusable && !name->said_unusable)
		TELL(name->names, LEVEL_WARN, "name %s: %u address%s of it can be nobody's: not used", name->text, news->unusable,
		     news->unusable == 1 ? "" : "es");
	if (news->left_out && !name->said_left_out)
		TELL(name->names, LEVEL_WARN, "name %s: more records than dns.addresses, %u are left out", name->text, news->left_out);
	name->said_unusable = news->unusable;
	name->said_left_out = news->left_out;
}

static uint32_t next_random(struct names *n)
{
	n->random ^= n->random << 13;
	n->random ^= n->random >> 7;
	n->random ^= n->random << 17;
	return (uint32_t)(n->random >> 32);
}

/* What an SRV name leads to, when its records have changed: those that stay are never without a use in between. */
static void srv_changed(struct names *n, struct name *name, struct use *old, uint32_t n_old)
{
	if (targets_make(n, name, &name->targets) != OK) {
		answer_part_fini(&name->have[0], true);
		name->state.out = true;
	}
	targets_free(old, n_old);
}

static void on_answer(void *ctx, struct answer *a)
{
	struct name *name = ctx;
	struct names *n = name->names;
	uint64_t now = n->now_ms;
	bool was_out = name->state.told && name->state.out, expired;
	uint32_t n_old = name->have[0].n, had = n_old + name->have[1].n;
	struct use *old = name->targets;
	struct name_news news;

	name->look = NULL;
	news = name_take(&name->state, name->have, a, name->srv, &n->policy, now);
	expired = name_expire(&name->state, name->have, name->srv, &n->policy, now);
	if ((news.changed || expired) && name->srv)
		srv_changed(n, name, old, n_old);
	if (news.changed || expired)
		users_dirty(n, name);
	news_tell(name, &news, was_out, had);
	name->due = name->due == 0 ? now : name_due(&name->state, &n->policy, now, next_random(n));
	name_plan(name);
}

/* --- what is due --- */

static void ask(struct names *n, struct name *name)
{
	name->due = UINT64_MAX;		/* unless somebody wants more of it, while it is being asked for */
	name->look = resolver_ask(n->resolver, (struct str){ name->text, name->n }, name->types, on_answer, name, n->now_ms);
	if (name->look)
		return;
	name->due = n->now_ms + RETRY_MS;
	name_plan(name);
}

static bool is_due(const struct names *n)
{
	return n->n_heap && n->heap[0]->due <= n->now_ms && resolver_has_room(n->resolver);
}

static void publish(struct names *n)
{
	struct recipe *r, *again = NULL;

	while ((r = n->dirty)) {
		n->dirty = r->next_dirty;
		r->dirty = false;
		if (recipe_publish(n, r) == OK)
			continue;
		r->dirty = true;
		r->next_dirty = again;
		again = r;
	}
	n->dirty = again;
	n->retry = again ? n->now_ms + RETRY_MS : 0;
	if (again)
		LOG_RATE(LEVEL_ERROR, "no memory for the endpoints of a service; trying again");
}

void names_event(struct names *n)
{
	resolver_event(n->resolver);
}

int64_t names_tend(struct names *n, uint64_t now_ms)
{
	int64_t wait, due;

	if (!n)
		return -1;
	n->now_ms = now_ms;
	do {
		while (is_due(n))
			ask(n, names_next(n));
		wait = resolver_tend(n->resolver, now_ms);
	} while (is_due(n));
	if (n->dirty && (!n->retry || now_ms >= n->retry))
		publish(n);
	due = n->n_heap && resolver_has_room(n->resolver) ? (int64_t)(n->heap[0]->due - now_ms) : -1;
	if (n->retry && (due < 0 || n->retry - now_ms < (uint64_t)due))
		due = (int64_t)(n->retry - now_ms);
	return wait < 0 || (due >= 0 && due < wait) ? due : wait;
}

struct names_counts names_counts(const struct names *n)
{
	struct resolver_counts r = {0};

	if (n && n->resolver)
		r = resolver_counts(n->resolver);
	return (struct names_counts){ r.asked, r.failed, n ? n->changes : 0 };
}
