/* pages: what is needed again is kept, what is not goes back, and the budget knows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lib/base/mem.h"
#include "lib/base/pages.h"

#define SIZE ((size_t)16384)

static void kept_and_given_back(void **state)
{
	struct budget_root root;
	struct budget budget;
	struct pages p;
	void *chunk[8];

	(void)state;
	budget_root_init(&root, 0);
	budget_init(&budget, &root);
	pages_init(&p, SIZE, &budget);
	for (int i = 0; i < 8; i++) {
		chunk[i] = pages_get(&p);
		assert_non_null(chunk[i]);
		assert_int_equal((uintptr_t)chunk[i] % SIZE, 0);
		memset(chunk[i], 0xab, SIZE);
	}
	assert_int_equal(budget.used, 8 * SIZE);
	for (int i = 0; i < 8; i++)
		pages_put(&p, chunk[i]);
	assert_int_equal(p.n, 8);
	assert_int_equal(budget.used, 8 * SIZE);	/* still ours */

	pages_trim(&p);		/* they have only just come */
	assert_int_equal(p.n, 8);
	for (int i = 0; i < 3; i++)
		chunk[i] = pages_get(&p);
	for (int i = 0; i < 3; i++)
		pages_put(&p, chunk[i]);
	pages_trim(&p);		/* three were needed */
	assert_int_equal(p.n, 3);
	assert_int_equal(budget.used, 3 * SIZE);
	pages_trim(&p);
	assert_int_equal(p.n, 0);
	assert_int_equal(budget.used, 0);
	pages_fini(&p);
	budget_fini(&budget);
}

static void no_memory(void **state)
{
	struct budget_root root;
	struct budget budget;
	struct pages p;

	(void)state;
	budget_root_init(&root, SIZE);
	budget_init(&budget, &root);
	pages_init(&p, SIZE, &budget);
	mem_fail_from(1);
	assert_null(pages_get(&p));
	mem_fail_from(0);
	assert_int_equal(budget.used, 0);

	void *chunk = pages_get(&p);
	assert_non_null(chunk);
	assert_null(pages_get(&p));	/* the budget is spent */
	pages_put(&p, chunk);
	pages_fini(&p);
	assert_int_equal(budget.used, 0);
	budget_fini(&budget);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(kept_and_given_back), cmocka_unit_test(no_memory) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
