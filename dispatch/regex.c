/* Door: regex, the one file that knows PCRE2.  An expression comes from whoever may
 * write a route, the subject from any client: both are held to limits.  Owns, for
 * each router, the contexts and one spare match block.  No JIT: it wants memory
 * that is writable and executable.
 * Never matches a part of the subject, never reads it as UTF-8. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "dispatch/regex.h"

#include <pcre2.h>
#include <stdatomic.h>
#include <stdio.h>
#include "lib/base/mem.h"

/* A match costs about 20 ns a step: 1 ms at the worst.  Depth and heap bound the
 * memory that a deep backtrack takes, and the spare block keeps. */
#define STEPS_MAX 50000
#define DEPTH_MAX 2000
#define HEAP_MAX_KIB 512

struct regex_pool {
	pcre2_general_context *general;
	pcre2_compile_context *compile;
	pcre2_match_context *match;
	_Atomic(pcre2_match_data *) spare;	/* owned; whoever takes it puts NULL there */
};

static void *memory_get(size_t n, void *unused)
{
	(void)unused;
	return mem_alloc(n);
}

static void memory_give(void *p, void *unused)
{
	(void)unused;
	mem_free(p);
}

void regex_pool_free(struct regex_pool *p)
{
	if (!p)
		return;
	pcre2_match_data_free(atomic_load(&p->spare));
	pcre2_match_context_free(p->match);
	pcre2_compile_context_free(p->compile);
	pcre2_general_context_free(p->general);
	mem_free(p);
}

static struct regex_pool *pool_new(void)
{
	struct regex_pool *p = mem_zalloc(sizeof(*p));

	if (!p)
		return NULL;
	p->general = pcre2_general_context_create(memory_get, memory_give, NULL);
	if (p->general) {
		p->compile = pcre2_compile_context_create(p->general);
		p->match = pcre2_match_context_create(p->general);
	}
	if (!p->compile || !p->match) {
		regex_pool_free(p);
		return NULL;
	}
	pcre2_set_max_pattern_length(p->compile, REGEX_PATTERN_MAX);
	pcre2_set_match_limit(p->match, STEPS_MAX);
	pcre2_set_depth_limit(p->match, DEPTH_MAX);
	pcre2_set_heap_limit(p->match, HEAP_MAX_KIB);
	return p;
}

enum err regex_new(struct regex_pool **pool, struct str pattern, struct regex **out, char *why, size_t why_size)
{
	const uint32_t options = PCRE2_ANCHORED | PCRE2_ENDANCHORED | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_UTF |
				 PCRE2_NEVER_UCP | PCRE2_NEVER_BACKSLASH_C;
	char reason[120];
	pcre2_code *code;
	PCRE2_SIZE at;
	int error;

	if (!*pool && !(*pool = pool_new()))
		return ERR_MEM;
	code = pcre2_compile((PCRE2_SPTR)(pattern.p ? pattern.p : ""), pattern.n, options, &error, &at,
			     (*pool)->compile);
	if (code) {
		*out = (struct regex *)code;
		return OK;
	}
	if (error == PCRE2_ERROR_HEAP_FAILED)
		return ERR_MEM;
	pcre2_get_error_message(error, (PCRE2_UCHAR *)reason, sizeof(reason));
	snprintf(why, why_size, "%s at byte %zu of the expression", reason, (size_t)at);
	return ERR_SYNTAX;
}

void regex_free(struct regex *r)
{
	pcre2_code_free((pcre2_code *)r);
}

enum regex_match regex_match(struct regex_pool *p, const struct regex *r, struct str subject)
{
	pcre2_match_data *data = atomic_exchange_explicit(&p->spare, NULL, memory_order_acq_rel);
	int rc;

	if (!data)
		data = pcre2_match_data_create(1, p->general);
	if (!data)
		return REGEX_UNDECIDED;
	rc = pcre2_match((const pcre2_code *)r, (PCRE2_SPTR)(subject.p ? subject.p : ""), subject.n, 0, 0, data,
			 p->match);
	pcre2_match_data_free(atomic_exchange_explicit(&p->spare, data, memory_order_acq_rel));
	if (rc >= 0)
		return REGEX_YES;
	return rc == PCRE2_ERROR_NOMATCH ? REGEX_NO : REGEX_UNDECIDED;
}
