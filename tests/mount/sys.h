/*
 * sys.h - verbs of the tests' helper that are loops or take several processes
 * or threads. Each prints its answer and returns the program's exit code.
 */
#ifndef TESTS_MOUNT_SYS_H
#define TESTS_MOUNT_SYS_H

#include "store/util.h"

int sys_answer(long result); /* prints `ok` or the name of errno; returns 0 */

/* append FILE PROCESSES LINES: each process appends whole lines `PROCESS LINE`. */
int loop_append(char **a);
/* copy-while-mapped FILE COPY SIZE OFFSET: cp of a hole of SIZE while a map of it holds bytes at OFFSET. */
int loop_copy_while_mapped(char **a);
/* deep DIR DEPTH make|remove: nested directories `d`, by relative steps. Prints the depth reached. */
int loop_deep(char **a);
/* fill-holes FILE: prints where the first hole is while a map holds bytes in all there were, in 20 KiB. */
int loop_fill_holes(char **a);
/* link-many FILE DIR COUNT: names l0 to lN of it. */
int loop_link_many(char **a);
/* lock FILE flock|posix: another process must wait for, then get, an exclusive lock. */
int loop_lock(char **a);
/* look-while-renamed TIMES: moves x/inner to y/inner and back and looks at it in .trash, while a child renames a/f and b/f. Prints how often it was not found. */
int loop_look_while_renamed(char **a);
/* make DIR COUNT SIZE: files f0 to fN with bytes of their own, in this one process. */
int loop_make(char **a);
/* mmap FILE SIZE: shared writable mappings of two processes and read/write see each other. */
int loop_mmap(char **a);
/* open-while-exchanged ONE OTHER COUNT: opens both again and again while a child exchanges them. Prints how often that failed. */
int loop_open_while_exchanged(char **a);
/* open-while-replaced FILE COUNT: opens it again and again while a child renames over it. Prints how often that failed. */
int loop_open_while_replaced(char **a);
/* pace DIR COUNT: creates and unlinks that many files, one by one. Prints the longest and the middle time of one call in microseconds. */
int loop_pace(char **a);
/* read-and-unlink DIR BUFFER: reads the directory in BUFFER-byte pieces, unlinking as it goes; prints how many. */
int loop_read_and_unlink(char **a);
/* remove-against-create DIR ROUNDS: rmdir against create, where one must fail. Prints violations. */
int loop_remove_against_create(char **a);
/* seekdir DIR: every position told is found again with the same name. */
int loop_seekdir(char **a);
/* temporary FILE TEXT: creates, writes and unlinks it in one process. */
int loop_temporary(char **a);
/* unlink-by-threads THREADS DIR: all regular files of DIR, by threads of one process. Prints how many. */
int loop_unlink_by_threads(char **a);

#endif
