/*
 * page: the table of keys as the tables of the reference page.
 *
 * Purpose   docs/configuration.md says of each key what the program knows of it, and
 *           nothing else; its prose and examples stand around these tables.
 * Owns      the words for what the values of each type look like.
 * Called by proxy (keys), tests; ./dev docs puts what it prints into the page.
 * Never     names a key.
 */
#include "conf/conf.h"
#include "conf/keys.h"
#include "conf/scalar.h"

#include <ctype.h>
#include <inttypes.h>

/* What one writes for a value, behind the words of its key. */
static const char *const kinds[CONF_TYPES] = {
	[CONF_T_BOOL] = "on or off",
	[CONF_T_WORD] = "",
	[CONF_T_TOKEN] = "a name, `off`",
	[CONF_T_TEXT] = "a text",
	[CONF_T_VALUE] = "a text",
	[CONF_T_SINK] = "or a path with a `/` in it",
	[CONF_T_ADDRESS] = "address",
	[CONF_T_ENDPOINTS] = "an endpoint, a map: [endpoints](#endpoints), or a list of them",
	[CONF_T_ENDPOINT] = "an endpoint",
	[CONF_T_BALANCE] = "or a map: [balance](#balance)",
	[CONF_T_HASH] = "or a map: [hash](#hash)",
	[CONF_T_HASH_NAME] = "a name",
	[CONF_T_STICKY] = "a map: [sticky](#sticky)",
	[CONF_T_STICKY_KEY] = "a text of 16 to 256 bytes",
	[CONF_T_HEALTH] = "or a map: [health](#health)",
	[CONF_T_STATUSES] = "`200`, `2xx`, `200-299`, or a list of them",
	[CONF_T_EJECT] = "on, off, or a map: [eject](#eject)",
	[CONF_T_HOST] = "or a host",
	[CONF_T_NETWORKS] = "or list of networks",
	[CONF_T_PROTOCOLS] = "list of protocols, `off`",
	[CONF_T_HEADER_MAP] = "map: name to value",
	[CONF_T_HEADER_NAMES] = "a name, or a list",
	[CONF_T_HOSTS] = "a host, or a list",
	[CONF_T_PATH] = "a prefix, or a map: [path](#path)",
	[CONF_T_PREFIX] = "a path",
	[CONF_T_EXACT] = "a path",
	[CONF_T_PATH_REGEX] = "a regular expression",
	[CONF_T_METHODS] = "a method, or a list",
	[CONF_T_HEADER_PAIRS] = "map: name to [value](#values-to-match)",
	[CONF_T_QUERY_PAIRS] = "map: name to [value](#values-to-match)",
	[CONF_T_PATTERN] = "a regular expression",
	[CONF_T_MATCHES] = "list of [matches](#matches)",
	[CONF_T_COMPRESS] = "on, off, or a map: [compress](#compress)",
	[CONF_T_CODINGS] = "or a list of them, or `all`",
	[CONF_T_TYPES] = "a media type, or a list, or `common`",
	[CONF_T_NEW_PREFIX] = "a path",
	[CONF_T_NEW_PATH] = "a path",
	[CONF_T_NEW_HOST] = "a host, with or without a port",
	[CONF_T_TARGET] = "a URL, or a path",
	[CONF_T_SERVICE] = "name of a service, or map: name to weight",
	[CONF_T_SERVICE_NAME] = "name of a service",
	[CONF_T_QUERY_PATH] = "a path, with a query or without",
	[CONF_T_SIGN_IN] = "a URL, or a path",
	[CONF_T_SHARE] = "0% to 100%, 0 to 1",
	[CONF_T_RATE_LIMITS] = "a rate, a map: [rate_limit](#rate_limit), or a list of them",
	[CONF_T_RATE] = "`10/s`, `100/m`, `1000/h`",
	[CONF_T_RATE_BY] = "or a map: [by header](#by-header)",
	[CONF_T_RATE_HEADER] = "a name",
	[CONF_T_ONE_SERVICE] = "name of a service",
	[CONF_T_NAMES] = "map: host to name of a service",
	[CONF_T_BASIC_AUTH] = "or a map: [basic_auth](#basic_auth)",
	[CONF_T_FILE] = "path of a file",
	[CONF_T_HEADER] = "a name, `off`",
	[CONF_T_CORS] = "or a map: [cors](#cors)",
	[CONF_T_ORIGINS] = "an origin, or a list",
	[CONF_T_FIELD_NAMES] = "a name, or a list",
	[CONF_T_TLS_FILE] = "path of a file",
	[CONF_T_CIPHERS] = "or a name, or a list of names",
	[CONF_T_TLS_NAME] = "a host name, or an address",
	[CONF_T_TLS_VERSION] = "",
	[CONF_T_CERTIFICATES] = "a map, or a list of maps: [certificates](#certificates)",
	[CONF_T_CLIENT_CERTIFICATES] = "or a map: [client_certificates](#client_certificates)",
	[CONF_T_TICKETS] = "or a map: [tickets](#tickets)",
	[CONF_T_LISTEN_TLS] = "or a map: [tls of a listener](#tls-of-a-listener)",
	[CONF_T_SERVICE_TLS] = "or a map: [tls of a service](#tls-of-a-service)",
	[CONF_T_HSTS] = "or a map: [hsts](#hsts)",
	[CONF_T_DNS_NAME] = "a name with its port, or a map: [dns of a service](#dns-of-a-service)",
	[CONF_T_DNS_HOST] = "a name",
	[CONF_T_NAMESERVERS] = "or an address, or a list; port 53 when it has none",
	[CONF_T_SEARCH] = "or a domain, or a list",
	[CONF_T_HOSTS_FILE] = "or the path of a file",
	[CONF_T_RETRY] = "or a map: [retry](#retry)",
	[CONF_T_RETRY_ON] = "or a list",
	[CONF_T_RETRY_METHODS] = "or a list of methods",
	[CONF_T_LISTENS] = "an address, a list of addresses, or a list of [listeners](#listen)",
	[CONF_T_SERVICES] = "map: name to [service](#services)",
	[CONF_T_ROUTES] = "list of [routes](#routes)",
	[CONF_T_DEFAULTS] = "map: [defaults](#defaults)",
};

/* In a cell, where a bar would end it. */
static void cell(FILE *to, const char *s)
{
	for (; *s; s++)
		fprintf(to, "%s%c", *s == '|' ? "\\" : "", *s);
}

/* The heading of a noun, and a link to it. */
static void link_to(FILE *to, enum conf_noun noun)
{
	const char *section = conf_noun_section(noun);

	fprintf(to, "[%s](#", section);
	for (const char *s = section; *s; s++)
		fputc(*s == ' ' ? '-' : tolower((unsigned char)*s), to);
	fputc(')', to);
}

/* The bounds, as one would write them. */
static void range(FILE *to, const struct conf_key *k)
{
	char min[CONF_NUMBER_TEXT], max[CONF_NUMBER_TEXT];

	if (k->type == CONF_T_DURATION || k->type == CONF_T_SIZE) {
		(k->type == CONF_T_SIZE ? conf_write_size : conf_write_duration)(k->min, min);
		(k->type == CONF_T_SIZE ? conf_write_size : conf_write_duration)(k->max, max);
		fprintf(to, "%s, %s to %s", k->type == CONF_T_SIZE ? "size" : "duration", min, max);
	} else {
		fprintf(to, "%" PRIu64 " to %" PRIu64, k->min, k->max);
	}
}

static bool is_number(const struct conf_key *k)
{
	return k->type == CONF_T_DURATION || k->type == CONF_T_SIZE || k->type == CONF_T_COUNT ||
		(k->type == CONF_T_STATUS && !k->words);
}

/* The words of `k`, the first of them behind `before`. */
static void words(FILE *to, const struct conf_key *k, const char *before)
{
	for (const char *w = k->words ? k->words : ""; *w;) {
		size_t n = strcspn(w, "|");

		if (n) {
			fprintf(to, "%s`%.*s`", before, (int)n, w);
			before = ", ";
		}
		w += n + (w[n] == '|');
	}
}

static void value(FILE *to, const struct conf_key *k)
{
	char max[CONF_NUMBER_TEXT];

	if (k->type == CONF_T_MAP) {
		fputs("map: ", to);
		link_to(to, k->sub);
	} else if (is_number(k)) {
		range(to, k);
		words(to, k, ", ");
	} else {
		words(to, k, "");
		fprintf(to, "%s%s", k->words && kinds[k->type] && *kinds[k->type] ? ", " : "",
			kinds[k->type] ? kinds[k->type] : "");
	}
	if (k->type == CONF_T_TEXT) {
		conf_write_size(k->max, max);
		fprintf(to, " of at most %s", max);
	}
}

static void row(FILE *to, const struct conf_key *k)
{
	const char *given = k->inherits ? k->inherits : k->fallback;

	fprintf(to, "| `%s` | ", k->name);
	value(to, k);
	if (given)
		fprintf(to, " | `%s` | ", given);
	else
		fputs(" | | ", to);
	cell(to, k->doc);
	fprintf(to, "%s |\n", k->required ? "; needed" : "");
}

/* What may stand in `defaults` is said where it belongs; here is only where that is. */
static void shared_row(FILE *to, const struct conf_key *k)
{
	fprintf(to, "| `%s` | ", k->name);
	link_to(to, k->noun);
	fputs(" |\n", to);
}

void conf_page_print(FILE *to)
{
	size_t count;
	const struct conf_key *keys = conf_keys(&count);

	for (enum conf_noun noun = CONF_TOP; noun < CONF_NOUNS; noun++) {
		fprintf(to, "%s<!-- keys: %s -->\n%s", noun ? "\n" : "", conf_noun_id(noun),
			noun == CONF_DEFAULTS ? "| key | of |\n|---|---|\n"
			: "| key | value | default | meaning |\n|---|---|---|---|\n");
		for (size_t i = 0; i < count; i++)
			if (conf_key_in(&keys[i], noun))
				(noun == CONF_DEFAULTS ? shared_row : row)(to, &keys[i]);
		fputs("<!-- /keys -->\n", to);
	}
}
