/*
 * warnings: what is odd in a configuration that is right.
 *
 * Purpose   tell it without refusing the file: it may be meant.
 * Owns      nothing.
 * Called by proxy (check), tests, the fuzzer.
 * Never     looks at the text: the tree has the places.
 */
#include "conf/conf.h"

size_t conf_warnings_print(const struct conf *c, FILE *to)
{
	size_t n = 0;

	for (size_t i = 0; i < c->service_count; i++) {
		const struct conf_service *s = &c->services[i];

		if (s->used)
			continue;
		fprintf(to, "%s:%u:%u: warning: no route leads to the service `%s`\n", c->file.p, s->pos.line,
			s->pos.column, s->name.p);
		n++;
	}
	return n;
}
