/* Door: the one place that asks name servers.  Owns c-ares' channel, the descriptors of which lie in an epoll set of their own, since it
 * wants some of them watched for writing and some not: the loop sees that set as one.  Called by the main thread alone.
 *
 * c-ares draws ids and ports by chance and compares id, question and sender of what comes back; it sends again, to the next server, by
 * TCP when an answer was cut.  Search domains and the hosts file are read here, since c-ares' own way through them ends at the first
 * family that has an answer, and takes a failure for the lack of a name. */
#include "lib/net/resolver.h"

#define CARES_NO_DEPRECATED	/* what newer ones would rather have, 1.18 has not */
#include <ares.h>
#include <arpa/nameser.h>
#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/net/hosts.h"
#include "lib/net/loop.h"

#define BATCH 16
#define FILES_MS 500		/* how often files are looked at */

struct question {
	struct look *look;
	unsigned type;		/* a bit of ANSWER_*; 0: none */
};

struct look {
	struct resolver *r;
	struct look *before, *next;	/* of r->first */
	resolver_done *done;		/* NULL: forgotten */
	void *ctx;
	unsigned types, pending, candidate;
	bool over;			/* its answer is there, and is to be told */
	struct question question[2];
	struct answer answer;
	size_t n;
	char name[];			/* ends with NUL */
};

struct resolver {
	struct resolver_config config;	/* its texts are copies */
	struct loop *loop;		/* borrowed */
	void *ptr;			/* borrowed */
	bool library, made;		/* c-ares was begun; `channel` is one */
	ares_channel channel;		/* owned */
	int epoll;			/* owned; -1: none yet */
	struct resolver_search search;	/* owned */
	struct hosts hosts;
	struct file_mark resolv_conf;
	uint64_t looked_ms;		/* at the files; 0: never */
	struct look *first;		/* all */
	unsigned flight, over;
	struct resolver_counts counts;
};

/* --- the configuration --- */

static bool text_copy(const char **to, const char *from)
{
	*to = from ? mem_strndup(from, strlen(from)) : NULL;
	return *to || !from;
}

static bool config_copy(struct resolver_config *to, const struct resolver_config *from)
{
	char **search = from->n_search > 0 ? mem_zalloc((size_t)from->n_search * sizeof(*search)) : NULL;
	bool whole = search || from->n_search <= 0;

	*to = *from;
	to->search = (const char *const *)search;
	whole = text_copy(&to->servers, from->servers) && whole;
	whole = text_copy(&to->hosts, from->hosts) && whole;
	whole = text_copy(&to->resolv_conf, from->resolv_conf) && whole;
	for (int i = 0; search && i < from->n_search; i++) {
		search[i] = mem_strndup(from->search[i], strlen(from->search[i]));
		whole = whole && search[i];
	}
	return whole;
}

static void config_fini(struct resolver_config *c)
{
	for (int i = 0; c->search && i < c->n_search; i++)
		mem_free((char *)(uintptr_t)c->search[i]);
	mem_free((void *)(uintptr_t)c->search);
	mem_free((char *)(uintptr_t)c->servers);
	mem_free((char *)(uintptr_t)c->hosts);
	mem_free((char *)(uintptr_t)c->resolv_conf);
}

static void search_fini(struct resolver_search *s)
{
	for (unsigned i = 0; s->domains && i < s->n; i++)
		mem_free(s->domains[i]);
	mem_free(s->domains);
	*s = (struct resolver_search){0};
}

struct resolver *resolver_new(const struct resolver_config *c, struct loop *loop, void *ptr)
{
	struct resolver *r = mem_zalloc(sizeof(*r));

	if (!r)
		return NULL;
	r->loop = loop;
	r->ptr = ptr;
	r->epoll = -1;
	if (config_copy(&r->config, c))
		return r;
	resolver_free(r);
	return NULL;
}

static void look_free(struct look *l)
{
	struct resolver *r = l->r;

	*(l->before ? &l->before->next : &r->first) = l->next;
	if (l->next)
		l->next->before = l->before;
	r->flight--;
	r->over -= l->over;
	for (unsigned i = 0; i < 2; i++)
		answer_part_fini(&l->answer.part[i], l->types == ANSWER_SRV);
	mem_free(l);
}

void resolver_free(struct resolver *r)
{
	if (!r)
		return;
	for (struct look *l = r->first; l; l = l->next)
		l->done = NULL;
	if (r->made)
		ares_destroy(r->channel);	/* calls back for all that is asked */
	while (r->first)
		look_free(r->first);
	if (r->library)
		ares_library_cleanup();
	if (r->epoll >= 0)
		close(r->epoll);
	search_fini(&r->search);
	hosts_fini(&r->hosts);
	config_fini(&r->config);
	mem_free(r);
}

/* --- the channel --- */

static void on_socket(void *data, ares_socket_t fd, int in, int out)
{
	struct resolver *r = data;
	struct epoll_event e = { .events = (in ? EPOLLIN : 0u) | (out ? EPOLLOUT : 0u), .data.fd = fd };

	if (!in && !out)
		epoll_ctl(r->epoll, EPOLL_CTL_DEL, fd, NULL);
	else if (epoll_ctl(r->epoll, EPOLL_CTL_MOD, fd, &e) != 0 && errno == ENOENT)
		epoll_ctl(r->epoll, EPOLL_CTL_ADD, fd, &e);	/* if that fails, the question ends with its time */
}

/* Search domains and ndots: what we were told, else what c-ares has read. */
static enum err search_make(struct resolver *r)
{
	struct ares_options o = {0};
	struct resolver_search s = {0};
	int mask, n;
	bool whole = true;

	if (ares_save_options(r->channel, &o, &mask) != ARES_SUCCESS) {
		ares_destroy_options(&o);
		return ERR_MEM;
	}
	n = r->config.n_search >= 0 ? r->config.n_search : o.ndomains;
	n = n > RESOLVER_SEARCH_MAX ? RESOLVER_SEARCH_MAX : n < 0 ? 0 : n;
	s.ndots = (unsigned)(r->config.ndots >= 0 ? r->config.ndots : o.ndots);
	s.domains = n ? mem_zalloc((size_t)n * sizeof(*s.domains)) : NULL;
	for (; s.domains && whole && s.n < (unsigned)n; s.n++) {
		const char *one = r->config.n_search >= 0 ? r->config.search[s.n] : o.domains[s.n];

		s.domains[s.n] = mem_strndup(one, strlen(one));
		whole = s.domains[s.n];
	}
	ares_destroy_options(&o);
	if (!whole || (n && !s.domains)) {
		search_fini(&s);
		return ERR_MEM;
	}
	search_fini(&r->search);
	r->search = s;
	return OK;
}

static enum err channel_open(struct resolver *r)
{
	struct ares_options o = {
		.flags = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES, .timeout = (int)r->config.timeout_ms, .tries = (int)r->config.attempts,
		.sock_state_cb = on_socket, .sock_state_cb_data = r, .resolvconf_path = (char *)(uintptr_t)r->config.resolv_conf,
	};
	int mask = ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_SOCK_STATE_CB | ARES_OPT_RESOLVCONF;

#ifdef ARES_OPT_QUERY_CACHE
	mask |= ARES_OPT_QUERY_CACHE;	/* qcache_max_ttl is 0: none, it is we who know how long */
#endif
	if (ares_init_options(&r->channel, &o, mask) != ARES_SUCCESS)
		return ERR_MEM;
	r->made = true;
	if ((!r->config.servers || ares_set_servers_ports_csv(r->channel, r->config.servers) == ARES_SUCCESS) && search_make(r) == OK)
		return OK;
	ares_destroy(r->channel);
	r->made = false;
	return ERR_MEM;
}

/* All that a first question needs. */
static enum err make_ready(struct resolver *r)
{
	if (r->epoll < 0) {
		r->epoll = epoll_create1(EPOLL_CLOEXEC);
		if (r->epoll >= 0 && loop_watch(r->loop, r->epoll, r->ptr, LOOP_LEVEL_IN) != OK) {
			close(r->epoll);
			r->epoll = -1;
		}
		if (r->epoll < 0)
			return ERR_SYS;
	}
	if (!r->library && ares_library_init_mem(ARES_LIB_INIT_ALL, mem_alloc, mem_free, mem_realloc) != ARES_SUCCESS)
		return ERR_MEM;
	r->library = true;
	return r->made ? OK : channel_open(r);
}

/* Files that have changed are read again.  What is being asked for by the old ones fails, and will be asked for again. */
static void files_look(struct resolver *r, uint64_t now_ms)
{
	if (r->looked_ms && now_ms - r->looked_ms < FILES_MS)
		return;
	r->looked_ms = now_ms ? now_ms : 1;
	if (r->config.hosts)
		hosts_look(&r->hosts, r->config.hosts);
	if (file_mark_changed(&r->resolv_conf, r->config.resolv_conf) && r->made) {
		ares_channel old = r->channel;

		r->made = false;
		ares_destroy(old);
	}
}

/* --- one name --- */

static size_t candidate_join(struct str name, const char *domain, char out[RESOLVER_NAME_MAX + 2])
{
	size_t n = domain ? strlen(domain) : 0;

	while (n && domain[n - 1] == '.')
		n--;
	if (domain && (!n || name.n + 1 + n > RESOLVER_NAME_MAX))
		return 0;
	memcpy(out, name.p, name.n);
	if (domain) {
		out[name.n] = '.';
		memcpy(out + name.n + 1, domain, n);
		n++;
	}
	out[name.n + n] = '\0';
	return name.n + n;
}

size_t resolver_candidate(const struct resolver_search *s, struct str name, unsigned *i, char out[RESOLVER_NAME_MAX + 2])
{
	bool absolute = name.n && name.p[name.n - 1] == '.', first;
	unsigned dots = 0, n = absolute ? 1 : s->n + 1;

	name.n -= absolute;
	for (size_t k = 0; k < name.n; k++)
		dots += name.p[k] == '.';
	first = absolute || dots >= s->ndots;
	while (*i < n) {
		unsigned at = (*i)++;
		bool alone = first ? at == 0 : at == n - 1;
		size_t len = candidate_join(name, alone ? NULL : s->domains[first ? at - 1 : at], out);

		if (len)
			return len;
	}
	return 0;
}

static void look_over(struct look *l)
{
	l->over = true;
	l->r->over++;
}

static void candidate_ask(struct look *l);

static const char *why_of(int status)
{
	switch (status) {
	case ARES_ETIMEOUT: return "no answer in time";
	case ARES_ESERVFAIL: return "the name server failed (SERVFAIL)";
	case ARES_EREFUSED: return "the name server refused (REFUSED)";
	case ARES_ECONNREFUSED: return "no name server has an answer";	/* it says no more, of SERVFAIL neither */
	case ARES_EFORMERR: return "the name server did not understand (FORMERR)";
	case ARES_ENOTIMP: return "the name server cannot do that (NOTIMP)";
	case ARES_ENOMEM: return "no memory";
	case ARES_EDESTRUCTION: return "the name servers have changed";
	case ARES_EBADNAME: return "it is no name";
	default: return "an answer that makes no sense";
	}
}

/* All that was asked for one candidate has been answered. */
static void candidate_judge(struct look *l)
{
	bool found = false, failed = false;

	for (unsigned i = 0; i < 2; i++) {
		found = found || l->answer.part[i].said == ANSWER_RECORDS;
		failed = failed || l->answer.part[i].said == ANSWER_FAILED;
	}
	if (found || failed || !l->done || !l->r->made)
		look_over(l);
	else
		candidate_ask(l);
}

static void on_reply(void *arg, int status, int timeouts, unsigned char *p, int n)
{
	struct question *q = arg;
	struct look *l = q->look;
	struct answer_part *part = &l->answer.part[q - l->question];

	(void)timeouts;
	if (status == ARES_SUCCESS && p && n > 0) {
		*part = resolver_read(p, (size_t)n, q->type, &l->answer.why);
	} else if (status == ARES_ENODATA || status == ARES_ENOTFOUND) {
		part->said = ANSWER_NONE;
	} else {
		part->said = ANSWER_FAILED;
		l->answer.why = why_of(status);
	}
	l->r->counts.failed += part->said == ANSWER_FAILED;
	if (--l->pending == 0)
		candidate_judge(l);
}

static int class_type(unsigned type)
{
	return type == ANSWER_IP4 ? ns_t_a : type == ANSWER_IP6 ? ns_t_aaaa : ns_t_srv;
}

/* Asks for the next candidate, or there is none, and the answer stands. */
static void candidate_ask(struct look *l)
{
	char name[RESOLVER_NAME_MAX + 2];

	if (!resolver_candidate(&l->r->search, (struct str){ l->name, l->n }, &l->candidate, name)) {
		look_over(l);
		return;
	}
	l->pending = 1;		/* c-ares may call back at once */
	for (unsigned i = 0; i < 2; i++) {
		if (!l->question[i].type)
			continue;
		l->pending++;
		l->r->counts.asked++;
		ares_query(l->r->channel, name, ns_c_in, class_type(l->question[i].type), on_reply, &l->question[i]);
	}
	if (--l->pending == 0)
		candidate_judge(l);
}

static bool part_copy(struct answer_part *to, unsigned asked, uint8_t from[][16], size_t n)
{
	if (!asked)
		return true;
	to->said = n ? ANSWER_RECORDS : ANSWER_NONE;
	to->ip = n ? mem_alloc(n * 16) : NULL;
	if (n && !to->ip)
		return false;
	if (n)
		memcpy(to->ip, from, n * 16);
	to->n = (uint32_t)n;
	return true;
}

/* Whether the hosts file knows it: a name that is there is not asked for elsewhere, whatever the family. */
static bool look_in_hosts(struct look *l)
{
	uint8_t ip4[HOSTS_ADDRESSES][16], ip6[HOSTS_ADDRESSES][16];
	struct str name = { l->name, l->n };
	size_t n4, n6;

	name.n -= name.n && name.p[name.n - 1] == '.';
	if (l->types == ANSWER_SRV || !hosts_find(&l->r->hosts, name, ip4, &n4, ip6, &n6))
		return false;
	if (!part_copy(&l->answer.part[0], l->types & ANSWER_IP4, ip4, n4) ||
	    !part_copy(&l->answer.part[1], l->types & ANSWER_IP6, ip6, n6)) {
		for (unsigned i = 0; i < 2; i++) {
			answer_part_fini(&l->answer.part[i], false);
			l->answer.part[i].said = ANSWER_FAILED;
		}
		l->answer.why = why_of(ARES_ENOMEM);
	}
	look_over(l);
	return true;
}

struct look *resolver_ask(struct resolver *r, struct str name, unsigned types, resolver_done *done, void *ctx, uint64_t now_ms)
{
	struct look *l = resolver_has_room(r) && name.n <= RESOLVER_NAME_MAX + 1 ? mem_zalloc(sizeof(*l) + name.n + 1) : NULL;

	if (!l)
		return NULL;
	l->r = r;
	l->types = types;
	l->done = done;
	l->ctx = ctx;
	l->n = name.n;
	memcpy(l->name, name.p, name.n);
	l->question[0] = (struct question){ l, types & (ANSWER_IP4 | ANSWER_SRV) };
	l->question[1] = (struct question){ l, types & ANSWER_IP6 };
	l->next = r->first;
	if (l->next)
		l->next->before = l;
	r->first = l;
	r->flight++;
	files_look(r, now_ms);
	if (look_in_hosts(l))
		return l;
	if (make_ready(r) == OK) {
		candidate_ask(l);
		return l;
	}
	for (unsigned i = 0; i < 2; i++)
		l->answer.part[i].said = l->question[i].type ? ANSWER_FAILED : ANSWER_NOT_ASKED;
	l->answer.why = "no name server can be asked";
	look_over(l);
	return l;
}

void resolver_forget(struct look *l)
{
	l->done = NULL;
}

bool resolver_has_room(const struct resolver *r)
{
	return r->flight < RESOLVER_FLIGHT;
}

/* --- the loop --- */

void resolver_event(struct resolver *r)
{
	struct epoll_event batch[BATCH];
	int n = r->epoll >= 0 ? epoll_wait(r->epoll, batch, BATCH, 0) : 0;

	for (int i = 0; i < n && r->made; i++) {
		uint32_t e = batch[i].events;
		ares_socket_t fd = batch[i].data.fd;

		ares_process_fd(r->channel, e & (EPOLLIN | EPOLLERR | EPOLLHUP) ? fd : ARES_SOCKET_BAD,
				e & (EPOLLOUT | EPOLLERR) ? fd : ARES_SOCKET_BAD);
	}
}

/* Whoever is told may ask again, or forget others: the list is looked through from its front each time. */
static void tell(struct resolver *r)
{
	while (r->over) {
		struct look *l = r->first;
		struct answer a;
		resolver_done *done;
		void *ctx;

		while (!l->over)
			l = l->next;
		a = l->answer;
		done = l->done;
		ctx = l->ctx;
		if (done)
			l->answer = (struct answer){0};	/* moved */
		look_free(l);
		if (done)
			done(ctx, &a);
	}
}

int64_t resolver_tend(struct resolver *r, uint64_t now_ms)
{
	struct timeval t, *next;

	if (!r->flight)
		return -1;
	files_look(r, now_ms);
	if (r->made)
		ares_process_fd(r->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
	tell(r);
	next = r->made && r->flight ? ares_timeout(r->channel, NULL, &t) : NULL;
	return next ? (int64_t)t.tv_sec * 1000 + t.tv_usec / 1000 + 1 : -1;
}

struct resolver_counts resolver_counts(const struct resolver *r)
{
	return r->counts;
}
