/* conf: the tree of a file, values and variables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "conf/conf.h"
#include "conf/scalar.h"
#include "lib/base/mem.h"

static char *scripted_env(const char *name)
{
	static char port[] = "3000", empty[] = "", shape[] = "x, b: [y]", dollars[] = "${PORT}$";

	return strcmp(name, "PORT") == 0 ? port : strcmp(name, "EMPTY") == 0 ? empty :
		strcmp(name, "SHAPE") == 0 ? shape : strcmp(name, "DOLLARS") == 0 ? dollars : NULL;
}

static struct conf *parse_ok(const char *text)
{
	struct conf_errors e;
	struct conf *c;

	conf_errors_init(&e);
	c = conf_parse("t.yaml", str_of(text), scripted_env, &e);
	if (!c)
		conf_errors_print(&e, stderr);
	conf_errors_fini(&e);
	assert_non_null(c);
	return c;
}

static void assert_str(struct str s, const char *want)
{
	assert_non_null(s.p);
	assert_string_equal(s.p, want);
	assert_int_equal(s.n, strlen(want));
}

static const char whole[] =
	"workers: 3\n"
	"listen:\n"
	"- :8080\n"
	"- {address: '[::1]:0', trusted_proxies: ['10.0.0.0/8', '::1'], x_forwarded: off, forwarded: yes, via: off,\n"
	"   request_id: off, underscores: refuse, upgrade: off}\n"
	"- unix:/tmp/s\n"
	"- {address: ':8443', sni: {'*': web, a.de: api}, trusted_proxies: 10.0.0.0/8, proxy_protocol: on}\n"
	"defaults: {x_forwarded: replace, host: endpoint, body_limit: 1MB, response_headers: {remove: Server}}\n"
	"services:\n"
	"  web: [http://10.0.0.1, localhost:81, '[fd00::1]:82', unix:/run/a]\n"
	"  api: {endpoints: 1.2.3.4:5, host: 'x.de:8080', max_connections: 7, proxy_protocol: v1}\n"
	"routes:\n"
	"- {host: [A.de, '*.B.de'], path: /api/, service: api, replace_prefix: /v2, body_limit: off,\n"
	"   response_headers: {set: {A: b}}, timeouts: {first_byte: 5m, tunnel: 0}}\n"
	"- {path: {exact: /x/}, redirect: {to: 'https://{host}/a{path}', status: 308}}\n"
	"- answer: {status: 404, body: \"no\\n\"}\n"
	"- {answer: {}, matches: [{path: /m, method: [GET, PUT]}, {path: {regex: a.*}, headers: {a: {regex: b}}, query: {c: d}}]}\n"
	"limits: {body: 2GiB, receive_window: off, replay: 0}\n"
	"timeouts: {first_byte: 90s, between_bytes: off, drain: 500ms}\n"
	"log: {level: error, error: ./e.log, access: off, format: json, buffer: 1MiB}\n";

static void listeners_are_read(void **state)
{
	struct conf *c = parse_ok(whole);
	const struct conf_listen *l = c->listens;

	(void)state;
	assert_int_equal(c->workers, 3);
	assert_int_equal(c->listen_count, 4);
	assert_true(l[0].address.any && l[0].address.kind == CONF_INET6 && l[0].address.port == 8080);
	assert_int_equal(l[0].pos.line, 3);
	assert_int_equal(l[0].x_forwarded, CONF_XF_REPLACE);
	assert_str(l[0].via, "thimble");
	assert_str(l[0].request_id, "X-Request-Id");
	assert_int_equal(l[0].underscores, CONF_UNDERSCORES_DROP);
	assert_int_equal(l[0].upgrade.count, 1);
	assert_str(l[0].upgrade.items[0], "websocket");
	assert_true(!l[1].address.any && l[1].address.kind == CONF_INET6 && l[1].address.ip[15] == 1);
	assert_int_equal(l[1].trusted_proxies.count, 2);
	assert_int_equal(l[1].trusted_proxies.items[0].bits, 8);
	assert_int_equal(l[1].trusted_proxies.items[1].bits, 128);
	assert_int_equal(l[1].x_forwarded, CONF_XF_OFF);
	assert_true(l[1].forwarded);
	assert_str(l[1].via, "");
	assert_str(l[1].request_id, "");
	assert_int_equal(l[1].underscores, CONF_UNDERSCORES_REFUSE);
	assert_int_equal(l[1].upgrade.count, 0);
	assert_int_equal(l[2].address.kind, CONF_UNIX);
	assert_str(l[2].address.path, "/tmp/s");
	conf_free(c);
}

static void services_and_routes_are_read(void **state)
{
	struct conf *c = parse_ok(whole);
	const struct conf_service *s = c->services;
	const struct conf_route *r = c->routes;

	(void)state;
	assert_int_equal(c->service_count, 2);
	assert_str(s[0].name, "web");
	assert_int_equal(s[0].endpoints.count, 4);
	assert_int_equal(s[0].endpoints.items[0].port, 80);
	assert_str(s[0].endpoints.items[0].text, "10.0.0.1");
	assert_memory_equal(s[0].endpoints.items[1].ip, "\x7f\0\0\x01", 4);
	assert_int_equal(s[0].host_kind, CONF_HOST_ENDPOINT);
	assert_true(s[1].index == 1 && s[1].host_kind == CONF_HOST_NAME && s[1].max_connections == 7);
	assert_str(s[1].host, "x.de:8080");

	assert_int_equal(c->route_count, 4);
	assert_true(r[0].service == &s[1] && r[0].action == CONF_ACTION_SERVICE);
	assert_str(r[0].hosts.items[0], "a.de");
	assert_str(r[0].hosts.items[1], "*.b.de");
	assert_str(r[0].matches->path, "/api");
	assert_str(r[0].replace_prefix, "/v2");
	assert_true(r[0].body_limit == CONF_NO_LIMIT);
	assert_true(r[0].response_headers.set.count == 1 && r[0].response_headers.remove.count == 0);
	assert_int_equal(r[0].timeouts.first_byte, 300000);
	assert_int_equal(r[0].timeouts.between_bytes, 0);
	assert_int_equal(r[0].timeouts.tunnel, 0);
	assert_true(r[1].action == CONF_ACTION_REDIRECT && r[1].matches->path_kind == CONF_PATH_EXACT);
	assert_str(r[1].matches->path, "/x/");
	assert_int_equal(r[1].redirect.status, 308);
	assert_int_equal(r[1].redirect.part_count, 4);
	assert_int_equal(r[1].redirect.parts[1].kind, CONF_PART_HOST);
	assert_str(r[1].redirect.parts[2].text, "/a");
	assert_int_equal(r[1].redirect.parts[3].kind, CONF_PART_PATH);
	assert_int_equal(r[1].body_limit, 1000000);
	assert_int_equal(r[1].response_headers.remove.count, 1);
	assert_str(r[1].response_headers.remove.items[0].name, "Server");
	assert_int_equal(r[1].timeouts.first_byte, 90000);
	assert_int_equal(r[1].timeouts.tunnel, 3600000);
	assert_true(r[2].action == CONF_ACTION_ANSWER && r[2].answer.status == 404);
	assert_str(r[2].answer.body, "no\n");
	assert_str(r[2].answer.type, "text/plain");
	assert_str(r[2].matches->path, "/");
	conf_free(c);
}

static void compression_is_read(void **state)
{
	struct conf *c = parse_ok("defaults: {compress: {encodings: br, level: small}}\n"
				  "limits: {compress: 1MiB}\n"
				  "routes:\n"
				  "- answer: {}\n"
				  "- {path: /a, answer: {}, compress: off}\n"
				  "- {path: /b, answer: {}, compress: on}\n"
				  "- {path: /c, answer: {}, compress: {types: [common, text/event-stream], min_size: 2KiB, encodings: [gzip, zstd]}}\n");
	const struct conf_compress *r[4];

	(void)state;
	for (size_t i = 0; i < 4; i++)
		r[i] = &c->routes[i].compress;
	assert_int_equal(c->limits.compress, 1 << 20);
	assert_true(r[0]->on && r[0]->coding_count == 1 && r[0]->codings[0] == CONF_CODING_BR && r[0]->level == CONF_COMPRESS_SMALL);
	assert_int_equal(r[0]->min_size, 1024);
	assert_str(r[0]->types.items[0], "text/*");
	assert_true(!r[1]->on && !r[1]->coding_count);
	assert_true(r[2]->on && r[2]->coding_count == 3 && r[2]->level == CONF_COMPRESS_FAST);	/* whole, not merged */
	assert_int_equal(r[2]->codings[0], CONF_CODING_ZSTD);
	assert_int_equal(r[2]->codings[2], CONF_CODING_GZIP);
	assert_ptr_equal(r[0]->types.items, r[2]->types.items);		/* once for all */
	assert_true(r[3]->on && r[3]->coding_count == 2 && r[3]->codings[0] == CONF_CODING_GZIP);
	assert_int_equal(r[3]->types.count, r[2]->types.count + 1);
	assert_str(r[3]->types.items[r[2]->types.count], "text/event-stream");
	assert_int_equal(r[3]->min_size, 2048);
	conf_free(c);
	c = parse_ok("routes: [{answer: {}}]\n");
	assert_false(c->routes[0].compress.on);
	assert_int_equal(c->limits.compress, 64 << 20);
	conf_free(c);
}

static void unix_peers_are_trusted_by_a_word(void **state)
{
	static const char *const forms[] = {"'unix:'", "['10.0.0.0/8', \"unix:\"]", "\n  - 10.0.0.0/8\n  - unix:\n"};
	char text[200];

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		const struct conf_cidr_list *l;
		struct conf *c;

		snprintf(text, sizeof text, "defaults:\n  trusted_proxies: %s\nroutes: [{answer: {}}]\n", forms[i]);
		c = parse_ok(text);
		l = &c->listens[0].trusted_proxies;
		assert_int_equal(l->count, i ? 2 : 1);
		assert_int_equal(l->items[0].kind, i ? CONF_INET : CONF_UNIX);
		assert_int_equal(l->items[l->count - 1].kind, CONF_UNIX);
		assert_int_equal(l->items[l->count - 1].bits, 0);
		assert_memory_equal(l->items[l->count - 1].ip, (uint8_t[16]){0}, 16);
		conf_free(c);
	}
}

static void who_is_asked_and_who_gets_copies(void **state)
{
	struct conf *c = parse_ok("routes:\n"
		"- {path: /a, service: web, auth: {service: who, path: '/v?a=b', method: HEAD, sign_in: 'https://{host}/?rd={url}',\n"
		"   request_headers: Cookie, response_headers: [X-User, X-Mail], set_cookie: off, timeout: 1s}}\n"
		"- {path: /b, answer: {}, auth: {service: who, request_headers: []}}\n"
		"- {path: /c, service: web, mirror: {service: who, share: 12.5%, body_limit: 1MiB, timeout: 3s}}\n"
		"- {path: /d, service: web, mirror: {service: who, share: 0.000001, body_limit: off}}\n"
		"- {path: /e, service: web, mirror: {service: who}}\n"
		"- {path: /f, service: web, mirror: {service: who, share: 0.0001%}}\n"
		"services: {web: '127.0.0.1:1', who: '127.0.0.1:2'}\n");
	const struct conf_route *r = c->routes;
	const struct conf_auth *a = &r[0].auth;

	(void)state;
	assert_ptr_equal(a->service, &c->services[1]);
	assert_true(c->services[1].used);
	assert_str(a->path, "/v?a=b");
	assert_str(a->sign_in, "https://{host}/?rd={url}");
	assert_int_equal(a->method, CONF_AUTH_HEAD);
	assert_int_equal(a->request_headers.count, 1);
	assert_int_equal(a->response_headers.count, 2);
	assert_str(a->response_headers.items[1].name, "X-Mail");
	assert_true(!a->set_cookie && a->timeout == 1000 && !r[0].mirror.service);
	a = &r[1].auth;
	assert_str(a->path, "/");
	assert_str(a->sign_in, "");
	assert_int_equal(a->method, CONF_AUTH_GET);
	assert_true(a->request_headers.items && !a->request_headers.count);	/* none is not all */
	assert_true(a->set_cookie && a->timeout == 5000 && !a->response_headers.count);
	assert_true(!r[2].auth.service && !r[2].auth.request_headers.items);
	assert_ptr_equal(r[2].mirror.service, &c->services[1]);
	assert_int_equal(r[2].mirror.share, CONF_SHARE_ALL / 8);
	assert_int_equal(r[2].mirror.body_limit, 1 << 20);
	assert_int_equal(r[2].mirror.timeout, 3000);
	assert_int_equal(r[3].mirror.share, 1);
	assert_int_equal(r[3].mirror.body_limit, 0);
	assert_int_equal(r[4].mirror.share, CONF_SHARE_ALL);
	assert_int_equal(r[4].mirror.body_limit, 64 << 10);
	assert_int_equal(r[5].mirror.share, 1);
	conf_free(c);
}

static void assert_limit(const struct conf_rate_limit *r, uint32_t count, uint32_t period, uint32_t burst,
			 enum conf_rate_by by, const char *name)
{
	assert_int_equal(r->count, count);
	assert_int_equal(r->period, period);
	assert_int_equal(r->burst, burst);
	assert_int_equal(r->by, by);
	assert_str(r->name, name);
}

static void who_may_come_and_how_often(void **state)
{
	struct conf *c = parse_ok("defaults: {allow: [10.0.0.0/8, 'unix:'], deny: 10.1.2.3, rate_limit: 7/h}\n"
		"limits: {rate_memory: 1MiB}\n"
		"routes:\n"
		"- {answer: {}}\n"
		"- {path: /a, allow: all, deny: none, rate_limit: off, answer: {}}\n"
		"- {path: /b, allow: fd00::/8, deny: [], answer: {}, rate_limit: [100/m, {rate: 5/s, burst: 9, by: route},\n"
		"   {rate: 1/s, by: {header: X-Key}, name: off}, {rate: 1000000/h, by: {header: X-Key}},\n"
		"   {rate: 2/s, name: net, ipv4_prefix: 24, ipv6_prefix: 48, burst: auto, by: address}]}\n");
	const struct conf_route *r = c->routes;

	(void)state;
	assert_int_equal(c->limits.rate_memory, 1 << 20);
	assert_int_equal(r[0].allow.count, 2);
	assert_int_equal(r[0].allow.items[1].kind, CONF_UNIX);
	assert_int_equal(r[0].deny.count, 1);
	assert_int_equal(r[0].deny.items[0].bits, 32);
	assert_int_equal(r[0].rate_limits.count, 1);
	assert_limit(r[0].rate_limits.items, 7, 3600, 7, CONF_BY_ADDRESS, "address");
	assert_true(!r[1].allow.count && !r[1].deny.count && !r[1].rate_limits.count);
	assert_int_equal(r[2].allow.count, 1);
	assert_int_equal(r[2].deny.count, 0);
	assert_int_equal(r[2].rate_limits.count, 5);
	assert_limit(&r[2].rate_limits.items[0], 100, 60, 100, CONF_BY_ADDRESS, "address");
	assert_int_equal(r[2].rate_limits.items[0].ipv4_prefix, 32);
	assert_int_equal(r[2].rate_limits.items[0].ipv6_prefix, 64);
	assert_str(r[2].rate_limits.items[0].header, "");
	assert_limit(&r[2].rate_limits.items[1], 5, 1, 9, CONF_BY_ROUTE, "route");
	assert_limit(&r[2].rate_limits.items[2], 1, 1, 1, CONF_BY_HEADER, "");
	assert_str(r[2].rate_limits.items[2].header, "X-Key");
	assert_limit(&r[2].rate_limits.items[3], 1000000, 3600, 1000000, CONF_BY_HEADER, "header");
	assert_limit(&r[2].rate_limits.items[4], 2, 1, 2, CONF_BY_ADDRESS, "net");
	assert_int_equal(r[2].rate_limits.items[4].ipv4_prefix, 24);
	assert_int_equal(r[2].rate_limits.items[4].ipv6_prefix, 48);
	conf_free(c);
	c = parse_ok("routes: [{answer: {}}]\n");
	assert_true(!c->routes->allow.count && !c->routes->deny.count && !c->routes->rate_limits.count);
	assert_int_equal(c->limits.rate_memory, 4 << 20);
	conf_free(c);
}

static void what_is_odd_is_warned_of(void **state)
{
	struct conf *c = parse_ok("services:\n  old: 1.2.3.4:5\n  web: []\n  older: []\n"
				  "routes: [{service: web}, {path: /x, service: web}]\n");
	char *out = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&out, &n);

	(void)state;
	assert_int_equal(conf_warnings_print(c, f), 2);
	fclose(f);
	assert_string_equal(out, "t.yaml:2:3: warning: no route leads to the service `old`\n"
			    "t.yaml:4:3: warning: no route leads to the service `older`\n");
	free(out);
	assert_true(!c->services[0].used && c->services[1].used);
	conf_free(c);
}

static void listeners_pass_bytes_on(void **state)
{
	struct conf *c = parse_ok("listen:\n"
				  "- {address: ':1', service: db, proxy_protocol: on}\n"
				  "- {address: ':2', sni: {'*': web, A.de.: db, '*.B.de': web}, proxy_protocol: optional}\n"
				  "- {address: ':3', sni: {a: db}, trusted_proxies: none}\n"
				  "defaults: {trusted_proxies: 10.0.0.0/8}\n"
				  "services: {web: {endpoints: 1.2.3.4:5, proxy_protocol: v2}, db: 1.2.3.4:6}\n");
	const struct conf_listen *l = c->listens;

	(void)state;
	assert_int_equal(c->route_count, 0);
	assert_true(l[0].speaks == CONF_SPEAKS_TCP && l[0].service == &c->services[1]);
	assert_int_equal(l[0].proxy_protocol, CONF_PROXY_IN_ON);
	assert_true(l[1].speaks == CONF_SPEAKS_SNI && !l[1].service && l[1].sni.count == 3);
	assert_int_equal(l[1].proxy_protocol, CONF_PROXY_IN_OPTIONAL);
	assert_str(l[1].sni.items[0].host, "");
	assert_true(l[1].sni.items[0].service == &c->services[0]);
	assert_str(l[1].sni.items[1].host, "*.b.de");
	assert_str(l[1].sni.items[2].host, "a.de");
	assert_true(l[1].sni.items[2].service == &c->services[1]);
	assert_int_equal(l[2].proxy_protocol, CONF_PROXY_IN_OFF);
	assert_int_equal(c->services[0].proxy_protocol, CONF_PROXY_OUT_V2);
	assert_int_equal(c->services[1].proxy_protocol, CONF_PROXY_OUT_OFF);
	assert_int_equal(conf_warnings_print(c, stderr), 0);
	conf_free(c);
}

static void routes_that_nobody_asks_are_warned_of(void **state)
{
	struct conf *c = parse_ok("listen: {address: ':1', service: a}\nservices: {a: []}\nroutes: [{service: a}]\n");
	char *out = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&out, &n);

	(void)state;
	assert_int_equal(conf_warnings_print(c, f), 1);
	fclose(f);
	assert_string_equal(out, "t.yaml:3:10: warning: no listener speaks HTTP, so nothing asks the routes\n");
	free(out);
	conf_free(c);
}

static void paths_are_normal(void **state)
{
	struct conf *c = parse_ok("routes:\n"
				  "- {path: /caf\xc3\xa9/, answer: {}}\n"
				  "- {path: {exact: /x/*}, answer: {}}\n"
				  "- {path: {exact: /%7eme%2fx%c3%a9/}, service: a, host: x.de}\n"
				  "- {path: /x, service: a, replace_prefix: /\xc3\xa9/}\n"
				  "services: {a: []}\n");

	(void)state;
	assert_str(c->routes[0].matches->path, "/caf%C3%A9");
	assert_str(c->routes[1].matches->path, "/x/*");
	assert_str(c->routes[2].matches->path, "/~me%2Fx%C3%A9/");
	assert_str(c->routes[3].replace_prefix, "/%C3%A9/");
	conf_free(c);
}

static void assert_pair(const struct conf_pair *p, const char *name, const char *value, bool regex)
{
	assert_str(p->name, name);
	assert_str(p->value, value);
	assert_true(p->regex == regex);
}

static void policies_are_read(void **state)
{
	const struct conf_route *r;
	struct conf *c = parse_ok(
		"defaults: {cors: {origins: '*'}, basic_auth: {file: u, user_header: X-User}}\n"
		"routes:\n"
		"- {path: /a, answer: {}, cors: {origins: [https://a.test, 'http://*.b.test:8080'], methods: [PUT, '*'], headers: X-A, expose: [E, F],\n"
		"   credentials: on, max_age: 90s}, basic_auth: {file: /etc/users, realm: 'a \"b\"', forward: yes}}\n"
		"- {path: /b, answer: {}, cors: off, basic_auth: off}\n"
		"- {path: /c, answer: {}}\n");

	(void)state;
	r = c->routes;
	assert_true(r[0].cors.on && r[0].cors.credentials && r[0].cors.max_age == 90000);
	assert_true(r[0].cors.origins.count == 2 && r[0].cors.methods.count == 2 && r[0].cors.expose.count == 2);
	assert_str(r[0].cors.origins.items[1], "http://*.b.test:8080");
	assert_str(r[0].cors.methods.items[1], "*");
	assert_str(r[0].cors.headers.items[0], "X-A");
	assert_str(r[0].basic_auth.file, "/etc/users");
	assert_str(r[0].basic_auth.realm, "a \"b\"");
	assert_str(r[0].basic_auth.user_header, "");
	assert_true(r[0].basic_auth.forward);
	assert_false(r[1].cors.on);
	assert_str(r[1].basic_auth.file, "");
	assert_true(r[2].cors.on && !r[2].cors.credentials && r[2].cors.max_age == CONF_NO_LIMIT && !r[2].cors.methods.count);
	assert_str(r[2].basic_auth.file, "u");
	assert_str(r[2].basic_auth.realm, "restricted");
	assert_str(r[2].basic_auth.user_header, "X-User");
	assert_false(r[2].basic_auth.forward);
	conf_free(c);
}

static void matches_are_read(void **state)
{
	struct conf *c = parse_ok("routes:\n"
				  "- {answer: {}, method: [GET, HEAD], path: {regex: '/v[0-9]+/.*'},\n"
				  "   headers: {X-b: '', x-A: {regex: '^v[0-9]+$'}}, query: {b: 1, B: {regex: 'x|$$'}}}\n"
				  "- answer: {}\n"
				  "  matches:\n"
				  "  - {method: PURGE, headers: {Host: a}}\n"
				  "  - path: {exact: /%7e}\n");
	const struct conf_match *m = c->routes[0].matches;

	(void)state;
	assert_true(c->routes[0].match_count == 1 && m == &c->routes[0].match);
	assert_int_equal(m->pos.line, 2);
	assert_int_equal(m->path_kind, CONF_PATH_REGEX);
	assert_str(m->path, "/v[0-9]+/.*");
	assert_int_equal(m->methods.count, 2);
	assert_str(m->methods.items[1], "HEAD");
	assert_int_equal(m->headers.count, 2);	/* in the order of their names */
	assert_pair(&m->headers.items[0], "x-A", "^v[0-9]+$", true);
	assert_pair(&m->headers.items[1], "X-b", "", false);
	assert_int_equal(m->query.count, 2);
	assert_pair(&m->query.items[0], "B", "x|$", true);
	assert_pair(&m->query.items[1], "b", "1", false);
	assert_int_equal(c->routes[1].match_count, 2);
	m = c->routes[1].matches;
	assert_true(m[0].pos.line == 6 && m[0].pos.column == 5 && m[0].path_kind == CONF_PATH_PREFIX);
	assert_str(m[0].path, "/");
	assert_str(m[0].methods.items[0], "PURGE");
	assert_pair(&m[0].headers.items[0], "Host", "a", false);
	assert_true(m[1].path_kind == CONF_PATH_EXACT && !m[1].methods.count && !m[1].headers.count && !m[1].query.count);
	assert_str(m[1].path, "/~");
	conf_free(c);
}

/* Whatever differs, two routes of one host and path are two. */
static void routes_differ_by_all_they_ask(void **state)
{
	static const char *const asks[] = {
		"", ", method: GET", ", method: HEAD", ", headers: {a: b}", ", headers: {a: B}", ", headers: {b: b}",
		", headers: {a: {regex: b}}", ", headers: {a: b, b: b}", ", query: {a: b}", ", query: {A: b}",
		", query: {a: {regex: b}}", ", method: PUT, query: {a: b}", ", headers: {a: b}, query: {a: b}",
	};
	char text[2048] = "routes:\n";
	struct conf *c;

	(void)state;
	for (size_t i = 0; i < sizeof asks / sizeof asks[0]; i++)
		snprintf(text + strlen(text), sizeof text - strlen(text), "- {answer: {}%s}\n", asks[i]);
	c = parse_ok(text);
	assert_int_equal(c->route_count, sizeof asks / sizeof asks[0]);
	conf_free(c);
}

static void top_maps_are_read(void **state)
{
	struct conf *c = parse_ok(whole);

	(void)state;
	assert_int_equal(c->limits.body, 2ull << 30);
	assert_int_equal(c->limits.receive_window, 0);
	assert_int_equal(c->limits.replay, 0);
	assert_int_equal(c->limits.head, 64 * 1024);
	assert_int_equal(c->timeouts.first_byte, 90000);
	assert_int_equal(c->timeouts.drain, 500);
	assert_int_equal(c->timeouts.idle, 75000);
	assert_int_equal(c->log.level, CONF_LOG_ERROR);
	assert_int_equal(c->log.error.kind, CONF_SINK_FILE);
	assert_str(c->log.error.path, "./e.log");
	assert_int_equal(c->log.access.kind, CONF_SINK_OFF);
	assert_int_equal(c->log.format, CONF_FORMAT_JSON);
	conf_free(c);
	c = parse_ok("routes: [{answer: {}}]\n");
	assert_int_equal(c->workers, 0);
	assert_int_equal(c->listen_count, 1);
	assert_memory_equal(c->listens[0].address.ip, "\x7f\0\0\x01", 4);
	assert_int_equal(c->listens[0].address.port, 8080);
	assert_int_equal(c->log.error.kind, CONF_SINK_STDERR);
	assert_int_equal(c->log.access.kind, CONF_SINK_STDOUT);
	assert_true(c->limits.body == CONF_NO_LIMIT && c->routes[0].body_limit == CONF_NO_LIMIT);
	conf_free(c);
}

static void variables_are_values(void **state)
{
	struct conf *c = parse_ok("\xef\xbb\xbfservices: {a: '127.0.0.1:${PORT}'}\n"
				  "limits: {head: '${EMPTY:-2}KiB', fields: '${NOPE:-9}'}\n"
				  "listen: ['${EMPTY}:80']\n"
				  "routes: [{answer: {body: '${SHAPE} $${PORT} ${DOLLARS}'}}]\n");

	(void)state;
	assert_int_equal(c->services[0].endpoints.items[0].port, 3000);
	assert_int_equal(c->limits.head, 2048);
	assert_int_equal(c->limits.target, 2048);
	assert_int_equal(c->limits.fields, 9);
	assert_true(c->listens[0].address.any);
	assert_str(c->routes[0].answer.body, "x, b: [y] ${PORT} ${PORT}$");
	conf_free(c);
}

static void units_are_read_and_written(void **state)
{
	static const struct { const char *text; uint64_t v; } sizes[] = {
		{"0B", 0}, {"7B", 7}, {"1KB", 1000}, {"1kb", 1000}, {"3KiB", 3072}, {"2MB", 2000000}, {"1MiB", 1 << 20},
		{"1GB", 1000000000}, {"4GiB", 4ull << 30},
	}, durations[] = {
		{"0ms", 0}, {"1ms", 1}, {"90s", 90000}, {"2m", 120000}, {"3h", 10800000}, {"1d", 86400000},
	};
	static const char *const wrong[] = {"", "s", "1", "1x", "-1s", "1 s", "1.5s", "99999999999999999999s",
					    "999999999999999999d"};
	char out[CONF_NUMBER_TEXT];
	uint64_t v = 42;

	(void)state;
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		assert_null(conf_read_size(str_of(sizes[i].text), &v));
		assert_int_equal(v, sizes[i].v);
		conf_write_size(v, out);
		assert_null(conf_read_size(str_of(out), &v));
		assert_int_equal(v, sizes[i].v);
	}
	for (size_t i = 0; i < sizeof durations / sizeof durations[0]; i++) {
		assert_null(conf_read_duration(str_of(durations[i].text), &v));
		assert_int_equal(v, durations[i].v);
		conf_write_duration(v, out);
		assert_null(conf_read_duration(str_of(out), &v));
		assert_int_equal(v, durations[i].v);
	}
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		v = 42;
		assert_non_null(conf_read_duration(str_of(wrong[i]), &v));
		assert_int_equal(v, 42);
	}
}

static void a_target_is_enough(void **state)
{
	struct conf_errors e;
	struct conf *c;

	(void)state;
	conf_errors_init(&e);
	c = conf_for_target("http://127.0.0.1:3000", NULL, &e);
	assert_non_null(c);
	assert_int_equal(c->listens[0].address.port, 8080);
	assert_int_equal(conf_warnings_print(c, stderr), 0);
	assert_true(c->route_count == 1 && !c->routes[0].hosts.count && c->routes[0].service == c->services);
	assert_int_equal(c->services[0].endpoints.items[0].port, 3000);
	conf_free(c);
	assert_null(conf_for_target("x: y", "[", &e));
	assert_int_equal(e.count, 2);
	assert_string_equal(e.items[0].text.p, "`x: y`: a port is a number from 1 to 65535");
	assert_string_equal(e.items[1].text.p, "`[`: `[` without `]`");
	conf_errors_fini(&e);
	conf_errors_init(&e);
	assert_null(conf_for_target("", NULL, &e));
	assert_int_equal(e.count, 1);
	conf_errors_fini(&e);
}

static const char named[] =
	"dns: {nameservers: [10.0.0.53, '::1', '[::2]:5353'], search: [A.test, b.test.], ndots: 2, hosts: off, nxdomain: drop}\n"
	"listen: {address: ':1', service: a}\n"
	"services:\n"
	"  a: [Web.Test:80, 'http://b_1.test.', 10.0.0.1:80, {address: 'c:81', weight: 7, state: drain}]\n"
	"  b: {dns: 'https://B.test', endpoints: [], host: endpoint}\n"
	"  c: {dns: {name: c.test.}, endpoints: 'c.test.:444', host: endpoint, tls: on}\n"
	"  d: {dns: {name: _x._tcp.d.test, srv: on, family: ip6}, host: endpoint}\n"
	"  e: {dns: {name: e.test, port: 8080}, host: endpoint, tls: on}\n"
	"  f: {dns: 'f.test:1', host: x.test, tls: on}\n";

static void names_are_read(void **state)
{
	struct conf *c = parse_ok(named);
	const struct conf_service *s = c->services;

	(void)state;
	assert_true(c->dns.nameservers.count == 3 && c->dns.nameservers.items[0].port == 53 && c->dns.nameservers.items[1].port == 53 &&
		    c->dns.nameservers.items[1].kind == CONF_INET6 && c->dns.nameservers.items[2].port == 5353);
	assert_str(c->dns.search.items[0], "a.test");
	assert_str(c->dns.search.items[1], "b.test");
	assert_true(c->dns.ndots == 2 && !c->dns.hosts.n && c->dns.nxdomain == CONF_NXDOMAIN_DROP && c->dns.stale == 0);
	assert_true(s[0].endpoints.items[0].kind == CONF_NAME && s[0].endpoints.items[0].port == 80 && s[0].endpoints.items[0].weight == 1);
	assert_str(s[0].endpoints.items[0].path, "web.test");
	assert_str(s[0].endpoints.items[1].path, "b_1.test.");
	assert_true(s[0].endpoints.items[1].port == 80 && s[0].endpoints.items[2].kind == CONF_INET);
	assert_true(s[0].endpoints.items[3].weight == 7 && s[0].endpoints.items[3].state == CONF_DRAIN && !s[0].dns.address.path.n);
	/* one name: that is what it is called, and who it must be */
	assert_true(s[1].dns.address.port == 443 && s[1].tls.on && s[1].host_kind == CONF_HOST_NAME);
	assert_str(s[1].host, "B.test");
	assert_str(s[1].tls.name.text, "B.test");
	assert_true(s[2].dns.address.port == 443 && s[2].host_kind == CONF_HOST_ENDPOINT);	/* two ports */
	assert_str(s[2].tls.name.text, "c.test");
	assert_true(s[3].dns.srv && s[3].dns.family == CONF_FAMILY_IP6 && !s[3].dns.address.port && s[3].host_kind == CONF_HOST_ENDPOINT);
	assert_true(s[4].dns.address.port == 8080);
	assert_str(s[4].host, "e.test:8080");
	assert_str(s[4].tls.name.text, "e.test");
	assert_str(s[5].tls.name.text, "x.test");
	conf_free(c);
	c = parse_ok("routes: [{service: a}]\nservices: {a: {dns: {name: a.test}}}\n");
	assert_true(c->services->dns.address.port == 80 && !c->dns.nameservers.count && !c->dns.search.items && c->dns.ndots == CONF_NDOTS_AUTO);
	assert_str(c->dns.hosts, "/etc/hosts");
	conf_free(c);
}

static void no_memory_for(const char *text)
{
	bool done = false;

	for (size_t n = 1; !done; n++) {
		struct conf_errors e;
		struct conf *c;

		conf_errors_init(&e);
		mem_fail_from(n);
		c = conf_parse("t.yaml", str_of(text), NULL, &e);
		mem_fail_from(0);
		done = c != NULL;
		assert_true(done ? !e.count && !e.no_memory : e.no_memory);
		conf_free(c);
		conf_errors_fini(&e);
	}
}

static void no_memory_is_told(void **state)
{
	(void)state;
	no_memory_for(whole);
	no_memory_for(named);
}

static void many_routes_load_fast(void **state)
{
	char *out = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&out, &n);
	struct timespec a, b;
	struct conf *c;

	(void)state;
	fputs("services:\n", f);
	for (int i = 0; i < 1000; i++)
		fprintf(f, "  s%d: [10.0.%d.%d:80, 10.1.%d.%d:80]\n", i, i / 250, i % 250 + 1, i / 250, i % 250 + 1);
	fputs("routes:\n", f);
	for (int i = 0; i < 10000; i++)
		fprintf(f, "- host: h%d.example.com\n  path: /api/v%d\n  service: s%d\n", i, i % 7, i % 1000);
	fclose(f);
	clock_gettime(CLOCK_MONOTONIC, &a);
	c = parse_ok(out);
	clock_gettime(CLOCK_MONOTONIC, &b);
	assert_int_equal(c->route_count, 10000);
	assert_str(c->routes[9999].service->name, "s999");
	print_message("10,000 routes, %zu bytes: %.1f ms\n", n,
		      (double)(b.tv_sec - a.tv_sec) * 1e3 + (double)(b.tv_nsec - a.tv_nsec) / 1e6);
	conf_free(c);
	free(out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(listeners_are_read),
		cmocka_unit_test(services_and_routes_are_read),
		cmocka_unit_test(compression_is_read),
		cmocka_unit_test(unix_peers_are_trusted_by_a_word),
		cmocka_unit_test(who_is_asked_and_who_gets_copies),
		cmocka_unit_test(who_may_come_and_how_often),
		cmocka_unit_test(what_is_odd_is_warned_of),
		cmocka_unit_test(listeners_pass_bytes_on), cmocka_unit_test(routes_that_nobody_asks_are_warned_of),
		cmocka_unit_test(paths_are_normal),
		cmocka_unit_test(policies_are_read),
		cmocka_unit_test(matches_are_read),
		cmocka_unit_test(routes_differ_by_all_they_ask),
		cmocka_unit_test(top_maps_are_read),
		cmocka_unit_test(variables_are_values),
		cmocka_unit_test(units_are_read_and_written),
		cmocka_unit_test(a_target_is_enough),
		cmocka_unit_test(names_are_read),
		cmocka_unit_test(no_memory_is_told),
		cmocka_unit_test(many_routes_load_fast),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
