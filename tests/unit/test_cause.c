/* proxy/cause: tokens, statuses, and the names of RFC 9209. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "proxy/cause.h"

/* The registry of Proxy Error Types, RFC 9209 2.3. */
static const char *const registered[] = {
	"dns_timeout", "dns_error", "destination_not_found", "destination_unavailable", "destination_ip_prohibited",
	"destination_ip_unroutable", "connection_refused", "connection_terminated", "connection_timeout",
	"connection_read_timeout", "connection_write_timeout", "connection_limit_reached", "tls_protocol_error",
	"tls_certificate_error", "tls_alert_received", "http_request_error", "http_request_denied",
	"http_response_incomplete", "http_response_header_section_size", "http_response_header_size",
	"http_response_body_size", "http_response_trailer_section_size", "http_response_trailer_size",
	"http_response_transfer_coding", "http_response_content_coding", "http_response_timeout", "http_upgrade_failed",
	"http_protocol_error", "proxy_internal_response", "proxy_internal_error", "proxy_configuration_error",
	"proxy_loop_detected",
};

static void tokens_are_unique(void **state)
{
	(void)state;
	assert_int_equal(causes[CAUSE_NONE].token.n, 0);
	for (unsigned i = 1; i < CAUSE_N; i++) {
		struct str t = causes[i].token;

		assert_true(t.n > 0);
		for (size_t k = 0; k < t.n; k++)
			assert_true((t.p[k] >= 'a' && t.p[k] <= 'z') || t.p[k] == '_');
		for (unsigned j = 1; j < i; j++)
			assert_false(str_eq(t, causes[j].token));
	}
}

static void errors_are_registered(void **state)
{
	(void)state;
	for (unsigned i = 0; i < CAUSE_N; i++) {
		bool known = causes[i].error.n == 0;

		for (unsigned k = 0; k < sizeof registered / sizeof *registered; k++)
			known |= str_eq(causes[i].error, str_of(registered[k]));
		if (!known)
			fail_msg("%s: %s is not registered", causes[i].token.p, causes[i].error.p);
	}
}

/* Who is to blame: 4xx without Proxy-Status but for an upstream's, 5xx always with one. */
static void statuses_fit(void **state)
{
	(void)state;
	for (unsigned i = 1; i < CAUSE_N; i++) {
		unsigned s = causes[i].status;

		assert_true(s == 0 || (s >= 400 && s < 600) || i == CAUSE_MAX_FORWARDS || i == CAUSE_PATH_REDIRECT);
		assert_true(causes[i].text.n > 0);
		if (s)
			assert_int_equal(causes[i].error.n > 0, s >= 500);
		if (s == 504)
			assert_non_null(strstr(causes[i].error.p, "timeout"));
	}
}

static void of_connects(void **state)
{
	static const struct { int error; enum cause cause; } rows[] = {
		{ ECONNREFUSED, CAUSE_CONNECT_REFUSED }, { ENOENT, CAUSE_CONNECT_REFUSED }, { ECONNRESET, CAUSE_CONNECT_REFUSED },
		{ EAGAIN, CAUSE_CONNECT_REFUSED }, { ETIMEDOUT, CAUSE_CONNECT_TIMEOUT }, { EMFILE, CAUSE_NO_DESCRIPTORS },
		{ ENFILE, CAUSE_NO_DESCRIPTORS }, { ENOMEM, CAUSE_NO_MEMORY }, { ENOBUFS, CAUSE_NO_MEMORY },
		{ EHOSTUNREACH, CAUSE_CONNECT_FAILED }, { ENETUNREACH, CAUSE_CONNECT_FAILED }, { EACCES, CAUSE_CONNECT_FAILED },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++)
		assert_int_equal(cause_of_connect(rows[i].error), rows[i].cause);
}

/* Before the head was passed on an answer of ours can say what happened; behind it only a cut can. */
static void of_answer_faults(void **state)
{
	(void)state;
	for (unsigned f = 1; f < FAULT_N; f++) {
		assert_true(causes[cause_of_answer_fault(f, false)].status >= 500);
		assert_int_equal(causes[cause_of_answer_fault(f, true)].status, 0);
	}
	assert_int_equal(cause_of_answer_fault(FAULT_CUT, true), CAUSE_ANSWER_CUT);
	assert_int_equal(cause_of_answer_fault(FAULT_CHUNK, true), CAUSE_ANSWER_BROKEN);
	assert_int_equal(cause_of_answer_fault(FAULT_CUT, false), CAUSE_UPSTREAM_CLOSED);
	assert_int_equal(cause_of_answer_fault(FAULT_HEAD_SIZE, false), CAUSE_ANSWER_HEAD_SIZE);
	assert_int_equal(cause_of_answer_fault(FAULT_SWITCH, false), CAUSE_BAD_UPGRADE);
	assert_int_equal(cause_of_answer_fault(FAULT_STATUS, false), CAUSE_BAD_ANSWER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tokens_are_unique),
		cmocka_unit_test(errors_are_registered),
		cmocka_unit_test(statuses_fit),
		cmocka_unit_test(of_connects),
		cmocka_unit_test(of_answer_faults),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
