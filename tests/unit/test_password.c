/* lib/crypto/password: hashes that htpasswd, openssl passwd and libcrypt made, and what is no hash. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "lib/base/mem.h"
#include "lib/crypto/password.h"

#define TEN(c) c c c c c c c c c c
#define FIFTY(c) TEN(c) TEN(c) TEN(c) TEN(c) TEN(c)
#define Y255 FIFTY("y") FIFTY("y") FIFTY("y") FIFTY("y") FIFTY("y") "yyyyy"
#define OVER72 "longer than 72 bytes: " FIFTY("k")

/* htpasswd (Apache 2.4), openssl passwd (3.0), libcrypt (4.4). */
static const struct { const char *hash, *password; } vectors[] = {
	{ "$2y$04$V62p9WKfsTCtPfXgfCy54ut77Bbwouhzw/SVRuHgF.F2Zz4uNQLgG", "pass word" },
	{ "$2y$05$8mD/pzuitsqqcDB6S/BOmeEq3rl/eh1rMAiTIGmWQflm0.rDj5o5C", "pass word" },
	{ "$2y$04$abcdefghijklmnopqrstu.aiRfTPpGm91XijkB5TYc/96lykHIT5m", "" },
	{ "$2a$05$abcdefghijklmnopqrstu.arZ3Yv9vy0avdGYzSQhLWa4zTcvsfp.", "U*U" },
	{ "$2b$04$abcdefghijklmnopqrstu.k2hGqZaPIJa1sLjMQTqB8h.zwEbMBCy", "U*U" },
	{ "$2y$04$abcdefghijklmnopqrstu.QnFHq8xVrIuCtKli6LSDcp0UFy9mHxG", OVER72 },
	{ "$apr1$324PZ/4u$MClEn1ISzRLv1TTGfEMFn.", "correct horse" },
	{ "$apr1$12345678$zbBEMgfXu4mAHPrplrtNt.", "x" },
	{ "$apr1$12345678$0lqb/6VUFP8JY/s/jTrIk0", "secret" },
	{ "$apr1$12345678$QfyUXNpT4ltWmcyYeAkdA.", "pa\xc3\x9fword" },
	{ "$apr1$12345678$0spDzTw1zok09gtHVSBrP/", "sixteen bytes!!!" },
	{ "$apr1$12345678$SrHkShzCJkOJnCCdwIrvC/", "seventeen bytes!!" },
	{ "$apr1$a$AISzAKM.pDCniJg9e7Gbr0", "a:b:c" },
	{ "$apr1$a$SSAm/2xX7vdS.eF5wM7xX0", "  two blanks  " },
	{ "$apr1$a$KYOQv3HR3URts/MQuv.MM.", Y255 },
	{ "$apr1$ncGwQ0ev$zRclILK0TOkBgAK62/0vo/", "" },
	{ "$1$12345678$hj0uLpdidjPhbMMZeno8X/", "secret" },
	{ "$1$12345678$e7vqlDq81sskBiR0TPTXe0", "pa\xc3\x9fword" },
	{ "$1$12345678$XejBCBIpWctbqiCX66kLF1", Y255 },
	{ "$1$$qRPK7m23GJusamGpoGLby/", "" },
	{ "$5$0TyPgpZefBLtV9Oo$D0bWpmSAm0AcnPXpQJp85sJXklHyy/NZ/O0kW85GHQ4", "correct horse" },
	{ "$5$saltstring$X3pdXV5D47vUCWBR2TcmCWUT095hhvVk/dkkxPOLo6/", "pa\xc3\x9fword" },
	{ "$5$rounds=12345$$ETH5x/lV9vPxfW6SBoVq99Fx4nMs/hXP7DTegesaZV5", "U*U" },
	{ "$6$t6jlieWQl0vHbj.O$qWrndwwd5glMoKVc0br9.gD5sR82An5ap6wkq8WsKu.jwoZWr9OoqIhWAyLc4FUZjRpZj826VME8CkqcicAEM/",
	  "correct horse" },
	{ "$6$s.a/lt$1V3EGqGU7ovwM3JStGXh8eUslorUdZv607ims.Jfskr9nderFNtCO25h47JBfYPzwdxiMjPIrSZul1AInF3Rt1", Y255 },
	{ "$6$rounds=1000$abc$1OfXUwYBlVs15SDnvAtxTY9Y2bRKn03wch7VVPucvsIq8fykvBzhCRuLV/KOvXT6vig4kXvJ.L2RWDGoVOx.e/", "U*U" },
	{ "{SHA}L55TUjtiq8FBorTWAZ0jy6g129A=", "correct horse" },
	{ "{SHA}2jmj7l5rSw0yVb/vlWAYkK/YBwk=", "" },
	{ "{SHA}XyRLaTIb/WCdo8CuWc58gPVHl68=", "pa:ss" },
};
#define N_VECTORS (sizeof vectors / sizeof *vectors)

static bool verify(struct password_room *r, struct str hash, struct str password)
{
	bool right = false;

	assert_int_equal(password_verify(r, hash, password, &right), OK);
	return right;
}

/* Exact heap blocks: the sanitizer sees a read beyond the end. */
static void right_and_wrong(void **state)
{
	struct password_room *r = password_room_new();

	(void)state;
	for (size_t i = 0; i < N_VECTORS; i++) {
		struct str hash = str_of(vectors[i].hash), password = str_of(vectors[i].password);
		char *h = mem_alloc(hash.n), *p = mem_alloc(password.n + 1);
		const char *why;

		memcpy(h, hash.p, hash.n);
		memcpy(p, password.p, password.n);
		hash.p = h;
		assert_int_equal(password_check(hash, &why), OK);
		assert_true(verify(r, hash, (struct str){ p, password.n }));
		p[password.n] = 'x';
		if (password.n != 72)
			assert_false(verify(r, hash, (struct str){ p, password.n + 1 }));
		if (password.n) {
			assert_false(verify(r, hash, (struct str){ p, password.n - 1 }));
			p[0] ^= 1;
			assert_false(verify(r, hash, (struct str){ p, password.n }));
		}
		h[hash.n - 2] = h[hash.n - 2] == 'a' ? 'b' : 'a';
		p[0] ^= 1;
		if (password_check(hash, &why) == OK)
			assert_false(verify(r, hash, (struct str){ p, password.n }));
		mem_free(h);
		mem_free(p);
	}
	password_room_free(r);
}

/* bcrypt ends at 72 bytes; everything else counts all. */
static void only_bcrypt_ends_at_72_bytes(void **state)
{
	struct password_room *r = password_room_new();
	const struct str bcrypt = STR("$2y$04$abcdefghijklmnopqrstu.QnFHq8xVrIuCtKli6LSDcp0UFy9mHxG");

	(void)state;
	assert_true(verify(r, bcrypt, STR(OVER72 "tail")));
	assert_false(verify(r, STR("$1$$HD74krOjA/UnTWL1P54NM1"), STR(OVER72 "tail")));
	password_room_free(r);
}

static void a_password_with_nul_or_too_long_is_wrong(void **state)
{
	struct password_room *r = password_room_new();
	const struct str y255 = STR("$apr1$a$KYOQv3HR3URts/MQuv.MM."), x = STR("$apr1$12345678$zbBEMgfXu4mAHPrplrtNt.");

	(void)state;
	assert_true(verify(r, y255, STR(Y255)));
	assert_false(verify(r, y255, STR(Y255 "y")));
	assert_true(verify(r, x, STR("x")));
	assert_false(verify(r, x, STR("x\0")));
	assert_false(verify(r, x, STR("x\0y")));
	assert_false(verify(r, x, (struct str){ NULL, 0 }));
	password_room_free(r);
}

static void refuses(const char *hash, const char *part)
{
	const char *why = NULL;

	assert_int_equal(password_check(str_of(hash), &why), ERR_SYNTAX);
	if (!strstr(why, part))
		fail_msg("%s: %s", hash, why);
}

static void what_is_no_hash_is_refused(void **state)
{
	(void)state;
	refuses("secret", "plain text");
	refuses("", "plain text");
	refuses("thirteen chars", "plain text");
	refuses("jaj2u6rub3/JM", "DES");
	refuses("{PLAIN}secret", "not taken");
	refuses("{SSHA}L55TUjtiq8FBorTWAZ0jy6g129AAAAA=", "not taken");
	refuses("$y$j9T$abc$def", "not taken");
	refuses("$2x$04$abcdefghijklmnopqrstu.aiRfTPpGm91XijkB5TYc/96lykHIT5m", "not taken");
	refuses("$argon2id$v=19$m=65536", "not taken");
	refuses("$2y$04$abcdefghijklmnopqrstu.aiRfTPpGm91XijkB5TYc/96lykHIT5", "damaged bcrypt");
	refuses("$2y$04$abcdefghijklmnopqrstuvaiRfTPpGm91XijkB5TYc/96lykHIT5m", "damaged bcrypt");
	refuses("$2y$03$abcdefghijklmnopqrstu.aiRfTPpGm91XijkB5TYc/96lykHIT5m", "damaged bcrypt");
	refuses("$2y$4$Wabcdefghijklmnopqrstu.aiRfTPpGm91XijkB5TYc/96lykHIT5m", "damaged bcrypt");
	refuses("$2y$99$abcdefghijklmnopqrstu.aiRfTPpGm91XijkB5TYc/96lykHIT5m", "damaged bcrypt");
	refuses("$2y$04$abcdefghijklmnopqrstu.aiRfTPpGm91XijkB5TYc-96lykHIT5m", "damaged bcrypt");
	refuses("$2y$15$abcdefghijklmnopqrstu.aiRfTPpGm91XijkB5TYc/96lykHIT5m", "cost above 14");
	refuses("$2y$", "damaged bcrypt");
	refuses("{SHA}L55TUjtiq8FBorTWAZ0jy6g129A", "damaged {SHA}");
	refuses("{SHA}L55TUjtiq8FBorTWAZ0jy6g129AA", "damaged {SHA}");
	refuses("{SHA}L55TUjtiq8FBorTWAZ0jy6g129B=", "damaged {SHA}");
	refuses("$apr1$123456789$zbBEMgfXu4mAHPrplrtNt.", "damaged APR1");
	refuses("$apr1$12345678$zbBEMgfXu4mAHPrplrtNt", "damaged APR1");
	refuses("$apr1$", "damaged APR1");
	refuses("$1$1;3$hj0uLpdidjPhbMMZeno8X/", "damaged MD5-crypt");
	refuses("$1$1 3$hj0uLpdidjPhbMMZeno8X/", "damaged MD5-crypt");
	refuses("$5$salt$X3pdXV5D47vUCWBR2TcmCWUT095hhvVk/dkkxPOLo6", "damaged SHA-crypt");
	refuses("$5$rounds=999$abc$X3pdXV5D47vUCWBR2TcmCWUT095hhvVk/dkkxPOLo6/", "damaged SHA-crypt");
	refuses("$5$rounds=05000$abc$X3pdXV5D47vUCWBR2TcmCWUT095hhvVk/dkkxPOLo6/", "damaged SHA-crypt");
	refuses("$5$rounds=99999999999$abc$X3pdXV5D47vUCWBR2TcmCWUT095hhvVk/dkkxPOLo6/", "damaged SHA-crypt");
	refuses("$5$rounds=5000", "damaged SHA-crypt");
	refuses("$5$rounds=500001$abc$X3pdXV5D47vUCWBR2TcmCWUT095hhvVk/dkkxPOLo6/", "more than 500000 rounds");
}

static void no_memory(void **state)
{
	(void)state;
	for (size_t n = 1; n <= 2; n++) {
		mem_fail_from(n);
		assert_null(password_room_new());
	}
	mem_fail_from(0);
	password_room_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(right_and_wrong),
		cmocka_unit_test(only_bcrypt_ends_at_72_bytes),
		cmocka_unit_test(a_password_with_nul_or_too_long_is_wrong),
		cmocka_unit_test(what_is_no_hash_is_refused),
		cmocka_unit_test(no_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
