/*
 * log.h - where the daemon's few lines for the administrator go: the system's
 * log, a file, or standard error in the foreground.
 */
#ifndef TOOLS_LOG_H
#define TOOLS_LOG_H

struct log {
	int fd; /* -1: the system's log */
};

/* `path` is made 0600 if need be. 0 or a negative errno. */
int log_open(const char *path, struct log *ret_log);
void log_line(const struct log *log, const char *format, ...) __attribute__((format(printf, 2, 3)));
void log_close(struct log *log);

#endif
