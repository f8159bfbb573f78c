#!/usr/bin/env bash
#
# Names that live for a moment leave nothing in the trash; others always do.
# timeout: 600
. "$(dirname "$0")/lib.sh"

by_its_creator() {
	gives ok temporary t1 content
	gives ok temporary t2 ''
	lists .trash
	lists .
}

by_another() {
	gives ok make . 1 10
	rm f0
	lists .trash f0
	echo log >log
	exec 3>>log
	echo more >&3
	rm log
	exec 3>&-
	equal 'log more' "$(xargs <.trash/log)" "a log that is still written"
}

by_what_the_creator_became() {
	# The shell makes the file, then becomes rm: another program, the same process.
	sh -c 'echo text >f; exec rm f'
	content .trash/f text
}

renamed_is_no_temporary() {
	# One process: create, rename, unlink. The rename made it a file of worth.
	perl -e 'open(F, ">", "a") or die; print F "text"; close F; rename("a", "b") or die; unlink("b") or die'
	content .trash/b text
}

linked_and_open() {
	perl -e 'open(F, "+>", "a") or die; unlink("a") or die; syswrite(F, "text") == 4 or die;
		sysseek(F, 0, 0); sysread(F, $x, 10); print $x' >"$tmp/said"
	content "$tmp/said" text
	lists .trash
}

switched_off() {
	setfattr -n user.ddbfs.temporary -v 0 .
	gives ok temporary t content
	content .trash/t content
}

# transactions DIRECTORY: prints the microseconds that twenty of them take there
transactions() {
	local start i

	start=${EPOCHREALTIME/./}
	for ((i = 0; i < 20; i++)); do
		echo "begin; insert into t(b) values('row $i'); commit;"
	done | sqlite3 "$1/db"
	echo $((${EPOCHREALTIME/./} - start))
}

# With DDBFS_LOAD_FULL as many as BEHAVIOURS.md says: some minutes.
sqlite_transactions=${DDBFS_LOAD_FULL:+10000}
sqlite_transactions=${sqlite_transactions:-200}
[ -z "${DDBFS_LOAD_FULL:-}" ] || limit=900

sqlite_journals() {
	local kept off i

	need sqlite3
	mkdir kept off
	# Without a trash: nothing is kept for any time, and nothing is looked at as a temporary name.
	ddbfs policy set off retention=0 temporary=0 >/dev/null
	for i in kept off; do sqlite3 $i/db 'create table t(a integer primary key, b text)'; done
	# In turn, since the machine does other things too; of each kind, what a quarter of the rounds did not exceed.
	for ((i = 0; i < sqlite_transactions / 20; i++)); do
		transactions off >>"$tmp/off"
		transactions kept >>"$tmp/kept"
	done
	off=$(sort -n "$tmp/off" | sed -n "$((sqlite_transactions / 80))p")
	kept=$(sort -n "$tmp/kept" | sed -n "$((sqlite_transactions / 80))p")
	equal $sqlite_transactions "$(sqlite3 kept/db 'select count(*) from t')"
	lists kept/.trash
	lists kept db
	echo "20 transactions: $kept us with the trash, $off us without"
	# Twenty are over so soon that a busy machine decides: what starting the program may vary by.
	[ "$kept" -le $((off * 3 / 2 + 5000)) ] || fail 'slower than half as much again'
}

git_objects() {
	need git
	git init -q r
	cd r
	for i in 1 2 3; do
		echo $i >f$i
		git add f$i
		git -c user.name=t -c user.email=t@t commit -qm $i
	done
	git fsck --strict
	find . -path './.git/objects*' -name 'tmp_obj*' | grep . && fail 'temporary objects are left'
	[ ! -d .git/objects/.trash ] || equal '' "$(find .git/objects/.trash -name 'tmp_*')" 'temporary objects in the trash'
}

space_of_temporaries() {
	local used

	sync -f .
	ddbfs sweep . >/dev/null
	used=$(du -s -B1 "$store" | cut -f1)
	for ((i = 0; i < 20; i++)); do
		perl -e 'open(F, ">", "big") or die; print F "x" x 5000000; close F; unlink("big") or die'
	done
	lists .trash
	# Of 100 MB: 4 MiB may wait in the segment that is written to, which has 16 MiB allocated ahead.
	back() {
		ddbfs sweep "$d" >/dev/null
		[ "$(du -s -B1 "$store" | cut -f1)" -lt $((used + 25000000)) ]
	}
	within_seconds 30 back
}

mount_new
it 'F3 a name removed by the process that made it makes no entry' by_its_creator
it 'F3 a name removed by another process always does, in use or not' by_another
it 'F3 a shell'\''s file, removed by the rm that the shell became, is kept' by_what_the_creator_became
it 'F3 a file that was renamed is no temporary name' renamed_is_no_temporary
it 'a file removed right after opening still works, and leaves nothing' linked_and_open
it 'policy temporary=0 keeps them too' switched_off
it 'F2 journals of SQLite leave nothing in the trash' sqlite_journals
it 'F3 temporary objects of git leave nothing in the trash' git_objects
it 'the space of temporary files comes back' space_of_temporaries
it 'leaves a store that checks clean' check_clean
done_testing
