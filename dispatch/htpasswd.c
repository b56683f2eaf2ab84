/* Door: htpasswd, the users of a file.  Owns one block: a copy of the text, and a table of it with open addressing under the
 * process's hash key.  Built from text that somebody else has read; asked by workers (is there such a
 * user) before a password is given to those who hash.  Never hashes a password, never tells one. */
#include "dispatch/htpasswd.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

#include "lib/base/hash.h"
#include "lib/base/mem.h"
#include "lib/crypto/password.h"

struct user {
	uint32_t at, hash_at;	/* into the text, bytes */
	uint32_t line;
	uint8_t len, hash_len;
};

struct htpasswd {
	_Atomic uint32_t refs;
	uint32_t n_users, n_slots;	/* n_slots is a power of two, above n_users */
	uint64_t id;
	struct str text;		/* behind the slots */
	struct user *user;		/* behind this */
	uint32_t *slot;			/* behind the users: index + 1; 0 is free */
};

static _Atomic uint64_t last_id;

/* --- reading --- */

static void __attribute__((format(printf, 4, 5)))
set_error(struct htpasswd_error *e, enum err err, uint32_t line, const char *format, ...)
{
	va_list args;

	if (!e)
		return;
	*e = (struct htpasswd_error){ .err = err, .line = line };
	va_start(args, format);
	vsnprintf(e->text, sizeof e->text, format, args);
	va_end(args);
}

/* The next line of *rest without its end; false when there is none. */
static bool next_line(struct str *rest, struct str *line)
{
	const char *end;

	if (rest->n == 0)
		return false;
	end = memchr(rest->p, '\n', rest->n);
	*line = (struct str){ rest->p, end ? (size_t)(end - rest->p) : rest->n };
	rest->p += line->n + (end != NULL);
	rest->n -= line->n + (end != NULL);
	if (line->n && line->p[line->n - 1] == '\r')
		line->n--;
	*line = str_trim(*line);
	return true;
}

static bool says_something(struct str line)
{
	return line.n && line.p[0] != '#';
}

static size_t count_users(struct str text)
{
	size_t n = 0;
	struct str line;

	while (next_line(&text, &line))
		n += says_something(line);
	return n;
}

static bool has_control(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if ((unsigned char)s.p[i] < 0x20 || s.p[i] == 0x7f)
			return true;
	return false;
}

/* Splits a line and looks at its parts. */
static bool split(struct str line, uint32_t number, struct str *user, struct str *hash, struct htpasswd_error *err)
{
	const char *colon = memchr(line.p, ':', line.n), *end, *why;

	if (!colon) {
		set_error(err, ERR_SYNTAX, number, "a line is user:hash, and this one has no ':'");
		return false;
	}
	*user = (struct str){ line.p, (size_t)(colon - line.p) };
	*hash = (struct str){ colon + 1, line.n - user->n - 1 };
	end = memchr(hash->p, ':', hash->n);
	if (end)
		hash->n = (size_t)(end - hash->p);
	if (user->n == 0 || user->n > HTPASSWD_USER_MAX || has_control(*user)) {
		set_error(err, ERR_SYNTAX, number, user->n == 0 ? "the name of the user is missing" :
			  user->n > HTPASSWD_USER_MAX ? "the name of a user has at most %d bytes" :
			  "the name of a user has no control characters", HTPASSWD_USER_MAX);
		return false;
	}
	if (user->p[user->n - 1] == ' ') {	/* endpoints that are told the name would see another */
		set_error(err, ERR_SYNTAX, number, "the name of a user has no space at its end");
		return false;
	}
	if (hash->n == 0) {
		set_error(err, ERR_SYNTAX, number, "the hash of the password is missing");
		return false;
	}
	if (password_check(*hash, &why) != OK) {
		set_error(err, ERR_SYNTAX, number, "the password %s", why);
		return false;
	}
	return true;
}

static struct str name_of(const struct htpasswd *h, const struct user *u)
{
	return (struct str){ h->text.p + u->at, u->len };
}

/* Where `user` is, or would be. */
static uint32_t *slot_of(const struct htpasswd *h, struct str user)
{
	uint32_t mask = h->n_slots - 1, i = (uint32_t)hash_str(user) & mask;

	while (h->slot[i] && !str_eq(name_of(h, &h->user[h->slot[i] - 1]), user))
		i = (i + 1) & mask;
	return &h->slot[i];
}

static bool fill(struct htpasswd *h, struct htpasswd_error *err)
{
	struct str rest = h->text, line, user, hash;
	uint32_t number = 0;

	while (next_line(&rest, &line)) {
		uint32_t *slot;

		number++;
		if (!says_something(line))
			continue;
		if (!split(line, number, &user, &hash, err))
			return false;
		slot = slot_of(h, user);
		if (*slot) {
			set_error(err, ERR_SYNTAX, number, "this user has a password already, in line %u",
				  h->user[*slot - 1].line);
			return false;
		}
		h->user[h->n_users++] = (struct user){
			.at = (uint32_t)(user.p - h->text.p), .len = (uint8_t)user.n,
			.hash_at = (uint32_t)(hash.p - h->text.p), .hash_len = (uint8_t)hash.n, .line = number,
		};
		*slot = h->n_users;
	}
	return true;
}

static struct htpasswd *make(struct str text, size_t n_users)
{
	size_t slots = 4, sum;
	struct htpasswd *h;

	while (slots < n_users * 2)
		slots *= 2;
	sum = sizeof *h + n_users * sizeof(struct user) + slots * sizeof(uint32_t) + text.n;
	h = mem_zalloc(sum);
	if (!h)
		return NULL;
	atomic_init(&h->refs, 1);
	h->n_slots = (uint32_t)slots;
	h->user = (struct user *)(h + 1);
	h->slot = (uint32_t *)(h->user + n_users);
	memcpy(h->slot + slots, text.p, text.n);
	h->text = (struct str){ (char *)(h->slot + slots), text.n };
	h->id = atomic_fetch_add(&last_id, 1) + 1;
	return h;
}

struct htpasswd *htpasswd_new(struct str text, struct htpasswd_error *err)
{
	struct htpasswd *h;
	size_t n;

	if (str_starts(text, STR("\xef\xbb\xbf"))) {	/* a mark of some editors */
		text.p += 3;
		text.n -= 3;
	}
	if (text.n > HTPASSWD_TEXT_MAX) {
		set_error(err, ERR_LIMIT, 0, "a file of users has at most %u KiB", HTPASSWD_TEXT_MAX / 1024);
		return NULL;
	}
	n = count_users(text);
	if (n == 0) {
		set_error(err, ERR_SYNTAX, 0, "no user is in it, so that nobody could get in");
		return NULL;
	}
	h = make(text, n);
	if (!h) {
		set_error(err, ERR_MEM, 0, "no memory for its users");
		return NULL;
	}
	if (fill(h, err))
		return h;
	htpasswd_unref(h);
	return NULL;
}

/* --- sharing --- */

const struct htpasswd *htpasswd_ref(const struct htpasswd *h)
{
	struct htpasswd *own = (struct htpasswd *)(uintptr_t)h;

	atomic_fetch_add_explicit(&own->refs, 1, memory_order_relaxed);
	return h;
}

void htpasswd_unref(const struct htpasswd *h)
{
	struct htpasswd *own = (struct htpasswd *)(uintptr_t)h;

	if (own && atomic_fetch_sub_explicit(&own->refs, 1, memory_order_acq_rel) == 1)
		mem_free(own);
}

/* --- asking --- */

bool htpasswd_find(const struct htpasswd *h, struct str user, struct str *hash)
{
	uint32_t at = *slot_of(h, user);
	const struct user *u = &h->user[at ? at - 1 : (hash_str(user) >> 32) % h->n_users];

	*hash = (struct str){ h->text.p + u->hash_at, u->hash_len };
	return at != 0;
}

size_t htpasswd_count(const struct htpasswd *h)
{
	return h->n_users;
}

bool htpasswd_equal(const struct htpasswd *a, const struct htpasswd *b)
{
	return a == b || str_eq(a->text, b->text);
}

uint64_t htpasswd_id(const struct htpasswd *h)
{
	return h->id;
}
