/* Door: /etc/hosts.  Owns its text.  Called by resolver.c, on the main thread.
 *
 * Most such files have a few lines, so that a table of them would cost more than it saves: a name is looked for in the text. */
#include "lib/net/hosts.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <unistd.h>

#include "lib/base/mem.h"

bool file_mark_changed(struct file_mark *m, const char *path)
{
	struct file_mark now = {0};
	struct stat s;
	bool changed;

	if (stat(path, &s) == 0)
		now = (struct file_mark){ s.st_dev, s.st_ino, s.st_size, s.st_mtim, true };
	changed = now.device != m->device || now.inode != m->inode || now.size != m->size || now.there != m->there ||
		  now.changed.tv_sec != m->changed.tv_sec || now.changed.tv_nsec != m->changed.tv_nsec;
	*m = now;
	return changed;
}

void hosts_fini(struct hosts *h)
{
	mem_free(h->text);
	*h = (struct hosts){0};
}

/* All of the file, as far as it is looked at; NULL: nothing, or no memory. */
static char *file_text(const char *path, size_t size, size_t *n)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	char *p = fd >= 0 ? mem_alloc(size + 1) : NULL;
	ssize_t got;

	*n = 0;
	while (p && *n < size && (got = read(fd, p + *n, size - *n)) > 0)
		*n += (size_t)got;
	if (fd >= 0)
		close(fd);
	return p;
}

void hosts_look(struct hosts *h, const char *path)
{
	size_t size;

	if (!file_mark_changed(&h->mark, path))
		return;
	mem_free(h->text);
	size = h->mark.size < 0 ? 0 : h->mark.size > (off_t)HOSTS_MAX ? HOSTS_MAX : (size_t)h->mark.size;
	h->n = 0;
	h->text = h->mark.there && size ? file_text(path, size, &h->n) : NULL;
	if (h->mark.there && size && !h->text)
		h->mark = (struct file_mark){0};	/* it is tried again */
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v';
}

/* The next word of a line, which is taken off it; empty: none. */
static struct str word_take(struct str *line)
{
	struct str word;

	while (line->n && is_space(*line->p))
		line->p++, line->n--;
	word = (struct str){ line->p, 0 };
	while (line->n && !is_space(*line->p))
		line->p++, line->n--, word.n++;
	return word;
}

static void address_add(struct str text, uint8_t ip4[][16], size_t *n4, uint8_t ip6[][16], size_t *n6)
{
	char z[INET6_ADDRSTRLEN];
	uint8_t ip[16] = {0};

	if (text.n >= sizeof(z))
		return;
	memcpy(z, text.p, text.n);
	z[text.n] = '\0';
	if (inet_pton(AF_INET, z, ip) == 1 && *n4 < HOSTS_ADDRESSES)
		memcpy(ip4[(*n4)++], ip, 16);
	else if (inet_pton(AF_INET6, z, ip) == 1 && *n6 < HOSTS_ADDRESSES)
		memcpy(ip6[(*n6)++], ip, 16);
}

bool hosts_find(const struct hosts *h, struct str name, uint8_t ip4[][16], size_t *n4, uint8_t ip6[][16], size_t *n6)
{
	const char *end = h->n ? h->text + h->n : NULL;

	*n4 = *n6 = 0;
	for (const char *p = h->text, *next; p < end; p = next) {
		const char *newline = memchr(p, '\n', (size_t)(end - p)), *hash;
		struct str line = { p, (size_t)((newline ? newline : end) - p) }, address, word;

		next = newline ? newline + 1 : end;
		hash = line.n ? memchr(line.p, '#', line.n) : NULL;
		if (hash)
			line.n = (size_t)(hash - line.p);
		address = word_take(&line);
		while ((word = word_take(&line)).n)
			if (str_ieq(word, name)) {
				address_add(address, ip4, n4, ip6, n6);
				break;
			}
	}
	return *n4 + *n6 > 0;
}
