/*
 * schema: the language as a JSON Schema, for editors.
 *
 * Purpose   what a file may hold, in draft 2020-12, made from the table of keys.
 * Owns      the shapes: what the values of each type look like.
 * Called by proxy (schema), tests.
 * Never     names a key, except where a reader does too (`unix` without quotes).
 * Invariant what the check takes, the schema takes, read as YAML 1.2 (where `off` is
 *           a text). The reverse does not hold: what JSON Schema cannot say, such as
 *           the bounds of `10s` or that a service exists, is for the check alone.
 */
#include "conf/conf.h"
#include "conf/keys.h"
#include "conf/scalar.h"

#include <inttypes.h>
#include <string.h>

/* JSON as it is, without a backslash before each quote. */
#define JSON(...) #__VA_ARGS__
#define YES_OR_NO JSON({"type": "boolean"}, {"enum": ["yes", "no", "true", "false"]}) ", "
#define NO JSON({"enum": [false, "no", "false"]}) ", "
#define VARIABLE JSON({"$ref": "#/$defs/variable"})

/* What values are made of. A text may be what YAML takes for a number: `X-Level: 1`. */
static const struct { const char *name, *is; } values[] = {
	{"variable", JSON("type": "string", "pattern": "(^|[^$])([$][$])*[$][{]")},
	{"text", JSON("type": ["string", "number", "boolean"], "minLength": 1)},
	{"text_or_nothing", JSON("type": ["string", "number", "boolean", "null"])},
	{"token", JSON("anyOf": [{"type": ["number", "boolean"]}, {"$ref": "#/$defs/variable"},
		{"type": "string", "pattern": "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"}])},
	{"protocol", JSON("$ref": "#/$defs/token", "not": {"pattern": "^[hH]2[cC]$"})},
	{"method", JSON("anyOf": [{"type": ["number", "boolean"]}, {"$ref": "#/$defs/variable"},
		{"type": "string", "pattern": "^[!#$%&'*+.^_`|~0-9A-Z-]{1,32}$"}])},
	{"address", JSON("anyOf": [{"type": "string", "pattern": "^unix:.|:[0-9]+$"}, {"$ref": "#/$defs/variable"}])},
	{"endpoint", JSON("anyOf": [{"type": "string", "pattern": "^unix:.|^[hH][tT][tT][pP][sS]?://|:[0-9]+$"},
		{"$ref": "#/$defs/variable"}])},
	{"endpoints", JSON("anyOf": [{"$ref": "#/$defs/endpoint"}, {"type": "array", "items": {"anyOf": [
		{"$ref": "#/$defs/endpoint"}, {"$ref": "#/$defs/endpoint_map"}]}, "maxItems": 10000}])},
	{"network", JSON("anyOf": [{"type": "string", "pattern": "^unix:$|^[0-9A-Fa-f.:]+(/[0-9]+)?$"},
		{"$ref": "#/$defs/variable"}])},
	{"algorithms", JSON("anyOf": [{"type": "string", "pattern": "^[0-9A-Za-z_+!@=.:-]+$"}, {"$ref": "#/$defs/variable"}])},
	{"rate", JSON("anyOf": [{"type": "string", "pattern": "^[0-9]+/[smh]$"}, {"$ref": "#/$defs/variable"}])},
	{"origin", JSON("anyOf": [{"type": "string", "pattern": "^[*]$|^[a-z][a-z0-9+._-]*://[^/A-Z]+$"},
		{"$ref": "#/$defs/variable"}])},
	{"prefix", JSON("anyOf": [{"type": "string", "pattern": "^/([^?#]*[^?#*])?$"}, {"$ref": "#/$defs/variable"}])},
	{"exact", JSON("anyOf": [{"type": "string", "pattern": "^/[^?#]*$"}, {"$ref": "#/$defs/variable"}])},
	{"switch", JSON("anyOf": [{"type": "boolean"}, {"enum": ["on", "off", "yes", "no"]},
		{"type": "string", "pattern": "^(true|false)$"}, {"$ref": "#/$defs/variable"}])},
	{"retry_event", JSON("anyOf": [{"enum": ["connect", "reset", "timeout"]}, {"type": "integer", "minimum": 400, "maximum": 599},
		{"type": "string", "pattern": "^[45][0-9][0-9]$"}, {"$ref": "#/$defs/variable"}])},
	{"coding", JSON("anyOf": [{"enum": ["zstd", "br", "gzip"]}, {"$ref": "#/$defs/variable"}])},
	{"statuses", JSON("anyOf": [{"type": "integer", "minimum": 200, "maximum": 599},
		{"type": "string", "pattern": "^[2-5]([0-9][0-9](-[2-5][0-9][0-9])?|xx)$"}, {"$ref": "#/$defs/variable"}])},
	{"media", JSON("anyOf": [{"enum": ["common"]}, {"type": "string", "pattern": "^[^/*]+/[^/*]*[*]?[^/*]*$"},
		{"$ref": "#/$defs/variable"}])},
	{"name_server", JSON("anyOf": [{"type": "string", "pattern": "^[][0-9A-Fa-f.:]+$"}, {"$ref": "#/$defs/variable"}])},
	{"domain", JSON("anyOf": [{"type": "string", "pattern": "^[0-9A-Za-z_.-]+$"}, {"$ref": "#/$defs/variable"}])},
	{"pair", JSON("anyOf": [{"$ref": "#/$defs/text_or_nothing"}, {"$ref": "#/$defs/pattern"}])},
};

/* The types whose shape is the same for all keys. */
static const char *const shapes[CONF_TYPES] = {
	[CONF_T_BOOL] = JSON("$ref": "#/$defs/switch"),
	[CONF_T_TOKEN] = JSON("$ref": "#/$defs/token"),
	[CONF_T_TEXT] = JSON("$ref": "#/$defs/text_or_nothing"),
	[CONF_T_VALUE] = JSON("$ref": "#/$defs/text"),
	[CONF_T_ADDRESS] = JSON("$ref": "#/$defs/address"),
	[CONF_T_ENDPOINTS] = JSON("anyOf": [{"$ref": "#/$defs/endpoints"}, {"$ref": "#/$defs/endpoint_map"}]),
	[CONF_T_ENDPOINT] = JSON("$ref": "#/$defs/endpoint"),
	[CONF_T_STATUSES] = JSON("anyOf": [{"$ref": "#/$defs/statuses"},
		{"type": "array", "items": {"$ref": "#/$defs/statuses"}, "minItems": 1, "maxItems": 8}]),
	[CONF_T_EJECT] = JSON("anyOf": [{"$ref": "#/$defs/switch"}, {"$ref": "#/$defs/eject"}]),
	[CONF_T_HASH_NAME] = JSON("$ref": "#/$defs/text"),
	[CONF_T_STICKY] = JSON("$ref": "#/$defs/sticky"),
	[CONF_T_STICKY_KEY] = JSON("anyOf": [{"type": ["string", "number"], "minLength": 16, "maxLength": 256}, {"$ref": "#/$defs/variable"}]),
	[CONF_T_PROTOCOLS] = JSON("anyOf": [{"enum": ["off"]}, {"$ref": "#/$defs/protocol"},
		{"type": "array", "items": {"$ref": "#/$defs/protocol"}}]),
	[CONF_T_HEADER_MAP] = JSON("type": "object", "maxProperties": 100, "propertyNames": {"$ref": "#/$defs/token"},
		"additionalProperties": {"$ref": "#/$defs/text_or_nothing"}),
	[CONF_T_HEADER_NAMES] = JSON("anyOf": [{"$ref": "#/$defs/token"},
		{"type": "array", "items": {"$ref": "#/$defs/token"}, "maxItems": 100}]),
	[CONF_T_HOSTS] = JSON("anyOf": [{"$ref": "#/$defs/text"},
		{"type": "array", "items": {"$ref": "#/$defs/text"}, "minItems": 1}]),
	[CONF_T_PATH] = JSON("anyOf": [{"$ref": "#/$defs/prefix"}, {"$ref": "#/$defs/path"}]),
	[CONF_T_PREFIX] = JSON("$ref": "#/$defs/prefix"),
	[CONF_T_EXACT] = JSON("$ref": "#/$defs/exact"),
	[CONF_T_PATH_REGEX] = JSON("$ref": "#/$defs/text"),
	[CONF_T_METHODS] = JSON("anyOf": [{"$ref": "#/$defs/method"},
		{"type": "array", "items": {"$ref": "#/$defs/method"}, "minItems": 1, "maxItems": 32}]),
	[CONF_T_HEADER_PAIRS] = JSON("type": "object", "maxProperties": 64, "propertyNames": {"$ref": "#/$defs/token"},
		"additionalProperties": {"$ref": "#/$defs/pair"}),
	[CONF_T_QUERY_PAIRS] = JSON("type": "object", "maxProperties": 64, "propertyNames": {"pattern": "^[^&#= ]+$"},
		"additionalProperties": {"$ref": "#/$defs/pair"}),
	[CONF_T_PATTERN] = JSON("$ref": "#/$defs/text"),
	[CONF_T_MATCHES] = JSON("type": "array", "items": {"$ref": "#/$defs/match"}, "minItems": 1, "maxItems": 1024),
	[CONF_T_COMPRESS] = JSON("anyOf": [{"$ref": "#/$defs/switch"}, {"$ref": "#/$defs/compress"}]),
	[CONF_T_TYPES] = JSON("anyOf": [{"$ref": "#/$defs/media"},
		{"type": "array", "items": {"$ref": "#/$defs/media"}, "minItems": 1, "maxItems": 100}]),
	[CONF_T_CODINGS] = JSON("anyOf": [{"enum": ["all"]}, {"$ref": "#/$defs/coding"},
		{"type": "array", "items": {"$ref": "#/$defs/coding"}, "minItems": 1, "maxItems": 3}]),
	[CONF_T_NEW_PREFIX] = JSON("$ref": "#/$defs/prefix"),
	[CONF_T_NEW_PATH] = JSON("$ref": "#/$defs/prefix"),
	[CONF_T_NEW_HOST] = JSON("$ref": "#/$defs/text"),
	[CONF_T_TARGET] = JSON("anyOf": [{"type": "string", "pattern": "^(https?:/)?/"}, {"$ref": "#/$defs/variable"}]),
	[CONF_T_SERVICE] = JSON("anyOf": [{"$ref": "#/$defs/text"}, {"type": "object", "minProperties": 1, "maxProperties": 1024,
		"additionalProperties": {"anyOf": [{"type": "integer", "minimum": 0, "maximum": 1000000},
		{"type": "string", "pattern": "^[0-9]+$"}, {"$ref": "#/$defs/variable"}]}}]),
	[CONF_T_SERVICE_NAME] = JSON("$ref": "#/$defs/text"),
	[CONF_T_QUERY_PATH] = JSON("anyOf": [{"type": "string", "pattern": "^/[^#]*$"}, {"$ref": "#/$defs/variable"}]),
	[CONF_T_SIGN_IN] = JSON("anyOf": [{"type": "string", "pattern": "^(https?:/)?/"}, {"$ref": "#/$defs/variable"}]),
	[CONF_T_SHARE] = JSON("anyOf": [{"type": "number", "minimum": 0, "maximum": 1},
		{"type": "string", "pattern": "^[0-9]+([.][0-9]+)?%?$"}, {"$ref": "#/$defs/variable"}]),
	[CONF_T_RATE] = JSON("$ref": "#/$defs/rate"),
	[CONF_T_RATE_HEADER] = JSON("$ref": "#/$defs/token"),
	[CONF_T_ONE_SERVICE] = JSON("$ref": "#/$defs/text"),
	[CONF_T_NAMES] = JSON("type": "object", "minProperties": 1, "maxProperties": 10000,
		"propertyNames": {"pattern": "^([*]|([*][.])?[0-9A-Za-z_.-]+)$"}, "additionalProperties": {"$ref": "#/$defs/text"}),
	[CONF_T_FILE] = JSON("$ref": "#/$defs/text"),
	[CONF_T_HEADER] = JSON("$ref": "#/$defs/token"),
	[CONF_T_ORIGINS] = JSON("anyOf": [{"$ref": "#/$defs/origin"},
		{"type": "array", "items": {"$ref": "#/$defs/origin"}, "minItems": 1, "maxItems": 256}]),
	[CONF_T_FIELD_NAMES] = JSON("anyOf": [{"$ref": "#/$defs/token"},
		{"type": "array", "items": {"$ref": "#/$defs/token"}, "minItems": 1, "maxItems": 256}]),
	[CONF_T_TLS_FILE] = JSON("$ref": "#/$defs/text"),
	[CONF_T_TLS_NAME] = JSON("anyOf": [{"type": "string", "pattern": "^[^*/]+$"}, {"$ref": "#/$defs/variable"}]),
	[CONF_T_CERTIFICATES] = JSON("anyOf": [{"$ref": "#/$defs/certificate"}, {"type": "array",
		"items": {"$ref": "#/$defs/certificate"}, "minItems": 1, "maxItems": 1000}]),
	[CONF_T_DNS_NAME] = JSON("anyOf": [{"$ref": "#/$defs/endpoint"}, {"$ref": "#/$defs/dns_name"}]),
	[CONF_T_DNS_HOST] = JSON("anyOf": [{"type": "string", "pattern": "^[0-9A-Za-z_.-]+$"}, {"$ref": "#/$defs/variable"}]),
	[CONF_T_RETRY_ON] = JSON("anyOf": [{"enum": ["default"]}, {"$ref": "#/$defs/retry_event"},
		{"type": "array", "items": {"$ref": "#/$defs/retry_event"}, "minItems": 1, "maxItems": 16}]),
	[CONF_T_RETRY_METHODS] = JSON("anyOf": [{"enum": ["idempotent"]}, {"$ref": "#/$defs/method"},
		{"type": "array", "items": {"$ref": "#/$defs/method"}, "minItems": 1, "maxItems": 8}]),
	[CONF_T_LISTENS] = JSON("anyOf": [{"$ref": "#/$defs/address"}, {"$ref": "#/$defs/listen"}, {"type": "array",
		"items": {"anyOf": [{"$ref": "#/$defs/address"}, {"$ref": "#/$defs/listen"}]},
		"minItems": 1, "maxItems": 256}]),
	[CONF_T_SERVICES] = JSON("type": "object", "propertyNames": {"pattern": "^[0-9A-Za-z][0-9A-Za-z._-]{0,62}$"},
		"additionalProperties": {"anyOf": [{"$ref": "#/$defs/endpoints"}, {"$ref": "#/$defs/service"}]}),
	[CONF_T_ROUTES] = JSON("type": "array", "items": {"$ref": "#/$defs/route"}, "minItems": 1),
	[CONF_T_DEFAULTS] = JSON("$ref": "#/$defs/defaults"),
};

static void escaped(FILE *to, const char *s)
{
	for (; *s; s++) {
		if ((unsigned char)*s < 0x20)
			fprintf(to, "\\u%04x", (unsigned)*s);
		else
			fprintf(to, "%s%c", *s == '"' || *s == '\\' ? "\\" : "", *s);
	}
}

static void quoted(FILE *to, const char *s)
{
	fputc('"', to);
	escaped(to, s);
	fputc('"', to);
}

static bool is_off(const struct conf_key *k)
{
	return k->words && !k->word_value && strcmp(k->words, "off") == 0;
}

/* The words of `k`, each in `quote`, with `between` between them. */
static void words(FILE *to, const struct conf_key *k, const char *quote, const char *between)
{
	const char *before = "";

	for (const char *w = k->words; *w;) {
		size_t n = strcspn(w, "|");

		if (n) {
			fprintf(to, "%s%s%.*s%s", before, quote, (int)n, w, quote);
			before = between;
		}
		w += n + (w[n] == '|');
	}
}

/* One of the words, or `more`, or a variable: the rest of an `anyOf` that is open. */
static void word_shape(FILE *to, const struct conf_key *k, const char *more)
{
	if (k->words) {
		fputs("{\"enum\": [", to);
		words(to, k, "\"", ", ");
		fputs(is_off(k) ? ", 0]}, " : "]}, ", to);
	}
	fprintf(to, "%s" VARIABLE "]", more);
}

static void count_shape(FILE *to, const struct conf_key *k)
{
	fprintf(to, "\"anyOf\": [{\"type\": \"integer\", \"minimum\": %" PRIu64 ", \"maximum\": %" PRIu64 "}, ", k->min,
		k->max);
	word_shape(to, k, JSON({"type": "string", "pattern": "^[0-9]+$"}) ", ");
}

/* A duration or a size: a text with a unit, in any case; 0 where it is `off`. */
static void unit_shape(FILE *to, const struct conf_key *k)
{
	const char *units = k->type == CONF_T_DURATION ? "([mM][sS]|[sSmMhHdD])" : "([kKmMgG][iI]?)?[bB]";

	fprintf(to, "\"anyOf\": [{\"type\": \"string\", \"pattern\": \"^([0-9]+%s%s)$\"}, ", units, is_off(k) ? "|0" : "");
	word_shape(to, k, "");
}

static void status_shape(FILE *to, const struct conf_key *k)
{
	if (!k->words) {
		count_shape(to, k);
		return;
	}
	fputs("\"anyOf\": [{\"enum\": [", to);
	words(to, k, "", ", ");
	fputs("]}, {\"type\": \"string\", \"pattern\": \"^(", to);
	words(to, k, "", "|");
	fputs(")$\"}, " VARIABLE "]", to);
}

static void shape(FILE *to, const struct conf_key *k)
{
	static const char *const more[CONF_TYPES] = {	/* beside the words of the key */
		[CONF_T_WORD] = "",
		[CONF_T_SINK] = JSON({"type": "string", "pattern": "/"}) ", ",
		[CONF_T_BALANCE] = JSON({"$ref": "#/$defs/balance"}) ", ",
		[CONF_T_HEALTH] = JSON({"$ref": "#/$defs/health"}) ", ",
		[CONF_T_HASH] = JSON({"$ref": "#/$defs/hash"}) ", ",
		[CONF_T_BASIC_AUTH] = JSON({"$ref": "#/$defs/basic_auth"}) ", ",
		[CONF_T_CORS] = JSON({"$ref": "#/$defs/cors"}) ", ",
		[CONF_T_HOST] = JSON({"type": ["string", "number"], "pattern": "^[^/*]+$"}) ", ",
		[CONF_T_NETWORKS] = JSON({"$ref": "#/$defs/network"}, {"type": "array", "items": {"anyOf": [
			{"$ref": "#/$defs/network"}, {"type": "object", "properties": {"unix": {"enum": [null, ""]}},
			"required": ["unix"], "additionalProperties": false}]}}) ", ",
		[CONF_T_RATE_LIMITS] = JSON({"$ref": "#/$defs/rate"}, {"$ref": "#/$defs/rate_limit"},
			{"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/rate"}, {"$ref": "#/$defs/rate_limit"}]},
			"minItems": 1, "maxItems": 8}) ", ",
		[CONF_T_CIPHERS] = JSON({"$ref": "#/$defs/algorithms"}, {"type": "array", "items": {"$ref": "#/$defs/algorithms"},
			"minItems": 1}) ", ",
		[CONF_T_TLS_VERSION] = JSON({"enum": [1.2, 1.3]}) ", ",
		[CONF_T_CLIENT_CERTIFICATES] = NO JSON({"$ref": "#/$defs/client_certificates"}) ", ",
		[CONF_T_TICKETS] = YES_OR_NO JSON({"$ref": "#/$defs/tickets"}) ", ",
		[CONF_T_LISTEN_TLS] = NO JSON({"$ref": "#/$defs/listen_tls"}) ", ",
		[CONF_T_SERVICE_TLS] = YES_OR_NO JSON({"$ref": "#/$defs/service_tls"}) ", ",
		[CONF_T_RETRY] = JSON({"$ref": "#/$defs/retry"}) ", ",
		[CONF_T_HSTS] = YES_OR_NO JSON({"$ref": "#/$defs/hsts"}) ", ",
		[CONF_T_RATE_BY] = JSON({"$ref": "#/$defs/rate_by"}) ", ",
		[CONF_T_NAMESERVERS] = JSON({"$ref": "#/$defs/name_server"}, {"type": "array", "items": {"$ref": "#/$defs/name_server"},
			"minItems": 1, "maxItems": 8}) ", ",
		[CONF_T_SEARCH] = NO JSON({"$ref": "#/$defs/domain"}, {"type": "array", "items": {"$ref": "#/$defs/domain"},
			"maxItems": 16}) ", ",
		[CONF_T_HOSTS_FILE] = NO JSON({"type": "string"}) ", ",
	};

	if (k->type == CONF_T_MAP) {
		fprintf(to, "\"$ref\": \"#/$defs/%s\"", conf_noun_id(k->sub));
	} else if (k->type == CONF_T_COUNT) {
		count_shape(to, k);
	} else if (k->type == CONF_T_DURATION || k->type == CONF_T_SIZE) {
		unit_shape(to, k);
	} else if (k->type == CONF_T_STATUS) {
		status_shape(to, k);
	} else if (more[k->type]) {
		fputs("\"anyOf\": [", to);
		word_shape(to, k, more[k->type]);
	} else {
		fputs(shapes[k->type], to);
	}
}

/* The doc line, and what the schema has no other way to say. */
static void description(FILE *to, const struct conf_key *k)
{
	char min[CONF_NUMBER_TEXT], max[CONF_NUMBER_TEXT];

	fputs("\"description\": \"", to);
	escaped(to, k->doc);
	if (k->type == CONF_T_DURATION || k->type == CONF_T_SIZE) {
		(k->type == CONF_T_SIZE ? conf_write_size : conf_write_duration)(k->min, min);
		(k->type == CONF_T_SIZE ? conf_write_size : conf_write_duration)(k->max, max);
		fprintf(to, " (%s to %s)", min, max);
	}
	if (k->inherits)
		fprintf(to, " (default: %s)", k->inherits);
	fputs("\", ", to);
}

static void property(FILE *to, const struct conf_key *k)
{
	bool number = k->type == CONF_T_COUNT || k->type == CONF_T_STATUS;

	quoted(to, k->name);
	fputs(": {", to);
	description(to, k);
	if (k->fallback) {
		fputs("\"default\": ", to);
		if (number && strspn(k->fallback, "0123456789") == strlen(k->fallback))
			fputs(k->fallback, to);
		else
			quoted(to, k->fallback);
		fputs(", ", to);
	}
	shape(to, k);
	if (k->type == CONF_T_TEXT)
		fprintf(to, ", \"maxLength\": %" PRIu64, k->max);
	fputc('}', to);
}

static bool is_required(const struct conf_key *k, enum conf_noun noun)
{
	return k->noun == noun && k->required;
}

/* Without routes there are listeners, and none of them speaks HTTP. */
static bool is_reason(const struct conf_key *k, enum conf_noun noun)
{
	return k->noun == noun && (k->type == CONF_T_ROUTES || k->type == CONF_T_LISTENS);
}

/* A service has one of them, or both. */
static bool is_place(const struct conf_key *k, enum conf_noun noun)
{
	return k->noun == noun && (k->type == CONF_T_ENDPOINTS || k->type == CONF_T_DNS_NAME);
}

static bool is_stream(const struct conf_key *k, enum conf_noun noun)
{
	return k->noun == noun && noun == CONF_LISTEN && (k->type == CONF_T_ONE_SERVICE || k->type == CONF_T_NAMES);
}

static bool is_action(const struct conf_key *k, enum conf_noun noun)
{
	return k->noun == noun && noun == CONF_ROUTE &&
		(k->type == CONF_T_SERVICE || (k->type == CONF_T_MAP && (k->sub == CONF_REDIRECT || k->sub == CONF_ANSWER)));
}

static bool is_of_match(const struct conf_key *k, enum conf_noun noun)
{
	return noun == CONF_ROUTE && k->noun == CONF_MATCH;
}

static bool is_matches(const struct conf_key *k, enum conf_noun noun)
{
	return k->noun == noun && k->type == CONF_T_MATCHES;
}

/* A word on those keys of a map that are `chosen`; nothing when none is. */
static void rule(FILE *to, enum conf_noun noun, bool (*chosen)(const struct conf_key *k, enum conf_noun noun),
		 const char *open, const char *before, const char *after, const char *close)
{
	size_t count, n = 0;
	const struct conf_key *keys = conf_keys(&count);

	for (size_t i = 0; i < count; i++) {
		if (!chosen(&keys[i], noun))
			continue;
		fprintf(to, "%s%s", n++ ? ", " : open, before);
		quoted(to, keys[i].name);
		fputs(after, to);
	}
	fputs(n ? close : "", to);
}

/* The members of the schema of one map, on lines that begin with `indent`. */
static void map_print(FILE *to, enum conf_noun noun, const char *indent)
{
	const char *before = "";
	size_t count;
	const struct conf_key *keys = conf_keys(&count);

	fprintf(to, "%s\"type\": \"object\", \"additionalProperties\": false", indent);
	rule(to, noun, is_required, ", \"required\": [", "", "", "]");
	rule(to, noun, is_reason, ", \"anyOf\": [", "{\"required\": [", "]}", "]");
	rule(to, noun, is_place, ", \"anyOf\": [", "{\"required\": [", "]}", "]");
	rule(to, noun, is_stream, ", \"not\": {\"required\": [", "", "", "]}");
	rule(to, noun, is_action, ", \"oneOf\": [", "{\"required\": [", "]}", "]");
	rule(to, noun, is_matches, ", \"dependentSchemas\": {", "", ": {\"properties\": {", "");
	rule(to, noun, is_of_match, "", "", ": false", "}}}");
	if (noun == CONF_PATH || noun == CONF_NEW_PATH || noun == CONF_HASH)
		fputs(", \"minProperties\": 1, \"maxProperties\": 1", to);
	if (noun == CONF_BALANCE)
		fputs(", \"oneOf\": [{\"required\": [\"hash\"]}, {\"required\": [\"sticky\"]}]", to);
	if (noun == CONF_REDIRECT)
		fputs(", \"minProperties\": 1", to);
	fprintf(to, ",\n%s\"properties\": {", indent);
	for (size_t i = 0; i < count; i++) {
		if (!conf_key_in(&keys[i], noun))
			continue;
		fprintf(to, "%s\n%s  ", before, indent);
		property(to, &keys[i]);
		before = ",";
	}
	fprintf(to, "\n%s}", indent);
}

void conf_schema_print(FILE *to)
{
	fputs("{\n  \"$schema\": \"https://json-schema.org/draft/2020-12/schema\",\n", to);
	fputs("  \"title\": \"configuration of thimble\",\n", to);
	map_print(to, CONF_TOP, "  ");
	fputs(",\n  \"$defs\": {\n", to);
	for (int noun = CONF_TOP + 1; noun < CONF_NOUNS; noun++) {
		fprintf(to, "    \"%s\": {\n", conf_noun_id((enum conf_noun)noun));
		map_print(to, (enum conf_noun)noun, "      ");
		fputs("\n    },\n", to);
	}
	for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
		fprintf(to, "%s    \"%s\": {%s}", i ? ",\n" : "", values[i].name, values[i].is);
	fputs("\n  }\n}\n", to);
}
