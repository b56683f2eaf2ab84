/* lib/net/socket: addresses and their text; listening, connecting and resets on loopback and Unix sockets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/net/socket.h"

static const uint8_t loopback[4] = { 127, 0, 0, 1 };
static const struct socket_limits limits = { .receive = 256 * 1024, .unsent = 128 * 1024 };

static void addresses_as_text(void **state)
{
	static const uint8_t six[16] = { 0x20, 1, 0xd, 0xb8, [15] = 7 };
	struct socket_address a;
	char text[SOCKET_TEXT], path[200];

	(void)state;
	socket_address_ip(&a, false, loopback, 8080);
	socket_address_text(&a, text);
	assert_string_equal(text, "127.0.0.1:8080");
	assert_int_equal(socket_address_port(&a), 8080);
	socket_address_ip(&a, true, six, 65535);
	socket_address_text(&a, text);
	assert_string_equal(text, "[2001:db8::7]:65535");
	assert_int_equal(socket_address_port(&a), 65535);
	assert_int_equal(socket_address_unix(&a, "/run/x"), OK);
	socket_address_text(&a, text);
	assert_string_equal(text, "unix:/run/x");
	assert_int_equal(socket_address_port(&a), 0);
	memset(path, 'p', sizeof path);
	path[108] = '\0';
	assert_int_equal(socket_address_unix(&a, path), ERR_LIMIT);
	path[107] = '\0';
	assert_int_equal(socket_address_unix(&a, path), OK);
	socket_address_text(&a, text);
	assert_int_equal(strlen(text), 5 + 107);
	socket_address_any(&a, 80);
	assert_int_equal(socket_address_port(&a), 80);
	assert_int_equal(a.dual, a.name.sa.sa_family == AF_INET6);
}

static void wait_for(int fd, short what)
{
	struct pollfd p = { .fd = fd, .events = what };

	assert_int_equal(poll(&p, 1, 5000), 1);
}

static int option(int fd, int level, int name)
{
	int v = 0;
	socklen_t n = sizeof v;

	assert_int_equal(getsockopt(fd, level, name, &v, &n), 0);
	return v;
}

static bool nonblocking(int fd)
{
	return (fcntl(fd, F_GETFL) & O_NONBLOCK) && (fcntl(fd, F_GETFD) & FD_CLOEXEC);
}

/* A connected pair over `a`, which gets its port; the listener stays open in *listener. */
static void connect_pair(struct socket_address *a, int *listener, int *client, int *server)
{
	struct socket_address peer;
	bool done;

	*listener = socket_listen(a, true, 16, &limits);
	assert_true(*listener >= 0);
	if (a->name.sa.sa_family != AF_UNIX)
		assert_int_equal(socket_bound(*listener, a), OK);
	*client = socket_connect(a, &done);
	assert_true(*client >= 0);
	wait_for(*client, POLLOUT);
	assert_int_equal(socket_error(*client), 0);
	wait_for(*listener, POLLIN);
	*server = socket_accept(*listener, &peer);
	assert_true(*server >= 0);
	assert_int_equal(peer.name.sa.sa_family, a->name.sa.sa_family);
	assert_true(nonblocking(*client) && nonblocking(*server) && nonblocking(*listener));
	assert_int_equal(socket_accept(*listener, &peer), -1);
	assert_int_equal(errno, EAGAIN);
}

static void tcp_pair(void **state)
{
	struct socket_address a;
	int l, c, s;

	(void)state;
	socket_address_ip(&a, false, loopback, 0);
	connect_pair(&a, &l, &c, &s);
	assert_true(socket_address_port(&a) > 0);
	assert_true(option(c, IPPROTO_TCP, TCP_NODELAY) && option(s, IPPROTO_TCP, TCP_NODELAY));
	assert_int_equal(option(s, IPPROTO_TCP, TCP_NOTSENT_LOWAT), limits.unsent);
	socket_receive_small(s, &limits);
	assert_true(option(s, SOL_SOCKET, SO_RCVBUF) <= 2 * SOCKET_RECEIVE_FIRST);
	socket_receive_large(s, &limits);
	assert_true(option(s, SOL_SOCKET, SO_RCVBUF) > 2 * SOCKET_RECEIVE_FIRST);
	close(l);
	close(c);
	close(s);
}

static void shared_and_alone(void **state)
{
	struct socket_address a;
	int first, second;

	(void)state;
	socket_address_ip(&a, false, loopback, 0);
	assert_int_equal(socket_probe(&a), 0);
	first = socket_listen(&a, true, 16, &limits);
	assert_true(first >= 0);
	assert_int_equal(socket_bound(first, &a), OK);
	assert_int_equal(socket_probe(&a), EADDRINUSE);
	second = socket_listen(&a, true, 16, &limits);	/* another worker */
	assert_true(second >= 0);
	assert_int_equal(socket_listen(&a, false, 16, &limits), -1);
	assert_int_equal(errno, EADDRINUSE);
	close(first);
	close(second);
	assert_int_equal(socket_probe(&a), 0);
}

static void refused(void **state)
{
	struct socket_address a;
	bool done = false;
	int fd;

	(void)state;
	socket_address_ip(&a, false, loopback, 0);
	fd = socket_listen(&a, false, 1, &limits);
	assert_true(fd >= 0);
	assert_int_equal(socket_bound(fd, &a), OK);
	close(fd);
	fd = socket_connect(&a, &done);
	if (fd < 0) {
		assert_int_equal(errno, ECONNREFUSED);
		return;
	}
	assert_false(done);
	wait_for(fd, POLLOUT);
	assert_int_equal(socket_error(fd), ECONNREFUSED);
	close(fd);
}

static void reset_on_close(void **state)
{
	struct socket_address a;
	int l, c, s;
	char byte;

	(void)state;
	socket_address_ip(&a, false, loopback, 0);
	connect_pair(&a, &l, &c, &s);
	socket_reset_on_close(s);
	close(s);
	wait_for(c, POLLIN);
	assert_int_equal(recv(c, &byte, 1, 0), -1);
	assert_int_equal(errno, ECONNRESET);
	close(c);
	close(l);
}

static char directory[] = "/tmp/test_socket.XXXXXX", path[64];

static int make_directory(void **state)
{
	(void)state;
	if (!mkdtemp(directory))
		return -1;
	snprintf(path, sizeof path, "%s/s", directory);
	return 0;
}

static int remove_directory(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(directory);
}

/* A socket file that nobody listens on goes; one that is in use, and what is no socket, stays. */
static void stale_unix_socket(void **state)
{
	struct socket_address a;
	int l, c, s, second;
	struct stat st;
	FILE *f;

	(void)state;
	assert_int_equal(socket_address_unix(&a, path), OK);
	connect_pair(&a, &l, &c, &s);
	assert_int_equal(socket_listen(&a, false, 1, &limits), -1);
	assert_int_equal(errno, EADDRINUSE);
	close(l);
	close(c);
	close(s);
	assert_int_equal(stat(path, &st), 0);	/* left over */
	second = socket_listen(&a, false, 1, &limits);
	assert_true(second >= 0);
	close(second);
	unlink(path);
	f = fopen(path, "w");
	assert_non_null(f);
	fclose(f);
	assert_int_equal(socket_listen(&a, false, 1, &limits), -1);
	assert_int_equal(errno, EADDRINUSE);
	assert_int_equal(stat(path, &st), 0);
	unlink(path);
}

static void no_such_unix_socket(void **state)
{
	struct socket_address a;
	bool done;

	(void)state;
	assert_int_equal(socket_address_unix(&a, "/nonexistent/socket"), OK);
	assert_int_equal(socket_connect(&a, &done), -1);
	assert_int_equal(errno, ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_as_text),
		cmocka_unit_test(tcp_pair),
		cmocka_unit_test(shared_and_alone),
		cmocka_unit_test(refused),
		cmocka_unit_test(reset_on_close),
		cmocka_unit_test(stale_unix_socket),
		cmocka_unit_test(no_such_unix_socket),
	};
	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
