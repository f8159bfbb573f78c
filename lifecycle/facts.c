/*
 * facts.c - what an entry tells of itself, as read-only extended attributes.
 */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "lifecycle/lifecycle.h"
#include "store/util.h"

const char *const lifecycle_fact_names[] = {
	POLICY_PREFIX_USER "deleted_at", POLICY_PREFIX_USER "expires_at",
	POLICY_PREFIX_USER "deleted_by", POLICY_PREFIX_USER "origin",
	POLICY_PREFIX_USER "batch",	 POLICY_PREFIX_USER "cause",
	POLICY_PREFIX_USER "key",	 NULL,
};

static int format_time(int64_t ns, char *buffer, size_t size)
{
	time_t seconds = (time_t)(ns / CLOCK_SECOND_NS);
	char stamp[32];
	struct tm tm;

	if (ns == ITEM_FOREVER)
		return snprintf(buffer, size, "never");
	gmtime_r(&seconds, &tm);
	strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", &tm);
	return snprintf(buffer, size, "%s.%09" PRId64 "Z", stamp, ns % CLOCK_SECOND_NS);
}

const char *lifecycle_cause_word(uint8_t cause)
{
	switch (cause) {
	case ITEM_REMOVED:
		return "removed";
	case ITEM_REPLACED:
		return "replaced";
	case ITEM_EXPIRED:
		return "expired";
	case ITEM_EVICTED:
		return "evicted";
	case ITEM_TEMPORARY:
		return "temporary";
	default: /* no readable record is without one */
		return "damaged";
	}
}

static int fact_origin(struct lifecycle *l, const struct entry *entry, char *buffer, size_t size)
{
	_cleanup_free_ char *path = NULL;
	int r = tree_path(lifecycle_store(l), &entry->at, &path);

	return r ? r : snprintf(buffer, size, "%s", path);
}

ssize_t lifecycle_fact(struct lifecycle *l, const struct entry *entry, const char *name,
		       char *buffer, size_t size)
{
	const struct deletion *d = &entry->item.deletion;
	int length = -ENODATA;

	if (entry->shadow || entry->at.state != KEY_DEL ||
	    strncmp(name, POLICY_PREFIX_USER, strlen(POLICY_PREFIX_USER)))
		return -ENODATA;
	name += strlen(POLICY_PREFIX_USER);
	if (!strcmp(name, "deleted_at"))
		length = format_time((int64_t)entry->at.seq, buffer, size);
	else if (!strcmp(name, "expires_at"))
		length = format_time(entry->expires_ns, buffer, size);
	else if (!strcmp(name, "deleted_by"))
		length = snprintf(buffer, size,
				  "uid=%" PRIu32 " gid=%" PRIu32 " pid=%" PRIu32 " command=%s",
				  d->uid, d->gid, d->pid, d->command);
	else if (!strcmp(name, "origin"))
		length = fact_origin(l, entry, buffer, size);
	else if (!strcmp(name, "batch"))
		length = snprintf(buffer, size, "%" PRIu64, d->batch);
	else if (!strcmp(name, "cause"))
		length = snprintf(buffer, size, "%s", lifecycle_cause_word(d->cause));
	else if (!strcmp(name, "key"))
		length = key_text(&entry->at, buffer, size);
	return length >= 0 && (size_t)length >= size ? -ERANGE : length;
}
