/* Files that are to be read again when they change: written in place, replaced by another, or reached by a symbolic link that
 * is (the way of Kubernetes, where a link to a folder is swapped). */
#ifndef THIMBLE_NET_WATCH_H
#define THIMBLE_NET_WATCH_H

#include <stdbool.h>
#include "lib/base/err.h"

struct watch;

/* NULL: no memory, or the kernel has none to give (errno). */
struct watch *watch_new(void) MUST_USE;
/* NULL is accepted. */
void watch_free(struct watch *w);

/* Readable when something happened: to be watched level-triggered, for watch_news. */
int watch_fd(const struct watch *w);

/* What is watched, named anew: between the two, watch_add for each file; those that are not added are forgotten.  A link that
 * leads elsewhere, or a folder that is another one, is seen by naming the files again. */
void watch_begin(struct watch *w);
void watch_end(struct watch *w);

/* A file that may be there or not, at `path`.  ERR_MEM; ERR_SYS: not all that leads to it can be watched (errno). */
MUST_USE enum err watch_add(struct watch *w, const char *path);

/* Whether something has happened to one of the files since it was last asked.  It may say so when nothing has. */
bool watch_news(struct watch *w);

#endif
