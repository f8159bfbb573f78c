#!/usr/bin/env bash
#
# Modes, owners, times, set-id bits, extended attributes and special files as on
# ext4.
# timeout: 600
. "$(dirname "$0")/lib.sh"

create_modes() {
	(umask 027 && touch f && mkdir d)
	equal '640 750' "$(stat -c %a f d | xargs)" 'modes under umask 027'
	gives ok open g creat,wronly 0606
	equal 604 "$(stat -c %a g)" 'mode given to open, umask 022'
	gives ok mkdir e 0700
	equal 700 "$(stat -c %a e)" 'mode given to mkdir'
	ln -s f s
	equal 777 "$(stat -c %a s)" 'mode of a symbolic link'
	equal "$(id -u):$(id -g)" "$(stat -c %u:%g f)" 'owner'
}

setgid_directories() {
	mkdir d
	chown 0:$bob d
	chmod 2777 d
	as $alice touch d/f
	as $alice mkdir d/sub
	equal $bob "$(stat -c %g d/f)" 'group of a file'
	equal "$bob 2755" "$(stat -c '%g %a' d/sub)" 'group and mode of a directory'
	equal $alice "$(stat -c %u d/f)" 'owner'
}

chmod_and_chown() {
	touch f
	chown $alice:$alice f
	chmod 6755 f
	equal EPERM "$(as $bob "$sys" chmod f 777)" "chmod by another user"
	equal EPERM "$(as $bob "$sys" chown f $bob $bob)" "chown by another user"
	equal EPERM "$(as $alice "$sys" chown f $bob $alice)" "giving a file away"
	equal EPERM "$(as $alice "$sys" chown f $alice $bob)" "a group one is not in"
	equal ok "$(as $alice "$sys" chown f $alice $alice)" "chown to what it is"
	equal 755 "$(stat -c %a f)" "set-id bits after the owner's chown"
	chmod 6755 f
	chown $bob:$bob f
	equal 755 "$(stat -c %a f)" "set-id bits after root's chown"
	as $bob "$sys" chmod f 2755 >/dev/null
	equal 2755 "$(stat -c %a f)" 'setgid with a group of one'\''s own'
	chown $bob:$alice f
	as $bob "$sys" chmod f 2755 >/dev/null
	equal 755 "$(stat -c %a f)" 'setgid with a foreign group'
	gives ENOENT chmod nothing 777
	gives ENOTDIR chmod f/x 777
}

writing_clears_setid() {
	echo others >from
	for how in write truncate allocate copy; do
		rm -f f
		echo text >f
		chmod 6777 f
		case $how in
		write) as $bob bash -c 'echo x >>f' ;;
		truncate) as $bob "$sys" truncate f 1 ;;
		allocate) as $bob "$sys" fallocate f zero 0 2 ;;
		copy) as $bob "$sys" copy from f 0 0 6 ;;
		esac
		equal 777 "$(stat -c %a f)" "set-id bits after $how by another user"
	done
	rm -f f
	echo text >f
	chmod 6755 f
	echo more >>f
	equal 6755 "$(stat -c %a f)" 'set-id bits after a write by root'
}

times_to_the_nanosecond() {
	touch f
	gives ok utimens f 1000000000.123456789 1100000000.987654321
	equal '1000000000.123456789 1100000000.987654321' "$(stat -c '%.9X %.9Y' f)"
	gives ok utimens f omit 5.000000001
	equal '1000000000.123456789 5.000000001' "$(stat -c '%.9X %.9Y' f)" 'omit'
	gives ok utimens f now omit
	within $(($(date +%s) - 5)) $(($(date +%s) + 1)) "$(stat -c %X f)" 'now'
	equal 5.000000001 "$(stat -c %.9Y f)" 'omit beside now'
	ln -s nothing s
	gives ok utimens s 7.5 8.25
	equal '7.500000000 8.250000000' "$(stat -c '%.9X %.9Y' s)" 'of a symbolic link'
	mkdir d
	gives ok utimens d 9.1 9.2
	equal '9.100000000 9.200000000' "$(stat -c '%.9X %.9Y' d)" 'of a directory'
}

times_far_away() {
	local t

	touch f
	for t in 0 4294967296 7000000000 15032385534; do
		gives ok utimens f $t.25 $t.75
		equal "$t.25 $t.75" "$(stat -c '%.2X %.2Y' f)" "time $t"
	done
	# Before 1970 the nanoseconds still count upwards.
	gives ok utimens f -1000000000.25 -1.5
	equal '-999999999.75 -0.50' "$(stat -c '%.2X %.2Y' f)" 'before 1970'
	# Also from the store, not from the kernel's cache.
	echo 2 >/proc/sys/vm/drop_caches
	equal '-999999999.75 -0.50' "$(stat -c '%.2X %.2Y' f)" 'read again'
}

rights_to_set_times() {
	touch f
	chown $alice f
	chmod 666 f
	equal EPERM "$(as $bob "$sys" utimens f 1.0 1.0)" 'times of another user'\''s file'
	equal ok "$(as $bob "$sys" utimens f now now)" 'now, with write permission'
	chmod 644 f
	equal EACCES "$(as $bob "$sys" utimens f now now)" 'now, without it'
	equal ok "$(as $alice "$sys" utimens f 1.0 1.0)" 'the owner'
}

# moves WHICH COMMAND: of a, m, c (of f) exactly those move
moves() {
	local before after moved='' i

	gives ok utimens "$1" 1000.5 1000.5
	before=$(stat -c '%.9X %.9Y %.9Z' "$1")
	sleep 0.015
	eval "$3"
	after=$(stat -c '%.9X %.9Y %.9Z' "$1")
	for i in 1 2 3; do
		[ "$(cut -d' ' -f$i <<<"$before")" = "$(cut -d' ' -f$i <<<"$after")" ] ||
			moved+=$(cut -c$i <<<amc)
	done
	equal "$2" "$moved" "times moved by '$3'"
}

what_moves_times() {
	echo text >f
	mkdir d
	moves f mc 'echo x >>f'
	moves f mc 'truncate -s 3 f'
	moves f c 'chmod 600 f'
	moves f c 'chown 5 f'
	moves f c 'setfattr -n user.a -v b f'
	moves f c 'ln f f2'
	moves f c 'rm f2'
	moves f c 'mv f g && mv g f'
	moves f mc ': >f'
	moves d mc 'touch d/new'
	moves d mc 'rm d/new'
	moves d mc 'mkdir d/sub'
	moves d '' 'touch d/sub/x'
	moves d mc 'rm d/sub/x && rmdir d/sub'
	moves d mc 'ln -s x d/link'
	moves d mc 'mv d/link d/renamed'
	moves d '' 'stat d/nothing >/dev/null 2>&1 || true'
	moves f '' 'chmod 600 nothing 2>/dev/null || true'
}

xattrs() {
	local big

	touch f
	gives ok setxattr f user.one first
	gives EINVAL setxattr f user. x
	gives EINVAL getxattr f user.
	gives EEXIST setxattr f user.one x create
	gives ENODATA setxattr f user.two x replace
	gives ok setxattr f user.one second replace
	gives second getxattr f user.one
	gives ENODATA getxattr f user.none
	gives ERANGE getxattr f user.one 3
	gives ok setxattr f user.empty ''
	gives '' getxattr f user.empty
	gives ok setxattr f trusted.t v
	gives ok setxattr f security.s v
	equal 'security.s trusted.t user.empty user.one' "$("$sys" listxattr f | sort | xargs)" 'names'
	chmod 666 f
	equal 'security.s user.empty user.one' "$(as $bob "$sys" listxattr f | sort | xargs)" 'names that another user sees'
	gives ok removexattr f user.one
	gives ENODATA removexattr f user.one
	gives ok setxattr f user.big @65536
	equal 65536 "$(getfattr --only-values -n user.big f | wc -c)" 'size of a value'
	gives E2BIG setxattr f user.big @65537
	big=$(printf 'n%.0s' {1..250})
	gives ok setxattr f "user.$big" v
	gives v getxattr f "user.$big"
	gives ERANGE setxattr f "user.${big}x" v
	gives EOPNOTSUPP setxattr f nonsense.x v
	ln -s f s
	gives EPERM setxattr s user.x v
	gives ok setxattr s trusted.x v
	chmod 600 f
	chown $alice f
	equal EACCES "$(as $bob "$sys" setxattr f user.b v)" 'by another user'
	equal EACCES "$(as $bob "$sys" getxattr f user.empty)" 'reading by another user'
	# Binary values
	setfattr -n user.binary -v 0x00ff0a00 f
	equal 0x00ff0a00 "$(getfattr -n user.binary -e hex f | sed -n 's/^user.binary=//p')"
}


access_checks() {
	local m expected

	touch f
	chown $alice:$alice f
	for m in 0 4 2 1 6 7; do
		chmod 00$m f
		expected="$(((m & 4) != 0)) $(((m & 2) != 0)) $(((m & 1) != 0))"
		equal "$expected" "$(for w in r w x; do
			[ "$(as $bob "$sys" access f $w)" = ok ] && echo 1 || echo 0
		done | xargs)" "access of others with mode $m"
	done
	mkdir d
	touch d/f
	chmod 644 d
	equal EACCES "$(as $bob "$sys" stat d/f)" 'a directory without search permission'
	chmod 711 d
	equal ok "$(as $bob "$sys" stat d/f)" 'a directory with it'
	equal EACCES "$(as $bob "$sys" open d rdonly)" 'listing without read permission'
}

special_files() {
	chmod 777 .
	gives ok mknod fifo fifo
	gives ok mknod sock socket
	gives ok mknod char char 1 3
	gives ok mknod block block 7 0
	gives ok mknod plain file
	equal 'fifo socket character special file block special file regular empty file' \
		"$(stat -c %F fifo sock char block plain | xargs)" 'types'
	equal '1,3 7,0' "$(stat -c '%t,%T' char block | xargs)" 'device numbers'
	(echo through >fifo &)
	equal through "$(timeout 5 cat fifo)" 'what came through the fifo'
	gives EEXIST mknod fifo fifo
	equal EPERM "$(as $bob "$sys" mknod x char 1 3)" 'a device by a user'
	# nodev is the default: the node is kept, not used.
	gives EACCES open char rdonly
	rm fifo sock char block plain
	lists .
}

symbolic_links() {
	local long

	ln -s target s
	gives target readlink s
	gives EEXIST symlink x s
	gives ENOENT symlink '' empty
	long=$(printf '%04095d' 7)
	gives ok symlink "$long" longest
	equal "$long" "$(readlink longest)" 'a target of 4095 bytes'
	equal 4095 "$(stat -c %s longest)" 'its size'
	gives ENAMETOOLONG symlink "${long}0" toolong
	gives EINVAL readlink .
	ln -s loop2 loop1
	ln -s loop1 loop2
	gives ELOOP open loop1 rdonly
	gives ELOOP open s rdonly,nofollow
}

mount_new -o allow_other
chmod 755 "$mnt"
it 'new files, directories and links have the modes asked for, less the umask' create_modes
it 'a setgid directory hands down its group' setgid_directories
it 'chmod and chown are for whom they are, and chown clears set-id bits' chmod_and_chown
it 'writing and truncating by others clears set-id bits' writing_clears_setid
it 'times are kept to the nanosecond, with now and omit' times_to_the_nanosecond
it 'times before 1970 and after 2106 are kept' times_far_away
it 'who may set times' rights_to_set_times
it 'each change moves the times it should and no other' what_moves_times
it 'extended attributes have their errors and limits' xattrs
it 'permissions of others are what the mode says' access_checks
it 'FIFOs, sockets and devices are made, used and removed' special_files
it 'symbolic links up to 4095 bytes' symbolic_links
done_testing
