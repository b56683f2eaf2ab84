/* condition: see condition.h.  The main thread's own, but for wake_main. */
#include "proxy/condition.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "conf/conf.h"
#include "lib/net/loop.h"
#include "proxy/cause.h"
#include "proxy/log.h"
#include "proxy/server.h"
#include "proxy/settings.h"
#include "proxy/slots.h"
#include "proxy/tls.h"

#define LINES_A_SECOND 100	/* about endpoints; what is beyond is told by one line a second for each kind */
#define PER_CENT (CONF_SHARE_ALL / 100)

struct condition {
	struct server *server;			/* borrowed */
	const struct settings *settings;	/* borrowed */
	int64_t second;				/* in which `lines` were written */
	unsigned lines;
	uint32_t checks;			/* descriptors that they have */
};

static struct condition the;	/* the process has one server */

/* --- what the room health asks for --- */

static void wake_main(void *ctx)
{
	struct condition *c = ctx;

	loop_wake(c->server->loop);
}

/* Each change has its line, unless there is a storm of them. */
static bool plenty(struct condition *c)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	if (t.tv_sec != c->second)
		c->lines = 0;
	c->second = t.tv_sec;
	return c->lines++ < LINES_A_SECOND;
}

static void say(void *ctx, enum health_news news, const char *line)
{
	static struct log_rate rates[HEALTH_CALM + 1];
	static const uint8_t levels[] = {
		[HEALTH_EJECTED] = LEVEL_WARN, [HEALTH_BACK] = LEVEL_INFO, [HEALTH_SPARED] = LEVEL_WARN,
		[HEALTH_UNWELL] = LEVEL_WARN, [HEALTH_WELL] = LEVEL_INFO, [HEALTH_PANIC] = LEVEL_WARN, [HEALTH_CALM] = LEVEL_INFO,
	};
	enum log_level level = levels[news];

	if (!log_wants(level))
		return;
	if (news != HEALTH_SPARED && plenty(ctx))	/* that is no change, and comes again */
		log_line(level, "%s", line);
	else
		log_line_rate(&rates[news], level, "%s", line);
}

static const char *cause_text(uint8_t cause)
{
	return cause && cause < CAUSE_N ? causes[cause].text.p : "an answer with a status of 500 or more";
}

/* Checks have a share of their own: they are no reason to refuse a request. */
static bool take(void *ctx)
{
	struct condition *c = ctx;

	if (c->checks >= c->settings->checks)
		return false;
	c->checks++;
	return true;
}

static void give(void *ctx)
{
	struct condition *c = ctx;

	c->checks--;
}

static enum err check_tls(void *ctx, const struct endpoint *e, struct ssl_st **ssl)
{
	struct condition *c = ctx;

	return tls_connect(c->server, e, NULL, ssl);
}

/* Those that wait for it look. */
static void changed(void *ctx, struct endpoint *e)
{
	slots_stir(((struct condition *)ctx)->server, e);
}

static const struct health_ops ops = {
	.wake = wake_main, .say = say, .changed = changed, .cause = cause_text, .probe = { .take = take, .give = give, .tls = check_tls },
};

/* What the keys of `eject` are by default (conf/keys.c): endpoints without a number are judged by it. */
static const struct health_policy usual = {
	.eject = { .on = true, .max_share = 50, .failures = 5, .volume = 20, .interval = 10000, .time = 10000, .max_time = 60000 },
};

enum err condition_init(struct server *s, const struct settings *settings, uint32_t now_ms)
{
	the = (struct condition){ .server = s, .settings = settings };
	s->health = health_new(&usual, &ops, &the, now_ms);
	return s->health ? OK : ERR_MEM;
}

/* --- from the configuration --- */

static struct eject_rules eject_of(const struct conf_eject *c)
{
	if (!c->on)
		return (struct eject_rules){ .on = false, .interval = 1000, .time = 1000, .max_time = 1000, .panic = (uint8_t)(c->panic / PER_CENT) };
	return (struct eject_rules){
		.on = true, .max_share = (uint8_t)(c->max_share / PER_CENT), .panic = (uint8_t)(c->panic / PER_CENT),
		.failures = (uint16_t)c->failures, .ratio = (uint16_t)(c->ratio / PER_CENT), .volume = c->volume,
		.interval = (uint32_t)c->interval, .time = (uint32_t)c->time, .max_time = (uint32_t)c->max_time,
	};
}

static struct str join(struct arena *a, struct str one, const char *between, struct str two, const char *end)
{
	size_t n = one.n + strlen(between) + two.n + strlen(end);
	char *p = arena_alloc(a, n + 1);

	if (!p)
		return (struct str){0};
	return (struct str){ p, (size_t)snprintf(p, n + 1, "%.*s%s%.*s%s", (int)one.n, one.p, between, (int)two.n, two.p, end) };
}

/* The lines that a check adds to its head; p NULL: no memory. */
static struct str fields_of(struct arena *a, const struct conf_header_list *list)
{
	struct str all = STR("User-Agent: thimble\r\n");

	for (size_t i = 0; i < list->count; i++)
		if (str_ieq(list->items[i].name, STR("User-Agent")))
			all.n = 0;
	for (size_t i = 0; i < list->count && all.p; i++) {
		struct str line = join(a, list->items[i].name, ": ", list->items[i].value, "\r\n");

		all = line.p ? join(a, all, "", line, "") : line;
	}
	return all;
}

static enum err check_of(struct check_rules *to, const struct conf_service *s, struct arena *a)
{
	static const char *const methods[] = { [CONF_HEALTH_GET] = "GET", [CONF_HEALTH_HEAD] = "HEAD", [CONF_HEALTH_OPTIONS] = "OPTIONS" };
	const struct conf_health *c = &s->health;

	if (c->kind == CONF_HEALTH_NONE)
		return OK;
	*to = (struct check_rules){
		.kind = c->kind == CONF_HEALTH_TCP ? CHECK_TCP : CHECK_HTTP, .rise = (uint8_t)c->rise, .fall = (uint8_t)c->fall,
		.port = (uint16_t)c->port, .interval = (uint32_t)c->interval, .timeout = (uint32_t)c->timeout,
	};
	if (to->kind == CHECK_TCP)
		return OK;
	for (unsigned i = 0; i < c->status_count && i < CHECK_STATUSES; i++)
		to->status[i] = (struct check_status){ c->statuses[i].from, c->statuses[i].to };
	to->host = c->host.n ? c->host : s->host_kind == CONF_HOST_NAME ? s->host : STR("");
	to->request = join(a, str_of(methods[c->method]), " ", c->http, "");
	to->fields = fields_of(a, &c->headers);
	return to->request.p && to->fields.p ? OK : ERR_MEM;
}

enum err condition_number(struct health *h, const struct conf_service *c, struct arena *a, uint16_t *number)
{
	struct health_policy p = { .eject = eject_of(&c->eject) };
	enum err err = check_of(&p.check, c, a);

	*number = 0;
	return err != OK || !h ? err : health_number(h, &p, number);
}

void condition_begin(struct health *h, const struct snapshot *s)
{
	size_t n;
	struct service *const *services = snapshot_services(s, &n);

	for (size_t i = 0; i < n; i++)
		health_service(h, services[i]);
}

size_t condition_counts(const struct health *h, char *to, size_t size)
{
	struct health_counts c = health_counts(h);
	const struct { const char *name; uint64_t n; } all[] = {
		{ "ejections", c.ejections }, { "ejections_spared", c.spared }, { "checks", c.checks }, { "checks_failed", c.checks_failed },
		{ "checks_late", c.checks_late }, { "checks_unwell", c.unwell }, { "health_signs", c.signs },
	};
	size_t used = 0;

	for (size_t i = 0; i < sizeof all / sizeof *all && used + 48 < size; i++)
		if (all[i].n)
			used += (size_t)snprintf(to + used, size - used, " %s=%llu", all[i].name, (unsigned long long)all[i].n);
	return used;
}
