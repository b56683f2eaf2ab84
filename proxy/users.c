/* users: see users.h.  Reads files for the main thread, at start and when a configuration is checked; never on the way of a
 * request.  Owns what it has read until the snapshot is made, which then has references of its own.  A file is
 * bounded, and is a file: nobody's pipe can hold up a start. */
#include "proxy/users.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/mem.h"

#define PATH_SHOWN 64	/* bytes of a path in a message; its end tells more than its beginning */

struct users_file {
	struct users_file *next;
	const struct htpasswd *users;	/* owned reference */
	char path[];
};

static const char *shown(const char *path)
{
	size_t n = strlen(path);

	return n > PATH_SHOWN ? path + n - PATH_SHOWN : path;
}

/* All of a file, and one byte more than it may have if it is too large; moved to the caller, *n bytes.  NULL: *err says why. */
static char *read_all(int fd, const char *path, size_t *n, struct snapshot_error *err)
{
	char *text = mem_alloc(HTPASSWD_TEXT_MAX + 1);
	ssize_t got = 1;

	*n = 0;
	if (!text)
		snapshot_error_set(err, ERR_MEM, "no memory for a file of users");
	while (text && got > 0 && *n <= HTPASSWD_TEXT_MAX) {
		got = read(fd, text + *n, HTPASSWD_TEXT_MAX + 1 - *n);
		if (got >= 0) {
			*n += (size_t)got;
		} else if (errno == EINTR) {
			got = 1;
		} else {
			snapshot_error_set(err, ERR_SYNTAX, "basic_auth: `%s` cannot be read: %s", shown(path), strerror(errno));
			mem_free(text);
			text = NULL;
		}
	}
	return text;
}

static const struct htpasswd *parse(const char *path, struct str text, struct snapshot_error *err)
{
	struct htpasswd_error e = {0};
	const struct htpasswd *h = htpasswd_new(text, &e);

	if (h)
		return h;
	if (e.err == ERR_MEM)
		snapshot_error_set(err, ERR_MEM, "%s", e.text);
	else if (e.line)
		snapshot_error_set(err, ERR_SYNTAX, "basic_auth: %s:%u: %s", shown(path), e.line, e.text);
	else
		snapshot_error_set(err, ERR_SYNTAX, "basic_auth: `%s`: %s", shown(path), e.text);
	return NULL;
}

static const struct htpasswd *load(const char *path, struct snapshot_error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	const struct htpasswd *h = NULL;
	struct stat st;
	char *text;
	size_t n;

	if (fd < 0) {
		snapshot_error_set(err, ERR_SYNTAX, "basic_auth: `%s` cannot be opened: %s", shown(path), strerror(errno));
		return NULL;
	}
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
		snapshot_error_set(err, ERR_SYNTAX, "basic_auth: `%s` is not a file", shown(path));
	} else {
		text = read_all(fd, path, &n, err);
		if (text) {
			h = parse(path, (struct str){ text, n }, err);
			explicit_bzero(text, n);
			mem_free(text);
		}
	}
	close(fd);
	return h;
}

/* The directory of `config`, with its slash; nothing for a path that needs none. */
static struct str directory(struct str config, struct str path)
{
	const char *slash = path.p[0] == '/' || config.n == 0 ? NULL : memrchr(config.p, '/', config.n);

	return slash ? (struct str){ config.p, (size_t)(slash + 1 - config.p) } : STR("");
}

const struct htpasswd *users_read(struct users_file **files, struct str config, struct str path, struct snapshot_error *err)
{
	struct str front = directory(config, path);
	struct users_file *f, *other;

	if (front.n + path.n >= PATH_MAX) {
		snapshot_error_set(err, ERR_SYNTAX, "basic_auth: the path of the file is too long");
		return NULL;
	}
	f = mem_alloc(sizeof *f + front.n + path.n + 1);
	if (!f) {
		snapshot_error_set(err, ERR_MEM, "no memory for a file of users");
		return NULL;
	}
	memcpy(f->path, front.p, front.n);
	memcpy(f->path + front.n, path.p, path.n);
	f->path[front.n + path.n] = '\0';
	for (other = *files; other; other = other->next)
		if (strcmp(other->path, f->path) == 0)
			break;
	f->users = other ? other->users : load(f->path, err);
	if (other || !f->users) {
		const struct htpasswd *users = f->users;

		mem_free(f);
		return users;
	}
	f->next = *files;
	*files = f;
	return f->users;
}

void users_free(struct users_file *files)
{
	while (files) {
		struct users_file *next = files->next;

		htpasswd_unref(files->users);
		mem_free(files);
		files = next;
	}
}
