/*
 * fuzz_auth: what clients say to get in, and the file that they are measured by.
 *
 * Purpose   basic_read() gives parts that can be compared and logged, or none; htpasswd_new() finds each user again, with a
 *           hash that password_check() takes; cors_decide() sends nothing back that could end a field, and
 *           nothing to an origin that no pattern names.
 * Owns      nothing between two inputs.
 * Called by libFuzzer or replay.c.
 * Never     hashes a password.
 *
 * The first byte says which of them; for the last, lines are pattern, origin, method and headers.
 */
#include "dispatch/basic.h"
#include "dispatch/cors.h"
#include "dispatch/htpasswd.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void no_control(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		CHECK((unsigned char)s.p[i] >= 0x20 && s.p[i] != 0x7f);
}

static void try_basic(struct str s)
{
	char room[BASIC_ROOM];
	struct str user, password;

	if (basic_read(s, room, &user, &password) != BASIC_OK)
		return;
	CHECK(user.p == room && password.p == room + user.n + 1);
	CHECK(user.n <= HTPASSWD_USER_MAX && password.n <= PASSWORD_MAX);
	CHECK(!memchr(user.p, ':', user.n));
	no_control(user);
	no_control(password);
}

static void try_htpasswd(struct str s)
{
	struct htpasswd_error err = {0};
	struct htpasswd *h = htpasswd_new(s, &err);
	struct str user = {0}, hash;
	const char *why, *colon;

	if (!h) {
		CHECK(err.err != OK && err.text[0]);
		return;
	}
	CHECK(htpasswd_count(h) > 0);
	for (size_t i = 0; i < s.n; i += user.n + 1) {
		const char *end = memchr(s.p + i, '\n', s.n - i);

		user = (struct str){ s.p + i, end ? (size_t)(end - s.p) - i : s.n - i };
		colon = memchr(user.p, ':', user.n);
		/* a line that needs no trimming; the mark of an editor may be before the first */
		if (!colon || colon == user.p || strchr("# \t\r\xef", user.p[0]))
			continue;
		CHECK(htpasswd_find(h, (struct str){ user.p, (size_t)(colon - user.p) }, &hash));
		CHECK(password_check(hash, &why) == OK && hash.n <= PASSWORD_HASH_MAX);
	}
	htpasswd_unref(h);
}

static struct str next_line(struct str *s)
{
	const char *end = s->n ? memchr(s->p, '\n', s->n) : NULL;
	struct str line = { s->p, end ? (size_t)(end - s->p) : s->n };

	s->p += line.n + (end != NULL);
	s->n -= line.n + (end != NULL);
	return line;
}

static void try_cors(struct str s)
{
	const struct str star = STR("*"), pattern = next_line(&s);
	struct cors_spec spec = {
		.origins = { &pattern, 1 }, .methods = { &star, 1 }, .headers = { &star, 1 },
		.credentials = !str_eq(pattern, star), .max_age = 1,
	};
	struct cors_request q = { .method = STR("OPTIONS"), .origin = next_line(&s), .request_method = next_line(&s),
				  .request_headers = next_line(&s) };
	struct policy_part *c = cors_new(&spec, NULL);
	struct cors_answer a;

	if (!c)
		return;
	cors_decide(c, &q, &a);
	CHECK(a.n <= CORS_FIELDS && a.preflight == (q.origin.n && q.request_method.n));
	CHECK(a.allowed || a.n == 0);
	for (unsigned i = 0; i < a.n; i++)
		for (size_t k = 0; k < a.field[i].value.n; k++)
			CHECK((unsigned char)a.field[i].value.p[k] >= 0x20 || a.field[i].value.p[k] == '\t');
	policy_part_unref(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const tries[])(struct str) = { try_basic, try_htpasswd, try_cors };
	char *copy;	/* exact: the sanitizer sees a byte too many */

	if (size < 2)
		return 0;
	copy = mem_alloc(size - 1);
	CHECK(copy);
	memcpy(copy, data + 1, size - 1);
	tries[data[0] % 3]((struct str){ copy, size - 1 });
	mem_free(copy);
	return 0;
}
