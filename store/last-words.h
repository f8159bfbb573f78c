/*
 * last-words.h - why a store stopped writing, left for who opens it next.
 *
 * After a failed sync nobody knows what the disk has, and the process that knew
 * of it is gone by the time somebody asks. One line of plain text in the
 * store's directory outlives it, if the disk still takes that much.
 */
#ifndef STORE_LAST_WORDS_H
#define STORE_LAST_WORDS_H

#include <stddef.h>

#define LAST_WORDS_FILE "stopped"

/* Best effort: the disk has just failed. Words that are there stay. */
void last_words_leave(int dir_fd, const char *words);
/* The words, printable whatever the file holds, or "" if there are none. */
void last_words_read(int dir_fd, char *ret_text, size_t size);
void last_words_remove(int dir_fd);

#endif
