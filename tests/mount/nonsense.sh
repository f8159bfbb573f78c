#!/usr/bin/env bash
#
# Wrong options, paths, stores, keys, values and names: a message that names them,
# the documented exit code, and nothing changed.
# timeout: 600
. "$(dirname "$0")/lib.sh"

# A checksum of a store's bytes and names (but for who holds it), to see that nothing was written.
bytes_of() {
	(cd "$1" && find . -type f ! -name 'lock*' -exec md5sum {} + | sort | md5sum)
}

options() {
	exits 2 ddbfs
	exits 2 ddbfs frobnicate
	says frobnicate
	exits 2 ddbfs mount --frobnicate "$store" "$tmp/x"
	says --frobnicate
	exits 2 ddbfs undo --skip --replace
	says --replace
	exits 2 ddbfs trash list --limit many
	says many
	exits 2 ddbfs trash empty --older-than soon
	says soon
	exits 2 ddbfs mount -o frobnicate "$store" "$tmp/x"
	says frobnicate
	exits 2 ddbfs init
	exits 2 ddbfs init a b c
	exits 2 ddbfs trash
	exits 2 ddbfs trash list --sort colour
	says colour
	exits 2 ddbfs trash list --by nobody-of-that-name
	says nobody-of-that-name
	exits 2 ddbfs mount -o log= "$store" "$tmp/x"
	exits 0 ddbfs --help
	says mount
	exits 0 ddbfs help undo
	says undo
	exits 2 ddbfs help frobnicate
	exits 0 ddbfs version
	says 0.1
}

paths() {
	exits 4 ddbfs trash list /proc
	says /proc
	exits 4 ddbfs trash list "$d/nothing"
	says nothing
	exits 4 ddbfs undo /
	exits 4 ddbfs trash restore "$d/never-was"
	says never-was
	exits 4 ddbfs trash restore /etc/passwd
	exits 4 ddbfs status /proc
	exits 4 ddbfs sweep /
	exits 4 ddbfs umount "$d"
	says "$d"
	exits 4 ddbfs umount /nothing-there
	refused ddbfs trash restore --to /proc "$d/never-was"
	touch f
	refused ddbfs trash list --json f/g
}

mount_points() {
	mkdir "$tmp/p"
	touch "$tmp/p/file"
	ddbfs init "$tmp/p/store"
	exits 13 ddbfs mount "$tmp/p/store" "$tmp/p/nothing"
	says nothing
	exits 13 ddbfs mount "$tmp/p/store" "$tmp/p/file"
	says file
	mkdir "$tmp/p/full" && touch "$tmp/p/full/x"
	ddbfs mount "$tmp/p/store" "$tmp/p/full" 2>"$tmp/said" && ddbfs umount "$tmp/p/full"
	rm -rf "$tmp/p"
}

stores() {
	local s=$tmp/q before

	mkdir "$s" "$tmp/m"
	exits 10 ddbfs mount "$s/none" "$tmp/m"
	says none
	exits 10 ddbfs check "$s/none"
	mkdir "$s/empty"
	exits 10 ddbfs mount "$s/empty" "$tmp/m"
	exits 10 ddbfs check "$s/empty"
	lists "$s/empty"
	touch "$s/file"
	exits 10 ddbfs mount "$s/file" "$tmp/m"
	mkdir "$s/full" && echo precious >"$s/full/x"
	exits 6 ddbfs init "$s/full"
	says full
	lists "$s/full" x
	exits 10 ddbfs mount "$s/full" "$tmp/m"
	lists "$s/full" x
	ddbfs init "$s/store"
	before=$(bytes_of "$s/store")
	refused ddbfs init "$s/store"
	equal "$before" "$(bytes_of "$s/store")" 'the store that was there'
	exits 4 ddbfs init /proc/nothing/here
	says /proc/nothing/here
	rm -rf "$s" "$tmp/m"
}

# Each of the store's files empty, cut, and full of noise: refused before the mount, nothing written.
damaged_stores() {
	local f before kind

	mkdir -p "$tmp/m" "$tmp/bad"
	ddbfs init "$tmp/good"
	for f in $(cd "$tmp/good" && find . -type f -size +0 ! -name 'lock*'); do
		for kind in empty short noise; do
			rm -rf "$tmp/bad"
			cp -a --sparse=always "$tmp/good" "$tmp/bad"
			case $kind in
			empty) : >"$tmp/bad/$f" ;;
			short) truncate -s 10 "$tmp/bad/$f" ;;
			noise) head -c "$(util_min "$(stat -c %s "$tmp/bad/$f")" 1000000)" /dev/urandom |
				dd of="$tmp/bad/$f" conv=notrunc status=none ;;
			esac
			before=$(bytes_of "$tmp/bad")
			if ddbfs mount "$tmp/bad" "$tmp/m" >"$tmp/said" 2>&1; then
				# What does not matter may be damaged; but then it mounts and works.
				echo "$f $kind: mounted"
				touch "$tmp/m/works"
				ddbfs umount "$tmp/m"
			else
				status=$?
				case $status in 10 | 12 | 26) ;; *) fail "$f $kind: exit code $status: $(cat "$tmp/said")" ;; esac
				[ -s "$tmp/said" ] || fail "$f $kind: no message"
				equal "$before" "$(bytes_of "$tmp/bad")" "bytes of the store with $f $kind"
			fi
			! mounted "$tmp/m" || fail "$f $kind: left mounted"
		done
	done
	rm -rf "$tmp/good" "$tmp/bad" "$tmp/m"
}

util_min() {
	echo $(($1 < $2 ? $1 : $2))
}

newer_format() {
	mkdir -p "$tmp/m"
	ddbfs init "$tmp/new"
	# As FORMAT.md says: another number at offset 8 of `header`, and the checksum that goes with it.
	python3 - "$tmp/new/header" <<'TXT'
import hashlib, sys
h = bytearray(open(sys.argv[1], 'rb').read())
h[8] = 99
h[16:48] = hashlib.blake2b(bytes(h[48:]), digest_size=32, key=bytes(h[:16]) + bytes(16)).digest()
open(sys.argv[1], 'wb').write(h)
TXT
	before=$(bytes_of "$tmp/new")
	exits 10 ddbfs mount "$tmp/new" "$tmp/m"
	says 99
	equal "$before" "$(bytes_of "$tmp/new")" 'bytes of the store'
	rm -rf "$tmp/new" "$tmp/m"
}

names_and_values() {
	gives EINVAL setxattr . user.ddbfs.retention never
	gives EINVAL setxattr . user.ddbfs.unknown 1
	exits 2 ddbfs policy set . retention
	says retention
	exits 2 ddbfs policy set . frob=1
	says 'frob: no such policy'
	exits 2 ddbfs policy unset . user.ddbfs.frob
	says 'no such policy'
	exits 4 ddbfs policy unset . retention
	refused ddbfs init --trash-name a/b "$tmp/bad-name"
	refused ddbfs init --trash-name .. "$tmp/bad-name"
	refused ddbfs init --trash-name '' "$tmp/bad-name"
	absent "$tmp/bad-name/header"
}

batches() {
	exits 4 ddbfs undo 12345
	refused ddbfs undo -5
	touch f && rm f
	exits 4 ddbfs undo --only 'no*match'
	lists .trash f
}

# What cannot be written is an error; a reader that has enough is none.
output() {
	local status=0

	touch $(seq 2000)
	apart rm -f *
	exits 1 bash -c '"$0" trash list >/dev/full' "$DDBFS"
	says 'No space left'
	exits 1 bash -c '"$0" trash list >&-' "$DDBFS"
	says 'standard output'
	exits 1 bash -c '"$0" help >&-' "$DDBFS"
	(ddbfs trash list --json 2>"$tmp/said" || equal 141 $?) | head -n 1 | jq -e .path
	equal '' "$(cat "$tmp/said")" 'what is said to a reader that has enough'
	(ddbfs undo 2>"$tmp/said" || equal 141 $?) | head -n 1
	equal '' "$(cat "$tmp/said")" 'what is said to a reader that has enough'
}

none_of_them() {
	touch f
	apart rm f
	lists .trash f
	equal '' "$(ddbfs trash list --since 0s --json)" 'deleted within no time'
	equal 1 "$(ddbfs trash list --since 1h --json | wc -l)"
}

read_only() {
	touch f
	apart rm f
	cd /
	remount -o ro
	cd "$d"
	exits 1 ddbfs policy set . retention=1d
	says 'without ro'
	exits 1 ddbfs undo
	says 'without ro'
	cd /
	remount
}

mount_new
it 'options' options
it 'output that cannot be written, and readers that have enough' output
it 'no time at all is a time' none_of_them
it 'what a read-only mount refuses' read_only
it 'paths' paths
it 'mount points' mount_points
it 'stores that are none, or are there already' stores
it 'D6 empty, cut and overwritten store files are refused, and nothing is written' damaged_stores
it 'a store of a newer format is refused' newer_format
it 'policies, trash names and their values' names_and_values
it 'batches that do not exist' batches
it 'leaves a store that checks clean' check_clean
done_testing
