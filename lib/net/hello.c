/* hello: see hello.h.
 *
 * Pure.  Two layers: a cursor that reads the bytes of the handshake across records (RFC 8446 5.1), and above it the grammar of the
 * ClientHello (RFC 8446 4.1.2; RFC 5246 7.4.1.2 is the same).  The grammar runs once, when the whole message is
 * there: it need not know how it was cut.
 *
 * Strict, since what two readers take from one hello must not differ: lengths fit exactly, of what is read no extension
 * comes twice, and the server name list holds one host name, as every TLS library takes it. */
#include "lib/net/hello.h"

#include <string.h>

#include "lib/base/check.h"

#define RECORD_HEADER 5u
#define RECORD_MAX (1u << 14)
#define HANDSHAKE_HEADER 4u
#define TYPE_HANDSHAKE 22
#define TYPE_ALERT 21
#define CLIENT_HELLO 1

enum { EXT_NAME = 0, EXT_ALPN = 16, EXT_VERSIONS = 43 };

/* --- bytes of the handshake, over records --- */

struct cursor {
	const uint8_t *p;	/* records, whole as far as they are read */
	size_t left;		/* of the record at p */
	size_t limit;		/* bytes of the handshake that may still be read */
	bool over;		/* more was asked for */
};

static size_t length_at(const uint8_t *p)
{
	return (size_t)p[0] << 8 | p[1];
}

static uint8_t get8(struct cursor *c)
{
	if (!c->limit || c->over) {
		c->over = true;
		return 0;
	}
	if (!c->left) {
		c->left = length_at(c->p + 3);
		c->p += RECORD_HEADER;
	}
	c->limit--;
	c->left--;
	return *c->p++;
}

static unsigned get16(struct cursor *c)
{
	unsigned high = get8(c);

	return high << 8 | get8(c);
}

static void skip(struct cursor *c, size_t n)
{
	while (n && !c->over) {
		size_t step = n < c->left ? n : c->left;

		if (step > c->limit || !step) {
			get8(c);	/* to the end of what there is, or into the next record */
			n--;
			continue;
		}
		c->p += step;
		c->left -= step;
		c->limit -= step;
		n -= step;
	}
}

/* A vector of `n` bytes as a cursor of its own; `c` goes behind it. */
static struct cursor vector(struct cursor *c, size_t n)
{
	struct cursor v = *c;

	if (n > c->limit)
		c->over = true;
	v.limit = n;
	v.over = c->over;
	skip(c, n);
	return v;
}

/* --- the grammar --- */

struct reader {
	struct hello *h;
	size_t whole;		/* bytes of the message */
	bool bad, bad_name;
	bool seen_name, seen_alpn, seen_versions;
};

/* Lower case in place; false: no host name.  One dot at the end goes. */
static bool name_clean(char *name, size_t *n)
{
	size_t label = 0;

	if (*n && name[*n - 1] == '.')
		--*n;
	if (!*n)
		return false;
	for (size_t i = 0; i < *n; i++) {
		char c = name[i];

		if (c >= 'A' && c <= 'Z')
			name[i] = (char)(c | 0x20);
		else if (c == '.' && !label)
			return false;
		else if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.'))
			return false;
		label = c == '.' ? 0 : label + 1;
		if (label > 63)
			return false;
	}
	return label != 0;
}

/* RFC 6066 3: a list with one host_name in it. */
static void read_name(struct reader *r, struct cursor c)
{
	char name[HELLO_NAME_MAX + 1];
	size_t n;
	struct cursor list = vector(&c, get16(&c));

	r->bad |= r->seen_name || c.over || c.limit || get8(&list) != 0;
	r->seen_name = true;
	n = get16(&list);
	if (list.over || list.limit != n || n == 0) {
		r->bad = true;
		return;
	}
	r->bad_name = n > sizeof name;
	for (size_t i = 0; i < n && i < sizeof name; i++)
		name[i] = (char)get8(&list);
	r->bad_name = r->bad_name || !name_clean(name, &n) || n > HELLO_NAME_MAX;
	if (!r->bad_name) {
		memcpy(r->h->name, name, n);
		r->h->name_n = (uint8_t)n;
	}
}

static uint8_t alpn_bit(const char *p, size_t n)
{
	struct str s = { p, n };

	return str_eq(s, STR("http/1.1")) ? HELLO_ALPN_HTTP1 : str_eq(s, STR("h2")) ? HELLO_ALPN_H2 :
	       str_eq(s, STR("acme-tls/1")) ? HELLO_ALPN_ACME : 0;
}

/* RFC 7301 3.1: names of 1 to 255 bytes, one at least. */
static void read_alpn(struct reader *r, struct cursor c)
{
	struct cursor list = vector(&c, get16(&c));

	r->bad |= r->seen_alpn || c.over || c.limit || !list.limit;
	r->seen_alpn = true;
	r->h->alpn_n = (uint16_t)list.limit;
	while (list.limit && !r->bad) {
		char name[UINT8_MAX];
		size_t n = get8(&list);

		r->bad = !n || n > list.limit;
		for (size_t i = 0; i < n && !r->bad; i++)
			name[i] = (char)get8(&list);
		if (!r->bad)
			r->h->alpn |= alpn_bit(name, n);
	}
}

/* RFC 8446 4.2.1. */
static void read_versions(struct reader *r, struct cursor c)
{
	struct cursor list = vector(&c, get8(&c));

	r->bad |= r->seen_versions || c.over || c.limit || !list.limit || list.limit % 2;
	r->seen_versions = true;
	r->h->tls12 = r->h->tls13 = false;
	while (list.limit && !r->bad) {
		unsigned v = get16(&list);

		r->h->tls12 |= v == 0x0303;
		r->h->tls13 |= v == 0x0304;
	}
}

static void read_extensions(struct reader *r, struct cursor c)
{
	struct cursor list = vector(&c, get16(&c));

	r->bad |= c.over || c.limit;
	while (list.limit && !r->bad) {
		unsigned type = get16(&list);
		size_t n = get16(&list);
		size_t at = r->whole - list.limit;
		struct cursor body = vector(&list, n);

		r->bad |= list.over;
		if (r->bad)
			return;
		if (type == EXT_NAME) {
			read_name(r, body);
		} else if (type == EXT_ALPN) {
			read_alpn(r, body);
			r->h->alpn_at = (uint16_t)(at + 2);
		} else if (type == EXT_VERSIONS) {
			read_versions(r, body);
		}
	}
}

/* The message behind its header. */
static enum hello_kind read_message(struct cursor c, size_t whole, struct hello *h)
{
	struct reader r = { .h = h, .whole = whole };
	unsigned version = get16(&c), n;

	h->tls12 = version >= 0x0303;
	skip(&c, 32);			/* random */
	n = get8(&c);			/* session id */
	r.bad = version >> 8 != 3 || n > 32;
	skip(&c, n);
	n = get16(&c);			/* cipher suites */
	r.bad |= !n || n % 2;
	skip(&c, n);
	n = get8(&c);			/* compression methods */
	r.bad |= !n;
	skip(&c, n);
	r.bad |= c.over;
	if (!r.bad && c.limit)
		read_extensions(&r, c);
	return r.bad ? HELLO_BAD : r.bad_name ? HELLO_BAD_NAME : HELLO_DONE;
}

/* --- records --- */

struct start {
	uint32_t head;		/* the first four bytes of the message */
	size_t whole;		/* bytes of it, those four too; 0: not known yet */
};

static bool begins(struct str in, struct str head)
{
	return memcmp(in.p, head.p, in.n < head.n ? in.n : head.n) == 0;
}

/* Bytes whose first is not that of a handshake record. */
static enum hello_kind not_tls(struct str in, uint32_t *need)
{
	static const struct str methods[] = {
		{ "GET ", 4 }, { "HEAD ", 5 }, { "POST ", 5 }, { "PUT ", 4 }, { "DELETE ", 7 }, { "OPTIONS ", 8 },
		{ "PATCH ", 6 }, { "CONNECT ", 8 }, { "TRACE ", 6 }, { "PRI ", 4 },
	};

	for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
		if (!begins(in, methods[i]))
			continue;
		if (in.n >= methods[i].n)
			return HELLO_HTTP;
		*need = (uint32_t)in.n + 1;
		return HELLO_MORE;
	}
	return HELLO_NOT_TLS;
}

/* A record header, as far as its `n` bytes have come; DONE: it is whole and right. */
static enum hello_kind read_header(const uint8_t *p, size_t n, bool first)
{
	size_t len;

	if (n && p[0] != TYPE_HANDSHAKE)
		return HELLO_BAD;
	if (n > 1 && p[1] != 3)
		return first ? HELLO_NOT_TLS : HELLO_BAD;
	if (n < RECORD_HEADER)
		return HELLO_MORE;
	len = length_at(p + 3);
	return len && len <= RECORD_MAX ? HELLO_DONE : HELLO_BAD;
}

/* Type and length of the message, of which `have` bytes lay in earlier records and `n` lie at p. */
static enum hello_kind read_start(struct start *s, size_t have, const uint8_t *p, size_t n)
{
	for (; n && have < HANDSHAKE_HEADER; n--, have++, p++) {
		if (have == 0 && *p != CLIENT_HELLO)
			return HELLO_BAD;
		s->head = s->head << 8 | *p;
		if (have == HANDSHAKE_HEADER - 1)
			s->whole = (s->head & 0xffffff) + HANDSHAKE_HEADER;
	}
	return s->whole > HELLO_MAX - RECORD_HEADER ? HELLO_TOO_BIG : HELLO_DONE;
}

/* Finds the end of the message: *at, behind the record in which it ends. */
static enum hello_kind find_end(struct str in, uint32_t *need, size_t *at, struct start *s)
{
	const uint8_t *p = (const uint8_t *)in.p;
	enum hello_kind kind;
	size_t have = 0, here, len;

	while (!s->whole || have < s->whole) {
		here = in.n - *at;
		kind = read_header(p + *at, here, *at == 0);
		*need = (uint32_t)in.n + 1;
		if (kind != HELLO_DONE)
			return kind;
		len = length_at(p + *at + 3);
		*at += RECORD_HEADER;
		if (*at + len > HELLO_MAX)
			return HELLO_TOO_BIG;
		here = in.n - *at;
		kind = read_start(s, have, p + *at, here < len ? here : len);
		if (kind != HELLO_DONE)
			return kind;
		have += len;
		if (s->whole && have > s->whole)
			return HELLO_BAD;	/* something else in the same record */
		*need = (uint32_t)(s->whole ? *at + len : in.n + 1);
		*at += len;
		if (here < len)
			return HELLO_MORE;
	}
	return HELLO_DONE;
}

enum hello_kind hello_peek(struct str in, uint32_t *need, struct hello *h)
{
	struct hello got = { 0 };
	struct start start = { 0 };
	struct cursor c = { .p = (const uint8_t *)in.p };
	enum hello_kind kind;
	size_t at = 0;

	if (in.n < *need || !in.n)
		return HELLO_MORE;
	if (c.p[0] != TYPE_HANDSHAKE)
		return not_tls(in, need);
	kind = find_end(in, need, &at, &start);
	if (kind != HELLO_DONE)
		return kind;
	got.length = (uint16_t)at;
	got.message = (uint16_t)start.whole;
	c.limit = start.whole;
	skip(&c, HANDSHAKE_HEADER);
	kind = read_message(c, start.whole, &got);
	if (kind == HELLO_DONE)
		*h = got;
	return kind;
}

void hello_copy(struct str in, const struct hello *h, size_t at, size_t n, uint8_t *to)
{
	struct cursor c = { .p = (const uint8_t *)in.p, .limit = h->message };

	CHECK(in.n >= h->length);
	skip(&c, at);
	while (n--)
		*to++ = get8(&c);
	CHECK(!c.over);
}

void hello_alert(uint8_t description, uint8_t to[HELLO_ALERT_SIZE])
{
	const uint8_t record[HELLO_ALERT_SIZE] = { TYPE_ALERT, 3, 3, 0, 2, 2, description };

	memcpy(to, record, sizeof record);
}
