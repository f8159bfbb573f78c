/*
 * sample.h - a small store whose whole content is known: files of all sizes,
 * some written over after a checkpoint, some deleted, in four directories.
 */
#ifndef TESTS_CRASH_SAMPLE_H
#define TESTS_CRASH_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>

#include "store/store.h"

struct sample {
	unsigned files; /* a multiple of 8 */
	size_t largest; /* of the sizes there are, those above are left out */
	const char *passphrase; /* NULL: none */
};

extern const struct sample sample_usual;
/* Of which stores lie in tests/data: few and small, with sealed names. */
extern const struct sample sample_golden;

enum sample_end {
	SAMPLE_CLOSED, /* cleanly */
	SAMPLE_KILLED, /* synced, then the process ended: the last changes stand in the journal only */
};

/* Makes it, in a process of its own. */
void sample_make(const struct sample *sample, const char *path, enum sample_end end);
/* Opens it, puts something more into it (outside of what sample_verify reads), closes it. In a process of its own. */
void sample_change(const struct sample *sample, const char *path);
#define SAMPLE_LARGEST "/dir-1/file-13" /* 5 MiB, written twice */
int sample_open(const struct sample *sample, const char *path, bool read_only,
		struct store_open_report *ret_report, struct store **ret_store);

struct sample_result {
	unsigned same; /* names as they were */
	unsigned damaged; /* names that gave an error */
	char wrong[512]; /* what must never happen: other bytes, a missing item, an older state; "" if nothing did */
};

/* Reads everything in it. */
void sample_verify(const struct sample *sample, struct store *s, struct sample_result *ret_result);
/*
 * Removes each live file that cannot be read, as a user would, and looks that it
 * is gone. How many there were; *ret_wrong of 512 bytes: "" if each could be.
 */
unsigned sample_remove_damaged(const struct sample *sample, struct store *s, char *ret_wrong);
/* How many names `same` must be in a sound one. */
unsigned sample_names(const struct sample *sample);

#endif
