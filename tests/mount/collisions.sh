#!/usr/bin/env bash
#
# The same name deleted more than once, and restoring onto what is there.
# timeout: 600
. "$(dirname "$0")/lib.sh"

deleted_five_times() {
	local i names=() name seen=()

	for i in 1 2 3 4 5; do
		echo "version $i" >f
		rm f
	done
	mapfile -t names < <(ls -A .trash)
	equal 5 ${#names[@]} 'entries in .trash'
	# The newest bears the name, each holds its own bytes.
	content .trash/f 'version 5'
	equal "$(printf 'version %s\n' 1 2 3 4 5)" "$(sort .trash/*)" 'contents of all'
	for name in "${names[@]}"; do
		content ".trash/$name" "$(cat ".trash/$name")"
		seen+=("$(cat ".trash/$name")")
		mv ".trash/$name" "back-${#seen[@]}"
		content "back-${#seen[@]}" "${seen[-1]}"
	done
	equal "$(printf 'version %s\n' 1 2 3 4 5)" "$(sort back-*)" 'restored'
	lists .trash
}

names_of_older_ones_stay() {
	local older

	echo 1 >f && rm f
	sleep 1.1
	echo 2 >f && rm f
	older=$(older f)
	content ".trash/$older" 1
	[[ $older =~ ^f@20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?Z$ ]]
	sleep 1.1
	echo 3 >f && rm f
	# The name that was told still means the same entry; so does its full form.
	content ".trash/$older" 1
	equal 3 "$(ls .trash | wc -l)" 'entries'
	mv ".trash/$older" first
	content first 1
	absent ".trash/$older"
}

directory_deleted_twice() {
	mkdir -p d/sub
	echo first >d/a && echo first >d/sub/only1
	cp -a d "$tmp/first"
	rm -rf d
	mkdir -p d/sub
	echo second >d/a && echo second >d/only2
	cp -a d "$tmp/second"
	rm -rf d
	equal 2 "$(ls .trash | wc -l)" 'entries'
	content .trash/d/only2 second
	content ".trash/$(older d)/sub/only1" first
	mv ".trash/$(older d)" d1
	mv .trash/d d2
	same_tree "$tmp/first" d1
	same_tree "$tmp/second" d2
	lists .trash
	rm -rf "$tmp/first" "$tmp/second"
}

missing_parents_come_back() {
	mkdir -p a/b
	chown $alice:$bob a/b
	chmod 2751 a
	chmod 700 a/b
	setfattr -n user.mark -v kept a/b
	echo text >a/b/f
	echo other >a/b/sibling
	echo other >a/sibling
	touch -d '2001-02-03 04:05:06.789' a/b a
	apart rm a/b/f
	touch -d '2001-02-03 04:05:06.789' a/b a
	stat -c '%n %a %u %g %.9Y' a a/b >"$tmp/before"
	apart rm -rf a
	absent a
	ddbfs trash restore "$d/a/b/f"
	content a/b/f text
	stat -c '%n %a %u %g %.9Y' a a/b >"$tmp/after"
	equal "$(cat "$tmp/before")" "$(cat "$tmp/after")" 'mode, owner and time of the parents'
	equal kept "$(getfattr --only-values -n user.mark a/b)" 'extended attribute of a parent'
	lists a b
	lists a/b f
	# The rest can follow, and merges.
	ddbfs undo
	content a/b/sibling other
	content a/sibling other
	content a/b/f text
}

renamed_parent() {
	mkdir a
	echo text >a/f
	rm a/f
	mv a z
	exists z/.trash/f
	ddbfs trash restore "$d/z/f"
	content z/f text
	absent a
}

parent_is_a_file_now() {
	mkdir a
	echo text >a/f
	apart rm a/f
	apart rmdir a
	echo 'a file' >a
	local entry
	entry=$(ls .trash)
	exists ".trash/$entry/f"
	refused ddbfs trash restore "$d/.trash/$entry/f"
	says "$d/a"
	ddbfs undo --skip # of the rmdir
	ddbfs undo --skip >"$tmp/said" || true
	says "left     $d/a/f (its directory is a file now: $d/a)"
	content a 'a file'
	content ".trash/$entry/f" text
	# By mv to somewhere else it still comes back.
	mv ".trash/$entry/f" f
	content f text
}

name_is_taken() {
	echo old >f
	rm f
	echo new >f
	exits 5 ddbfs trash restore "$d/f"
	content f new
	content .trash/f old
	exits 5 ddbfs undo
	content f new
	ddbfs trash restore --rename "$d/f"
	content f new
	content 'f (restored)' old
	lists .trash
}

swapped() {
	echo old >f
	echo new >new
	mv new f
	ddbfs trash restore --swap "$d/f" >"$tmp/said"
	says 'what replaced it is in the trash'
	content f old
	content .trash/f new
	equal replaced "$(getfattr --only-values -n user.ddbfs.cause .trash/f)" cause
	ddbfs trash restore --swap --json "$d/f" | jq -e '.swapped and (.skipped | not)' >/dev/null
	content f new
	content .trash/f old
	lists .trash f
	# Who has it open keeps it.
	exec 3<f
	ddbfs trash restore --swap "$d/f" >/dev/null
	equal new "$(cat <&3)" 'the open file'
	exec 3<&-
	mv f elsewhere
	exits 5 ddbfs trash restore --swap "$d/f"
	says 'no longer bears the name'
	exits 2 ddbfs trash restore --swap --replace "$d/f"
	exits 2 ddbfs trash restore --swap --to "$d" "$d/f"
	rm elsewhere
	exits 5 ddbfs trash restore --swap "$d/elsewhere"
	says 'restore it without --swap'
	# Directories, with what is in them.
	mkdir a b
	echo b >b/in
	mv -T b a
	ddbfs trash restore --swap "$d/a" >/dev/null
	lists a
	content .trash/a/in b
	ddbfs trash restore --swap "$d/a" >/dev/null
	content a/in b
}

replacing_restores() {
	echo old >f
	rm f
	echo new >f
	ddbfs trash restore --replace "$d/f"
	content f old
	content .trash/f new
	# Plain mv is rename(2): it replaces, and what it replaced is in the trash.
	mv -f .trash/f f
	content f new
	content .trash/f old
	mkdir dir
	refused mv -T .trash/f dir
	content .trash/f old
	gives EISDIR rename .trash/f dir
	gives EEXIST rename .trash/f f noreplace
	mkdir e && touch e/x && rm -r e && mkdir e && touch e/y
	gives ENOTEMPTY rename .trash/e e
	gives ENOTDIR rename .trash/e f
}

deleted_at() {
	date -d "$(getfattr --only-values -n user.ddbfs.deleted_at "$1")" +%s
}

old_deletions_stay() {
	mkdir -p tree/sub
	echo keep1 >tree/one
	echo keep2 >tree/sub/two
	echo old >tree/sub/old
	apart rm tree/sub/old
	# A week passes, for the boot clock too: that is believed.
	clocks $((7 * 86400)) $((7 * 86400))
	ln tree/one outside
	setfattr -n user.x -v y tree/sub
	chmod 750 tree/sub
	touch -d '1999-12-31 23:59:59.123456789' tree/one tree/sub tree
	cp -a --sparse=never tree "$tmp/tree"
	apart rm -rf tree
	absent tree
	equal 1 "$(stat -c %h outside)" 'links of a file whose other name is deleted'
	mv .trash/tree tree
	two_links() { [ "$(stat -c %h outside)" = 2 ]; }
	within_seconds 5 two_links
	same_tree "$tmp/tree" tree
	absent tree/sub/old
	content tree/sub/.trash/old old
	echo now >now
	apart rm now
	within 604800 604920 $(($(deleted_at .trash/now) - $(deleted_at tree/sub/.trash/old))) 'seconds between'
	equal 2 "$(stat -c %h outside)" 'links of a file with a name outside'
	equal "$(stat -c %i outside)" "$(stat -c %i tree/one)" 'its inode'
	rm -rf "$tmp/tree"
}

parts_first() {
	mkdir -p tree/sub/deep tree/other
	echo 1 >tree/sub/f
	echo 2 >tree/sub/g
	echo 3 >tree/sub/deep/h
	echo 4 >tree/other/i
	touch -d '2003-03-03 03:03:03.333' tree/sub/deep tree/other tree/sub tree
	cp -a tree "$tmp/parts"
	rm -rf tree
	ddbfs trash restore "$d/.trash/tree/sub/f"
	content tree/sub/f 1
	lists tree sub
	lists tree/sub f
	ddbfs undo
	same_tree "$tmp/parts" tree
	rm -rf "$tmp/parts"
	lists .trash
}

rest_by_restore() {
	mkdir -p tree/sub/deep tree/other
	echo 1 >tree/sub/f
	echo 2 >tree/sub/g
	echo 3 >tree/sub/deep/h
	echo 4 >tree/other/i
	touch -d '2003-03-03 03:03:03.333' tree/sub/deep tree/other tree/sub tree
	cp -a tree "$tmp/rest"
	apart rm -rf tree
	ddbfs trash restore "$d/tree/sub/f"
	# By the path it had, or by the one that leads there in the trash.
	ddbfs trash restore "$d/tree/sub" >"$tmp/said"
	says "restored $d/tree/sub (3 items)"
	ddbfs trash restore --json "$d/.trash/tree" | jq -es '.[-1] | .items == 2 and .left == 0'
	same_tree "$tmp/rest" tree
	lists .trash
	exits 4 ddbfs trash restore "$d/tree"
	# Only a name that is taken in it is in the way, and nothing else is moved then.
	apart rm -rf tree
	ddbfs trash restore "$d/tree/sub/f"
	echo mine >tree/sub/g
	exits 5 ddbfs trash restore "$d/tree"
	says "left     $d/tree/sub/g (the name is taken)"
	lists tree sub
	ddbfs trash restore --skip "$d/tree" >"$tmp/said"
	says "left     $d/tree/sub/g (the name is taken)"
	content tree/other/i 4
	content tree/sub/g mine
	ddbfs trash restore --rename "$d/tree"
	content 'tree/sub/g (restored)' 2
	lists tree/.trash
	# What nobody of this directory lost is left alone.
	mkdir beside && echo 5 >beside/j && echo 6 >tree/k
	apart rm beside/j tree/k tree/other/i
	mv tree/other/.trash/i tree/other/i
	ddbfs trash restore "$d/tree"
	content tree/k 6
	absent beside/j
	# Another directory of that name is no part of it.
	apart rm -rf beside
	mkdir beside
	exits 5 ddbfs trash restore "$d/beside"
	rm -rf "$tmp/rest"
}

rest_of_others() {
	# What someone may not restore stays, and is not named to him.
	install -d -m 777 tree
	install -d -m 755 -o $alice tree/own
	install -d -m 755 -o $alice tree/own/open
	as $alice touch tree/own/a tree/own/b tree/own/open/c
	as $alice setsid rm -rf tree/own/a tree/own/b tree/own/open
	as $alice mv tree/own/.trash/a tree/own/a
	exits 1 as $bob "$DDBFS" trash restore "$d/tree/own"
	says 'not permitted'
	refused grep -qE 'own/(b|open)' "$tmp/said"
	absent tree/own/b
	as $alice "$DDBFS" trash restore "$d/tree/own"
	exists tree/own/b
	exists tree/own/open/c
}

second_shell_in_the_deleted_tree() {
	mkdir -p tree/sub
	echo inside >tree/sub/f
	mkfifo "$tmp/ask" "$tmp/answer"
	(
		cd tree/sub
		exec 3<f
		while read -r command; do eval "$command" >"$tmp/answer" 2>&1; done
	) <"$tmp/ask" &
	exec 9>"$tmp/ask"
	rm -rf tree
	echo 'cat <&3' >&9
	equal inside "$(cat "$tmp/answer")" 'through a descriptor that was open'
	mv .trash/tree tree
	# shellcheck disable=SC2016
	echo 'cd "$PWD"; ls; cat f; echo new >g; cat g' >&9
	equal 'f inside new' "$(xargs <"$tmp/answer")" 'by path in the restored tree'
	exec 9>&-
	wait
	lists tree/sub f g
	echo direct >tree/sub/h
	lists tree/sub f g h
	rm "$tmp/ask" "$tmp/answer"
}

restore_within_a_view_is_whole() {
	# What a listed tree shows can be had back whole, or not at all.
	mkdir -p t/a t/b
	echo 1 >t/a/x
	echo 2 >t/b/y
	rm -rf t
	equal '1 2' "$(cat .trash/t/a/x .trash/t/b/y | xargs)" 'read in the view'
	mv .trash/t/a a
	content a/x 1
	lists .trash/t b
	mv .trash/t t
	lists t b
	content t/b/y 2
}

reserved_names() {
	mkdir a
	echo text >a/.ddbfs
	rm a/.ddbfs
	exits 5 ddbfs trash restore --to "$mnt" "$d/a/.ddbfs"
	exits 5 ddbfs trash restore --replace --to "$mnt" "$d/a/.ddbfs"
	exits 0 ddbfs trash restore --rename --to "$mnt" "$d/a/.ddbfs"
	content "$mnt/.ddbfs (restored)" text
	exists "$mnt/.ddbfs/stats"
	rm "$mnt/.ddbfs (restored)"
}

use_clock
mount_new -o allow_other
chmod 755 "$mnt"
it 'C1 one name deleted five times: five entries, each restores its own bytes' deleted_five_times
it 'C1 older entries bear name@time, which stays theirs' names_of_older_ones_stay
it 'C2 a directory deleted twice: both trees are listed and restorable' directory_deleted_twice
it 'C3 restoring to the origin recreates missing parents, and only those' missing_parents_come_back
it 'C4 the parent was renamed: the file is restored under its new name' renamed_parent
it 'N3 a restore makes no name that is the file system'\''s own' reserved_names
it 'C5 the parent is a file now: refused, named, and the entry stays' parent_is_a_file_now
it 'C6 a taken name is refused with exit code 5, or the entry renamed' name_is_taken
it 'C6 replacing follows rename(2), and what is replaced goes to the trash' replacing_restores
it 'C6 --swap exchanges what a rename replaced with what replaced it, and nothing else' swapped
it 'C8 restoring a tree brings what its rm -rf took, and not what went before' old_deletions_stay
it 'C10 a part restored first, then the rest: they merge' parts_first
it 'C10 a part restored first, then the rest by restore of the directory' rest_by_restore
it 'C10 the rest of a directory that is another user'\''s stays' rest_of_others
it 'C10 a directory moved out of a deleted tree, then the rest' restore_within_a_view_is_whole
it 'C11 a second shell in the deleted tree works by path after the restore' second_shell_in_the_deleted_tree
it 'leaves a store that checks clean' check_clean -o allow_other
done_testing
