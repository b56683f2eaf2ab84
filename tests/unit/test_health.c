/* health/health with workers that are functions and threads: signs that add up and never outlive their service, ejections with
 * their ends, panic, and verdicts of endpoints that are gone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "health/health.h"
#include "health/verdict.h"

static char said[4096];
static _Atomic unsigned woken;

static void wake(void *ctx)
{
	(void)ctx;
	atomic_fetch_add(&woken, 1);
}

static void say(void *ctx, enum health_news news, const char *line)
{
	size_t n = strlen(said);

	(void)ctx, (void)news;
	snprintf(said + n, sizeof said - n, "%s\n", line);
}

static const char *cause(uint8_t c)
{
	return c == 7 ? "seven" : "other";
}

static const struct health_ops ops = {.wake = wake, .say = say, .cause = cause};
static const struct health_policy usual = {
	.eject = {.on = true, .max_share = 50, .failures = 3, .volume = 20, .interval = 1000, .time = 1000, .max_time = 3000},
};

struct world {
	struct endpoint_table *t;
	struct health *h;
	struct service *s;
	struct endpoint *e[4];
	uint32_t now;
};

static struct service *service_of(struct world *w, unsigned n, uint16_t health)
{
	struct service_endpoint_spec ends[4] = {0};
	struct service_spec spec = {.name = STR("s"), .endpoints = ends, .n_endpoints = n};

	for (unsigned i = 0; i < n; i++) {
		ends[i].address = (struct endpoint_address){.family = ENDPOINT_IP4, .port = 80, .ip = {10, 0, 0, (uint8_t)(i + 1)}, .health = health};
		ends[i].weight = 1;
	}
	return service_new(w->t, &spec, NULL);
}

static struct world begin(unsigned n, const struct health_policy *p)
{
	struct world w = {.t = endpoint_table_new(), .now = 1000};
	uint16_t number = 0;

	said[0] = '\0';
	w.h = health_new(&usual, &ops, NULL, w.now);
	assert_true(w.t && w.h);
	if (p)
		assert_int_equal(health_number(w.h, p, &number), OK);
	w.s = service_of(&w, n, number);
	assert_non_null(w.s);
	for (unsigned i = 0; i < n; i++)
		w.e[i] = service_set(w.s)->at[i].endpoint;
	health_service(w.h, w.s);
	return w;
}

static void end(struct world *w)
{
	health_free(w->h);
	service_unref(w->s);
	endpoint_table_free(w->t);
}

static int64_t pass(struct world *w, uint32_t ms)
{
	w->now += ms;
	return health_tend(w->h, w->now);
}

static void fails(struct world *w, struct endpoint *e, unsigned n)
{
	struct sign *s = sign_new(e);

	assert_non_null(s);
	while (n--)
		sign_failed(s, health_reader(w->h), w->s, 7);
	sign_put(s);
}

/* A storm is one message, and no count of it is lost. */
static void signs_add_up(void **state)
{
	struct world w = begin(2, NULL);
	struct sign *s = sign_new(w.e[0]);

	(void)state;
	atomic_store(&woken, 0);
	for (unsigned i = 0; i < 1000; i++)
		sign_failed(s, health_reader(w.h), w.s, 7);
	assert_int_equal(woken, 1);
	assert_int_equal(atomic_load(&s->failed), 1000);
	pass(&w, 10);
	assert_int_equal(health_counts(w.h).signs, 1);
	assert_string_equal(said, "endpoint 10.0.0.1:80: left out for 1.0 s: 1000 requests in a row failed, the last one: seven\n");
	assert_int_equal(atomic_load(&s->failed), 0);
	sign_failed(s, health_reader(w.h), w.s, 7);	/* it may go again */
	assert_int_equal(pass(&w, 1), 4);		/* but is not heard at once */
	pass(&w, 10);
	assert_int_equal(health_counts(w.h).signs, 2);
	sign_put(s);
	end(&w);
}

static void out_and_back(void **state)
{
	struct world w = begin(2, NULL);
	int64_t wait;

	(void)state;
	fails(&w, w.e[0], 2);
	pass(&w, 10);
	assert_true(endpoint_up(w.e[0]));
	assert_true(atomic_load(&w.e[0]->verdict) & VERDICT_WATCHED);
	fails(&w, w.e[0], 1);
	wait = pass(&w, 10);
	assert_false(endpoint_up(w.e[0]));
	assert_true(wait > 0 && wait <= 1000 + 32);
	fails(&w, w.e[1], 3);		/* the last one */
	pass(&w, 10);
	assert_true(endpoint_up(w.e[1]));
	assert_non_null(strstr(said, "endpoint 10.0.0.2:80: too many requests in a row failed, the last one: seven; it is used on, for 1 of the 2"));
	assert_int_equal(health_counts(w.h).spared, 1);
	pass(&w, 1100);
	assert_true(endpoint_up(w.e[0]));
	assert_non_null(strstr(said, "endpoint 10.0.0.1:80: used again, for its time is over"));
	fails(&w, w.e[0], 1);
	pass(&w, 10);
	assert_false(endpoint_up(w.e[0]));
	assert_non_null(strstr(said, "left out for 2.0 s: 3 requests"));
	/* long after, nothing is known of anybody */
	for (unsigned i = 0; i < 20; i++)
		pass(&w, 1000);
	assert_int_equal(atomic_load(&w.e[0]->verdict) | atomic_load(&w.e[1]->verdict), 0);
	assert_int_equal(pass(&w, 10), -1);
	end(&w);
}

static void good_ends_a_run(void **state)
{
	struct world w = begin(2, NULL);
	struct sign *s = sign_new(w.e[0]);

	(void)state;
	for (unsigned i = 0; i < 6; i++) {
		fails(&w, w.e[0], 2);
		pass(&w, 10);
		sign_good(s, health_reader(w.h), w.s);
		pass(&w, 10);
		assert_int_equal(atomic_load(&w.e[0]->verdict), 0);
	}
	assert_string_equal(said, "");
	sign_put(s);
	end(&w);
}

static void panics(void **state)
{
	struct health_policy p = usual;
	struct world w;

	(void)state;
	p.eject.panic = 60;
	w = begin(4, &p);
	fails(&w, w.e[0], 3);
	pass(&w, 10);
	assert_false(atomic_load(&service_set(w.s)->panic));
	fails(&w, w.e[1], 3);
	pass(&w, 10);
	assert_true(atomic_load(&service_set(w.s)->panic));
	assert_non_null(strstr(said, "service s: 2 of 4 endpoints are well; all are used"));
	pass(&w, 1100);
	assert_false(atomic_load(&service_set(w.s)->panic));
	assert_non_null(strstr(said, "service s: 4 of 4 endpoints are well; the others are left out again"));
	end(&w);
}

/* What is on its way holds its service and its endpoint; what is known of an endpoint that nobody has goes. */
static void the_service_goes_first(void **state)
{
	struct world w = begin(2, NULL);

	(void)state;
	fails(&w, w.e[0], 3);
	service_unref(w.s);
	assert_int_equal(endpoint_table_live(w.t), 2);
	pass(&w, 10);
	assert_int_equal(endpoint_table_live(w.t), 1);	/* its record has it */
	for (unsigned i = 0; i < 5; i++)
		pass(&w, 1000);
	assert_int_equal(endpoint_table_live(w.t), 0);
	w.s = NULL;
	end(&w);
	w = begin(2, NULL);
	fails(&w, w.e[0], 3);
	end(&w);		/* never read */
}

#define THREADS 3
#define ROUNDS 20000

static struct world shared;

static void *storm(void *arg)
{
	struct service *mine = service_of(&shared, 4, 0);

	(void)arg;
	for (unsigned i = 0; mine && i < ROUNDS; i++) {
		struct sign *s;

		if (i % 64 == 0) {	/* services come and go */
			service_unref(mine);
			mine = service_of(&shared, 4, 0);
		}
		s = sign_new(service_set(mine)->at[i % 4].endpoint);
		if (i % 3)
			sign_good(s, health_reader(shared.h), mine);
		sign_failed(s, health_reader(shared.h), mine, 7);
		sign_put(s);
	}
	service_unref(mine);
	return mine ? NULL : arg;
}

static void many_threads(void **state)
{
	pthread_t t[THREADS];

	(void)state;
	shared = begin(4, NULL);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, storm, NULL), 0);
	for (unsigned i = 0; i < 3000; i++) {
		pass(&shared, 1);
		sched_yield();
		said[0] = '\0';
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	for (unsigned i = 0; i < 100; i++)
		pass(&shared, 1000);
	assert_true(health_counts(shared.h).signs > 0);
	end(&shared);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(signs_add_up),
		cmocka_unit_test(out_and_back),
		cmocka_unit_test(good_ends_a_run),
		cmocka_unit_test(panics),
		cmocka_unit_test(the_service_goes_first),
		cmocka_unit_test(many_threads),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
