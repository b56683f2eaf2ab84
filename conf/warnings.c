/*
 * warnings: what is odd in a configuration that is right.
 *
 * Purpose   tell it without refusing the file: it may be meant.
 * Owns      nothing.
 * Called by proxy (check), tests, the fuzzer.
 * Never     looks at the text: the tree has the places.
 */
#include "conf/odd.h"

static void unused(const struct conf *c, struct conf_errors *to)
{
	for (size_t i = 0; i < c->service_count; i++)
		if (!c->services[i].used)
			conf_errors_add(to, c->services[i].pos, "no route leads to the service `%s`", c->services[i].name.p);
}

static bool is_repeated(const struct conf_error *a, const struct conf_error *b)
{
	return a->pos.line == b->pos.line && a->pos.column == b->pos.column && str_eq(a->text, b->text);
}

static void unasked(const struct conf *c, struct conf_errors *to)
{
	for (size_t i = 0; i < c->listen_count; i++)
		if (c->listens[i].speaks == CONF_SPEAKS_HTTP)
			return;
	if (c->route_count)
		conf_errors_add(to, c->routes->pos, "no listener speaks HTTP, so nothing asks the routes");
}

size_t conf_warnings_print(const struct conf *c, FILE *to)
{
	struct conf_errors e;
	size_t n = 0;

	conf_errors_init(&e);
	unused(c, &e);
	unasked(c, &e);
	for (const struct conf_note *note = c->notes; note; note = note->next)
		conf_errors_add(&e, note->pos, "%s", note->text.p);
	conf_shadows_find(c, &e);
	conf_errors_finish(&e, STR(""));
	for (size_t i = 0; i < e.count; i++) {
		/* what stands in `defaults` is odd once, not for each item */
		if (i && is_repeated(&e.items[i - 1], &e.items[i]))
			continue;
		fprintf(to, "%s:%u:%u: warning: %s\n", c->file.p, e.items[i].pos.line, e.items[i].pos.column,
			e.items[i].text.p);
		n++;
	}
	if (e.more)
		fprintf(to, "%s: and %zu more warnings\n", c->file.p, e.more);
	if (e.no_memory)
		fprintf(to, "%s: no memory to look for warnings\n", c->file.p);
	n += e.more;
	conf_errors_fini(&e);
	return n;
}
