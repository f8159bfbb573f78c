#!/usr/bin/env bash
#
# Rules for the space of the trash: caps by bytes and entries, the low-space rule,
# what emptying gives a full store, and `ddbfs df`, which tells of all that.
# timeout: 600
. "$(dirname "$0")/lib.sh"
limit=150
disk=$tmp/disk

small_store() {
	# What a test that failed left.
	! mounted || mount_down
	! mountpoint -q "$disk" || umount "$disk"
	mkdir -p "$disk"
	mount -t tmpfs -o size="$1" none "$disk"
	store=$disk/store
	ddbfs init "$store" && mount_up -o allow_other
	cd "$mnt"
}

gone_disk() {
	cd /
	mount_down
	ddbfs check "$store"
	umount "$disk"
}

random() {
	head -c "$1" /dev/urandom >"$2"
}

evicted() {
	sed -n 's/^ddbfs_destroyed_total{cause="evicted"} //p' "$mnt/.ddbfs/stats"
}

# df KEY: the bytes that df tells of
told() {
	ddbfs df --json "${@:2}" | jq ".$1"
}

low_space_rule() {
	local i

	small_store 260m
	ddbfs policy set . low_space=40M
	ddbfs policy show . >"$tmp/said"
	says '40.0 MiB'
	mkdir d
	for i in 1 2 3 4; do random 30000000 t$i && rm t$i; done
	# More than there is, were it not for the trash: no write fails, the oldest go first.
	for i in 1 2 3 4; do random 25000000 d/f$i; done
	absent .trash/t1
	absent .trash/t2
	[ "$(evicted)" -ge 2 ] || fail "$(evicted) evicted"
	for i in 1 2 3 4; do equal 25000000 "$(stat -c %s d/f$i)" "size of f$i"; done
	# By itself too: no write has to wait for it.
	roomy() { [ "$(df -B1 --output=avail "$disk" | tail -n 1)" -ge 40000000 ]; }
	within_seconds 20 roomy
	gone_disk
}

held_trash_stays() {
	small_store 200m
	ddbfs policy set . low_space=40M
	mkdir kept
	ddbfs policy set kept hold=yes
	random 60000000 kept/f
	cp kept/f "$tmp/f"
	rm kept/f
	refused random 200000000 big
	cmp kept/.trash/f "$tmp/f"
	equal 0 "$(evicted)" evicted
	rm -f "$tmp/f" big
	equal "$(told held.bytes)" 60000000 'bytes held'
	gone_disk
}

the_stores_rule() {
	mkdir d
	exits 2 ddbfs policy set d low_space=1G
	says 'the mount point'
	gives EINVAL setxattr d user.ddbfs.low_space 1G
	exits 2 ddbfs policy set "$mnt" low_space=5%
	exits 2 ddbfs policy set d trash_max_entries=many
	says 'a number of entries'
}

emptied_trash_makes_room() {
	small_store 200m
	random 60000000 t && rm t
	mkdir d
	refused random 300000000 d/big
	rm d/big
	ddbfs trash empty . >/dev/null
	# It is in its grace, and still the space is there when it is needed.
	exists "$mnt"
	random 90000000 again
	equal 90000000 "$(stat -c %s again)" size
	equal 0 "$(evicted)" evicted
	# Who names a size that nothing could make room for takes nothing from anybody's trash.
	rm again
	: >ahead
	ddbfs policy set "$mnt" low_space=1M
	gives ENOSPC fallocate ahead keep 0 1000000000000
	equal 0 "$(evicted)" evicted
	gone_disk
}

cap_by_entries() {
	local i

	mkdir d other
	ddbfs policy set d trash_max_entries=10
	for ((i = 0; i < 30; i++)); do echo $i >d/f$i; done
	echo x >other/f
	rm other/f
	for ((i = 0; i < 30; i++)); do rm d/f$i; done
	few() { [ "$(ls d/.trash | wc -l)" -le 10 ]; }
	within_seconds 20 few
	[ "$(ls d/.trash | wc -l)" -ge 9 ] || fail "only $(ls d/.trash | wc -l) left"
	exists d/.trash/f29
	absent d/.trash/f0
	exists other/.trash/f
}

df_explains() {
	mkdir -p d/sub priv
	head -c 10000 /dev/zero >d/live
	head -c 20000 /dev/zero >d/removed
	head -c 40000 /dev/zero >d/sub/inside
	head -c 80000 /dev/zero >d/saved
	head -c 90000 /dev/zero >d/new
	rm d/removed
	mv d/new d/saved
	equal 140000 "$(told live.bytes d)" 'live before'
	mv d/sub d/.trash/
	# What went with a directory is trash, whatever moved it there.
	equal 100000 "$(told live.bytes d)" live
	equal 140000 "$(told trash.bytes d)" trash
	equal 60000 "$(told removed.bytes d)" removed
	equal 80000 "$(told replaced.bytes d)" replaced
	equal 140000 "$(told reclaimable.bytes d)" reclaimable
	equal 0 "$(told due_day.bytes d)" 'due within a day'
	ddbfs policy set d retention=3h
	head -c 5000 /dev/zero >d/soon
	rm d/soon
	equal 5000 "$(told due_day.bytes d)" 'due within a day'
	ddbfs df d >"$tmp/said"
	says 'reclaimable now'
	says 'due within a day'
	ddbfs df "$mnt" >"$tmp/said"
	says 'store on disk'
	[ "$(told trash.bytes)" -ge 145000 ] || fail 'the whole store has less'
	exits 1 as $bob "$DDBFS" df d
	as $bob "$DDBFS" df "$mnt" >/dev/null
	exits 2 ddbfs df d/.trash
}

it 'S2 the low-space rule: a write into a full store evicts oldest first, each with its cause' low_space_rule
it 'S2 what is on hold stays, whatever the rule' held_trash_stays
it 'S1 what was emptied without --now gives its space to a write that needs it' emptied_trash_makes_room
store=$tmp/store
mount_new -o allow_other
chmod 755 "$mnt"
it 'the low-space rule is the whole store'"'"'s, and nonsense is refused' the_stores_rule
it 'S2 a cap by entries evicts the oldest' cap_by_entries
it 'df explains live, trash, versions, reclaimable and due, of a directory and the store' df_explains
it 'leaves a store that checks clean' check_clean
done_testing
