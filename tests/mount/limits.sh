#!/usr/bin/env bash
#
# How long, deep, many, large and far in time: the table of limits in
# fs/README.md, line by line. $DDBFS_LIMITS_FULL=1 tries the numbers that stand
# there (half an hour under the sanitizers: also set DDBFS_TEST_TIMEOUT);
# otherwise those that take long are a tenth or less.
# timeout: 600
. "$(dirname "$0")/lib.sh"
full=${DDBFS_LIMITS_FULL:-}
[ -z "$full" ] || limit=3000

# as_many FULL SHORT
as_many() {
	if [ -n "$full" ]; then echo "$1"; else echo "$2"; fi
}

longest_path() {
	local part path i

	part=$(printf 'p%.0s' {1..255})
	path=$part
	for ((i = 1; i < 15; i++)); do path+=/$part; done
	mkdir -p "$path"
	path+=/$(printf 'f%.0s' {1..255})
	equal 4095 ${#path} 'length'
	echo text >"$path"
	content "$path" text
	gives ENAMETOOLONG stat "${path}x"
	gives ENAMETOOLONG stat "./$path"
	apart rm "$path"
	absent "$path"
	# Deeper than any path: the same by relative steps, in the trash too.
	(cd .trash && content "$path" text)
	ddbfs trash list . | grep -q 'ffff$'
	ddbfs undo
	content "$path" text
	apart rm -r "$part"
	(cd .trash && content "$path" text)
	mv .trash/"$part" .
	content "$path" text
}

deep() {
	local n

	n=$(as_many 10000 3000)
	gives "$n" deep . "$n" make
	apart rm -rf d
	absent d
	equal "$n" "$(ddbfs undo --json | jq 'select(.restored).restored')" 'directories that undo brought back'
	# Into the trash as one, and out.
	mv d .trash/d
	absent d
	mv .trash/d d
	gives "$n" deep . "$n" remove
	lists .
}

many_entries() {
	local n

	n=$(as_many 100000 10000)
	gives ok make d "$n" 0
	equal "$n" "$(count d)" 'entries'
	equal "$n" "$(find d -mindepth 1 -printf '%f\n' | sort -u | wc -l)" 'different names'
	gives ok stat d/f$((n - 1))
	gives "$n" read-and-unlink d 32768
	lists d
	equal "$n" "$(count d/.trash)" 'entries in the trash'
}

many_links() {
	local n

	n=$(as_many 100000 3000)
	echo text >first
	mkdir d
	gives ok link-many first d "$n"
	equal $((n + 1)) "$(stat -c %h first)" 'links'
	content d/l$((n - 1)) text
	apart rm -r d
	equal 1 "$(stat -c %h first)" 'links after rm -r'
	mv .trash/d d
	equal $((n + 1)) "$(stat -c %h first)" 'links after mv out of .trash'
	equal "$(stat -c %i first)" "$(stat -c %i d/l7)" 'inode'
}

largest_files() {
	local top=9223372036854775807

	truncate -s 1T f
	printf end | dd of=f bs=1 seek=$((1 << 40)) conv=notrunc status=none
	equal $(((1 << 40) + 3)) "$(stat -c %s f)" 'size'
	equal $((1 << 40)) "$("$sys" seek f data 0)" 'its only data'
	cp --sparse=always f g
	equal end "$(tail -c 3 g)" 'the end of a copy'
	[ "$(stat -c %b g)" -lt 100 ] || fail 'the copy is not sparse'
	gives ok truncate g $top
	equal $top "$(stat -c %s g)" 'the largest size'
	printf x | dd of=g bs=1 seek=$((top - 1)) conv=notrunc status=none
	equal x "$(dd if=g bs=1 skip=$((top - 1)) status=none)" 'the last byte'
	equal $((top / 4096 * 4096)) "$("$sys" seek g data $((2 << 40)))" 'where it is'
	gives EFBIG write g wronly,append x
	gives EFBIG fallocate g keep $top 1
	remount_here
	equal x "$(dd if=g bs=1 skip=$((top - 1)) status=none)" 'the last byte after a remount'
	rm g
	mv .trash/g .
	equal $top "$(stat -c %s g)" 'the size of what was restored'
	gives ok truncate g 0
}

remount_here() {
	cd /
	remount
	cd "$d"
}

furthest_times() {
	local t

	touch f
	for t in -9223372036854775808 -2147483649 -1 0 2147483648 4294967296 253402300800 9223372036854775806; do
		gives ok utimens f $t.123456789 $t.999999999
		case $t in
		-*) ;; # stat(1) shows these with their fraction counted downwards
		*) equal "$t.123456789 $t.999999999" "$(stat -c '%.9X %.9Y' f)" "time $t" ;;
		esac
		equal "$(stat -c '%X %Y' f)" "$t $t" "seconds of $t"
	done
	gives ok utimens f -1.000000001 -9223372036854775808.5
	t=$(stat -c '%.9X %.9Y' f)
	remount_here
	equal "$t" "$(stat -c '%.9X %.9Y' f)" 'times after a remount'
	rm f
	equal "$t" "$(stat -c '%.9X %.9Y' .trash/f)" 'times in the trash'
	mv .trash/f .
	equal "$t" "$(stat -c '%.9X %.9Y' f)" 'times of what was restored'
}

largest_attributes() {
	local n

	touch f
	gives ok setxattr f user.a @65536
	gives E2BIG setxattr f user.a @65537
	gives ok setxattr f user.b @65536
	equal 65536 "$(getfattr --only-values -n user.a f | wc -c)" 'size of a value'
	for ((n = 0; n < 60; n++)); do gives ok setxattr f user.n$n @1000; done
	equal 62 "$("$sys" listxattr f | wc -l)" 'names'
	cp -a f g
	rm f
	mv .trash/f .
	equal "$(getfattr -d -m user -e hex f | tail -n +2 | md5sum)" "$(getfattr -d -m user -e hex g | tail -n +2 | md5sum)" 'all of a restored file'
}

mount_new
it 'paths of 4095 bytes, and longer ones by relative steps, are removed and restored' longest_path
it 'directories nested deeper than any path are removed, undone and moved' deep
it 'a directory of many entries is listed, emptied while it is read, and in the trash' many_entries
it 'many names of one file are counted, removed and restored' many_links
it 'files of a terabyte, and up to 2^63-1 bytes' largest_files
it 'times of all 64 bits of seconds, with nanoseconds' furthest_times
it 'attributes of 64 KiB, and many' largest_attributes
it 'leaves a store that checks clean' check_clean
done_testing
