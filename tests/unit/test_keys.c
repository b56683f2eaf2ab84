/* conf: every key of the table by itself, made from the table: its default, its bounds, what it refuses and where.
 * A new key needs nothing here; a new type of value needs a sample, and a way to compare it if a key of it has a default. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <inttypes.h>
#include <cmocka.h>

#include "conf/conf.h"
#include "conf/keys.h"

#define TEXT_SIZE 1024

/* A good value of each type that is no key's default; numbers and words come from their keys. */
static const char *const samples[CONF_TYPES] = {
	[CONF_T_TOKEN] = "zz", [CONF_T_TEXT] = "zz", [CONF_T_VALUE] = "zz", [CONF_T_SINK] = "/tmp/zz",
	[CONF_T_ADDRESS] = "':1'", [CONF_T_ENDPOINTS] = "'127.0.0.1:1'", [CONF_T_HOST] = "zz.test",
	[CONF_T_NETWORKS] = "10.0.0.0/8", [CONF_T_PROTOCOLS] = "zz", [CONF_T_HEADER_MAP] = "{Zz: zz}",
	[CONF_T_HEADER_NAMES] = "[Zz, Yy]", [CONF_T_HOSTS] = "zz.test", [CONF_T_PATH] = "/zz", [CONF_T_PREFIX] = "/zz",
	[CONF_T_EXACT] = "/zz", [CONF_T_PATH_REGEX] = "'/z+'", [CONF_T_METHODS] = "[ZZ, YY]",
	[CONF_T_HEADER_PAIRS] = "{Zz: zz}", [CONF_T_QUERY_PAIRS] = "{zz: zz}", [CONF_T_PATTERN] = "'z+'",
	[CONF_T_MATCHES] = "[{path: /zz}]", [CONF_T_NEW_PREFIX] = "/zz",
	[CONF_T_NEW_PATH] = "/zz", [CONF_T_NEW_HOST] = "zz.test",
	[CONF_T_TARGET] = "/zz", [CONF_T_SERVICE] = "zz",
	[CONF_T_ONE_SERVICE] = "zz", [CONF_T_NAMES] = "{zz.test: zz}",
	[CONF_T_LISTENS] = "':1'", [CONF_T_SERVICES] = "{zz: []}", [CONF_T_ROUTES] = "[{service: zz}]",
	[CONF_T_DEFAULTS] = "{}", [CONF_T_RATE_LIMITS] = "10/s", [CONF_T_RATE] = "10/s", [CONF_T_RATE_BY] = "route",
	[CONF_T_RATE_HEADER] = "Zz", [CONF_T_SERVICE_NAME] = "zz", [CONF_T_QUERY_PATH] = "/zz?z", [CONF_T_SIGN_IN] = "/zz",
	[CONF_T_SHARE] = "25%", [CONF_T_COMPRESS] = "on", [CONF_T_CODINGS] = "[gzip, br]", [CONF_T_TYPES] = "text/zz",
	[CONF_T_BASIC_AUTH] = "{file: zz}", [CONF_T_FILE] = "zz", [CONF_T_HEADER] = "Zz",
	[CONF_T_CORS] = "{origins: 'https://zz.test'}", [CONF_T_ORIGINS] = "'https://zz.test'", [CONF_T_FIELD_NAMES] = "[Zz, Yy]",
	[CONF_T_TLS_FILE] = "/zz.pem", [CONF_T_CIPHERS] = "[ZZ, YY]", [CONF_T_TLS_NAME] = "zz.test",
	[CONF_T_CERTIFICATES] = "[{cert: a, key: b}]", [CONF_T_CLIENT_CERTIFICATES] = "{ca: a}",
	[CONF_T_TICKETS] = "{key_file: a}", [CONF_T_LISTEN_TLS] = "{certificates: {cert: a, key: b}}",
	[CONF_T_ENDPOINT] = "'127.0.0.1:1'", [CONF_T_BALANCE] = "{hash: address}", [CONF_T_HASH] = "path", [CONF_T_HASH_NAME] = "zz",
	[CONF_T_STICKY] = "{cookie: zz}", [CONF_T_STICKY_KEY] = "zzzzzzzzzzzzzzzz",
	[CONF_T_HEALTH] = "{http: /zz}", [CONF_T_STATUSES] = "[2xx, 404]", [CONF_T_EJECT] = "off",
	[CONF_T_SERVICE_TLS] = "{name: zz.test}", [CONF_T_HSTS] = "on",
	[CONF_T_DNS_NAME] = "'zz.test:1'", [CONF_T_DNS_HOST] = "zz.test", [CONF_T_NAMESERVERS] = "127.0.0.1", [CONF_T_SEARCH] = "zz.test",
	[CONF_T_HOSTS_FILE] = "/zz",
	[CONF_T_RETRY] = "{attempts: 3}", [CONF_T_RETRY_ON] = "[reset, 503]", [CONF_T_RETRY_METHODS] = "[GET, POST]",
};

/* How a map stands in the key that holds it: what is before it and behind it. */
static const char *const holds[CONF_TYPES][2] = {
	[CONF_T_LISTENS] = {"[{", "}]"}, [CONF_T_ROUTES] = {"[{", "}]"}, [CONF_T_MATCHES] = {"[{", "}]"},
	[CONF_T_SERVICES] = {"{zz: {", "}}"}, [CONF_T_HEADER_PAIRS] = {"{Zz: {", "}}"},
	[CONF_T_QUERY_PAIRS] = {"{zz: {", "}}"}, [CONF_T_PATH] = {"{", "}"}, [CONF_T_MAP] = {"{", "}"},
	[CONF_T_DEFAULTS] = {"{", "}"}, [CONF_T_RATE_LIMITS] = {"[{", "}]"}, [CONF_T_RATE_BY] = {"{", "}"},
	[CONF_T_BASIC_AUTH] = {"{", "}"}, [CONF_T_CORS] = {"{", "}"},
	[CONF_T_COMPRESS] = {"{", "}"}, [CONF_T_ENDPOINTS] = {"[{", "}]"}, [CONF_T_BALANCE] = {"{", "}"}, [CONF_T_HASH] = {"{", "}"},
	[CONF_T_STICKY] = {"{", "}"}, [CONF_T_HEALTH] = {"{", "}"}, [CONF_T_EJECT] = {"{", "}"},
	[CONF_T_CERTIFICATES] = {"[{", "}]"}, [CONF_T_CLIENT_CERTIFICATES] = {"{", "}"}, [CONF_T_TICKETS] = {"{", "}"},
	[CONF_T_LISTEN_TLS] = {"{", "}"}, [CONF_T_SERVICE_TLS] = {"{", "}"}, [CONF_T_HSTS] = {"{", "}"},
	[CONF_T_DNS_NAME] = {"{", "}"},
	[CONF_T_RETRY] = {"{", "}"},
};

/* What every text is good for. */
static bool takes_any_text(enum conf_type type)
{
	return type == CONF_T_TEXT || type == CONF_T_VALUE || type == CONF_T_PATH_REGEX || type == CONF_T_PATTERN ||
		type == CONF_T_FILE || type == CONF_T_TLS_FILE || type == CONF_T_HOSTS_FILE;
}

/* What a member `key` of a map of `noun` cannot be without, beside the keys that are required. */
static const char *company(enum conf_noun noun, const char *key)
{
	static const char *const actions[] = {"service", "redirect", "answer"};

	if (noun == CONF_TOP)
		return strcmp(key, "routes") == 0 ? "services: {zz: []}" : strcmp(key, "services") == 0
			? "routes: [{service: zz}]" : "services: {zz: []}, routes: [{service: zz}]";
	if (noun == CONF_HEALTH && strcmp(key, "http") != 0)
		return "http: /zz";
	if (noun == CONF_REDIRECT && (!*key || strcmp(key, "status") == 0))
		return "to: /zz";
	if (noun == CONF_NEW_PATH && !*key)
		return "replace_full: /zz";
	if (noun == CONF_LIMITS && strcmp(key, "target") == 0)
		return "head: 1MiB";
	if (noun == CONF_LISTEN && strcmp(key, "proxy_protocol") == 0)
		return "trusted_proxies: 10.0.0.0/8";
	if (noun == CONF_LISTEN && strcmp(key, "x_forwarded_client_cert") == 0)
		return "trusted_proxies: 10.0.0.0/8, tls: {certificates: {cert: zz, key: zz}, client_certificates: {ca: zz}}";
	if (noun == CONF_SERVICE && strcmp(key, "tls") == 0)
		return "endpoints: [], host: zz.test";
	if (noun == CONF_SERVICE_TLS)
		return strcmp(key, "crl") == 0 ? "ca: zz" : strcmp(key, "key") == 0 ? "cert: zz" : strcmp(key, "cert") == 0 ? "key: zz" : "";
	if (noun == CONF_BALANCE && (!*key || strcmp(key, "bound") == 0))
		return "hash: address";
	if (noun == CONF_SERVICE)
		return strcmp(key, "endpoints") == 0 ? "" : "endpoints: []";
	if (noun == CONF_HSTS && strcmp(key, "preload") == 0)
		return "include_subdomains: on";
	for (unsigned i = 0; i < sizeof actions / sizeof actions[0]; i++)
		if (noun != CONF_ROUTE || strcmp(actions[i], key) == 0)
			return "";
	return "service: zz";
}

/* Printed behind what `out`, of TEXT_SIZE, holds. */
static void add(char *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(char *out, const char *format, ...)
{
	size_t used = strlen(out);
	va_list args;

	va_start(args, format);
	assert_true((size_t)vsnprintf(out + used, TEXT_SIZE - used, format, args) < TEXT_SIZE - used);
	va_end(args);
}

/* ---- documents --------------------------------------------------------------- */

static bool is_number(const struct conf_key *k)
{
	return k->type == CONF_T_DURATION || k->type == CONF_T_SIZE || k->type == CONF_T_COUNT ||
		(k->type == CONF_T_STATUS && !k->words);
}

static void number_text(const struct conf_key *k, uint64_t v, char *out)
{
	*out = '\0';
	add(out, "%" PRIu64 "%s", v, k->type == CONF_T_DURATION ? "ms" : k->type == CONF_T_SIZE ? "B" : "");
}

static void required_text(enum conf_noun noun, const char *but, char *out);

/* A good value of `k` that is not its default. */
static void sample_text(const struct conf_key *k, char *out)
{
	size_t n = k->words ? strcspn(k->words, "|") : 0;

	*out = '\0';
	if (is_number(k)) {
		number_text(k, k->type == CONF_T_STATUS ? k->max : k->min, out);
	} else if (k->type == CONF_T_BOOL) {
		add(out, "%s", k->fallback && strcmp(k->fallback, "on") == 0 ? "off" : "on");
	} else if (k->type == CONF_T_WORD || k->type == CONF_T_TLS_VERSION || k->type == CONF_T_STATUS) {
		bool first = !k->fallback || strlen(k->fallback) != n || strncmp(k->words, k->fallback, n) != 0;
		const char *word = first && n ? k->words : k->words + n + 1;

		add(out, "%.*s", (int)strcspn(word, "|"), word);
	} else if (k->type == CONF_T_MAP) {
		char inner[TEXT_SIZE];

		required_text(k->sub, "", inner);
		add(out, "{%s}", inner);
	} else {
		if (!samples[k->type])
			fail_msg("`%s` is of a type without a sample in tests/unit/test_keys.c", k->name);
		add(out, "%s", samples[k->type]);
	}
}

/* The members that a map of `noun` needs, but not the one called `but`. */
static void required_text(enum conf_noun noun, const char *but, char *out)
{
	size_t count;
	const struct conf_key *keys = conf_keys(&count);
	char value[TEXT_SIZE];

	*out = '\0';
	add(out, "%s", company(noun, but));
	for (size_t i = 0; i < count; i++) {
		if (keys[i].noun != noun || !keys[i].required || strcmp(keys[i].name, but) == 0)
			continue;
		sample_text(&keys[i], value);
		add(out, "%s%s: %s", *out ? ", " : "", keys[i].name, value);
	}
}

/* The key that holds maps of `noun`; for one whose maps no other key holds, a test would have to be written. */
static const struct conf_key *holder(enum conf_noun noun)
{
	size_t count;
	const struct conf_key *keys = conf_keys(&count);

	for (size_t i = 0; i < count; i++)
		if (keys[i].sub == noun && !(noun == CONF_REDIRECT && keys[i].noun == CONF_LISTEN))	/* which has less of it than a route */
			return &keys[i];
	fail_msg("no key holds %s", conf_noun_name(noun));
	return NULL;
}

/* A whole file in which `key` of `noun` has the value `@@`, or is not there. */
static void frame(enum conf_noun noun, const char *key, bool there, char *out)
{
	char inner[TEXT_SIZE] = "", more[TEXT_SIZE];

	if (there)
		add(inner, "%s: @@", key);
	for (;; noun = holder(noun)->noun) {
		const struct conf_key *k = noun == CONF_TOP ? NULL : holder(noun);

		required_text(noun, key, more);
		if (*more)
			add(inner, "%s%s", *inner ? ", " : "", more);
		*out = '\0';
		if (!k)
			break;
		if (!holds[k->type][0])
			fail_msg("`%s`: tests/unit/test_keys.c does not know how it holds a map", k->name);
		key = k->name;
		add(out, "%s: %s%s%s", key, holds[k->type][0], inner, holds[k->type][1]);
		memcpy(inner, out, TEXT_SIZE);
	}
	add(out, "{%s}\n", inner);
}

/* The same with a value; where that begins. */
static unsigned document(enum conf_noun noun, const char *key, const char *value, char *out)
{
	char text[TEXT_SIZE];
	char *at;

	frame(noun, key, true, text);
	at = strstr(text, "@@");
	assert_non_null(at);
	*out = '\0';
	add(out, "%.*s%s%s", (int)(at - text), text, value, at + 2);
	return (unsigned)(at - text) + 1;
}

static struct conf *parse(const char *text)
{
	struct conf_errors e;
	struct conf *c;

	conf_errors_init(&e);
	c = conf_parse("t.yaml", str_of(text), NULL, &e);
	if (!c) {
		print_error("%s", text);
		conf_errors_print(&e, stderr);
	}
	conf_errors_fini(&e);
	assert_non_null(c);
	return c;
}

/* Whether the file is refused, at first in its first line from column `from` on, or there exactly. */
static bool refused(const char *text, unsigned from, bool exactly)
{
	struct conf_errors e;
	struct conf *c;
	bool good;

	conf_errors_init(&e);
	c = conf_parse("t.yaml", str_of(text), NULL, &e);
	good = !c && e.count >= 1 && e.items[0].pos.line == 1 &&
		(exactly ? e.items[0].pos.column == from : e.items[0].pos.column >= from);
	if (!good) {
		print_error("not refused in column %u: %s", from, text);
		conf_errors_print(&e, stderr);
	}
	conf_free(c);
	conf_errors_fini(&e);
	return good;
}

/* ---- trees ------------------------------------------------------------------- */

static bool strs_same(const struct conf_str_list *a, const struct conf_str_list *b)
{
	for (size_t i = 0; a->count == b->count && i < a->count; i++)
		if (!str_eq(a->items[i], b->items[i]))
			return false;
	return a->count == b->count;
}

static bool cidrs_same(const struct conf_cidr_list *a, const struct conf_cidr_list *b)
{
	for (size_t i = 0; a->count == b->count && i < a->count; i++)
		if (a->items[i].kind != b->items[i].kind || a->items[i].bits != b->items[i].bits ||
		    memcmp(a->items[i].ip, b->items[i].ip, 16) != 0)
			return false;
	return a->count == b->count;
}

static bool hosts_same(const struct conf_service *a, const struct conf_service *b)
{
	return a->host_kind == b->host_kind && str_eq(a->host, b->host);
}

static bool sinks_same(const struct conf_sink *a, const struct conf_sink *b)
{
	return a->kind == b->kind && str_eq(a->path, b->path);
}

static bool paths_same(const struct conf_match *a, const struct conf_match *b)
{
	return a->path_kind == b->path_kind && str_eq(a->path, b->path);
}

static bool rates_same(const struct conf_rate_limit_list *a, const struct conf_rate_limit_list *b)
{
	return a->count == b->count;
}

static bool rate_bys_same(const struct conf_rate_limit *a, const struct conf_rate_limit *b)
{
	return a->by == b->by;
}

static bool basic_auths_same(const struct conf_basic_auth *a, const struct conf_basic_auth *b)
{
	return str_eq(a->file, b->file);
}

static bool cors_same(const struct conf_cors *a, const struct conf_cors *b)
{
	return a->on == b->on && strs_same(&a->origins, &b->origins);
}

static bool codings_same(const struct conf_compress *a, const struct conf_compress *b)
{
	return a->coding_count == b->coding_count && memcmp(a->codings, b->codings, sizeof a->codings) == 0;
}

static bool retries_same(const struct conf_retry *a, const struct conf_retry *b)
{
	return a->connect == b->connect && a->reset == b->reset && a->timeout == b->timeout && a->status_count == b->status_count &&
		memcmp(a->statuses, b->statuses, a->status_count * sizeof a->statuses[0]) == 0;
}

static bool texts_same(const struct conf_text *a, const struct conf_text *b)
{
	return str_eq(a->text, b->text);
}

static bool tickets_same(const struct conf_listen_tls *a, const struct conf_listen_tls *b)
{
	return a->tickets == b->tickets && str_eq(a->ticket_key.text, b->ticket_key.text);
}

static bool listens_same(const struct conf *a, const struct conf *b)
{
	return a->listen_count == b->listen_count && str_eq(a->listens->address.text, b->listens->address.text);
}

/* Whether `k` is the same in both; true for a type without defaults, which has no case. */
static bool value_same(const struct conf_key *k, const void *a, const void *b)
{
	switch (k->type) {
	case CONF_T_DURATION: case CONF_T_SIZE:
		return *(const uint64_t *)a == *(const uint64_t *)b;
	case CONF_T_COUNT: case CONF_T_STATUS: case CONF_T_WORD:
		return *(const uint32_t *)a == *(const uint32_t *)b;
	case CONF_T_SHARE:
		return *(const uint32_t *)a == *(const uint32_t *)b;
	case CONF_T_BOOL:
		return *(const bool *)a == *(const bool *)b;
	case CONF_T_TOKEN: case CONF_T_TEXT: case CONF_T_VALUE: case CONF_T_QUERY_PATH: case CONF_T_SIGN_IN:
	case CONF_T_HEADER: case CONF_T_FILE: case CONF_T_HOSTS_FILE:
		return str_eq(*(const struct str *)a, *(const struct str *)b);
	case CONF_T_SINK:
		return sinks_same(a, b);
	case CONF_T_HOST:
		return hosts_same(a, b);
	case CONF_T_NETWORKS:
		return cidrs_same(a, b);
	case CONF_T_COMPRESS:
		return ((const struct conf_compress *)a)->on == ((const struct conf_compress *)b)->on;
	case CONF_T_CODINGS:
		return codings_same(a, b);
	case CONF_T_RETRY_ON:
		return retries_same(a, b);
	case CONF_T_NAMESERVERS:
		return ((const struct conf_address_list *)a)->count == ((const struct conf_address_list *)b)->count;
	case CONF_T_PROTOCOLS: case CONF_T_TYPES: case CONF_T_SEARCH: case CONF_T_RETRY_METHODS:
		return strs_same(a, b);
	case CONF_T_PATH:
		return paths_same(a, b);
	case CONF_T_CIPHERS:
		return texts_same(a, b);
	case CONF_T_TLS_VERSION:
		return *(const uint32_t *)a == *(const uint32_t *)b;
	case CONF_T_CLIENT_CERTIFICATES:
		return texts_same(&((const struct conf_client_certificates *)a)->ca, &((const struct conf_client_certificates *)b)->ca);
	case CONF_T_TICKETS:
		return tickets_same(a, b);
	case CONF_T_LISTEN_TLS:
		return ((const struct conf_listen_tls *)a)->on == ((const struct conf_listen_tls *)b)->on;
	case CONF_T_SERVICE_TLS:
		return ((const struct conf_service_tls *)a)->on == ((const struct conf_service_tls *)b)->on;
	case CONF_T_HSTS:
		return ((const struct conf_hsts *)a)->on == ((const struct conf_hsts *)b)->on;
	case CONF_T_LISTENS:
		return listens_same(a, b);
	case CONF_T_RATE_LIMITS:
		return rates_same(a, b);
	case CONF_T_RATE_BY:
		return rate_bys_same(a, b);
	case CONF_T_BASIC_AUTH:
		return basic_auths_same(a, b);
	case CONF_T_CORS:
		return cors_same(a, b);
	case CONF_T_HEALTH:
		return ((const struct conf_health *)a)->kind == ((const struct conf_health *)b)->kind;
	case CONF_T_EJECT:
		return ((const struct conf_eject *)a)->on == ((const struct conf_eject *)b)->on;
	case CONF_T_BALANCE:
		return ((const struct conf_balance *)a)->kind == ((const struct conf_balance *)b)->kind;
	default:
		return true;
	}
}

/* The first struct of `noun` in the tree; NULL: it has none of its own. */
static const char *base_of(const struct conf *c, enum conf_noun noun)
{
	const struct conf_key *k = noun == CONF_TOP ? NULL : holder(noun);
	const char *base = k ? base_of(c, k->noun) : (const char *)c;

	if (!k || !base)
		return base;
	switch (k->type) {
	case CONF_T_MAP: case CONF_T_BASIC_AUTH: case CONF_T_CORS: case CONF_T_COMPRESS:
	case CONF_T_HEALTH: case CONF_T_EJECT: case CONF_T_BALANCE: case CONF_T_HASH: case CONF_T_STICKY:
		return base + k->at;
	case CONF_T_ENDPOINTS:
		return c->services->endpoints.count ? (const char *)c->services->endpoints.items : NULL;
	case CONF_T_LISTENS:
		return (const char *)c->listens;
	case CONF_T_SERVICES:
		return (const char *)c->services;
	case CONF_T_ROUTES:
		return (const char *)c->routes;
	case CONF_T_MATCHES:
		return (const char *)((const struct conf_route *)base)->matches;
	case CONF_T_RATE_LIMITS:
		return (const char *)c->routes->rate_limits.items;
	case CONF_T_DNS_NAME: case CONF_T_LISTEN_TLS: case CONF_T_SERVICE_TLS: case CONF_T_CLIENT_CERTIFICATES: case CONF_T_TICKETS: case CONF_T_HSTS:
	case CONF_T_RETRY:
		return base + k->at;
	case CONF_T_CERTIFICATES:
		return (const char *)((const struct conf_listen_tls *)base)->certificates.items;
	default:
		return NULL;
	}
}

/* Whether all that can be compared is the same in two trees. */
static bool trees_same(const struct conf *a, const struct conf *b)
{
	size_t count;
	const struct conf_key *keys = conf_keys(&count);

	for (size_t i = 0; i < count; i++) {
		const char *x = base_of(a, keys[i].noun), *y = base_of(b, keys[i].noun);

		if (x && y && !value_same(&keys[i], x + keys[i].at, y + keys[i].at))
			return false;
	}
	return true;
}

/* ---- the tests --------------------------------------------------------------- */

/* Calls `test` for each key in each map that it may stand in; it returns how much is wrong. */
static void for_every_key(size_t (*test)(enum conf_noun noun, const struct conf_key *k))
{
	size_t count, wrong = 0;
	const struct conf_key *keys = conf_keys(&count);

	for (enum conf_noun noun = CONF_TOP; noun < CONF_NOUNS; noun++)
		for (size_t i = 0; i < count; i++)
			if (conf_key_in(&keys[i], noun))
				wrong += test(noun, &keys[i]);
	assert_int_equal(wrong, 0);
}

/* A sample is taken; where there is a default, it is what the tree has when nothing is said, and the sample is not. */
static size_t default_test(enum conf_noun noun, const struct conf_key *k)
{
	char text[TEXT_SIZE], value[TEXT_SIZE];
	struct conf *silent, *given, *other;
	const char *fallback = k->fallback;
	size_t wrong = 0, count;
	const struct conf_key *keys = conf_keys(&count);

	sample_text(k, value);
	document(noun, k->name, value, text);
	other = parse(text);
	for (size_t i = 0; k->inherits && i < count; i++)	/* "limits.body" */
		if (strcmp(conf_noun_id(keys[i].noun), "defaults") != 0 &&
		    strncmp(k->inherits, conf_noun_id(keys[i].noun), strcspn(k->inherits, ".")) == 0 &&
		    strcmp(strchr(k->inherits, '.') + 1, keys[i].name) == 0)
			fallback = keys[i].fallback;
	assert_true(!k->inherits || fallback);
	if (fallback) {
		frame(noun, k->name, false, text);
		silent = parse(text);
		snprintf(value, sizeof value, "'%s'", fallback);
		document(noun, k->name, value, text);
		given = parse(text);
		wrong += !trees_same(silent, given);
		wrong += trees_same(silent, other);
		if (wrong)
			print_error("`%s` in %s: the default is not %s, or its type is not compared here\n", k->name,
				    conf_noun_name(noun), fallback);
		conf_free(silent);
		conf_free(given);
	}
	conf_free(other);
	return wrong;
}

static void defaults_are_what_they_say(void **state)
{
	(void)state;
	for_every_key(default_test);
}

static size_t bounds_test(enum conf_noun noun, const struct conf_key *k)
{
	char text[TEXT_SIZE], value[TEXT_SIZE];
	bool zero_is_off = k->type == CONF_T_COUNT && k->words && !k->word_value && strcmp(k->words, "off") == 0;
	size_t wrong = 0;

	if (!is_number(k))
		return 0;
	assert_true(k->min <= k->max && k->max < UINT64_MAX);
	for (int i = 0; i < 2; i++) {
		number_text(k, i ? k->max : k->min, value);
		document(noun, k->name, value, text);
		conf_free(parse(text));
	}
	if (k->min && !(k->min == 1 && zero_is_off)) {
		number_text(k, k->min - 1, value);
		wrong += !refused(text, document(noun, k->name, value, text), true);
	}
	number_text(k, k->max + 1, value);
	wrong += !refused(text, document(noun, k->name, value, text), true);
	wrong += !refused(text, document(noun, k->name, "99999999999999999999999", text), true);
	wrong += !refused(text, document(noun, k->name, "-1", text), true);
	return wrong;
}

static void bounds_are_kept(void **state)
{
	(void)state;
	for_every_key(bounds_test);
}

static size_t kind_test(enum conf_noun noun, const struct conf_key *k)
{
	char text[TEXT_SIZE];
	size_t wrong = 0;

	wrong += !refused(text, document(noun, k->name, "[[]]", text), false);
	wrong += !refused(text, document(noun, k->name, "{zz: {zz: {zz: zz}}}", text), false);
	if (!takes_any_text(k->type))
		wrong += !refused(text, document(noun, k->name, "zz zz", text), true);
	return wrong;
}

static void other_kinds_of_values_are_refused(void **state)
{
	(void)state;
	for_every_key(kind_test);
}

/* Every word of a key is taken, and none that is nearly one. */
static size_t words_test(enum conf_noun noun, const struct conf_key *k)
{
	char text[TEXT_SIZE], value[TEXT_SIZE];
	size_t wrong = 0;

	for (const char *w = k->words ? k->words : ""; *w;) {
		size_t n = strcspn(w, "|");

		snprintf(value, sizeof value, "%.*s", (int)n, w);
		if (n) {
			document(noun, k->name, value, text);
			conf_free(parse(text));
			add(value, "x");
			wrong += k->type != CONF_T_TOKEN && k->type != CONF_T_SEARCH && k->type != CONF_T_HOSTS_FILE &&
				!refused(text, document(noun, k->name, value, text), true);
		}
		w += n + (w[n] == '|');
	}
	return wrong;
}

static void words_are_taken_as_they_are(void **state)
{
	(void)state;
	for_every_key(words_test);
}

static size_t name_test(enum conf_noun noun, const struct conf_key *k)
{
	char text[TEXT_SIZE], name[64];
	unsigned value;

	snprintf(name, sizeof name, "%szz", k->name);
	value = document(noun, name, "zz", text);
	return !refused(text, value - 2 - (unsigned)strlen(name), true);
}

static void unknown_keys_are_refused_at_their_place(void **state)
{
	(void)state;
	for_every_key(name_test);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_are_what_they_say),
		cmocka_unit_test(bounds_are_kept),
		cmocka_unit_test(other_kinds_of_values_are_refused),
		cmocka_unit_test(words_are_taken_as_they_are),
		cmocka_unit_test(unknown_keys_are_refused_at_their_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
