#include "tools/progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "store/clock.h"

#define BAR_WIDTH 30
#define FIRST_NS CLOCK_SECOND_NS
#define EVERY_NS (CLOCK_SECOND_NS / 10)

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * CLOCK_SECOND_NS + t.tv_nsec;
}

void progress_begin(struct progress *p, const char *what)
{
	*p = (struct progress){ .what = what, .begun_ns = now_ns(), .terminal = isatty(STDERR_FILENO) };
}

static void show_bar(const struct progress *p, uint64_t done, uint64_t total)
{
	unsigned filled = (unsigned)((double)done / (double)total * BAR_WIDTH);
	char bar[BAR_WIDTH + 1];

	for (unsigned i = 0; i < BAR_WIDTH; i++)
		bar[i] = i < filled ? '#' : '-';
	bar[BAR_WIDTH] = '\0';
	fprintf(stderr, "\r\033[K%s [%s] %llu of %llu", p->what, bar, (unsigned long long)done,
		(unsigned long long)total);
}

void progress_show(struct progress *p, uint64_t done, uint64_t total)
{
	p->done = done;
	p->total = total;
	progress_tick(p);
}

void progress_tick(struct progress *p)
{
	int64_t now = p->terminal ? now_ns() : 0;

	if (!p->terminal || now - p->begun_ns < FIRST_NS || now - p->shown_ns < EVERY_NS)
		return;
	if (p->total && p->done <= p->total)
		show_bar(p, p->done, p->total);
	else if (p->done)
		fprintf(stderr, "\r\033[K%s: %llu", p->what, (unsigned long long)p->done);
	else
		fprintf(stderr, "\r\033[K%s ...", p->what);
	fflush(stderr);
	p->shown_ns = now;
	p->on_screen = true;
}

void progress_clear(struct progress *p)
{
	if (!p->on_screen)
		return;
	fputs("\r\033[K", stderr);
	fflush(stderr);
	p->on_screen = false;
}
