/* lib/base/slotq: sizes at each stage, and long random walks against a simple
 * model, with failing allocations and a budget that refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "lib/base/mem.h"
#include "lib/base/slotq.h"

#define ITEM_MAX 1024
#define MODEL_MAX 4096

static struct budget_root root;
static struct budget budget;

static int setup(void **state)
{
	(void)state;
	budget_root_init(&root, 0);
	budget_init(&budget, &root);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	budget_fini(&budget);
	return root.taken != 0;
}

static const size_t sizes[] = {1, 3, 7, 8, 9, 16, 24, 100, 128, 250, 513, 1024};
#define SIZES (sizeof(sizes) / sizeof(*sizes))

static void one_slot_then_a_ring_then_nothing(void **state)
{
	(void)state;
	for (size_t i = 0; i < SIZES; i++) {
		size_t size = sizes[i];
		char item[ITEM_MAX] = {0};
		struct slotq q, zero = {0};
		slotq_init(&q);
		mem_fail_from(0);
		assert_int_equal(slotq_push(&q, item, size, 100 * size, &budget), OK);
		assert_int_equal(mem_fail_count(), size > 8);
		assert_int_equal(slotq_heap(&q, size), size > 8 ? size : 0);
		assert_int_equal(budget.used, size > 8 ? mem_size(q.u.ring) : 0);
		uint32_t ring = 4;
		for (uint32_t n = 2; n <= 100; n++) {
			assert_int_equal(slotq_push(&q, item, size, 100 * size, &budget), OK);
			ring = n > ring ? 2 * ring : ring;
			assert_int_equal(slotq_heap(&q, size), ring * size);
			assert_int_equal(budget.used, mem_size(q.u.ring));
			assert_int_equal(slotq_len(&q), n);
		}
		assert_int_equal(slotq_push(&q, item, size, 100 * size, &budget), ERR_LIMIT);
		while (slotq_pop(&q, item, size, &budget))
			assert_int_equal(budget.used, slotq_len(&q) ? mem_size(q.u.ring) : 0);
		assert_memory_equal(&q, &zero, sizeof(q));
		assert_int_equal(budget.used, 0);
	}
}

static void the_bound_is_in_bytes(void **state)
{
	(void)state;
	char item[ITEM_MAX] = {0};
	struct slotq q;
	slotq_init(&q);
	assert_int_equal(slotq_push(&q, item, 1000, 10, &budget), OK);
	assert_int_equal(slotq_push(&q, item, 1000, 1999, &budget), ERR_LIMIT);
	assert_int_equal(slotq_push(&q, item, 1000, 2000, &budget), OK);
	assert_int_equal(slotq_len(&q), 2);
	slotq_fini(&q, 1000, &budget);
	assert_int_equal(slotq_len(&q), 0);
	assert_int_equal(slotq_push(&q, item, 8, 0, &budget), OK);
	assert_int_equal(slotq_push(&q, item, 8, 0, &budget), ERR_LIMIT);
	slotq_fini(&q, 8, &budget);
}

static void a_burst_is_not_paid_for_until_it_drains(void **state)
{
	(void)state;
	uint64_t v = 0, out;
	struct slotq q;
	slotq_init(&q);
	for (; v < 1000; v++)
		assert_int_equal(slotq_push(&q, &v, 8, 1 << 20, &budget), OK);
	assert_int_equal(slotq_heap(&q, 8), 8192);
	while (slotq_len(&q) > 1)
		assert_true(slotq_pop(&q, &out, 8, &budget));
	assert_true(slotq_heap(&q, 8) <= 1024);
	assert_true(slotq_pop(&q, &out, 8, &budget));
	assert_int_equal(out, 999);
	assert_int_equal(slotq_heap(&q, 8), 0);
}

/* The model: tags in an array.  An item is its tag, followed by bytes made of it. */
struct model {
	uint16_t tag[MODEL_MAX];
	uint32_t len;
};

static void item_fill(unsigned char *item, size_t size, uint16_t tag)
{
	for (size_t i = 0; i < size; i++)
		item[i] = (unsigned char)(i % 2 ? tag >> 8 : tag) ^ (unsigned char)(i / 2 * 31);
}

static void item_check(const unsigned char *item, size_t size, uint16_t tag)
{
	unsigned char want[ITEM_MAX];
	item_fill(want, size, tag);
	assert_memory_equal(item, want, size);
}

static uint32_t seed;

static uint32_t next(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 17;
	seed ^= seed << 5;
	return seed;
}

static void model_remove(struct model *m, uint32_t i)
{
	memmove(&m->tag[i], &m->tag[i + 1], (m->len - i - 1) * sizeof(m->tag[0]));
	m->len--;
}

static int errors[3];

static void push_one(struct slotq *q, struct model *m, size_t size, size_t max)
{
	unsigned char item[ITEM_MAX];
	uint16_t tag = (uint16_t)next();
	struct slotq before = *q;
	bool failing = next() % 16 == 0;
	item_fill(item, size, tag);
	mem_fail_from(failing);
	enum err e = slotq_push(q, item, size, max, &budget);
	size_t calls = mem_fail_count();
	mem_fail_from(0);
	bool over = m->len > 0 && (m->len + 1) * size > max;
	if (over)
		assert_int_equal(e, ERR_LIMIT);
	else if (failing && calls)
		assert_int_equal(e, ERR_MEM);
	else
		assert_true(e == OK || (e == ERR_MEM && root.limit));
	errors[e]++;
	if (e == OK)
		m->tag[m->len++] = tag;
	else
		assert_memory_equal(q, &before, sizeof(before));
}

/* What has waited before goes to the front, whatever there is. */
static void push_front(struct slotq *q, struct model *m, size_t size)
{
	unsigned char item[ITEM_MAX];
	uint16_t tag = (uint16_t)next();
	struct slotq before = *q;
	item_fill(item, size, tag);
	mem_fail_from(next() % 8 == 0);
	enum err e = slotq_push_front(q, item, size, &budget);
	mem_fail_from(0);
	if (e != OK) {
		assert_int_equal(e, ERR_MEM);
		assert_memory_equal(q, &before, sizeof(before));
		return;
	}
	memmove(&m->tag[1], &m->tag[0], m->len++ * sizeof(m->tag[0]));
	m->tag[0] = tag;
}

static void step(struct slotq *q, struct model *m, size_t size, size_t max, unsigned rise)
{
	unsigned char item[ITEM_MAX];
	uint32_t what = next() % 100;
	if (what < rise) {
		push_one(q, m, size, max);
	} else if (what < 92) {
		mem_fail_from(what % 2);	/* a ring that cannot shrink must stay right */
		bool got = slotq_pop(q, item, size, &budget);
		mem_fail_from(0);
		assert_int_equal(got, m->len > 0);
		if (got) {
			item_check(item, size, m->tag[0]);
			model_remove(m, 0);
		}
	} else if (what < 96 && m->len) {
		uint32_t i = next() % m->len;
		slotq_remove(q, i, size, &budget);
		model_remove(m, i);
	} else if (what < 98 && (m->len + 1) * size <= max) {
		push_front(q, m, size);
	} else if (m->len) {
		uint32_t i = next() % m->len;
		item_check(slotq_at(q, i, size), size, m->tag[i]);
	}
	assert_int_equal(slotq_len(q), m->len);
	assert_null(slotq_at(q, m->len, size));
	if (m->len == 0) {
		assert_null(q->u.ring);
		assert_int_equal(budget.used, 0);
	} else {
		assert_int_equal(budget.used, slotq_heap(q, size) ? mem_size(q->u.ring) : 0);
		assert_true(slotq_heap(q, size) == 0 || m->len * size <= slotq_heap(q, size));
	}
}

static void walk(size_t size, int steps)
{
	static struct model m;
	struct slotq q;
	slotq_init(&q);
	m.len = 0;
	size_t max = size * (1 + next() % 600);
	unsigned rise = 50;
	for (int i = 0; i < steps; i++) {
		if (i % 512 == 0)
			rise = 25 + next() % 50;
		if (i % 4096 == 0)
			max = size * (1 + next() % (i % 8192 ? 8 : 600));
		step(&q, &m, size, max, rise);
	}
	for (uint32_t i = 0; i < m.len; i++)
		item_check(slotq_at(&q, i, size), size, m.tag[i]);
	slotq_fini(&q, size, &budget);
	assert_int_equal(budget.used, 0);
}

static void random_walks(void **state)
{
	(void)state;
	seed = 12345;
	memset(errors, 0, sizeof(errors));
	for (size_t i = 0; i < SIZES; i++)
		walk(sizes[i], 100000);
	for (int i = 0; i < 20; i++)
		walk(1 + next() % ITEM_MAX, 10000);
	assert_true(errors[OK] > 100000 && errors[ERR_MEM] > 1000 && errors[ERR_LIMIT] > 1000);
}

/* Every allocation beyond a small budget is refused; the queue goes on. */
static void random_walks_with_a_small_budget(void **state)
{
	(void)state;
	seed = 54321;
	memset(errors, 0, sizeof(errors));
	root.limit = 3000;
	for (size_t i = 0; i < SIZES; i++)
		walk(sizes[i], 20000);
	assert_true(budget.refused > 1000);
	assert_true(root.peak <= 3000);
	budget_settle(&budget);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(one_slot_then_a_ring_then_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(the_bound_is_in_bytes, setup, teardown),
		cmocka_unit_test_setup_teardown(a_burst_is_not_paid_for_until_it_drains, setup, teardown),
		cmocka_unit_test_setup_teardown(random_walks, setup, teardown),
		cmocka_unit_test_setup_teardown(random_walks_with_a_small_budget, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
