#!/usr/bin/env bash
#
# Damage in items: what is hurt is an error and can be removed, nothing else
# suffers, `ddbfs check` names it and sets it aside.
# timeout: 600
. "$(dirname "$0")/lib.sh"

# hurt PATTERN LENGTH: changes a byte of every value in the database whose key has
# PATTERN (a Perl regular expression of bytes) and ends LENGTH bytes behind its
# start, in its first sealed box. Unmounted.
hurt() {
	local at done=

	grep -obUaP "$1" "$store/data.mdb" | LC_ALL=C sed 's/:.*//' >"$tmp/places" || fail "no such key: $1"
	while read -r at; do
		# Keys stand in branch pages too, without a value.
		is_leaf $((at / 4096 * 4096)) || continue
		# The box begins 20 bytes behind the key.
		flip "$store/data.mdb" $((at + $2 + 30))
		done=1
	done <"$tmp/places"
	[ "$done" ] || fail "no such key: $1"
}

# is_leaf OFFSET: of a page; its flags stand at its 10th byte
is_leaf() {
	[ $(($(od -An -tu1 -j $(($1 + 10)) -N 1 "$store/data.mdb") & 2)) != 0 ]
}

# flip FILE OFFSET
flip() {
	local byte

	byte=$(od -An -tu1 -j "$2" -N 1 "$1")
	# shellcheck disable=SC2059
	printf "\\x$(printf %02x $((byte ^ 1)))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

# hurt_live NAME, hurt_deleted NAME: with ordered names the key says it
hurt_live() {
	hurt "ACT#$1(?!/)" $((4 + ${#1}))
}

hurt_deleted() {
	# "/" and eight bytes follow the name
	hurt "DEL#$1/" $((4 + ${#1} + 9))
}

number_of() {
	stat -c %i "$1"
}

# The directory's number in eight bytes of a key, as a pattern.
pattern_of() {
	printf '%016x' "$1" | sed 's/../\\x&/g'
}

removes_a_damaged_file() {
	echo text >victim-1
	echo beside >beside
	mkdir tree
	echo text >tree/victim-2
	echo beside >tree/beside
	cd /
	mount_down
	hurt_live victim-1
	hurt_live victim-2
	mount_up
	cd "$d"
	content beside beside
	lists . victim-1 tree beside
	refused cat victim-1
	says 'Input/output error'
	refused chmod 600 victim-1
	refused mv victim-1 elsewhere
	# Nothing takes it for an empty file.
	refused tar cf "$tmp/x.tar" victim-1
	rm victim-1
	absent victim-1
	echo again >victim-1
	content victim-1 again
	rm -rf tree
	absent tree
	lists .trash tree
	content .trash/tree/beside beside
}

removes_a_damaged_directory() {
	mkdir -p ruined/sub
	echo text >ruined/file
	echo text >ruined/sub/file
	chmod 755 ruined
	cd /
	mount_down
	hurt_live ruined
	mount_up
	cd "$d"
	lists . ruined
	# Its own record is lost: what is in it is not.
	content ruined/file text
	rm -rf ruined
	absent ruined
	content .trash/ruined/file text
	content .trash/ruined/sub/file text
	mv .trash/ruined .
	content ruined/sub/file text
}

purges_damaged_entries() {
	echo one >gone
	rm gone
	echo two >gone
	rm gone
	echo kept >kept
	rm kept
	mkdir heap
	echo text >heap/broken
	rm -rf heap
	cd /
	mount_down
	hurt_deleted gone
	hurt_deleted broken
	mount_up
	cd "$d"
	content .trash/kept kept
	equal 4 "$(find .trash -mindepth 1 -maxdepth 1 -printf x | wc -c)"
	# Where it says why, of each of the two that can be read no more.
	exits 0 ddbfs trash list .
	equal 2 "$(grep -c ' damaged .*/gone@' "$tmp/said")" "damaged entries in <$(cat "$tmp/said")>"
	for entry in .trash/gone@*; do
		refused cat "$entry"
		rm -f "$entry"
	done
	rm -rf .trash/heap
	lists .trash kept
	content .trash/kept kept
}

empties_a_trash_with_damage() {
	echo one >bad
	mkdir store
	echo one >store/worse
	rm -rf bad store
	cd /
	mount_down
	hurt_deleted bad
	hurt_deleted worse
	mount_up
	cd "$d"
	ddbfs trash empty --now .
	lists .trash
}

expires_damaged_entries() {
	mkdir brief
	ddbfs policy set brief retention=1s
	echo one >brief/due
	echo two >brief/other
	rm brief/due brief/other
	cd /
	mount_down
	hurt_deleted due
	mount_up
	cd "$d"
	empty() { [ -z "$(ls -A brief/.trash)" ]; }
	within_seconds 20 empty
}

removes_under_sealed_names() {
	local inode

	cd /
	mount_down
	rm -rf "$store"
	echo secret >"$tmp/key"
	head -c 64 /dev/urandom >"$tmp/key"
	ddbfs init --key-file "$tmp/key" "$store"
	mount_up --key-file "$tmp/key"
	mkdir -p "$mnt/hurt" "$mnt/whole"
	echo one >"$mnt/hurt/one"
	echo two >"$mnt/hurt/two"
	echo whole >"$mnt/whole/file"
	inode=$(number_of "$mnt/hurt")
	mount_down
	hurt "D$(pattern_of "$inode")ACT#" $((1 + 8 + 4 + 16))
	mount_up --key-file "$tmp/key"
	content "$mnt/whole/file" whole
	equal 2 "$(find "$mnt/hurt" -name 'damaged-*' -printf x | wc -c)" 'names made up'
	refused cat "$mnt"/hurt/damaged-*
	rm "$mnt/hurt/one"
	rm "$mnt"/hurt/damaged-*
	lists "$mnt/hurt"
	rmdir "$mnt/hurt"
	mount_down
	rm -rf "$store"
	ddbfs init "$store"
	mount_up
}

# largest_segment: the file of the store that holds the content of what was written last
largest_segment() {
	find "$store/segments" -type f -printf '%b %p\n' | sort -n | tail -n 1 | cut -d' ' -f2-
}

quarantines_all_kinds() {
	local directory segment

	mkdir -p keep lost/sub many
	echo text >keep/file
	echo text >gone-record
	echo text >lost/sub/file
	echo text >deleted
	rm deleted
	echo live >deleted # sound, and not what is damaged
	echo text >many/a
	ln many/a many/b
	directory=$(number_of many)
	head -c 6000000 /dev/urandom >partly
	cp partly "$tmp/partly"
	cd /
	mount_down
	ddbfs check "$store"
	hurt_live gone-record
	hurt_live lost
	hurt_deleted deleted
	hurt "G$(pattern_of "$directory")" 9
	hurt Mcounters 9
	segment=$(largest_segment)
	flip "$segment" 2000000
	exits 26 ddbfs check "$store"
	says gone-record
	says "/${d##*/}/lost"
	grep -qE "^/${d##*/}/\.trash/deleted@20[^:]*:.*; deleted from /${d##*/}/deleted$" "$tmp/said"
	equal 0 "$(grep -cE "^/${d##*/}/deleted:" "$tmp/said")" 'problems of the live file'
	says "/${d##*/}/partly"
	says 'nothing was changed'
	exits 0 ddbfs check --quarantine "$store"
	says "/${d##*/}/gone-record: removed"
	says "/${d##*/}/partly: moved to /lost+found/partly"
	says 'none left'
	exits 0 ddbfs check "$store"
	says '1 damaged in /lost+found'
	mount_up
	cd "$d"
	content keep/file text
	content lost/sub/file text
	equal 700 "$(stat -c %a lost)"
	content many/a text
	absent gone-record
	absent partly
	lists .trash
	content deleted live
	# What can be read of it can be had.
	equal 700 "$(stat -c %a "$mnt/lost+found")"
	refused cat "$mnt/lost+found/partly"
	dd if="$mnt/lost+found/partly" bs=32768 count=30 status=none | cmp - <(head -c $((32768 * 30)) "$tmp/partly")
	grep -q 'partly: moved to' "$mnt"/lost+found/quarantine-*.log
	# And be removed, or copied back.
	rm -rf "$mnt/lost+found"
	check_clean
}

quarantine_is_quiet_on_a_sound_store() {
	echo text >f
	cd /
	mount_down
	ddbfs check --quarantine "$store" >"$tmp/said"
	says clean
	ddbfs check --quarantine --json "$store" >"$tmp/said"
	says '"problems":0'
	mount_up
	absent "$mnt/lost+found"
	content "$d/f" text
}

quarantine_spares_the_users_lost_and_found() {
	local segment

	echo mine >"$mnt/lost+found"
	head -c 6000000 /dev/urandom >big
	cd /
	mount_down
	segment=$(largest_segment)
	flip "$segment" 1000000
	exits 0 ddbfs check --quarantine --json "$store"
	says '"done"'
	says '"problems_left":0'
	mount_up
	content "$mnt/lost+found" mine
	exists "$mnt/lost+found.2/big"
	rm -r "$mnt"/lost+found*
}

# A journal whose last records were synced, and are damaged: what they held is lost, and that is not to be found out by
# chance.
journal_refuses_then_is_discarded() {
	local i

	echo before >before
	cd /
	remount
	cp "$store/journal.0" "$store/journal.1" "$tmp"
	cd "$d"
	for i in $(seq 20); do
		echo "$i" >"file-$i"
		sync "file-$i"
	done
	cd /
	kill -9 "$(daemon_pid)"
	umount -l "$mnt"
	flip_written
	exits 26 mount_up
	says 'nothing was changed'
	says '--discard-journal'
	exits 26 ddbfs check "$store"
	exits 0 ddbfs check --discard-journal "$store"
	says discarded
	exists "$store/discarded-1/journal.0"
	exists "$store/discarded-1/journal.1"
	exits 0 ddbfs check --discard-journal --json "$store"
	says '"discarded":false'
	mount_up
	content "$d/before" before
	content "$d/file-1" 1
	absent "$d/file-20"
	check_clean
}

# flip_written: in the journal that changed most since it was copied to $tmp, halfway through what was written
flip_written() {
	local name most=0 count at journal=

	for name in journal.0 journal.1; do
		count=$({ cmp -l "$tmp/$name" "$store/$name" || true; } | wc -l)
		[ "$count" -le "$most" ] || { most=$count journal=$name; }
	done
	at=$({ cmp -l "$tmp/$journal" "$store/$journal" || true; } | sed -n "$((most / 2))s/^ *\([0-9]*\) .*/\1/p")
	flip "$store/$journal" $((at - 1))
}

old_database_is_refused_then_accepted() {
	echo old >old
	cd /
	mount_down
	cp "$store/data.mdb" "$tmp/old.mdb"
	mount_up
	for i in $(seq 50); do echo "$i" >"$d/new-$i"; done
	mount_down
	mount_up
	echo newer >"$d/newer"
	mount_down
	cp "$tmp/old.mdb" "$store/data.mdb"
	exits 26 mount_up
	says 'older than its journal'
	says 'nothing was changed'
	says '--discard-journal'
	exits 0 ddbfs check --discard-journal --quarantine "$store"
	mount_up
	content "$d/old" old
	absent "$d/newer"
	check_clean
}

# A byte that changes on the disk while the store is mounted.
scrub_finds_what_nobody_reads() {
	local segment

	cd /
	mount_down
	mount_new
	mkdir -p "$d"
	cd "$d"
	head -c 6000000 /dev/urandom >unread
	echo text >"read"
	ddbfs status . >"$tmp/said"
	says "scrub"
	cd /
	remount
	segment=$(largest_segment)
	flip "$segment" 3000000
	cd "$d"
	ddbfs scrub . >"$tmp/said"
	says 'in the background'
	found() { ddbfs status . >"$tmp/said" && grep -q "unread: part of its content" "$tmp/said"; }
	within_seconds 60 found
	ended() { ddbfs status . >"$tmp/said" && grep -q 'ended .*1 damaged' "$tmp/said"; }
	within_seconds 60 ended
	grep -q '^ddbfs_scrub_last_found 1$' "$mnt/.ddbfs/stats"
	content read text
	refused cat unread
	rm unread
	ddbfs trash empty --now .
	# What was found, and when, outlives the mount.
	cd /
	remount
	ddbfs status "$d" >"$tmp/said"
	says 'ended'
	mount_down
	ddbfs check --quarantine "$store"
	mount_up -o noscrub
	ddbfs status "$mnt" >"$tmp/said"
	grep -q 'scrub *off' "$tmp/said"
	refused ddbfs scrub "$mnt"
	mount_down
	mount_up
}

# Whatever LMDB's map gives: a disk that fails under it is an error, not the end of the daemon.
database_is_cut_under_the_mount() {
	local pid size

	mkdir many
	for i in $(seq 400); do echo "$i" >"many/$i"; done
	cd /
	remount
	pid=$(daemon_pid)
	size=$(stat -c %s "$store/data.mdb")
	cp "$store/data.mdb" "$tmp/whole.mdb"
	truncate -s 8192 "$store/data.mdb"
	ls -l "$d/many" >"$tmp/said" 2>&1 && fail 'lists what is not there'
	cat "$d/many/7" >>"$tmp/said" 2>&1 || true
	grep -q 'Input/output error' "$tmp/said"
	kill -0 "$pid"
	# What is read again when the disk is back is what was there.
	cat "$tmp/whole.mdb" >"$store/data.mdb"
	truncate -s "$size" "$store/data.mdb"
	content "$d/many/7" 7
	kill -9 "$pid"
	umount -l "$mnt"
	mount_up
	content "$d/many/400" 400
	check_clean
}

no_core_holds_a_key() {
	local pid m=$tmp/core status=0

	grep -Eq '^Max core file size +0 +0 ' "/proc/$(daemon_pid)/limits"
	# With limits that would allow one.
	mkdir "$m"
	ddbfs init "$tmp/corestore"
	(
		ulimit -c unlimited
		exec "$DDBFS" mount -f "$tmp/corestore" "$m"
	) >"$tmp/core.log" 2>&1 &
	pid=$!
	within_seconds 20 mountpoint -q "$m"
	grep -Eq '^Max core file size +0 +0 ' "/proc/$pid/limits"
	# Not dumpable: what belongs to a process of root's alone is another's to nobody.
	kill -QUIT "$pid"
	wait "$pid" || status=$?
	equal 131 "$status"
	umount -l "$m"
	[ -z "$(find "$tmp/corestore" . -name 'core*' -newer "$tmp/core.log")" ]
	rm -rf "$m" "$tmp/corestore"
	ddbfs status "$mnt" --json >"$tmp/said"
	grep -Eq '"memory_locked":(true|false)' "$tmp/said"
}

foreign_files_are_refused_before_the_mount() {
	local name kind before

	echo text >f
	cd /
	mount_down
	cp -a "$store" "$tmp/sound"
	for name in header data.mdb journal.0 journal.1 key; do
		for kind in empty cut random foreign; do
			rm -rf "$store"
			cp -a "$tmp/sound" "$store"
			spoil_file "$kind" "$store/$name"
			before=$(tree_hash)
			timeout 20 "$DDBFS" mount "$store" "$mnt" >"$tmp/said" 2>&1 </dev/null && {
				# A journal that is not the last may be missed by nobody.
				case $name in journal.*) mount_down && continue ;; esac
				fail "$kind $name: mounted"
			}
			! mounted || fail "$kind $name: mounted and refused"
			[ -s "$tmp/said" ]
			equal "$before" "$(tree_hash)" "$kind $name: the store's files"
		done
	done
	rm -rf "$store"
	mv "$tmp/sound" "$store"
	mount_up
	content "$d/f" text
}

tree_hash() {
	find "$store" -type f ! -name 'lock*' -print0 | sort -z | xargs -0 sha256sum | sha256sum
}

# What numbers were given out is not believed when it does not unseal: read-only, or made again.
makes_damaged_numbers_again() {
	local record id

	for record in ids clock; do
		echo "before $record" >"before-$record"
		cd /
		mount_down
		hurt "M$record" $((1 + ${#record}))
		refused ddbfs mount "$store" "$mnt"
		says "check --quarantine"
		ddbfs check "$store" >"$tmp/said" && fail "nothing found"
		mount_up -o ro
		[ "$(cat "$d/before-$record")" = "before $record" ] || fail "not readable: $(cat "$tmp/said")"
		! (echo no >"$d/new") 2>/dev/null || fail "written to"
		mount_down
		ddbfs check --quarantine "$store" >"$tmp/said" || fail "left: $(cat "$tmp/said")"
		says "is made again"
		ddbfs check "$store" >"$tmp/said" || fail "found: $(cat "$tmp/said")"
		mount_up
		cd "$d" || return
		id=$(number_of "before-$record")
		echo after >"after-$record"
		[ "$(number_of "after-$record")" -gt "$id" ] || fail "a number given twice"
		rm "after-$record"
		ddbfs undo . >"$tmp/said"
		[ "$(cat "after-$record")" = after ] || fail "not undone"
	done
}

# spoil_file KIND FILE
spoil_file() {
	local size

	size=$(stat -c %s "$2")
	case $1 in
	empty) : >"$2" ;;
	cut) truncate -s $((size / 2)) "$2" ;;
	random) head -c $((size < 100000 ? size : 100000)) /dev/urandom >"$2" && truncate -s "$size" "$2" ;;
	foreign) head -c 200000 "$DDBFS" >"$2" ;;
	esac
}

mount_new
it 'removes a damaged file, and a tree that holds one' removes_a_damaged_file
it 'keeps what is in a directory whose record is damaged, and removes it' removes_a_damaged_directory
it 'lists and purges damaged entries of the trash' purges_damaged_entries
it 'empties a trash that holds damaged entries' empties_a_trash_with_damage
it 'lets damaged entries expire' expires_damaged_entries
it 'removes damaged items whose names are sealed' removes_under_sealed_names
it 'mends and sets aside all kinds of damage' quarantines_all_kinds
it 'changes nothing in a sound store' quarantine_is_quiet_on_a_sound_store
it 'sets aside beside a name that is taken' quarantine_spares_the_users_lost_and_found
it 'refuses a damaged journal, and goes on without it when told so' journal_refuses_then_is_discarded
it 'refuses an older database, and goes on with it when told so' old_database_is_refused_then_accepted
it 'finds damage in what nobody reads, while it is mounted' scrub_finds_what_nobody_reads
it 'answers EIO while the database is cut under it, and lives' database_is_cut_under_the_mount
it 'leaves no core file with keys' no_core_holds_a_key
it 'makes damaged records of ids and of the clock again' makes_damaged_numbers_again
it 'D6 refuses empty, cut, random and foreign files before the mount, and writes nothing' foreign_files_are_refused_before_the_mount
done_testing
