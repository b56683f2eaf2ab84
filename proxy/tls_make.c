/* tls_make: the parts of TLS out of the configuration.
 *
 * Purpose   what is named twice is there once: a file, a pair of certificate and key, a way to speak to endpoints.
 * Called by tls.c, once.
 * Never     reads a file. */
#include "proxy/tls_parts.h"

#include <string.h>

#include "lib/base/hash.h"
#include "lib/base/mem.h"

#define NUMBERS_MAX UINT16_MAX

/* Room for one more, zeroed, at the end of a list; NULL: no memory. */
#define LIST_ADD(list) ((__typeof__((list).at))list_grow((void **)&(list).at, &(list).n, &(list).room, sizeof(*(list).at)))

static void *list_grow(void **at, uint32_t *n, uint32_t *room, size_t size)
{
	uint32_t more = *room ? 2 * *room : 4;
	void *grown;

	if (*n == *room) {
		grown = mem_realloc(*at, more * size);
		if (!grown)
			return NULL;
		*at = grown;
		*room = more;
	}
	return memset((char *)*at + size * (*n)++, 0, size);
}

static enum err text_add(struct tls *t, const struct conf_text *from, struct conf_text *to)
{
	char *p = arena_alloc(&t->arena, from->text.n + 1);

	if (!p)
		return ERR_MEM;
	memcpy(p, from->text.p, from->text.n);
	p[from->text.n] = '\0';
	*to = (struct conf_text){ from->pos, { p, from->text.n } };
	return OK;
}

/* A relative path begins where the configuration is. */
static enum err path_add(struct tls *t, const struct conf_text *name, struct conf_text *to)
{
	size_t front = name->text.p[0] == '/' ? 0 : t->folder.n;
	char *p = arena_alloc(&t->arena, front + name->text.n + 1);

	if (!p)
		return ERR_MEM;
	if (front)
		memcpy(p, t->folder.p, front);
	memcpy(p + front, name->text.p, name->text.n + 1);
	*to = (struct conf_text){ name->pos, { p, front + name->text.n } };
	return OK;
}

/* The number of the file that is called so; of none: TLS_NONE. */
static enum err file_add(struct tls *t, const struct conf_text *name, struct tls_use *to)
{
	struct conf_text path;
	struct tls_file *f;
	uint32_t *first, i;

	*to = (struct tls_use){ TLS_NONE, name->pos };
	if (!name->text.n)
		return OK;
	if (path_add(t, name, &path) != OK)
		return ERR_MEM;
	first = &t->bucket[hash_str(path.text) % TLS_BUCKETS];
	for (i = *first; i != TLS_NONE; i = t->files.at[i].next)
		if (str_eq(t->files.at[i].name.text, path.text)) {
			to->file = i;
			return OK;
		}
	f = LIST_ADD(t->files);
	if (!f)
		return ERR_MEM;
	f->name = path;
	f->next = *first;
	*first = to->file = t->files.n - 1;
	return OK;
}

static enum err pair_add(struct tls *t, const struct conf_certificate *c, uint32_t *to)
{
	struct tls_use cert, key;
	struct tls_pair *p;

	if (file_add(t, &c->cert, &cert) != OK || file_add(t, &c->key, &key) != OK)
		return ERR_MEM;
	for (*to = 0; *to < t->pairs.n; ++*to)
		if (t->pairs.at[*to].cert.file == cert.file && t->pairs.at[*to].key.file == key.file)
			return OK;
	p = LIST_ADD(t->pairs);
	if (!p)
		return ERR_MEM;
	*p = (struct tls_pair){ .cert = cert, .key = key };
	return OK;
}

static enum err algorithms_of(struct tls *t, const struct conf_algorithms *c, struct tls_algorithms *to)
{
	static const uint16_t versions[] = { [CONF_TLS_12] = TLS_VERSION_12, [CONF_TLS_13] = TLS_VERSION_13 };

	to->min_version = versions[c->min_version];
	to->max_version = versions[c->max_version];
	return text_add(t, &c->ciphers, &to->ciphers) == OK && text_add(t, &c->suites, &to->suites) == OK &&
	       text_add(t, &c->groups, &to->groups) == OK ? OK : ERR_MEM;
}

static bool algorithms_same(const struct tls_algorithms *a, const struct tls_algorithms *b)
{
	return a->min_version == b->min_version && a->max_version == b->max_version && str_eq(a->ciphers.text, b->ciphers.text) &&
	       str_eq(a->suites.text, b->suites.text) && str_eq(a->groups.text, b->groups.text);
}

/* --- listeners --- */

static enum err key_add(struct tls *t, const struct conf_listen_tls *c, uint32_t *to)
{
	struct tls_use file;
	struct tls_key *k;

	*to = TLS_NONE;
	if (!c->tickets)
		return OK;
	if (file_add(t, &c->ticket_key, &file) != OK)
		return ERR_MEM;
	for (*to = 0; *to < t->keys.n; ++*to)
		if (t->keys.at[*to].file.file == file.file)
			return OK;
	k = LIST_ADD(t->keys);
	if (!k)
		return ERR_MEM;
	k->file = file;
	return OK;
}

static enum err front_add(struct tls *t, const struct conf_listen_tls *c, bool http)
{
	struct tls_front f = { .pos = c->pos, .n_pairs = (uint32_t)c->certificates.count, .park = c->park, .http = http };
	struct tls_front *at;

	f.pairs = arena_alloc(&t->arena, f.n_pairs * sizeof(*f.pairs));
	if (!f.pairs || algorithms_of(t, &c->algorithms, &f.algorithms) != OK || file_add(t, &c->clients.ca, &f.ca) != OK ||
	    file_add(t, &c->clients.crl, &f.crl) != OK || key_add(t, c, &f.tickets) != OK)
		return ERR_MEM;
	for (uint32_t i = 0; i < f.n_pairs; i++)
		if (pair_add(t, &c->certificates.items[i], &f.pairs[i]) != OK)
			return ERR_MEM;
	f.clients = (uint8_t)(f.ca.file == TLS_NONE ? TLS_CLIENT_CERTS_NONE :
			      c->clients.mode == CONF_CLIENT_OPTIONAL ? TLS_CLIENT_CERTS_OPTIONAL : TLS_CLIENT_CERTS_REQUIRE);
	at = LIST_ADD(t->fronts);
	if (!at)
		return ERR_MEM;
	*at = f;
	return OK;
}

/* --- services --- */

static bool back_same(const struct tls_back *a, const struct tls_back *b)
{
	return a->ca.file == b->ca.file && a->crl.file == b->crl.file && a->pair == b->pair && a->insecure == b->insecure && a->park == b->park &&
	       algorithms_same(&a->algorithms, &b->algorithms);
}

static enum err back_add(struct tls *t, const struct conf_service_tls *c, uint32_t *to)
{
	const struct conf_certificate pair = { .pos = c->cert.pos, .cert = c->cert, .key = c->key };
	struct tls_back b = { .pos = c->pos, .pair = TLS_NONE, .insecure = c->insecure, .park = c->park }, *at;

	if (algorithms_of(t, &c->algorithms, &b.algorithms) != OK || file_add(t, &c->ca, &b.ca) != OK ||
	    file_add(t, &c->crl, &b.crl) != OK || (c->cert.text.n && pair_add(t, &pair, &b.pair) != OK))
		return ERR_MEM;
	for (*to = 0; *to < t->backs.n; ++*to)
		if (back_same(&t->backs.at[*to], &b))
			return OK;
	at = LIST_ADD(t->backs);
	if (!at)
		return ERR_MEM;
	*at = b;
	return OK;
}

static enum err number_add(struct tls *t, const struct conf_service_tls *c, uint16_t *to)
{
	uint32_t *first = &t->name_bucket[hash_str(c->name.text) % TLS_BUCKETS], back;
	struct tls_number *n;
	struct conf_text name;

	if (back_add(t, c, &back) != OK)
		return ERR_MEM;
	for (uint32_t i = *first; i != TLS_NONE; i = t->numbers.at[i].next)
		if (t->numbers.at[i].back == back && str_eq(t->numbers.at[i].name, c->name.text)) {
			*to = (uint16_t)(i + 1);
			return OK;
		}
	if (t->numbers.n == NUMBERS_MAX) {
		tls_wrong(t, c->pos, "more than %d services differ in their `tls`", NUMBERS_MAX);
		return ERR_SYNTAX;
	}
	n = LIST_ADD(t->numbers);
	if (!n || text_add(t, &c->name, &name) != OK)
		return ERR_MEM;
	*n = (struct tls_number){ back, name.text, *first };
	*first = t->numbers.n - 1;
	*to = (uint16_t)t->numbers.n;
	return OK;
}

enum err tls_parts_make(struct tls *t, const struct conf *c)
{
	const char *slash = memrchr(c->file.p, '/', c->file.n);
	enum err err = OK;

	t->folder = (struct str){ c->file.p, slash ? (size_t)(slash + 1 - c->file.p) : 0 };
	memset(t->bucket, 0xff, sizeof(t->bucket));
	memset(t->name_bucket, 0xff, sizeof(t->name_bucket));
	t->n_listeners = (uint32_t)c->listen_count;
	t->n_services = (uint32_t)c->service_count;
	t->of_listener = mem_alloc(c->listen_count * sizeof(*t->of_listener) + 1);
	t->of_service = mem_zalloc(c->service_count * sizeof(*t->of_service) + 1);
	if (!t->of_listener || !t->of_service)
		return ERR_MEM;
	for (uint32_t i = 0; i < t->n_listeners && err == OK; i++) {
		t->of_listener[i] = c->listens[i].tls.on ? t->fronts.n : TLS_NONE;
		if (c->listens[i].tls.on)
			err = front_add(t, &c->listens[i].tls, c->listens[i].speaks == CONF_SPEAKS_HTTP);
	}
	for (uint32_t i = 0; i < t->n_services && err == OK; i++)
		if (c->services[i].tls.on)
			err = number_add(t, &c->services[i].tls, &t->of_service[i]);
	t->folder = (struct str){0};
	return err;
}
