#!/usr/bin/env bash
#
# Mounting, unmounting, dying and hanging.
# timeout: 600
. "$(dirname "$0")/lib.sh"

second_daemon() {
	local pid start=$SECONDS other=$tmp/second

	mkdir "$other"
	pid=$(daemon_pid)
	exits 11 ddbfs mount "$store" "$other"
	says "$pid"
	within 0 3 $((SECONDS - start)) 'seconds until it was refused'
	exits 11 ddbfs check "$store"
	echo still >works
	content works still
	rmdir "$other"
}

umount_waits_for_the_disk() {
	head -c 30000000 /dev/urandom | tee f >"$tmp/f"
	cd /
	mount_down
	! mounted || fail 'still mounted'
	# The lock is free at once.
	ddbfs check "$store"
	mount_up
	cmp "$d/f" "$tmp/f"
}

reads_ahead() {
	local setting

	setting=/sys/class/bdi/$(stat -c %Hd:%Ld .)/read_ahead_kb
	if [ ! -w "$setting" ]; then
		echo "# the kernel's read-ahead cannot be set here"
		return
	fi
	[ "$(cat "$setting")" = 512 ] || fail "$(cat "$setting") KiB are read ahead"
}

sigterm() {
	local pid

	echo text >f
	pid=$(daemon_pid)
	cd /
	kill -TERM "$pid"
	gone() { ! kill -0 "$pid"; }
	within_seconds 30 gone
	! mounted || fail 'still mounted'
	ddbfs check "$store"
	mount_up
	content "$d/f" text
}

busy_mount() {
	exec 3>f
	refused ddbfs umount "$mnt"
	says busy
	echo still >&3
	exec 3>&-
	content f still
}

dead_mount() {
	echo acknowledged >f
	mkdir d && echo x >d/g && rm -rf d
	kill_daemon
	exits 1 ddbfs policy set "$d" retention=1d
	says 'ddbfs umount'
	exits 13 mount_up
	says "$mnt"
	mount_up --force-unmount
	content "$d/f" acknowledged
	content "$d/.trash/d/g" x
	check_clean
}

# The unit's own command line, as systemd would run it.
started_again_after_a_crash() {
	local line

	echo acknowledged >f
	line=$(sed -n 's/^ExecStart=@bindir@\/ddbfs //p' "$top/tools/systemd/ddbfs@.service")
	line=${line/\$OPTIONS/}
	line=${line/\$\{STORE\}/$store}
	line=${line/\$\{MOUNT_POINT\}/$mnt}
	# shellcheck disable=SC2086
	exits 13 ddbfs $line # one that lives is not touched
	kill_daemon
	# shellcheck disable=SC2086
	ddbfs $line
	content "$d/f" acknowledged
}

hung_mount() {
	local pid

	echo text >f
	pid=$(daemon_pid)
	cd /
	hang "$pid"
	(timeout 100 stat "$mnt/nothing" >/dev/null 2>&1 &)
	# Refused, not waited for.
	ddbfs_limit=30 exits 13 mount_up
	says 'does not answer'
	exits 1 ddbfs umount "$mnt"
	says 'does not answer'
	go_on
	content "$d/f" text
}

ends_within() {
	ended() { [ ! -e "/proc/$2" ] || grep -q '^State:.Z' "/proc/$2/status"; }
	within_seconds "$1" ended "$@"
}

lazy_umount_of_a_hung_mount() {
	local pid

	exec 3>f
	pid=$(daemon_pid)
	hang "$pid"
	(cd / && ddbfs umount --lazy "$mnt")
	go_on
	# Nothing was broken off: what is open goes on.
	echo text >&3
	exec 3>&-
	cd /
	gone() { ! kill -0 "$pid"; }
	within_seconds 30 gone
	mount_up
	content "$d/f" text
}

forced_umount_of_a_hung_mount() {
	local pid

	echo text >f
	pid=$(daemon_pid)
	cd /
	hang "$pid"
	exits 1 ddbfs umount --force-unmount "$mnt"
	says "$pid"
	! mounted || fail 'still mounted'
	go_on
	gone() { ! kill -0 "$pid"; }
	within_seconds 30 gone
	mount_up
	content "$d/f" text
}

# A mount that could not be asked is not taken for a dead one.
unasked_mount() {
	echo text >f
	cd /
	# Standard ones, a pipe, and none to ask with.
	exits 13 timeout 60 prlimit --nofile=5 "$DDBFS" mount --force-unmount "$store" "$mnt"
	says already
	content "$d/f" text
}

writes_survive_the_daemon() {
	local pid i

	# Everything that was answered is there after kill -9, without any fsync.
	for i in 1 2 3 4 5; do
		mkdir -p round$i && cd round$i
		(n=0 && while echo $n >f$n && echo "$n" >"$tmp/acknowledged"; do n=$((n + 1)); done) 2>/dev/null &
		sleep 0.$((i * 2))
		pid=$(daemon_pid)
		kill -9 "$pid"
		wait $! 2>/dev/null || true
		cd /
		umount -l "$mnt"
		mount_up
		cd "$d"
		last=$(cat "$tmp/acknowledged")
		echo "round $i: $last files acknowledged"
		for ((n = 0; n <= last; n++)); do content round$i/f$n $n; done
	done
}

removals_survive_the_daemon() {
	gives ok make d 300 20
	(
		n=0
		while rm d/f$n && echo $n >"$tmp/acknowledged"; do n=$((n + 1)); done
	) 2>/dev/null &
	sleep 0.3
	kill -9 "$(daemon_pid)"
	wait $! 2>/dev/null || true
	cd /
	umount -l "$mnt"
	mount_up
	cd "$d"
	last=$(cat "$tmp/acknowledged")
	echo "$last removals acknowledged"
	for ((n = 0; n <= last; n++)); do
		absent d/f$n
		exists d/.trash/f$n
	done
	equal 300 $(($(count d -type f) + $(count d/.trash -type f))) 'files live and deleted'
	check_clean
}

inside_itself() {
	exits 13 ddbfs mount "$store" "$store"
	mkdir "$tmp/s"
	ddbfs init "$tmp/s/store"
	exits 13 ddbfs mount "$tmp/s/store" "$tmp/s"
	mkdir "$tmp/s/store/m" 2>/dev/null || true
	refused ddbfs mount "$tmp/s/store" "$tmp/s/store/m"
	ln -s "$tmp/s2" "$tmp/link"
	mkdir "$tmp/s2"
	exits 13 ddbfs mount "$tmp/s/store" "$tmp/link"
	! mounted "$tmp/s2" || fail 'a symbolic link was followed'
	rm -rf "$tmp/s" "$tmp/s2" "$tmp/link"
}

log_inside() {
	mkdir "$tmp/l"
	ddbfs init "$tmp/lstore"
	exits 13 ddbfs mount --log "$tmp/l/log" "$tmp/lstore" "$tmp/l"
	says log
	rm -rf "$tmp/l" "$tmp/lstore"
}

helper_of_mount() {
	local m=$tmp/helper

	mkdir "$m" "$tmp/programs"
	ddbfs init "$tmp/hstore"
	ln -s "$DDBFS" "$tmp/programs/mount.ddbfs"
	timeout 60 "$tmp/programs/mount.ddbfs" "$tmp/hstore" "$m" -o rw,noatime,nofail,_netdev,allow_other
	echo text >"$m/f"
	chmod 755 "$m"
	equal text "$(as $bob cat "$m/f")"
	grep " $m fuse" /proc/self/mounts | grep -q "^$tmp/hstore "
	grep " $m fuse" /proc/self/mounts | grep -q nosuid
	grep " $m fuse" /proc/self/mounts | grep -q nodev
	ddbfs umount "$m"
	rm -rf "$m" "$tmp/hstore" "$tmp/programs"
}

helper_of_umount() {
	local m=$tmp/helper

	mkdir "$m" "$tmp/programs"
	ddbfs init "$tmp/hstore"
	ln -s "$DDBFS" "$tmp/programs/umount.fuse.ddbfs"
	ddbfs mount "$tmp/hstore" "$m"
	echo text >"$m/f"
	exec 3<"$m/f"
	exits 1 timeout 60 "$tmp/programs/umount.fuse.ddbfs" "$m"
	says busy
	exec 3<&-
	exits 2 timeout 60 "$tmp/programs/umount.fuse.ddbfs" "$m" -z
	timeout 60 "$tmp/programs/umount.fuse.ddbfs" "$m" -n -v
	! mounted "$m" || fail 'still mounted'
	ddbfs check "$tmp/hstore"
	rm -rf "$m" "$tmp/hstore" "$tmp/programs"
}

# mount(8) itself, and umount(8), with the helpers where they look for them; by either name of the type.
called_by_mount() {
	need mount umount unshare
	mkdir "$tmp/sbin" "$tmp/hm"
	ddbfs init "$tmp/hstore"
	mount -t tmpfs none "$tmp/sbin"
	mkdir "$tmp/sbin/u" "$tmp/sbin/w"
	unshare -m bash -e -s "$DDBFS" "$tmp" 2>"$tmp/said" <<-'TXT' || fail "$(cat "$tmp/said")"
		mount --make-rprivate /
		mount -t overlay none -o lowerdir=/usr/sbin,upperdir=$2/sbin/u,workdir=$2/sbin/w /usr/sbin
		for name in mount.ddbfs mount.fuse.ddbfs umount.fuse.ddbfs; do ln -s "$1" /usr/sbin/$name; done
		for type in ddbfs fuse.ddbfs; do
			mount -t $type -o nofail,noatime,user "$2/hstore" "$2/hm"
			echo text >"$2/hm/f"
			mount -o remount,ro "$2/hm" 2>&1 | grep -q 'cannot be changed'
			umount "$2/hm"
			"$1" check "$2/hstore" >/dev/null
		done
		echo "$2/hstore $2/hm ddbfs nofail 0 0" >"$2/fstab"
		mount -T "$2/fstab" -a
		mount -T "$2/fstab" -a
		[ "$(grep -c " $2/hm " /proc/self/mountinfo)" = 1 ]
		umount -T "$2/fstab" "$2/hm" 2>/dev/null || umount "$2/hm"
	TXT
	umount "$tmp/sbin"
	rm -rf "$tmp/sbin" "$tmp/hm" "$tmp/hstore" "$tmp/fstab"
}

# What is mounted inside is what to unmount first.
busy_by_a_mount() {
	mkdir inner
	mount -t tmpfs none "$d/inner"
	cd /
	exits 1 ddbfs umount "$mnt"
	says "$d/inner is mounted in it"
	umount "$d/inner"
}

read_only_mount() {
	echo text >f
	rm f
	echo kept >g
	cd /
	remount -o ro
	content "$d/g" kept
	content "$d/.trash/f" text
	gives EROFS open "$d/new" creat,wronly
	gives EROFS unlink "$d/g"
	gives EROFS rename "$d/.trash/f" "$d/f"
	remount
	content "$d/g" kept
}

foreground() {
	local m=$tmp/fg

	mkdir "$m"
	ddbfs init "$tmp/fgstore"
	timeout 60 "$DDBFS" mount -f "$tmp/fgstore" "$m" >"$tmp/fg.log" 2>&1 &
	within_seconds 10 mountpoint -q "$m"
	echo text >"$m/f"
	ddbfs umount "$m"
	wait $!
	rm -rf "$m" "$tmp/fgstore"
}

# Its log blocks the daemon when it has mounted: it does not see SIGTERM, and is killed.
interrupted_mount_leaves_nothing() {
	local m=$tmp/im job status=0

	mkdir "$m"
	ddbfs init "$tmp/istore"
	mkfifo "$tmp/ilog"
	exec 8<>"$tmp/ilog"
	timeout 5 dd if=/dev/zero of="$tmp/ilog" bs=65536 count=1 status=none
	set -m
	"$DDBFS" mount --log "$tmp/ilog" "$tmp/istore" "$m" >"$tmp/interrupted" 2>&1 &
	set +m
	job=$!
	within_seconds 20 mounted "$m"
	kill -INT -- -$job
	ends_within 20 $job
	wait $job || status=$?
	equal 130 $status 'exit code'
	! mounted "$m" || fail 'left mounted'
	exec 8<&-
	rm "$tmp/ilog"
	ddbfs check "$tmp/istore"
	rm -rf "$m" "$tmp/istore"
}

create_on_mount() {
	local m=$tmp/cm

	mkdir "$m"
	ddbfs mount --create "$tmp/cstore" "$m"
	echo text >"$m/f"
	ddbfs umount "$m"
	ddbfs mount --create "$tmp/cstore" "$m"
	content "$m/f" text
	ddbfs status "$m" >"$tmp/said"
	says "$tmp/cstore"
	ddbfs umount "$m"
	rm -rf "$m" "$tmp/cstore"
}

# A limit on the size of files ends no daemon: the write that meets it fails, and no other.
limited_file_size() {
	cd /
	mount_down
	(ulimit -f 100 && mount_up) || fail "no mount"
	echo small >"$d/small"
	head -c 5000000 /dev/zero >"$d/big" 2>/dev/null && fail "written beyond the limit"
	rm "$d/big"
	mount_down
	mount_up
	[ "$(cat "$d/small")" = small ] || fail "lost what was written"
}

# What nobody will find again is not said to be on the disk.
removed_store() {
	local other=$tmp/removed

	ddbfs init "$other" >/dev/null 2>&1
	mkdir "$tmp/mnt2"
	ddbfs mount "$other" "$tmp/mnt2"
	echo text >"$tmp/mnt2/file"
	sync "$tmp/mnt2/file"
	rm -rf "$other"
	echo more >"$tmp/mnt2/file"
	! sync "$tmp/mnt2/file" 2>/dev/null || fail "said to be on the disk"
	[ "$(cat "$tmp/mnt2/file")" = more ] || fail "not readable"
	ddbfs umount "$tmp/mnt2"
}

mount_new
it 'D7 a second daemon or tool on a store is refused at once, naming the holder' second_daemon
it 'D9 umount returns when everything is on disk and the lock is free' umount_waits_for_the_disk
it 'long reads go ahead by 512 KiB' reads_ahead
it 'D9 SIGTERM does the same' sigterm
it 'a busy mount is not taken away, and says so' busy_mount
it 'D8 a dead mount is recognised, and cleaned up when asked to' dead_mount
it 'the systemd unit starts again after a crash' started_again_after_a_crash
it 'D8 a hung mount is refused, not waited for' hung_mount
it 'umount --lazy of a hung mount breaks nothing off' lazy_umount_of_a_hung_mount
it 'umount --force-unmount of a hung mount says who still holds the store' forced_umount_of_a_hung_mount
it 'a mount that cannot be asked is not taken for a dead one' unasked_mount
it 'what write(2) was answered survives kill -9' writes_survive_the_daemon
it 'what unlink(2) was answered survives kill -9, in the trash' removals_survive_the_daemon
it 'D10 a store inside its own mount point, and a link as mount point, are refused' inside_itself
it 'D10 a log inside the mount point is refused' log_inside
it 'mount.ddbfs takes what mount(8) and fstab give' helper_of_mount
it 'umount.fuse.ddbfs takes what umount(8) gives, and waits for the disk' helper_of_umount
it 'mount(8) and umount(8) find the helpers, by either name of the type' called_by_mount
it 'a mount inside keeps a mount busy, and is named' busy_by_a_mount
it 'a read-only mount changes nothing' read_only_mount
it 'mount -f stays in the foreground until it is unmounted' foreground
it 'a mount that is interrupted leaves nothing mounted' interrupted_mount_leaves_nothing
it 'mount --create makes a store once' create_on_mount
it 'a limit on the size of files is an error of the write that meets it' limited_file_size
it 'a sync of a store that was removed fails' removed_store
it 'leaves a store that checks clean' check_clean
done_testing
