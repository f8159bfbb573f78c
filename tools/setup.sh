#!/usr/bin/env bash
#
# setup.sh - from a fresh Debian 12 to a running ddbfs: packages, build,
# install, the main job on real files, the tests.
#
# Needs root; `try` and `test` also need /dev/fuse.
set -euo pipefail

top=$(cd "$(dirname "$0")/.." && pwd)

usage() {
	cat <<'TXT'
usage: tools/setup.sh VERB

  deps              install what building needs (apt-get)
  build             deps, then compile into build/
  install           build, then install into /usr/local
  try [DIRECTORY]   build, then the main job on real files: make a store, mount it, write,
                    delete, list .trash, restore, compare, unmount, check. Everything is made
                    in DIRECTORY, or in a temporary one that is removed at the end.
  test              deps, build with the address and undefined behaviour sanitizers, run every
                    test; the last line is `N passed, N failed[, N skipped]`
TXT
}

die() {
	printf 'setup.sh: %s\n' "$*" >&2
	exit 1
}

say() {
	printf '\n== %s\n' "$*"
}

# quietly LOG COMMAND...: what it prints goes to LOG, and is shown if it fails.
quietly() {
	local log=$1
	shift

	"$@" >"$log" 2>&1 </dev/null && return
	tail -n 40 "$log" >&2
	die "failed: $*; all it printed is in $log"
}

# Prints a command as one would type it, then runs it.
run() {
	printf '$ %s\n' "$*"
	"$@"
}

build_packages=(
	gcc libc6-dev meson ninja-build pkg-config
	fuse3 libfuse3-dev liblmdb-dev libsodium-dev libjansson-dev libsmartcols-dev libbsd-dev
	uthash-dev check scdoc
)
try_packages=(rsync)
test_packages=(
	acl attr e2fsprogs fio git inotify-tools jq lld patch procps redis-tools rsync sqlite3
	stress-ng unzip util-linux vim-tiny zip
)
# Debian's npm cannot be installed beside a Node.js from elsewhere, which brings its own.
command -v npm >/dev/null || test_packages+=(npm)

# Installs those of the named packages that are missing.
packages() {
	local missing=() name log

	for name in "$@"; do
		dpkg-query -W -f '${Status}' "$name" 2>/dev/null | grep -q ' installed$' ||
			missing+=("$name")
	done
	[ ${#missing[@]} -gt 0 ] || return 0
	[ "$(id -u)" = 0 ] || die "these packages are missing and only root can install them: ${missing[*]}"
	say "installing packages: ${missing[*]}"
	log=$(mktemp /tmp/ddbfs-setup.XXXXXX)
	quietly "$log" apt-get -q update
	DEBIAN_FRONTEND=noninteractive quietly "$log" apt-get -qq -y install --no-install-recommends \
		"${missing[@]}"
	rm -f "$log"
}

# compile DIRECTORY [MESON-OPTION...]
compile() {
	local directory=$top/$1 log=$top/$1/setup.log
	shift

	say "building into ${directory#"$top"/}/"
	mkdir -p "$directory"
	if [ -f "$directory/build.ninja" ]; then
		quietly "$log" meson configure "$directory" "$@"
	else
		quietly "$log" meson setup "$directory" "$top" "$@"
	fi
	quietly "$log" ninja -C "$directory"
	tail -n 1 "$log"
}

need_fuse() {
	[ "$(id -u)" = 0 ] || die "needs root"
	[ -c /dev/fuse ] || die "needs /dev/fuse (in a container: --device /dev/fuse --cap-add SYS_ADMIN)"
}

# ---- try -------------------------------------------------------------------

ddbfs=$top/build/tools/ddbfs
try_mount=
try_temporary=

try_cleanup() {
	cd /
	[ -z "$try_mount" ] || ! mountpoint -q "$try_mount" || "$ddbfs" umount "$try_mount" || true
	[ -z "$try_temporary" ] || rm -rf "$try_temporary"
}

# Nothing to copy means: identical in bytes, modes, owners, links, xattrs and times.
same() {
	local differences

	printf '$ rsync -aHAXn --checksum --delete --itemize-changes %s/ %s/\n' "$1" "$2"
	differences=$(rsync -aHAXn --checksum --delete --itemize-changes "$1/" "$2/")
	if [ -n "$differences" ]; then
		printf '%s\n' "$differences" | head -n 20
		die "$2 differs from $1"
	fi
	echo "identical: bytes, modes, owners, links, xattrs, times"
}

try() {
	local base=${1:-}

	need_fuse
	if [ -z "$base" ]; then
		base=$(mktemp -d /var/tmp/ddbfs-try.XXXXXX)
		try_temporary=$base
	fi
	mkdir -p "$base/mnt"
	trap try_cleanup EXIT
	try_mount=$base/mnt
	# Each command in a process group of its own, as at a prompt: undo takes back one at a time.
	set -m
	PATH=$top/build/tools:$PATH

	say "make a store and mount it"
	run ddbfs init "$base/store"
	run ddbfs mount "$base/store" "$base/mnt"
	cd "$base/mnt"

	say "write real files"
	run cp -a /usr/include /usr/share/doc .
	echo "$(find . -type f | wc -l) files, $(du -sh --apparent-size . | cut -f1)"

	say "delete"
	run rm -rf include
	run rm -rf doc
	run ls

	say "what was deleted lies in .trash, as it was"
	run ls -l .trash
	run ddbfs trash list

	say "restore one tree with mv, the other with undo, and compare with where it came from"
	run mv .trash/include .
	run ddbfs undo
	same /usr/include include
	same /usr/share/doc doc

	say "unmount, check, mount again, compare"
	cd "$base"
	run ddbfs umount "$base/mnt"
	run ddbfs check "$base/store"
	run ddbfs mount "$base/store" "$base/mnt"
	same /usr/include "$base/mnt/include"
	same /usr/share/doc "$base/mnt/doc"
	run ddbfs umount "$base/mnt"
	printf '\nThe program is %s; tools/setup.sh install puts it into /usr/local/bin.\n' "$ddbfs"
}

# ---- verbs -----------------------------------------------------------------

case ${1:-help} in
deps)
	packages "${build_packages[@]}"
	;;
build)
	packages "${build_packages[@]}"
	compile build
	;;
install)
	packages "${build_packages[@]}"
	compile build
	ninja -C "$top/build" install
	;;
try)
	packages "${build_packages[@]}" "${try_packages[@]}"
	compile build
	shift
	try "$@"
	;;
test)
	need_fuse
	packages "${build_packages[@]}" "${test_packages[@]}"
	compile build-test -Db_sanitize=address,undefined -Db_lundef=false
	# What crashes leave is tried in thousands of states: without the sanitizers, which see the same code in fewer.
	compile build
	counts=$(mktemp)
	export DDBFS_COUNTS=${DDBFS_COUNTS:-$counts}
	"$top/tests/run.sh" --build "$top/build-test" layers unit mount || true
	"$top/tests/run.sh" --build "$top/build" crash || true
	DDBFS_MODEL_HISTORIES=100 DDBFS_DAMAGE_FLIPS=100 DDBFS_DAMAGE_CUTS=20 DDBFS_POWER_STATES=300 \
		DDBFS_FAULTS_STEP=40 DDBFS_SWEEP_STEP=40 DDBFS_PAIRS_STEP=40 DDBFS_MEND_STEP=20 DDBFS_LISTING_ITEMS=5000 \
		"$top/tests/run.sh" --build "$top/build-test" crash || true
	awk '
		{ passed += $1; failed += $2; skipped += $3 }
		END {
			printf "%d passed, %d failed%s\n", passed, failed, skipped ? ", " skipped " skipped" : ""
			exit !(passed > 0 && failed == 0)
		}' "$DDBFS_COUNTS"
	;;
help | -h | --help)
	usage
	;;
*)
	usage >&2
	exit 2
	;;
esac
