/* The part of a policy that says what is compressed: a copy, compared by what it says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "dispatch/encoding.h"
#include "lib/base/mem.h"

static struct str types[] = {{"text/*", 6}, {"image/svg+xml", 13}};
static const struct encoding model = {.min_size = 1000, .codings = {3, 1}, .n_codings = 2, .level = 1, .n_types = 2, .types = types};

static void test_it_keeps_nothing_of_its_specification(void **state)
{
	char text[] = "text/*";
	struct str type = {text, 6};
	struct encoding spec = model;
	const struct encoding *e;

	(void)state;
	spec.types = &type;
	spec.n_types = 1;
	e = (const struct encoding *)encoding_new(&spec);
	assert_non_null(e);
	memset(text, 'x', 6);
	type.n = 0;
	assert_true(e->n_types == 1 && str_eq(e->types[0], STR("text/*")));
	assert_true(e->min_size == 1000 && e->level == 1 && e->n_codings == 2 && e->codings[0] == 3 && e->codings[1] == 1);
	policy_part_unref((struct policy_part *)(uintptr_t)e);
	spec.n_types = 0;
	e = (const struct encoding *)encoding_new(&spec);
	assert_non_null(e);
	policy_part_unref((struct policy_part *)(uintptr_t)e);
}

static void test_it_is_the_same_when_it_says_the_same(void **state)
{
	struct policy_part *a = encoding_new(&model), *b = encoding_new(&model);

	(void)state;
	assert_true(a && b && policy_part_same(a, b));
	policy_part_unref(b);
#define OTHER(change) \
	do { \
		struct encoding other = model; \
		other.change; \
		b = encoding_new(&other); \
		assert_true(b && !policy_part_same(a, b) && !policy_part_same(b, a)); \
		policy_part_unref(b); \
	} while (0)
	OTHER(min_size = 1001);
	OTHER(level = 2);
	OTHER(n_codings = 1);
	OTHER(codings[1] = 2);
	OTHER(n_types = 1);
	OTHER(types = ((struct str[]){{"text/*", 6}, {"image/svg", 9}}));
	policy_part_unref(a);
	mem_fail_from(1);
	assert_null(encoding_new(&model));
	mem_fail_from(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_it_keeps_nothing_of_its_specification),
		cmocka_unit_test(test_it_is_the_same_when_it_says_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
