/* The logs of the process: an error log that any thread writes, and the access log's way out.
 * No call here blocks or enters the kernel on behalf of a slow reader or a full
 * disk: records go to a ring of the calling thread, one writer thread empties
 * the rings, and what does not fit is dropped, counted and told. */
#ifndef THIMBLE_PROXY_LOG_H
#define THIMBLE_PROXY_LOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/base/err.h"

enum log_level { LEVEL_DEBUG, LEVEL_INFO, LEVEL_WARN, LEVEL_ERROR };
enum log_format { LOG_TEXT, LOG_JSON };
enum log_sink { LOG_OFF, LOG_STDOUT, LOG_STDERR, LOG_FILE };

#define LOG_LINE_MAX 2048	/* a line of the error log, its newline included */

struct log_dest {
	enum log_sink sink;
	const char *path;	/* borrowed; copied by log_start; for LOG_FILE only */
};

struct log_config {
	struct log_dest error;		/* LOG_OFF is taken as LOG_STDERR */
	struct log_dest access;
	enum log_format format;		/* of the access log */
	enum log_level level;
	size_t error_ring;		/* bytes a thread; 0 for 64 KiB */
	size_t access_ring;		/* bytes a thread; 0 for 256 KiB */
};

struct log_counts {
	uint64_t error_records, error_bytes, error_dropped;	/* taken into rings; dropped: no room */
	uint64_t access_records, access_bytes, access_dropped;
	uint64_t written;		/* bytes that sinks took */
	uint64_t write_errors;		/* failed writes, blocked ones not among them */
	uint64_t ring_bytes;		/* address space of the rings now */
};

/* --- the process --- */

/* Opens the sinks and starts the writer thread.  On failure nothing changed,
 * and `why` holds a sentence that names the file and the reason.  Main thread only;
 * the process should ignore SIGPIPE. */
enum err log_start(const struct log_config *config, char *why, size_t why_n) MUST_USE;
/* Writes out what is there, for at most a second, and ends the writer thread.
 * Lines of later go to stderr at once; access records of later are dropped. */
void log_stop(void);
/* Asks the writer thread to open the files again by name (after a rotation).  A file
 * that cannot be opened is told in the error log, and the old one stays in use.
 * Safe in a signal handler. */
void log_reopen(void);

void log_set_level(enum log_level level);
/* "debug", "info", "warn", "error"; ERR_SYNTAX for anything else. */
enum err log_level_parse(const char *name, enum log_level *level) MUST_USE;
void log_counts(struct log_counts *out);

/* --- the error log, from any thread --- */

extern _Atomic int log_level_now;

static inline bool log_wants(enum log_level level)
{
	return (int)level >= atomic_load_explicit(&log_level_now, memory_order_relaxed);
}

/* One line, whatever the level now: time, level, text; bytes outside printable ASCII as \xNN, cut
 * at LOG_LINE_MAX.  Straight to stderr before log_start and after log_stop. */
void log_line(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define log_at(level, ...) \
	do { if (log_wants(level)) log_line((level), __VA_ARGS__); } while (0)
#define log_debug(...) log_at(LEVEL_DEBUG, __VA_ARGS__)
#define log_info(...) log_at(LEVEL_INFO, __VA_ARGS__)
#define log_warn(...) log_at(LEVEL_WARN, __VA_ARGS__)
#define log_error(...) log_at(LEVEL_ERROR, __VA_ARGS__)

struct log_rate {
	_Atomic int64_t next_ms;	/* coarse monotonic; 0 at first */
	_Atomic uint32_t left_out;
};

/* True at most once a second; then *left_out says how often it was false since the last time. */
bool log_rate_pass(struct log_rate *rate, int64_t now_ms, uint32_t *left_out) MUST_USE;
/* As log_line, but at most one line a second for `rate`; a line tells how many it stands for. */
void log_line_rate(struct log_rate *rate, enum log_level level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* For what traffic can cause: at most one line a second from this place in the code. */
#define LOG_RATE(level, ...) \
	do { \
		static struct log_rate log_rate_here; \
		if (log_wants(level)) \
			log_line_rate(&log_rate_here, (level), __VA_ARGS__); \
	} while (0)

/* --- the access log; see proxy/access.h for what a worker calls --- */

/* The access log is on: worth gathering a record. */
bool log_access_on(void);
enum log_format log_access_format(void);
/* Room for one record of up to `n` bytes in this thread's access ring, lent until
 * log_access_commit; NULL when the log is off or the ring is full (then counted). */
char *log_access_reserve(size_t n) MUST_USE;
/* The first `n` bytes, a newline the last, are the record. */
void log_access_commit(size_t n);

/* Once a turn, by a thread that writes access records: wakes the writer thread
 * when it sleeps and there is something new.  Costs a few instructions otherwise. */
void log_turn_end(void);

#endif
