/* Messages as text, for tables of expectations. */
#ifndef THIMBLE_TEST_H1_TRACE_H
#define THIMBLE_TEST_H1_TRACE_H

#include "lib/http/codec.h"
#include "lib/http/h1.h"

struct trace {
	char text[4096];
	size_t n;
};

void trace_add(struct trace *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* "GET /x a.test sized=5 close | A: b | C: d" */
void trace_head(struct trace *t, const struct head *h);
const char *fault_name(enum codec_fault f);

/* Feeds `in`, `step` bytes at a time, and then the end when `eof`; what came out, until
 * nothing more comes: "HEAD ...\nBODY hello\nEND\n", body pieces joined.  Between calls a
 * codec whose head is incomplete is thrown away but for its mark, as the proxy does, when
 * `forget`. */
void trace_feed(struct trace *t, struct h1 *c, struct str in, size_t step, bool eof, bool forget);

#endif
