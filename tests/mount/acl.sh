#!/usr/bin/env bash
#
# POSIX ACLs with -o acl: the kernel enforces them, modes and ACLs follow each
# other, defaults are handed down. Without it they are refused.
# timeout: 120
. "$(dirname "$0")/lib.sh"

named_user_is_let_in() {
	echo text >f
	chmod 600 f
	! as $alice cat f || return 1
	setfacl -m u:$alice:r f
	equal text "$(as $alice cat f)" 'read by the named user'
	! as $bob cat f || return 1
	setfacl -b f
	! as $alice cat f || return 1
}

modes_and_acls_follow_each_other() {
	touch f
	chmod 640 f
	setfacl -m u:$alice:rwx f
	equal 670 "$(stat -c %a f)" 'the mode shows the mask'
	chmod 600 f
	equal 'mask::---' "$(getfacl -cE f | grep mask)" 'mask after chmod'
	setfacl -b f
	equal '' "$(getfacl -cs f)" 'no ACL left'
}

defaults_are_handed_down() {
	mkdir d
	setfacl -d -m u:$alice:rwx,g::rx,o::- d
	(umask 077 && touch d/f && mkdir d/s && touch d/s/f)
	equal '660 770 660' "$(stat -c %a d/f d/s d/s/f | xargs)" 'modes: the default counts, not the umask'
	equal "user:$alice:rwx" "$(getfacl -ncE d/s/f | grep "user:$alice")" 'the named entry'
	chmod 711 . d
	as $alice tee -a d/f <<<added >/dev/null
	equal added "$(cat d/f)" 'written by the named user'
}

# modes FILE...: of each, with its group
modes() {
	stat -c '%a:%g' "$@" | xargs
}

# As the file's owner, and a member of the groups named or of none but his own.
owner_in() {
	setpriv --reuid=$alice --regid=$alice "$1" -- "${@:2}"
}

# A set-group-id bit stays only with who belongs to the group, be it by a supplementary one, whatever changes the mode.
set_group_id_and_groups() {
	local team=4242

	chmod 755 .
	touch a b c e
	chown $alice:$team a b c e
	chmod 2770 a b c e
	owner_in --clear-groups chmod 2750 a
	owner_in --groups=$team chmod 2750 b
	owner_in --clear-groups setfacl -m u:$bob:r c
	owner_in --groups=$team setfacl -m u:$bob:r e
	equal "750:$team 2750:$team 770:$team 2770:$team" "$(modes a b c e)" 'after chmod and setfacl'
	# Directories keep it by the same rule.
	mkdir in out
	chown $alice:$team in out
	chmod 2770 in out
	owner_in --clear-groups setfacl -m u:$bob:r out
	owner_in --groups=$team setfacl -m u:$bob:r in
	equal "770:$team 2770:$team" "$(modes out in)" 'directories after setfacl'
	owner_in --clear-groups chown $alice:$alice b
	equal "750:$alice" "$(modes b)" 'given to another group'
}

# In a set-group-id directory with a default ACL both count: the group and the bit, the entries and the mask.
set_group_id_with_defaults() {
	local team=4242

	chmod 755 .
	mkdir shared
	chown $alice:$team shared
	chmod 2775 shared
	setfacl -d -m u:$bob:rwx,g::rwx,o::- shared
	(umask 077 && owner_in --groups=$team touch shared/f && owner_in --clear-groups mkdir shared/sub)
	owner_in --clear-groups touch shared/sub/g
	equal "660:$team 2770:$team 660:$team" "$(modes shared/f shared/sub shared/sub/g)" 'made'
	equal "$(getfacl -cdnE shared)" "$(getfacl -cdnE shared/sub)" 'the defaults go on'
	as $bob tee shared/sub/g <<<text >/dev/null
	equal text "$(cat shared/sub/g)" 'written by the named user'
	apart rm -r shared
	mv .trash/shared .
	equal "2775:$team 2770:$team 660:$team" "$(modes shared shared/sub shared/sub/g)" 'restored'
	equal "$(getfacl -cdnE shared)" "$(getfacl -cdnE shared/sub)" 'with its defaults'
}

copies_and_trash_keep_them() {
	mkdir a
	echo text >a/f
	setfacl -m u:$alice:r a/f
	cp -a a b
	equal "$(getfacl -c a/f)" "$(getfacl -c b/f)" 'copied'
	rm -r a
	mv .trash/a .
	equal "$(getfacl -c b/f)" "$(getfacl -c a/f)" 'restored'
}

trash_gives_nothing_back() {
	mkdir -m 700 secret
	setfacl -m u:$alice:rx secret
	mkdir secret/sub
	echo text >secret/sub/f
	setfacl -m u:$bob:rx secret/sub
	rm -r secret/sub
	chmod 755 secret
	setfacl -m u:$bob:rx secret
	! as $bob cat secret/.trash/sub/f || return 1
	equal text "$(cat secret/.trash/sub/f)" 'for root it is there'
}

# The mode of a directory with an ACL shows the mask where the group's rights were.
trash_gives_no_mask() {
	mkdir -m 775 mine
	chown 0:$bob mine
	setfacl -m g::-,u:$alice:rwx,u:$bob:- mine
	chmod 755 .
	echo text >mine/f
	mkdir mine/sub
	echo text >mine/sub/g
	apart rm mine/f mine/sub/g
	! as $bob ls mine || return 1
	! as $bob ls mine/.trash || return 1
	! as $bob cat mine/.trash/f || return 1
	! as $bob cat mine/sub/.trash/g || return 1
	! as $bob cat .trash/mine/f || return 1
	! as $bob "$DDBFS" trash list "$d/mine" || return 1
	! as $bob "$DDBFS" trash restore "$d/mine/f" || return 1
	apart rm -r mine
	! as $bob cat .trash/mine/f || return 1
	mv .trash/mine .
	setfacl -b mine
	chmod 777 mine
	! as $bob cat mine/.trash/f || return 1
	content mine/.trash/f text
}

refused_without_the_option() {
	touch f
	! setfacl -m u:$alice:r f || return 1
	equal 644 "$(stat -c %a f)" 'mode'
}

mount_new -o acl,allow_other
it 'lets in a named user, and nobody else' named_user_is_let_in
it 'keeps modes and ACLs in step' modes_and_acls_follow_each_other
it 'hands default ACLs down' defaults_are_handed_down
it 'leaves set-group-id bits to members, also by supplementary groups, in chmod and setfacl' set_group_id_and_groups
it 'hands default ACLs down in set-group-id directories' set_group_id_with_defaults
it 'keeps them through cp -a, rm and mv out of .trash' copies_and_trash_keep_them
it 'shows nothing through the trash that an ACL was added for later' trash_gives_nothing_back
it 'gives nothing back through the trash that an ACL denies' trash_gives_no_mask
it 'has a clean store' check_clean -o allow_other
it 'refuses them without -o acl' refused_without_the_option
done_testing
