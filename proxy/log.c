/* The logs, where lines begin.
 *
 * Owns the nodes of the threads that log (see logwork.h).  Anyone may call
 * log_line; workers call access_write and log_turn_end.  A line is formatted on
 * the caller's stack or in its ring.  No caller ever waits for a sink: when the
 * ring is full the record is dropped and counted, and the writer thread tells
 * the count when it can.  */
#include "proxy/log.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "proxy/logwork.h"

#define STDERR_WAIT_MS 1000

_Atomic int log_level_now = LEVEL_INFO;

struct logwork logwork = {.event = -1};

static _Thread_local struct node *self;

int64_t log_clock(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* --- waking the writer --- */

void log_kick(void)
{
	uint64_t one = 1;
	int saved = errno, fd = atomic_load(&logwork.event);

	/* A full counter (EAGAIN) wakes as well as a write. */
	if (fd >= 0 && write(fd, &one, sizeof(one)) < 0)
		errno = saved;
}

/* Wakes a writer that is as deep asleep as `depth` or deeper. */
static void log_wake(int depth)
{
	if (atomic_load(&logwork.state) >= depth && atomic_exchange(&logwork.state, AWAKE) >= depth)
		log_kick();
}

/* --- nodes --- */

void log_node_end(void *arg)
{
	struct node *n = arg;

	self = NULL;
	atomic_store(&n->state, NODE_ENDED);
	log_kick();
}

static bool node_claim(struct node *n)
{
	int want = NODE_ENDED;

	if (atomic_compare_exchange_strong(&n->state, &want, NODE_LIVE))
		return true;
	want = NODE_FREE;
	return atomic_compare_exchange_strong(&n->state, &want, NODE_LIVE);
}

/* The calling thread's node; NULL: no memory, which drops a record of class c. */
static struct node *node_get(enum log_class c)
{
	struct node *n = self;

	if (n)
		return n;
	for (n = atomic_load(&logwork.nodes); n; n = n->next)
		if (node_claim(n))
			break;
	if (!n) {
		n = mem_zalloc(sizeof(*n));
		if (!n)
			goto lost;
		atomic_store(&n->state, NODE_LIVE);
		n->next = atomic_load(&logwork.nodes);
		while (!atomic_compare_exchange_weak(&logwork.nodes, &n->next, n))
			;
	}
	n->news = false;
	if (pthread_setspecific(logwork.key, n) != 0) {
		atomic_store(&n->state, NODE_ENDED);
		goto lost;
	}
	self = n;
	return n;
lost:
	atomic_fetch_add(&logwork.lost[c], 1);
	return NULL;
}

/* The thread's ring of a class, mapped at first use; NULL when there is no memory, which drops a record. */
static struct logring *node_ring(struct node *n, enum log_class c)
{
	struct logring *r = &n->ring[c];

	if (atomic_load_explicit(&n->mapped[c], memory_order_relaxed))
		return r;
	if (logring_init(r, atomic_load(&logwork.ring_size[c])) != OK) {
		logring_drop(r);
		return NULL;
	}
	atomic_fetch_add(&logwork.ring_bytes, r->size);
	atomic_store_explicit(&n->mapped[c], true, memory_order_release);
	return r;
}

bool log_pending(struct node *n, enum log_class c)
{
	return atomic_load_explicit(&n->mapped[c], memory_order_acquire) && !logring_empty(&n->ring[c]);
}

void log_unmap(struct node *n)
{
	for (int c = 0; c < CLASSES; c++) {
		if (!atomic_load(&n->mapped[c]))
			continue;
		atomic_fetch_sub(&logwork.ring_bytes, n->ring[c].size);
		atomic_store(&n->mapped[c], false);
		logring_fini(&n->ring[c]);
	}
}

struct node *log_node_self(void)
{
	return self;
}

/* --- lines --- */

/* Text into a line: what could end it, or move a terminal's cursor, as \xNN. */
static size_t line_escape(char *out, size_t room, const char *text)
{
	static const char hex[16] = "0123456789abcdef";
	size_t n = 0;

	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;
		bool plain = c >= 0x20 && c <= 0x7e;

		if (n + (plain ? 1 : 4) + 3 > room) {
			memcpy(out + n, "...", 3);
			return n + 3;
		}
		if (plain) {
			out[n++] = (char)c;
			continue;
		}
		out[n++] = '\\';
		out[n++] = 'x';
		out[n++] = hex[c >> 4];
		out[n++] = hex[c & 15];
	}
	return n;
}

static size_t line_format(char *out, struct access_date *date, enum log_level level, const char *text)
{
	static const char *const names[] = {"debug ", "info  ", "warn  ", "error "};
	char *o = access_time(out, log_clock(CLOCK_REALTIME), date);

	*o++ = ' ';
	memcpy(o, names[level], 6);
	o += 6;
	o += line_escape(o, (size_t)(out + LOG_LINE_MAX - 1 - o), text);
	*o++ = '\n';
	return (size_t)(o - out);
}

void log_line_to_stderr(enum log_level level, const char *text)
{
	struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};
	struct access_date date = {0};
	char line[LOG_LINE_MAX];
	size_t n = line_format(line, &date, level, text);

	/* A line is shorter than PIPE_BUF: a pipe that polls writable takes it whole. */
	if (poll(&p, 1, STDERR_WAIT_MS) <= 0 || write(STDERR_FILENO, line, n) < 0)
		atomic_fetch_add(&logwork.lost[CLASS_ERROR], 1);
}

bool log_line_to_ring(enum log_level level, const char *text)
{
	struct node *n = node_get(CLASS_ERROR);
	struct logring *r = n ? node_ring(n, CLASS_ERROR) : NULL;
	char *room = r ? logring_reserve(r, LOG_LINE_MAX) : NULL;

	if (!room)
		return false;
	logring_commit(r, line_format(room, &n->date, level, text));
	logring_publish(r);
	if (!atomic_load(&logwork.stalled[CLASS_ERROR]))
		log_wake(logring_crowded(r) ? NAP : ASLEEP);
	return true;
}

static void line_emit(enum log_level level, const char *text)
{
	if (atomic_load_explicit(&logwork.running, memory_order_acquire))
		(void)log_line_to_ring(level, text);
	else
		log_line_to_stderr(level, text);
}

void log_line(enum log_level level, const char *fmt, ...)
{
	char text[LOG_LINE_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	line_emit(level, text);
}

bool log_rate_pass(struct log_rate *rate, int64_t now_ms, uint32_t *left_out)
{
	int64_t next = atomic_load_explicit(&rate->next_ms, memory_order_relaxed);

	if (now_ms < next || !atomic_compare_exchange_strong(&rate->next_ms, &next, now_ms + 1000)) {
		atomic_fetch_add_explicit(&rate->left_out, 1, memory_order_relaxed);
		return false;
	}
	*left_out = atomic_exchange(&rate->left_out, 0);
	return true;
}

void log_line_rate(struct log_rate *rate, enum log_level level, const char *fmt, ...)
{
	char text[LOG_LINE_MAX];
	uint32_t left_out;
	va_list ap;
	int n = 0;

	if (!log_rate_pass(rate, log_clock(CLOCK_MONOTONIC_COARSE), &left_out))
		return;
	if (left_out)
		n = snprintf(text, sizeof(text), "(and %u more like this) ", left_out);
	va_start(ap, fmt);
	vsnprintf(text + n, sizeof(text) - (size_t)n, fmt, ap);
	va_end(ap);
	line_emit(level, text);
}

void log_set_level(enum log_level level)
{
	atomic_store(&log_level_now, (int)level);
}

enum err log_level_parse(const char *name, enum log_level *level)
{
	static const char *const names[] = {"debug", "info", "warn", "error"};

	for (int i = 0; i < 4; i++) {
		if (!strcmp(name, names[i])) {
			*level = (enum log_level)i;
			return OK;
		}
	}
	return ERR_SYNTAX;
}

/* --- the access log's rings --- */

bool log_access_on(void)
{
	return atomic_load_explicit(&logwork.access_on, memory_order_acquire);
}

enum log_format log_access_format(void)
{
	return (enum log_format)atomic_load_explicit(&logwork.format, memory_order_relaxed);
}

char *log_access_reserve(size_t n)
{
	struct node *node;
	struct logring *r;

	if (!log_access_on())
		return NULL;
	node = node_get(CLASS_ACCESS);
	r = node ? node_ring(node, CLASS_ACCESS) : NULL;
	return r ? logring_reserve(r, n) : NULL;
}

void log_access_commit(size_t n)
{
	struct logring *r = &self->ring[CLASS_ACCESS];

	logring_commit(r, n);
	self->news = true;
	if (logring_crowded(r) && !atomic_load_explicit(&logwork.stalled[CLASS_ACCESS], memory_order_relaxed))
		log_wake(NAP);
}

void log_turn_end(void)
{
	if (!self || !self->news)
		return;
	self->news = false;
	logring_publish(&self->ring[CLASS_ACCESS]);
	if (!atomic_load(&logwork.stalled[CLASS_ACCESS]))
		log_wake(ASLEEP);
}

uint64_t log_dropped(enum log_class c)
{
	uint64_t sum = atomic_load(&logwork.lost[c]);

	for (struct node *n = atomic_load(&logwork.nodes); n; n = n->next)
		sum += atomic_load(&n->ring[c].dropped);
	return sum;
}

void log_counts(struct log_counts *out)
{
	struct log_counts k = {
		.error_dropped = log_dropped(CLASS_ERROR),
		.access_dropped = log_dropped(CLASS_ACCESS),
		.written = atomic_load(&logwork.written),
		.write_errors = atomic_load(&logwork.write_errors),
		.ring_bytes = atomic_load(&logwork.ring_bytes),
	};

	for (struct node *n = atomic_load(&logwork.nodes); n; n = n->next) {
		k.error_records += atomic_load(&n->ring[CLASS_ERROR].records);
		k.error_bytes += atomic_load(&n->ring[CLASS_ERROR].written);
		k.access_records += atomic_load(&n->ring[CLASS_ACCESS].records);
		k.access_bytes += atomic_load(&n->ring[CLASS_ACCESS].written);
	}
	*out = k;
}
