/*
 * store-local.c - a store in a directory: made, locked, unlocked, opened.
 *
 * The header is what makes a directory a store. It is put there last of all by
 * store_create, and nothing in the directory is written by store_open before
 * the key has proven right.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "store/last-words.h"
#include "store/lock.h"
#include "store/store-private.h"
#include "store/util.h"

static int open_directory(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static void close_directory(DIR **d)
{
	if (*d)
		closedir(*d);
}

/* Calls `each` for the names in a directory until one answers other than 0; its answer. */
static int for_each_name(int dir_fd, int (*each)(int dir_fd, const char *name))
{
	_cleanup_(close_directory) DIR *d = NULL;
	struct dirent *entry;
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int result;

	if (fd < 0)
		return -errno;
	d = fdopendir(fd);
	if (!d) {
		close(fd);
		return -ENOMEM;
	}
	while (errno = 0, (entry = readdir(d))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		result = each(dir_fd, entry->d_name);
		if (result)
			return result;
	}
	return -errno;
}

/* ---- making ------------------------------------------------------------- */

static int refuse_any(int dir_fd, const char *name)
{
	return -ENOTEMPTY;
}

static int refuse_all_but_lock(int dir_fd, const char *name)
{
	return strcmp(name, LOCK_FILE) ? -ENOTEMPTY : 0;
}

static int remove_name(int dir_fd, const char *name)
{
	int fd;

	if (unlinkat(dir_fd, name, 0) == 0 || errno != EISDIR)
		return 0;
	fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return 0;
	for_each_name(fd, remove_name);
	close(fd);
	unlinkat(dir_fd, name, AT_REMOVEDIR);
	return 0;
}

static int check_is_empty(int dir_fd, int (*refuse)(int dir_fd, const char *name))
{
	if (faccessat(dir_fd, KEYRING_HEADER, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return -EEXIST;
	return for_each_name(dir_fd, refuse);
}

/* Looks twice: before the lock file is put into what may be somebody's directory, and when nobody else can fill it. */
static int reserve_directory(int dir_fd, int *ret_lock_fd)
{
	pid_t holder;
	int result;

	result = check_is_empty(dir_fd, refuse_any);
	if (!result)
		result = lock_take(dir_fd, true, ret_lock_fd, &holder);
	if (!result)
		result = check_is_empty(dir_fd, refuse_all_but_lock);
	return result;
}

static int fill(int dir_fd, const struct store_create_options *options)
{
	struct keyring keyring;
	int result;

	result = keyring_create(dir_fd, options, &keyring);
	if (result)
		return result;
	result = engine_local_create(dir_fd, &keyring, options);
	keyring_release(&keyring);
	if (!result)
		result = keyring_commit(dir_fd);
	return result;
}

/* That the new directory is in its parent survives power loss too. */
static int sync_parent(int dir_fd)
{
	_cleanup_close_ int fd = openat(dir_fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

int store_create(const char *path, const struct store_create_options *options)
{
	_cleanup_close_ int dir_fd = -1, lock_fd = -1;
	bool made;
	int result;

	result = seal_init();
	if (result < 0)
		return result;
	made = mkdir(path, 0700) == 0;
	if (!made && errno != EEXIST)
		return -errno;
	dir_fd = open_directory(path);
	if (dir_fd < 0)
		return dir_fd;
	result = reserve_directory(dir_fd, &lock_fd);
	if (result)
		return result;
	result = fill(dir_fd, options);
	if (!result && made)
		result = sync_parent(dir_fd);
	if (!result)
		return 0;
	for_each_name(dir_fd, remove_name);
	if (made)
		rmdir(path);
	return result;
}

/* ---- opening ------------------------------------------------------------ */

static int in_use(struct store_open_report *report, pid_t holder)
{
	report->holder_pid = holder;
	if (holder)
		snprintf(report->text, sizeof(report->text), "process %ld has the store open",
			 (long)holder);
	else
		snprintf(report->text, sizeof(report->text), "another process has the store open");
	return STORE_IN_USE;
}

/*
 * Keeps others out before the slow part, the key. A store whose lock file was
 * lost (copied without it, say) gets one only once the key has proven right.
 */
static int lock_store(int dir_fd, bool create, struct store_open_report *report, int *ret_fd)
{
	pid_t holder = 0;
	int result = lock_take(dir_fd, create, ret_fd, &holder);

	if (result == -EBUSY)
		return in_use(report, holder);
	return result == -ENOENT && !create ? 0 : result;
}

static int own_store(struct store *s, int dir_fd, const struct store_open_options *options,
		     struct store_open_report *report)
{
	int result;

	result = lock_store(dir_fd, false, report, &s->lock_fd);
	if (!result)
		result = keyring_open(dir_fd, &options->credentials, report, &s->keyring);
	if (!result && s->lock_fd < 0 && !options->read_only)
		result = lock_store(dir_fd, true, report, &s->lock_fd);
	if (!result && !options->read_only)
		result = lock_sign(s->lock_fd);
	return result;
}

/* Ids and clock. Nothing is given out that they do not allow; a store that is only read gives nothing out. */
static int start_numbers(struct store *s, const struct store_open_options *options,
			 struct store_open_report *report)
{
	int ids, clock, result;

	store_start(s);
	store_marks_state(s, &ids, &clock);
	if (options->read_only && (clock || ids))
		return 0;
	if (options->mend && (ids == -EBADMSG || clock == -EBADMSG)) {
		result = store_mend_marks(s, ids == -EBADMSG, clock == -EBADMSG);
		if (result)
			return result;
		report->mended = true;
		snprintf(report->text, sizeof(report->text),
			 "the record of %s was damaged and is made again, far above all that is in use",
			 ids == -EBADMSG ? "ids" : "the clock");
		store_marks_state(s, &ids, &clock);
	}
	result = clock ? clock : ids;
	if (!result)
		result = options->read_only ? store_seqs_read(s) : store_seqs_claim(s);
	if (result != -EBADMSG)
		return result;
	snprintf(report->text, sizeof(report->text),
		 "the record of %s is damaged: mount the store read-only, or run `ddbfs check --quarantine`, which makes it again",
		 ids ? "the ids that were given out" : "the clock");
	return STORE_DAMAGED;
}

static int open_engine(struct store *s, int dir_fd, const struct store_open_options *options,
		       struct store_open_report *report)
{
	int result;

	result = engine_local_open(dir_fd, &s->keyring, options, report, &s->engine);
	if (result)
		return result;
	if (!options->read_only)
		result = keyring_upgrade(dir_fd, &s->keyring);
	if (!result)
		result = start_numbers(s, options, report);
	if (result)
		s->engine->ops->close(s->engine);
	return result;
}

/* What ended the last use of it, if that was no ordinary end. Told once; by the next opening where this one has more to tell. */
static void tell_last_words(int dir_fd, bool read_only, struct store_open_report *report)
{
	char words[120];

	if (report->discarded || report->mended)
		return;
	last_words_read(dir_fd, words, sizeof(words));
	if (!words[0])
		return;
	snprintf(report->text, sizeof(report->text),
		 "when it was last used, %s: what was not on the disk then is lost. Look after the disk, "
		 "then run `ddbfs check`",
		 words);
	if (!read_only)
		last_words_remove(dir_fd);
}

static int not_a_store(const char *path, int error, struct store_open_report *report)
{
	if (error != -ENOENT && error != -ENOTDIR)
		return error;
	snprintf(report->text, sizeof(report->text), "%s",
		 error == -ENOENT ? "there is nothing at that path" : "it is not a directory");
	return STORE_NOT_A_STORE;
}

int store_open(const char *path, const struct store_open_options *options,
	       struct store_open_report *ret_report, struct store **ret_store)
{
	struct store_open_report unwanted, *report = ret_report ? ret_report : &unwanted;
	_cleanup_close_ int dir_fd = -1;
	struct store *s;
	int result;

	*report = (struct store_open_report){ 0 };
	result = seal_init();
	if (result < 0)
		return result;
	dir_fd = open_directory(path);
	if (dir_fd < 0)
		return not_a_store(path, dir_fd, report);
	s = store_new(options->clock);
	if (!s)
		return -ENOMEM;
	result = own_store(s, dir_fd, options, report);
	if (!result)
		result = open_engine(s, dir_fd, options, report);
	if (result) {
		store_free(s);
		return result;
	}
	tell_last_words(dir_fd, options->read_only, report);
	*ret_store = s;
	return 0;
}

int store_change_key(const char *path, const struct store_credentials *old_credentials,
		     const struct store_credentials *new_credentials, bool replace,
		     struct store_open_report *ret_report)
{
	struct store_open_report unwanted, *report = ret_report ? ret_report : &unwanted;
	_cleanup_close_ int dir_fd = -1, lock_fd = -1;
	int result;

	*report = (struct store_open_report){ 0 };
	result = seal_init();
	if (result < 0)
		return result;
	dir_fd = open_directory(path);
	if (dir_fd < 0)
		return not_a_store(path, dir_fd, report);
	result = lock_store(dir_fd, false, report, &lock_fd);
	if (result)
		return result;
	return keyring_change(dir_fd, old_credentials, new_credentials, replace, report);
}

int store_holder(const char *path, int *ret_pid)
{
	_cleanup_close_ int dir_fd = open_directory(path), lock_fd = -1;
	pid_t holder = 0;
	int result;

	if (dir_fd < 0)
		return dir_fd;
	result = lock_take(dir_fd, false, &lock_fd, &holder);
	if (result != -EBUSY)
		return result == -ENOENT ? 0 : result;
	*ret_pid = holder;
	return 1;
}
