/* routing: see routing.h.
 *
 * Reads the snapshot; keeps nothing but what it notes in the exchange:
 * references to the route and to the endpoint, and x->head. */
#include "proxy/routing.h"

#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/base/path.h"
#include "proxy/affinity.h"
#include "proxy/forward.h"
#include "proxy/peer.h"
#include "proxy/retrying.h"
#include "proxy/slots.h"

/* --- the route --- */

static bool header_of(void *ctx, struct str name, struct str *value)
{
	unsigned i = 0;
	const struct field *f = head_find(ctx, name, &i);

	if (f)
		*value = field_value(f);
	return f;
}

/* The path that routes are matched against.  An origin may well read /x/../admin and /%61dmin as /admin,
 * so that is what they are here too; what is forwarded stays as it came. */
static enum cause path_to_match(struct exchange *x, const struct head *h, struct str *path)
{
	char *p;

	*path = h->path;
	if (h->path.p[0] != '/')
		return CAUSE_NONE;
	p = arena_alloc(&x->arena, 3 * h->path.n);
	if (!p)
		return CAUSE_NO_MEMORY;
	*path = (struct str){ p, path_normal(h->path, p) };
	return CAUSE_NONE;
}

/* Whether taking `prefix` off the path as it came leaves what taking it off the normal form leaves: not so when it
 * is written with escapes, or when dot segments lead out of it. */
static bool rewrites_plainly(struct exchange *x, struct str prefix, struct str path, struct str normal)
{
	struct str rest;
	size_t n;
	char *p;

	if (str_eq(path, normal))
		return true;
	if (prefix.n == 1)	/* "/" */
		prefix.n = 0;
	if (!str_starts(path, prefix))
		return false;
	rest = (struct str){ path.p + prefix.n, path.n - prefix.n };
	if (rest.n == 0 || rest.p[0] != '/')
		return false;
	p = arena_alloc(&x->arena, 3 * rest.n);
	if (!p)
		return false;
	n = path_normal(rest, p);
	return str_eq((struct str){ p, n }, (struct str){ normal.p + prefix.n, normal.n - prefix.n });
}

/* Whether a client that saw our certificate had no reason to ask us for this host (RFC 9110 7.4): it may have taken
 * the connection for one with somebody else.  Addresses are not held against it: probes use them. */
static bool misdirected(const struct exchange *x, struct str authority)
{
	const struct identity *who = identity_of(x->client);
	struct str host = authority;
	const char *colon = host.n ? memchr(host.p, ':', host.n) : NULL;
	bool address = true;

	if (!host.n || host.p[0] == '[')
		return false;
	if (colon)
		host.n = (size_t)(colon - host.p);
	if (host.n && host.p[host.n - 1] == '.')
		host.n--;
	for (size_t i = 0; i < host.n && address; i++)
		address = host.p[i] == '.' || (host.p[i] >= '0' && host.p[i] <= '9');
	return !address && who && !tls_group_serves(who->group, host);
}

/* What a route that is particular about paths says to one; `normal` is what it was found by. */
static enum cause judge_path(struct exchange *x, const struct head *h, struct str normal)
{
	struct str query = { h->path.p + h->path.n, h->target.n - h->path.n };
	enum path_oddity odd = h->path.p[0] == '/' ? path_oddity(h->path) : PATH_PLAIN;
	char *p;

	if (odd == PATH_PLAIN)
		return CAUSE_NONE;
	if (odd == PATH_UNSURE || x->route->spec->odd_paths == ODD_PATHS_REFUSE)
		return CAUSE_ODD_PATH;
	p = arena_alloc(&x->arena, normal.n + query.n);
	if (!p)
		return CAUSE_NO_MEMORY;
	memcpy(p, normal.p, normal.n);
	memcpy(p + normal.n, query.p, query.n);
	if (forward_note(x, HEADER_SET, STR("Location"), (struct str){ p, normal.n + query.n }) != OK)
		return CAUSE_NO_MEMORY;
	return CAUSE_PATH_REDIRECT;
}

/* Where an authority looks, by plain HTTP, whether a host is ours (RFC 8555 8.3). */
static const struct str acme = { "/.well-known/acme-challenge/", 28 };

static bool redirects(const struct exchange *x, const struct listener *l, const struct head *h, struct str path)
{
	return !str_starts(path, acme) && !(l->redirect_plain && str_eq(forward_scheme(x, h), STR("https")));
}

enum cause routing_find(struct exchange *x, struct head *h)
{
	struct route_query q = {
		.host = h->authority, .method = h->method, .path = h->path,
		.header = header_of, .ctx = h,
	};
	const struct listener *listener = &x->w->settings->listeners[x->client->listener];
	const struct route *route;

	if (conn_secure(x->client) && misdirected(x, h->authority))
		return CAUSE_MISDIRECTED;
	if (!path_is_normal(h->path) && path_to_match(x, h, &q.path) != CAUSE_NONE)
		return CAUSE_NO_MEMORY;
	if (listener->redirect && redirects(x, listener, h, q.path)) {
		x->route = route_ref(listener->redirect);
		return CAUSE_NONE;
	}
	if (h->target.n > h->path.n)
		q.query = (struct str){ h->path.p + h->path.n + 1, h->target.n - h->path.n - 1 };
	switch (snapshot_find(x->w->snapshot, &q, &route)) {
	case ROUTE_FOUND:
		break;
	case ROUTE_NONE:
		return CAUSE_NO_ROUTE;
	case ROUTE_UNDECIDED:
		return CAUSE_NO_SERVICE;
	}
	x->route = route_ref(route);
	x->lease.service = route->spec->action == ROUTE_SPLIT ? route_next_backend(route) : route->service;
	x->body_limit = route->spec->body_limit;
	if (route->spec->action == ROUTE_INVALID || (route->spec->action == ROUTE_SPLIT && !x->lease.service))
		return CAUSE_NO_SERVICE;
	return CAUSE_NONE;
}

enum cause routing_path(struct exchange *x, const struct head *h)
{
	const struct route_spec *r = x->route->spec;
	enum cause cause = CAUSE_NONE;
	struct str normal;

	if (path_to_match(x, h, &normal) != CAUSE_NONE)
		return CAUSE_NO_MEMORY;
	if (r->odd_paths != ODD_PATHS_PASS)
		cause = judge_path(x, h, normal);
	if (cause == CAUSE_NONE && (r->rewrite == REWRITE_STRIP || r->rewrite == REWRITE_REPLACE) &&
	    !rewrites_plainly(x, r->rewrite_from, h->path, normal))
		cause = CAUSE_AMBIGUOUS_PATH;
	return cause;
}

static bool may_upgrade(const struct exchange *x, struct str protocol)
{
	const struct listener *l = &x->w->settings->listeners[x->client->listener];

	for (unsigned i = 0; i < l->n_upgrade; i++)
		if (str_ieq(l->upgrade[i], protocol))
			return true;
	return false;
}

/* --- choosing an endpoint --- */

static bool has_room(void *lease, const struct endpoint *e)
{
	return slots_room(lease, e, false);
}

static bool has_room_for_waiter(void *lease, const struct endpoint *e)
{
	return slots_room(lease, e, true);
}

/* Why there is no endpoint at all. */
static enum cause nobody(const struct service *s)
{
	return s->named && !service_set(s)->n ? CAUSE_UNRESOLVED : CAUSE_NO_ENDPOINT;
}

enum cause routing_pick(struct lease *l, const struct endpoint_tried *tried)
{
	struct endpoint *e = balance_pick(&l->w->balance, l->service, l->key, tried), *other;

	if (!e)
		return nobody(l->service);
	if (rules_limit(l->service->rules) && !has_room(l, e)) {	/* it would have to wait */
		other = balance_free(&l->w->balance, l->service, l->key, tried, has_room, l);
		e = other ? other : e;
	}
	lease_aim(l, e);
	return CAUSE_NONE;
}

struct endpoint *routing_free(struct lease *l, const struct endpoint_tried *tried, enum cause *cause)
{
	struct endpoint *e = balance_pick(&l->w->balance, l->service, l->key, tried);

	*cause = e ? CAUSE_NONE : nobody(l->service);
	if (!e || has_room_for_waiter(l, e))
		return e;
	return balance_free(&l->w->balance, l->service, l->key, tried, has_room_for_waiter, l);
}

bool routing_pick_other(struct lease *l, struct endpoint_tried *tried)
{
	endpoint_tried_add(tried, l->endpoint);
	l->again = true;
	return tried->n < ROUTING_TRIES && tried->n < service_set(l->service)->n && routing_pick(l, tried) == CAUSE_NONE;
}

/* What Host says of `e`, where it says anything of it. */
static struct str host_of(const struct endpoint *e, char text[ENDPOINT_TEXT_MAX])
{
	return e->family == ENDPOINT_UNIX ? STR("localhost") : endpoint_text(e, text);
}

struct str routing_host(const struct lease *l, struct str authority, char text[ENDPOINT_TEXT_MAX])
{
	uint8_t rule = l->service->rules->host;

	if (rule == SERVICE_HOST_LITERAL)
		return l->service->rules->host_literal;
	if (rule != SERVICE_HOST_ENDPOINT && authority.n)
		return authority;
	return host_of(l->endpoint, text);	/* also for an HTTP/1.0 client that names no host */
}

bool routing_aimed(struct exchange *x, const struct endpoint *before)
{
	char old_text[ENDPOINT_TEXT_MAX], text[ENDPOINT_TEXT_MAX];
	struct str old = host_of(before, old_text), new = host_of(x->lease.endpoint, text);
	char *p, *head;
	size_t n;

	if (x->lease.service->rules->host != SERVICE_HOST_ENDPOINT || x->route->spec->host.n)
		return true;
	/* the Host line, which the codec puts first, names the endpoint */
	p = memmem(x->head.p + x->preface, x->head.n - x->preface, "\r\nHost: ", 8);
	CHECK(p && str_starts((struct str){ p + 8, x->head.n - (size_t)(p + 8 - x->head.p) }, old));
	n = (size_t)(p + 8 - x->head.p);
	head = arena_alloc(&x->arena, x->head.n - old.n + new.n);
	if (!head)
		return false;
	memcpy(head, x->head.p, n);
	memcpy(head + n, new.p, new.n);
	memcpy(head + n + new.n, p + 8 + old.n, x->head.n - n - old.n);
	x->head = (struct str){ head, x->head.n - old.n + new.n };
	return true;
}

static bool takes_new(const struct service_endpoint *e)
{
	return e->weight && e->state != ENDPOINT_DRAIN;
}

bool routing_untried(const struct exchange *x)
{
	const struct endpoint_set *set = service_set(x->lease.service);
	bool up = false, untried = false, untried_up = false;

	for (uint32_t i = 0; i < set->n; i++) {
		const struct endpoint *e = set->at[i].endpoint;
		bool new = takes_new(&set->at[i]) && e != x->lease.endpoint && !endpoint_tried_has(&x->tried, e);

		up |= takes_new(&set->at[i]) && endpoint_up(e);
		untried |= new;
		untried_up |= new && endpoint_up(e);
	}
	return up ? untried_up : untried;
}

enum cause routing_next_endpoint(struct exchange *x)
{
	struct endpoint *last = endpoint_ref(x->lease.endpoint);
	bool untried = routing_untried(x);
	enum cause cause;

	if (!untried)
		x->tried.n = 0;	/* once more round, but not the same again at once */
	endpoint_tried_add(&x->tried, last);
	cause = routing_pick(&x->lease, &x->tried);
	if (cause == CAUSE_NONE && x->lease.endpoint != last && !routing_aimed(x, last)) {
		lease_aim(&x->lease, last);	/* whom the head that there is names */
		cause = CAUSE_NO_MEMORY;
	}
	endpoint_unref(last);
	return cause;
}

/* --- the head --- */

/* A head that begins with the header that says who the client is, and so needs a connection of its own. */
static struct str introduced(struct exchange *x, struct str head)
{
	char header[PROXYPROTO_WRITE_MAX];
	size_t n = peer_header(x->lease.service, x->client, header);
	char *p = arena_alloc(&x->arena, n + head.n);

	if (!p)
		return (struct str){0};
	memcpy(p, header, n);
	memcpy(p + n, head.p, head.n);
	x->preface = (uint8_t)n;
	x->lease.own = true;
	return (struct str){ p, n + head.n };
}

/* Makes x->head, the bytes that the upstream gets. */
static enum cause make_head(struct exchange *x, struct head *h)
{
	struct vec *v = &x->w->vec;
	char text[ENDPOINT_TEXT_MAX];
	enum cause cause = forward_request(x, h);

	if (cause != CAUSE_NONE)
		return cause;
	switch (x->route->spec->rewrite ? route_rewrite_target(x->route, h->target, &x->arena, &h->target) : OK) {
	case OK:
		break;
	case ERR_MEM:
		return CAUSE_NO_MEMORY;
	default:
		return CAUSE_BAD_REWRITE;
	}
	h->authority = x->route->spec->host.n ? x->route->spec->host : routing_host(&x->lease, h->authority, text);
	h1_init(&x->upstream, CODEC_UPSTREAM, x->w->h1_upstream);
	if (codec_put_head(&x->upstream.codec, 0, h, v) != OK || v->n != 1) {
		vec_reset(v);
		return CAUSE_BAD_REQUEST;
	}
	if (x->lease.service->rules->proxy)
		x->head = introduced(x, (struct str){ v->iov[0].iov_base, v->iov[0].iov_len });
	else
		x->head = arena_dup(&x->arena, (struct str){ v->iov[0].iov_base, v->iov[0].iov_len });
	vec_reset(v);
	return x->head.p ? CAUSE_NONE : CAUSE_NO_MEMORY;
}

enum cause routing_prepare(struct exchange *x, struct head *h)
{
	enum cause cause = CAUSE_NONE;

	if (h->has_length && h->length > x->body_limit)
		return CAUSE_BODY_LIMIT;
	if (h->upgrade.n && !may_upgrade(x, h->upgrade))
		h->upgrade.n = 0;
	if (x->lease.service->rules->balance >= BALANCE_HASH)
		x->lease.key = affinity_of(x, h);
	cause = routing_pick(&x->lease, &x->tried);
	if (cause == CAUSE_NONE)
		cause = make_head(x, h);
	if (cause == CAUSE_NONE)
		retrying_count(x->w, x->lease.service->index);
	x->replayable = h->body != BODY_SIZED || h->length <= x->w->settings->replay;
	return cause;
}
