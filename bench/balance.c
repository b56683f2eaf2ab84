/* Door: what a choice of balance_pick costs, by kind, by how many endpoints there are, with weights and with some that are
 * down; how even the choices are; and what services and endpoints take, and how long they take to be made.
 *
 * Times are the processor time of this thread, best of several runs.  Every choice is in flight for as long as some others are made, so
 * that counts differ. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dispatch/balance.h"
#include "dispatch/slot.h"
#include "lib/base/check.h"

#define MANY 10000
#define PICKS 20000
#define RUNS 5
#define SERVICES 25000

static struct service_endpoint_spec specs[MANY];
static struct balance balance;
static volatile uintptr_t sink;

static double now(void)
{
	struct timespec t;

	CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) == 0);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static size_t heap(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

static void fill(bool weights)
{
	for (uint32_t i = 0; i < MANY; i++)
		specs[i] = (struct service_endpoint_spec){
			.address = {.family = ENDPOINT_IP4, .port = 8080, .ip = {10, (uint8_t)(i >> 16), (uint8_t)(i >> 8), (uint8_t)i}},
			.weight = weights ? (uint16_t)(1 + i % 7) : 1,
		};
}

static struct service *service_of(struct endpoint_table *t, uint8_t kind, uint32_t n)
{
	struct service_spec spec = {.name = STR("s"), .endpoints = specs, .n_endpoints = n, .rules = {.balance = kind}};

	if (kind == BALANCE_STICKY)
		spec.rules.by_name = STR("home");
	return service_new(t, &spec, NULL);
}

/* Keys: of hash any, of sticky those of endpoints that there are. */
static double cost(const struct service *s, uint32_t n, bool key)
{
	static struct endpoint *flying[64];
	double best = 1e18;

	for (unsigned run = 0; run < RUNS; run++) {
		double start = now();

		for (uint32_t i = 0; i < PICKS; i++) {
			uint32_t k = !key ? 0 : s->rules->balance == BALANCE_STICKY ? service_set(s)->at[i * 7919u % n].id : i * 2654435761u | 1;
			struct endpoint *e = balance_pick(&balance, s, k, NULL);

			if (flying[i % 64])
				slot_give(flying[i % 64]);
			CHECK(slot_take(e, 0, true));
			flying[i % 64] = e;
			sink = (uintptr_t)e;
		}
		if (now() - start < best)
			best = now() - start;
		for (unsigned i = 0; i < 64; i++)
			if (flying[i])
				slot_give(flying[i]);
		memset(flying, 0, sizeof(flying));
	}
	return best / PICKS;
}

static void row(const char *name, uint8_t kind, bool key, bool weights, unsigned down)
{
	static const uint32_t sizes[] = {1, 2, 10, 100, 1000, MANY};

	fill(weights);
	printf("%-34s", name);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct endpoint_table *t = endpoint_table_new();
		struct service *s = service_of(t, kind, sizes[i]);

		CHECK(s);
		for (uint32_t k = 0; down && k < sizes[i]; k++)
			if (k % down == down - 1)
				atomic_store(&service_set(s)->at[k].endpoint->verdict, VERDICT_DOWN);
		balance_init(&balance, 1);
		printf(" %9.1f", cost(s, sizes[i], key));
		balance_fini(&balance);
		service_unref(s);
		endpoint_table_free(t);
	}
	printf("\n");
}

/* Throws as many requests at 1000 endpoints as there are, none of which ends: the most that one of them has. */
static void evenness(void)
{
	struct endpoint_table *t = endpoint_table_new();
	struct service *s;
	uint32_t most = 0;

	fill(false);
	s = service_of(t, BALANCE_LEAST, 1000);
	CHECK(s);
	balance_init(&balance, 1);
	for (unsigned i = 0; i < 100000; i++) {
		struct endpoint *e = balance_pick(&balance, s, 0, NULL);

		CHECK(slot_take(e, 0, true));
		if (slot_load(e) > most)
			most = slot_load(e);
	}
	printf("least: 100000 requests on 1000 endpoints, 100 each: at most %u\n", most);
	for (uint32_t i = 0; i < service_set(s)->n; i++)
		while (slot_load(service_set(s)->at[i].endpoint))
			slot_give(service_set(s)->at[i].endpoint);
	service_unref(s);
	endpoint_table_free(t);
}

static void sizes(void)
{
	static struct service *all[SERVICES];
	struct endpoint_table *t = endpoint_table_new();
	size_t before = heap();
	double start = now();
	char name[16];

	for (uint32_t i = 0; i < SERVICES; i++) {
		struct service_endpoint_spec two[2];
		struct service_spec spec = {.endpoints = two, .n_endpoints = 2};

		snprintf(name, sizeof(name), "s%u", i);
		spec.name = str_of(name);
		for (unsigned k = 0; k < 2; k++)
			two[k] = (struct service_endpoint_spec){
				.address = {.family = ENDPOINT_IP4, .port = 8080, .ip = {10, (uint8_t)(i >> 16), (uint8_t)(i >> 8), (uint8_t)i}}, .weight = 1,
			};
		two[1].address.port = 8081;
		all[i] = service_new(t, &spec, NULL);
		CHECK(all[i]);
	}
	printf("%d services of 2 endpoints: %.1f ms, %zu bytes each with their endpoints\n", SERVICES, (now() - start) / 1e6,
	       (heap() - before) / SERVICES);
	for (uint32_t i = 0; i < SERVICES; i++)
		service_unref(all[i]);
	endpoint_table_free(t);
}

int main(void)
{
	printf("ns a choice, with              1, 2, 10, 100, 1000 and %d endpoints\n", MANY);
	row("least", BALANCE_LEAST, false, false, 0);
	row("least, weights 1 to 7", BALANCE_LEAST, false, true, 0);
	row("least, one of ten down", BALANCE_LEAST, false, false, 10);
	row("least, every other down", BALANCE_LEAST, false, false, 2);
	row("round_robin", BALANCE_ROUND_ROBIN, false, false, 0);
	row("round_robin, weights 1 to 7", BALANCE_ROUND_ROBIN, false, true, 0);
	row("round_robin, weights, 1 of 10 down", BALANCE_ROUND_ROBIN, false, true, 10);
	row("hash", BALANCE_HASH, true, false, 0);
	row("hash, weights 1 to 7", BALANCE_HASH, true, true, 0);
	row("hash, one of ten down", BALANCE_HASH, true, false, 10);
	row("sticky", BALANCE_STICKY, true, false, 0);
	evenness();
	sizes();
	return 0;
}
