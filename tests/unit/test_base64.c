/* lib/base/base64: the vectors of RFC 4648 10, and what is not base64. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/base/base64.h"
#include "lib/base/mem.h"

static void known_answers(void **state)
{
	const struct { const char *in; struct str out; } known[] = {
		{ "", STR("") }, { "Zg==", STR("f") }, { "Zm8=", STR("fo") }, { "Zm9v", STR("foo") },
		{ "Zm9vYg==", STR("foob") }, { "Zm9vYmE=", STR("fooba") }, { "Zm9vYmFy", STR("foobar") },
		{ "+/+/", STR("\xfb\xff\xbf") }, { "AAA=", STR("\0\0") },
	};

	(void)state;
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		char out[16];
		size_t n = 99;

		assert_int_equal(base64_decode(str_of(known[i].in), out, &n), OK);
		assert_true(str_eq((struct str){ out, n }, known[i].out));
	}
}

/* Exact heap blocks: the sanitizer sees a byte too many. */
static void what_is_none_is_refused(void **state)
{
	const struct str bad[] = {
		STR("Z"), STR("Zg"), STR("Zg="), STR("Zm8"), STR("Zm9vY"), STR("===="), STR("Z==="), STR("Zg=v"), STR("Zg==Zg=="),
		STR("Zm9=YmFy"), STR("Zh=="), STR("Zm9="), STR("Zm 9"), STR("Zm-_"), STR("Zm\n9"), STR("Zm9\0"), STR(" Zm9"),
		STR("Zm\xff" "9"), STR("=Zm9"),
	};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		char *in = mem_alloc(bad[i].n), *out = mem_alloc(BASE64_BYTES(bad[i].n) + 1);
		size_t n = 99;

		memcpy(in, bad[i].p, bad[i].n);
		assert_int_equal(base64_decode((struct str){ in, bad[i].n }, out, &n), ERR_SYNTAX);
		assert_int_equal(n, 99);
		mem_free(in);
		mem_free(out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_answers),
		cmocka_unit_test(what_is_none_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
