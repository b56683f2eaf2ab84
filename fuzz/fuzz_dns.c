/* Answers of name servers, and hosts files, of any bytes.
 *
 * The first byte says what is asked for, the rest is the answer, in a block of its size: what is read of it is
 * whole, within bounds, and the policy makes of it records in order, none twice; taken again they change nothing.  The same bytes
 * as a hosts file give no more addresses than there is room for. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "health/name.h"
#include "lib/base/check.h"
#include "lib/net/hosts.h"
#include "lib/net/resolver.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct answer read_block(const uint8_t *data, size_t size, unsigned type)
{
	struct answer a = {0};
	uint8_t *block = malloc(size ? size : 1);

	CHECK(block);
	if (size)
		memcpy(block, data, size);
	a.part[type == ANSWER_IP6] = resolver_read(block, size, type, &a.why);
	free(block);
	return a;
}

static void check_part(const struct answer_part *p, unsigned type)
{
	CHECK(p->said == ANSWER_RECORDS || p->said == ANSWER_NONE || p->said == ANSWER_FAILED);
	CHECK((p->said == ANSWER_RECORDS) == (p->n > 0) && p->ttl <= INT32_MAX);
	for (uint32_t i = 0; type == ANSWER_SRV && i < p->n; i++) {
		const struct answer_srv *s = &p->srv[i];
		size_t n = strlen(s->target);

		CHECK(s->port && n && n <= RESOLVER_NAME_MAX);
		for (size_t k = 0; k < n; k++)
			CHECK(s->target[k] < 'A' || s->target[k] > 'Z');
	}
}

static void check_known(const struct answer_part have[2], bool srv, const struct name_policy *p)
{
	for (int i = 0; i < 2; i++) {
		CHECK(have[i].n <= p->most);
		for (uint32_t k = 0; !srv && k < have[i].n; k++) {
			CHECK(name_usable(have[i].ip[k], i));
			CHECK(!k || memcmp(have[i].ip[k - 1], have[i].ip[k], 16) < 0);
		}
	}
	for (uint32_t i = 0, n; srv && i < have[0].n; i += n) {
		n = name_group(&have[0], i);
		CHECK(n && i + n <= have[0].n);
	}
}

static void answers(const uint8_t *data, size_t size, unsigned type)
{
	static const struct name_policy p = { .ttl_min = 5000, .ttl_max = 300000, .most = 8 };
	struct answer_part have[2] = {{0}};
	struct name_state s = {0};
	bool srv = type == ANSWER_SRV;
	struct answer a = read_block(data, size, type);
	uint64_t due;

	check_part(&a.part[type == ANSWER_IP6], type);
	name_take(&s, have, &a, srv, &p, 1000);
	check_known(have, srv, &p);
	due = name_due(&s, &p, 1000, (uint32_t)size * 2654435761u);
	CHECK(due > 1000 && due <= 1000 + p.ttl_max + NAME_LATE_MS);
	a = read_block(data, size, type);
	CHECK(!name_take(&s, have, &a, srv, &p, 2000).changed);
	for (int i = 0; i < 2; i++)
		answer_part_fini(&have[i], srv);
}

static void hosts(const uint8_t *data, size_t size)
{
	static uint8_t ip4[HOSTS_ADDRESSES][16], ip6[HOSTS_ADDRESSES][16];
	size_t n = size < 8 ? size : 8, n4, n6;
	struct hosts h = { .n = size, .text = malloc(size ? size : 1) };

	CHECK(h.text);
	if (size)
		memcpy(h.text, data, size);
	hosts_find(&h, STR("web"), ip4, &n4, ip6, &n6);
	CHECK(n4 <= HOSTS_ADDRESSES && n6 <= HOSTS_ADDRESSES);
	hosts_find(&h, (struct str){ (const char *)data, n }, ip4, &n4, ip6, &n6);
	free(h.text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const unsigned types[] = { ANSWER_IP4, ANSWER_IP6, ANSWER_SRV };

	if (!size)
		return 0;
	if (data[0] % 4 == 3)
		hosts(data + 1, size - 1);
	else
		answers(data + 1, size - 1, types[data[0] % 4]);
	return 0;
}
