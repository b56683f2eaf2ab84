/*
 * replay: feeds stored inputs to a fuzz target, once each.
 *
 * Purpose   a corpus is a regression test on any compiler, without libFuzzer.
 * Owns      one input at a time, in a heap block of exactly its size, so that
 *           a sanitizer sees the first byte read past its end.
 * Called by ctest (replay_NAME over fuzz/corpus/NAME) and by hand:
 *           build/asan/replay_h1 crash-1234 some/directory
 * Never     changes an input, nor passes quietly when it was given none.
 */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv) __attribute__((weak));

static unsigned long replayed;

static int replay_file(const char *path, size_t size)
{
	FILE *f = fopen(path, "rb");
	uint8_t *data;
	int rc = -1;

	if (!f) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return -1;
	}
	data = mem_alloc(size ? size : 1);
	if (data && fread(data, 1, size, f) == size) {
		LLVMFuzzerTestOneInput(data, size);
		replayed++;
		rc = 0;
	} else {
		fprintf(stderr, "%s: not read\n", path);
	}
	mem_free(data);
	fclose(f);
	return rc;
}

static int replay_path(const char *path);

static int replay_directory(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *e;
	char child[4096];
	int rc = 0;

	if (!d) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return -1;
	}
	while ((e = readdir(d))) {
		if (e->d_name[0] == '.')
			continue;
		if (snprintf(child, sizeof child, "%s/%s", path, e->d_name) >= (int)sizeof child)
			continue;
		rc |= replay_path(child);
	}
	closedir(d);
	return rc;
}

static int replay_path(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return -1;
	}
	return S_ISDIR(st.st_mode) ? replay_directory(path) : replay_file(path, (size_t)st.st_size);
}

int main(int argc, char **argv)
{
	int rc = 0;

	if (LLVMFuzzerInitialize)
		LLVMFuzzerInitialize(&argc, &argv);
	for (int i = 1; i < argc; i++)
		rc |= replay_path(argv[i]);
	printf("%lu inputs replayed\n", replayed);
	return rc || !replayed;
}
