/* dispatch/htpasswd: the file's lines, its errors by line, finding, sharing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "dispatch/htpasswd.h"
#include "lib/base/mem.h"

#define A "$apr1$12345678$zbBEMgfXu4mAHPrplrtNt."
#define B "$2y$04$V62p9WKfsTCtPfXgfCy54ut77Bbwouhzw/SVRuHgF.F2Zz4uNQLgG"
#define C "{SHA}L55TUjtiq8FBorTWAZ0jy6g129A="

static struct htpasswd *made(struct str text)
{
	struct htpasswd_error err = {0};
	struct htpasswd *h = htpasswd_new(text, &err);

	if (!h)
		fail_msg("line %u: %s", err.line, err.text);
	return h;
}

static void has(const struct htpasswd *h, const char *user, const char *hash)
{
	struct str found;

	assert_true(htpasswd_find(h, str_of(user), &found));
	assert_true(str_eq(found, str_of(hash)));
}

static void lines(void **state)
{
	struct htpasswd *h = made(STR("\xef\xbb\xbf# users\r\n\r\nalice:" A "\r\n  bob:" B ":of the team:x\t \n\n#x:y\n"
				      "\tj\xc3\xb6rg m\xc3\xbcller@example.com:" C));

	(void)state;
	assert_int_equal(htpasswd_count(h), 3);
	has(h, "alice", A);
	has(h, "bob", B);
	has(h, "j\xc3\xb6rg m\xc3\xbcller@example.com", C);
	htpasswd_unref(h);
}

/* An unknown user gets a hash to verify with: always the same one. */
static void unknown_users(void **state)
{
	struct htpasswd *h = made(STR("alice:" A "\nbob:" B "\n"));
	unsigned a = 0, b = 0;

	(void)state;
	for (int i = 0; i < 200; i++) {
		char name[16];
		struct str user = { name, (size_t)snprintf(name, sizeof name, "nobody%d", i) }, hash, again;

		assert_false(htpasswd_find(h, user, &hash));
		assert_false(htpasswd_find(h, user, &again));
		assert_ptr_equal(hash.p, again.p);
		a += str_eq(hash, STR(A));
		b += str_eq(hash, STR(B));
	}
	assert_int_equal(a + b, 200);
	assert_true(a > 20 && b > 20);
	assert_false(htpasswd_find(h, STR(""), &(struct str){0}));
	assert_false(htpasswd_find(h, STR("ALICE"), &(struct str){0}));
	assert_false(htpasswd_find(h, STR("alice\0"), &(struct str){0}));
	assert_false(htpasswd_find(h, STR("ali"), &(struct str){0}));
	htpasswd_unref(h);
}

static void refuses(struct str text, unsigned line, const char *part)
{
	struct htpasswd_error err = {0};

	assert_null(htpasswd_new(text, &err));
	if (err.line != line || !strstr(err.text, part))
		fail_msg("line %u: %s", err.line, err.text);
	assert_int_equal(err.err, ERR_SYNTAX);
	assert_null(htpasswd_new(text, NULL));
}

static void errors_have_a_line(void **state)
{
	char name[HTPASSWD_USER_MAX + 2 + sizeof A];

	(void)state;
	refuses(STR(""), 0, "no user");
	refuses(STR("\n# nobody\r\n\r\n"), 0, "no user");
	refuses(STR("alice:" A "\n\nbob\n"), 3, "no ':'");
	refuses(STR("alice:" A "\n:" A "\n"), 2, "name of the user is missing");
	refuses(STR("alice :" A "\n"), 1, "no space at its end");
	refuses(STR("alice:\n"), 1, "hash of the password is missing");
	refuses(STR("alice:" A "\n# twice\nalice:" B "\n"), 3, "already, in line 1");
	refuses(STR("alice:secret\n"), 1, "plain text");
	refuses(STR("a\0lice:" A "\n"), 1, "no control characters");
	refuses(STR("alice:" A "\0\n"), 1, "damaged");
	refuses(STR("alice:" A "\rbob:" B "\r"), 1, "damaged");
	memset(name, 'n', sizeof name);
	memcpy(name + HTPASSWD_USER_MAX + 1, ":" A, sizeof A);
	refuses((struct str){ name, sizeof name - 1 }, 1, "at most 255 bytes");
	htpasswd_unref(made((struct str){ name + 1, sizeof name - 2 }));
}

static void errors_tell_no_secret(void **state)
{
	struct htpasswd_error err = {0};

	(void)state;
	assert_null(htpasswd_new(STR("alice:hunter2"), &err));
	assert_null(strstr(err.text, "hunter2"));
	assert_null(htpasswd_new(STR("alicehunter2"), &err));
	assert_null(strstr(err.text, "hunter2"));
}

static void a_file_too_large_is_refused(void **state)
{
	struct htpasswd_error err = {0};
	char *text = mem_alloc(HTPASSWD_TEXT_MAX + 1);

	(void)state;
	memset(text, '\n', HTPASSWD_TEXT_MAX + 1);
	memcpy(text, "alice:" A, sizeof "alice:" A - 1);
	htpasswd_unref(made((struct str){ text, HTPASSWD_TEXT_MAX }));
	assert_null(htpasswd_new((struct str){ text, HTPASSWD_TEXT_MAX + 1 }, &err));
	assert_int_equal(err.err, ERR_LIMIT);
	assert_non_null(strstr(err.text, "1024 KiB"));
	mem_free(text);
}

static void many_users(void **state)
{
	enum { USERS = 10000 };
	char *text = mem_alloc(HTPASSWD_TEXT_MAX);
	size_t n = 0;
	struct htpasswd *h;

	(void)state;
	for (int i = 0; i < USERS; i++)
		n += (size_t)sprintf(text + n, "user%d:%s\n", i, i % 2 ? A : C);
	h = made((struct str){ text, n });
	mem_free(text);
	assert_int_equal(htpasswd_count(h), USERS);
	for (int i = 0; i < USERS; i++) {
		char name[16];

		sprintf(name, "user%d", i);
		has(h, name, i % 2 ? A : C);
	}
	htpasswd_unref(h);
}

static void sharing(void **state)
{
	struct htpasswd *a = made(STR("alice:" A "\n")), *b = made(STR("alice:" A "\n")), *c = made(STR("alice:" C "\n"));

	(void)state;
	assert_true(htpasswd_equal(a, b));
	assert_false(htpasswd_equal(a, c));
	assert_true(htpasswd_id(a) != htpasswd_id(b));
	assert_ptr_equal(htpasswd_ref(a), a);
	htpasswd_unref(a);
	has(a, "alice", A);
	htpasswd_unref(a);
	htpasswd_unref(b);
	htpasswd_unref(c);
	htpasswd_unref(NULL);
}

static void no_memory(void **state)
{
	struct htpasswd_error err = {0};

	(void)state;
	mem_fail_from(1);
	assert_null(htpasswd_new(STR("alice:" A), &err));
	mem_fail_from(0);
	assert_int_equal(err.err, ERR_MEM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines),
		cmocka_unit_test(unknown_users),
		cmocka_unit_test(errors_have_a_line),
		cmocka_unit_test(errors_tell_no_secret),
		cmocka_unit_test(a_file_too_large_is_refused),
		cmocka_unit_test(many_users),
		cmocka_unit_test(sharing),
		cmocka_unit_test(no_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
