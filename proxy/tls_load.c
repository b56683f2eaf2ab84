/* tls_load: what the parts of TLS are now, out of files.
 *
 * Purpose   read all files, compare, and make again what is of those that changed; what cannot be made stays what it was.
 * Owns      the texts of files while it runs: some are private keys, so all are wiped.
 * Called by tls.c, at the start and when something may have changed.
 * Never     lets a worker see half of a change: it gets the old or the new whole. */
#include "proxy/tls_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/hash.h"
#include "lib/base/mem.h"

#define TICKETS_SENT 2		/* after a full handshake: as many as browsers open connections at once for */

static bool is_before(struct conf_pos a, struct conf_pos b)
{
	return a.line != b.line ? a.line < b.line : a.column < b.column;
}

static void keep(struct tls *t, struct conf_pos pos, struct str text)
{
	struct tls_said *s = arena_alloc(&t->arena, sizeof(*s)), **at = &t->said;
	char *p = arena_alloc(&t->arena, text.n + 1);

	if (!s || !p) {
		t->no_memory = true;
		return;
	}
	memcpy(p, text.p, text.n + 1);
	while (*at && !is_before(pos, (*at)->pos))
		at = &(*at)->next;
	*s = (struct tls_said){ *at, pos, p };
	*at = s;
}

void tls_wrong(struct tls *t, struct conf_pos pos, const char *format, ...)
{
	char text[PATH_MAX + 512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	t->wrong++;
	if (t->started)
		t->say(t->say_ctx, pos, text);
	else
		keep(t, pos, str_of(text));
}

/* --- files --- */

static void wipe(struct str *s)
{
	if (!s->p)
		return;
	explicit_bzero((void *)(uintptr_t)s->p, s->n);
	mem_free((void *)(uintptr_t)s->p);
	*s = (struct str){0};
}

/* All of an open file, to *to.  0, or an errno. */
static int read_all(int fd, struct str *to)
{
	struct stat st;
	struct str s = {0};
	ssize_t got;
	char *p;

	if (fstat(fd, &st))
		return errno;
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
	if (st.st_size > TLS_FILE_MAX)
		return EFBIG;
	s.p = p = mem_alloc((size_t)st.st_size + 1);
	if (!p)
		return ENOMEM;
	while ((got = read(fd, p + s.n, (size_t)st.st_size + 1 - s.n)) > 0) {
		s.n += (size_t)got;
		if (s.n > (size_t)st.st_size) {	/* it grows while we look */
			wipe(&s);
			return EBUSY;
		}
	}
	if (got < 0) {
		int error = errno;

		wipe(&s);
		return error;
	}
	*to = s;
	return 0;
}

static void file_read(struct tls_file *f)
{
	int fd = open(f->name.text.p, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	f->error = fd < 0 ? errno : read_all(fd, &f->text);
	if (fd >= 0)
		close(fd);
}

/* Whether it is what it was. */
static void file_look(struct tls_file *f)
{
	uint64_t hash;
	int error = f->error;

	file_read(f);
	hash = f->error ? 0 : hash_str(f->text) | 1;
	f->changed = hash != f->hash || error != f->error;
	f->hash = hash;
	if (f->changed)
		f->told = false;
	else
		wipe(&f->text);
}

static bool file_changed(const struct tls *t, struct tls_use u)
{
	return u.file != TLS_NONE && t->files.at[u.file].changed;
}

/* What is in it, lent until the pass is over, and never nothing, which would stand for a default; of TLS_NONE, nothing.
 * False: it cannot be read, which is told. */
static bool file_text(struct tls *t, struct tls_use u, struct str *to)
{
	struct tls_file *f;

	*to = (struct str){0};
	if (u.file == TLS_NONE)
		return true;
	f = &t->files.at[u.file];
	if (!f->text.p && !f->error)
		file_read(f);
	*to = f->text;
	if (!f->error && f->text.n)
		return true;
	t->no_memory = t->no_memory || f->error == ENOMEM;
	if (!f->told && !f->error)
		tls_wrong(t, f->name.pos, "`%s` is empty", f->name.text.p);
	else if (!f->told)
		tls_wrong(t, f->name.pos, "`%s` cannot be read: %s", f->name.text.p,
			  f->error == EINVAL ? "Not a regular file" : strerror(f->error));
	f->told = true;
	return false;
}

/* --- what is wrong --- */

static void file_wrong(struct tls *t, struct tls_use u, const struct tls_error *e)
{
	tls_wrong(t, u.pos, "`%s` %s", t->files.at[u.file].name.text.p, e->text);
}

static void pair_wrong(struct tls *t, const struct tls_pair *p, const struct tls_error *e)
{
	if (e->part == TLS_PART_KEY)
		tls_wrong(t, p->key.pos, "`%s` %s (`%s`)", t->files.at[p->key.file].name.text.p, e->text,
			  t->files.at[p->cert.file].name.text.p);
	else
		file_wrong(t, p->cert, e);
}

/* Of either end: `pair` is its certificate, or the one that the error is about; `pos` where its `tls` stands. */
static void end_wrong(struct tls *t, const struct tls_algorithms *a, struct tls_use ca, struct tls_use crl, uint32_t pair, struct conf_pos pos,
		      const struct tls_error *e)
{
	t->no_memory = t->no_memory || e->err == ERR_MEM;
	switch (e->part) {
	case TLS_PART_CIPHERS:
		tls_wrong(t, a->ciphers.pos, "`ciphers` %s", e->text);
		return;
	case TLS_PART_SUITES:
		tls_wrong(t, a->suites.pos, "`suites` %s", e->text);
		return;
	case TLS_PART_GROUPS:
		tls_wrong(t, a->groups.pos, "`groups` %s", e->text);
		return;
	case TLS_PART_CA:
		if (ca.file != TLS_NONE) {
			file_wrong(t, ca, e);
			return;
		}
		break;
	case TLS_PART_CRL:
		file_wrong(t, crl, e);
		return;
	case TLS_PART_CERT:
	case TLS_PART_KEY:
		if (pair != TLS_NONE) {
			pair_wrong(t, &t->pairs.at[pair], e);
			return;
		}
		break;
	default:
		break;
	}
	tls_wrong(t, pos, "TLS: %s", e->text);
}

/* --- parts --- */

static void pair_load(struct tls *t, struct tls_pair *p)
{
	struct tls_error e = {0};
	struct str cert, key;
	struct tls_cert *made;
	bool both;

	if (!file_changed(t, p->cert) && !file_changed(t, p->key))
		return;
	both = file_text(t, p->cert, &cert);
	both = file_text(t, p->key, &key) && both;
	if (!both)
		return;
	made = tls_cert_new(cert, key, &e);
	if (!made) {
		t->no_memory = t->no_memory || e.err == ERR_MEM;
		pair_wrong(t, p, &e);
		return;
	}
	tls_cert_unref(p->now);
	p->now = made;
	p->changed = true;
}

/* True: it is another secret. */
static bool key_load(struct tls *t, struct tls_key *k, int64_t now)
{
	struct tls_error e = {0};
	struct str secret;
	bool had = k->tickets;

	if ((had && !file_changed(t, k->file)) || !file_text(t, k->file, &secret))
		return false;
	if (!had && (k->tickets = tls_tickets_new(secret, now, &e)))
		return true;
	if (had && tls_tickets_share(k->tickets, secret, now, &e) == OK)
		return true;
	t->no_memory = t->no_memory || e.err == ERR_MEM;
	if (k->file.file != TLS_NONE)
		file_wrong(t, k->file, &e);
	else
		tls_wrong(t, (struct conf_pos){0}, "keys of session tickets: %s", e.text);
	return false;
}

/* `p` of OpenSSL's lists, NULL for the default. */
static const char *list_of(const struct conf_text *p)
{
	return p->text.n ? p->text.p : NULL;
}

static struct tls_server *front_make(struct tls *t, const struct tls_front *f, const struct tls_cert **certs,
				     uint32_t n)
{
	static const struct str alpn[] = { { "http/1.1", 8 }, { "http/1.0", 8 } };
	struct tls_server_spec spec = {
		.certs = certs, .n_certs = n,
		.min_version = f->algorithms.min_version, .max_version = f->algorithms.max_version,
		.ciphers = list_of(&f->algorithms.ciphers), .suites = list_of(&f->algorithms.suites),
		.groups = list_of(&f->algorithms.groups), .alpn = alpn, .n_alpn = f->http ? 2 : 0,
		.client_certs = (enum tls_client_certs)f->clients,
		.tickets = f->tickets == TLS_NONE ? NULL : t->keys.at[f->tickets].tickets, .n_tickets = TICKETS_SENT, .park = f->park,
	};
	struct tls_error e = {0};
	struct tls_server *made;
	bool both = file_text(t, f->ca, &spec.client_ca);

	both = file_text(t, f->crl, &spec.client_crl) && both;
	if (!both)
		return NULL;
	made = tls_server_new(&spec, &e);
	if (!made)
		end_wrong(t, &f->algorithms, f->ca, f->crl, n == f->n_pairs ? f->pairs[e.index] : TLS_NONE, f->pos, &e);
	return made;
}

/* What its pairs are now to `certs`, which has room for all: how many are there. */
static uint32_t front_certs(const struct tls *t, const struct tls_front *f, const struct tls_cert **certs, bool *changed)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < f->n_pairs; i++) {
		const struct tls_pair *p = &t->pairs.at[f->pairs[i]];

		*changed = *changed || p->changed;
		if (p->now)
			certs[n++] = p->now;
	}
	return n;
}

/* True: it is another one.  Without all of its certificates it is made to see what else is wrong. */
static bool front_load(struct tls *t, struct tls_front *f)
{
	bool changed = file_changed(t, f->ca) || file_changed(t, f->crl);
	const struct tls_cert **certs = mem_alloc(f->n_pairs * sizeof(*certs));
	const struct tls_server *made = NULL, *old;
	uint32_t n = certs ? front_certs(t, f, certs, &changed) : 0;

	if (!certs) {
		t->no_memory = true;
		tls_wrong(t, f->pos, "TLS: no memory");
	}
	if (changed && n)
		made = front_make(t, f, certs, n);
	mem_free(certs);
	if (made && (n < f->n_pairs || (f->tickets != TLS_NONE && !t->keys.at[f->tickets].tickets))) {
		tls_server_unref(made);
		made = NULL;
	}
	if (!made)
		return false;
	pthread_mutex_lock(&t->lock);
	old = f->now;
	f->now = made;
	pthread_mutex_unlock(&t->lock);
	tls_server_unref(old);
	return true;
}

static bool back_load(struct tls *t, struct tls_back *b)
{
	static const struct str alpn[] = { { "http/1.1", 8 } };
	const struct tls_pair *pair = b->pair == TLS_NONE ? NULL : &t->pairs.at[b->pair];
	struct tls_client_spec spec = {
		.insecure = b->insecure, .cert = pair ? pair->now : NULL,
		.min_version = b->algorithms.min_version, .max_version = b->algorithms.max_version,
		.ciphers = list_of(&b->algorithms.ciphers), .suites = list_of(&b->algorithms.suites),
		.groups = list_of(&b->algorithms.groups), .alpn = alpn, .n_alpn = 1, .park = b->park,
	};
	bool changed = !b->now || file_changed(t, b->ca) || file_changed(t, b->crl) || (pair && pair->changed), both;
	const struct tls_client *made, *old;
	struct tls_error e = {0};

	if (!changed)
		return false;
	both = file_text(t, b->ca, &spec.ca);
	both = file_text(t, b->crl, &spec.crl) && both;
	if (!both)
		return false;
	made = tls_client_new(&spec, &e);
	if (!made) {
		end_wrong(t, &b->algorithms, b->ca, b->crl, b->pair, b->pos, &e);
		return false;
	}
	if (pair && !pair->now) {	/* what else is wrong has been seen */
		tls_client_unref(made);
		return false;
	}
	pthread_mutex_lock(&t->lock);
	old = b->now;
	b->now = made;
	pthread_mutex_unlock(&t->lock);
	tls_client_unref(old);
	return true;
}

bool tls_load(struct tls *t, int64_t now_s)
{
	bool other = false;

	for (uint32_t i = 0; i < t->files.n; i++)
		file_look(&t->files.at[i]);
	for (uint32_t i = 0; i < t->pairs.n; i++) {
		t->pairs.at[i].changed = false;
		pair_load(t, &t->pairs.at[i]);
	}
	for (uint32_t i = 0; i < t->keys.n; i++)
		other = key_load(t, &t->keys.at[i], now_s) || other;
	for (uint32_t i = 0; i < t->fronts.n; i++)
		other = front_load(t, &t->fronts.at[i]) || other;
	for (uint32_t i = 0; i < t->backs.n; i++)
		other = back_load(t, &t->backs.at[i]) || other;
	for (uint32_t i = 0; i < t->files.n; i++)
		wipe(&t->files.at[i].text);
	return other;
}
