/* Door: auth, the part of a policy that has a service decide about each request.  One heap
 * block with every string in it, and a reference to the service.  Pure: who asks, and when, is proxy's.
 * An answer lets a request pass only when it is a 2xx; whatever is not understood does not. */
#include "dispatch/auth.h"

#include <string.h>
#include "dispatch/text.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"

static bool names_same(const struct auth_names *a, const struct auth_names *b)
{
	uint16_t i;

	if (a->n != b->n)
		return false;
	for (i = 0; i < a->n; i++)
		if (!str_ieq(a->items[i], b->items[i]))
			return false;
	return true;
}

static bool auth_same(const struct policy_part *pa, const struct policy_part *pb)
{
	const struct auth *x = (const struct auth *)pa, *y = (const struct auth *)pb;
	const struct auth_spec *a = &x->spec, *b = &y->spec;

	return policy_service_same(&x->service, &y->service) && str_eq(a->method, b->method) && str_eq(a->path, b->path) &&
	       a->all_fields == b->all_fields && names_same(&a->request, &b->request) &&
	       names_same(&a->response, &b->response) && str_eq(a->sign_in, b->sign_in) &&
	       a->set_cookie == b->set_cookie && a->timeout_ms == b->timeout_ms;
}

static void auth_free(struct policy_part *p)
{
	policy_service_drop(&((struct auth *)p)->service);
	mem_free(p);
}

static void auth_bind(struct policy_part *p, struct service *const *services, size_t n)
{
	policy_service_bind(&((struct auth *)p)->service, services, n);
}

static const struct policy_kind auth_kind = {.same = auth_same, .free = auth_free, .bind = auth_bind};

static struct str put(char **at, struct str s)
{
	struct str copy = {*at, s.n};

	if (s.n)
		memcpy(*at, s.p, s.n);
	*at += s.n;
	return copy;
}

static void put_names(struct auth_names *to, struct str *items, const struct auth_names *from, char **text)
{
	uint16_t i;

	for (i = 0; i < from->n; i++)
		items[i] = put(text, from->items[i]);
	*to = (struct auth_names){items, from->n};
}

static size_t names_size(const struct auth_names *names)
{
	size_t n = 0;
	uint16_t i;

	for (i = 0; i < names->n; i++)
		n += sizeof(struct str) + names->items[i].n;
	return n;
}

struct policy_part *auth_new(const struct auth_spec *spec)
{
	size_t size = sizeof(struct auth) + names_size(&spec->request) + names_size(&spec->response) + spec->method.n +
		      spec->path.n + spec->sign_in.n;
	struct auth *a = mem_alloc(size);
	struct str *items;
	char *text;

	if (!a)
		return NULL;
	items = (struct str *)(a + 1);
	text = (char *)(items + spec->request.n + spec->response.n);
	policy_part_init(&a->part, &auth_kind);
	a->service = (struct policy_service){.index = spec->service};
	a->spec = *spec;
	put_names(&a->spec.request, items, &spec->request, &text);
	put_names(&a->spec.response, items + spec->request.n, &spec->response, &text);
	a->spec.method = put(&text, spec->method);
	a->spec.path = put(&text, spec->path);
	a->spec.sign_in = put(&text, spec->sign_in);
	CHECK(text == (char *)a + size);
	return &a->part;
}

static bool among(const struct str *names, size_t n, struct str name)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (str_ieq(names[i], name))
			return true;
	return false;
}

bool auth_shows(const struct auth *a, struct str name)
{
	/* They are about a body, or a copy of the answer, that this question has not. */
	static const struct str hidden[] = {
		{"Expect", 6}, {"Range", 5}, {"If-Match", 8}, {"If-None-Match", 13}, {"If-Modified-Since", 17},
		{"If-Unmodified-Since", 19}, {"If-Range", 8},
	};

	if (a->spec.all_fields)
		return !among(hidden, sizeof(hidden) / sizeof(hidden[0]), name);
	return among(a->spec.request.items, a->spec.request.n, name);
}

bool auth_passes_on(struct str name)
{
	static const struct str names[] = {
		{"WWW-Authenticate", 16}, {"Set-Cookie", 10}, {"Content-Type", 12}, {"Content-Encoding", 16},
		{"Content-Language", 16}, {"Location", 8}, {"Cache-Control", 13}, {"Retry-After", 11},
	};

	return among(names, sizeof(names) / sizeof(names[0]), name);
}

enum auth_verdict auth_judge(const struct auth *a, unsigned status, bool browses)
{
	if (status >= 200 && status < 300)
		return AUTH_PASS;
	if (status >= 500)
		return AUTH_ERROR;
	if (status < 300 || status == 304)	/* 304 is about a copy that the client has of something else */
		return AUTH_ODD;
	return status == 401 && browses && a->spec.sign_in.n ? AUTH_SIGN_IN : AUTH_REFUSE;
}

enum err auth_url(struct str scheme, struct str authority, struct str target, struct arena *arena, struct str *out)
{
	char *p, *at;

	if (!authority.n) {
		*out = target;
		return OK;
	}
	if (!target.n || target.p[0] != '/')	/* OPTIONS * */
		target = STR("");
	p = at = arena_alloc(arena, scheme.n + 3 + authority.n + target.n);
	if (!p)
		return ERR_MEM;
	put(&at, scheme);
	put(&at, STR("://"));
	put(&at, authority);
	put(&at, target);
	*out = (struct str){p, (size_t)(at - p)};
	return OK;
}

/* `s` as a value in a query, to *at unless that is NULL; how many bytes. */
static size_t put_escaped(char **at, struct str s)
{
	static const char hex[] = "0123456789ABCDEF";
	size_t i, n = 0;

	for (i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];
		bool plain = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || (c && strchr("-._~", c));
		char three[3] = {'%', hex[c >> 4], hex[c & 15]};

		if (at)
			put(at, plain ? (struct str){s.p + i, 1} : (struct str){three, 3});
		n += plain ? 1 : 3;
	}
	return n;
}

/* Expands the template to *at, or only counts when `at` is NULL; how many bytes. */
static size_t expand(struct str t, struct str host, struct str url, char **at)
{
	size_t i = 0, n = 0;

	while (i < t.n) {
		struct str rest = {t.p + i, t.n - i}, piece = {rest.p, 1};

		if (str_starts(rest, STR("{url}"))) {
			n += put_escaped(at, url);
			i += STR("{url}").n;
			continue;
		}
		if (str_starts(rest, STR("{host}")))
			piece = host;
		if (at)
			put(at, piece);
		n += piece.n;
		i += str_starts(rest, STR("{host}")) ? STR("{host}").n : 1;
	}
	return n;
}

enum err auth_sign_in(const struct auth *a, struct str scheme, struct str authority, struct str url,
		      struct arena *arena, struct str *out)
{
	struct str host = text_host_of(authority), template = a->spec.sign_in;
	char *p, *at;

	if (memmem(template.p, template.n, "{host}", 6) && !text_host(host))
		return ERR_SYNTAX;
	if (url.n > AUTH_URL_MAX && auth_url(scheme, authority, STR("/"), arena, &url) != OK)
		return ERR_MEM;
	p = at = arena_alloc(arena, expand(template, host, url, NULL));
	if (!p)
		return ERR_MEM;
	expand(template, host, url, &at);
	*out = (struct str){p, (size_t)(at - p)};
	return OK;
}
