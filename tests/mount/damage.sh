#!/usr/bin/env bash
#
# Damage in items: what is hurt is an error and can be removed, nothing else
# suffers, `ddbfs check` names it and sets it aside.
# timeout: 600
. "$(dirname "$0")/lib.sh"

# hurt PATTERN: changes a byte of every value in the database whose key ends with
# PATTERN (a Perl regular expression of bytes), in its first sealed box. Unmounted.
hurt() {
	local at

	grep -obUaP "$1" "$store/data.mdb" >"$tmp/places" || fail "no such key: $1"
	while IFS=: read -r at _; do
		# What was found has the length of the key; the box begins 20 bytes behind it.
		at=$((at + $2 + 30))
		flip "$store/data.mdb" "$at"
	done < <(cut -d: -f1 "$tmp/places" | sed 's/$/:/')
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
	ddbfs trash list . >"$tmp/list"
	grep -q damaged "$tmp/list"
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

mount_new
it 'removes a damaged file, and a tree that holds one' removes_a_damaged_file
it 'keeps what is in a directory whose record is damaged, and removes it' removes_a_damaged_directory
it 'lists and purges damaged entries of the trash' purges_damaged_entries
it 'empties a trash that holds damaged entries' empties_a_trash_with_damage
it 'lets damaged entries expire' expires_damaged_entries
it 'removes damaged items whose names are sealed' removes_under_sealed_names
done_testing
