/* origin: see origin.h.  Pure functions, shared by who checks a configuration and who answers by it.  A browser writes an
 * origin in one way only, so that equal bytes are the whole comparison; what it would never write is refused in a
 * pattern, which could else never match and nobody would know why. */
#include "lib/base/origin.h"

#include "lib/base/num.h"

static bool is_small(char c)
{
	return c >= 'a' && c <= 'z';
}

static bool is_label(char c)
{
	return is_small(c) || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

/* The length of "scheme://" at the start; 0: there is none. */
static size_t scheme_length(struct str s)
{
	size_t n = 0;

	while (n < s.n && (is_small(s.p[n]) || (n && (is_label(s.p[n]) || s.p[n] == '+' || s.p[n] == '.'))))
		n++;
	return n && s.n - n >= 3 && memcmp(s.p + n, "://", 3) == 0 ? n + 3 : 0;
}

/* Labels with single dots between them. */
static bool labels_ok(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!is_label(s.p[i]) && !(s.p[i] == '.' && i && i + 1 < s.n && s.p[i - 1] != '.'))
			return false;
	return s.n > 0;
}

/* [address], compressed as browsers have it: only its characters are looked at. */
static bool address_ok(struct str s)
{
	for (size_t i = 1; i + 1 < s.n; i++)
		if (s.p[i] != ':' && s.p[i] != '.' && !(s.p[i] >= '0' && s.p[i] <= '9') && !(s.p[i] >= 'a' && s.p[i] <= 'f'))
			return false;
	return s.n > 3 && s.p[0] == '[' && s.p[s.n - 1] == ']';
}

/* Splits ":port" off the end of *host. */
static bool port_ok(struct str *host, struct str scheme, const char **why)
{
	const char *from = host->p, *end = host->p + host->n, *colon;
	struct str digits;
	uint64_t port;

	if (host->n && host->p[0] == '[') {
		from = memchr(host->p, ']', host->n);
		from = from ? from : end;
	}
	colon = memchr(from, ':', (size_t)(end - from));
	if (!colon)
		return true;
	digits = (struct str){ colon + 1, (size_t)(end - colon - 1) };
	host->n = (size_t)(colon - host->p);
	*why = "has no proper port";
	if (digits.n == 0 || digits.p[0] == '0' || num_parse_dec(digits, 65535, &port) != OK)
		return false;
	*why = "has the scheme's own port, which a browser leaves out";
	return !(port == 80 && str_eq(scheme, STR("http://"))) && !(port == 443 && str_eq(scheme, STR("https://")));
}

static bool host_ok(struct str host, bool star, const char **why)
{
	if (labels_ok(host) || (!star && address_ok(host)))
		return true;
	*why = "has no proper host";
	for (size_t i = 0; i < host.n; i++)
		if (host.p[i] == '/' || host.p[i] == '?' || host.p[i] == '#')
			*why = "has a path: an origin ends with its host or port";
		else if (host.p[i] == '*')
			*why = "has a star elsewhere than in front of the host, as in https://*.example.com";
	return false;
}

static bool plain(struct str s, const char **why)
{
	*why = s.n ? "is too long" : "is empty";
	if (s.n == 0 || s.n > ORIGIN_MAX)
		return false;
	*why = "is what every document without an origin sends, so that it would name anybody";
	if (str_eq(s, STR("null")))
		return false;
	*why = "has capital letters, and browsers send small ones";
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] >= 'A' && s.p[i] <= 'Z')
			return false;
	return true;
}

enum err origin_parse(struct str pattern, struct origin_pattern *out, const char **why)
{
	struct origin_pattern is = { .kind = ORIGIN_EXACT };
	struct str host;
	size_t scheme, stars = 0;

	if (str_eq(pattern, STR("*"))) {
		*out = (struct origin_pattern){ .kind = ORIGIN_ANY };
		return OK;
	}
	if (!plain(pattern, why))
		return ERR_SYNTAX;
	scheme = scheme_length(pattern);
	if (!scheme) {
		*why = "has no scheme: an origin is scheme://host or scheme://host:port";
		return ERR_SYNTAX;
	}
	host = (struct str){ pattern.p + scheme, pattern.n - scheme };
	if (str_starts(host, STR("*.")))
		is.kind = ORIGIN_LABEL, stars = 1;
	else if (str_starts(host, STR("**.")))
		is.kind = ORIGIN_LABELS, stars = 2;
	is.head = stars ? (struct str){ pattern.p, scheme } : pattern;
	is.tail = (struct str){ host.p + stars, stars ? host.n - stars : 0 };
	if (stars)
		host = (struct str){ is.tail.p + 1, is.tail.n - 1 };
	if (!port_ok(&host, (struct str){ pattern.p, scheme }, why) || !host_ok(host, stars > 0, why))
		return ERR_SYNTAX;
	*out = is;
	return OK;
}

bool origin_match(const struct origin_pattern *p, struct str origin)
{
	struct str label;

	if (p->kind == ORIGIN_ANY)
		return true;
	if (p->kind == ORIGIN_EXACT)
		return str_eq(p->head, origin);
	if (origin.n <= p->head.n + p->tail.n || !str_starts(origin, p->head) ||
	    memcmp(origin.p + origin.n - p->tail.n, p->tail.p, p->tail.n) != 0)
		return false;
	label = (struct str){ origin.p + p->head.n, origin.n - p->head.n - p->tail.n };
	return labels_ok(label) && (p->kind == ORIGIN_LABELS || !memchr(label.p, '.', label.n));
}
