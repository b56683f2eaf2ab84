/* hasher: see hasher.h.
 *
 *   worker -> (remembered?) -> queue -> thread: htpasswd's hash against the password -> port -> worker
 *
 * Owns a queue, its threads, and what is remembered.  A job is one pair of user and password, however many exchanges
 * wait for it.  The queue is in rounds: a client's n-th waiting job is n rounds from now, so that clients take turns whatever
 * each asks.  It is bounded in bytes; whoever has the most rounds ahead makes room for one with less.
 *
 * What was right is remembered (known.c), and a worker that asks for it takes no lock: it must not wait for a thread that
 * was put to sleep with it.  What was wrong is not: that would let anybody fill the table.
 *
 * The threads are nicer than the workers.  A password lies here from the question to the look, then it is wiped. */
#include "proxy/hasher.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/crypto/password.h"
#include "proxy/known.h"

#define STACK (256 * 1024)
#define NICE 10		/* above what the process has */

struct hasher_ask {
	struct chan_node node;		/* first: what the channel moves */
	struct hasher_ask *next;	/* of the same job */
	struct hasher_port *port;	/* borrowed */
	void *owner;			/* the worker's alone; NULL: forgotten */
	struct job *job;		/* under the lock; NULL: decided */
	enum hasher_verdict verdict;	/* moves with the node */
};

struct job {
	struct job *next;		/* in the queue, by round */
	struct hasher_ask *asks;
	const struct htpasswd *users;	/* owned reference: `hash` is in it */
	struct str hash;
	union known_mac mac;
	uint64_t from, asked_ms;
	uint64_t round;
	bool known;			/* there is such a user */
	bool running;
	uint8_t password_len;
	char password[];
};

struct hasher {
	pthread_mutex_t lock;		/* of what is behind it, but for `known` */
	pthread_cond_t work;
	struct budget budget;
	struct job *queue, *running[HASHER_THREADS_MAX + 1];	/* the last is hasher_step's */
	size_t bytes;			/* of all jobs and asks */
	uint64_t round;			/* that is being worked on */
	bool stop;
	unsigned threads, started, slots;	/* wanted; running; that took a place in running[] */
	pthread_t thread[HASHER_THREADS_MAX];
	struct password_room *room;	/* owned: hasher_step's, made at its first call */
	struct known known;
};

/* --- jobs and asks, under the lock --- */

static size_t job_bytes(const struct job *j)
{
	return sizeof *j + j->password_len;
}

static bool charge(struct hasher *h, size_t n)
{
	if (budget_charge(&h->budget, n) != OK)
		return false;
	h->bytes += n;
	return true;
}

static void credit(struct hasher *h, size_t n)
{
	budget_credit(&h->budget, n);
	h->bytes -= n;
}

static void job_free(struct hasher *h, struct job *j)
{
	size_t n = job_bytes(j);

	explicit_bzero(j->password, j->password_len);
	htpasswd_unref(j->users);
	mem_free(j);
	credit(h, n);
}

static struct hasher_ask *ask_new(struct hasher *h, struct job *j, struct hasher_port *port, void *owner)
{
	struct hasher_ask *a;

	if (!charge(h, sizeof *a))
		return NULL;
	a = mem_alloc(sizeof *a);
	if (!a) {
		credit(h, sizeof *a);
		return NULL;
	}
	*a = (struct hasher_ask){ .next = j->asks, .port = port, .owner = owner, .job = j };
	j->asks = a;
	return a;
}

/* Ends a job: its asks, with their verdict, to be sent once the lock is open. */
static struct hasher_ask *decide(struct hasher *h, struct job *j, enum hasher_verdict verdict)
{
	struct hasher_ask *asks = j->asks;

	for (struct hasher_ask *a = asks; a; a = a->next) {
		a->verdict = verdict;
		a->job = NULL;
		credit(h, sizeof *a);
	}
	job_free(h, j);
	budget_settle(&h->budget);
	return asks;
}

/* Outside the lock.  An ask may be gone as soon as it was sent. */
static void send(struct hasher_ask *a)
{
	while (a) {
		struct hasher_ask *next = a->next;
		struct hasher_port *p = a->port;

		CHECK(chan_send(&p->reader, &p->chan, &a->node, sizeof *a) == OK);	/* its limit is none */
		a = next;
	}
}

static bool same(const struct job *j, const union known_mac *m)
{
	return j && digest_equal(j->mac.bytes, m->bytes, sizeof m->bytes);
}

static struct job *find(struct hasher *h, const union known_mac *m)
{
	for (unsigned i = 0; i <= HASHER_THREADS_MAX; i++)
		if (same(h->running[i], m))
			return h->running[i];
	for (struct job *j = h->queue; j; j = j->next)
		if (same(j, m))
			return j;
	return NULL;
}

/* The round of a new job of that client. */
static uint64_t round_for(const struct hasher *h, uint64_t from)
{
	uint64_t round = h->round;

	for (unsigned i = 0; i <= HASHER_THREADS_MAX; i++)
		if (h->running[i] && h->running[i]->from == from)
			round = h->round + 1;
	for (const struct job *j = h->queue; j; j = j->next)
		if (j->from == from && j->round >= round)
			round = j->round + 1;
	return round;
}

static void enqueue(struct hasher *h, struct job *j)
{
	struct job **at = &h->queue;

	while (*at && (*at)->round <= j->round)
		at = &(*at)->next;
	j->next = *at;
	*at = j;
}

static void dequeue(struct hasher *h, struct job *j)
{
	struct job **at = &h->queue;

	while (*at != j)
		at = &(*at)->next;
	*at = j->next;
}

/* Makes room for `n` bytes of `round` by ending jobs of later ones; false when there are not enough.  What is ended
 * is put in front of *ended. */
static bool make_room(struct hasher *h, size_t n, uint64_t round, struct hasher_ask **ended)
{
	while (h->bytes + n > HASHER_QUEUE) {
		struct job *last = h->queue;
		struct hasher_ask *a, *end;

		while (last && last->next)
			last = last->next;
		if (!last || last->round <= round)
			return false;
		dequeue(h, last);
		end = a = decide(h, last, HASHER_BUSY);
		while (end->next)
			end = end->next;
		end->next = *ended;
		*ended = a;
	}
	return true;
}

static struct job *job_new(struct hasher *h, const struct htpasswd *users, struct str user, struct str password)
{
	size_t n = sizeof(struct job) + password.n;
	struct job *j;

	if (!charge(h, n))
		return NULL;
	j = mem_zalloc(n);
	if (!j) {
		credit(h, n);
		return NULL;
	}
	j->users = htpasswd_ref(users);
	j->known = htpasswd_find(users, user, &j->hash);
	j->password_len = (uint8_t)password.n;
	if (password.n)
		memcpy(j->password, password.p, password.n);
	return j;
}

/* --- threads --- */

/* Takes the next job into `slot`; NULL when there is none. */
static struct job *take(struct hasher *h, unsigned slot)
{
	struct job *j = h->queue;

	if (!j)
		return NULL;
	h->queue = j->next;
	h->round = j->round;
	j->running = true;
	h->running[slot] = j;
	return j;
}

/* Looks at what is in `slot`: without the lock, for nobody changes what is read here while it runs. */
static enum hasher_verdict look(const struct job *j, struct password_room *room, uint64_t now)
{
	bool right = false;

	if (now >= j->asked_ms + HASHER_WAIT_MS)
		return HASHER_BUSY;
	if (!room || password_verify(room, j->hash, (struct str){ j->password, j->password_len }, &right) != OK)
		return HASHER_FAILED;
	return right && j->known ? HASHER_RIGHT : HASHER_WRONG;
}

/* With the lock held, which is open while it looks; false when there is nothing to do. */
static bool work(struct hasher *h, unsigned slot, struct password_room *room, uint64_t now)
{
	struct job *j = take(h, slot);
	struct hasher_ask *asks;
	enum hasher_verdict v;

	if (!j)
		return false;
	pthread_mutex_unlock(&h->lock);
	v = look(j, room, now);
	pthread_mutex_lock(&h->lock);
	h->running[slot] = NULL;
	if (v == HASHER_RIGHT)
		known_add(&h->known, &j->mac, now);
	asks = decide(h, j, v);
	pthread_mutex_unlock(&h->lock);
	send(asks);
	pthread_mutex_lock(&h->lock);
	return true;
}

static uint64_t clock_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void *run(void *arg)
{
	struct hasher *h = arg;
	struct password_room *room = password_room_new();	/* NULL: every look fails */
	id_t self = (id_t)syscall(SYS_gettid);
	unsigned slot;

	(void)setpriority(PRIO_PROCESS, self, getpriority(PRIO_PROCESS, self) + NICE);
	pthread_mutex_lock(&h->lock);
	slot = h->slots++;
	while (!h->stop)
		if (!work(h, slot, room, clock_ms()))
			pthread_cond_wait(&h->work, &h->lock);
	pthread_mutex_unlock(&h->lock);
	password_room_free(room);
	return NULL;
}

static bool start(struct hasher *h)
{
	pthread_attr_t attr;

	if (h->threads == 0 || h->started)
		return true;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	while (h->started < h->threads && pthread_create(&h->thread[h->started], &attr, run, h) == 0)
		h->started++;
	pthread_attr_destroy(&attr);
	return h->started;
}

/* --- for workers --- */

struct question {
	const struct htpasswd *users;
	struct str user, password;
	uint64_t from, now_ms;
	union known_mac mac;
};

/* The job for a question that nobody asked before. */
static enum hasher_verdict new_job(struct hasher *h, const struct question *q, struct job **out, struct hasher_ask **ended)
{
	uint64_t round = round_for(h, q->from);
	struct job *j;

	if (!make_room(h, sizeof *j + q->password.n + sizeof(struct hasher_ask), round, ended))
		return HASHER_BUSY;
	if (!start(h))
		return HASHER_FAILED;
	j = job_new(h, q->users, q->user, q->password);
	if (!j)
		return HASHER_FAILED;
	j->mac = q->mac;
	j->from = q->from;
	j->asked_ms = q->now_ms;
	j->round = round;
	enqueue(h, j);
	pthread_cond_signal(&h->work);
	*out = j;
	return HASHER_WAIT;
}

static enum hasher_verdict ask_locked(struct hasher *h, struct hasher_port *port, const struct question *q, void *owner,
				      struct hasher_ask **ask, struct hasher_ask **ended)
{
	struct job *j = find(h, &q->mac);
	enum hasher_verdict v;

	if (j && !make_room(h, sizeof **ask, j->round, ended))
		return HASHER_BUSY;
	if (!j) {
		v = new_job(h, q, &j, ended);
		if (v != HASHER_WAIT)
			return v;
	}
	*ask = ask_new(h, j, port, owner);
	if (*ask)
		return HASHER_WAIT;
	if (!j->asks && !j->running) {
		dequeue(h, j);
		job_free(h, j);
	}
	return HASHER_FAILED;
}

enum hasher_verdict hasher_ask(struct hasher *h, struct hasher_port *port, const struct htpasswd *users, struct str user,
			       struct str password, uint64_t from, uint64_t now_ms, void *owner, struct hasher_ask **ask)
{
	struct question q = { .users = users, .user = user, .password = password, .from = from, .now_ms = now_ms };
	struct hasher_ask *ended = NULL;
	enum hasher_verdict v;

	CHECK(user.n <= HTPASSWD_USER_MAX && password.n <= PASSWORD_MAX && owner);
	if (!port->maker)
		port->maker = known_maker(&h->known);
	if (!port->maker || known_mac(port->maker, users, user, password, &q.mac) != OK)
		return HASHER_FAILED;
	if (known_has(&h->known, &q.mac, now_ms))
		return HASHER_RIGHT;
	pthread_mutex_lock(&h->lock);
	v = ask_locked(h, port, &q, owner, ask, &ended);
	pthread_mutex_unlock(&h->lock);
	send(ended);
	return v;
}

void hasher_forget(struct hasher *h, struct hasher_ask *a)
{
	struct hasher_ask **at;
	struct job *j;

	a->owner = NULL;
	pthread_mutex_lock(&h->lock);
	j = a->job;
	if (j && !j->running) {
		for (at = &j->asks; *at != a; at = &(*at)->next)
			;
		*at = a->next;
		mem_free(a);
		credit(h, sizeof *a);
		if (!j->asks) {
			dequeue(h, j);
			job_free(h, j);
		}
		budget_settle(&h->budget);
	}
	pthread_mutex_unlock(&h->lock);
}

bool hasher_take(struct hasher_port *p, void **owner, enum hasher_verdict *verdict)
{
	struct chan *from;

	for (;;) {
		struct hasher_ask *a;

		if (!p->taken)
			p->taken = chan_next(&p->reader, &from);
		if (!p->taken)
			return false;
		a = (struct hasher_ask *)p->taken;
		p->taken = a->node.next;
		*owner = a->owner;
		*verdict = a->verdict;
		mem_free(a);
		if (*owner)
			return true;
	}
}

bool hasher_step(struct hasher *h, uint64_t now_ms)
{
	bool did;

	if (!h->room)
		h->room = password_room_new();
	pthread_mutex_lock(&h->lock);
	did = work(h, HASHER_THREADS_MAX, h->room, now_ms);
	pthread_mutex_unlock(&h->lock);
	return did;
}

/* --- making and ending --- */

unsigned hasher_threads(unsigned processors)
{
	return processors < 4 ? 1 : HASHER_THREADS_MAX;
}

struct hasher *hasher_new(unsigned threads, struct budget_root *budget)
{
	struct hasher *h = mem_zalloc(sizeof *h);

	CHECK(threads <= HASHER_THREADS_MAX);
	if (!h)
		return NULL;
	if (known_init(&h->known) != OK) {
		mem_free(h);
		return NULL;
	}
	h->threads = threads;
	budget_init(&h->budget, budget);
	pthread_mutex_init(&h->lock, NULL);
	pthread_cond_init(&h->work, NULL);
	return h;
}

void hasher_free(struct hasher *h)
{
	if (!h)
		return;
	pthread_mutex_lock(&h->lock);
	h->stop = true;
	pthread_cond_broadcast(&h->work);
	pthread_mutex_unlock(&h->lock);
	for (unsigned i = 0; i < h->started; i++)
		pthread_join(h->thread[i], NULL);
	while (h->queue) {
		struct job *j = h->queue;
		struct hasher_ask *a;

		h->queue = j->next;
		a = decide(h, j, HASHER_FAILED);
		while (a) {
			struct hasher_ask *next = a->next;

			mem_free(a);
			a = next;
		}
	}
	CHECK(h->bytes == 0);
	password_room_free(h->room);
	budget_fini(&h->budget);
	pthread_cond_destroy(&h->work);
	pthread_mutex_destroy(&h->lock);
	known_fini(&h->known);
	mem_free(h);
}

void hasher_port_init(struct hasher_port *p, void (*wake)(void *arg), void *arg)
{
	p->taken = NULL;
	p->maker = NULL;
	chan_reader_init(&p->reader, SIZE_MAX, wake, arg);
	chan_init(&p->chan, 0);
}

void hasher_port_fini(struct hasher_port *p)
{
	enum hasher_verdict v;
	void *owner;

	while (hasher_take(p, &owner, &v))
		;
	chan_reader_fini(&p->reader);
	digest_mac_free(p->maker);
}
