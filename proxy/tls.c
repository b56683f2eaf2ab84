/* tls: see tls.h.
 *
 * Purpose   the TLS of the process and its changes: workers take what is there now, the main thread puts another in its place.
 * Owns      the parts (tls_parts.h), and the watch over their files.
 * Called by workers, once a handshake, who hold a lock for a pointer and its count; by the main thread for the rest.
 * Never     blocks on anything but the disk, and that in the main thread alone.
 *
 * A change is looked at when it has been quiet for a moment, since certificate and key are written one after the other. */
#include "proxy/tls.h"

#include <errno.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/net/loop.h"
#include "proxy/log.h"
#include "proxy/server.h"
#include "proxy/tls_expiry.h"
#include "proxy/tls_parts.h"

#define QUIET_MS 300		/* without news: then files are read */
#define PATIENCE_MS 2000	/* or so long after the first news */
#define LOOK_MS 60000		/* without any news */
#define LOOK_BLIND_MS 5000	/* when the kernel tells none */
#define TURN_MS 60000		/* of tickets */
#define DAY_S 86400

/* --- workers --- */

const struct tls_server *tls_of_listener(struct server *s, unsigned listener)
{
	struct tls *t = s->tls;
	const struct tls_server *now;

	pthread_mutex_lock(&t->lock);
	now = tls_server_ref(t->fronts.at[t->of_listener[listener]].now);
	pthread_mutex_unlock(&t->lock);
	return now;
}

/* An address that nothing expects a name of, as a name: it is not asked for. */
static struct str address_name(const struct endpoint *e, char text[ENDPOINT_TEXT_MAX])
{
	struct str s = endpoint_text(e, text);
	const char *end = memrchr(s.p, ':', s.n);

	if (e->family == ENDPOINT_UNIX || !end)
		return STR("localhost");
	s.n = (size_t)(end - s.p);
	return e->family == ENDPOINT_IP6 ? (struct str){ s.p + 1, s.n - 2 } : s;
}

enum err tls_connect(struct server *s, const struct endpoint *e, struct tls_resume *resume, struct ssl_st **ssl)
{
	struct tls *t = s->tls;
	const struct tls_number *n = &t->numbers.at[e->tls - 1];
	const struct tls_client *now;
	char text[ENDPOINT_TEXT_MAX];
	enum err err;

	pthread_mutex_lock(&t->lock);
	now = tls_client_ref(t->backs.at[n->back].now);
	pthread_mutex_unlock(&t->lock);
	err = tls_client_ssl(now, n->name.n ? n->name : address_name(e, text), resume, ssl);
	tls_client_unref(now);
	return err;
}

bool tls_endpoint_parks(const struct server *s, const struct endpoint *e)
{
	return s->tls->backs.at[s->tls->numbers.at[e->tls - 1].back].park;
}

/* --- the whole --- */

static bool is_asked_for(const struct conf *c)
{
	for (size_t i = 0; i < c->listen_count; i++)
		if (c->listens[i].tls.on)
			return true;
	for (size_t i = 0; i < c->service_count; i++)
		if (c->services[i].tls.on)
			return true;
	return false;
}

enum err tls_new(const struct conf *c, int64_t now, tls_say *say, void *ctx, struct tls **to)
{
	enum err err;
	struct tls *t;

	if (!is_asked_for(c)) {
		*to = NULL;
		return OK;
	}
	t = mem_zalloc(sizeof(*t));
	if (!t)
		return ERR_MEM;
	pthread_mutex_init(&t->lock, NULL);
	arena_init(&t->arena, NULL, 0, NULL);
	t->say = say;
	t->say_ctx = ctx;
	err = tls_parts_make(t, c);
	if (err == OK) {
		tls_load(t, now);
		err = t->no_memory ? ERR_MEM : t->wrong ? ERR_SYNTAX : OK;
	}
	for (const struct tls_said *s = t->said; s && err != ERR_MEM; s = s->next)
		say(ctx, s->pos, s->text);
	t->started = true;
	if (err == OK)
		*to = t;
	else
		tls_free(t);
	return err;
}

void tls_free(struct tls *t)
{
	if (!t)
		return;
	watch_free(t->watch);
	for (uint32_t i = 0; i < t->fronts.n; i++)
		tls_server_unref(t->fronts.at[i].now);
	for (uint32_t i = 0; i < t->backs.n; i++)
		tls_client_unref(t->backs.at[i].now);
	for (uint32_t i = 0; i < t->pairs.n; i++)
		tls_cert_unref(t->pairs.at[i].now);
	for (uint32_t i = 0; i < t->keys.n; i++)
		tls_tickets_free(t->keys.at[i].tickets);
	mem_free(t->files.at);
	mem_free(t->pairs.at);
	mem_free(t->fronts.at);
	mem_free(t->backs.at);
	mem_free(t->numbers.at);
	mem_free(t->keys.at);
	mem_free(t->of_listener);
	mem_free(t->of_service);
	arena_fini(&t->arena);
	pthread_mutex_destroy(&t->lock);
	mem_free(t);
}

uint16_t tls_number(const struct tls *t, const struct conf_service *s)
{
	return t ? t->of_service[s->index] : 0;
}

struct tls_counts tls_counts(const struct tls *t)
{
	return t ? t->counts : (struct tls_counts){0};
}

/* --- changes --- */

static void say_kept(void *ctx, struct conf_pos pos, const char *text)
{
	(void)ctx, (void)pos;
	log_error("%s; what was there before stays in use", text);
}

static void news(struct tls *t, uint32_t now_ms)
{
	t->news_at = now_ms;
	if (!t->news)
		t->first_news_at = now_ms;
	t->news = true;
}

/* Where paths lead may have changed with what is there. */
static void watch_files(struct tls *t)
{
	if (!t->watch)
		return;
	watch_begin(t->watch);
	for (uint32_t i = 0; i < t->files.n; i++)
		if (watch_add(t->watch, t->files.at[i].name.text.p) != OK)
			log_warn("changes of %s may be seen late: %s", t->files.at[i].name.text.p, strerror(errno));
	watch_end(t->watch);
}

static void tell_changes(const struct tls *t, int64_t now)
{
	for (uint32_t i = 0; i < t->files.n; i++)
		if (t->files.at[i].changed && !t->files.at[i].error)
			log_info("%s has changed and was read", t->files.at[i].name.text.p);
	tls_expiry_tell(t, now, TLS_EXPIRY_CHANGED);
}

static void look(struct tls *t, uint32_t now_ms, int64_t now)
{
	uint32_t wrong = t->wrong;

	t->news = false;
	t->looked_at = now_ms;
	watch_files(t);
	if (tls_load(t, now)) {
		t->counts.reloads++;
		tell_changes(t, now);
	}
	t->counts.refused += t->wrong != wrong;
	for (uint32_t i = 0; t->no_memory && i < t->files.n; i++)
		t->files.at[i].hash = 0;	/* all of it once more, next time */
	t->no_memory = false;
}

void tls_watch(struct tls *t, struct loop *loop, uint32_t now_ms, int64_t now)
{
	t->say = say_kept;
	t->watch = watch_new();
	if (!t->watch || loop_watch(loop, watch_fd(t->watch), t, LOOP_LEVEL_IN) != OK) {
		log_warn("changes of certificates are looked for every %u s: %s", LOOK_BLIND_MS / 1000, strerror(errno));
		watch_free(t->watch);
		t->watch = NULL;
	}
	watch_files(t);
	news(t, now_ms);	/* what has changed between the first reading and this */
	t->looked_at = t->turned_at = now_ms;
	t->told_day = now / DAY_S;
	tls_expiry_tell(t, now, TLS_EXPIRY_ALL);
}

void tls_event(struct tls *t, uint32_t now_ms)
{
	if (watch_news(t->watch))
		news(t, now_ms);
}

static void turn(struct tls *t, int64_t now)
{
	for (uint32_t i = 0; i < t->keys.n; i++)
		if (tls_tickets_turn(t->keys.at[i].tickets, now) != OK)
			log_error("session tickets keep their keys: there is no randomness for others");
}

/* What is left of `every` ms since `at`; 0: it is over. */
static int64_t left(uint32_t now_ms, uint32_t at, uint32_t every)
{
	return now_ms - at >= every ? 0 : (int64_t)(every - (now_ms - at));
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t look_in(const struct tls *t, uint32_t now_ms)
{
	int64_t wait = left(now_ms, t->looked_at, t->watch ? LOOK_MS : LOOK_BLIND_MS);

	if (t->news)
		wait = least(wait, least(left(now_ms, t->news_at, QUIET_MS), left(now_ms, t->first_news_at, PATIENCE_MS)));
	return wait;
}

int64_t tls_tend(struct tls *t, uint32_t now_ms, int64_t now)
{
	if (!t)
		return -1;
	if (!look_in(t, now_ms))
		look(t, now_ms, now);
	if (!left(now_ms, t->turned_at, TURN_MS)) {
		turn(t, now);
		t->turned_at = now_ms;
	}
	if (now / DAY_S != t->told_day) {
		t->told_day = now / DAY_S;
		tls_expiry_tell(t, now, TLS_EXPIRY_DUE);
	}
	return least(look_in(t, now_ms), left(now_ms, t->turned_at, TURN_MS));
}
