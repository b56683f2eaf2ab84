/* Inside the room: from nodes to the tree, by the table of keys. */
#ifndef THIMBLE_CONF_WALK_H
#define THIMBLE_CONF_WALK_H

#include "conf/conf.h"
#include "conf/errors.h"
#include "conf/keys.h"
#include "conf/names.h"
#include "conf/tree.h"

struct conf_walk {
	struct conf *conf;		/* borrowed; being filled */
	struct arena *scratch;		/* borrowed; gone with the nodes */
	struct conf_errors *errors;	/* borrowed */
	/* What an item is before its own keys are read: defaults, ours and the file's. */
	struct conf_listen listen;
	struct conf_service service;
	struct conf_route route;
	struct conf_service **by_name;	/* in scratch; sorted */
};

/* Reads the whole file.  Errors, and no_memory, are in w->errors afterwards. */
void conf_walk_file(struct conf_walk *w, const struct conf_node *root);

/* Reads the keys of `noun` in `map` into the struct at `base`; false when one was unknown. */
bool conf_walk_map(struct conf_walk *w, enum conf_noun noun, const struct conf_node *map, void *base);

/* Fills the struct at `base` with what its keys are when a file says nothing. */
void conf_walk_default(struct conf_walk *w, enum conf_noun noun, void *base);

/* Reads `n`, a map of k->sub or `off`, into the struct of `size` bytes at `base`, which begins with what its keys
 * are by default and is all zero for `off`; true for a map. */
bool conf_walk_map_or_off(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *base, size_t size);

/* A reader puts the value `n` of key `k` at `at` (the noun's struct plus k->at), or adds an error. */
typedef void conf_reader(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at);
conf_reader *conf_reader_of(enum conf_type type);	/* readers.c */

/* `n` zeroed bytes of the tree; NULL (noted): no memory. */
void *conf_walk_alloc(struct conf_walk *w, size_t n);
/* A copy in the tree; empty (noted) when there is no memory. */
struct str conf_walk_dup(struct conf_walk *w, struct str s);
/* Adds the error that `n` is no text, if it is none (or is empty); else true. */
bool conf_walk_text(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n);
/* ", did you mean `x`?", or "". */
const char *conf_walk_hint(struct conf_walk *w, const struct conf_near *near);
/* The place of `s` in "a|b|c", or -1; `near`, which may be NULL, has tried all of them. */
int conf_word_find(const char *words, struct str s, struct conf_near *near);

/* The items of a list, or the one text that stands for a list of one: `*count` of
 * them, by ->next.  NULL with 0 for none, and when `n` is neither (then reported). */
const struct conf_node *conf_walk_items(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n,
					size_t *count);

conf_reader conf_read_number, conf_read_flag, conf_read_word, conf_read_status;	/* number.c */
conf_reader conf_read_token, conf_read_text, conf_read_value, conf_read_sink;		/* value.c */
conf_reader conf_read_header_map, conf_read_header_names, conf_read_networks, conf_read_protocols;
conf_reader conf_read_listens, conf_read_address_key;					/* place.c */
conf_reader conf_read_services, conf_read_endpoints, conf_read_endpoint, conf_read_host_mode, conf_read_one_service, conf_read_names;
conf_reader conf_read_path, conf_read_prefix, conf_read_exact, conf_read_path_regex;	/* match.c */
conf_reader conf_read_new_prefix, conf_read_new_path, conf_read_new_host, conf_read_methods, conf_read_pairs, conf_read_pattern, conf_read_matches;
conf_reader conf_read_balance, conf_read_hash, conf_read_hash_name, conf_read_sticky, conf_read_sticky_key;	/* balance.c */
conf_reader conf_read_health, conf_read_statuses, conf_read_eject;			/* health.c */
conf_reader conf_read_rate_limits, conf_read_rate, conf_read_rate_by, conf_read_rate_header;	/* rate.c */
conf_reader conf_read_basic_auth, conf_read_file, conf_read_header;			/* basic.c */
conf_reader conf_read_cors, conf_read_origins, conf_read_field_names;				/* cors.c */
conf_reader conf_read_retry, conf_read_retry_on, conf_read_retry_methods;			/* retry.c */
conf_reader conf_read_compress, conf_read_codings, conf_read_types;			/* compress.c */
conf_reader conf_read_tls_file, conf_read_ciphers, conf_read_tls_name, conf_read_certificates;	/* tls.c */
conf_reader conf_read_client_certificates, conf_read_tickets, conf_read_listen_tls, conf_read_service_tls, conf_read_hsts;
conf_reader conf_read_dns_name, conf_read_dns_host, conf_read_nameservers, conf_read_search, conf_read_hosts_file;	/* dns.c */
conf_reader conf_read_routes, conf_read_hosts, conf_read_target, conf_read_service_name;	/* route.c */
conf_reader conf_read_service_ref, conf_read_query_path, conf_read_sign_in, conf_read_share;	/* ask.c */

/* The service of that name, which is used from here on; NULL when there is none, told as an error at `pos`. */
struct conf_service *conf_service_find(struct conf_walk *w, struct str name, struct conf_pos pos);	/* route.c */
/* What is wrong with `s` as the place that a client is sent to, or NULL. */
const char *conf_location_wrong(struct str s);

/* A copy of a host's name in lower case, without a dot at its end. */
struct str conf_host_dup(struct conf_walk *w, struct str s);		/* route.c */
/* The service of that name, which is used from here on; NULL when there is none, told as an error at `pos`. */
struct conf_service *conf_service_find(struct conf_walk *w, struct str name, struct conf_pos pos);

/* The order of lists of pairs in which equal ones meet; `fold`: of headers. */
int conf_pairs_compare(const struct conf_pair_list *a, const struct conf_pair_list *b, bool fold);	/* match.c */
/* The same for texts. */
int conf_str_compare(struct str a, struct str b);

/* A copy of a name that name servers are asked for, in lower case; a dot at its end stays. */
struct str conf_name_dup(struct conf_walk *w, struct str s);		/* place.c */
/* What a service, whose node is `n` and sound, says of names as a whole. */
void conf_service_dns_check(struct conf_walk *w, const struct conf_node *n, struct conf_service *s);	/* dns.c */
/* The name, without a dot at its end, that all of a service's endpoints go by; empty: there is no such. */
struct str conf_service_dns_name(const struct conf_service *s);

/* What a service, whose node is `n` and sound, says of TLS as a whole: the schemes of its endpoints, and the name that is expected. */
void conf_service_tls_check(struct conf_walk *w, const struct conf_node *n, struct conf_service *s);	/* tls.c */

/* A redirect (`n` may be NULL) says where to as a whole, or what is other than in the request; `sound`: its keys were all right. */
void conf_redirect_check(struct conf_walk *w, const struct conf_node *n, const struct conf_redirect *r, bool sound);	/* route.c */
/* What one item cannot see: clashes between listeners, between routes. */
void conf_check_listens(struct conf_walk *w, const bool *sound);	/* rules.c */
void conf_check_routes(struct conf_walk *w, const bool *sound);
void conf_check_limits(struct conf_walk *w, const struct conf_node *root);

#endif
