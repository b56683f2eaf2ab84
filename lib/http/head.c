/* Fields of a message head: names, look-up and change.
 *
 * Used by the codecs and by everyone who edits a message on its way.  Owns nothing:
 * the field array belongs to whoever made the head, strings are borrowed.  Names are
 * compared without regard to case; a name that is known has an id, and the id of a
 * field always belongs to its name. */
#include "lib/http/head.h"

/* p[0..n) against a lower-case literal of the same length, a word at a time: 0x20 is
 * ignored where the literal has a letter and nowhere else.  All but the loads is
 * folded away at compile time. */
static inline bool word8_is(const char *p, const char *lower)
{
	uint64_t a, b;

	memcpy(&a, p, 8);
	memcpy(&b, lower, 8);
	return ((a ^ b) & ~((b & 0x4040404040404040) >> 1)) == 0;
}

static inline bool word4_is(const char *p, const char *lower)
{
	uint32_t a, b;

	memcpy(&a, p, 4);
	memcpy(&b, lower, 4);
	return ((a ^ b) & ~((b & 0x40404040) >> 1)) == 0;
}

static inline __attribute__((always_inline)) bool name_is(const char *p, const char *lower, size_t n)
{
	if (n >= 16)
		return word8_is(p, lower) && word8_is(p + 8, lower + 8) && word8_is(p + n - 8, lower + n - 8);
	if (n >= 8)
		return word8_is(p, lower) && word8_is(p + n - 8, lower + n - 8);
	if (n >= 4)
		return word4_is(p, lower) && word4_is(p + n - 4, lower + n - 4);
	for (size_t i = 0; i < n; i++)
		if ((p[i] ^ lower[i]) & ~(lower[i] >> 1 & 0x20))
			return false;
	return true;
}

#define NAME(literal, id) \
	do { \
		if (name_is(name.p, literal, sizeof(literal) - 1)) \
			return id; \
	} while (0)

/* The id of a name, any case.  By length first: most names are ruled out there. */
enum field_id field_id_of(struct str name)
{
	switch (name.n) {
	case 2:
		NAME("te", FIELD_TE);
		break;
	case 3:
		NAME("via", FIELD_VIA);
		break;
	case 4:
		NAME("host", FIELD_HOST);
		NAME("date", FIELD_DATE);
		break;
	case 6:
		NAME("server", FIELD_SERVER);
		NAME("cookie", FIELD_COOKIE);
		NAME("expect", FIELD_EXPECT);
		break;
	case 7:
		NAME("referer", FIELD_REFERER);
		NAME("upgrade", FIELD_UPGRADE);
		NAME("trailer", FIELD_TRAILER);
		break;
	case 8:
		NAME("location", FIELD_LOCATION);
		break;
	case 9:
		NAME("forwarded", FIELD_FORWARDED);
		break;
	case 10:
		NAME("connection", FIELD_CONNECTION);
		NAME("user-agent", FIELD_USER_AGENT);
		NAME("keep-alive", FIELD_KEEP_ALIVE);
		NAME("set-cookie", FIELD_SET_COOKIE);
		break;
	case 12:
		NAME("content-type", FIELD_CONTENT_TYPE);
		NAME("proxy-status", FIELD_PROXY_STATUS);
		break;
	case 13:
		NAME("authorization", FIELD_AUTHORIZATION);
		break;
	case 14:
		NAME("content-length", FIELD_CONTENT_LENGTH);
		NAME("http2-settings", FIELD_HTTP2_SETTINGS);
		break;
	case 15:
		NAME("x-forwarded-for", FIELD_X_FORWARDED_FOR);
		break;
	case 16:
		NAME("x-forwarded-host", FIELD_X_FORWARDED_HOST);
		NAME("proxy-connection", FIELD_PROXY_CONNECTION);
		break;
	case 17:
		NAME("transfer-encoding", FIELD_TRANSFER_ENCODING);
		NAME("x-forwarded-proto", FIELD_X_FORWARDED_PROTO);
		break;
	case 23:
		NAME("x-forwarded-client-cert", FIELD_X_FORWARDED_CLIENT_CERT);
		break;
	default:
		break;
	}
	return FIELD_OTHER;
}

/* The method of that name; methods are case-sensitive (RFC 9110 9.1). */
enum method method_of(struct str method)
{
#define METHOD(name) \
	do { \
		if (memcmp(method.p, #name, sizeof(#name) - 1) == 0) \
			return METHOD_##name; \
	} while (0)
	switch (method.n) {
	case 3:
		METHOD(GET);
		METHOD(PUT);
		break;
	case 4:
		METHOD(POST);
		METHOD(HEAD);
		break;
	case 5:
		METHOD(PATCH);
		METHOD(TRACE);
		break;
	case 6:
		METHOD(DELETE);
		break;
	case 7:
		METHOD(OPTIONS);
		METHOD(CONNECT);
		break;
	default:
		break;
	}
#undef METHOD
	return METHOD_OTHER;
}

/* May be sent again when it is not known whether it was acted on (RFC 9110 9.2.2). */
bool method_idempotent(uint8_t method_id)
{
	switch (method_id) {
	case METHOD_GET:
	case METHOD_HEAD:
	case METHOD_OPTIONS:
	case METHOD_TRACE:
	case METHOD_PUT:
	case METHOD_DELETE:
		return true;
	default:
		return false;
	}
}

/* The first field of that name at or after *i, and *i moves behind it. */
struct field *head_find(const struct head *h, struct str name, unsigned *i)
{
	for (unsigned k = *i; k < h->n_fields; k++) {
		if (str_ieq(field_name(&h->field[k]), name)) {
			*i = k + 1;
			return &h->field[k];
		}
	}
	*i = h->n_fields;
	return NULL;
}

/* The first field of that id. */
struct field *head_find_id(const struct head *h, uint8_t id)
{
	for (unsigned k = 0; k < h->n_fields; k++)
		if (h->field[k].id == id)
			return &h->field[k];
	return NULL;
}

/* Appends a field and looks up its id. */
enum err head_add(struct head *h, struct str name, struct str value)
{
	return head_add_id(h, field_id_of(name), name, value);
}

static unsigned remove_from(struct head *h, struct str name, unsigned from)
{
	unsigned to = from;

	for (unsigned k = from; k < h->n_fields; k++)
		if (!str_ieq(field_name(&h->field[k]), name))
			h->field[to++] = h->field[k];
	unsigned gone = h->n_fields - to;
	h->n_fields = (uint16_t)to;
	return gone;
}

/* One field of that name, with that value, is there afterwards. */
enum err head_set(struct head *h, struct str name, struct str value)
{
	unsigned i = 0;
	struct field *f = head_find(h, name, &i);

	if (!f)
		return head_add(h, name, value);
	if (value.n > UINT32_MAX)
		return ERR_LIMIT;
	f->value = value.p;
	f->value_len = (uint32_t)value.n;
	f->line = 0;
	remove_from(h, name, i);
	return OK;
}

/* Removes every field of that name. */
unsigned head_remove(struct head *h, struct str name)
{
	return remove_from(h, name, 0);
}

bool head_alike(struct str a, struct str b)
{
	size_t i = 0;

	if (a.n != b.n)
		return false;
	while (i < a.n && ((a.p[i] == '_' && b.p[i] == '-') || (a.p[i] == '-' && b.p[i] == '_') ||
			   strncasecmp(a.p + i, b.p + i, 1) == 0))
		i++;
	return i == a.n;
}

unsigned head_remove_alike(struct head *h, struct str name)
{
	unsigned n = 0, before = h->n_fields;

	for (unsigned i = 0; i < before; i++)
		if (!head_alike(field_name(&h->field[i]), name))
			h->field[n++] = h->field[i];
	h->n_fields = (uint16_t)n;
	return before - n;
}

/* Whether a list has a member, in any case. */
static bool list_names(struct str list, struct str name)
{
	while (list.n) {
		const char *comma = memchr(list.p, ',', list.n);
		size_t n = comma ? (size_t)(comma - list.p) : list.n;

		if (str_ieq(str_trim((struct str){list.p, n}), name))
			return true;
		list.p += n + (comma != NULL);
		list.n -= n + (comma != NULL);
	}
	return false;
}

/* The last Vary grows, since a second one is overlooked here and there. */
enum err head_vary(struct head *h, struct str name, struct arena *a)
{
	struct field *f, *last = NULL;
	unsigned i = 0;
	char *p;

	while ((f = head_find(h, STR("Vary"), &i))) {
		if (list_names(field_value(f), STR("*")) || list_names(field_value(f), name))
			return OK;
		last = f;
	}
	if (!last)
		return head_add_id(h, FIELD_OTHER, STR("Vary"), name);
	p = arena_alloc(a, last->value_len + 2 + name.n);
	if (!p)
		return ERR_MEM;
	if (last->value_len) {
		memcpy(p, last->value, last->value_len);
		memcpy(p + last->value_len, ", ", 2);
	}
	memcpy(p + (last->value_len ? last->value_len + 2 : 0), name.p, name.n);
	last->value_len = (uint32_t)((last->value_len ? last->value_len + 2 : 0) + name.n);
	last->value = p;
	last->line = 0;
	return OK;
}

/* The standard reason phrase (RFC 9110 15, and the registry). */
struct str status_reason(unsigned status)
{
	switch (status) {
#define R(code, text) case code: return STR(text)
	R(200, "OK");
	R(100, "Continue");
	R(101, "Switching Protocols");
	R(102, "Processing");
	R(103, "Early Hints");
	R(201, "Created");
	R(202, "Accepted");
	R(203, "Non-Authoritative Information");
	R(204, "No Content");
	R(205, "Reset Content");
	R(206, "Partial Content");
	R(207, "Multi-Status");
	R(208, "Already Reported");
	R(226, "IM Used");
	R(300, "Multiple Choices");
	R(301, "Moved Permanently");
	R(302, "Found");
	R(303, "See Other");
	R(304, "Not Modified");
	R(305, "Use Proxy");
	R(307, "Temporary Redirect");
	R(308, "Permanent Redirect");
	R(400, "Bad Request");
	R(401, "Unauthorized");
	R(402, "Payment Required");
	R(403, "Forbidden");
	R(404, "Not Found");
	R(405, "Method Not Allowed");
	R(406, "Not Acceptable");
	R(407, "Proxy Authentication Required");
	R(408, "Request Timeout");
	R(409, "Conflict");
	R(410, "Gone");
	R(411, "Length Required");
	R(412, "Precondition Failed");
	R(413, "Content Too Large");
	R(414, "URI Too Long");
	R(415, "Unsupported Media Type");
	R(416, "Range Not Satisfiable");
	R(417, "Expectation Failed");
	R(421, "Misdirected Request");
	R(422, "Unprocessable Content");
	R(423, "Locked");
	R(424, "Failed Dependency");
	R(425, "Too Early");
	R(426, "Upgrade Required");
	R(428, "Precondition Required");
	R(429, "Too Many Requests");
	R(431, "Request Header Fields Too Large");
	R(451, "Unavailable For Legal Reasons");
	R(500, "Internal Server Error");
	R(501, "Not Implemented");
	R(502, "Bad Gateway");
	R(503, "Service Unavailable");
	R(504, "Gateway Timeout");
	R(505, "HTTP Version Not Supported");
	R(506, "Variant Also Negotiates");
	R(507, "Insufficient Storage");
	R(508, "Loop Detected");
	R(511, "Network Authentication Required");
#undef R
	default:
		return STR("");
	}
}

static char *put(char **at, const char *p, size_t n)
{
	char *start = *at;

	if (n)
		memcpy(start, p, n);
	*at += n;
	return start;
}

static struct str put_str(char **at, struct str s)
{
	return (struct str){put(at, s.p, s.n), s.n};
}

enum err head_dup(struct head *to, const struct head *h, struct arena *a, unsigned more)
{
	size_t n = h->method.n + h->target.n + h->path.n + h->authority.n + h->upgrade.n + h->reason.n;
	struct head c = *h;
	char *at;

	for (unsigned i = 0; i < h->n_fields; i++)
		n += h->field[i].name_len + h->field[i].value_len;
	c.max_fields = (uint16_t)(h->n_fields + more);
	c.field = arena_alloc(a, c.max_fields * sizeof *c.field + 1);
	at = arena_alloc(a, n + 1);
	if (!c.field || !at)
		return ERR_MEM;
	c.method = put_str(&at, h->method);
	c.target = put_str(&at, h->target);
	c.path = put_str(&at, h->path);
	c.authority = put_str(&at, h->authority);
	c.upgrade = put_str(&at, h->upgrade);
	c.reason = put_str(&at, h->reason);
	for (unsigned i = 0; i < h->n_fields; i++) {
		c.field[i] = h->field[i];
		c.field[i].name = put(&at, h->field[i].name, h->field[i].name_len);
		c.field[i].value = put(&at, h->field[i].value, h->field[i].value_len);
		c.field[i].line = 0;
	}
	*to = c;
	return OK;
}
