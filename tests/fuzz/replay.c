/*
 * replay.c - runs a fuzzer over the files of a corpus and over mutations of
 * them drawn from a fixed seed. For builds without libFuzzer.
 *
 *     fuzz-NAME DIRECTORY [MUTATIONS-PER-FILE [SEED]]
 */
#include <dirent.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"

#define INPUT_MAX 65536
#define MUTATIONS 2000

/* xorshift64*: the same numbers everywhere. */
static uint64_t draw(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(2685821657736338717);
}

/* One to four changes: a bit, a byte, a number made huge, a cut, a run copied elsewhere. Returns the new size. */
static size_t mutate(uint8_t *bytes, size_t size, uint64_t *state)
{
	for (uint64_t changes = 1 + draw(state) % 4; changes && size; changes--) {
		size_t at = draw(state) % size, other = draw(state) % size;
		size_t run = 1 + draw(state) % 16;

		switch (draw(state) % 5) {
		case 0:
			bytes[at] ^= (uint8_t)(1 << draw(state) % 8);
			break;
		case 1:
			bytes[at] = (uint8_t)draw(state);
			break;
		case 2:
			for (size_t i = at; i < size && i < at + 8; i++)
				bytes[i] = draw(state) % 2 ? 0xff : 0;
			break;
		case 3:
			size = at;
			break;
		case 4:
			if (at + run <= size && other + run <= size)
				memmove(bytes + at, bytes + other, run);
			break;
		}
	}
	return size;
}

/* In memory of exactly its size, so that the sanitizer sees every byte read behind it. */
static void run(const uint8_t *bytes, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	if (!copy)
		exit(EXIT_FAILURE);
	memcpy(copy, bytes, size);
	LLVMFuzzerTestOneInput(copy, size);
	free(copy);
}

static size_t read_file(const char *directory, const char *name, uint8_t *bytes)
{
	char path[4096];
	size_t size;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	f = fopen(path, "re");
	if (!f) {
		perror(path);
		exit(EXIT_FAILURE);
	}
	size = fread(bytes, 1, INPUT_MAX, f);
	fclose(f);
	return size;
}

static int is_input(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

int main(int argc, char **argv)
{
	static uint8_t original[INPUT_MAX], bytes[INPUT_MAX];
	unsigned long mutations = argc > 2 ? strtoul(argv[2], NULL, 10) : MUTATIONS, inputs = 0;
	uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 0) : 0x9e3779b97f4a7c15, state = seed;
	struct dirent **entries;
	int count = argc > 1 ? scandir(argv[1], &entries, is_input, alphasort) : -1;

	if (count <= 0) {
		fprintf(stderr,
			"usage: %s CORPUS-DIRECTORY [MUTATIONS [SEED]], and the directory must have files\n",
			argv[0]);
		return 2;
	}
	run(original, 0);
	for (int i = 0; i < count; i++) {
		size_t size = read_file(argv[1], entries[i]->d_name, original);

		run(original, size);
		for (unsigned long n = 0; n < mutations; n++, inputs++) {
			memcpy(bytes, original, size);
			run(bytes, mutate(bytes, size, &state));
		}
		free(entries[i]);
	}
	free(entries);
	printf("%d files, %lu mutations, seed %#llx: all promises kept\n", count, inputs,
	       (unsigned long long)seed);
	return 0;
}
