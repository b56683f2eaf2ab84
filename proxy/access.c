/* Access records as lines: text for eyes and awk, JSON for machines.
 *
 * Owns nothing; every worker calls it at the end of an exchange, and it writes
 * into the ring's own memory: no heap, no printf, no clock.  Strings that a
 * client chose are the danger here: a line must stay one line, a field one
 * field, and JSON JSON, whatever the bytes.  Each string has a bound of its own
 * on what it takes escaped, so that a line always fits ACCESS_LINE_MAX.  */
#include "proxy/access.h"

#include <netinet/in.h>
#include <sys/socket.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "lib/base/num.h"
#include "proxy/log.h"

#define CUT_MARK "..."

/* Labels 6, tokens 4, each string with quotes and mark; and 1 KiB is for keys, numbers, date and address. */
_Static_assert(ACCESS_TARGET_MAX + ACCESS_REFERER_MAX + ACCESS_AGENT_MAX + ACCESS_AUTHORITY_MAX +
	6 * ACCESS_LABEL_MAX + 4 * ACCESS_TOKEN_MAX + 14 * 5 + 1024 <= ACCESS_LINE_MAX,
	"the longest line fits");
_Static_assert(2 * ACCESS_CLIENT_MAX + ACCESS_AUTHORITY_MAX + ACCESS_TOKEN_MAX + 4 * 5 + 128 <= ACCESS_TLS_MAX, "and of TLS");

/* `json` below is a constant wherever it is used: two copies, no tests. */
#define INLINE inline __attribute__((always_inline))

/* Two digits for each byte. */
#define ROW(h) h "0" h "1" h "2" h "3" h "4" h "5" h "6" h "7" h "8" h "9" h "a" h "b" h "c" h "d" h "e" h "f"
static const char hex[] = ROW("0") ROW("1") ROW("2") ROW("3") ROW("4") ROW("5") ROW("6") ROW("7")
	ROW("8") ROW("9") ROW("a") ROW("b") ROW("c") ROW("d") ROW("e") ROW("f");

/* Appends a string literal. */
#define PUT(o, literal) (memcpy((o), (literal), sizeof(literal) - 1), (o) + sizeof(literal) - 1)

static inline char *put_two(char *o, unsigned v)
{
	static const char two[] = "0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546474849"
		"5051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899";

	memcpy(o, two + 2 * v, 2);
	return o + 2;
}

/* Up to 999. */
static inline char *put_small(char *o, unsigned v)
{
	if (v < 10) {
		*o = (char)('0' + v);
		return o + 1;
	}
	if (v < 100)
		return put_two(o, v);
	*o = (char)('0' + v / 100);
	return put_two(o + 1, v % 100);
}

/* As num_dec, in place and two digits a step: a line holds a dozen numbers. */
static inline char *put_number(char *o, uint64_t v)
{
	if (v < 1000)
		return put_small(o, (unsigned)v);
	if (v < 100000) {
		o = put_small(o, (unsigned)v / 100);
		return put_two(o, (unsigned)v % 100);
	}
	if (v < 10000000) {
		o = put_small(o, (unsigned)v / 10000);
		o = put_two(o, (unsigned)v / 100 % 100);
		return put_two(o, (unsigned)v % 100);
	}
	return o + num_dec(o, v);
}

static INLINE char *put_escape(char *o, unsigned char c, bool json)
{
	if (json && (c == '"' || c == '\\')) {
		o[0] = '\\';
		o[1] = (char)c;
		return o + 2;
	}
	o = json ? PUT(o, "\\u00") : PUT(o, "\\x");
	memcpy(o, hex + 2 * c, 2);
	return o + 2;
}

static inline size_t escape_size(unsigned char c, bool json)
{
	return !json ? 4 : c == '"' || c == '\\' ? 2 : 6;
}

/* Plain is what a quoted string can hold as it is: 0x20-0x7e without quote and backslash. */
#ifdef __SSE2__
#define BLOCK 16
/* A bit for each byte that is not plain. */
static INLINE unsigned special_mask(__m128i b)
{
	/* Moved so that the plain range lies at the low end of signed bytes: one compare. */
	const int least = 0x20;
	__m128i moved = _mm_add_epi8(b, _mm_set1_epi8((char)(0x80 - least)));
	__m128i range = _mm_cmpgt_epi8(moved, _mm_set1_epi8((char)(0x7e - least - 0x80)));
	__m128i quote = _mm_cmpeq_epi8(b, _mm_set1_epi8('"'));
	__m128i slash = _mm_cmpeq_epi8(b, _mm_set1_epi8('\\'));

	return (unsigned)_mm_movemask_epi8(_mm_or_si128(range, _mm_or_si128(quote, slash)));
}

/* Copies BLOCK bytes and returns how many of them, from the first on, are plain. */
static INLINE size_t put_block(char *o, const char *p)
{
	__m128i b = _mm_loadu_si128((const __m128i *)(const void *)p);
	unsigned special = special_mask(b);

	_mm_storeu_si128((__m128i *)(void *)o, b);
	return special ? (size_t)__builtin_ctz(special) : BLOCK;
}

/* Copies 1 to 32 bytes as two halves that may overlap; false, and nothing of worth is copied, when
 * they are not all plain. */
static INLINE bool put_plain(char *o, const char *p, size_t n)
{
	uint64_t lo, hi;

	if (n > 16) {
		__m128i a = _mm_loadu_si128((const __m128i *)(const void *)p);
		__m128i b = _mm_loadu_si128((const __m128i *)(const void *)(p + n - 16));

		_mm_storeu_si128((__m128i *)(void *)o, a);
		_mm_storeu_si128((__m128i *)(void *)(o + n - 16), b);
		return (special_mask(a) | special_mask(b)) == 0;
	}
	if (n >= 8) {
		memcpy(&lo, p, 8);
		memcpy(&hi, p + n - 8, 8);
		memcpy(o, &lo, 8);
		memcpy(o + n - 8, &hi, 8);
	} else if (n >= 4) {
		uint32_t a, b;

		memcpy(&a, p, 4);
		memcpy(&b, p + n - 4, 4);
		memcpy(o, &a, 4);
		memcpy(o + n - 4, &b, 4);
		lo = hi = (uint64_t)a << 32 | b;
	} else {
		unsigned char a = (unsigned char)p[0], b = (unsigned char)p[n / 2], c = (unsigned char)p[n - 1];

		o[0] = (char)a;
		o[n / 2] = (char)b;
		o[n - 1] = (char)c;
		lo = hi = 0x2e2e2e2e2e000000 | (uint64_t)c << 16 | (uint64_t)b << 8 | a;
	}
	return special_mask(_mm_set_epi64x((int64_t)hi, (int64_t)lo)) == 0;
}
#else
#define BLOCK 8
static INLINE bool put_plain(char *o, const char *p, size_t n)
{
	(void)o, (void)p, (void)n;
	return false;
}

/* Copies up to BLOCK bytes, all that are plain from the first on, and returns how many they are. */
static INLINE size_t put_block(char *o, const char *from)
{
	const unsigned char *p = (const unsigned char *)from;
	size_t n = 0;

	for (; n < BLOCK; n++) {
		if (p[n] < 0x20 || p[n] > 0x7e || p[n] == '"' || p[n] == '\\')
			break;
		o[n] = p[n];
	}
	return n;
}
#endif

/* memcpy of n < 16 bytes: the two halves may overlap. */
static INLINE void copy_short(char *to, const char *from, size_t n)
{
	if (n >= 8) {
		memcpy(to, from, 8);
		memcpy(to + n - 8, from + n - 8, 8);
	} else if (n >= 4) {
		memcpy(to, from, 4);
		memcpy(to + n - 4, from + n - 4, 4);
	} else if (n) {
		to[0] = from[0];
		to[n / 2] = from[n / 2];
		to[n - 1] = from[n - 1];
	}
}

/* Any string; put_plain is the shorter way for most.
 *
 * What is left when no whole block is left moves to a place with a block of zeros behind it: a
 * zero is not plain, so that the end is found as an escape is.  May write a block past the result. */
static __attribute__((noinline)) char *put_escaped(char *o, struct str s, size_t max, bool json, bool *cut)
{
	char tail[2 * BLOCK] = {0};
	const char *p = s.p, *end = s.p + s.n, *limit = o + max;
	size_t need = BLOCK;

	for (;;) {
		size_t n;

		if ((size_t)(end - p) < need) {
			copy_short(tail, p, (size_t)(end - p));
			end = tail + (end - p);
			p = tail;
			need = 0;
		}
		n = put_block(o, p);
		p += n;
		o += n;
		if (o > limit) {
			o -= o - limit;	/* all since the last escape is plain */
			break;
		}
		if (n == BLOCK)
			continue;
		if (p == end)
			return o;
		if (o + escape_size((unsigned char)*p, json) > limit)
			break;
		o = put_escape(o, (unsigned char)*p++, json);
	}
	*cut = true;
	return PUT(o, CUT_MARK);
}

/* `max` is 32 or more. */
static INLINE char *put_string(char *o, struct str s, size_t max, bool json, bool *cut)
{
	*o++ = '"';
	if (s.n <= 32 && put_plain(o, s.p, s.n))
		o += s.n;
	else
		o = put_escaped(o, s, max, json, cut);
	*o++ = '"';
	return o;
}

static INLINE char *text_string(char *o, struct str s, size_t max, bool *cut)
{
	if (!s.n) {
		*o++ = '-';
		return o;
	}
	return put_string(o, s, max, false, cut);
}

static char *json_string(char *o, struct str s, size_t max, bool *cut)
{
	if (!s.n)
		return PUT(o, "null");
	return put_string(o, s, max, true, cut);
}

static char *text_duration(char *o, int64_t us)
{
	if (us < 0) {
		*o++ = '-';
		return o;
	}
	return put_number(o, (uint64_t)us);
}

static char *json_duration(char *o, int64_t us)
{
	return us < 0 ? PUT(o, "null") : put_number(o, (uint64_t)us);
}

static char *put_ipv4(char *o, const uint8_t *a)
{
	for (int i = 0; i < 4; i++) {
		o = put_small(o, a[i]);
		*o++ = '.';
	}
	return o - 1;
}

/* The longest run of two or more zero groups, RFC 5952 section 4.2; returns its length. */
static int ipv6_zeros(const uint16_t g[8], int *at)
{
	int best = 1;

	*at = -1;
	for (int i = 0; i < 8; i++) {
		int n = 0;

		while (i + n < 8 && g[i + n] == 0)
			n++;
		if (n > best) {
			best = n;
			*at = i;
		}
		i += n;
	}
	return *at < 0 ? 0 : best;
}

static char *put_ipv6(char *o, const uint8_t *a)
{
	uint16_t g[8];
	int zeros_at, zeros;

	for (int i = 0; i < 8; i++)
		g[i] = (uint16_t)(a[2 * i] << 8 | a[2 * i + 1]);
	zeros = ipv6_zeros(g, &zeros_at);
	for (int i = 0; i < 8; i++) {
		if (i == zeros_at) {
			o = PUT(o, "::");
			i += zeros - 1;
			continue;
		}
		if (i && i != zeros_at + zeros)
			*o++ = ':';
		o += num_hex(o, g[i]);
	}
	return o;
}

/* A mapped address is the IPv4 peer it stands for. */
static char *put_address(char *o, const struct access_record *r)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	if (r->client_family == AF_INET)
		return put_ipv4(o, r->client_addr);
	if (!memcmp(r->client_addr, mapped, sizeof(mapped)))
		return put_ipv4(o, r->client_addr + 12);
	return put_ipv6(o, r->client_addr);
}

static bool has_address(const struct access_record *r)
{
	return r->client_family == AF_INET || r->client_family == AF_INET6;
}

/* "2026-01-31T23:59:59." for a second since 1970, up to the year 9999. */
static void date_set(struct access_date *date, int64_t second)
{
	/* Days to a civil date, counting years from March, so that a leap day ends one. */
	int64_t days = second / 86400 + 719468;
	unsigned left = (unsigned)(second % 86400);
	unsigned era = (unsigned)(days / 146097), doe = (unsigned)(days % 146097);
	unsigned yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
	unsigned doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
	unsigned mp = (5 * doy + 2) / 153, month = mp < 10 ? mp + 3 : mp - 9;
	unsigned year = era * 400 + yoe + (month <= 2);
	char *o = put_two(put_two(date->text, year / 100), year % 100);

	*o++ = '-';
	o = put_two(o, month);
	*o++ = '-';
	o = put_two(o, doy - (153 * mp + 2) / 5 + 1);
	*o++ = 'T';
	o = put_two(o, left / 3600);
	*o++ = ':';
	o = put_two(o, left / 60 % 60);
	*o++ = ':';
	o = put_two(o, left % 60);
	*o = '.';
	date->second = second;
}

char *access_time(char *out, int64_t unix_ms, struct access_date *date)
{
	const int64_t last = 253402300799999;	/* the end of the year 9999 */
	int64_t ms = unix_ms < 0 ? 0 : unix_ms > last ? last : unix_ms;
	unsigned part = (unsigned)(ms % 1000);

	if (date->second != ms / 1000 || !date->text[0])
		date_set(date, ms / 1000);
	memcpy(out, date->text, 20);
	out[20] = (char)('0' + part / 100);
	put_two(out + 21, part % 100);
	out[23] = 'Z';
	return out + 24;
}

static char *text_flags(char *o, const struct access_record *r, bool cut)
{
	char *start = o;

	if (r->reused)
		*o++ = 'r';
	if (r->client_closed)
		*o++ = 'c';
	if (r->upgrade)
		*o++ = 'u';
	if (cut)
		*o++ = 't';
	if (o == start)
		*o++ = '-';
	return o;
}

static char *text_client(char *o, const struct access_record *r)
{
	if (!has_address(r))
		return PUT(o, " client=- client_port=-");
	o = put_address(PUT(o, " client="), r);
	return put_number(PUT(o, " client_port="), r->client_port);
}

/* HTTP/1.0, HTTP/1.1, HTTP/2. */
static char *put_version(char *o, const struct access_record *r)
{
	if (r->http_major == 1 && r->http_minor == 1)
		return PUT(o, "HTTP/1.1");
	o = put_number(PUT(o, "HTTP/"), r->http_major);
	if (r->http_major < 2) {
		*o++ = '.';
		o = put_number(o, r->http_minor);
	}
	return o;
}

static char *put_other_protocol(char *o, const struct access_record *r, bool json)
{
	if (!r->protocol.n)
		return json ? PUT(o, "null") : PUT(o, "-");
	if (json)
		*o++ = '"';
	memcpy(o, r->protocol.p, r->protocol.n);
	o += r->protocol.n;
	if (json)
		*o++ = '"';
	return o;
}

static char *put_protocol(char *o, const struct access_record *r, bool json)
{
	if (!r->http_major)
		return put_other_protocol(o, r, json);
	if (!json)
		return put_version(o, r);
	return PUT(put_version(PUT(o, "\""), r), "\"");
}

static __attribute__((noinline)) char *text_tls(char *o, const struct access_tls *t, bool *cut)
{
	o = put_small(PUT(o, " tls=1."), t->minor);
	o = text_string(PUT(o, " tls_cipher="), t->cipher, ACCESS_TOKEN_MAX, cut);
	o = text_string(PUT(o, " tls_name="), t->name, ACCESS_AUTHORITY_MAX, cut);
	o = t->resumed ? PUT(o, " tls_resumed=yes") : PUT(o, " tls_resumed=no");
	o = text_string(PUT(o, " tls_client="), t->client, ACCESS_CLIENT_MAX, cut);
	return text_string(PUT(o, " tls_client_id="), t->client_id, ACCESS_CLIENT_MAX, cut);
}

/* Mostly there is nothing to tell. */
static INLINE char *text_retries(char *o, const struct access_record *r, bool *cut)
{
	if (__builtin_expect(!(r->retry_cause.n | r->no_retry.n), 1))
		return PUT(o, " retry_cause=- no_retry=-");
	o = text_string(PUT(o, " retry_cause="), r->retry_cause, ACCESS_TOKEN_MAX, cut);
	return text_string(PUT(o, " no_retry="), r->no_retry, ACCESS_TOKEN_MAX, cut);
}

size_t access_text(char *out, const struct access_record *r, struct access_date *date)
{
	bool cut = false;
	char *o = access_time(out, r->time_unix_ms, date);

	o = text_client(o, r);
	o = text_string(PUT(o, " listener="), r->listener, ACCESS_LABEL_MAX, &cut);
	o = text_string(PUT(o, " method="), r->method, ACCESS_TOKEN_MAX, &cut);
	o = text_string(PUT(o, " authority="), r->authority, ACCESS_AUTHORITY_MAX, &cut);
	o = text_string(PUT(o, " target="), r->target, ACCESS_TARGET_MAX, &cut);
	o = put_protocol(PUT(o, " protocol="), r, false);
	o = put_number(PUT(o, " status="), r->status);
	o = put_number(PUT(o, " bytes_in="), r->bytes_in);
	o = put_number(PUT(o, " bytes_out="), r->bytes_out);
	o = text_duration(PUT(o, " duration_us="), r->duration_us);
	o = text_duration(PUT(o, " connect_us="), r->connect_us);
	o = text_duration(PUT(o, " first_byte_us="), r->first_byte_us);
	o = text_string(PUT(o, " route="), r->route, ACCESS_LABEL_MAX, &cut);
	o = text_string(PUT(o, " service="), r->service, ACCESS_LABEL_MAX, &cut);
	o = text_string(PUT(o, " endpoint="), r->endpoint, ACCESS_LABEL_MAX, &cut);
	o = text_string(PUT(o, " cause="), r->cause, ACCESS_TOKEN_MAX, &cut);
	o = text_string(PUT(o, " fault="), r->fault, ACCESS_TOKEN_MAX, &cut);
	o = put_number(PUT(o, " retries="), r->retries);
	o = text_retries(o, r, &cut);
	o = text_string(PUT(o, " request_id="), r->request_id, ACCESS_LABEL_MAX, &cut);
	o = text_string(PUT(o, " user="), r->user, ACCESS_LABEL_MAX, &cut);
	o = text_string(PUT(o, " referer="), r->referer, ACCESS_REFERER_MAX, &cut);
	o = text_string(PUT(o, " user_agent="), r->user_agent, ACCESS_AGENT_MAX, &cut);
	if (r->tls)
		o = text_tls(o, r->tls, &cut);
	o = text_flags(PUT(o, " flags="), r, cut);
	*o++ = '\n';
	return (size_t)(o - out);
}

static char *json_client(char *o, const struct access_record *r)
{
	if (!has_address(r))
		return PUT(o, "\",\"client\":null,\"client_port\":null");
	o = put_address(PUT(o, "\",\"client\":\""), r);
	return put_number(PUT(o, "\",\"client_port\":"), r->client_port);
}

static char *json_bool(char *o, bool v)
{
	return v ? PUT(o, "true") : PUT(o, "false");
}

static __attribute__((noinline)) char *json_tls(char *o, const struct access_tls *t, bool *cut)
{
	o = put_small(PUT(o, ",\"tls\":\"1."), t->minor);
	o = json_string(PUT(o, "\",\"tls_cipher\":"), t->cipher, ACCESS_TOKEN_MAX, cut);
	o = json_string(PUT(o, ",\"tls_name\":"), t->name, ACCESS_AUTHORITY_MAX, cut);
	o = json_bool(PUT(o, ",\"tls_resumed\":"), t->resumed);
	o = json_string(PUT(o, ",\"tls_client\":"), t->client, ACCESS_CLIENT_MAX, cut);
	return json_string(PUT(o, ",\"tls_client_id\":"), t->client_id, ACCESS_CLIENT_MAX, cut);
}

size_t access_json(char *out, const struct access_record *r, struct access_date *date)
{
	bool cut = false;
	char *o = access_time(PUT(out, "{\"time\":\""), r->time_unix_ms, date);

	o = json_client(o, r);
	o = json_string(PUT(o, ",\"listener\":"), r->listener, ACCESS_LABEL_MAX, &cut);
	o = json_string(PUT(o, ",\"method\":"), r->method, ACCESS_TOKEN_MAX, &cut);
	o = json_string(PUT(o, ",\"authority\":"), r->authority, ACCESS_AUTHORITY_MAX, &cut);
	o = json_string(PUT(o, ",\"target\":"), r->target, ACCESS_TARGET_MAX, &cut);
	o = put_protocol(PUT(o, ",\"protocol\":"), r, true);
	o = put_number(PUT(o, ",\"status\":"), r->status);
	o = put_number(PUT(o, ",\"bytes_in\":"), r->bytes_in);
	o = put_number(PUT(o, ",\"bytes_out\":"), r->bytes_out);
	o = json_duration(PUT(o, ",\"duration_us\":"), r->duration_us);
	o = json_duration(PUT(o, ",\"connect_us\":"), r->connect_us);
	o = json_duration(PUT(o, ",\"first_byte_us\":"), r->first_byte_us);
	o = json_string(PUT(o, ",\"route\":"), r->route, ACCESS_LABEL_MAX, &cut);
	o = json_string(PUT(o, ",\"service\":"), r->service, ACCESS_LABEL_MAX, &cut);
	o = json_string(PUT(o, ",\"endpoint\":"), r->endpoint, ACCESS_LABEL_MAX, &cut);
	o = json_string(PUT(o, ",\"cause\":"), r->cause, ACCESS_TOKEN_MAX, &cut);
	o = json_string(PUT(o, ",\"fault\":"), r->fault, ACCESS_TOKEN_MAX, &cut);
	o = put_number(PUT(o, ",\"retries\":"), r->retries);
	o = json_string(PUT(o, ",\"retry_cause\":"), r->retry_cause, ACCESS_TOKEN_MAX, &cut);
	o = json_string(PUT(o, ",\"no_retry\":"), r->no_retry, ACCESS_TOKEN_MAX, &cut);
	o = json_string(PUT(o, ",\"request_id\":"), r->request_id, ACCESS_LABEL_MAX, &cut);
	o = json_string(PUT(o, ",\"user\":"), r->user, ACCESS_LABEL_MAX, &cut);
	o = json_string(PUT(o, ",\"referer\":"), r->referer, ACCESS_REFERER_MAX, &cut);
	o = json_string(PUT(o, ",\"user_agent\":"), r->user_agent, ACCESS_AGENT_MAX, &cut);
	if (r->tls)
		o = json_tls(o, r->tls, &cut);
	o = json_bool(PUT(o, ",\"reused\":"), r->reused);
	o = json_bool(PUT(o, ",\"client_closed\":"), r->client_closed);
	o = json_bool(PUT(o, ",\"upgrade\":"), r->upgrade);
	o = json_bool(PUT(o, ",\"cut\":"), cut);
	o = PUT(o, "}\n");
	return (size_t)(o - out);
}

bool access_write(const struct access_record *r)
{
	static _Thread_local struct access_date date;
	char *out = log_access_reserve(ACCESS_LINE_MAX + (r->tls ? ACCESS_TLS_MAX : 0));

	if (!out)
		return false;
	log_access_commit(log_access_format() == LOG_JSON ?
		access_json(out, r, &date) : access_text(out, r, &date));
	return true;
}
