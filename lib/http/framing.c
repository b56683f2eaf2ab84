/* What the fields of an HTTP/1 head mean, and which of them pass.
 *
 * Called by the HTTP/1 codec for each whole head.  Owns nothing, keeps no state; the
 * head that it is given is changed in place.  It never repairs: a message that two
 * readers could take apart differently is refused.
 *
 * One walk over the fields sets their ids and collects what matters (struct facts),
 * the rules decide on that, one more walk takes out what does not pass. */
#include "lib/http/framing.h"

#include "lib/base/num.h"
#include "lib/http/token.h"

/* Names that Connection may list; beyond it somebody is making us work. */
#define CONNECTION_NAMES 100

struct facts {
	struct field *host, *length, *coding, *upgrade, *te, *expect;	/* the first of each, or NULL */
	uint8_t hosts, lengths, codings, upgrades;	/* how many, up to 2 */
	uint8_t connections;
	unsigned drops;		/* fields that Connection itself or the edge rules take out */
	bool close, keep_alive, wants_upgrade;
};

static void count(uint8_t *n, struct field **first, struct field *f)
{
	if (*n == 0)
		*first = f;
	if (*n < 2)
		++*n;
}

/* Origins of the CGI kind read '_' and '-' as one, so that Transfer_Encoding would
 * be a second name for what was decided here. */
static bool name_underscored(const struct field *f)
{
	return memchr(f->name, '_', f->name_len) != NULL;
}

static void facts_of(struct head *h, struct facts *x)
{
	struct field *te = NULL, *expect = NULL;
	uint8_t tes = 0, expects = 0;

	*x = (struct facts){0};
	for (unsigned i = 0; i < h->n_fields; i++) {
		struct field *f = &h->field[i];

		f->id = (uint8_t)field_id_of(field_name(f));
		if (f->id < FIELD_FRAMING)
			continue;
		switch (f->id) {
		case FIELD_HOST: count(&x->hosts, &x->host, f); break;
		case FIELD_CONTENT_LENGTH: count(&x->lengths, &x->length, f); break;
		case FIELD_TRANSFER_ENCODING: count(&x->codings, &x->coding, f); break;
		case FIELD_UPGRADE: count(&x->upgrades, &x->upgrade, f); break;
		case FIELD_TE: count(&tes, &te, f); break;
		case FIELD_EXPECT: count(&expects, &expect, f); break;
		case FIELD_CONNECTION: x->connections = 1; break;
		default: break;
		}
		x->drops += f->id >= FIELD_HOP;
	}
	x->te = te;
	x->expect = expect;
}

/* Fields that Connection may not take out: framing and routing were decided from
 * them (and are out already), so that naming them must change nothing. */
static bool name_protected(enum field_id id)
{
	return id == FIELD_HOST || id == FIELD_CONTENT_LENGTH || id >= FIELD_HOP;
}

/* What a field becomes that is taken out for its name: any hop-by-hop id but Connection. */
#define FIELD_MARKED FIELD_KEEP_ALIVE

/* Marks the fields of that name as hop-by-hop. */
static void mark_named(struct head *h, struct str name, struct facts *x)
{
	for (unsigned i = 0; i < h->n_fields; i++) {
		struct field *f = &h->field[i];

		if (str_ieq(field_name(f), name) && f->id < FIELD_HOP) {
			f->id = FIELD_MARKED;
			x->drops++;
		}
	}
}

/* Reads all Connection fields.  Names are few by rule, so that names times fields is bounded. */
static enum codec_fault connection_read(struct head *h, struct facts *x)
{
	unsigned names = 0;

	if (!x->connections)
		return FAULT_NONE;
	for (unsigned i = 0; i < h->n_fields; i++) {
		struct field *f = &h->field[i];
		struct str list = field_value(f), name;

		if (f->id != FIELD_CONNECTION)
			continue;
		while (list_next(&list, &name)) {
			if (++names > CONNECTION_NAMES)
				return FAULT_CONNECTION;
			if (str_ieq(name, STR("keep-alive")))
				x->keep_alive = true;
			else if (str_ieq(name, STR("close")))
				x->close = true;
			else if (str_ieq(name, STR("upgrade")))
				x->wants_upgrade = true;
			else if (!name_protected(field_id_of(name)))
				mark_named(h, name, x);
		}
	}
	return FAULT_NONE;
}

/* Takes out what is marked hop-by-hop, and of id `also`. */
static void strip(struct head *h, unsigned also)
{
	unsigned to = 0;

	for (unsigned i = 0; i < h->n_fields; i++) {
		uint8_t id = h->field[i].id;

		if (id >= FIELD_HOP || id == FIELD_CONTENT_LENGTH || id == also)
			continue;
		if (to != i)
			h->field[to] = h->field[i];
		to++;
	}
	h->n_fields = (uint16_t)to;
}

static bool list_has(struct str list, struct str name)
{
	struct str member;

	while (list_next(&list, &member))
		if (str_ieq(member, name))
			return true;
	return false;
}

/* Content-Length as one number: digits only, below 2^63. */
bool framing_length(struct str value, uint64_t *length)
{
	uint64_t n = 0;

	if (value.n == 0)
		return false;
	for (size_t i = 0; i < value.n; i++) {
		if (!is_digit(value.p[i]))
			return false;
		unsigned digit = (unsigned)(value.p[i] - '0');
		if (n >= INT64_MAX / 10 && n > ((uint64_t)INT64_MAX - digit) / 10)
			return false;
		n = n * 10 + digit;
	}
	*length = n;
	return true;
}

/* The one protocol that an Upgrade field names, "" when it is none or not one.
 * HTTP/2 in clear text never passes: it would be a connection within which
 * nothing is checked any more. */
static struct str upgrade_of(const struct facts *x)
{
	struct str v, name, version;
	const char *slash;

	if (!x->wants_upgrade || x->upgrades != 1)
		return STR("");
	v = name = field_value(x->upgrade);
	slash = v.n ? memchr(v.p, '/', v.n) : NULL;
	if (slash) {
		name.n = (size_t)(slash - v.p);
		version = (struct str){slash + 1, v.n - name.n - 1};
		if (!token_ok(version))
			return STR("");
	}
	if (!token_ok(name) || str_ieq(name, STR("h2c")) || str_ieq(name, STR("h2")) || str_ieq(name, STR("http")))
		return STR("");
	return v;
}

/* Why a Transfer-Encoding that is not exactly chunked is refused: 501 for a coding
 * that we do not know, and nothing else is wrong. */
static enum codec_fault coding_fault(const struct facts *x)
{
	struct str v = field_value(x->coding);

	return x->codings == 1 && token_ok(v) && !str_ieq(v, STR("identity")) ?
		FAULT_CODING_UNKNOWN : FAULT_TRANSFER_CODING;
}

/* Body length of a message that may have a body; RFC 9112 6.3, the strict reading. */
static enum codec_fault body_of(struct head *h, const struct facts *x)
{
	if (x->codings) {
		if (x->lengths)
			return FAULT_BOTH_LENGTHS;
		if (h->minor == 0)
			return FAULT_TRANSFER_CODING;
		if (x->codings != 1 || !str_ieq(field_value(x->coding), STR("chunked")))
			return coding_fault(x);
		h->body = BODY_STREAMED;
		return FAULT_NONE;
	}
	h->body = BODY_NONE;
	if (x->lengths) {
		if (x->lengths != 1 || !framing_length(field_value(x->length), &h->length))
			return FAULT_LENGTH;
		h->has_length = true;
		if (h->length)
			h->body = BODY_SIZED;
	}
	return FAULT_NONE;
}

static void meaning_reset(struct head *h)
{
	h->length = 0;
	h->keep_alive = 0;
	h->body = BODY_NONE;
	h->upgrade = h->authority = h->path = STR("");
	h->has_length = h->expect_continue = h->te_trailers = h->close = h->until_close = false;
}

/* reg-name characters but the comma (RFC 3986 3.2.2); '%' is looked at by the caller. */
static const bool host_char[256] = {
	['a' ... 'z'] = true, ['A' ... 'Z'] = true, ['0' ... '9'] = true,
	['-'] = true, ['.'] = true, ['_'] = true, ['~'] = true, ['!'] = true, ['$'] = true, ['&'] = true,
	['\''] = true, ['('] = true, [')'] = true, ['*'] = true, ['+'] = true, [';'] = true, ['='] = true,
};

static bool is_hex(char c)
{
	return is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}

static bool port_ok(struct str port)
{
	unsigned n = 0;

	for (size_t i = 0; i < port.n; i++) {
		if (!is_digit(port.p[i]))
			return false;
		n = n * 10 + (unsigned)(port.p[i] - '0');
		if (n > 65535)
			return false;
	}
	return true;
}

/* The length of "[IPv6]" at the front; 0 when it is not that. */
static size_t literal_len(struct str s)
{
	unsigned colons = 0;

	for (size_t i = 1; i < s.n; i++) {
		if (s.p[i] == ']')
			return colons >= 2 ? i + 1 : 0;
		if (s.p[i] == ':')
			colons++;
		else if (!is_hex(s.p[i]) && s.p[i] != '.')
			return 0;
	}
	return 0;
}

/* host [":" port], not empty, without userinfo or comma. */
bool framing_authority_ok(struct str a)
{
	size_t i = 0;

	if (a.n && a.p[0] == '[') {
		i = literal_len(a);
	} else {
		const unsigned char *p = (const unsigned char *)a.p;

		for (;; i += 3) {
			for (; i < a.n && host_char[p[i]]; i++)
				;
			if (i == a.n || a.p[i] == ':')
				break;
			if (a.p[i] != '%' || a.n - i < 3 || !is_hex(a.p[i + 1]) || !is_hex(a.p[i + 2]))
				return false;
		}
	}
	if (i == 0)
		return false;
	return i == a.n || (a.p[i] == ':' && port_ok((struct str){a.p + i + 1, a.n - i - 1}));
}

/* No controls, spaces, bytes over 0x7e, fragment or backslash in a target.  Anything
 * else passes as it came: what an escape means is for the origin to say. */
static bool target_chars_ok(struct str t)
{
	static const bool target_char[256] = {
		['!' ... '"'] = true, ['$' ... '['] = true, [']' ... '~'] = true,
	};
	const unsigned char *p = (const unsigned char *)t.p, *end = p + t.n;

	while (p < end && target_char[*p])
		p++;
	return p == end;
}

/* http://authority[/path][?query]: the authority wins over Host, the rest is forwarded in
 * origin form (RFC 9112 3.2.2). */
static enum codec_fault absolute_form(struct head *h, char *room)
{
	static const struct str http = {"http://", 7}, https = {"https://", 8};
	struct str t = h->target;
	size_t skip = 0, n;

	if (t.n >= http.n && strncasecmp(t.p, http.p, http.n) == 0)
		skip = http.n;
	else if (t.n >= https.n && strncasecmp(t.p, https.p, https.n) == 0)
		skip = https.n;
	else
		return FAULT_TARGET;
	t.p += skip;
	t.n -= skip;
	for (n = 0; n < t.n && t.p[n] != '/' && t.p[n] != '?'; n++)
		;
	h->authority = (struct str){t.p, n};
	if (!framing_authority_ok(h->authority))
		return FAULT_TARGET;
	t.p += n;
	t.n -= n;
	if (t.n == 0) {
		h->target = h->method_id == METHOD_OPTIONS ? STR("*") : STR("/");
	} else if (t.p[0] == '?') {
		room[0] = '/';
		memcpy(room + 1, t.p, t.n);
		h->target = (struct str){room, t.n + 1};
	} else {
		h->target = t;
	}
	return FAULT_NONE;
}

/* Target and authority, from the target as it came and the Host field. */
static enum codec_fault route_of(struct head *h, const struct facts *x, char *room)
{
	enum codec_fault f = FAULT_NONE;

	if (h->method_id == METHOD_CONNECT)
		return FAULT_CONNECT;
	if (x->hosts > 1 || (x->hosts == 0 && h->minor > 0))
		return FAULT_HOST;
	if (x->hosts)
		h->authority = field_value(x->host);
	if (x->hosts && !framing_authority_ok(h->authority))
		return FAULT_HOST;
	if (h->target.n == 0 || !target_chars_ok(h->target))
		return FAULT_TARGET;
	if (h->target.p[0] == '*') {
		if (h->target.n != 1 || h->method_id != METHOD_OPTIONS)
			return FAULT_TARGET;
	} else if (h->target.p[0] != '/') {
		f = absolute_form(h, room);
	}
	const char *query = memchr(h->target.p, '?', h->target.n);
	h->path = (struct str){h->target.p, query ? (size_t)(query - h->target.p) : h->target.n};
	return f;
}

/* A request: who it is for, where it ends, what passes. */
enum codec_fault framing_request(struct head *h, char *room)
{
	enum codec_fault f;
	struct facts x;

	meaning_reset(h);
	facts_of(h, &x);
	f = route_of(h, &x, room);
	if (!f)
		f = body_of(h, &x);
	if (!f)
		f = connection_read(h, &x);
	if (f)
		return f;
	h->close = x.close || (h->minor == 0 && !x.keep_alive);
	if (h->minor > 0) {
		h->expect_continue = x.expect && str_ieq(field_value(x.expect), STR("100-continue"));
		h->te_trailers = x.te && list_has(field_value(x.te), STR("trailers"));
		if (h->body == BODY_NONE)
			h->upgrade = upgrade_of(&x);
	} else if (x.expect) {	/* ignored in HTTP/1.0 (RFC 9110 10.1.1), and so not passed on in 1.1 */
		mark_named(h, STR("expect"), &x);
	}
	if (x.drops || x.hosts || x.lengths)
		strip(h, FIELD_HOST);
	return FAULT_NONE;
}

/* An answer without a body, whatever its fields say (RFC 9112 6.3, first two rules). */
static bool bodyless(const struct head *h, uint8_t method)
{
	return method == METHOD_HEAD || h->status < 200 || h->status == 204 || h->status == 304;
}

static enum codec_fault interim_or_switch(struct head *h, const struct facts *x, bool upgrade_asked)
{
	h->has_length = false;
	h->length = 0;
	h->body = BODY_NONE;
	if (h->status != 101)
		return FAULT_NONE;
	h->upgrade = upgrade_of(x);
	if (!upgrade_asked || h->minor == 0 || h->upgrade.n == 0)
		return FAULT_SWITCH;
	h->body = BODY_TUNNEL;
	return FAULT_NONE;
}

/* The time-out of a Keep-Alive field (RFC 2068 19.7.1), plus one; 0: there is none that can be read. */
static uint16_t keep_alive_of(const struct head *h)
{
	for (unsigned i = 0; i < h->n_fields; i++) {
		const struct field *f = &h->field[i];
		struct str list = field_value(f), item;
		uint64_t s;

		if (f->id != FIELD_KEEP_ALIVE || !str_ieq(field_name(f), STR("Keep-Alive")))
			continue;
		while (list_next(&list, &item)) {
			if (item.n <= 8 || !str_ieq((struct str){item.p, 8}, STR("timeout=")))
				continue;
			if (num_parse_dec((struct str){item.p + 8, item.n - 8}, UINT64_MAX, &s) == OK)
				return (uint16_t)(s < UINT16_MAX ? s + 1 : UINT16_MAX);
		}
	}
	return 0;
}

/* An answer: where it ends, what passes. */
enum codec_fault framing_response(struct head *h, uint8_t method, bool upgrade_asked)
{
	enum codec_fault f = FAULT_NONE;
	struct facts x;

	meaning_reset(h);
	if (h->status < 100 || h->status > 599)
		return FAULT_STATUS;
	facts_of(h, &x);
	if (h->status >= 200) {
		f = body_of(h, &x);
		if (!f && bodyless(h, method))
			h->body = BODY_NONE;
		else if (!f && !x.codings && !x.lengths)
			h->until_close = true;
		if (h->until_close)
			h->body = BODY_STREAMED;
		if (h->status == 204)
			h->has_length = false;
	}
	if (!f)
		f = connection_read(h, &x);
	if (!f && h->status < 200)
		f = interim_or_switch(h, &x, upgrade_asked);
	if (f)
		return f;
	h->close = x.close || (h->minor == 0 && !x.keep_alive);
	if (x.drops)
		h->keep_alive = keep_alive_of(h);
	if (x.drops || x.lengths)
		strip(h, FIELD_CONTENT_LENGTH);
	return FAULT_NONE;
}

/* Names that may not come behind a body, besides those that have an id. */
static bool trailer_forbidden(const struct field *f)
{
	static const struct str prefixes[] = {
		{"content-", 8}, {"if-", 3}, {"proxy-", 6}, {"x-forwarded-", 12}, {"access-control-", 15}, {"sec-", 4},
	};
	static const struct str names[] = {
		{"age", 3}, {"allow", 5}, {"alt-svc", 7}, {"authentication-control", 22}, {"cache-control", 13},
		{"date", 4}, {"expires", 7}, {"max-forwards", 12}, {"pragma", 6}, {"range", 5}, {"retry-after", 11},
		{"strict-transport-security", 25}, {"vary", 4}, {"warning", 7}, {"www-authenticate", 16}, {"x-real-ip", 9},
	};
	struct str name = field_name(f);

	if (f->id != FIELD_OTHER || name_underscored(f))
		return true;
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (name.n >= prefixes[i].n && strncasecmp(name.p, prefixes[i].p, prefixes[i].n) == 0)
			return true;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (str_ieq(name, names[i]))
			return true;
	return false;
}

/* Takes out of a trailer section what would have meant something in the head. */
void framing_trailers(struct head *h)
{
	unsigned to = 0;

	for (unsigned i = 0; i < h->n_fields; i++) {
		struct field *f = &h->field[i];

		f->id = (uint8_t)field_id_of(field_name(f));
		if (!trailer_forbidden(f))
			h->field[to++] = *f;
	}
	h->n_fields = (uint16_t)to;
}
