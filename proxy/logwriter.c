/* The logs, where lines end: start, stop, and the writer thread between them.
 *
 * Owns the sinks and the one thread that touches them.  In a round it walks all
 * rings once, hands whole runs of records to writev and releases what was taken;
 * then it naps, so that producers need no system call while traffic flows, or
 * sleeps until somebody wakes it.  A sink that takes nothing is left alone until
 * poll says otherwise, one that fails until RETRY_MS have passed; meanwhile the
 * rings fill and drop, and nothing grows.  */
#include "proxy/log.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "proxy/logsink.h"
#include "proxy/logwork.h"

#define NAP_MS 20
#define STOP_MS 1000
#define STUCK_MS 1000		/* beyond STOP_MS: a write that the kernel does not end */
#define RETRY_MS 1000
#define TELL_MS 1000
#define WRITER_STACK (256 * 1024)
#define ERROR_RING (64 * 1024)
#define ACCESS_RING (256 * 1024)
#define BATCH 128

static const char *const class_name[CLASSES] = {"error", "access"};

static struct {
	bool started;
	pthread_t thread;
	bool key_made;
	int done;			/* eventfd; readable when the thread is at its end */
	_Atomic bool stop;

	/* The thread's own. */
	struct logsink sink[CLASSES];
	struct logsink *of[CLASSES];	/* into sink[]; one for both when they lead to the same place; NULL: off */
	uint64_t told[CLASSES];		/* dropped records that a line has told */
	int64_t tell_ms;		/* the next such line not before */
	int64_t stop_ms;		/* when to give up draining; 0: not stopping */
} W;

struct batch {
	int n;
	struct iovec iov[BATCH];
	struct logring *ring[BATCH];	/* borrowed; where iov[i] is from */
};

/* --- trouble --- */

static void __attribute__((format(printf, 2, 3))) writer_say(enum log_level level, const char *fmt, ...)
{
	char text[LOG_LINE_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	(void)log_line_to_ring(level, text);
}

/* Told once, where the failing sink is not needed for it. */
static void sink_failed(struct logsink *s, int64_t now)
{
	char text[LOG_LINE_MAX];

	atomic_fetch_add(&logwork.write_errors, 1);
	s->retry_ms = now + RETRY_MS;
	if (s->failing)
		return;
	s->failing = true;
	snprintf(text, sizeof(text), "cannot write the log %s: %s; will try again", s->name, strerror(s->error));
	if (s != W.of[CLASS_ERROR])
		(void)log_line_to_ring(LEVEL_ERROR, text);
	else if (s->kind != LOG_STDERR)
		log_line_to_stderr(LEVEL_ERROR, text);
}

/* True when there is a count that waits to be told. */
static bool writer_tell_dropped(int64_t now)
{
	bool waiting = false, tried = false;

	for (int c = 0; c < CLASSES; c++) {
		uint64_t dropped = log_dropped(c);
		char text[128];

		if (dropped == W.told[c] || atomic_load(&logwork.stalled[CLASS_ERROR]))
			continue;
		if (now < W.tell_ms && !W.stop_ms) {
			waiting = true;
			continue;
		}
		tried = true;
		snprintf(text, sizeof(text), "%llu records dropped from the %s log: no room",
			(unsigned long long)(dropped - W.told[c]), class_name[c]);
		if (log_line_to_ring(LEVEL_WARN, text))
			W.told[c] = dropped;
		else
			waiting = true;
	}
	if (tried)
		W.tell_ms = now + TELL_MS;
	return waiting;
}

/* --- a round --- */

static void batch_took(struct logsink *s, struct batch *b, size_t took)
{
	for (int i = 0; i < b->n && took; i++) {
		size_t n = took < b->iov[i].iov_len ? took : b->iov[i].iov_len;
		char last = ((char *)b->iov[i].iov_base)[n - 1];

		s->middle = last == '\n' ? NULL : b->ring[i];
		logring_release(b->ring[i], n);
		took -= n;
	}
}

/* Writes the batch and empties it; false when the sink takes no more now. */
static bool batch_flush(struct logsink *s, struct batch *b, int64_t now)
{
	size_t took;

	if (!b->n)
		return true;
	took = logsink_write(s, b->iov, b->n);
	batch_took(s, b, took);
	b->n = 0;
	if (took)
		atomic_fetch_add_explicit(&logwork.written, took, memory_order_relaxed);
	if (s->error) {
		sink_failed(s, now);
		return false;
	}
	if (took && s->failing) {
		s->failing = false;
		writer_say(LEVEL_WARN, "the log %s is written again", s->name);
	}
	return !s->blocked;
}

static void batch_add(struct batch *b, struct logring *r)
{
	struct str run[2];
	int runs = logring_peek(r, run);

	for (int i = 0; i < runs; i++) {
		b->iov[b->n] = (struct iovec){(void *)(uintptr_t)run[i].p, run[i].n};
		b->ring[b->n++] = r;
	}
}

/* One walk over the rings of one sink, a record that was cut in the middle first. */
static void sink_drain(struct logsink *s, struct batch *b, int64_t now)
{
	struct logring *first = s->middle;

	b->n = 0;
	if (first)
		batch_add(b, first);
	for (struct node *n = atomic_load(&logwork.nodes); n; n = n->next) {
		for (int c = 0; c < CLASSES; c++) {
			if (W.of[c] != s || &n->ring[c] == first || !log_pending(n, c))
				continue;
			batch_add(b, &n->ring[c]);
			if (b->n > BATCH - 2 && !batch_flush(s, b, now))
				return;
		}
	}
	(void)batch_flush(s, b, now);
}

/* True when something was written. */
static bool writer_round(struct batch *b, int64_t now)
{
	uint64_t before = atomic_load(&logwork.written);

	for (int i = 0; i < CLASSES; i++) {
		struct logsink *s = &W.sink[i];
		bool used = s == W.of[CLASS_ERROR] || s == W.of[CLASS_ACCESS];

		if (used && s->retry_ms <= now) {
			s->retry_ms = 0;
			sink_drain(s, b, now);
		}
	}
	for (int c = 0; c < CLASSES; c++)
		atomic_store(&logwork.stalled[c], W.of[c] && (W.of[c]->blocked || W.of[c]->retry_ms));
	return atomic_load(&logwork.written) != before;
}

/* Gives back the rings of threads that have ended, once they are empty. */
static void writer_recycle(void)
{
	for (struct node *n = atomic_load(&logwork.nodes); n; n = n->next) {
		int want = NODE_ENDED;

		if (atomic_load(&n->state) != NODE_ENDED || log_pending(n, CLASS_ERROR) ||
		    log_pending(n, CLASS_ACCESS))
			continue;
		if (!atomic_compare_exchange_strong(&n->state, &want, NODE_FREEING))
			continue;
		/* Another thread may have come and gone since the look above. */
		want = NODE_ENDED;
		if (!log_pending(n, CLASS_ERROR) && !log_pending(n, CLASS_ACCESS)) {
			log_unmap(n);
			want = NODE_FREE;
		}
		atomic_store(&n->state, want);
	}
}

/* --- opening again --- */

/* The rest of a record whose beginning is in the old file. */
static void sink_skip_rest(struct logsink *s, enum log_class c)
{
	struct str run[2];
	const char *end;

	if (!s->middle)
		return;
	if (logring_peek(s->middle, run) && (end = memchr(run[0].p, '\n', run[0].n))) {
		logring_release(s->middle, (size_t)(end + 1 - run[0].p));
		atomic_fetch_add(&logwork.lost[c], 1);
	}
	s->middle = NULL;
}

static void writer_reopen(void)
{
	for (int c = 0; c < CLASSES; c++) {
		struct logsink *s = W.of[c];

		if (!s || s->kind != LOG_FILE || (c && s == W.of[0]))
			continue;
		if (logsink_reopen(s) == OK) {
			sink_skip_rest(s, c);
			if (log_wants(LEVEL_INFO))
				writer_say(LEVEL_INFO, "the log %s is opened again", s->name);
		} else {
			writer_say(LEVEL_ERROR, "cannot open the log %s again: %s; the old file stays in use",
				s->name, strerror(errno));
		}
	}
}

/* --- sleep --- */

static bool writer_has_work(void)
{
	for (struct node *n = atomic_load(&logwork.nodes); n; n = n->next)
		for (int c = 0; c < CLASSES; c++)
			if (W.of[c] && !atomic_load(&logwork.stalled[c]) && log_pending(n, c))
				return true;
	return false;
}

static bool writer_drained(void)
{
	for (struct node *n = atomic_load(&logwork.nodes); n; n = n->next)
		for (int c = 0; c < CLASSES; c++)
			if (W.of[c] && log_pending(n, c))
				return false;
	return true;
}

static int sooner(int timeout, int64_t at, int64_t now)
{
	int64_t left = at > now ? at - now : 0;

	return timeout >= 0 && timeout < left ? timeout : (int)left;
}

static void writer_wait(bool wrote, bool waiting, int64_t now)
{
	struct pollfd p[1 + CLASSES] = {{.fd = atomic_load(&logwork.event), .events = POLLIN}};
	int n = 1, timeout = wrote ? NAP_MS : -1;
	uint64_t count;

	atomic_store(&logwork.state, wrote ? NAP : ASLEEP);
	if (!wrote && writer_has_work())
		timeout = 0;
	if (waiting)
		timeout = sooner(timeout, W.tell_ms, now);
	if (W.stop_ms)
		timeout = sooner(wrote ? 0 : timeout, W.stop_ms, now);
	for (int i = 0; i < CLASSES; i++) {
		struct logsink *s = &W.sink[i];

		if (s->retry_ms)
			timeout = sooner(timeout, s->retry_ms, now);
		else if (s->blocked)
			p[n++] = (struct pollfd){.fd = s->fd, .events = POLLOUT};
	}
	if (poll(p, (nfds_t)n, timeout) > 0 && p[0].revents &&
	    read(p[0].fd, &count, sizeof(count)) < 0)
		count = 0;	/* somebody's count was read already: the same as a wake-up */
	atomic_store(&logwork.state, AWAKE);
}

static void *writer_run(void *arg)
{
	static struct batch batch;
	uint64_t one = 1;

	(void)arg;
	for (;;) {
		int64_t now = log_clock(CLOCK_MONOTONIC);
		bool wrote, waiting;

		if (!W.stop_ms && atomic_load(&W.stop))
			W.stop_ms = now + STOP_MS;
		if (atomic_exchange(&logwork.reopen, false))
			writer_reopen();
		wrote = writer_round(&batch, now);
		waiting = writer_tell_dropped(now);
		writer_recycle();
		if (W.stop_ms && (now >= W.stop_ms || writer_drained()))
			break;
		writer_wait(wrote, waiting, now);
	}
	if (write(W.done, &one, sizeof(one)) < 0)
		return NULL;	/* log_stop then waits its full time */
	return NULL;
}

/* --- start and stop --- */

static enum err sinks_open(const struct log_config *config, char *why, size_t why_n)
{
	struct log_dest error = config->error;
	enum err e;

	W.sink[CLASS_ERROR] = W.sink[CLASS_ACCESS] = (struct logsink){.fd = -1};
	W.of[CLASS_ERROR] = W.of[CLASS_ACCESS] = NULL;
	if (error.sink == LOG_OFF)
		error.sink = LOG_STDERR;
	e = logsink_open(&W.sink[CLASS_ERROR], &error, why, why_n);
	if (e != OK)
		return e;
	W.of[CLASS_ERROR] = &W.sink[CLASS_ERROR];
	if (config->access.sink == LOG_OFF)
		return OK;
	e = logsink_open(&W.sink[CLASS_ACCESS], &config->access, why, why_n);
	if (e != OK) {
		logsink_close(&W.sink[CLASS_ERROR]);
		return e;
	}
	W.of[CLASS_ACCESS] = &W.sink[CLASS_ACCESS];
	/* Two descriptions of one pipe would tear each other's lines. */
	if (logsink_same(&W.sink[CLASS_ERROR], &W.sink[CLASS_ACCESS])) {
		logsink_close(&W.sink[CLASS_ACCESS]);
		W.of[CLASS_ACCESS] = &W.sink[CLASS_ERROR];
	}
	return OK;
}

static void sinks_close(void)
{
	for (int i = 0; i < CLASSES; i++)
		if (W.sink[i].name)
			logsink_close(&W.sink[i]);
	W.of[CLASS_ERROR] = W.of[CLASS_ACCESS] = NULL;
}

/* All signals stay with the threads that expect them. */
static int thread_start(void)
{
	pthread_attr_t attr;
	sigset_t all, old;
	int e;

	sigfillset(&all);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, WRITER_STACK);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	e = pthread_create(&W.thread, &attr, writer_run, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	if (!e)
		pthread_setname_np(W.thread, "log");
	return e;
}

static void events_close(void)
{
	int fd = atomic_exchange(&logwork.event, -1);

	if (fd >= 0)
		close(fd);
	if (W.done >= 0)
		close(W.done);
	W.done = -1;
}

static int events_open(void)
{
	W.done = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	atomic_store(&logwork.event, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (W.done >= 0 && atomic_load(&logwork.event) >= 0)
		return 0;
	return errno;
}

enum err log_start(const struct log_config *config, char *why, size_t why_n)
{
	enum err e;
	int error;

	if (W.started) {
		snprintf(why, why_n, "the log runs already");
		return ERR_LIMIT;
	}
	e = sinks_open(config, why, why_n);
	if (e != OK)
		return e;
	atomic_store(&logwork.ring_size[CLASS_ERROR], config->error_ring ? config->error_ring : ERROR_RING);
	atomic_store(&logwork.ring_size[CLASS_ACCESS], config->access_ring ? config->access_ring : ACCESS_RING);
	atomic_store(&logwork.format, (int)config->format);
	atomic_store(&logwork.state, AWAKE);
	atomic_store(&logwork.reopen, false);
	atomic_store(&W.stop, false);
	W.stop_ms = W.tell_ms = 0;
	for (int c = 0; c < CLASSES; c++)
		atomic_store(&logwork.stalled[c], false);
	error = W.key_made ? 0 : pthread_key_create(&logwork.key, log_node_end);
	if (!error) {
		W.key_made = true;
		error = events_open();
	}
	if (!error)
		error = thread_start();
	if (error) {
		snprintf(why, why_n, "cannot start the log's thread: %s", strerror(error));
		events_close();
		sinks_close();
		return ERR_SYS;
	}
	W.started = true;
	log_set_level(config->level);
	atomic_store(&logwork.access_on, config->access.sink != LOG_OFF);
	atomic_store(&logwork.running, true);
	return OK;
}

void log_stop(void)
{
	struct pollfd p = {.fd = W.done, .events = POLLIN};
	int ready;

	if (!W.started)
		return;
	atomic_store(&logwork.access_on, false);
	atomic_store(&logwork.running, false);
	atomic_store(&W.stop, true);
	log_kick();
	do {
		ready = poll(&p, 1, STOP_MS + STUCK_MS);
	} while (ready < 0 && errno == EINTR);
	if (ready <= 0) {
		/* The kernel holds a write: the thread, its sinks and `started` stay. */
		log_line_to_stderr(LEVEL_ERROR, "the log's thread hangs in a write; leaving it behind");
		return;
	}
	pthread_join(W.thread, NULL);
	if (!writer_drained())
		log_line_to_stderr(LEVEL_WARN, "the log stopped with records unwritten");
	if (log_node_self())
		log_unmap(log_node_self());
	writer_recycle();
	events_close();
	sinks_close();
	W.started = false;
}

void log_reopen(void)
{
	atomic_store(&logwork.reopen, true);
	log_kick();
}
