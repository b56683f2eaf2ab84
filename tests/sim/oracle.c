/* oracle: see oracle.h.  Called by the stories, the walk and the fuzz target; calls nothing of lib/http. */
#include "tests/sim/oracle.h"

#include <stdlib.h>

static void bad(struct message *m, const char *why)
{
	m->state = MESSAGE_BAD;
	m->why = why;
}

static bool is_token(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if ((unsigned char)s.p[i] <= ' ' || (unsigned char)s.p[i] >= 0x7f || strchr("\"(),/:;<=>?@[\\]{}", s.p[i]))
			return false;
	return s.n > 0;
}

/* A line up to its CR LF, which goes with it; false when there is none yet. */
static bool line(struct str *in, struct str *out)
{
	const char *end = in->n ? memmem(in->p, in->n, "\r\n", 2) : NULL;

	if (!end)
		return false;
	*out = (struct str){ in->p, (size_t)(end - in->p) };
	in->p = end + 2;
	in->n -= out->n + 2;
	return true;
}

struct str message_field(const struct message *m, struct str name, unsigned *times)
{
	struct str rest = m->head, l, value = {0};
	unsigned n = 0;

	while (line(&rest, &l)) {
		if (l.n <= name.n || l.p[name.n] != ':' || strncasecmp(l.p, name.p, name.n) != 0)
			continue;
		value = str_trim((struct str){ l.p + name.n + 1, l.n - name.n - 1 });
		n++;
	}
	if (times)
		*times = n;
	return value;
}

static bool number(struct str s, unsigned base, size_t *out)
{
	size_t v = 0;

	for (size_t i = 0; i < s.n; i++) {
		const char *digits = "0123456789abcdef", *d = strchr(digits, s.p[i] | (s.p[i] >= 'A' ? 0x20 : 0));

		if (!s.p[i] || !d || d >= digits + base || i > (base == 10 ? 18 : 14))
			return false;
		v = v * base + (size_t)(d - digits);
	}
	*out = v;
	return s.n > 0;
}

static bool fields(struct message *m, struct str head)
{
	struct str l;

	m->head = head;
	while (line(&head, &l)) {
		const char *colon = memchr(l.p, ':', l.n);

		if (!colon || !is_token((struct str){ l.p, (size_t)(colon - l.p) })) {
			bad(m, "a field line without a name");
			return false;
		}
		for (size_t i = 0; i < l.n; i++)
			if (((unsigned char)l.p[i] < ' ' && l.p[i] != '\t') || l.p[i] == 0x7f) {
				bad(m, "a control character in a field");
				return false;
			}
	}
	return true;
}

/* The head is split off *in; false: not whole, or bad. */
static bool split(struct message *m, struct str *in, struct str *start)
{
	const char *end;
	struct str head;

	*m = (struct message){ .state = in->n ? MESSAGE_HEAD : MESSAGE_NONE };
	end = in->n ? memmem(in->p, in->n, "\r\n\r\n", 4) : NULL;
	if (!end)
		return false;
	head = (struct str){ in->p, (size_t)(end + 2 - in->p) };
	in->p = end + 4;
	in->n -= head.n + 2;
	m->used = head.n + 2;
	if (!line(&head, start) || !fields(m, head))
		return false;
	m->state = MESSAGE_PART;
	return true;
}

static bool lengths(struct message *m)
{
	unsigned n_length, n_coding;
	struct str length = message_field(m, STR("Content-Length"), &n_length);
	struct str coding = message_field(m, STR("Transfer-Encoding"), &n_coding);

	m->sized = n_length;
	m->chunked = n_coding;
	if (n_length + n_coding > 1)
		bad(m, "two lengths");
	else if (n_length && !number(length, 10, &m->length))
		bad(m, "a length that is no number");
	else if (n_coding && !str_eq(coding, STR("chunked")))
		bad(m, "a coding that is not chunked");
	return m->state != MESSAGE_BAD;
}

static void chunks(struct message *m, struct str in)
{
	size_t n, all = in.n;
	struct str l;

	for (;;) {
		if (!line(&in, &l))
			return;
		if (!number(l, 16, &n)) {
			bad(m, "a chunk size that is no number");
			return;
		}
		if (n == 0)
			break;
		bytes_add(&m->body, in.p, n < in.n ? n : in.n);
		if (in.n < n + 2)
			return;
		if (memcmp(in.p + n, "\r\n", 2) != 0) {
			bad(m, "a chunk without an end");
			return;
		}
		in.p += n + 2;
		in.n -= n + 2;
	}
	while (line(&in, &l))
		if (l.n == 0) {
			m->state = MESSAGE_WHOLE;
			m->used += all - in.n;
			return;
		}
}

static void body(struct message *m, struct str in)
{
	if (m->chunked) {
		chunks(m, in);
		return;
	}
	bytes_add(&m->body, in.p, m->length < in.n ? m->length : in.n);
	if (in.n >= m->length) {
		m->state = MESSAGE_WHOLE;
		m->used += m->length;
	}
}

void message_request(struct message *m, struct str in)
{
	struct str start, host;
	const char *one, *two;
	unsigned n;

	if (!split(m, &in, &start))
		return;
	one = memchr(start.p, ' ', start.n);
	two = memrchr(start.p, ' ', start.n);
	if (!one || one == two || memchr(one + 1, ' ', (size_t)(two - one - 1))) {
		bad(m, "a request line that has not three parts");
		return;
	}
	m->method = (struct str){ start.p, (size_t)(one - start.p) };
	m->target = (struct str){ one + 1, (size_t)(two - one - 1) };
	if (!is_token(m->method) || !m->target.n || !str_eq((struct str){ two + 1, start.n - (size_t)(two + 1 - start.p) }, STR("HTTP/1.1"))) {
		bad(m, "a request line of odd parts");
		return;
	}
	host = message_field(m, STR("Host"), &n);
	if (n != 1 || memchr(host.p, ' ', host.n)) {
		bad(m, "not one Host");
		return;
	}
	if (lengths(m))
		body(m, in);
}

void message_answer(struct message *m, struct str in, struct str method, bool ended)
{
	struct str start;
	size_t status;

	if (!split(m, &in, &start))
		return;
	if (start.n < 13 || memcmp(start.p, "HTTP/1.1 ", 9) != 0 || start.p[12] != ' ' ||
	    !number((struct str){ start.p + 9, 3 }, 10, &status) || status < 100 || status > 599) {
		bad(m, "a status line that is none");
		return;
	}
	m->status = (unsigned)status;
	if (!lengths(m))
		return;
	if (status < 200 || status == 204 || status == 304 || str_eq(method, STR("HEAD"))) {
		if (status < 200 && (m->sized || m->chunked))
			bad(m, "an interim answer with a length");
		else
			m->state = MESSAGE_WHOLE;
		return;
	}
	if (m->sized || m->chunked) {
		body(m, in);
		return;
	}
	m->until_close = true;
	bytes_add(&m->body, in.p, in.n);
	m->used += in.n;
	if (ended)
		m->state = MESSAGE_WHOLE;
}

void message_free(struct message *m)
{
	free(m->body.p);
	m->body = (struct bytes){0};
}
