/* Names, methods, reasons, and the fields of a head. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include "lib/base/mem.h"
#include "lib/http/head.h"
#include "lib/http/vec.h"

static const struct {
	const char *name;
	enum field_id id;
} names[] = {
	{"Host", FIELD_HOST}, {"hOsT", FIELD_HOST}, {"Hosts", FIELD_OTHER}, {"Hos", FIELD_OTHER},
	{"Date", FIELD_DATE}, {"Content-Length", FIELD_CONTENT_LENGTH}, {"content-length", FIELD_CONTENT_LENGTH},
	{"Content_Length", FIELD_OTHER}, {"Content-Lengtg", FIELD_OTHER}, {"Content-Type", FIELD_CONTENT_TYPE},
	{"Transfer-Encoding", FIELD_TRANSFER_ENCODING}, {"TRANSFER-ENCODING", FIELD_TRANSFER_ENCODING},
	{"Transfer-Encodinh", FIELD_OTHER}, {"Transfer\rEncoding", FIELD_OTHER}, {"TE", FIELD_TE}, {"te", FIELD_TE},
	{"tf", FIELD_OTHER}, {"Via", FIELD_VIA}, {"Server", FIELD_SERVER}, {"Cookie", FIELD_COOKIE},
	{"Expect", FIELD_EXPECT}, {"Referer", FIELD_REFERER}, {"Upgrade", FIELD_UPGRADE}, {"Trailer", FIELD_TRAILER},
	{"Location", FIELD_LOCATION}, {"Forwarded", FIELD_FORWARDED}, {"Connection", FIELD_CONNECTION},
	{"User-Agent", FIELD_USER_AGENT}, {"Keep-Alive", FIELD_KEEP_ALIVE}, {"Set-Cookie", FIELD_SET_COOKIE},
	{"Proxy-Status", FIELD_PROXY_STATUS}, {"Authorization", FIELD_AUTHORIZATION},
	{"HTTP2-Settings", FIELD_HTTP2_SETTINGS}, {"HTTP\x12-Settings", FIELD_OTHER},
	{"X-Forwarded-For", FIELD_X_FORWARDED_FOR}, {"X-Forwarded-Host", FIELD_X_FORWARDED_HOST},
	{"X-Forwarded-Proto", FIELD_X_FORWARDED_PROTO},
	{"X-Forwarded-Client-Cert", FIELD_X_FORWARDED_CLIENT_CERT}, {"Proxy-Connection", FIELD_PROXY_CONNECTION},
	{"", FIELD_OTHER}, {"X", FIELD_OTHER}, {"X-Forwarded-Fo\x12", FIELD_OTHER},
};

static void test_names(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (field_id_of(str_of(names[i].name)) != names[i].id)
			fail_msg("%s is %d", names[i].name, field_id_of(str_of(names[i].name)));
}

static void test_methods(void **state)
{
	(void)state;
	assert_int_equal(method_of(STR("GET")), METHOD_GET);
	assert_int_equal(method_of(STR("get")), METHOD_OTHER);
	assert_int_equal(method_of(STR("PATCH")), METHOD_PATCH);
	assert_int_equal(method_of(STR("")), METHOD_OTHER);
	assert_true(method_idempotent(METHOD_PUT));
	assert_true(method_idempotent(METHOD_TRACE));
	assert_false(method_idempotent(METHOD_POST));
	assert_false(method_idempotent(METHOD_PATCH));
	assert_false(method_idempotent(METHOD_OTHER));
	assert_false(method_idempotent(METHOD_CONNECT));
}

static void test_reasons(void **state)
{
	(void)state;
	assert_true(str_eq(status_reason(404), STR("Not Found")));
	assert_true(str_eq(status_reason(100), STR("Continue")));
	assert_true(str_eq(status_reason(299), STR("")));
}

static void test_fields(void **state)
{
	struct field room[4];
	struct head h = {.field = room, .max_fields = 4};
	unsigned i = 0;

	(void)state;
	assert_int_equal(head_add(&h, STR("A"), STR("1")), OK);
	assert_int_equal(head_add(&h, STR("Via"), STR("2")), OK);
	assert_int_equal(head_add(&h, STR("a"), STR("3")), OK);
	assert_int_equal(head_add(&h, STR("B"), STR("4")), OK);
	assert_int_equal(head_add(&h, STR("C"), STR("5")), ERR_LIMIT);
	assert_ptr_equal(head_find(&h, STR("a"), &i), &room[0]);
	assert_ptr_equal(head_find(&h, STR("a"), &i), &room[2]);
	assert_null(head_find(&h, STR("a"), &i));
	assert_ptr_equal(head_find_id(&h, FIELD_VIA), &room[1]);
	assert_null(head_find_id(&h, FIELD_HOST));

	assert_int_equal(head_set(&h, STR("A"), STR("9")), OK);	/* first one kept in place, the other gone */
	assert_int_equal(h.n_fields, 3);
	assert_true(str_eq(field_value(&room[0]), STR("9")));
	assert_true(str_eq(field_name(&room[2]), STR("B")));
	assert_int_equal(head_set(&h, STR("New"), STR("")), OK);
	assert_int_equal(h.n_fields, 4);
	assert_int_equal(head_set(&h, STR("More"), STR("")), ERR_LIMIT);
	assert_int_equal(head_remove(&h, STR("b")), 1);
	assert_int_equal(head_remove(&h, STR("b")), 0);
	assert_int_equal(h.n_fields, 3);
	assert_true(str_eq(field_name(&room[2]), STR("New")));
}

static void test_alike(void **state)
{
	struct field room[6];
	struct head h = { .field = room, .max_fields = 6 };

	(void)state;
	assert_int_equal(head_add(&h, STR("X-A_b"), STR("1")), OK);
	assert_int_equal(head_add(&h, STR("X-A-bc"), STR("2")), OK);
	assert_int_equal(head_add(&h, STR("x_a-B"), STR("3")), OK);
	assert_int_equal(head_add(&h, STR("X-Aa-b"), STR("4")), OK);
	assert_int_equal(head_remove_alike(&h, STR("X-A-B")), 2);
	assert_int_equal(head_remove_alike(&h, STR("X-A-B")), 0);
	assert_int_equal(h.n_fields, 2);
	assert_true(str_eq(field_value(&room[0]), STR("2")) && str_eq(field_value(&room[1]), STR("4")));
	assert_int_equal(head_remove_alike(&h, STR("x_aa_B")), 1);
}

static const struct { const char *before, *after; } varies[] = {
	{ NULL, "Origin" }, { "", "Origin" }, { "Accept-Encoding", "Accept-Encoding, Origin" }, { "origin", "origin" },
	{ "Accept, ORIGIN , X", "Accept, ORIGIN , X" }, { "*", "*" }, { "Accept,*", "Accept,*" },
	{ "X-Origin", "X-Origin, Origin" }, { " , ,", " , ,, Origin" },
};

static void test_vary(void **state)
{
	struct field room[4];
	struct head h = {.field = room, .max_fields = 2};
	struct arena a;

	(void)state;
	arena_init(&a, NULL, 0, NULL);
	for (size_t i = 0; i < sizeof varies / sizeof *varies; i++) {
		h.n_fields = 0;
		assert_int_equal(head_add(&h, STR("A"), STR("Origin")), OK);
		if (varies[i].before)
			assert_int_equal(head_add(&h, STR("vary"), str_of(varies[i].before)), OK);
		assert_int_equal(head_vary(&h, STR("Origin"), &a), OK);
		assert_int_equal(h.n_fields, 2);
		assert_true(str_eq(field_value(&room[1]), str_of(varies[i].after)));
	}
	/* of several the last grows, and any of them may name it */
	h.max_fields = 4;
	assert_int_equal(head_add(&h, STR("VARY"), STR("B")), OK);
	room[1].value_len = 1;
	assert_int_equal(head_vary(&h, STR("C"), &a), OK);
	assert_true(h.n_fields == 3 && str_eq(field_value(&room[2]), STR("B, C")));
	mem_fail_from(1);
	assert_int_equal(head_vary(&h, STR("D"), &(struct arena){0}), ERR_MEM);
	mem_fail_from(0);
	h.n_fields = h.max_fields = 1;
	assert_int_equal(head_vary(&h, STR("D"), &a), ERR_LIMIT);
	arena_fini(&a);
}

static void test_dup(void **state)
{
	char name[] = "Host-Like", value[] = "v", path[] = "/a?b";
	struct field room[2], *f;
	struct head h = {.field = room, .max_fields = 2, .target = {path, 4}, .path = {path, 2}, .minor = 1, .has_length = true,
			 .length = 9}, d;
	struct arena a;

	(void)state;
	arena_init(&a, NULL, 0, NULL);
	assert_int_equal(head_add(&h, (struct str){name, 9}, (struct str){value, 1}), OK);
	room[0].line = 1;
	assert_int_equal(head_dup(&d, &h, &a, 1), OK);
	memset(name, 'x', 9);
	memset(path, 'x', 4);
	assert_int_equal(d.n_fields, 1);
	assert_true(str_eq(field_name(&d.field[0]), STR("Host-Like")) && str_eq(field_value(&d.field[0]), STR("v")));
	assert_int_equal(d.field[0].line, 0);	/* name and value do not lie in one line any more */
	assert_true(str_eq(d.target, STR("/a?b")) && str_eq(d.path, STR("/a")) && d.has_length && d.length == 9);
	assert_int_equal(head_add(&d, STR("One"), STR("more")), OK);
	assert_int_equal(head_add(&d, STR("Too"), STR("many")), ERR_LIMIT);
	f = head_find_id(&d, FIELD_OTHER);
	assert_ptr_equal(f, d.field);
	arena_fini(&a);
}

static void test_vec(void **state)
{
	static char scratch[8];
	struct vec v = {.scratch = scratch, .end = scratch + sizeof(scratch)};

	(void)state;
	vec_reset(&v);
	assert_int_equal(vec_copy(&v, STR("ab")), OK);
	assert_int_equal(vec_copy(&v, STR("cd")), OK);
	assert_int_equal(v.n, 1);	/* copies that follow each other are one piece */
	assert_int_equal(vec_borrow(&v, STR("xyz")), OK);
	assert_int_equal(vec_borrow(&v, STR("")), OK);
	assert_int_equal(vec_copy(&v, STR("ef")), OK);
	assert_int_equal(v.n, 3);
	assert_int_equal(v.bytes, 9);
	assert_int_equal(vec_copy(&v, STR("ghi")), ERR_LIMIT);
	assert_int_equal(v.bytes, 9);
	while (vec_room(&v))
		assert_int_equal(vec_borrow(&v, STR("p")), OK);
	assert_int_equal(vec_borrow(&v, STR("p")), ERR_LIMIT);
	assert_int_equal(vec_copy(&v, STR("q")), ERR_LIMIT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names), cmocka_unit_test(test_methods), cmocka_unit_test(test_reasons),
		cmocka_unit_test(test_fields), cmocka_unit_test(test_alike), cmocka_unit_test(test_vary), cmocka_unit_test(test_dup), cmocka_unit_test(test_vec),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
