/* Door: what becomes of an answer.  Pure: time and chance are arguments; owns nothing.  Called by proxy/names.c. */
#include "health/name.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

bool name_usable(const uint8_t ip[16], bool ip6)
{
	static const uint8_t zero[16];

	if (!ip6)
		return ip[0] != 0 && ip[0] < 224;
	if (memcmp(ip, zero, 15) == 0 && ip[15] == 0)
		return false;
	if (ip[0] == 0xff || (ip[0] == 0xfe && (ip[1] & 0xc0) == 0x80))
		return false;
	return memcmp(ip, zero, 10) != 0 || ip[10] != 0xff || ip[11] != 0xff;
}

/* --- records in order --- */

static int ip_compare(const void *a, const void *b)
{
	return memcmp(a, b, 16);
}

static int srv_compare(const void *a, const void *b)
{
	const struct answer_srv *x = a, *y = b;
	int rc;

	if (x->priority != y->priority)
		return x->priority < y->priority ? -1 : 1;
	rc = strcmp(x->target, y->target);
	if (rc)
		return rc;
	if (x->port != y->port)
		return x->port < y->port ? -1 : 1;
	return (x->weight < y->weight) - (x->weight > y->weight);	/* of two alike the heavier one stays */
}

static bool srv_same_place(const struct answer_srv *a, const struct answer_srv *b)
{
	return a->priority == b->priority && a->port == b->port && strcmp(a->target, b->target) == 0;
}

static void ip_tidy(struct answer_part *p, bool ip6, uint32_t *unusable)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->n; i++) {
		if (name_usable(p->ip[i], ip6))
			memmove(p->ip[n++], p->ip[i], 16);
		else
			++*unusable;
	}
	p->n = n;
	if (!n)
		return;
	qsort(p->ip, n, 16, ip_compare);
	n = 1;
	for (uint32_t i = 1; i < p->n; i++)
		if (memcmp(p->ip[i], p->ip[n - 1], 16) != 0)
			memmove(p->ip[n++], p->ip[i], 16);
	p->n = n;
}

static void srv_tidy(struct answer_part *p)
{
	uint32_t n = 1;

	if (!p->n)
		return;
	qsort(p->srv, p->n, sizeof(*p->srv), srv_compare);
	for (uint32_t i = 1; i < p->n; i++) {
		if (srv_same_place(&p->srv[i], &p->srv[n - 1]))
			mem_free(p->srv[i].target);
		else
			p->srv[n++] = p->srv[i];
	}
	p->n = n;
}

/* Cuts a part to `most`, which are always the same of the same, and gives back what it does not need. */
static void part_cut(struct answer_part *p, bool srv, uint32_t most, uint32_t *left_out)
{
	size_t size = srv ? sizeof(*p->srv) : 16;
	void *less;

	for (uint32_t i = most; srv && i < p->n; i++)
		mem_free(p->srv[i].target);
	if (p->n > most) {
		*left_out += p->n - most;
		p->n = most;
	}
	less = p->n ? mem_realloc(p->ip, p->n * size) : NULL;
	if (less)
		p->ip = less;
}

static bool part_same(const struct answer_part *a, const struct answer_part *b, bool srv)
{
	if (a->n != b->n)
		return false;
	if (!srv)
		return a->n == 0 || memcmp(a->ip, b->ip, (size_t)a->n * 16) == 0;
	for (uint32_t i = 0; i < a->n; i++)
		if (!srv_same_place(&a->srv[i], &b->srv[i]) || a->srv[i].weight != b->srv[i].weight)
			return false;
	return true;
}

/* --- what is known --- */

/* Puts *from in the place of *to; true when it is another one. */
static bool part_take(struct answer_part *to, struct answer_part *from, bool srv)
{
	struct answer_part old = *to;
	bool changed = !part_same(to, from, srv);

	*to = *from;
	*from = (struct answer_part){0};
	answer_part_fini(&old, srv);
	return changed;
}

static bool parts_empty(struct answer_part have[2], bool srv)
{
	bool had = have[0].n + have[1].n > 0;

	for (int i = 0; i < 2; i++)
		answer_part_fini(&have[i], srv);
	return had;
}

static enum name_result result_of(const struct answer *a)
{
	bool failed = false;

	for (int i = 0; i < 2; i++) {
		if (a->part[i].said == ANSWER_RECORDS)
			return NAME_GOOD;
		failed = failed || a->part[i].said == ANSWER_FAILED;
	}
	return failed ? NAME_FAILED : NAME_MISSING;
}

static void state_note(struct name_state *s, enum name_result result, const struct answer *a, uint64_t now_ms)
{
	s->told = true;
	s->out = result != NAME_GOOD;
	if (result != NAME_GOOD) {
		s->failures += s->failures < UINT8_MAX;
		return;
	}
	s->failures = 0;
	s->good_ms = now_ms;
	s->ttl = UINT32_MAX;
	for (int i = 0; i < 2; i++)
		if (a->part[i].said == ANSWER_RECORDS && a->part[i].ttl < s->ttl)
			s->ttl = a->part[i].ttl;
}

struct name_news name_take(struct name_state *s, struct answer_part have[2], struct answer *a, bool srv,
			   const struct name_policy *p, uint64_t now_ms)
{
	struct name_news news = { .why = a->why };

	for (int i = 0; i < 2; i++) {
		struct answer_part *part = &a->part[i];

		if (part->said != ANSWER_RECORDS)
			continue;
		if (srv)
			srv_tidy(part);
		else
			ip_tidy(part, i == 1, &news.unusable);
		part_cut(part, srv, p->most, &news.left_out);
		if (!part->n) {
			answer_part_fini(part, srv);
			part->said = ANSWER_FAILED;
			news.why = "no usable address";
		}
	}
	news.result = result_of(a);
	state_note(s, news.result, a, now_ms);
	for (int i = 0; i < 2 && news.result == NAME_GOOD; i++)
		if (a->part[i].said == ANSWER_RECORDS || a->part[i].said == ANSWER_NONE)
			news.changed = part_take(&have[i], &a->part[i], srv) || news.changed;
	if (news.result == NAME_MISSING && p->drop)
		news.changed = parts_empty(have, srv);
	parts_empty(a->part, srv);
	return news;
}

bool name_expire(struct name_state *s, struct answer_part have[2], bool srv, const struct name_policy *p, uint64_t now_ms)
{
	return p->stale && s->out && s->good_ms && now_ms - s->good_ms >= p->stale && parts_empty(have, srv);
}

uint32_t name_group(const struct answer_part *srv, uint32_t i)
{
	uint32_t n = 0;

	while (i + n < srv->n && srv->srv[i + n].priority == srv->srv[i].priority)
		n++;
	return n;
}

/* --- when --- */

static uint64_t between(uint64_t low, uint64_t high, uint32_t random)
{
	return low + random % (high - low + 1);
}

uint64_t name_due(const struct name_state *s, const struct name_policy *p, uint64_t now_ms, uint32_t random)
{
	uint64_t ttl = s->ttl * 1000ull, low, due;

	if (!s->told)
		return now_ms;
	if (!s->out) {
		ttl = ttl < p->ttl_min ? p->ttl_min : ttl > p->ttl_max ? p->ttl_max : ttl;
		low = ttl - ttl / 10 < p->ttl_min ? p->ttl_min : ttl - ttl / 10;
		if (low > ttl)
			low = ttl;
		return now_ms + between(low, ttl + (ttl / 10 < NAME_LATE_MS ? ttl / 10 : NAME_LATE_MS), random);
	}
	ttl = s->failures > 4 ? NAME_RETRY_LAST_MS : NAME_RETRY_FIRST_MS << (s->failures ? s->failures - 1 : 0);
	due = now_ms + between(ttl - ttl / 4, ttl, random);
	if (p->stale && s->good_ms && s->good_ms + p->stale > now_ms && s->good_ms + p->stale < due)
		due = s->good_ms + p->stale;
	return due;
}
