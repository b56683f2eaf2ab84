/*
 * readers: which reader reads which type.
 *
 * Purpose   the one list of them; a new type of value is a line here.
 * Owns      the list.
 * Called by walk.c.
 */
#include "conf/walk.h"

static void read_map(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	if (k->shared)
		conf_walk_default(w, k->sub, at);	/* what `defaults` said goes whole */
	conf_walk_map(w, k->sub, n, at);
}

static void read_defaults(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	(void)k;
	(void)at;
	conf_walk_map(w, CONF_DEFAULTS, n, NULL);
}

conf_reader *conf_reader_of(enum conf_type type)
{
	static conf_reader *const readers[CONF_TYPES] = {
		[CONF_T_MAP] = read_map,
		[CONF_T_DURATION] = conf_read_number,
		[CONF_T_SIZE] = conf_read_number,
		[CONF_T_COUNT] = conf_read_number,
		[CONF_T_BOOL] = conf_read_flag,
		[CONF_T_WORD] = conf_read_word,
		[CONF_T_STATUS] = conf_read_status,
		[CONF_T_TOKEN] = conf_read_token,
		[CONF_T_TEXT] = conf_read_text,
		[CONF_T_VALUE] = conf_read_value,
		[CONF_T_SINK] = conf_read_sink,
		[CONF_T_ADDRESS] = conf_read_address_key,
		[CONF_T_ENDPOINTS] = conf_read_endpoints,
		[CONF_T_ENDPOINT] = conf_read_endpoint,
		[CONF_T_BALANCE] = conf_read_balance,
		[CONF_T_HASH] = conf_read_hash,
		[CONF_T_HASH_NAME] = conf_read_hash_name,
		[CONF_T_STICKY] = conf_read_sticky,
		[CONF_T_STICKY_KEY] = conf_read_sticky_key,
		[CONF_T_HEALTH] = conf_read_health,
		[CONF_T_STATUSES] = conf_read_statuses,
		[CONF_T_EJECT] = conf_read_eject,
		[CONF_T_HOST] = conf_read_host_mode,
		[CONF_T_NETWORKS] = conf_read_networks,
		[CONF_T_PROTOCOLS] = conf_read_protocols,
		[CONF_T_HEADER_MAP] = conf_read_header_map,
		[CONF_T_HEADER_NAMES] = conf_read_header_names,
		[CONF_T_HOSTS] = conf_read_hosts,
		[CONF_T_PATH] = conf_read_path,
		[CONF_T_PREFIX] = conf_read_prefix,
		[CONF_T_EXACT] = conf_read_exact,
		[CONF_T_PATH_REGEX] = conf_read_path_regex,
		[CONF_T_METHODS] = conf_read_methods,
		[CONF_T_HEADER_PAIRS] = conf_read_pairs,
		[CONF_T_QUERY_PAIRS] = conf_read_pairs,
		[CONF_T_PATTERN] = conf_read_pattern,
		[CONF_T_MATCHES] = conf_read_matches,
		[CONF_T_COMPRESS] = conf_read_compress,
		[CONF_T_CODINGS] = conf_read_codings,
		[CONF_T_TYPES] = conf_read_types,
		[CONF_T_NEW_PREFIX] = conf_read_new_prefix,
		[CONF_T_NEW_PATH] = conf_read_new_path,
		[CONF_T_NEW_HOST] = conf_read_new_host,
		[CONF_T_TARGET] = conf_read_target,
		[CONF_T_SERVICE] = conf_read_service_name,
		[CONF_T_SERVICE_NAME] = conf_read_service_ref,
		[CONF_T_QUERY_PATH] = conf_read_query_path,
		[CONF_T_SIGN_IN] = conf_read_sign_in,
		[CONF_T_SHARE] = conf_read_share,
		[CONF_T_RATE_LIMITS] = conf_read_rate_limits,
		[CONF_T_RATE] = conf_read_rate,
		[CONF_T_RATE_BY] = conf_read_rate_by,
		[CONF_T_RATE_HEADER] = conf_read_rate_header,
		[CONF_T_ONE_SERVICE] = conf_read_one_service,
		[CONF_T_BASIC_AUTH] = conf_read_basic_auth,
		[CONF_T_FILE] = conf_read_file,
		[CONF_T_HEADER] = conf_read_header,
		[CONF_T_CORS] = conf_read_cors,
		[CONF_T_ORIGINS] = conf_read_origins,
		[CONF_T_FIELD_NAMES] = conf_read_field_names,
		[CONF_T_NAMES] = conf_read_names,
		[CONF_T_TLS_FILE] = conf_read_tls_file,
		[CONF_T_CIPHERS] = conf_read_ciphers,
		[CONF_T_TLS_NAME] = conf_read_tls_name,
		[CONF_T_TLS_VERSION] = conf_read_word,
		[CONF_T_CERTIFICATES] = conf_read_certificates,
		[CONF_T_CLIENT_CERTIFICATES] = conf_read_client_certificates,
		[CONF_T_TICKETS] = conf_read_tickets,
		[CONF_T_LISTEN_TLS] = conf_read_listen_tls,
		[CONF_T_SERVICE_TLS] = conf_read_service_tls,
		[CONF_T_HSTS] = conf_read_hsts,
		[CONF_T_DNS_NAME] = conf_read_dns_name,
		[CONF_T_DNS_HOST] = conf_read_dns_host,
		[CONF_T_NAMESERVERS] = conf_read_nameservers,
		[CONF_T_SEARCH] = conf_read_search,
		[CONF_T_HOSTS_FILE] = conf_read_hosts_file,
		[CONF_T_RETRY] = conf_read_retry,
		[CONF_T_RETRY_ON] = conf_read_retry_on,
		[CONF_T_RETRY_METHODS] = conf_read_retry_methods,
		[CONF_T_LISTENS] = conf_read_listens,
		[CONF_T_SERVICES] = conf_read_services,
		[CONF_T_ROUTES] = conf_read_routes,
		[CONF_T_DEFAULTS] = read_defaults,
	};

	return readers[type];
}
