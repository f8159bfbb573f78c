#!/usr/bin/env bash
#
# Batches: what one command, script or program deletes comes back by one undo.
# DDBFS_UNDO_ENTRIES (2000): how many entries the undo has that is killed at ten points.
# timeout: 600
. "$(dirname "$0")/lib.sh"

# tree NAME...: small trees, with a copy to compare with in $tmp/was/NAME.
trees() {
	local name

	rm -rf "$tmp/was"
	mkdir -p "$tmp/was"
	for name in "$@"; do
		mkdir -p $name/x/y
		for i in 1 2 3 4 5; do echo "$name $i" | tee $name/f$i $name/x/g$i >$name/x/y/h$i; done
		touch -d '2004-04-04 04:04:04.444' $name/x/y $name/x $name
		cp -a $name "$tmp/was/"
	done
}

all_back() {
	local name

	for name in "$@"; do same_tree "$tmp/was/$name" $name; done
}

one_rm() {
	trees a b c
	apart rm -rf a b c
	lists .
	ddbfs undo
	all_back a b c
}

find_exec() {
	gives ok make d 40 10
	apart find d -type f -exec rm {} \;
	lists d
	ddbfs undo
	equal 40 "$(count d -type f)" files
}

parallel_xargs() {
	trees a b c d e f g h
	ls | apart xargs -P8 -n1 rm -rf
	lists .
	ddbfs undo
	all_back a b c d e f g h
}

threads() {
	gives ok make d 400 10
	apart "$sys" unlink-by-threads 4 d
	lists d
	ddbfs undo
	equal 400 "$(count d -type f)" files
	content d/f399 0000000399
}

one_after_the_other() {
	echo 1 >one && echo 2 >two && echo 3 >three
	apart rm one
	apart rm two
	apart rm three
	ddbfs undo
	lists . three
	ddbfs undo
	lists . three two
	ddbfs undo
	lists . one three two
	exits 4 ddbfs undo .
}

listed() {
	local id

	echo 1 >one && echo 22 >two
	apart rm one
	apart rm two
	ddbfs undo --list >"$tmp/said"
	says rm
	ddbfs undo --list --json >"$tmp/batches"
	id=$(jq -rs 'map(select(.undone | not)) | sort_by(.id) | .[-2].id' "$tmp/batches")
	ddbfs undo --dry-run
	lists .
	ddbfs undo "$id"
	content one 1
	absent two
}

nothing_moves_on_conflict() {
	echo 1 >a && echo 2 >b && echo 3 >c
	apart rm a b c
	echo new >b
	exits 5 ddbfs undo
	says b
	lists . b
	content b new
	ddbfs undo --skip
	content a 1
	content c 3
	content b new
	content .trash/b 2
	rm a c
}

renames_or_replaces() {
	echo 1 >a && echo 2 >b
	apart rm a b
	echo new >b
	ddbfs undo --rename
	content a 1
	content b new
	content 'b (restored)' 2
	apart rm a b 'b (restored)'
	echo newer >b
	ddbfs undo --replace
	content b new
	content 'b (restored)' 2
	content .trash/b newer
}

partly_back() {
	echo 1 >a && echo 2 >b && echo 3 >c
	apart rm a b c
	mv .trash/b b
	ddbfs undo
	content a 1
	content b 2
	content c 3
	echo 4 >d && echo 5 >e
	apart rm d e
	ddbfs trash empty --now . >/dev/null
	exits 3 ddbfs undo
	says '2 no longer there'
}

as_json() {
	echo 1 >a
	apart rm a
	ddbfs undo --json | jq -e . >/dev/null
	content a 1
}

ten_thousand() {
	gives ok make d 10000 20
	apart rm -rf d
	ddbfs undo
	equal 10000 "$(count d -type f)" files
	content d/f9999 00000000000000009999
	equal "$(seq -f 'd/f%g' 0 9999 | sort | md5sum)" "$(find d -type f | sort | md5sum)" names
	# Also a lookup of each, not only the listing.
	for i in $(seq 0 97 9999); do gives ok stat d/f$i; done
}

replacements_are_no_removals() {
	echo 1 >gone
	apart rm gone
	for i in 1 2 3; do
		echo $i >new
		mv new saved
	done
	ddbfs undo
	content gone 1
	content saved 3
}

options_together() {
	local id

	mkdir e
	for i in 1 2 3; do echo $i >a$i && echo $i >b$i && echo $i >e/a$i; done
	apart rm -r a1 a2 a3 b1 b2 b3 e
	echo new >a2
	# Says what it would do to each, and why not; nothing moves.
	ddbfs undo --only 'a*' --skip --dry-run >"$tmp/said" || fail "dry run: $?"
	says "would    $d/a1"
	says "left     $d/a2 (the name is taken)"
	says 'would bring back 2 items'
	lists . a2
	ddbfs undo --only 'a*' --rename --dry-run --json >"$tmp/said"
	equal 3 "$(jq -s '.[:-1] | length' "$tmp/said")" 'entries of the dry run'
	equal 3 "$(jq -s '.[-1].restored' "$tmp/said")" 'restored by the dry run'
	exits 5 ddbfs undo --only 'a*'
	lists . a2
	exits 2 ddbfs undo --only 'a*' --skip --replace
	exits 4 ddbfs undo --only 'z*'
	id=$(ddbfs undo --list --json | jq -rs '.[0].id')
	ddbfs undo --only 'a*' --skip "$id" --json >"$tmp/said"
	equal 2 "$(jq -s '.[-1].restored' "$tmp/said")" restored
	equal 1 "$(jq -s '.[-1].skipped' "$tmp/said")" skipped
	lists . a1 a2 a3
	# The rest of the batch can still be undone, by the same number; what is there is kept or goes to the trash.
	ddbfs undo --only 'b?' --replace "$id" >/dev/null
	lists . a1 a2 a3 b1 b2 b3
	ddbfs undo --rename "$id" >"$tmp/said"
	content 'a2 (restored)' 2
	content a2 new
	content e/a3 3
	exits 4 ddbfs undo 1
}

lists_say_what_where_and_when() {
	mkdir sub
	head -c 3000 /dev/zero >sub/x && head -c 1000 /dev/zero >sub/y
	(cd sub && apart rm x y)
	ddbfs undo --list --json >"$tmp/said"
	jq -es --arg where "/${d##*/}/sub" '.[0] | .command == "rm" and .count == 2 and .bytes == 4000 and .uid == 0
		and .directory == $where and .deleted_at != null and (.undone | not)' "$tmp/said"
	ddbfs undo --list | sed -n 2p >"$tmp/said"
	says "$d/sub"
	says '3.9 KiB'
	ddbfs undo >/dev/null
	ddbfs undo --list | sed -n 2p >"$tmp/said"
	says undone
}

# killed N WHAT: an undo of a large batch, broken off ten times, is finished by the same command
killed() {
	local n=$1 what=$2 i pid batch daemon

	gives ok make d "$n" 20
	apart find d -type f -delete
	lists d
	batch=$(ddbfs undo --list --json | jq -rs '.[0].id')
	for ((i = 1; i <= 10; i++)); do
		# Later and later: from before the first entry to far into the batch.
		daemon=$(daemon_pid)
		"$DDBFS" undo "$mnt" "$batch" >/dev/null 2>&1 </dev/null &
		pid=$!
		sleep "$(awk "BEGIN { print $i * 0.02 * $n / 2000 }")"
		if [ "$what" = tool ]; then
			kill -9 $pid 2>/dev/null || true
			wait $pid || true
		else
			cd /
			kill -9 "$daemon"
			wait $pid || true
			within_seconds 10 gives ENOTCONN stat "$mnt/x"
			umount -l "$mnt"
			# A process that dies lets go of its mount first, and of the store a moment later.
			within_seconds 10 mount_up
			cd "$d"
		fi
		ddbfs undo --list --json | jq -rs --arg id "$batch" '.[] | select(.id == $id) | .restored' >>"$tmp/points"
	done
	echo "back after each: $(xargs <"$tmp/points")"
	rm "$tmp/points"
	# What it did then is finished, or waits for the next; nothing is twice or half.
	ddbfs_limit=150 ddbfs undo "$mnt" "$batch" --json >"$tmp/said" || equal 4 $?
	equal "$n" "$(count d -type f)" files
	equal "$(seq -f 'd/f%g' 0 $((n - 1)) | sort | md5sum)" "$(find d -type f | sort | md5sum)" names
	content d/f$((n - 1)) "$(printf '%020d' $((n - 1)))"
	lists d/.trash
	ddbfs undo --list --json | jq -es --arg id "$batch" --argjson n "$n" \
		'.[] | select(.id == $id) | .undone and .count == $n'
	exits 0 ddbfs undo "$mnt" "$batch" --json
	equal "$n" "$(jq .already <<<"$(grep already "$tmp/said")")" 'already back'
	rm -rf d
}

killed_daemon() {
	local pid

	trees a
	apart rm -rf a
	cd /
	pid=$(daemon_pid)
	kill -9 "$pid"
	within_seconds 10 gives ENOTCONN stat "$mnt/x"
	umount -l "$mnt"
	within_seconds 10 mount_up
	cd "$d"
	ddbfs undo
	all_back a
}

mount_new
it 'rm -rf a b c is one undo' one_rm
it 'find -exec rm is one undo' find_exec
it 'xargs -P8 rm is one undo' parallel_xargs
it 'a deleter with four threads is one undo' threads
it 'each undo takes the batch before, then there is nothing' one_after_the_other
it 'undo lists batches, takes one by its number, and can only say' listed
it 'a taken name: exit code 5 and nothing moves, or --skip' nothing_moves_on_conflict
it 'a taken name: --rename and --replace' renames_or_replaces
it 'what is already back counts as done, what is destroyed is named' partly_back
it 'undo speaks JSON' as_json
it 'ten thousand names are back by look-up and listing when undo returns' ten_thousand
it 'replacements by rename are no removals' replacements_are_no_removals
it 'options together: --only, --dry-run, --skip, --rename, --replace, ID, as JSON' options_together
it '--list tells time, command, count, size and where' lists_say_what_where_and_when
it 'a batch survives the death of the daemon' killed_daemon
it 'kill -9 of the tool at ten points of an undo: the same command finishes' killed "${DDBFS_UNDO_ENTRIES:-2000}" tool
it 'kill -9 of the daemon at ten points of an undo: the same command finishes' killed "${DDBFS_UNDO_ENTRIES:-2000}" daemon
it 'leaves a store that checks clean' check_clean
done_testing
