/*
 * conf: the door of the room.
 *
 * Purpose   text, a file, or two addresses of a command line -> a checked tree.
 * Owns      the tree until it is handed over; nodes and notes only while it works.
 * Called by proxy (start, reload, check), tests, the fuzzer.
 * Never     keeps the text, prints, or hands out a tree that has an error.
 */
#include "conf/conf.h"

#include <errno.h>

#include "conf/errors.h"
#include "conf/tree.h"
#include "conf/walk.h"
#include "lib/base/mem.h"

#define TEXT_MAX (64u << 20)

static const struct conf_pos nowhere;

static struct conf *conf_new(struct conf_errors *errors)
{
	struct conf *c = mem_zalloc(sizeof *c);

	if (c)
		arena_init(&c->arena, NULL, 0, NULL);
	else
		errors->no_memory = true;
	return c;
}

void conf_free(struct conf *c)
{
	if (!c)
		return;
	arena_fini(&c->arena);
	mem_free(c);
}

/* The tree of `root`, or NULL with errors. */
static struct conf *conf_build(const struct conf_node *root, struct arena *scratch, struct conf_errors *errors)
{
	struct conf *c = conf_new(errors);
	struct conf_walk w = {.conf = c, .scratch = scratch, .errors = errors};

	if (!c)
		return NULL;
	c->file = conf_walk_dup(&w, str_of(errors->file));
	conf_walk_file(&w, root);
	if (!conf_errors_any(errors))
		return c;
	conf_free(c);
	return NULL;
}

struct conf *conf_parse(const char *file_name, struct str text, conf_env *env, struct conf_errors *errors)
{
	struct conf_node *root = NULL;
	struct conf *c = NULL;
	struct arena scratch;

	conf_errors_begin(errors, file_name);
	if (text.n > TEXT_MAX) {
		conf_errors_add(errors, nowhere, "larger than 64 MiB");
		return NULL;
	}
	if (str_starts(text, STR("\xef\xbb\xbf"))) {
		text.p += 3;
		text.n -= 3;
	}
	arena_init(&scratch, NULL, 0, NULL);
	if (conf_tree_read(text, env, &scratch, errors, &root) == OK) {
		if (root && (root->kind != CONF_NODE_TEXT || root->text.n))
			c = conf_build(root, &scratch, errors);
		else
			conf_errors_add(errors, nowhere, "nothing to serve: the file is empty");
	}
	arena_fini(&scratch);
	conf_errors_finish(errors, text);
	return c;
}

/* All of `f`, moved to the caller; *n may be TEXT_MAX + 1 when there is more. */
static char *file_read(FILE *f, size_t *n)
{
	size_t cap = 64 * 1024;
	char *p = mem_alloc(cap);

	*n = 0;
	while (p) {
		size_t got = fread(p + *n, 1, cap - *n, f);
		char *more;

		*n += got;
		if (!got || *n > TEXT_MAX)
			return p;
		if (*n < cap)
			continue;
		cap *= 2;
		more = mem_realloc(p, cap);
		if (!more)
			mem_free(p);
		p = more;
	}
	return NULL;
}

struct conf *conf_load(const char *path, conf_env *env, struct conf_errors *errors)
{
	bool in = strcmp(path, "-") == 0;
	const char *name = in ? "standard input" : path;
	struct conf *c = NULL;
	FILE *f = in ? stdin : fopen(path, "re");
	char *p;
	size_t n;

	if (!f) {
		conf_errors_begin(errors, name);
		conf_errors_add(errors, nowhere, "cannot be opened: %s", strerror(errno));
		return NULL;
	}
	errno = 0;
	p = file_read(f, &n);
	if (!p) {
		conf_errors_begin(errors, name);
		errors->no_memory = true;
	} else if (ferror(f)) {
		conf_errors_begin(errors, name);
		conf_errors_add(errors, nowhere, "cannot be read: %s", strerror(errno));
	} else {
		c = conf_parse(name, (struct str){p, n}, env, errors);
	}
	mem_free(p);
	if (!in)
		fclose(f);
	return c;
}

static struct conf_node *member(struct conf_node *map, struct conf_node *n, const char *key)
{
	n->key = str_of(key);
	n->next = map->first;
	map->first = n;
	map->count++;
	return n;
}

/* The nodes that this text would have, without a way for `to` to be more than a text:
 *   listen: LISTEN
 *   services: { target: TO }
 *   routes: [ { service: target } ] */
struct conf *conf_for_target(const char *to, const char *listen, struct conf_errors *errors)
{
	struct conf_node root = {.kind = CONF_NODE_MAP}, services = root, route = root;
	struct conf_node where = {.kind = CONF_NODE_TEXT, .text = str_of(listen)};
	struct conf_node target = {.kind = CONF_NODE_TEXT, .text = str_of(to)};
	struct conf_node name = {.kind = CONF_NODE_TEXT, .text = STR("target")};
	struct conf_node routes = {.kind = CONF_NODE_LIST, .first = &route, .count = 1};
	struct arena scratch;
	struct conf *c;

	conf_errors_begin(errors, "command line");
	if (listen)
		member(&root, &where, "listen");
	member(&services, &target, "target");
	member(&root, &services, "services");
	member(&route, &name, "service");
	member(&root, &routes, "routes");
	arena_init(&scratch, NULL, 0, NULL);
	c = conf_build(&root, &scratch, errors);
	arena_fini(&scratch);
	return c;
}
