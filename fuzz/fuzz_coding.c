/* Heads as negotiation and its edits see them: lines of "Name: value" that nobody chose.
 *
 * The first byte chooses what is offered.  Checked: what is chosen was offered; an edited head says what it must, once; and an
 * edit of it again changes nothing. */
#include "lib/base/check.h"
#include "lib/http/coding.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FIELDS 32

static void read_fields(struct head *h, struct str in)
{
	while (in.n) {
		const char *end = memchr(in.p, '\n', in.n), *colon;
		struct str line = {in.p, end ? (size_t)(end - in.p) : in.n};

		in.p += line.n + (end != NULL);
		in.n -= line.n + (end != NULL);
		colon = line.n ? memchr(line.p, ':', line.n) : NULL;
		if (colon && head_add(h, (struct str){line.p, (size_t)(colon - line.p)},
				      str_trim((struct str){colon + 1, line.n - (size_t)(colon - line.p) - 1})) != OK)
			return;
	}
}

static unsigned count(const struct head *h, struct str name)
{
	unsigned n = 0, i = 0;

	while (head_find(h, name, &i))
		n++;
	return n;
}

static void check_tags(const struct head *h)
{
	const struct field *f;
	unsigned i = 0;

	while ((f = head_find(h, STR("ETag"), &i)))
		CHECK(str_starts(field_value(f), STR("W/\"")));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct str types[] = {{"text/*", 6}, {"application/*+json", 18}, {"application/json", 16}};
	struct field room[FIELDS + 2];
	struct head h = {.field = room, .max_fields = FIELDS, .body = BODY_SIZED, .has_length = true, .length = 1};
	uint8_t offers[2];
	enum coding c;
	struct arena a;

	if (size < 1)
		return 0;
	arena_init(&a, NULL, 0, NULL);
	h.status = 200 + data[0] % 128;
	read_fields(&h, (struct str){(const char *)data + 1, size - 1});
	offers[0] = CODING_GZIP + data[0] % 3;
	offers[1] = CODING_GZIP + data[0] / 3 % 3;
	c = coding_choose(&h, offers, 2);
	CHECK(c == CODING_NONE || c == offers[0] || c == offers[1]);
	h.max_fields = FIELDS + 2;
	coding_asked_weak(&h);
	if (coding_fits(&h, types, 3) && c != CODING_NONE) {
		unsigned n;

		CHECK(count(&h, STR("Content-Encoding")) == 0);
		CHECK(coding_put_vary(&h, &a) == OK);
		n = h.n_fields;
		CHECK(coding_put_vary(&h, &a) == OK && h.n_fields == n && count(&h, STR("Vary")));
		CHECK(coding_put(&h, c, &a) == OK);
		CHECK(count(&h, STR("Content-Encoding")) == 1 && count(&h, STR("Accept-Ranges")) == 0);
		CHECK(h.body == BODY_STREAMED && !h.has_length);
		check_tags(&h);
		CHECK(!coding_fits(&h, types, 3));
	}
	coding_trailers(&h);
	CHECK(count(&h, STR("Repr-Digest")) == 0);
	arena_fini(&a);
	return 0;
}
