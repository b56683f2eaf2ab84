/* conf: the JSON Schema beside the table of keys. */
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

/* Just enough of JSON: a value is a slice of the text, found again by walking. */
struct json {
	const char *p;	/* the first byte of a value; NULL: none */
};

static const char *blank(const char *p)
{
	return p + strspn(p, " \n");
}

/* Behind the text that begins at `p`; NULL: it is malformed. */
static const char *text_end(const char *p)
{
	if (*p++ != '"')
		return NULL;
	for (; *p != '"'; p++) {
		if ((unsigned char)*p < 0x20)
			return NULL;
		if (*p == '\\' && (!*++p || !strchr("\"\\/bfnrtu", *p)))
			return NULL;
	}
	return p + 1;
}

static const char *value_end(const char *p);

/* Behind a list or a map. */
static const char *group_end(const char *p)
{
	bool map = *p == '{';
	char close = map ? '}' : ']';

	p = blank(p + 1);
	if (*p == close)
		return p + 1;
	for (;;) {
		if (map) {
			p = text_end(p);
			p = p ? blank(p) : "";
			if (*p++ != ':')
				return NULL;
		}
		p = value_end(blank(p));
		p = p ? blank(p) : "";
		if (*p == close)
			return p + 1;
		if (*p++ != ',')
			return NULL;
		p = blank(p);
	}
}

static const char *value_end(const char *p)
{
	static const char *const words[] = {"true", "false", "null"};
	char *end;

	if (*p == '"')
		return text_end(p);
	if (*p == '{' || *p == '[')
		return group_end(p);
	for (int i = 0; i < 3; i++)
		if (strncmp(p, words[i], strlen(words[i])) == 0)
			return p + strlen(words[i]);
	if (*p < '0' || *p > '9')
		return NULL;
	strtod(p, &end);
	return end;
}

/* The member of a map that is called `name`; `*count`, if not NULL, is how many members there are. */
static struct json member(struct json map, const char *name, size_t *count)
{
	struct json found = {NULL};
	const char *p;

	if (count)
		*count = 0;
	if (!map.p || *map.p != '{')
		return found;
	for (p = blank(map.p + 1); *p != '}'; p = blank(p + (*p == ','))) {
		const char *end = text_end(p), *value = blank(blank(end) + 1);

		if ((size_t)(end - p) == strlen(name) + 2 && strncmp(p + 1, name, strlen(name)) == 0)
			found.p = value;
		if (count)
			++*count;
		p = blank(value_end(value));
	}
	return found;
}

static bool starts(struct json v, const char *with)
{
	return v.p && strncmp(v.p, with, strlen(with)) == 0;
}

/* Where the schema has the keys of `noun`: seen from outside, not taken from schema.c. */
static struct json noun_find(const char *text, enum conf_noun noun)
{
	static const char *const names[CONF_NOUNS] = {
		[CONF_LIMITS] = "limits", [CONF_TIMEOUTS] = "timeouts", [CONF_LOG] = "log", [CONF_DEFAULTS] = "defaults",
		[CONF_LISTEN] = "listen", [CONF_SERVICE] = "service", [CONF_ROUTE] = "route", [CONF_MATCH] = "match",
		[CONF_PATH] = "path", [CONF_PATTERN] = "pattern", [CONF_REDIRECT] = "redirect", [CONF_NEW_PATH] = "new_path",
		[CONF_ANSWER] = "answer", [CONF_HEADERS] = "headers", [CONF_ROUTE_TIMEOUTS] = "route_timeouts",
		[CONF_RATE_LIMIT] = "rate_limit", [CONF_RATE_BY] = "rate_by",
		[CONF_AUTH] = "auth", [CONF_MIRROR] = "mirror",
		[CONF_BASIC_AUTH] = "basic_auth", [CONF_CORS] = "cors",
		[CONF_COMPRESS] = "compress",
		[CONF_LISTEN_TLS] = "listen_tls", [CONF_CERTIFICATE] = "certificate",
		[CONF_CLIENT_CERTIFICATES] = "client_certificates", [CONF_TICKETS] = "tickets",
		[CONF_SERVICE_TLS] = "service_tls", [CONF_DNS] = "dns", [CONF_DNS_NAME] = "dns_name", [CONF_HSTS] = "hsts",
		[CONF_ENDPOINT] = "endpoint_map", [CONF_BALANCE] = "balance", [CONF_HASH] = "hash", [CONF_STICKY] = "sticky",
		[CONF_HEALTH] = "health", [CONF_EJECT] = "eject",
		[CONF_RETRY] = "retry", [CONF_BACKOFF] = "backoff", [CONF_RETRY_BUDGET] = "retry_budget",
	};
	struct json root = {text};

	return noun == CONF_TOP ? root : member(member(root, "$defs", NULL), names[noun], NULL);
}

/* Does the text `v` begin with `s`?  (Which has quotes, and nothing else that JSON escapes.) */
static bool says(struct json v, const char *s)
{
	if (!v.p || *v.p++ != '"')
		return false;
	for (; *s; s++, v.p++) {
		if (*s == '"' && *v.p++ != '\\')
			return false;
		if (*s != *v.p)
			return false;
	}
	return true;
}

/* Is there a shape, and are the doc line, the default and the map of `k` in it? */
static bool property_fits(struct json p, const struct conf_key *k)
{
	struct json is = member(p, "default", NULL), doc = member(p, "description", NULL), ref = member(p, "$ref", NULL);
	char want[64];

	if (!says(doc, k->doc))
		return false;
	snprintf(want, sizeof want, "%s\"", k->fallback ? k->fallback : "");
	if (k->fallback ? !is.p || (*is.p == '"' ? !starts((struct json){is.p + 1}, want)
				    : strtoull(is.p, NULL, 10) != strtoull(k->fallback, NULL, 10)) : is.p != NULL)
		return false;
	if (k->type == CONF_T_MAP)
		return starts(ref, "\"#/$defs/");
	return ref.p || member(p, "anyOf", NULL).p || member(p, "type", NULL).p;
}

static bool is_in_list(struct json list, const char *name)
{
	const char *end = list.p ? value_end(list.p) : NULL;
	char want[64];

	snprintf(want, sizeof want, "\"%s\"", name);
	return end && memmem(list.p, (size_t)(end - list.p), want, strlen(want));
}

/* What is wrong with a map of the schema: keys that are not where they belong or not as the table has them, or others. */
static size_t noun_faults(const char *text, enum conf_noun noun, bool say)
{
	struct json map = noun_find(text, noun), properties = member(map, "properties", NULL);
	size_t count, wrong = 0, expected = 0, there;
	const struct conf_key *keys = conf_keys(&count);

	member(properties, "", &there);
	for (size_t i = 0; i < count; i++) {
		struct json p = member(properties, keys[i].name, NULL);
		bool must = keys[i].required && keys[i].noun == noun;

		if (!conf_key_in(&keys[i], noun))
			continue;
		expected++;
		if (property_fits(p, &keys[i]) && (!must || is_in_list(member(map, "required", NULL), keys[i].name)))
			continue;
		wrong++;
		if (say)
			print_error("`%s` of %s\n", keys[i].name, conf_noun_name(noun));
	}
	wrong += there != expected || !starts(member(map, "additionalProperties", NULL), "false");
	if (say && there != expected)
		print_error("%zu keys and not %zu in %s\n", there, expected, conf_noun_name(noun));
	return wrong;
}

static size_t faults(const char *text, bool say)
{
	size_t wrong = 0;

	for (enum conf_noun noun = CONF_TOP; noun < CONF_NOUNS; noun++)
		wrong += noun_faults(text, noun, say);
	return wrong;
}

static char *schema_text(void)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	assert_non_null(f);
	conf_schema_print(f);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(strlen(text), n);
	return text;
}

static void it_is_json(void **state)
{
	char *text = schema_text();
	const char *end = value_end(text);

	(void)state;
	assert_non_null(end);
	assert_string_equal(end, "\n");
	assert_true(starts(member((struct json){text}, "$schema", NULL), "\"https://json-schema.org/draft/2020-12/schema\""));
	free(text);
}

static void every_key_is_where_it_belongs(void **state)
{
	char *text = schema_text();

	(void)state;
	assert_int_equal(faults(text, true), 0);
	free(text);
}

/* The check above sees each key: under another name, or with another doc line, it is a fault. */
static void a_missing_key_would_be_seen(void **state)
{
	static const char begin[] = "\": {\"description\": \"";
	size_t seen = 0, count, expected = 0;
	const struct conf_key *keys = conf_keys(&count);
	char *text = schema_text();
	struct json maps[CONF_NOUNS];

	(void)state;
	for (enum conf_noun noun = CONF_TOP; noun < CONF_NOUNS; noun++)
		maps[noun] = noun_find(text, noun);
	for (size_t i = 0; i < count; i++)
		expected += 1u + keys[i].shared;
	for (char *p = text; (p = strstr(p, begin)); p += sizeof begin - 1, seen++) {
		char *places[] = {p - 1, p + sizeof begin - 1};
		enum conf_noun noun = CONF_NOUNS - 1;

		while (noun > CONF_TOP && !(maps[noun].p < p && p < value_end(maps[noun].p)))
			noun--;

		for (int i = 0; i < 2; i++) {
			char was = *places[i];

			*places[i] = '~';
			assert_true(noun_faults(text, noun, false) > 0);
			*places[i] = was;
		}
	}
	assert_int_equal(seen, expected);
	free(text);
}

static void every_reference_leads_somewhere(void **state)
{
	static const char begin[] = "\"$ref\": \"";
	char *text = schema_text(), name[64];
	struct json defs = member((struct json){text}, "$defs", NULL);
	size_t n = 0;

	(void)state;
	for (const char *p = text; (p = strstr(p, begin)); n++) {
		p += sizeof begin - 1;
		assert_int_equal(sscanf(p, "#/$defs/%63[a-z_]\"", name), 1);
		assert_non_null(member(defs, name, NULL).p);
	}
	assert_true(n > 50);
	free(text);
}

/* A map whose type has no shape would say "(null)" or nothing: no value is unbounded by accident. */
static void every_type_has_a_shape(void **state)
{
	char *text = schema_text();

	(void)state;
	assert_null(strstr(text, "(null)"));
	assert_null(strstr(text, ", }"));
	assert_null(strstr(text, "{}"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_json),
		cmocka_unit_test(every_key_is_where_it_belongs),
		cmocka_unit_test(a_missing_key_would_be_seen),
		cmocka_unit_test(every_reference_leads_somewhere),
		cmocka_unit_test(every_type_has_a_shape),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
