/*
 * tls: the readers of what listeners and services say of TLS, and of `hsts`.
 *
 * Purpose   files, names and algorithms, and what they say of each other.
 * Owns      nothing; results are in the tree's arena.
 * Called by walk.c through conf_reader_of(); place.c for what a service as a whole says.
 * Never     opens a file: whether it is there, and good, proxy/tls.c knows.
 */
#include "conf/walk.h"

#include <arpa/inet.h>
#include <limits.h>

#include "conf/scalar.h"

#define CERTIFICATES_MAX 1000
#define CIPHERS_MAX 4096		/* bytes of a list of algorithms */
#define DAY_MS 86400000ull
#define PRELOAD_LEAST (365 * DAY_MS)	/* what browsers ask of those in their lists */

static const struct conf_text nothing = {.text = {"", 0}};

void conf_read_tls_file(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	if (!conf_walk_text(w, k, n))
		return;
	if (str_starts(n->text, STR("-----BEGIN")))
		conf_errors_add(w->errors, n->pos, "`%s` is the path of a file, not what is in it", k->name);
	else if (n->text.n >= PATH_MAX || memchr(n->text.p, '\0', n->text.n))
		conf_errors_add(w->errors, n->pos, "`%s` is not the path of a file", k->name);
	else
		*(struct conf_text *)at = (struct conf_text){n->pos, conf_walk_dup(w, n->text)};
}

/* --- algorithms --- */

static bool algorithm_ok(struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];

		if (!(c >= '0' && c <= '9') && !((c | 32) >= 'a' && (c | 32) <= 'z') && (!c || !strchr("-_+!@=.:", c)))
			return false;
	}
	return s.n > 0;
}

void conf_read_ciphers(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	struct conf_near near = {.word = n->text};
	char all[CIPHERS_MAX];
	size_t count, used = 0;
	const struct conf_node *c = conf_walk_items(w, k, n, &count);

	if (c == n && str_eq(n->text, str_of(k->words))) {
		*(struct conf_text *)at = nothing;
		return;
	}
	if (n->kind == CONF_NODE_LIST && !count)
		conf_errors_add(w->errors, n->pos, "`%s` is an empty list; leave it out for the default", k->name);
	conf_near_try(&near, str_of(k->words));
	if (c == n && near.best.n && near.distance == 1) {
		conf_errors_add(w->errors, n->pos, "`%.60s` is no name of OpenSSL's%s", n->text.p, conf_walk_hint(w, &near));
		return;
	}
	for (; count; count--, c = c->next) {
		if (!conf_walk_text(w, k, c))
			return;
		if (!algorithm_ok(c->text)) {
			conf_errors_add(w->errors, c->pos, "`%.60s` is not a name as OpenSSL has them, or several with `:` between",
					c->text.p);
			return;
		}
		if (used + c->text.n + 1 > sizeof all) {
			conf_errors_add(w->errors, n->pos, "`%s` has more than %d bytes", k->name, CIPHERS_MAX);
			return;
		}
		if (used)
			all[used++] = ':';
		memcpy(all + used, c->text.p, c->text.n);
		used += c->text.n;
	}
	if (used)
		*(struct conf_text *)at = (struct conf_text){n->pos, conf_walk_dup(w, (struct str){all, used})};
}

static void algorithms_check(struct conf_walk *w, const struct conf_node *n, const struct conf_algorithms *a)
{
	const struct conf_node *ciphers = conf_node_child(n, "ciphers"), *suites = conf_node_child(n, "suites");
	const struct conf_node *min = conf_node_child(n, "min_version"), *max = conf_node_child(n, "max_version");

	if (a->min_version > a->max_version)
		conf_errors_add(w->errors, (min ? min : max)->pos, "`min_version` is above `max_version`");
	else if (ciphers && a->ciphers.text.n && a->min_version == CONF_TLS_13)
		conf_errors_add(w->errors, ciphers->key_pos, "`ciphers` are those of TLS 1.2, which `min_version` leaves out");
	else if (suites && a->suites.text.n && a->max_version == CONF_TLS_12)
		conf_errors_add(w->errors, suites->key_pos, "`suites` are those of TLS 1.3, which `max_version` leaves out");
}

/* What stands for a map of keys: 1 on, 0 off, -1 the map itself, -2 an error, told. */
static int switch_read(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, bool on_alone)
{
	bool on;

	if (n->kind == CONF_NODE_MAP)
		return -1;
	if (n->kind == CONF_NODE_TEXT && n->text.n && !conf_read_bool(n->text, &on) && (on_alone || !on))
		return on;
	if (n->kind != CONF_NODE_BAD)
		conf_errors_add(w->errors, n->pos, "`%s` is %soff or a map of keys%s%.60s%s", k->name, on_alone ? "on, " : "",
				n->kind == CONF_NODE_TEXT && n->text.n ? ", not `" : ", not ",
				n->kind == CONF_NODE_TEXT && n->text.n ? n->text.p : conf_node_what(n),
				n->kind == CONF_NODE_TEXT && n->text.n ? "`" : "");
	return -2;
}

/* --- listeners --- */

void conf_read_certificates(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	struct conf_certificate_list list = {0};
	bool many = n->kind == CONF_NODE_LIST;
	size_t count = many ? n->count : 1;

	if (n->kind == CONF_NODE_BAD)
		return;
	if (!count || count > CERTIFICATES_MAX) {
		conf_errors_add(w->errors, n->pos, count ? "`%s` has more than %d items" : "`%s` is an empty list", k->name,
				CERTIFICATES_MAX);
		return;
	}
	list.items = conf_walk_alloc(w, count * sizeof *list.items);
	if (!list.items)
		return;
	for (const struct conf_node *c = many ? n->first : n; list.count < count; c = c->next) {
		struct conf_certificate *cert = &list.items[list.count++];

		*cert = (struct conf_certificate){.pos = c->pos, .cert = nothing, .key = nothing};
		conf_walk_map(w, k->sub, c, cert);
	}
	*(struct conf_certificate_list *)at = list;
}

void conf_read_client_certificates(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	struct conf_client_certificates *c = at;

	*c = (struct conf_client_certificates){.ca = nothing, .crl = nothing};
	if (switch_read(w, k, n, false) != -1)
		return;
	conf_walk_default(w, k->sub, c);
	conf_walk_map(w, k->sub, n, c);
}

void conf_read_tickets(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	struct conf_listen_tls *t = at;
	int is = switch_read(w, k, n, true);

	t->ticket_key = nothing;
	t->tickets = is != 0;
	if (is == -1)
		conf_walk_map(w, k->sub, n, t);
}

void conf_read_listen_tls(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	struct conf_listen_tls *t = at;

	*t = (struct conf_listen_tls){.pos = n->pos};
	conf_walk_default(w, k->sub, t);
	if (switch_read(w, k, n, false) != -1)
		return;
	t->on = true;
	conf_walk_map(w, k->sub, n, t);
	algorithms_check(w, n, &t->algorithms);
}

/* --- services --- */

void conf_read_tls_name(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	struct str s = n->text;
	const char *wrong = NULL;
	uint8_t ip[16];

	if (!conf_walk_text(w, k, n))
		return;
	if (s.p[0] == '[' && s.p[s.n - 1] == ']')
		s = (struct str){s.p + 1, s.n - 2};
	s = conf_walk_dup(w, s);
	if (!s.n || (inet_pton(AF_INET6, s.p, ip) != 1 && inet_pton(AF_INET, s.p, ip) != 1))
		wrong = s.n && s.p[0] == '*' ? "is not one name" : s.n && memchr(s.p, ':', s.n) ? "has a port: a name has none"
			: conf_host_wrong(s);
	if (wrong)
		conf_errors_add(w->errors, n->pos, "`%.80s` %s", n->text.p, wrong);
	else
		*(struct conf_text *)at = (struct conf_text){n->pos, s};
}

static void client_check(struct conf_walk *w, const struct conf_node *n, const struct conf_service_tls *t)
{
	const struct conf_node *trust = conf_node_child(n, "ca");

	if (t->cert.text.n && !t->key.text.n)
		conf_errors_add(w->errors, t->cert.pos, "`cert` needs `key`, its private key");
	if (t->key.text.n && !t->cert.text.n)
		conf_errors_add(w->errors, t->key.pos, "`key` needs `cert`, the certificate that it is for");
	if (t->crl.text.n && !t->ca.text.n && !t->insecure)
		conf_errors_add(w->errors, t->crl.pos, "`crl` needs `ca`: those who have revoked");
	trust = trust ? trust : conf_node_child(n, "crl");
	if (trust && t->insecure)
		conf_errors_add(w->errors, trust->key_pos, "`%s` beside `insecure_skip_verify`: nothing is verified", trust->key.p);
}

void conf_read_service_tls(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	struct conf_service_tls *t = at;
	int is;

	*t = (struct conf_service_tls){
		.pos = n->pos, .ca = nothing, .crl = nothing, .name = nothing, .cert = nothing, .key = nothing,
	};
	conf_walk_default(w, k->sub, t);
	is = switch_read(w, k, n, true);
	t->on = is != 0;
	if (is != -1)
		return;
	conf_walk_map(w, k->sub, n, t);
	algorithms_check(w, n, &t->algorithms);
	client_check(w, n, t);
}

/* Endpoints that say whether they speak TLS must agree, and agree with `tls`. */
static bool schemes_fit(struct conf_walk *w, const struct conf_node *said, struct conf_service *s)
{
	const struct conf_address *https = NULL, *http = NULL, *bare = NULL;
	bool fit = false;

	for (size_t i = s->endpoints.count + (s->dns.address.path.n > 0); i; i--) {
		const struct conf_address *a = i > s->endpoints.count ? &s->dns.address : &s->endpoints.items[i - 1];

		*(a->front == CONF_FRONT_HTTPS ? &https : a->front == CONF_FRONT_HTTP ? &http : &bare) = a;
	}
	if (https && said && !s->tls.on)
		conf_errors_add(w->errors, https->pos, "`tls` is off, and this endpoint begins with https://");
	else if (http && said && s->tls.on)
		conf_errors_add(w->errors, http->pos, "`tls` is on, and this endpoint begins with http://");
	else if (https && (http || (bare && !said)))
		conf_errors_add(w->errors, (http ? http : bare)->pos,
				"some endpoints of the service `%.60s` begin with https:// and this one does not: all are alike", s->name.p);
	else
		fit = true;
	if (https && !said) {
		s->tls.on = true;
		s->tls.pos = https->pos;
	}
	return fit;
}

/* A Host as a name: without its port, brackets and the dot at its end. */
static struct str host_alone(struct str s)
{
	const char *colon = s.n && s.p[0] == '[' ? NULL : memrchr(s.p, ':', s.n), *end;

	if (s.n && s.p[0] == '[') {
		end = memchr(s.p, ']', s.n);
		return (struct str){s.p + 1, end ? (size_t)(end - s.p) - 1 : s.n - 1};
	}
	if (colon)
		s.n = (size_t)(colon - s.p);
	if (s.n > 1 && s.p[s.n - 1] == '.')
		s.n--;
	return s;
}

static bool are_localhost(const struct conf_address_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		if (!str_eq(host_alone(list->items[i].text), STR("localhost")))
			return false;
	return list->count > 0;
}

void conf_service_tls_check(struct conf_walk *w, const struct conf_node *n, struct conf_service *s)
{
	const struct conf_node *said = n->kind == CONF_NODE_MAP ? conf_node_child(n, "tls") : NULL;
	struct conf_service_tls *t = &s->tls;

	if (!schemes_fit(w, said, s) || !t->on)
		return;
	if (s->proxy_protocol != CONF_PROXY_OUT_OFF)
		conf_errors_add(w->errors, conf_node_child(n, "proxy_protocol")->key_pos,
				"the endpoints of `%.60s` are spoken to by TLS, and no header is put in front of that: `tls` or `proxy_protocol`, not both",
				s->name.p);
	if (t->name.text.n)
		return;
	if (s->host_kind == CONF_HOST_NAME)
		t->name.text = conf_walk_dup(w, host_alone(s->host));
	else if (are_localhost(&s->endpoints))
		t->name.text = STR("localhost");
	else if (conf_service_dns_name(s).n)
		t->name.text = conf_walk_dup(w, conf_service_dns_name(s));
	else if (!t->insecure && s->dns.srv)
		conf_errors_add(w->errors, t->pos,
				"the endpoints of `%.60s` are found by SRV records: say whose certificate they have, as in `tls: { name: app.example.com }`",
				s->name.p);
	else if (!t->insecure && (s->endpoints.count || s->dns.address.path.n))
		conf_errors_add(w->errors, t->pos,
				"the endpoints of `%.60s` are addresses, or go by several names: say whose certificate they have, as in `tls: { name: app.example.com }`",
				s->name.p);
}

/* --- HSTS --- */

void conf_read_hsts(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	struct conf_hsts *h = at;
	int is = switch_read(w, k, n, true);
	const struct conf_node *preload;

	*h = (struct conf_hsts){.on = is != 0};
	conf_walk_default(w, k->sub, h);
	if (is != -1)
		return;
	conf_walk_map(w, k->sub, n, h);
	preload = conf_node_child(n, "preload");
	if (h->preload && preload && (!h->include_subdomains || h->max_age < PRELOAD_LEAST))
		conf_errors_add(w->errors, preload->key_pos, "`preload` needs `include_subdomains: on` and a `max_age` of at least 365d");
}
