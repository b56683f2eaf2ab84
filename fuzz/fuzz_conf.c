/*
 * fuzz_conf: a file of any bytes.
 *
 * Purpose   conf_parse() gives a tree or at least one error, and its errors can be
 *           printed, whatever the bytes are.
 * Owns      nothing between two inputs.
 * Called by libFuzzer or replay.c.
 * Never     looks at the environment: one variable is scripted.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "conf/conf.h"
#include "lib/base/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *scripted_env(const char *name)
{
	static char value[] = "127.0.0.1:80";

	return name[0] == 'A' ? value : NULL;
}

static void pairs_check(const struct conf_pair_list *l)
{
	for (size_t i = 0; i < l->count; i++) {
		CHECK(l->items[i].name.n && l->items[i].value.p);
		CHECK(!l->items[i].regex || l->items[i].value.n);
	}
}

static void match_check(const struct conf_match *m)
{
	CHECK(m->path.n && (m->path_kind == CONF_PATH_REGEX || m->path.p[0] == '/'));
	for (size_t i = 0; i < m->methods.count; i++)
		CHECK(m->methods.items[i].n);
	pairs_check(&m->headers);
	pairs_check(&m->query);
}

static void algorithms_check(const struct conf_algorithms *a)
{
	CHECK(a->min_version <= a->max_version);
	CHECK(a->ciphers.text.p && a->suites.text.p && a->groups.text.p);
}

static void listen_tls_check(const struct conf_listen_tls *t)
{
	CHECK(t->clients.ca.text.p && t->clients.crl.text.p && t->ticket_key.text.p);
	algorithms_check(&t->algorithms);
	CHECK(!t->on || t->certificates.count);
	CHECK(!t->clients.crl.text.n || t->clients.ca.text.n);
	for (size_t i = 0; t->on && i < t->certificates.count; i++)
		CHECK(t->certificates.items[i].cert.text.n && t->certificates.items[i].key.text.n);
}

static void service_tls_check(const struct conf_service *s)
{
	const struct conf_service_tls *t = &s->tls;

	CHECK(t->ca.text.p && t->crl.text.p && t->name.text.p && t->cert.text.p && t->key.text.p);
	algorithms_check(&t->algorithms);
	CHECK(!t->on || t->name.text.n || t->insecure || !s->endpoints.count);
	CHECK(!t->on || ((t->cert.text.n == 0) == (t->key.text.n == 0) && (!t->crl.text.n || t->ca.text.n)));
	for (size_t i = 0; i < s->endpoints.count; i++)
		CHECK(s->endpoints.items[i].front != (t->on ? CONF_FRONT_HTTP : CONF_FRONT_HTTPS));
}

static void listen_check(const struct conf *c, const struct conf_listen *l)
{
	CHECK(c->route_count || l->speaks != CONF_SPEAKS_HTTP);
	CHECK((l->speaks == CONF_SPEAKS_TCP) == (l->service != NULL));
	CHECK((l->speaks == CONF_SPEAKS_SNI) == (l->sni.count != 0));
	CHECK(!l->tls.on || l->speaks == CONF_SPEAKS_HTTP);
	listen_tls_check(&l->tls);
	CHECK(l->proxy_protocol == CONF_PROXY_IN_OFF || l->trusted_proxies.count);
	for (size_t i = 0; i < l->sni.count; i++)
		CHECK(l->sni.items[i].service && l->sni.items[i].host.p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static FILE *nowhere;
	struct conf_errors errors;
	struct conf *c;

	if (!nowhere)
		nowhere = fopen("/dev/null", "w");
	CHECK(nowhere);
	conf_errors_init(&errors);
	c = conf_parse("fuzz.yaml", (struct str){(const char *)data, size}, scripted_env, &errors);
	CHECK(!c == (errors.count || errors.no_memory));
	CHECK(!c || c->listen_count);
	for (size_t i = 0; c && i < c->listen_count; i++)
		listen_check(c, &c->listens[i]);
	for (size_t i = 0; c && i < c->service_count; i++)
		service_tls_check(&c->services[i]);
	for (size_t i = 0; c && i < c->route_count; i++) {
		CHECK((c->routes[i].action == CONF_ACTION_SERVICE) == (c->routes[i].service || c->routes[i].backend_count));
		CHECK(c->routes[i].match_count);
		for (size_t j = 0; j < c->routes[i].match_count; j++)
			match_check(&c->routes[i].matches[j]);
	}
	for (size_t i = 0; i < errors.count; i++)
		for (size_t j = 0; j < errors.items[i].text.n; j++)
			CHECK((unsigned char)errors.items[i].text.p[j] >= 0x20);
	conf_errors_print(&errors, nowhere);
	if (c)
		conf_warnings_print(c, nowhere);
	conf_free(c);
	conf_errors_fini(&errors);
	return 0;
}
