/* stories_admit: who may come and how often, over a clock that stands still. */
#include <stdio.h>

#include "tests/sim/world.h"

#define OK2 "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

static void ask(struct peer *c, const char *path, const char *fields)
{
	char text[256];

	snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: a.example\r\n%s\r\n", path, fields);
	world_say(c, text);
}

/* Three at once, and one more each 20 seconds: not a millisecond earlier. */
static void limits_over_time(void)
{
	struct peer *c = world_client(), *o;

	for (unsigned i = 0; i < 3; i++) {
		ask(c, "/few", "");
		world_say(world_up(0), OK2);
		EXPECT(world_status(c, i) == 200);
	}
	o = world_up(0);
	ask(c, "/few", "");
	EXPECT(world_status(c, 3) == 429 && world_requests(o) == 3 && world_got(c, "Retry-After: 20\r\n"));
	EXPECT(world_got(c, "RateLimit-Policy: \"address\";q=3;w=60\r\n") && world_got(c, "RateLimit: \"address\";r=2;t=20\r\n"));
	world_sleep(4000);
	ask(c, "/few", "");
	EXPECT(world_status(c, 4) == 429 && world_got(c, "Retry-After: 16\r\n"));
	EXPECT(world_count_cause(CAUSE_RATE_LIMITED) == 2 && peer_open(c));
	for (unsigned i = 0; i < 4; i++) {
		world_sleep(4000);
		c = world_client();	/* the last one may have idled too long */
		ask(c, "/few", "");
		if (world_status(c, 0) == 0)
			world_say(world_up(1), OK2);
		EXPECT(world_status(c, 0) == (i < 3 ? 429 : 200));
	}
}

/* A limit refuses what a body follows: the answer is read, the body is not waited for. */
static void limited_with_a_body(void)
{
	struct peer *c = world_client(), *d = world_client();

	ask(c, "/once", "");
	EXPECT(world_status(c, 0) == 204);
	world_say(d, "POST /once HTTP/1.1\r\nHost: a.example\r\nContent-Length: 1000\r\n\r\n");
	EXPECT(world_status(d, 0) == 429 && world_got(d, "Connection: close\r\n") && d->shut);
	world_say(d, "some of it");
	peer_fin(d);
	world_settle();
	EXPECT(d->closed && !d->reset);
}

/* Only what trusted proxies say counts, and only up to the first that is none of them. */
static void the_real_client(void)
{
	static const struct { const char *fields; unsigned status; } rows[] = {
		{ "", 403 },
		{ "X-Forwarded-For: 203.0.113.9\r\n", 204 },
		{ "X-Forwarded-For: 203.0.113.9, 198.51.100.7\r\n", 403 },
		{ "X-Forwarded-For: 198.51.100.7, 203.0.113.9, 192.0.2.44\r\n", 204 },
		{ "X-Forwarded-For: 203.0.113.9\r\nX-Forwarded-For: 203.0.113.66\r\n", 403 },
		{ "X-Forwarded-For: 203.0.113.66\r\nX-Forwarded-For: 203.0.113.9\r\n", 204 },
	};
	struct peer *c = world_client();

	for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		ask(c, "/door", rows[i].fields);
		EXPECT(world_status(c, i) == rows[i].status);
	}
	EXPECT(world_count_cause(CAUSE_ADDRESS_DENIED) == 3);
}

#define CONF_ADMIT \
	"workers: 1\n" \
	"listen: [{address: 127.0.0.1:8080, trusted_proxies: 192.0.2.0/24}]\n" \
	"log: {access: off}\n" CONF_TIMES \
	"routes:\n" \
	"  - {service: origin}\n" \
	"  - {path: /few, rate_limit: 3/m, service: origin}\n" \
	"  - {path: /once, rate_limit: [{rate: 1/h, by: {header: X-Key}}, {rate: 9/h, by: route}], answer: {status: 204}}\n" \
	"  - {path: /door, allow: 203.0.113.0/24, deny: [203.0.113.66, 'unix:'], answer: {status: 204}}\n" \
	"services: {origin: 127.0.0.1:9001}\n"

const struct story stories_admit[] = {
	{ "limits-over-time", CONF_ADMIT, limits_over_time },
	{ "limited-with-a-body", CONF_ADMIT, limited_with_a_body },
	{ "the-real-client", CONF_ADMIT, the_real_client },
	{ NULL, NULL, NULL },
};
