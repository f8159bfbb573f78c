#!/usr/bin/env bash
#
# Files that are open while their names go, come back and are used again.
# timeout: 600
. "$(dirname "$0")/lib.sh"

unlinked_while_open() {
	mkdir d
	echo first >d/f
	exec 3<>d/f
	rm d/f
	lists d
	read -r line <&3
	equal first "$line"
	echo second >&3
	rmdir d
	echo third >&3
	exec 3>&-
	equal 'first second third' "$(xargs <.trash/d/f)" 'the entry after the last close'
	mv .trash/d d
	equal 'first second third' "$(xargs <d/f)" 'restored'
}

# One that its maker removes again is temporary, and destroyed at once; any other is in the trash.
directory_removed_while_open() { # RMDIR COMMAND...
	mkdir d
	(
		cd d
		exec 3<.
		"$@"
		equal 0 "$(stat -L -c %h /proc/self/fd/3)" 'links of a removed directory'
		equal 0 "$(stat -c %h .)" 'the same by its own name'
		equal '' "$(ls -A . 2>/dev/null)" 'names in it'
		exec 4<.
		gives ENOENT open f creat,wronly
		gives ENOENT mkdir sub
	)
	mkdir d
	rmdir d
}

directories_removed_while_open() {
	directory_removed_while_open rmdir ../d
	directory_removed_while_open python3 -c 'import os; os.mkdir("../e"); os.chdir("../e"); os.rmdir("../e"); assert os.stat(".").st_nlink == 0; os.close(os.open(".", os.O_RDONLY)); os.rmdir("../d")'
}

links_removed_while_open() {
	echo text >a
	ln a b
	ln a c
	exec 3<a
	rm a b c
	equal text "$(cat <&3)" 'through the open descriptor'
	equal 0 "$(stat -L -c %h /proc/self/fd/3)" 'links of a file without names'
	lists .trash a b c
	equal 1 "$(stat -c %i .trash/a .trash/b .trash/c | sort -u | wc -l)" 'different inodes'
	mv .trash/a .
	mv .trash/b .
	equal 2 "$(stat -c %h a)" 'links after two restores'
	equal "$(stat -c %i a)" "$(stat -c %i b)" inode
	echo more >>a
	equal 'text more' "$(xargs <b)" 'the other name'
	equal 'text more' "$(xargs <.trash/c)" 'the third, deleted one'
	exec 3<&-
}

name_used_again() {
	local first second

	echo old >f
	exec 3<>f
	first=$(stat -c %i f)
	rm f
	echo new >f
	exec 4<>f
	second=$(stat -c %i f)
	[ "$first" != "$second" ] || fail 'one inode number for two files'
	equal "$first" "$(stat -L -c %i /proc/self/fd/3)" 'inode of the first'
	equal old "$(cat <&3)" 'bytes of the first'
	equal new "$(cat <&4)" 'bytes of the second'
	echo 'old appended' >&3
	echo 'new appended' >&4
	exec 3>&- 4>&-
	equal 'new new appended' "$(xargs <f)" 'the file'
	equal 'old old appended' "$(xargs <.trash/f)" 'the entry'
}

restored_while_open() {
	echo text >f
	exec 3>>f
	rm f
	echo 'after rm' >&3
	mv .trash/f g
	echo 'after restore' >&3
	equal 'text after rm after restore' "$(xargs <g)" 'while open'
	exec 3>&-
	equal 'text after rm after restore' "$(xargs <g)" 'closed'
	echo more >>g
	equal 4 "$(wc -l <g)" lines
}

mapped_while_deleted() {

	head -c 200000 /dev/urandom >f
	cp f "$tmp/mapped"
	exec 3<f
	rm f
	cmp "$tmp/mapped" .trash/f
	cmp "$tmp/mapped" /dev/fd/3
	exec 3<&-
	mv .trash/f f
	cmp "$tmp/mapped" f
}

replaced_while_read() {
	head -c 300000 /dev/zero | tr '\0' a >f
	exec 3<f
	head -c 1000 <&3 | tr -d a | cmp - /dev/null
	head -c 300000 /dev/zero | tr '\0' b >g
	mv g f
	equal '' "$(cat <&3 | tr -d a | head -c 10)" 'bytes of the other version'
	equal '' "$(tr -d b <f | head -c 10)" 'bytes of the old version'
	equal '' "$(tr -d a <.trash/f | head -c 10)" 'bytes of the new version in the trash'
	exec 3<&-
}

written_after_many_operations() {
	local i

	exec 3>>log
	for i in 1 2 3 4 5 6 7 8 9 10; do
		echo "line $i" >&3
		rm log
		mv .trash/log log
	done
	exec 3>&-
	equal 10 "$(wc -l <log)" 'lines of a log deleted and restored ten times'
}

# The kernel knows the file by one of its names, and that one is destroyed at once.
one_of_two_names_removed() {
	mkdir d
	setfattr -n user.ddbfs.retention -v 0 d
	echo text >d/a
	ln d/a d/b
	cd /
	remount
	cd "$d"
	exec 3<>d/a
	rm d/a
	equal text "$(cat <&3)" 'what the descriptor reads'
	echo more >&3
	exec 3>&-
	equal 'text more' "$(xargs <d/b)" 'the other name'
}

mount_new
it 'a directory removed while open is there still, without links or names' directories_removed_while_open
it 'X4 a file removed while open reads, writes, and is in the trash as last closed' unlinked_while_open
it 'X5 three names removed while open: three entries, one content, links counted' links_removed_while_open
it 'X6 a name used again: two inodes, each descriptor its own bytes' name_used_again
it 'a descriptor stays good through deletion and restore' restored_while_open
it 'a file in use keeps its bytes through deletion and restore' mapped_while_deleted
it 'a file replaced while it is read keeps its bytes for the reader' replaced_while_read
it 'a log deleted and restored again and again loses no line' written_after_many_operations
it 'an open name that is not the last stays good though nothing is retained' one_of_two_names_removed
it 'leaves a store that checks clean' check_clean
done_testing
