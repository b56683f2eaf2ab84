/* settings: see settings.h.  The one place where the configuration's tree becomes what
 * dispatch and the workers use; conf and dispatch do not know each other. */
#include "proxy/settings.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "conf/conf.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "proxy/condition.h"
#include "proxy/hasher.h"
#include "proxy/policies.h"
#include "proxy/tls.h"

#define FDS_OWN 32		/* descriptors that the process needs besides connections, and a few a worker */
#define FDS_WORKER 8
#define CHECKS_MAX PROBES_MAX
#define INTERIM_MAX 32		/* 1xx answers before a final one */

static uint32_t clamp32(uint64_t v)
{
	return v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;
}

/* --- listeners --- */

static struct str dup_z(struct arena *a, struct str s)
{
	char *p = arena_alloc(a, s.n + 1);

	if (!p)
		return (struct str){0};
	memcpy(p, s.p, s.n);
	p[s.n] = '\0';
	return (struct str){ p, s.n };
}

static void address_of(struct socket_address *to, const struct conf_address *a)
{
	if (a->kind == CONF_UNIX)
		CHECK(socket_address_unix(to, a->path.p) == OK);	/* conf has checked its length */
	else if (a->any)
		socket_address_any(to, a->port);
	else
		socket_address_ip(to, a->kind == CONF_INET6, a->ip, a->port);
}

static bool make_via(struct arena *a, struct str *via, struct str name)
{
	for (int minor = 0; name.n && minor < 2; minor++) {
		char *p = arena_alloc(a, name.n + 4);

		if (!p)
			return false;
		memcpy(p, minor ? "1.1 " : "1.0 ", 4);
		memcpy(p + 4, name.p, name.n);
		via[minor] = (struct str){ p, name.n + 4 };
	}
	return true;
}

static uint8_t opening_of(const struct conf_listen *c)
{
	static const uint8_t proxy[] = {
		[CONF_PROXY_IN_ON] = OPENING_PROXY, [CONF_PROXY_IN_OPTIONAL] = OPENING_PROXY | OPENING_MAY,
	};
	static const uint8_t speaks[] = { [CONF_SPEAKS_TCP] = OPENING_TCP, [CONF_SPEAKS_SNI] = OPENING_SNI };

	return proxy[c->proxy_protocol] | speaks[c->speaks] | (c->tls.on ? OPENING_TLS : 0);
}

/* The template of a redirect's Location (dispatch/text.h); p NULL: no memory. */
static struct str location_of(struct arena *a, const struct conf_redirect *r)
{
	static const char *const schemes[] = {
		[CONF_SCHEME_SAME] = "{scheme}", [CONF_SCHEME_HTTP] = "http", [CONF_SCHEME_HTTPS] = "https",
	};
	size_t size = r->host.n + sizeof "{scheme}://{host}:65535{path}";
	char *p, port[16] = "";
	int n;

	if (r->to.n)
		return r->to;
	if (!r->scheme && !r->host.n && !r->port)
		return STR("{path}");
	p = arena_alloc(a, size);
	if (!p)
		return (struct str){0};
	if (!r->scheme && (r->port == 80 || r->port == 443))
		snprintf(port, sizeof port, "{:%u}", r->port);
	else if (!r->port)
		snprintf(port, sizeof port, "%s", r->scheme ? "" : "{port}");
	else if (r->port != (r->scheme == CONF_SCHEME_HTTPS ? 443 : 80))
		snprintf(port, sizeof port, ":%u", r->port);
	n = snprintf(p, size, "%s://%s%s{path}", schemes[r->scheme], r->host.n ? r->host.p : "{host}", port);
	return (struct str){ p, (size_t)n };
}

/* A route that no router knows: it has all requests. */
static bool make_redirect(struct arena *a, struct listener *l, const struct conf_redirect *c)
{
	struct route_spec r = {
		.action = ROUTE_REDIRECT, .status = (uint16_t)c->status, .text = location_of(a, c), .label = STR("redirect"),
		.rewrite = c->path.full.n ? REWRITE_PATH : REWRITE_NONE, .rewrite_to = c->path.full, .body_limit = UINT64_MAX,
	};

	l->redirect_plain = c->scheme == CONF_SCHEME_HTTPS && !c->host.n;
	l->redirect = r.text.p ? route_new(&r, route_spec_hash(&r), NULL, NULL) : NULL;
	return l->redirect;
}

static bool make_listener(struct arena *a, struct listener *l, const struct conf_listen *c)
{
	address_of(&l->address, &c->address);
	l->label = dup_z(a, c->address.text);
	l->request_id = dup_z(a, c->request_id);
	l->x_forwarded = (uint8_t)(c->x_forwarded == CONF_XF_OFF ? FORWARDED_OFF :
				   c->x_forwarded == CONF_XF_REPLACE ? FORWARDED_REPLACE : FORWARDED_APPEND);
	l->underscores = (uint8_t)(c->underscores == CONF_UNDERSCORES_ALLOW ? UNDERSCORES_ALLOW :
				   c->underscores == CONF_UNDERSCORES_REFUSE ? UNDERSCORES_REFUSE : UNDERSCORES_DROP);
	l->client_cert = (uint8_t)(c->x_forwarded_client_cert == CONF_CERT_SET ? CLIENT_CERT_SET :
				   c->x_forwarded_client_cert == CONF_CERT_APPEND ? CLIENT_CERT_APPEND :
				   c->x_forwarded_client_cert == CONF_CERT_PASS ? CLIENT_CERT_PASS : CLIENT_CERT_OFF);
	l->forwarded = c->forwarded;
	l->opening = opening_of(c);
	l->park = c->tls.park;
	l->n_upgrade = (unsigned)c->upgrade.count;
	l->upgrade = arena_alloc(a, l->n_upgrade * sizeof *l->upgrade + 1);
	if (!l->label.p || !l->request_id.p || !l->upgrade || !make_via(a, l->via, c->via) ||
	    !policies_networks(&l->trusted, &c->trusted_proxies) || (c->redirects && !make_redirect(a, l, &c->redirect)))
		return false;
	for (unsigned i = 0; i < l->n_upgrade; i++) {
		l->upgrade[i] = dup_z(a, c->upgrade.items[i]);
		if (!l->upgrade[i].p)
			return false;
	}
	return true;
}

/* --- limits --- */

static struct codec_limits codec_limits(const struct conf_limits *l, uint64_t head)
{
	return (struct codec_limits){
		.head = clamp32(head), .target = clamp32(l->target), .fields = (uint16_t)l->fields,
		.interim = INTERIM_MAX, .chunk_overhead = clamp32(l->chunk_overhead),
	};
}

/* A share of the descriptors is kept for upstreams: accept pauses before connects fail. */
static void count_fds(struct settings *s)
{
	struct rlimit r;
	uint64_t have = 1024, own = FDS_OWN + FDS_WORKER * s->workers + s->n_listeners * s->workers, reserve;

	if (getrlimit(RLIMIT_NOFILE, &r) == 0)
		have = r.rlim_cur == RLIM_INFINITY ? 1u << 20 : r.rlim_cur;
	s->fds = have > own + 8 ? have - own : 8;
	if (s->checks) {	/* an eighth of all; a slow endpoint keeps one for as long as a check may take */
		s->checks = s->fds / 8 < CHECKS_MAX ? (uint32_t)(s->fds / 8) : CHECKS_MAX;
		s->fds -= s->checks;
	}
	reserve = s->fds / 20 > 64 ? s->fds / 20 : 64;
	if (reserve > s->fds / 2)
		reserve = s->fds / 2;
	s->fds_accept = s->fds - reserve;
}

static unsigned processors(void)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	return n < 1 ? 1 : n > 256 ? 256 : (unsigned)n;
}

struct settings *settings_new(const struct conf *c)
{
	struct settings *s = mem_zalloc(sizeof *s);

	if (!s)
		return NULL;
	arena_init(&s->arena, NULL, 0, NULL);
	s->workers = c->workers ? c->workers : processors();
	s->n_listeners = (unsigned)c->listen_count;
	s->listeners = arena_alloc(&s->arena, s->n_listeners * sizeof *s->listeners);
	if (!s->listeners)
		goto fail;
	memset(s->listeners, 0, s->n_listeners * sizeof *s->listeners);
	for (unsigned i = 0; i < s->n_listeners; i++)
		if (!make_listener(&s->arena, &s->listeners[i], &c->listens[i]))
			goto fail;
	s->request = codec_limits(&c->limits, c->limits.head);
	s->answer = codec_limits(&c->limits, c->limits.answer_head);
	s->socket = (struct socket_limits){
		.receive = clamp32(c->limits.receive_window), .unsent = clamp32(c->limits.unsent),
	};
	s->timeouts = (struct timeouts){
		.head = clamp32(c->timeouts.head), .handshake = clamp32(c->timeouts.handshake),
		.body = clamp32(c->timeouts.body),
		.write = clamp32(c->timeouts.write), .idle = clamp32(c->timeouts.idle),
		.linger = clamp32(c->timeouts.linger), .connect = clamp32(c->timeouts.connect), .queue = clamp32(c->timeouts.queue),
		.upstream_idle = clamp32(c->timeouts.upstream_idle), .drain = clamp32(c->timeouts.drain),
		.tunnel = clamp32(c->timeouts.tunnel),
	};
	s->replay = clamp32(c->limits.replay);
	s->queue = clamp32(c->limits.queue);
	s->waiting = c->limits.waiting;
	s->rate_memory = c->limits.rate_memory;
	s->handshakes = c->limits.handshakes;
	s->calls = c->limits.calls;
	for (size_t i = 0; i < c->route_count && !s->hasher_threads; i++)
		if (c->routes[i].basic_auth.file.n)
			s->hasher_threads = hasher_threads(processors());
	s->compress = (size_t)(c->limits.compress / s->workers);
	s->connections = c->limits.connections;
	for (size_t i = 0; i < c->service_count; i++)
		s->checks |= c->services[i].health.kind != CONF_HEALTH_NONE;
	count_fds(s);
	return s;
fail:
	settings_free(s);
	return NULL;
}

static void listener_free(struct listener *l)
{
	networks_free(l->trusted);
	route_unref(l->redirect);
}

void settings_free(struct settings *s)
{
	if (!s)
		return;
	for (unsigned i = 0; s->listeners && i < s->n_listeners; i++)
		listener_free(&s->listeners[i]);
	arena_fini(&s->arena);
	mem_free(s);
}

/* --- the snapshot --- */

/* Without a key of the configuration the values are of this process alone. */
static struct hash_key sticky_key(struct str secret)
{
	static const struct hash_key one = { UINT64_C(0x737469636b792031), 1 }, two = { UINT64_C(0x737469636b792032), 2 };

	if (!secret.n)
		return (struct hash_key){ hash_str(STR("sticky 1")), hash_str(STR("sticky 2")) };
	return (struct hash_key){ hash_keyed(one, secret), hash_keyed(two, secret) };
}

static void balance_of(struct rules *r, const struct conf_balance *c)
{
	static const uint8_t kinds[] = {
		[CONF_BALANCE_LEAST] = BALANCE_LEAST, [CONF_BALANCE_ROUND_ROBIN] = BALANCE_ROUND_ROBIN,
		[CONF_BALANCE_HASH] = BALANCE_HASH, [CONF_BALANCE_STICKY] = BALANCE_STICKY,
	};
	static const uint8_t bys[] = {
		[CONF_HASH_ADDRESS] = BALANCE_BY_ADDRESS, [CONF_HASH_HEADER] = BALANCE_BY_HEADER,
		[CONF_HASH_COOKIE] = BALANCE_BY_COOKIE, [CONF_HASH_QUERY] = BALANCE_BY_QUERY, [CONF_HASH_PATH] = BALANCE_BY_PATH,
	};
	static const uint8_t sites[] = {
		[CONF_SAME_SITE_LAX] = SAME_SITE_LAX, [CONF_SAME_SITE_STRICT] = SAME_SITE_STRICT, [CONF_SAME_SITE_NONE] = SAME_SITE_NONE,
	};

	r->balance = kinds[c->kind];
	r->by = bys[c->by];
	r->bound = (uint16_t)c->bound;
	r->same_site = sites[c->same_site];
	r->ttl_s = clamp32(c->ttl / 1000);
	r->by_name = c->name;
	if (c->kind == CONF_BALANCE_STICKY)
		r->sticky_key = sticky_key(c->key);
}

static struct rules rules_of(const struct conf_service *c, uint16_t health)
{
	struct rules r = {
		.max_connections = c->max_connections, .max_requests = c->max_requests,
		.retry_ratio = c->retry_budget.ratio, .retry_floor = (uint16_t)c->retry_budget.min_per_second,
	};

	if (c->host_kind == CONF_HOST_NAME) {
		r.host = SERVICE_HOST_LITERAL;
		r.host_literal = c->host;
	} else {
		r.host = c->host_kind == CONF_HOST_ENDPOINT ? SERVICE_HOST_ENDPOINT : SERVICE_HOST_KEEP;
	}
	balance_of(&r, &c->balance);
	r.health = health;
	r.server_errors = c->eject.server_errors && c->eject.on;
	r.proxy = c->proxy_protocol == CONF_PROXY_OUT_V1 ? SERVICE_PROXY_V1 :
		  c->proxy_protocol == CONF_PROXY_OUT_V2 ? SERVICE_PROXY_V2 : SERVICE_PROXY_OFF;
	return r;
}

struct endpoint_address settings_address(const struct conf_address *a, uint16_t tls)
{
	struct endpoint_address e = {
		.family = a->kind == CONF_UNIX ? ENDPOINT_UNIX : a->kind == CONF_INET6 ? ENDPOINT_IP6 : ENDPOINT_IP4,
		.port = a->port, .path = a->kind == CONF_UNIX ? a->path.p : NULL, .tls = tls,
	};

	memcpy(e.ip, a->ip, sizeof e.ip);
	return e;
}

static struct service_spec service_of(struct arena *a, const struct conf_service *c, uint16_t tls, uint16_t health)
{
	struct service_endpoint_spec *e = arena_alloc(a, c->endpoints.count * sizeof *e + 1);
	struct service_spec s = {
		.name = c->name, .rules = rules_of(c, health),
		.endpoints = e, .named = c->dns.address.path.n,
	};

	for (size_t i = 0; e && i < c->endpoints.count; i++) {
		const struct conf_address *from = &c->endpoints.items[i];
		struct service_endpoint_spec *to = &e[s.n_endpoints];

		if (from->kind == CONF_NAME) {	/* names.h */
			s.named = true;
			continue;
		}
		*to = (struct service_endpoint_spec){
			.address = settings_address(from, tls), .weight = (uint16_t)from->weight, .state = (uint8_t)from->state,	/* the same order */
		};
		to->address.health = health;
		s.n_endpoints++;
	}
	return s;
}

static void mods_of(struct header_mod **at, const struct conf_header_list *list, uint8_t op)
{
	for (size_t i = 0; i < list->count; i++)
		*(*at)++ = (struct header_mod){ .op = op, .name = list->items[i].name, .value = list->items[i].value };
}

/* Strict-Transport-Security as one more change; false: no memory. */
static bool hsts_of(struct arena *a, struct header_mod **at, const struct conf_hsts *h)
{
	char text[96];
	struct str value = { text, 0 };

	if (!h->on)
		return true;
	value.n = (size_t)snprintf(text, sizeof text, "max-age=%llu%s%s", (unsigned long long)h->max_age / 1000,
				   h->include_subdomains ? "; includeSubDomains" : "", h->preload ? "; preload" : "");
	value = arena_dup(a, value);
	*(*at)++ = (struct header_mod){ .op = HEADER_SET_SECURE, .name = STR("Strict-Transport-Security"), .value = value };
	return value.p;
}

static const struct header_mod *headers_of(struct arena *a, const struct conf_headers *h, const struct conf_hsts *hsts,
					   uint16_t *n)
{
	size_t count = h->remove.count + h->set.count + h->add.count + hsts->on;
	struct header_mod *mods = arena_alloc(a, count * sizeof *mods + 1), *at = mods;

	if (!mods || !hsts_of(a, &at, hsts))
		return NULL;
	mods_of(&at, &h->remove, HEADER_REMOVE);
	mods_of(&at, &h->set, HEADER_SET);
	mods_of(&at, &h->add, HEADER_ADD);
	*n = (uint16_t)count;
	return mods;
}

static const struct match_pair *pairs_of(struct arena *a, const struct conf_pair_list *list)
{
	struct match_pair *p = arena_alloc(a, list->count * sizeof *p + 1);

	for (size_t i = 0; p && i < list->count; i++)
		p[i] = (struct match_pair){
			.kind = list->items[i].regex ? MATCH_REGEX : MATCH_EXACT,
			.name = list->items[i].name, .value = list->items[i].value,
		};
	return p;
}

/* How many matches of a router one host has by `m`: it knows one method in each. */
static size_t ways_of(const struct conf_match *m)
{
	return m->methods.count ? m->methods.count : 1;
}

/* `m` for every host and method, to *at, which goes behind them; false: no memory. */
static bool match_of(struct arena *a, struct route_match **at, const struct conf_route *c, const struct conf_match *m)
{
	size_t hosts = c->hosts.count ? c->hosts.count : 1, ways = ways_of(m);
	struct route_match is = {
		.path_kind = m->path_kind == CONF_PATH_EXACT ? MATCH_EXACT :
			     m->path_kind == CONF_PATH_REGEX ? MATCH_REGEX : MATCH_PREFIX,
		.path = m->path,
		.headers = pairs_of(a, &m->headers), .n_headers = (uint16_t)m->headers.count,
		.queries = pairs_of(a, &m->query), .n_queries = (uint16_t)m->query.count,
	};

	for (size_t i = 0; i < hosts * ways; i++) {
		if (c->hosts.count)
			is.host = c->hosts.items[i / ways];
		if (m->methods.count)
			is.method = m->methods.items[i % ways];
		*(*at)++ = is;
	}
	return is.headers && is.queries;
}

static const struct route_match *matches_of(struct arena *a, const struct conf_route *c, size_t *n)
{
	size_t count = 0;
	struct route_match *m, *at;

	for (size_t i = 0; i < c->match_count; i++)
		count += ways_of(&c->matches[i]) * (c->hosts.count ? c->hosts.count : 1);
	m = at = arena_alloc(a, count * sizeof *m);
	for (size_t i = 0; m && i < c->match_count; i++)
		if (!match_of(a, &at, c, &c->matches[i]))
			return NULL;
	*n = count;
	return m;
}

/* The place in the file of what `err` is about: a service, or the match of a route that the n-th of its
 * matches was made from. */
static struct conf_pos place_of(const struct conf *c, const struct snapshot_error *err)
{
	const struct conf_route *r;
	size_t n = err->match;

	if (err->part == PART_SERVICE && err->index < c->service_count)
		return c->services[err->index].pos;
	if (err->part != PART_ROUTE || err->index >= c->route_count)
		return (struct conf_pos){0};
	r = &c->routes[err->index];
	for (size_t i = 0; i < r->match_count; i++) {
		size_t ways = ways_of(&r->matches[i]) * (r->hosts.count ? r->hosts.count : 1);

		if (n < ways)
			return r->matches[i].pos;
		n -= ways;
	}
	return r->pos;
}

static struct str label_of(struct arena *a, const struct conf_route *c)
{
	struct str host = c->hosts.count ? c->hosts.items[0] : STR("*"), path = c->matches->path;
	char *p = arena_alloc(a, host.n + path.n + 1);

	if (!p)
		return (struct str){0};
	memcpy(p, host.p, host.n);
	memcpy(p + host.n, path.p, path.n);
	return (struct str){ p, host.n + path.n };
}

static bool action_of(struct arena *a, struct route_spec *r, const struct conf_route *c)
{
	switch (c->action) {
	case CONF_ACTION_SERVICE:
		r->action = c->backend_count ? ROUTE_SPLIT : ROUTE_SERVICE;
		r->n_backends = (uint32_t)c->backend_count;
		break;
	case CONF_ACTION_REDIRECT:
		r->action = ROUTE_REDIRECT;
		r->status = (uint16_t)c->redirect.status;
		r->text = location_of(a, &c->redirect);
		break;
	case CONF_ACTION_ANSWER:
		r->action = ROUTE_ANSWER;
		r->status = (uint16_t)c->answer.status;
		r->text = c->answer.body;
		r->content_type = c->answer.type;
		break;
	}
	return c->action != CONF_ACTION_REDIRECT || r->text.p;
}

static const struct snapshot_backend *backends_of(struct arena *a, const struct conf_route *c)
{
	struct snapshot_backend *b = arena_alloc(a, c->backend_count * sizeof *b + 1);

	for (size_t i = 0; b && i < c->backend_count; i++)
		b[i] = (struct snapshot_backend){ .service = c->backends[i].service->index, .weight = c->backends[i].weight };
	return b;
}

/* What becomes of the path, on its way to a service or into a Location. */
static void rewrite_of(struct route_spec *r, const struct conf_route *c)
{
	struct str full = c->replace_path.n ? c->replace_path : c->redirect.path.full;
	struct str prefix = c->replace_prefix.n ? c->replace_prefix : c->redirect.path.prefix;

	r->rewrite = c->strip_prefix ? REWRITE_STRIP : prefix.n ? REWRITE_REPLACE : full.n ? REWRITE_PATH : REWRITE_NONE;
	if (r->rewrite == REWRITE_STRIP || r->rewrite == REWRITE_REPLACE)
		r->rewrite_from = c->matches->path;	/* conf: the same in all of them */
	r->rewrite_to = r->rewrite == REWRITE_PATH ? full : prefix;
}

/* Of two times, 0 being none. */
static uint32_t shorter(uint32_t a, uint32_t b)
{
	return !a || (b && b < a) ? b : a;
}

static bool route_of(struct arena *a, struct snapshot_route *to, const struct conf_route *c, struct policies *policies)
{
	struct route_spec *r = &to->route;
	bool whole;

	memset(to, 0, sizeof *to);
	whole = action_of(a, r, c);
	to->service = c->service ? c->service->index : SNAPSHOT_NO_SERVICE;
	to->backends = backends_of(a, c);
	to->matches = matches_of(a, c, &to->n_matches);
	r->label = label_of(a, c);
	r->request = headers_of(a, &c->request_headers, &(struct conf_hsts){0}, &r->n_request);
	r->response = headers_of(a, &c->response_headers, &c->hsts, &r->n_response);
	rewrite_of(r, c);
	r->odd_paths = (uint8_t)(c->odd_paths == CONF_ODD_REFUSE ? ODD_PATHS_REFUSE :
				 c->odd_paths == CONF_ODD_REDIRECT ? ODD_PATHS_REDIRECT : ODD_PATHS_PASS);
	r->host = c->replace_host;
	r->body_limit = c->body_limit == CONF_NO_LIMIT ? UINT64_MAX : c->body_limit;
	r->first_byte_ms = clamp32(c->timeouts.first_byte);
	r->try_ms = shorter(r->first_byte_ms, clamp32(c->retry.per_try_timeout));
	r->between_bytes_ms = clamp32(c->timeouts.between_bytes);
	r->tunnel_ms = clamp32(c->timeouts.tunnel);
	return whole && to->backends && to->matches && r->label.p && r->request && r->response &&
		policies_make(policies, c, &r->policy);
}

/* Where the connections of listeners go that do not speak HTTP; NULL: no memory. */
static const struct snapshot_listener *ways_of_listeners(struct arena *a, const struct conf *c)
{
	struct snapshot_listener *l = arena_alloc(a, c->listen_count * sizeof *l);

	for (size_t i = 0; l && i < c->listen_count; i++) {
		const struct conf_listen *from = &c->listens[i];
		struct snapshot_name *names = arena_alloc(a, from->sni.count * sizeof *names + 1);

		if (!names)
			return NULL;
		for (size_t k = 0; k < from->sni.count; k++)
			names[k] = (struct snapshot_name){ from->sni.items[k].host, from->sni.items[k].service->index };
		l[i] = (struct snapshot_listener){
			.service = from->service ? from->service->index : SNAPSHOT_NO_SERVICE,
			.names = names, .n_names = from->sni.count,
		};
	}
	return l;
}

static struct snapshot *make_snapshot(const struct conf *c, const struct tls *tls, struct health *health,
				      struct endpoint_table *endpoints, struct snapshot_error *err)
{
	struct snapshot_spec spec = { .endpoints = endpoints, .n_services = c->service_count, .n_routes = c->route_count };
	struct service_spec *services;
	struct snapshot_route *routes;
	struct snapshot *s = NULL;
	struct arena a;
	struct policies policies = { .file = c->file };
	size_t made = 0;
	bool whole = true;

	arena_init(&a, NULL, 0, NULL);
	services = arena_alloc(&a, c->service_count * sizeof *services + 1);
	routes = arena_alloc(&a, c->route_count * sizeof *routes + 1);
	spec.listeners = ways_of_listeners(&a, c);
	spec.n_listeners = c->listen_count;
	if (!services || !routes || !spec.listeners)
		goto out;
	for (size_t i = 0; i < c->service_count; i++) {
		uint16_t number;

		if (condition_number(health, &c->services[i], &a, &number) != OK)
			goto out;
		services[i] = service_of(&a, &c->services[i], tls_number(tls, &c->services[i]), number);
		whole = whole && services[i].endpoints;
	}
	for (; whole && made < c->route_count; made++)
		whole = route_of(&a, &routes[made], &c->routes[made], &policies);
	spec.services = services;
	spec.routes = routes;
	if (whole)
		s = snapshot_build(&spec, NULL, err);
	else
		policies_why(&policies, made - 1, err);
	for (size_t i = 0; i < made; i++)
		policy_unref(routes[i].route.policy);
	policies_fini(&policies);
	arena_fini(&a);
	return s;
out:
	snapshot_error_set(err, ERR_MEM, "out of memory");
	arena_fini(&a);
	return NULL;
}

/* The place and the reason, as errors of a file are written; the path may lose its front. */
static void refusal(const struct conf *c, const struct snapshot_error *err, size_t path_max, char *out, size_t size)
{
	struct conf_pos pos = place_of(c, err);
	struct str file = c->file;
	int n;

	if (file.n > path_max) {
		file.p += file.n - path_max;
		file.n = path_max;
	}
	n = snprintf(out, size, "%.*s:", (int)file.n, file.p);
	if (pos.line && n > 0 && (size_t)n < size)
		n += snprintf(out + n, size - (size_t)n, "%u:%u:", pos.line, pos.column);
	if (n > 0 && (size_t)n < size)
		snprintf(out + n, size - (size_t)n, " %s", err->text);
}

struct snapshot *settings_snapshot(const struct conf *c, const struct tls *tls, struct health *health,
				   struct endpoint_table *endpoints, struct snapshot_error *err)
{
	struct snapshot *s = make_snapshot(c, tls, health, endpoints, err);
	char text[sizeof err->text];

	if (s)
		return s;
	refusal(c, err, 64, text, sizeof text);
	memcpy(err->text, text, sizeof text);
	return NULL;
}

struct saying {
	const struct conf *c;
	FILE *to;
};

static void say_wrong(void *ctx, struct conf_pos pos, const char *text)
{
	const struct saying *s = ctx;

	if (pos.line)
		fprintf(s->to, "%s:%u:%u: %s\n", s->c->file.p, pos.line, pos.column, text);
	else
		fprintf(s->to, "%s: %s\n", s->c->file.p, text);
}

bool settings_check(const struct conf *c, int64_t now, FILE *to)
{
	struct endpoint_table *endpoints = endpoint_table_new();
	struct snapshot_error err = { .err = ERR_MEM, .text = "out of memory" };
	struct saying saying = { c, to };
	struct tls *tls = NULL;
	enum err whole = tls_new(c, now, say_wrong, &saying, &tls);
	struct snapshot *s = endpoints && whole != ERR_MEM ? make_snapshot(c, tls, NULL, endpoints, &err) : NULL;
	char text[PATH_MAX + sizeof err.text + 32];

	if (!s) {
		refusal(c, &err, PATH_MAX, text, sizeof text);
		fprintf(to, "%s\n", text);
	} else if (whole == OK) {
		tls_warnings_print(tls, c, now, to);
	}
	snapshot_unref(s);
	endpoint_table_free(endpoints);
	tls_free(tls);
	return s && whole == OK;
}
