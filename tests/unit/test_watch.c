/* lib/net/watch: what replaces the contents of a file, in every way, and what does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "lib/base/mem.h"
#include "lib/net/watch.h"

static char root[64];
static struct watch *w;

static int removed(const char *path, const struct stat *s, int type, struct FTW *f)
{
	(void)s, (void)type, (void)f;
	return remove(path);
}

static int begin(void **state)
{
	(void)state;
	strcpy(root, "/tmp/thimble-watch-XXXXXX");
	assert_non_null(mkdtemp(root));
	assert_int_equal(chdir(root), 0);
	w = watch_new();
	assert_non_null(w);
	return 0;
}

static int end(void **state)
{
	(void)state;
	watch_free(w);
	assert_int_equal(chdir("/"), 0);
	return nftw(root, removed, 16, FTW_DEPTH | FTW_PHYS);
}

static const char *at(const char *name)
{
	static char path[PATH_MAX];

	snprintf(path, sizeof path, "%s/%s", root, name);
	return path;
}

static void put(const char *name, const char *text)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void look(const char *const *paths, size_t n)
{
	watch_begin(w);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(watch_add(w, paths[i]), OK);
	watch_end(w);
	watch_news(w);
	assert_false(watch_news(w));
}

static void look_at(const char *path)
{
	look(&path, 1);
}

static void plain_files(void **state)
{
	(void)state;
	put("a", "1");
	put("b", "1");
	look_at(at("a"));
	put("a", "2");
	assert_true(watch_news(w));
	assert_false(watch_news(w));
	put("b", "2");		/* a neighbour */
	assert_false(watch_news(w));
	put("c", "3");
	assert_false(watch_news(w));
	assert_int_equal(rename("c", "a"), 0);
	assert_true(watch_news(w));
	assert_int_equal(unlink("a"), 0);
	assert_true(watch_news(w));
	put("a", "4");
	assert_true(watch_news(w));
	assert_int_equal(chmod("a", 0), 0);
	assert_true(watch_news(w));
	assert_int_equal(link("b", "d"), 0);
	assert_false(watch_news(w));
}

static void names_that_are_relative(void **state)
{
	(void)state;
	assert_int_equal(mkdir("sub", 0700), 0);
	put("x", "1");
	put("sub/y", "1");
	look((const char *[]){"x", "sub/../sub/./y"}, 2);
	put("x", "2");
	assert_true(watch_news(w));
	put("sub/y", "2");
	assert_true(watch_news(w));
}

/* A Secret of Kubernetes: tls.crt -> ..data/tls.crt, ..data -> a folder, and a new ..data comes by rename. */
static void a_link_to_a_folder_is_swapped(void **state)
{
	(void)state;
	assert_int_equal(mkdir("..1", 0700), 0);
	assert_int_equal(mkdir("..2", 0700), 0);
	put("..1/tls.crt", "1");
	put("..2/tls.crt", "2");
	assert_int_equal(symlink("..1", "..data"), 0);
	assert_int_equal(symlink("..data/tls.crt", "tls.crt"), 0);
	look_at(at("tls.crt"));
	put("..2/tls.crt", "3");
	assert_false(watch_news(w));	/* nothing leads there yet */
	assert_int_equal(symlink("..2", "..data_tmp"), 0);
	assert_false(watch_news(w));
	assert_int_equal(rename("..data_tmp", "..data"), 0);
	assert_true(watch_news(w));
	look_at(at("tls.crt"));
	assert_int_equal(unlink("..1/tls.crt"), 0);
	assert_int_equal(rmdir("..1"), 0);
	assert_false(watch_news(w));
	put("..2/tls.crt", "4");
	assert_true(watch_news(w));
}

static void links_on_the_way(void **state)
{
	(void)state;
	assert_int_equal(mkdir("live", 0700), 0);
	assert_int_equal(mkdir("archive", 0700), 0);
	put("archive/1.pem", "1");
	put("archive/2.pem", "2");
	assert_int_equal(symlink("../archive/1.pem", "live/cert.pem"), 0);
	assert_int_equal(symlink(at("live"), "current"), 0);
	look_at(at("current/cert.pem"));
	put("archive/1.pem", "3");
	assert_true(watch_news(w));
	assert_int_equal(unlink("live/cert.pem"), 0);
	assert_int_equal(symlink("../archive/2.pem", "live/cert.pem"), 0);
	assert_true(watch_news(w));
	look_at(at("current/cert.pem"));
	put("archive/1.pem", "4");
	assert_false(watch_news(w));
	assert_int_equal(unlink("current"), 0);
	assert_true(watch_news(w));
}

static void what_is_not_there_may_come(void **state)
{
	(void)state;
	look_at(at("no/where"));
	assert_int_equal(mkdir("no", 0700), 0);
	assert_true(watch_news(w));
	look_at(at("no/where"));
	put("no/where", "1");
	assert_true(watch_news(w));
}

static void a_folder_that_goes_is_told(void **state)
{
	(void)state;
	assert_int_equal(mkdir("f", 0700), 0);
	look_at(at("f/x"));
	assert_int_equal(rmdir("f"), 0);
	assert_true(watch_news(w));
}

static void what_is_not_named_again_is_forgotten(void **state)
{
	char two[PATH_MAX];

	(void)state;
	assert_int_equal(mkdir("f", 0700), 0);
	strcpy(two, at("f/x"));
	look((const char *[]){two, at("y")}, 2);
	put("f/x", "1");
	assert_true(watch_news(w));
	look_at(at("y"));
	put("f/x", "2");
	assert_false(watch_news(w));
	put("y", "2");
	assert_true(watch_news(w));
}

static void what_cannot_be(void **state)
{
	char path[PATH_MAX + 16];

	(void)state;
	assert_int_equal(symlink("b", "a"), 0);
	assert_int_equal(symlink("a", "b"), 0);
	watch_begin(w);
	assert_int_equal(watch_add(w, "a"), ERR_SYS);
	put("file", "");
	assert_int_equal(watch_add(w, "file/x"), ERR_SYS);
	memset(path, 'x', sizeof path - 1);
	path[sizeof path - 1] = '\0';
	assert_int_equal(watch_add(w, path), ERR_SYS);
	path[PATH_MAX - 2] = '\0';	/* one name, too long */
	assert_int_equal(watch_add(w, path), ERR_SYS);
	watch_end(w);
	watch_free(NULL);
}

static void no_memory(void **state)
{
	enum err err = OK;

	(void)state;
	for (size_t n = 1; n < 9; n++) {
		watch_free(w);
		mem_fail_from(n);
		w = watch_new();
		if (w) {
			watch_begin(w);
			err = watch_add(w, "x");
			watch_end(w);
		}
		mem_fail_from(0);
		if (w && err == OK)
			return;
		assert_true(!w || err == ERR_MEM);
	}
	fail();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(plain_files, begin, end),
		cmocka_unit_test_setup_teardown(names_that_are_relative, begin, end),
		cmocka_unit_test_setup_teardown(a_link_to_a_folder_is_swapped, begin, end),
		cmocka_unit_test_setup_teardown(links_on_the_way, begin, end),
		cmocka_unit_test_setup_teardown(what_is_not_there_may_come, begin, end),
		cmocka_unit_test_setup_teardown(a_folder_that_goes_is_told, begin, end),
		cmocka_unit_test_setup_teardown(what_is_not_named_again_is_forgotten, begin, end),
		cmocka_unit_test_setup_teardown(what_cannot_be, begin, end),
		cmocka_unit_test_setup_teardown(no_memory, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
