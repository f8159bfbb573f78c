#!/usr/bin/env bash
#
# check-behaviours.sh - the table of behaviours in README.md here: each line of
# the list is there, and each test it names is one that runs.
set -uo pipefail

tests=$(cd "$(dirname "$0")" && pwd)
wanted="C1 C2 C3 C4 C5 C6 C7 C8 C9 C10 C11 N0 N1 N2 N3 N4 T1 T2 T3 T4 T5 T6 P0 P1 P2 P3 P4 S1 S2 S3 S4 S5
	L1 L2 L3 L4 L5 X1 X2 X3 X4 X5 X6 X7 X8 X9 X10 X11 F1 F2 F3 D1 D2 D3 D4 D5
	D6 D7 D8 D9 D10"
bad=0

complain() {
	echo "tests/README.md: $*"
	bad=1
}

# named BEHAVIOUR FILE TEST: the file runs a test of that name.
named() {
	case $2 in
	*.sh) grep -qE "^[[:space:]]*it .*[[:space:]]$3([[:space:]]|\$)" "$tests/$2" ;;
	*) grep -qw -- "$3" "$tests/$2" ;;
	esac || complain "$1: $2 runs no test $3"
}

for behaviour in $wanted; do
	line=$(grep "^| $behaviour " "$tests/README.md") || {
		complain "$behaviour has no test"
		continue
	}
	while read -r part; do
		file=$(sed -n 's/^`\([^`]*\)`.*/\1/p' <<<"$part")
		if [ -z "$file" ] || [ ! -f "$tests/$file" ]; then
			complain "$behaviour: no such test file: $part"
			continue
		fi
		for name in $(sed -n 's/^`[^`]*`: *//p' <<<"$part" | tr ',' ' '); do
			named "$behaviour" "$file" "$name"
		done
	done < <(cut -d'|' -f3 <<<"$line" | tr ';' '\n' | sed 's/^ *//; s/ *$//')
done
exit $bad
