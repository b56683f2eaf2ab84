/* Door: checks of bytes, shared by what dispatch is built from and what it is
 * asked.  Owns nothing. */
#include "dispatch/text.h"

static bool is_alnum(unsigned char c)
{
	return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

bool text_value(struct str s)
{
	size_t i;

	for (i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if ((c < 0x20 && c != '\t') || c == 0x7f)
			return false;
	}
	return true;
}

bool text_token(struct str s)
{
	size_t i;

	for (i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if (!is_alnum(c) && (c == 0 || !strchr("!#$%&'*+-.^_`|~", c)))
			return false;
	}
	return s.n > 0;
}

bool text_target(struct str s)
{
	size_t i;

	for (i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if (c <= 0x20 || c == 0x7f)
			return false;
	}
	return true;
}

bool text_host(struct str s)
{
	size_t i;

	for (i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if (!is_alnum(c) && (c == 0 || !strchr("-._~:[]", c)))
			return false;
	}
	return s.n > 0;
}

struct str text_host_of(struct str authority)
{
	struct str host = authority;
	const char *end = NULL;

	if (host.n && host.p[0] == '[') {
		end = memchr(host.p, ']', host.n);
		if (end)
			end++;
	} else if (host.n) {
		end = memchr(host.p, ':', host.n);
	}
	if (end)
		host.n = (size_t)(end - host.p);
	if (host.n && host.p[host.n - 1] == '.')
		host.n--;
	return host;
}

bool text_within(struct str path, struct str prefix)
{
	return prefix.n == 0 ||
	       (str_starts(path, prefix) && (path.n == prefix.n || path.p[prefix.n] == '/'));
}

struct str text_no_slash(struct str s)
{
	if (s.n && s.p[s.n - 1] == '/')
		s.n--;
	return s;
}

enum text_mark text_mark(struct str s, size_t *n)
{
	static const struct str marks[] = {
		[MARK_HOST] = {"{host}", 6}, [MARK_PATH] = {"{path}", 6}, [MARK_SCHEME] = {"{scheme}", 8},
		[MARK_PORT] = {"{port}", 6}, [MARK_PORT_80] = {"{:80}", 5}, [MARK_PORT_443] = {"{:443}", 6},
	};

	*n = 0;
	if (!s.n || s.p[0] != '{')
		return MARK_NONE;
	for (int i = MARK_HOST; i <= MARK_PORT_443; i++) {
		if (!str_starts(s, marks[i]))
			continue;
		*n = marks[i].n;
		return (enum text_mark)i;
	}
	return MARK_NONE;
}
