/* The chunked reader: a state machine over bytes that may end anywhere.
 *
 * Called by the HTTP/1 codec alone.  Owns nothing and copies nothing: body pieces
 * lie in the input.  It never looks into the trailer section.
 *
 * Every byte of a size line is accepted by exactly one rule of the grammar; there
 * is no "skip to the end of the line", which is where peers that read a line
 * differently are played against each other ("funky chunks", 2025). */
#include "lib/http/chunked.h"
#include "lib/http/token.h"

enum {
	SIZE,		/* hex digits */
	SIZE_SPACE,	/* white space behind them: a ';' must follow */
	EXT_SPACE,	/* behind ';', before the name */
	EXT_NAME,
	EXT_NAME_SPACE,	/* behind the name: '=' or ';' must follow */
	EXT_EQUAL,	/* behind '=', before the value */
	EXT_TOKEN,
	EXT_QUOTED,
	EXT_ESCAPE,	/* behind a backslash in quotes */
	EXT_END,	/* behind the closing quote */
	SIZE_LF,
	DATA,
	DATA_CR,
	DATA_LF,
	TRAILERS,
};

/* A size line of a one-byte chunk may have this much for nothing, and each body
 * byte pays for two bytes of lines more. */
#define FREE_PER_LINE 16

static int hex_of(unsigned char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool is_space(unsigned char c)
{
	return c == ' ' || c == '\t';
}

/* What may stand between quotes, or behind a backslash there. */
static bool quoted_char(unsigned char c)
{
	return c == '\t' || (c >= ' ' && c != 0x7f);
}

/* The state behind a byte that may end the size or an extension; -1: not such a byte. */
static int line_goes_on(unsigned char c)
{
	return c == '\r' ? SIZE_LF : c == ';' ? EXT_SPACE : -1;
}

/* One byte of an extension: the next state, or -1. */
static int ext_next(int state, unsigned char c)
{
	switch (state) {
	case EXT_SPACE:
		return is_space(c) ? EXT_SPACE : token_char(c) ? EXT_NAME : -1;
	case EXT_NAME:
		if (token_char(c))
			return EXT_NAME;
		return c == '=' ? EXT_EQUAL : is_space(c) ? EXT_NAME_SPACE : line_goes_on(c);
	case EXT_NAME_SPACE:
		return is_space(c) ? EXT_NAME_SPACE : c == '=' ? EXT_EQUAL : c == ';' ? EXT_SPACE : -1;
	case EXT_EQUAL:
		if (is_space(c))
			return EXT_EQUAL;
		return c == '"' ? EXT_QUOTED : token_char(c) ? EXT_TOKEN : -1;
	case EXT_TOKEN:
		return token_char(c) ? EXT_TOKEN : is_space(c) ? SIZE_SPACE : line_goes_on(c);
	case EXT_QUOTED:
		return c == '"' ? EXT_END : c == '\\' ? EXT_ESCAPE : quoted_char(c) ? EXT_QUOTED : -1;
	case EXT_ESCAPE:
		return quoted_char(c) ? EXT_QUOTED : -1;
	case EXT_END:
		return is_space(c) ? SIZE_SPACE : line_goes_on(c);
	default:
		return -1;
	}
}

/* One byte of a size line; the next state, or -1. */
static int line_next(struct chunked *c, unsigned char b)
{
	int digit;

	switch (c->state) {
	case SIZE:
		digit = hex_of(b);
		if (digit < 0)
			return c->digits == 0 ? -1 : is_space(b) ? SIZE_SPACE : line_goes_on(b);
		if (c->digits == 16 || c->left >> 59)
			return -1;
		c->digits++;
		c->left = c->left << 4 | (unsigned)digit;
		return SIZE;
	case SIZE_SPACE:
		return is_space(b) ? SIZE_SPACE : b == ';' ? EXT_SPACE : -1;
	case SIZE_LF:
		return b != '\n' ? -1 : c->left ? DATA : TRAILERS;
	case DATA_CR:
		return b == '\r' ? DATA_LF : -1;
	case DATA_LF:
		return b == '\n' ? SIZE : -1;
	default:
		return ext_next(c->state, b);
	}
}

/* At the end of a size line: what it was longer than its chunk is worth. */
static bool line_paid(struct chunked *c, uint32_t max_line)
{
	uint64_t credit = c->left > UINT32_MAX ? UINT64_MAX : FREE_PER_LINE + 2 * c->left;
	uint64_t debit = (uint64_t)c->excess + c->line;

	c->excess = debit > credit ? (uint32_t)(debit - credit) : 0;
	return c->excess <= max_line;
}

/* Consumes from *in what it could use, and says what it is. */
enum chunked_kind chunked_next(struct chunked *c, struct str *in, uint32_t max_line, struct str *piece)
{
	while (c->state != TRAILERS) {
		if (in->n == 0)
			return CHUNKED_MORE;
		if (c->state == DATA) {
			*piece = (struct str){in->p, in->n < c->left ? in->n : (size_t)c->left};
			in->p += piece->n;
			in->n -= piece->n;
			c->left -= piece->n;
			if (c->left == 0) {
				c->state = DATA_CR;
				c->line = c->digits = 0;
			}
			return CHUNKED_DATA;
		}
		int next = line_next(c, (unsigned char)in->p[0]);
		if (next < 0)
			return CHUNKED_BAD;
		if (++c->line > max_line)
			return CHUNKED_OVERHEAD;
		in->p++;
		in->n--;
		c->state = (uint8_t)next;
		if ((next == DATA || next == TRAILERS) && !line_paid(c, max_line))
			return CHUNKED_OVERHEAD;
	}
	return CHUNKED_TRAILERS;
}
