#!/usr/bin/env bash
#
# Many processes at names of their own and at names that all fight for, in four
# directories, with invariants checked during and after (storm.h has them), while
# what they delete expires. $DDBFS_STORM_SECONDS (20), $DDBFS_STORM_SEED and
# $DDBFS_STORM_PROCESSES (6) say how long, which and how many; for an hour also
# set DDBFS_TEST_TIMEOUT, and $DDBFS_STORM_REPORT to a file for the samples.
# timeout: 300
. "$(dirname "$0")/lib.sh"
seconds=${DDBFS_STORM_SECONDS:-20}
seed=${DDBFS_STORM_SEED:-$((RANDOM + 1))}
processes=${DDBFS_STORM_PROCESSES:-6}
report=${DDBFS_STORM_REPORT:-$tmp/samples}
limit=$((seconds + 150))
# What the sanitizers keep of freed memory is none of ours.
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:quarantine_size_mb=8

stat_of() {
	awk -v name="^ddbfs_($1)$" '$1 ~ name { print $2 }' "$mnt/.ddbfs/stats"
}

# One line: seconds, resident, of that anonymous and of files (KiB), nodes, items in the trash, KiB of the store.
sample() {
	local pid=$1 start=$2

	echo "$(($(date +%s) - start))" \
		"$(awk '/^(VmRSS|RssAnon|RssFile):/ { print $2 }' "/proc/$pid/status" | xargs)" \
		"$(stat_of mount_nodes)" "$(stat_of trash_items)" "$(du -sk "$store" | cut -f1)"
}

storming() {
	local pid start sampler status=0

	pid=$(daemon_pid)
	start=$(date +%s)
	ddbfs policy set . retention=15s
	echo "seconds resident anonymous files nodes trash store" >"$report"
	(while :; do
		sleep $((seconds < 240 ? seconds / 4 : 60))
		sample "$pid" "$start" >>"$report"
	done) &
	sampler=$!
	# What went wrong is what is shown, not a line each minute.
	"$DDBFS_TESTS_BUILD/tests/mount/storm" d "$seconds" "$seed" "$processes" >"$tmp/progress" || status=$?
	tail -n 2 "$tmp/progress"
	kill $sampler
	sample "$pid" "$start" >>"$report"
	tail -n 15 "$report"
	return $status
}

# Whatever ran before: nothing is known that the kernel does not hold.
counts_return() {
	none_left() {
		echo 2 >/proc/sys/vm/drop_caches
		# The root, and the directory of the file that is read here.
		[ "$(stat_of 'mount_(nodes|lookups|handles)' | xargs)" = '2 1 0' ]
	}
	cd /
	within_seconds 20 none_left || fail "$(grep ^ddbfs_mount "$mnt/.ddbfs/stats")"
}

# The last samples are no more than those after a third of the time.
memory_is_flat() {
	awk 'NR > 1 { anonymous[NR - 1] = $3 }
		END {
			n = NR - 1
			early = anonymous[int((n + 2) / 3)]
			printf "anonymous memory: %d KiB of %d samples, then %d\n", early, n, anonymous[n]
			exit !(n > 0 && anonymous[n] < early * 1.25 + 16384)
		}' "$report"
}

# Nobody hangs in the kernel, and what was deleted is destroyed in time.
nothing_stays() {
	gone() { [ "$(stat_of trash_items)" = 0 ]; }
	cd /
	rm -rf "${d%/*}"/t1/d
	within_seconds 60 gone
}

mount_new
it "a storm of $processes processes for $seconds s (seed $seed) breaks no invariant" storming
it 'no node, look-up or handle is left afterwards' counts_return
it 'memory is flat' memory_is_flat
it 'the trash empties itself afterwards' nothing_stays
it 'leaves a store that checks clean' check_clean
done_testing
