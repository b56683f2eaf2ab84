/* What a request takes, what an answer allows, and what its head says then. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include "lib/base/mem.h"
#include "lib/http/coding.h"

/* A head out of "Name: value" lines. */
struct made {
	struct field room[16];
	struct head h;
};

static struct head *head_of(struct made *m, unsigned status, const char *const *lines)
{
	m->h = (struct head){.field = m->room, .max_fields = 16, .status = (uint16_t)status, .body = BODY_SIZED,
		.length = 5000, .has_length = true};
	for (; *lines; lines++) {
		const char *colon = strchr(*lines, ':');

		assert_non_null(colon);
		assert_int_equal(head_add(&m->h, (struct str){*lines, (size_t)(colon - *lines)}, str_trim(str_of(colon + 1))), OK);
	}
	return &m->h;
}
#define HEAD(m, status, ...) head_of(m, status, (const char *const[]){__VA_ARGS__, NULL})

static const struct {
	const char *accept;	/* the field; NULL: there is none */
	const char *offers;	/* a letter each: g, b, z */
	const char *chosen;
} choices[] = {
	{NULL, "zbg", "identity"}, {"", "zbg", "identity"}, {"gzip", "zbg", "gzip"}, {"GZip", "zbg", "gzip"},
	{"x-gzip", "zbg", "gzip"}, {"deflate", "zbg", "identity"}, {"compress, x-compress", "zbg", "identity"},
	{"gzip, deflate, br, zstd", "zbg", "zstd"}, {"gzip, deflate, br, zstd", "bzg", "br"}, {"gzip, deflate, br", "zg", "gzip"},
	{"gzip;q=1.0, br;q=0.9", "bg", "gzip"}, {"gzip;q=0.5, br;q=0.5", "bg", "br"}, {"gzip;q=0.501, br;q=0.5", "bg", "gzip"},
	{"gzip;q=0", "bg", "identity"}, {"gzip;q=0.000, br", "gb", "br"}, {"*", "bg", "br"}, {"*;q=0", "bg", "identity"},
	{"gzip;q=0, *", "gb", "br"}, {"*;q=0, gzip", "bg", "gzip"}, {"br;q=0.1, *;q=0.2", "bg", "gzip"},
	{"identity", "bg", "identity"}, {"identity, gzip", "g", "gzip"}, {"identity, gzip;q=0.9", "g", "identity"},
	{"identity;q=0.5, gzip;q=0.8", "g", "gzip"}, {"identity;q=0, gzip;q=0.1", "g", "gzip"},
	{"identity;q=0", "g", "identity"}, {"identity;q=0, *", "g", "gzip"}, {"identity;q=0.5, *;q=0.1", "g", "identity"},
	{"gzip ; q=0.5", "g", "gzip"}, {"gzip;  q=0.5 ", "g", "gzip"}, {"gzip;Q=0.5", "g", "gzip"}, {" , ,gzip,, ", "g", "gzip"},
	{"\tgzip\t", "g", "gzip"}, {"gzip,gzip;q=0", "g", "identity"}, {"gzip;q=0,gzip", "g", "identity"},
	/* not of the grammar, so not said */
	{"gzip;q", "g", "identity"}, {"gzip;q=", "g", "identity"}, {"gzip;q=2", "g", "identity"}, {"gzip;q=1.001", "g", "identity"},
	{"gzip;q=0.1234", "g", "identity"}, {"gzip;q=-1", "g", "identity"}, {"gzip;q=.5", "g", "identity"}, {"gzip;q=1,5", "g", "gzip"},
	{"gzip;q=0x1", "g", "identity"}, {"gzip;q=1.", "g", "gzip"}, {"gzip;level=9", "g", "identity"}, {"gzip;q=1;x", "g", "identity"},
	{"gzip q=1", "g", "identity"}, {"gzip\x80", "g", "identity"}, {"\"gzip\"", "g", "identity"}, {";q=1", "g", "identity"},
	{"gzi", "g", "identity"}, {"gzipx", "g", "identity"}, {"**", "g", "identity"}, {"gzip;q= 1", "g", "identity"},
	{"gzip;q=1e0", "g", "identity"}, {"gzip;q=00", "g", "identity"}, {"br;q=0.9;q=0, gzip", "bg", "gzip"},
};

static unsigned offers_of(const char *s, uint8_t offers[4])
{
	unsigned n = 0;

	for (; *s; s++)
		offers[n++] = *s == 'g' ? CODING_GZIP : *s == 'b' ? CODING_BR : CODING_ZSTD;
	return n;
}

static void test_choose(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(choices) / sizeof(*choices); i++) {
		struct field f;
		struct head h = {.field = &f, .max_fields = 1};
		uint8_t offers[4];
		unsigned n = offers_of(choices[i].offers, offers);
		struct str chosen;

		if (choices[i].accept)
			assert_int_equal(head_add(&h, STR("accept-encoding"), str_of(choices[i].accept)), OK);
		chosen = coding_name(coding_choose(&h, offers, n));
		if (!str_eq(chosen, str_of(choices[i].chosen)))
			fail_msg("\"%s\" of %s gives %s", choices[i].accept, choices[i].offers, chosen.p);
	}
}

static void test_several_fields_are_one_list(void **state)
{
	static const uint8_t offers[] = {CODING_ZSTD, CODING_GZIP};
	struct made m;

	(void)state;
	assert_int_equal(coding_choose(HEAD(&m, 0, "Accept-Encoding: br", "X: y", "Accept-Encoding: gzip;q=0.3, zstd;q=0.2"), offers, 2),
			 CODING_GZIP);
	assert_int_equal(coding_choose(HEAD(&m, 0, "Accept-Encoding: gzip", "Accept-Encoding: gzip;q=0"), offers, 2), CODING_NONE);
	assert_int_equal(coding_choose(&m.h, offers, 0), CODING_NONE);
}

static void test_names(void **state)
{
	(void)state;
	for (enum coding c = CODING_NONE; c < CODING_N; c++)
		assert_int_equal(coding_of(coding_name(c)), c);
	assert_int_equal(coding_of(STR("X-GZIP")), CODING_GZIP);
	assert_int_equal(coding_of(STR("deflate")), CODING_N);
	assert_int_equal(coding_of(STR("")), CODING_N);
}

static void test_types(void **state)
{
	static const struct str types[] = {{"text/*", 6}, {"application/json", 16}, {"application/*+json", 18}};
	static const struct str stream[] = {{"text/event-stream", 17}}, images[] = {{"image/*", 7}};

	(void)state;
#define IS(type) coding_type_is(STR(type), types, 3)
	assert_true(IS("text/html"));
	assert_true(IS("text/html; charset=utf-8"));
	assert_true(IS("TEXT/HTML;charset=utf-8"));
	assert_true(IS("text/plain ; x"));
	assert_true(IS("Application/Json"));
	assert_true(IS("application/ld+json"));
	assert_true(IS("application/problem+JSON; x=y"));
	assert_false(IS("application/+json"));	/* a star stands for something */
	assert_false(IS("text/"));
	assert_false(IS("text"));
	assert_false(IS(""));
	assert_false(IS(";"));
	assert_false(IS("application/jsonp"));
	assert_false(IS("application/json5"));
	assert_false(IS("image/png; text/html"));
	assert_false(IS("xtext/html"));
	assert_false(IS("text/event-stream"));
	assert_false(IS("Text/Event-Stream; charset=utf-8"));
	assert_true(coding_type_is(STR("Text/Event-Stream; charset=utf-8"), stream, 1));
	assert_true(coding_type_is(STR("image/png"), images, 1));
	assert_false(coding_type_is((struct str){NULL, 0}, images, 1));
#undef IS
}

static void test_fits(void **state)
{
	static const struct str types[] = {{"text/*", 6}};
	static const uint16_t never[] = {100, 101, 103, 199, 204, 205, 206, 226, 304};
	static const uint16_t some[] = {200, 201, 203, 301, 404, 500, 503};
	static const char *const against[] = {"Content-Encoding: br", "content-encoding: identity", "Content-Encoding:",
		"Content-Range: bytes 0-1/5000", "Content-MD5: x", "Digest: sha-256=x", "content-digest: x", "Repr-Digest: x",
		"Cache-Control: public, No-Transform", "Cache-Control: max-age=5,no-transform"};
	static const char *const for_it[] = {"Cache-Control: transform", "Cache-Control: no-transformation", "Vary: *",
		"X-Content-Encoding: br", "Want-Digest: sha-256", "ETag: \"x\"", "Set-Cookie: a=b"};
	struct made m;

	(void)state;
	for (size_t i = 0; i < sizeof(never) / sizeof(*never); i++)
		assert_false(coding_fits(HEAD(&m, never[i], "Content-Type: text/html"), types, 1));
	for (size_t i = 0; i < sizeof(some) / sizeof(*some); i++)
		assert_true(coding_fits(HEAD(&m, some[i], "Content-Type: text/html"), types, 1));
	for (size_t i = 0; i < sizeof(against) / sizeof(*against); i++)
		if (coding_fits(HEAD(&m, 200, "Content-Type: text/html", against[i]), types, 1))
			fail_msg("%s", against[i]);
	for (size_t i = 0; i < sizeof(for_it) / sizeof(*for_it); i++)
		if (!coding_fits(HEAD(&m, 200, "Content-Type: text/html", for_it[i]), types, 1))
			fail_msg("%s", for_it[i]);
	assert_false(coding_fits(HEAD(&m, 200, "Content-Type: image/png"), types, 1));
	assert_false(coding_fits(HEAD(&m, 200, "X: y"), types, 1));
	assert_false(coding_fits(HEAD(&m, 200, "Content-Type: text/html"), types, 0));
	assert_true(coding_forbidden(HEAD(&m, 0, "Cache-Control: no-cache", "cache-control: no-transform")));
}

static void expect(const struct head *h, const char *const *lines)
{
	unsigned i = 0;

	for (; *lines; lines++, i++) {
		char line[200];

		assert_true(i < h->n_fields);
		snprintf(line, sizeof line, "%.*s: %.*s", h->field[i].name_len, h->field[i].name, (int)h->field[i].value_len,
			 h->field[i].value);
		assert_string_equal(line, *lines);
	}
	assert_int_equal(h->n_fields, i);
}
#define EXPECT(m, ...) expect(&(m)->h, (const char *const[]){__VA_ARGS__, NULL})

static void test_vary(void **state)
{
	struct made m;
	struct arena a;

	(void)state;
	arena_init(&a, NULL, 0, NULL);
	assert_int_equal(coding_put_vary(HEAD(&m, 200, "A: b"), &a), OK);
	EXPECT(&m, "A: b", "Vary: Accept-Encoding");
	assert_int_equal(coding_put_vary(&m.h, &a), OK);
	EXPECT(&m, "A: b", "Vary: Accept-Encoding");
	assert_int_equal(coding_put_vary(HEAD(&m, 200, "vary: Origin", "A: b", "Vary: Cookie"), &a), OK);
	EXPECT(&m, "vary: Origin", "A: b", "Vary: Cookie, Accept-Encoding");
	assert_int_equal(coding_put_vary(HEAD(&m, 200, "Vary: Origin,accept-encoding", "Vary: Cookie"), &a), OK);
	EXPECT(&m, "Vary: Origin,accept-encoding", "Vary: Cookie");
	assert_int_equal(coding_put_vary(HEAD(&m, 200, "Vary: *"), &a), OK);
	EXPECT(&m, "Vary: *");
	assert_int_equal(coding_put_vary(HEAD(&m, 200, "Vary:"), &a), OK);
	EXPECT(&m, "Vary: Accept-Encoding");
	mem_fail_from(1);
	assert_int_equal(coding_put_vary(HEAD(&m, 200, "Vary: Origin"), &(struct arena){0}), ERR_MEM);
	mem_fail_from(0);
	m.h.n_fields = 0;
	m.h.max_fields = 0;
	assert_int_equal(coding_put_vary(&m.h, &a), ERR_LIMIT);
	arena_fini(&a);
}

static void test_put(void **state)
{
	struct made m;
	struct arena a;

	(void)state;
	arena_init(&a, NULL, 0, NULL);
	assert_int_equal(coding_put(HEAD(&m, 200, "ETag: \"v1\"", "Accept-Ranges: bytes", "X: y"), CODING_BR, &a), OK);
	EXPECT(&m, "ETag: W/\"v1\"", "X: y", "Content-Encoding: br");
	assert_int_equal(m.h.body, BODY_STREAMED);
	assert_false(m.h.has_length);
	assert_int_equal(coding_put(HEAD(&m, 200, "ETag: W/\"v1\""), CODING_GZIP, &a), OK);
	EXPECT(&m, "ETag: W/\"v1\"", "Content-Encoding: gzip");
	assert_int_equal(coding_put(HEAD(&m, 200, "ETag: v1", "X: y"), CODING_ZSTD, &a), OK);
	EXPECT(&m, "X: y", "Content-Encoding: zstd");
	HEAD(&m, 200, "X: y");		/* an answer to HEAD */
	m.h.body = BODY_NONE;
	assert_int_equal(coding_put(&m.h, CODING_ZSTD, &a), OK);
	assert_int_equal(m.h.body, BODY_NONE);
	assert_false(m.h.has_length);
	mem_fail_from(1);
	assert_int_equal(coding_put(HEAD(&m, 200, "ETag: \"v1\""), CODING_GZIP, &(struct arena){0}), ERR_MEM);
	mem_fail_from(0);
	arena_fini(&a);
}

static void test_not_modified(void **state)
{
	struct made m;
	struct arena a;

	(void)state;
	arena_init(&a, NULL, 0, NULL);
	assert_true(coding_asked_weak(HEAD(&m, 0, "If-None-Match: \"a\", W/\"b\"")));
	assert_true(coding_asked_weak(HEAD(&m, 0, "If-None-Match: \"a\"", "If-None-Match: W/\"b\"")));
	assert_false(coding_asked_weak(HEAD(&m, 0, "If-None-Match: \"a\"", "If-Match: W/\"b\"")));
	assert_int_equal(coding_weaken(HEAD(&m, 304, "ETag: \"a\""), &a), OK);
	EXPECT(&m, "ETag: W/\"a\"");
	assert_int_equal(coding_weaken(&m.h, &a), OK);
	EXPECT(&m, "ETag: W/\"a\"");
	arena_fini(&a);
}

static void test_trailers(void **state)
{
	struct made m;

	(void)state;
	coding_trailers(HEAD(&m, 0, "A: b", "Repr-Digest: x", "content-md5: y", "Server-Timing: z", "Digest: x"));
	EXPECT(&m, "A: b", "Server-Timing: z");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_choose), cmocka_unit_test(test_several_fields_are_one_list), cmocka_unit_test(test_names),
		cmocka_unit_test(test_types), cmocka_unit_test(test_fits), cmocka_unit_test(test_vary), cmocka_unit_test(test_put),
		cmocka_unit_test(test_not_modified), cmocka_unit_test(test_trailers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
