/* Door: what a client's certificate says of it, in safe words.  Owns nothing; called once at the end of a handshake whose client has
 * shown a certificate that nobody on this worker has shown before.
 *
 * An authority that is trusted to say who somebody is may still sign names that were made to be misread: `CN=x",URI=spiffe://admin`, a line
 * end, a NUL.  So nothing is passed on byte for byte.  A subject is written with hexadecimal escapes alone: there is never a quote in it, and
 * never a backslash before a quote or a backslash, about which readers of this field differ.  In URIs the two separators are percent-encoded.
 * What is not made of the letters of its kind is no such name, and is left out. */
#include "lib/net/tls_shown.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <string.h>

#include "lib/base/mem.h"

struct text {
	char p[TLS_SHOWN_FIELD_MAX];
	size_t n;
	bool full;		/* something had no room */
};

static void put(struct text *t, struct str s)
{
	if (t->full || s.n > sizeof(t->p) - t->n) {
		t->full = true;
		return;
	}
	if (s.n)
		memcpy(t->p + t->n, s.p, s.n);
	t->n += s.n;
}

static void put_hex(struct text *t, const char *front, unsigned char c)
{
	static const char digits[] = "0123456789ABCDEF";
	char two[2] = { digits[c >> 4], digits[c & 15] };

	put(t, str_of(front));
	put(t, (struct str){ two, 2 });
}

static bool is_alnum(unsigned char c)
{
	return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
}

static bool is_of(unsigned char c, const char *others)
{
	return is_alnum(c) || (c && strchr(others, c));
}

/* --- the subject: RFC 4514 --- */

static void put_value(struct text *t, struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if (is_of(c, "-_.:@/'()*?&!~$|[]{}^%") || (c == ' ' && i && i + 1 < s.n))
			put(t, (struct str){ s.p + i, 1 });
		else
			put_hex(t, "\\", c);
	}
}

/* One attribute: CN=value. */
static void put_entry(struct text *t, const X509_NAME_ENTRY *e)
{
	const ASN1_STRING *value = X509_NAME_ENTRY_get_data(e);
	const ASN1_OBJECT *type = X509_NAME_ENTRY_get_object(e);
	int nid = OBJ_obj2nid(type), n;
	unsigned char *utf8 = NULL;
	char dotted[128];

	if (nid == NID_undef && OBJ_obj2txt(dotted, sizeof(dotted), type, 1) >= (int)sizeof(dotted))
		t->full = true;
	put(t, str_of(nid == NID_undef ? dotted : OBJ_nid2sn(nid)));
	put(t, STR("="));
	n = ASN1_STRING_to_UTF8(&utf8, value);
	if (n >= 0)
		put_value(t, (struct str){ (char *)utf8, (size_t)n });
	else	/* as it is, whatever it is */
		put_value(t, (struct str){ (const char *)ASN1_STRING_get0_data(value), (size_t)ASN1_STRING_length(value) });
	OPENSSL_free(utf8);
}

/* The last first; "+" within a set. */
static void put_subject(struct text *t, const X509_NAME *name)
{
	struct text all = {0};
	int last = X509_NAME_entry_count(name) - 1;

	for (int i = last; i >= 0 && !all.full; i--) {
		const X509_NAME_ENTRY *e = X509_NAME_get_entry(name, i);

		if (i < last)
			put(&all, X509_NAME_ENTRY_set(e) == X509_NAME_ENTRY_set(X509_NAME_get_entry(name, i + 1)) ? STR("+") : STR(","));
		put_entry(&all, e);
	}
	if (!all.full && all.n <= TLS_SHOWN_SUBJECT_MAX)
		put(t, (struct str){ all.p, all.n });
}

/* --- other names --- */

/* RFC 3986 2: bytes that a URI may have. */
static bool is_uri(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!is_of((unsigned char)s.p[i], "-._~:/?#[]@!$&'()*+,;=%"))
			return false;
	return s.n > 0;
}

static bool is_dns(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!is_of((unsigned char)s.p[i], "-._*"))
			return false;
	return s.n > 0;
}

static void put_uri(struct text *t, struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] == ',' || s.p[i] == ';')
			put_hex(t, "%", (unsigned char)s.p[i]);
		else
			put(t, (struct str){ s.p + i, 1 });
	}
}

/* A whole element, or nothing: the next may have room. */
static void put_name(struct text *t, struct str s, bool uri)
{
	size_t before = t->n;

	put(t, uri ? STR(";URI=") : STR(";DNS="));
	if (uri)
		put_uri(t, s);
	else
		put(t, s);
	if (t->full)
		t->n = before;
	t->full = false;
}

/* SPIFFE-ID 2: spiffe://trust-domain/path. */
static bool is_spiffe(struct str s)
{
	size_t segment = 0;
	bool domain = true, dots = true;

	if (s.n > 2048 || !str_starts(s, STR("spiffe://")))
		return false;
	for (size_t i = 9; i <= s.n; i++) {
		char c = i < s.n ? s.p[i] : '/';

		if (c == '/') {
			if (!segment || (!domain && dots && segment <= 2) || (domain && segment > 255))
				return false;
			domain = false;
			dots = true;
			segment = 0;
			continue;
		}
		if (!is_of((unsigned char)c, "-._") || (domain && c >= 'A' && c <= 'Z'))
			return false;
		dots = dots && c == '.';
		segment++;
	}
	return true;
}

static struct str string_of(const ASN1_STRING *s)
{
	return (struct str){ (const char *)ASN1_STRING_get0_data(s), (size_t)ASN1_STRING_length(s) };
}

/* Those of one kind; how many there are, whatever they hold. */
static unsigned put_names(struct text *t, const GENERAL_NAMES *all, int kind)
{
	unsigned n = 0;

	for (int i = 0; i < sk_GENERAL_NAME_num(all); i++) {
		const GENERAL_NAME *one = sk_GENERAL_NAME_value(all, i);
		struct str s;

		if (one->type != kind)
			continue;
		n++;
		s = string_of(one->d.ia5);
		if (kind == GEN_URI ? is_uri(s) : is_dns(s))
			put_name(t, s, kind == GEN_URI);
	}
	return n;
}

/* --- the whole --- */

static const X509 *verified(const SSL *ssl)
{
	return SSL_get_verify_result(ssl) == X509_V_OK ? SSL_get0_peer_certificate(ssl) : NULL;
}

bool tls_shown_hash(const SSL *ssl, unsigned char hash[TLS_SHOWN_HASH])
{
	const X509 *x = verified(ssl);

	return x && X509_digest(x, EVP_sha256(), hash, NULL) == 1;
}

struct tls_shown *tls_shown_new(const SSL *ssl)
{
	const X509 *x = verified(ssl);
	unsigned char hash[TLS_SHOWN_HASH];
	struct tls_shown *made = NULL;
	struct str uri, subject;
	GENERAL_NAMES *all;
	struct text t = {0};
	size_t from;

	if (!x || !tls_shown_hash(ssl, hash))
		return NULL;
	put(&t, STR("Hash="));
	for (size_t i = 0; i < sizeof(hash); i++)
		put_hex(&t, "", hash[i]);
	for (size_t i = 5; i < t.n; i++)	/* as Envoy writes it */
		t.p[i] |= 32;
	put(&t, STR(";Subject=\""));
	from = t.n;
	put_subject(&t, X509_get_subject_name(x));
	subject = (struct str){ t.p + from, t.n - from };
	put(&t, STR("\""));
	from = t.n + 5;
	all = X509_get_ext_d2i(x, NID_subject_alt_name, NULL, NULL);
	uri = put_names(&t, all, GEN_URI) == 1 && t.n > from ? (struct str){ t.p + from, t.n - from } : (struct str){0};
	put_names(&t, all, GEN_DNS);
	GENERAL_NAMES_free(all);
	ERR_clear_error();
	made = mem_alloc(sizeof(*made) + t.n);
	if (!made)
		return NULL;
	memcpy(made->hash, hash, sizeof(hash));
	memcpy(made->text, t.p, t.n);
	made->field = (struct str){ made->text, t.n };
	made->subject = (struct str){ made->text + (subject.p - t.p), subject.n };
	made->spiffe = (struct str){0};
	if (is_spiffe(uri))
		made->spiffe = (struct str){ made->text + (uri.p - t.p), uri.n };
	return made;
}
