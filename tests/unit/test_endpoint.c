/* dispatch/endpoint, dispatch/service: interning, numbers, the choice of an endpoint. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <pthread.h>

#include "dispatch/endpoint.h"
#include "dispatch/service.h"
#include "lib/base/mem.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static struct endpoint_address ip4(uint8_t last, uint16_t port)
{
	return (struct endpoint_address){ENDPOINT_IP4, port, {10, 0, 0, last}, NULL, 0, 0};
}

static void text_and_address(void **state)
{
	static const struct { struct endpoint_address a; const char *text; } rows[] = {
		{{ENDPOINT_IP4, 80, {10, 1, 2, 255}, NULL, 0, 0}, "10.1.2.255:80"},
		{{ENDPOINT_IP6, 65535, {[15] = 1}, NULL, 0, 0}, "[::1]:65535"},
		{{ENDPOINT_IP6, 1, {0x20, 0x01, 0x0d, 0xb8, [15] = 0xff}, NULL, 0, 0}, "[2001:db8::ff]:1"},
		{{ENDPOINT_UNIX, 0, {0}, "/run/app.sock", 0, 0}, "unix:/run/app.sock"},
		{{ENDPOINT_UNIX, 0, {0}, "@app", 0, 0}, "unix:@app"},
	};
	struct endpoint_table *t = endpoint_table_new();
	char text[ENDPOINT_TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct endpoint *e = endpoint_get(t, &rows[i].a);
		struct endpoint_address back = endpoint_address_of(e);

		assert_string_equal(endpoint_text(e, text).p, rows[i].text);
		assert_int_equal(endpoint_text(e, text).n, strlen(rows[i].text));
		assert_true(endpoint_is(e, &rows[i].a) && endpoint_is(e, &back));
		assert_false(endpoint_is(e, &rows[(i + 1) % COUNT(rows)].a));
		assert_true(endpoint_up(e));
		endpoint_unref(e);
	}
	endpoint_table_free(t);
}

static void which_addresses_are_valid(void **state)
{
	static char path[ENDPOINT_PATH_MAX + 2];
	struct endpoint_address a = {ENDPOINT_UNIX, 0, {0}, path, 0, 0};

	(void)state;
	memset(path, 'x', ENDPOINT_PATH_MAX + 1);
	path[0] = '/';
	assert_false(endpoint_address_valid(&a));
	path[ENDPOINT_PATH_MAX] = 0;
	assert_true(endpoint_address_valid(&a));
	path[0] = 'x';
	assert_false(endpoint_address_valid(&a));
	path[0] = 0;
	assert_false(endpoint_address_valid(&a));
	a.path = NULL;
	assert_false(endpoint_address_valid(&a));
	a = ip4(1, 0);
	assert_false(endpoint_address_valid(&a));
	a.port = 1;
	assert_true(endpoint_address_valid(&a));
	a.family = 5;
	assert_false(endpoint_address_valid(&a));
}

static void the_same_address_is_the_same_object(void **state)
{
	struct endpoint_table *t = endpoint_table_new();
	struct endpoint_address a = ip4(1, 80), b = ip4(1, 81), c = a;
	struct endpoint *one, *same, *other;

	(void)state;
	c.ip[15] = 9;	/* not part of an IPv4 address */
	one = endpoint_get(t, &a);
	other = endpoint_get(t, &b);
	same = endpoint_get(t, &c);
	assert_ptr_equal(one, same);
	assert_ptr_not_equal(one, other);
	assert_int_equal(endpoint_table_live(t), 2);
	atomic_store(&one->verdict, VERDICT_DOWN | 3);
	endpoint_unref(one);
	assert_int_equal(endpoint_table_live(t), 2);
	assert_false(endpoint_up(same));
	endpoint_unref(same);
	assert_int_equal(endpoint_table_live(t), 1);
	one = endpoint_get(t, &a);
	assert_true(endpoint_up(one));	/* nobody knew it any more */
	endpoint_unref(one);
	endpoint_unref(other);
	endpoint_unref(NULL);
	assert_int_equal(endpoint_table_live(t), 0);
	endpoint_table_free(t);
}

static void what_is_spoken_is_part_of_it(void **state)
{
	struct endpoint_table *t = endpoint_table_new();
	struct endpoint_address a = ip4(1, 443), b = a;
	struct endpoint *plain, *tls, *same;
	char one[ENDPOINT_TEXT_MAX], two[ENDPOINT_TEXT_MAX];

	(void)state;
	b.tls = 2;
	plain = endpoint_get(t, &a);
	tls = endpoint_get(t, &b);
	same = endpoint_get(t, &b);
	assert_ptr_not_equal(plain, tls);
	assert_ptr_equal(tls, same);
	assert_string_equal(endpoint_text(plain, one).p, endpoint_text(tls, two).p);
	assert_int_equal(endpoint_id(plain), endpoint_id(tls));	/* the same machine */
	assert_int_equal(endpoint_address_of(tls).tls, 2);
	assert_true(endpoint_is(plain, &a) && endpoint_is(tls, &b));
	assert_false(endpoint_is(plain, &b) || endpoint_is(tls, &a));
	endpoint_unref(plain);
	endpoint_unref(tls);
	endpoint_unref(same);
	assert_int_equal(endpoint_table_live(t), 0);
	endpoint_table_free(t);
}

static void numbers_are_dense_and_used_again(void **state)
{
	enum { N = 300 };
	static struct endpoint *e[N];
	static bool seen[N];
	struct endpoint_table *t = endpoint_table_new();

	(void)state;
	for (unsigned i = 0; i < N; i++) {
		struct endpoint_address a = ip4((uint8_t)i, (uint16_t)(1 + i / 256));

		e[i] = endpoint_get(t, &a);
		assert_true(e[i]->index < N && !seen[e[i]->index]);
		seen[e[i]->index] = true;
	}
	assert_int_equal(endpoint_table_bound(t), N);
	for (unsigned i = 70; i < 80; i++)
		endpoint_unref(e[i]);
	for (unsigned i = 70; i < 80; i++) {
		struct endpoint_address a = ip4((uint8_t)i, 999);

		e[i] = endpoint_get(t, &a);
		assert_in_range(e[i]->index, 70, 79);
	}
	assert_int_equal(endpoint_table_bound(t), N);
	for (unsigned i = 0; i < N; i++)
		endpoint_unref(e[i]);
	endpoint_table_free(t);
}

/* Any order of coming and going: what is there is found, and nothing else. */
static void coming_and_going(void **state)
{
	enum { N = 97 };
	static struct endpoint *e[N];
	struct endpoint_table *t = endpoint_table_new();
	uint32_t x = 1, live = 0;

	(void)state;
	for (unsigned step = 0; step < 20000; step++) {
		unsigned i = (x = x * 1664525 + 1013904223) >> 16, at = i % N;
		struct endpoint_address a = ip4((uint8_t)at, 80);

		if (e[at]) {
			assert_ptr_equal(endpoint_get(t, &a), e[at]);
			endpoint_unref(e[at]);
		}
		if (e[at] && i & 1) {
			endpoint_unref(e[at]);
			e[at] = NULL;
			live--;
		} else if (!e[at]) {
			e[at] = endpoint_get(t, &a);
			live++;
		}
		assert_int_equal(endpoint_table_live(t), live);
	}
	for (unsigned at = 0; at < N; at++)
		endpoint_unref(e[at]);
	endpoint_table_free(t);
}

static void ids_follow_from_the_address(void **state)
{
	struct endpoint_table *t = endpoint_table_new(), *u = endpoint_table_new();
	struct endpoint_address a = ip4(1, 80), b = ip4(1, 81), path = {ENDPOINT_UNIX, 0, {0}, "/run/app.sock", 0, 0};
	struct endpoint *here = endpoint_get(t, &a), *there = endpoint_get(u, &a), *other = endpoint_get(t, &b), *socket = endpoint_get(t, &path);

	(void)state;
	assert_int_equal(endpoint_id(here), endpoint_id(there));
	assert_int_not_equal(endpoint_id(here), endpoint_id(other));
	/* of all releases: cookies and hashes go by them */
	assert_int_equal(endpoint_id(here), 0xd2b82b3b);
	assert_int_equal(endpoint_id(socket), 0xfed5a329);
	endpoint_unref(here);
	endpoint_unref(there);
	endpoint_unref(other);
	endpoint_unref(socket);
	endpoint_table_free(t);
	endpoint_table_free(u);
}

static struct service *service_of(struct endpoint_table *t, uint32_t n)
{
	static struct service_endpoint_spec e[40];
	struct service_spec spec = {.name = STR("s"), .endpoints = e, .n_endpoints = n};

	for (uint32_t i = 0; i < n; i++)
		e[i] = (struct service_endpoint_spec){ip4((uint8_t)i, 80), 1, ENDPOINT_READY};
	return service_new(t, &spec, NULL);
}

static void tried_remembers_the_last_few(void **state)
{
	struct endpoint_table *t = endpoint_table_new();
	struct service *s = service_of(t, 10);
	struct endpoint_tried tried = {0};

	(void)state;
	for (uint32_t i = 0; i < 10; i++)
		endpoint_tried_add(&tried, service_set(s)->at[i].endpoint);
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(endpoint_tried_has(&tried, service_set(s)->at[i].endpoint), i >= 10 - ENDPOINT_TRIED_MAX);
	service_unref(s);
	endpoint_table_free(t);
}

static void services(void **state)
{
	struct endpoint_table *t = endpoint_table_new();
	struct service_endpoint_spec e[2] = {{ip4(1, 80), 1, 0}, {ip4(2, 80), 5, 0}};
	const struct service_spec spec = {
		.name = STR("shop"), .endpoints = e, .n_endpoints = 2,
		.rules = {.max_connections = 7, .host = SERVICE_HOST_LITERAL, .host_literal = STR("shop.internal")},
	};
	struct service_spec other;
	struct service *s = service_new(t, &spec, NULL), *second;

	(void)state;
	assert_true(str_eq(service_name(s), STR("shop")) && str_eq(s->rules->host_literal, STR("shop.internal")));
	assert_int_equal(s->rules->max_connections, 7);
	assert_int_equal(service_set(s)->at[1].weight, 5);
	assert_true(service_is(s, &spec));
	other = spec, other.name = STR("shoq");
	assert_false(service_is(s, &other));
	other = spec, other.rules.host_literal = STR("x");
	assert_false(service_is(s, &other));
	other = spec, other.rules.host = SERVICE_HOST_KEEP;
	assert_false(service_is(s, &other));
	other = spec, other.rules.max_connections = 8;
	assert_false(service_is(s, &other));
	other = spec, other.rules.proxy = SERVICE_PROXY_V1;
	assert_false(service_is(s, &other));
	other = spec, other.n_endpoints = 1;
	assert_false(service_is(s, &other));
	second = service_new(t, &spec, NULL);
	assert_ptr_equal(service_set(second)->at[0].endpoint, service_set(s)->at[0].endpoint);
	assert_int_equal(s->index + second->index, 1);
	e[1].weight = 6;
	assert_false(service_is(s, &spec));
	e[1].weight = 5;
	e[1].state = ENDPOINT_DRAIN;
	assert_false(service_is(s, &spec));
	e[1].state = ENDPOINT_READY;
	e[0].address.port = 81;
	assert_false(service_is(s, &spec));
	service_unref(service_ref(s));
	service_unref(s);
	assert_int_equal(endpoint_table_live(t), 2);
	service_unref(second);
	service_unref(NULL);
	assert_int_equal(endpoint_table_live(t), 0);
	endpoint_table_free(t);
}

static void a_set_is_replaced(void **state)
{
	struct endpoint_table *t = endpoint_table_new();
	const struct service_endpoint_spec next[] = {{ip4(1, 80), 1, 0}, {ip4(9, 80), 2, 0}, {ip4(10, 80), 1, 0}};
	struct service *s = service_of(t, 2);
	struct endpoint *kept = service_set(s)->at[1].endpoint;
	struct endpoint_set *old, *empty = endpoint_set_new(t, NULL, 0);

	(void)state;
	old = service_swap(s, endpoint_set_new(t, next, 3));
	assert_int_equal(service_set(s)->n, 3);
	assert_int_equal(service_set(s)->at[1].weight, 2);
	assert_ptr_equal(service_set(s)->at[0].endpoint, kept);	/* the same address, the same endpoint */
	assert_int_equal(endpoint_table_live(t), 4);
	endpoint_set_free(old);
	assert_int_equal(endpoint_table_live(t), 3);
	old = service_swap(s, empty);
	endpoint_set_free(old);
	endpoint_set_free(NULL);
	assert_int_equal(endpoint_table_live(t), 0);
	service_unref(s);
	endpoint_table_free(t);
}

static void refused_services(void **state)
{
	static const struct service_endpoint_spec no_port[] = {{{ENDPOINT_IP4, 0, {1}, NULL, 0, 0}, 1, 0}},
		no_state[] = {{{ENDPOINT_IP4, 1, {1}, NULL, 0, 0}, 1, 4}};
	static const struct { struct service_spec spec; const char *text; } rows[] = {
		{{.name = {"", 0}}, "printable name"}, {{.name = {"a\nb", 3}}, "printable name"}, {{.name = {"a", 1}, .rules = {.host = 3}}, "policy 3"},
		{{.name = {"a", 1}, .rules = {.host = SERVICE_HOST_LITERAL}}, "not a host name"},
		{{.name = {"a", 1}, .rules = {.host = SERVICE_HOST_LITERAL, .host_literal = {"a\r\nb", 4}}}, "not a host name"},
		{{.name = {"a", 1}, .endpoints = no_port, .n_endpoints = 1}, "endpoint 0 has no usable address"},
		{{.name = {"a", 1}, .endpoints = no_state, .n_endpoints = 1}, "endpoint 0 has the unknown state 4"},
	};
	struct endpoint_table *t = endpoint_table_new();

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct snapshot_error err = {0};

		assert_null(service_new(t, &rows[i].spec, &err));
		assert_int_equal(err.err, ERR_SYNTAX);
		if (!strstr(err.text, rows[i].text))
			fail_msg("row %zu: '%s'", i, err.text);
	}
	endpoint_table_free(t);
}

static void no_memory_leaks_nothing(void **state)
{
	struct endpoint_table *t = NULL;
	struct service *s = NULL;
	size_t n;

	(void)state;
	mem_fail_from(1);
	assert_null(endpoint_table_new());
	mem_fail_from(0);
	t = endpoint_table_new();
	for (n = 1; !s; n++) {
		assert_int_equal(endpoint_table_live(t), 0);
		mem_fail_from(n);
		s = service_of(t, 20);
		mem_fail_from(0);
	}
	assert_true(n > 5);
	service_unref(s);
	endpoint_table_free(t);
}

/* Threads that take and drop the same few endpoints. */

static void *churn(void *arg)
{
	struct endpoint_table *t = arg;

	for (unsigned i = 0; i < 20000; i++) {
		struct endpoint_address a = ip4((uint8_t)(i % 3), 80);
		struct endpoint *e = endpoint_get(t, &a);

		if (!e || !endpoint_is(e, &a))
			return NULL;
		endpoint_unref(endpoint_ref(e));
		endpoint_unref(e);
	}
	return t;
}

static void many_threads(void **state)
{
	struct endpoint_table *t = endpoint_table_new();
	pthread_t thread[3];
	void *result;

	(void)state;
	for (size_t i = 0; i < COUNT(thread); i++)
		assert_int_equal(pthread_create(&thread[i], NULL, churn, t), 0);
	for (size_t i = 0; i < COUNT(thread); i++) {
		assert_int_equal(pthread_join(thread[i], &result), 0);
		assert_ptr_equal(result, t);
	}
	assert_int_equal(endpoint_table_live(t), 0);
	assert_in_range(endpoint_table_bound(t), 1, 3);
	endpoint_table_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_and_address),
		cmocka_unit_test(which_addresses_are_valid),
		cmocka_unit_test(the_same_address_is_the_same_object),
		cmocka_unit_test(what_is_spoken_is_part_of_it),
		cmocka_unit_test(numbers_are_dense_and_used_again),
		cmocka_unit_test(coming_and_going),
		cmocka_unit_test(ids_follow_from_the_address),
		cmocka_unit_test(tried_remembers_the_last_few),
		cmocka_unit_test(services),
		cmocka_unit_test(a_set_is_replaced),
		cmocka_unit_test(refused_services),
		cmocka_unit_test(no_memory_leaks_nothing),
		cmocka_unit_test(many_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
