/* policies: see policies.h.  One function a feature makes its part; POLICY_MAKERS lists them. */
#include "proxy/policies.h"

#include <string.h>

#include "conf/conf.h"
#include "dispatch/addresses.h"
#include "dispatch/auth.h"
#include "dispatch/basic.h"
#include "dispatch/cors.h"
#include "dispatch/encoding.h"
#include "dispatch/limits.h"
#include "dispatch/mirror.h"
#include "dispatch/retry.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/http/encode.h"
#include "lib/http/head.h"
#include "proxy/retrying.h"

/* A maker gives the part of `c` with one reference, or NULL for none; false when it cannot, and p->err says why
 * (all zero: no memory). */
typedef bool maker(struct policies *p, const struct conf_route *c, struct policy_part **out);

bool policies_networks(struct networks **to, const struct conf_cidr_list *list)
{
	struct network *n = list->count ? mem_alloc(list->count * sizeof *n) : NULL;

	for (size_t i = 0; n && i < list->count; i++) {
		const struct conf_cidr *c = &list->items[i];

		n[i] = (struct network){
			.family = c->kind == CONF_UNIX ? NETWORK_UNIX : c->kind == CONF_INET6 ? NETWORK_IP6 : NETWORK_IP4,
			.bits = c->bits,
		};
		memcpy(n[i].ip, c->ip, 16);
	}
	*to = n ? networks_new(n, list->count) : NULL;
	mem_free(n);
	return *to || !list->count;
}

static bool addresses_make(struct policies *p, const struct conf_route *c, struct policy_part **out)
{
	struct networks *allow = NULL, *deny = NULL;

	(void)p;
	if (!c->allow.count && !c->deny.count)
		return true;
	if (policies_networks(&allow, &c->allow) && policies_networks(&deny, &c->deny))
		*out = addresses_new(allow, deny);
	if (*out)
		return true;
	networks_free(allow);
	networks_free(deny);
	return false;
}

static bool limits_make(struct policies *p, const struct conf_route *c, struct policy_part **out)
{
	struct limit_spec spec[LIMITS_MAX];
	size_t n = c->rate_limits.count;

	(void)p;
	if (!n)
		return true;
	CHECK(n <= LIMITS_MAX);	/* conf has seen to it */
	for (size_t i = 0; i < n; i++) {
		const struct conf_rate_limit *r = &c->rate_limits.items[i];

		spec[i] = (struct limit_spec){
			.by = r->by == CONF_BY_ROUTE ? LIMIT_BY_ROUTE : r->by == CONF_BY_HEADER ? LIMIT_BY_HEADER : LIMIT_BY_ADDRESS,
			.bits4 = (uint8_t)r->ipv4_prefix, .bits6 = (uint8_t)r->ipv6_prefix,
			.count = r->count, .period_s = r->period, .burst = r->burst, .header = r->header, .name = r->name,
		};
	}
	*out = limits_new(spec, (unsigned)n);
	return *out;
}

static struct cors_list list_of(const struct conf_str_list *l)
{
	return (struct cors_list){ l->items, (uint16_t)l->count };
}

static bool cors_make(struct policies *p, const struct conf_route *c, struct policy_part **out)
{
	const struct conf_cors *s = &c->cors;
	struct cors_spec spec = {
		.origins = list_of(&s->origins), .methods = list_of(&s->methods), .headers = list_of(&s->headers),
		.expose = list_of(&s->expose), .credentials = s->credentials,
		.max_age = s->max_age == CONF_NO_LIMIT ? CORS_NO_AGE : (uint32_t)(s->max_age / 1000),
	};

	if (s->on)
		*out = cors_new(&spec, &p->err);
	return !s->on || *out;
}

static bool basic_make(struct policies *p, const struct conf_route *c, struct policy_part **out)
{
	const struct conf_basic_auth *b = &c->basic_auth;
	struct basic_spec spec = { .realm = b->realm, .user_header = b->user_header, .forward = b->forward };

	if (!b->file.n)
		return true;
	spec.users = users_read(&p->users, p->file, b->file, &p->err);
	if (spec.users)
		*out = basic_new(&spec, &p->err);
	return *out;
}

#define NAMES_MAX 100	/* conf has no longer lists */

static struct auth_names names_of(const struct conf_header_list *list, struct str to[NAMES_MAX])
{
	CHECK(list->count <= NAMES_MAX);
	for (size_t i = 0; i < list->count; i++)
		to[i] = list->items[i].name;
	return (struct auth_names){ to, (uint16_t)list->count };
}

static bool auth_make(struct policies *p, const struct conf_route *c, struct policy_part **out)
{
	static const struct str methods[] = {
		[CONF_AUTH_GET] = STR("GET"), [CONF_AUTH_HEAD] = STR("HEAD"), [CONF_AUTH_POST] = STR("POST"),
	};
	struct str request[NAMES_MAX], response[NAMES_MAX];
	const struct conf_auth *a = &c->auth;

	(void)p;
	if (!a->service)
		return true;
	*out = auth_new(&(struct auth_spec){
		.service = a->service->index, .method = methods[a->method], .path = a->path, .all_fields = !a->request_headers.items,
		.request = names_of(&a->request_headers, request), .response = names_of(&a->response_headers, response),
		.sign_in = a->sign_in, .set_cookie = a->set_cookie, .timeout_ms = (uint32_t)a->timeout,
	});
	return *out;
}

static bool mirror_make(struct policies *p, const struct conf_route *c, struct policy_part **out)
{
	const struct conf_mirror *m = &c->mirror;

	(void)p;
	if (!m->service)
		return true;
	_Static_assert(MIRROR_ALL == CONF_SHARE_ALL, "shares are of the same whole");
	*out = mirror_new(&(struct mirror_spec){
		.service = m->service->index, .share = m->share, .body_limit = (uint32_t)m->body_limit, .timeout_ms = (uint32_t)m->timeout,
	});
	return *out;
}

static bool encoding_make(struct policies *p, const struct conf_route *c, struct policy_part **out)
{
	static const uint8_t codings[CONF_CODINGS] = {
		[CONF_CODING_ZSTD] = CODING_ZSTD, [CONF_CODING_BR] = CODING_BR, [CONF_CODING_GZIP] = CODING_GZIP,
	};
	static const uint8_t levels[] = {
		[CONF_COMPRESS_FAST] = ENCODE_FAST, [CONF_COMPRESS_BALANCED] = ENCODE_BALANCED,
		[CONF_COMPRESS_SMALL] = ENCODE_SMALL,
	};
	const struct conf_compress *from = &c->compress;
	struct encoding e = { .min_size = from->min_size, .level = levels[from->level],
			      .types = from->types.items, .n_types = (uint16_t)from->types.count };

	(void)p;
	if (!from->on)
		return true;
	for (size_t i = 0; i < from->coding_count; i++)
		e.codings[e.n_codings++] = codings[from->codings[i]];
	*out = encoding_new(&e);
	return *out;
}

static bool retry_make(struct policies *p, const struct conf_route *c, struct policy_part **out)
{
	const struct conf_retry *r = &c->retry;
	struct retry_policy policy = {
		.attempts = (uint8_t)r->attempts, .same = true, .n_statuses = (uint8_t)r->status_count,
		.on = (uint8_t)(r->connect << RETRY_CONNECT | r->reset << RETRY_RESET | r->timeout << RETRY_TIMEOUT |
				(r->status_count > 0) << RETRY_STATUS),
		.base_ms = (uint32_t)r->backoff.base, .max_ms = (uint32_t)r->backoff.max,
	};

	(void)p;
	if (r->said == CONF_RETRY_DEFAULT)
		return true;
	_Static_assert(CONF_RETRY_ON_MAX <= RETRY_STATUSES, "all statuses fit");
	_Static_assert(RETRY_RATIO_ALL == CONF_SHARE_ALL, "shares are of the same whole");
	for (size_t i = 0; i < r->status_count; i++)
		policy.status[i] = r->statuses[i];
	for (size_t i = 0; i < r->methods.count; i++)
		policy.methods |= (uint16_t)(1u << method_of(r->methods.items[i]));
	if (!r->methods.count)
		policy.methods = retrying_default.methods;
	*out = retry_new(&policy);
	return *out;
}

static const struct {
	maker *make;
	bool shared;	/* its part has no state of its own */
} makers[POLICY_N] = {
	[POLICY_ADDRESSES] = { addresses_make, true },
	[POLICY_CORS] = { cors_make, true },
	[POLICY_RATE] = { limits_make, false },
	[POLICY_BASIC] = { basic_make, true },
	[POLICY_AUTH] = { auth_make, true },
	[POLICY_MIRROR] = { mirror_make, false },
	[POLICY_ENCODE] = { encoding_make, true },
	[POLICY_RETRY] = { retry_make, true },
};

static void share(struct policies *p, unsigned id, struct policy_part **part)
{
	if (makers[id].shared && policy_part_same(*part, p->last[id])) {
		policy_part_unref(*part);
		*part = policy_part_ref(p->last[id]);
	} else {
		policy_part_unref(p->last[id]);
		p->last[id] = policy_part_ref(*part);
	}
}

bool policies_make(struct policies *p, const struct conf_route *c, struct policy **out)
{
	struct policy_part *part[POLICY_N] = {0};
	bool good = true, any = false;
	unsigned i;

	*out = NULL;
	for (i = 0; i < POLICY_N && good; i++) {
		good = !makers[i].make || makers[i].make(p, c, &part[i]);
		if (part[i]) {
			share(p, i, &part[i]);
			any = true;
		}
	}
	if (good && any)
		*out = policy_new(part);
	if (!good || (any && !*out)) {
		for (i = 0; i < POLICY_N; i++)
			policy_part_unref(part[i]);
		return false;
	}
	return true;
}

void policies_why(const struct policies *p, size_t route, struct snapshot_error *err)
{
	if (p->err.err == OK) {
		snapshot_error_set(err, ERR_MEM, "out of memory");
		return;
	}
	*err = p->err;
	err->part = PART_ROUTE;
	err->index = route;
}

void policies_fini(struct policies *p)
{
	for (unsigned i = 0; i < POLICY_N; i++)
		policy_part_unref(p->last[i]);
	users_free(p->users);
}
