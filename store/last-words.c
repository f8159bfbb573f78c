/*
 * last-words.c - see last-words.h.
 */
#include "store/last-words.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "store/util.h"

void last_words_leave(int dir_fd, const char *words)
{
	_cleanup_close_ int fd = openat(dir_fd, LAST_WORDS_FILE,
					O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return;
	(void)!write(fd, words, strlen(words));
	(void)fsync(fd);
	(void)fsync(dir_fd);
}

void last_words_read(int dir_fd, char *ret_text, size_t size)
{
	_cleanup_close_ int fd =
		openat(dir_fd, LAST_WORDS_FILE, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, ret_text, size - 1);

	ret_text[n > 0 ? n : 0] = '\0';
	for (char *c = ret_text; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
	/* A crash may leave it empty: that it is there says enough. */
	if (n == 0)
		snprintf(ret_text, size, "a write to the disk failed");
}

void last_words_remove(int dir_fd)
{
	if (unlinkat(dir_fd, LAST_WORDS_FILE, 0) == 0)
		(void)fsync(dir_fd);
}
