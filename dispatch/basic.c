/* Door: basic, the reader of Basic credentials.  A pure function over bytes that any client may have written.  Owns nothing. */
#include "dispatch/basic.h"

#include "lib/base/base64.h"

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
