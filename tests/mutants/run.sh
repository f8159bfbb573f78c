#!/usr/bin/env bash
#
# run.sh - shows that the model test has teeth: plants each of the bugs in this
# directory, one at a time, in a copy of the tree, builds, and sees that the
# model test fails within as many histories as a CI run makes.
#
#   tests/mutants/run.sh [--apply-only | --some N] [NAME...]
#
# --apply-only: only that each patch still applies. --some: N of them, others
# each day (or by $DDBFS_TEST_SEED), built without optimisation. CI asks both.
# The first line of a patch says in words what the bug is; tests/model/README.md
# lists them. Prints TAP.
set -uo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
histories=${DDBFS_MODEL_HISTORIES:-$(sed -n 's/^#define HISTORIES //p' "$top/tests/model/test-model.c")}
apply_only=
some=0
setup=()
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
		sed -n '3,13s/^# \{0,1\}//p' "$0" >&2
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

built() {
	ninja -C "$tmp/build" tests/model/test-model >"$tmp/log" 2>&1 && return
	tail -n 20 "$tmp/log" | sed 's/^/# /'
	return 1
}

patched() {
	patch -p1 -s -f -F1 --no-backup-if-mismatch "$@" -d "$tmp/tree" <"$top/tests/mutants/$name.patch" >"$tmp/log" 2>&1 &&
		return
	sed 's/^/# /' "$tmp/log"
	return 1
}

# 0: the test found the bug, and not by dying of something else.
caught() {
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
		grep '^# seed .* failed' "$tmp/log" | head -n 1
	else
		not_ok "$name is not caught by $histories histories: $what"
	fi
	patched -R || exit 1
done
if [ -z "$apply_only" ] && [ "$some" = 0 ] && [ ${#names[@]} -gt 1 ]; then
	# Without any of them all is well: what was caught were the bugs.
	if built && "$tmp/build/tests/model/test-model" --quick --histories "$((histories / 10))" >"$tmp/log" 2>&1; then
		ok 'without a planted bug nothing is found'
	else
		not_ok 'without a planted bug something is found'
		sed 's/^/# /' "$tmp/log"
	fi
fi
echo "1..$number"
[ $failures = 0 ]
