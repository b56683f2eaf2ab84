/* lib/crypto/digest: known answers, pieces, comparing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "lib/base/mem.h"
#include "lib/crypto/digest.h"

static void is_hex(const uint8_t *p, size_t n, const char *hex)
{
	for (size_t i = 0; i < n; i++) {
		const char digits[] = "0123456789abcdef";

		assert_int_equal(hex[2 * i], digits[p[i] >> 4]);
		assert_int_equal(hex[2 * i + 1], digits[p[i] & 15]);
	}
	assert_int_equal(hex[2 * n], '\0');
}

/* RFC 1321 A.5 and RFC 3174 7.3. */
static void known_answers(void **state)
{
	struct digest *d = digest_new();
	uint8_t out[32];

	(void)state;
	digest_start(d, DIGEST_MD5);
	assert_int_equal(digest_end(d, out), OK);
	is_hex(out, DIGEST_MD5_SIZE, "d41d8cd98f00b204e9800998ecf8427e");
	digest_start(d, DIGEST_MD5);
	digest_add(d, "message ", 8);
	digest_add(d, NULL, 0);
	digest_add(d, "digest", 6);
	assert_int_equal(digest_end(d, out), OK);
	is_hex(out, DIGEST_MD5_SIZE, "f96b697d7cb7938d525a2f31aaf161d0");
	digest_start(d, DIGEST_SHA1);
	digest_add(d, "abc", 3);
	assert_int_equal(digest_end(d, out), OK);
	is_hex(out, DIGEST_SHA1_SIZE, "a9993e364706816aba3e25717850c26c9cd0d89d");
	digest_free(d);
}

/* What is said again after an end is an error that the next start forgets. */
static void an_error_lasts_until_the_next_start(void **state)
{
	struct digest *d = digest_new();
	uint8_t out[32];

	(void)state;
	digest_start(d, DIGEST_SHA1);
	assert_int_equal(digest_end(d, out), OK);
	digest_add(d, "abc", 3);
	assert_int_equal(digest_end(d, out), ERR_SYS);
	assert_int_equal(digest_end(d, out), ERR_SYS);
	digest_start(d, DIGEST_SHA1);
	digest_add(d, "abc", 3);
	assert_int_equal(digest_end(d, out), OK);
	is_hex(out, DIGEST_SHA1_SIZE, "a9993e364706816aba3e25717850c26c9cd0d89d");
	digest_free(d);
	digest_free(NULL);
}

/* RFC 4231 4.2, whose key is padded with zeros to the block, which HMAC does itself. */
static void mac(void **state)
{
	uint8_t key[DIGEST_MAC_KEY] = {0}, out[DIGEST_MAC_SIZE], other[DIGEST_MAC_SIZE];
	struct digest_mac *m, *n;

	(void)state;
	memset(key, 0x0b, 20);
	m = digest_mac_new(key);
	key[31] = 1;
	n = digest_mac_new(key);
	assert_true(m && n);
	for (int i = 0; i < 2; i++) {	/* again and again */
		assert_int_equal(digest_mac_of(m, STR("Hi There"), out), OK);
		is_hex(out, sizeof out, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
		assert_int_equal(digest_mac_of(m, (struct str){ NULL, 0 }, out), OK);
		assert_int_equal(digest_mac_of(n, STR(""), other), OK);
		assert_memory_not_equal(out, other, sizeof out);
	}
	digest_mac_free(m);
	digest_mac_free(n);
	digest_mac_free(NULL);
}

static void comparing(void **state)
{
	char a[8] = "secret!", b[8] = "secret!";

	(void)state;
	assert_true(digest_equal(a, b, sizeof a));
	assert_true(digest_equal(a, b, 0));
	for (unsigned i = 0; i < 64; i++) {
		b[i / 8] = (char)(b[i / 8] ^ 1 << i % 8);
		assert_false(digest_equal(a, b, sizeof a));
		b[i / 8] = (char)(b[i / 8] ^ 1 << i % 8);
	}
}

static void no_memory(void **state)
{
	(void)state;
	mem_fail_from(1);
	assert_null(digest_new());
	assert_null(digest_mac_new((const uint8_t[DIGEST_MAC_KEY]){0}));
	mem_fail_from(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_answers),
		cmocka_unit_test(an_error_lasts_until_the_next_start),
		cmocka_unit_test(mac),
		cmocka_unit_test(comparing),
		cmocka_unit_test(no_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
