#!/usr/bin/env bash
#
# The main job on a real tree of at least 10,000 files: copy in, compare, delete
# half, restore by mv and by undo, compare, remount, compare, check.
# timeout: 900
# alone
. "$(dirname "$0")/lib.sh"
limit=300
ddbfs_limit=250

source_tree=$tmp/source
tree=$mnt/tree

# Real files of this machine, and generated ones where there are too few.
make_source() {
	local n=0 have

	mkdir "$source_tree"
	for from in /usr/include /usr/share/doc /usr/share/perl /usr/lib/python3; do
		have=$(count "$source_tree" -type f)
		[ "$have" -lt 12000 ] || break
		[ -d $from ] || continue
		mkdir -p "$source_tree${from%/*}"
		cp -a $from "$source_tree${from%/*}/"
	done
	while [ "$(count "$source_tree" -type f)" -lt 10000 ]; do
		n=$((n + 1))
		"$sys" make "$source_tree/generated$n" 1000 $((n * 700)) >/dev/null
	done
	# What such trees lack: links, holes, attributes, owners, modes, odd times.
	mkdir "$source_tree/special"
	cd "$source_tree/special"
	echo linked >one && ln one two && ln one three
	truncate -s 100M sparse && echo end >>sparse
	echo x >attributes && setfattr -n user.test -v value attributes && setfattr -n trusted.t -v 1 attributes
	echo x >owned && chown 1234:5678 owned && chmod 4711 owned
	mkfifo fifo && mknod null c 1 3 && ln -s ../nowhere broken
	mkdir -m 2770 group && chown :33 group
	touch -d '1969-07-20 20:17:40.123456789' old && touch -d '2150-01-01 00:00:00.987654321' future
	head -c 20000000 /dev/urandom >large
	within 10000 1000000 "$(count "$source_tree" -type f)" 'files'
	echo "$(count "$source_tree" -type f) files"
}

copied_in() {
	cp -a "$source_tree" "$tree"
	same_tree "$source_tree" "$tree"
	equal "$(cd "$source_tree" && find . -printf '%p %y %m %U %G %n %l\n' | grep -v '^\.[^ ]* d' | sort | md5sum)" \
		"$(cd "$tree" && find . -printf '%p %y %m %U %G %n %l\n' | grep -v '^\.[^ ]* d' | sort | md5sum)" \
		'types, modes, owners and links by find'
}

# Paths some levels down, in two halves: usr/share/doc/PACKAGE, usr/include/DIRECTORY/NAME, usr/include/NAME.h.
halves() {
	(cd "$source_tree" && find . -mindepth 3 \( -path '*/*/*/*/*' -o ! -type d \) -prune -print |
		sort | awk -v h="$1" 'NR % 2 == h')
}

deleted_half_restored_by_mv() {
	local path

	cd "$tree"
	halves 0 >"$tmp/half"
	within 20 100000 "$(wc -l <"$tmp/half")" 'paths in a half'
	xargs -d '\n' rm -rf <"$tmp/half"
	while read -r path; do absent "$path"; done < <(head -n 50 "$tmp/half")
	while read -r path; do
		mv -T "$(dirname "$path")/.trash/$(basename "$path")" "$path"
	done <"$tmp/half"
	# Their parents were never deleted: their mtime is that of the move.
	same_tree "$source_tree" "$tree" --omit-dir-times
}

deleted_half_restored_by_undo() {
	local files

	cd "$tree"
	files=$(count . -type f)
	halves 1 | apart xargs -d '\n' rm -rf
	within 1 $((files - 1000)) "$(count . -type f)" 'files left'
	ddbfs undo >"$tmp/said"
	same_tree "$source_tree" "$tree" --omit-dir-times
}

deleted_whole_and_undone() {
	local files

	cd "$mnt"
	# Times of directories are compared too: they were all deleted themselves.
	rsync -a --include='*/' --exclude='*' "$source_tree/" tree/
	same_tree "$source_tree" tree
	files=$(count tree -type f)
	apart rm -rf tree
	absent tree
	lists .trash tree
	equal "$files" "$(count .trash/tree -type f)" 'files in the view'
	ddbfs undo >"$tmp/said"
	same_tree "$source_tree" tree
}

whole_tree_by_mv() {
	cd "$mnt"
	apart rm -rf tree
	mv .trash/tree tree
	same_tree "$source_tree" tree
	lists .trash
}

after_remount() {
	cd /
	remount
	same_tree "$source_tree" "$tree"
	check_clean
	same_tree "$source_tree" "$tree"
}

deleted_across_a_remount() {
	cd "$mnt"
	apart rm -rf tree/special
	apart rm -rf tree/usr/include
	cd /
	remount
	cd "$mnt"
	mv tree/.trash/special tree/
	mv tree/usr/.trash/include tree/usr/
	same_tree "$source_tree" tree --omit-dir-times
}

mount_new
it 'a real tree of at least 10,000 files is at hand' make_source
it 'cp -a copies it in: bytes, modes, owners, links, xattrs and times are the same' copied_in
it 'half of it, rm -rf and restored by mv, is the same' deleted_half_restored_by_mv
it 'the other half, rm -rf and restored by undo, is the same' deleted_half_restored_by_undo
it 'all of it, rm -rf and undone, is the same with the times of directories' deleted_whole_and_undone
it 'all of it, rm -rf and moved out of .trash, is the same with the times of directories' whole_tree_by_mv
it 'after a remount and a check it is the same' after_remount
it 'what was deleted before a remount is restored after it' deleted_across_a_remount
it 'leaves a store that checks clean' check_clean
done_testing
