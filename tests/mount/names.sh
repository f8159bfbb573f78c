#!/usr/bin/env bash
#
# Names of any bytes and lengths, and the names that users cannot have.
# timeout: 600
. "$(dirname "$0")/lib.sh"

strange=(
	$'new\nline' $'tab\tand space' $'\xff\xfe' '-rf' 'DEL#1' 'ACT#x' 'SHD#' 'a#b/'
	'name@2026-01-01T00:00:00Z' 'name@2026-01-01T00:00:00.5Z' $'\x01\x7f' '~' '*' '\' '"' "'"
	'ünïcödé' '...' ' ' 'trailing ' '.hidden' '#' '%s%n'
)
strange[7]='a#b'

# All bytes but '/' and NUL, in names of 64.
byte_names() {
	local i name=''

	for ((i = 1; i < 256; i++)); do
		[ $i != 47 ] || continue
		name+=$(printf '\\x%02x' $i)
		if ((i % 64 == 63 || i == 255)); then
			printf '%b\0' "$name"
			name=
		fi
	done
}

fill_with() {
	local n

	for n in "$@"; do
		printf '%s' "$n" | md5sum >"./$n"
	done
}

all_bytes() {
	local names n

	mapfile -d '' names < <(byte_names)
	names+=("${strange[@]}")
	fill_with "${names[@]}"
	equal ${#names[@]} "$(count . -type f)" 'files'
	for n in "${names[@]}"; do
		rm -- "./$n"
		absent "./$n"
		equal "$(printf '%s' "$n" | md5sum)" "$(cat "./.trash/$n")" "deleted $(printf %q "$n")"
	done
	equal "$(printf '%s\0' "${names[@]}" | sort -z | md5sum)" \
		"$(find .trash -mindepth 1 -printf '%f\0' | sort -z | md5sum)" 'names in .trash'
	for n in "${names[@]}"; do
		mv -- "./.trash/$n" "./$n"
		equal "$(printf '%s' "$n" | md5sum)" "$(cat "./$n")" "restored $(printf %q "$n")"
	done
	lists .trash
}

# The path of each row of `trash list --json`, its bytes.
listed_as_json() {
	local n

	fill_with "${strange[@]}"
	rm -- "${strange[@]/#/./}"
	ddbfs trash list --json . >"$tmp/rows"
	equal ${#strange[@]} "$(jq -s 'map(select(.cause)) | length' "$tmp/rows")" 'rows'
	# UTF-8 names are there as they are; others have their bytes told apart.
	for n in $'new\nline' '-rf' 'DEL#1' 'name@2026-01-01T00:00:00Z' 'ünïcödé' '"'; do
		jq -se --arg n "$n" 'any(.[]; tostring | contains($n | tojson | .[1:-1]) or contains($n))' \
			"$tmp/rows" >/dev/null || fail "$(printf %q "$n") is not in the JSON"
	done
	for n in "${strange[@]}"; do
		ddbfs trash restore -- "./$n" >/dev/null
		equal "$(printf '%s' "$n" | md5sum)" "$(cat "./$n")" "restored $(printf %q "$n")"
	done
}

literal_before_dated() {
	local stamp=2026-01-01T00:00:00Z

	echo literal >"name@$stamp"
	rm "name@$stamp"
	content ".trash/name@$stamp" literal
	echo plain >name
	rm name
	content ".trash/name@$stamp" literal
	content .trash/name plain
	mv ".trash/name@$stamp" .
	content "name@$stamp" literal
}

longest_names() {
	local name older

	name=$(printf '%0255d' 3)
	echo one >"$name"
	rm "$name"
	content ".trash/$name" one
	echo two >"$name"
	rm "$name"
	content ".trash/$name" two
	equal 2 "$(ls -A .trash | wc -l)" entries
	older=$(older "$name")
	content ".trash/$older" one
	mv ".trash/$older" restored
	content restored one
	mv ".trash/$name" "$name"
	content "$name" two
	rm "$name" restored
	rm ".trash/$name"
	absent ".trash/$name"
	mkdir "$name"
	rmdir "$name"
	rmdir ".trash/$name"
	lists .trash restored
}

reserved() {
	local where

	mkdir -p a/b
	echo f >f
	for where in . a a/b; do
		gives EEXIST mkdir $where/.trash
		gives EEXIST symlink x $where/.trash
		gives EEXIST mknod $where/.trash fifo
		gives EISDIR open $where/.trash creat,wronly
		gives EEXIST open $where/.trash creat,excl,wronly
		gives EEXIST link f $where/.trash
		gives EBUSY rmdir $where/.trash
		[ "$("$sys" rename f $where/.trash)" != ok ] || fail 'renamed onto .trash'
		[ "$("$sys" rename $where/.trash $where/x)" != ok ] || fail 'renamed .trash'
		[ "$("$sys" rename a/b $where/.trash)" != ok ] || fail 'renamed a directory onto .trash'
	done
	content f f
	exists a/b
	mkdir -p .trash # -p of what exists is no error
	gives EEXIST mkdir "$mnt/.ddbfs"
	gives EEXIST symlink x "$mnt/.ddbfs"
	gives EEXIST mknod "$mnt/.ddbfs" fifo
	gives EEXIST link f "$mnt/.ddbfs"
	[ "$("$sys" rmdir "$mnt/.ddbfs")" != ok ] || fail 'removed .ddbfs'
	[ "$("$sys" rename "$mnt/.ddbfs" x)" != ok ] || fail 'renamed .ddbfs'
	[ "$("$sys" rename f "$mnt/.ddbfs")" != ok ] || fail 'renamed onto .ddbfs'
	gives ok mkdir a/.ddbfs
}

first_thing_on_a_fresh_mount() {
	cd /
	remount
	equal directory "$(stat -c %F "$mnt/.trash")"
	lists "$mnt/.trash" "$(basename "$d")" 2>/dev/null || ls "$mnt/.trash" >/dev/null
	remount
	gives ok stat "$mnt/.ddbfs/control"
}

# By the standard's file, which no listing names, backup programs leave the trash out where they are led into it.
backups_leave_it_out() {
	local signature='Signature: 8a477f597d28d172789f06886806bc55'

	mkdir sub
	echo 1 >f
	echo 2 >sub/f
	rm f sub/f
	for t in .trash sub/.trash; do
		equal "$signature" "$(head -c 43 $t/CACHEDIR.TAG)" "$t"
		equal regular "$(stat -c %F $t/CACHEDIR.TAG | cut -d' ' -f1)" 'type'
		equal "$(wc -c <$t/CACHEDIR.TAG)" "$(stat -c %s $t/CACHEDIR.TAG)" 'size'
	done
	# Whoever copies with holes copies it whole.
	equal 0 "$("$sys" seek .trash/CACHEDIR.TAG data 0)" 'its data'
	gives ENOENT stat CACHEDIR.TAG
	gives ENOENT stat .trash/sub/CACHEDIR.TAG
	lists .trash f sub
	lists sub/.trash f
	equal '.trash/ .trash/CACHEDIR.TAG' "$(tar --exclude-caches -cf - .trash | tar -tf - | sort | xargs)" 'tar --exclude-caches'
	equal .trash/ "$(tar --exclude-caches-under -cf - .trash | tar -tf - | grep -v TAG)" 'tar --exclude-caches-under'
	equal '' "$(tar --exclude-caches-all -cf - sub/.trash | tar -tf -)" 'tar --exclude-caches-all'
	# Nobody's to change, to take away or to fill.
	gives EROFS unlink .trash/CACHEDIR.TAG
	gives EROFS rename .trash/CACHEDIR.TAG x
	gives EROFS write .trash/CACHEDIR.TAG wronly x
	gives EROFS truncate .trash/CACHEDIR.TAG 0
	gives EROFS chmod .trash/CACHEDIR.TAG 777
	gives EROFS link .trash/CACHEDIR.TAG x
	# A file of that name that was deleted goes before it, by rm and by mv, and comes back.
	echo mine >CACHEDIR.TAG
	rm CACHEDIR.TAG
	content .trash/CACHEDIR.TAG mine
	lists .trash CACHEDIR.TAG f sub
	mv .trash/CACHEDIR.TAG .
	content CACHEDIR.TAG mine
	equal "$signature" "$(head -c 43 .trash/CACHEDIR.TAG)" 'the tag again'
	mv CACHEDIR.TAG .trash/
	content .trash/CACHEDIR.TAG mine
	rm .trash/CACHEDIR.TAG
	equal "$signature" "$(head -c 43 .trash/CACHEDIR.TAG)" 'and after a purge'
	rm .trash/f
	lists .trash sub
}

tools_never_enter() {
	mkdir -p sub/deeper
	echo 1 >sub/f
	echo 2 >gone
	echo 3 >sub/deeper/gone
	rm gone sub/deeper/gone
	equal '. ./sub ./sub/deeper ./sub/f' "$(find . | sort | xargs)" find
	equal 'sub' "$(ls -A)" 'ls -A'
	ls -lRa >"$tmp/said"
	du -a . >>"$tmp/said"
	grep -e trash -e gone "$tmp/said" && fail 'ls -lRa or du shows the trash'
	rsync -a ./ "$tmp/copy/"
	equal '. ./sub ./sub/deeper ./sub/f' "$(cd "$tmp/copy" && find . | sort | xargs)" rsync
	equal './ ./sub/ ./sub/deeper/ ./sub/f' "$(tar -cf - . | tar -tf - | sort | xargs)" tar
	grep -r 3 . && fail 'grep -r enters the trash'
	rm -rf "$tmp/copy" ./*
	equal '' "$(ls -A)" 'after rm -rf *'
	content .trash/gone 2
	content .trash/sub/f 1
}

trees_that_have_a_trash() {
	mkdir -p "$tmp/src/.trash" dest
	echo real >"$tmp/src/.trash/real"
	echo f >"$tmp/src/f"
	echo kept >dest/kept
	rm dest/kept
	refused rsync -a --delete "$tmp/src/" dest/
	says .trash
	content dest/f f
	# rsync's --delete was undone when the entry is in the trash again; from there it comes back.
	ddbfs undo dest
	ddbfs trash restore dest/kept
	content dest/kept kept
	refused cp -a "$tmp/src/." dest/
	says .trash
	need git
	git init -q "$tmp/repo"
	mkdir "$tmp/repo/.trash"
	echo tracked >"$tmp/repo/.trash/t"
	git -C "$tmp/repo" add -A
	git -C "$tmp/repo" -c user.name=t -c user.email=t@t commit -qm t
	refused git clone -q "$tmp/repo" clone
	says .trash
	rm -rf "$tmp/src" "$tmp/repo"
}

another_trash_name() {
	local other=$tmp/other

	mkdir "$other.mnt"
	ddbfs init --trash-name .deleted "$other"
	ddbfs mount "$other" "$other.mnt"
	mkdir "$other.mnt/.trash"
	echo mine >"$other.mnt/.trash/f"
	rm "$other.mnt/.trash/f"
	content "$other.mnt/.trash/.deleted/f" mine
	gives EEXIST mkdir "$other.mnt/.deleted"
	ddbfs umount "$other.mnt"
	rm -rf "$other" "$other.mnt"
}

mount_new
it 'N1 names of all bytes are deleted, shown and restored unchanged' all_bytes
it 'N1 JSON names them, and the tool restores them' listed_as_json
it 'N1 a name that looks like an older entry bears its literal name first' literal_before_dated
it 'N2 names of 255 bytes are deleted twice, shown, restored and purged' longest_names
it 'N3 .trash and .ddbfs cannot be made, renamed to or linked to' reserved
it 'N4 .trash is there first thing on a fresh mount' first_thing_on_a_fresh_mount
it 'N4 find, ls, du, rsync, tar, grep and rm -rf * never enter .trash' tools_never_enter
it 'backup programs leave the trash out by its CACHEDIR.TAG' backups_leave_it_out
it 'N0 trees with a .trash of their own: a clear error, and what was purged can be had back' trees_that_have_a_trash
it 'N0 a store made with another trash name takes such trees' another_trash_name
it 'leaves a store that checks clean' check_clean
done_testing
