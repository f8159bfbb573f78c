#!/usr/bin/env bash
#
# compare.sh - the benchmark on several file systems in turn: medians, ratios, goals.
#
#   tests/bench/compare.sh [-r ROUNDS] [-w 'WORK...'] [PEER...]
#
# PEER: disk (the file system below), hp (libfuse's passthrough_hp; its binary in
# $HP), ram (a file system in memory that does nothing; the program, which takes the
# mount point, in $RAM), gocryptfs, ddbfs, ddbfs-writeback. Without any: all that there are.
# Rounds are interleaved, since only ratios within one round mean anything: absolute
# figures swing by two from hour to hour. Prints a table for README.md. Environment
# as bench.sh, and DDBFS (the program), BENCH_DIRECTORY (/var/tmp/ddbfs-bench), LIMIT (seconds
# for one peer's round, 900), OUT (a file to keep all figures in; an old one is added to).
# What could not be done is named at the end, and the exit code is 1 then.
set -uo pipefail

here=$(cd "$(dirname "$0")" && pwd)
rounds=3
works=
while getopts r:w: option; do
	case $option in
	r) rounds=$OPTARG ;;
	w) works=$OPTARG ;;
	*)
		sed -n '3,17s/^# \{0,1\}//p' "$0" >&2
		exit 2
		;;
	esac
done
shift $((OPTIND - 1))
if [ $# -eq 0 ]; then
	set -- disk
	[ -z "${RAM:-}" ] || set -- "$@" ram
	[ -z "${HP:-}" ] || set -- "$@" hp
	! command -v gocryptfs >/dev/null || set -- "$@" gocryptfs
	set -- "$@" ddbfs ddbfs-writeback
fi
ddbfs=${DDBFS:-$here/../../build/tools/ddbfs}
base=${BENCH_DIRECTORY:-/var/tmp/ddbfs-bench}
out=${OUT:-$(mktemp)}
# hp holds a descriptor for each file that the kernel knows.
for limit in $(cat /proc/sys/fs/nr_open) "$(ulimit -Hn)"; do
	ulimit -n "$limit" 2>/dev/null && break
done
mkdir -p "$base/below"
# Each directory below starts in a block group of its own (see bench.sh).
chattr +T "$base/below" 2>/dev/null || true

# up PEER: mounts it; $mnt is where, $remount how to go cold.
up() {
	below=$base/below/$1.$$.$round
	mnt=$base/mnt.$1
	remount=
	mkdir -p "$below" "$mnt"
	case $1 in
	disk) mnt=$below ;;
	ddbfs | ddbfs-writeback)
		local options=()
		[ "$1" = ddbfs ] || options=(-o writeback)
		"$ddbfs" init "$below/store" >/dev/null && "$ddbfs" mount "${options[@]}" "$below/store" "$mnt" &&
			remount="'$ddbfs' umount '$mnt' && '$ddbfs' mount ${options[*]} '$below/store' '$mnt'"
		;;
	gocryptfs)
		gocryptfs -init -q -scryptn 10 -extpass 'echo bench' "$below" </dev/null >/dev/null &&
			gocryptfs -q -extpass 'echo bench' "$below" "$mnt" </dev/null
		;;
	hp) "${HP:?path of passthrough_hp}" "$below" "$mnt" >/dev/null 2>&1 ;;
	ram) "${RAM:?path of a file system in memory}" "$mnt" >/dev/null 2>&1 ;;
	*)
		echo "compare.sh: no such peer: $1" >&2
		return 1
		;;
	esac || return 1
	[ "$1" = disk ] || for _ in 1 2 3 4 5 6 7 8 9 10; do
		mountpoint -q "$mnt" && return 0
		sleep 0.3
	done
}

down() {
	case $1 in
	disk) ;;
	ddbfs*) "$ddbfs" umount "$mnt" ;;
	*) umount "$mnt" ;;
	esac
	rm -rf "$below"
}

# why CODE: of bench.sh
why() {
	case $1 in
	124) echo "not done in ${LIMIT:-900} s" ;;
	*) echo 'a work failed (bench.sh names it above)' ;;
	esac
}

missing=()
mounted=
trap 'exit 130' INT TERM
trap '[ -z "$mounted" ] || down "$mounted"' EXIT

# Rounds of an older run stay; ours follow.
first=$(awk '$1 > n { n = $1 } END { print n + 1 }' "$out" 2>/dev/null || echo 1)
for ((round = first; round < first + rounds; round++)); do
	for peer in "$@"; do
		up "$peer" || { missing+=("round $round, $peer: not mounted"); continue; }
		mounted=$peer
		undo=
		[[ $peer != ddbfs* ]] || undo=$ddbfs
		# shellcheck disable=SC2086
		REMOUNT=$remount DDBFS=$undo timeout "${LIMIT:-900}" "$here/bench.sh" "$mnt" $works |
			sed "s/^/$round $peer /" | tee -a "$out" >&2
		code=${PIPESTATUS[0]}
		[ "$code" -eq 0 ] || missing+=("round $round, $peer: $(why "$code")")
		down "$peer"
		mounted=
		sync
	done
done

awk -v peers="$*" -v goals="$here/goals" -f "$here/report.awk" "$out"
[ -n "${OUT:-}" ] || rm -f "$out"
[ ${#missing[@]} -eq 0 ] || { printf 'compare.sh: %s\n' "${missing[@]}" >&2; exit 1; }
