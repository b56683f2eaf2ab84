/*
 * ask: the readers of `auth` and `mirror`.
 *
 * Purpose   which service is asked or copied to, for what, and how often.
 * Owns      nothing; results are in the tree's arena.
 * Called by walk.c through conf_reader_of().
 * Never     asks anybody: that is proxy.
 */
#include "conf/walk.h"

#define SIGN_IN_MAX 4096

void conf_read_service_ref(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	if (conf_walk_text(w, k, n))
		*(const struct conf_service **)at = conf_service_find(w, n->text, n->pos);
}

/* What is wrong with `s` as the target of a request, or NULL. */
static const char *query_path_wrong(struct str s)
{
	if (s.p[0] != '/')
		return "must begin with `/`: whom it is for is what `service` says";
	if (s.n > 1 && s.p[1] == '/')
		return "begins with two slashes";
	for (size_t i = 0; i < s.n; i++) {
		if ((unsigned char)s.p[i] <= 0x20 || (unsigned char)s.p[i] >= 0x7f || s.p[i] == '\\')
			return "has a byte that a path cannot have";
		if (s.p[i] == '#')
			return "has a fragment, which no server sees";
	}
	return NULL;
}

void conf_read_query_path(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	const char *wrong;

	if (!conf_walk_text(w, k, n))
		return;
	wrong = query_path_wrong(n->text);
	if (wrong)
		conf_errors_add(w->errors, n->pos, "the path `%.80s` %s", n->text.p, wrong);
	else
		*(struct str *)at = conf_walk_dup(w, n->text);
}

/* The same for where one signs in; *odd is what is no placeholder. */
static const char *sign_in_wrong(struct str s, struct str *odd)
{
	bool query = false;

	*odd = STR("");
	if (s.n > SIGN_IN_MAX)
		return "has more than 4096 bytes";
	for (size_t i = 0; i < s.n; i++) {
		struct str rest = {s.p + i, s.n - i};

		query = query || s.p[i] == '?';
		if (str_starts(rest, STR("{host}"))) {
			i += 5;
		} else if (str_starts(rest, STR("{url}"))) {
			if (!query)
				return "has `{url}` outside of a query: it is the value of a parameter";
			i += 4;
		} else if (s.p[i] == '{' || s.p[i] == '}') {
			*odd = rest;
			return "is no placeholder; there are {url} and {host}";
		}
	}
	return conf_location_wrong(s);
}

void conf_read_sign_in(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	const char *wrong;
	struct str odd;

	if (!conf_walk_text(w, k, n))
		return;
	wrong = sign_in_wrong(n->text, &odd);
	if (wrong)
		conf_errors_add(w->errors, n->pos, "`%.80s` %s", odd.n ? odd.p : n->text.p, wrong);
	else
		*(struct str *)at = conf_walk_dup(w, n->text);
}

/* `12`, `0.25`, in millionths; false: it is none, or too fine. */
static bool decimal(struct str s, uint64_t *millionths)
{
	uint64_t v = 0, unit = 1000000;
	bool point = false;
	size_t digits = 0;

	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] == '.' && !point && digits) {
			point = true;
			digits = 0;
			continue;
		}
		if (s.p[i] < '0' || s.p[i] > '9' || v > 1000000000)
			return false;
		digits++;
		if (point) {
			unit /= 10;
			v += (uint64_t)(s.p[i] - '0') * unit;
		} else {
			v = v * 10 + (uint64_t)(s.p[i] - '0') * 1000000;
		}
		if (!unit)
			return false;
	}
	*millionths = v;
	return digits > 0;
}

void conf_read_share(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	struct str s = n->text;
	bool percent;
	uint64_t v;

	if (!conf_walk_text(w, k, n))
		return;
	percent = s.p[s.n - 1] == '%';
	s.n -= percent;
	if (!decimal(s, &v) || (percent && v % 100))
		conf_errors_add(w->errors, n->pos, "`%.40s` is not a share, such as 10%% or 0.1", n->text.p);
	else if (v > (percent ? 100u : 1u) * (uint64_t)CONF_SHARE_ALL)
		conf_errors_add(w->errors, n->pos, percent ? "`%s` must be from 0%% to 100%%, not %.40s"
				: "`%s` must be from 0 to 1, or have a `%%` at its end, not %.40s", k->name, n->text.p);
	else
		*(uint32_t *)at = (uint32_t)(v / (percent ? 100 : 1));
}
