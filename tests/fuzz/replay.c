/*
 * replay.c - runs a fuzz target over every file of a corpus folder, then over mutations of each (bits flipped, cut short, doubled), so that the
 * suite exercises the targets without clang. The mutations come from a fixed seed: a failure repeats.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MUTATIONS_PER_FILE 200
#define MAX_FILE (1u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* A copy of exactly `size` bytes, so that AddressSanitizer sees the first byte read behind it. */
static void run_exact(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size == 0 ? 1 : size);
	if (copy == NULL)
		abort();
	memcpy(copy, data, size);
	LLVMFuzzerTestOneInput(copy, size);
	free(copy);
}

static void mutate_and_run(const uint8_t *data, size_t size, uint64_t *random)
{
	uint8_t *m = malloc(size * 2 + 1);
	if (m == NULL)
		abort();
	for (int i = 0; i < MUTATIONS_PER_FILE; i++) {
		size_t n = size;
		memcpy(m, data, size);
		switch (next_random(random) % 4) {
		case 0:
			n = size == 0 ? 0 : next_random(random) % size;
			break;
		case 1:
			memcpy(m + size, data, size);
			n = size * 2;
			break;
		default:
			for (uint64_t k = next_random(random) % 8; size > 0 && k > 0; k--)
				m[next_random(random) % size] = (uint8_t)next_random(random);
		}
		run_exact(m, n);
	}
	free(m);
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: %s CORPUS_FOLDER\n", argv[0]);
		return 2;
	}
	DIR *dir = opendir(argv[1]);
	if (dir == NULL) {
		perror(argv[1]);
		return 2;
	}
	static uint8_t data[MAX_FILE];
	uint64_t random = 0x9e3779b97f4a7c15;
	unsigned int files = 0;
	for (struct dirent *e; (e = readdir(dir)) != NULL;) {
		char path[4096];
		struct stat st;
		snprintf(path, sizeof(path), "%s/%s", argv[1], e->d_name);
		FILE *f = stat(path, &st) == 0 && S_ISREG(st.st_mode) ? fopen(path, "rb") : NULL;
		if (f == NULL)
			continue;
		size_t size = fread(data, 1, sizeof(data), f);
		fclose(f);
		run_exact(data, size);
		mutate_and_run(data, size, &random);
		files++;
	}
	closedir(dir);
	printf("%u corpus files, %d mutations each\n", files, MUTATIONS_PER_FILE);
	return files > 0 ? 0 : 1;
}
