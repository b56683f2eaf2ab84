/* Door: snapshot_error, how the makers of this room say why they refused.
 * Owns nothing.  Called by service, route, router and snapshot while building;
 * never on the way of a request. */
#include "dispatch/error.h"

#include <stdarg.h>
#include <stdio.h>

enum err snapshot_error_set(struct snapshot_error *e, enum err err, const char *format, ...)
{
	va_list args;

	if (!e)
		return err;
	*e = (struct snapshot_error){.err = err};
	va_start(args, format);
	vsnprintf(e->text, sizeof(e->text), format, args);
	va_end(args);
	return err;
}
