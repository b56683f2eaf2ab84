/* Door: route objects, and what they do to a request's target.  A route is a small
 * heap block; it owns one reference to its service and one to its shape, which is all that
 * routes can have in common, with every string in it.  It is
 * owned by those who hold references: snapshots and exchanges.
 * Everything in it was checked when it was made, so that nothing a specification
 * says can break a head on the wire; what a client sends is checked where it is
 * put into a Location. */
#include "dispatch/route.h"

#include <stddef.h>
#include <string.h>
#include "dispatch/text.h"
#include "lib/base/check.h"
#include "lib/base/hash.h"
#include "lib/base/mem.h"

/* What frames a message or belongs to one hop is not for a route to change; Host
 * has a policy of its own. */
static bool name_reserved(struct str name)
{
	static const char *const reserved[] = {"host", "connection", "content-length", "transfer-encoding",
		"upgrade", "te", "trailer", "keep-alive", "proxy-connection", "http2-settings"};
	size_t i;

	for (i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++)
		if (str_ieq(name, str_of(reserved[i])))
			return true;
	return false;
}

static enum err mods_check(const struct header_mod *m, size_t n, struct snapshot_error *err)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (m[i].op > HEADER_SET_SECURE)
			return snapshot_error_set(err, ERR_SYNTAX, "unknown change %u of a header", m[i].op);
		if (!text_token(m[i].name) || m[i].name.n > UINT16_MAX)
			return snapshot_error_set(err, ERR_SYNTAX, "a header to change has no proper name");
		if (name_reserved(m[i].name))
			return snapshot_error_set(err, ERR_SYNTAX, "header '%.*s' cannot be changed by a route",
						  (int)m[i].name.n, m[i].name.p);
		if (!text_value(m[i].value))
			return snapshot_error_set(err, ERR_SYNTAX, "the value for header '%.*s' has control bytes",
						  (int)m[i].name.n, m[i].name.p);
	}
	return OK;
}

/* A Location starts with one slash, {path}, or a scheme, :// and a host: never in a
 * way that what comes for {path} could become the host. */
static bool location_start_ok(struct str t)
{
	static const struct str schemes[] = {{"https://", 8}, {"http://", 7}, {"{scheme}://", 11}};
	size_t i, mark;

	for (i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
		struct str rest = {t.p + schemes[i].n, t.n - schemes[i].n};

		if (!str_starts(t, schemes[i]))
			continue;
		return rest.n && !strchr("/\\:", rest.p[0]) && (rest.p[0] != '{' || text_mark(rest, &mark) == MARK_HOST);
	}
	if (text_mark(t, &mark) == MARK_PATH)
		return true;
	return t.n && t.p[0] == '/' && (t.n == 1 || (t.p[1] != '/' && t.p[1] != '\\'));
}

static enum err location_check(struct str t, struct snapshot_error *err)
{
	size_t i, n;

	if (!text_target(t) || !location_start_ok(t))
		return snapshot_error_set(err, ERR_SYNTAX,
					  "a redirect goes to a path, to {path}, or to http:// or https:// with a host");
	for (i = 0; i < t.n; i++) {
		if (text_mark((struct str){t.p + i, t.n - i}, &n) != MARK_NONE)
			i += n - 1;
		else if (t.p[i] == '{' || t.p[i] == '}')
			return snapshot_error_set(err, ERR_SYNTAX,
						  "a redirect knows the placeholders {host} and {path}, no other");
	}
	return OK;
}

static bool prefix_ok(struct str s)
{
	return text_target(s) && !memchr(s.p ? s.p : "", '?', s.n) && !memchr(s.p ? s.p : "", '#', s.n) &&
	       (s.n == 0 || s.p[0] == '/');
}

static enum err action_check(const struct route_spec *s, struct snapshot_error *err)
{
	switch (s->action) {
	case ROUTE_INVALID:
		return OK;
	case ROUTE_SERVICE:
		return s->service ? OK : snapshot_error_set(err, ERR_SYNTAX, "the route names no service");
	case ROUTE_SPLIT:
		return s->n_backends ? OK : snapshot_error_set(err, ERR_SYNTAX, "the route names no service");
	case ROUTE_REDIRECT:
		if (s->status != 301 && s->status != 302 && s->status != 303 && s->status != 307 && s->status != 308)
			return snapshot_error_set(err, ERR_SYNTAX, "%u is not the status of a redirect", s->status);
		return location_check(s->text, err);
	case ROUTE_ANSWER:
		if (s->status < 200 || s->status > 599)
			return snapshot_error_set(err, ERR_SYNTAX, "%u is not the status of an answer", s->status);
		if ((s->status == 204 || s->status == 304) && s->text.n)
			return snapshot_error_set(err, ERR_SYNTAX, "an answer with status %u has no body", s->status);
		return text_value(s->content_type) ? OK
			: snapshot_error_set(err, ERR_SYNTAX, "the content type has control bytes");
	}
	return snapshot_error_set(err, ERR_SYNTAX, "unknown action %u", s->action);
}

static enum err spec_check(const struct route_spec *s, struct snapshot_error *err)
{
	enum err e = action_check(s, err);

	if (e == OK && (!text_value(s->label) || s->label.n > UINT16_MAX))
		e = snapshot_error_set(err, ERR_SYNTAX, "the label has control bytes");
	if (e == OK && s->rewrite > REWRITE_PATH)
		e = snapshot_error_set(err, ERR_SYNTAX, "unknown rewrite %u", s->rewrite);
	if (e == OK && (!prefix_ok(s->rewrite_from) || !prefix_ok(s->rewrite_to)))
		e = snapshot_error_set(err, ERR_SYNTAX, "a prefix to rewrite is a path that begins with '/'");
	if (e == OK && (!text_target(s->host) || memchr(s->host.p ? s->host.p : "", '/', s->host.n)))
		e = snapshot_error_set(err, ERR_SYNTAX, "the host to send is none");
	if (e == OK)
		e = mods_check(s->request, s->n_request, err);
	if (e == OK)
		e = mods_check(s->response, s->n_response, err);
	return e;
}

/* What a route keeps of a specification: two that differ in nothing that counts
 * become the same. */
static struct route_spec spec_canonical(const struct route_spec *spec)
{
	struct route_spec s = *spec;

	if (s.action != ROUTE_SERVICE)
		s.service = NULL;
	if (s.action != ROUTE_ANSWER)
		s.content_type = STR("");
	if (s.action != ROUTE_ANSWER && s.action != ROUTE_REDIRECT) {
		s.status = 0;
		s.text = STR("");
	}
	if (s.action != ROUTE_SPLIT)
		s.n_backends = 0;
	s.rewrite_from = s.rewrite == REWRITE_NONE || s.rewrite == REWRITE_PATH ? STR("") : text_no_slash(s.rewrite_from);
	s.rewrite_to = s.rewrite == REWRITE_REPLACE ? text_no_slash(s.rewrite_to) :
		       s.rewrite == REWRITE_PATH ? s.rewrite_to : STR("");
	return s;
}

#define N_STRINGS 5	/* of a shape */

static void spec_strings(struct route_spec *s, struct str *out[N_STRINGS])
{
	out[0] = &s->text;
	out[1] = &s->content_type;
	out[2] = &s->rewrite_from;
	out[3] = &s->rewrite_to;
	out[4] = &s->host;
}

static struct str put(char **at, struct str s)
{
	struct str copy = {*at, s.n};

	if (s.n)
		memcpy(*at, s.p, s.n);
	*at += s.n;
	return copy;
}

static size_t mods_text(const struct header_mod *m, size_t n)
{
	size_t i, sum = 0;

	for (i = 0; i < n; i++)
		sum += m[i].name.n + m[i].value.n;
	return sum;
}

static void mods_put(struct header_mod *to, const struct header_mod *m, size_t n, char **text)
{
	size_t i;

	for (i = 0; i < n; i++)
		to[i] = (struct header_mod){m[i].op, put(text, m[i].name), put(text, m[i].value)};
}

static void backends_put(struct route_backend *to, const struct route_backend *from, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		to[i] = from[i];
		if (to[i].service)
			service_ref(to[i].service);
	}
}

static bool mods_equal(const struct header_mod *a, const struct header_mod *b, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (a[i].op != b[i].op || !str_eq(a[i].name, b[i].name) || !str_eq(a[i].value, b[i].value))
			return false;
	return true;
}

static bool backends_equal(const struct route_spec *a, const struct route_spec *b)
{
	if (a->n_backends != b->n_backends)
		return false;
	for (size_t i = 0; i < a->n_backends; i++)
		if (a->backends[i].service != b->backends[i].service || a->backends[i].weight != b->backends[i].weight)
			return false;
	return true;
}

/* Whether two canonical ones are alike but for service and label. */
static bool shape_is(const struct route_spec *is, const struct route_spec *other)
{
	struct route_spec a = *is, b = *other;
	struct str *as[N_STRINGS], *bs[N_STRINGS];
	size_t i;

	if (a.action != b.action || a.rewrite != b.rewrite || a.odd_paths != b.odd_paths || a.status != b.status ||
	    a.n_request != b.n_request || a.n_response != b.n_response || a.body_limit != b.body_limit ||
	    a.first_byte_ms != b.first_byte_ms || a.try_ms != b.try_ms || a.between_bytes_ms != b.between_bytes_ms ||
	    a.tunnel_ms != b.tunnel_ms || !policy_same(a.policy, b.policy) ||
	    !backends_equal(&a, &b))
		return false;
	spec_strings(&a, as);
	spec_strings(&b, bs);
	for (i = 0; i < N_STRINGS; i++)
		if (!str_eq(*as[i], *bs[i]))
			return false;
	return mods_equal(a.request, b.request, a.n_request) && mods_equal(a.response, b.response, a.n_response);
}

struct shape {
	_Atomic uint32_t refs;
	struct route_spec spec;		/* every string and array is in this block */
};

static struct shape *shape_of(const struct route *r)
{
	return (struct shape *)((char *)(uintptr_t)r->spec - offsetof(struct shape, spec));
}

/* `s` is canonical, and checked. */
static struct shape *shape_new(struct route_spec s)
{
	size_t n_mods = (size_t)s.n_request + s.n_response, size, i;
	struct str *strings[N_STRINGS];
	struct route_backend *backends;
	struct header_mod *mods;
	struct shape *made;
	char *text;

	spec_strings(&s, strings);
	size = sizeof(*made) + s.n_backends * sizeof(*backends) + n_mods * sizeof(*mods) + mods_text(s.request, s.n_request) +
	       mods_text(s.response, s.n_response);
	for (i = 0; i < N_STRINGS; i++)
		size += strings[i]->n;
	made = mem_alloc(size);
	if (!made)
		return NULL;
	backends = (struct route_backend *)(made + 1);
	backends_put(backends, s.backends, s.n_backends);
	s.backends = s.n_backends ? backends : NULL;
	mods = (struct header_mod *)(backends + s.n_backends);
	text = (char *)(mods + n_mods);
	mods_put(mods, s.request, s.n_request, &text);
	mods_put(mods + s.n_request, s.response, s.n_response, &text);
	s.request = mods;
	s.response = mods + s.n_request;
	for (i = 0; i < N_STRINGS; i++)
		*strings[i] = put(&text, *strings[i]);
	CHECK(text == (char *)made + size);
	if (s.policy)
		policy_ref(s.policy);
	s.service = NULL;
	s.label = STR("");
	made->spec = s;
	atomic_init(&made->refs, 1);
	return made;
}

static void shape_unref(struct shape *s)
{
	if (atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
		return;
	for (size_t i = 0; i < s->spec.n_backends; i++)
		service_unref(s->spec.backends[i].service);
	policy_unref(s->spec.policy);
	mem_free(s);
}

struct route *route_new(const struct route_spec *spec, uint64_t hash, const struct route *like, struct snapshot_error *err)
{
	struct route_spec s = spec_canonical(spec);
	struct shape *shape;
	struct route *r;

	if (spec_check(spec, err) != OK)
		return NULL;
	r = mem_alloc(offsetof(struct route, label) + s.label.n);
	/* policies may count: two that say the same are two */
	if (like && like->spec->policy == s.policy && shape_is(like->spec, &s)) {
		shape = shape_of(like);
		atomic_fetch_add_explicit(&shape->refs, 1, memory_order_relaxed);
	} else {
		shape = shape_new(s);
	}
	if (!r || !shape) {
		if (shape)
			shape_unref(shape);
		mem_free(r);
		snapshot_error_set(err, ERR_MEM, "no memory for a route");
		return NULL;
	}
	atomic_init(&r->refs, 1);
	atomic_init(&r->turn, 0);
	r->hash = hash;
	r->spec = &shape->spec;
	r->service = s.service ? service_ref(s.service) : NULL;
	r->label_len = (uint16_t)s.label.n;
	if (s.label.n)
		memcpy(r->label, s.label.p, s.label.n);
	return r;
}

static uint64_t hash_more(uint64_t h, struct str s)
{
	uint64_t two[2] = {h, hash_str(s)};

	return hash_str((struct str){(const char *)two, sizeof(two)});
}

static uint64_t mods_hash(uint64_t h, const struct header_mod *m, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		h = hash_more(hash_more(h ^ m[i].op, m[i].name), m[i].value);
	return h;
}

uint64_t route_shape_hash(const struct route_spec *spec)
{
	struct route_spec s = spec_canonical(spec);
	uint64_t scalars[] = {s.action, s.rewrite, s.odd_paths, s.status, s.n_request, s.n_response,
			      s.body_limit, s.first_byte_ms, s.try_ms, s.between_bytes_ms, s.tunnel_ms};
	uint64_t h = hash_str((struct str){(const char *)scalars, sizeof(scalars)});
	struct str *strings[N_STRINGS];
	size_t i;

	for (i = 0; i < s.n_backends; i++) {
		uint64_t one[] = {h, (uintptr_t)s.backends[i].service, s.backends[i].weight};

		h = hash_str((struct str){(const char *)one, sizeof(one)});
	}
	spec_strings(&s, strings);
	for (i = 0; i < N_STRINGS; i++)
		h = hash_more(h, *strings[i]);
	return mods_hash(mods_hash(h, s.request, s.n_request), s.response, s.n_response);
}

uint64_t route_spec_hash(const struct route_spec *spec)
{
	uint64_t service = spec->action == ROUTE_SERVICE ? (uintptr_t)spec->service : 0;

	return hash_more(route_shape_hash(spec) + service * UINT64_C(0x9e3779b97f4a7c15), spec->label);
}

bool route_is(const struct route *r, const struct route_spec *spec)
{
	struct route_spec s = spec_canonical(spec);

	return r->service == s.service && str_eq(route_label(r), s.label) && shape_is(r->spec, &s);
}

struct service *route_next_backend(const struct route *r)
{
	struct route *own = (struct route *)(uintptr_t)r;
	const struct route_spec *s = r->spec;
	uint32_t turn = atomic_fetch_add_explicit(&own->turn, 1, memory_order_relaxed);
	uint64_t sum = 0, at;

	for (uint32_t i = 0; i < s->n_backends; i++)
		sum += s->backends[i].weight;
	/* multiples of the golden ratio, which leave no gap and make no heap */
	at = (uint64_t)(turn * 0x9e3779b9u) * sum >> 32;
	for (uint32_t i = 0; i < s->n_backends; i++) {
		if (at < s->backends[i].weight)
			return s->backends[i].service;
		at -= s->backends[i].weight;
	}
	return NULL;
}

const struct route *route_ref(const struct route *r)
{
	atomic_fetch_add_explicit(&((struct route *)(uintptr_t)r)->refs, 1, memory_order_relaxed);
	return r;
}

void route_unref(const struct route *r)
{
	struct route *own = (struct route *)(uintptr_t)r;

	if (!own || atomic_fetch_sub_explicit(&own->refs, 1, memory_order_acq_rel) != 1)
		return;
	service_unref(own->service);
	shape_unref(shape_of(own));
	mem_free(own);
}
