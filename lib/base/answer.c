/* answer: see answer.h.  Owns nothing but what a part does. */
#include "lib/base/answer.h"

#include "lib/base/mem.h"

void answer_part_fini(struct answer_part *p, int srv)
{
	for (uint32_t i = 0; srv && i < p->n; i++)
		mem_free(p->srv[i].target);
	mem_free(p->ip);
	*p = (struct answer_part){0};
}
