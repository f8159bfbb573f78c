/*
 * spin.c - see spin.h.
 */
#include "fs/spin.h"

#include <sched.h>
#include <stdio.h>

#include "store/clock.h"
#include "store/util.h"

#define PREEMPTED_NS (CLOCK_SECOND_NS / 1000) /* gone for so long: the processor is needed */
#define PAUSE_NS (CLOCK_SECOND_NS / 50)
#define CREDIT 8 /* misses in a row beyond the hits, before spinning stops */
#define PROBE 16 /* occasions until it is tried again */

/* Our control group's path (version 2), or "". */
static void read_cgroup(char *path, size_t size)
{
	char line[256];
	FILE *f = fopen("/proc/self/cgroup", "re");

	path[0] = '\0';
	if (!f)
		return;
	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		if (strncmp(line, "0::", 3) == 0)
			snprintf(path, size, "%s", line + strlen("0::"));
	}
	fclose(f);
}

/* The processors a quota of our control group leaves us, at least 1; 0 = no quota known. */
static unsigned quota_processors(void)
{
	char path[256];
	char file[320];
	unsigned long quota;
	unsigned long period;
	unsigned processors = 0;

	read_cgroup(path, sizeof(path));
	snprintf(file, sizeof(file), "/sys/fs/cgroup%s/cpu.max", path);
	FILE *f = fopen(file, "re");
	if (!f)
		return 0;
	if (fscanf(f, "%lu %lu", &quota, &period) == 2 && period > 0)
		processors = (unsigned)util_max(quota / period, 1ul);
	fclose(f);
	return processors;
}

/* A spinning thread must not stand in the way of the one it waits for. */
static bool has_processors(void)
{
	cpu_set_t set;
	unsigned quota = quota_processors();

	if (sched_getaffinity(0, sizeof(set), &set) < 0 || CPU_COUNT(&set) < 2)
		return false;
	return quota == 0 || quota >= 2;
}

void spin_init(struct spin *s, bool wanted)
{
	*s = (struct spin){ .enabled = wanted && has_processors(), .credit = CREDIT };
}

bool spin_allowed(struct spin *s, int64_t now_ns)
{
	if (!s->enabled || now_ns < s->after_ns)
		return false;
	if (s->credit > 0)
		return true;
	if (++s->skipped < PROBE)
		return false;
	s->skipped = 0;
	s->credit = 1;
	return true;
}

void spin_looked(struct spin *s, int64_t before_ns, int64_t now_ns)
{
	if (now_ns - before_ns > PREEMPTED_NS)
		s->after_ns = now_ns + PAUSE_NS;
}

void spin_ended(struct spin *s, bool found)
{
	s->credit = found ? util_min(s->credit + 1, CREDIT) : s->credit - 1;
}
