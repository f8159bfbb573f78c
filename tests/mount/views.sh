#!/usr/bin/env bash
#
# .trash as a directory: what it lists, what it refuses, moves in and out.
# timeout: 600
. "$(dirname "$0")/lib.sh"

shadow_of_the_tree() {
	mkdir -p a/b/c live
	echo 1 >a/f && echo 2 >a/b/g && echo 3 >a/b/c/h && echo 4 >top
	rm a/f a/b/g a/b/c/h top
	lists .trash a top
	lists .trash/a b f
	lists .trash/a/b c g
	lists .trash/a/b/c h
	lists a/b/.trash c g
	content .trash/a/b/c/h 3
	absent .trash/live
	equal "$(stat -c '%a %u %g' a)" "$(stat -c '%a %u %g' .trash/a | sed 's/^5/7/')" 'mode and owner of a shadow'
	absent .trash/.trash
	absent .trash/a/.trash
	# A deleted directory shows what went with it.
	rm -rf a
	lists .trash a top
	lists .trash/a b f
	content .trash/a/b/g 2
	absent .trash/a/.trash
}

attributes_in_a_view() {
	local inode

	echo text >f
	chmod 640 f
	chown 7:8 f
	setfattr -n user.a -v b f
	touch -d '2002-02-02 02:02:02.222222222' f
	inode=$(stat -c %i f)
	rm f
	equal "$inode 7 8 5 regular file" "$(stat -c '%i %u %g %s %F' .trash/f)" 'inode, owner, size, type'
	equal 440 "$(stat -c %a .trash/f)" 'mode, without write bits'
	equal 2002-02-02 "$(stat -c %y .trash/f | cut -c1-10)" 'mtime'
	equal b "$(getfattr --only-values -n user.a .trash/f)" 'extended attribute'
	mv .trash/f f
	equal 640 "$(stat -c %a f)" 'mode after the restore'
}

copying_out() {
	mkdir d && echo text >d/f
	rm -r d
	cp -a .trash/d copy
	content copy/f text
	content .trash/d/f text
	ln -s x s && rm s
	equal x "$(readlink .trash/s)"
	tar -C .trash -cf - . | tar -tf - >/dev/null
}

read_only() {
	mkdir -p d/sub && echo text >d/f && echo text >g
	rm -rf d g
	gives EROFS open .trash/new creat,wronly
	gives EROFS open .trash/d/new creat,wronly
	gives EROFS mkdir .trash/new
	gives EROFS symlink x .trash/new
	gives EROFS mknod .trash/new fifo
	gives EROFS link f .trash/new || gives ENOENT link f .trash/new
	gives EROFS chmod .trash/g 777
	gives EROFS chown .trash/g 1 1
	gives EROFS truncate .trash/g 0
	gives EROFS utimens .trash/g 1 1
	gives EROFS setxattr .trash/g user.x y
	gives EROFS removexattr .trash/g user.x
	gives EROFS setxattr .trash/d user.ddbfs.retention 0
	gives EROFS rename .trash/g .trash/h
	gives EROFS rename .trash/g .trash/d/h
	gives EROFS rename .trash/d/f .trash/f
	echo live >live
	gives EINVAL rename live .trash/g exchange
	gives EINVAL rename .trash/g live exchange
	touch x
	gives EROFS link .trash/g h || gives ENOENT link .trash/g h
	content .trash/g text
	content .trash/d/f text
	content live live
}

refused_writes_are_never_silent() {
	echo text >g
	rm g
	refused bash -c 'echo more >>.trash/g'
	refused bash -c 'echo more >.trash/g'
	refused dd if=/dev/zero of=.trash/g bs=1 count=1 conv=notrunc,fsync
	[ "$("$sys" write .trash/g wronly bytes)" != ok ] || fail 'a write was taken'
	content .trash/g text
	echo 3 >/proc/sys/vm/drop_caches
	content .trash/g text
}

moving_in_deletes() {
	mkdir -p d/sub other && echo 1 >d/f && echo 2 >d/sub/g && echo 3 >f
	cp -a d "$tmp/moved"
	mv f .trash/
	absent f
	content .trash/f 3
	mv d .trash/
	absent d
	content .trash/d/sub/g 2
	lists .trash d f
	gives EROFS open .trash/d/x creat,wronly
	# Elsewhere than in its own directory's trash, or under another name, it is no deletion.
	echo 4 >h
	[ "$("$sys" rename h other/.trash/h)" != ok ] || fail "moved into another directory's trash"
	[ "$("$sys" rename h .trash/i)" != ok ] || fail 'moved under another name'
	content h 4
	mv .trash/d .
	same_tree "$tmp/moved" d
	rm -rf "$tmp/moved"
	# A shell that stood in it never left it.
	(cd d/sub && mv "$d/d" "$d/.trash/" && mv "$d/.trash/d" "$d" && cat g >"$tmp/said")
	content "$tmp/said" 2
}

moving_out_elsewhere() {
	mkdir -p from to
	echo text >from/f
	rm from/f
	mv from/.trash/f to/g
	content to/g text
	lists from/.trash
	mkdir -p from/d && touch from/d/x && rm -rf from/d
	mv .trash/from/d to/
	lists to d g
	lists to/d x
}

purging() {


	mkdir d && echo 1 >d/f && echo 2 >g
	rm -rf d g
	rm .trash/g
	absent .trash/g
	lists .trash d
	refused rmdir .trash/d
	rm -rf .trash/d
	lists .trash
	# Within its grace even that can be undone: back into the trash, says the command.
	exits 0 ddbfs undo
	says "back     $d/.trash/d"
	if [ -e .trash/g ]; then
		ddbfs undo
	fi
	content g 2
	content d/f 1
}

emptying() {
	mkdir -p a/b
	for i in 1 2 3; do echo $i >a/f$i && echo $i >a/b/g$i; done
	rm a/f? a/b/g?
	ddbfs trash empty a/b
	lists a/b/.trash
	equal 'f1 f2 f3' "$(cd a/.trash && find . -type f -printf '%f\n' | sort | xargs)" 'what is left'
	ddbfs undo
	lists a/b/.trash g1 g2 g3
	ddbfs trash empty --now .
	lists a/b/.trash
	ddbfs sweep .
	lists a/.trash
	lists .trash
	exits 4 ddbfs trash restore a/f1
}

facts() {
	local cause

	echo text >f
	mkdir open && chmod 777 open
	chmod 711 .
	as $alice touch open/hers
	as $alice rm open/hers
	rm f
	for fact in deleted_at expires_at deleted_by origin batch cause key; do
		getfattr -h --only-values -n user.ddbfs.$fact .trash/f >"$tmp/fact" || fail "no $fact"
		[ -s "$tmp/fact" ] || fail "$fact is empty"
	done
	cause=$(getfattr --only-values -n user.ddbfs.cause .trash/f)
	equal removed "$cause" cause
	getfattr --only-values -n user.ddbfs.deleted_by open/.trash/hers | grep -q $alice
	getfattr --only-values -n user.ddbfs.deleted_by open/.trash/hers | grep -q rm
	getfattr --only-values -n user.ddbfs.deleted_at .trash/f | grep -q "^$(date -u +%Y-%m-%dT%H)"
	getfattr --only-values -n user.ddbfs.origin .trash/f | grep -q "$(basename "$d")/f"
	# Named by no list, so that copies do not carry them.
	equal '' "$("$sys" listxattr .trash/f)" 'listxattr'
	echo 1 >r && echo 2 >s && mv s r
	equal replaced "$(getfattr --only-values -n user.ddbfs.cause .trash/r)" 'cause of what was replaced'
}

rmdir_over_trash() {
	mkdir d && touch d/f
	gives ENOTEMPTY rmdir d
	rm d/f
	gives ok rmdir d
	lists .trash d
	mkdir d
	lists d
	lists d/.trash
	equal 1 "$(ls .trash | wc -l)" 'entries'
}

tool_lists() {
	mkdir -p a && echo 123456 >a/f && rm a/f
	ddbfs trash list . >"$tmp/said"
	says a/f
	says removed
	ddbfs trash list --limit 0 . >"$tmp/said"
	[ ! -s "$tmp/said" ] || fail 'no lines were asked for'
	ddbfs trash list --json . | jq -e 'select(.cause == "removed")' >/dev/null
	cd a
	ddbfs trash list | grep -q f
	ddbfs trash restore f
	content f 123456
	ddbfs trash list | grep -q nothing
}

mount_new -o allow_other
chmod 755 "$mnt"
it '.trash is the shadow of the tree' shadow_of_the_tree
it 'entries have their inode, owner, times and attributes, and no write bits' attributes_in_a_view
it 'X8 cp out of the trash copies and leaves the entry' copying_out
it 'X8 everything in a view is read-only' read_only
it 'X8 a refused write fails, and changes nothing that is read' refused_writes_are_never_silent
it 'X8 mv into .trash deletes, and a directory goes whole' moving_in_deletes
it 'mv out of any view restores to anywhere' moving_out_elsewhere
it 'rm inside the trash purges, and undo helps within the grace' purging
it 'trash empty takes what is below a directory, and no more' emptying
it 'every entry says who, when, from where, why and until when' facts
it 'X3 rmdir needs no live items, deleted ones do not count' rmdir_over_trash
it 'trash list shows entries, also from inside a directory' tool_lists
it 'leaves a store that checks clean' check_clean -o allow_other
done_testing
