#!/usr/bin/env bash
#
# The matrix of two users: a file deleted where nobody else could see it, and
# directories opened up afterwards. Bob tries to learn its name, read it, restore
# it and purge it, by the ordinary tools and by ours; then Alice, whose it is,
# still can.
# timeout: 600
. "$(dirname "$0")/lib.sh"

# Both users' trees are world-writable where that matters: only privacy is in the way.
prepare() { # WHICH
	rm -rf g
	as $alice mkdir -p -m 777 g/p/d
	as $alice chmod 777 g g/p g/p/d
	case $1 in
	directory) closed=g/p/d ;;
	parent) closed=g/p ;;
	grandparent) closed=g ;;
	esac
	as $alice chmod 700 $closed
	as $alice bash -c 'echo secret >g/p/d/secretname; chmod 666 g/p/d/secretname'
}

# Where the entry is shown, from inside and from outside.
shown() {
	case $1 in
	file) echo "g/p/d/.trash/secretname .trash/g/p/d/secretname g/.trash/p/d/secretname" ;;
	tree) echo ".trash/g/p/d/secretname .trash/g/p/d/.trash/secretname" ;;
	below) echo "g/p/d/.trash/secretname g/.trash/p/d/secretname .trash/g/p/d/secretname" ;;
	esac
}

# The deletion, and what is opened up afterwards. HOW: file - the file alone; tree - with the directories,
# which can be opened only after a restore; below - the file first, the directories with a later rm, then brought back.
delete() { # HOW
	as $alice rm g/p/d/secretname
	case $1 in
	file) as $alice chmod 755 $closed && as $alice chmod 777 $closed ;;
	tree) as $alice rm -rf g ;;
	below)
		sleep 0.02
		apart as $alice rm -rf g
		as $alice "$DDBFS" undo "$d" >/dev/null
		as $alice chmod 777 $closed
		;;
	esac
}

bob_sees() {
	as $bob "$sys" "$@"
}

by_ordinary_tools() { # HOW
	local path

	for path in $(shown "$1"); do
		! as $bob ls "$(dirname "$path")" 2>/dev/null | grep -q secretname || fail "name: ls $(dirname "$path")"
		[ "$(bob_sees stat "$path")" != ok ] || fail "name: stat $path"
		[ "$(bob_sees open "$path" rdonly)" != ok ] || fail "content: $path"
		! as $bob cat "$path" 2>/dev/null | grep -q secret || fail "content: cat $path"
		[ "$(bob_sees rename "$path" "$d/pub/stolen")" != ok ] || fail "restore: mv $path"
		[ "$(bob_sees unlink "$path")" != ok ] || fail "purge: rm $path"
	done
	! as $bob find g .trash 2>/dev/null | grep -q secretname || fail 'name: find'
	! as $bob find .trash/g g/.trash g/p/.trash g/p/d/.trash 2>/dev/null | grep -q secretname || fail 'name: find in .trash'
}

by_the_tool() { # HOW
	local path

	for path in . g g/p g/p/d; do
		as $bob "$DDBFS" trash list "$d/$path" >"$tmp/said" 2>&1 || true
		! grep -q secretname "$tmp/said" || fail "name: trash list $path"
		as $bob "$DDBFS" trash list --json "$d/$path" >"$tmp/said" 2>&1 || true
		! grep -q secretname "$tmp/said" || fail "name: trash list --json $path"
	done
	for path in g/p/d/secretname $(shown "$1"); do
		refused as $bob "$DDBFS" trash restore "$d/$path"
		refused as $bob "$DDBFS" trash restore --to "$d/pub" "$d/$path"
		! grep -q 'secret$' "$tmp/said" || fail "content: trash restore $path"
	done
	as $bob "$DDBFS" undo "$d" >"$tmp/said" 2>&1 || true
	! grep -q secretname "$tmp/said" || fail 'name: undo'
	as $bob "$DDBFS" trash empty --now "$d" >"$tmp/said" 2>&1 || true
	! grep -q secretname "$tmp/said" || fail 'name: trash empty'
	absent pub/stolen
	absent pub/secretname
}

# It is all still there, and hers.
alice_still_has_it() { # HOW
	case $1 in
	tree)
		as $alice mv .trash/g g
		content g/p/d/secretname secret
		;;
	*)
		as $alice "$DDBFS" trash restore "$d/g/p/d/secretname" >/dev/null
		content g/p/d/secretname secret
		;;
	esac
	equal $alice "$(stat -c %u g/p/d/secretname)" owner
	as $alice rm -rf g
	as $alice "$DDBFS" trash empty --now "$d" >/dev/null
}

cell() { # WHICH HOW BY
	chmod 777 .
	mkdir -p -m 777 pub
	chmod 777 pub
	prepare "$1"
	delete "$2"
	"$3" "$2"
	alice_still_has_it "$2"
}

# What anyone could read at the time of the deletion he can still read: the matrix shows no mere refusal of everything.
open_stays_open() {
	chmod 777 .
	prepare directory
	as $alice chmod 777 g g/p g/p/d
	as $alice rm g/p/d/secretname
	equal secret "$(as $bob cat g/p/d/.trash/secretname)"
	equal secretname "$(as $bob ls g/p/d/.trash)"
	as $bob mv g/p/d/.trash/secretname g/p/d/
	equal secret "$(as $bob cat g/p/d/secretname)"
}

mount_new -o allow_other
chmod 755 "$mnt"
for which in directory parent grandparent; do
	for how in file tree below; do
		case $how in
		file) when="a file deleted where the $which was private, opened up since" ;;
		tree) when="a tree deleted whole, whose $which was private" ;;
		below) when="a file deleted before its tree, both private by the $which, the tree brought back and opened up" ;;
		esac
		it "P0 $when: not by mv, cat, ls, rm" cell $which $how by_ordinary_tools
		it "P0 $when: not by the tool" cell $which $how by_the_tool
	done
done
it 'P0 what was open at the deletion stays so' open_stays_open
it 'leaves a store that checks clean' check_clean -o allow_other
done_testing
