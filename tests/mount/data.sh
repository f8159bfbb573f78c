#!/usr/bin/env bash
#
# What is written is what is read, by read(2), by map and by copy, whatever was
# done to the file in between: random operations against a model (exercise.c),
# fio and stress-ng with verification. $DDBFS_EXERCISE_OPERATIONS (400) a round,
# $DDBFS_TEST_SEED; all of stress-ng's file system class with
# $DDBFS_STRESS_SECONDS for each stressor.
# timeout: 600
. "$(dirname "$0")/lib.sh"
operations=${DDBFS_EXERCISE_OPERATIONS:-400}
seed=${DDBFS_TEST_SEED:-$((RANDOM + 1))}
limit=$((300 + operations / 20))
exercise=$DDBFS_TESTS_BUILD/tests/mount/exercise

# exercised ROUND [WORD]: four processes, each at a file of its own and at its model.
exercised() {
	local p jobs=()

	for p in 1 2 3 4; do
		"$exercise" "$d/f$p" "$tmp/model$p" $((seed * 100 + $1 * 10 + p)) "$operations" "${@:2}" &
		jobs+=($!)
	done
	for p in "${jobs[@]}"; do
		wait "$p"
	done
}

# Between the rounds the mount ends, as it should or by a crash: what was written is there.
random_operations() {
	local options=$1 round
	shift

	rm -f "$tmp"/model*
	for round in 1 2 3; do
		exercised $round "$@"
		cd /
		if [ $round = 2 ]; then
			# The writeback cache promises what was synced.
			[ -z "$options" ] || sync -f "$d"
			kill_daemon
			umount "$mnt"
			mount_up ${options:+-o "$options"}
		else
			remount ${options:+-o "$options"}
		fi
	done
	operations=1 exercised 4 "$@"
}

with_writeback() {
	cd /
	remount -o writeback
	mkdir -p "$d"
	random_operations writeback dense
	cd /
	remount
}

# A map's bytes over a hole are found by who copies the file while it is mapped.
copied_while_mapped() {
	gives ok copy-while-mapped f g 3000000 1234567
	cmp f g
	equal 1232896 "$("$sys" seek g data 0)" 'the data in the copy'
	equal 20480 "$("$sys" fill-holes h)" 'the first hole after two that were filled'
}

# A unit of 4 KiB that was a hole stays one, whatever is cut off or zeroed beside it.
holes_stay() {
	head -c 2000000 /dev/urandom >f
	remount_here
	gives ok fallocate f keep,punch 98304 8192
	equal 106496 "$("$sys" seek f data 98304)" 'data after the hole'
	gives ok truncate f 100000
	gives ok truncate f 200000
	gives ENXIO seek f data 98304
	gives ok fallocate f zero 99000 10
	remount_here
	gives ENXIO seek f data 98304
	equal 98304 "$("$sys" seek f hole 0)" 'the first hole'
}

remount_here() {
	cd /
	remount
	cd "$d"
}

fio_verifies() {
	need fio
	fio --directory="$PWD" --size=6m --verify=crc32c --verify_fatal=1 --verify_dump=0 --output="$tmp/fio" \
		--output-format=terse --group_reporting --randseed="$seed" \
		--name=random --rw=randwrite --bsrange=512-40k --ioengine=psync \
		--name=mapped --rw=randwrite --bs=4k --ioengine=mmap \
		--name=mixed --rw=randrw --bs=16k --numjobs=2 --fsync=8 --ioengine=psync \
		--name=direct --rw=write --bs=64k --direct=1 --ioengine=psync || {
		tail -n 20 "$tmp/fio"
		return 1
	}
	# What it wrote, read by another mount.
	remount_here
	fio --directory="$PWD" --size=6m --verify=crc32c --verify_fatal=1 --verify_only --output="$tmp/fio" \
		--output-format=terse --randseed="$seed" \
		--name=random --rw=randwrite --bsrange=512-40k --ioengine=psync \
		--name=direct --rw=write --bs=64k --ioengine=psync
}

# Those that check what they read; the rest of the class when asked for.
stress() {
	local seconds=${DDBFS_STRESS_SECONDS:-1} name

	need stress-ng
	for name in chdir copy-file dentry dir dup fallocate fiemap filename flock getdent hdd iomix link locka lockf \
		mmap readahead rename seek symlink utime verity xattr; do
		[ -n "${DDBFS_STRESS_SECONDS:-}" ] || [[ " copy-file fallocate filename getdent hdd iomix rename seek xattr " == *" $name "* ]] || continue
		mkdir s
		timeout 100 stress-ng --"$name" 2 --timeout "$seconds" --verify --temp-path "$PWD/s" --no-rand-seed \
			>"$tmp/stress" 2>&1 || {
			cat "$tmp/stress"
			fail "$name"
		}
		! grep -i 'fail:' "$tmp/stress" || fail "$name"
		rm -rf s
	done
}

mount_new
it "random operations of four processes against a model (seed $seed), over remounts and a crash" random_operations ''
it 'the same with the writeback cache' with_writeback
it 'what a map wrote over a hole is found and copied while it is mapped' copied_while_mapped
it 'holes stay holes beside what is cut off and zeroed' holes_stay
it 'fio reads what it wrote, also after a remount' fio_verifies
it 'stress-ng finds nothing wrong' stress
it 'leaves a store that checks clean' check_clean
done_testing
