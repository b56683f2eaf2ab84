/*
 * slip: what a person meant when YAML gave up.
 *
 * Purpose   `[::1]:80`, `[${A}:80]`, `{to: https://x{path}}` and `-service: web` look
 *           right and are not; say what to write instead of how a grammar failed.
 * Owns      nothing; all texts are constant.
 * Called by tree.c when libyaml failed, by walk.c and route.c about odd keys.
 * Never     decides whether a file is right: it looks only at what failed already.
 */
#include "conf/slip.h"

#include "conf/errors.h"

#define NO_BLANK "a blank must follow the `-`"
#define QUOTE_IP6 "an IPv6 address must be in quotes, as in \"[::1]:8080\""
#define ODD_BLANK "a no-break space follows the `-`, where a blank must be"

static size_t line_size(struct str s)
{
	size_t n = 0;

	while (n < s.n && !conf_break_size((struct str){s.p + n, s.n - n}))
		n++;
	return n;
}

static struct str tail(struct str s, size_t n)
{
	return (struct str){s.p + n, s.n - n};
}

struct str conf_slip_at(struct str text, struct conf_pos pos)
{
	size_t at;

	for (; text.n && pos.line > 1; pos.line--) {
		text = tail(text, line_size(text));
		text = tail(text, conf_break_size(text));
	}
	for (at = 0; at < text.n && pos.column > 1; at++)
		pos.column -= at + 1 == text.n || ((unsigned char)text.p[at + 1] & 0xc0) != 0x80;
	return tail(text, at);
}

/* What is wrong with the `-` at the front of `s`, or NULL: then it is none, or right. */
static const char *dash_wrong(struct str s)
{
	if (s.n < 2 || s.p[0] != '-' || s.p[1] == ' ' || s.p[1] == '\t' || s.p[1] == '-')
		return NULL;
	s = tail(s, 1);
	if (conf_break_size(s))
		return NULL;
	return str_starts(s, STR("\xc2\xa0")) ? ODD_BLANK : NO_BLANK;
}

/* The same for the `-` that begins a line, to which *pos moves then. */
static const char *line_dash_wrong(struct str text, uint32_t line, struct conf_pos *pos)
{
	struct str s = conf_slip_at(text, (struct conf_pos){line, 1});
	uint32_t column = 1;
	const char *wrong;

	for (; s.n && s.p[0] == ' '; column++)
		s = tail(s, 1);
	wrong = dash_wrong(s);
	if (wrong)
		*pos = (struct conf_pos){line, column};
	return wrong;
}

/* A second `: ` on one line, or a line that goes on behind a `-` that is none. */
static const char *colon_wrong(struct str text, struct conf_pos *pos)
{
	struct str line = conf_slip_at(text, (struct conf_pos){pos->line, 1});
	struct str at = conf_slip_at(text, *pos);
	const char *wrong = line_dash_wrong(text, pos->line, pos);

	if (!wrong && pos->line > 1)
		wrong = line_dash_wrong(text, pos->line - 1, pos);
	if (wrong)
		return wrong;
	line.n -= at.n;
	return line.n && memmem(line.p, line.n, ": ", 2)
		? "a value with `: ` in it, or with `:` at its end, must be in quotes" : NULL;
}

/* `at`, which begins with a `:`, is in or behind an IPv6 address in brackets. */
static bool is_ip6(struct str at, struct conf_pos pos)
{
	if (pos.column < 2)
		return false;
	return at.p[-1] == '[' ? str_starts(at, STR("::"))
		: at.p[-1] == ']' && at.n > 1 && at.p[1] >= '0' && at.p[1] <= '9';
}

const char *conf_slip(struct str text, const char *problem, uint32_t begin, struct conf_pos *pos)
{
	struct str at = conf_slip_at(text, *pos);

	if (strstr(problem, "mapping values are not allowed"))
		return colon_wrong(text, pos);
	if (strstr(problem, "expected '-' indicator"))
		return dash_wrong(at);
	if (!at.n)
		return NULL;
	if (at.p[0] == '-' && strstr(problem, "expected key"))
		return line_dash_wrong(text, begin, pos);
	if (at.p[0] != ':')
		return NULL;
	if (is_ip6(at, *pos))
		return QUOTE_IP6;
	if (strstr(problem, "unexpected ':'"))
		return "quote a value with `:` at its end inside `[ ]` or `{ }`";
	if (strstr(problem, "expected ',' or") && pos->line == begin)
		return "a `,` is missing, or quotes around a value with `: ` inside `[ ]` or `{ }`";
	return strstr(problem, "expected node content")
		? "quote a value that begins with `:` inside `[ ]` or `{ }`" : NULL;
}

const char *conf_slip_scalar(struct str text, bool dollar, struct conf_pos *pos)
{
	struct str at = conf_slip_at(text, *pos);

	if (dollar && at.n && at.p[0] == '{') {
		pos->column--;
		return "quote a value with `${...}` inside `[ ]` or `{ }`";
	}
	for (; at.n && at.p[0] == ' '; pos->column++)
		at = tail(at, 1);
	if (!at.n || (at.p[0] != '{' && at.p[0] != '['))
		return NULL;
	return at.p[0] == '{' ? "a `,` is missing, or quotes around a value with `{` inside `[ ]` or `{ }`"
		: "a `,` is missing, or quotes around a value with `[` inside `[ ]` or `{ }`";
}

const char *conf_slip_key(struct str key)
{
	const char *wrong = dash_wrong(key);

	return !wrong ? "" : str_eq(str_of(wrong), STR(NO_BLANK)) ? ": " NO_BLANK : ": " ODD_BLANK;
}
