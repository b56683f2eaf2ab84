/* dispatch/auth: what the service sees, what its answers mean, where one signs in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "dispatch/auth.h"
#include "lib/base/mem.h"

static struct arena arena;

static int begin(void **state)
{
	(void)state;
	arena_init(&arena, NULL, 0, NULL);
	return 0;
}

static int end(void **state)
{
	(void)state;
	arena_fini(&arena);
	return 0;
}

static struct auth *made(struct auth_spec spec)
{
	struct policy_part *p = auth_new(&spec);

	assert_non_null(p);
	return (struct auth *)p;
}

static void is(struct str s, const char *text)
{
	assert_int_equal(s.n, strlen(text));
	assert_memory_equal(s.p, text, s.n);
}

static void keeps_copies(void **state)
{
	char path[] = "/verify?x", name[] = "X-One";
	struct str items[2] = {{name, 5}, STR("X-Two")};
	struct auth_spec spec = {
		.service = 3, .method = STR("GET"), .path = {path, 9}, .request = {items, 1}, .response = {items, 2},
		.sign_in = STR("/in"), .set_cookie = true, .timeout_ms = 7,
	};
	struct auth *a = made(spec);

	(void)state;
	memset(path, '-', 9);
	memset(name, '-', 5);
	is(a->spec.path, "/verify?x");
	is(a->spec.request.items[0], "X-One");
	is(a->spec.response.items[1], "X-Two");
	is(a->spec.sign_in, "/in");
	assert_true(a->spec.set_cookie && a->spec.timeout_ms == 7 && a->service.index == 3);
	policy_part_unref(&a->part);
	mem_fail_from(1);
	assert_null(auth_new(&spec));
	mem_fail_from(0);
}

/* Any difference makes another part, so that a new configuration takes hold. */
static void same_or_not(void **state)
{
	struct str x = STR("X-A"), y = STR("x-a"), z = STR("X-B");
	struct auth_spec base = {.method = STR("GET"), .path = STR("/"), .request = {&x, 1}, .response = {&x, 1}, .timeout_ms = 5};
	struct auth_spec other[9];
	struct auth *a = made(base), *b;

	(void)state;
	for (unsigned i = 0; i < 9; i++)
		other[i] = base;
	other[0].service = 1;
	other[1].method = STR("POST");
	other[2].path = STR("/x");
	other[3].all_fields = true;
	other[4].request = (struct auth_names){&z, 1};
	other[5].response = (struct auth_names){NULL, 0};
	other[6].sign_in = STR("/in");
	other[7].set_cookie = true;
	other[8].timeout_ms = 6;
	for (unsigned i = 0; i < 9; i++) {
		b = made(other[i]);
		assert_false(policy_part_same(&a->part, &b->part));
		policy_part_unref(&b->part);
	}
	base.request = (struct auth_names){&y, 1};
	b = made(base);
	assert_true(policy_part_same(&a->part, &b->part));
	policy_part_unref(&b->part);
	policy_part_unref(&a->part);
}

static void what_it_sees(void **state)
{
	struct str names[] = {STR("Cookie"), STR("X-Key")};
	struct auth *all = made((struct auth_spec){.method = STR("GET"), .path = STR("/"), .all_fields = true});
	struct auth *some = made((struct auth_spec){.method = STR("GET"), .path = STR("/"), .request = {names, 2}});

	(void)state;
	assert_true(auth_shows(all, STR("Authorization")) && auth_shows(all, STR("Cookie")) && auth_shows(all, STR("X-Any")));
	assert_false(auth_shows(all, STR("expect")) || auth_shows(all, STR("Range")) || auth_shows(all, STR("If-None-Match")));
	assert_true(auth_shows(some, STR("cookie")) && auth_shows(some, STR("x-key")));
	assert_false(auth_shows(some, STR("Authorization")));
	policy_part_unref(&all->part);
	policy_part_unref(&some->part);
}

static void what_answers_mean(void **state)
{
	struct auth *a = made((struct auth_spec){.method = STR("GET"), .path = STR("/")});
	struct auth *in = made((struct auth_spec){.method = STR("GET"), .path = STR("/"), .sign_in = STR("/in")});

	(void)state;
	for (unsigned s = 0; s < 1000; s++) {
		enum auth_verdict v = auth_judge(a, s, true);

		assert_int_equal(v == AUTH_PASS, s >= 200 && s <= 299);
		assert_int_equal(v == AUTH_ERROR, s >= 500);
		assert_int_equal(v == AUTH_REFUSE, s >= 300 && s < 500 && s != 304);
		assert_int_equal(auth_judge(in, s, false), v);
		assert_int_equal(auth_judge(in, s, true), s == 401 ? AUTH_SIGN_IN : v);
	}
	assert_true(auth_passes_on(STR("www-authenticate")) && auth_passes_on(STR("Set-Cookie")) && auth_passes_on(STR("LOCATION")));
	assert_false(auth_passes_on(STR("X-User")) || auth_passes_on(STR("Content-Length")) || auth_passes_on(STR("Server")));
	policy_part_unref(&a->part);
	policy_part_unref(&in->part);
}

static void urls(void **state)
{
	struct str out;

	(void)state;
	assert_int_equal(auth_url(STR("http"), STR("a.example:8080"), STR("/x?y=1"), &arena, &out), OK);
	is(out, "http://a.example:8080/x?y=1");
	assert_int_equal(auth_url(STR("https"), STR("a.example"), STR("*"), &arena, &out), OK);
	is(out, "https://a.example");
	assert_int_equal(auth_url(STR("http"), STR(""), STR("/x"), &arena, &out), OK);
	is(out, "/x");
}

static void signing_in(void **state)
{
	struct auth *a = made((struct auth_spec){.method = STR("GET"), .path = STR("/"),
				.sign_in = STR("https://{host}/start?rd={url}&h={host}")});
	static char text[AUTH_URL_MAX + 1];
	struct str out;

	(void)state;
	assert_int_equal(auth_sign_in(a, STR("http"), STR("a.example:80"), STR("http://a.example:80/p?q=%41&r=\"\xc3"), &arena, &out), OK);
	is(out, "https://a.example/start?rd=http%3A%2F%2Fa.example%3A80%2Fp%3Fq%3D%2541%26r%3D%22%C3&h=a.example");
	/* nothing that a client says gets out of its place */
	assert_int_equal(auth_sign_in(a, STR("http"), STR("evil/x"), STR("/"), &arena, &out), ERR_SYNTAX);
	assert_int_equal(auth_sign_in(a, STR("http"), STR(""), STR("/"), &arena, &out), ERR_SYNTAX);
	assert_int_equal(auth_sign_in(a, STR("http"), STR("h"), STR("{host}{url}\r\n\0#"), &arena, &out), OK);
	is(out, "https://h/start?rd=%7Bhost%7D%7Burl%7D%0D%0A%00%23&h=h");
	/* a URL that is too long is that of the site */
	memset(text, 'u', sizeof text);
	assert_int_equal(auth_sign_in(a, STR("http"), STR("h"), (struct str){text, sizeof text}, &arena, &out), OK);
	is(out, "https://h/start?rd=http%3A%2F%2Fh%2F&h=h");
	assert_int_equal(auth_sign_in(a, STR("http"), STR("h"), (struct str){text, AUTH_URL_MAX}, &arena, &out), OK);
	assert_true(out.n > AUTH_URL_MAX);
	mem_fail_from(1);
	assert_int_equal(auth_sign_in(a, STR("http"), STR("h"), (struct str){text, AUTH_URL_MAX}, &arena, &out), ERR_MEM);
	mem_fail_from(0);
	policy_part_unref(&a->part);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_copies),
		cmocka_unit_test(same_or_not),
		cmocka_unit_test(what_it_sees),
		cmocka_unit_test(what_answers_mean),
		cmocka_unit_test_setup_teardown(urls, begin, end),
		cmocka_unit_test_setup_teardown(signing_in, begin, end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
