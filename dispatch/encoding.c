/* Door: encoding, the part of a policy that says what is compressed.  One heap block: the struct, the types, their text.
 * Called when routes are made; read by the proxy for each request of such a route.  Never sees an answer. */
#include "dispatch/encoding.h"

#include <string.h>
#include "lib/base/check.h"
#include "lib/base/mem.h"

static bool encoding_same(const struct policy_part *pa, const struct policy_part *pb)
{
	const struct encoding *a = (const struct encoding *)pa, *b = (const struct encoding *)pb;

	if (a->min_size != b->min_size || a->level != b->level || a->n_codings != b->n_codings || a->n_types != b->n_types ||
	    memcmp(a->codings, b->codings, a->n_codings))
		return false;
	for (unsigned i = 0; i < a->n_types; i++)
		if (!str_eq(a->types[i], b->types[i]))
			return false;
	return true;
}

static void encoding_free(struct policy_part *p)
{
	mem_free(p);
}

struct policy_part *encoding_new(const struct encoding *spec)
{
	static const struct policy_kind kind = {.same = encoding_same, .free = encoding_free};
	size_t text = 0;
	struct encoding *e;
	struct str *types;
	char *at;

	CHECK(spec->n_codings <= ENCODING_CODINGS);
	for (unsigned i = 0; i < spec->n_types; i++)
		text += spec->types[i].n;
	e = mem_alloc(sizeof *e + spec->n_types * sizeof *types + text);
	if (!e)
		return NULL;
	*e = *spec;
	e->types = types = (struct str *)(e + 1);
	at = (char *)(types + spec->n_types);
	for (unsigned i = 0; i < spec->n_types; i++) {
		types[i] = (struct str){at, spec->types[i].n};
		if (types[i].n)
			memcpy(at, spec->types[i].p, types[i].n);
		at += types[i].n;
	}
	policy_part_init(&e->part, &kind);
	return &e->part;
}
