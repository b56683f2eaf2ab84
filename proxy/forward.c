/* forward: see forward.h.
 *
 * One pass over the fields decides which stay; then ours are appended, so that our own
 * value is always the last of its list.  A peer that is not among the listener's trusted
 * proxies cannot speak of those before it: what it says in X-Forwarded-* and Forwarded
 * is dropped.  The route's edits come last and have the last word. */
#include "proxy/forward.h"

#include "lib/base/num.h"
#include "proxy/affinity.h"
#include "proxy/client.h"

#define REQUEST_ID_MAX 128

/* --- request ids --- */

static bool id_acceptable(struct str s)
{
	if (s.n == 0 || s.n > REQUEST_ID_MAX)
		return false;
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		      strchr("-_.:+/=@", c)))
			return false;
	}
	return true;
}

static uint64_t mix(uint64_t v)
{
	v = (v ^ (v >> 30)) * 0xbf58476d1ce4e5b9u;
	v = (v ^ (v >> 27)) * 0x94d049bb133111ebu;
	return v ^ (v >> 31);
}

/* 16 hex digits of `v`, eight of them at a time in one word. */
static void put_hex(char *p, uint64_t v)
{
	for (int half = 0; half < 2; half++) {
		uint64_t w = half ? v & 0xffffffffu : v >> 32;

		/* spread to a nibble a byte, the highest first in memory */
		w = (w & 0xffff) << 32 | w >> 16;
		w = (w & 0x000000ff000000ffu) << 16 | (w & 0x0000ff000000ff00u) >> 8;
		w = (w & 0x000f000f000f000fu) << 8 | (w & 0x00f000f000f000f0u) >> 4;
		/* 0..9 become '0'..'9', 10..15 become 'a'..'f' */
		w += 0x3030303030303030u + ((w + 0x0606060606060606u) >> 4 & 0x0101010101010101u) * 39;
		memcpy(p + 8 * half, &w, 8);
	}
}

/* 32 hex digits: the worker's own 16, drawn at random when it began, and 16 made of its count. */
static struct str id_new(struct exchange *x)
{
	struct worker *w = x->w;
	char *p = arena_alloc(&x->arena, 32);

	if (!p)
		return (struct str){0};
	if (!w->id_prefix[0])
		put_hex(w->id_prefix, w->id_seed[0]);
	memcpy(p, w->id_prefix, 16);
	put_hex(p + 16, mix(w->id_seed[1] + ++w->id_count));
	return (struct str){ p, 32 };
}

struct str forward_request_id(struct exchange *x, const struct head *h)
{
	struct str name = x->w->settings->listeners[x->client->listener].request_id;
	const struct field *f;
	unsigned i = 0;

	if (!name.n)
		return (struct str){0};
	f = head_find(h, name, &i);
	if (f && id_acceptable(field_value(f)))
		return arena_dup(&x->arena, field_value(f));
	return id_new(x);
}

/* --- who forwarded it --- */

static char *copy(char *p, struct str s)
{
	if (s.n)
		memcpy(p, s.p, s.n);
	return p + s.n;
}

/* The values of all fields of one id, joined, with `last` behind them. */
static struct str joined(struct exchange *x, const struct head *h, uint8_t id, bool believe, struct str last)
{
	size_t n = last.n;
	char *p, *start;

	for (unsigned i = 0; believe && i < h->n_fields; i++)
		if (h->field[i].id == id && h->field[i].value_len)
			n += h->field[i].value_len + 2;
	p = start = arena_alloc(&x->arena, n);
	if (!p)
		return (struct str){0};
	for (unsigned i = 0; believe && i < h->n_fields; i++) {
		if (h->field[i].id != id || !h->field[i].value_len)
			continue;
		p = copy(p, field_value(&h->field[i]));
		p = copy(p, STR(", "));
	}
	copy(p, last);
	return (struct str){ start, n };
}

static struct str scheme_of(const struct exchange *x)
{
	return conn_secure(x->client) ? STR("https") : STR("http");
}

/* for=192.0.2.1;host="a.example:8080";proto=http (RFC 7239 4) */
static struct str forwarded_member(struct exchange *x, struct str ip, bool v6, struct str host)
{
	char *p, *start = p = arena_alloc(&x->arena, ip.n + host.n + 48);

	if (!p)
		return (struct str){0};
	p = copy(p, STR("for="));
	if (v6)
		p = copy(p, STR("\"["));
	p = copy(p, ip);
	if (v6)
		p = copy(p, STR("]\""));
	if (host.n) {
		p = copy(p, STR(";host=\""));
		p = copy(p, host);
		p = copy(p, STR("\""));
	}
	p = copy(p, STR(";proto="));
	p = copy(p, scheme_of(x));
	return (struct str){ start, (size_t)(p - start) };
}

struct str forward_scheme(const struct exchange *x, const struct head *h)
{
	const struct listener *l = &x->w->settings->listeners[x->client->listener];

	if (!l->trusted || l->x_forwarded == FORWARDED_REPLACE || !client_trusted(x->w, x->client))
		return scheme_of(x);
	for (unsigned i = 0; i < h->n_fields; i++)
		if (h->field[i].id == FIELD_X_FORWARDED_PROTO)
			return str_ieq(field_value(&h->field[i]), STR("https")) ? STR("https") : STR("http");
	return scheme_of(x);
}

struct said {	/* what a trusted peer said already */
	bool proto, host;
};

static enum err add_forwarded(struct exchange *x, struct head *h, const struct listener *l,
			      struct str xff, struct str forwarded, struct said said)
{
	enum err err = OK;

	if (l->x_forwarded != FORWARDED_OFF) {
		err = head_add_id(h, FIELD_X_FORWARDED_FOR, STR("X-Forwarded-For"), xff);
		if (err == OK && !said.proto)
			err = head_add_id(h, FIELD_X_FORWARDED_PROTO, STR("X-Forwarded-Proto"), scheme_of(x));
		if (err == OK && !said.host && h->authority.n)
			err = head_add_id(h, FIELD_X_FORWARDED_HOST, STR("X-Forwarded-Host"), h->authority);
	}
	if (err == OK && l->forwarded)
		err = head_add_id(h, FIELD_FORWARDED, STR("Forwarded"), forwarded);
	if (err == OK && l->via[0].n)
		err = head_add_id(h, FIELD_VIA, STR("Via"), l->via[x->minor]);
	if (err == OK && x->request_id.n)
		err = head_add_id(h, FIELD_OTHER, l->request_id, x->request_id);
	return err;
}

/* Whether a field stays; `trusted`: what the peer says of others is believed. */
static bool stays(struct exchange *x, const struct listener *l, const struct field *f, bool trusted, struct said *said)
{
	bool believe = trusted && l->x_forwarded != FORWARDED_REPLACE;

	switch (f->id) {
	case FIELD_X_FORWARDED_FOR:
		return believe && l->x_forwarded == FORWARDED_OFF;	/* else it is joined with ours */
	case FIELD_X_FORWARDED_PROTO:
		said->proto |= believe;
		return believe;
	case FIELD_X_FORWARDED_HOST:
		said->host |= believe;
		return believe;
	case FIELD_X_FORWARDED_CLIENT_CERT:
		return trusted && l->client_cert >= CLIENT_CERT_APPEND;
	case FIELD_FORWARDED:
		return trusted && !l->forwarded;
	case FIELD_EXPECT:
		return x->minor > 0;	/* RFC 9110 10.1.1 */
	case FIELD_OTHER:
		if (x->request_id.n && str_ieq(field_name(f), l->request_id))
			return false;
		return !memchr(f->name, '_', f->name_len) ||
		       (l->underscores == UNDERSCORES_ALLOW && !head_alike(field_name(f), STR("X-Forwarded-Client-Cert")));
	default:
		return true;
	}
}

static enum err edit(struct head *h, const struct header_mod *mods, unsigned n, bool secure)
{
	enum err err = OK;

	for (unsigned i = 0; i < n && err == OK; i++) {
		switch (mods[i].op) {
		case HEADER_SET_SECURE:
			if (!secure)
				break;
			__attribute__((fallthrough));
		case HEADER_SET:
			err = head_set(h, mods[i].name, mods[i].value);
			break;
		case HEADER_ADD:
			err = head_add(h, mods[i].name, mods[i].value);
			break;
		default:
			head_remove(h, mods[i].name);
		}
	}
	return err;
}

static bool has_underscore(const struct head *h)
{
	for (unsigned i = 0; i < h->n_fields; i++)
		if (memchr(h->field[i].name, '_', h->field[i].name_len))
			return true;
	return false;
}

/* Max-Forwards of OPTIONS and TRACE (RFC 9110 7.6.2): counted down, and at 0 the request goes no further. */
static enum cause count_forwards(struct exchange *x, struct head *h)
{
	unsigned i = 0;
	struct field *f = head_find(h, STR("Max-Forwards"), &i);
	uint64_t left;
	char *p;

	if (!f || num_parse_dec(field_value(f), UINT32_MAX, &left) != OK)
		return CAUSE_NONE;
	if (left == 0)
		return x->method == METHOD_OPTIONS ? CAUSE_MAX_FORWARDS : CAUSE_TRACE_HERE;
	p = arena_alloc(&x->arena, NUM_DEC_MAX);
	if (!p)
		return CAUSE_NO_MEMORY;
	f->value_len = (uint32_t)num_dec(p, left - 1);
	f->value = p;
	return CAUSE_NONE;
}

/* Whose certificate it was, when the client has shown one: behind what a peer said that is believed, which is still there. */
static enum cause add_client_cert(struct exchange *x, struct head *h, const struct listener *l)
{
	const struct identity *who = l->client_cert != CLIENT_CERT_PASS && conn_secure(x->client) ? identity_of(x->client) : NULL;
	const struct str name = STR("X-Forwarded-Client-Cert");
	struct str all;

	if (!who || !who->shown)
		return CAUSE_NONE;
	all = who->shown->field;
	if (head_find_id(h, FIELD_X_FORWARDED_CLIENT_CERT)) {
		all = joined(x, h, FIELD_X_FORWARDED_CLIENT_CERT, true, all);
		if (!all.p)
			return CAUSE_NO_MEMORY;
		head_remove(h, name);
	}
	return head_add_id(h, FIELD_X_FORWARDED_CLIENT_CERT, name, all) == OK ? CAUSE_NONE : CAUSE_BAD_REQUEST;
}

/* What the listener lets through, and what it adds. */
static enum cause by_listener(struct exchange *x, const struct listener *l, struct head *h)
{
	bool trusted = l->trusted && client_trusted(x->w, x->client);
	bool v6 = x->client->t.flags & CONN_V6;
	char text[64];
	struct str ip = { text, client_ip(x->client, text) };
	struct str xff = {0}, forwarded = {0};
	struct said said = {0};
	unsigned n = 0;

	if (l->underscores == UNDERSCORES_REFUSE && has_underscore(h))
		return CAUSE_UNDERSCORE;
	if (l->x_forwarded != FORWARDED_OFF)
		xff = joined(x, h, FIELD_X_FORWARDED_FOR, trusted && l->x_forwarded == FORWARDED_APPEND, ip);
	if (l->forwarded)
		forwarded = joined(x, h, FIELD_FORWARDED, trusted, forwarded_member(x, ip, v6, h->authority));
	if ((l->x_forwarded != FORWARDED_OFF && !xff.p) || (l->forwarded && !forwarded.p))
		return CAUSE_NO_MEMORY;
	for (unsigned i = 0; i < h->n_fields; i++) {
		if (!stays(x, l, &h->field[i], trusted, &said))
			continue;
		if (n != i)
			h->field[n] = h->field[i];
		n++;
	}
	h->n_fields = (uint16_t)n;
	if (add_forwarded(x, h, l, xff, forwarded, said) != OK)
		return CAUSE_BAD_REQUEST;
	return l->client_cert ? add_client_cert(x, h, l) : CAUSE_NONE;
}

enum cause forward_request(struct exchange *x, struct head *h)
{
	const struct listener *l = &x->w->settings->listeners[x->client->listener];
	enum cause cause = CAUSE_NONE;

	if (x->method == METHOD_OPTIONS || x->method == METHOD_TRACE)
		cause = count_forwards(x, h);
	if (cause == CAUSE_NONE)
		cause = by_listener(x, l, h);
	if (cause == CAUSE_NONE && edit(h, x->route->spec->request, x->route->spec->n_request, false) != OK)
		cause = CAUSE_BAD_REQUEST;
	return cause;
}

enum cause forward_question(struct exchange *x, struct head *h)
{
	return by_listener(x, &x->w->settings->listeners[x->client->listener], h);
}

/* In the order in which they were noted. */
struct note {
	struct note *next;
	const struct header_mod *mods;	/* borrowed, or `own` */
	unsigned n;
	struct header_mod own[];
};

static void note_add(struct exchange *x, struct note *n)
{
	struct note **at = &x->notes;

	while (*at)
		at = &(*at)->next;
	n->next = NULL;
	*at = n;
}

enum err forward_note(struct exchange *x, enum header_op op, struct str name, struct str value)
{
	struct note *n = arena_alloc(&x->arena, sizeof *n + sizeof n->own[0]);

	if (!n)
		return ERR_MEM;
	n->own[0] = (struct header_mod){ .op = (uint8_t)op, .name = name, .value = value };
	n->mods = n->own;
	n->n = 1;
	note_add(x, n);
	return OK;
}

enum err forward_notes(struct exchange *x, const struct header_mod *mods, unsigned count)
{
	struct note *n = arena_alloc(&x->arena, sizeof *n);

	if (!n)
		return ERR_MEM;
	n->mods = mods;
	n->n = count;
	note_add(x, n);
	return OK;
}

unsigned forward_added(const struct exchange *x)
{
	unsigned added = x->route ? x->route->spec->n_response : 0;

	for (const struct note *n = x->notes; n; n = n->next)
		added += n->n;
	return added;
}

static enum err edit_noted(struct exchange *x, struct head *h)
{
	enum err err = OK;

	for (const struct note *n = x->notes; n && err == OK; n = n->next)
		err = n->mods->op == HEADER_VARY ? head_vary(h, n->mods->value, &x->arena) : edit(h, n->mods, n->n, false);
	return err;
}

/* What says that TLS is needed is there whatever becomes of a request (RFC 6797 7.1), and no other change of the route. */
static enum err be_strict(struct head *h, const struct route_spec *r)
{
	enum err err = OK;

	for (unsigned i = 0; i < r->n_response && err == OK; i++)
		if (r->response[i].op == HEADER_SET_SECURE)
			err = head_set(h, r->response[i].name, r->response[i].value);
	return err;
}

static enum cause complete_answer(struct exchange *x, struct head *h, bool edits)
{
	const struct listener *l = &x->w->settings->listeners[x->client->listener];

	if (!head_find_id(h, FIELD_DATE) && head_add_id(h, FIELD_DATE, STR("Date"), worker_date(x->w)) != OK)
		return CAUSE_ANSWER_HEAD_SIZE;
	if (x->request_id.n && head_set(h, l->request_id, x->request_id) != OK)
		return CAUSE_ANSWER_HEAD_SIZE;
	if (x->notes && edit_noted(x, h) != OK)
		return CAUSE_ANSWER_HEAD_SIZE;
	if (edits && edit(h, x->route->spec->response, x->route->spec->n_response, conn_secure(x->client)) != OK)
		return CAUSE_ANSWER_HEAD_SIZE;
	if (!edits && x->route && conn_secure(x->client) && be_strict(h, x->route->spec) != OK)
		return CAUSE_ANSWER_HEAD_SIZE;
	return CAUSE_NONE;
}

enum cause forward_answer(struct exchange *x, struct head *h)
{
	if (x->lease.service->rules->balance == BALANCE_STICKY && affinity_answer(x, h) != OK)
		return CAUSE_ANSWER_HEAD_SIZE;
	return complete_answer(x, h, true);
}

enum cause forward_own_answer(struct exchange *x, struct head *h, bool edits)
{
	return complete_answer(x, h, edits && x->route);
}
