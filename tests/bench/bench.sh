#!/usr/bin/env bash
#
# bench.sh - the benchmark on any directory. Prints name=value, by suffix: _us
# microseconds an operation, _s seconds (lower is better); _MBps, _iops (higher).
#
#   tests/bench/bench.sh DIRECTORY [WORK...]
#
# WORK: tree walk rename tar git big random sync sqlite parallel restore unlink rmrf; all by
# default. Environment: N files (8000), MIB of the big file (512), TREE files of
# the tar and git trees (8119: passthrough_hp holds a descriptor for each), CACHE for sources
# that are made once (/var/tmp/ddbfs-bench-cache), REMOUNT a command that mounts
# afresh for cold figures. Needs root, to drop caches.
#
# What removes comes last: ext4 makes files up to thirty times slower for minutes
# after a mass deletion in the same block group, and every daemon above it too.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
[ $# -ge 1 ] || { sed -n '3,13s/^# \{0,1\}//p' "$0" >&2; exit 2; }
target=$1/bench.$$
shift
works=("$@")
[ ${#works[@]} -gt 0 ] || works=(tree walk rename tar git big random sync sqlite parallel restore unlink rmrf)
n=${N:-8000}
mib=${MIB:-512}
cache=${CACHE:-/var/tmp/ddbfs-bench-cache}
tree_files=${TREE:-8119}
tree=$cache/tree-$tree_files.tar
source=$cache/source-$tree_files.git
mkdir -p "$cache" "$target"
trap 'rm -rf "$target"' EXIT
tool=$cache/fsbench
if [ ! "$tool" -nt "$here/fsbench.c" ]; then
	cc -O2 -Wall -D_GNU_SOURCE -o "$tool" "$here/fsbench.c"
fi
[ -w /proc/sys/vm/drop_caches ] || { echo 'bench.sh: needs root to drop caches' >&2; exit 1; }

# measure NAME WORK ARGUMENT...
measure() {
	local value

	value=$("$tool" "${@:2}")
	echo "$1=$value"
}

# seconds NAME COMMAND...
seconds() {
	local start=$EPOCHREALTIME end

	"${@:2}" >/dev/null
	end=$EPOCHREALTIME
	echo "$1=$(awk -v a="$start" -v b="$end" 'BEGIN { printf "%.3f", b - a }')"
}

# cold [2]: nothing of the tree is cached any more (2: its contents may be)
cold() {
	sync
	[ -z "${REMOUNT:-}" ] || eval "$REMOUNT"
	echo "${1:-3}" >/proc/sys/vm/drop_caches
}

# Sources that the works copy in, made once on the disk: the first so many files of /usr/include by name.
make_sources() {
	[ -s "$tree" ] || {
		(cd /usr && find include -type f | LC_ALL=C sort | sed -n "1,${tree_files}p") >"$tree.list"
		tar -C /usr -cf "$tree" -T "$tree.list"
	}
	[ -d "$source" ] || {
		rm -rf "$cache/checkout"
		mkdir "$cache/checkout"
		tar -C "$cache/checkout" -xf "$tree"
		git -C "$cache/checkout" init -q
		git -C "$cache/checkout" add -A
		git -C "$cache/checkout" -c user.name=b -c user.email=b@example.org commit -qm all
		git clone -q --bare "$cache/checkout" "$source"
		git -C "$source" repack -adq
		rm -rf "$cache/checkout"
	}
}

# The tree that several works use: n files of 1 KiB in 200 directories.
need_tree() {
	[ -d "$target/tree" ] || {
		mkdir "$target/tree"
		"$tool" create "$target/tree" "$n" 200 1024 >/dev/null
	}
}

work_tree() {
	rm -rf "$target/tree"
	mkdir "$target/tree"
	sync
	measure create200dirs_us create "$target/tree" "$n" 200 1024
	measure stat_first_us stat "$target/tree" "$n" 200
	measure stat_warm_us stat "$target/tree" "$n" 200
	measure stat_missing_us missing "$target/tree" 5000 200
	measure readsmall_warm_us read "$target/tree" "$n" 200
	cold 2
	measure stat_cold_us stat "$target/tree" "$n" 200
	cold
	measure readsmall_cold_us read "$target/tree" "$n" 200
}

work_walk() {
	need_tree
	cold 2
	measure walk_cold_us walk "$target/tree"
	measure walk_warm_us walk "$target/tree"
}

work_rename() {
	mkdir "$target/from" "$target/to"
	"$tool" create "$target/from" "$n" 0 1024 >/dev/null
	sync
	measure rename_us rename "$target/from" "$n" 0 "$target/to"
	measure rename_back_us rename "$target/to" "$n" 0 "$target/from"
}

# Out of the trash; elsewhere out of a directory that was moved into, as other trashes do it.
work_restore() {
	local trash=$target/removed

	mkdir "$target/restore" "$trash"
	"$tool" create "$target/restore" "$n" 0 1024 >/dev/null
	sync
	if [ -n "${DDBFS:-}" ]; then
		trash=$target/restore/.trash
		"$tool" unlink "$target/restore" "$n" 0 >/dev/null
	else
		"$tool" rename "$target/restore" "$n" 0 "$trash" >/dev/null
	fi
	measure restore_mv_us rename "$trash" "$n" 0 "$target/restore"
}

work_tar() {
	make_sources
	mkdir "$target/tar"
	cat "$tree" >/dev/null
	sync
	seconds untar_s tar -C "$target/tar" -xf "$tree"
	cold
	seconds tarback_cold_s sh -c 'tar -C "$1" -cf - . | cksum' sh "$target/tar"
	seconds tarback_warm_s sh -c 'tar -C "$1" -cf - . | cksum' sh "$target/tar"
}

work_git() {
	make_sources
	find "$source" -type f -exec cat {} + >/dev/null
	sync
	seconds gitclone_s git clone -q --no-hardlinks "$source" "$target/git"
	seconds gitstatus_warm_s git -C "$target/git" status -s
	cold 2
	seconds gitstatus_cold_s git -C "$target/git" status -s
}

work_big() {
	sync
	measure seqwrite_MBps write "$target/big" "$mib" 131072
	cold
	measure seqread_cold_MBps sequential-read "$target/big" 131072
	measure seqread_warm_MBps sequential-read "$target/big" 131072
	rm -f "$target/big"
}

work_random() {
	"$tool" write "$target/random" 128 131072 >/dev/null
	cold
	measure randread4k_direct_iops random "$target/random" 4000 direct
	sync
	measure randwrite4k_iops random "$target/random" 8000 write
	sync
	measure randwrite4k_sync_iops random "$target/random" 1500 write-sync
	rm -f "$target/random"
}

work_sync() {
	sync
	measure append_fsync_p50_us append "$target/log" 300 200
	mkdir "$target/synced"
	measure create_fsync_p50_us create-sync "$target/synced" 300
}

transactions() {
	echo "pragma journal_mode=$1;"
	echo 'create table t(a integer primary key, b text);'
	for ((i = 0; i < 150; i++)); do
		echo "insert into t(b) values('row $i, of some forty bytes as most are');"
	done
}

work_sqlite() {
	command -v sqlite3 >/dev/null || return 0
	transactions delete >"$cache/delete.sql"
	transactions wal >"$cache/wal.sql"
	sync
	seconds sqlite_150txn_s sqlite3 -init "$cache/delete.sql" "$target/delete.db" .quit 2>/dev/null
	seconds sqlite_wal150txn_s sqlite3 -init "$cache/wal.sql" "$target/wal.db" .quit 2>/dev/null
}

work_parallel() {
	mkdir "$target/parallel"
	sync
	measure parcreate4_us parallel-create "$target/parallel" "$n" 1024 4
}

work_unlink() {
	mkdir "$target/unlink"
	"$tool" create "$target/unlink" "$n" 0 1024 >/dev/null
	sync
	measure unlink_us unlink "$target/unlink" "$n" 0
}

# On ddbfs ($DDBFS set) what was removed is restored and compared: the figure is of deletions that can be undone.
work_rmrf() {
	local sum restored

	need_tree
	sum=$(cd "$target/tree" && find . -type f | LC_ALL=C sort | xargs cat | cksum)
	sync
	seconds rmrf_s rm -rf "$target/tree"
	if [ -n "${DDBFS:-}" ]; then
		seconds undo_s "$DDBFS" undo "$target"
		restored=$(cd "$target/tree" && find . -type f | LC_ALL=C sort | xargs cat | cksum)
		[ "$sum" = "$restored" ] || { echo 'bench.sh: what rm -rf removed did not come back' >&2; exit 1; }
	fi
}

for work in "${works[@]}"; do
	[ "$(type -t "work_$work")" = function ] || { echo "bench.sh: no such work: $work" >&2; exit 2; }
done
failed=0
for work in "${works[@]}"; do
	# Inodes with pages stay when 2 is written, and with them passthrough_hp's descriptors.
	sync
	echo 3 >/proc/sys/vm/drop_caches
	sleep 0.2
	# What one file system cannot do must not hide the rest. (errexit is off in what `||` follows.)
	set +e
	(
		set -e
		"work_$work"
	)
	[ $? -eq 0 ] || { echo "bench.sh: $work failed" >&2; failed=1; }
	set -e
done
exit $failed
