#!/usr/bin/env bash
#
# run.sh - shows that tests have teeth: plants each of the bugs in this
# directory, one at a time, in a copy of the tree, builds, and sees that the
# test fails which must: the model test, within as many histories as a CI run
# makes, or for bugs of the store the one that the patch names, in the line
# `Caught by: [VARIABLE=VALUE...] PROGRAM`.
#
#   tests/mutants/run.sh [--apply-only | --some N] [NAME...]
#
# --apply-only: only that each patch still applies. --some: N of them, others
# each day (or by $DDBFS_TEST_SEED), built without optimisation. CI asks both.
# The first line of a patch says in words what the bug is; tests/model/README.md
# and tests/crash/README.md list them. Prints TAP.
set -uo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
histories=${DDBFS_MODEL_HISTORIES:-$(sed -n 's/^#define HISTORIES //p' "$top/tests/model/test-model.c")}
apply_only=
some=0
setup=()
settings=()
program=
names=()
number=0
failures=0

while [ $# -gt 0 ]; do
	case $1 in
	--apply-only) apply_only=1 ;;
	--some)
		some=$2
		setup=(-Doptimization=0)
		shift
		;;
	-*)
		sed -n '3,16s/^# \{0,1\}//p' "$0" >&2
		exit 2
		;;
	*) names+=("$1") ;;
	esac
	shift
done
if [ ${#names[@]} = 0 ]; then
	for file in "$top"/tests/mutants/*.patch; do
		names+=("$(basename "$file" .patch)")
	done
fi
if [ "$some" -gt 0 ] && [ "$some" -lt ${#names[@]} ]; then
	first=$((${DDBFS_TEST_SEED:-$(($(date +%s) / 86400))} * some % ${#names[@]}))
	names+=("${names[@]}")
	names=("${names[@]:first:some}")
fi

tmp=$(mktemp -d "${DDBFS_TEST_TMP:-/tmp}/ddbfs-mutants.XXXXXX") || exit 1
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/tree" "$tmp/kept"
(cd "$top" && tar -c --exclude='./build*' --exclude='./.git' .) | tar -x -C "$tmp/tree" || exit 1
# The compiler's cache, where there is one, must know the copy by the same paths.
export CCACHE_BASEDIR=$tmp/tree CCACHE_NOHASHDIR=1 DDBFS_MODEL_KEEP=$tmp/kept

ok() {
	number=$((number + 1))
	echo "ok $number - $1"
}

not_ok() {
	number=$((number + 1))
	failures=$((failures + 1))
	echo "not ok $number - $1"
}

# Which test is to find the bug.
choose_test() {
	local line

	line=$(sed -n 's/^Caught by: //p' "$top/tests/mutants/$name.patch")
	line=${line:-tests/model/test-model}
	program=${line##* }
	read -ra settings <<<"${line%"$program"}"
}

built() {
	ninja -C "$tmp/build" "$program" >"$tmp/log" 2>&1 && return
	tail -n 20 "$tmp/log" | sed 's/^/# /'
	return 1
}

patched() {
	patch -p1 -s -f -F1 --no-backup-if-mismatch "$@" -d "$tmp/tree" <"$top/tests/mutants/$name.patch" >"$tmp/log" 2>&1 &&
		return
	sed 's/^/# /' "$tmp/log"
	return 1
}

# 0: the test found the bug, and not by dying of something else. The first line that says so is the log's.
caught() {
	if [ "$program" != tests/model/test-model ]; then
		env DDBFS_TEST_TMP="$tmp/kept" "${settings[@]}" "$tmp/build/$program" 2>"$tmp/errors" |
			grep -m 1 '^not ok' | sed 's/^not ok [0-9]*/# found/' >"$tmp/log"
		[ -s "$tmp/log" ]
		return
	fi
	"$tmp/build/tests/model/test-model" --quick --histories "$histories" >"$tmp/log" 2>&1
	[ $? = 1 ] && grep -q '^# seed' "$tmp/log"
}

if [ -z "$apply_only" ]; then
	meson setup "${setup[@]}" "$tmp/build" "$tmp/tree" >"$tmp/log" 2>&1 || {
		sed 's/^/# /' "$tmp/log"
		echo 'Bail out! no build directory'
		exit 1
	}
fi
for name in "${names[@]}"; do
	what=$(head -n 1 "$top/tests/mutants/$name.patch")
	choose_test
	if ! patched; then
		not_ok "$name no longer applies"
		continue
	fi
	if [ -n "$apply_only" ]; then
		ok "$name applies"
	elif ! built; then
		not_ok "$name does not build"
	elif caught; then
		ok "$name is caught: $what"
		grep '^# \(seed .* failed\|found\)' "$tmp/log" | head -n 1
	else
		not_ok "$name is not caught by ${settings[*]} $program: $what"
	fi
	patched -R || exit 1
done
# Without any of them all is well: what was caught were the bugs.
sound() {
	if [ "$program" = tests/model/test-model ]; then
		"$tmp/build/$program" --quick --histories "$((histories / 10))"
	else
		env DDBFS_TEST_TMP="$tmp/kept" "${settings[@]}" "$tmp/build/$program"
	fi >"$tmp/log" 2>&1
}

if [ -z "$apply_only" ] && [ "$some" = 0 ] && [ ${#names[@]} -gt 1 ]; then
	declare -A asked=()
	for name in "${names[@]}"; do
		choose_test
		test="${settings[*]} $program"
		[ -z "${asked[$test]:-}" ] || continue
		asked[$test]=1
		if built && sound; then
			ok "without a planted bug nothing is found:$test"
		else
			not_ok "without a planted bug something is found:$test"
			sed 's/^/# /' "$tmp/log"
		fi
	done
fi
echo "1..$number"
[ $failures = 0 ]
