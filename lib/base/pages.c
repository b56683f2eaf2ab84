/* pages: see pages.h.  Owns the chunks in its list and no other. */
#include "lib/base/pages.h"

#include "lib/base/mem.h"

void pages_init(struct pages *p, size_t size, struct budget *budget)
{
	*p = (struct pages){ .budget = budget, .size = size };
}

static void free_one(struct pages *p)
{
	void *chunk = p->list;

	p->list = *(void **)chunk;
	p->n--;
	mem_pages_free(chunk, p->size);
	budget_credit(p->budget, p->size);
}

void pages_fini(struct pages *p)
{
	while (p->n)
		free_one(p);
}

void *pages_get(struct pages *p)
{
	void *chunk = p->list;

	if (chunk) {
		p->list = *(void **)chunk;
		if (--p->n < p->low)
			p->low = p->n;
		return chunk;
	}
	if (budget_charge(p->budget, p->size) != OK)
		return NULL;
	chunk = mem_pages(p->size);
	if (!chunk)
		budget_credit(p->budget, p->size);
	return chunk;
}

void pages_put(struct pages *p, void *chunk)
{
	*(void **)chunk = p->list;
	p->list = chunk;
	p->n++;
}

void pages_trim(struct pages *p)
{
	for (unsigned i = p->low; i > 0; i--)
		free_one(p);
	p->low = p->n;
}
