/* loop: see loop.h.
 *
 * Owns the event_base, the nested epoll set, the wake-up eventfd and the signal
 * events.  Used by one thread, but for loop_wake.  Never frees what `ptr` points
 * to: who closes a descriptor unlinks it at once and frees it after the pass,
 * since a batch that is being handed out may still name it. */
#include "lib/net/loop.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"

#define LOOP_BATCH 256
#define LOOP_SIGNALS 8

_Static_assert(LIBEVENT_VERSION_NUMBER >= 0x02010c00, "libevent 2.1.12 or newer");

struct loop_signal {
	struct event *event;	/* owned */
	void (*fn)(int signo, void *ctx);
	void *ctx;		/* borrowed */
};

struct loop {
	const struct loop_events *ev;	/* borrowed */
	void *ctx;			/* borrowed */
	struct event_base *base;	/* owned */
	struct event *nested, *wake;	/* owned */
	int epoll, wake_fd;		/* owned */
	struct event *timer;		/* owned */
	bool armed;			/* the timer is pending, and */
	uint32_t armed_for;		/* fires at that ms */
	struct loop_signal signal[LOOP_SIGNALS];
	unsigned n_signals;
	struct epoll_event batch[LOOP_BATCH];
};

static void nested_ready(evutil_socket_t fd, short what, void *arg)
{
	struct loop *l = arg;
	int n = epoll_wait(fd, l->batch, LOOP_BATCH, 0);

	(void)what;
	if (n > 0)
		l->ev->begin(l->ctx);
	for (int i = 0; i < n; i++) {
		uint32_t e = l->batch[i].events;
		unsigned events = 0;

		if (e & EPOLLIN)
			events |= LOOP_READABLE;
		if (e & EPOLLOUT)
			events |= LOOP_WRITABLE;
		if (e & EPOLLRDHUP)
			events |= LOOP_PEER_DONE;
		if (e & (EPOLLERR | EPOLLHUP))
			events |= LOOP_BROKEN;
		l->ev->ready(l->ctx, l->batch[i].data.ptr, events);
	}
}

static void wake_ready(evutil_socket_t fd, short what, void *arg)
{
	struct loop *l = arg;
	uint64_t n;

	(void)what;
	if (read(fd, &n, sizeof n) > 0)
		l->ev->woken(l->ctx);
}

/* The timer only ends the wait; what is due is the caller's to find. */
static void timer_fired(evutil_socket_t fd, short what, void *arg)
{
	struct loop *l = arg;

	(void)fd, (void)what;
	l->armed = false;
}

static struct event_base *base_new(void)
{
	struct event_config *c = event_config_new();
	struct event_base *b = NULL;

	if (c && event_config_set_flag(c, EVENT_BASE_FLAG_NOLOCK) == 0)
		b = event_base_new_with_config(c);
	if (c)
		event_config_free(c);
	return b;
}

struct loop *loop_new(const struct loop_events *ev, void *ctx)
{
	struct loop *l = mem_zalloc(sizeof *l);

	if (!l)
		return NULL;
	l->ev = ev;
	l->ctx = ctx;
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	l->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	l->base = base_new();
	if (l->epoll < 0 || l->wake_fd < 0 || !l->base)
		goto fail;
	l->nested = event_new(l->base, l->epoll, EV_READ | EV_PERSIST, nested_ready, l);
	l->wake = event_new(l->base, l->wake_fd, EV_READ | EV_PERSIST, wake_ready, l);
	l->timer = event_new(l->base, -1, 0, timer_fired, l);
	if (!l->nested || !l->wake || !l->timer)
		goto fail;
	if (event_add(l->nested, NULL) || event_add(l->wake, NULL))
		goto fail;
	return l;
fail:
	loop_free(l);
	return NULL;
}

void loop_free(struct loop *l)
{
	if (!l)
		return;
	for (unsigned i = 0; i < l->n_signals; i++)
		event_free(l->signal[i].event);
	if (l->nested)
		event_free(l->nested);
	if (l->wake)
		event_free(l->wake);
	if (l->timer)
		event_free(l->timer);
	if (l->base)
		event_base_free(l->base);
	if (l->epoll >= 0)
		close(l->epoll);
	if (l->wake_fd >= 0)
		close(l->wake_fd);
	mem_free(l);
}

static uint32_t mode_events(enum loop_mode mode)
{
	switch (mode) {
	case LOOP_EDGE:
		return EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
	case LOOP_LEVEL_IN:
		return EPOLLIN;
	case LOOP_MUTED:
		break;
	}
	return 0;
}

static enum err control(struct loop *l, int op, int fd, void *ptr, enum loop_mode mode)
{
	struct epoll_event e = { .events = mode_events(mode), .data.ptr = ptr };

	CHECK(ptr);
	return epoll_ctl(l->epoll, op, fd, &e) == 0 ? OK : ERR_SYS;
}

enum err loop_watch(struct loop *l, int fd, void *ptr, enum loop_mode mode)
{
	return control(l, EPOLL_CTL_ADD, fd, ptr, mode);
}

enum err loop_rewatch(struct loop *l, int fd, void *ptr, enum loop_mode mode)
{
	return control(l, EPOLL_CTL_MOD, fd, ptr, mode);
}

/* Deadlines mostly move later.  A timer that fires no later than asked is left
 * alone: an early pass now and then is cheaper than arming it at every turn. */
static void arm(struct loop *l, uint32_t now_ms, int64_t wait_ms)
{
	struct timeval tv = { wait_ms / 1000, wait_ms % 1000 * 1000 };
	uint32_t at = now_ms + (uint32_t)wait_ms;

	if (l->armed && (int32_t)(l->armed_for - now_ms) > 0 && (int32_t)(l->armed_for - at) <= 0)
		return;
	l->armed = event_add(l->timer, &tv) == 0;
	l->armed_for = at;
}

void loop_pass(struct loop *l, uint32_t now_ms, int64_t wait_ms)
{
	int flags = EVLOOP_ONCE;

	if (wait_ms == 0) {
		flags |= EVLOOP_NONBLOCK;
	} else if (wait_ms > 0) {
		arm(l, now_ms, wait_ms);
	} else if (l->armed) {
		event_del(l->timer);
		l->armed = false;
	}
	event_base_loop(l->base, flags);
}

void loop_wake(struct loop *l)
{
	uint64_t one = 1;
	ssize_t r = write(l->wake_fd, &one, sizeof one);

	(void)r;	/* full means that a wake-up is pending already */
}

static void signal_fired(evutil_socket_t signo, short what, void *arg)
{
	struct loop_signal *s = arg;

	(void)what;
	s->fn((int)signo, s->ctx);
}

enum err loop_on_signal(struct loop *l, int signo, void (*fn)(int signo, void *ctx), void *ctx)
{
	struct loop_signal *s;

	CHECK(l->n_signals < LOOP_SIGNALS);
	s = &l->signal[l->n_signals];
	s->fn = fn;
	s->ctx = ctx;
	s->event = evsignal_new(l->base, signo, signal_fired, s);
	if (!s->event)
		return ERR_MEM;
	l->n_signals++;
	return event_add(s->event, NULL) == 0 ? OK : ERR_MEM;
}
