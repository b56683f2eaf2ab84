/* Access lines: what any byte becomes, that JSON stays JSON, bounds, dates, addresses. */
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <cmocka.h>

#include "proxy/access.h"

static uint32_t rng_state = 11;

static uint32_t rng(void)
{
	rng_state ^= rng_state << 13;
	rng_state ^= rng_state >> 17;
	rng_state ^= rng_state << 5;
	return rng_state;
}

static struct access_record record(void)
{
	return (struct access_record){
		.time_unix_ms = 1000000000123, .client_family = AF_INET, .client_port = 5678,
		.client_addr = {192, 0, 2, 1}, .listener = STR("web"), .method = STR("GET"),
		.authority = STR("a.example"), .target = STR("/x?y=1"), .http_major = 1, .http_minor = 1,
		.status = 200, .bytes_in = 0, .bytes_out = 18446744073709551615u, .duration_us = 12345,
		.connect_us = ACCESS_NONE, .first_byte_us = 99, .route = STR("r"), .service = STR("s"),
		.endpoint = STR("10.0.0.1:80"), .retries = 10, .retry_cause = STR("503"), .user_agent = STR("curl/8 (x)"),
		.reused = true,
	};
}

/* The line as a string; the byte after it must be untouched. */
static const char *format(bool json, const struct access_record *r)
{
	static char *out;
	struct access_date date = {0};
	size_t n;

	free(out);	/* exactly as large as promised, for the sanitizer to watch */
	out = malloc(ACCESS_LINE_MAX + (r->tls ? ACCESS_TLS_MAX : 0));
	n = json ? access_json(out, r, &date) : access_text(out, r, &date);
	assert_true(n < ACCESS_LINE_MAX + (r->tls ? ACCESS_TLS_MAX : 0));
	assert_int_equal(out[n - 1], '\n');
	assert_null(memchr(out, '\n', n - 1));
	out[n - 1] = 0;
	assert_int_equal(strlen(out), n - 1);
	return out;
}

static void test_text_line(void **state)
{
	struct access_record r = record();

	(void)state;
	assert_string_equal(format(false, &r), "2001-09-09T01:46:40.123Z client=192.0.2.1 client_port=5678 "
		"listener=\"web\" method=\"GET\" authority=\"a.example\" target=\"/x?y=1\" protocol=HTTP/1.1 status=200 "
		"bytes_in=0 bytes_out=18446744073709551615 duration_us=12345 connect_us=- first_byte_us=99 "
		"route=\"r\" service=\"s\" endpoint=\"10.0.0.1:80\" cause=- fault=- retries=10 retry_cause=\"503\" no_retry=- request_id=- user=- referer=- "
		"user_agent=\"curl/8 (x)\" flags=r");
	r.client_family = AF_UNSPEC;
	r.http_major = 2;
	r.client_closed = r.upgrade = true;
	assert_non_null(strstr(format(false, &r), " client=- client_port=- "));
	assert_non_null(strstr(format(false, &r), " protocol=HTTP/2 "));
	assert_non_null(strstr(format(false, &r), " flags=rcu"));
}

static void test_json_line(void **state)
{
	struct access_record r = record();

	(void)state;
	assert_string_equal(format(true, &r), "{\"time\":\"2001-09-09T01:46:40.123Z\",\"client\":\"192.0.2.1\","
		"\"client_port\":5678,\"listener\":\"web\",\"method\":\"GET\",\"authority\":\"a.example\",\"target\":\"/x?y=1\","
		"\"protocol\":\"HTTP/1.1\",\"status\":200,\"bytes_in\":0,\"bytes_out\":18446744073709551615,"
		"\"duration_us\":12345,\"connect_us\":null,\"first_byte_us\":99,\"route\":\"r\",\"service\":\"s\","
		"\"endpoint\":\"10.0.0.1:80\",\"cause\":null,\"fault\":null,\"retries\":10,\"retry_cause\":\"503\",\"no_retry\":null,\"request_id\":null,\"user\":null,\"referer\":null,"
		"\"user_agent\":\"curl/8 (x)\",\"reused\":true,\"client_closed\":false,\"upgrade\":false,\"cut\":false}");
}

static void test_tls(void **state)
{
	struct access_tls tls = { .minor = 3, .resumed = true, .cipher = STR("TLS_AES_128_GCM_SHA256"), .name = STR("a.example") };
	struct access_record r = record();
	char long_text[3000], *end;

	(void)state;
	r.tls = &tls;
	assert_non_null(strstr(format(false, &r), "\"curl/8 (x)\" tls=1.3 tls_cipher=\"TLS_AES_128_GCM_SHA256\" tls_name=\"a.example\" "
		"tls_resumed=yes tls_client=- tls_client_id=- flags=r"));
	tls = (struct access_tls){ .minor = 2, .client = STR("CN=\\22"), .client_id = STR("spiffe://a/b") };
	assert_non_null(strstr(format(true, &r), "\"curl/8 (x)\",\"tls\":\"1.2\",\"tls_cipher\":null,\"tls_name\":null,\"tls_resumed\":false,"
		"\"tls_client\":\"CN=\\\\22\",\"tls_client_id\":\"spiffe://a/b\",\"reused\":true"));
	memset(long_text, 1, sizeof long_text);
	tls.cipher = tls.name = tls.client = tls.client_id = (struct str){ long_text, sizeof long_text };
	r.listener = r.method = r.authority = r.target = r.route = r.service = r.endpoint = r.cause = r.fault = tls.name;
	r.request_id = r.user = r.referer = r.user_agent = tls.name;
	assert_non_null(strstr(format(false, &r), " flags=rt"));
	end = strstr(format(false, &r), " tls=");
	assert_non_null(end);
	assert_true(strlen(end) < ACCESS_TLS_MAX);
	assert_non_null(strstr(format(true, &r), "\"cut\":true}"));
}

/* The plain way to say what a byte becomes. */
static void expect_byte(bool json, unsigned c, char *to)
{
	if (c > 0x1f && c < 0x7f && c != '"' && c != '\\')
		sprintf(to, "%c", (int)c);
	else if (!json)
		sprintf(to, "\\x%02x", c);
	else if (c == '"' || c == '\\')
		sprintf(to, "\\%c", (int)c);
	else
		sprintf(to, "\\u00%02x", c);
}

/* Every byte at every place of strings of every length up to 40: words, blocks and tails. */
static void test_every_byte_everywhere(void **state)
{
	struct access_record r = record();

	(void)state;
	for (int json = 0; json < 2; json++) {
		for (unsigned c = 0; c < 256; c++) {
			size_t n = 1 + rng() % 40, at = rng() % n;
			char text[40], want[400], *w = want, *exact = malloc(n);

			w += sprintf(w, json ? "\"referer\":\"" : "referer=\"");
			for (size_t i = 0; i < n; i++) {
				text[i] = (char)(i == at ? c : rng() % 3 ? 'a' + rng() % 26 : rng() % 256);
				expect_byte(json, (unsigned char)text[i], w);
				w += strlen(w);
			}
			sprintf(w, json ? "\",\"user_agent\"" : "\" user_agent");
			memcpy(exact, text, n);
			r.referer = (struct str){exact, n};
			assert_non_null(strstr(format(json, &r), want));
			free(exact);
		}
	}
}

/* A small JSON reader: one flat object of strings, whole numbers, true, false, null.  Checks the
 * grammar byte by byte, and decodes the string named `key` into `to`; returns how many names there were, -1: not JSON. */
static const char *read_string(const char *p, char *to, size_t *n)
{
	*n = 0;
	if (*p++ != '"')
		return NULL;
	for (; *p != '"'; p++) {
		unsigned v;

		if ((unsigned char)*p < 0x20 || (unsigned char)*p > 0x7e)
			return NULL;
		if (*p != '\\') {
			to[(*n)++] = *p;
		} else if (p[1] == 'u') {
			if (strspn(p + 2, "0123456789abcdef") < 4 || sscanf(p + 2, "%4x", &v) != 1 || v > 255)
				return NULL;
			to[(*n)++] = (char)v;
			p += 5;
		} else if (p[1] == '"' || p[1] == '\\') {
			to[(*n)++] = *++p;
		} else {
			return NULL;
		}
	}
	return p + 1;
}

static const char *read_value(const char *p, char *to, size_t *n)
{
	static const char *const words[] = {"true", "false", "null"};
	size_t digits = strspn(p, "0123456789");

	*n = 0;
	if (*p == '"')
		return read_string(p, to, n);
	if (digits)
		return digits > 1 && *p == '0' ? NULL : p + digits;
	for (int i = 0; i < 3; i++)
		if (!strncmp(p, words[i], strlen(words[i])))
			return p + strlen(words[i]);
	return NULL;
}

static int read_object(const char *p, const char *key, char *to, size_t *to_n)
{
	int names = 0;

	do {
		char name[ACCESS_LINE_MAX], value[ACCESS_LINE_MAX];
		size_t n, m;

		if (*p++ != (names ? ',' : '{'))
			return -1;
		p = read_string(p, name, &n);
		if (!p || *p++ != ':')
			return -1;
		p = read_value(p, value, &m);
		if (!p)
			return -1;
		if (n == strlen(key) && !memcmp(name, key, n)) {
			memcpy(to, value, m);
			*to_n = m;
		}
		names++;
	} while (*p == ',');
	return p[0] == '}' && !p[1] ? names : -1;
}

static struct str random_bytes(char *room, size_t max)
{
	size_t n = rng() % max;

	for (size_t i = 0; i < n; i++)
		room[i] = (char)(rng() % 4 ? rng() % 128 : rng());
	return (struct str){room, n};
}

static void test_json_of_random_bytes(void **state)
{
	static char room[12][3000];

	(void)state;
	for (int i = 0; i < 3000; i++) {
		struct access_record r = record();
		struct str *all[12] = {&r.listener, &r.method, &r.authority, &r.target, &r.route, &r.service,
			&r.endpoint, &r.cause, &r.request_id, &r.user, &r.referer, &r.user_agent};
		char target[ACCESS_LINE_MAX];
		size_t n = 0;
		const char *line;

		for (int k = 0; k < 12; k++)
			*all[k] = random_bytes(room[k], i % 2 ? 3000 : 60);
		r.time_unix_ms = rng();
		r.bytes_in = rng();
		r.retries = rng();
		line = format(true, &r);
		assert_int_equal(read_object(line, "target", target, &n), 30);
		if (i % 2 == 0) {	/* too short for a cut: the very bytes come back */
			assert_int_equal(n, r.target.n);
			assert_memory_equal(target, r.target.p, n);
		} else if (n != r.target.n || memcmp(target, r.target.p, n)) {
			assert_true(n >= ACCESS_TARGET_MAX / 6);
			assert_memory_equal(target, r.target.p, n - 3);
			assert_non_null(strstr(line, "\"cut\":true}"));
		}
	}
}

/* Cut when what it takes escaped is longer than the bound, and not one byte sooner. */
static void test_cut(void **state)
{
	char raw[ACCESS_AGENT_MAX + 8];

	(void)state;
	for (int json = 0; json < 2; json++) {
		for (int odd = 0; odd < 2; odd++) {
			size_t unit = !odd ? 1 : json ? 6 : 4, fits = ACCESS_AGENT_MAX / unit;

			for (size_t n = fits - 1; n <= fits + 1; n++) {
				struct access_record r = record();
				const char *line, *agent;

				memset(raw, odd ? 0x80 : 'a', sizeof(raw));
				r.user_agent = (struct str){raw, n};
				line = format(json, &r);
				agent = strstr(line, json ? "\"user_agent\":\"" : "user_agent=\"") + (json ? 14 : 12);
				assert_int_equal(strchr(agent, '"') - agent, n <= fits ? n * unit : fits * unit + 3);
				assert_int_equal(!strncmp(strchr(agent, '"') - 3, "...", 3), n > fits);
				assert_int_equal(strstr(line, json ? "\"cut\":true}" : " flags=rt") != NULL, n > fits);
			}
		}
	}
}

static void test_longest_line(void **state)
{
	static char raw[8192];
	struct access_record r = record();

	(void)state;
	memset(raw, 0xff, sizeof(raw));
	r.listener = r.method = r.authority = r.target = r.route = r.service = r.endpoint = r.cause =
		r.request_id = r.user = r.referer = r.user_agent = (struct str){raw, sizeof(raw)};
	r.client_family = AF_INET6;
	memset(r.client_addr, 0xee, 16);
	r.bytes_in = UINT64_MAX;
	r.duration_us = r.connect_us = r.first_byte_us = INT64_MAX;
	r.retries = UINT32_MAX;
	r.client_closed = r.upgrade = true;
	assert_true(strlen(format(false, &r)) > 4096);
	assert_true(strlen(format(true, &r)) > 4096);
}

static void test_dates(void **state)
{
	static const struct { int64_t ms; const char *text; } all[] = {
		{0, "1970-01-01T00:00:00.000Z"}, {-5, "1970-01-01T00:00:00.000Z"},
		{951782399999, "2000-02-28T23:59:59.999Z"}, {951782400000, "2000-02-29T00:00:00.000Z"},
		{951868800007, "2000-03-01T00:00:00.007Z"}, {4107542400000, "2100-03-01T00:00:00.000Z"},
		{1735689599050, "2024-12-31T23:59:59.050Z"},
		{253402300799999, "9999-12-31T23:59:59.999Z"}, {INT64_MAX, "9999-12-31T23:59:59.999Z"},
	};
	struct access_date date = {0};
	char out[25] = "";

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		assert_ptr_equal(access_time(out, all[i].ms, &date), out + 24);
		assert_string_equal(out, all[i].text);
	}
}

static void test_addresses(void **state)
{
	static const struct { uint8_t a[16]; const char *text; } all[] = {
		{{0}, "::"}, {{[15] = 1}, "::1"}, {{0x20, 1, 0x0d, 0xb8, [15] = 0x10}, "2001:db8::10"},
		{{0x20, 1, 0x0d, 0xb8, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1}, "2001:db8:0:1::1"},
		{{0x20, 1, 0x0d, 0xb8, 0, 0, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1}, "2001:db8:0:1:1:1:1:1"},
		{{0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1}, "1:0:0:1::1"},
		{{0, 1, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 1}, "1::1:1:0:0:1"},
		{{0xfe, 0x80}, "fe80::"}, {{[10] = 0xff, 0xff, 10, 0, 200, 255}, "10.0.200.255"},
	};
	struct access_record r = record();
	char want[80];

	(void)state;
	r.client_family = AF_INET6;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		memcpy(r.client_addr, all[i].a, 16);
		snprintf(want, sizeof(want), "Z client=%s client_port=5678 ", all[i].text);
		assert_non_null(strstr(format(false, &r), want));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text_line),
		cmocka_unit_test(test_json_line),
		cmocka_unit_test(test_tls),
		cmocka_unit_test(test_every_byte_everywhere),
		cmocka_unit_test(test_json_of_random_bytes),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_longest_line),
		cmocka_unit_test(test_dates),
		cmocka_unit_test(test_addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
