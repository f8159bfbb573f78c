#!/usr/bin/env bash
#
# scale.sh - what a store does when it is large. Prints name=value: _us microseconds
# an operation, _s seconds, _kB kibibytes, _bytes bytes; the rest are counts.
#
#   tests/bench/scale.sh [-n FILES] [-w WIDE] [-g GIB] [DIRECTORY]
#
# FILES (1,000,000) of 1 KiB, a thousand to a directory, are created, found, listed,
# remounted, deleted, remounted in the trash, restored by undo, compared, and destroyed;
# WIDE (200,000) of them stand in one directory, which is deleted and brought back; a file
# of GIB (20) is sparse. A mount follows a kill with the journals as full as they get.
# DIRECTORY (/var/tmp) needs about 6 GB for the default numbers, the run half an hour or more.
# DDBFS is the program. Needs root. What must be true is checked, and a failure ends the run
# with 1.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
files=1000000 wide=200000 gib=20
while getopts n:w:g: option; do
	case $option in
	n) files=$OPTARG ;;
	w) wide=$OPTARG ;;
	g) gib=$OPTARG ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))
ddbfs=${DDBFS:-$here/../../build/tools/ddbfs}
base=$(mktemp -d "${1:-/var/tmp}/ddbfs-scale.XXXXXX")
store=$base/store
mnt=$base/mnt
tool=$base/fsbench
directories=$(((files + 999) / 1000))
[ -w /proc/sys/vm/drop_caches ] || { echo 'scale.sh: needs root' >&2; exit 1; }

finish() {
	"$ddbfs" umount "$mnt" 2>/dev/null || umount -l "$mnt" 2>/dev/null || true
	rm -rf "$base"
}
trap finish EXIT
trap 'exit 130' INT TERM

fail() {
	echo "scale.sh: $*" >&2
	exit 1
}

# seconds NAME COMMAND...
seconds() {
	local start=$EPOCHREALTIME

	"${@:2}" >/dev/null
	awk -v n="$1" -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf "%s=%.3f\n", n, b - a }'
}

# each NAME COUNT COMMAND...: microseconds for each of COUNT
each() {
	local start=$EPOCHREALTIME

	"${@:3}" >/dev/null
	awk -v n="$1" -v c="$2" -v a="$start" -v b="$EPOCHREALTIME" \
		'BEGIN { printf "%s=%.2f\n", n, (b - a) * 1e6 / c }'
}

# measure NAME WORK ARGUMENT...
measure() {
	echo "$1=$("$tool" "${@:2}")"
}

up() {
	"$ddbfs" mount "$store" "$mnt"
}

down() {
	"$ddbfs" umount "$mnt"
}

drop_caches() {
	sync
	echo "$1" >/proc/sys/vm/drop_caches
}

daemon() {
	tr -dc 0-9 <"$store/lock"
}

# memory NAME: what the daemon itself holds, and what it has mapped of files; the most of both since the mount
memory() {
	awk -v n="$1" '
		/^RssAnon/ { print n "_anonymous_kB=" $2 }
		/^RssFile/ { print n "_file_kB=" $2 }
		/^VmHWM/ { print n "_peak_kB=" $2 }' "/proc/$(daemon)/status"
}

anonymous() {
	awk '/^RssAnon/ { print $2 }' "/proc/$(daemon)/status"
}

# stat_of NAME: a line of /.ddbfs/stats
stat_of() {
	awk -v n="ddbfs_$1" '$1 == n { print $2 }' "$mnt/.ddbfs/stats"
}

store_bytes() {
	du -s -B1 "$store" | cut -f1
}

count_files() {
	find "$1" -type f -printf . | wc -c
}

# A digest of every hundredth file's path and bytes.
digest() {
	(cd "$1" && find . -type f -name '*00' | sort | xargs -d '\n' cat | sha256sum)
}

many_files() {
	local empty anonymous_before before

	memory idle_new
	empty=$(store_bytes)
	measure create_us create "$mnt/tree" "$files" "$directories" 1024
	seconds create_sync_s sync -f "$mnt"
	memory created
	down
	awk -v a="$empty" -v b="$(store_bytes)" -v n="$files" \
		'BEGIN { printf "store_bytes_per_file=%.0f\n", (b - a) / n }'
	seconds mount_clean_s up
	memory mounted
	before=$(digest "$mnt/tree")
	drop_caches 2
	sleep 1
	anonymous_before=$(anonymous)
	drop_caches 3
	measure walk_cold_us walk "$mnt/tree"
	# The kernel has a node of each now, unless it was short of memory meanwhile.
	awk -v a="$anonymous_before" -v b="$(anonymous)" -v n=$((files + directories)) \
		'BEGIN { printf "memory_per_node_bytes=%.0f\n", (b - a) * 1024 / n }'
	memory walked
	measure walk_warm_us walk "$mnt/tree"
	drop_caches 2
	each find_us "$files" find "$mnt/tree" -name 'f*7' -size -2k
	drop_caches 3
	measure stat_cold_us stat "$mnt/tree" "$files" "$directories"
	[ "$(count_files "$mnt/tree")" = "$files" ] || fail 'files are missing'

	each delete_us "$files" rm -rf "$mnt/tree"
	[ "$(stat_of trash_items)" -ge "$files" ] || fail 'not all are in the trash'
	echo "trash_items=$(stat_of trash_items)"
	memory deleted
	seconds trash_ls_s ls "$mnt/.trash/tree"
	mkdir "$mnt/beside"
	measure create_beside_trash_us create "$mnt/beside" 10000 10 1024
	measure walk_beside_trash_us walk "$mnt/beside"
	down
	seconds mount_with_trash_s up
	memory mounted_with_trash
	each undo_us "$files" "$ddbfs" undo "$mnt"
	memory restored
	[ "$(count_files "$mnt/tree")" = "$files" ] || fail 'files did not come back'
	[ "$(digest "$mnt/tree")" = "$before" ] || fail 'what came back is not what it was'
	rm -rf "$mnt/beside"
}

one_directory() {
	mkdir "$mnt/wide"
	measure wide_create_us create "$mnt/wide" "$wide" 0 100
	drop_caches 2
	each wide_list_us "$wide" ls -f "$mnt/wide"
	measure wide_stat_us stat "$mnt/wide" "$wide" 0
	each wide_delete_us "$wide" rm -rf "$mnt/wide"
	each wide_trash_list_us "$wide" ls -f "$mnt/.trash/wide"
	each wide_restore_us "$wide" mv "$mnt/.trash/wide" "$mnt/wide"
	[ "$(count_files "$mnt/wide")" = "$wide" ] || fail 'the directory did not come back whole'
}

sparse_file() {
	local file=$mnt/sparse before

	before=$(store_bytes)
	truncate -s "${gib}G" "$file"
	head -c 1M /dev/urandom >"$base/mib"
	seconds sparse_write_s eval 'for ((g = 0; g < gib; g++)); do
		dd if="$base/mib" of="$file" bs=1M seek=$((g * 1024 + 7)) conv=notrunc status=none; done; sync -f "$file"'
	echo "sparse_store_bytes=$(($(store_bytes) - before))"
	seconds sparse_read_s eval 'for ((g = 0; g < gib; g++)); do
		dd if="$file" bs=1M skip=$((g * 1024 + 7)) count=1 status=none | cmp - "$base/mib"; done'
	seconds sparse_copy_s cp --sparse=always "$file" "$base/copy"
	[ "$(stat -c %s "$base/copy")" = "$((gib << 30))" ] || fail 'the copy has another size'
	[ "$(du -s -B1M "$base/copy" | cut -f1)" -le $((gib * 2 + 1)) ] || fail 'holes were copied as data'
	rm "$base/copy"
	seconds sparse_delete_s rm "$file"
	seconds sparse_restore_s mv "$mnt/.trash/sparse" "$file"
	seconds sparse_truncate_s truncate -s 0 "$file"
}

# The journals are full when writers are held up by the checkpoint; killed there, all of it is replayed.
after_a_crash() {
	local pid n

	pid=$(daemon)
	dd if=/dev/zero of="$mnt/random" bs=1M count=256 status=none
	sync -f "$mnt"
	"$tool" random "$mnt/random" 14000 write >/dev/null 2>&1 &
	n=$!
	sleep "${CRASH_AFTER:-1}"
	"$tool" create "$mnt/crash" 9000 9 1024 >/dev/null 2>&1 || true
	kill -KILL "$pid"
	wait "$n" 2>/dev/null || true
	while [ -d "/proc/$pid" ]; do sleep 0.1; done
	umount -l "$mnt"
	drop_caches 3
	seconds mount_after_kill_s up
	echo "replayed_transactions=$("$ddbfs" status --json "$mnt" | sed -n 's/.*"replayed": *\([0-9]*\).*/\1/p')"
	memory replayed
}

destroy() {
	rm -rf "${mnt:?}"/*
	each empty_us "$(stat_of trash_items)" "$ddbfs" trash empty --now "$mnt"
	down
	echo "store_emptied_bytes=$(store_bytes)"
	seconds check_s "$ddbfs" check "$store"
}

cc -O2 -Wall -D_GNU_SOURCE -o "$tool" "$here/fsbench.c"
mkdir "$store" "$mnt"
"$ddbfs" init "$store" >/dev/null
up
mkdir "$mnt/tree" "$mnt/crash"
many_files
one_directory
sparse_file
after_a_crash
destroy
