#!/usr/bin/env bash
#
# Batches: what one command, script or program deletes comes back by one undo.
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

killed_daemon() {
	local pid

	trees a
	apart rm -rf a
	cd /
	pid=$(daemon_pid)
	kill -9 "$pid"
	within_seconds 10 gives ENOTCONN stat "$mnt/x"
	umount -l "$mnt"
	mount_up
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
it 'a batch survives the death of the daemon' killed_daemon
it 'leaves a store that checks clean' check_clean
done_testing
