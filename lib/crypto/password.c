/* password: see password.h.  The one file that knows libcrypt, which does bcrypt, SHA-crypt and MD5-crypt; APR1 (MD5-crypt with a
 * name of its own) and {SHA} are made of digests here.  Owns a room for each thread that verifies.
 * Called by the htpasswd reader (check) and by the threads that hash (verify); never by a worker's thread. */
#include "lib/crypto/password.h"

#include <crypt.h>

#include "lib/base/base64.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "lib/crypto/digest.h"

#define APR1_ROUNDS 1000
#define TEXT_OF_(n) #n
#define TEXT_OF(n) TEXT_OF_(n)

struct password_room {
	struct crypt_data crypt;
	struct digest *digest;	/* owned */
	char password[PASSWORD_MAX + 1], hash[PASSWORD_HASH_MAX + 1];	/* with their NUL */
};

/* Forms made of $ID$SALT$HASH. */
static const struct form {
	struct str prefix;
	uint8_t salt_max, hash_len;
	bool rounds;
	const char *damaged;
} forms[] = {
	{ STR("$6$"), 16, 86, true, "is a damaged SHA-crypt hash" },
	{ STR("$5$"), 16, 43, true, "is a damaged SHA-crypt hash" },
	{ STR("$apr1$"), 8, 22, false, "is a damaged APR1 hash" },
	{ STR("$1$"), 8, 22, false, "is a damaged MD5-crypt hash" },
};

static bool is_apr1(struct str hash)
{
	return str_starts(hash, STR("$apr1$"));
}

static bool is_sha(struct str hash)
{
	return str_starts(hash, STR("{SHA}"));
}

/* --- which form --- */

static bool is_64(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '/';
}

static bool all_64(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!is_64(s.p[i]))
			return false;
	return true;
}

/* Takes the number of a "rounds=N$" off *s; 0 when that is not what it should be, 1 when there is none. */
static uint64_t take_rounds(struct str *s)
{
	const struct str name = STR("rounds=");
	const char *end;
	struct str digits;
	uint64_t n;

	if (!str_starts(*s, name))
		return 1;
	end = memchr(s->p, '$', s->n);
	if (!end)
		return 0;
	digits = (struct str){ s->p + name.n, (size_t)(end - s->p) - name.n };
	if (digits.n == 0 || digits.p[0] == '0' || num_parse_dec(digits, 999999999, &n) != OK || n < 1000)
		return 0;
	s->n -= (size_t)(end + 1 - s->p);
	s->p = end + 1;
	return n;
}

static enum err check_form(const struct form *f, struct str s, const char **why)
{
	struct str salt;

	*why = f->damaged;
	s.p += f->prefix.n;
	s.n -= f->prefix.n;
	if (f->rounds) {
		uint64_t rounds = take_rounds(&s);

		if (rounds == 0)
			return ERR_SYNTAX;
		if (rounds > PASSWORD_ROUNDS_MAX) {
			*why = "is hashed in more than " TEXT_OF(PASSWORD_ROUNDS_MAX) " rounds: each look would take seconds";
			return ERR_SYNTAX;
		}
	}
	if (s.n < f->hash_len + 1u || s.n > f->hash_len + 1u + f->salt_max || s.p[s.n - f->hash_len - 1] != '$')
		return ERR_SYNTAX;
	salt = (struct str){ s.p, s.n - f->hash_len - 1 };
	for (size_t i = 0; i < salt.n; i++)	/* what libcrypt takes */
		if (salt.p[i] <= ' ' || salt.p[i] > '~' || strchr("$:;*!\\", salt.p[i]))
			return ERR_SYNTAX;
	return all_64((struct str){ s.p + salt.n + 1, f->hash_len }) ? OK : ERR_SYNTAX;
}

/* $2y$CC$, 22 characters of salt, of whose last only two bits count, and 31 of hash. */
static enum err check_bcrypt(struct str s, const char **why)
{
	uint64_t cost;

	*why = "is a damaged bcrypt hash";
	if (s.n != 60 || s.p[6] != '$' || num_parse_dec((struct str){ s.p + 4, 2 }, 31, &cost) != OK || cost < 4)
		return ERR_SYNTAX;
	if (!all_64((struct str){ s.p + 7, 53 }) || !strchr(".Oeu", s.p[28]))
		return ERR_SYNTAX;
	if (cost <= PASSWORD_BCRYPT_COST_MAX)
		return OK;
	*why = "has a bcrypt cost above " TEXT_OF(PASSWORD_BCRYPT_COST_MAX) ": each look would take seconds";
	return ERR_SYNTAX;
}

static enum err check_sha(struct str s, const char **why)
{
	uint8_t digest[BASE64_BYTES(28)];
	size_t n;

	*why = "is a damaged {SHA} hash";
	if (s.n != 5 + 28 || base64_decode((struct str){ s.p + 5, 28 }, digest, &n) != OK || n != DIGEST_SHA1_SIZE)
		return ERR_SYNTAX;
	return OK;
}

enum err password_check(struct str hash, const char **why)
{
	if (str_starts(hash, STR("$2y$")) || str_starts(hash, STR("$2a$")) || str_starts(hash, STR("$2b$")))
		return check_bcrypt(hash, why);
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
		if (str_starts(hash, forms[i].prefix))
			return check_form(&forms[i], hash, why);
	if (is_sha(hash))
		return check_sha(hash, why);
	if (hash.n && (hash.p[0] == '$' || hash.p[0] == '{'))
		*why = "is hashed in a form that is not taken: use bcrypt (htpasswd -B)";
	else if (hash.n == 13 && all_64(hash))
		*why = "is hashed with traditional crypt (DES), which anybody can undo: use bcrypt (htpasswd -B)";
	else
		*why = "is plain text, or no hash that is known: use bcrypt (htpasswd -B)";
	return ERR_SYNTAX;
}

/* --- verifying --- */

struct password_room *password_room_new(void)
{
	struct password_room *r = mem_zalloc(sizeof *r);

	if (!r)
		return NULL;
	r->digest = digest_new();
	if (r->digest)
		return r;
	mem_free(r);
	return NULL;
}

void password_room_free(struct password_room *r)
{
	if (!r)
		return;
	digest_free(r->digest);
	mem_free(r);
}

/* The digest that the rounds begin with. */
static enum err apr1_first(struct digest *d, struct str password, struct str salt, uint8_t sum[DIGEST_MD5_SIZE])
{
	enum err e;

	digest_start(d, DIGEST_MD5);
	digest_add(d, password.p, password.n);
	digest_add(d, salt.p, salt.n);
	digest_add(d, password.p, password.n);
	e = digest_end(d, sum);
	if (e != OK)
		return e;
	digest_start(d, DIGEST_MD5);
	digest_add(d, password.p, password.n);
	digest_add(d, "$apr1$", 6);
	digest_add(d, salt.p, salt.n);
	for (size_t left = password.n; left; left -= left < DIGEST_MD5_SIZE ? left : DIGEST_MD5_SIZE)
		digest_add(d, sum, left < DIGEST_MD5_SIZE ? left : DIGEST_MD5_SIZE);
	for (size_t bits = password.n; bits; bits >>= 1)
		digest_add(d, bits & 1 ? "" : password.p, 1);
	return digest_end(d, sum);
}

static enum err apr1_sum(struct digest *d, struct str password, struct str salt, uint8_t sum[DIGEST_MD5_SIZE])
{
	const struct str last = { (const char *)sum, DIGEST_MD5_SIZE };
	enum err e = apr1_first(d, password, salt, sum);

	for (unsigned i = 0; e == OK && i < APR1_ROUNDS; i++) {
		struct str head = i & 1 ? password : last, tail = i & 1 ? last : password;

		digest_start(d, DIGEST_MD5);
		digest_add(d, head.p, head.n);
		if (i % 3)
			digest_add(d, salt.p, salt.n);
		if (i % 7)
			digest_add(d, password.p, password.n);
		digest_add(d, tail.p, tail.n);
		e = digest_end(d, sum);
	}
	return e;
}

/* The sum in 22 characters: three bytes, six apart, to four of them. */
static void apr1_text(const uint8_t sum[DIGEST_MD5_SIZE], char out[22])
{
	static const char set[] = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
	char *to = out;

	for (unsigned i = 0; i < 6; i++) {
		uint32_t v = i == 5 ? sum[11] : (uint32_t)sum[i] << 16 | (uint32_t)sum[i + 6] << 8 | sum[i == 4 ? 5 : i + 12];

		for (unsigned k = 0; k < (i == 5 ? 2 : 4); k++, v >>= 6)
			*to++ = set[v & 63];
	}
}

static enum err verify_apr1(struct digest *d, struct str hash, struct str password, bool *right)
{
	struct str salt = { hash.p + 6, hash.n - 6 - 23 };
	uint8_t sum[DIGEST_MD5_SIZE];
	char text[22];
	enum err e = apr1_sum(d, password, salt, sum);

	if (e != OK)
		return e;
	apr1_text(sum, text);
	*right = digest_equal(text, hash.p + hash.n - sizeof text, sizeof text);
	explicit_bzero(sum, sizeof sum);
	explicit_bzero(text, sizeof text);
	return OK;
}

static enum err verify_sha(struct digest *d, struct str hash, struct str password, bool *right)
{
	uint8_t want[BASE64_BYTES(28)], is[DIGEST_SHA1_SIZE];
	size_t n;
	enum err e;

	CHECK(base64_decode((struct str){ hash.p + 5, 28 }, want, &n) == OK && n == sizeof is);
	digest_start(d, DIGEST_SHA1);
	digest_add(d, password.p, password.n);
	e = digest_end(d, is);
	if (e == OK)
		*right = digest_equal(is, want, sizeof is);
	explicit_bzero(is, sizeof is);
	return e;
}

static enum err verify_crypt(struct password_room *r, struct str hash, struct str password, bool *right)
{
	const char *is;
	enum err e = ERR_SYS;

	memcpy(r->password, password.p, password.n);
	r->password[password.n] = '\0';
	memcpy(r->hash, hash.p, hash.n);
	r->hash[hash.n] = '\0';
	is = crypt_r(r->password, r->hash, &r->crypt);
	if (is && is[0] != '*') {
		*right = strlen(is) == hash.n && digest_equal(is, hash.p, hash.n);
		e = OK;
	}
	explicit_bzero(r->password, sizeof r->password);
	explicit_bzero(r->crypt.output, sizeof r->crypt.output);
	return e;
}

enum err password_verify(struct password_room *r, struct str hash, struct str password, bool *right)
{
	CHECK(hash.n <= PASSWORD_HASH_MAX);
	if (password.n > PASSWORD_MAX || (password.n && memchr(password.p, '\0', password.n))) {
		*right = false;
		return OK;
	}
	if (!password.n)
		password.p = "";
	if (is_apr1(hash))
		return verify_apr1(r->digest, hash, password, right);
	if (is_sha(hash))
		return verify_sha(r->digest, hash, password, right);
	return verify_crypt(r, hash, password, right);
}
