#!/usr/bin/env bash
#
# Stores with a passphrase or a key file: nothing opens them without, and a wrong
# key writes nothing.
# timeout: 600
. "$(dirname "$0")/lib.sh"

bytes_of() {
	(cd "$1" && find . -type f -exec md5sum {} + | sort | md5sum)
}

with_passphrase() {
	local before

	echo 'correct horse' >"$tmp/right"
	echo 'wrong horse' >"$tmp/wrong"
	ddbfs init --kdf interactive --passphrase-file "$tmp/right" "$store"
	before=$(bytes_of "$store")
	exits 12 mount_up --passphrase-file "$tmp/wrong"
	says passphrase
	exits 12 mount_up
	exits 12 ddbfs check --passphrase-file "$tmp/wrong" "$store"
	equal "$before" "$(bytes_of "$store")" 'bytes of the store'
	mount_up --passphrase-file "$tmp/right"
	mkdir -p "$mnt/secret-directory"
	echo 'secret content of the file' >"$mnt/secret-directory/secret-name"
	setfattr -n user.secretattribute -v secretvalue "$mnt/secret-directory/secret-name"
	ln -s secret-target "$mnt/secret-link"
	rm "$mnt/secret-directory/secret-name"
	mount_down
	exits 12 mount_up --passphrase-file "$tmp/wrong"
	mount_up --passphrase-file "$tmp/right"
	content "$mnt/secret-directory/.trash/secret-name" 'secret content of the file'
	mount_down
	ddbfs check --passphrase-file "$tmp/right" "$store"
}

nothing_readable_on_disk() {
	local word

	for word in 'secret content' secret-name secret-directory secretattribute secretvalue secret-target \
		'correct horse'; do
		! grep -rqaF "$word" "$store" || fail "\"$word\" stands in the store: $(grep -rlaF "$word" "$store")"
	done
}

from_descriptor() {
	timeout 60 "$DDBFS" mount --passphrase-fd 7 "$store" "$mnt" 7<"$tmp/right" </dev/null
	exists "$mnt/secret-directory"
	mount_down
	exits 2 ddbfs mount --passphrase-file /dev/null "$store" "$mnt"
	refused mount_up --passphrase-file "$tmp/no-such-file"
	says no-such-file
}

changed_passphrase() {
	echo 'new horse' >"$tmp/new"
	ddbfs key add --passphrase-file "$tmp/right" --new-passphrase-file "$tmp/new" "$store"
	mount_up --passphrase-file "$tmp/new"
	exists "$mnt/secret-directory"
	mount_down
	exits 12 ddbfs key replace --passphrase-file "$tmp/wrong" --new-passphrase-file "$tmp/new" "$store"
	ddbfs key replace --passphrase-file "$tmp/right" --new-passphrase-file "$tmp/new" "$store"
	exits 12 mount_up --passphrase-file "$tmp/right"
	mount_up --passphrase-file "$tmp/new"
	mount_down
}

# answering COMMAND ANSWER...: on a terminal, each answer given when it is asked for; what was shown in $tmp/shown
answering() {
	local command=$1 answer shown status=0 pid from to
	shift

	: >"$tmp/shown"
	coproc timeout 60 script -qec "$command" /dev/null
	pid=$COPROC_PID
	# Copies: the shell closes its own when the program ends.
	exec {from}<&"${COPROC[0]}" {to}>&"${COPROC[1]}"
	for answer; do
		IFS= read -r -d ':' -t 60 shown <&"$from" || return
		printf '%s:' "$shown" >>"$tmp/shown"
		printf '%s\n' "$answer" >&"$to"
	done
	cat <&"$from" >>"$tmp/shown"
	exec {from}<&- {to}>&-
	wait "$pid" || status=$?
	return $status
}

on_a_terminal() {
	answering "'$DDBFS' init --kdf interactive --passphrase '$tmp/asked'" typed typed
	! grep -q typed "$tmp/shown" || fail "the terminal shows it: $(cat "$tmp/shown")"
	exits 12 answering "'$DDBFS' check '$tmp/asked'" other
	exits 2 answering "'$DDBFS' init --passphrase '$tmp/twice'" one two
	grep -q differ "$tmp/shown"
	absent "$tmp/twice"
	answering "'$DDBFS' check '$tmp/asked'" typed
	grep -q clean "$tmp/shown"
	answering "'$DDBFS' key add --new-passphrase '$tmp/asked'" typed next next
	answering "'$DDBFS' check '$tmp/asked'" next
	# ^C while it is asked for ends the program, in the foreground too, and the terminal echoes again.
	for f in '' -f; do
		exits 130 answering "sh -c '\"$DDBFS\" mount $f \"$tmp/asked\" \"$mnt\"; s=\$?; stty -a | grep -qw echo || exit 9; exit \$s'" $'\003'
	done
	rm -rf "$tmp/asked"
}

with_key_file() {
	rm -rf "$store"
	head -c 64 /dev/urandom >"$tmp/key"
	head -c 64 /dev/urandom >"$tmp/other"
	ddbfs init --key-file "$tmp/key" "$store"
	exits 12 mount_up --key-file "$tmp/other"
	exits 12 mount_up
	chmod 644 "$tmp/key"
	exits 0 ddbfs check --key-file "$tmp/key" "$store"
	says 'others may read'
	chmod 600 "$tmp/key"
	exits 0 ddbfs check --key-file "$tmp/key" "$store"
	! grep -q 'others may read' "$tmp/said" || fail 'warned of a file that only its owner reads'
	refused mount_up --key-file "$tmp/nothing"
	says nothing
	refused mount_up --key-file "$tmp"
	: >"$tmp/empty"
	refused mount_up --key-file "$tmp/empty"
	mount_up --key-file "$tmp/key"
	echo text >"$mnt/f"
	mount_down
	mount_up -o key-file="$tmp/key"
	content "$mnt/f" text
	mount_down
}

without_passphrase() {
	rm -rf "$store"
	ddbfs init "$store" >"$tmp/said" 2>&1
	mount_up
	echo 'some plain content' >"$mnt/f"
	mount_down
	# No secrecy from who has the directory, but its key is for the owner alone.
	equal '' "$(find "$store" -type f -perm /077)" 'files that others may read'
	equal 700 "$(stat -c %a "$store")" 'mode of the store'
	! grep -rqaF 'some plain content' "$store" || fail 'contents are not sealed'
}

it 'a passphrase opens the store, a wrong one gives exit code 12 and writes nothing' with_passphrase
it 'neither names, attributes, targets nor contents can be read in the store' nothing_readable_on_disk
it 'passphrases come from descriptors and files' from_descriptor
it 'passphrases are added and replaced' changed_passphrase
it 'a passphrase is asked for on the terminal, unseen, a new one twice' on_a_terminal
it 'a key file opens the store, another does not' with_key_file
it 'without a passphrase the store is sealed all the same, and its owner'\''s' without_passphrase
done_testing
