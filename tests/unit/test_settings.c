/* proxy/settings: what a configuration becomes for listeners, limits, time-outs, services and routes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include <arpa/inet.h>

#include "conf/conf.h"
#include "lib/base/mem.h"
#include "dispatch/encoding.h"
#include "lib/http/encode.h"
#include "proxy/settings.h"

static struct conf_errors errors;
static struct conf *conf;
static struct settings *s;
static struct endpoint_table *table;
static struct snapshot *snap;

static void load(const char *text)
{
	struct snapshot_error err = {0};

	conf_errors_init(&errors);
	conf = conf_parse("test", str_of(text), NULL, &errors);
	if (!conf)
		conf_errors_print(&errors, stderr);
	assert_non_null(conf);
	conf_errors_fini(&errors);
	s = settings_new(conf);
	table = endpoint_table_new();
	assert_true(s && table);
	snap = settings_snapshot(conf, NULL, NULL, table, &err);
	assert_non_null(snap);
	conf_free(conf);	/* nothing of it is needed from here on */
}

static int unload(void **state)
{
	(void)state;
	snapshot_unref(snap);
	endpoint_table_free(table);
	settings_free(s);
	snap = NULL;
	table = NULL;
	s = NULL;
	return 0;
}

static const struct route *find(const char *host, const char *path)
{
	struct route_query q = { .host = str_of(host), .path = str_of(path), .method = STR("GET") };
	const struct route *r = NULL;

	assert_int_equal(snapshot_find(snap, &q, &r), ROUTE_FOUND);
	return r;
}

static void is(struct str s1, const char *text)
{
	assert_int_equal(s1.n, strlen(text));
	assert_memory_equal(s1.p, text, s1.n);
}

static void listeners(void **state)
{
	struct listener *l;

	(void)state;
	load("workers: 3\n"
	     "listen:\n"
	     "  - address: 127.0.0.1:8081\n"
	     "  - {address: \"[::1]:8082\", trusted_proxies: [10.0.0.0/8, \"fd00::/8\", 192.0.2.1], x_forwarded: replace,\n"
	     "     forwarded: on, via: edge, request_id: X-Trace, underscores: refuse, upgrade: [WebSocket, x]}\n"
	     "  - {address: \"unix:/run/t.sock\", x_forwarded: off, via: off, request_id: off, underscores: allow, upgrade: off}\n"
	     "routes: [{answer: {status: 404}}]\n");
	assert_int_equal(s->workers, 3);
	assert_int_equal(s->n_listeners, 3);
	l = &s->listeners[0];
	is(l->label, "127.0.0.1:8081");
	assert_int_equal(socket_address_port(&l->address), 8081);
	assert_int_equal(l->x_forwarded, FORWARDED_APPEND);
	assert_int_equal(l->underscores, UNDERSCORES_DROP);
	assert_false(l->forwarded);
	is(l->via[0], "1.0 thimble");
	is(l->via[1], "1.1 thimble");
	is(l->request_id, "X-Request-Id");
	assert_null(l->trusted);
	assert_int_equal(l->n_upgrade, 1);
	l = &s->listeners[1];
	assert_int_equal(l->address.name.sa.sa_family, AF_INET6);
	assert_int_equal(l->x_forwarded, FORWARDED_REPLACE);
	assert_int_equal(l->underscores, UNDERSCORES_REFUSE);
	assert_true(l->forwarded);
	is(l->via[1], "1.1 edge");
	is(l->request_id, "X-Trace");
	assert_int_equal(networks_count(l->trusted), 3);
	assert_true(networks_has(l->trusted, NETWORK_IP4, (const uint8_t[4]){10, 255, 0, 1}));
	assert_true(networks_has(l->trusted, NETWORK_IP6, (const uint8_t[16]){0xfd, 1}));
	assert_true(networks_has(l->trusted, NETWORK_IP4, (const uint8_t[4]){192, 0, 2, 1}));
	assert_false(networks_has(l->trusted, NETWORK_IP4, (const uint8_t[4]){192, 0, 2, 2}));
	assert_false(networks_has(l->trusted, NETWORK_UNIX, NULL));
	assert_int_equal(l->n_upgrade, 2);
	is(l->upgrade[0], "websocket");
	l = &s->listeners[2];
	assert_int_equal(l->address.name.sa.sa_family, AF_UNIX);
	assert_string_equal(l->address.name.un.sun_path, "/run/t.sock");
	assert_int_equal(l->x_forwarded, FORWARDED_OFF);
	assert_int_equal(l->underscores, UNDERSCORES_ALLOW);
	assert_true(!l->via[0].n && !l->via[1].n && !l->request_id.n && !l->n_upgrade);
}

static void limits_and_timeouts(void **state)
{
	(void)state;
	load("limits: {head: 2KiB, answer_head: 3KiB, fields: 9, target: 1KiB, replay: 5KiB, connections: 7,\n"
	     "         receive_window: 128KiB, unsent: 64KiB, chunk_overhead: 2KiB, queue: 4KiB}\n"
	     "timeouts: {head: 1s, body: 2s, write: 3s, idle: 4s, connect: 5s, upstream_idle: 6s, linger: off, drain: 7s}\n"
	     "routes: [{answer: {status: 404}}]\n");
	assert_int_equal(s->request.head, 2048);
	assert_int_equal(s->answer.head, 3072);
	assert_int_equal(s->request.fields, 9);
	assert_int_equal(s->request.target, 1024);
	assert_int_equal(s->request.chunk_overhead, 2048);
	assert_true(s->answer.interim > 0);
	assert_int_equal(s->replay, 5120);
	assert_int_equal(s->connections, 7);
	assert_int_equal(s->socket.receive, 128 * 1024);
	assert_int_equal(s->socket.unsent, 64 * 1024);
	assert_int_equal(s->queue, 4096);
	assert_int_equal(s->timeouts.head, 1000);
	assert_int_equal(s->timeouts.body, 2000);
	assert_int_equal(s->timeouts.write, 3000);
	assert_int_equal(s->timeouts.idle, 4000);
	assert_int_equal(s->timeouts.connect, 5000);
	assert_int_equal(s->timeouts.upstream_idle, 6000);
	assert_int_equal(s->timeouts.linger, 0);
	assert_int_equal(s->timeouts.drain, 7000);
	assert_true(s->fds >= 8 && s->fds_accept < s->fds);	/* a reserve for upstreams */
}

static void routes(void **state)
{
	const struct route_spec *r;
	const struct service *service;

	(void)state;
	load("limits: {body: 9KiB}\n"
	     "routes:\n"
	     "  - {host: [a.example, '*.b.example'], path: /api, service: two, strip_prefix: on, body_limit: 3B,\n"
	     "     timeouts: {first_byte: 1s, between_bytes: 2s, tunnel: 3s},\n"
	     "     request_headers: {set: {X-A: 1}, add: {X-B: 2}, remove: [X-C]}, response_headers: {remove: [Server]}}\n"
	     "  - {path: {exact: /here}, answer: {status: 201, body: hi, type: text/x}}\n"
	     "  - {path: /away, redirect: {to: 'https://{host}{path}', status: 308}}\n"
	     "  - {path: /sock, service: sock, replace_prefix: /r, body_limit: off, timeouts: {first_byte: off}}\n"
	     "services:\n"
	     "  two: {endpoints: [10.0.0.1:81, '[::1]:82'], host: endpoint, max_connections: 5}\n"
	     "  sock: {endpoints: ['unix:/run/o.sock'], host: o.example}\n");
	r = find("a.example", "/api/x")->spec;
	assert_int_equal(r->action, ROUTE_SERVICE);
	is(route_label(find("a.example", "/api/x")), "a.example/api");
	assert_int_equal(r->rewrite, REWRITE_STRIP);
	assert_int_equal(r->body_limit, 3);
	assert_int_equal(r->first_byte_ms, 1000);
	assert_int_equal(r->between_bytes_ms, 2000);
	assert_int_equal(r->tunnel_ms, 3000);
	assert_int_equal(r->n_request, 3);
	assert_int_equal(r->request[0].op, HEADER_REMOVE);	/* in the order in which they are applied */
	assert_int_equal(r->request[1].op, HEADER_SET);
	assert_int_equal(r->request[2].op, HEADER_ADD);
	assert_int_equal(r->n_response, 1);
	service = find("a.example", "/api/x")->service;
	is(service_name(service), "two");
	assert_int_equal(service->rules->host, SERVICE_HOST_ENDPOINT);
	assert_int_equal(service->rules->max_connections, 5);
	assert_int_equal(service_set(service)->n, 2);
	assert_ptr_equal(find("x.b.example", "/api")->service, service);
	r = find("any", "/here")->spec;
	assert_int_equal(r->action, ROUTE_ANSWER);
	assert_int_equal(r->status, 201);
	is(r->text, "hi");
	is(r->content_type, "text/x");
	is(route_label(find("any", "/here")), "*/here");
	assert_int_equal(r->body_limit, 9216);
	r = find("any", "/away/x")->spec;
	assert_int_equal(r->action, ROUTE_REDIRECT);
	assert_int_equal(r->status, 308);
	r = find("any", "/sock")->spec;
	assert_int_equal(r->rewrite, REWRITE_REPLACE);
	is(r->rewrite_to, "/r");
	assert_true(r->body_limit == UINT64_MAX);
	assert_int_equal(r->first_byte_ms, 0);
	is(find("any", "/sock")->service->rules->host_literal, "o.example");
}

static const struct encoding *encoding(const char *path)
{
	const struct policy *p = find("any", path)->spec->policy;

	return p ? (const struct encoding *)p->part[POLICY_ENCODE] : NULL;
}

static void compression(void **state)
{
	(void)state;
	load("workers: 2\n"
	     "limits: {compress: 1MiB}\n"
	     "defaults: {compress: on}\n"
	     "routes:\n"
	     "  - answer: {}\n"
	     "  - {path: /same, answer: {}}\n"
	     "  - {path: /off, answer: {}, compress: off}\n"
	     "  - {path: /own, answer: {}, compress: {encodings: [gzip, zstd], types: text/css, min_size: 2KiB, level: small}}\n");
	assert_int_equal(s->compress, 512 * 1024);
	assert_true(encoding("/") && encoding("/")->n_codings == 3 && encoding("/")->n_types > 10);
	assert_ptr_equal(encoding("/"), encoding("/same"));	/* one for all that say the same */
	assert_null(encoding("/off"));
	assert_true(encoding("/")->level == ENCODE_FAST && encoding("/")->codings[0] == CODING_ZSTD &&
		    encoding("/")->codings[1] == CODING_BR && encoding("/")->codings[2] == CODING_GZIP);
	assert_true(encoding("/own")->n_codings == 2 && encoding("/own")->codings[0] == CODING_GZIP &&
		    encoding("/own")->codings[1] == CODING_ZSTD);
	assert_true(encoding("/own")->level == ENCODE_SMALL && encoding("/own")->min_size == 2048);
	assert_int_equal(encoding("/own")->n_types, 1);
	is(encoding("/own")->types[0], "text/css");
}

static bool header_a(void *ctx, struct str name, struct str *value)
{
	*value = str_of(ctx);
	return str_ieq(name, STR("a"));
}

static struct str body_of(const char *method, const char *host, const char *path, const char *query, const char *a)
{
	struct route_query q = { .host = str_of(host), .path = str_of(path), .method = str_of(method), .query = str_of(query),
				 .header = a ? header_a : NULL, .ctx = (void *)(uintptr_t)a };
	const struct route *r = NULL;

	return snapshot_find(snap, &q, &r) == ROUTE_FOUND ? r->spec->text : STR("none");
}

static void matches(void **state)
{
	(void)state;
	load("routes:\n"
	     "  - host: [one, two]\n"
	     "    matches: [{path: /p, method: [GET, PUT]}, {path: {regex: '/r[0-9]'}}, {path: {exact: /e}, query: {q: 1}}]\n"
	     "    answer: {body: many}\n"
	     "  - {headers: {A: {regex: 'x+'}}, answer: {body: regex}}\n"
	     "  - {headers: {A: y}, method: PUT, answer: {body: exact}}\n");
	is(body_of("GET", "one", "/p/x", "", NULL), "many");
	is(body_of("PUT", "two", "/p", "", NULL), "many");
	is(body_of("POST", "two", "/p", "", NULL), "none");
	is(body_of("POST", "one", "/r1", "", NULL), "many");
	is(body_of("POST", "one", "/r12", "", NULL), "none");
	is(body_of("POST", "two", "/e", "q=1", NULL), "many");
	is(body_of("POST", "two", "/e", "q=2", NULL), "none");
	is(body_of("POST", "three", "/r1", "", NULL), "none");
	is(body_of("POST", "one", "/r12", "", "xx"), "regex");
	is(body_of("POST", "one", "/r12", "", "xy"), "none");
	is(body_of("PUT", "any", "/", "", "y"), "exact");
	is(body_of("GET", "any", "/", "", "y"), "none");
}

/* An expression that does not compile is told at the match that it stands in. */
static void redirects(void **state)
{
	static const struct { const char *redirect, *text; } rows[] = {
		{"to: 'https://{host}/x{path}'", "https://{host}/x{path}"},
		{"path: {replace_prefix: /y}", "{path}"}, {"path: {replace_full: /y}", "{path}"},
		{"host: b.de", "{scheme}://b.de{port}{path}"}, {"port: 81", "{scheme}://{host}:81{path}"},
		{"port: 80", "{scheme}://{host}{:80}{path}"}, {"port: 443, host: b", "{scheme}://b{:443}{path}"},
		{"scheme: https", "https://{host}{path}"}, {"scheme: http", "http://{host}{path}"},
		{"scheme: https, port: 443", "https://{host}{path}"}, {"scheme: http, port: 80", "http://{host}{path}"},
		{"scheme: https, port: 80", "https://{host}:80{path}"}, {"scheme: http, port: 443", "http://{host}:443{path}"},
		{"scheme: http, host: '[::1]', port: 65535", "http://[::1]:65535{path}"},
	};
	char text[200];

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const struct route *r;

		snprintf(text, sizeof text, "routes: [{path: /p, redirect: {%s}}]\n", rows[i].redirect);
		load(text);
		r = find("a", "/p");
		is(r->spec->text, rows[i].text);
		assert_int_equal(r->spec->status, 302);
		assert_int_equal(r->spec->rewrite, i == 1 ? REWRITE_REPLACE : i == 2 ? REWRITE_PATH : REWRITE_NONE);
		is(r->spec->rewrite_from, i == 1 ? "/p" : "");
		is(r->spec->rewrite_to, i == 1 || i == 2 ? "/y" : "");
		unload(state);
	}
	/* a new path may stand behind any expression */
	load("services: {a: []}\nroutes: [{path: {regex: '/v1/?.*'}, service: a, replace_path: /x}]\n");
	assert_int_equal(find("a", "/v1")->spec->rewrite, REWRITE_PATH);
}

static void refusals(void **state)
{
	static const struct { const char *text, *says; } bad[] = {
		{"routes:\n- answer: {}\n- {path: {regex: '/(a'}, answer: {}}\n", "test:3:3: path: "},
		{"routes:\n- answer: {}\n  host: [a, b]\n  matches:\n  - method: [GET, PUT]\n  - headers: {x: {regex: '['}}\n",
		 "test:6:5: header: "},
		{"routes:\n- answer: {}\n  host: [a, b]\n  matches: [{query: {q: {regex: '*'}}}, {path: /b}]\n",
		 "test:4:13: query parameter: "},
	};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct snapshot_error err = {0};
		size_t n = strlen(bad[i].says), size = 0;
		char *out = NULL;
		FILE *f = open_memstream(&out, &size);

		conf_errors_init(&errors);
		conf = conf_parse("test", str_of(bad[i].text), NULL, &errors);
		assert_non_null(conf);
		conf_errors_fini(&errors);
		table = endpoint_table_new();
		assert_null(settings_snapshot(conf, NULL, NULL, table, &err));
		endpoint_table_free(table);
		table = NULL;
		assert_false(settings_check(conf, 0, f));
		fclose(f);
		assert_true(size > n + 1 && out[size - 1] == '\n');
		out[size - 1] = '\0';
		assert_string_equal(out, err.text);
		out[n] = '\0';
		assert_string_equal(out, bad[i].says);
		free(out);
		conf_free(conf);
	}
}

static void hsts_is_one_header_more(void **state)
{
	static const struct { const char *hsts, *value; } rows[] = {
		{"on", "max-age=31536000"},
		{"{max_age: 1h}", "max-age=3600"},
		{"{max_age: 0s}", "max-age=0"},
		{"{include_subdomains: on}", "max-age=31536000; includeSubDomains"},
		{"{max_age: 730d, include_subdomains: on, preload: on}", "max-age=63072000; includeSubDomains; preload"},
	};
	char text[200];

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct route_spec *r;

		snprintf(text, sizeof text, "routes: [{answer: {status: 404}, hsts: %s, response_headers: {set: {X: y}}}]", rows[i].hsts);
		load(text);
		r = find("a", "/")->spec;
		assert_int_equal(r->n_response, 2);
		assert_int_equal(r->n_request, 0);
		assert_int_equal(r->response[0].op, HEADER_SET_SECURE);
		is(r->response[0].name, "Strict-Transport-Security");
		is(r->response[0].value, rows[i].value);
		unload(NULL);
	}
	load("routes: [{answer: {status: 404}, hsts: off}]");
	assert_int_equal(find("a", "/")->spec->n_response, 0);
}

/* Whatever allocation fails, nothing is kept. */
static void no_memory(void **state)
{
	static const char text[] =
		"listen: [{address: 127.0.0.1:80, trusted_proxies: [10.0.0.0/8]}]\n"
		"routes: [{host: a, service: x, compress: on, request_headers: {set: {A: b}}}, {path: {regex: /x}, method: [GET, PUT], headers: {a: b}, query: {c: {regex: d}}, answer: {body: hi}},\n"
		"{path: /r, redirect: {host: b.de, port: 81}}]\nservices: {x: [127.0.0.1:1]}\n";
	struct snapshot_error err = {0};
	unsigned failed = 0;

	(void)state;
	conf_errors_init(&errors);
	conf = conf_parse("test", STR(text), NULL, &errors);
	assert_non_null(conf);
	conf_errors_fini(&errors);
	for (size_t n = 1; !snap; n++) {
		mem_fail_from(n);
		s = settings_new(conf);
		table = endpoint_table_new();
		if (s && table)
			snap = settings_snapshot(conf, NULL, NULL, table, &err);
		mem_fail_from(0);
		if (snap)
			break;
		failed++;
		endpoint_table_free(table);
		settings_free(s);
	}
	assert_true(failed > 5);
	conf_free(conf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(listeners, unload),
		cmocka_unit_test_teardown(limits_and_timeouts, unload),
		cmocka_unit_test_teardown(routes, unload),
		cmocka_unit_test_teardown(compression, unload),
		cmocka_unit_test_teardown(matches, unload),
		cmocka_unit_test_teardown(redirects, unload),
		cmocka_unit_test_teardown(hsts_is_one_header_more, unload),
		cmocka_unit_test(refusals),
		cmocka_unit_test_teardown(no_memory, unload),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
