#!/usr/bin/env bash
#
# rename(2) and link(2) as on ext4, case by case.
# timeout: 600
. "$(dirname "$0")/lib.sh"

kinds='file link dir full fifo none'

# One of each kind of thing under the given name.
thing() {
	case $2 in
	file) echo "$2 of $1" >"$1" ;;
	link) ln -s "target-of-$1" "$1" ;;
	dir) mkdir "$1" ;;
	full) mkdir "$1" && echo inside >"$1/inside" ;;
	fifo) mkfifo "$1" ;;
	none) ;;
	esac
}

# What rename answers for FROM over TO.
expected_of() {
	case $1-$2 in
	none-*) echo ENOENT ;;
	*-none) echo ok ;;
	dir-dir | full-dir) echo ok ;;
	dir-full | full-full) echo ENOTEMPTY ;;
	dir-* | full-*) echo ENOTDIR ;;
	*-dir | *-full) echo EISDIR ;;
	*) echo ok ;;
	esac
}

same_thing() {
	case $2 in
	file) content "$1" "file of $3" ;;
	link) equal "target-of-$3" "$(readlink "$1")" ;;
	full) content "$1/inside" inside ;;
	dir) [ -d "$1" ] ;;
	fifo) [ -p "$1" ] ;;
	none) absent "$1" ;;
	esac
}

every_kind_over_every_kind() {
	local from to expected where n=0

	for where in . other; do
		mkdir -p other
		for from in $kinds; do
			for to in $kinds; do
				n=$((n + 1))
				thing "a$n" $from
				(cd $where && thing "b$n" $to)
				expected=$(expected_of $from $to)
				gives "$expected" rename "a$n" "$where/b$n"
				if [ "$expected" = ok ]; then
					absent "a$n"
					same_thing "$where/b$n" $from "a$n"
				else
					same_thing "a$n" $from "a$n"
					same_thing "$where/b$n" $to "b$n"
				fi
			done
		done
	done
	equal 72 $n 'combinations'
}

noreplace() {
	thing a file
	thing b file
	gives EEXIST rename a b noreplace
	content a 'file of a'
	content b 'file of b'
	gives ok rename a c noreplace
	absent a
	mkdir d e
	gives EEXIST rename d e noreplace
	gives EEXIST rename c c noreplace
	gives ENOENT rename nothing x noreplace
}

exchange() {
	mkdir one two
	thing one/a file
	thing two/b full
	gives ok rename one/a two/b exchange
	content two/b 'file of one/a'
	content one/a/inside inside
	gives ENOENT rename one/a missing exchange
	gives ENOENT rename missing one/a exchange
	gives EINVAL rename one one/a exchange
	gives EINVAL rename one/a one exchange
	thing f1 file
	thing f2 file
	gives ok rename f1 f2 exchange
	content f1 'file of f2'
	gives ok rename f1 f1 exchange
	content f1 'file of f2'
	# Directories that change parents change the link counts of both.
	mkdir -p p/dir q
	thing q/file file
	gives ok rename p/dir q/file exchange
	equal '2 3' "$(stat -c %h p q | xargs)" 'link counts'
	# Nothing was deleted.
	lists .trash
	equal '' "$(ddbfs trash list --json .)" 'entries'
}

exchanged_while_opened() {
	mkdir a b
	thing a/f file
	thing b/g file
	gives 0 open-while-exchanged a/f b/g 3000
	lists .trash
	equal 'file of a/f file of b/g' "$(cat a/f b/g | sort | xargs)" 'what both hold'
}

unknown_flags() {
	local flags

	thing a file
	thing b file
	for flags in exchange,noreplace 0x100 whiteout whiteout,exchange; do
		gives EINVAL rename a b $flags
	done
	content a 'file of a'
	content b 'file of b'
	lists . a b
	lists .trash
}

into_itself() {
	mkdir -p a/b/c
	gives EINVAL rename a a/b/c/d
	gives EINVAL rename a a/d
	gives ok rename a a
	gives ENOTEMPTY rename a/b a
	gives ENOTEMPTY rename a/b/c a
	exists a/b/c
}

through_files_and_loops() {
	thing f file
	mkdir d
	ln -s loop loop
	gives ENOTDIR rename f/x y
	gives ENOTDIR rename d f/x
	gives ENOENT rename d/x y
	gives ENOENT rename f d/e/x
	gives ELOOP rename loop/x y
	gives ELOOP rename f loop/x
	gives ENOTDIR rename f/ y
	gives ENOTDIR rename f y/
	gives ok rename d e/
	exists e
	gives EBUSY rename e/. y
	gives EBUSY rename e/.. y
}

link_counts_of_directories() {
	mkdir -p a/sub b
	equal 3 "$(stat -c %h a)" 'links of a'
	equal 2 "$(stat -c %h b)" 'links of b'
	mv a/sub b/
	equal 2 "$(stat -c %h a)" 'links of a'
	equal 3 "$(stat -c %h b)" 'links of b'
	mkdir b/victim
	gives ok rename b/sub b/victim
	equal 3 "$(stat -c %h b)" 'links of b after a replacement'
	rmdir b/victim
	equal 2 "$(stat -c %h b)" 'links of b after rmdir'
	# The parent of what was moved is the new one.
	mkdir -p m/x n
	mv m/x n/
	equal "$(stat -c %i n)" "$(stat -c %i n/x/..)" '..'
}

two_names_of_one_file() {
	thing a file
	ln a b
	gives ok rename a b
	content a 'file of a'
	content b 'file of a'
	equal 2 "$(stat -c %h a)" 'links'
}

keeps_open_files() {
	thing a file
	thing b file
	exec 3<a 4<b
	mv a b
	equal 'file of a' "$(cat <&3)" 'the moved file'
	equal 'file of b' "$(cat <&4)" 'the replaced file'
	exec 3<&- 4<&-
}

changes_times() {
	local before

	mkdir from to
	thing from/f file
	sleep 0.02
	before=$(stat -c %.9Y from to | xargs)
	sleep 0.02
	mv from/f to/g
	[ "$(stat -c %.9Y from)" != "${before% *}" ] || fail "mtime of the old parent stayed"
	[ "$(stat -c %.9Y to)" != "${before#* }" ] || fail "mtime of the new parent stayed"
}

sticky() {
	mkdir box mine
	chmod 1777 box
	chmod 777 mine
	as $alice touch box/alice box/alice2
	as $bob touch box/bob mine/bob
	equal EPERM "$(as $bob "$sys" rename box/alice box/x)" 'renaming another user'\''s file'
	equal EPERM "$(as $bob "$sys" unlink box/alice)" 'removing another user'\''s file'
	equal EPERM "$(as $bob "$sys" rename mine/bob box/alice)" 'replacing another user'\''s file'
	equal ok "$(as $bob "$sys" rename box/bob mine/bob)" 'replacing his own'
	equal ok "$(as $alice "$sys" rename box/alice box/x)" 'renaming her own'
	equal ok "$("$sys" unlink box/x)" 'root'
	exists box/alice2
}

without_rights() {
	mkdir closed open
	chmod 755 closed
	chmod 777 open
	touch closed/f open/g
	chown $bob open/g
	equal EACCES "$(as $bob "$sys" rename closed/f open/f)"
	equal EACCES "$(as $bob "$sys" rename open/g closed/g)"
	equal EACCES "$(as $bob "$sys" unlink closed/f)"
	equal EACCES "$(as $bob "$sys" link open/g closed/h)"
	chmod 700 open
	equal EACCES "$(as $bob "$sys" rename open/g open/h)"
	equal EACCES "$(as $bob "$sys" stat open/g)"
}

links() {
	thing a file
	mkdir d
	gives ok link a b
	equal "$(stat -c '%i 2' a)" "$(stat -c '%i %h' b)" 'inode and links'
	gives EEXIST link a b
	gives EEXIST link a d
	gives EPERM link d e
	gives ENOENT link nothing e
	gives ENOENT link a d/x/y
	gives ENOTDIR link a b/c
	ln -s a s
	gives ok link s s2
	equal a "$(readlink s2)" 'a link to a symbolic link'
	echo more >>b
	equal 'file of a more' "$(xargs <a)" 'content through the other name'
	chmod 640 a
	equal 640 "$(stat -c %a b)" 'mode through the other name'
	rm a
	equal 1 "$(stat -c %h b)" 'links'
	mkfifo p
	gives ok link p p2
	equal 2 "$(stat -c %h p2)" 'links of a fifo'
}

many_links() {
	local i

	mkdir many
	echo content >many/first
	for ((i = 0; i < 500; i++)); do ln many/first many/$i; done
	equal 501 "$(stat -c %h many/250)" 'links'
	rm -r many
}

mount_new -o allow_other
chmod 755 "$mnt"
it 'every kind of thing renamed over every kind answers as rename(2) says' every_kind_over_every_kind
it 'RENAME_NOREPLACE gives EEXIST and changes nothing' noreplace
it 'RENAME_EXCHANGE swaps two names' exchange
it 'X2 of two names that are exchanged in a loop neither is ever missing' exchanged_while_opened
it 'unknown and contradicting flags give EINVAL' unknown_flags
it 'a directory cannot be moved into itself' into_itself
it 'paths through files, loops and missing directories give their errors' through_files_and_loops
it 'the link counts of directories follow what is in them' link_counts_of_directories
it 'renaming one name of a file over another does nothing' two_names_of_one_file
it 'open files stay what they were' keeps_open_files
it 'renaming moves the times of both parents' changes_times
it 'in a sticky directory only the owner renames, replaces and removes' sticky
it 'without write permission nothing is renamed, linked or removed' without_rights
it 'hard links share everything, and have their errors' links
it 'five hundred names of one file are counted' many_links
done_testing
