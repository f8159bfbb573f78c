#!/usr/bin/env bash
#
# check-format.sh - every C file of the tree is as clang-format would have it.
# With --fix, makes it so.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

mapfile -t files < <(git ls-files '*.c' '*.h')
[ ${#files[@]} -gt 0 ] || exit 1
if [ "${1:-}" = --fix ]; then
	clang-format -i "${files[@]}"
else
	clang-format --dry-run --Werror "${files[@]}"
fi
