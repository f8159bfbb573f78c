#!/usr/bin/env bash
#
# How often the kernel asks us for one system call, which is most of what that
# costs; and that what it is spared on a mount for root alone, the checks of
# mode and owner, changes nothing for root.
# timeout: 300
. "$(dirname "$0")/lib.sh"

requests() {
	sed -n 's/^ddbfs_mount_requests_total //p' "$mnt/.ddbfs/stats"
}

# costs MOST COMMAND...: requests, beside those of counting
costs() {
	local most=$1 before after own seen
	shift

	before=$(requests)
	own=$(($(requests) - before))
	before=$(requests)
	"$@" >"$tmp/costs" 2>&1 || fail "$1 failed: $(tail -n 3 "$tmp/costs")" || return
	after=$(requests)
	seen=$((after - before - own))
	[ $seen -le "$most" ] || fail "$1 took $seen requests, more than $most"
}

# For 100 files; a few are for the directories on the way, and the kernel forgets in its own time.
ask_for_all() {
	mkdir -p "$1/to"
	costs 420 "$sys" make "$1/new" 100 10 && # LOOKUP, CREATE, GETXATTR of the capability, WRITE
		costs 220 cat "$1"/new/f* && # GETATTR of the size, READ of the half-filled page
		costs 20 cat "$1"/new/f* &&
		costs 20 stat "$1"/new/f* &&
		costs 320 mv -n "$1"/new/f* "$1/to" && # LOOKUP of the new name, twice at the most, RENAME
		costs 20 stat "$1"/to/f* &&
		costs 220 rm -f "$1"/to/f* && # UNLINK, FORGET
		costs 420 mv -n "$1"/to/.trash/f* "$1/new" # LOOKUP twice of the entry, of the new name, RENAME
}

# Somebody may have the kernel drop its caches meanwhile: then it asks again for everything, once.
few_requests() {
	ask_for_all 1 || ask_for_all 2 || ask_for_all 3
}

queries() {
	sed -n 's/^ddbfs_store_queries_total //p' "$mnt/.ddbfs/stats"
}

# Whether others are left in the trash is asked for each that comes back; what came back before is not read again.
restores_ask_little() {
	local before seen

	"$sys" make many 1000 10
	rm -f many/f*
	before=$(queries)
	mv -n many/.trash/f* .
	seen=$(($(queries) - before))
	[ $seen -le 6000 ] || fail "restoring 1000 files took $seen queries"
}

# closed is alice's, nobody may do anything with it; script may be read, not executed.
make_closed() {
	mkdir closed
	echo secret >closed/f
	mkdir closed/empty
	chmod 000 closed/f closed/empty
	chown -R $alice:$alice closed
	chmod 000 closed
	printf '#!/bin/sh\necho ran\n' >script
	chmod 644 script
	printf '#!/bin/sh\necho ran\n' >program
	chmod 755 program
}

# What root may and may not, on any file system.
root_may() {
	local mode=$1

	gives ok access closed r,w,x
	gives ok access closed/f r,w
	gives EACCES access closed/f x
	gives EACCES access script x
	gives ok access script f
	gives ok access program r,w,x
	gives ENOENT access nothing f
	[ -x program ] && [ ! -x script ] || fail 'test -x'
	refused ./script
	equal ran "$(./program)"
	(cd closed/empty && cd ..) || fail 'cd into a closed directory'
	content closed/f secret
	echo "more $mode" >>closed/f
	content closed/f "secret
more $mode"
	echo secret >closed/f
	equal "0 $alice" "$(stat -c '%a %u' closed/f)"
	gives ok chmod closed/f 4711
	gives ok utimens closed/f 1 2
	gives ok chmod closed/f 0
	gives ok rename closed/f closed/g
	gives ok rename closed/g closed/f
	gives ENOTDIR open closed/f/x rdonly
	touch closed/new
	rm closed/new
}

same_for_root() {
	make_closed
	! grep -F " $mnt " /proc/mounts | grep -q default_permissions || fail 'the kernel checks'
	root_may 'without checks'
	cd /
	remount -o default_permissions
	cd "$d"
	grep -F " $mnt " /proc/mounts | grep -q default_permissions || fail 'the kernel does not check'
	root_may 'with checks'
}

# A view is read-only without the kernel's checks too.
views_stay_read_only() {
	echo text >f
	mkdir -p dir/sub
	rm f
	rmdir dir/sub
	gives EROFS truncate .trash/f 0
	gives EROFS chmod .trash/f 600
	gives EROFS utimens .trash/f 1 2
	gives EROFS chown .trash/f 1 1
	refused bash -c 'echo more >>.trash/f'
	refused dd if=/dev/zero of=.trash/f bs=10 count=1 conv=notrunc,fsync
	refused touch .trash/new
	refused mkdir dir/.trash/sub/new
	content .trash/f text
	gives ok access .trash r,w,x
	gives ok access .trash/f r
	gives EACCES access .trash/f x
}

# unprivileged COMMAND...: as a root that gave up passing over modes
unprivileged() {
	setpriv --bounding-set=-dac_override,-dac_read_search -- "$@"
}

# The one difference, and the option that takes it away (SECURITY.md).
root_without_its_capabilities() {
	echo secret >f
	chown $alice:$alice f
	chmod 600 f
	unprivileged cat f >/dev/null
	cd /
	remount -o default_permissions
	cd "$d"
	refused unprivileged cat f
	says 'Permission denied'
}

# Whoever is let in by an option is checked.
checked_for_others() {
	local options

	cd /
	for options in allow_other allow_other,acl acl; do
		remount -o $options
		grep -F " $mnt " /proc/mounts | grep -q default_permissions || fail "not checked with $options"
	done
	remount -o allow_other
	cd "$d"
	chmod 755 .
	echo secret >f
	chmod 600 f
	equal EACCES "$(as $alice "$sys" open "$d/f" rdonly)"
}

mount_new
it 'asks little for each system call' few_requests
it 'does not read again what came back before' restores_ask_little
it 'allows root what any file system allows, with and without the checks of the kernel' same_for_root
remount
it 'refuses writes in a view without them' views_stay_read_only
it 'checks a root without its capabilities where that was asked for' root_without_its_capabilities
it 'checks where others get in, and with ACLs' checked_for_others
it 'leaves a store that checks clean' check_clean
done_testing
