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
	struct str from = r->spec->rewrite_from, to = r->spec->rewrite_to, rest;
	char *p;

	if (r->spec->rewrite == REWRITE_PATH && target.n && target.p[0] == '/') {
		from = path_of(target);
	} else if (r->spec->rewrite == REWRITE_NONE || target.n == 0 || target.p[0] != '/' ||
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

/* A request, for a Location. */
struct origin {
	struct str scheme, host, target;
	struct str port;	/* with the colon; empty: none, or that of the scheme */
};

static struct str mark_piece(enum text_mark mark, const struct origin *o)
{
	switch (mark) {
	case MARK_HOST:
		return o->host;
	case MARK_PATH:
		return o->target;
	case MARK_SCHEME:
		return o->scheme;
	case MARK_PORT:
		return o->port;
	case MARK_PORT_80:
		return str_eq(o->scheme, STR("http")) ? STR("") : STR(":80");
	case MARK_PORT_443:
		return str_eq(o->scheme, STR("https")) ? STR("") : STR(":443");
	default:
		return STR("");
	}
}

/* Expands the template to `to`, or only counts when it is NULL; how many bytes. */
static size_t location_expand(struct str t, const struct origin *o, char *to)
{
	size_t n = 0, i = 0;

	while (i < t.n) {
		size_t used;
		enum text_mark mark = text_mark((struct str){t.p + i, t.n - i}, &used);
		struct str piece = mark ? mark_piece(mark, o) : (struct str){t.p + i, 1};

		if (to && piece.n)
			memcpy(to + n, piece.p, piece.n);
		n += piece.n;
		i += mark ? used : 1;
	}
	return n;
}

static bool names_host(struct str t)
{
	return t.n && memmem(t.p, t.n, "{host}", 6);
}

/* The port of an authority with its colon, "" for none and for that of the scheme; false: it is none. */
static bool port_of(struct str authority, struct str scheme, struct str *port)
{
	const char *colon = authority.n ? memrchr(authority.p, ':', authority.n) : NULL;
	size_t i;

	*port = STR("");
	if (!colon || authority.p[authority.n - 1] == ']')
		return true;
	*port = (struct str){colon, authority.n - (size_t)(colon - authority.p)};
	for (i = 1; i < port->n; i++)
		if (colon[i] < '0' || colon[i] > '9')
			return false;
	if (port->n == 1 || str_eq(*port, str_eq(scheme, STR("https")) ? STR(":443") : STR(":80")))
		*port = STR("");
	return port->n <= 6;
}

enum err route_redirect_location(const struct route *r, struct str scheme, struct str authority, struct str target,
				 struct arena *a, struct str *out)
{
	struct origin o = {.scheme = scheme, .host = text_host_of(authority), .target = target};
	struct str template = r->spec->text;
	const size_t dot = 2;
	size_t n;
	char *p;

	if (names_host(template) && !text_host(o.host))
		return ERR_SYNTAX;
	if (memmem(template.p, template.n, "{port}", 6) && !port_of(authority, scheme, &o.port))
		return ERR_SYNTAX;
	if (o.target.n == 0 || o.target.p[0] != '/')
		o.target = STR("/");
	if (!text_target(o.target))
		return ERR_SYNTAX;
	if (route_rewrite_target(r, o.target, a, &o.target) != OK)
		return ERR_MEM;
	n = location_expand(template, &o, NULL);
	p = arena_alloc(a, dot + n);
	if (!p)
		return ERR_MEM;
	memcpy(p, "/.", dot);
	location_expand(template, &o, p + dot);
	/* "//evil" names a host, and browsers take a backslash for a slash. */
	if (n > 1 && p[dot] == '/' && (p[dot + 1] == '/' || p[dot + 1] == '\\'))
		*out = (struct str){p, dot + n};
	else
		*out = (struct str){p + dot, n};
	return OK;
}
