/* Door: basic, the reader of Basic credentials, and the policy of a route that asks for them.  The reader is a pure function
 * over bytes that any client may have written; the policy is one heap block, and owns a reference to its users.
 * Never hashes, never compares a password. */
#include "dispatch/basic.h"

#include "dispatch/text.h"
#include "lib/base/base64.h"
#include "lib/base/mem.h"

#define BEFORE STR("Basic realm=\"")
#define BEHIND STR("\", charset=\"UTF-8\"")	/* RFC 7617 2.1 */

enum basic basic_read(struct str value, char *room, struct str *user, struct str *password)
{
	const struct str scheme = STR("Basic");
	const char *colon;
	size_t n;

	if (value.n < scheme.n || !str_ieq((struct str){ value.p, scheme.n }, scheme))
		return BASIC_NONE;
	if (value.n > scheme.n && value.p[scheme.n] != ' ')
		return BASIC_NONE;
	value.p += scheme.n;
	value.n -= scheme.n;
	while (value.n && value.p[0] == ' ')	/* 1*SP, RFC 9110 11.4 */
		value.p++, value.n--;
	if (BASE64_BYTES(value.n) > BASIC_ROOM)
		return BASIC_LONG;
	if (base64_decode(value, room, &n) != OK)
		return BASIC_BAD;
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)room[i] < 0x20 || room[i] == 0x7f)
			return BASIC_BAD;
	colon = n ? memchr(room, ':', n) : NULL;
	if (!colon)
		return BASIC_BAD;
	*user = (struct str){ room, (size_t)(colon - room) };
	*password = (struct str){ colon + 1, n - user->n - 1 };
	return user->n > HTPASSWD_USER_MAX || password->n > PASSWORD_MAX ? BASIC_LONG : BASIC_OK;
}

/* --- the policy --- */

static bool basic_same(const struct policy_part *p, const struct policy_part *q)
{
	const struct basic_auth *a = (const struct basic_auth *)p, *b = (const struct basic_auth *)q;

	return a->forward == b->forward && str_eq(a->challenge, b->challenge) && str_ieq(a->user_header, b->user_header) &&
	       htpasswd_equal(a->users, b->users);
}

static void basic_free(struct policy_part *p)
{
	htpasswd_unref(((struct basic_auth *)p)->users);
	mem_free(p);
}

static const struct policy_kind kind = { .same = basic_same, .free = basic_free };

static char *put(char *to, struct str s)
{
	if (s.n)
		memcpy(to, s.p, s.n);
	return to + s.n;
}

/* Between the quotes of a quoted-string (RFC 9110 5.6.4). */
static char *put_quoted(char *to, struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] == '"' || s.p[i] == '\\')
			*to++ = '\\';
		*to++ = s.p[i];
	}
	return to;
}

struct policy_part *basic_new(const struct basic_spec *s, struct snapshot_error *err)
{
	struct basic_auth *b;
	char *at;

	if (!text_value(s->realm) || (s->user_header.n && !text_token(s->user_header))) {
		snapshot_error_set(err, ERR_SYNTAX, "basic_auth: the realm has control bytes, or the header no proper name");
		return NULL;
	}
	b = mem_zalloc(sizeof *b + BEFORE.n + 2 * s->realm.n + BEHIND.n + s->user_header.n);
	if (!b) {
		snapshot_error_set(err, ERR_MEM, "no memory for basic_auth");
		return NULL;
	}
	policy_part_init(&b->part, &kind);
	b->users = htpasswd_ref(s->users);
	b->forward = s->forward;
	at = (char *)(b + 1);
	b->user_header = (struct str){ at, s->user_header.n };
	at = put(at, s->user_header);
	b->challenge.p = at;
	at = put(put_quoted(put(at, BEFORE), s->realm), BEHIND);
	b->challenge.n = (size_t)(at - b->challenge.p);
	return &b->part;
}
