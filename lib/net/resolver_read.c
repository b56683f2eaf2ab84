/* Door: answers of name servers, which are written by strangers: c-ares takes records out of them, and what is counted here
 * bounds what it may be made to do.  Owns nothing. */
#include "lib/net/resolver.h"

#define CARES_NO_DEPRECATED	/* what newer ones would rather have, 1.18 has not */
#include <ares.h>
#include <arpa/nameser.h>
#include <string.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"

#define HEAD 12
#define QUESTION_TAIL 4
#define RECORD_TAIL 10
#define IP4_RECORD 16		/* bytes at least */
#define IP6_RECORD 28

static unsigned two(const uint8_t *p)
{
	return (unsigned)p[0] << 8 | p[1];
}

/* Behind the name at `at`; 0: it is none. */
static size_t name_skip(const uint8_t *p, size_t n, size_t at)
{
	while (at < n) {
		if (p[at] >= 0xc0)
			return at + 2 <= n ? at + 2 : 0;
		if (p[at] > 63)
			return 0;
		if (!p[at])
			return at + 1;
		at += 1u + p[at];
	}
	return 0;
}

/* The least time to live of all records in the answer, and how many of them are aliases; false: it is not whole. */
static bool records_count(const uint8_t *p, size_t n, uint32_t *ttl, unsigned *aliases)
{
	size_t at = HEAD;

	*ttl = UINT32_MAX;
	*aliases = 0;
	if (n < HEAD)
		return false;
	for (unsigned i = two(p + 4); i; i--) {
		at = name_skip(p, n, at);
		if (!at || n - at < QUESTION_TAIL)
			return false;
		at += QUESTION_TAIL;
	}
	for (unsigned i = two(p + 6); i; i--) {
		uint32_t one;

		at = name_skip(p, n, at);
		if (!at || n - at < RECORD_TAIL || n - at - RECORD_TAIL < two(p + at + 8))
			return false;
		one = (uint32_t)two(p + at + 4) << 16 | two(p + at + 6);
		if (one > INT32_MAX)
			one = 0;	/* RFC 2181 8 */
		if (one < *ttl)
			*ttl = one;
		*aliases += two(p + at) == ns_t_cname;
		at += RECORD_TAIL + two(p + at + 8);
	}
	return true;
}

static enum answer_said ip4_read(const uint8_t *p, size_t n, struct answer_part *to)
{
	int count = (int)(n / IP4_RECORD) + 1, rc;
	struct ares_addrttl *all = mem_alloc((size_t)count * sizeof(*all));

	if (!all)
		return ANSWER_FAILED;
	rc = ares_parse_a_reply(p, (int)n, NULL, all, &count);
	if (rc == ARES_SUCCESS && count > 0)
		to->ip = mem_zalloc((size_t)count * 16);
	for (int i = 0; to->ip && i < count; i++)
		memcpy(to->ip[to->n++], &all[i].ipaddr, 4);
	mem_free(all);
	return to->n ? ANSWER_RECORDS : rc == ARES_ENODATA || (rc == ARES_SUCCESS && !count) ? ANSWER_NONE : ANSWER_FAILED;
}

static enum answer_said ip6_read(const uint8_t *p, size_t n, struct answer_part *to)
{
	int count = (int)(n / IP6_RECORD) + 1, rc;
	struct ares_addr6ttl *all = mem_alloc((size_t)count * sizeof(*all));

	if (!all)
		return ANSWER_FAILED;
	rc = ares_parse_aaaa_reply(p, (int)n, NULL, all, &count);
	if (rc == ARES_SUCCESS && count > 0)
		to->ip = mem_zalloc((size_t)count * 16);
	for (int i = 0; to->ip && i < count; i++)
		memcpy(to->ip[to->n++], &all[i].ip6addr, 16);
	mem_free(all);
	return to->n ? ANSWER_RECORDS : rc == ARES_ENODATA || (rc == ARES_SUCCESS && !count) ? ANSWER_NONE : ANSWER_FAILED;
}

/* A name that c-ares has written, which escapes what is no letter: one that needs that is no host. */
static char *target_of(const char *host)
{
	size_t n = strlen(host);
	char *p;

	if (n && host[n - 1] == '.')
		n--;
	if (n > RESOLVER_NAME_MAX || memchr(host, '\\', n))
		return NULL;
	p = mem_strndup(host, n);
	for (size_t i = 0; p && i < n; i++)
		if (p[i] >= 'A' && p[i] <= 'Z')
			p[i] = (char)(p[i] + 32);
	return p;
}

static enum answer_said srv_read(const uint8_t *p, size_t n, struct answer_part *to)
{
	struct ares_srv_reply *all = NULL;
	int rc = ares_parse_srv_reply(p, (int)n, &all);
	size_t count = 0;

	for (struct ares_srv_reply *s = all; s; s = s->next)
		count++;
	to->srv = count ? mem_zalloc(count * sizeof(*to->srv)) : NULL;
	for (struct ares_srv_reply *s = all; to->srv && s; s = s->next) {
		char *target = s->port && *s->host ? target_of(s->host) : NULL;	/* "." is none: RFC 2782 */

		if (target && *target)
			to->srv[to->n++] = (struct answer_srv){ s->priority, s->weight, s->port, target };
		else
			mem_free(target);
	}
	if (all)
		ares_free_data(all);
	if (to->n)
		return ANSWER_RECORDS;
	mem_free(to->srv);
	to->srv = NULL;
	return rc == ARES_ENODATA || rc == ARES_SUCCESS ? ANSWER_NONE : ANSWER_FAILED;
}

struct answer_part resolver_read(const uint8_t *p, size_t n, unsigned type, const char **why)
{
	struct answer_part part = {0};
	unsigned aliases;
	uint32_t ttl;

	part.said = ANSWER_FAILED;
	if (n > UINT16_MAX || !records_count(p, n, &ttl, &aliases)) {
		*why = "an answer that is not whole";
		return part;
	}
	if (aliases > RESOLVER_ALIASES) {
		*why = "too many aliases one behind another";
		return part;
	}
	part.said = (uint8_t)(type == ANSWER_IP4 ? ip4_read(p, n, &part) : type == ANSWER_IP6 ? ip6_read(p, n, &part) : srv_read(p, n, &part));
	part.ttl = ttl == UINT32_MAX ? 0 : ttl;
	if (part.said == ANSWER_FAILED)
		*why = "an answer that makes no sense";
	return part;
}
