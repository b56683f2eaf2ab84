/* The file of host names, /etc/hosts: kept as its text, read again when it has changed. */
#ifndef THIMBLE_NET_HOSTS_H
#define THIMBLE_NET_HOSTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include "lib/base/err.h"
#include "lib/base/str.h"

/* What a larger file has beyond is not seen. */
#define HOSTS_MAX (1u << 20)
/* Addresses of one name and family; more are not seen. */
#define HOSTS_ADDRESSES 64

/* Whether a file is another one than it was, or has changed; all zero before it was first looked at. */
struct file_mark {
	dev_t device;
	ino_t inode;
	off_t size;
	struct timespec changed;
	bool there;
};

/* Notes how the file at `path` is now; true when that is not as it was noted. */
bool file_mark_changed(struct file_mark *m, const char *path);

struct hosts {		/* embedded; all zero: nothing read yet */
	struct file_mark mark;
	char *text;	/* owned */
	size_t n;
};

void hosts_fini(struct hosts *h);
/* Reads the file again if it has changed.  What cannot be read has no names. */
void hosts_look(struct hosts *h, const char *path);

/* The addresses of `name`, in the order of the file: true when it has any, of whatever family. */
bool hosts_find(const struct hosts *h, struct str name, uint8_t ip4[][16], size_t *n4, uint8_t ip6[][16], size_t *n6);

#endif
