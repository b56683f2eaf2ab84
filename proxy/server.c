/* server: see server.h.
 *
 * The main thread opens the listening sockets (one a worker and address, so that the kernel spreads
 * connections), starts the workers, and then only waits for signals.  All signals are
 * blocked in other threads.  As process 1 of a container nothing else is needed: there are
 * no children, and SIGTERM has a handler. */
#include "proxy/server.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "conf/conf.h"
#include "dispatch/rate.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "proxy/condition.h"
#include "proxy/grace.h"
#include "proxy/heap.h"
#include "proxy/log.h"
#include "proxy/lot.h"
#include "proxy/names.h"
#include "proxy/settings.h"
#include "proxy/slots.h"
#include "proxy/tls.h"
#include "proxy/worker.h"

#define BACKLOG 4096
#define CUT_MS 1000		/* what workers get to end once all is cut */
#define RATES_FIRST_MS 1000	/* how often buckets of rate limits are looked after */
#define RATES_LAST_MS 60000	/* while none becomes full again */
#define FILES_MIN 64		/* open files without which it makes no sense to start */

struct main {
	struct server server;
	struct settings *settings;		/* owned */
	struct endpoint_table *endpoints;	/* owned */
	struct snapshot *snapshot;		/* owned reference */
	struct names *names;			/* owned; NULL: no endpoint has one */
	struct worker **workers;		/* owned */
	unsigned n_workers;
	_Atomic unsigned ended;			/* workers whose thread is about to end */
	unsigned signals;			/* SIGTERM and SIGINT so far */
	uint32_t rates_since, rates_wait;	/* ms: when buckets were looked after, and until they are again; 0: not */
	size_t rates_left;			/* bytes of buckets then */
	uint64_t rates_evicted;			/* told so far */
};

struct thread_arg {
	struct main *m;
	struct worker *w;
};

static uint32_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint32_t)(t.tv_sec * 1000 + t.tv_nsec / 1000000);
}

static uint64_t now_ms64(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* --- start --- */

static bool raise_files(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r))
		return true;
	r.rlim_cur = r.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &r) || getrlimit(RLIMIT_NOFILE, &r))
		return true;
	if (r.rlim_cur >= FILES_MIN)
		return true;
	log_error("the limit of open files is %llu, and at least %d are needed (ulimit -n)",
		  (unsigned long long)r.rlim_cur, FILES_MIN);
	return false;
}

static enum log_sink sink_of(enum conf_sink_kind kind)
{
	switch (kind) {
	case CONF_SINK_STDOUT: return LOG_STDOUT;
	case CONF_SINK_STDERR: return LOG_STDERR;
	case CONF_SINK_FILE: return LOG_FILE;
	case CONF_SINK_OFF: break;
	}
	return LOG_OFF;
}

static bool start_log(const struct conf_log *c)
{
	static const enum log_level level[] = {
		[CONF_LOG_DEBUG] = LEVEL_DEBUG, [CONF_LOG_INFO] = LEVEL_INFO,
		[CONF_LOG_WARN] = LEVEL_WARN, [CONF_LOG_ERROR] = LEVEL_ERROR,
	};
	struct log_config l = {
		.error = { sink_of(c->error.kind), c->error.path.p },
		.access = { sink_of(c->access.kind), c->access.path.p },
		.format = c->format == CONF_FORMAT_JSON ? LOG_JSON : LOG_TEXT,
		.level = level[c->level], .access_ring = c->buffer,
	};
	char why[256];

	if (log_start(&l, why, sizeof why) == OK)
		return true;
	log_error("%s", why);
	return false;
}

static bool listen_failed(const struct socket_address *a, int error)
{
	char text[SOCKET_TEXT];

	socket_address_text(a, text);
	log_error("cannot listen on %s: %s%s", text, strerror(error),
		  error == EADDRINUSE ? " (another program has this port)" :
		  error == EACCES ? " (ports below 1024 need CAP_NET_BIND_SERVICE)" : "");
	return false;
}

/* One socket a worker for TCP; for a unix socket, one that all share. */
static bool open_listener(struct main *m, unsigned index, struct socket_address *a)
{
	bool unix_socket = a->name.sa.sa_family == AF_UNIX;
	int error = unix_socket ? 0 : socket_probe(a), fd = -1;

	if (error)
		return listen_failed(a, error);
	for (unsigned i = 0; i < m->n_workers; i++) {
		if (unix_socket && i > 0)
			fd = dup(m->workers[0]->acceptors[index].t.fd);
		else
			fd = socket_listen(a, true, BACKLOG, &m->settings->socket);
		if (fd < 0)
			return listen_failed(a, errno);
		if (i == 0 && !unix_socket && socket_bound(fd, a) != OK)
			return listen_failed(a, errno);
		if (worker_listen(m->workers[i], index, fd) != OK)
			return listen_failed(a, errno);
	}
	return true;
}

static bool open_listeners(struct main *m)
{
	for (unsigned i = 0; i < m->settings->n_listeners; i++) {
		struct socket_address a = m->settings->listeners[i].address;
		char text[SOCKET_TEXT];

		if (!open_listener(m, i, &a))
			return false;
		m->settings->listeners[i].address = a;
		socket_address_text(&a, text);
		log_info("listening on %s", text);
	}
	return true;
}

static bool make_workers(struct main *m)
{
	m->workers = mem_zalloc(m->settings->workers * sizeof(struct worker *));
	for (unsigned i = 0; m->workers && i < m->settings->workers; i++) {
		m->workers[i] = worker_new(&m->server, m->settings, m->snapshot, i);
		if (!m->workers[i])
			break;
		m->n_workers++;
	}
	if (m->workers && m->n_workers == m->settings->workers)
		return true;
	log_error("cannot start %u workers: %s", m->settings->workers, strerror(errno ? errno : ENOMEM));
	return false;
}

static void say_unusable(void *ctx, struct conf_pos pos, const char *text)
{
	const struct conf *c = ctx;

	log_error("the configuration cannot be used: %s:%u:%u: %s", c->file.p, pos.line, pos.column, text);
}

/* Takes what it needs out of `c`: SERVER_OK, or the exit code. */
static enum server_exit prepare(struct main *m, struct conf *c)
{
	struct snapshot_error err = {0};

	m->settings = settings_new(c);
	m->endpoints = endpoint_table_new();
	if (m->settings)
		m->server.rates = rate_table_new(m->settings->rate_memory);
	if (m->settings && m->endpoints && m->server.rates && condition_init(&m->server, m->settings, now_ms()) == OK) {
		enum err tls = tls_new(c, time(NULL), say_unusable, c, &m->server.tls);

		if (tls == ERR_SYNTAX)
			return SERVER_REFUSED;
		if (tls == OK)
			m->snapshot = settings_snapshot(c, m->server.tls, m->server.health, m->endpoints, &err);
	}
	if (m->snapshot && m->settings->hasher_threads)
		m->server.hasher = hasher_new(m->settings->hasher_threads, &m->server.budget);
	if (m->snapshot && (m->server.hasher || !m->settings->hasher_threads) &&
	    names_new(c, m->server.tls, m->snapshot, m->endpoints, &m->names) == OK)
		return SERVER_OK;
	log_error("the configuration cannot be used: %s", err.text[0] ? err.text : "out of memory");
	return err.err == ERR_SYNTAX ? SERVER_REFUSED : SERVER_FAILED;
}

static void *thread_main(void *arg)
{
	struct thread_arg *a = arg;
	struct main *m = a->m;

	worker_run(a->w);
	mem_free(a);
	atomic_fetch_add(&m->ended, 1);
	loop_wake(m->server.loop);
	return NULL;
}

static bool start_threads(struct main *m)
{
	for (unsigned i = 0; i < m->n_workers; i++) {
		struct thread_arg *a = mem_alloc(sizeof *a);

		if (!a)
			return false;
		*a = (struct thread_arg){ m, m->workers[i] };
		errno = pthread_create(&m->workers[i]->thread, NULL, thread_main, a);
		if (errno) {
			log_error("cannot start a thread: %s", strerror(errno));
			mem_free(a);
			return false;
		}
	}
	return true;
}

/* --- rate limits --- */

void server_rates_used(struct server *s)
{
	if (!atomic_load_explicit(&s->rates_used, memory_order_relaxed) && !atomic_exchange(&s->rates_used, true))
		loop_wake(s->loop);
}

static void trim_rates(struct main *m)
{
	uint64_t evicted = rate_table_stats(m->server.rates).evicted;
	size_t before = m->rates_left, left;

	if (evicted != m->rates_evicted)
		log_warn("limits.rate_memory is used up: rate limits forgot %llu clients early",
			 (unsigned long long)(evicted - m->rates_evicted));
	m->rates_evicted = evicted;
	/* first: who takes from a bucket that was looked at already sets it again */
	atomic_store(&m->server.rates_used, false);
	left = m->rates_left = rate_table_trim(m->server.rates, now_us());
	if (!left) {
		m->rates_wait = 0;
		mem_trim();
		return;
	}
	atomic_store(&m->server.rates_used, true);
	m->rates_wait = left != before ? RATES_FIRST_MS : 2 * m->rates_wait;
	m->rates_wait += (uint32_t)(left >> 14);	/* many take long: 1 ms in 256 at most */
	if (m->rates_wait > RATES_LAST_MS)
		m->rates_wait = RATES_LAST_MS;
}

/* Looks after the buckets when it is time.  In how many ms it will be; -1: not before a worker says so. */
static int64_t tend_rates(struct main *m)
{
	uint32_t now = now_ms();

	if (m->rates_wait && now - m->rates_since >= m->rates_wait) {
		trim_rates(m);
		m->rates_since = now;
	}
	if (!m->rates_wait && atomic_load(&m->server.rates_used)) {
		m->rates_wait = RATES_FIRST_MS;
		m->rates_since = now;
	}
	return m->rates_wait ? (int64_t)(m->rates_wait - (now - m->rates_since)) : -1;
}

/* --- signals --- */

static void tell_all(struct main *m, unsigned letter)
{
	for (unsigned i = 0; i < m->n_workers; i++)
		worker_tell(m->workers[i], letter);
}

static void on_stop(int signo, void *ctx)
{
	struct main *m = ctx;

	if (m->signals++) {
		log_warn("%s again: ending at once", strsignal(signo));
		tell_all(m, WORKER_CUT);
		return;
	}
	log_info("%s: no new connections; finishing what runs (at most %u ms; a second signal ends at once)",
		 strsignal(signo), m->settings->timeouts.drain);
	tell_all(m, WORKER_DRAIN);
}

static void on_reopen(int signo, void *ctx)
{
	(void)signo, (void)ctx;
	log_reopen();
}

static void on_begin(void *ctx)
{
	(void)ctx;
}

static void on_woken(void *ctx)
{
	struct main *m = ctx;

	grace_tend(m->server.grace);
}

/* Files of TLS are watched, and what names are asked for by. */
static void on_ready(void *ctx, void *ptr, unsigned events)
{
	struct main *m = ctx;

	(void)events;
	if (ptr == m->names)
		names_event(ptr);
	else
		tls_event(ptr, now_ms());
}

static const struct loop_events events = { .begin = on_begin, .ready = on_ready, .woken = on_woken };

static bool catch_signals(struct main *m)
{
	m->server.loop = loop_new(&events, m);
	return m->server.loop && loop_on_signal(m->server.loop, SIGTERM, on_stop, m) == OK &&
	       loop_on_signal(m->server.loop, SIGINT, on_stop, m) == OK &&
	       loop_on_signal(m->server.loop, SIGUSR1, on_reopen, m) == OK;
}

/* --- the end --- */

static void log_counters(const struct main *m)
{
	struct tls_counts tls = tls_counts(m->server.tls);
	struct names_counts names = names_counts(m->names);
	uint64_t sum, evicted;
	char line[2048];
	size_t n = 0;

#define SUM(what) \
	sum = 0; \
	for (unsigned i = 0; i < m->n_workers; i++) \
		sum += atomic_load_explicit(&m->workers[i]->counters.what, memory_order_relaxed);
#define C(name) \
	SUM(name) \
	if (sum && n < sizeof line - 64) \
		n += (size_t)snprintf(line + n, sizeof line - n, " " #name "=%llu", (unsigned long long)sum);
	line[0] = '\0';
	COUNTERS(C)
#undef C
	for (int c = 1; c < CAUSE_N; c++) {
		SUM(cause[c])
		if (sum && n < sizeof line - 64)
			n += (size_t)snprintf(line + n, sizeof line - n, " %s=%llu", causes[c].token.p, (unsigned long long)sum);
	}
	for (unsigned f = 1; f < FAULT_N; f++) {
		SUM(fault[f])
		if (sum && n < sizeof line - 64)
			n += (size_t)snprintf(line + n, sizeof line - n, " fault_%s=%llu",
					      codec_fault_token(f).p, (unsigned long long)sum);
	}
	for (unsigned y = 1; y < RETRY_WHY_N; y++) {
		SUM(no_retry[y])
		if (sum && n < sizeof line - 64)
			n += (size_t)snprintf(line + n, sizeof line - n, " no_retry_%s=%llu",
					      retry_why_token(y).p, (unsigned long long)sum);
	}
#undef SUM
	n += condition_counts(m->server.health, line + n, sizeof line - n);
	evicted = rate_table_stats(m->server.rates).evicted;
	if (evicted && n < sizeof line - 64)
		n += (size_t)snprintf(line + n, sizeof line - n, " rates_evicted=%llu", (unsigned long long)evicted);
	if (tls.reloads && n < sizeof line - 64)
		n += (size_t)snprintf(line + n, sizeof line - n, " tls_reloads=%llu", (unsigned long long)tls.reloads);
	if (tls.refused && n < sizeof line - 64)
		n += (size_t)snprintf(line + n, sizeof line - n, " tls_reloads_refused=%llu", (unsigned long long)tls.refused);
	if (names.asked && n < sizeof line - 128)
		n += (size_t)snprintf(line + n, sizeof line - n, " dns_asked=%llu dns_failed=%llu dns_changes=%llu",
				      (unsigned long long)names.asked, (unsigned long long)names.failed, (unsigned long long)names.changes);
	log_info("served:%s", n ? line : " nothing");
}

/* The less of two waits, -1 being for ever. */
static int64_t sooner(int64_t a, int64_t b)
{
	return a < 0 || (b >= 0 && b < a) ? b : a;
}

/* Until a signal came and the workers have ended, or the drain time is over. */
static void wait_for_end(struct main *m)
{
	uint32_t from = 0;
	bool draining = false, cut = false;
	int64_t wait = -1;

	while (atomic_load(&m->ended) < m->n_workers) {
		int64_t tend = sooner(sooner(tend_rates(m), heap_tend(m->server.heap, now_ms())), tls_tend(m->server.tls, now_ms(), time(NULL)));

		tend = sooner(tend, names_tend(m->names, now_ms64()));
		tend = sooner(tend, health_tend(m->server.health, now_ms()));

		loop_pass(m->server.loop, now_ms(), wait < 0 || (tend >= 0 && tend < wait) ? tend : wait);
		if (!m->signals)
			continue;
		if (!draining) {
			draining = true;
			from = now_ms();
		}
		wait = (int64_t)m->settings->timeouts.drain + (cut ? CUT_MS : 0) - (int64_t)(now_ms() - from);
		if (wait > 0 || atomic_load(&m->ended) == m->n_workers)
			continue;
		if (!cut) {
			cut = true;
			wait = CUT_MS;
			log_warn("the drain time is over; cutting what is open (client connections: %llu)",
				 (unsigned long long)atomic_load(&m->server.clients));
			tell_all(m, WORKER_CUT);
			continue;
		}
		log_error("workers do not end; ending without them");
		log_stop();
		_exit(0);
	}
}

static void remove_unix_sockets(const struct main *m)
{
	for (unsigned i = 0; i < m->settings->n_listeners; i++)
		if (m->settings->listeners[i].address.name.sa.sa_family == AF_UNIX)
			unlink(m->settings->listeners[i].address.name.un.sun_path);
}

static void clean_up(struct main *m)
{
	hasher_free(m->server.hasher);
	for (unsigned i = 0; i < m->n_workers; i++)
		worker_free(m->workers[i]);
	mem_free(m->workers);
	health_free(m->server.health);
	names_free(m->names);
	lot_free(m->server.lot);
	grace_free(m->server.grace);
	heap_free(m->server.heap);
	snapshot_unref(m->snapshot);
	endpoint_table_free(m->endpoints);
	rate_table_free(m->server.rates);
	tls_free(m->server.tls);
	settings_free(m->settings);
	loop_free(m->server.loop);
}

enum server_exit server_run(struct conf *c, const char *hint)
{
	struct main m = {0};
	sigset_t all, before;
	enum server_exit code = SERVER_FAILED;

	signal(SIGPIPE, SIG_IGN);
	sigfillset(&all);
	budget_root_init(&m.server.budget, 0);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	if (!raise_files() || !start_log(&c->log))
		goto out;
	code = prepare(&m, c);
	if (code != SERVER_OK)
		goto out;
	code = SERVER_FAILED;
	conf_free(c);
	c = NULL;
	mem_trim();		/* the tree of a large configuration was most of the heap */
	m.server.grace = grace_new(&m.server);
	m.server.lot = lot_new(m.settings->workers, slots_tell, &m.server);
	m.server.heap = heap_new(m.settings->workers);
	if (!m.server.grace || !m.server.lot || !m.server.heap || !make_workers(&m) || !open_listeners(&m) || !catch_signals(&m))
		goto out;
	grace_workers(m.server.grace, m.workers, m.n_workers);
	m.server.workers = m.workers;
	m.server.n_workers = m.n_workers;
	if (m.names && names_start(m.names, &m.server) != OK) {
		log_error("cannot start: out of memory");
		goto out;
	}
	if (!start_threads(&m)) {
		log_stop();
		_exit(1);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	log_info("ready: %u worker%s, room for %llu connections", m.n_workers, m.n_workers == 1 ? "" : "s",
		 (unsigned long long)m.settings->fds_accept);
	if (hint)
		log_info("%s", hint);
	health_tend(m.server.health, now_ms());
	condition_begin(m.server.health, m.snapshot);
	if (m.server.tls)
		tls_watch(m.server.tls, m.server.loop, now_ms(), time(NULL));
	wait_for_end(&m);
	for (unsigned i = 0; i < m.n_workers; i++)
		pthread_join(m.workers[i]->thread, NULL);
	log_counters(&m);
	remove_unix_sockets(&m);
	code = SERVER_OK;
out:
	conf_free(c);
	clean_up(&m);
	log_stop();
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return code;
}
