#!/usr/bin/env bash
#
# Two users and root: nobody learns or does through the trash what he could not
# in the tree at the time of deletion.
# timeout: 600
. "$(dirname "$0")/lib.sh"

# sees UID VERB ARGUMENT...: what the system call answers that user
sees() {
	as "$1" "$sys" "${@:2}"
}

hidden_in_a_private_directory() {
	chmod 755 .
	mkdir private && chown $alice:$alice private && chmod 700 private
	as $alice bash -c 'umask 077; echo secret >private/f; echo secret >private/g; rm private/f; true'
	content private/.trash/f secret # root, listing it, opens nothing to others
	as $alice cat private/.trash/f >/dev/null
	for path in private/.trash private/.trash/f .trash/private/f; do
		equal EACCES "$(sees $bob stat $path)" "stat of $path"
		equal EACCES "$(sees $bob open $path rdonly)" "open of $path"
	done
	equal EACCES "$(sees $bob rename private/.trash/f /nowhere)"
	equal EACCES "$(sees $bob unlink private/.trash/f)"
	refused as $bob "$DDBFS" trash restore "$d/private/f"
	refused as $bob "$DDBFS" trash list "$d/private"
	absent private/f
	content private/.trash/f secret
}

# opened_up WHICH: {the directory, its parent, its grandparent} was 0700 at the deletion and is
# opened up later.
opened_up() {
	local how

	for how in itself parent grandparent; do
		mkdir -p $how/g/p/d
		chown -R $alice:$alice $how
		chmod -R 755 $how
		case $how in
		itself) closed=$how/g/p/d ;;
		parent) closed=$how/g/p ;;
		grandparent) closed=$how/g ;;
		esac
		chmod 700 $closed
		as $alice bash -c "echo secret >$how/g/p/d/secretname; chmod 644 $how/g/p/d/secretname; rm $how/g/p/d/secretname; true"
		chmod 755 $closed
		for path in $how/g/p/d/.trash .trash/$how/g/p/d; do
			equal '' "$(as $bob ls "$path" 2>/dev/null || true)" "names that another user sees in $path"
			[ "$(sees $bob stat $path/secretname)" != ok ] || fail "$path/secretname can be seen"
			[ "$(sees $bob open $path/secretname rdonly)" != ok ] || fail "$path/secretname can be read"
			[ "$(sees $bob rename $path/secretname "$d/pub/x")" != ok ] || fail "$path/secretname restored"
			[ "$(sees $bob unlink $path/secretname)" != ok ] || fail "$path/secretname purged"
		done
		as $bob "$DDBFS" trash list "$d/$how" >"$tmp/said" 2>&1 || true
		! grep secretname "$tmp/said" || fail 'the tool lists it'
		refused as $bob "$DDBFS" trash restore "$d/$how/g/p/d/secretname"
		refused as $bob "$DDBFS" trash restore --to "$d/pub" "$d/$how/g/p/d/secretname"
		as $bob "$DDBFS" trash empty --now "$d/$how" >/dev/null 2>&1 || true
		content $how/g/p/d/.trash/secretname secret
		# Its owner still has it.
		as $alice cat $how/g/p/d/.trash/secretname >/dev/null
		as $alice mv $how/g/p/d/.trash/secretname $how/g/p/d/
		content $how/g/p/d/secretname secret
	done
}

private_when_opened_later() {
	chmod 755 .
	mkdir pub && chmod 777 pub
	opened_up
}

private_in_deleted_trees() {
	chmod 777 .
	as $alice mkdir -p -m 755 a
	as $alice bash -c 'mkdir -m 700 a/private; echo secret >a/private/f; chmod 644 a/private/f; rm -rf a; true'
	equal EACCES "$(sees $bob open .trash/a/private/f rdonly)"
	equal EACCES "$(sees $bob stat .trash/a/private/f)"
	as $alice cat .trash/a/private/f >/dev/null
}

needs_write_permission() {
	chmod 755 .
	mkdir owned && chown $alice:$alice owned && chmod 755 owned
	mkdir pub && chmod 777 pub
	as $alice bash -c 'echo hers >owned/f; rm owned/f; true'
	equal EACCES "$(sees $bob rename owned/.trash/f owned/f)" 'into the origin'
	equal EACCES "$(sees $bob rename owned/.trash/f pub/f)" 'to elsewhere'
	equal EACCES "$(sees $bob unlink owned/.trash/f)" 'purge'
	refused as $bob "$DDBFS" trash restore "$d/owned/f"
	refused as $bob "$DDBFS" trash restore --to "$d/pub" "$d/owned/f"
	# Reading what could be read before is allowed.
	equal hers "$(as $bob cat owned/.trash/f)"
	content owned/.trash/f hers
}

sticky_directory() {
	mkdir box && chmod 1777 box
	as $alice bash -c 'echo hers >box/f; rm box/f; true'
	mkdir pub && chmod 777 pub
	chmod 755 .
	equal EPERM "$(sees $bob rename box/.trash/f pub/f)" 'restore by mv'
	equal EPERM "$(sees $bob unlink box/.trash/f)" 'purge'
	refused as $bob "$DDBFS" trash restore "$d/box/f"
	as $alice mv box/.trash/f box/f
	content box/f hers
}

owner_restores() {
	chmod 755 .
	mkdir home && chown $alice:$alice home
	as $alice bash -c 'mkdir home/d; echo 1 >home/d/f; echo 2 >home/g; rm -rf home/d home/g; true'
	as $alice mv home/.trash/g home/
	as $alice "$DDBFS" trash restore "$d/home/d"
	content home/d/f 1
	content home/g 2
	as $alice bash -c 'rm home/g; sleep 0.1'
	(cd home && as $alice "$DDBFS" undo)
	content home/g 2
	equal "$alice" "$(stat -c %u home/d/f)" owner
}

undo_is_ones_own() {
	chmod 777 .
	as $alice bash -c 'echo 1 >hers; rm hers; true'
	sleep 0.05
	echo 2 >roots
	apart rm roots
	exits 4 as 65532 "$DDBFS" undo "$d"
	as $alice "$DDBFS" undo "$d"
	content hers 1
	absent roots
	as $alice "$DDBFS" undo --list "$d" >"$tmp/said" 2>&1 || true
	! grep -q root "$tmp/said" || fail "another user's batch is listed"
}

who_deleted_it() {
	chmod 777 .
	mkdir shared && chmod 777 shared
	as $alice bash -c 'echo hers >shared/f'
	as $bob rm -f shared/f
	equal hers "$(as $alice cat shared/.trash/f)"
	as $alice getfattr --only-values -n user.ddbfs.deleted_by shared/.trash/f >"$tmp/said"
	says $bob
	says rm
	as $alice getfattr --only-values -n user.ddbfs.deleted_at shared/.trash/f | grep -q T
	as $alice "$DDBFS" trash list "$d/shared" >"$tmp/said"
	says shared/f
}

control_is_checked() {
	# What only root may: others' policies, the whole trash, the clock, a sweep of the store.
	chmod 755 .
	echo 1 >f && rm f
	as $bob "$DDBFS" trash empty --now "$mnt" >/dev/null 2>&1 || true
	content .trash/f 1
	refused as $bob "$DDBFS" policy set "$d" retention=0
	equal EACCES "$(sees $bob setxattr . user.ddbfs.retention 0)"
	mkdir open && chmod 777 open
	equal EPERM "$(sees $bob setxattr open user.ddbfs.retention 0)"
	refused as $bob "$DDBFS" clock accept "$mnt"
	equal ok "$(sees $bob access . r,x)"
}

without_allow_other() {
	cd /
	mount_down
	chown $alice:$alice "$mnt" 2>/dev/null || true
	mount_up
	cd "$d"
	echo 1 >f && rm f
	mv .trash/f f
	content f 1
	[ "$(sees $bob stat "$d/f")" = EACCES ] || fail 'another user gets in without allow_other'
	cd /
	remount -o allow_other
}

# Bringing back what is his never puts a name where he may not, nor takes one away.
way_back_is_checked() {
	chmod 755 .
	mkdir -m 755 p
	mkdir p/d
	chown $alice p/d
	as $alice touch p/d/x
	apart as $alice rm p/d/x
	apart rmdir p/d
	refused as $alice "$DDBFS" undo "$mnt"
	absent p/d
	refused as $alice "$DDBFS" trash restore "$d/p/d/x"
	absent p/d
	mkdir -m 700 p/d
	refused as $alice "$DDBFS" undo "$mnt"
	lists p/d
	chown $alice p/d
	as $alice "$DDBFS" undo "$mnt"
	lists p/d x
}

replacing_is_checked() {
	mkdir -m 1777 pub
	as $alice bash -c 'echo alice >pub/x'
	apart as $alice rm pub/x
	as $bob bash -c 'echo bob >pub/x'
	refused as $alice "$DDBFS" undo --replace "$mnt"
	content pub/x bob
	refused as $alice "$DDBFS" trash restore --replace "$d/pub/x"
	content pub/x bob
	as $bob ln pub/x pub/y
	refused as $alice "$DDBFS" undo --replace "$mnt"
	content pub/x bob
	as $bob rm pub/x
	as $alice "$DDBFS" undo "$mnt"
	content pub/x alice
}

# One node stands for all names of a file: what one of them tells must not be told of another.
facts_of_other_names() {
	chmod 755 .
	mkdir -m 700 private
	mkdir -m 1777 pub
	echo text >private/f
	chmod 644 private/f
	ln private/f pub/g
	ln private/f pub/h
	rm private/f
	for name in origin key deleted_at; do
		equal '' "$(as $bob getfattr --only-values -n user.ddbfs.$name pub/g 2>/dev/null || true)" "$name of a live file"
	done
	rm pub/g pub/h
	for name in origin key; do
		equal '' "$(as $bob getfattr --only-values -n user.ddbfs.$name pub/.trash/g 2>/dev/null || true)" "$name of a file with other names"
	done
	as $bob getfattr --only-values -n user.ddbfs.deleted_at pub/.trash/g >/dev/null
}

emptying_asks_all_the_way_down() {
	chmod 755 .
	mkdir -m 777 pub
	as $alice bash -c 'mkdir -p pub/d/sub; echo alice >pub/d/sub/x; echo alice >pub/f'
	apart as $alice rm -r pub/d
	apart as $alice rm pub/f
	as $bob mkdir -p pub/own/sub
	apart as $bob rm -r pub/own
	exits 3 as $bob "$DDBFS" trash empty --now --dry-run "$d/pub"
	says 'would empty 2 entries'
	exits 3 as $bob "$DDBFS" trash empty --now "$d/pub"
	# As rm would: the file and his own tree, not what lies in directories he may not write.
	says 'destroyed 2 entries'
	says '1 entry was left'
	lists pub/.trash d
	content pub/.trash/d/sub/x alice
	as $alice "$DDBFS" trash empty --now "$d/pub"
	lists pub/.trash
}

given_away() {
	chmod 755 .
	mkdir -m 700 d
	echo secret >d/secretname && rm d/secretname
	chown $alice d
	refused as $alice stat d/.trash/secretname
	refused as $alice "$DDBFS" trash list "$d/d"
	refused as $alice "$DDBFS" trash restore "$d/d/secretname"
	# When nothing of that is left, what he deletes is his to see.
	ddbfs trash empty --now d >/dev/null
	as $alice bash -c 'echo own >d/f; rm d/f'
	equal own "$(as $alice cat d/.trash/f)"
	as $alice mv d/.trash/f d/f
}

# What was Bob's to know once: directories that Alice then moved where he may not look, under names he never saw.
later_names_stay_hidden() {
	install -d -o $alice -m 755 "$PWD/tree"
	install -d -o $alice -m 777 tree/shared
	as $bob touch tree/shared/gone tree/shared/left tree/shared/back
	as $bob setsid rm tree/shared/gone tree/shared/left tree/shared/back
	as $alice mkdir -m 700 tree/private
	as $alice mkdir tree/private/surprise
	as $alice mv tree/shared tree/private/surprise/unmasked
	ddbfs trash empty --now --json tree/private/surprise/unmasked/.trash >/dev/null || ddbfs trash empty --now tree
	exits 0 as $bob "$DDBFS" trash history --json "$mnt"
	says gone
	says "/tree/.../gone"
	equal 0 "$(grep -cE 'private|surprise|unmasked' "$tmp/said")" 'names that Bob may not know'
	exits 0 as $bob "$DDBFS" trash history "$mnt/${d##*/}/tree/private/surprise"
	equal 0 "$(grep -c gone "$tmp/said")" 'answers about a path that he may not walk'
	exits 0 as $bob "$DDBFS" undo --list "$mnt"
	equal 0 "$(grep -cE 'private|surprise|unmasked' "$tmp/said")" 'in the list of batches'
	exits 0 ddbfs trash history "$mnt"
	says tree/private/surprise/unmasked/gone
	# The same of what is still in the trash, when he asks for it back.
	install -d -o $alice -m 777 tree/other
	as $bob touch tree/other/x
	as $bob setsid rm tree/other/x
	as $alice mv tree/other tree/private/surprise/again
	exits 1 as $bob "$DDBFS" undo "$mnt" "$(as $bob "$DDBFS" undo --list --json "$mnt" | head -n 1 | jq -r .id)"
	says '.../x'
	equal 0 "$(grep -cE 'private|surprise|again' "$tmp/said")" 'when undo is refused'
	exits 0 as $bob "$DDBFS" undo --list --json "$mnt"
	equal 0 "$(grep -cE 'private|surprise|again' "$tmp/said")" 'in the list of batches'
	# What he can walk he is told in full.
	install -d -o $bob -m 700 own
	as $bob touch own/mine
	as $bob setsid rm own/mine
	as $bob "$DDBFS" trash empty --now "$d/own" >/dev/null
	exits 0 as $bob "$DDBFS" trash history "$d/own"
	says "$d/own/mine"
}

# What was hers she is told where it was, also when the directory is gone; what lay where she could not look, not.
history_of_what_is_gone() {
	install -d -o $alice -m 755 tree
	as $alice mkdir -m 700 tree/sub
	as $alice touch tree/sub/hers_alone tree/other
	as $alice setsid rm tree/sub/hers_alone
	as $alice "$DDBFS" trash empty --now "$d/tree" >/dev/null
	# Hers, by a name that she never saw.
	mkdir -m 700 shut
	ln tree/other shut/unseen
	setsid rm shut/unseen tree/other
	rm -r tree shut
	ddbfs trash empty --now "$d" >/dev/null
	absent tree
	exits 0 as $alice "$DDBFS" trash history --json "$d/tree/sub"
	equal "/${d##*/}/tree/sub/hers_alone" "$(jq -r .path "$tmp/said")" 'what was hers, below what is gone'
	equal null "$(jq -r .hidden "$tmp/said")" 'gaps in its path'
	exits 0 as $alice "$DDBFS" trash history --json "$d"
	equal 0 "$(grep -cE 'unseen|shut' "$tmp/said")" 'names she never saw'
	exits 0 as $bob "$DDBFS" trash history --json "$mnt"
	equal 0 "$(grep -cE 'hers_alone|sub' "$tmp/said")" "somebody else's"
}

# Of a path over 1 KiB the end is recorded: told as such, to whom it may be told, and found by where it was.
history_of_a_long_path() {
	local name

	name=$(printf '%0250d' 0)
	install -d -o $alice -m 700 "$d/top"
	(
		cd top
		for _ in 1 2 3 4 5; do
			as $alice mkdir -m 700 "$name"
			cd "$name"
		done
		as $alice touch at_the_end
		as $alice setsid rm at_the_end
		as $alice "$DDBFS" trash empty --now . >/dev/null
		exits 0 as $alice "$DDBFS" trash history --json .
		equal ".../$name/$name/$name/$name/at_the_end" "$(jq -r .path "$tmp/said")" 'the end of its path'
		equal true "$(jq -r .hidden "$tmp/said")" 'that it is not all'
	)
	exits 0 as $alice "$DDBFS" trash history --json "$d/top/$name/$name"
	says "/$name/at_the_end"
	exits 0 ddbfs trash history --json "$mnt"
	says ".../$name/$name/$name/$name/at_the_end"
	exits 0 as $bob "$DDBFS" trash history --json "$mnt"
	equal 0 "$(grep -c at_the_end "$tmp/said")" "somebody else's"
}

sums_are_the_owners() {
	install -d -o $alice -m 755 tree
	install -d -o $bob -m 700 tree/private
	head -c 70000 /dev/zero >tree/private/secret
	chown $bob tree/private/secret
	as $bob touch tree/private/lost
	as $bob rm tree/private/lost
	exits 1 as $bob "$DDBFS" df "$d/tree"
	says 'only its owner or root can'
	# Sums, and nothing else, of what she may not read: see SECURITY.md.
	exits 0 as $alice "$DDBFS" df --json "$d/tree"
	equal '2 70000 1' "$(jq -r '"\(.live.items) \(.live.bytes) \(.trash.items)"' "$tmp/said")" 'live items, bytes and trash'
	equal 0 "$(grep -cE 'secret|lost|private' "$tmp/said")" 'names'
	exits 1 as $alice "$DDBFS" df "$d/tree/private"
	exits 0 as $bob "$DDBFS" df "$d/tree/private"
}

mount_new -o allow_other
chmod 755 "$mnt"
it 'P1 a private file of a private directory, deleted: others cannot stat, list, open, restore or purge it' hidden_in_a_private_directory
it 'P0 what was private when it was deleted stays private when directories are opened up' private_when_opened_later
it 'P0 private directories inside a deleted tree stay private' private_in_deleted_trees
it 'P2 without write permission on the origin nothing is restored or purged' needs_write_permission
it 'P2 in a sticky directory only the owner restores and purges' sticky_directory
it 'P3 the owner restores without root' owner_restores
it 'P3 root restores on a mount without allow_other, and others stay out' without_allow_other
it 'P4 one sees who deleted his file' who_deleted_it
it 'undo is of one'\''s own deletions' undo_is_ones_own
it 'requests of the tool are allowed what the kernel would allow' control_is_checked
it 'a restore puts a name only where its caller may, the way there included' way_back_is_checked
it 'a restore replaces only what its caller may remove' replacing_is_checked
it 'emptying asks the right to each directory that goes, as rm -r does' emptying_asks_all_the_way_down
it 'a directory given to another user shows him nothing deleted before' given_away
it 'a file tells nothing of its other names' facts_of_other_names
it 'P0 later names of directories are not told to whom they are hidden' later_names_stay_hidden
it 'P1 the owner is told of what was his below what is gone, others are not' history_of_what_is_gone
it 'P1 of a path too long to be recorded the end is told, to its owner' history_of_a_long_path
it 'P0 sums of private directories are their owner'\''s, and of whose directory they are in' sums_are_the_owners
it 'leaves a store that checks clean' check_clean -o allow_other
done_testing
