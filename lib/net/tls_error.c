/* Door: texts for people out of OpenSSL's queue of errors.  Owns nothing.  Called when something was refused. */
#include "lib/net/tls_error.h"

#include <openssl/err.h>
#include <stdarg.h>
#include <stdio.h>

enum err tls_error_set(struct tls_error *e, enum err err, enum tls_part part, const char *format, ...)
{
	va_list args;

	ERR_clear_error();
	if (!e)
		return err;
	e->err = err;
	e->part = part;
	va_start(args, format);
	vsnprintf(e->text, sizeof(e->text), format, args);
	va_end(args);
	return err;
}

const char *tls_error_reason(char *text, size_t n)
{
	unsigned long code = ERR_peek_last_error();
	const char *reason = code ? ERR_reason_error_string(code) : NULL;

	if (reason)
		snprintf(text, n, "%s", reason);
	else if (code)
		snprintf(text, n, "error %lx", code);
	else
		snprintf(text, n, "no reason given");
	ERR_clear_error();
	return text;
}
