/*
 * tree: YAML text -> nodes with places.
 *
 * Purpose   the one file that knows libyaml: its events become a tree of texts,
 *           lists and maps, so that all else can look at a file in any order.
 * Owns      the parser while it reads; the nodes are in the caller's arena.
 * Called by conf.c.
 * Never     gives a value a meaning: everything is text until a key says what it is
 *           (so that `off` and `1.10` are never taken for something else).
 * Invariant depth, nodes and what variables add are bounded; anchors, aliases, tags
 *           and further documents are errors; a map has no key twice.
 */
#include "conf/tree.h"

#include <stdlib.h>
#include <yaml.h>

#include "conf/errors.h"
#include "conf/expand.h"
#include "conf/slip.h"

#define TREE_DEPTH 12
#define TREE_NODES 4000000u
#define FEW_KEYS 8	/* up to here pairs are compared, beyond they are sorted */

struct frame {
	struct conf_node *node;
	struct conf_node **tail;
	struct str key;
	struct conf_pos key_pos;
	bool has_key;
};

struct reader {
	yaml_parser_t yaml;
	struct str text;
	struct arena *arena;		/* borrowed */
	struct conf_errors *errors;	/* borrowed */
	struct conf_expand expand;
	struct frame stack[TREE_DEPTH];
	size_t depth;
	struct conf_node *root;
	uint32_t nodes, documents;
	struct {
		struct conf_pos end;
		bool dollar, wrong;	/* a `$` is its last byte; it was reported */
		size_t errors;		/* before it */
	} plain;		/* the last plain scalar, for what may follow it */
};

struct str conf_dup(struct arena *arena, struct str s)
{
	char *p = arena_alloc(arena, s.n + 1);

	if (!p)
		return (struct str){NULL, 0};
	if (s.n)
		memcpy(p, s.p, s.n);
	p[s.n] = '\0';
	return (struct str){p, s.n};
}

const struct conf_node *conf_node_child(const struct conf_node *map, const char *key)
{
	const struct conf_node *n = map && map->kind == CONF_NODE_MAP ? map->first : NULL;

	for (; n; n = n->next)
		if (str_eq(n->key, str_of(key)))
			return n;
	return NULL;
}

const char *conf_node_what(const struct conf_node *n)
{
	switch (n->kind) {
	case CONF_NODE_LIST:
		return "a list";
	case CONF_NODE_MAP:
		return "a map";
	case CONF_NODE_TEXT:
		return n->text.n ? "a text" : "nothing";
	case CONF_NODE_BAD:
		break;
	}
	return "what is wrong";
}

static struct conf_pos pos_of(yaml_mark_t m)
{
	return (struct conf_pos){(uint32_t)m.line + 1, (uint32_t)m.column + 1};
}

/* The place of the byte at `offset`; only what is not UTF-8 is told by a byte. */
static struct conf_pos pos_of_byte(struct str text, size_t offset)
{
	struct conf_pos pos = {1, 1};
	size_t at = 0;

	while (at < offset && at < text.n) {
		size_t n = conf_break_size((struct str){text.p + at, text.n - at});

		if (n) {
			pos = (struct conf_pos){pos.line + 1, 1};
			at += n;
		} else {
			at++;
			pos.column += at == text.n || ((unsigned char)text.p[at] & 0xc0) != 0x80;
		}
	}
	return pos;
}

/* A better word for what libyaml could not read, at *pos, which may move; NULL: none. */
static const char *yaml_slip(struct reader *r, struct conf_pos *pos)
{
	const yaml_parser_t *y = &r->yaml;
	struct conf_pos end = r->plain.end;
	struct str at = conf_slip_at(r->text, *pos);
	const char *slip = end.line ? conf_slip_scalar(r->text, r->plain.dollar, &end) : NULL;

	if (slip) {
		if (r->plain.wrong)
			r->errors->count = r->plain.errors;	/* what was wrong with the half that was read */
		*pos = end;
		return slip;
	}
	if (at.n && at.p[0] == '\t')
		return "a tab cannot be here; YAML wants spaces";
	return y->problem ? conf_slip(r->text, y->problem, (uint32_t)y->context_mark.line + 1, pos) : NULL;
}

static enum err yaml_failed(struct reader *r)
{
	const yaml_parser_t *y = &r->yaml;
	struct conf_pos pos = pos_of(y->problem_mark);
	const char *problem = y->problem ? y->problem : "cannot be read", *slip;

	if (y->error == YAML_MEMORY_ERROR) {
		r->errors->no_memory = true;
		return ERR_MEM;
	}
	if (y->error == YAML_READER_ERROR) {
		conf_errors_add(r->errors, pos_of_byte(r->text, y->problem_offset), "not valid text: %s", problem);
		return ERR_SYNTAX;
	}
	if (y->context && strstr(y->context, "an alias"))
		conf_errors_add(r->errors, pos_of(y->context_mark), "a value that begins with `*` must be in quotes");
	else if ((slip = yaml_slip(r, &pos)))
		conf_errors_add(r->errors, pos, "%s", slip);
	else if (y->context)
		conf_errors_add(r->errors, pos, "not valid YAML: %s, %s on line %zu", problem, y->context,
				y->context_mark.line + 1);
	else
		conf_errors_add(r->errors, pos, "not valid YAML: %s", problem);
	return ERR_SYNTAX;
}

static int keys_compare(const void *a, const void *b)
{
	const struct conf_node *x = *(struct conf_node *const *)a, *y = *(struct conf_node *const *)b;
	size_t n = x->key.n < y->key.n ? x->key.n : y->key.n;
	int rc = n ? memcmp(x->key.p, y->key.p, n) : 0;

	if (rc)
		return rc;
	if (x->key.n != y->key.n)
		return x->key.n < y->key.n ? -1 : 1;
	if (x->key_pos.line != y->key_pos.line)
		return x->key_pos.line < y->key_pos.line ? -1 : 1;
	return x->key_pos.column < y->key_pos.column ? -1 : x->key_pos.column > y->key_pos.column;
}

/* Reports and drops what is there twice. */
static enum err map_unique(struct reader *r, struct conf_node *map)
{
	struct conf_node *few[FEW_KEYS], **all = few, **tail = &map->first;
	uint32_t n = 0, kept = 0;

	if (map->count > FEW_KEYS)
		all = arena_alloc(r->arena, map->count * sizeof *all);
	if (!all) {
		r->errors->no_memory = true;
		return ERR_MEM;
	}
	for (struct conf_node *c = map->first; c; c = c->next)
		all[n++] = c;
	qsort(all, n, sizeof *all, keys_compare);
	for (uint32_t i = 0; i < n; i++) {
		if (kept && str_eq(all[kept - 1]->key, all[i]->key)) {
			conf_errors_add(r->errors, all[i]->key_pos, "duplicate key `%.60s`, first on line %u",
					all[i]->key.p, all[kept - 1]->key_pos.line);
			all[i]->key.p = NULL;	/* the mark of what goes */
		} else {
			all[kept++] = all[i];
		}
	}
	while (*tail) {
		if ((*tail)->key.p)
			tail = &(*tail)->next;
		else
			*tail = (*tail)->next;
	}
	map->count = kept;
	return OK;
}

/* Hangs a new node into what is open; NULL, reported, when it cannot be. */
static struct conf_node *node_add(struct reader *r, enum conf_node_kind kind, struct conf_pos pos)
{
	struct frame *f = r->depth ? &r->stack[r->depth - 1] : NULL;
	struct conf_node *n;

	if (++r->nodes > TREE_NODES) {
		conf_errors_add(r->errors, pos, "too large: more than %u values", TREE_NODES);
		return NULL;
	}
	n = arena_alloc(r->arena, sizeof *n);
	if (!n) {
		r->errors->no_memory = true;
		return NULL;
	}
	*n = (struct conf_node){.kind = kind, .pos = pos, .key = STR(""), .text = STR("")};
	if (!f) {
		r->root = n;
		return n;
	}
	if (f->node->kind == CONF_NODE_MAP) {
		n->key = f->key;
		n->key_pos = f->key_pos;
		f->has_key = false;
	}
	*f->tail = n;
	f->tail = &n->next;
	f->node->count++;
	return n;
}

static bool wants_key(const struct reader *r)
{
	return r->depth && r->stack[r->depth - 1].node->kind == CONF_NODE_MAP && !r->stack[r->depth - 1].has_key;
}

static void refuse_extras(struct reader *r, struct conf_pos pos, const void *anchor, const void *tag)
{
	if (anchor)
		conf_errors_add(r->errors, pos, "anchors (`&name`) are not supported; quote a value that begins with `&`");
	if (tag)
		conf_errors_add(r->errors, pos, "tags (`!name`) are not supported; quote a value that begins with `!`");
}

static enum err open_node(struct reader *r, enum conf_node_kind kind, struct conf_pos pos)
{
	struct conf_node *n;

	if (wants_key(r)) {
		conf_errors_add(r->errors, pos, "a key must be a plain word, not %s",
				kind == CONF_NODE_MAP ? "a map; quote a value that begins with `{`"
				: "a list; quote a value that begins with `[`");
		return ERR_SYNTAX;
	}
	if (r->depth == TREE_DEPTH) {
		conf_errors_add(r->errors, pos, "nested deeper than %d", TREE_DEPTH);
		return ERR_SYNTAX;
	}
	n = node_add(r, kind, pos);
	if (!n)
		return ERR_SYNTAX;
	r->stack[r->depth++] = (struct frame){.node = n, .tail = &n->first};
	return OK;
}

static enum err close_node(struct reader *r)
{
	struct conf_node *n = r->stack[--r->depth].node;

	return n->kind == CONF_NODE_MAP ? map_unique(r, n) : OK;
}

static enum err scalar_key(struct reader *r, const yaml_event_t *ev)
{
	struct frame *f = &r->stack[r->depth - 1];

	f->key = conf_dup(r->arena, (struct str){(const char *)ev->data.scalar.value, ev->data.scalar.length});
	f->key_pos = pos_of(ev->start_mark);
	f->has_key = true;
	if (f->key.p)
		return OK;
	r->errors->no_memory = true;
	return ERR_MEM;
}

static void plain_note(struct reader *r, const yaml_event_t *ev, struct str raw)
{
	if (!raw.n)
		return;	/* nothing stands there: what is before it counts */
	r->plain.end = (struct conf_pos){0};
	if (ev->data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
		r->plain.end = pos_of(ev->end_mark);
	r->plain.dollar = raw.p[raw.n - 1] == '$';
	r->plain.wrong = false;
	r->plain.errors = r->errors->count;
}

static enum err scalar(struct reader *r, const yaml_event_t *ev)
{
	struct str raw = {(const char *)ev->data.scalar.value, ev->data.scalar.length};
	bool plain = ev->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	bool exact = ev->start_mark.line == ev->end_mark.line;
	struct conf_pos pos = pos_of(ev->start_mark), begin = pos;
	struct conf_node *n;

	refuse_extras(r, pos, ev->data.scalar.anchor, ev->data.scalar.tag);
	plain_note(r, ev, raw);
	if (wants_key(r))
		return scalar_key(r, ev);
	if (!raw.n && plain && r->depth && r->stack[r->depth - 1].has_key)
		pos = r->stack[r->depth - 1].key_pos;	/* nothing there: show the key */
	n = node_add(r, CONF_NODE_TEXT, pos);
	if (!n)
		return ERR_SYNTAX;
	begin.column += exact && !plain;
	if (!conf_expand(&r->expand, raw, begin, exact, &n->text)) {
		n->kind = CONF_NODE_BAD;
		r->plain.wrong = true;
	}
	return OK;
}

static enum err alias(struct reader *r, const yaml_event_t *ev)
{
	struct conf_pos pos = pos_of(ev->start_mark);

	conf_errors_add(r->errors, pos, "aliases (`*name`) are not supported; quote a value that begins with `*`");
	if (wants_key(r))
		return ERR_SYNTAX;
	return node_add(r, CONF_NODE_BAD, pos) ? OK : ERR_SYNTAX;
}

static enum err event(struct reader *r, const yaml_event_t *ev)
{
	struct conf_pos pos = pos_of(ev->start_mark);

	switch (ev->type) {
	case YAML_DOCUMENT_START_EVENT:
		if (r->documents++) {
			conf_errors_add(r->errors, pos, "a second document; a file holds one");
			return ERR_SYNTAX;
		}
		return OK;
	case YAML_MAPPING_START_EVENT:
		refuse_extras(r, pos, ev->data.mapping_start.anchor, ev->data.mapping_start.tag);
		return open_node(r, CONF_NODE_MAP, pos);
	case YAML_SEQUENCE_START_EVENT:
		refuse_extras(r, pos, ev->data.sequence_start.anchor, ev->data.sequence_start.tag);
		return open_node(r, CONF_NODE_LIST, pos);
	case YAML_MAPPING_END_EVENT:
	case YAML_SEQUENCE_END_EVENT:
		return close_node(r);
	case YAML_SCALAR_EVENT:
		return scalar(r, ev);
	case YAML_ALIAS_EVENT:
		return alias(r, ev);
	default:
		return OK;
	}
}

static enum err tree_events(struct reader *r)
{
	enum err rc = OK;
	bool last = false;

	while (rc == OK && !last) {
		yaml_event_t ev;

		if (!yaml_parser_parse(&r->yaml, &ev))
			return yaml_failed(r);
		last = ev.type == YAML_STREAM_END_EVENT;
		rc = event(r, &ev);
		yaml_event_delete(&ev);
		if (rc == OK && r->errors->no_memory)
			rc = ERR_MEM;
	}
	return rc;
}

enum err conf_tree_read(struct str text, conf_env *env, struct arena *arena, struct conf_errors *e,
			struct conf_node **root)
{
	struct reader r = {.text = text, .arena = arena, .errors = e, .expand = {env, arena, e, 0}};
	enum err rc;

	if (!yaml_parser_initialize(&r.yaml)) {
		e->no_memory = true;
		return ERR_MEM;
	}
	yaml_parser_set_encoding(&r.yaml, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&r.yaml, (const unsigned char *)text.p, text.n);
	rc = tree_events(&r);
	yaml_parser_delete(&r.yaml);
	if (rc == OK)
		*root = r.root;
	return rc;
}
