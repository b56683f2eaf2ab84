/* Where log lines end up: a file, a pipe, a socket, a terminal.  Writer thread only. */
#ifndef THIMBLE_PROXY_LOGSINK_H
#define THIMBLE_PROXY_LOGSINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>
#include "lib/base/err.h"
#include "proxy/log.h"

struct logsink {
	char *name;		/* owned; the path, or "stdout", "stderr" */
	enum log_sink kind;
	int fd;			/* owned when `own` */
	bool own;
	bool socket;
	bool piecemeal;		/* blocking and not a file: write only what poll promises room for */

	bool blocked;		/* took nothing or not all; wait until fd is writable */
	int error;		/* errno of the last write, 0 when it went well */
	bool failing;		/* an error was told, and no write went well since */
	int64_t retry_ms;	/* after an error: not before this time */
	struct logring *middle;	/* borrowed; the ring whose record was written in part, or NULL */
};

/* Opens `dest`; on failure nothing is open, and `why` holds the reason in words. */
enum err logsink_open(struct logsink *s, const struct log_dest *dest, char *why, size_t why_n) MUST_USE;
void logsink_close(struct logsink *s);
/* Opens the file again by its name.  ERR_SYS, with errno, leaves the old one in use. */
enum err logsink_reopen(struct logsink *s) MUST_USE;
/* Both lead to the same file, pipe, socket or terminal. */
bool logsink_same(const struct logsink *a, const struct logsink *b);
/* Writes what the sink takes without waiting (it may shorten `iov`) and returns how many bytes that were; when not
 * all, `blocked` or `error` says why. */
size_t logsink_write(struct logsink *s, struct iovec *iov, int n);

#endif
