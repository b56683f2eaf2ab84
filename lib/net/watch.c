/* Door: changes of files, by inotify.  Owns its descriptor, and a list of places: a folder and a name in it, one for the file
 * and one for each symbolic link on the way to it, since whatever changes where a path leads renames one of those.  Called
 * by the main thread.
 *
 * Never reads a file.  It only says that reading one is worth it: the caller compares, and looks from time to time
 * anyway, for what the kernel does not tell (network file systems, a folder above that was moved). */
#include "lib/net/watch.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "lib/base/mem.h"

#define LINKS_MAX 40	/* as the kernel has it */
#define EVENTS (IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_CREATE | IN_DELETE | IN_ATTRIB | IN_ONLYDIR)

struct place {
	int wd;			/* of the folder */
	bool kept;		/* named since watch_begin */
	char name[];		/* in it */
};

struct watch {
	int fd;
	struct place **places;	/* owned */
	size_t n, room;
};

struct watch *watch_new(void)
{
	struct watch *w = mem_zalloc(sizeof(*w));

	if (!w) {
		errno = ENOMEM;
		return NULL;
	}
	w->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (w->fd >= 0)
		return w;
	mem_free(w);
	return NULL;
}

void watch_free(struct watch *w)
{
	if (!w)
		return;
	close(w->fd);
	for (size_t i = 0; i < w->n; i++)
		mem_free(w->places[i]);
	mem_free(w->places);
	mem_free(w);
}

int watch_fd(const struct watch *w)
{
	return w->fd;
}

void watch_begin(struct watch *w)
{
	for (size_t i = 0; i < w->n; i++)
		w->places[i]->kept = false;
}

static bool folder_used(const struct watch *w, int wd)
{
	for (size_t i = 0; i < w->n; i++)
		if (w->places[i]->wd == wd)
			return true;
	return false;
}

void watch_end(struct watch *w)
{
	for (size_t i = 0; i < w->n;) {
		struct place *p = w->places[i];

		if (p->kept) {
			i++;
			continue;
		}
		w->places[i] = w->places[--w->n];
		if (!folder_used(w, p->wd))
			inotify_rm_watch(w->fd, p->wd);
		mem_free(p);
	}
}

static struct place *place_find(const struct watch *w, int wd, const char *name)
{
	for (size_t i = 0; i < w->n; i++)
		if (w->places[i]->wd == wd && strcmp(w->places[i]->name, name) == 0)
			return w->places[i];
	return NULL;
}

/* Watches the entry `name` of the folder at `folder`. */
static enum err place_add(struct watch *w, const char *folder, const char *name)
{
	int wd = inotify_add_watch(w->fd, folder, EVENTS);
	struct place *p = wd >= 0 ? place_find(w, wd, name) : NULL, **grown;
	size_t n = strlen(name) + 1;

	if (wd < 0)
		return ERR_SYS;
	if (p) {
		p->kept = true;
		return OK;
	}
	if (w->n == w->room) {
		grown = mem_realloc(w->places, (w->room ? 2 * w->room : 8) * sizeof(*grown));
		if (!grown)
			return ERR_MEM;
		w->places = grown;
		w->room = w->room ? 2 * w->room : 8;
	}
	p = mem_alloc(sizeof(*p) + n);
	if (!p)
		return ERR_MEM;
	p->wd = wd;
	p->kept = true;
	memcpy(p->name, name, n);
	w->places[w->n++] = p;
	return OK;
}

/* Puts `front`, and a slash if it has none, before `rest`; false: too long. */
static bool join(char path[PATH_MAX], const char *front, size_t front_n, const char *rest)
{
	char all[PATH_MAX];
	int n = snprintf(all, sizeof(all), "%.*s%s%s", (int)front_n, front, front_n && front[front_n - 1] != '/' ? "/" : "", rest);

	if (n < 0 || n >= PATH_MAX)
		return false;
	memcpy(path, all, (size_t)n + 1);
	return true;
}

/* Looks at the next name of a path whose first `done` bytes are no link, and says where that is then.  *rest is what is
 * behind it; a link takes the place of what led to it. */
static enum err step(struct watch *w, char path[PATH_MAX], size_t *done, unsigned *links)
{
	char folder[PATH_MAX], name[NAME_MAX + 1], to[PATH_MAX], one[PATH_MAX];
	size_t begin = *done + strspn(path + *done, "/"), n = strcspn(path + begin, "/");
	const char *rest = path + begin + n + strspn(path + begin + n, "/");
	ssize_t link;

	if (n > NAME_MAX)
		return ERR_LIMIT;
	memcpy(name, path + begin, n);
	name[n] = '\0';
	snprintf(folder, sizeof(folder), "%.*s", (int)(begin ? begin : 1), begin ? path : ".");
	snprintf(one, sizeof(one), "%.*s", (int)(begin + n), path);
	link = readlink(one, to, sizeof(to) - 1);
	*done = begin + n;
	if (link < 0 && errno == ENOENT)	/* what is behind it is not there either */
		path[begin + n] = '\0';
	if (link < 0)
		return *rest && path[begin + n] ? OK : place_add(w, folder, name);
	if (++*links > LINKS_MAX)
		return ERR_LIMIT;
	to[link] = '\0';
	if (*rest && !join(to, to, (size_t)link, rest))
		return ERR_LIMIT;
	*done = to[0] == '/' ? 0 : begin;
	if (place_add(w, folder, name) != OK)
		return ERR_SYS;
	return (to[0] == '/' ? join(path, "", 0, to) : join(path, path, begin, to)) ? OK : ERR_LIMIT;
}

enum err watch_add(struct watch *w, const char *path)
{
	char at[PATH_MAX];
	size_t done = 0;
	unsigned links = 0;
	enum err err = join(at, "", 0, path) ? OK : ERR_LIMIT;

	while (err == OK && at[done + strspn(at + done, "/")])
		err = step(w, at, &done, &links);
	if (err == ERR_LIMIT) {
		errno = ENAMETOOLONG;
		err = ERR_SYS;
	}
	return err;
}

bool watch_news(struct watch *w)
{
	char buffer[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	bool news = false;
	ssize_t got;

	while ((got = read(w->fd, buffer, sizeof(buffer))) > 0)
		for (ssize_t at = 0; at < got;) {
			const struct inotify_event *e = (const struct inotify_event *)(buffer + at);

			news = news || (e->mask & IN_Q_OVERFLOW) || (e->len ? place_find(w, e->wd, e->name) != NULL
				: (e->mask & (IN_IGNORED | IN_UNMOUNT)) && folder_used(w, e->wd));
			at += (ssize_t)(sizeof(*e) + e->len);
		}
	return news;
}
