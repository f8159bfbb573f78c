# shellcheck shell=bash disable=SC2034
#
# lib.sh - what every test with a real mount starts from. Sourced.
#
# A test file makes a store (mount_new), then names behaviours:
#
#	it 'brings a deleted file back by mv' restores_by_mv
#
# Each runs in a subshell with errexit, in a directory of its own ($d, the working
# directory) inside the mount: a command that fails fails the test, and what it
# printed follows the `not ok` line. A file ends with `done_testing`.

set -uo pipefail

: "${DDBFS:?the ddbfs program to test}" "${DDBFS_TESTS_BUILD:?the build directory}"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(cd "$here/../.." && pwd)
tmp=$(mktemp -d "${DDBFS_TEST_TMP:-/tmp}/ddbfs-mount.XXXXXX") || exit 1
chmod 755 "$tmp"
# Other users run these too, and need not be able to enter the build directory.
install -m 755 "$DDBFS" "$DDBFS_TESTS_BUILD/tests/mount/sys" "$tmp" || exit 1
DDBFS=$tmp/ddbfs
sys=$tmp/sys
store=$tmp/store
mnt=$tmp/mnt
mkdir "$mnt"
number=0
failures=0
preload= # a library that daemons are started with
job= # process group of the behaviour that runs now
watchdog= # and of what ends it at its limit
limit=180 # seconds that one behaviour may take, also on a loaded machine under the sanitizers
export LC_ALL=C TZ=UTC

# ---- stores and mounts -----------------------------------------------------

# Every call of the program has a limit: a hang is a failure, not a stuck run.
ddbfs() {
	timeout --kill-after=5 "${ddbfs_limit:-60}" "$DDBFS" "$@" </dev/null
}

# mount_up [OPTION...]: mounts $store at $mnt.
mount_up() {
	LD_PRELOAD=$preload ddbfs mount "$@" "$store" "$mnt"
}

# From now on mounts see clocks that the test moves: see clock.c.
use_clock() {
	preload=$DDBFS_TESTS_BUILD/tests/mount/clock.so
	export DDBFS_TEST_CLOCK=$tmp/clock
	# A library that is preloaded comes before the sanitizer's own, which it does no harm to.
	export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0
	clocks 0 0
}

# clocks WALL BOOT: seconds that each is ahead of the machine's.
clocks() {
	[ -e "$DDBFS_TEST_CLOCK" ] || printf '%64s' '' >"$DDBFS_TEST_CLOCK"
	printf '%-63s\n' "${1}000000000 ${2}000000000" 1<>"$DDBFS_TEST_CLOCK"
}

mount_down() {
	ddbfs umount "$mnt"
}

# mount_new [OPTION...]: a new store, mounted; for a whole test file, which ends without it.
mount_new() {
	rm -rf "$store"
	ddbfs init "$store" >"$tmp/init.log" 2>&1 && mount_up "$@" >>"$tmp/init.log" 2>&1 && return
	sed 's/^/# /' "$tmp/init.log"
	echo "Bail out! no store or no mount"
	exit 1
}

# mounted [DIRECTORY]
# shellcheck disable=SC2120
mounted() {
	awk -v m="${1:-$mnt}" '$5 == m { found = 1 } END { exit !found }' /proc/self/mountinfo
}

remount() {
	mount_down && mount_up "$@"
}

# The store has no problems: umount, check, mount.
check_clean() {
	cd /
	mount_down
	ddbfs check "$store" || {
		echo "ddbfs check found damage (status $?)"
		return 1
	}
	mount_up "$@"
}

daemon_pid() {
	local p
	for p in /proc/[0-9]*; do
		# Of the daemon's command line, the one that serves this mount point.
		if [ "$(readlink "$p/exe" 2>/dev/null)" = "$(readlink -f "$DDBFS")" ] &&
			tr '\0' '\n' <"$p/cmdline" 2>/dev/null | grep -qxF -- "$mnt"; then
			echo "${p#/proc/}"
			return 0
		fi
	done
	return 1
}

# The daemon is gone, as by a crash, and so is its mount; what it answered is in the store.
kill_daemon() {
	kill -9 "$(daemon_pid)"
	cd /
	dead() { [ "$("$sys" stat "$mnt/$RANDOM")" = ENOTCONN ]; }
	within_seconds 10 dead
}

# hang [PID]: the daemon hangs from here on, until `go_on`, or the behaviour ends.
hang() {
	local pid=${1:-$(daemon_pid)}

	echo "$pid" >"$tmp/hangs"
	kill -STOP "$pid"
}

go_on() {
	[ ! -e "$tmp/hangs" ] || kill -CONT "$(cat "$tmp/hangs")"
	rm -f "$tmp/hangs"
}

# Ends a mount that no longer answers: aborts its connection, detaches it.
force_down() {
	local device

	device=$(awk -v m="$1" '$5 == m { split($3, d, ":"); print d[2] }' /proc/self/mountinfo | tail -n 1)
	[ -n "$device" ] || return 0
	[ -e /sys/fs/fuse/connections/"$device" ] ||
		mount -t fusectl none /sys/fs/fuse/connections 2>/dev/null
	echo 1 2>/dev/null >/sys/fs/fuse/connections/"$device"/abort
	umount -l "$1"
}

# On leaving: every mount below $tmp is taken down, whatever state it is in.
leave() {
	local status=$? m

	# A background process that is ended before bash has taken the traps from it.
	[ "$BASHPID" = "$$" ] || exit $status
	trap - EXIT INT TERM
	go_on 2>/dev/null
	cd /
	[ -z "$watchdog" ] || kill -9 -- "-$watchdog" 2>/dev/null
	[ -z "$job" ] || kill -9 -- "-$job" 2>/dev/null
	while read -r m; do
		# The daemon's log of a failed run is worth more than a clean directory.
		timeout --kill-after=5 30 "$DDBFS" umount "$m" >/dev/null 2>&1 </dev/null || force_down "$m"
	done < <(awk -v t="$tmp/" 'index($5, t) == 1 { print $5 }' /proc/self/mountinfo | sort -r)
	if ! awk -v t="$tmp/" 'index($5, t) == 1 { found = 1 } END { exit !found }' /proc/self/mountinfo; then
		rm -rf "$tmp"
	fi
	exit $status
}
trap leave EXIT
trap 'exit 130' INT TERM

# ---- TAP -------------------------------------------------------------------

# it NAME FUNCTION [ARGUMENT...]
it() {
	local name=$1 status
	shift

	number=$((number + 1))
	d=$mnt/t$number
	rm -f "$tmp/output"
	! mounted || timeout 10 mkdir -p "$d"
	set -m # a process group of its own: its deletions are a batch of their own
	(
		cd "$d" 2>/dev/null || cd "$tmp" || exit 1
		set -e
		"$@"
	) >"$tmp/output" 2>&1 </dev/null &
	set +m
	job=$!
	wait_limited $job 2>/dev/null
	status=$?
	kill -9 -- -$job 2>/dev/null # what it left running in the background
	job=
	go_on 2>/dev/null # a test that failed halfway must not take the others with it
	case $status in
	0) echo "ok $number - $name" ;;
	77) echo "ok $number - $name # SKIP $(tail -n 1 "$tmp/output")" ;;
	*)
		failures=$((failures + 1))
		echo "not ok $number - $name"
		echo "# status $status$([ $status != 124 ] || echo ', no end within the limit'); its output ends:"
		tail -n 25 "$tmp/output" | sed 's/^/#   /'
		;;
	esac
}

# The status of background job $1 (a process group), or 124 after $limit seconds.
wait_limited() {
	local status

	set -m
	{
		sleep "$limit"
		echo "no end after $limit s" >>"$tmp/output"
		kill -9 -- "-$1"
		go_on # else what waits for a daemon that hangs would not end
	} 2>/dev/null &
	watchdog=$!
	set +m
	wait "$1" 2>/dev/null
	status=$?
	kill -9 -- "-$watchdog" 2>/dev/null
	wait "$watchdog" 2>/dev/null
	watchdog=
	[ $status != 137 ] || status=124
	return $status
}

done_testing() {
	echo "1..$number"
	exit $((failures > 0))
}

skip() {
	echo "$*"
	exit 77
}

need() {
	local program

	for program in "$@"; do
		command -v "$program" >/dev/null || skip "no $program here"
	done
}

# ---- assertions ------------------------------------------------------------

fail() {
	printf '%s\n' "$*"
	return 1
}

# equal EXPECTED SEEN [WHAT]
equal() {
	[ "$1" = "$2" ] || fail "${3:-value}: expected <$1>, seen <$2>"
}

# within LOW HIGH SEEN [WHAT], whole numbers
within() {
	if [ "$3" -lt "$1" ] || [ "$3" -gt "$2" ]; then
		fail "${4:-value}: expected $1 to $2, seen $3"
	fi
}

# content PATH TEXT: the file's bytes, without a newline at the end
content() {
	equal "$2" "$(cat -- "$1")" "content of $1"
}

exists() {
	[ -e "$1" ] || [ -L "$1" ] || fail "$1 is missing"
}

absent() {
	local seen

	# ENOENT (or ENOTDIR), not a damaged or unreachable file.
	seen=$("$sys" stat "$1")
	case $seen in
	ENOENT | ENOTDIR) ;;
	ok) fail "$1 exists" ;;
	*) fail "$1: $seen instead of ENOENT" ;;
	esac
}

# gives EXPECTED VERB ARGUMENT...: what the system call answers, `ok` or an errno's name
gives() {
	local expected=$1 seen
	shift

	seen=$("$sys" "$@") || fail "sys $*: usage"
	[ "$expected" = "$seen" ] || fail "$*: expected $expected, seen $seen"
}

# exits CODE COMMAND...: its output is kept in $tmp/said
exits() {
	local expected=$1 status=0
	shift

	"$@" >"$tmp/said" 2>&1 || status=$?
	[ "$status" = "$expected" ] && return 0
	cat "$tmp/said"
	fail "$*: expected exit code $expected, seen $status"
}

# says TEXT: the last `exits` printed it
says() {
	grep -qF -- "$1" "$tmp/said" && return 0
	cat "$tmp/said"
	fail "the message does not say \"$1\""
}

# refused COMMAND...: it fails, whatever its code
refused() {
	local status=0

	"$@" >"$tmp/said" 2>&1 || status=$?
	[ "$status" != 0 ] || fail "$*: succeeded"
	[ "$status" != 124 ] || fail "$*: did not answer"
}

# lists DIRECTORY NAME...: exactly these names, sorted
lists() {
	local directory=$1 expected seen
	shift

	expected=$([ $# = 0 ] || printf '%s\n' "$@" | sort)
	seen=$(ls -A -- "$directory") || return 1
	equal "$expected" "$(sort <<<"$seen")" "names in $directory"
}

# older NAME: of the entries of NAME in .trash, the only one with a time in its name
older() {
	local names=(.trash/"$1"@*)

	[ ${#names[@]} = 1 ] && [ -e "${names[0]}" ] || fail "not one older entry: ${names[*]}" >&2
	basename -- "${names[0]}"
}

count() {
	find "$1" -mindepth 1 "${@:2}" -printf x | wc -c
}

# same_tree A B: bytes, modes, owners, links, xattrs and times are the same
same_tree() {
	local differences

	differences=$(rsync -aHAXn --checksum --delete --itemize-changes "${@:3}" "$1/" "$2/") || return 1
	[ -z "$differences" ] || fail "$2 differs from $1: $(head -n 15 <<<"$differences")"
}

# Until COMMAND succeeds, at most N seconds: for what happens in the background.
within_seconds() {
	local n=$1 i
	shift

	for ((i = 0; i < n * 10; i++)); do
		if "$@" >/dev/null 2>&1; then
			return 0
		fi
		sleep 0.1
	done
	fail "not within $n s: $*"
}

# apart COMMAND...: in a process group of its own, as a command typed at a prompt is
apart() {
	local status=0

	set -m
	"$@" &
	set +m
	wait $! || status=$?
	return $status
}

# ---- other users -----------------------------------------------------------

# as UID COMMAND...: as that user and group, without others
as() {
	setpriv --reuid="$1" --regid="$1" --clear-groups -- "${@:2}"
}
alice=65533
bob=65534
