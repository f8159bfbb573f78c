#!/usr/bin/env bash
#
# Opening, reading, writing, sparse files, shared maps, locks and directories as
# on ext4.
# timeout: 600
. "$(dirname "$0")/lib.sh"

open_flags() {
	gives ENOENT open f rdonly
	gives ok open f creat,excl,rdwr 0600
	gives EEXIST open f creat,excl,rdwr
	gives ok open f creat,rdwr 0777
	equal 600 "$(stat -c %a f)" 'mode after O_CREAT of what exists'
	mkdir d
	gives EISDIR open d wronly
	gives EISDIR open d creat,rdonly
	gives EEXIST open d creat,excl,rdonly
	gives ok open d rdonly,directory
	gives ENOTDIR open f rdonly,directory
	gives ENOTDIR open f/x rdonly
	gives ENOTDIR open f/x creat,wronly
	gives ENOENT open d/x/y creat,wronly
	ln -s f s
	gives ELOOP open s rdonly,nofollow
	gives ok open s rdonly
	ln -s made dangling
	gives EEXIST open dangling creat,excl,wronly
	gives ok open dangling creat,wronly
	exists made
	mkfifo p
	gives ENXIO open p wronly,nonblock
	gives ok open p rdonly,nonblock
}

truncating_open() {
	local i

	# Long and short, cached and not: no old bytes behind the new ones.
	for i in 10 5000 300000; do
		head -c $i /dev/zero | tr '\0' o >f
		printf new >f
		content f new
		echo 3 >/proc/sys/vm/drop_caches
		content f new
		equal 3 "$(stat -c %s f)" size
	done
	echo abc >f
	echo 1 >f
	content f 1
	chmod 444 f
	chown $alice f
	equal EACCES "$(as $bob "$sys" open f wronly,trunc)"
	content f 1
}

appending() {
	gives ok append f 4 500
	equal 2000 "$(sort -u f | wc -l)" 'different lines'
	equal 2000 "$(wc -l <f)" 'lines'
	# Each process's own lines are in its order.
	equal "$(seq 0 499)" "$(awk '$1 == 2 { print $2 }' f)" 'lines of one process'
}

truncate_and_extend() {
	local size

	printf 0123456789 >f
	gives ok truncate f 4
	content f 0123
	gives ok truncate f 100000
	equal "$(printf 0123 | cat - <(head -c 99996 /dev/zero) | md5sum)" "$(md5sum <f)" 'extended'
	gives ok truncate f 2
	gives ok truncate f 4
	equal '30 31 00 00' "$(od -An -tx1 f | xargs)" 'what was cut off reads as zeros'
	# Around the sizes at which contents change their form.
	for size in 1 1023 1024 1025 1535 1536 1537 4095 4096 4097 32767 32768 32769 65536 1048577 4194305; do
		head -c $size /dev/urandom >g
		cp g "$tmp/reference"
		cmp g "$tmp/reference"
		equal $size "$(stat -c %s g)" size
		printf tail >>g
		printf tail >>"$tmp/reference"
		printf middle | dd of=g bs=1 seek=$((size / 2)) conv=notrunc status=none
		printf middle | dd of="$tmp/reference" bs=1 seek=$((size / 2)) conv=notrunc status=none
		cmp g "$tmp/reference"
		gives ok truncate g $((size / 3))
		truncate -s $((size / 3)) "$tmp/reference"
		cmp g "$tmp/reference"
		echo 3 >/proc/sys/vm/drop_caches
		cmp g "$tmp/reference"
	done
	gives EINVAL truncate f -1
	mkdir d
	gives EISDIR truncate d 0
}

sparse_files() {
	printf start >f
	printf end | dd of=f bs=1 seek=5368709120 conv=notrunc status=none
	equal 5368709123 "$(stat -c %s f)" 'size of a file beyond 4 GiB'
	[ "$(stat -c %b f)" -lt 2000 ] || fail "$(stat -c %b f) blocks for a few bytes"
	equal end "$(dd if=f bs=1 skip=5368709120 status=none)" 'its end'
	equal 0 "$(dd if=f bs=1M skip=3000 count=4 status=none | tr -d '\0' | wc -c)" 'its middle'
	equal 0 "$("$sys" seek f data 0)" 'first data'
	within 5 65536 "$("$sys" seek f hole 0)" 'first hole'
	within 5368643584 5368709120 "$("$sys" seek f data 1000000)" 'next data'
	equal 5368709123 "$("$sys" seek f hole 5368709121)" 'the hole at the end'
	gives ENXIO seek f data 5368709123
	gives ENXIO seek f hole 5368709124
	# A copy with holes is the same file, and as small.
	cp --sparse=always f g
	equal 'start end' "$(head -c 5 g) $(tail -c 3 g)" 'the copy'
	equal "$(stat -c %s f) $("$sys" seek f data 1000000)" "$(stat -c %s g) $("$sys" seek g data 1000000)" 'its size and data'
	[ "$(stat -c %b g)" -lt 2000 ] || fail 'the copy is not sparse'
	truncate -s 1T t
	equal 1099511627776 "$(stat -c %s t)" 'a terabyte of nothing'
	gives ENXIO seek t data 0
}

data_just_written_is_found() {
	exec 3>f
	head -c 300000 /dev/urandom >&3
	equal 0 "$("$sys" seek f data 0)" 'data in a file still open'
	equal 300000 "$("$sys" seek f hole 0)" 'hole'
	cp f g
	cmp f g
	tar -Scf - f | tar -xOf - | cmp - f
	exec 3>&-
}

punching() {
	local r=$tmp/reference

	head -c 300000 /dev/urandom >f
	cp f "$r"
	gives ok fallocate f keep,punch 10000 200000
	fallocate -p -o 10000 -l 200000 "$r"
	cmp f "$r"
	gives ok fallocate f zero 250000 100000
	fallocate -z -o 250000 -l 100000 "$r"
	cmp f "$r"
	equal 350000 "$(stat -c %s f)" 'size after zeroing past the end'
	gives ok fallocate f keep 0 1000000
	equal 350000 "$(stat -c %s f)" 'size after keep-size'
	gives ok fallocate f plain 0 400000
	equal 400000 "$(stat -c %s f)" 'size after fallocate'
	gives EOPNOTSUPP fallocate f collapse 0 4096
	gives EINVAL fallocate f plain 0 0
	gives EOPNOTSUPP fallocate f punch 0 10
	fallocate --posix -o 390000 -l 20000 f
	equal 410000 "$(stat -c %s f)" 'size after posix_fallocate'
	truncate -s 400000 f
	echo 3 >/proc/sys/vm/drop_caches
	truncate -s 400000 "$r"
	cmp f "$r"
}

copying_ranges() {
	local n

	head -c 500000 /dev/urandom >f
	n=$("$sys" copy f g 1000 0 400000)
	within 1 400000 "$n" 'bytes copied'
	cmp <(tail -c +1001 f | head -c "$n") g
	cp --reflink=auto f h
	cmp f h
	gives 0 copy f g 500000 0 10
}

mapping() {
	gives ok mmap f 100000
	gives ok mmap small 10
	# Read and write see what was mapped, and after dropping the caches too.
	equal c "$(tail -c 1 f)"
	echo 3 >/proc/sys/vm/drop_caches
	equal p "$(head -c 1 f)"
}

locking() {
	gives ok lock f flock
	gives ok lock f posix
}

no_tmpfile() {
	gives EOPNOTSUPP open . tmpfile,rdwr
}

making_and_removing() {
	mkdir d
	gives EEXIST mkdir d
	touch f
	gives EEXIST mkdir f
	gives ENOTDIR mkdir f/x
	gives ENOENT mkdir no/x
	gives ENOTDIR rmdir f
	gives ENOENT rmdir nothing
	gives EISDIR unlink d
	gives ENOENT unlink nothing
	gives ENOTDIR unlink f/x
	touch d/x
	gives ENOTEMPTY rmdir d
	gives EINVAL rmdir d/.
	gives ENOTEMPTY rmdir d/..
	rm d/x
	gives ok rmdir d
	gives EEXIST mkdir .
	gives EINVAL rmdir .
}

working_in_a_removed_directory() {
	mkdir d
	cd d
	rmdir ../d
	gives ENOENT open x creat,wronly
	gives ENOENT mkdir x
	equal '' "$(ls -A)" 'names in a removed directory'
}

link_counts() {
	mkdir -p d/{a,b,c}
	touch d/f
	equal 5 "$(stat -c %h d)" 'links of a directory with three directories'
	rmdir d/a
	equal 4 "$(stat -c %h d)"
}

limits() {
	local name long

	name=$(printf '%0255d' 5)
	gives ok open "$name" creat,wronly
	gives ENAMETOOLONG open "${name}x" creat,wronly
	gives ENAMETOOLONG stat "${name}x"
	gives ENAMETOOLONG mkdir "${name}x"
	gives ENAMETOOLONG rename "$name" "${name}x"
	gives ENAMETOOLONG link "$name" "${name}x"
	gives ENAMETOOLONG symlink x "${name}x"
	gives ok mkdir "${name%5}d"
	equal '255 1 1' "$("$sys" statvfs .)" 'statvfs'
	long=$(printf 'd/%.0s' {1..2100})
	gives ENAMETOOLONG stat "$long"
	gives 3000 deep . 3000 make
	gives 3000 deep . 3000 remove
	lists . "$name" "${name%5}d"
}

many_in_one_directory() {
	gives ok make d 5000 0
	equal 5000 "$(count d)" 'files found'
	equal 5000 "$(find d | sort -u | tail -n +2 | wc -l)" 'different names'
	equal 0 "$("$sys" seekdir d | sed 's/ .*//')" 'positions found wrong'
	# One pass in small pieces empties it, however the names shift meanwhile.
	gives 5000 read-and-unlink d 300
	equal 0 "$(count d)" 'files left'
	rmdir d
}

syncing() {
	mkdir d
	gives ok write d/f creat,wronly text
	gives ok syncdir d
	gives ok write d/f wronly,sync longer
	content d/f longer
	sync -f d/f
}

direct_reads() {
	head -c 1048576 /dev/urandom >f
	equal "$(md5sum <f)" "$(dd if=f bs=64k iflag=direct status=none | md5sum)" 'read past the cache'
}

mount_new
it 'open answers as open(2) says' open_flags
it 'O_TRUNC leaves no old bytes behind' truncating_open
it 'four processes append whole lines' appending
it 'files of all sizes are written, cut and extended' truncate_and_extend
it 'sparse files beyond 4 GiB have holes where they should' sparse_files
it 'SEEK_DATA finds what was just written, and cp and tar copy it' data_just_written_is_found
it 'fallocate punches, zeroes, keeps and extends' punching
it 'copy_file_range copies' copying_ranges
it 'shared maps of two processes and read/write see each other' mapping
it 'flock and byte-range locks hold another process off' locking
it 'O_TMPFILE is refused as unsupported' no_tmpfile
it 'mkdir, rmdir and unlink have their errors' making_and_removing
it 'a removed working directory is empty and takes no new names' working_in_a_removed_directory
it 'a directory counts its directories' link_counts
it 'names of 255 bytes, long paths, and depth' limits
it 'a directory of 5000 is listed whole, and emptied while it is read' many_in_one_directory
it 'fsync of files and directories, O_SYNC and syncfs' syncing
it 'reads with O_DIRECT see the same bytes' direct_reads
done_testing
