/* Door: what a route makes of a request's target: the target for the upstream, and
 * the Location of a redirect.  Pure: bytes in, bytes out, in the caller's arena.
 * A client chose the authority and the target, so a Location is where it could try
 * to send another client elsewhere; see route.h for what is refused. */
#include <string.h>
#include "dispatch/route.h"
#include "dispatch/text.h"

static struct str path_of(struct str target)
{
	const char *q = target.n ? memchr(target.p, '?', target.n) : NULL;

	return q ? (struct str){target.p, (size_t)(q - target.p)} : target;
}

enum err route_rewrite_target(const struct route *r, struct str target, struct arena *a, struct str *out)
{
	struct str from = r->spec.rewrite_from, to = r->spec.rewrite_to, rest;
	char *p;

	if (r->spec.rewrite == REWRITE_PATH && target.n && target.p[0] == '/') {
		from = path_of(target);
	} else if (r->spec.rewrite == REWRITE_NONE || target.n == 0 || target.p[0] != '/' ||
	    !text_within(path_of(target), from)) {
		*out = target;
		return OK;
	}
	rest = (struct str){target.p + from.n, target.n - from.n};
	if (to.n == 0 && rest.n && rest.p[0] == '/') {
		*out = rest;
		return OK;
	}
	if (to.n == 0)
		to = STR("/");
	p = arena_alloc(a, to.n + rest.n);
	if (!p)
		return ERR_MEM;
	memcpy(p, to.p, to.n);
	if (rest.n)
		memcpy(p + to.n, rest.p, rest.n);
	*out = (struct str){p, to.n + rest.n};
	return OK;
}

/* Expands the template to `to`, or only counts when it is NULL; how many bytes. */
static size_t location_expand(struct str t, struct str host, struct str target, char *to)
{
	size_t n = 0, i = 0;

	while (i < t.n) {
		struct str rest = {t.p + i, t.n - i}, piece = {rest.p, 1};
		size_t used = 1;

		if (str_starts(rest, STR("{host}"))) {
			piece = host;
			used = STR("{host}").n;
		} else if (str_starts(rest, STR("{path}"))) {
			piece = target;
			used = STR("{path}").n;
		}
		if (to)
			memcpy(to + n, piece.p, piece.n);
		n += piece.n;
		i += used;
	}
	return n;
}

static bool names_host(struct str t)
{
	return t.n && memmem(t.p, t.n, "{host}", 6);
}

enum err route_redirect_location(const struct route *r, struct str authority, struct str target,
				 struct arena *a, struct str *out)
{
	struct str template = r->spec.text, host = text_host_of(authority);
	const size_t dot = 2;
	size_t n;
	char *p;

	if (names_host(template) && !text_host(host))
		return ERR_SYNTAX;
	if (host.n == 0)
		host = STR("");
	if (target.n == 0 || target.p[0] != '/')
		target = STR("/");
	if (!text_target(target))
		return ERR_SYNTAX;
	n = location_expand(template, host, target, NULL);
	p = arena_alloc(a, dot + n);
	if (!p)
		return ERR_MEM;
	memcpy(p, "/.", dot);
	location_expand(template, host, target, p + dot);
	/* "//evil" names a host, and browsers take a backslash for a slash. */
	if (n > 1 && p[dot] == '/' && (p[dot + 1] == '/' || p[dot + 1] == '\\'))
		*out = (struct str){p, dot + n};
	else
		*out = (struct str){p + dot, n};
	return OK;
}
