#include "tools/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "store/clock.h"
#include "tools/print.h"

#define LINE_MAX_BYTES 1024

int log_open(const char *path, struct log *ret_log)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0600);

	if (fd < 0)
		return -errno;
	ret_log->fd = fd;
	return 0;
}

static void write_line(int fd, const char *text)
{
	char line[LINE_MAX_BYTES + PRINT_TIME_MAX + 32], when[PRINT_TIME_MAX];
	struct timespec now;
	int size;

	clock_gettime(CLOCK_REALTIME, &now);
	size = snprintf(line, sizeof(line), "%s ddbfs[%d]: %s\n",
			print_time(now.tv_sec * CLOCK_SECOND_NS, when), (int)getpid(), text);
	/* One write, so that lines of several daemons do not mix; nobody is there to be told if it fails. */
	if (write(fd, line, (size_t)size) < 0)
		return;
}

void log_line(const struct log *log, const char *format, ...)
{
	char text[LINE_MAX_BYTES];
	va_list list;

	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	for (char *c = text; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = ' ';
	if (log->fd >= 0)
		write_line(log->fd, text);
	else
		syslog(LOG_NOTICE, "%s", text);
}

void log_close(struct log *log)
{
	if (log->fd > STDERR_FILENO)
		close(log->fd);
	log->fd = -1;
}
