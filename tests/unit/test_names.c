/* proxy/names: from a configuration to the sets of its services, without a name server: names of a hosts file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <unistd.h>

#include "conf/conf.h"
#include "dispatch/snapshot.h"
#include "lib/base/mem.h"
#include "lib/net/loop.h"
#include "proxy/grace.h"
#include "proxy/names.h"
#include "proxy/server.h"
#include "proxy/settings.h"

static char path[] = "/tmp/test_names.XXXXXX";

static void hosts(const char *text)
{
	FILE *f = fopen(path, "w");

	fputs(text, f);
	fclose(f);
}

static void nothing(void *ctx)
{
	(void)ctx;
}

static void not_ready(void *ctx, void *ptr, unsigned events)
{
	(void)ctx, (void)ptr, (void)events;
}

static const struct loop_events events = { nothing, not_ready, nothing };

/* All that names need; what failed for want of memory is NULL. */
struct world {
	struct server server;
	struct endpoint_table *endpoints;
	struct snapshot *snapshot;
	struct names *names;
	enum err err;
};

static struct conf *parse(const char *services)
{
	char text[4096];
	struct conf_errors e;
	struct conf *c;

	snprintf(text, sizeof(text), "dns: {hosts: %s, resolv_conf: /nonexistent, nameservers: '127.0.0.1:1', ttl_min: 1s, search: [a.test, b.test]}\n"
		 "listen: {address: ':1', service: a}\nservices: %s\n", path, services);
	conf_errors_init(&e);
	c = conf_parse("test", str_of(text), NULL, &e);
	if (!c)
		conf_errors_print(&e, stderr);
	assert_non_null(c);
	conf_errors_fini(&e);
	return c;
}

/* The names are made when the n-th allocation fails; 0: none does. */
static void world_make(struct world *w, const struct conf *c, size_t fail)
{
	struct snapshot_error err = {0};

	*w = (struct world){ .err = ERR_MEM };
	w->server.loop = loop_new(&events, NULL);
	w->server.grace = grace_new(&w->server);
	w->endpoints = endpoint_table_new();
	w->snapshot = settings_snapshot(c, NULL, NULL, w->endpoints, &err);
	assert_true(w->server.loop && w->server.grace && w->endpoints && w->snapshot);
	mem_fail_from(fail);
	w->err = names_new(c, NULL, w->snapshot, w->endpoints, &w->names);
	if (w->err == OK && w->names)
		w->err = names_start(w->names, &w->server);
	mem_fail_from(0);
}

static void world_end(struct world *w)
{
	names_free(w->names);
	grace_free(w->server.grace);
	snapshot_unref(w->snapshot);
	endpoint_table_free(w->endpoints);
	loop_free(w->server.loop);
}

/* Whom the service consists of: "10.0.0.1:80*3 ...", with weights that are not 1. */
static const char *set_text(const struct world *w, size_t service)
{
	static char text[4096];
	size_t n, used = 0;
	const struct endpoint_set *set = service_set(snapshot_services(w->snapshot, &n)[service]);

	text[0] = '\0';
	for (uint32_t i = 0; i < set->n; i++) {
		char one[ENDPOINT_TEXT_MAX];

		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", used ? " " : "", endpoint_text(set->at[i].endpoint, one).p);
		if (set->at[i].weight != 1)
			used += (size_t)snprintf(text + used, sizeof(text) - used, "*%u", set->at[i].weight);
	}
	return text;
}

static void no_name_no_names(void **state)
{
	struct conf *c = parse("{a: '127.0.0.1:80'}");
	struct world w;

	(void)state;
	world_make(&w, c, 0);
	assert_true(w.err == OK && !w.names);
	assert_int_equal(names_tend(w.names, 5), -1);
	assert_int_equal(names_counts(w.names).asked, 0);
	conf_free(c);
	world_end(&w);
}

static void sets(void **state)
{
	struct conf *c = parse("{a: {endpoints: ['9.9.9.9:90', {address: 'web.test:80', weight: 3}, 'unix:/x', 'two.test.:80', '10.0.0.2:80'], dns: 'web.test:81'},\n"
			       " b: {dns: {name: web.test, port: 82, family: ip6}}, c: []}");
	struct world w;

	(void)state;
	hosts("10.0.0.3 web.test\n10.0.0.1 web.test\n::2 web.test\n10.0.0.1 two.test\n10.0.0.2 two.test\n");
	world_make(&w, c, 0);
	assert_int_equal(w.err, OK);
	conf_free(c);		/* nothing of it is needed from here on */
	assert_string_equal(set_text(&w, 0), "9.9.9.9:90 unix:/x 10.0.0.2:80");
	assert_string_equal(set_text(&w, 1), "");
	assert_true(names_tend(w.names, 1000) > 0);
	/* what is there twice is there once: the first of them, with its weight */
	assert_string_equal(set_text(&w, 0), "9.9.9.9:90 10.0.0.1:80*3 10.0.0.3:80*3 [::2]:80*3 unix:/x 10.0.0.2:80 10.0.0.1:81 10.0.0.3:81 [::2]:81");
	assert_string_equal(set_text(&w, 1), "[::2]:82");
	assert_int_equal(names_counts(w.names).changes, 2);
	hosts("10.0.0.2 two.test\n10.0.0.1 web.test two.test\n::2 web.test\n10.0.0.3 web.test\n\n");	/* no change but of the order */
	names_tend(w.names, 3000);
	assert_int_equal(names_counts(w.names).changes, 2);
	hosts("10.0.0.3 web.test\n10.0.0.2 two.test\n");
	names_tend(w.names, 5000);
	assert_string_equal(set_text(&w, 0), "9.9.9.9:90 10.0.0.3:80*3 unix:/x 10.0.0.2:80 10.0.0.3:81");
	assert_string_equal(set_text(&w, 1), "");	/* there is such a name, and it has no address of this family */
	assert_int_equal(names_counts(w.names).asked, 0);
	world_end(&w);
}

static void endpoints_know_who_has_them(void **state)
{
	struct conf *c = parse("{a: 'web.test:80', b: '10.0.0.1:80'}");
	struct world w;
	struct endpoint *e[2];

	(void)state;
	hosts("10.0.0.1 web.test\n10.0.0.2 web.test\n");
	world_make(&w, c, 0);
	conf_free(c);
	names_tend(w.names, 1000);
	for (int i = 0; i < 2; i++) {
		size_t n;

		e[i] = endpoint_ref(service_set(snapshot_services(w.snapshot, &n)[0])->at[i].endpoint);
		assert_true(endpoint_used(e[i]));
	}
	hosts("10.0.0.3 web.test\n");
	names_tend(w.names, 3000);
	assert_string_equal(set_text(&w, 0), "10.0.0.3:80");
	assert_true(endpoint_used(e[0]));	/* by the other service */
	assert_false(endpoint_used(e[1]));
	hosts("10.0.0.2 web.test\n\n");
	names_tend(w.names, 5000);
	assert_true(endpoint_used(e[1]));	/* the same object again */
	endpoint_unref(e[0]);
	endpoint_unref(e[1]);
	world_end(&w);
}

static void no_memory(void **state)
{
	struct conf *c = parse("{a: {endpoints: ['web.test:80', '9.9.9.9:90', 'two.test:80'], dns: {name: _x.test, srv: on}}, b: 'web.test:1'}");
	struct world w;
	size_t n;
	bool made = false;

	(void)state;
	hosts("10.0.0.1 web.test\n10.0.0.2 two.test\n");
	for (n = 1; !made && n < 1000; n++) {	/* made whole or not at all */
		world_make(&w, c, n);
		made = w.err == OK;
		world_end(&w);
	}
	assert_true(made && n > 10);
	for (n = 1; n < 300; n++) {	/* and what failed then is done later */
		world_make(&w, c, 0);
		mem_fail_from(n);
		names_tend(w.names, 1000);
		mem_fail_from(0);
		for (uint64_t now = 2500; now < 60000; now += 2500)
			names_tend(w.names, now);
		assert_string_equal(set_text(&w, 0), "10.0.0.1:80 9.9.9.9:90 10.0.0.2:80");
		assert_string_equal(set_text(&w, 1), "10.0.0.1:1");
		world_end(&w);
	}
	conf_free(c);
}

static void many_names(void **state)
{
	enum { N = 3000 };
	size_t size = N * 64;
	char *text = malloc(size), *file = malloc(size);
	size_t used = 0, filled = 0;
	struct conf_errors e;
	struct conf *c;
	struct world w;

	(void)state;
	used += (size_t)snprintf(text, size, "dns: {hosts: %s, ttl_min: 1s, ttl_max: 1s}\nlisten: {address: ':1', service: s0}\nservices:\n", path);
	for (int i = 0; i < N; i++) {
		used += (size_t)snprintf(text + used, size - used, " s%d: 'n%d.test:80'\n", i, i % 1000);
		filled += (size_t)snprintf(file + filled, size - filled, "10.0.%d.%d n%d.test\n", i / 250, i % 250 + 1, i);
	}
	hosts(file);
	conf_errors_init(&e);
	c = conf_parse("test", (struct str){ text, used }, NULL, &e);
	conf_errors_fini(&e);
	assert_non_null(c);
	world_make(&w, c, 0);
	conf_free(c);
	names_tend(w.names, 1);
	assert_int_equal(names_counts(w.names).changes, N);
	assert_string_equal(set_text(&w, 1999), "10.0.3.250:80");
	for (uint64_t now = 2; now < 3000; now += 7)	/* the heap turns over */
		names_tend(w.names, now);
	assert_int_equal(names_counts(w.names).changes, N);
	world_end(&w);
	free(text);
	free(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_name_no_names),
		cmocka_unit_test(sets),
		cmocka_unit_test(endpoints_know_who_has_them),
		cmocka_unit_test(no_memory),
		cmocka_unit_test(many_names),
	};
	int failed;

	close(mkstemp(path));
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return failed;
}
