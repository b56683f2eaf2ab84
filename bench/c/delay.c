/* delay.c - a cable with a length: carries packets between two TUN devices and
 * holds each of them for a fixed time.  For where the kernel has no netem.
 *
 * usage: delay DEV_A DEV_B MICROSECONDS
 *
 * Makes both devices, prints "ready", and carries until it is ended.  The caller
 * moves the devices to where it wants them.  Packets beyond 256 MiB under way in
 * one direction are lost.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define SLOTS (1u << 17)
#define BYTES_MAX (256u << 20)

struct packet { int64_t due; char *data; unsigned len; };
struct lane { int from, to; unsigned head, tail; size_t bytes; struct packet *ring; };

static int64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int tun(const char *name)
{
	struct ifreq r;
	int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
	memset(&r, 0, sizeof r);
	r.ifr_flags = IFF_TUN | IFF_NO_PI;
	snprintf(r.ifr_name, sizeof r.ifr_name, "%s", name);
	if (fd < 0 || ioctl(fd, TUNSETIFF, &r) < 0) {
		fprintf(stderr, "%s: %s\n", name, strerror(errno));
		exit(1);
	}
	return fd;
}

static void take(struct lane *l, int64_t delay)
{
	static char buf[65536];
	for (int i = 0; i < 64; i++) {
		ssize_t n = read(l->from, buf, sizeof buf);
		struct packet *p;
		if (n <= 0)
			return;
		if (l->tail - l->head == SLOTS || l->bytes + (size_t)n > BYTES_MAX)
			continue;
		p = &l->ring[l->tail++ % SLOTS];
		p->data = malloc((size_t)n);
		if (!p->data)
			abort();
		memcpy(p->data, buf, (size_t)n);
		p->len = (unsigned)n;
		p->due = now() + delay;
		l->bytes += (size_t)n;
	}
}

/* Delivers what is due; when the next is, or 0. */
static int64_t give(struct lane *l, int64_t t)
{
	while (l->head != l->tail) {
		struct packet *p = &l->ring[l->head % SLOTS];
		if (p->due > t)
			return p->due;
		if (write(l->to, p->data, p->len) < 0 && errno == EAGAIN)
			return t;
		l->bytes -= p->len;
		free(p->data);
		l->head++;
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct lane lanes[2];
	struct pollfd fds[2];
	int64_t delay;
	if (argc != 4)
		return 2;
	delay = atoll(argv[3]) * 1000;
	memset(lanes, 0, sizeof lanes);
	for (int i = 0; i < 2; i++) {
		fds[i].fd = tun(argv[1 + i]);
		fds[i].events = POLLIN;
		lanes[i].ring = calloc(SLOTS, sizeof *lanes[i].ring);
	}
	lanes[0].from = lanes[1].to = fds[0].fd;
	lanes[1].from = lanes[0].to = fds[1].fd;
	puts("ready");
	fflush(stdout);
	for (;;) {
		int64_t t = now(), next = 0;
		struct timespec wait, *w = NULL;
		for (int i = 0; i < 2; i++) {
			int64_t due = give(&lanes[i], t);
			if (due && (!next || due < next))
				next = due;
		}
		if (next) {
			int64_t left = next - now();
			if (left < 0)
				left = 0;
			wait = (struct timespec){ left / 1000000000, left % 1000000000 };
			w = &wait;
		}
		ppoll(fds, 2, w, NULL);
		for (int i = 0; i < 2; i++)
			if (fds[i].revents)
				take(&lanes[i], delay);
	}
}
