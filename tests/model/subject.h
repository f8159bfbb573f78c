/*
 * subject.h - the real thing beside the model: a store with lifecycle and namei
 * on it, its clock, and what it told about moves. Private to a run.
 */
#ifndef TESTS_MODEL_SUBJECT_H
#define TESTS_MODEL_SUBJECT_H

#include "fs/file.h"
#include "fs/namei.h"
#include "tests/lib/test.h"
#include "tests/model/history.h"

#define SUBJECT_CHANGES 8192

struct subject {
	struct run *run;
	struct model *m;
	struct test_clock clock;
	struct store *store;
	struct lifecycle *life;
	struct namei *namei;
	struct file_locator where; /* asks the model */
	struct lifecycle_change changes[SUBJECT_CHANGES]; /* of this operation */
	size_t changed;
};

#define CK(s, condition, ...)                           \
	do {                                            \
		if (!(condition))                       \
			subject_fail((s), __VA_ARGS__); \
	} while (0)

void subject_fail(struct subject *s, const char *format, ...)
	__attribute__((noreturn, format(printf, 2, 3)));
void subject_open(struct subject *s, struct run *run); /* makes the store, or opens it again */
void subject_close(struct subject *s);
void subject_remount(struct subject *s);
/* As if the process had died; a store in memory outlives it. */
void subject_crash(struct subject *s);
/* The time of the operation, for the model; compares what the clock is thought of. */
void subject_time(struct subject *s);
struct place subject_place(const struct subject *s, int name);
/* Tells the model the sequence numbers and batches of what moved. */
void subject_learn(struct subject *s);

/* Everything: names, attributes, contents, links, facts, views. */
void subject_compare(struct subject *s);
void subject_compare_counters(struct subject *s); /* after a sweep */
void subject_check(struct subject *s); /* lifecycle_check finds nothing */
uint8_t subject_byte(uint32_t token, uint32_t offset); /* of a content */

#endif
