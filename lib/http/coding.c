/* coding: see coding.h.
 *
 * Reads and edits heads; never sees a byte of a body.  Called by the proxy for routes that compress, and for no
 * others, so names are compared here and have no field_id.
 *
 * The bounds are those of the head: one pass over its fields, one over each value. */
#include "lib/http/coding.h"

#include "lib/http/token.h"

struct str coding_name(enum coding c)
{
	static const struct str names[CODING_N] = {
		[CODING_NONE] = {"identity", 8}, [CODING_GZIP] = {"gzip", 4}, [CODING_BR] = {"br", 2},
		[CODING_ZSTD] = {"zstd", 4},
	};

	return names[c];
}

enum coding coding_of(struct str name)
{
	if (str_ieq(name, STR("x-gzip")))
		return CODING_GZIP;
	for (enum coding c = CODING_NONE; c < CODING_N; c++)
		if (str_ieq(name, coding_name(c)))
			return c;
	return CODING_N;
}

/* --- what a request takes --- */

#define UNSAID -1

/* A qvalue in thousandths (RFC 9110 12.4.2); UNSAID: it is none. */
static int qvalue(struct str s)
{
	int q, unit = 100;

	if (s.n == 0 || s.n > 5 || (s.p[0] != '0' && s.p[0] != '1') || (s.n > 1 && s.p[1] != '.'))
		return UNSAID;
	q = (s.p[0] - '0') * 1000;
	for (size_t i = 2; i < s.n; i++, unit /= 10) {
		if (!is_digit(s.p[i]))
			return UNSAID;
		q += (s.p[i] - '0') * unit;
	}
	return q <= 1000 ? q : UNSAID;
}

/* Takes one member of the list apart; its weight, UNSAID when it is malformed. */
static int member_weight(struct str member, struct str *name)
{
	const char *semicolon = memchr(member.p, ';', member.n);
	struct str rest = {NULL, 0};

	*name = member;
	if (semicolon) {
		*name = str_trim((struct str){member.p, (size_t)(semicolon - member.p)});
		rest = str_trim((struct str){semicolon + 1, (size_t)(member.p + member.n - semicolon - 1)});
	}
	if (!token_ok(*name))
		return UNSAID;
	if (!semicolon)
		return 1000;
	if (rest.n < 2 || (rest.p[0] | 0x20) != 'q' || rest.p[1] != '=')
		return UNSAID;
	return qvalue((struct str){rest.p + 2, rest.n - 2});
}

/* What a list says of each coding; of `*` in weight[CODING_N].  Who says it twice gets the lower. */
static void weigh(struct str list, int weight[CODING_N + 1])
{
	struct str member, name;

	while (list_next(&list, &member)) {
		int q = member_weight(member, &name);
		enum coding c = coding_of(name);

		if (q == UNSAID || (c == CODING_N && !str_eq(name, STR("*"))))
			continue;
		if (weight[c] == UNSAID || q < weight[c])
			weight[c] = q;
	}
}

enum coding coding_choose(const struct head *request, const uint8_t *offers, unsigned n)
{
	int weight[CODING_N + 1], best = 0;
	enum coding chosen = CODING_NONE;
	const struct field *f;
	unsigned i = 0;

	for (unsigned c = 0; c <= CODING_N; c++)
		weight[c] = UNSAID;
	while ((f = head_find(request, STR("Accept-Encoding"), &i)))
		weigh(field_value(f), weight);
	for (unsigned k = 0; k < n; k++) {
		int q = weight[offers[k]] != UNSAID ? weight[offers[k]] : weight[CODING_N];

		if (q > best) {
			best = q;
			chosen = offers[k];
		}
	}
	return weight[CODING_NONE] > best ? CODING_NONE : chosen;
}

/* --- what an answer allows --- */

static bool list_has(struct str list, struct str what)
{
	struct str member;

	while (list_next(&list, &member))
		if (str_ieq(member, what))
			return true;
	return false;
}

bool coding_forbidden(const struct head *h)
{
	const struct field *f;
	unsigned i = 0;

	while ((f = head_find(h, STR("Cache-Control"), &i)))
		if (list_has(field_value(f), STR("no-transform")))
			return true;
	return false;
}

static bool starts_in_any_case(struct str s, struct str prefix)
{
	return s.n >= prefix.n && str_ieq((struct str){s.p, prefix.n}, prefix);
}

static bool type_matches(struct str type, struct str pattern)
{
	const char *star = memchr(pattern.p, '*', pattern.n);
	struct str before, behind;

	if (!star)
		return str_ieq(type, pattern);
	before = (struct str){pattern.p, (size_t)(star - pattern.p)};
	behind = (struct str){star + 1, pattern.n - before.n - 1};
	return type.n > before.n + behind.n && starts_in_any_case(type, before) &&
	       str_ieq((struct str){type.p + type.n - behind.n, behind.n}, behind) &&
	       !str_ieq(type, STR("text/event-stream"));
}

bool coding_type_is(struct str type, const struct str *types, unsigned n)
{
	const char *semicolon = type.n ? memchr(type.p, ';', type.n) : NULL;

	if (semicolon)
		type.n = (size_t)(semicolon - type.p);
	type = str_trim(type);
	for (unsigned i = 0; i < n; i++)
		if (type_matches(type, types[i]))
			return true;
	return false;
}

/* Fields whose value is a digest of the bytes of a body (RFC 9530, RFC 3230, RFC 1864). */
static bool is_digest(struct str name)
{
	static const struct str digests[] = {
		{"Content-Digest", 14}, {"Repr-Digest", 11}, {"Digest", 6}, {"Content-MD5", 11},
	};

	for (unsigned i = 0; i < sizeof(digests) / sizeof(*digests); i++)
		if (str_ieq(name, digests[i]))
			return true;
	return false;
}

/* Of its kind: has a body, which is not a part, a difference, or nothing. */
static bool status_fits(unsigned status)
{
	return status >= 200 && status != 204 && status != 205 && status != 206 && status != 226 && status != 304;
}

bool coding_fits(const struct head *answer, const struct str *types, unsigned n)
{
	const struct field *type = head_find_id(answer, FIELD_CONTENT_TYPE);

	if (!status_fits(answer->status) || !type || !coding_type_is(field_value(type), types, n))
		return false;
	for (unsigned i = 0; i < answer->n_fields; i++) {
		struct str name = field_name(&answer->field[i]);

		if (str_ieq(name, STR("Content-Encoding")) || str_ieq(name, STR("Content-Range")) || is_digest(name))
			return false;
	}
	return !coding_forbidden(answer);
}

/* --- what its head says --- */

static struct str joined(struct arena *a, struct str s, struct str t)
{
	char *p = arena_alloc(a, s.n + t.n);

	if (!p)
		return (struct str){NULL, 0};
	if (s.n)
		memcpy(p, s.p, s.n);
	memcpy(p + s.n, t.p, t.n);
	return (struct str){p, s.n + t.n};
}

static enum err field_set(struct field *f, struct str value)
{
	if (!value.p)
		return ERR_MEM;
	f->value = value.p;
	f->value_len = (uint32_t)value.n;
	f->line = 0;
	return OK;
}

enum err coding_put_vary(struct head *answer, struct arena *a)
{
	return head_vary(answer, STR("Accept-Encoding"), a);
}

enum err coding_weaken(struct head *answer, struct arena *a)
{
	struct field *f;
	unsigned i = 0;

	while ((f = head_find(answer, STR("ETag"), &i))) {
		struct str tag = field_value(f);

		if (tag.n >= 2 && tag.p[0] == '"' && field_set(f, joined(a, STR("W/"), tag)) != OK)
			return ERR_MEM;
	}
	return OK;
}

/* ETags of which nobody can say whether they are weak. */
static void drop_odd_tags(struct head *h)
{
	struct field *f;
	unsigned i = 0;

	while ((f = head_find(h, STR("ETag"), &i))) {
		struct str tag = field_value(f);

		if ((tag.n < 2 || tag.p[0] != '"') && !str_starts(tag, STR("W/\""))) {
			head_remove(h, STR("ETag"));
			return;
		}
	}
}

enum err coding_put(struct head *answer, enum coding c, struct arena *a)
{
	enum err err;

	drop_odd_tags(answer);
	head_remove(answer, STR("Accept-Ranges"));
	err = coding_weaken(answer, a);
	if (err != OK)
		return err;
	if (answer->body == BODY_SIZED)
		answer->body = BODY_STREAMED;
	answer->has_length = false;
	answer->length = 0;
	return head_add_id(answer, FIELD_OTHER, STR("Content-Encoding"), coding_name(c));
}

bool coding_asked_weak(const struct head *request)
{
	const struct field *f;
	unsigned i = 0;

	while ((f = head_find(request, STR("If-None-Match"), &i)))
		if (memmem(f->value, f->value_len, "W/\"", 3))
			return true;
	return false;
}

void coding_trailers(struct head *trailers)
{
	unsigned to = 0;

	for (unsigned i = 0; i < trailers->n_fields; i++)
		if (!is_digest(field_name(&trailers->field[i])))
			trailers->field[to++] = trailers->field[i];
	trailers->n_fields = (uint16_t)to;
}
