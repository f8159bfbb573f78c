#!/usr/bin/env bash
#
# Two ways at least to hand it nonsense as option, path, store, key, policy, name,
# batch and terminal: each is named in the message, has its exit code, and changes
# nothing. nonsense.sh has the stores that are damaged.
# timeout: 600
. "$(dirname "$0")/lib.sh"

# All that a store's directory holds, to see that nothing was written.
bytes_of() {
	(cd "$1" && find . -exec stat -c '%n %s %Y' {} + | sort && find . -type f -exec md5sum {} + | sort) | md5sum
}

# refuses CODE WORD COMMAND...: that exit code, and a message of one line that has the word and the verb
refuses() {
	local code=$1 word=$2
	shift 2

	exits "$code" "$@"
	says "$word"
	equal 1 "$(wc -l <"$tmp/said")" 'lines of the message'
	grep -q '^ddbfs' "$tmp/said" || fail "the message does not begin with the program: $(cat "$tmp/said")"
}

options() {
	refuses 2 --frob ddbfs status --frob
	refuses 2 -x ddbfs status -x
	refuses 2 --json ddbfs status --json=yes
	refuses 2 --limit ddbfs trash list --limit
	refuses 2 -1 ddbfs trash list --limit -1
	refuses 2 1e9 ddbfs trash list --limit=1e9
	refuses 2 tomorrow ddbfs trash empty --older-than tomorrow
	refuses 2 99999999999w ddbfs trash empty --older-than 99999999999w
	refuses 2 colour ddbfs init --names colour "$tmp/new"
	refuses 2 weak ddbfs init --kdf weak "$tmp/new"
	refuses 2 --kdf ddbfs init --kdf sensitive "$tmp/new"
	refuses 2 --to ddbfs trash restore --to '' f
	# An abbreviation is no option: it could mean another one some day.
	refuses 2 --re ddbfs undo --re
	refuses 2 --replace ddbfs undo --rename --replace
	# A list undoes nothing, so what says how to undo has no meaning beside it.
	refuses 2 '--list, 1:' ddbfs undo --list 1
	refuses 2 '--list, --skip' ddbfs undo --list --skip
	refuses 2 '--list, --rename' ddbfs undo --rename --list
	refuses 2 '--list, --replace' ddbfs undo --list --replace
	refuses 2 '--list, --only' ddbfs undo --list --only f
	refuses 2 '--list, --dry-run' ddbfs undo --list --dry-run
	absent "$tmp/new"
}

verbs() {
	refuses 2 mont ddbfs mont "$store" "$mnt"
	refuses 2 lits ddbfs trash lits
	refuses 2 restore ddbfs trash
	refuses 2 -v ddbfs -v
	refuses 2 STORE ddbfs init
	refuses 2 extra ddbfs umount "$mnt" extra
	refuses 2 empty ddbfs umount ''
}

paths() {
	touch live
	refuses 4 /proc ddbfs status /proc
	refuses 4 nowhere ddbfs trash list nowhere
	refuses 4 live ddbfs trash restore live
	refuses 4 live/below ddbfs trash restore live/below
	refuses 4 live ddbfs trash list live
	refuses 2 .trash ddbfs trash restore .trash
	refuses 2 '..' ddbfs trash restore nowhere/../live
	# A live directory of which nothing came back is not deleted, whatever lies in its trash.
	mkdir full && touch full/x && rm full/x
	refuses 4 'full: not deleted' ddbfs trash restore full
	refuses 4 typo ddbfs undo typo
	exists live
	mkdir gone && cd gone && rmdir ../gone
	ddbfs status >/dev/null # the shell still knows the name of where it stands
}

mount_points() {
	local m=$tmp/p

	mkdir "$m" && touch "$m/file" && ln -s / "$m/link" && ddbfs init "$m/store" >/dev/null
	refuses 13 nothing ddbfs mount "$m/store" "$m/nothing"
	refuses 13 file ddbfs mount "$m/store" "$m/file"
	refuses 13 link ddbfs mount "$m/store" "$m/link"
	refuses 13 "$m" ddbfs mount "$m/store" "$m"
	refuses 13 "$mnt" ddbfs mount "$m/store" "$mnt"
	cd "$m" && mkdir here && cd here
	refuses 13 'working directory' ddbfs mount "$m/store" .
	cd /
	rm -rf "$m"
}

mount_options() {
	local m=$tmp/o

	mkdir -p "$m" && ddbfs init "$tmp/ostore" >/dev/null
	refuses 2 frob ddbfs mount -o rw,frob "$tmp/ostore" "$m"
	refuses 2 'ddbfs umount' ddbfs mount -o remount,ro "$tmp/ostore" "$m"
	refuses 2 ro=1 ddbfs mount -o ro=1 "$tmp/ostore" "$m"
	refuses 2 log ddbfs mount -o log= "$tmp/ostore" "$m"
	refuses 2 fsname ddbfs mount -o fsname=x "$tmp/ostore" "$m"
	refuses 2 debug ddbfs mount -o debug "$tmp/ostore" "$m"
	refuses 2 --names ddbfs mount --names sealed "$tmp/ostore" "$m"
	refuses 2 /nothing/log ddbfs mount --log /nothing/log "$tmp/ostore" "$m"
	! mounted "$m" || fail 'mounted all the same'
	rm -rf "$m" "$tmp/ostore"
}

stores() {
	local s=$tmp/s before

	mkdir "$s" "$s/empty" "$s/full" "$s/m" && echo precious >"$s/full/x" && echo text >"$s/file"
	chmod 600 "$s/file"
	before=$(bytes_of "$s")
	refuses 10 none ddbfs mount "$s/none" "$s/m"
	refuses 10 empty ddbfs mount "$s/empty" "$s/m"
	refuses 10 full ddbfs check "$s/full"
	refuses 10 file ddbfs mount "$s/file" "$s/m"
	refuses 10 file ddbfs check "$s/file"
	refuses 10 none ddbfs key add --new-passphrase-file "$s/file" "$s/none"
	refuses 6 full ddbfs init "$s/full"
	refuses 6 file ddbfs init "$s/file"
	refuses 4 deep ddbfs init "$s/very/deep"
	refuses 10 full ddbfs mount --create "$s/full" "$s/m"
	refuses 6 "$store" ddbfs init "$store"
	refuses 11 "$store" ddbfs check "$store"
	refuses 11 "in use by process $(daemon_pid)" ddbfs key add --new-passphrase-file "$s/file" "$store"
	equal "$before" "$(bytes_of "$s")" 'what was there'
	rm -rf "$s"
}

keys() {
	local k=$tmp/k before

	mkdir "$k" "$k/m"
	echo right >"$k/right" && echo wrong >"$k/wrong" && : >"$k/nothing" && printf 'a\0b\n' >"$k/nul"
	head -c 2000 /dev/zero | tr '\0' x >"$k/long"
	head -c 64 /dev/urandom >"$k/other" && echo short >"$k/short"
	chmod 600 "$k"/*
	ddbfs init --kdf interactive --passphrase-file "$k/right" "$k/store" >/dev/null
	before=$(bytes_of "$k/store")
	refuses 12 passphrase ddbfs mount --passphrase-file "$k/wrong" "$k/store" "$k/m"
	refuses 12 passphrase ddbfs mount --key-file "$k/other" "$k/store" "$k/m"
	refuses 12 --passphrase-file ddbfs mount "$k/store" "$k/m"
	refuses 12 passphrase ddbfs check --passphrase-file "$k/wrong" "$k/store"
	refuses 12 'the store is locked' ddbfs key add --new-passphrase-file "$k/right" "$k/store"
	refuses 12 passphrase ddbfs key replace --passphrase-file "$k/wrong" --new-passphrase-file "$k/right" "$k/store"
	refuses 2 no-such ddbfs mount --passphrase-file "$k/no-such" "$k/store" "$k/m"
	refuses 2 nothing ddbfs mount --passphrase-file "$k/nothing" "$k/store" "$k/m"
	refuses 2 nul ddbfs mount --passphrase-file "$k/nul" "$k/store" "$k/m"
	refuses 2 long ddbfs mount --passphrase-file "$k/long" "$k/store" "$k/m"
	refuses 2 --key-file ddbfs mount --passphrase-file "$k/right" --key-file "$k/right" "$k/store" "$k/m"
	refuses 2 'no-such' ddbfs mount --key-file "$k/no-such" "$k/store" "$k/m"
	refuses 2 'not a plain file' ddbfs mount --key-file "$k" "$k/store" "$k/m"
	refuses 2 nothing ddbfs mount --key-file "$k/nothing" "$k/store" "$k/m"
	refuses 2 short ddbfs mount --key-file "$k/short" "$k/store" "$k/m"
	refuses 2 99 ddbfs mount --passphrase-fd 99 "$k/store" "$k/m"
	refuses 2 'descriptor 0: not a passphrase' ddbfs mount --passphrase-fd 0 "$k/store" "$k/m"
	refuses 2 terminal setsid "$DDBFS" mount --passphrase "$k/store" "$k/m"
	refuses 2 new ddbfs key add --passphrase-file "$k/right" "$k/store"
	equal "$before" "$(bytes_of "$k/store")" 'the store'
	rm -rf "$k"
}

policies() {
	mkdir d && touch f
	refuses 2 frob ddbfs policy set d frob=1
	refuses 2 retention ddbfs policy set d retention
	refuses 2 soon ddbfs policy set d retention=soon
	refuses 2 -5 ddbfs policy set d versions=-5
	refuses 2 perhaps ddbfs policy set d protect=perhaps
	refuses 2 f ddbfs policy set f retention=1d
	refuses 4 /tmp ddbfs policy set /tmp retention=1d
	refuses 4 retention ddbfs policy unset d retention
	# One wrong value among right ones: none is set.
	refuses 2 banana ddbfs policy set d versions=3 grace=banana
	refuses 4 versions ddbfs policy unset d versions
	gives EINVAL setxattr d user.ddbfs.retention soon
	gives EINVAL setxattr d user.ddbfs.frob 1
	gives EINVAL setxattr f user.ddbfs.retention 1d
}

names() {
	local long

	long=$(printf 'x%.0s' {1..256})
	refuses 2 a/b ddbfs init --trash-name a/b "$tmp/new"
	refuses 2 .ddbfs ddbfs init --trash-name .ddbfs "$tmp/new"
	refuses 2 "$long" ddbfs init --trash-name "$long" "$tmp/new"
	absent "$tmp/new"
	refuses 4 "$long" ddbfs trash restore "$long"
	gives ENAMETOOLONG open "$long" creat,wronly
	# What a terminal would obey does not reach it.
	exits 4 ddbfs trash restore $'esc\033[2Jape\nline'
	says "esc\\e[2Jape\\nline"
	exits 4 ddbfs trash restore $'not\xffutf8'
	says 'not\377utf8'
	gives EEXIST mkdir .trash
	gives EEXIST mkdir "$mnt/.ddbfs"
}

batches() {
	refuses 4 12345 ddbfs undo 12345
	refuses 2 99999999999999999999 ddbfs undo 99999999999999999999
	refuses 2 0 ddbfs undo 0
	refuses 2 --all ddbfs undo --all
	touch f && rm f
	refuses 4 'no entry' ddbfs undo --only 'no*match'
	lists .trash f
}

# The file that takes the words is full: that is a failure, not success.
full_output() {
	touch f && rm f
	exits 1 bash -c "'$DDBFS' trash list >/dev/full"
	says 'standard output'
}

mount_new
it 'wrong options' options
it 'wrong verbs and numbers of operands' verbs
it 'paths that are not there, or not in the mount' paths
it 'mount points that cannot be' mount_points
it 'mount options that there are not' mount_options
it 'stores that are none' stores
it 'wrong, missing and impossible passphrases and key files' keys
it 'policies and values that there are not' policies
it 'names that cannot be' names
it 'batches that there are not' batches
it 'a full output' full_output
it 'leaves a store that checks clean' check_clean
done_testing
