/*
 * address: where to listen, where endpoints are, whom to trust.
 *
 * Purpose   `:8080`, `127.0.0.1:8080`, `[::1]:8080`, `*:80`, `unix:/path`,
 *           `localhost:3000`, `http://10.0.0.1`, `web.example:80`, `10.0.0.0/8`.
 * Owns      nothing; results borrow from the text.
 * Called by items.c.
 * Never     asks a resolver: a name other than `localhost` stays one.
 */
#include "conf/address.h"

#include <arpa/inet.h>
#include <sys/un.h>

#include "conf/names.h"
#include "conf/scalar.h"

#define NO_PATH "an endpoint is an address: it has no path, `http://10.0.0.1:3000` say"
#define WANT_LISTEN "an address to listen on is `:8080`, `127.0.0.1:8080`, `[::1]:8080` or `unix:/path`"

/* inet_pton() for a text that has no end mark. */
static bool ip_parse(int family, struct str s, uint8_t ip[16])
{
	char z[INET6_ADDRSTRLEN];
	uint8_t v[16] = {0};

	if (s.n >= sizeof z || (s.n && memchr(s.p, '\0', s.n)))
		return false;
	if (s.n)
		memcpy(z, s.p, s.n);
	z[s.n] = '\0';
	if (inet_pton(family, z, v) != 1)
		return false;
	memcpy(ip, v, sizeof v);
	return true;
}

static const char *unix_parse(struct str s, struct conf_address *a)
{
	a->kind = CONF_UNIX;
	a->path = (struct str){s.p + 5, s.n - 5};
	if (!a->path.n || memchr(a->path.p, '\0', a->path.n))
		return "`unix:` must be followed by the path of a socket";
	if (a->path.n >= sizeof ((struct sockaddr_un *)NULL)->sun_path)
		return "the path of a socket has at most 107 bytes";
	return NULL;
}

/* A name that name servers may know.  One whose last part is a number is a mistyped address. */
static const char *name_parse(struct str host, struct conf_address *a)
{
	const char *wrong = conf_dns_name_wrong(host);

	if (wrong)
		return wrong;
	a->kind = CONF_NAME;
	a->path = host;
	return NULL;
}

/* `host` is what stands before the port, brackets gone if there were any. */
static const char *host_parse(struct str host, bool brackets, enum conf_address_use use, struct conf_address *a)
{
	if (brackets) {
		a->kind = CONF_INET6;
		return ip_parse(AF_INET6, host, a->ip) ? NULL : "not an IPv6 address in the brackets";
	}
	a->kind = CONF_INET;
	if (ip_parse(AF_INET, host, a->ip))
		return NULL;
	if (str_eq(host, STR("localhost"))) {
		memcpy(a->ip, (uint8_t[4]){127, 0, 0, 1}, 4);
		return NULL;
	}
	if (!host.n || str_eq(host, STR("*"))) {
		if (use == CONF_USE_ENDPOINT)
			return "an endpoint needs an address before its port";
		a->kind = CONF_INET6;
		a->any = true;
		return NULL;
	}
	if (host.n && memchr(host.p, ':', host.n))
		return "an IPv6 address must be in brackets, as in [::1]:8080";
	return use == CONF_USE_ENDPOINT ? name_parse(host, a) : WANT_LISTEN;
}

/* What is wrong with a scheme or a user name in front of an address, or NULL. */
static const char *front_wrong(struct str s, enum conf_address_use use)
{
	const char *at = s.n ? memmem(s.p, s.n, "://", 3) : NULL;
	struct str scheme = {s.p, at ? (size_t)(at - s.p) : 0};
	bool https = str_ieq(scheme, STR("https")), known = https || str_ieq(scheme, STR("http"));

	if (s.n && str_starts(s, STR("unix:")))
		return NULL;
	if (at && use == CONF_USE_LISTEN)
		return https ? "an address to listen on has no scheme: write the address alone, and `tls` beside it"
			: "an address to listen on has no scheme: write the address alone";
	if (scheme.n && !known && !memchr(s.p, '/', scheme.n))
		return "the scheme of an endpoint is http:// or https://, for WebSocket too";
	if (s.n && memchr(s.p, '@', s.n))
		return "user names and passwords are not taken: write the address alone";
	return NULL;
}

/* Takes http:// or https:// off an endpoint; NULL, or what is wrong. */
static const char *scheme_take(struct str *s, enum conf_front *front)
{
	size_t n = s->n >= 7 && str_ieq((struct str){s->p, 7}, STR("http://")) ? 7
		: s->n >= 8 && str_ieq((struct str){s->p, 8}, STR("https://")) ? 8 : 0;

	*front = n == 7 ? CONF_FRONT_HTTP : n ? CONF_FRONT_HTTPS : CONF_FRONT_NONE;
	if (n) {
		s->p += n;
		s->n -= n;
		if (s->n && s->p[s->n - 1] == '/')
			s->n--;
	}
	if (s->n && !str_starts(*s, STR("unix:")) && memchr(s->p, '/', s->n))
		return NO_PATH;
	return NULL;
}

static const char *port_parse(struct str s, enum conf_address_use use, uint16_t *port)
{
	uint64_t v;

	if (conf_read_count(s, &v) || v > 65535 || (!v && use == CONF_USE_ENDPOINT))
		return use == CONF_USE_ENDPOINT ? "a port is a number from 1 to 65535"
			: "a port is a number from 1 to 65535, or 0: the kernel picks one";
	*port = (uint16_t)v;
	return NULL;
}

static const char *inet_parse(struct str s, enum conf_address_use use, struct conf_address *a)
{
	bool brackets = s.n && s.p[0] == '[';
	const char *end = !s.n ? NULL : brackets ? memchr(s.p, ']', s.n) : memrchr(s.p, ':', s.n);
	struct str host, rest;
	uint8_t ip[16];

	if (brackets && !end)
		return "`[` without `]`";
	if (!brackets && ip_parse(AF_INET6, s, ip))
		return "an IPv6 address must be in brackets, as in [::1]:8080";
	if (!end)
		end = s.p + s.n;
	host = (struct str){s.p + brackets, (size_t)(end - s.p) - brackets};
	rest = (struct str){end + brackets, s.n - host.n - 2u * brackets};
	if (!rest.n && a->front) {
		a->port = a->front == CONF_FRONT_HTTPS ? 443 : 80;
	} else if (rest.n && rest.p[0] == ':') {
		const char *wrong = host_parse(host, brackets, use, a);

		return wrong ? wrong : port_parse((struct str){rest.p + 1, rest.n - 1}, use, &a->port);
	} else if (rest.n) {
		return "after `]` comes `:` and a port";
	} else if (!conf_read_count(s, &(uint64_t){0})) {
		return use == CONF_USE_LISTEN ? "a port alone is written with a colon, as in `:8080`"
			: "an endpoint needs an address before its port";
	} else if (!host_parse(host, brackets, use, &(struct conf_address){0})) {
		return "an address needs a port, as in 127.0.0.1:8080";
	}
	return host_parse(host, brackets, use, a);
}

const char *conf_read_address(struct str s, enum conf_address_use use, struct conf_address *out)
{
	struct conf_address a = {.pos = out->pos, .path = STR(""), .weight = out->weight, .state = out->state};
	const char *wrong = front_wrong(s, use);

	if (!wrong && use == CONF_USE_ENDPOINT)
		wrong = scheme_take(&s, &a.front);
	if (wrong)
		return wrong;
	a.text = s;
	wrong = !a.front && str_starts(s, STR("unix:")) ? unix_parse(s, &a) : inet_parse(s, use, &a);
	if (!wrong)
		*out = a;
	return wrong;
}

const char *conf_read_cidr(struct str s, struct conf_cidr *out)
{
	const char *slash = s.n ? memchr(s.p, '/', s.n) : NULL;
	struct str ip = {s.p, slash ? (size_t)(slash - s.p) : s.n};
	struct conf_cidr c = {.kind = CONF_INET};
	uint64_t bits, most = 32;

	if (str_eq(s, STR("unix:"))) {
		*out = (struct conf_cidr){.kind = CONF_UNIX};
		return NULL;
	}
	if (!ip_parse(AF_INET, ip, c.ip)) {
		if (!ip_parse(AF_INET6, ip, c.ip))
			return "not an IP address or a network, such as 10.0.0.0/8, or \"unix:\"";
		c.kind = CONF_INET6;
		most = 128;
	}
	bits = most;
	if (slash && (conf_read_count((struct str){slash + 1, s.n - ip.n - 1}, &bits) || bits > most))
		return c.kind == CONF_INET ? "after `/` comes a number from 0 to 32" : "after `/` comes a number from 0 to 128";
	for (uint64_t i = bits; i < most; i++)
		if (c.ip[i / 8] & (0x80u >> i % 8))
			return "the address has bits beyond its network: zero them, as in 10.0.0.0/8";
	c.bits = (uint8_t)bits;
	*out = c;
	return NULL;
}

bool conf_address_same(const struct conf_address *a, const struct conf_address *b)
{
	if (a->kind != b->kind)
		return false;
	if (a->kind == CONF_UNIX)
		return str_eq(a->path, b->path);
	if (a->kind == CONF_NAME && !str_eq(a->path, b->path))
		return false;
	return a->port == b->port && a->any == b->any && memcmp(a->ip, b->ip, sizeof a->ip) == 0;
}
