/* The error log and the writer thread: lines, sinks that block or fail, reopening, idleness. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "proxy/access.h"
#include "proxy/log.h"

static char dir[] = "/tmp/test_log.XXXXXX";

static const char *at(const char *name)
{
	static char path[4][300];
	static int turn;
	char *p = path[turn++ % 4];

	snprintf(p, 300, "%s/%s", dir, name);
	return p;
}

static char *read_all(const char *name)
{
	static char text[1 << 20];
	FILE *f = fopen(at(name), "r");
	size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;

	if (f)
		fclose(f);
	text[n] = 0;
	return text;
}

static int64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* Waits until the file holds `want`, for at most five seconds. */
static bool file_gets(const char *name, const char *want)
{
	int64_t end = now_us() + 5000000;

	while (!strstr(read_all(name), want)) {
		if (now_us() > end)
			return false;
		poll(NULL, 0, 1);
	}
	return true;
}

static size_t count_of(const char *text, const char *what)
{
	size_t n = 0;

	for (; (text = strstr(text, what)); text += strlen(what))
		n++;
	return n;
}

static void start(const char *error, const char *access, size_t error_ring, size_t access_ring)
{
	struct log_config c = {
		.error = {LOG_FILE, at(error)}, .access = {access ? LOG_FILE : LOG_OFF, access ? at(access) : NULL},
		.level = LEVEL_INFO, .error_ring = error_ring, .access_ring = access_ring,
	};
	char why[200];

	if (log_start(&c, why, sizeof(why)) != OK)
		fail_msg("%s", why);
}

static struct access_record record(void)
{
	return (struct access_record){
		.time_unix_ms = 1000000000000, .method = STR("GET"), .target = STR("/x"),
		.http_major = 1, .http_minor = 1, .status = 200,
	};
}

static void test_lines(void **state)
{
	char longer[5000], *text;
	int year, ms;

	(void)state;
	start("lines", NULL, 0, 0);
	log_debug("not wanted");
	log_info("hello %d", 42);
	log_warn("evil\n2001 \x1b[31m \xc3\xa4\\");
	log_set_level(LEVEL_DEBUG);
	log_debug("wanted now");
	memset(longer, 'y', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = 0;
	log_error("%s", longer);
	memset(longer, 1, sizeof(longer) - 1);
	log_error("%s", longer);
	log_set_level(LEVEL_ERROR);
	log_warn("not wanted either");
	log_stop();
	text = read_all("lines");
	assert_int_equal(sscanf(text, "%4d-%*2d-%*2dT%*2d:%*2d:%*2d.%3dZ info  hello 42\n", &year, &ms), 2);
	assert_true(year > 2020);
	assert_non_null(strstr(text, "Z warn  evil\\x0a2001 \\x1b[31m \\xc3\\xa4\\\n"));
	assert_non_null(strstr(text, "Z debug wanted now\n"));
	assert_null(strstr(text, "not wanted"));
	assert_int_equal(count_of(text, "\n"), 5);
	for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1)
		assert_true(end + 1 - line <= LOG_LINE_MAX);
	assert_int_equal(count_of(text, "...\n"), 2);
}

static void test_level_names(void **state)
{
	enum log_level level = LEVEL_INFO;

	(void)state;
	assert_int_equal(log_level_parse("warn", &level), OK);
	assert_int_equal(level, LEVEL_WARN);
	assert_int_equal(log_level_parse("loud", &level), ERR_SYNTAX);
	assert_int_equal(level, LEVEL_WARN);
}

static void test_rate(void **state)
{
	struct log_rate rate = {0};
	uint32_t left = 99;
	char *text;

	(void)state;
	assert_true(log_rate_pass(&rate, 5000, &left));
	assert_int_equal(left, 0);
	for (int i = 0; i < 7; i++)
		assert_false(log_rate_pass(&rate, 5000 + i * 142, &left));
	assert_true(log_rate_pass(&rate, 6000, &left));
	assert_int_equal(left, 7);
	assert_false(log_rate_pass(&rate, 6999, &left));

	start("rate", NULL, 0, 0);
	for (int i = 0; i < 1000; i++)
		LOG_RATE(LEVEL_WARN, "flood %d", i);
	LOG_RATE(LEVEL_WARN, "another place");
	LOG_RATE(LEVEL_DEBUG, "level matters");
	log_stop();
	text = read_all("rate");
	assert_true(count_of(text, "flood ") <= 2);
	assert_non_null(strstr(text, "flood 0\n"));
	assert_non_null(strstr(text, "another place\n"));
	assert_null(strstr(text, "level matters"));
}

static void test_bad_path(void **state)
{
	struct log_config c = {.error = {LOG_FILE, "/nowhere/at/all"}};
	char why[200] = "";

	(void)state;
	assert_int_equal(log_start(&c, why, sizeof(why)), ERR_SYS);
	assert_string_equal(why, "cannot open the log /nowhere/at/all: No such file or directory");
	c = (struct log_config){.access = {LOG_FILE, NULL}};
	assert_int_equal(log_start(&c, why, sizeof(why)), ERR_SYNTAX);
	log_stop();	/* nothing runs: nothing happens */
}

struct burst {
	int lines;
	unsigned id;
};

static void *burst_run(void *arg)
{
	struct burst *b = arg;

	for (int i = 0; i < b->lines; i++) {
		struct access_record r = record();

		r.retries = b->id;
		r.bytes_in = (uint64_t)i;
		while (!access_write(&r))
			sched_yield();
		if (i % 100 == 0) {
			log_info("thread %u line %d", b->id, i);
			log_turn_end();
		}
	}
	log_turn_end();
	return NULL;
}

/* Many threads, small rings: every record taken arrives once, whole, in its thread's order. */
static void test_threads(void **state)
{
	struct burst b[8];
	pthread_t t[8];
	unsigned next[8] = {0}, lines = 0;
	struct log_counts k;
	FILE *f;

	(void)state;
	start("threads.error", "threads.access", 0, 16384);
	for (unsigned i = 0; i < 8; i++) {
		b[i] = (struct burst){2000, i};
		assert_int_equal(pthread_create(&t[i], NULL, burst_run, &b[i]), 0);
	}
	for (int i = 0; i < 8; i++)
		pthread_join(t[i], NULL);
	log_stop();
	f = fopen(at("threads.access"), "r");
	assert_non_null(f);
	for (char line[ACCESS_LINE_MAX]; fgets(line, sizeof(line), f); lines++) {
		unsigned id, in;

		assert_int_equal(sscanf(strstr(line, " bytes_in="), " bytes_in=%u", &in), 1);
		assert_int_equal(sscanf(strstr(line, " retries="), " retries=%u", &id), 1);
		assert_non_null(strstr(line, " flags=-\n"));
		assert_int_equal(in, next[id]++);
	}
	fclose(f);
	assert_int_equal(lines, 16000);
	assert_int_equal(count_of(read_all("threads.error"), " line "), 160);
	log_counts(&k);
	assert_int_equal(k.access_records, 16000);
	assert_int_equal(k.ring_bytes, 0);	/* all threads have ended */
}

/* A pipe that nobody reads: callers go on, the bound holds, the count is told. */
static void test_blocked_pipe(void **state)
{
	struct access_record r = record();
	struct log_counts before, k;
	int64_t longest = 0, drops = 0;
	int fd;
	char buf[65536], tail[8192] = "";
	uint64_t lines = 0;

	(void)state;
	assert_int_equal(mkfifo(at("pipe"), 0600), 0);
	fd = open(at("pipe"), O_RDONLY | O_NONBLOCK);
	log_counts(&before);
	start("blocked.error", "pipe", 0, 65536);
	for (int i = 0; i < 20000; i++) {
		int64_t t = now_us();

		if (!access_write(&r))
			drops++;
		if (i % 10 == 0)
			log_turn_end();
		t = now_us() - t;
		if (t > longest)
			longest = t;
	}
	assert_true(drops > 10000);
	assert_true(longest < 500000);
	log_counts(&k);
	assert_int_equal(k.access_dropped - before.access_dropped, drops);
	assert_int_equal(k.access_records - before.access_records, 20000 - drops);
	assert_true(k.ring_bytes <= 65536 + 65536);
	/* The error log is not held up, and tells. */
	log_info("still here");
	assert_true(file_gets("blocked.error", "still here\n"));
	assert_true(file_gets("blocked.error", "records dropped from the access log"));
	/* Whoever reads at last gets what was kept, line by line. */
	for (int64_t end = now_us() + 5000000; lines < 20000u - (uint64_t)drops && now_us() < end; ) {
		ssize_t n = read(fd, buf, sizeof(buf) - 1);

		if (n <= 0) {
			poll(NULL, 0, 1);
			continue;
		}
		buf[n] = 0;
		lines += count_of(buf, "\n");
		if (n > 100)
			strcpy(tail, buf + n - 10);
	}
	assert_int_equal(lines, 20000 - drops);
	assert_string_equal(tail + 1, " flags=-\n");
	assert_true(access_write(&r));
	log_stop();
	close(fd);
}

/* A reader that stays away for ever must not hold up the end. */
static void test_stop_is_bounded(void **state)
{
	struct access_record r = record();
	int64_t t;
	int fd;

	(void)state;
	assert_int_equal(mkfifo(at("pipe2"), 0600), 0);
	fd = open(at("pipe2"), O_RDONLY | O_NONBLOCK);
	start("bounded.error", "pipe2", 0, 0);
	for (int i = 0; i < 2000; i++)
		(void)access_write(&r);
	log_turn_end();
	t = now_us();
	log_stop();
	t = now_us() - t;
	assert_true(t > 900000 && t < 1900000);
	close(fd);
}

/* The reader leaves: counted, told once, tried again, and said when it works again. */
static void test_broken_pipe(void **state)
{
	struct access_record r = record();
	struct log_counts before, k;
	int fd;

	(void)state;
	assert_int_equal(mkfifo(at("pipe3"), 0600), 0);
	fd = open(at("pipe3"), O_RDONLY | O_NONBLOCK);
	log_counts(&before);
	start("broken.error", "pipe3", 0, 0);
	close(fd);
	assert_true(access_write(&r));
	log_turn_end();
	assert_true(file_gets("broken.error", "pipe3: Broken pipe; will try again\n"));
	assert_true(access_write(&r));
	log_turn_end();
	fd = open(at("pipe3"), O_RDONLY | O_NONBLOCK);
	assert_true(file_gets("broken.error", "pipe3 is written again\n"));
	log_stop();
	assert_int_equal(count_of(read_all("broken.error"), "Broken pipe"), 1);
	log_counts(&k);
	assert_true(k.write_errors > before.write_errors);
	close(fd);
}

static void test_reopen(void **state)
{
	(void)state;
	start("re.error", "re.access", 0, 0);
	struct access_record r = record();

	assert_true(access_write(&r));
	log_turn_end();
	assert_true(file_gets("re.access", "flags=-\n"));
	assert_int_equal(rename(at("re.error"), at("re.error.1")), 0);
	assert_int_equal(rename(at("re.access"), at("re.access.1")), 0);
	log_reopen();
	assert_true(file_gets("re.error", "re.error is opened again\n"));
	assert_true(file_gets("re.error", "re.access is opened again\n"));
	r.target = STR("/second");
	assert_true(access_write(&r));
	log_turn_end();
	assert_true(file_gets("re.access", "/second"));
	assert_null(strstr(read_all("re.access.1"), "/second"));

	/* The name now leads nowhere: the old file goes on. */
	assert_int_equal(rename(at("re.access"), at("re.access.2")), 0);
	assert_int_equal(mkdir(at("re.access"), 0700), 0);
	log_reopen();
	assert_true(file_gets("re.error", "re.access again: Is a directory; the old file stays in use\n"));
	r.target = STR("/third");
	assert_true(access_write(&r));
	log_turn_end();
	assert_true(file_gets("re.access.2", "/third"));
	log_stop();
}

/* A file that is full, by the limit on its size: the other log hears of it. */
static void test_full_file(void **state)
{
	struct access_record r = record();

	(void)state;
	if (access("/dev/full", W_OK))
		skip();
	assert_int_equal(symlink("/dev/full", at("full")), 0);
	start("full.error", "full", 0, 0);
	for (int i = 0; i < 100; i++)
		(void)access_write(&r);
	log_turn_end();
	assert_true(file_gets("full.error", "full: No space left on device; will try again\n"));
	log_stop();
}

/* Both logs to one file, under two names: no line is torn. */
static void test_one_file_for_both(void **state)
{
	struct access_record r = record();
	char *text, *line, *end;

	(void)state;
	start("both", NULL, 0, 0);
	log_stop();
	assert_int_equal(link(at("both"), at("both.too")), 0);
	start("both", "both.too", 0, 0);
	for (int i = 0; i < 500; i++) {
		(void)access_write(&r);
		log_info("error line");
	}
	log_stop();
	text = read_all("both");
	for (line = text; (end = strchr(line, '\n')); line = end + 1)
		assert_true(!strncmp(end - 10, "error line", 10) || !strncmp(end - 7, "flags=-", 7));
	assert_int_equal(count_of(text, "error line\n"), 500);
	assert_int_equal(count_of(text, "flags=-\n"), 500);
}

/* Voluntary switches of the thread named "log" so far; -1: no such thread. */
static long writer_switches(void)
{
	DIR *d = opendir("/proc/self/task");
	long switches = -1;

	for (struct dirent *e; d && (e = readdir(d)); ) {
		char path[300], text[4096], *p;
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/task/%s/status", e->d_name);
		f = fopen(path, "r");
		text[f ? fread(text, 1, sizeof(text) - 1, f) : 0] = 0;
		if (f)
			fclose(f);
		p = strstr(text, "\nvoluntary_ctxt_switches:");
		if (p && !strncmp(text, "Name:\tlog\n", 10))
			switches = strtol(strchr(p, ':') + 1, NULL, 10);
	}
	if (d)
		closedir(d);
	return switches;
}

static void test_idle_makes_no_wakeup(void **state)
{
	long before;

	(void)state;
	start("idle", NULL, 0, 0);
	log_info("last word");
	assert_true(file_gets("idle", "last word\n"));
	poll(NULL, 0, 200);
	before = writer_switches();
	assert_true(before > 0);
	poll(NULL, 0, 500);
	assert_int_equal(writer_switches(), before);
	log_stop();
}

static void test_off_costs_nothing(void **state)
{
	struct access_record r = record();
	struct log_counts before, k;

	(void)state;
	log_counts(&before);
	start("off", NULL, 0, 0);
	assert_false(log_access_on());
	assert_false(access_write(&r));
	log_turn_end();
	log_counts(&k);
	assert_int_equal(k.ring_bytes, before.ring_bytes);
	assert_int_equal(k.access_dropped, before.access_dropped);
	log_stop();
}

/* In a child: stdout is `out`, stderr `err`; returns what they got.  The child never blocks on them. */
static void child_logs(int out, int err, bool run)
{
	struct log_config c = {.error = {LOG_STDERR, NULL}, .access = {LOG_STDOUT, NULL}, .format = LOG_JSON};
	struct access_record r = record();
	char why[200];

	dup2(out, STDOUT_FILENO);
	dup2(err, STDERR_FILENO);
	log_warn("before");
	if (run && log_start(&c, why, sizeof(why)) != OK)
		_exit(1);
	for (int i = 0; i < 3000; i++)
		(void)access_write(&r);
	log_warn("during");
	log_turn_end();
	log_stop();
	log_warn("after");
	_exit(fcntl(STDOUT_FILENO, F_GETFL) & O_NONBLOCK ? 2 : 0);
}

static void test_standard_ends(void **state)
{
	(void)state;
	for (int kind = 0; kind < 2; kind++) {
		int out[2], err[2], status;
		char text[8192], *p = text;
		uint64_t lines = 0;
		ssize_t n;
		pid_t pid;

		/* Pipes, then sockets; stdout is read to its end first. */
		assert_int_equal(kind ? socketpair(AF_UNIX, SOCK_STREAM, 0, out) : pipe(out), 0);
		assert_int_equal(kind ? socketpair(AF_UNIX, SOCK_STREAM, 0, err) : pipe(err), 0);
		pid = fork();
		if (!pid)
			child_logs(out[1], err[1], true);
		close(out[1]);
		close(err[1]);
		for (char buf[4097]; (n = read(out[0], buf, 4096)) > 0; ) {
			buf[n] = 0;
			lines += count_of(buf, "}\n");
		}
		while ((n = read(err[0], p, (size_t)(text + sizeof(text) - 1 - p))) > 0)
			p += n;
		*p = 0;
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);	/* and the shared description was left blocking */
		assert_true(lines > 500);
		assert_non_null(strstr(text, "warn  before\n"));
		assert_non_null(strstr(text, "warn  during\n"));
		assert_non_null(strstr(text, "warn  after\n"));
		close(out[0]);
		close(err[0]);
	}
}

static int prepare(void **state)
{
	(void)state;
	signal(SIGPIPE, SIG_IGN);
	return mkdtemp(dir) ? 0 : -1;
}

static int clean_up(void **state)
{
	DIR *d = opendir(dir);

	(void)state;
	for (struct dirent *e; d && (e = readdir(d)); )
		if (e->d_name[0] != '.')
			remove(at(e->d_name));
	if (d)
		closedir(d);
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_level_names),
		cmocka_unit_test(test_rate),
		cmocka_unit_test(test_bad_path),
		cmocka_unit_test(test_off_costs_nothing),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_blocked_pipe),
		cmocka_unit_test(test_stop_is_bounded),
		cmocka_unit_test(test_broken_pipe),
		cmocka_unit_test(test_full_file),
		cmocka_unit_test(test_reopen),
		cmocka_unit_test(test_one_file_for_both),
		cmocka_unit_test(test_idle_makes_no_wakeup),
		cmocka_unit_test(test_standard_ends),
	};

	return cmocka_run_group_tests(tests, prepare, clean_up);
}
