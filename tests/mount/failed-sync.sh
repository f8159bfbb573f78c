#!/usr/bin/env bash
#
# A disk that fails a sync: writing ends for good, every later fsync says so, what
# is there can be read, and whoever mounts the store next is told.
# timeout: 300
. "$(dirname "$0")/lib.sh"

sign=$tmp/disk-fails
export FAIL_SYNC=$sign
library=$DDBFS_TESTS_BUILD/tests/mount/fail-sync.so

# A daemon in the foreground, so that its exit code can be seen: $daemon, its words in $tmp/daemon.log.
mount_failing() {
	LD_PRELOAD=$library ASAN_OPTIONS="${ASAN_OPTIONS:-}:verify_asan_link_order=0" \
		"$DDBFS" mount --foreground "$store" "$mnt" >"$tmp/daemon.log" 2>&1 </dev/null &
	daemon=$!
	within_seconds 30 mounted
}

no_sync() {
	refused sync "$1"
	says 'Input/output error'
}

stopped_for_good() {
	local status=0

	ddbfs init "$store"
	mount_failing
	cd "$mnt"
	echo synced >f
	sync f
	echo acknowledged >g
	touch "$sign"
	no_sync g
	rm "$sign"
	# The disk is well again, and it makes no difference.
	no_sync g
	no_sync f
	gives EROFS symlink x h
	gives EROFS unlink f
	content f synced
	content g acknowledged
	exits 0 ddbfs status .
	says READ-ONLY
	cd /
	ddbfs umount "$mnt" || true
	wait "$daemon" || status=$?
	equal 1 "$status" 'exit code of the daemon'
	equal 1 "$(grep -c 'could not be synced' "$tmp/daemon.log")" 'messages'
}

next_mount_tells() {
	exits 0 ddbfs mount "$store" "$mnt"
	says 'could not be synced'
	says 'ddbfs check'
	content "$mnt/f" synced
	echo again >"$mnt/h"
	sync "$mnt/h"
	ddbfs umount "$mnt"
	# Once.
	exits 0 ddbfs mount "$store" "$mnt"
	equal '' "$(grep -i sync "$tmp/said")" 'what the second mount says'
	content "$mnt/h" again
	check_clean
}

it 'D3 a failed sync: read-only, EIO to every later fsync, one message, exit code 1' stopped_for_good
it 'D3 the next mount says what happened and what to do, once' next_mount_tells
done_testing
