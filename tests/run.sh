#!/usr/bin/env bash
#
# run.sh - runs the tests and counts what they report, one TAP point at a time.
#
#   tests/run.sh [--build DIRECTORY] [WHAT...]
#
# WHAT: `unit` (the build's own tests, no mount; with $DDBFS_UNIT_TESTS only those
# named in it), `crash` (those of tests/crash/: long), `mount` (all of
# tests/mount/), `mount/NAME` (one of them), `layers`. Without any: everything. The last line is `N passed, N failed[, N skipped]`; the exit
# code is 0 only if something passed and nothing failed. Logs of all tests are in
# DIRECTORY/test-logs/.
#
# A program that dies, times out, prints no plan, or runs another number of tests
# than planned adds a failure: what did not report does not count as passed.
set -uo pipefail

top=$(cd "$(dirname "$0")/.." && pwd)
build=$top/build
jobs=${DDBFS_TEST_JOBS:-$(nproc)}
what=()

while [ $# -gt 0 ]; do
	case $1 in
	--build)
		build=$(cd "$2" && pwd) || exit 2
		shift
		;;
	-*)
		sed -n '3,14s/^# \{0,1\}//p' "$0" >&2
		exit 2
		;;
	*) what+=("$1") ;;
	esac
	shift
done
[ ${#what[@]} -gt 0 ] || what=(layers unit mount crash)

logs=$build/test-logs
mkdir -p "$logs"
counts=$(mktemp "$logs/counts.XXXXXX") || exit 1
trap 'rm -f "$counts"' EXIT
export DDBFS=${DDBFS:-$build/tools/ddbfs}
export DDBFS_TESTS_BUILD=$build

# Sanitizers of daemons in the background write here; any report is a failure.
sanitizer=$logs/sanitizer
rm -f "$sanitizer".*
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=1}:log_path=$sanitizer
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}:log_path=$sanitizer
export TSAN_OPTIONS=${TSAN_OPTIONS:-second_deadlock_stack=1}:log_path=$sanitizer

# tally NAME LOG EXIT-STATUS: one line "passed failed skipped" into $counts.
tally() {
	awk -v name="$1" -v status="$3" -v log_path="$2" '
		/^ok / { if (/# *[Ss][Kk][Ii][Pp]/) skipped++; else passed++; next }
		/^not ok / { failed++; print "FAIL " name ": " $0 > "/dev/stderr"; next }
		/^1\.\.0/ { skipped++; planned = 0; plan = 1; next }
		/^1\.\.[0-9]+/ { planned = substr($0, 4) + 0; plan = 1; next }
		function lost(why) { failed++; print "FAIL " name ": " why > "/dev/stderr" }
		END {
			if (!plan)
				lost("no plan: it died, hung or is no TAP program (status " status ")")
			else if (planned && planned != passed + failed + skipped)
				lost("planned " planned " tests, ran " passed + failed + skipped)
			else if (status != 0 && !failed)
				lost("exit status " status)
			if (failed)
				print "     log: " log_path > "/dev/stderr"
			print passed + 0, failed + 0, skipped + 0
		}' "$2" >>"$counts"
}

# One check that either holds or does not: single NAME COMMAND...
single() {
	local name=$1 log=$logs/${1//\//-}.log status
	shift

	"$@" >"$log" 2>&1 </dev/null
	status=$?
	if [ $status -eq 0 ]; then
		echo "1 0 0" >>"$counts"
	else
		echo "FAIL $name (status $status)" >&2
		tail -n 20 "$log" >&2
		echo "0 1 0" >>"$counts"
	fi
}

# meson_tests ARGUMENT...: which, as `meson test` is told.
meson_tests() {
	local json=$build/meson-logs/testlog.json name status protocol log

	rm -f "$json"
	meson test -C "$build" --num-processes "$jobs" "$@" >"$logs/meson.log" 2>&1 </dev/null
	if [ ! -s "$json" ]; then
		echo "FAIL meson test wrote no log:" >&2
		tail -n 30 "$logs/meson.log" >&2
		echo "0 1 0" >>"$counts"
		return
	fi
	meson introspect --tests "$build" >"$logs/tests.json"
	while IFS=$'\t' read -r name status protocol; do
		log=$logs/unit-${name//[^a-zA-Z0-9.-]/_}.log
		jq -r --arg n "$name" 'select(.name == $n) | (.stdout // ""), (.stderr // "")' \
			"$json" >"$log"
		if [ "$protocol" = tap ]; then
			tally "$name" "$log" "$status"
		elif [ "$status" = 0 ]; then
			# Its exit code alone says whether it passed.
			echo "1 0 0" >>"$counts"
		else
			echo "FAIL $name: status $status; log: $log" >&2
			echo "0 1 0" >>"$counts"
		fi
	done < <(jq -r --slurpfile tests "$logs/tests.json" '
		.name as $name
		| ($tests[0] | map(select(.name as $n | $name == $n or ($name | endswith(" / " + $n))))
			| .[0].protocol // "tap") as $protocol
		| (if .result == "OK" then 0 elif .result == "SKIP" then 0
			else (.returncode // 1) | if . == 0 then 1 else . end end) as $status
		| [$name, ($status | tostring), $protocol] | @tsv' "$json")
}

# script GROUP NAME: one executable of tests/GROUP/, with a limit of its own (`# timeout: SECONDS`).
script() {
	local file=$top/tests/$1/$2.sh log=$logs/$1-$2.log limit status start=$SECONDS

	limit=${DDBFS_TEST_TIMEOUT:-$(sed -n 's/^# timeout: //p' "$file" | head -n 1)}
	timeout --kill-after=60 "${limit:-300}" bash "$file" >"$log" 2>&1 </dev/null
	status=$?
	tally "$1/$2" "$log" $status
	printf '%-24s %4d s  %s\n' "$1/$2" $((SECONDS - start)) \
		"$(grep -c '^ok ' "$log") of $(sed -n 's/^1\.\.//p' "$log" | tail -n 1)"
}

# Runs the scripts of a group, `jobs` at a time; those marked `# alone` after the others.
run_scripts() {
	local group=$1 file name alone=()
	shift

	for file in "$top/tests/$group"/*.sh; do
		[ -e "$file" ] || continue
		name=$(basename "$file" .sh)
		[ "$name" != lib ] || continue
		if [ $# -gt 0 ] && [[ " $* " != *" $name "* ]]; then
			continue
		fi
		if grep -q '^# alone' "$file"; then
			alone+=("$name")
			continue
		fi
		while [ "$(jobs -pr | wc -l)" -ge "$jobs" ]; do
			wait -n
		done
		script "$group" "$name" &
	done
	wait
	for name in "${alone[@]}"; do
		script "$group" "$name"
	done
}

for w in "${what[@]}"; do
	case $w in
	layers)
		single check-layers "$top/tests/check-layers.sh"
		single check-layers-self-test "$top/tests/check-layers.sh" --self-test
		single mutants-apply "$top/tests/mutants/run.sh" --apply-only
		single mutants-some "$top/tests/mutants/run.sh" --some 3
		single check-behaviours "$top/tests/check-behaviours.sh"
		;;
	unit)
		read -ra only <<<"${DDBFS_UNIT_TESTS:---no-suite crash}"
		meson_tests "${only[@]}"
		;;
	crash) meson_tests --suite crash ;;
	mount) run_scripts "$w" ;;
	mount/*)
		if [ ! -f "$top/tests/${w%.sh}.sh" ]; then
			echo "run.sh: no such test: $w" >&2
			exit 2
		fi
		run_scripts "${w%%/*}" "$(basename "$w" .sh)"
		;;
	*)
		echo "run.sh: no such tests: $w" >&2
		exit 2
		;;
	esac
done

for report in "$sanitizer".*; do
	[ -e "$report" ] || continue
	echo "FAIL sanitizer report: $report" >&2
	head -n 40 "$report" >&2
	echo "0 1 0" >>"$counts"
done

[ -z "${DDBFS_COUNTS:-}" ] || cat "$counts" >>"$DDBFS_COUNTS"
awk '
	{ passed += $1; failed += $2; skipped += $3 }
	END {
		printf "%d passed, %d failed%s\n", passed, failed, skipped ? ", " skipped " skipped" : ""
		exit !(passed > 0 && failed == 0)
	}' "$counts"
