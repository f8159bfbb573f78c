#!/usr/bin/env bash
#
# compare.sh - the benchmark on several file systems in turn, and their ratios.
#
#   tests/bench/compare.sh [-r ROUNDS] [-w 'WORK...'] PEER...
#
# PEER: disk (the file system below), ddbfs, ddbfs-writeback, gocryptfs, hp
# (libfuse's passthrough_hp; its binary in $HP). Rounds are interleaved, since only
# ratios within one round mean anything: absolute figures swing by two from hour
# to hour. Prints the medians and, for each peer, the median of its same-round ratio
# to the one named first. Environment as bench.sh, and DDBFS (the program),
# BENCH_DIRECTORY (/var/tmp/ddbfs-bench), OUT (a file to keep all figures in).
set -uo pipefail

here=$(cd "$(dirname "$0")" && pwd)
rounds=3
works=
while getopts r:w: option; do
	case $option in
	r) rounds=$OPTARG ;;
	w) works=$OPTARG ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || { sed -n '3,12s/^# \{0,1\}//p' "$0" >&2; exit 2; }
ddbfs=${DDBFS:-$here/../../build/tools/ddbfs}
base=${BENCH_DIRECTORY:-/var/tmp/ddbfs-bench}
out=${OUT:-$(mktemp)}
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

for ((round = 1; round <= rounds; round++)); do
	for peer in "$@"; do
		up "$peer" || { echo "compare.sh: could not mount $peer" >&2; continue; }
		undo=
		[[ $peer != ddbfs* ]] || undo=$ddbfs
		# shellcheck disable=SC2086
		REMOUNT=$remount DDBFS=$undo timeout 900 "$here/bench.sh" "$mnt" $works |
			sed "s/^/$round $peer /" | tee -a "$out" >&2
		down "$peer"
		sync
	done
done

# Medians, and ratios to the first peer of the same round.
awk -v peers="$*" '
	function median(list, values, count, i, j, t) {
		count = split(list, values, " ")
		for (i = 2; i <= count; i++)
			for (j = i; j > 1 && values[j] + 0 < values[j - 1] + 0; j--) {
				t = values[j]; values[j] = values[j - 1]; values[j - 1] = t
			}
		return count % 2 ? values[(count + 1) / 2] : (values[count / 2] + values[count / 2 + 1]) / 2
	}
	{
		split($3, f, "=")
		if (!(f[1] in seen)) { seen[f[1]] = 1; names[++n] = f[1] }
		value[$1, $2, f[1]] = f[2]
		if ($1 > rounds) rounds = $1
	}
	END {
		m = split(peers, peer, " ")
		printf "| work |"
		for (p = 1; p <= m; p++) printf " %s |", peer[p]
		for (p = 2; p <= m; p++) printf " %s / %s |", peer[p], peer[1]
		printf "\n|---|"
		for (p = 1; p < 2 * m; p++) printf "---|"
		printf "\n"
		for (i = 1; i <= n; i++) {
			printf "| %s |", names[i]
			for (p = 1; p <= m; p++) {
				list = ""
				for (r = 1; r <= rounds; r++)
					if ((r, peer[p], names[i]) in value) list = list " " value[r, peer[p], names[i]]
				printf list == "" ? " - |" : " %.4g |", median(list)
			}
			for (p = 2; p <= m; p++) {
				list = ""
				for (r = 1; r <= rounds; r++)
					if ((r, peer[p], names[i]) in value && value[r, peer[1], names[i]] + 0 > 0)
						list = list " " value[r, peer[p], names[i]] / value[r, peer[1], names[i]]
				printf list == "" ? " - |" : " %.2f |", median(list)
			}
			printf "\n"
		}
	}' "$out"
[ -n "${OUT:-}" ] || rm -f "$out"
