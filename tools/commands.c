/*
 * commands.c - the table of verbs.
 *
 * `text` is plain paragraphs, wrapped by whoever prints it. In them PATH means
 * anything inside the mount; the working directory if it is not given.
 */
#include <string.h>

#include "tools/cmd.h"

#define TAKES(...)                                          \
	.options = (const enum option_id[]){ __VA_ARGS__ }, \
	.options_count = sizeof((enum option_id[]){ __VA_ARGS__ }) / sizeof(enum option_id)

#define KEY_OPTIONS OPTION_PASSPHRASE, OPTION_PASSPHRASE_FILE, OPTION_PASSPHRASE_FD, OPTION_KEY_FILE
#define STORE_OPTIONS OPTION_NAMES, OPTION_TRASH_NAME, OPTION_KDF

const struct command command_table[] = {
	{
		.name = "init",
		.operands = "STORE",
		.min = 1,
		.max = 1,
		.summary = "make an empty store in the new or empty directory STORE",
		.text = "Without a passphrase or key file, the store's key lies in the store itself: contents are then protected "
			"against damage, but not against whoever can read the directory. With one, the names of files are "
			"sealed too, unless --names says otherwise.\n"
			"--trash-name is for trees that have a directory called .trash of their own.",
		.run = cmd_init,
		TAKES(KEY_OPTIONS, STORE_OPTIONS),
	},
	{
		.name = "mount",
		.operands = "STORE DIR",
		.min = 2,
		.max = 2,
		.summary = "mount a store on a directory; returns when the mount answers",
		.text = "Everything is checked before anything is changed, and the exit code says what is wrong. The daemon leaves "
			"the terminal and logs to the system's log, or to --log FILE. With --foreground it stays.\n"
			"With --create, a store that does not exist is made first, with the options of 'init'.\n"
			"--force-unmount cleans up a mount on DIR whose daemon is dead or does not answer.",
		.run = cmd_mount,
		TAKES(OPTION_CREATE, OPTION_FOREGROUND, OPTION_FORCE_UNMOUNT, OPTION_LOG,
		      OPTION_MOUNT_OPTIONS, KEY_OPTIONS, STORE_OPTIONS),
	},
	{
		.name = "umount",
		.operands = "DIR",
		.min = 1,
		.max = 1,
		.summary = "unmount; returns when everything is on disk and the store is free",
		.text = "If something still uses the mount, nothing happens and one process that does, or a mount inside it, is named. --lazy takes the "
			"mount out of the tree at once; it ends when its last user does, and the command does not wait.",
		.run = cmd_umount,
		TAKES(OPTION_LAZY, OPTION_FORCE_UNMOUNT),
	},
	{
		.name = "status",
		.operands = "[PATH]",
		.max = 1,
		.summary = "what is mounted, how much is in it, and whether all is well",
		.text = "Without PATH and outside of any mount, lists the mounts.",
		.run = cmd_status,
		.asks = true,
		TAKES(OPTION_JSON),
	},
	{
		.name = "trash list",
		.operands = "[PATH]",
		.max = 1,
		.summary = "what was deleted in and below PATH",
		.text = "A deleted directory is one line, whatever went with it; give its path to see inside. Lines come as they are "
			"found unless --sort is given. The same is to be seen with ls in PATH/.trash.",
		.run = cmd_trash_list,
		.asks = true,
		TAKES(OPTION_JSON, OPTION_SINCE, OPTION_BY, OPTION_UNDER, OPTION_NAME, OPTION_SORT,
		      OPTION_LIMIT),
	},
	{
		.name = "trash history",
		.operands = "[PATH]",
		.max = 1,
		.summary = "what became of entries that are no longer in the trash of PATH and below",
		.text = "When each was destroyed, and why: user (emptied or removed by hand), expired, evicted (by a cap or the "
			"low-space rule), versions (more than are kept). The last 4,096 of the store are remembered, latest first. "
			"Others than root see what they deleted, and what was theirs where they could list it. What was restored is in no trash and no "
			"history. --since is about when it was destroyed.",
		.run = cmd_trash_history,
		.asks = true,
		TAKES(OPTION_JSON, OPTION_SINCE, OPTION_BY, OPTION_UNDER, OPTION_NAME, OPTION_LIMIT),
	},
	{
		.name = "trash restore",
		.operands = "PATH...",
		.min = 1,
		.max = COMMAND_UNBOUNDED,
		.summary = "bring deleted files and directories back",
		.text = "PATH is one in a .trash, or the path that the item had; then the newest deletion of that name is meant. It "
			"returns to where it was, and parent directories that are gone are made again as they were, without their "
			"other contents; or it goes to --to DIR. A directory comes back with all that was deleted with it; if a part of it was restored before, the rest follows and merges.\n"
			"A name that is taken: nothing is done (exit code 5), unless --skip, --rename or --replace is given.\n"
			"--swap is for what was replaced by a rename, as editors and 'mv' do: it comes back, and what replaced it "
			"goes to the trash in the same moment, if that is still what bears the name (exit code 5 else). The same "
			"command again exchanges them again.",
		.run = cmd_trash_restore,
		.asks = true,
		TAKES(OPTION_TO, OPTION_SKIP, OPTION_RENAME, OPTION_REPLACE, OPTION_SWAP, OPTION_JSON),
	},
	{
		.name = "trash empty",
		.operands = "[PATH]",
		.max = 1,
		.summary = "destroy what is in the trash in and below PATH",
		.text = "What you may delete is hidden at once and destroyed after its grace (10 minutes unless the policy says "
			"otherwise), so that 'ddbfs undo' can bring it back until then; --now destroys at once. What is deleted "
			"while the command runs survives.",
		.run = cmd_trash_empty,
		.asks = true,
		TAKES(OPTION_OLDER_THAN, OPTION_NOW, OPTION_DRY_RUN, OPTION_JSON),
	},
	{
		.name = "undo",
		.operands = "[PATH] [ID]",
		.max = 2,
		.summary = "bring back what the last rm, script or program deleted",
		.text = "One rm -r, a find -delete, a script's loop are one batch each. Without ID your last batch is meant of which not all is back, of this "
			"session first; undo again takes the one before. --list shows the batches and their IDs.\n"
			"If a name is taken nothing is moved (exit code 5), unless --skip, --rename or --replace is given. What is "
			"back already counts as done; what is gone for good is named (exit code 3).",
		.run = cmd_undo,
		.asks = true,
		TAKES(OPTION_LIST, OPTION_ALL, OPTION_ONLY, OPTION_DRY_RUN, OPTION_SKIP,
		      OPTION_RENAME, OPTION_REPLACE, OPTION_JSON),
	},
	{
		.name = "sweep",
		.operands = "[PATH]",
		.max = 1,
		.summary = "destroy what has expired now, and give its space back",
		.text = "The daemon does the same by itself in time. For root and the user who mounted the store.",
		.run = cmd_sweep,
		.asks = true,
		TAKES(OPTION_JSON),
	},
	{
		.name = "policy show",
		.operands = "[PATH]",
		.max = 1,
		.summary = "what is kept how long in a directory, and where that was set",
		.run = cmd_policy_show,
		.asks = true,
		TAKES(OPTION_JSON),
	},
	{
		.name = "policy set",
		.operands = "PATH [NAME=VALUE...]",
		.min = 1,
		.max = COMMAND_UNBOUNDED,
		.summary = "set policy on a directory, for what is deleted in and below it from now on",
		.text = "retention: how long deleted items are kept (30d; 0 = not at all; forever). versions: how many replaced files "
			"of one name (16). temporary: a name removed so soon by the process that made it leaves nothing (60s). grace: "
			"how long emptied trash can still be undone (10m). trash_max, trash_max_entries: "
			"how many bytes, or entries, the trash below may hold (no limit): the oldest go first; of one set inside another both hold. low_space: with less "
			"than so many bytes free on the disk below, the oldest go (off; on the mount point only). protect: nothing "
			"can be deleted. hold: nothing is destroyed. Sizes are bytes, or with K, M, G, T, P.\n"
			"They are the extended attributes user.ddbfs.NAME of the directory. Only its owner and root may set them; with "
			"the prefix trusted.ddbfs. root sets a minimum.\n"
			"--apply-existing gives what is in the trash below already the expiry it would have had under the policies "
			"in force now, and caps and versions their due; without NAME=VALUE only that is done. It never goes below "
			"root's minimum, brings back nothing that has expired, and leaves alone what is held, emptied, or what you "
			"may not delete (exit code 3). --dry-run says what would happen, and sets nothing.",
		.run = cmd_policy_set,
		.asks = true,
		TAKES(OPTION_APPLY_EXISTING, OPTION_DRY_RUN, OPTION_JSON),
	},
	{
		.name = "policy unset",
		.operands = "PATH NAME...",
		.min = 2,
		.max = COMMAND_UNBOUNDED,
		.summary = "remove policy from a directory: that of the directory above counts again",
		.run = cmd_policy_unset,
		.asks = true,
	},
	{
		.name = "df",
		.operands = "[PATH]",
		.max = 1,
		.summary = "what uses the space of the store, or of the directory PATH, and what comes free",
		.text = "Without PATH, or with the mount point, of the whole store; of another directory, with all in and below it, "
			"for its owner and root. Live files; the trash and why it is there; what of it emptying would give back; "
			"what goes by itself within a day. What lies in a directory that was moved into the trash is trash. A file "
			"with several names is shared out among them.",
		.run = cmd_df,
		.asks = true,
		TAKES(OPTION_JSON),
	},
	{
		.name = "clock accept",
		.operands = "[PATH]",
		.max = 1,
		.summary = "confirm a jump of the clock, so that what expired by it may be destroyed",
		.text = "After a jump that the machine's steady clock does not bear out, what has expired is hidden but not "
			"destroyed until the clock was right for a day or is confirmed by this.",
		.run = cmd_clock_accept,
		.asks = true,
	},
	{
		.name = "scrub",
		.operands = "[PATH]",
		.max = 1,
		.summary = "read everything in a mounted store now, to find damage",
		.text = "The daemon does so by itself once a week, at 16 MiB a second, unless it was mounted with -o noscrub or "
			"read-only; asked for it begins at once and reads 128 MiB a second. 'ddbfs status' shows how far it is "
			"and what it found, the log and /.ddbfs/stats too. Nothing is changed.",
		.run = cmd_scrub,
		.asks = true,
		TAKES(OPTION_JSON),
	},
	{
		.name = "check",
		.operands = "STORE",
		.min = 1,
		.max = 1,
		.summary = "read and verify everything in a store that is not mounted",
		.text = "Verifies every seal and reference, recounts every counter, and names what is wrong by its path (exit code "
			"26). Nothing is written.\n"
			"With --quarantine it then mends what can be made again from what is whole (guards, rows of the trash, "
			"counters), gives a directory whose record is lost a new one, closed to all but its owner, with all that is "
			"in it, and moves files of which a part cannot be read, and what has lost its name, to /lost+found in the "
			"store. A record of which nothing can be read is removed. Each thing done is told, and written to a file in "
			"/lost+found. Exit code 0: nothing damaged is left outside of it; 3: something is. Space that a crash or "
			"damage left without an owner goes back to the disk; without --quarantine it is told how much there is.\n"
			"A store whose journal is damaged, or belongs to another state of the database, is refused (exit code 26), "
			"since changes that were promised are missing. --discard-journal goes on without them: everything before the "
			"damage is kept, what came after is given up, and the journals as they were are copied to STORE/discarded-1 "
			"(2, and so on). If an old copy of data.mdb was put back, put the right one back instead: what changed since "
			"would be lost for good.\n"
			"Where the structure of the database is damaged nothing can be set aside: exit code 26, and the message says "
			"what to do.",
		.run = cmd_check,
		TAKES(OPTION_QUARANTINE, OPTION_DISCARD_JOURNAL, OPTION_JSON, KEY_OPTIONS),
	},
	{
		.name = "key add",
		.operands = "STORE",
		.min = 1,
		.max = 1,
		.summary = "let a further passphrase or key file open the store",
		.run = cmd_key_add,
		TAKES(KEY_OPTIONS, OPTION_NEW_PASSPHRASE, OPTION_NEW_PASSPHRASE_FILE,
		      OPTION_NEW_PASSPHRASE_FD, OPTION_NEW_KEY_FILE),
	},
	{
		.name = "key replace",
		.operands = "STORE",
		.min = 1,
		.max = 1,
		.summary = "let only the new passphrase or key file open the store",
		.text = "Copies of the store made before still open with the old ones.",
		.run = cmd_key_replace,
		TAKES(KEY_OPTIONS, OPTION_NEW_PASSPHRASE, OPTION_NEW_PASSPHRASE_FILE,
		      OPTION_NEW_PASSPHRASE_FD, OPTION_NEW_KEY_FILE),
	},
	{
		.name = "version",
		.operands = "",
		.summary = "print the version",
		.run = cmd_version,
	},
	{
		.name = "help",
		.operands = "[VERB]",
		.max = 2,
		.summary = "print help, of one verb if it is given",
		.run = cmd_help,
	},
	{
		.name = "generate",
		.operands = "man|bash|fish",
		.min = 1,
		.max = 1,
		.summary = "print the verbs as a part of the manual, or a shell's completions",
		.run = cmd_generate,
		.hidden = true,
	},
};

const size_t command_table_count = sizeof(command_table) / sizeof(command_table[0]);

const struct exit_meaning exit_meanings[] = {
	{ EXIT_DONE, "done" },
	{ EXIT_FAILED, "failed, for the reason that the message gives" },
	{ EXIT_USAGE, "wrong option, name or value; nothing was changed" },
	{ EXIT_PARTLY, "partly done; what was not is named" },
	{ EXIT_NOT_FOUND, "not there: no such path, entry, batch or mount" },
	{ EXIT_CONFLICT, "a name is taken; nothing was moved" },
	{ EXIT_NOT_EMPTY, "the directory for a new store is not empty" },
	{ EXIT_NO_STORE, "no store there, or one of a later format" },
	{ EXIT_IN_USE, "another process has the store open" },
	{ EXIT_WRONG_KEY, "wrong or missing passphrase or key file" },
	{ EXIT_MOUNT_POINT, "the mount point cannot be used" },
	{ EXIT_DAMAGE, "check found damage, or the store is too damaged to open" },
	{ EXIT_INTERRUPTED, "interrupted; the message says how far it came" },
	{ 0, NULL },
};

/* How many words of argv the name is, 0 if they are not it. */
static int words_matching(const char *name, int argc, char **argv)
{
	int words = 0;

	for (const char *at = name; *at; words++) {
		size_t size = strcspn(at, " ");

		if (words >= argc || strlen(argv[words]) != size || memcmp(argv[words], at, size) != 0)
			return 0;
		at += size + (at[size] == ' ');
	}
	return words;
}

const struct command *command_find(int argc, char **argv, int *ret_words)
{
	for (size_t i = 0; i < command_table_count; i++) {
		int words = words_matching(command_table[i].name, argc, argv);

		if (words) {
			*ret_words = words;
			return &command_table[i];
		}
	}
	return NULL;
}
