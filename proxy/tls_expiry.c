/* tls_expiry: what is to be said of certificates that are good, and not for ever.
 *
 * Purpose   lines for the error log, warnings for a check.
 * Owns      nothing.
 * Called by tls.c, and when a configuration is checked. */
#include "proxy/tls_parts.h"

#include <stdarg.h>
#include <string.h>
#include <time.h>

#include "proxy/log.h"
#include "proxy/tls_expiry.h"

#define DAY_S 86400
#define NAMES_TOLD 3

/* --- words --- */

/* "2026-12-31", by UTC. */
static void date_text(int64_t s, char to[16])
{
	time_t at = (time_t)s;
	struct tm tm;

	if (!gmtime_r(&at, &tm) || !strftime(to, 16, "%Y-%m-%d", &tm))
		strcpy(to, "some day");
}

static void names_text(const struct tls_cert *c, char *to, size_t size)
{
	size_t n = tls_cert_names(c), used = 0;

	*to = '\0';
	for (size_t i = 0; i < n && i < NAMES_TOLD && used < size; i++) {
		struct str name = tls_cert_name(c, i);

		used += (size_t)snprintf(to + used, size - used, "%s%.*s", i ? ", " : "", (int)(name.n < 80 ? name.n : 80), name.p);
	}
	if (n > NAMES_TOLD && used < size)
		snprintf(to + used, size - used, " and %zu more", n - NAMES_TOLD);
}

/* How long it is good, as the end of a sentence. */
static void left_text(const struct tls_cert *c, int64_t now, char *to, size_t size)
{
	int64_t from = tls_cert_not_before(c), until = tls_cert_not_after(c), days = (until - now) / DAY_S;
	char date[16];

	date_text(now < from ? from : until, date);
	if (now < from)
		snprintf(to, size, "is not good before %s", date);
	else if (now >= until)
		snprintf(to, size, "has expired on %s", date);
	else
		snprintf(to, size, "expires in %lld day%s, on %s", (long long)days, days == 1 ? "" : "s", date);
}

/* A bad one, or in its last month. */
static bool is_due(const struct tls_cert *c, int64_t now)
{
	return now < tls_cert_not_before(c) || tls_cert_not_after(c) - now <= TLS_EXPIRY_DAYS * DAY_S;
}

static bool is_told(const struct tls_pair *p, int64_t now, enum tls_expiry_of of)
{
	return p->now && (of == TLS_EXPIRY_ALL || (of == TLS_EXPIRY_CHANGED ? p->changed : is_due(p->now, now)));
}

void tls_expiry_tell(const struct tls *t, int64_t now, enum tls_expiry_of of)
{
	for (uint32_t i = 0; i < t->pairs.n; i++) {
		const struct tls_cert *c = t->pairs.at[i].now;
		char names[512], left[64];

		if (!is_told(&t->pairs.at[i], now, of))
			continue;
		names_text(c, names, sizeof(names));
		left_text(c, now, left, sizeof(left));
		log_at(now >= tls_cert_not_after(c) ? LEVEL_ERROR : is_due(c, now) ? LEVEL_WARN : LEVEL_INFO, "certificate %s%s%s%s %s",
		       t->files.at[t->pairs.at[i].cert.file].name.text.p, *names ? " (" : "", names, *names ? ")" : "", left);
	}
}

/* --- warnings --- */

/* Whether requests for `host`, as routes have it, can be for `name`, as certificates have it. */
static bool overlap(struct str host, struct str name)
{
	bool any = str_starts(host, STR("*.")), wild = str_starts(name, STR("*."));
	const char *dot;

	if (any) {	/* names of one part more, or several */
		host.p++, host.n--;
		if (wild)
			name.p++, name.n--;
		return name.n >= host.n && memcmp(name.p + name.n - host.n, host.p, host.n) == 0;
	}
	if (!wild)
		return str_eq(host, name);
	dot = host.n ? memchr(host.p, '.', host.n) : NULL;
	return dot && dot > host.p && str_eq((struct str){ dot, host.n - (size_t)(dot - host.p) }, (struct str){ name.p + 1, name.n - 1 });
}

static bool serves(const struct tls_cert *c, struct str host)
{
	for (size_t i = 0; i < tls_cert_names(c); i++)
		if (overlap(host, tls_cert_name(c, i)))
			return true;
	return false;
}

/* For no host of a route, while each of them has some. */
static bool is_useless(const struct tls_cert *c, const struct conf *conf)
{
	if (!tls_cert_names(c))
		return false;	/* for addresses, perhaps */
	for (size_t i = 0; i < conf->route_count; i++) {
		const struct conf_str_list *hosts = &conf->routes[i].hosts;

		if (!hosts->count)
			return false;
		for (size_t k = 0; k < hosts->count; k++)
			if (serves(c, hosts->items[k]))
				return false;
	}
	return conf->route_count > 0;
}

struct warner {
	const struct conf *conf;
	FILE *to;
	size_t n;
};

static void warn(struct warner *w, struct conf_pos pos, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void warn(struct warner *w, struct conf_pos pos, const char *format, ...)
{
	va_list args;

	fprintf(w->to, "%s:%u:%u: warning: ", w->conf->file.p, pos.line, pos.column);
	va_start(args, format);
	vfprintf(w->to, format, args);
	va_end(args);
	fputc('\n', w->to);
	w->n++;
}

/* Whether a listener that has routes shows it. */
static bool is_shown(const struct tls *t, uint32_t pair)
{
	for (uint32_t i = 0; i < t->fronts.n; i++)
		for (uint32_t k = 0; t->fronts.at[i].http && k < t->fronts.at[i].n_pairs; k++)
			if (t->fronts.at[i].pairs[k] == pair)
				return true;
	return false;
}

/* Hosts of routes that get 421, whatever the certificate: all listeners have TLS, and none for them. */
static void hosts_warn(struct warner *w, const struct tls *t)
{
	bool http = false;

	for (uint32_t i = 0; i < t->fronts.n; i++)
		http = http || t->fronts.at[i].http;
	if (!http)
		return;
	for (size_t i = 0; i < w->conf->listen_count; i++)
		if (w->conf->listens[i].speaks == CONF_SPEAKS_HTTP && !w->conf->listens[i].tls.on)
			return;
	for (size_t i = 0; i < w->conf->route_count; i++) {
		const struct conf_str_list *hosts = &w->conf->routes[i].hosts;

		for (size_t k = 0; k < hosts->count && hosts->items[k].p[0] != '['; k++) {
			bool served = false;

			for (uint32_t p = 0; p < t->pairs.n && !served; p++)
				served = is_shown(t, p) && (!tls_cert_names(t->pairs.at[p].now) || serves(t->pairs.at[p].now, hosts->items[k]));
			if (!served)
				warn(w, w->conf->routes[i].pos, "no certificate of a listener is for the host `%.80s`", hosts->items[k].p);
		}
	}
}

size_t tls_warnings_print(const struct tls *t, const struct conf *c, int64_t now, FILE *to)
{
	struct warner w = { c, to, 0 };

	for (uint32_t i = 0; t && i < t->pairs.n; i++) {
		const struct tls_pair *p = &t->pairs.at[i];
		const char *file = t->files.at[p->cert.file].name.text.p;
		char left[64], names[512];

		left_text(p->now, now, left, sizeof(left));
		names_text(p->now, names, sizeof(names));
		if (is_due(p->now, now))
			warn(&w, p->cert.pos, "the certificate in `%s` %s", file, left);
		if (is_shown(t, i) && is_useless(p->now, c))
			warn(&w, p->cert.pos, "the certificate in `%s` is for no host of a route: %s", file, names);
	}
	if (t)
		hosts_warn(&w, t);
	return w.n;
}
