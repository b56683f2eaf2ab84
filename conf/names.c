/*
 * names: field names, hosts, paths, and the word that was meant.
 *
 * Purpose   refuse at start what would be a broken or smuggled message later, and
 *           say which word is near to a mistyped one.
 * Owns      nothing.
 * Called by walk.c, items.c.
 * Never     keeps or changes a text that it was given.
 */
#include "conf/names.h"

#define NEAR_LENGTH 48	/* longer words have no near ones */

static bool alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool conf_is_token(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!alnum(s.p[i]) && (!s.p[i] || !strchr("!#$%&'*+-.^_`|~", s.p[i])))
			return false;
	return s.n > 0;
}

bool conf_is_field_value(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (((unsigned char)s.p[i] < 0x20 && s.p[i] != '\t') || s.p[i] == 0x7f)
			return false;
	return str_trim(s).n == s.n;
}

bool conf_is_service_name(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!alnum(s.p[i]) && (!i || !s.p[i] || !strchr("-_.", s.p[i])))
			return false;
	return s.n > 0 && s.n <= 63;
}

const char *conf_header_refused(struct str name)
{
	static const char *const hop[] = {
		"Connection", "Keep-Alive", "Proxy-Connection", "TE", "Trailer", "Transfer-Encoding", "Upgrade",
	};

	for (size_t i = 0; i < sizeof hop / sizeof hop[0]; i++)
		if (str_ieq(name, str_of(hop[i])))
			return "belongs to one connection and cannot be changed here";
	if (str_ieq(name, STR("Content-Length")))
		return "is the framing of a message and cannot be changed here";
	if (str_ieq(name, STR("Host")))
		return "cannot be changed here; see `host` of a service";
	return NULL;
}

static const char *labels_wrong(struct str s)
{
	size_t label = 0;

	if (s.n > 253)
		return "is longer than 253 bytes";
	for (size_t i = 0; i <= s.n; i++) {
		if (i == s.n || s.p[i] == '.') {
			if (!label)
				return "has an empty part between dots";
			if (label > 63)
				return "has a part longer than 63 bytes";
			label = 0;
			continue;
		}
		if (s.p[i] == '*')
			return "may have `*` only as its first part, as in `*.example.com`";
		if (!alnum(s.p[i]) && s.p[i] != '-' && s.p[i] != '_')
			return (unsigned char)s.p[i] >= 0x80 ? "must be in its ASCII form (xn--...)" : "is not a host name";
		label++;
	}
	return NULL;
}

static const char *host6_wrong(struct str s)
{
	size_t n = 0;

	if (s.p[s.n - 1] != ']' || s.n < 4)
		return "is not an IPv6 address in brackets; a host has no port";
	for (size_t i = 1; i < s.n - 1; i++) {
		if (!strchr("0123456789abcdef:.", s.p[i]) || !s.p[i])
			return "is not an IPv6 address in brackets; a host has no port";
		n += s.p[i] == ':';
	}
	return n >= 2 && n <= 8 ? NULL : "is not an IPv6 address in brackets";
}

const char *conf_host_wrong(struct str s)
{
	if (!s.n)
		return "is empty; leave `host` out for any host";
	if (str_eq(s, STR("*")))
		return "is not a host; leave `host` out for any host";
	if (s.p[0] == '[')
		return host6_wrong(s);
	if (memmem(s.p, s.n, "://", 3) || memchr(s.p, '/', s.n))
		return "is not a host name: no scheme and no path";
	if (memchr(s.p, ':', s.n))
		return "has a port: routes look at the name alone";
	if (str_starts(s, STR("*."))) {
		s.p += 2;
		s.n -= 2;
	}
	return labels_wrong(s);
}

const char *conf_dns_name_wrong(struct str s)
{
	static const char want[] = "an endpoint is an IP address, a host name or unix:/path";
	const char *wrong;
	bool digits = true;
	size_t i;

	if (s.n > 1 && s.p[s.n - 1] == '.')
		s.n--;
	for (i = s.n; i && s.p[i - 1] != '.'; i--)
		digits = digits && s.p[i - 1] >= '0' && s.p[i - 1] <= '9';
	if (digits)	/* its last part, or it is empty */
		return want;
	wrong = labels_wrong(s);
	return wrong && (memchr(s.p, '*', s.n) || strcmp(wrong, "is not a host name") == 0) ? want : wrong;
}

static bool hex(char c)
{
	return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'f');
}

static const char *segments_wrong(struct str s)
{
	for (size_t i = 0; i < s.n;) {
		const char *end = memchr(s.p + i + 1, '/', s.n - i - 1);
		struct str segment = {s.p + i + 1, end ? (size_t)(end - s.p) - i - 1 : s.n - i - 1};

		if (str_eq(segment, STR(".")) || str_eq(segment, STR("..")))
			return "has a `.` or `..` segment and would match nothing";
		if (!segment.n && end)
			return "has `//` and would match nothing";
		i += 1 + segment.n;
	}
	return NULL;
}

const char *conf_path_wrong(struct str s)
{
	if (!s.n || s.p[0] != '/')
		return "must begin with `/`";
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if (c == '?' || c == '#')
			return "has `?` or `#`: routes look at the path alone";
		if (c <= 0x20 || c == 0x7f || c == '\\')
			return "has a space, a backslash or a control byte";
		if (c == '%' && (s.n - i < 3 || !hex(s.p[i + 1]) || !hex(s.p[i + 2])))
			return "has a `%` that no two hex digits follow";
	}
	return segments_wrong(s);
}

/* Changes between the two: a letter more, less, other, or two swapped.  At most `limit` + 1. */
static unsigned distance(struct str a, struct str b, unsigned limit)
{
	unsigned rows[3][NEAR_LENGTH + 1], *before = rows[0], *last = rows[1], *row = rows[2];

	for (unsigned j = 0; j <= b.n; j++)
		last[j] = before[j] = j;
	for (unsigned i = 1; i <= a.n; i++) {
		unsigned *spare = before, least = row[0] = i;

		for (unsigned j = 1; j <= b.n; j++) {
			unsigned d = last[j - 1] + (a.p[i - 1] != b.p[j - 1]);

			d = last[j] + 1 < d ? last[j] + 1 : d;
			d = row[j - 1] + 1 < d ? row[j - 1] + 1 : d;
			if (i > 1 && j > 1 && a.p[i - 1] == b.p[j - 2] && a.p[i - 2] == b.p[j - 1] && before[j - 2] + 1 < d)
				d = before[j - 2] + 1;
			row[j] = d;
			least = d < least ? d : least;
		}
		if (least > limit)
			return limit + 1;
		before = last;
		last = row;
		row = spare;
	}
	return last[b.n];
}

void conf_near_try(struct conf_near *near, struct str candidate)
{
	struct str w = near->word;
	unsigned limit = w.n <= 2 ? 1 : w.n <= 5 ? 2 : 3, d;

	if (near->best.n)
		limit = near->distance - 1;
	if (w.n > NEAR_LENGTH || candidate.n > NEAR_LENGTH || !candidate.n)
		return;
	if ((w.n > candidate.n ? w.n - candidate.n : candidate.n - w.n) > limit)
		return;
	d = distance(w, candidate, limit);
	if (d <= limit && d < candidate.n) {
		near->best = candidate;
		near->distance = d;
	}
}
