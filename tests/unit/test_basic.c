/* dispatch/basic: credentials as clients write them, and as nobody should; the policy. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "dispatch/basic.h"
#include "lib/base/base64.h"
#include "lib/base/mem.h"

static char room[BASIC_ROOM];
static struct str user, password;

static enum basic reads(struct str value)
{
	char *copy = mem_alloc(value.n ? value.n : 1);	/* exact: the sanitizer sees a byte too many */
	enum basic r;

	memcpy(copy, value.p, value.n);
	user = password = (struct str){0};
	r = basic_read((struct str){ copy, value.n }, room, &user, &password);
	mem_free(copy);
	return r;
}

/* RFC 7617 2 and 2.1. */
static void credentials(void **state)
{
	(void)state;
	assert_int_equal(reads(STR("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==")), BASIC_OK);
	assert_true(str_eq(user, STR("Aladdin")) && str_eq(password, STR("open sesame")));
	assert_int_equal(reads(STR("bASIC   dGVzdDoxMjPCow==")), BASIC_OK);
	assert_true(str_eq(user, STR("test")) && str_eq(password, STR("123\xc2\xa3")));
	assert_int_equal(reads(STR("Basic YTpiOmM=")), BASIC_OK);
	assert_true(str_eq(user, STR("a")) && str_eq(password, STR("b:c")));
	assert_int_equal(reads(STR("Basic Og==")), BASIC_OK);
	assert_true(user.n == 0 && password.n == 0);
}

static void others(void **state)
{
	(void)state;
	assert_int_equal(reads(STR("")), BASIC_NONE);
	assert_int_equal(reads(STR("Bearer QWxhZGRpbjpvcGVuIHNlc2FtZQ==")), BASIC_NONE);
	assert_int_equal(reads(STR("Basi")), BASIC_NONE);
	assert_int_equal(reads(STR("Basically QWxh")), BASIC_NONE);
	assert_int_equal(reads(STR("Basic\tQWxhZGRpbjpvcGVuIHNlc2FtZQ==")), BASIC_NONE);
	assert_int_equal(reads(STR("Basic")), BASIC_BAD);
	assert_int_equal(reads(STR("Basic ")), BASIC_BAD);
	assert_int_equal(reads(STR("Basic Aladdin:open sesame")), BASIC_BAD);
	assert_int_equal(reads(STR("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ")), BASIC_BAD);
	assert_int_equal(reads(STR("Basic QWxh QWxh")), BASIC_BAD);
	assert_int_equal(reads(STR("Basic QWxhZGRpbg==")), BASIC_BAD);		/* no ':' */
	assert_int_equal(reads(STR("Basic YWRtaW4AOng=")), BASIC_BAD);		/* admin NUL :x */
	assert_int_equal(reads(STR("Basic YWRtaW46eA0K")), BASIC_BAD);		/* admin:x CR LF */
	assert_int_equal(reads(STR("Basic YTp/")), BASIC_BAD);			/* a: DEL */
}

static void lengths(void **state)
{
	char value[1000];

	(void)state;
	memcpy(value, "Basic ", 6);
	for (size_t n = 0; n + 4 < sizeof value - 6; n += 4) {
		memcpy(value + 6 + n, "YWFh", 4);	/* aaa */
		assert_int_equal(reads((struct str){ value, 6 + n + 4 }),
				 BASE64_BYTES(n + 4) > BASIC_ROOM ? BASIC_LONG : BASIC_BAD);
	}
	for (size_t n = 0; n < 680; n += 4)
		memcpy(value + 6 + n, "YWFh", 4);
	memcpy(value + 6 + 340, "Ojpi", 4);	/* 255 a, then ::b */
	assert_int_equal(reads((struct str){ value, 6 + 680 }), BASIC_OK);
	assert_int_equal(user.n, 255);
	assert_int_equal(password.n, 254);
	memcpy(value + 6 + 680, "YWE=", 4);
	assert_int_equal(reads((struct str){ value, 6 + 684 }), BASIC_LONG);
	memcpy(value + 6 + 340, "YTpi", 4);	/* 256 a, then :b */
	assert_int_equal(reads((struct str){ value, 6 + 680 }), BASIC_LONG);
}

/* --- the policy --- */

#define HASH "{SHA}L55TUjtiq8FBorTWAZ0jy6g129A="

static struct policy_part *made(const char *users, struct basic_spec s)
{
	struct snapshot_error err = {0};
	struct htpasswd *h = htpasswd_new(str_of(users), NULL);
	struct policy_part *p;

	assert_non_null(h);
	s.users = h;
	p = basic_new(&s, &err);
	htpasswd_unref(h);
	if (!p)
		fail_msg("%s", err.text);
	return p;
}

static void policy(void **state)
{
	struct policy_part *p = made("a:" HASH, (struct basic_spec){ .realm = STR("the \"inner\" \\ room"),
		.user_header = STR("X-User"), .forward = true });
	const struct basic_auth *b = (const struct basic_auth *)p;

	(void)state;
	assert_true(str_eq(b->challenge, STR("Basic realm=\"the \\\"inner\\\" \\\\ room\", charset=\"UTF-8\"")));
	assert_true(str_eq(b->user_header, STR("X-User")) && b->forward);
	assert_int_equal(htpasswd_count(b->users), 1);
	policy_part_unref(p);
}

static void the_same_and_another(void **state)
{
	const struct { const char *users; struct basic_spec s; bool same; } rows[] = {
		{ "a:" HASH, { .realm = STR("r"), .user_header = STR("x-user") }, true },
		{ "b:" HASH, { .realm = STR("r"), .user_header = STR("X-User") }, false },
		{ "a:" HASH, { .realm = STR("s"), .user_header = STR("X-User") }, false },
		{ "a:" HASH, { .realm = STR("r") }, false },
		{ "a:" HASH, { .realm = STR("r"), .user_header = STR("X-User"), .forward = true }, false },
	};
	struct policy_part *p = made("a:" HASH, (struct basic_spec){ .realm = STR("r"), .user_header = STR("X-User") });

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct policy_part *q = made(rows[i].users, rows[i].s);

		assert_int_equal(policy_part_same(p, q), rows[i].same);
		policy_part_unref(q);
	}
	policy_part_unref(p);
}

static void a_policy_refused(void **state)
{
	struct htpasswd *h = htpasswd_new(STR("a:" HASH), NULL);
	struct snapshot_error err = {0};

	(void)state;
	assert_null(basic_new(&(struct basic_spec){ .users = h, .realm = STR("a\nb") }, &err));
	assert_int_equal(err.err, ERR_SYNTAX);
	assert_null(basic_new(&(struct basic_spec){ .users = h, .realm = STR("r"), .user_header = STR("X User") }, NULL));
	mem_fail_from(1);
	assert_null(basic_new(&(struct basic_spec){ .users = h, .realm = STR("r") }, &err));
	mem_fail_from(0);
	assert_int_equal(err.err, ERR_MEM);
	htpasswd_unref(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(credentials),
		cmocka_unit_test(others),
		cmocka_unit_test(lengths),
		cmocka_unit_test(policy),
		cmocka_unit_test(the_same_and_another),
		cmocka_unit_test(a_policy_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
