/*
 * fuzz.h - what every fuzzer has in common.
 *
 * A fuzzer is one function over hostile bytes, which aborts when a promise is
 * broken. Built plainly it is linked with replay.c, which runs it over the files
 * of its corpus and a fixed number of mutations of each, the same every time:
 * that is what the test command does. Built with clang and -Dfuzz=true it is
 * linked with libFuzzer, which looks for new inputs:
 *
 *     CC=clang meson setup build-fuzz -Dfuzz=true -Db_sanitize=address,undefined -Db_lundef=false
 *     ninja -C build-fuzz && build-fuzz/tests/fuzz/fuzz-header tests/fuzz/corpus/header
 *
 * What it finds is added to the corpus, and stays there.
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

#define FUZZ_EXPECT(condition)                                                          \
	do {                                                                            \
		if (!(condition)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			abort();                                                        \
		}                                                                       \
	} while (0)

#endif
