/* conf: the tables of the reference page beside the table of keys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "conf/conf.h"
#include "conf/keys.h"

static char *page_text(void)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	assert_non_null(f);
	conf_page_print(f);
	assert_int_equal(fclose(f), 0);
	return text;
}

/* The row of `key` in the table of `noun`, copied; NULL: there is none. */
static char *row_of(const char *text, enum conf_noun noun, const char *key)
{
	char mark[64];
	const char *at, *end;

	snprintf(mark, sizeof mark, "<!-- keys: %s -->\n", conf_noun_id(noun));
	at = strstr(text, mark);
	assert_non_null(at);
	end = strstr(at, "<!-- /keys -->\n");
	snprintf(mark, sizeof mark, "\n| `%s` | ", key);
	at = strstr(at, mark);
	return at && at < end ? strndup(at + 1, strcspn(at + 1, "\n")) : NULL;
}

/* Each cell of a row has what it is about: values of a known kind, the default, the doc text. */
static bool row_is_whole(const char *row, const struct conf_key *k)
{
	const char *given = k->inherits ? k->inherits : k->fallback;
	const char *value = strchr(row + 2, '|') + 2, *after = strstr(value, " | ");
	char want[80];

	snprintf(want, sizeof want, given ? " | `%s` | " : " | | ", given);
	return *value != '|' && *value != ' ' && after && strncmp(after, want, strlen(want)) == 0 &&
		strncmp(after + strlen(want), k->doc, strcspn(k->doc, "|")) == 0;
}

static void every_key_has_a_row(void **state)
{
	size_t count, wrong = 0;
	const struct conf_key *keys = conf_keys(&count);
	char *text = page_text();

	(void)state;
	for (size_t i = 0; i < count; i++) {
		char *row = row_of(text, keys[i].noun, keys[i].name);

		if (!keys[i].doc || !*keys[i].doc || strchr(keys[i].doc, '\n') || !row || !row_is_whole(row, &keys[i])) {
			print_error("`%s` of %s: %s\n", keys[i].name, conf_noun_name(keys[i].noun), row ? row : "no row");
			wrong++;
		}
		free(row);
	}
	free(text);
	assert_int_equal(wrong, 0);
}

static void bounds_and_words_are_told(void **state)
{
	static const struct { enum conf_noun noun; const char *key, *row; } want[] = {
		{CONF_TOP, "workers", "| 1 to 256, `auto` | `auto` |"},
		{CONF_TOP, "limits", "| map: [limits](#limits) | |"},
		{CONF_LIMITS, "fields", "| 8 to 10000 | `200` |"},
		{CONF_LIMITS, "unsent", "| size, 4KiB to 64MiB, `off` | `128KiB` |"},
		{CONF_TIMEOUTS, "connect", "| duration, 10ms to 10m | `5s` |"},
		{CONF_LISTEN, "address", "| address | | where to listen; needed |"},
		{CONF_LISTEN, "x_forwarded", "| `append`, `replace`, `off` | `append` |"},
		{CONF_LOG, "error", "| `stderr`, or a path with a `/` in it | `stderr` |"},
		{CONF_SERVICE, "host", "| `keep`, `endpoint`, or a host | `keep` |"},
		{CONF_ROUTE, "timeouts", "| map: [timeouts of a route](#timeouts-of-a-route) | |"},
		{CONF_ROUTE, "body_limit", "| `limits.body` |"},
		{CONF_REDIRECT, "status", "| `301`, `302`, `303`, `307`, `308` | `302` |"},
		{CONF_ANSWER, "status", "| 200 to 599 | `200` |"},
		{CONF_ANSWER, "body", "| a text of at most 1MiB | |"},
		{CONF_ROUTE, "compress", "| on, off, or a map: [compress](#compress) | `off` |"},
		{CONF_COMPRESS, "encodings", "| `zstd`, `br`, `gzip`, or a list of them, or `all` | `all` |"},
		{CONF_DEFAULTS, "via", "| `via` | [listen](#listen) |"},
	};
	char *text = page_text();

	(void)state;
	for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
		char *row = row_of(text, want[i].noun, want[i].key);

		assert_non_null(row);
		if (!strstr(row, want[i].row))
			fail_msg("%s\nand not %s", row, want[i].row);
		free(row);
	}
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_key_has_a_row),
		cmocka_unit_test(bounds_and_words_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
